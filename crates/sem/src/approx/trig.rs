//! sin and cos, reduced with as many bits of 2/pi as the largest argument needs.

use super::fixed::{INVERSE_FACTORIALS, mul_high};
use super::{ONE, evaluate, next_to};
use crate::arith;
use crate::format::{F32, Format};
use crate::round::{Clamp, Exact, INVALID, Mode, Value};
use isa::Rounding;

/// 2/pi = 0.TWO_OVER_PI in base 2^64: enough for any `.f64`.
pub const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];
/// pi/2 in Q127.
const PI_OVER_2: u128 = 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1;

/// 1 / (2 pi) in `.f32`, by which the code of ptxas multiplies the angle on every target.
pub const TURN: u32 = 0x3e22_f983;

/// An `.f32` angle in turns, rounded toward zero; a subnormal number of turns is a zero. With it the results are within
/// 2^-21 of an H100's for any angle; those of the exact angle are so for small ones alone.
fn turns(a: u64) -> u64 {
    arith::mul(&F32, Mode { rounding: Rounding::TowardZero, ftz: true, clamp: Clamp::None }, a, TURN.into())
}

/// `sin.approx`. A subnormal gives a zero of its sign even without `.ftz` (as ptxas folds); infinity gives NaN.
pub fn sin(f: &Format, mode: Mode, a: u64) -> u64 {
    let a = f.flush(a);
    if *f == F32 {
        sin_cycles(f, mode, turns(a))
    } else {
        evaluate(f, mode, a, Value::zero, |_| INVALID, sine)
    }
}

pub(super) fn sine(x: Exact) -> Value {
    if x.leading_exponent() < -30 {
        return next_to(x, true);
    }
    let (quadrant, r) = reduce(x);
    let result = quarter_turns(quadrant, r);
    Value::Finite(Exact { negative: result.negative != x.negative, ..result })
}

/// `cos.approx`. Infinity gives NaN.
pub fn cos(f: &Format, mode: Mode, a: u64) -> u64 {
    if *f == F32 {
        return cos_cycles(f, mode, turns(a));
    }
    evaluate(f, mode, a, |_| Value::Finite(ONE), |_| INVALID, cosine)
}

pub(super) fn cosine(x: Exact) -> Value {
    if x.leading_exponent() < -30 {
        return next_to(ONE, true);
    }
    let (quadrant, r) = reduce(x);
    Value::Finite(quarter_turns(quadrant + 1, r))
}

/// Below 2^FEW_CYCLES cycles, the sine is next to the angle, and the cosine next to 1.
const FEW_CYCLES: i32 = -40;

/// `sin.approx.ftz.2pi`: sin(2 pi a), rounded to nearest. A zero result has the sign of a, as in IEEE 754's sinPi;
/// infinity gives NaN.
///
/// *Unverified*: ptxas folds the sine of 2 pi a in binary64, which is inaccurate near zeros (half a cycle gives
/// 1.2e-16).
pub fn sin_cycles(f: &Format, mode: Mode, a: u64) -> u64 {
    let sine = |x: Exact| {
        if x.leading_exponent() < FEW_CYCLES {
            let shift = x.significand.leading_zeros();
            let significand = mul_high(x.significand << shift, PI_OVER_2) | 1;
            return Value::Finite(Exact { significand, exponent: x.exponent - shift as i32 + 3, ..x });
        }
        match reduce_cycles(x) {
            (0 | 2, Exact { significand: 0, .. }) => Value::zero(x.negative),
            (quadrant, r) => {
                let result = sine_of(quadrant, r);
                Value::Finite(Exact { negative: result.negative != x.negative, ..result })
            }
        }
    };
    evaluate(f, mode, a, Value::zero, |_| INVALID, sine)
}

/// `cos.approx.ftz.2pi`: cos(2 pi a), rounded to nearest. A zero result is positive; infinity gives NaN.
/// *Unverified*, as [`sin_cycles`].
pub fn cos_cycles(f: &Format, mode: Mode, a: u64) -> u64 {
    let cosine = |x: Exact| {
        if x.leading_exponent() < FEW_CYCLES {
            return next_to(ONE, true);
        }
        match reduce_cycles(x) {
            (1 | 3, Exact { significand: 0, .. }) => Value::zero(false),
            (quadrant, r) => Value::Finite(sine_of(quadrant + 1, r)),
        }
    };
    evaluate(f, mode, a, |_| Value::Finite(ONE), |_| INVALID, cosine)
}

