//! NVIDIA's library of sparse matrices (cuSPARSE) on a CPU: `libcusparse.so.12` on ptxvm's CUDA driver.
//!
//! A matrix of any format becomes rows of entries (`pattern.rs`); all offsets and indices are checked there, because they come from the
//! program's memory. Sums are in the order of a row's entries, and products and sums are rounded separately, so results have the same
//! bits for any number of threads. The loops are our own: no crate that sums in a fixed order has these formats, duplicates included.
//! Work runs in stream order (`mathlib`), so that graphs capture it.
//!
//! `sparse.rs` and `dense.rs` have the descriptors. Functions are declared with `api!` and `families!`; `docs/cusparse.md` lists them
//! all.

mod addition;
mod bands;
mod blocks;
mod call;
mod convert;
mod declare;
mod dense;
mod descriptor;
mod factor;
mod handle;
mod indices;
mod multiply;
mod order;
mod pattern;
mod product;
mod prune;
mod refused;
mod solve;
mod sparse;
mod status;
mod vectors;

pub use mathlib::Function;
pub use status::Status;

/// The functions, one table per file.
static TABLES: &[&[&[Function]]] = &[
    handle::API,
    status::API,
    sparse::API,
    dense::API,
    vectors::API,
    vectors::FAMILIES,
    multiply::API,
    convert::API,
    product::API,
    solve::API,
    descriptor::API,
    descriptor::GETTERS,
    indices::API,
    addition::API,
    addition::FAMILIES,
    factor::API,
    factor::FAMILIES,
    bands::FAMILIES,
    blocks::API,
    blocks::FAMILIES,
    order::API,
    order::FAMILIES,
    prune::API,
    prune::FAMILIES,
    refused::API,
];

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).flat_map(|symbols| symbols.iter())
}
