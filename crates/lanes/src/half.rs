//! binary16 and bfloat16 arithmetic, scalar and packed, and the mixed forms whose result is binary32.
//!
//! Operations are computed in binary32, which has more than twice the precision. So rounding a sum or product to
//! binary32 and then to the half gives the same result as rounding once (24 >= 2 * 11 + 2). Where that does not hold,
//! the first rounding is to odd, which preserves the result of the second.

use super::drive::{Bf16, F16, Half, apply2, apply3, half_map, half_map_or, in_pairs, load, map1, store};
use super::float::{extreme, extreme_magnitude, finish};
use super::macros::flags;
use super::path::{BLOCK, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn, directed, only};
use isa::{Mod, Opcode, Picks, Rounding, Type};
use std::marker::PhantomData;

/// 2^-14, the smallest normal binary16.
const F16_MIN_NORMAL: f32 = f32::from_bits((127 - 14) << 23);
/// The least number that rounds to [`F16_MIN_NORMAL`] with an unbounded exponent: half a unit in the last place below
/// it.
const F16_MIN_ROUNDED: f32 = f32::from_bits(((127 - 14) << 23) - (1 << 12));

#[inline(always)]
fn signed_zero_if(small: bool, x: f32) -> f32 {
    if small { f32::from_bits(x.to_bits() & 0x8000_0000) } else { x }
}

/// `.ftz` on a binary16 operand, widened.
#[inline(always)]
fn flush<const FTZ: bool>(x: f32) -> f32 {
    signed_zero_if(FTZ && x.abs() < F16_MIN_NORMAL, x)
}

/// `.ftz` on a result not yet rounded to binary16.
#[inline(always)]
fn flush_result<const FTZ: bool>(x: f32) -> f32 {
    signed_zero_if(FTZ && x.abs() < F16_MIN_ROUNDED, x)
}

/// What is applied to the result: nothing, `.sat` or `.relu`.
const NONE: u8 = 0;
const SAT: u8 = 1;
const RELU: u8 = 2;

/// `.sat` and `.relu` before rounding. 0 and 1 are halves, so rounding cannot move a result across them.
#[inline(always)]
fn clamp<const CLAMP: u8>(x: f32) -> f32 {
    match CLAMP {
        SAT => finish::<true>(x),
        // A NaN stays; -0.0, and negative numbers that round to it, become +0.0.
        RELU if x.to_bits() >> 31 != 0 && !x.is_nan() => 0.0,
        _ => x,
    }
}

/// The number to add to the bits of a value to round it to odd. `lost` says whether its rounding lost a rest, which
/// has the sign of `rest_sign`.
#[inline(always)]
fn odd_step(bits: i32, rest_sign: i32, lost: bool) -> i32 {
    // Toward the rest: away from zero if the rest has the sign of the value.
    let step = (bits ^ rest_sign) >> 31 | 1;
    if lost && bits & 1 == 0 { step } else { 0 }
}

/// a * b + c rounded to odd, if the product is exact and nothing overflows or underflows: for binary16 operands.
#[inline(always)]
fn fma_odd(a: f32, b: f32, c: f32) -> f32 {
    let product = a * b;
    let sum = product + c;
    // Knuth's two-sum: sum + rest is product + c exactly.
    let part = sum - product;
    let rest = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits() as i32;
    // The rest of an infinite or NaN sum is NaN, which does not count.
    let lost = rest.abs() > 0.0;
    f32::from_bits((bits + odd_step(bits, rest.to_bits() as i32, lost)) as u32)
}

/// Converts a binary64 number, which may itself have been rounded to odd, to binary32, rounding to odd.
#[inline(always)]
pub(super) fn to_odd_f32(x: f64) -> f32 {
    let nearest = x as f32;
    let rest = x - f64::from(nearest);
    let bits = nearest.to_bits() as i32;
    let lost = rest.abs() > 0.0;
    f32::from_bits((bits + odd_step(bits, (rest.to_bits() >> 32) as i32, lost)) as u32)
}

/// a * b + c rounded to odd, for bfloat16 operands, whose product is exact in binary64.
#[inline(always)]
fn fma_bf16(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let part = sum - product;
    let rest = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits() as i64;
    let step = (bits ^ rest.to_bits() as i64) >> 63 | 1;
    let lost = (rest.abs() > 0.0) && bits & 1 == 0;
    to_odd_f32(f64::from_bits((bits + if lost { step } else { 0 }) as u64))
}

