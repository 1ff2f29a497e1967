//! Distributions: what becomes of random bits, by the formulas of NVIDIA's device functions.
//!
//! Uniform numbers are exact. Normal numbers are rounded after each step of the formula, as these functions do it, with logarithms, sines
//! and exponentials that are right to within a unit in the last place and the same on every machine.

use std::sync::Arc;

use crate::poisson::Poisson;

/// What a call wants.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The bits themselves: 32 or, of a 64-bit sequence, 64.
    Bits,
    /// From 0 (excluded) to 1.
    Uniform,
    /// The same as `f64`.
    UniformDouble,
    /// Normal, or the exponential of it.
    Normal(Shape<f32>),
    /// The same as `f64`.
    NormalDouble(Shape<f64>),
    /// Of Poisson's distribution.
    Poisson(Arc<Poisson>),
}

/// Which normal distribution, and whether its exponential is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Shape<T> {
    /// The mean.
    pub mean: T,
    /// The standard deviation.
    pub deviation: T,
    /// Whether it is the logarithm of the result that is normal.
    pub log: bool,
}

impl Shape<f32> {
    /// A result, from a standard normal number.
    pub fn of(self, normal: f32) -> f32 {
        let value = self.mean + normal * self.deviation;
        if self.log { libm::exp(f64::from(value)) as f32 } else { value }
    }
}

impl Shape<f64> {
    /// A result, from a standard normal number.
    pub fn of(self, normal: f64) -> f64 {
        let value = self.mean + normal * self.deviation;
        if self.log { libm::exp(value) } else { value }
    }
}

const BITS32: f64 = 1.0 / 4_294_967_296.0;
const BITS53: f64 = 1.0 / 9_007_199_254_740_992.0;

/// The midpoint of the 2^-32 that a number stands for, as `f32`.
pub fn uniform(x: u32) -> f32 {
    x as f32 * BITS32 as f32 + BITS32 as f32 / 2.0
}

/// The upper end of the 2^-32 that a number stands for.
pub fn uniform_double(x: u32) -> f64 {
    f64::from(x) * BITS32 + BITS32
}

/// The midpoint of the 2^-53 that 53 bits stand for.
pub fn uniform53(bits: u64) -> f64 {
    bits as f64 * BITS53 + BITS53 / 2.0
}

/// Two numbers as the 53 bits of a double: they overlap in 11 bits.
pub fn join(x: u32, y: u32) -> u64 {
    u64::from(x) ^ (u64::from(y) << 21)
}

/// The logarithm, sine and cosine of `f32`, rounded.
fn polar(u: f32, angle: f32) -> (f32, f32) {
    let radius = (-2.0 * libm::log(f64::from(u)) as f32).sqrt();
    let (sin, cos) = libm::sincos(f64::from(angle));
    (sin as f32 * radius, cos as f32 * radius)
}

/// Two normal numbers, by the transform of Box and Muller.
pub fn box_muller(x: u32, y: u32) -> (f32, f32) {
    const TURN: f32 = (BITS32 as f32) * std::f32::consts::TAU;
    polar(uniform(x), y as f32 * TURN + TURN / 2.0)
}

/// The same, from two uniform numbers.
pub fn box_muller_uniform(u: f32, v: f32) -> (f32, f32) {
    polar(u, v * std::f32::consts::TAU)
}

/// The same, as `f64`: `v` is half of the turn.
pub fn box_muller_double(u: f64, v: f64) -> (f64, f64) {
    let radius = libm::sqrt(-2.0 * libm::log(u));
    let (sin, cos) = libm::sincos(v * std::f64::consts::PI);
    (sin * radius, cos * radius)
}

/// The same, from four numbers.
pub fn box_muller_bits(x0: u32, x1: u32, y0: u32, y1: u32) -> (f64, f64) {
    box_muller_double(uniform53(join(x0, x1)), join(y0, y1) as f64 * (2.0 * BITS53) + BITS53)
}

/// A normal number from one uniform number, as the inverse of the distribution function has it.
pub fn normal(x: u32) -> f32 {
    let (x, sign) = if x > 0x8000_0000 { (u32::MAX - x, 1.0) } else { (x, -1.0) };
    // The formula has the inverse of `erfc` at 2p, times the square root of 2: that is this quantile.
    let p = uniform(x);
    sign * -quantile(f64::from(p)) as f32
}

/// The same, as `f64`, from 32 bits.
pub fn normal_double(x: u32) -> f64 {
    let (x, sign) = if x > 0x8000_0000 { (u32::MAX - x, 1.0) } else { (x, -1.0) };
    sign * -quantile(f64::from(x) * BITS32 + BITS32 / 2.0)
}

/// The same, as `f64`, from 64 bits.
pub fn normal_double64(x: u64) -> f64 {
    let x = x >> 11;
    let (x, sign) = if x > 1 << 52 { ((1 << 53) - 1 - x, 1.0) } else { (x, -1.0) };
    sign * -quantile(uniform53(x))
}

/// The quantile of the standard normal distribution at p, from 0 to 1: M. J. Wichura, "Algorithm AS 241: The percentage points of the normal
/// distribution", Applied Statistics 37(3), 1988. Its relative error is about 1e-16.
pub fn quantile(p: f64) -> f64 {
    let fraction = |r: f64, above: [f64; 8], below: [f64; 7]| {
        let over = above.iter().fold(0.0, |sum, c| sum * r + c);
        let under = below.iter().fold(0.0, |sum, c| sum * r + c);
        over / (under * r + 1.0)
    };
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * fraction(0.180625 - q * q, A, B);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = libm::sqrt(-libm::log(tail));
    let x = if r <= 5.0 { fraction(r - 1.6, C, D) } else { fraction(r - 5.0, E, F) };
    if q < 0.0 { -x } else { x }
}

#[allow(clippy::excessive_precision, reason = "the digits are those published")]
const A: [f64; 8] = [
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
];

#[allow(clippy::excessive_precision, reason = "the digits are those published")]
const B: [f64; 7] = [
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
];

#[allow(clippy::excessive_precision, reason = "the digits are those published")]
const C: [f64; 8] = [
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
];

#[allow(clippy::excessive_precision, reason = "the digits are those published")]
const D: [f64; 7] = [
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
];

#[allow(clippy::excessive_precision, reason = "the digits are those published")]
const E: [f64; 8] = [
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
];

#[allow(clippy::excessive_precision, reason = "the digits are those published")]
const F: [f64; 7] = [
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
];
