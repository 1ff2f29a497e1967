//! cvt among floating-point formats: to nearest even, to an integral value, and from a format to itself.

use super::{DOWN, NEAREST, UP, ZERO, integral, round32, round64};
use crate::drive::{Bf16, F16, Half, Lane, apply1, apply2, load, map1, store};
use crate::float::{finish, flush};
use crate::path::{BLOCK, Block, Kernel, Path, version};
use crate::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Picks, Type};
use std::marker::PhantomData;

/// A floating-point source or destination that is computed in binary32.
pub(super) trait Single: 'static {
    type Lane: Lane;

    fn widen<P: Path>(path: P, x: Block<Self::Lane>) -> Block<f32>;

    /// Rounds to nearest even; NaNs become the canonical NaN.
    fn narrow<P: Path>(path: P, x: Block<f32>) -> Block<Self::Lane>;
}

impl Single for f32 {
    type Lane = f32;

    #[inline(always)]
    fn widen<P: Path>(_: P, x: Block<f32>) -> Block<f32> {
        x
    }

    #[inline(always)]
    fn narrow<P: Path>(_: P, x: Block<f32>) -> Block<f32> {
        apply1(finish::<false>, x)
    }
}

macro_rules! single {
    ($($H:ident)*) => {
        $(impl Single for $H {
            type Lane = u16;

            #[inline(always)]
            fn widen<P: Path>(path: P, x: Block<u16>) -> Block<f32> {
                <$H as Half>::widen(path, x)
            }

            #[inline(always)]
            fn narrow<P: Path>(path: P, x: Block<f32>) -> Block<u16> {
                <$H as Half>::narrow(path, x)
            }
        })*
    };
}
single!(F16 Bf16);

/// Conversions among binary32 and the halves.
struct Reformat<S, D, const FTZ: bool, const CLAMP: u8>(PhantomData<(S, D)>);

/// What is applied to a result: nothing, `.sat` or `.relu`.
pub(super) const NONE: u8 = 0;
const SAT: u8 = 1;
const RELU: u8 = 2;

/// `.sat` of a number that may be a signalling NaN, which arithmetic never returns. Works on the bits, because
/// comparisons become minimum and maximum instructions, and those of aarch64 return a NaN for it.
#[inline(always)]
fn saturate_any(x: f32) -> f32 {
    const ONE: i32 = 1.0f32.to_bits() as i32;
    const INFINITY: i32 = f32::INFINITY.to_bits() as i32;
    // Negative numbers have negative bits.
    let bits = (x.to_bits() as i32).max(0);
    let number = if bits > INFINITY { 0 } else { bits };
    f32::from_bits(number.min(ONE) as u32)
}

#[inline(always)]
fn clamp<const CLAMP: u8>(x: f32) -> f32 {
    match CLAMP {
        SAT => saturate_any(x),
        RELU if x.is_nan() || x > 0.0 => x,
        RELU => 0.0,
        _ => x,
    }
}

impl<S: Single, D: Single, const FTZ: bool, const CLAMP: u8> Kernel for Reformat<S, D, FTZ, CLAMP> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        let convert = |x: f32| clamp::<CLAMP>(flush::<FTZ>(x));
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements.
            unsafe {
                let x = apply1(convert, S::widen(path, load(args, 0, i)));
                store(path, args, 0, i, D::narrow(path, x));
            }
        }
    }
}

pub(super) fn reformat<S: Single, D: Single>(ftz: bool, clamp: u8, path: HostPath) -> LaneFn {
    match (ftz, clamp) {
        (false, NONE) => version::<Reformat<S, D, false, NONE>>(path),
        (false, SAT) => version::<Reformat<S, D, false, SAT>>(path),
        (false, _) => version::<Reformat<S, D, false, RELU>>(path),
        (true, NONE) => version::<Reformat<S, D, true, NONE>>(path),
        (true, SAT) => version::<Reformat<S, D, true, SAT>>(path),
        (true, _) => version::<Reformat<S, D, true, RELU>>(path),
    }
}

/// Rounds to an integral value of the same format.
struct ToIntegral<S, const R: u8, const FTZ: bool, const SATURATE: bool>(PhantomData<S>);

impl<S: Single, const R: u8, const FTZ: bool, const SATURATE: bool> Kernel
    for ToIntegral<S, R, FTZ, SATURATE>
{
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        let convert = |x: f32| finish::<SATURATE>(round32::<R>(flush::<FTZ>(x)));
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements.
            unsafe {
                let x = apply1(convert, S::widen(path, load(args, 0, i)));
                store(path, args, 0, i, S::narrow(path, x));
            }
        }
    }
}

