//! cvt among integers, binary32, binary64 and the halves, to nearest even or to an integer, and cvt.pack.
//!
//! Other roundings, `.satfinite` and the smaller formats are in `rounded`.

use super::drive::{Bf16, F16, Half, Lane, apply1, apply2, load, map1, store};
use super::float::{finish, flush, quiet};
use super::half::to_odd_f32;
use super::path::{BLOCK, Block, Kernel, Parametric, Path, version, version_with};
use super::{HostPath, LaneArgs, LaneFn, Parameters, RawFn, only};
use isa::{Mod, Opcode, Picks, Type};
use std::marker::PhantomData;

/// An integer type, and the lanes that hold it.
trait Integer: Copy + 'static {
    type Lane: Lane;
    const MIN: i64;
    /// As unsigned bits.
    const MAX: u64;
    const SIGNED: bool;
    fn from_lane(lane: Self::Lane) -> Self;
    fn to_lane(self) -> Self::Lane;
    /// Its number, modulo 2^64.
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    fn from_f32(x: f32) -> Self;
    fn from_f64(x: f64) -> Self;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    /// What a NaN converts to if it comes from binary64 or goes to 64 bits.
    fn of_nan() -> Self {
        Self::from_bits(if Self::SIGNED { Self::MIN as u64 } else { Self::MAX ^ Self::MAX >> 1 })
    }
}

/// `$T` in `$Lane`, and `$from` as the binary32 and binary64 numbers that clamp to it.
macro_rules! integers {
    ($($T:ident in $Lane:ident by $from:ident $(via $Via:ident up to $top:literal)?;)*) => {
        $(impl Integer for $T {
            type Lane = $Lane;
            const MIN: i64 = $T::MIN as i64;
            const MAX: u64 = $T::MAX as u64;
            const SIGNED: bool = $T::MIN != 0;
            #[inline(always)]
            fn from_lane(lane: $Lane) -> $T {
                lane as $T
            }
            #[inline(always)]
            fn to_lane(self) -> $Lane {
                self as $Lane
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> $T {
                bits as $T
            }
            #[inline(always)]
            fn from_f32(x: f32) -> $T {
                $from!(x f32 $T $($Via $top)?)
            }
            #[inline(always)]
            fn from_f64(x: f64) -> $T {
                $from!(x f64 $T $($Via $top)?)
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        })*
    };
}

macro_rules! cast {
    ($x:ident $F:ident $T:ident) => {
        $x as $T
    };
}

/// What `as` does, in a form that becomes vector instructions: `$top` is the largest binary32 number in the range.
macro_rules! clamped {
    ($x:ident $F:ident $T:ident $Via:ident $top:literal) => {{
        const LEAST: $F = $T::MIN as $F;
        const MOST: $F = $top;
        // A NaN becomes the least, and then 0.
        let clamped = if $x > LEAST { $x } else { LEAST };
        let clamped = if clamped < MOST { clamped } else { MOST };
        // SAFETY: not NaN and within the range of the type.
        let number = unsafe { clamped.to_int_unchecked::<$Via>() } as $T;
        let number = if $x > MOST { $T::MAX } else { number };
        if $x.is_nan() { 0 } else { number }
    }};
}

/// The same for 32 bits, whose largest number only binary64 has.
macro_rules! clamped32 {
    ($x:ident f32 $T:ident $Via:ident $top:literal) => {
        clamped!($x f32 $T $Via $top)
    };
    ($x:ident f64 $T:ident $Via:ident $top:literal) => {{
        let x = if $x > $T::MIN as f64 { $x } else { $T::MIN as f64 };
        let x = if x < $T::MAX as f64 { x } else { $T::MAX as f64 };
        // SAFETY: not NaN and within the range of the type.
        let number = unsafe { x.to_int_unchecked::<$Via>() };
        if $x.is_nan() { 0 } else { number }
    }};
}

integers! {
    u8 in u16 by clamped via i32 up to 255.0;
    i8 in i16 by clamped via i32 up to 127.0;
    u16 in u16 by clamped via i32 up to 65535.0;
    i16 in i16 by clamped via i32 up to 32767.0;
    u32 in u32 by clamped32 via u32 up to 4294967040.0;
    i32 in i32 by clamped32 via i32 up to 2147483520.0;
    u64 in u64 by cast;
    i64 in i64 by cast;
}

/// An expression with `$T` as the integer type that a [`Type`] names.
macro_rules! with_integer {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Type::U8 => {
                type $T = u8;
                $body
            }
            Type::S8 => {
                type $T = i8;
                $body
            }
            Type::U16 => {
                type $T = u16;
                $body
            }
            Type::S16 => {
                type $T = i16;
                $body
            }
            Type::U32 => {
                type $T = u32;
                $body
            }
            Type::S32 => {
                type $T = i32;
                $body
            }
            Type::U64 => {
                type $T = u64;
                $body
            }
            Type::S64 => {
                type $T = i64;
                $body
            }
            _ => return None,
        }
    };
}

