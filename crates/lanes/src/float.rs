//! Binary32 and binary64 arithmetic, to nearest even: add, sub, mul, fma, mad, div, rcp, sqrt, rsqrt, neg, abs, min,
//! max.

use super::drive::{in_pairs, map1, map2, map3};
use super::macros::flags;
use super::{HostPath, LaneFn, only};
use isa::{Mod, Opcode, Picks, Type};

/// The NaN of binary32 arithmetic.
pub(super) const NAN32: f32 = f32::from_bits(0x7fff_ffff);
/// The NaN of binary64 arithmetic.
pub(super) const NAN64: f64 = f64::from_bits(0xfff8_0000_0000_0000);

/// Scaling a result by this factor shows its rounding with an unbounded exponent: any power of two from 2^24 on would
/// do.
const SCALE: f32 = (1 << 24) as f32;

/// Flushes a subnormal number to a zero of the same sign.
#[inline(always)]
pub(super) fn flush<const FTZ: bool>(x: f32) -> f32 {
    flush_if(FTZ && x.abs() < f32::MIN_POSITIVE, x)
}

#[inline(always)]
fn flush_if(small: bool, x: f32) -> f32 {
    if small { f32::from_bits(x.to_bits() & 0x8000_0000) } else { x }
}

/// `.sat`, and the canonical NaN.
#[inline(always)]
pub(super) fn finish<const SAT: bool>(x: f32) -> f32 {
    if SAT {
        // NaN is not greater than 0, nor is -0.0.
        let x = if x > 0.0 { x } else { 0.0 };
        if x < 1.0 { x } else { 1.0 }
    } else if x.is_nan() {
        NAN32
    } else {
        x
    }
}

/// The result of binary64 arithmetic. If it is a NaN: the first NaN of these operands, made quiet, or without one the NaN
/// of an invalid operation.
#[inline(always)]
pub(super) fn finish64<const N: usize>(operands: [f64; N], x: f64) -> f64 {
    let mut nan = NAN64;
    for operand in operands.into_iter().rev() {
        nan = if operand.is_nan() { f64::from_bits(operand.to_bits() | 1 << 51) } else { nan };
    }
    if x.is_nan() { nan } else { x }
}

fn add<const FTZ: bool, const SAT: bool>(path: HostPath) -> LaneFn {
    // A sum below the normal numbers is exact, so `.ftz` only has to flush it.
    map2(path, |a: f32, b: f32| finish::<SAT>(flush::<FTZ>(flush::<FTZ>(a) + flush::<FTZ>(b))))
}

fn sub<const FTZ: bool, const SAT: bool>(path: HostPath) -> LaneFn {
    map2(path, |a: f32, b: f32| finish::<SAT>(flush::<FTZ>(flush::<FTZ>(a) - flush::<FTZ>(b))))
}

/// Whether to flush a product, or a sum of products, whose value times [`SCALE`] is `scaled`.
///
/// The scaling rounds a result near the smallest normal number as if the exponent were unbounded. It overflows only if a
/// factor is at least 2^104. Then every bit of the factor's product with a normal number, and of a sum with that product,
/// has a value of at least 2^-68, so the result is zero or far from the smallest normal number.
#[inline(always)]
fn is_small(scaled: f32) -> bool {
    scaled.abs() < f32::MIN_POSITIVE * SCALE
}

fn mul<const FTZ: bool, const SAT: bool>(path: HostPath) -> LaneFn {
    map2(path, |a: f32, b: f32| {
        let (a, b) = (flush::<FTZ>(a), flush::<FTZ>(b));
        finish::<SAT>(flush_if(FTZ && is_small(a * SCALE * b), a * b))
    })
}

/// a * b + c, rounded once.
#[inline(always)]
fn fma_lane<const FTZ: bool, const SAT: bool>(a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (flush::<FTZ>(a), flush::<FTZ>(b), flush::<FTZ>(c));
    let small = FTZ && is_small((a * SCALE).mul_add(b, c * SCALE));
    finish::<SAT>(flush_if(small, a.mul_add(b, c)))
}

