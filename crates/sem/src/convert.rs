//! Conversions between types.
//!
//! PTX ISA, "Data Movement and Conversion Instructions: cvt" and "cvt.pack".

use crate::arith::sum;
use crate::float::mode;
use crate::format::{BF16, F16, F32, F64, Format};
use crate::integer::{number, saturate};
use crate::operands::{Sources, low_bits, one};
use crate::round::{self, Clamp, Exact, Mode, Value, clamp, round_to_integer, unpack};
use isa::{Mod, Picks, Rounding, Type};

mod packed;

use packed::positive_zero;
pub(crate) use packed::value;

/// From one floating-point format to another.
///
/// `.ftz` flushes `.f32` sources and results only: halves keep their subnormals. From `.f32` to `.f16` it does nothing:
/// ptxas makes the same instruction without it, and it shows where `.rm` and `.rp` round a subnormal away from zero.
pub fn convert_float(from: &Format, to: &Format, mode: Mode, a: u64) -> u64 {
    let ftz = mode.ftz;
    let value = unpack(from, ftz && *from == F32 && *to != F16, a);
    match nan_result(from, to, ftz, a, value) {
        Some(nan) => clamp(to, mode.clamp, nan),
        None => round::pack(to, Mode { ftz: ftz && *to == F32, ..mode }, value),
    }
}

/// NaN results other than the canonical NaN, as an H100 has them: from and to `.f64` a quiet NaN with the source's sign
/// and as much of its payload as fits. `.bf16` to `.f32` is a shift.
fn nan_result(from: &Format, to: &Format, ftz: bool, a: u64, value: Value) -> Option<u64> {
    let Value::Nan(payload) = value else { return None };
    match (*from, *to) {
        (BF16, F32) if !ftz => Some(a << 16),
        // An addition does the flush, and returns the `.f32` NaN.
        (F32, F64) if ftz => Some(round::pack(to, Mode::NEAREST, unpack(&F32, false, F32.nan))),
        (F64, F16 | BF16 | F32) => {
            let sign = if payload & F64.sign() != 0 { to.sign() } else { 0 };
            let fraction = payload >> (F64.fraction_bits - to.fraction_bits) & ((1 << to.fraction_bits) - 1);
            Some(to.quieted(sign | to.infinity() | fraction))
        }
        _ => None,
    }
}

/// `.rni`, `.rzi`, `.rmi`, `.rpi` in one format: to an integral number of the same sign.
pub fn round_to_integral(f: &Format, mode: Mode, a: u64) -> u64 {
    let value = match unpack(f, mode.ftz && *f == F32, a) {
        Value::Finite(x) if x.exponent < 0 => {
            Value::Finite(Exact { significand: round_to_integer(x, 0, mode.rounding), exponent: 0, ..x })
        }
        other => other,
    };
    round::pack(f, Mode { ftz: false, ..mode }, value)
}

/// To an integer type, clamped to its range.
///
/// "NaN converts to zero if the source is not `.f64` and the destination not 64 bits wide, otherwise to
/// 1 << (width - 1)" (in our words; PTX ISA, cvt, "Floating Point Notes"). *Unverified*: ptxas folds no NaN here.
pub fn float_to_integer(from: &Format, to: Type, rounding: Rounding, ftz: bool, a: u64) -> u64 {
    let width = to.bits();
    let (negative, magnitude) = match unpack(from, ftz && *from == F32, a) {
        Value::Nan(_) if *from == F64 || width == 64 => return 1 << (width - 1),
        Value::Nan(_) => return 0,
        Value::Infinite { negative } => (negative, i128::MAX),
        Value::Finite(x) if x.significand == 0 => (false, 0),
        Value::Finite(x) if x.leading_exponent() > 64 => (x.negative, i128::MAX),
        Value::Finite(x) => (x.negative, round_to_integer(x, 0, rounding) as i128),
    };
    saturate(to, if negative { -magnitude } else { magnitude }) as u64
}

/// From an integer type.
pub fn integer_to_float(from: Type, to: &Format, mode: Mode, a: u64) -> u64 {
    let a = number(from, a);
    round::pack(to, mode, Value::integer(a < 0, a.unsigned_abs() as u64))
}

/// `cvt` between integer types: modulo 2^width, `.sat` clamps.
///
/// Here and in [`float_to_int`] a signed result is sign-extended to 64 bits, an unsigned one zero-extended: a
/// destination register wider than the type receives these bits.
pub fn int_to_int(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (dtype, a) = (picks.ty(0), number(picks.ty(1), s.bits(0)));
    one(if picks.has(Mod::Sat) { saturate(dtype, a) } else { number(dtype, a as u64) } as u64)
}

/// `cvt.irnd` to an integer type: clamped, with `.sat` or without.
pub fn float_to_int(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (mode, atype) = (mode(picks), picks.ty(1));
    one(Format::of(atype).map_or(0, |from| {
        float_to_integer(from, picks.ty(0), mode.rounding, mode.ftz, low_bits(s.bits(0), atype.bits()))
    }))
}

/// `cvt.rnd` from an integer type.
pub fn int_to_float(picks: &Picks, s: &[u64]) -> [u64; 2] {
    one(Format::of(picks.ty(0)).map_or(0, |to| integer_to_float(picks.ty(1), to, mode(picks), s.bits(0))))
}

