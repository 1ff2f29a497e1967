//! Random PTX kernels, and whether every engine computes the same with them.
//!
//! A [`Kernel`] is well typed, ends, and has no race by construction: a thread writes only what belongs to it, and what threads
//! tell each other goes through barriers, warp-level instructions and atomics that commute. So its results are the same in every
//! order in which its threads can run, and each difference between two engines is a fault of one of them.
//!
//! - [`catalog`]: all pure instructions of a target, from the instruction table.
//! - [`generate`]: one kernel from random choices; a room for each family of statements.
//! - [`walk`]: a kernel for every instruction with every neighbour, one after the other.
//! - [`program`]: the tree that a kernel is, as text, and what can be left out of it.
//! - [`compare`]: a kernel on the reference engine and on the interpreter in many ways.
//! - [`classes`]: what kernels have in them, for a survey.
//! - [`shrink`]: what is left of a kernel that still shows a difference.
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
