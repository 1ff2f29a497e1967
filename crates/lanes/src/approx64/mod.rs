//! The approximate functions of binary64, which only emulators have: ex2, lg2, sin, cos.
//!
//! `sem` returns the exact value rounded to nearest. These functions compute the value as a sum of two numbers with
//! an error bound of about 2^-62 of the value. If the error could change the rounding (in one of a thousand results),
//! `sem` computes the lane.
//!
//! Operands with an obvious result (NaN, zero, tiny sines) are taken out first, and the others are computed side by
//! side. The tables have 16 entries, so `Path::look_up` can read them by a permutation.

mod tables;
mod trig;

use super::drive::{apply1, load, store};
use super::float::NAN64;
use super::macros::flags;
use super::numbers::fused;
use super::path::{Aligned, BLOCK, Block, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn};
use isa::{Mod, Opcode, Picks, Type};
use sem::approx;
use sem::format::{F64, Format};
use sem::round::Mode;
use std::marker::PhantomData;
use std::ops::Range;
use tables::{INVERSES, LN_2, LOG2_E, LOGARITHMS, POWERS};

/// The rounding unit: the maximum relative error of one rounding.
const UNIT: f64 = 1.0 / (1u64 << 53) as f64;

/// Bound of the relative error from neglected terms, sums of low parts and `sem` itself, in addition to the errors
/// that the functions account for.
const NEGLECTED: f64 = UNIT / (1 << 12) as f64;

/// Adding this number rounds a small number to an integer, which is then in the low bits of the sum.
const INTEGER: f64 = 1.5 * (1u64 << 52) as f64;

/// The integer nearest to x * scale, which must be below 2^50: as a number and, in its low bits, as an integer in
/// two's complement.
#[inline(always)]
fn nearest<P: Path>(x: f64, scale: f64) -> (f64, u64) {
    let sum = fused::<P>(x, scale, INTEGER);
    (sum - INTEGER, sum.to_bits())
}

/// x * y and its rounding error. |x| and |y| must be less than 2^990.
#[inline(always)]
fn two_product<P: Path>(x: f64, y: f64) -> (f64, f64) {
    let product = x * y;
    if P::FUSED {
        return (product, x.mul_add(y, -product));
    }
    // Halves of 26 bits have exact products (Dekker, "A floating-point technique for extending the available
    // precision", 1971).
    let ((x1, x0), (y1, y0)) = (halves(x), halves(y));
    (product, x0 * y0 - (((product - x1 * y1) - x0 * y1) - x1 * y0))
}

/// A number as a sum of two numbers of 26 bits.
#[inline(always)]
fn halves(x: f64) -> (f64, f64) {
    let scaled = ((1 << 27) + 1) as f64 * x;
    let high = scaled - (scaled - x);
    (high, x - high)
}

/// x + y and its rounding error. x must be zero or |x| >= |y|.
#[inline(always)]
fn fast_two_sum(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    (sum, y - (sum - x))
}

/// The sum of `terms[i]` x^i.
#[inline(always)]
fn polynomial<P: Path, const N: usize>(terms: [f64; N], x: f64) -> f64 {
    let mut sum = terms[N - 1];
    for i in (0..N - 1).rev() {
        sum = fused::<P>(sum, x, terms[i]);
    }
    sum
}

/// A sum of two numbers, rounded. The second result is all ones if this error could change the rounding, or if the
/// sum is NaN.
#[inline(always)]
fn certain(high: f64, low: f64, error: f64) -> (f64, u64) {
    let (below, above) = (high + (low - error), high + (low + error));
    (below, if below == above { 0 } else { u64::MAX })
}

/// The results of a function for a block, and all ones in the lanes that `sem` must compute, zero in the others.
type Results = (Block<f64>, Block<u64>);

/// A function of binary64, and its semantics in `sem`.
trait Function: 'static {
    /// Whether [`values`](Self::values) accepts the operand.
    fn is_usual(x: f64) -> bool;

    /// The value of an operand that is neither usual nor NaN.
    fn unusual(x: f64) -> f64;

    /// The values of a block of usual operands.
    fn values<P: Path>(path: P, x: &Block<f64>) -> Results;

    /// The function of `sem`.
    const SEM: fn(&Format, Mode, u64) -> u64;
}

