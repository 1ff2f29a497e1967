//! Arithmetic of four lanes in the 8-, 6- and 4-bit formats (PTX 9.4): exact, then rounded once to `.e4m3` or `.e5m2`.
//!
//! PTX ISA, "Alternate Floating-Point Data Formats". ptxas folds none of these instructions, so that they round once,
//! keep subnormals, and give the format's NaN is *unverified*.

use crate::arith::{product, sum};
use crate::convert::value;
use crate::float::mode;
use crate::format::{E4M3, Format};
use crate::operands::{Sources, one};
use crate::round::{Value, pack};
use isa::{Picks, Type};

/// Applies a function to the elements of sources of these types.
fn each<const N: usize>(
    picks: &Picks,
    s: &[u64],
    types: [Type; N],
    f: impl Fn([Value; N]) -> Value,
) -> [u64; 2] {
    let to = Format::of(picks.ty(0)).unwrap_or(&E4M3);
    one((0..4).fold(0, |d, lane| {
        let elements = std::array::from_fn(|i| {
            let ty = types[i];
            value(ty, false, s.lane(i, lane, ty.bits() / ty.lanes()))
        });
        d | pack(to, mode(picks), f(elements)) << (8 * lane)
    }))
}

/// `add`: a + c.
pub fn add(picks: &Picks, s: &[u64]) -> [u64; 2] {
    each(picks, s, [picks.ty(1), picks.ty(0)], |[a, c]| sum(a, c, mode(picks).rounding))
}

/// `sub`: a - c.
pub fn sub(picks: &Picks, s: &[u64]) -> [u64; 2] {
    each(picks, s, [picks.ty(1), picks.ty(0)], |[a, c]| sum(a, c.negated(), mode(picks).rounding))
}

/// `mul`: a * b.
pub fn mul(picks: &Picks, s: &[u64]) -> [u64; 2] {
    each(picks, s, [picks.ty(1), picks.ty(2)], |[a, b]| product(a, b))
}

/// `fma`: a * b + c.
pub fn fma(picks: &Picks, s: &[u64]) -> [u64; 2] {
    each(picks, s, [picks.ty(1), picks.ty(2), picks.ty(0)], |[a, b, c]| {
        sum(product(a, b), c, mode(picks).rounding)
    })
}
