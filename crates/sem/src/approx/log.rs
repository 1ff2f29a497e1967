//! lg2.

use super::evaluate;
use super::exp::TWO_OVER_LN_2;
use super::fixed::{divide, mul_high};
use crate::format::Format;
use crate::round::{Exact, INVALID, Mode, Value};

/// 1/1, 1/3, 1/5 ... in Q127.
const INVERSE_ODD: [u128; 27] = {
    let mut table = [1 << 127; 27];
    let mut k = 1;
    while k < table.len() {
        table[k] = (1 << 127) / (2 * k as u128 + 1);
        k += 1;
    }
    table
};

/// `lg2.approx`: the logarithm to base 2. lg2(+-0) is -infinity; a negative number gives NaN.
pub fn lg2(f: &Format, mode: Mode, a: u64) -> u64 {
    let infinite = |negative| if negative { INVALID } else { Value::Infinite { negative } };
    evaluate(f, mode, a, |_| Value::Infinite { negative: true }, infinite, log2)
}

pub(super) fn log2(x: Exact) -> Value {
    if x.negative {
        return INVALID;
    }
    // x = y * 2^k with y = s / 2^t in [1/sqrt 2, sqrt 2).
    let s = x.significand;
    let bits = 128 - s.leading_zeros() as i32;
    let above_sqrt_2 = mul_high(s << (128 - bits), s << (128 - bits)) >> 127 != 0;
    let t = bits - 1 + above_sqrt_2 as i32;
    let k = x.exponent + t;
    let one = 1u128 << t;
    // log2 y = 2/ln 2 * atanh(z), z = (y - 1) / (y + 1) = (s - 2^t) / (s + 2^t), |z| < 0.172; in Q125.
    let below_1 = s < one;
    let z = divide(s.abs_diff(one), s + one);
    let square = mul_high(z, z);
    let series = INVERSE_ODD.iter().rev().fold(0, |sum, &term| term + mul_high(sum, square));
    let fraction = mul_high(mul_high(z, series), TWO_OVER_LN_2);
    Value::Finite(match (k, fraction) {
        // A power of two: its logarithm is an integer; lg2(1) is +0.
        (_, 0) => Exact { negative: k < 0, significand: k.unsigned_abs() as u128, exponent: 0 },
        (0, _) => Exact { negative: below_1, significand: fraction | 1, exponent: -125 },
        _ => {
            let fraction = (fraction >> 14 | 1) as i128;
            let sum = ((k as i128) << 111) + if below_1 { -fraction } else { fraction };
            Exact { negative: sum < 0, significand: sum.unsigned_abs(), exponent: -111 }
        }
    })
}