fn to_integral<S: Single>(r: u8, ftz: bool, sat: bool, path: HostPath) -> LaneFn {
    fn rounded<S: Single, const R: u8>(ftz: bool, sat: bool, path: HostPath) -> LaneFn {
        // Rounding to nearest and toward zero turn subnormal numbers into zeros anyway, so `.ftz` has no effect on
        // them.
        match (ftz && R > ZERO && size_of::<S::Lane>() == 4, sat) {
            (false, false) => version::<ToIntegral<S, R, false, false>>(path),
            (false, true) => version::<ToIntegral<S, R, false, true>>(path),
            (true, false) => version::<ToIntegral<S, R, true, false>>(path),
            (true, true) => version::<ToIntegral<S, R, true, true>>(path),
        }
    }
    match r {
        NEAREST => rounded::<S, NEAREST>(ftz, sat, path),
        ZERO => rounded::<S, ZERO>(ftz, sat, path),
        DOWN => rounded::<S, DOWN>(ftz, sat, path),
        _ => rounded::<S, UP>(ftz, sat, path),
    }
}

/// Two binary32 numbers to two halves, the first one in the upper half.
struct Pack<H, const RECTIFY: bool>(PhantomData<H>);

impl<H: Half, const RECTIFY: bool> Kernel for Pack<H, RECTIFY> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        let convert = |x: f32| if RECTIFY { clamp::<RELU>(x) } else { x };
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                let high = H::narrow(path, apply1(convert, load(args, 0, i)));
                let low = H::narrow(path, apply1(convert, load(args, 1, i)));
                let pack = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
                store(path, args, 0, i, apply2(pack, high, low));
            }
        }
    }
}

/// Two binary32 numbers to a pair of halves.
pub(super) fn pack(dtype: Type, relu: bool, path: HostPath) -> Option<LaneFn> {
    Some(match (dtype, relu) {
        (Type::F16x2, false) => version::<Pack<F16, false>>(path),
        (Type::F16x2, true) => version::<Pack<F16, true>>(path),
        (Type::Bf16x2, false) => version::<Pack<Bf16, false>>(path),
        (Type::Bf16x2, true) => version::<Pack<Bf16, true>>(path),
        _ => return None,
    })
}

