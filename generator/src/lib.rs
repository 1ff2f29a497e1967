//! Random PTX kernels, to test that every engine computes the same.
//!
//! By construction, a [`Kernel`] is well typed, ends, and has no race. A thread writes only its own memory; threads
//! communicate only through barriers, warp-level instructions and atomics that commute. The results are therefore
//! independent of the order in which threads run, and each difference between two engines is a bug in one of them.
//!
//! - [`catalog`]: all pure instructions of a target, from the instruction table.
//! - [`generate`]: generates one kernel from random choices; each family of statements has its own module.
//! - [`walk`]: generates kernels with every instruction and every neighbour, one after the other.
//! - [`program`]: a kernel as a tree, its text, and what can be removed from it.
//! - [`compare`]: runs a kernel on the reference engine, and on the interpreter in many ways.
//! - [`classes`]: the classes of statements in kernels, for a survey.
//! - [`shrink`]: reduces a kernel while it still shows a difference.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod classes;
pub mod compare;
pub mod generate;
pub mod program;
pub mod random;
pub mod shrink;
pub mod walk;

pub use compare::{Difference, compare};
pub use generate::generate;
pub use program::Kernel;
pub use random::Random;
pub use shrink::{Failure, run, shrink};
