//! Floating-point instructions on `.f16`, `.bf16`, `.f32` and `.f64` and their packed forms.
//!
//! PTX ISA, "Floating Point Instructions" and "Half Precision Floating-Point Instructions". A packed form applies its
//! scalar form to each element.

use crate::approx;
use crate::arith;
use crate::compare::{MinMax, min_max_float};
use crate::format::{F64, F64_UPPER, Format};
use crate::operands::{Sources, each_lane, one};
use crate::round::{Clamp, Mode, clamp};
use isa::{Addition, Mod, Picks, Type};
use std::cmp::Ordering;

/// The rounding (to nearest even by default), flushing and clamping that the modifiers select.
pub(crate) fn mode(picks: &Picks) -> Mode {
    let mut mode = Mode::NEAREST;
    let (mut relu, mut finite, mut saturate) = (false, false, false);
    // One pass: this runs for every lane.
    for &modifier in picks.mods() {
        match modifier {
            Mod::Ftz => mode.ftz = true,
            Mod::Sat => saturate = true,
            Mod::Relu => relu = true,
            Mod::Satfinite => finite = true,
            _ => mode.rounding = modifier.rounding().unwrap_or(mode.rounding),
        }
    }
    mode.clamp = match (saturate, relu, finite) {
        (true, _, _) => Clamp::Saturate,
        (_, true, true) => Clamp::ReluFinite,
        (_, true, false) => Clamp::Relu,
        (_, false, true) => Clamp::Finite,
        _ => Clamp::None,
    };
    mode
}

/// Applies a function of one, two or three operands to each lane.
fn float<const N: usize>(picks: &Picks, s: &[u64], f: impl Fn(&Format, Mode, [u64; N]) -> u64) -> [u64; 2] {
    let mode = mode(picks);
    each_lane(picks.ty(0), s, |ty, lane| match Format::of(ty) {
        Some(format) => f(format, mode, std::array::from_fn(|i| lane.bits(i))),
        None => 0,
    })
}

/// `add`
pub fn add(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a, b]| arith::add(f, mode, a, b))
}

/// `add` to what memory holds.
pub fn add_to_memory(addition: Addition, ty: Type, old: u64, a: u64) -> u64 {
    match (ty, addition) {
        (Type::F64, Addition::Global | Addition::Bulk) if F64.is_nan(a) => a,
        (Type::F64, Addition::Global | Addition::Bulk) if F64.is_nan(old) => old,
        (Type::F32, Addition::Global) => add(&Picks::new(&[ty], &[Mod::Rn, Mod::Ftz]), &[a, old])[0],
        _ => add(&Picks::new(&[ty], &[Mod::Rn]), &[a, old])[0],
    }
}

/// `sub`
pub fn sub(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a, b]| arith::sub(f, mode, a, b))
}

/// `mul`
pub fn mul(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a, b]| arith::mul(f, mode, a, b))
}

/// `mad`: the same as [`fma`] since sm_20.
pub fn mad(picks: &Picks, s: &[u64]) -> [u64; 2] {
    fma(picks, s)
}

/// `fma`: a * b + c, rounded once.
pub fn fma(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a, b, c]| arith::fma(f, mode, a, b, c))
}

/// `div` with a rounding.
pub fn div(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a, b]| arith::div(f, mode, a, b))
}

/// `div.approx.f32` and `div.full.f32`, rounded to nearest here (the manual allows 2 ulp).
///
/// `.approx` is a * (1 / b) with 1 / b flushed to zero: for 2^126 < |b| < 2^128 the result is a zero, or NaN if a is
/// infinite.
pub fn div_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let full = picks.has(Mod::Full);
    float(picks, s, |f, mode, [a, b]| {
        let magnitude = b & f.magnitude_mask();
        let largest_with_normal_reciprocal = f.infinity() - (2 << f.fraction_bits);
        if !full && magnitude > largest_with_normal_reciprocal && magnitude < f.infinity() {
            arith::mul(f, mode, a, b & f.sign())
        } else {
            arith::div(f, mode, a, b)
        }
    })
}

/// `rcp` with a rounding. ptxas accepts `.ftz` with `.f64`, where it changes nothing.
pub fn rcp(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| arith::rcp(f, Mode { ftz: mode.ftz && *f != F64, ..mode }, a))
}

/// `rcp.approx`, rounded to nearest here (the manual allows 1 ulp).
pub fn rcp_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    approximate(picks, s, arith::rcp)
}

/// `sqrt` with a rounding.
pub fn sqrt(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| arith::sqrt(f, mode, a))
}

/// `sqrt.approx`, rounded to nearest here.
pub fn sqrt_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    sqrt(picks, s)
}

