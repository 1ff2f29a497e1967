//! binary64 rounded toward zero (`.rz`), down (`.rm`) and up (`.rp`), and `rsqrt.approx.f64`.
//!
//! The host rounds to nearest. The sign of the rounding error shows whether the result must move to its neighbour.
//! One `fma` computes that error with the right sign if its operands are far from overflow and underflow. So operands
//! are first split into numbers from 1 to 2 and powers of two.

use super::drive::{load, store};
use super::encoding::{Direction, directed};
use super::float::finish64;
use super::numbers::two_sum;
use super::path::{BLOCK, Block, Kernel, Parametric, Path, version, version_with};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Opcode, Picks, Rounding, Type};
use sem::format::F64;
use sem::round::Mode;

/// Splits x into a number from 1 to 2 (or zero) and the exponent of a power of two.
#[inline(always)]
fn apart(x: f64) -> (f64, i64) {
    const UP: f64 = (1u128 << 64) as f64;
    let small = x.abs() < f64::MIN_POSITIVE;
    let y = if small { x * UP } else { x };
    let bits = y.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i64 - 1023 - if small { 64 } else { 0 };
    let significand = f64::from_bits(bits & !(0x7ff << 52) | 0x3ff << 52);
    (if x == 0.0 { x } else { significand }, exponent)
}

/// 2^n, for exponents of normal numbers.
#[inline(always)]
fn power(n: i64) -> f64 {
    f64::from_bits(((n + 1023) << 52) as u64)
}

/// x 2^n, if neither overflows; |n| is limited to 2000.
#[inline(always)]
fn scaled(x: f64, n: i64) -> f64 {
    let n = n.clamp(-2000, 2000);
    let half = ((n + 4096) >> 1) - 2048;
    x * power(half) * power(n - half)
}

/// Operations, as const generics take them.
pub(super) const ADD: u8 = 0;
pub(super) const SUB: u8 = 1;
pub(super) const MUL: u8 = 2;
pub(super) const FMA: u8 = 3;
pub(super) const DIV: u8 = 4;
pub(super) const RCP: u8 = 5;
pub(super) const SQRT: u8 = 6;

/// The sign of x * y + z - sum, where `sum` is the rounded x * y + z; NaN if the sign cannot be determined this way.
#[inline(always)]
fn residue(x: f64, y: f64, z: f64, sum: f64) -> f64 {
    /// If the exponents differ by more than this, only the sign of the lesser term matters.
    const FAR: i64 = 300;
    let ((a, n), (b, m), (c, l)) = (apart(x), apart(y), apart(z));
    let (product, exponent) = (a * b, n + m);
    let error = a.mul_add(b, -product);
    // In units of 2^exponent. If the addend is far larger, only the sign of the product matters as well.
    let distance = l - exponent;
    let addend = scaled(c, distance.clamp(-FAR, FAR));
    let (high, low) = two_sum(product, addend);
    let (difference, rest) = two_sum(high, -scaled(sum, -exponent));
    let (small, smaller) = two_sum(low, error);
    let (first, second) = two_sum(difference, small);
    let others = second + (rest + smaller);
    let sign = if first == 0.0 { rest + smaller } else { first };
    let certain = (first == 0.0) | (first.abs() > 4.0 * others.abs());
    let sign = if certain { sign } else { f64::NAN };
    let sign = if (distance > FAR) & (c != 0.0) { product } else { sign };
    if product == 0.0 { 0.0 } else { sign }
}

/// The exact result minus the rounded one; only its sign is meaningful.
#[inline(always)]
fn rest<const OPERATION: u8>([x, y, z]: [f64; 3], nearest: f64) -> f64 {
    match OPERATION {
        ADD | SUB => two_sum(x, y).1,
        MUL => {
            let ((a, n), (b, m)) = (apart(x), apart(y));
            a.mul_add(b, -scaled(nearest, -n - m))
        }
        FMA => residue(x, y, z, nearest),
        DIV | RCP => {
            let ((a, n), (b, m)) = (apart(x), apart(y));
            let rest = (-scaled(nearest, m - n)).mul_add(b, a);
            f64::from_bits(rest.to_bits() ^ y.to_bits() & 1 << 63)
        }
        _ => {
            // Split off an even power of two.
            let (a, n) = apart(x);
            let odd = n & 1;
            let root = scaled(nearest, -((n - odd + 4096) >> 1) + 2048);
            (-root).mul_add(root, if odd != 0 { 2.0 * a } else { a })
        }
    }
}

/// An operation with a directed rounding.
struct Directed<const OPERATION: u8>;

