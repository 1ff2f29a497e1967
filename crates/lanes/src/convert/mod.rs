//! cvt among integers, binary32, binary64 and the halves, to nearest even or to an integral value, and cvt.pack.
//!
//! Other roundings, `.satfinite` and the smaller formats are in `rounded`.

mod float;
mod integer;

use super::drive::{Bf16, F16, apply1, load, map1, store};
use super::float::flush;
use super::half::to_odd_f32;
use super::path::{BLOCK, Block, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn, Parameters, RawFn, only};
use float::{NONE, Single, float_to_float, pack, reformat, to_tf32, with_single};
use integer::{Integer, integer_to_integer, pack_integers, with_integer};
use isa::{Mod, Opcode, Picks, Type};
use std::marker::PhantomData;

/// Roundings to an integral value.
const NEAREST: u8 = 0;
const ZERO: u8 = 1;
const DOWN: u8 = 2;
const UP: u8 = 3;

fn integral(picks: &Picks) -> Option<u8> {
    picks.mods().iter().find_map(|m| match m {
        Mod::Rni => Some(NEAREST),
        Mod::Rzi => Some(ZERO),
        Mod::Rmi => Some(DOWN),
        Mod::Rpi => Some(UP),
        _ => None,
    })
}

#[inline(always)]
fn round32<const R: u8>(x: f32) -> f32 {
    match R {
        NEAREST => x.round_ties_even(),
        ZERO => x.trunc(),
        DOWN => x.floor(),
        _ => x.ceil(),
    }
}

#[inline(always)]
fn round64<const R: u8>(x: f64) -> f64 {
    match R {
        NEAREST => x.round_ties_even(),
        ZERO => x.trunc(),
        DOWN => x.floor(),
        _ => x.ceil(),
    }
}

/// From binary32 or a half to an integer.
struct ToInteger<S, D, const R: u8, const FTZ: bool>(PhantomData<(S, D)>);

impl<S: Single, D: Integer, const R: u8, const FTZ: bool> Kernel for ToInteger<S, D, R, FTZ> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        let convert = |x: f32| {
            // Numbers out of range are clamped. A NaN becomes 0, except with a destination of 64 bits.
            let number = D::from_f32(round32::<R>(flush::<FTZ>(x)));
            if size_of::<D>() == 8 && x.is_nan() { D::of_nan().to_lane() } else { number.to_lane() }
        };
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements.
            unsafe { store(path, args, 0, i, apply1(convert, S::widen(path, load(args, 0, i)))) }
        }
    }
}

fn f32_to_integer<S: Single, D: Integer>(r: u8, ftz: bool, path: HostPath) -> LaneFn {
    // A subnormal number rounds to 0 anyway, unless it is rounded away from zero.
    match (r, ftz) {
        (NEAREST, _) => version::<ToInteger<S, D, NEAREST, false>>(path),
        (ZERO, _) => version::<ToInteger<S, D, ZERO, false>>(path),
        (DOWN, false) => version::<ToInteger<S, D, DOWN, false>>(path),
        (_, false) => version::<ToInteger<S, D, UP, false>>(path),
        (DOWN, true) => version::<ToInteger<S, D, DOWN, true>>(path),
        (_, true) => version::<ToInteger<S, D, UP, true>>(path),
    }
}

/// Halves to integers: directly to 16 and 32 bits, otherwise through binary32.
fn half_to_integer<H: Single>(dtype: Type, r: u8, path: HostPath) -> Option<LaneFn> {
    Some(match dtype {
        Type::U16 => f32_to_integer::<H, u16>(r, false, path),
        Type::S16 => f32_to_integer::<H, i16>(r, false, path),
        Type::U32 => f32_to_integer::<H, u32>(r, false, path),
        Type::S32 => f32_to_integer::<H, i32>(r, false, path),
        _ => {
            let convert = with_integer!(dtype, D => f32_to_integer::<f32, D>(r, false, path));
            through_f32(reformat::<H, f32>(false, NONE, path), convert, dtype.bits().max(16) as usize / 8)
        }
    })
}

