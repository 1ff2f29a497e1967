//! A debugger for PTX kernels.
//!
//! A [`Session`] knows where a launch stops: breakpoints, watched expressions, steps of a lane, a warp or a block, and
//! the same backward. A [`Front`] is its user's side; there are two: [`terminal`] for people and [`dap`] for editors.
//! [`run`] leads a launch, and `remote` one whose user is in another process.
//!
//! Everything here is made of `ptxvm::debug`, which leads a launch turn by turn, and back in time.
#![forbid(unsafe_code)]

pub mod dap;
mod expression;
mod program;
#[cfg(unix)]
pub mod remote;
mod session;
mod show;
pub mod terminal;
mod value;

pub use program::Program;
pub use session::{Breakpoint, Command, Front, Session, Step, Unit, Watch, Why, run};
pub use value::{Lane, Value};