fn add_f16<const FTZ: bool, const CLAMP: u8>(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<F16, 2, _>(pairs, path, |[a, b]| {
        clamp::<CLAMP>(flush_result::<FTZ>(flush::<FTZ>(a) + flush::<FTZ>(b)))
    })
}

fn sub_f16<const FTZ: bool, const CLAMP: u8>(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<F16, 2, _>(pairs, path, |[a, b]| {
        clamp::<CLAMP>(flush_result::<FTZ>(flush::<FTZ>(a) - flush::<FTZ>(b)))
    })
}

fn mul_f16<const FTZ: bool, const CLAMP: u8>(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<F16, 2, _>(pairs, path, |[a, b]| {
        clamp::<CLAMP>(flush_result::<FTZ>(flush::<FTZ>(a) * flush::<FTZ>(b)))
    })
}

fn fma_f16<const FTZ: bool, const CLAMP: u8>(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<F16, 3, _>(pairs, path, |[a, b, c]| {
        let (a, b, c) = (flush::<FTZ>(a), flush::<FTZ>(b), flush::<FTZ>(c));
        clamp::<CLAMP>(flush_result::<FTZ>(fma_odd(a, b, c)))
    })
}

/// `$f::<FTZ, CLAMP>` for run-time values.
macro_rules! clamped {
    ($f:ident $args:tt; $ftz:expr, $clamp:expr) => {
        match ($ftz, $clamp) {
            (false, NONE) => clamped!(@ $f, false, NONE, $args),
            (false, SAT) => clamped!(@ $f, false, SAT, $args),
            (false, _) => clamped!(@ $f, false, RELU, $args),
            (true, NONE) => clamped!(@ $f, true, NONE, $args),
            (true, SAT) => clamped!(@ $f, true, SAT, $args),
            (true, _) => clamped!(@ $f, true, RELU, $args),
        }
    };
    (@ $f:ident, $ftz:literal, $clamp:ident, ($($arg:expr),*)) => { $f::<$ftz, $clamp>($($arg),*) };
}

fn arithmetic_f16(
    opcode: Opcode,
    sources: usize,
    packed: bool,
    picks: &Picks,
    path: HostPath,
) -> Option<LaneFn> {
    if !only(picks, &[Mod::Rn, Mod::Ftz, Mod::Sat, Mod::Relu]) {
        return None;
    }
    let ftz = picks.has(Mod::Ftz);
    let clamp = match (picks.has(Mod::Sat), picks.has(Mod::Relu)) {
        (false, false) => NONE,
        (true, false) => SAT,
        (false, true) => RELU,
        (true, true) => return None,
    };
    Some(match (opcode, sources) {
        (Opcode::Add, 2) => clamped!(add_f16(packed, path); ftz, clamp),
        (Opcode::Sub, 2) => clamped!(sub_f16(packed, path); ftz, clamp),
        (Opcode::Mul, 2) => clamped!(mul_f16(packed, path); ftz, clamp),
        (Opcode::Fma, 3) => clamped!(fma_f16(packed, path); ftz, clamp),
        _ => return None,
    })
}

fn add_bf16(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<Bf16, 2, _>(pairs, path, |[a, b]| a + b)
}

fn sub_bf16(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<Bf16, 2, _>(pairs, path, |[a, b]| a - b)
}

fn mul_bf16(pairs: bool, path: HostPath) -> LaneFn {
    // A 16-bit product is exact in binary32 unless it underflows.
    half_map_or::<Bf16, 2, _, _, _>(
        pairs,
        path,
        |[a, b]| a * b,
        |[a, b]| (a * b).abs() < f32::MIN_POSITIVE && a != 0.0 && b != 0.0,
        |[a, b]| to_odd_f32(f64::from(a) * f64::from(b)),
    )
}

fn fma_bf16_handler<const RECTIFY: bool>(pairs: bool, path: HostPath) -> LaneFn {
    /// Bounds far from overflow of binary32, and far from underflow of the rest of a sum of products.
    const LARGE: f32 = f32::from_bits((127 + 125) << 23);
    const SMALL: f32 = f32::from_bits((127 - 100) << 23);
    half_map_or::<Bf16, 3, _, _, _>(
        pairs,
        path,
        |[a, b, c]| {
            let x = fma_odd(a, b, c);
            if RECTIFY { clamp::<RELU>(x) } else { x }
        },
        |[a, b, c]| {
            let product = (a * b).abs();
            let fits = (product < LARGE) & (c.abs() < LARGE);
            !fits | ((product < SMALL) & (a != 0.0) & (b != 0.0))
        },
        |[a, b, c]| {
            let x = fma_bf16(a, b, c);
            if RECTIFY { clamp::<RELU>(x) } else { x }
        },
    )
}