/// Chains two conversions; the second converts the results of the first.
fn through_f32(first: LaneFn, second: LaneFn, bytes: usize) -> LaneFn {
    /// Number of lanes converted at a time.
    const PART: usize = 256;

    /// # Safety
    /// As for [`LaneFn::call`].
    unsafe fn both(args: &LaneArgs, lane_fn: &LaneFn) {
        let mut between = [0f32; PART];
        for start in (0..args.lanes).step_by(PART) {
            let lanes = (args.lanes - start).min(PART);
            let mut first =
                LaneArgs { lanes, dst: [between.as_mut_ptr().cast(), std::ptr::null_mut()], ..*args };
            first.src[0] = args.src[0].wrapping_add(start / BLOCK * args.step[0]);
            let mut second = LaneArgs { lanes, ..*args };
            (second.src[0], second.step[0]) = (between.as_ptr().cast(), size_of::<Block<f32>>());
            // SAFETY: the caller's promise; `between` has room for the lanes; the parameters were made below, and the
            // two functions take no parameters.
            unsafe {
                let &(convert, bytes) = lane_fn.parameters.get::<(RawFn, usize)>();
                second.dst[0] = args.dst[0].wrapping_add(start * bytes);
                (lane_fn.inner)(&first, &LaneFn::NOTHING);
                convert(&second, &LaneFn::NOTHING);
            }
        }
    }
    LaneFn { function: both, inner: first.function, parameters: Parameters::new((second.function, bytes)) }
}

fn f64_to_integer<D: Integer>(r: u8, path: HostPath) -> LaneFn {
    #[inline(always)]
    fn convert<D: Integer, const R: u8>(x: f64) -> D::Lane {
        let number = D::from_f64(round64::<R>(x));
        if x.is_nan() { D::of_nan().to_lane() } else { number.to_lane() }
    }
    match r {
        NEAREST => map1(path, |x: f64| convert::<D, NEAREST>(x)),
        ZERO => map1(path, |x: f64| convert::<D, ZERO>(x)),
        DOWN => map1(path, |x: f64| convert::<D, DOWN>(x)),
        _ => map1(path, |x: f64| convert::<D, UP>(x)),
    }
}

/// From an integer to binary32 or a half.
struct FromInteger<A, D>(PhantomData<(A, D)>);

impl<A: Integer, D: Single> Kernel for FromInteger<A, D> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        // Integers that binary32 rounds exceed binary16's range, so their rounding does not matter. bfloat16 supports
        // sources of at most 32 bits, which binary64 represents exactly.
        let convert = |a: A::Lane| match size_of::<A>() == 4 {
            true => to_odd_f32(A::from_lane(a).to_f64()),
            false => A::from_lane(a).to_f32(),
        };
        let single = |a: A::Lane| A::from_lane(a).to_f32();
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements.
            unsafe {
                let a = load(args, 0, i);
                let x = if size_of::<D::Lane>() == 2 { apply1(convert, a) } else { apply1(single, a) };
                store(path, args, 0, i, D::narrow(path, x));
            }
        }
    }
}

/// The handler of a form of `cvt`.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    if opcode != Opcode::Cvt {
        return None;
    }
    if picks.has(Mod::Pack) {
        return Some(pack_integers(sources, picks.ty(0), path));
    }
    let &[dtype, atype] = picks.types() else { return None };
    if dtype == Type::Tf32 && picks.has(Mod::Rna) {
        return Some(match picks.has(Mod::Satfinite) {
            false => to_tf32::<false>(path),
            true => to_tf32::<true>(path),
        });
    }
    if sources == 2 && atype == Type::F32 && only(picks, &[Mod::Rn, Mod::Relu]) {
        return pack(dtype, picks.has(Mod::Relu), path);
    }
    if sources != 1 {
        return None;
    }
    let ftz = picks.has(Mod::Ftz);
    match (dtype.is_float(), atype.is_float()) {
        (true, true) => float_to_float(dtype, atype, picks, path),
        (false, false) if only(picks, &[Mod::Sat]) => {
            let sat = picks.has(Mod::Sat);
            Some(with_integer!(atype, A => with_integer!(dtype, D => integer_to_integer::<A, D>(sat, path))))
        }
        (false, true) if only(picks, &[Mod::Rni, Mod::Rzi, Mod::Rmi, Mod::Rpi, Mod::Ftz, Mod::Sat]) => {
            let r = integral(picks)?;
            Some(match atype {
                Type::F64 => with_integer!(dtype, D => f64_to_integer::<D>(r, path)),
                Type::F32 => with_integer!(dtype, D => f32_to_integer::<f32, D>(r, ftz, path)),
                Type::F16 => half_to_integer::<F16>(dtype, r, path)?,
                Type::Bf16 => half_to_integer::<Bf16>(dtype, r, path)?,
                _ => return None,
            })
        }
        (true, false) if only(picks, &[Mod::Rn, Mod::Ftz]) => match dtype {
            Type::F64 => Some(
                with_integer!(atype, A => map1(path, |a: <A as Integer>::Lane| A::from_lane(a).to_f64())),
            ),
            // This conversion rounds twice: to binary32, then to bfloat16.
            Type::Bf16 if atype.bits() == 64 => None,
            _ => {
                Some(with_integer!(atype, A => with_single!(dtype, D => version::<FromInteger<A, D>>(path))))
            }
        },
        _ => None,
    }
}
