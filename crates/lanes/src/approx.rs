//! The approximate functions of binary32 and the halves: ex2, lg2, sin, cos, tanh.
//!
//! `sem` returns the exact value rounded to nearest, of `sin` and `cos` that of the angle in turns. These functions compute the value in binary64 with an error far
//! below [`ERROR`]. If that error could change the rounding (in one of fifty thousand results), `sem` computes the
//! lane.
//!
//! Some functions of halves use tables of all 65,536 values. The functions' own code fills the tables on first use.

use super::drive::{Bf16, F16, Half, apply1, in_pairs, load, store};
use super::float::{finish, flush};
use super::macros::{flags, multiversion};
use super::numbers::fused;
use super::path::{Aligned, BLOCK, Block, Kernel, Parametric, Path, version, version_with};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Opcode, Picks, Type};
use sem::approx;
use sem::format::{self, F32, Format};
use sem::round::Mode;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, LN_2};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Bound of the relative error of the binary64 functions below: the neglected terms of their series are below 2^-43,
/// and rounding adds a few times 2^-53.
const ERROR: f64 = 1.0 / (1u64 << 40) as f64;

/// Adding this number rounds a small number to an integer, which is then in the low bits of the sum.
const INTEGER: f64 = 1.5 * (1u64 << 52) as f64;

/// A function of `sem`: format, modifiers, encoding.
type Scalar = fn(&Format, Mode, u64) -> u64;

/// A function of binary64, and its semantics in `sem`.
trait Function: 'static {
    /// The value with a relative error below [`ERROR`]; with `SHORT`, with an error well below half a unit in the
    /// last place of binary32.
    fn value<P: Path, const SHORT: bool>(x: f64) -> f64 {
        x
    }

    /// The values of a block.
    #[inline(always)]
    fn values<P: Path, const SHORT: bool>(_: P, x: Block<f32>) -> Block<f64> {
        apply1(|x: f32| Self::value::<P, SHORT>(x.into()), x)
    }

    /// The function of `sem`.
    const SEM: Scalar;

    /// Subnormal operands are zeros even without `.ftz`.
    const FLUSHES: bool = false;

    /// No value is subnormal, or near enough to the subnormal numbers to round to one.
    const NORMAL: bool = false;
}

struct Rounded<F, const FTZ: bool>(PhantomData<F>);

impl<F: Function, const FTZ: bool> Kernel for Rounded<F, FTZ> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements of 4 bytes.
            unsafe {
                let x = Aligned(load(args, 0, i));
                let flushed = apply1(|x| if F::FLUSHES { flush::<true>(x) } else { flush::<FTZ>(x) }, x.0);
                let values = F::values::<_, false>(path, flushed);
                let (out, doubts) = match F::NORMAL {
                    true => {
                        (apply1(|y| finish::<false>(y as f32), values), path.top_bits64(values.map(doubt)))
                    }
                    false => round_with_doubts::<_, FTZ>(path, values),
                };
                let mut out = Aligned(out);
                if doubts != 0 {
                    ask_sem::<F, FTZ>(&x, doubts, &mut out);
                }
                store(path, args, 0, i, out.0);
            }
        }
    }
}

/// Sets the top bit if a binary64 number is so near the midpoint of two normal binary32 numbers that an error within
/// [`ERROR`] may change its rounding.
#[inline(always)]
fn doubt(y: f64) -> u64 {
    /// The bits that binary32 drops, and the middle of their range.
    const REST: u64 = (1 << 29) - 1;
    const MIDDLE: u64 = 1 << 28;
    /// The error in units in the last place; a number has less than 2^53 of them.
    const UNITS: u64 = (ERROR * (1u64 << 53) as f64) as u64;
    (y.to_bits().wrapping_sub(MIDDLE - UNITS) & REST).wrapping_sub(2 * UNITS)
}

/// Rounds binary64 values, and returns the lanes in which an error within [`ERROR`] may change the rounding.
#[inline(always)]
fn round_with_doubts<P: Path, const FTZ: bool>(path: P, values: Block<f64>) -> (Block<f32>, u16) {
    let (mut out, mut doubts) = ([0.0; BLOCK], [0; BLOCK]);
    for (k, y) in values.into_iter().enumerate() {
        let (low, high) = ((y * (1.0 - ERROR)) as f32, (y * (1.0 + ERROR)) as f32);
        // No result is so close below the normal numbers that it rounds to one of them.
        out[k] = finish::<false>(flush::<FTZ>(high));
        doubts[k] = if (low != high) & !y.is_nan() { u32::MAX } else { 0 };
    }
    (out, path.top_bits32(doubts))
}

