//! The approximate functions of binary32: ex2, lg2, sin, cos, tanh.
//!
//! `sem` returns the exact value rounded to nearest. Here it is computed in binary64 with an error far below [`ERROR`];
//! where the rounding depends on what is in doubt, once in two million results, and where the functions below give up
//! (NaN), `sem` is asked for the lane. Nothing is contracted to `fma`: every path computes the same.

use super::drive::{load, store};
use super::float::flush;
use super::macros::flags;
use super::path::{BLOCK, Block, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Opcode, Picks, Type};
use sem::approx;
use sem::format::{F32, Format};
use sem::round::Mode;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, LN_2};
use std::marker::PhantomData;

/// Bound of the relative error of the functions of binary64 below: their series leave out less than 2^-55, and rounding
/// adds a few times 2^-53.
const ERROR: f64 = 1.0 / (1u64 << 46) as f64;

/// Adding this rounds a small number to an integer, which then stands in the low bits of the sum.
const INTEGER: f64 = 1.5 * (1u64 << 52) as f64;

/// A function of `sem`: format, modifiers, encoding.
type Scalar = fn(&Format, Mode, u64) -> u64;

/// A function of binary64, and what `sem` has for it.
trait Function: 'static {
    /// The value with a relative error below [`ERROR`]; NaN where it is not known that well.
    fn value(x: f64) -> f64;

    /// The semantics.
    const SEM: Scalar;

    /// Subnormal operands are zeros even without `.ftz`.
    const FLUSHES: bool = false;
}

struct Rounded<F, const FTZ: bool>(PhantomData<F>);

impl<F: Function, const FTZ: bool> Kernel for Rounded<F, FTZ> {
    #[inline(always)]
    unsafe fn run<P: Path>(args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements of 4 bytes.
            unsafe {
                let x: Block<f32> = load(args, 0, i);
                let (mut out, mut doubts) = ([0.0; BLOCK], [0u32; BLOCK]);
                for k in 0..BLOCK {
                    let x = if F::FLUSHES { flush::<true>(x[k]) } else { flush::<FTZ>(x[k]) };
                    let y = F::value(f64::from(x));
                    let (low, high) = ((y * (1.0 - ERROR)) as f32, (y * (1.0 + ERROR)) as f32);
                    // No result is so little below the normal numbers that it rounds to one of them.
                    out[k] = flush::<FTZ>(high);
                    // NaN is not equal.
                    doubts[k] = u32::from(low != high);
                }
                if doubts.iter().fold(0, |a, b| a | b) != 0 {
                    ask_sem::<F, FTZ>(&x, &doubts, &mut out);
                }
                store(args, 0, i, out);
            }
        }
    }
}

/// What `sem` makes of the lanes in doubt.
#[cold]
#[inline(never)]
fn ask_sem<F: Function, const FTZ: bool>(x: &Block<f32>, doubts: &Block<u32>, out: &mut Block<f32>) {
    let mode = Mode { ftz: FTZ, ..Mode::NEAREST };
    for (k, _) in doubts.iter().enumerate().filter(|(_, doubt)| **doubt != 0) {
        out[k] = f32::from_bits(F::SEM(&F32, mode, x[k].to_bits().into()) as u32);
    }
}

/// The sum of `terms[i]` x^i.
#[inline(always)]
fn polynomial<const N: usize>(terms: &[f64; N], x: f64) -> f64 {
    let mut sum = terms[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum * x + terms[i];
    }
    sum
}

/// Every `stride`th term of the series of e^(base x), from the one of x^`from` on.
const fn exponential<const N: usize>(base: f64, from: usize, stride: usize) -> [f64; N] {
    let mut terms = [0.0; N];
    let (mut term, mut power, mut i) = (1.0, 0, 0);
    while i < N {
        if power == from + i * stride {
            terms[i] = term;
            i += 1;
        }
        power += 1;
        term = term * base / power as f64;
    }
    terms
}

/// The nearest integer to a small number, as a number and, in its low bits, as an integer in two's complement.
#[inline(always)]
fn nearest(x: f64) -> (f64, u64) {
    let sum = x + INTEGER;
    (sum - INTEGER, sum.to_bits())
}

/// For |x| <= 1000: the integer n nearest to it as 2^n, and (2^(x - n) - 1) / (x - n).
#[inline(always)]
fn power(x: f64) -> (f64, f64, f64) {
    const TERMS: [f64; 13] = exponential(LN_2, 1, 1);
    let (integer, bits) = nearest(x);
    let fraction = x - integer;
    (f64::from_bits(bits.wrapping_add(1023) << 52), fraction, polynomial(&TERMS, fraction))
}

struct Ex2;