/// sin(quadrant * pi/2 + r), which is exact for r = 0.
fn sine_of(quadrant: u32, r: Exact) -> Exact {
    match r.significand {
        0 => Exact { negative: quadrant & 2 != 0, ..ONE },
        _ => quarter_turns(quadrant, r),
    }
}

/// 2 pi |x| = quadrant * pi/2 + r with |r| <= pi/4, r in units of 2^-127 and quadrant modulo 4. For |x| >= 2^-40.
fn reduce_cycles(x: Exact) -> (u32, Exact) {
    // The fraction of a cycle, in units of 2^-128.
    let shift = u32::try_from(x.exponent + 128).unwrap_or(0);
    let cycle = x.significand.checked_shl(shift).unwrap_or(0);
    let (quadrant, fraction) = ((cycle >> 126) as u32, cycle << 2);
    // Closer to the next quarter turn: measure r from there.
    let negative = fraction >> 127 != 0;
    let (quadrant, fraction) =
        if negative { ((quadrant + 1) & 3, fraction.wrapping_neg()) } else { (quadrant, fraction) };
    (quadrant, Exact { negative, significand: mul_high(fraction, PI_OVER_2), exponent: -127 })
}

/// sin(quadrant * pi/2 + r): sin r, cos r, -sin r, -cos r.
fn quarter_turns(quadrant: u32, r: Exact) -> Exact {
    let result = if quadrant & 1 == 0 { sin_series(r) } else { cos_series(r) };
    Exact { negative: result.negative != (quadrant & 2 != 0), ..result }
}

/// |x| = quadrant * pi/2 + r with |r| <= pi/4, r in units of 2^-127. For |x| >= 2^-30.
fn reduce(x: Exact) -> (u32, Exact) {
    // x| * 2/pi modulo 4, with 318 fraction bits. Only the bits of 2/pi from 2^-(e - 2) on matter; those above contribute multiples of 4.
    let start = (x.exponent - 2).max(0) as usize;
    let product = times(x.significand as u64, window(start));
    let turns = shift_right(product, (start as i32 - x.exponent + 2) as u32);
    let quadrant = (turns[4] >> 62) as u32;
    let fraction = (turns[4] as u128) << 66 | (turns[3] as u128) << 2 | (turns[2] >> 62) as u128;
    // Closer to the next quarter turn: measure r from there.
    let negative = fraction >> 127 != 0;
    let (quadrant, fraction) =
        if negative { (quadrant + 1, fraction.wrapping_neg()) } else { (quadrant, fraction) };
    (quadrant, Exact { negative, significand: mul_high(fraction, PI_OVER_2), exponent: -127 })
}

/// 320 bits of 2/pi from bit `start` of its fraction on, the least significant word first.
fn window(start: usize) -> [u64; 5] {
    let (word, bit) = (start / 64, start % 64);
    let at = |i: usize| TWO_OVER_PI.get(i).copied().unwrap_or(0) as u128;
    std::array::from_fn(|i| {
        let i = word + 4 - i;
        ((at(i) << 64 | at(i + 1)) << bit >> 64) as u64
    })
}

/// The product, the least significant word first.
fn times(m: u64, words: [u64; 5]) -> [u64; 6] {
    let mut product = [0; 6];
    let mut carry = 0;
    for (to, word) in product.iter_mut().zip(words) {
        let sum = m as u128 * word as u128 + carry;
        *to = sum as u64;
        carry = sum >> 64;
    }
    product[5] = carry as u64;
    product
}

/// `words >> distance`, the least significant word first.
fn shift_right(words: [u64; 6], distance: u32) -> [u64; 6] {
    let (skip, bit) = ((distance / 64) as usize, distance % 64);
    let at = |i: usize| words.get(i).copied().unwrap_or(0) as u128;
    std::array::from_fn(|i| ((at(i + skip + 1) << 64 | at(i + skip)) >> bit) as u64)
}

/// The sum of (-1)^k z^k / (2k + first)! in Q126, z = r^2.
fn series(r: u128, first: usize) -> u128 {
    let square = mul_high(r, r) << 2;
    let terms = INVERSE_FACTORIALS.iter().skip(first).step_by(2);
    terms.rev().fold(0, |sum, &term| term - mul_high(sum, square))
}

/// sin r = r * (1 - r^2/3! + ...). No value but sin 0 is rational: the sticky bit is set.
fn sin_series(r: Exact) -> Exact {
    Exact { significand: mul_high(r.significand, series(r.significand, 1)) | 1, exponent: -125, ..r }
}

/// cos r = 1 - r^2/2! + ...
fn cos_series(r: Exact) -> Exact {
    Exact { negative: false, significand: series(r.significand, 0) | 1, exponent: -126 }
}
