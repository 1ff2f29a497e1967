//! What our versions of NVIDIA's mathematical libraries (cuBLAS, cuRAND, cuFFT, cuSPARSE, cuSOLVER) have in common.
//!
//! A function is declared once, with [`api!`] or [`refused!`]: that gives the exported symbol, an entry of a table for the documentation,
//! and the wrapper that lets no panic reach the program. A function checks its arguments, checks that the memory that it names is
//! allocated ([`Range`]), and queues its work in the stream of its handle ([`submit`]). The work reaches the memory in place
//! ([`Range::reach`]), and tells the driver what it wrote. So work runs in stream order, and graphs capture it.
//!
//! All that is possible only with ptxvm's driver. With another one, [`driver::Driver::get`] fails and says so.

pub mod api;
pub mod driver;
mod handles;
mod memory;
mod own_path;
mod work;

pub use api::{Function, Status};
pub use driver::Error;
pub use handles::Handles;
pub use memory::{Memory, OutOfBounds, Range, Value, is_of_device};
pub use own_path::own_path;
pub use work::{Stream, copy, is_capturing, order, submit, synchronize};

// For the macros.
#[doc(hidden)]
pub use caller::log;