fn fma<const FTZ: bool, const SAT: bool>(path: HostPath) -> LaneFn {
    map3(path, |a: f32, b: f32, c: f32| fma_lane::<FTZ, SAT>(a, b, c))
}

fn neg<const FTZ: bool>(path: HostPath) -> LaneFn {
    map1(path, |a: f32| finish::<false>(-flush::<FTZ>(a)))
}

fn abs<const FTZ: bool>(path: HostPath) -> LaneFn {
    map1(path, |a: f32| finish::<false>(flush::<FTZ>(a).abs()))
}

/// a / b; `APPROX`: a times the reciprocal of b, where the reciprocal is flushed to zero if |b| is above 2^126.
fn div<const FTZ: bool, const APPROX: bool>(path: HostPath) -> LaneFn {
    map2(path, |a: f32, b: f32| {
        let (a, b) = (flush::<FTZ>(a), flush::<FTZ>(b));
        let quotient = flush_if(FTZ && is_small(a * SCALE / b), a / b);
        let large = b.abs() > f32::from_bits((127 + 126) << 23) && b.abs() < f32::INFINITY;
        finish::<false>(if APPROX && large { a * 0f32.copysign(b) } else { quotient })
    })
}

fn rcp<const FTZ: bool>(path: HostPath) -> LaneFn {
    map1(path, |a: f32| {
        let a = flush::<FTZ>(a);
        finish::<false>(flush_if(FTZ && is_small(SCALE / a), 1.0 / a))
    })
}

fn sqrt<const FTZ: bool>(path: HostPath) -> LaneFn {
    map1(path, |a: f32| {
        let bits = flush::<FTZ>(a).sqrt().to_bits();
        // In integers, because LLVM simplifies "NaN if sqrt(a) is NaN, else sqrt(a)" to sqrt(a).
        f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { NAN32.to_bits() } else { bits })
    })
}

fn rsqrt<const FTZ: bool>(path: HostPath) -> LaneFn {
    // Correctly rounded: no 1 / sqrt(a) is so close to the midpoint of two binary32 numbers that rounding to binary64
    // first changes the result (a test checks every significand).
    map1(path, |a: f32| finish::<false>((1.0 / f64::from(flush::<FTZ>(a)).sqrt()) as f32))
}

/// `min` or `max` of two numbers; -0.0 is less than +0.0. If one operand is a NaN, the result is the other operand,
/// or the canonical NaN with `.NaN`. If both are NaNs, the result is the canonical NaN.
#[inline(always)]
pub(super) fn extreme<const MAX: bool, const NAN: bool>(a: f32, b: f32) -> f32 {
    let keep_a = if MAX { a > b } else { a < b };
    // Equal numbers have equal bits, or are zeros: then min has the sign if either has it, and max if both have it.
    let bits = if MAX { a.to_bits() & b.to_bits() } else { a.to_bits() | b.to_bits() };
    // If a is NaN this is b.
    let number = if keep_a { a } else { b };
    let number = if a == b { f32::from_bits(bits) } else { number };
    let number = if b.is_nan() { a } else { number };
    if number.is_nan() || NAN && (a.is_nan() | b.is_nan()) { NAN32 } else { number }
}

fn min<const FTZ: bool, const NAN: bool>(path: HostPath) -> LaneFn {
    map2(path, |a: f32, b: f32| extreme::<false, NAN>(flush::<FTZ>(a), flush::<FTZ>(b)))
}

fn max<const FTZ: bool, const NAN: bool>(path: HostPath) -> LaneFn {
    map2(path, |a: f32, b: f32| extreme::<true, NAN>(flush::<FTZ>(a), flush::<FTZ>(b)))
}