/// `rsqrt.approx`, rounded to nearest here.
pub fn rsqrt_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    approximate(picks, s, arith::rsqrt)
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`, the gross approximations, read only the upper word of the operand
/// and compute the upper word of the result: a format of 1, 11 and 20 bits.
fn approximate(picks: &Picks, s: &[u64], function: impl Fn(&Format, Mode, u64) -> u64) -> [u64; 2] {
    let gross = picks.ty(0) == Type::F64 && picks.has(Mod::Ftz);
    float(picks, s, |f, mode, [a]| match gross {
        true => function(&F64_UPPER, mode, a & 0xffff_ffff_0000_0000),
        false => function(f, mode, a),
    })
}

/// `ex2.approx`: 2^a.
pub fn ex2_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| approx::ex2(f, mode, a))
}

/// `lg2.approx`: the logarithm to base 2.
pub fn lg2_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| approx::lg2(f, mode, a))
}

/// `sin.approx`
pub fn sin_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| approx::sin(f, mode, a))
}

/// `cos.approx`
pub fn cos_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| approx::cos(f, mode, a))
}

/// `sin.approx.ftz.2pi`: the sine of an angle in cycles.
pub fn sin_cycles(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| approx::sin_cycles(f, mode, a))
}

/// `cos.approx.ftz.2pi`: the cosine of an angle in cycles.
pub fn cos_cycles(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| approx::cos_cycles(f, mode, a))
}

/// `tanh.approx`
pub fn tanh_approx(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| approx::tanh(f, mode, a))
}

/// Changes the sign bit alone; `.ftz` flushes subnormals. On every target ptxas makes an addition of -0.0 of it, whose NaN
/// is the canonical one, in `.f64` the operand's, made quiet.
fn with_sign(picks: &Picks, s: &[u64], sign: impl Fn(&Format, u64) -> u64) -> [u64; 2] {
    float(picks, s, |f, mode, [a]| match f.is_nan(a) {
        true if *f == F64 => f.quieted(a),
        true => f.nan,
        false if mode.ftz => sign(f, f.flush(a)),
        false => sign(f, a),
    })
}

/// `abs`
pub fn abs(picks: &Picks, s: &[u64]) -> [u64; 2] {
    with_sign(picks, s, |f, a| a & f.magnitude_mask())
}

/// `neg`
pub fn neg(picks: &Picks, s: &[u64]) -> [u64; 2] {
    with_sign(picks, s, |f, a| a ^ f.sign())
}

/// `copysign`: the magnitude of b with the sign of a; no bit is otherwise changed.
pub fn copysign(picks: &Picks, s: &[u64]) -> [u64; 2] {
    float(picks, s, |f, _, [a, b]| (a & f.sign()) | (b & f.magnitude_mask()))
}

fn min_max(picks: &Picks, s: &[u64], keep: Ordering) -> [u64; 2] {
    let xorsign = picks.has(Mod::Xorsign);
    let mode = MinMax {
        ftz: picks.has(Mod::Ftz),
        nan: picks.has(Mod::NaN),
        abs: xorsign || picks.has(Mod::Abs),
        xorsign,
    };
    let relu = if picks.has(Mod::Relu) { Clamp::Relu } else { Clamp::None };
    each_lane(picks.ty(0), s, |ty, lane| match (Format::of(ty), lane) {
        (Some(f), [first, rest @ ..]) => {
            clamp(f, relu, rest.iter().fold(*first, |a, &b| min_max_float(f, keep, mode, a, b)))
        }
        _ => 0,
    })
}

/// `min` of three operands.
pub fn min3(picks: &Picks, s: &[u64]) -> [u64; 2] {
    min(picks, s)
}

/// `max` of three operands.
pub fn max3(picks: &Picks, s: &[u64]) -> [u64; 2] {
    max(picks, s)
}

/// `min`
pub fn min(picks: &Picks, s: &[u64]) -> [u64; 2] {
    min_max(picks, s, Ordering::Less)
}

/// `max`
pub fn max(picks: &Picks, s: &[u64]) -> [u64; 2] {
    min_max(picks, s, Ordering::Greater)
}

/// `testp`: a property of a floating-point number. Zeros count as normal.
pub fn testp(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let Some(f) = Format::of(picks.ty(0)) else { return one(0) };
    let magnitude = s.bits(0) & f.magnitude_mask();
    let (nan, infinite) = (magnitude > f.infinity(), magnitude == f.infinity());
    let subnormal = magnitude != 0 && magnitude < f.min_normal();
    let holds = |m: Mod| match m {
        Mod::Finite => !nan && !infinite,
        Mod::Infinite => infinite,
        Mod::Number => !nan,
        Mod::Notanumber => nan,
        Mod::Normal => !nan && !infinite && !subnormal,
        Mod::Subnormal => subnormal,
        _ => false,
    };
    one(picks.mods().iter().any(|&m| holds(m)) as u64)
}