struct Rounded<F>(PhantomData<F>);

/// Number of blocks that are classified together.
const CHUNK: usize = 16;

impl<F: Function> Kernel for Rounded<F> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        let blocks = args.lanes / BLOCK;
        for first in (0..blocks).step_by(CHUNK) {
            let chunk = first..(first + CHUNK).min(blocks);
            let mut usual = [u16::MAX; CHUNK];
            // SAFETY: the source and the destination have `lanes` elements of 8 bytes.
            unsafe {
                for i in chunk.clone() {
                    let x: Block<f64> = load(args, 0, i);
                    let mut others = [0; BLOCK];
                    for k in 0..BLOCK {
                        others[k] = if F::is_usual(x[k]) { 0 } else { u64::MAX };
                    }
                    usual[i - first] = !path.top_bits64(others);
                }
                if usual == [u16::MAX; CHUNK] {
                    for i in chunk {
                        store(path, args, 0, i, rounded::<F, _>(path, load(args, 0, i)));
                    }
                } else {
                    mixed::<F, _>(path, args, chunk, usual);
                }
            }
        }
    }
}

/// Computes a chunk that has unusual operands: packs the usual operands, computes their values and expands these
/// again.
///
/// # Safety
/// As for [`Kernel::run`], of the blocks of the chunk.
#[inline(always)]
unsafe fn mixed<F: Function, P: Path>(path: P, args: &LaneArgs, chunk: Range<usize>, usual: [u16; CHUNK]) {
    const ONE: u64 = 1f64.to_bits();
    // A spare block after the last operands leaves room for whole-block writes.
    let mut packed = Aligned([ONE; (CHUNK + 1) * BLOCK]);
    let packed = &mut packed.0;
    let mut count = 0;
    // SAFETY: the caller's promise.
    unsafe {
        for (i, mask) in chunk.clone().zip(usual) {
            let to = packed[count..].first_chunk_mut().expect("room");
            path.compress64(load(args, 0, i), mask, to);
            count += mask.count_ones() as usize;
        }
        // Ones fill the last block: they never need `sem`.
        packed[count..][..BLOCK].fill(ONE);
        for block in packed[..count.next_multiple_of(BLOCK)].as_chunks_mut().0 {
            *block = rounded::<F, _>(path, block.map(f64::from_bits)).map(f64::to_bits);
        }
        let mut count = 0;
        for (i, mask) in chunk.zip(usual) {
            let x: Block<f64> = load(args, 0, i);
            let values = path.expand64(packed[count..].first_chunk().expect("room"), mask);
            count += mask.count_ones() as usize;
            let magnitudes = x.map(|x| x.to_bits() & !(1 << 63));
            let nan = path.top_bits64(magnitudes.map(|bits| f64::INFINITY.to_bits().wrapping_sub(bits)));
            let others = apply1(|x| F::unusual(x).to_bits(), x);
            let others = path.select64(nan, x.map(|x| x.to_bits() | 1 << 51), others);
            store(path, args, 0, i, path.select64(mask, values, others));
        }
    }
}

/// The results of usual operands.
#[inline(always)]
fn rounded<F: Function, P: Path>(path: P, x: Block<f64>) -> Block<f64> {
    let (values, doubts) = F::values(path, &x);
    let (mut out, doubts) = (Aligned(values), Aligned(doubts));
    if path.top_bits64(doubts.0) != 0 {
        ask_sem::<F>(&Aligned(x), &doubts, &mut out);
    }
    out.0
}

/// Computes the lanes in doubt by `sem`.
#[cold]
#[inline(never)]
fn ask_sem<F: Function>(
    x: &Aligned<Block<f64>>,
    doubts: &Aligned<Block<u64>>,
    out: &mut Aligned<Block<f64>>,
) {
    for (k, _) in doubts.0.iter().enumerate().filter(|(_, doubt)| **doubt != 0) {
        out.0[k] = f64::from_bits(F::SEM(&F64, Mode::NEAREST, x.0[k].to_bits()));
    }
}

