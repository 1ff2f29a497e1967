//! Mixed precision: `.f16` or `.bf16` operands convert exactly to `.f32`, then one rounding.
//!
//! PTX ISA, "Mixed Precision Floating Point Instructions". Subnormals are kept: there is no `.ftz`.

use crate::arith;
use crate::float::mode;
use crate::format::{F16, F32, Format};
use crate::operands::{Sources, one};
use isa::Picks;

/// The format of the narrow operands.
fn narrow(picks: &Picks) -> &'static Format {
    Format::of(picks.ty(1)).unwrap_or(&F16)
}

/// `add.f32.{f16,bf16}`: convert(a) + c.
pub fn add(picks: &Picks, s: &[u64]) -> [u64; 2] {
    one(arith::add_mixed(&F32, narrow(picks), mode(picks), s.bits(0), s.bits(1)))
}

/// `sub.f32.{f16,bf16}`: convert(a) - c.
pub fn sub(picks: &Picks, s: &[u64]) -> [u64; 2] {
    one(arith::add_mixed(&F32, narrow(picks), mode(picks), s.bits(0), s.bits(1) ^ F32.sign()))
}

/// `fma.f32.{f16,bf16}`: convert(a) * convert(b) + c, rounded once.
pub fn fma(picks: &Picks, s: &[u64]) -> [u64; 2] {
    one(arith::fma_mixed(&F32, narrow(picks), mode(picks), s.bits(0), s.bits(1), s.bits(2)))
}