fn arithmetic_bf16(
    opcode: Opcode,
    sources: usize,
    packed: bool,
    picks: &Picks,
    path: HostPath,
) -> Option<LaneFn> {
    Some(match (opcode, sources) {
        (Opcode::Add, 2) if only(picks, &[Mod::Rn]) => add_bf16(packed, path),
        (Opcode::Sub, 2) if only(picks, &[Mod::Rn]) => sub_bf16(packed, path),
        // AVX-512 has faster code for all roundings of these.
        (Opcode::Mul, 2) if only(picks, &[Mod::Rn]) && path != HostPath::Avx512 => mul_bf16(packed, path),
        (Opcode::Fma, 3) if only(picks, &[Mod::Rn, Mod::Relu]) && path != HostPath::Avx512 => {
            flags!(fma_bf16_handler(packed, path); picks.has(Mod::Relu))
        }
        _ => return None,
    })
}

fn min_f16<const FTZ: bool, const NAN: bool>(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<F16, 2, _>(pairs, path, |[a, b]| extreme::<false, NAN>(flush::<FTZ>(a), flush::<FTZ>(b)))
}

fn max_f16<const FTZ: bool, const NAN: bool>(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<F16, 2, _>(pairs, path, |[a, b]| extreme::<true, NAN>(flush::<FTZ>(a), flush::<FTZ>(b)))
}

fn extreme_bf16<const MAX: bool, const NAN: bool>(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<Bf16, 2, _>(pairs, path, |[a, b]| extreme::<MAX, NAN>(a, b))
}

fn xorsign_f16<const FTZ: bool, const NAN: bool>(max: bool, pairs: bool, path: HostPath) -> LaneFn {
    match max {
        false => half_map::<F16, 2, _>(pairs, path, |[a, b]| {
            extreme_magnitude::<false, NAN, true>(flush::<FTZ>(a), flush::<FTZ>(b))
        }),
        true => half_map::<F16, 2, _>(pairs, path, |[a, b]| {
            extreme_magnitude::<true, NAN, true>(flush::<FTZ>(a), flush::<FTZ>(b))
        }),
    }
}

fn xorsign_bf16<const MAX: bool, const NAN: bool>(pairs: bool, path: HostPath) -> LaneFn {
    half_map::<Bf16, 2, _>(pairs, path, |[a, b]| extreme_magnitude::<MAX, NAN, true>(a, b))
}

fn min_max(opcode: Opcode, binary16: bool, packed: bool, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let (ftz, nan, max) = (picks.has(Mod::Ftz), picks.has(Mod::NaN), opcode == Opcode::Max);
    if !only(picks, &[Mod::Ftz, Mod::NaN, Mod::Xorsign, Mod::Abs]) || ftz && !binary16 {
        return None;
    }
    Some(match (binary16, picks.has(Mod::Xorsign), max) {
        (true, false, false) => flags!(min_f16(packed, path); ftz, nan),
        (true, false, true) => flags!(max_f16(packed, path); ftz, nan),
        (true, true, _) => flags!(xorsign_f16(max, packed, path); ftz, nan),
        (false, false, _) => flags!(extreme_bf16(packed, path); max, nan),
        (false, true, _) => flags!(xorsign_bf16(packed, path); max, nan),
    })
}

