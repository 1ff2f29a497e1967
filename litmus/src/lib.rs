//! Litmus tests of the PTX memory model: small programs of a few threads, run many times on several host threads.
//! Their outcomes are compared with those that the model permits.
//!
//! - [`program`]: a test.
//! - [`model`]: the axioms of the memory model, and the outcomes that they permit, in terms of [`relation`].
//! - [`catalog`]: all tests; [`variant`] has the other parameters of a run.
//! - [`kernel`]: the kernel of a test.
//! - [`mod@run`]: runs it, and counts.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod kernel;
pub mod model;
pub mod program;
pub mod relation;
pub mod run;
pub mod variant;

pub use catalog::variants;
pub use model::permitted;
pub use run::{Tally, run};
pub use variant::Variant;
