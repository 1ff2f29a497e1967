//! NVIDIA's library of systems of equations and spectra (cuSOLVER) on a CPU: `libcusolver.so.11` and `libcusolver.so.12` on ptxvm's
//! CUDA driver.
//!
//! Its work runs in stream order on device memory in place (`mathlib`); what it computes is in `linalg`, where products are blocks with
//! sums in a fixed order. So results have the same bits for any number of threads, and on every machine with FMA.
//!
//! Each file has a group of functions of the manual. `docs/cusolver.md` lists them all, and the bounds of errors.

mod call;
mod cholesky;
mod declare;
mod elimination;
mod forms;
mod general;
mod handle;
mod mixed;
mod reflections;
mod refused;
mod singular;
mod sparse;
mod spectrum;
mod status;

pub use mathlib::Function;
pub use status::Status;

/// The functions, one table per file and kind.
static TABLES: &[&[&[Function]]] = &[
    cholesky::API,
    cholesky::GENERIC,
    elimination::API,
    elimination::GENERIC,
    forms::API,
    general::API,
    handle::API,
    mixed::SINGLE,
    mixed::DOUBLE,
    mixed::COMPLEX,
    mixed::DOUBLE_COMPLEX,
    reflections::API,
    reflections::GENERIC,
    refused::dense::API,
    refused::sparse::API,
    singular::API,
    singular::GENERIC,
    sparse::API,
    spectrum::API,
    spectrum::GENERIC,
];

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).flat_map(|symbols| symbols.iter())
}
