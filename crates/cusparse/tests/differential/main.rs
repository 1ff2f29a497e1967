//! Sparse functions of random shapes, formats and types against dense sums. Numbers are quarters, whose sums are exact, so most results
//! must be equal. `PTXVM_SHAPES=10000` makes more shapes than the normal 300 of each kind.

mod blocks;
mod contract;
mod generic;
mod legacy;
mod rig;
mod sparse;
