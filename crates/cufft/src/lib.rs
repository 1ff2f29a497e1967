//! NVIDIA's library of Fourier transforms (cuFFT) on a CPU: `libcufft.so.11` and `libcufft.so.12` on ptxvm's CUDA driver.
//!
//! The crates `rustfft` and `realfft` do the arithmetic, without instructions that only some machines have. So results have the same bits
//! on every machine and for any number of threads. Numbers of 16 bits are transformed as `f32` and rounded once, at the end.
//! The work runs in stream order on device memory in place (`mathlib`), so that graphs capture it.
//!
//! `layout.rs` says where the numbers of a transform lie, `plan.rs` what a program chooses, `transform.rs` computes, and `execute.rs` has
//! the functions that run a plan. Functions are declared with `api!`; `docs/cufft.md` lists them all.

mod execute;
mod layout;
mod make;
mod plan;
mod status;
mod transform;
mod unsupported;

pub use mathlib::Function;
pub use status::Status;

/// The functions, one table per file.
static TABLES: &[&[&[Function]]] = &[make::API, plan::API, execute::API, unsupported::API];

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).flat_map(|symbols| symbols.iter())
}