/// The nearest number that `D` holds.
#[inline(always)]
fn saturate<A: Integer, D: Integer>(a: A) -> D {
    let bits = a.to_bits();
    if !A::SIGNED {
        return D::from_bits(bits.min(D::MAX));
    }
    // A signed number is an i64; so are the limits of every type but u64, whose upper one it cannot pass.
    let max = if D::MAX > i64::MAX as u64 { i64::MAX } else { D::MAX as i64 };
    D::from_bits((bits as i64).clamp(D::MIN, max) as u64)
}

fn integer_to_integer<A: Integer, D: Integer>(sat: bool, path: HostPath) -> LaneFn {
    match sat {
        false => map1(path, |a: A::Lane| D::from_bits(A::from_lane(a).to_bits()).to_lane()),
        true => map1(path, |a: A::Lane| saturate::<A, D>(A::from_lane(a)).to_lane()),
    }
}

/// Roundings to an integral number.
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

/// A source or a destination of floating point, computed in binary32.
trait Single: 'static {
    type Lane: Lane;

    /// # Safety
    /// As for the methods of [`Path`].
    unsafe fn widen<P: Path>(x: Block<Self::Lane>) -> Block<f32>;

    /// To nearest even, NaNs to the canonical one.
    ///
    /// # Safety
    /// As for the methods of [`Path`].
    unsafe fn narrow<P: Path>(x: Block<f32>) -> Block<Self::Lane>;
}

impl Single for f32 {
    type Lane = f32;

    #[inline(always)]
    unsafe fn widen<P: Path>(x: Block<f32>) -> Block<f32> {
        x
    }

    #[inline(always)]
    unsafe fn narrow<P: Path>(x: Block<f32>) -> Block<f32> {
        apply1(finish::<false>, x)
    }
}

macro_rules! single {
    ($($H:ident)*) => {
        $(impl Single for $H {
            type Lane = u16;

            #[inline(always)]
            unsafe fn widen<P: Path>(x: Block<u16>) -> Block<f32> {
                // SAFETY: the caller's promise.
                unsafe { <$H as Half>::widen::<P>(x) }
            }

            #[inline(always)]
            unsafe fn narrow<P: Path>(x: Block<f32>) -> Block<u16> {
                // SAFETY: the caller's promise.
                unsafe { <$H as Half>::narrow::<P>(x) }
            }
        })*
    };
}
single!(F16 Bf16);

/// From binary32 or a half to an integer.
struct ToInteger<S, D, const R: u8, const FTZ: bool>(PhantomData<(S, D)>);

impl<S: Single, D: Integer, const R: u8, const FTZ: bool> Kernel for ToInteger<S, D, R, FTZ> {
    #[inline(always)]
    unsafe fn run<P: Path>(args: &LaneArgs) {
        let convert = |x: f32| {
            // A number too large clamps; a NaN becomes 0, if it does not go to 64 bits.
            let number = D::from_f32(round32::<R>(flush::<FTZ>(x)));
            if size_of::<D>() == 8 && x.is_nan() { D::of_nan().to_lane() } else { number.to_lane() }
        };
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements; `P` by contract.
            unsafe { store(args, 0, i, apply1(convert, S::widen::<P>(load(args, 0, i)))) }
        }
    }
}

