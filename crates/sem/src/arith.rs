//! Exact arithmetic on values, and the floating-point operations built on it.
//!
//! PTX ISA, "Floating Point Instructions", "Half Precision Floating-Point Instructions" and "Mixed Precision
//! Floating Point Instructions": add, sub, mul, fma, div, rcp, sqrt, rsqrt.

use crate::format::Format;
use crate::round::{Exact, INVALID, Mode, Value, pack, unpack};
use isa::Rounding;

/// The sum. Here and below, the second of two NaNs is kept, as an H100 does in `.f64`; the other formats have one NaN.
/// IEEE 754, 6.3: an exact zero is +0, or -0 under `.rm`, unless both operands are
/// zeros of the same sign.
pub(crate) fn sum(a: Value, b: Value, rounding: Rounding) -> Value {
    match (a, b) {
        (_, Value::Nan(_)) => b,
        (Value::Nan(_), _) => a,
        (Value::Infinite { negative: x }, Value::Infinite { negative: y }) if x != y => INVALID,
        (Value::Infinite { .. }, _) => a,
        (_, Value::Infinite { .. }) => b,
        (Value::Finite(x), Value::Finite(y)) => Value::Finite(sum_finite(x, y, rounding)),
    }
}

fn sum_finite(x: Exact, y: Exact, rounding: Rounding) -> Exact {
    if x.significand == 0 && y.significand == 0 {
        let negative =
            if x.negative == y.negative { x.negative } else { rounding == Rounding::TowardNegative };
        return Exact { negative, ..x };
    }
    if x.significand == 0 {
        return y;
    }
    if y.significand == 0 {
        return x;
    }
    // Both leading bits are at bit 125. Operands have at most 106 bits (a product of two f64), so the bits that the
    // shift of the smaller one loses are far below those that decide the rounding.
    let (x, y) = (x.normalized(), y.normalized());
    let (large, small) = if x.exponent >= y.exponent { (x, y) } else { (y, x) };
    let small = small.shift_right(large.exponent.abs_diff(small.exponent));
    if large.negative == small.negative {
        return Exact { significand: large.significand + small.significand, ..large };
    }
    let (significand, borrow) = large.significand.overflowing_sub(small.significand);
    match significand {
        0 => Exact { negative: rounding == Rounding::TowardNegative, significand, exponent: 0 },
        _ if borrow => Exact { significand: significand.wrapping_neg(), ..small },
        _ => Exact { significand, ..large },
    }
}

/// The product, exact.
pub(crate) fn product(a: Value, b: Value) -> Value {
    match (a, b) {
        (_, Value::Nan(_)) => b,
        (Value::Nan(_), _) => a,
        (Value::Finite(x), Value::Finite(y)) => Value::Finite(Exact {
            negative: x.negative != y.negative,
            significand: x.significand * y.significand,
            exponent: x.exponent + y.exponent,
        }),
        (Value::Finite(Exact { significand: 0, .. }), _)
        | (_, Value::Finite(Exact { significand: 0, .. })) => INVALID,
        _ => Value::Infinite { negative: is_negative(a) != is_negative(b) },
    }
}

fn is_negative(x: Value) -> bool {
    match x {
        Value::Nan(_) => false,
        Value::Infinite { negative } => negative,
        Value::Finite(x) => x.negative,
    }
}

/// The quotient, with at least 64 significant bits and a sticky lowest bit.
pub(crate) fn quotient(a: Value, b: Value) -> Value {
    let negative = is_negative(a) != is_negative(b);
    match (a, b) {
        // The code that ptxas makes of `div` keeps the first of two NaNs on an H100.
        (Value::Nan(_), _) => a,
        (_, Value::Nan(_)) => b,
        (Value::Infinite { .. }, Value::Infinite { .. }) => INVALID,
        (Value::Infinite { .. }, _) => Value::Infinite { negative },
        (_, Value::Infinite { .. }) => Value::zero(negative),
        (Value::Finite(x), Value::Finite(y)) => match (x.significand, y.significand) {
            (0, 0) => INVALID,
            (_, 0) => Value::Infinite { negative },
            (0, _) => Value::zero(negative),
            (dividend, divisor) => {
                // Operands have at most 53 bits: the quotient has 74 bits or more.
                let shift = dividend.leading_zeros();
                let dividend = dividend << shift;
                let inexact = dividend % divisor != 0;
                let significand = (dividend / divisor) | inexact as u128;
                Value::Finite(Exact {
                    negative,
                    significand,
                    exponent: x.exponent - shift as i32 - y.exponent,
                })
            }
        },
    }
}