/// Computes the lanes in doubt by `sem`.
#[cold]
#[inline(never)]
fn ask_sem<F: Function, const FTZ: bool>(
    x: &Aligned<Block<f32>>,
    doubts: u16,
    out: &mut Aligned<Block<f32>>,
) {
    let mode = Mode { ftz: FTZ, ..Mode::NEAREST };
    for k in (0..BLOCK).filter(|k| doubts >> k & 1 != 0) {
        out.0[k] = f32::from_bits(F::SEM(&F32, mode, x.0[k].to_bits().into()) as u32);
    }
}

/// The function on halves, which need fewer terms; with or without `.ftz` (bfloat16 too).
struct RoundedHalf<F, H, const FTZ: bool>(PhantomData<(F, H)>);

/// A half's format in `sem`.
trait HalfFormat: Half {
    const FORMAT: Format;
}

impl HalfFormat for F16 {
    const FORMAT: Format = format::F16;
}

impl HalfFormat for Bf16 {
    const FORMAT: Format = format::BF16;
}

impl<F: Function, H: HalfFormat, const FTZ: bool> Kernel for RoundedHalf<F, H, FTZ> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` halves.
            unsafe {
                let operands: Block<u16> = load(args, 0, i);
                let x = apply1(flush::<FTZ>, H::widen(path, operands));
                let values = apply1(|y: f64| y as f32, F::values::<_, true>(path, x));
                // The exact value is between the neighbours of this one.
                let neighbour = |y: f32, step: u32| {
                    let certain = (y == 0.0) | y.is_nan() | y.is_infinite();
                    if certain { y } else { f32::from_bits(y.to_bits().wrapping_add(step)) }
                };
                let low = apply1(|y| flush::<FTZ>(neighbour(y, u32::MAX)), values);
                let high = apply1(|y| flush::<FTZ>(neighbour(y, 1)), values);
                let (low, mut out) = (H::narrow(path, low), H::narrow(path, high));
                let mut doubts = [0; BLOCK];
                for k in 0..BLOCK {
                    doubts[k] = low[k] ^ out[k];
                }
                if doubts.iter().fold(0, |a, b| a | b) != 0 {
                    let mode = Mode { ftz: FTZ, ..Mode::NEAREST };
                    for k in (0..BLOCK).filter(|&k| doubts[k] != 0) {
                        out[k] = F::SEM(&H::FORMAT, mode, operands[k].into()) as u16;
                    }
                }
                store(path, args, 0, i, out);
            }
        }
    }
}

/// The sum of `terms[i]` x^i.
#[inline(always)]
pub(super) fn polynomial<P: Path, const N: usize>(terms: &[f64; N], x: f64) -> f64 {
    let mut sum = terms[N - 1];
    for i in (0..N - 1).rev() {
        sum = fused::<P>(sum, x, terms[i]);
    }
    sum
}

/// Every `stride`th term of the series of e^(base x), starting from x^`from`.
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

/// Shortens a series to its first terms, changed to minimize the error for x from 0 to `limit`. Each dropped term is
/// replaced by the lower terms of the Chebyshev polynomial of its degree (Lanczos, "Applied Analysis", 1956).
const fn economize<const N: usize, const M: usize>(mut terms: [f64; M], limit: f64) -> [f64; N] {
    let mut degree = M;
    while degree > N {
        degree -= 1;
        // The Chebyshev polynomials of this degree and the one before, shifted to x from 0 to 1: T(n+1) = (4x - 2)
        // T(n) - T(n-1).
        let (mut before, mut last) = ([0.0; M], [0.0; M]);
        (before[0], last[0], last[1]) = (1.0, -1.0, 2.0);
        let mut n = 1;
        while n < degree {
            let mut next = [0.0; M];
            let mut i = 0;
            while i < M {
                next[i] = if i > 0 { 4.0 * last[i - 1] } else { 0.0 } - 2.0 * last[i] - before[i];
                i += 1;
            }
            (before, last) = (last, next);
            n += 1;
        }
        // In x / limit, scaled so that the leading term is that of the series.
        let (mut i, mut scale) = (degree, terms[degree] / last[degree]);
        while i > 0 {
            i -= 1;
            scale *= limit;
            terms[i] -= scale * last[i];
        }
    }
    let mut first = [0.0; N];
    let mut i = 0;
    while i < N {
        first[i] = terms[i];
        i += 1;
    }
    first
}

/// The integer nearest to a small number: as a number and, in its low bits, as an integer in two's complement.
#[inline(always)]
fn nearest(x: f64) -> (f64, u64) {
    let sum = x + INTEGER;
    (sum - INTEGER, sum.to_bits())
}

/// For |x| <= 1000 and the integer n nearest to x: 2^n, x - n, and (2^(x - n) - 1) / (x - n).
#[inline(always)]
fn power<P: Path, const SHORT: bool>(x: f64) -> (f64, f64, f64) {
    const TERMS: [f64; 11] = exponential(LN_2, 1, 1);
    const FEW_TERMS: [f64; 7] = exponential(LN_2, 1, 1);
    let (integer, bits) = nearest(x);
    let fraction = x - integer;
    let slope =
        if SHORT { polynomial::<P, _>(&FEW_TERMS, fraction) } else { polynomial::<P, _>(&TERMS, fraction) };
    (f64::from_bits(bits.wrapping_add(1023) << 52), fraction, slope)
}

struct Ex2;

impl Function for Ex2 {
    #[inline(always)]
    fn value<P: Path, const SHORT: bool>(x: f64) -> f64 {
        // Outside of this range, the result is zero or infinite. NaN stays.
        let x = if x > 200.0 { 200.0 } else { x };
        let x = if x < -200.0 { -200.0 } else { x };
        let (scale, fraction, slope) = power::<P, SHORT>(x);
        scale * (slope * fraction + 1.0)
    }

    const SEM: Scalar = approx::ex2;
}

struct Tanh;

impl Function for Tanh {
    #[inline(always)]
    fn value<P: Path, const SHORT: bool>(x: f64) -> f64 {
        // Above this magnitude, the result rounds to 1. NaN stays.
        let magnitude = if x.abs() > 20.0 { 20.0 } else { x.abs() };
        // tanh x = s / (s + 2) with s = e^(2x) - 1.
        let (scale, fraction, slope) = power::<P, SHORT>(magnitude * (2.0 / LN_2));
        let s = scale * (slope * fraction) + (scale - 1.0);
        (s / (s + 2.0)).copysign(x)
    }

    const SEM: Scalar = approx::tanh;
}

struct Lg2;

impl Function for Lg2 {
    #[inline(always)]
    fn value<P: Path, const SHORT: bool>(x: f64) -> f64 {
        /// 2 / ln 2 times 1/1, 1/3, 1/5 ...
        const TERMS: [f64; 8] = {
            let mut terms = [0.0; 8];
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
        let y = k + z * polynomial::<P, _>(&TERMS, z * z);
        let y = if x < f64::INFINITY { y } else { x };
        let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
        if x < 0.0 { f64::NAN } else { y }
    }

    const SEM: Scalar = approx::lg2;
    const NORMAL: bool = true;
}

/// The sine of an angle (from -pi/4 to pi/4) plus `quarters` quarter turns.
#[inline(always)]
fn sine<P: Path>(angle: f64, quarters: u64) -> f64 {
    /// The terms of x^1, x^3 ... and of x^0, x^2 ...; as polynomials in -x^2.
    const SINE: [f64; 6] = economize::<6, 9>(exponential(1.0, 1, 2), -LIMIT);
    const COSINE: [f64; 6] = economize::<6, 9>(exponential(1.0, 0, 2), -LIMIT);
    /// Slightly more than (pi/4)^2.
    const LIMIT: f64 = 0.617;
    let square = -(angle * angle);
    let sine = angle * polynomial::<P, _>(&SINE, square);
    let y = if quarters & 1 != 0 { polynomial::<P, _>(&COSINE, square) } else { sine };
    f64::from_bits(y.to_bits() ^ (quarters & 2) << 62)
}

/// sin, or cos.
struct Circular<const COSINE: bool>;

impl<const COSINE: bool> Function for Circular<COSINE> {
    #[inline(always)]
    fn values<P: Path, const SHORT: bool>(path: P, x: Block<f32>) -> Block<f64> {
        let turns = |x: f32| {
            // The product is exact, and has at least 24 zeros below binary32's places; cutting it rounds toward zero.
            let product = f64::from(x) * f64::from(f32::from_bits(approx::TURN));
            let cut = f64::from_bits(product.to_bits() & !0 << (53 - 24));
            // A subnormal has fewer places, and would be rounded.
            let small = cut.abs() < f64::from(f32::MIN_POSITIVE);
            (if small { cut * 0.0 } else { cut }) as f32
        };
        Cycles::<COSINE>::values::<P, SHORT>(path, apply1(turns, x))
    }

    const SEM: Scalar = if COSINE { approx::cos } else { approx::sin };
    const FLUSHES: bool = true;
    const NORMAL: bool = true;
}

/// sin, or cos, of an angle in cycles.
struct Cycles<const COSINE: bool>;

impl<const COSINE: bool> Function for Cycles<COSINE> {
    #[inline(always)]
    fn values<P: Path, const SHORT: bool>(_: P, x: Block<f32>) -> Block<f64> {
        /// From this magnitude on, numbers are whole cycles.
        const WHOLE: f32 = (1 << 23) as f32;
        let value = |x: f32| {
            let magnitude = x.abs();
            // Infinity becomes NaN.
            let turns = 4.0 * f64::from(if magnitude < WHOLE { magnitude } else { magnitude * 0.0 });
            let (n, bits) = nearest(turns);
            let value = sine::<P>((turns - n) * FRAC_PI_2, bits.wrapping_add(u64::from(COSINE)));
            // The result gets the sign of x for the sine (sin -x = -sin x); a zero is made positive first.
            let sign = u64::from(x.to_bits() & if COSINE { 0 } else { 1 << 31 }) << 32;
            f64::from_bits((value + 0.0).to_bits() ^ sign)
        };
        apply1(value, x)
    }

    const SEM: Scalar = if COSINE { approx::cos_cycles } else { approx::sin_cycles };
    const FLUSHES: bool = true;
    const NORMAL: bool = true;
}

fn rounded<F: Function, const FTZ: bool>(path: HostPath) -> LaneFn {
    version::<Rounded<F, FTZ>>(path)
}

/// All values of a function of a half.
type Table = Box<[u16]>;

/// Looks values up in a table, which is computed on first use.
struct Tabulated;

impl Parametric for Tabulated {
    type With = (&'static OnceLock<Table>, LaneKernel);

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, &(table, kernel): &Self::With) {
        // SAFETY: the kernel was compiled for the same path as this function, so the machine has it.
        let table = table.get_or_init(|| unsafe { table_of(kernel) });
        let table: &[u16; 1 << 16] = table.as_ref().try_into().expect("a value for every half");
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` halves.
            unsafe { store(path, args, 0, i, apply1(|x: u16| table[usize::from(x)], load(args, 0, i))) }
        }
    }
}