fn f32_to_integer<S: Single, D: Integer>(r: u8, ftz: bool, path: HostPath) -> LaneFn {
    // A subnormal number is 0 anyway, except when rounded away from it.
    match (r, ftz) {
        (NEAREST, _) => version::<ToInteger<S, D, NEAREST, false>>(path),
        (ZERO, _) => version::<ToInteger<S, D, ZERO, false>>(path),
        (DOWN, false) => version::<ToInteger<S, D, DOWN, false>>(path),
        (_, false) => version::<ToInteger<S, D, UP, false>>(path),
        (DOWN, true) => version::<ToInteger<S, D, DOWN, true>>(path),
        (_, true) => version::<ToInteger<S, D, UP, true>>(path),
    }
}

/// Halves to integers: to 16 and 32 bits in one step, to the others by way of binary32.
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

/// Two conversions, the second of what the first makes.
fn through_f32(first: LaneFn, second: LaneFn, bytes: usize) -> LaneFn {
    /// Lanes converted at a time.
    const PART: usize = 256;

    /// # Safety
    /// As for [`LaneFn::call`].
    unsafe fn both(args: &LaneArgs, told: &LaneFn) {
        let mut between = [0f32; PART];
        for start in (0..args.lanes).step_by(PART) {
            let lanes = (args.lanes - start).min(PART);
            let mut first = LaneArgs { lanes, dst: [between.as_mut_ptr().cast(), std::ptr::null_mut()], ..*args };
            first.src[0] = args.src[0].wrapping_add(start / BLOCK * args.step[0]);
            let mut second = LaneArgs { lanes, ..*args };
            (second.src[0], second.step[0]) = (between.as_ptr().cast(), size_of::<Block<f32>>());
            // SAFETY: the caller's promise; `between` has the lanes; the parameters are those below, and the functions are told
            // nothing.
            unsafe {
                let &(convert, bytes) = told.parameters.get::<(RawFn, usize)>();
                second.dst[0] = args.dst[0].wrapping_add(start * bytes);
                (told.inner)(&first, &LaneFn::NOTHING);
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
    unsafe fn run<P: Path>(args: &LaneArgs) {
        // What binary32 rounds is above everything that binary16 holds; bfloat16 is taken for up to 32 bits only,
        // exact in binary64.
        let convert = |a: A::Lane| match size_of::<A>() == 4 {
            true => to_odd_f32(A::from_lane(a).to_f64()),
            false => A::from_lane(a).to_f32(),
        };
        let single = |a: A::Lane| A::from_lane(a).to_f32();
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements; `P` by contract.
            unsafe {
                let a = load(args, 0, i);
                let x = if size_of::<D::Lane>() == 2 { apply1(convert, a) } else { apply1(single, a) };
                store(args, 0, i, D::narrow::<P>(x));
            }
        }
    }
}

/// Among binary32 and the halves.
struct Reformat<S, D, const FTZ: bool, const CLAMP: u8>(PhantomData<(S, D)>);

/// What happens to a result: nothing, `.sat`, `.relu`.
const NONE: u8 = 0;
const SAT: u8 = 1;
const RELU: u8 = 2;

/// `.sat` of what may be a signalling NaN, which no arithmetic returns: by its bits, since comparisons become instructions for
/// minima and maxima, and those of aarch64 return a NaN for it.
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
    unsafe fn run<P: Path>(args: &LaneArgs) {
        let convert = |x: f32| clamp::<CLAMP>(flush::<FTZ>(x));
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements; `P` by contract.
            unsafe {
                let x = apply1(convert, S::widen::<P>(load(args, 0, i)));
                store(args, 0, i, D::narrow::<P>(x));
            }
        }
    }
}