impl Function for Ex2 {
    #[inline(always)]
    fn value(x: f64) -> f64 {
        // Beyond, the result is zero or infinite. NaN stays.
        let x = if x > 200.0 { 200.0 } else { x };
        let x = if x < -200.0 { -200.0 } else { x };
        let (scale, fraction, slope) = power(x);
        scale * (slope * fraction + 1.0)
    }

    const SEM: Scalar = approx::ex2;
}

struct Tanh;

impl Function for Tanh {
    #[inline(always)]
    fn value(x: f64) -> f64 {
        // Beyond, the result rounds to 1. NaN stays.
        let magnitude = if x.abs() > 20.0 { 20.0 } else { x.abs() };
        // tanh x = s / (s + 2) with s = e^(2x) - 1.
        let (scale, fraction, slope) = power(magnitude * (2.0 / LN_2));
        let s = scale * (slope * fraction) + (scale - 1.0);
        (s / (s + 2.0)).copysign(x)
    }

    const SEM: Scalar = approx::tanh;
}

struct Lg2;

impl Function for Lg2 {
    #[inline(always)]
    fn value(x: f64) -> f64 {
        /// 2 / ln 2 times 1/1, 1/3, 1/5 ...
        const TERMS: [f64; 11] = {
            let mut terms = [0.0; 11];
            let mut k = 0;
            while k < terms.len() {
                terms[k] = 2.0 / LN_2 / (2 * k + 1) as f64;
                k += 1;
            }
            terms
        };
        // x = m * 2^k with m from sqrt 1/2 to sqrt 2; k + 1024 is positive.
        let above = x.to_bits().wrapping_sub(FRAC_1_SQRT_2.to_bits());
        let biased = above.wrapping_add(1024 << 52) >> 52;
        let m = f64::from_bits(x.to_bits().wrapping_sub(biased.wrapping_sub(1024) << 52));
        let k = f64::from_bits(INTEGER.to_bits() + biased) - (INTEGER + 1024.0);
        // log2 m = 2 / ln 2 * atanh z
        let z = (m - 1.0) / (m + 1.0);
        let y = k + z * polynomial(&TERMS, z * z);
        // A zero goes to `sem` too.
        if x > 0.0 && x < f64::INFINITY { y } else { f64::NAN }
    }

    const SEM: Scalar = approx::lg2;
}

/// The sine of x + `quarters` * pi/2.
#[inline(always)]
fn sine(x: f64, quarters: u64) -> f64 {
    /// pi/2 in pieces of 33, 33 and 53 bits: 20 bits times one of the first two is exact.
    const PI_2: [f64; 3] = [
        f64::from_bits(0x3ff9_21fb_5440_0000),
        f64::from_bits(0x3dd0_b461_1a60_0000),
        f64::from_bits(0x3ba3_198a_2e03_7073),
    ];
    /// x^1, x^3 ... and x^0, x^2 ...; in -x^2.
    const SINE: [f64; 9] = exponential(1.0, 1, 2);
    const COSINE: [f64; 9] = exponential(1.0, 0, 2);
    let (n, bits) = nearest(x * FRAC_2_PI);
    let r = x - n * PI_2[0] - n * PI_2[1] - n * PI_2[2];
    let square = -(r * r);
    let quadrant = bits.wrapping_add(quarters);
    let sine = r * polynomial(&SINE, square);
    let y = if quadrant & 1 != 0 { polynomial(&COSINE, square) } else { sine };
    let y = f64::from_bits(y.to_bits() ^ (quadrant & 2) << 62);
    if x.abs() < (1 << 20) as f64 { y } else { f64::NAN }
}

struct Sin;

impl Function for Sin {
    #[inline(always)]
    fn value(x: f64) -> f64 {
        sine(x, 0)
    }

    const SEM: Scalar = approx::sin;
    const FLUSHES: bool = true;
}

struct Cos;

impl Function for Cos {
    #[inline(always)]
    fn value(x: f64) -> f64 {
        sine(x, 1)
    }

    const SEM: Scalar = approx::cos;
}

fn rounded<F: Function, const FTZ: bool>(path: HostPath) -> LaneFn {
    version::<Rounded<F, FTZ>>(path)
}

/// The handler of `.approx{.ftz}.f32`.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    if picks.types() != [Type::F32] || sources != 1 || !only(picks, &[Mod::Approx, Mod::Ftz]) {
        return None;
    }
    let ftz = picks.has(Mod::Ftz);
    Some(match opcode {
        Opcode::Ex2 => flags!(rounded [Ex2] (path); ftz),
        Opcode::Lg2 => flags!(rounded [Lg2] (path); ftz),
        Opcode::Sin => flags!(rounded [Sin] (path); ftz),
        Opcode::Cos => flags!(rounded [Cos] (path); ftz),
        Opcode::Tanh => flags!(rounded [Tanh] (path); ftz),
        _ => return None,
    })
}