/// A function of halves, compiled for a path.
type LaneKernel = unsafe fn(&LaneArgs);

/// Computes all values of a function; this takes less than a millisecond.
///
/// # Safety
/// The machine must have the function's path.
#[cold]
#[inline(never)]
unsafe fn table_of(kernel: LaneKernel) -> Table {
    let operands: Vec<u16> = (0..=u16::MAX).collect();
    let mut values = vec![0; operands.len()].into_boxed_slice();
    let none = std::ptr::null();
    let args = LaneArgs {
        dst: [values.as_mut_ptr().cast(), std::ptr::null_mut()],
        src: [operands.as_ptr().cast(), none, none, none, none],
        step: [size_of::<Block<u16>>(), 0, 0, 0, 0],
        lanes: operands.len(),
    };
    // SAFETY: both arrays have this many halves; the caller's promise.
    unsafe { kernel(&args) }
    values
}

/// A handler that looks up the results of a kernel on halves.
macro_rules! tabulated {
    ($kernel:ty, $path:expr) => {{
        static TABLES: [OnceLock<Table>; HostPath::ALL.len()] = [const { OnceLock::new() }; HostPath::ALL.len()];
        let path: HostPath = $path;
        let kernel = multiversion!(path, [] (args: &LaneArgs), p => {
            // SAFETY: compiled for the path; the caller's promise.
            unsafe { <$kernel>::run(p, args) }
        });
        let index = HostPath::ALL.iter().position(|known| *known == path)?;
        version_with::<Tabulated>(path, (&TABLES[index], kernel as LaneKernel))
    }};
}

