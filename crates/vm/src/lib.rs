//! The block-vectorised interpreter: runs a prepared launch ([`machine::Launch`]) for up to 1024 threads at a time.
//!
//! This crate uses `unsafe`: it reaches kernel memory through raw pointers, since kernels race on it by design, and
//! vector handlers work on raw arrays.

mod affine;
mod bytes;
mod cluster;
mod code;
mod cta;
mod cta_batch;
mod deadlock;
mod exec;
mod footprint;
mod grid;
mod grid_barrier;
mod kernel;
mod limits;
mod local_memory;
mod members;
mod pattern;
mod registers;
mod run;
mod shared;
mod tensor_memory;
mod turns;

pub use code::listing;
pub use grid::run;
