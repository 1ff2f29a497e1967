//! cuBLASLt: products with more layouts, types, scales, and something done to the result.
//!
//! The library is also `libcublasLt.so.12` and `.13`, because a handle of cuBLAS is one of cuBLASLt. The program describes matrices and
//! products in objects (`descriptor.rs`), asks for an algorithm (`algorithm.rs`: there is one, which fits all), and calls `matmul.rs`.

mod algorithm;
mod descriptor;
mod epilogue;
mod library;
mod matmul;
mod operand;
mod transform;

pub(crate) use algorithm::API as ALGORITHM;
pub(crate) use descriptor::API as DESCRIPTOR;
pub(crate) use library::{API as LIBRARY, VALUES};
pub(crate) use matmul::API as MATMUL;
pub(crate) use transform::API as TRANSFORM;
