//! Half precision arithmetic: the instructions of [`crate::float`] on `.f16`, `.bf16` and their packed forms.
//!
//! PTX ISA, "Half Precision Floating-Point Instructions".

pub use crate::float::{abs, add, ex2_approx, max, min, mul, neg, sub, tanh_approx};

use crate::float;
use crate::format::OUT_OF_BOUNDS;
use crate::operands::{each_lane, low_bits, one};
use isa::{Mod, Picks};

/// `fma`; with `.oob` the result is +0 where a or b is the out-of-bounds NaN, of either sign (so on an H100).
pub fn fma(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [d, _] = float::fma(picks, s);
    if !picks.has(Mod::Oob) {
        return one(d);
    }
    let [keep, _] = each_lane(picks.ty(0), s, |ty, lane| {
        let out = lane.iter().take(2).any(|&x| x & 0x7fff == OUT_OF_BOUNDS.into());
        if out { 0 } else { low_bits(u64::MAX, ty.bits()) }
    });
    one(d & keep)
}