/// `min` or `max` of magnitudes; with `XORSIGN` a number gets the exclusive or of the operands' signs.
#[inline(always)]
pub(super) fn extreme_magnitude<const MAX: bool, const NAN: bool, const XORSIGN: bool>(
    a: f32,
    b: f32,
) -> f32 {
    let magnitude = extreme::<MAX, NAN>(a.abs(), b.abs());
    let sign = if XORSIGN { (a.to_bits() ^ b.to_bits()) & 0x8000_0000 } else { 0 };
    if magnitude.is_nan() { magnitude } else { f32::from_bits(magnitude.to_bits() | sign) }
}

/// `min` or `max` `.xorsign.abs`.
fn xorsign<const FTZ: bool, const NAN: bool>(max: bool, path: HostPath) -> LaneFn {
    match max {
        false => map2(path, |a: f32, b: f32| {
            extreme_magnitude::<false, NAN, true>(flush::<FTZ>(a), flush::<FTZ>(b))
        }),
        true => map2(path, |a: f32, b: f32| {
            extreme_magnitude::<true, NAN, true>(flush::<FTZ>(a), flush::<FTZ>(b))
        }),
    }
}

/// `min` or `max` `.abs` of three.
fn abs3<const FTZ: bool, const NAN: bool>(max: bool, path: HostPath) -> LaneFn {
    #[inline(always)]
    fn of<const MAX: bool, const FTZ: bool, const NAN: bool>(a: f32, b: f32, c: f32) -> f32 {
        let (a, b, c) = (flush::<FTZ>(a), flush::<FTZ>(b), flush::<FTZ>(c));
        extreme_magnitude::<MAX, NAN, false>(extreme_magnitude::<MAX, NAN, false>(a, b), c)
    }
    match max {
        false => map3(path, |a: f32, b: f32, c: f32| of::<false, FTZ, NAN>(a, b, c)),
        true => map3(path, |a: f32, b: f32, c: f32| of::<true, FTZ, NAN>(a, b, c)),
    }
}

/// [`extreme`] in binary64. If both operands are NaNs, the result is b, made quiet.
#[inline(always)]
fn extreme64<const MAX: bool>(a: f64, b: f64) -> f64 {
    let keep_a = if MAX { a > b } else { a < b };
    let bits = if MAX { a.to_bits() & b.to_bits() } else { a.to_bits() | b.to_bits() };
    let number = if keep_a { a } else { b };
    let number = if a == b { f64::from_bits(bits) } else { number };
    let number = if b.is_nan() { a } else { number };
    finish64([b], number)
}

fn min3<const FTZ: bool, const NAN: bool>(path: HostPath) -> LaneFn {
    map3(path, |a: f32, b: f32, c: f32| {
        let (a, b, c) = (flush::<FTZ>(a), flush::<FTZ>(b), flush::<FTZ>(c));
        extreme::<false, NAN>(extreme::<false, NAN>(a, b), c)
    })
}

fn max3<const FTZ: bool, const NAN: bool>(path: HostPath) -> LaneFn {
    map3(path, |a: f32, b: f32, c: f32| {
        let (a, b, c) = (flush::<FTZ>(a), flush::<FTZ>(b), flush::<FTZ>(c));
        extreme::<true, NAN>(extreme::<true, NAN>(a, b), c)
    })
}

