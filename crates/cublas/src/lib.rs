//! NVIDIA's library of linear algebra (cuBLAS, with cuBLASLt) on a CPU: `libcublas.so.12` and `libcublas.so.13` on ptxvm's CUDA driver.
//!
//! Its work runs in stream order on device memory in place (`mathlib`), and computes with `linalg`, whose sums have a fixed order. Those of
//! vectors are described in `level1.rs`. So results have the same bits for any number of threads, and on every machine with FMA.
//!
//! Each file has a group of functions of the manual, declared with `routines!`. `docs/cublas.md` lists them all, and the bounds of errors.

mod batched;
mod call;
mod declare;
mod emulation;
mod extension;
mod gemm;
mod gemv;
mod handle;
mod level1;
mod level2;
mod level3;
mod lt;
mod operand;
mod refused;
mod rotation;
mod status;
mod transfer;

pub use mathlib::Function;
pub use status::Status;

/// The functions that take a handle and matrices, one table per file.
static ROUTINES: &[&[&[&[Function]]]] = &[
    batched::API,
    extension::API,
    gemm::API,
    gemv::API,
    level1::API,
    level2::API,
    level3::API,
    rotation::API,
];

/// The others.
static TABLES: &[&[&[Function]]] = &[
    emulation::API,
    handle::API,
    handle::VERSION,
    lt::ALGORITHM,
    lt::DESCRIPTOR,
    lt::LIBRARY,
    lt::MATMUL,
    lt::TRANSFORM,
    lt::VALUES,
    refused::API,
    status::API,
    transfer::API,
];

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    let routines = ROUTINES.iter().flat_map(|table| table.iter()).flat_map(|family| family.iter());
    let others = TABLES.iter().flat_map(|table| table.iter());
    routines.chain(others).flat_map(|symbols| symbols.iter())
}