/// The handler of `.approx{.ftz}` of binary32 and the halves.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let &[ty] = picks.types() else { return None };
    if sources != 1 || !only(picks, &[Mod::Approx, Mod::Ftz, Mod::N2pi]) {
        return None;
    }
    if picks.has(Mod::N2pi) {
        return Some(match opcode {
            Opcode::Sin => rounded::<Cycles<false>, false>(path),
            Opcode::Cos => rounded::<Cycles<true>, false>(path),
            _ => return None,
        });
    }
    let ftz = picks.has(Mod::Ftz);
    let handler = match (opcode, ty.element(), ftz) {
        (Opcode::Ex2, Type::F32, _) => flags!(rounded [Ex2] (path); ftz),
        (Opcode::Lg2, Type::F32, _) => flags!(rounded [Lg2] (path); ftz),
        // Subnormal operands count as zero, and no other operand has a subnormal result, so `.ftz` has no effect.
        (Opcode::Sin, Type::F32, _) => rounded::<Circular<false>, false>(path),
        (Opcode::Cos, Type::F32, _) => rounded::<Circular<true>, false>(path),
        (Opcode::Tanh, Type::F32, _) => flags!(rounded [Tanh] (path); ftz),
        (Opcode::Ex2, Type::F16, false) => tabulated!(RoundedHalf<Ex2, F16, false>, path),
        (Opcode::Ex2, Type::Bf16, true) => tabulated!(RoundedHalf<Ex2, Bf16, true>, path),
        (Opcode::Tanh, Type::F16, false) => tabulated!(RoundedHalf<Tanh, F16, false>, path),
        (Opcode::Tanh, Type::Bf16, false) => tabulated!(RoundedHalf<Tanh, Bf16, false>, path),
        _ => return None,
    };
    Some(if ty.lanes() == 2 { in_pairs(2, handler) } else { handler })
}
