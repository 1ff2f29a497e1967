//! sin and cos of binary64.

use super::tables::{COSINES, FIRST, PI_2, PI_2_REST, SHARED, SINES, TURNS};
use super::{Function, Results, UNIT, certain};
use super::{fast_two_sum, inverse_factorials, nearest, polynomial, two_product};
use crate::float::NAN64;
use crate::numbers::{fused, two_sum};
use crate::path::{BLOCK, Block, Path};
use sem::approx;
use sem::format::Format;
use sem::round::Mode;
use std::f64::consts::FRAC_2_PI;

/// Argument reduction: quarter turns, in the low bits of integers, and remaining angles between about -pi/4 and pi/4.
/// Each angle is a sum of two numbers with an error bound.
struct Angles {
    quarters: Block<u64>,
    high: Block<f64>,
    low: Block<f64>,
    error: f64,
}

/// Below this, the sine of an angle is the angle and its cosine is 1.
const TINY: f64 = 1.0 / (1u64 << 27) as f64;

/// Numbers from this one on are reduced by [`reduce_large`].
const LARGE: f64 = (1 << 28) as f64;

/// Bound of the relative error from neglected terms, sums of low parts and the series of `sem`: twice 2^-71 and less.
const NEGLECTED: f64 = UNIT / (1 << 15) as f64;

/// x - y * z, if the result has at most 53 bits and y * z is zero or close to x.
#[inline(always)]
fn exact_rest<P: Path>(x: f64, y: f64, z: f64) -> f64 {
    if P::FUSED {
        return (-y).mul_add(z, x);
    }
    let (product, rest) = two_product::<P>(y, z);
    (x - product) - rest
}

/// Reduces positive numbers below [`LARGE`] by a multiple of pi/2.
#[inline(always)]
fn reduce<P: Path>(x: &Block<f64>) -> Angles {
    /// Bound of the error of the Q127 numbers of `sem` and of the sums here.
    const ERROR: f64 = 1.0 / (1u128 << 120) as f64;
    let mut angles = Angles { quarters: [0; BLOCK], high: [0.0; BLOCK], low: [0.0; BLOCK], error: ERROR };
    for (k, &x) in x.iter().enumerate() {
        let (n, bits) = nearest::<P>(x, FRAC_2_PI);
        // A multiple of 2^-53, or of the unit in the last place of x if n is zero, and below 1.
        let first = exact_rest::<P>(x, n, PI_2.0);
        let (product, rest) = two_product::<P>(n, PI_2.1);
        let (high, low) = two_sum(first, -product);
        angles.low[k] = low - fused::<P>(n, PI_2_REST, rest);
        (angles.high[k], angles.quarters[k]) = (high, bits);
    }
    angles
}

/// Reduces a positive number modulo 4, to -2..2. If the number's unit in the last place is at least 4, the result is
/// a multiple of 4 of about that size.
#[inline(always)]
fn modulo_4(x: f64) -> f64 {
    /// The unit in the last place of sums with this number is 4 for smaller addends, and more for larger ones.
    const FOURS: f64 = (1u64 << 54) as f64;
    x - ((x + FOURS) - FOURS)
}

/// Reduces a number modulo 8, or modulo 4 if it is a multiple of 4, to -4..4 (with the same exception).
#[inline(always)]
fn modulo_8(x: f64) -> f64 {
    const EIGHTS: f64 = 1.5 * (1u64 << 55) as f64;
    x - ((x + EIGHTS) - EIGHTS)
}

