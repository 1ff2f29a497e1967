//! Mixed precision: `.f16` or `.bf16` operands convert exactly to `.f32`, then one rounding. PTX 9.4 adds packed
//! forms, and forms from `.f32x2` to packed halves.
//!
//! PTX ISA, "Mixed Precision Floating Point Instructions". Subnormals are kept without `.ftz`.

use crate::arith;
use crate::convert::convert_float;
use crate::float::mode;
use crate::format::{F16, F32, Format};
use crate::operands::{Sources, low_bits, one};
use crate::round::Mode;
use isa::{Picks, Rounding};

/// Applies a function to the elements of sources of these types, which have as many elements as the result.
fn each<const N: usize>(
    picks: &Picks,
    s: &[u64],
    types: [usize; N],
    f: impl Fn([&Format; N], [u64; N]) -> u64,
) -> [u64; 2] {
    let (result, elements) = (picks.ty(0), types.map(|index| picks.ty(index).element()));
    let formats = elements.map(|ty| Format::of(ty).unwrap_or(&F16));
    let width = result.element().bits();
    let mut d = 0;
    for lane in 0..result.lanes() {
        let sources = std::array::from_fn(|i| s.lane(i, lane, elements[i].bits()));
        d |= low_bits(f(formats, sources), width) << (lane * width);
    }
    one(d)
}

/// `add.f32.{f16,bf16}`, `add.f32x2.{f16x2,bf16x2}.f32x2`: convert(a) + c.
pub fn add(picks: &Picks, s: &[u64]) -> [u64; 2] {
    each(picks, s, [1, 0], |[fa, fc], [a, c]| arith::add_mixed(fc, fa, mode(picks), a, c))
}

/// `sub.f32.{f16,bf16}`, `sub.f32x2.{f16x2,bf16x2}.f32x2`: convert(a) - c.
pub fn sub(picks: &Picks, s: &[u64]) -> [u64; 2] {
    each(picks, s, [1, 0], |[fa, fc], [a, c]| arith::add_mixed(fc, fa, mode(picks), a, c ^ fc.sign()))
}

/// `fma.f32.{f16,bf16}`: convert(a) * convert(b) + c, rounded once; `fma.f32x2.{f16x2,bf16x2}.f32x2.f32x2`: convert(a) * b + c.
pub fn fma(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let of_b = if picks.types().len() > 2 { 2 } else { 1 };
    each(picks, s, [1, of_b, 0], |[fa, fb, fc], [a, b, c]| {
        arith::fma_mixed(fc, [fa, fb], mode(picks), a, b, c)
    })
}

/// `mul.bf16x2.bf16x2.f16x2`, `mul.f16x2.f16x2.bf16x2`: a * b, rounded once to the format of a.
pub fn mul(picks: &Picks, s: &[u64]) -> [u64; 2] {
    each(picks, s, [1, 2], |[fa, fb], [a, b]| arith::mul_mixed(fa, [fa, fb], Mode::NEAREST, a, b))
}

/// `add.rz.{bf16x2,ftz.f16x2}.f32x2.f32x2`: a + b rounded to `.f32`, then to halves. Both roundings are toward zero,
/// so one is enough.
pub fn add_narrow(picks: &Picks, s: &[u64]) -> [u64; 2] {
    narrow(picks, s, arith::add)
}

/// `sub.rz.{bf16x2,ftz.f16x2}.f32x2.f32x2`
pub fn sub_narrow(picks: &Picks, s: &[u64]) -> [u64; 2] {
    narrow(picks, s, arith::sub)
}

/// `mul.rz.{bf16x2,ftz.f16x2}.f32x2.f32x2`
pub fn mul_narrow(picks: &Picks, s: &[u64]) -> [u64; 2] {
    narrow(picks, s, arith::mul)
}

fn narrow(picks: &Picks, s: &[u64], operation: impl Fn(&Format, Mode, u64, u64) -> u64) -> [u64; 2] {
    let to = Format::of(picks.ty(0)).unwrap_or(&F16);
    let in_f32 = Mode { rounding: Rounding::TowardZero, ..mode(picks) };
    let in_half = Mode { ftz: false, ..in_f32 };
    each(picks, s, [1, 2], |_, [a, b]| convert_float(&F32, to, in_half, operation(&F32, in_f32, a, b)))
}
