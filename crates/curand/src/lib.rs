//! NVIDIA's library of random numbers (cuRAND) on a CPU: `libcurand.so.10` on ptxvm's CUDA driver.
//!
//! The sequences are those of NVIDIA's library, bit for bit, in the order in which it puts them into memory. They are computed from what is
//! published ([`engine`]); the orders, and what becomes of the bits ([`distribution`], [`poisson`]), were compared with what NVIDIA's
//! generators on the host return, which run without a GPU (`tests/vectors.rs`, `conformance/curand.txt`). A generator of the device gives
//! what a generator of the host gives, as the manual says; of NVIDIA's on a GPU nothing has been recorded.
//!
//! Not there, and refused by name: the scrambled Sobol sequences and their tables.
//!
//! Work runs in stream order, on all cores, and results do not depend on their number. `docs/curand.md` lists functions and sequences.

pub mod distribution;
pub mod engine;
mod generate;
mod generator;
pub mod kind;
pub mod poisson;
mod status;
mod tables;

pub use mathlib::Function;
pub use status::Status;

/// The functions, one table per file.
static TABLES: &[&[&[Function]]] = &[generate::API, generator::API, tables::API, tables::REFUSED];

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).flat_map(|symbols| symbols.iter())
}
