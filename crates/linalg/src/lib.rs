//! Linear algebra on device memory, for our versions of cuBLAS and its kin: numbers, vectors and matrices in place, products with sums
//! in a fixed order, triangular systems, factors.
//!
//! Products are those of the crates `gemm-f32` and `gemm-f64`: see `product.rs`. All other sums are in a fixed order,
//! with products and sums rounded separately. So results have the same bits for any number of threads, and on every machine with FMA.

mod chains;
mod elimination;
mod factors;
mod fp8;
mod general;
mod instances;
mod memory;
mod number;
mod operand;
mod product;
mod reflections;
mod rotations;
mod singular;
mod spectrum;
mod triangle;

pub use chains::{adjoint, dense, largest, length, quotient};
pub use elimination::{cholesky, eliminate};
pub use factors::{exchange, lu, qr, reflect, singular, solve, unit};
pub use fp8::Fp8;
pub use general::{General, general};
pub use memory::{Matrix, Reached, Vector, range};
pub use number::{C32, C64, Kind, Scalar, factor, read, to_tf32, write};
pub use operand::{Dense, Held, Operation, Region, Source, accumulate, each, list, multiply, store};
pub use product::{Factor, Multiply, Product, product};
pub use reflections::{Reflections, apply_right, orthogonalize};
pub use singular::{Bidiagonal, Singular, Vectors, bidiagonalize, singular_values};
pub use spectrum::{Spectrum, Tridiagonal, diagonalize, eigen, tridiagonalize};
pub use triangle::{Named, Triangle};
