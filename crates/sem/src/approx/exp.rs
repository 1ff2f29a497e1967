//! ex2 and tanh.

use super::fixed::{INVERSE_FACTORIALS, floor, mul_high};
use super::{ONE, evaluate, next_to};
use crate::format::Format;
use crate::round::{Exact, Mode, Value};

/// ln 2 in Q128.
const LN_2: u128 = 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af;
/// 2 / ln 2 in Q126.
pub(super) const TWO_OVER_LN_2: u128 = 0xb8aa_3b29_5c17_f0bb_be87_fed0_691d_3e88;

/// 2^f in Q126, for f in Q128: the series of e^(f ln 2).
fn exp2_fraction(f: u128) -> u128 {
    let r = mul_high(f, LN_2);
    INVERSE_FACTORIALS[..32].iter().rev().fold(0, |sum, &term| term + mul_high(sum, r))
}

/// `ex2.approx`: 2^a. 2^(+-0) is 1, 2^-infinity is +0.
pub fn ex2(f: &Format, mode: Mode, a: u64) -> u64 {
    let infinite = |negative| if negative { Value::zero(false) } else { Value::Infinite { negative } };
    evaluate(f, mode, a, |_| Value::Finite(ONE), infinite, exp2)
}

pub(super) fn exp2(x: Exact) -> Value {
    let (integer, fraction) = floor(x);
    // Far beyond any exponent, yet safe to add to.
    let exponent = integer.clamp(-1 << 20, 1 << 20) - 126;
    Value::Finite(match fraction {
        0 => Exact { negative: false, significand: 1 << 126, exponent },
        // No other value is rational: the sticky bit is set.
        _ => Exact { negative: false, significand: exp2_fraction(fraction) | 1, exponent },
    })
}

/// `tanh.approx`. tanh(+-0) is +-0, tanh(+-infinity) is +-1.
pub fn tanh(f: &Format, mode: Mode, a: u64) -> u64 {
    let infinite = |negative| Value::Finite(Exact { negative, ..ONE });
    evaluate(f, mode, a, Value::zero, infinite, hyperbolic_tangent)
}

pub(super) fn hyperbolic_tangent(x: Exact) -> Value {
    // tanh x = x - x^3 / 3 + ..., and 1 - 2 e^(-2x) + ...
    match x.leading_exponent() {
        ..-32 => next_to(x, true),
        6.. => next_to(Exact { negative: x.negative, ..ONE }, true),
        _ => Value::Finite(Exact { negative: x.negative, ..tanh_from_exp(x) }),
    }
}

/// (1 - u) / (1 + u) with u = e^(-2|x|), for 2^-32 <= |x| < 2^6.
fn tanh_from_exp(x: Exact) -> Exact {
    let shift = x.exponent + 120;
    let q120 = if shift >= 0 { x.significand << shift } else { x.significand >> -shift };
    // u = 2^-y, y = 2|x| / ln 2, in Q118.
    let y = mul_high(q120, TWO_OVER_LN_2);
    let (integer, fraction) = ((y >> 118) as u32, y << 10);
    // 2^-fraction = 2^(1 - fraction) / 2, in Q126 to leave room for the quotient's remainders.
    let u = exp2_fraction(fraction.wrapping_neg()) >> (integer + 1).min(127);
    let (mut rest, denominator) = ((1u128 << 126) - u, (1u128 << 126) + u);
    let mut quotient = 0u128;
    for _ in 0..120 {
        rest <<= 1;
        let bit = rest >= denominator;
        if bit {
            rest -= denominator;
        }
        quotient = quotient << 1 | bit as u128;
    }
    Exact { negative: false, significand: quotient | 1, exponent: -120 }
}