/// Operations on sign bits. A NaN becomes the canonical NaN.
fn sign(opcode: Opcode, ty: Type, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    /// The result for a number whose magnitudes above `INFINITY` are NaNs.
    #[inline(always)]
    fn number<const INFINITY: u16>(a: u16, signed: u16) -> u16 {
        if a & 0x7fff > INFINITY { 0x7fff } else { signed }
    }
    /// Flushes a binary16 number whose sign may have been changed.
    #[inline(always)]
    fn flushed(a: u16) -> u16 {
        if a & 0x7fff < 0x0400 { a & 0x8000 } else { a }
    }
    if !only(picks, &[Mod::Ftz]) {
        return None;
    }
    let handler = match (opcode, ty.element(), picks.has(Mod::Ftz)) {
        (Opcode::Neg, Type::F16, false) => map1(path, |a: u16| number::<0x7c00>(a, a ^ 0x8000)),
        (Opcode::Abs, Type::F16, false) => map1(path, |a: u16| number::<0x7c00>(a, a & 0x7fff)),
        (Opcode::Neg, Type::F16, true) => map1(path, |a: u16| number::<0x7c00>(a, flushed(a ^ 0x8000))),
        (Opcode::Abs, Type::F16, true) => map1(path, |a: u16| number::<0x7c00>(a, flushed(a & 0x7fff))),
        (Opcode::Neg, Type::Bf16, false) => map1(path, |a: u16| number::<0x7f80>(a, a ^ 0x8000)),
        (Opcode::Abs, Type::Bf16, false) => map1(path, |a: u16| number::<0x7f80>(a, a & 0x7fff)),
        _ => return None,
    };
    Some(if ty.lanes() == 2 { in_pairs(2, handler) } else { handler })
}

/// Mixed precision: d = a + c, to nearest.
struct MixedAdd<H, const NEGATE: bool, const SAT: bool>(PhantomData<H>);

impl<H: Half, const NEGATE: bool, const SAT: bool> Kernel for MixedAdd<H, NEGATE, SAT> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: `lanes` halves, `lanes` binary32 numbers.
            unsafe {
                let a = H::widen(path, load(args, 0, i));
                let add = |a: f32, c: f32| finish::<SAT>(if NEGATE { a - c } else { a + c });
                store(path, args, 0, i, apply2(add, a, load(args, 1, i)));
            }
        }
    }
}

/// Mixed precision: d = a * b + c, to nearest.
struct MixedFma<H, const SAT: bool>(PhantomData<H>);

impl<H: Half, const SAT: bool> Kernel for MixedFma<H, SAT> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: `lanes` halves, twice, and `lanes` binary32 numbers.
            unsafe {
                let (a, b) = (H::widen(path, load(args, 0, i)), H::widen(path, load(args, 1, i)));
                let fma = |a: f32, b: f32, c: f32| finish::<SAT>(a.mul_add(b, c));
                store(path, args, 0, i, apply3(fma, a, b, load(args, 2, i)));
            }
        }
    }
}

fn mixed<H: Half>(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    if !only(picks, &[Mod::Rn, Mod::Rz, Mod::Rm, Mod::Rp, Mod::Sat]) {
        return None;
    }
    if let Some(rounding) = picks.rounding().filter(|rounding| *rounding != Rounding::NearestEven) {
        return directed::find::<H>(opcode, sources, rounding, picks.has(Mod::Sat), path);
    }
    Some(match (opcode, sources, picks.has(Mod::Sat)) {
        (Opcode::Add, 2, false) => version::<MixedAdd<H, false, false>>(path),
        (Opcode::Add, 2, true) => version::<MixedAdd<H, false, true>>(path),
        (Opcode::Sub, 2, false) => version::<MixedAdd<H, true, false>>(path),
        (Opcode::Sub, 2, true) => version::<MixedAdd<H, true, true>>(path),
        (Opcode::Fma, 3, false) => version::<MixedFma<H, false>>(path),
        (Opcode::Fma, 3, true) => version::<MixedFma<H, true>>(path),
        _ => return None,
    })
}

/// The handler of a form on halves.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let ty = match picks.types() {
        [Type::F32, Type::F16] => return mixed::<F16>(opcode, sources, picks, path),
        [Type::F32, Type::Bf16] => return mixed::<Bf16>(opcode, sources, picks, path),
        [ty] => *ty,
        _ => return None,
    };
    let packed = ty.lanes() == 2;
    match ty {
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 => {}
        _ => return None,
    }
    let binary16 = matches!(ty, Type::F16 | Type::F16x2);
    match (opcode, sources) {
        (Opcode::Neg | Opcode::Abs, 1) => sign(opcode, ty, picks, path),
        (Opcode::Min | Opcode::Max, 2) => min_max(opcode, binary16, packed, picks, path),
        _ if binary16 => arithmetic_f16(opcode, sources, packed, picks, path),
        _ => arithmetic_bf16(opcode, sources, packed, picks, path),
    }
}