impl<const OPERATION: u8> Parametric for Directed<OPERATION> {
    type With = Rounding;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, &rounding: &Rounding) {
        let direction = Direction::of(rounding);
        // An exact zero sum is negative only when rounding down.
        let flip = u64::from(rounding == Rounding::TowardNegative) << 63;
        let flipped = |x: f64| f64::from_bits(x.to_bits() ^ flip);
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements.
            unsafe {
                let a: Block<f64> = load(args, 0, i);
                let none = [0.0; BLOCK];
                let b = if matches!(OPERATION, RCP | SQRT) { none } else { load(args, 1, i) };
                let c = if OPERATION == FMA { load(args, 2, i) } else { none };
                let (mut out, mut doubts) = ([0.0; BLOCK], [0u64; BLOCK]);
                for k in 0..BLOCK {
                    let [x, y, z] = match OPERATION {
                        SUB => [a[k], -b[k], 0.0],
                        RCP => [1.0, a[k], 0.0],
                        _ => [a[k], b[k], c[k]],
                    };
                    let nearest = match OPERATION {
                        ADD | SUB => flipped(flipped(x) + flipped(y)),
                        MUL => x * y,
                        FMA => flipped(flipped(x).mul_add(y, flipped(z))),
                        DIV | RCP => x / y,
                        _ => x.sqrt(),
                    };
                    let finite = (x.abs() < f64::INFINITY)
                        & (y.abs() < f64::INFINITY)
                        & (z.abs() < f64::INFINITY)
                        & (!matches!(OPERATION, DIV | RCP) | (y != 0.0));
                    let rest = rest::<OPERATION>([x, y, z], nearest);
                    // An overflowed result is less than infinity in magnitude.
                    let rest = if nearest.abs() == f64::INFINITY { -nearest } else { rest };
                    let exact = !finite | nearest.is_nan();
                    doubts[k] = u64::from(!exact & rest.is_nan());
                    let rounded = directed(nearest, if exact { 0.0 } else { rest }, direction);
                    out[k] = match OPERATION {
                        SQRT | RCP => finish64([a[k]], rounded),
                        FMA => finish64([b[k], c[k], a[k]], rounded),
                        DIV => finish64([a[k], b[k]], rounded),
                        _ => finish64([b[k], a[k]], rounded),
                    };
                }
                if doubts.iter().fold(0, |a, b| a | b) != 0 {
                    ask_sem::<OPERATION>(rounding, [&a, &b, &c], &doubts, &mut out);
                }
                store(path, args, 0, i, out);
            }
        }
    }
}

/// Computes the lanes in doubt by `sem`: sums that nearly cancel, and sums next to the largest number.
#[cold]
#[inline(never)]
fn ask_sem<const OPERATION: u8>(
    rounding: Rounding,
    sources: [&Block<f64>; 3],
    doubts: &Block<u64>,
    out: &mut Block<f64>,
) {
    let mode = Mode::rounding(rounding);
    for (k, _) in doubts.iter().enumerate().filter(|(_, doubt)| **doubt != 0) {
        let [a, b, c] = sources.map(|source| source[k].to_bits());
        out[k] = f64::from_bits(match OPERATION {
            ADD => sem::arith::add(&F64, mode, a, b),
            SUB => sem::arith::sub(&F64, mode, a, b),
            MUL => sem::arith::mul(&F64, mode, a, b),
            FMA => sem::arith::fma(&F64, mode, a, b, c),
            DIV => sem::arith::div(&F64, mode, a, b),
            RCP => sem::arith::rcp(&F64, mode, a),
            _ => sem::arith::sqrt(&F64, mode, a),
        });
    }
}

/// 1 / sqrt(a) to nearest: an approximation and its correction.
struct Rsqrt;

impl Kernel for Rsqrt {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        /// Bound of the error of the correction, with a large margin.
        const ERROR: f64 = 1.0 / (1u128 << 97) as f64;
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements.
            unsafe {
                let a: Block<f64> = load(args, 0, i);
                let (mut out, mut doubts) = ([0.0; BLOCK], [0u64; BLOCK]);
                for k in 0..BLOCK {
                    let (x, n) = apart(a[k]);
                    let odd = n & 1;
                    let x = if odd != 0 { 2.0 * x } else { x };
                    let y = 1.0 / x.sqrt();
                    let square = y * y;
                    let rest = (-x).mul_add(square, 1.0) - x * y.mul_add(y, -square);
                    let correction = 0.5 * y * rest;
                    let (low, high) = (y + (correction - ERROR), y + (correction + ERROR));
                    let normal = (a[k] > 0.0) & (a[k] < f64::INFINITY);
                    let result = low * power(2048 - ((n - odd + 4096) >> 1));
                    out[k] = finish64([a[k]], if normal { result } else { 1.0 / a[k].sqrt() });
                    doubts[k] = u64::from(normal & (low != high));
                }
                if doubts.iter().fold(0, |a, b| a | b) != 0 {
                    let exact = |x: f64| f64::from_bits(sem::arith::rsqrt(&F64, Mode::NEAREST, x.to_bits()));
                    for k in (0..BLOCK).filter(|&k| doubts[k] != 0) {
                        out[k] = exact(a[k]);
                    }
                }
                store(path, args, 0, i, out);
            }
        }
    }
}

/// The handler of a form on binary64.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    if picks.types() != [Type::F64] {
        return None;
    }
    if (opcode, picks.mods()) == (Opcode::Rsqrt, &[Mod::Approx]) {
        return Some(version::<Rsqrt>(path));
    }
    // `.ftz` has no effect on `rcp`.
    let rounding = picks.rounding().filter(|_| only(picks, &[Mod::Rz, Mod::Rm, Mod::Rp, Mod::Ftz]))?;
    Some(match (opcode, sources) {
        (Opcode::Add, 2) => version_with::<Directed<ADD>>(path, rounding),
        (Opcode::Sub, 2) => version_with::<Directed<SUB>>(path, rounding),
        (Opcode::Mul, 2) => version_with::<Directed<MUL>>(path, rounding),
        (Opcode::Fma | Opcode::Mad, 3) => version_with::<Directed<FMA>>(path, rounding),
        (Opcode::Div, 2) => version_with::<Directed<DIV>>(path, rounding),
        (Opcode::Rcp, 1) => version_with::<Directed<RCP>>(path, rounding),
        (Opcode::Sqrt, 1) => version_with::<Directed<SQRT>>(path, rounding),
        _ => return None,
    })
}