/// binary64 to binary32: a NaN becomes quiet and keeps its sign and the top bits of its payload.
#[inline(always)]
fn narrow_f64<const FTZ: bool>(x: f64) -> f32 {
    let bits = x.to_bits();
    let nan =
        f32::from_bits((bits >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (bits >> 29) as u32 & 0x7f_ffff);
    // With an unbounded exponent, numbers from half a unit in the last place below 2^-126 round to 2^-126.
    let small = FTZ && x.abs() < f64::from_bits((1023 - 126) << 52) * (1.0 - 1.0 / (1 << 25) as f64);
    if x.is_nan() {
        nan
    } else if small {
        0f32.copysign(x as f32)
    } else {
        x as f32
    }
}

/// binary32 to binary64: a NaN becomes quiet and keeps its sign and payload; with `.ftz` it becomes the canonical
/// NaN.
#[inline(always)]
fn widen_f32<const FTZ: bool>(x: f32) -> f64 {
    let bits = if FTZ { 0x7fff_ffff } else { u64::from(x.to_bits()) };
    let nan = f64::from_bits((bits & 0x8000_0000) << 32 | 0x7ff8 << 48 | (bits & 0x7f_ffff) << 29);
    if x.is_nan() { nan } else { f64::from(flush::<FTZ>(x)) }
}

/// Between binary64 and binary32.
fn double(dtype: Type, atype: Type, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let (ftz, sat) = (picks.has(Mod::Ftz), picks.has(Mod::Sat));
    if !only(picks, &[Mod::Rn, Mod::Ftz, Mod::Sat]) {
        return None;
    }
    Some(match (dtype, atype, ftz, sat) {
        (Type::F32, Type::F64, false, false) => map1(path, |x: f64| narrow_f64::<false>(x)),
        (Type::F32, Type::F64, true, false) => map1(path, |x: f64| narrow_f64::<true>(x)),
        (Type::F32, Type::F64, false, true) => map1(path, |x: f64| finish::<true>(narrow_f64::<false>(x))),
        (Type::F32, Type::F64, true, true) => map1(path, |x: f64| finish::<true>(narrow_f64::<true>(x))),
        (Type::F64, Type::F32, false, false) => map1(path, |x: f32| widen_f32::<false>(x)),
        (Type::F64, Type::F32, true, false) => map1(path, |x: f32| widen_f32::<true>(x)),
        _ => return None,
    })
}

fn f64_to_integral(r: u8, sat: bool, path: HostPath) -> LaneFn {
    #[inline(always)]
    fn round<const R: u8, const SAT: bool>(x: f64) -> f64 {
        match SAT {
            true => f64::from_bits(saturate_bits(round64::<R>(x).to_bits(), 1.0f64.to_bits(), F64_INFINITY)),
            false if x.is_nan() => f64::from_bits(x.to_bits() | 1 << 51),
            false => round64::<R>(x),
        }
    }
    fn handler<const R: u8>(sat: bool, path: HostPath) -> LaneFn {
        match sat {
            false => map1(path, |x: f64| round::<R, false>(x)),
            true => map1(path, |x: f64| round::<R, true>(x)),
        }
    }
    match r {
        NEAREST => handler::<NEAREST>(sat, path),
        ZERO => handler::<ZERO>(sat, path),
        DOWN => handler::<DOWN>(sat, path),
        _ => handler::<UP>(sat, path),
    }
}

const F64_INFINITY: u64 = f64::INFINITY.to_bits();

/// `.sat` of any 64-bit encoding.
#[inline(always)]
fn saturate_bits(bits: u64, one: u64, infinity: u64) -> u64 {
    let positive = (bits as i64).max(0) as u64;
    if positive > infinity { 0 } else { positive.min(one) }
}

/// `cvt` from a format to itself: copies the bits, unless `.ftz` or `.sat` changes them.
fn unchanged(ty: Type, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    Some(match (ty, picks.has(Mod::Ftz), picks.has(Mod::Sat)) {
        (Type::F32, false, false) => map1(path, |x: u32| x),
        (Type::F32, false, true) => map1(path, |x: f32| saturate_any(x)),
        (Type::F32, true, false) => map1(path, |x: f32| finish::<false>(flush::<true>(x))),
        (Type::F32, true, true) => map1(path, |x: f32| saturate_any(flush::<true>(x))),
        (Type::F64, _, false) => map1(path, |x: u64| x),
        (Type::F64, _, true) => map1(path, |x: u64| saturate_bits(x, 1.0f64.to_bits(), F64_INFINITY)),
        // Of halves a NaN becomes the canonical one.
        (Type::F16, _, false) => map1(path, |x: u16| if x & 0x7fff > 0x7c00 { 0x7fff } else { x }),
        (Type::Bf16, _, false) => map1(path, |x: u16| if x & 0x7fff > 0x7f80 { 0x7fff } else { x }),
        (Type::F16, _, true) => map1(path, |x: u16| saturate_bits((x as i16) as u64, 0x3c00, 0x7c00) as u16),
        _ => return None,
    })
}

/// `cvt.rna.tf32.f32`: rounds the fraction from 23 bits to 10, to nearest, with ties away from zero. A NaN's fraction
/// is truncated.
pub(super) fn to_tf32<const FINITE: bool>(path: HostPath) -> LaneFn {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    map1(path, |x: u32| {
        let (sign, magnitude) = (x & 0x8000_0000, x & 0x7fff_ffff);
        let unit = 1 << 13;
        let nearest = (magnitude + unit / 2) & !(unit - 1);
        // The largest number is the one just below infinity.
        let number = if FINITE { nearest.min(INFINITY - unit) } else { nearest.min(INFINITY) };
        let cut = (magnitude & !(unit - 1)).wrapping_sub(if FINITE { unit } else { 0 });
        sign | if magnitude > INFINITY { cut } else { number }
    })
}

/// An expression with `$S` as the format that a [`Type`] names, computed in binary32.
macro_rules! with_single {
    ($ty:expr, $S:ident => $body:expr) => {
        match $ty {
            Type::F32 => {
                type $S = f32;
                $body
            }
            Type::F16 => {
                type $S = F16;
                $body
            }
            Type::Bf16 => {
                type $S = Bf16;
                $body
            }
            _ => return None,
        }
    };
}

pub(super) use with_single;

/// From floating point to floating point.
pub(super) fn float_to_float(dtype: Type, atype: Type, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let (ftz, sat) = (picks.has(Mod::Ftz), picks.has(Mod::Sat));
    if let Some(r) = integral(picks) {
        let allowed = only(picks, &[Mod::Rni, Mod::Rzi, Mod::Rmi, Mod::Rpi, Mod::Ftz, Mod::Sat]);
        return match (dtype == atype && allowed, dtype) {
            (true, Type::F64) => Some(f64_to_integral(r, sat, path)),
            (true, _) => Some(with_single!(dtype, S => to_integral::<S>(r, ftz, sat, path))),
            _ => None,
        };
    }
    if dtype == atype {
        return unchanged(dtype, picks, path);
    }
    // `.bf16` is the upper half of binary32: NaNs too are shifted, and no rounding changes anything.
    let rounded = only(picks, &[Mod::Rn, Mod::Rz, Mod::Rm, Mod::Rp]);
    if (dtype, atype) == (Type::F32, Type::Bf16) && rounded {
        return Some(map1(path, |x: u16| u32::from(x) << 16));
    }
    if dtype == Type::F64 || atype == Type::F64 {
        return double(dtype, atype, picks, path);
    }
    if !only(picks, &[Mod::Rn, Mod::Ftz, Mod::Sat, Mod::Relu]) {
        return None;
    }
    let clamp = match (sat, picks.has(Mod::Relu)) {
        (false, false) => NONE,
        (true, false) => SAT,
        (false, true) => RELU,
        (true, true) => return None,
    };
    Some(match (dtype, atype) {
        (Type::F32, _) => with_single!(atype, S => reformat::<S, f32>(ftz, clamp, path)),
        // To `.f16` `.ftz` has no effect.
        (_, Type::F32) => {
            with_single!(dtype, D => reformat::<f32, D>(ftz && dtype != Type::F16, clamp, path))
        }
        _ => return None,
    })
}