/// 1/n!, 1/(n + stride)! and so on, starting from n = `from`; with `alternate` every second one is negated.
const fn inverse_factorials<const N: usize>(from: usize, stride: usize, alternate: bool) -> [f64; N] {
    let mut terms = [0.0; N];
    let (mut factorial, mut n, mut i) = (1u64, 0, 0);
    while i < N {
        if n == from + i * stride {
            terms[i] = if alternate && i % 2 == 1 { -1.0 } else { 1.0 } / factorial as f64;
            i += 1;
        }
        n += 1;
        factorial *= n as u64;
    }
    terms
}

struct Ex2;

impl Function for Ex2 {
    #[inline(always)]
    fn is_usual(x: f64) -> bool {
        /// Below this magnitude, the result is 1.
        const TINY: f64 = 1.0 / (1u64 << 56) as f64;
        // Outside of this range, the result is zero or infinite.
        (x.abs() >= TINY) & (-1075.0..1024.0).contains(&x)
    }

    #[inline(always)]
    fn unusual(x: f64) -> f64 {
        let y = if x >= 1024.0 { f64::INFINITY } else { 1.0 };
        if x < -1075.0 { 0.0 } else { y }
    }

    #[inline(always)]
    fn values<P: Path>(path: P, x: &Block<f64>) -> Results {
        /// Terms of e^t = 1 + t + t^2 (1/2! + t/3! + ...) for |t| <= ln 2 / 32. The neglected terms are below 2^-68.
        const TERMS: [f64; 7] = inverse_factorials(2, 1, false);
        // x = n/16 + rest
        let (mut index, mut rests) = ([0; BLOCK], [0.0; BLOCK]);
        for k in 0..BLOCK {
            let sixteenths;
            (sixteenths, index[k]) = nearest::<P>(x[k], 16.0);
            rests[k] = fused::<P>(sixteenths, -1.0 / 16.0, x[k]);
        }
        let (power, power_low) = (path.look_up(&POWERS.high, index), path.look_up(&POWERS.low, index));
        let (mut out, mut doubts) = ([0.0; BLOCK], [0; BLOCK]);
        for k in 0..BLOCK {
            let (t, t_low) = two_product::<P>(rests[k], LN_2.0);
            let t_low = fused::<P>(rests[k], LN_2.1, t_low);
            let square = t * t;
            // e^t = 1 + t + rest
            let rest = fused::<P>(square, polynomial::<P, _>(TERMS, t), fused::<P>(t, t_low, t_low));
            let (product, product_low) = two_product::<P>(power[k], t);
            let (high, low) = fast_two_sum(power[k], product);
            let lows = fused::<P>(power_low[k], t, power_low[k]) + product_low;
            let low = low + fused::<P>(power[k], rest, lows);
            // These terms are rounded: the square, the polynomial, products with half the square and four sums of
            // that size. Together that is 4 units of the square.
            let error = high * fused::<P>(square, 4.25 * UNIT, NEGLECTED);
            let (value, doubt) = certain(high, low, error);
            out[k] = f64::from_bits(value.to_bits().wrapping_add(index[k] >> 4 << 52));
            // Results below the normal numbers are rounded differently.
            doubts[k] = if x[k] < -1022.0 { u64::MAX } else { doubt };
        }
        (out, doubts)
    }

    const SEM: fn(&Format, Mode, u64) -> u64 = approx::ex2;
}

struct Lg2;

impl Function for Lg2 {
    #[inline(always)]
    fn is_usual(x: f64) -> bool {
        // In integers, because LLVM turns the comparisons into a test of floating-point classes, which it cannot
        // vectorize.
        x.to_bits().wrapping_sub(1) < f64::INFINITY.to_bits() - 1
    }

