//! The mixed forms of add, sub and fma rounded toward zero (`.rz`), down (`.rm`) and up (`.rp`).
//!
//! The operation is computed in binary64, where a product of two halves is exact and the rounding error of a sum is
//! representable. The conversion to binary32 rounds to nearest; the sign of the remaining error shows whether the
//! result must move to its neighbour.

use super::drive::{Half, apply1, apply2, apply3, load, store};
use super::float::finish;
use super::path::{BLOCK, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn};
use isa::{Opcode, Rounding};
use std::marker::PhantomData;

/// The directions, as const generics take them.
pub(super) const ZERO: u8 = 0;
pub(super) const DOWN: u8 = 1;
pub(super) const UP: u8 = 2;

/// x + y in binary64, and its rounding error (Knuth's two-sum). An exact zero sum is negative only when rounding
/// down.
#[inline(always)]
pub(super) fn sum<const TO: u8>(x: f64, y: f64) -> (f64, f64) {
    let sum = if TO == DOWN { -(-x - y) } else { x + y };
    let part = sum - x;
    (sum, (x - (sum - part)) + (y - part))
}

/// Converts the exact value `sum + rest` to binary32. `sum` must be the nearest binary64 number.
#[inline(always)]
pub(super) fn narrow<const TO: u8>((sum, rest): (f64, f64)) -> f32 {
    let nearest = sum as f32;
    let lost = sum - f64::from(nearest);
    // The amount by which the exact value is above `nearest`: infinite after an overflow, NaN if the value is
    // infinite or NaN.
    let above = if lost != 0.0 { lost } else { rest };
    let bits = nearest.to_bits() as i32;
    let (up, negative) = (above > 0.0, bits < 0);
    let inexact = (above > 0.0) | (above < 0.0);
    let wrong = match TO {
        // The magnitude is too large. An underflowed zero has the sign of the exact value and must stay.
        ZERO => inexact & (up == negative) & (nearest != 0.0),
        DOWN => inexact & !up,
        _ => inexact & up,
    };
    // Of two neighbours with the same sign, the one farther from zero has the greater bits, by one.
    let step = match TO {
        ZERO => -1,
        DOWN => 1 - 2 * i32::from(!negative),
        _ => 1 - 2 * i32::from(negative),
    };
    f32::from_bits((if wrong { bits + step } else { bits }) as u32)
}

/// d = a + c, or a - c.
struct Add<H, const NEGATE: bool, const TO: u8>(PhantomData<H>);

impl<H: Half, const NEGATE: bool, const TO: u8> Kernel for Add<H, NEGATE, TO> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        let add = |a: f32, c: f32| {
            let c = f64::from(c);
            finish::<false>(narrow::<TO>(sum::<TO>(f64::from(a), if NEGATE { -c } else { c })))
        };
        for i in 0..args.lanes / BLOCK {
            // SAFETY: `lanes` halves, `lanes` binary32 numbers.
            unsafe {
                store(path, args, 0, i, apply2(add, H::widen(path, load(args, 0, i)), load(args, 1, i)))
            }
        }
    }
}

/// d = a * b + c.
struct Fma<H, const TO: u8>(PhantomData<H>);

impl<H: Half, const TO: u8> Kernel for Fma<H, TO> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        let fma = |a: f32, b: f32, c: f32| {
            finish::<false>(narrow::<TO>(sum::<TO>(f64::from(a) * f64::from(b), f64::from(c))))
        };
        for i in 0..args.lanes / BLOCK {
            // SAFETY: `lanes` halves, twice, and `lanes` binary32 numbers.
            unsafe {
                let (a, b) = (H::widen(path, load(args, 0, i)), H::widen(path, load(args, 1, i)));
                store(path, args, 0, i, apply3(fma, a, b, load(args, 2, i)));
            }
        }
    }
}

/// Number of blocks that are computed before they are saturated.
const PART: usize = 16;

/// `K`, then `.sat`.
struct Saturated<K>(PhantomData<K>);

impl<K: Kernel> Kernel for Saturated<K> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        // A call, so that there is only one copy of `K`. The unsaturated results must not go to the destination,
        // because other threads may read that.
        let kernel = version::<K>(P::PATH);
        let mut sums = [[0f32; BLOCK]; PART];
        let blocks = args.lanes / BLOCK;
        for first in (0..blocks).step_by(PART) {
            let count = PART.min(blocks - first);
            let src = std::array::from_fn(|n| args.src[n].wrapping_add(first * args.step[n]));
            let dst = [sums.as_mut_ptr().cast(), std::ptr::null_mut()];
            // SAFETY: the caller's promise, for a part of the blocks; `sums` has room for these.
            unsafe {
                kernel.call(&LaneArgs { dst, src, step: args.step, lanes: count * BLOCK });
                for (i, &sums) in sums[..count].iter().enumerate() {
                    store(path, args, 0, first + i, apply1(finish::<true>, sums));
                }
            }
        }
    }
}

/// The handler of a mixed form.
pub(super) fn find<H: Half>(
    opcode: Opcode,
    sources: usize,
    rounding: Rounding,
    sat: bool,
    path: HostPath,
) -> Option<LaneFn> {
    fn handler<K: Kernel>(sat: bool, path: HostPath) -> LaneFn {
        if sat { version::<Saturated<K>>(path) } else { version::<K>(path) }
    }
    fn to<H: Half, const TO: u8>(
        opcode: Opcode,
        sources: usize,
        sat: bool,
        path: HostPath,
    ) -> Option<LaneFn> {
        Some(match (opcode, sources) {
            (Opcode::Add, 2) => handler::<Add<H, false, TO>>(sat, path),
            (Opcode::Sub, 2) => handler::<Add<H, true, TO>>(sat, path),
            (Opcode::Fma, 3) => handler::<Fma<H, TO>>(sat, path),
            _ => return None,
        })
    }
    match rounding {
        Rounding::TowardZero => to::<H, ZERO>(opcode, sources, sat, path),
        Rounding::TowardNegative => to::<H, DOWN>(opcode, sources, sat, path),
        Rounding::TowardPositive => to::<H, UP>(opcode, sources, sat, path),
        Rounding::NearestEven | Rounding::NearestAway => None,
    }
}