fn reformat<S: Single, D: Single>(ftz: bool, clamp: u8, path: HostPath) -> LaneFn {
    match (ftz, clamp) {
        (false, NONE) => version::<Reformat<S, D, false, NONE>>(path),
        (false, SAT) => version::<Reformat<S, D, false, SAT>>(path),
        (false, _) => version::<Reformat<S, D, false, RELU>>(path),
        (true, NONE) => version::<Reformat<S, D, true, NONE>>(path),
        (true, SAT) => version::<Reformat<S, D, true, SAT>>(path),
        (true, _) => version::<Reformat<S, D, true, RELU>>(path),
    }
}

/// To an integral number of the same format.
struct ToIntegral<S, const R: u8, const FTZ: bool, const SATURATE: bool>(PhantomData<S>);

impl<S: Single, const R: u8, const FTZ: bool, const SATURATE: bool> Kernel
    for ToIntegral<S, R, FTZ, SATURATE>
{
    #[inline(always)]
    unsafe fn run<P: Path>(args: &LaneArgs) {
        let convert = |x: f32| finish::<SATURATE>(round32::<R>(flush::<FTZ>(x)));
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the source and the destination have `lanes` elements; `P` by contract.
            unsafe {
                let x = apply1(convert, S::widen::<P>(load(args, 0, i)));
                store(args, 0, i, S::narrow::<P>(x));
            }
        }
    }
}

fn to_integral<S: Single>(r: u8, ftz: bool, sat: bool, path: HostPath) -> LaneFn {
    fn rounded<S: Single, const R: u8>(ftz: bool, sat: bool, path: HostPath) -> LaneFn {
        // What `.ftz` would flush, rounding to nearest and toward zero do.
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

/// Two binary32 numbers to two halves, the first one above.
struct Pack<H, const RECTIFY: bool>(PhantomData<H>);

impl<H: Half, const RECTIFY: bool> Kernel for Pack<H, RECTIFY> {
    #[inline(always)]
    unsafe fn run<P: Path>(args: &LaneArgs) {
        let convert = |x: f32| if RECTIFY { clamp::<RELU>(x) } else { x };
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words; `P` by contract.
            unsafe {
                let high = H::narrow::<P>(apply1(convert, load(args, 0, i)));
                let low = H::narrow::<P>(apply1(convert, load(args, 1, i)));
                let pack = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
                store(args, 0, i, apply2(pack, high, low));
            }
        }
    }
}

/// binary64 to binary32: a NaN becomes quiet and keeps its sign and the top of its payload.
#[inline(always)]
fn narrow_f64<const FTZ: bool>(x: f64) -> f32 {
    let bits = x.to_bits();
    let nan =
        f32::from_bits((bits >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (bits >> 29) as u32 & 0x7f_ffff);
    // Rounded with an unbounded exponent, what lies half a unit in the last place below 2^-126 reaches it.
    let small = FTZ && x.abs() < f64::from_bits((1023 - 126) << 52) * (1.0 - 1.0 / (1 << 25) as f64);
    if x.is_nan() {
        nan
    } else if small {
        0f32.copysign(x as f32)
    } else {
        x as f32
    }
}

/// binary32 to binary64: a NaN becomes quiet and keeps its sign and payload, except that `.ftz` makes it the canonical
/// one first.
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

/// `.sat` of an encoding of 64 bits, whatever it is.
#[inline(always)]
fn saturate_bits(bits: u64, one: u64, infinity: u64) -> u64 {
    let positive = (bits as i64).max(0) as u64;
    if positive > infinity { 0 } else { positive.min(one) }
}

/// `cvt` of a format to itself: the bits pass, unless there is something to flush or to clamp.
fn unchanged(ty: Type, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    Some(match (ty, picks.has(Mod::Ftz), picks.has(Mod::Sat)) {
        (Type::F32, false, false) => map1(path, |x: u32| x),
        (Type::F32, false, true) => map1(path, |x: f32| saturate_any(x)),
        (Type::F32, true, false) => map1(path, |x: f32| quiet(flush::<true>(x))),
        (Type::F32, true, true) => map1(path, |x: f32| saturate_any(flush::<true>(x))),
        (Type::F64, _, false) => map1(path, |x: u64| x),
        (Type::F64, _, true) => map1(path, |x: u64| saturate_bits(x, 1.0f64.to_bits(), F64_INFINITY)),
        (Type::F16 | Type::Bf16, _, false) => map1(path, |x: u16| x),
        (Type::F16, _, true) => {
            map1(path, |x: u16| saturate_bits((x as i16) as u64, 0x3c00, 0x7c00) as u16)
        }
        _ => return None,
    })
}

/// `cvt.rna.tf32.f32`: the fraction of 23 bits to one of 10, to nearest, and of two the one away from zero. The fraction of a
/// NaN is cut.
fn to_tf32<const FINITE: bool>(path: HostPath) -> LaneFn {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    map1(path, |x: u32| {
        let (sign, magnitude) = (x & 0x8000_0000, x & 0x7fff_ffff);
        let unit = 1 << 13;
        let nearest = (magnitude + unit / 2) & !(unit - 1);
        // The largest number is next below infinity.
        let number = if FINITE { nearest.min(INFINITY - unit) } else { nearest.min(INFINITY) };
        let cut = (magnitude & !(unit - 1)).wrapping_sub(if FINITE { unit } else { 0 });
        sign | if magnitude > INFINITY { cut } else { number }
    })
}

/// `cvt.pack`: a and b clamped and packed, a above; the rest of c above both.
struct PackIntegers;

#[derive(Clone, Copy)]
struct PackIntegersWith {
    least: i32,
    most: i32,
    width: u32,
    has_c: bool,
}

impl Parametric for PackIntegers {
    type With = PackIntegersWith;

    #[inline(always)]
    unsafe fn run<P: Path>(args: &LaneArgs, with: &PackIntegersWith) {
        let &PackIntegersWith { least, most, width, has_c } = with;
        let (width, mask) = (width & 31, (1u32 << (width & 31)) - 1);
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                let element = |x: i32| x.max(least).min(most) as u32 & mask;
                let pack = |a: i32, b: i32| element(a) << width | element(b);
                let mut out = apply2(pack, load(args, 0, i), load(args, 1, i));
                if has_c {
                    let above = |out: u32, c: u32| out | c << (2 * width & 31);
                    out = apply2(above, out, load(args, 2, i));
                }
                store(args, 0, i, out);
            }
        }
    }
}