    #[inline(always)]
    fn unusual(x: f64) -> f64 {
        let y = if x < 0.0 { NAN64 } else { x };
        if x == 0.0 { f64::NEG_INFINITY } else { y }
    }

    #[inline(always)]
    fn values<P: Path>(path: P, x: &Block<f64>) -> Results {
        /// 2^64, a factor that makes subnormal numbers normal.
        const UP: f64 = (1u128 << 64) as f64;
        /// Terms of log(1 + r) = r - r^2/2 + r^3 (1/3 - r/4 + ...) for |r| < 0.035. The neglected terms are below
        /// 2^-67 of the value.
        const TERMS: [f64; 11] = {
            let mut terms = [0.0; 11];
            let mut n = 0;
            while n < terms.len() {
                terms[n] = if n % 2 == 1 { -1.0 } else { 1.0 } / (n + 3) as f64;
                n += 1;
            }
            terms
        };
        // x = 2^exponent * m, where 1 + index/16 is the nearest of these numbers to m; m is at least 1 - 1/64.
        let (mut index, mut significands, mut exponents) = ([0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        for k in 0..BLOCK {
            let small = x[k] < f64::MIN_POSITIVE;
            let bits = if small { x[k] * UP } else { x[k] }.to_bits();
            index[k] = bits.wrapping_add(1 << 47) >> 48;
            let biased = index[k] >> 4;
            significands[k] = f64::from_bits(bits.wrapping_sub(biased << 52).wrapping_add(1023 << 52));
            let bias = if small { INTEGER + (1023.0 + 64.0) } else { INTEGER + 1023.0 };
            exponents[k] = f64::from_bits(INTEGER.to_bits() + biased) - bias;
        }
        let (inverse, logarithm, logarithm_low) = {
            let logarithms = (path.look_up(&LOGARITHMS.high, index), path.look_up(&LOGARITHMS.low, index));
            (path.look_up(&INVERSES, index), logarithms.0, logarithms.1)
        };
        let (mut out, mut doubts) = ([0.0; BLOCK], [0; BLOCK]);
        for k in 0..BLOCK {
            // Exact: the product is a multiple of 2^-58, or of 2^-57 if it differs from 1 by at least 2^-5.
            let (product, rest) = two_product::<P>(significands[k], inverse[k]);
            let r = (product - 1.0) + rest;
            let (square, square_low) = two_product::<P>(r, r);
            let (high, low) = fast_two_sum(r, -0.5 * square);
            let cube = r * square;
            let low = fused::<P>(cube, polynomial::<P, _>(TERMS, r), fused::<P>(-0.5, square_low, low));
            let (product, product_low) = two_product::<P>(high, LOG2_E.0);
            let product_low = fused::<P>(low, LOG2_E.0, fused::<P>(high, LOG2_E.1, product_low));
            // Zero, or more than twice the product that is added.
            let base = exponents[k] + logarithm[k];
            let (high, low) = fast_two_sum(base, product);
            let low = low + (product_low + logarithm_low[k]);
            // These terms are rounded: square and cube, the polynomial, products with a third of the cube and five
            // sums of that size. Times 1.44, that is 4.8 units of the cube.
            let error = fused::<P>(cube.abs(), 5.0 * UNIT, high.abs() * NEGLECTED);
            (out[k], doubts[k]) = certain(high, low, error);
        }
        (out, doubts)
    }

    const SEM: fn(&Format, Mode, u64) -> u64 = approx::lg2;
}

/// The handler of `.approx.f64`.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    if picks.types() != [Type::F64] || picks.mods() != [Mod::Approx] || sources != 1 {
        return None;
    }
    Some(match opcode {
        Opcode::Ex2 => version::<Rounded<Ex2>>(path),
        Opcode::Lg2 => version::<Rounded<Lg2>>(path),
        Opcode::Sin | Opcode::Cos => flags!(circular(path); opcode == Opcode::Cos),
        _ => return None,
    })
}

fn circular<const COSINE: bool>(path: HostPath) -> LaneFn {
    version::<Rounded<trig::Circular<COSINE>>>(path)
}