/// The handlers of instructions whose only type is `.f32`.
fn f32_handler(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let (ftz, sat, nan) = (picks.has(Mod::Ftz), picks.has(Mod::Sat), picks.has(Mod::NaN));
    let allowed: &[Mod] = match opcode {
        Opcode::Neg | Opcode::Abs => &[Mod::Ftz],
        Opcode::Min | Opcode::Max => &[Mod::Ftz, Mod::NaN, Mod::Xorsign, Mod::Abs],
        Opcode::Div => &[Mod::Ftz, Mod::Rn, Mod::Approx, Mod::Full],
        Opcode::Rcp | Opcode::Sqrt | Opcode::Rsqrt => &[Mod::Ftz, Mod::Rn, Mod::Approx],
        _ => &[Mod::Ftz, Mod::Sat, Mod::Rn],
    };
    if !only(picks, allowed) {
        return None;
    }
    Some(match (opcode, sources) {
        (Opcode::Add, 2) => flags!(add(path); ftz, sat),
        (Opcode::Sub, 2) => flags!(sub(path); ftz, sat),
        (Opcode::Mul, 2) => flags!(mul(path); ftz, sat),
        (Opcode::Fma | Opcode::Mad, 3) => flags!(fma(path); ftz, sat),
        (Opcode::Div, 2) => flags!(div(path); ftz, picks.has(Mod::Approx)),
        (Opcode::Rcp, 1) => flags!(rcp(path); ftz),
        (Opcode::Sqrt, 1) => flags!(sqrt(path); ftz),
        (Opcode::Rsqrt, 1) => flags!(rsqrt(path); ftz),
        (Opcode::Neg, 1) => flags!(neg(path); ftz),
        (Opcode::Abs, 1) => flags!(abs(path); ftz),
        (Opcode::Min | Opcode::Max, 2) if picks.has(Mod::Xorsign) => {
            flags!(xorsign(opcode == Opcode::Max, path); ftz, nan)
        }
        (Opcode::Min | Opcode::Max, 3) if picks.has(Mod::Abs) => {
            flags!(abs3(opcode == Opcode::Max, path); ftz, nan)
        }
        (Opcode::Min, 2) => flags!(min(path); ftz, nan),
        (Opcode::Max, 2) => flags!(max(path); ftz, nan),
        (Opcode::Min, 3) => flags!(min3(path); ftz, nan),
        (Opcode::Max, 3) => flags!(max3(path); ftz, nan),
        _ => return None,
    })
}

/// The handlers of instructions whose only type is `.f64`.
fn f64_handler(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let allowed: &[Mod] = match opcode {
        // `.ftz` has no effect here. Only lenient checking accepts this approximation.
        Opcode::Rcp if !picks.has(Mod::Approx) => &[Mod::Rn, Mod::Ftz],
        Opcode::Rcp | Opcode::Sqrt => &[Mod::Rn, Mod::Approx],
        _ => &[Mod::Rn],
    };
    if !only(picks, allowed) {
        return None;
    }
    Some(match (opcode, sources) {
        (Opcode::Add, 2) => map2(path, |a: f64, b: f64| finish64([b, a], a + b)),
        (Opcode::Sub, 2) => map2(path, |a: f64, b: f64| finish64([b, a], a - b)),
        (Opcode::Mul, 2) => map2(path, |a: f64, b: f64| finish64([b, a], a * b)),
        (Opcode::Fma | Opcode::Mad, 3) => {
            map3(path, |a: f64, b: f64, c: f64| finish64([b, c, a], a.mul_add(b, c)))
        }
        (Opcode::Div, 2) => map2(path, |a: f64, b: f64| finish64([a, b], a / b)),
        (Opcode::Rcp, 1) => map1(path, |a: f64| finish64([a], 1.0 / a)),
        (Opcode::Sqrt, 1) => map1(path, |a: f64| finish64([a], a.sqrt())),
        (Opcode::Neg, 1) => map1(path, |a: f64| finish64([a], -a)),
        (Opcode::Abs, 1) => map1(path, |a: f64| finish64([a], a.abs())),
        (Opcode::Min, 2) => map2(path, |a: f64, b: f64| extreme64::<false>(a, b)),
        (Opcode::Max, 2) => map2(path, |a: f64, b: f64| extreme64::<true>(a, b)),
        _ => return None,
    })
}

/// The handler of a form of one type.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    match picks.types() {
        [Type::F32] => f32_handler(opcode, sources, picks, path),
        [Type::F32x2] => Some(in_pairs(4, f32_handler(opcode, sources, picks, path)?)),
        [Type::F64] => f64_handler(opcode, sources, picks, path),
        _ => None,
    }
}