fn pack_integers(sources: usize, ty: Type, path: HostPath) -> LaneFn {
    let width = ty.bits();
    let (least, most) = match ty.is_signed() {
        true => (-1 << (width - 1), (1 << (width - 1)) - 1),
        false => (0, (1 << width) - 1),
    };
    version_with::<PackIntegers>(path, PackIntegersWith { least, most, width, has_c: sources > 2 })
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

/// From floating point to floating point.
fn float_to_float(dtype: Type, atype: Type, picks: &Picks, path: HostPath) -> Option<LaneFn> {
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
        (_, Type::F32) => with_single!(dtype, D => reformat::<f32, D>(ftz, clamp, path)),
        _ => return None,
    })
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
        return Some(match (dtype, picks.has(Mod::Relu)) {
            (Type::F16x2, false) => version::<Pack<F16, false>>(path),
            (Type::F16x2, true) => version::<Pack<F16, true>>(path),
            (Type::Bf16x2, false) => version::<Pack<Bf16, false>>(path),
            (Type::Bf16x2, true) => version::<Pack<Bf16, true>>(path),
            _ => return None,
        });
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
            // Two roundings: to binary32, then to bfloat16.
            Type::Bf16 if atype.bits() == 64 => None,
            _ => {
                Some(with_integer!(atype, A => with_single!(dtype, D => version::<FromInteger<A, D>>(path))))
            }
        },
        _ => None,
    }
}