/// `cvt` between floating-point types: exact, rounded, or to an integral number.
pub fn float_to_float(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (mode, dtype, atype) = (mode(picks), picks.ty(0), picks.ty(1));
    let (Some(to), Some(from)) = (Format::of(dtype), Format::of(atype)) else { return one(0) };
    let a = low_bits(s.bits(0), atype.bits());
    one(match dtype == atype {
        true if picks.rounds_to_integer() => round_to_integral(to, mode, a),
        // A move, unless there is something to flush; of halves an addition of -0.0, whose NaN is the canonical one.
        true if matches!(*to, F16 | BF16) && to.is_nan(a) => clamp(to, mode.clamp, to.nan),
        true if !(mode.ftz && *to == F32) => clamp(to, mode.clamp, a),
        _ => positive_zero(picks, to, convert_float(from, to, mode, a)),
    })
}

/// `cvt.{rn,rz,rna}` of one `.f32` to `.f16`, `.bf16` or `.tf32`.
///
/// `.rna.tf32` truncates the fraction of a NaN as if it were a number, which may leave the encoding of infinity.
/// `.satfinite` then takes the next smaller encoding, as it does for infinity. ptxas folds and executes it so.
pub fn narrow(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (mode, a) = (mode(picks), low_bits(s.bits(0), 32));
    let Some(to) = Format::of(picks.ty(0)) else { return one(0) };
    if !F32.is_nan(a) || mode.rounding != Rounding::NearestAway {
        return one(positive_zero(picks, to, convert_float(&F32, to, mode, a)));
    }
    let unit = 1 << to.padding;
    let cut = a & !(unit - 1);
    one(if mode.clamp == Clamp::Finite { cut - unit } else { cut })
}

/// `cvt` of two `.f32` to a packed type, a in the upper half; the scales of `.scaled` follow them.
pub fn pack(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let scales = packed::Scales::of(picks, s.bits(2));
    one(packed::pair(picks, scales, [s.bits(0), s.bits(1)]))
}

/// `cvt` of one packed type to another, element by element; the scales of `.scaled` follow the source.
pub fn packed(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let width = packed::width(picks.ty(1));
    let scales = packed::Scales::of(picks, s.bits(1));
    one(packed::pair(picks, scales, [1, 0].map(|i| s.lane(0, i, width))))
}

/// `cvt.rs` of two or four `.f32`.
pub fn pack_stochastic(picks: &Picks, s: &[u64]) -> [u64; 2] {
    if picks.ty(0).lanes() == 4 { pack4_stochastic(picks, s) } else { pack2_stochastic(picks, s) }
}

/// `cvt.rs` of two `.f32`: 13 random bits each for `.f16x2`, 16 for `.bf16x2`; those for a are in the upper half.
fn pack2_stochastic(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let dtype = picks.ty(0);
    let Some(to) = Format::of(dtype) else { return one(0) };
    let count = F32.fraction_bits - to.fraction_bits;
    let convert = |i: usize, half: u32| {
        round_stochastically(
            to,
            mode(picks),
            low_bits(s.bits(i), 32),
            count,
            low_bits(s.lane(2, half, 16), count),
        )
    };
    one(convert(0, 1) << packed::width(dtype) | convert(1, 0))
}

/// `cvt.rs` of four `.f32`, the first one uppermost. a and b share the upper 16 random bits, e and f the lower 16.
/// For `.e2m1x4`, a and e use the upper and the lower byte of the upper half, b and f those of the lower half.
fn pack4_stochastic(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let dtype = picks.ty(0);
    let Some(to) = Format::of(dtype) else { return one(0) };
    let (count, lanes) = if dtype == Type::E2m1x4 { (8, [3, 1, 2, 0]) } else { (16, [1, 1, 0, 0]) };
    one(lanes.into_iter().enumerate().fold(0, |d, (i, lane)| {
        let random = s.lane(4, lane, count);
        let rounded = round_stochastically(to, mode(picks), low_bits(s.bits(i), 32), count, random);
        d << packed::width(dtype) | rounded
    }))
}

/// `.rs`: adds `count` random bits just below the last bit that the result keeps, then truncates.
///
/// *Unverified* without a GPU: the alignment of the random bits for subnormal results, and for formats whose
/// conversion drops more bits than there are random ones.
pub fn round_stochastically(to: &Format, mode: Mode, a: u64, count: u32, random: u64) -> u64 {
    let nearest = Mode { rounding: Rounding::NearestEven, ..mode };
    let x = match unpack(&F32, false, a) {
        Value::Finite(x) if x.significand != 0 => x,
        _ if F32.is_nan(a) && to.nan == 0 => return to.max_finite(),
        _ => return convert_float(&F32, to, nearest, a),
    };
    let quantum = x.leading_exponent().max(to.min_exponent()) - to.fraction_bits as i32;
    let random = Exact { significand: random as u128, exponent: quantum - count as i32, ..x };
    let Value::Finite(sum) = sum(Value::Finite(x), Value::Finite(random), Rounding::TowardZero) else {
        return 0;
    };
    // Truncated to a multiple of the quantum, which the format holds exactly unless it overflows.
    let cut =
        Exact { significand: round_to_integer(sum, quantum, Rounding::TowardZero), exponent: quantum, ..x };
    round::pack(to, nearest, Value::Finite(cut))
}

/// `cvt.pack.sat.convertType.abType{.cType}`: a and b clamped and packed, a above b. With a third type (`.b32`), the
/// lower bits of c are shifted above both.
pub fn pack_integers(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (convert, ab) = (picks.ty(0), picks.ty(1));
    let width = convert.bits();
    let element = |i: usize| low_bits(saturate(convert, number(ab, s.bits(i))) as u64, width);
    let packed = element(0) << width | element(1);
    let above = if picks.types().len() > 2 { low_bits(s.bits(2), 32) << (2 * width) } else { 0 };
    one(low_bits(above | packed, 32))
}