/// The square root, with 63 significant bits and a sticky lowest bit. sqrt(-0) is -0.
pub(crate) fn square_root(a: Value) -> Value {
    match a {
        Value::Nan(_) | Value::Infinite { negative: false } => a,
        Value::Finite(x) if x.significand == 0 => a,
        Value::Finite(x) if !x.negative => {
            // An even exponent and a radicand of 125 or 126 bits.
            let x = x.normalized();
            let odd = x.exponent & 1;
            let radicand = x.significand << odd;
            let root = radicand.isqrt();
            let significand = root | (root * root != radicand) as u128;
            Value::Finite(Exact { negative: false, significand, exponent: (x.exponent - odd) / 2 })
        }
        _ => INVALID,
    }
}

/// `add`: a + b.
pub fn add(f: &Format, mode: Mode, a: u64, b: u64) -> u64 {
    pack(f, mode, sum(unpack(f, mode.ftz, a), unpack(f, mode.ftz, b), mode.rounding))
}

/// `sub`: a - b.
pub fn sub(f: &Format, mode: Mode, a: u64, b: u64) -> u64 {
    pack(f, mode, sum(unpack(f, mode.ftz, a), unpack(f, mode.ftz, b).negated(), mode.rounding))
}

/// `mul`: a * b.
pub fn mul(f: &Format, mode: Mode, a: u64, b: u64) -> u64 {
    pack(f, mode, product(unpack(f, mode.ftz, a), unpack(f, mode.ftz, b)))
}

/// `mul.bf16x2.bf16x2.f16x2`: a * b, where a and b have different formats.
pub fn mul_mixed(f: &Format, [fa, fb]: [&Format; 2], mode: Mode, a: u64, b: u64) -> u64 {
    pack(f, mode, product(unpack(fa, mode.ftz, a), unpack(fb, mode.ftz, b)))
}

/// `fma`: a * b + c, rounded once.
pub fn fma(f: &Format, mode: Mode, a: u64, b: u64, c: u64) -> u64 {
    fma_mixed(f, [f, f], mode, a, b, c)
}

/// `fma.f32.{f16,bf16}` and, with one format, `fma`: a * b + c, where a and b have their own formats, rounded once.
pub fn fma_mixed(f: &Format, [fa, fb]: [&Format; 2], mode: Mode, a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (unpack(fa, mode.ftz, a), unpack(fb, mode.ftz, b), unpack(f, mode.ftz, c));
    let value = match (b, c) {
        // Of several NaNs an H100's `.f64` keeps b, then c, then a.
        (Value::Nan(_), _) => b,
        (_, Value::Nan(_)) => c,
        _ => sum(product(a, b), c, mode.rounding),
    };
    pack(f, mode, value)
}

/// `add.f32.{f16,bf16}`: a + c, where a has format `fa`.
pub fn add_mixed(f: &Format, fa: &Format, mode: Mode, a: u64, c: u64) -> u64 {
    pack(f, mode, sum(unpack(fa, mode.ftz, a), unpack(f, mode.ftz, c), mode.rounding))
}

/// `div`: a / b.
pub fn div(f: &Format, mode: Mode, a: u64, b: u64) -> u64 {
    pack(f, mode, quotient(unpack(f, mode.ftz, a), unpack(f, mode.ftz, b)))
}

/// `rcp`: 1 / a.
pub fn rcp(f: &Format, mode: Mode, a: u64) -> u64 {
    pack(f, mode, quotient(Value::integer(false, 1), unpack(f, mode.ftz, a)))
}

/// `sqrt`.
pub fn sqrt(f: &Format, mode: Mode, a: u64) -> u64 {
    pack(f, mode, square_root(unpack(f, mode.ftz, a)))
}

/// `rsqrt`: 1 / sqrt(a), rounded once; rsqrt(-0) is -infinity.
pub fn rsqrt(f: &Format, mode: Mode, a: u64) -> u64 {
    pack(f, mode, inverse_square_root(unpack(f, mode.ftz, a)))
}

/// 1 / sqrt(a), with 62 significant bits and a sticky lowest bit.
fn inverse_square_root(a: Value) -> Value {
    match a {
        Value::Finite(x) if !x.negative && x.significand != 0 => Value::Finite(inverse_root(x)),
        _ => quotient(Value::integer(false, 1), square_root(a)),
    }
}

fn inverse_root(x: Exact) -> Exact {
    // x = s * 2^e with e even and s of 53 or 54 bits, so 1 / sqrt(x) = sqrt(2^176 / s) * 2^(-88 - e/2).
    let shift = x.significand.leading_zeros() as i32 - 75;
    let odd = (x.exponent - shift) & 1;
    let (s, e) = (x.significand << (shift + odd), x.exponent - shift - odd);
    // floor(sqrt(y)) = floor(sqrt(floor(y))): 2^176 / s by long division in two steps.
    let high = (1 << 127) / s;
    let rest = ((1 << 127) % s) << 49;
    let square = (high << 49) + rest / s;
    let root = square.isqrt();
    let inexact = root * root != square || rest % s != 0;
    Exact { negative: false, significand: root | inexact as u128, exponent: -88 - e / 2 }
}