/// Reduces positive numbers from [`TINY`] on by a multiple of pi/2.
#[inline(always)]
fn reduce_large<P: Path>(path: P, x: &Block<f64>) -> Angles {
    /// Bound of the error of what follows the last piece, and of sums of low parts.
    const ERROR: f64 = 1.0 / (1u128 << 89) as f64;
    // x = factor * 2^(FIRST + SHARED index), with a factor from 1 to 2^SHARED.
    let (mut index, mut factors) = ([0; BLOCK], [0.0; BLOCK]);
    for k in 0..BLOCK {
        let bits = x[k].to_bits();
        let exponent = (bits >> 52).wrapping_sub((1023 + FIRST) as u64);
        // Division by multiplication; exact for quotients up to 15.
        index[k] = (exponent * 993) >> 16;
        let scale = (index[k] * SHARED as u64).wrapping_add(FIRST as u64);
        factors[k] = f64::from_bits(bits.wrapping_sub(scale << 52));
    }
    let turns = [
        path.look_up(&TURNS[0], index),
        path.look_up(&TURNS[1], index),
        path.look_up(&TURNS[2], index),
        path.look_up(&TURNS[3], index),
    ];
    let mut angles = Angles { quarters: [0; BLOCK], high: [0.0; BLOCK], low: [0.0; BLOCK], error: ERROR };
    for k in 0..BLOCK {
        // The product itself is a multiple of 4, so only its error term counts.
        let (_, b) = two_product::<P>(factors[k], turns[0][k]);
        let (c, d) = two_product::<P>(factors[k], turns[1][k]);
        let (e, f) = two_product::<P>(factors[k], turns[2][k]);
        let (sum, rest) = two_sum(modulo_8(b), modulo_4(c));
        let (small, small_rest) = two_sum(d, e);
        let (sum, sum_rest) = two_sum(sum, small);
        let (n, bits) = nearest::<P>(sum, 1.0);
        let rest = (rest + sum_rest) + (small_rest + fused::<P>(factors[k], turns[3][k], f));
        let (fraction, fraction_low) = fast_two_sum(sum - n, rest);
        let (high, low) = two_product::<P>(fraction, PI_2.0);
        angles.low[k] = fused::<P>(fraction, PI_2.1, fused::<P>(fraction_low, PI_2.0, low));
        (angles.high[k], angles.quarters[k]) = (high, bits);
    }
    angles
}

/// `a` where the mask is set, else `b`.
#[inline(always)]
fn select<P: Path>(path: P, mask: u16, a: Block<f64>, b: Block<f64>) -> Block<f64> {
    path.select64(mask, a.map(f64::to_bits), b.map(f64::to_bits)).map(f64::from_bits)
}

/// Rescales the terms of a series for use with half of its variable; the first term is multiplied by `scale`.
const fn of_halves<const N: usize>(mut terms: [f64; N], mut scale: f64) -> [f64; N] {
    let mut i = 0;
    while i < N {
        terms[i] *= scale;
        scale *= 2.0;
        i += 1;
    }
    terms
}

/// sin, or cos.
pub(super) struct Circular<const COSINE: bool>;

impl<const COSINE: bool> Function for Circular<COSINE> {
    #[inline(always)]
    fn is_usual(x: f64) -> bool {
        (x.abs() >= TINY) & (x.abs() < f64::INFINITY)
    }

    #[inline(always)]
    fn unusual(x: f64) -> f64 {
        let tiny = match (COSINE, x.abs() < f64::MIN_POSITIVE) {
            (true, _) => 1.0,
            (false, true) => 0.0f64.copysign(x),
            (false, false) => x,
        };
        if x.abs() < TINY { tiny } else { NAN64 }
    }

