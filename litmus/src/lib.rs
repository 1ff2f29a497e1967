//! Litmus tests of the PTX memory model: small programs of a few threads, run many times on several host threads, whose outcomes are
//! compared with what the model permits.
//!
//! - [`program`]: a test.
//! - [`model`]: the axioms of the memory model, and the outcomes that they permit; [`relation`] is what they are made of.
//! - [`catalog`]: all tests; [`variant`] is what they are run with besides.
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
