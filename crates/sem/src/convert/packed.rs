//! Conversions to and from packed types, element by element.
//!
//! PTX ISA, "Data Movement and Conversion Instructions: cvt". ptxas folds no conversion to or from 8, 6 and 4 bits.

use crate::float::mode;
use crate::format::{F64, Format};
use crate::operands::low_bits;
use crate::round::{self, Clamp, Exact, Mode, Value, round_to_integer, unpack};
use isa::{Mod, Picks, Rounding, Type};

/// `.scaled::n1::ue8m0` and `.scaled::n2::ue8m0`: the scales of the upper and the lower element.
#[derive(Clone, Copy)]
pub(super) enum Scales {
    /// No `.scaled`.
    None,
    /// `.n1`: one scale for both.
    One(u64),
    /// `.n2`: two scales, the upper element's in the upper byte.
    Two([u64; 2]),
}

impl Scales {
    pub(super) fn of(picks: &Picks, bits: u64) -> Scales {
        match (picks.has(Mod::ScaledN1Ue8m0), picks.has(Mod::ScaledN2Ue8m0)) {
            (true, _) => Scales::One(low_bits(bits, 8)),
            (_, true) => Scales::Two([bits >> 8 & 0xff, low_bits(bits, 8)]),
            _ => Scales::None,
        }
    }
}

/// Two elements converted and packed, the first one above.
pub(super) fn pair(picks: &Picks, scales: Scales, elements: [u64; 2]) -> u64 {
    let (dtype, atype) = (picks.ty(0), picks.ty(1));
    let mode = mode(picks);
    let [high, low] = [0, 1].map(|i| {
        // With one scale, sources are flushed (*unverified*: that a flushed one keeps its sign).
        let value = value(atype, matches!(scales, Scales::One(_)), elements[i]);
        let value = match scales {
            Scales::None => value,
            Scales::One(scale) => scaled(value, scale, true),
            Scales::Two(scales) => scaled(value, scales[i], dtype != Type::Bf16x2),
        };
        let encoded = encode(dtype, mode, value);
        Format::of(dtype).map_or(encoded, |to| positive_zero(picks, to, encoded))
    });
    high << width(dtype) | low
}

/// Bits from one element of a packed type to the next: `.e2m3`, `.e3m2` and `.e2m1p4` elements occupy bytes.
pub(super) fn width(ty: Type) -> u32 {
    ty.bits() / ty.lanes()
}

/// `.pzo`: a zero result is positive in every case (*unverified*).
pub(super) fn positive_zero(picks: &Picks, format: &Format, bits: u64) -> u64 {
    if picks.has(Mod::Pzo) && bits == format.sign() { 0 } else { bits }
}

/// The value of an element of a type, from its low bits; `ftz` flushes it.
pub(crate) fn value(ty: Type, ftz: bool, bits: u64) -> Value {
    match (ty.element(), Format::of(ty)) {
        (Type::S2f6, _) => {
            let number = low_bits(bits, 8) as u8 as i8;
            Value::Finite(Exact {
                negative: number < 0,
                significand: number.unsigned_abs().into(),
                exponent: -6,
            })
        }
        (_, Some(format)) => unpack(format, ftz, low_bits(bits, format.bits())),
        _ => scale_value(bits),
    }
}

/// The value of an `.ue8m0` scale: 2^(bits - 127), and NaN for 0xff.
fn scale_value(bits: u64) -> Value {
    match low_bits(bits, 8) {
        0xff => Value::Nan(F64.nan),
        biased => Value::Finite(Exact { negative: false, significand: 1, exponent: biased as i32 - 127 }),
    }
}

/// A value multiplied or divided by a scale.
fn scaled(value: Value, scale: u64, divide: bool) -> Value {
    match (value, scale_value(scale)) {
        (Value::Nan(_), _) => value,
        (_, Value::Finite(power)) => match value {
            Value::Finite(x) => {
                let exponent = if divide { -power.exponent } else { power.exponent };
                Value::Finite(Exact { exponent: x.exponent + exponent, ..x })
            }
            _ => value,
        },
        (_, nan) => nan,
    }
}

/// The encoding of a value in a type's element format. In a format without NaN, a NaN becomes the largest number.
fn encode(ty: Type, mode: Mode, value: Value) -> u64 {
    match (ty.element(), Format::of(ty)) {
        (Type::S2f6, _) => fixed(mode, value),
        (Type::Ue5m3, Some(to)) => round::pack(to, mode, magnitude(value)),
        (_, Some(to)) => match value {
            Value::Nan(_) if to.nan == 0 => to.max_finite(),
            _ => round::pack(to, mode, value),
        },
        _ => scale(mode, magnitude(value)),
    }
}

/// The value without its sign. *Unverified*: that formats without a sign drop it.
fn magnitude(value: Value) -> Value {
    match value {
        Value::Nan(_) => value,
        Value::Infinite { .. } => Value::Infinite { negative: false },
        Value::Finite(x) => Value::Finite(Exact { negative: false, ..x }),
    }
}

/// To `.s2f6`: the nearest (or truncated) multiple of 1/64, clamped to [-128, 127] of them. A NaN becomes the largest
/// number.
fn fixed(mode: Mode, value: Value) -> u64 {
    let relu = matches!(mode.clamp, Clamp::Relu | Clamp::ReluFinite);
    let (negative, number) = match value {
        Value::Nan(_) => (false, i128::MAX),
        Value::Infinite { negative } => (negative, i128::MAX),
        Value::Finite(x) if x.significand == 0 => (false, 0),
        Value::Finite(x) if x.leading_exponent() > 8 => (x.negative, i128::MAX),
        Value::Finite(x) => (x.negative, round_to_integer(x, -6, mode.rounding) as i128),
    };
    let number = if negative { -number } else { number };
    (number.clamp(if relu { 0 } else { -128 }, 127) & 0xff) as u64
}

/// To `.ue8m0`: the exponent of the magnitude, rounded to a power of two, down (`.rz`) or up (`.rp`).
///
/// *Unverified*: the results for zero, negative numbers and (without `.satfinite`) infinity. Here the sign is
/// dropped, zero becomes 2^-127, and infinity becomes NaN or with `.satfinite` 2^127.
fn scale(mode: Mode, value: Value) -> u64 {
    let finite = mode.clamp == Clamp::Finite;
    let exponent = match value {
        Value::Nan(_) => return 0xff,
        Value::Infinite { .. } => i32::MAX,
        Value::Finite(x) if x.significand == 0 => i32::MIN,
        Value::Finite(x) => {
            let up = mode.rounding == Rounding::TowardPositive && !x.significand.is_power_of_two();
            x.leading_exponent() + up as i32
        }
    };
    match exponent {
        128.. if finite => 0xfe,
        128.. => 0xff,
        _ => (exponent.max(-127) + 127) as u64,
    }
}