    #[inline(always)]
    fn values<P: Path>(path: P, x: &Block<f64>) -> Results {
        /// Terms of sin d = d - d h (2/3! - 4h/5! + ...), with h = d^2/2, for |d| < 0.032. The neglected terms are
        /// below 2^-74 of the sum.
        const SINE_REST: [f64; 4] = of_halves(inverse_factorials(3, 2, true), 2.0);
        /// Terms of cos d = 1 - h + h^2 (4/4! - 8h/6! + ...). The neglected terms are below 2^-71.
        const COSINE_REST: [f64; 3] = of_halves(inverse_factorials(4, 2, true), 4.0);
        let (magnitudes, mut large) = (x.map(f64::abs), [0; BLOCK]);
        for k in 0..BLOCK {
            large[k] = (LARGE.to_bits() - 1).wrapping_sub(magnitudes[k].to_bits());
        }
        let angles = if path.top_bits64(large) != 0 {
            reduce_large(path, &magnitudes)
        } else {
            reduce::<P>(&magnitudes)
        };
        // |angle| = index/16 + d
        let (mut index, mut rests, mut odd) = ([0; BLOCK], [0.0; BLOCK], [0; BLOCK]);
        for k in 0..BLOCK {
            let sixteenths;
            (sixteenths, index[k]) = nearest::<P>(angles.high[k].abs(), 16.0);
            rests[k] = fused::<P>(sixteenths, -1.0 / 16.0, angles.high[k].abs());
            // Odd quarters take the cosine of the angle.
            odd[k] = angles.quarters[k].wrapping_add(u64::from(COSINE)) << 63;
        }
        // The value is a cos d + b sin d, up to the sign of d.
        let (a, a_low, b, b_low) = {
            let odd = path.top_bits64(odd);
            let sines = (path.look_up(&SINES.high, index), path.look_up(&SINES.low, index));
            let cosines = (path.look_up(&COSINES.high, index), path.look_up(&COSINES.low, index));
            let a = (select(path, odd, cosines.0, sines.0), select(path, odd, cosines.1, sines.1));
            let b = (select(path, odd, sines.0, cosines.0), select(path, odd, sines.1, cosines.1));
            (a.0, a.1, b.0, b.1)
        };
        let (mut out, mut doubts) = ([0.0; BLOCK], [0; BLOCK]);
        for k in 0..BLOCK {
            // The angle's sign applies to the sine.
            let sign = angles.high[k].to_bits() & 1 << 63;
            let signed = |x: f64, sign: u64| f64::from_bits(x.to_bits() ^ sign);
            let (d, d_low) = (signed(rests[k], odd[k]), signed(angles.low[k], sign ^ odd[k]));
            let (a, a_low, b, b_low) = (a[k], a_low[k], b[k], b_low[k]);
            let (half, half_low) = two_product::<P>(0.5 * d, d);
            let sine_rest = half * d * polynomial::<P, _>(SINE_REST, half);
            let cosine_rest = half * half * polynomial::<P, _>(COSINE_REST, half);
            let (sine, sine_low) = two_product::<P>(b, d);
            let (cosine, cosine_low) = two_product::<P>(-a, half);
            let (high, low) = fast_two_sum(a, sine);
            let (high, lower) = fast_two_sum(high, cosine);
            let cosine_low = fused::<P>(-a, half_low, fused::<P>(-a_low, half, cosine_low));
            let lows = fused::<P>(b_low, d, sine_low + a_low) + cosine_low;
            let slope = fused::<P>(-b, half, fused::<P>(-a, d, b));
            let lows = fused::<P>(a, cosine_rest, fused::<P>(d_low, slope, lows));
            let low = (low + lower) + fused::<P>(-b, sine_rest, lows);
            // These terms are rounded: half the square, the cube, the polynomial, products with a sixth of the cube
            // and three sums of that size; and the slope lacks that times half a unit. Together that is 1.5 units of
            // the cube, which is less than 1.5/16 units of half the square.
            let error = fused::<P>(half, 1.5 / 16.0 * UNIT, fused::<P>(high, NEGLECTED, angles.error));
            let value;
            (value, doubts[k]) = certain(high, low, error);
            let quarters = angles.quarters[k].wrapping_add(u64::from(COSINE));
            let negative = if COSINE { 0 } else { x[k].to_bits() & 1 << 63 };
            out[k] = signed(value, (quarters & 2) << 62 ^ negative ^ sign & !odd[k]);
        }
        (out, doubts)
    }

    const SEM: fn(&Format, Mode, u64) -> u64 = if COSINE { approx::cos } else { approx::sin };
}
