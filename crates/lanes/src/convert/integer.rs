//! cvt among integers, and cvt.pack.

use crate::drive::{Lane, apply2, load, map1, store};
use crate::path::{BLOCK, Parametric, Path, version_with};
use crate::{HostPath, LaneArgs, LaneFn};
use isa::Type;

/// An integer type and the type of the lanes that hold it.
pub(super) trait Integer: Copy + 'static {
    type Lane: Lane;
    const MIN: i64;
    /// As unsigned bits.
    const MAX: u64;
    const SIGNED: bool;
    fn from_lane(lane: Self::Lane) -> Self;
    fn to_lane(self) -> Self::Lane;
    /// Its value modulo 2^64.
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    fn from_f32(x: f32) -> Self;
    fn from_f64(x: f64) -> Self;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    /// The conversion of a NaN from binary64, or to 64 bits.
    fn of_nan() -> Self {
        Self::from_bits(if Self::SIGNED { Self::MIN as u64 } else { Self::MAX ^ Self::MAX >> 1 })
    }
}

/// Implements `$T` in `$Lane`; `$from` converts binary32 and binary64 numbers, clamping them to `$T`.
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

/// Equivalent to `as`, but vectorizable. `$top` is the largest number of the floating-point format in the integer's
/// range.
macro_rules! clamped {
    ($x:ident $F:ident $T:ident $Via:ident $top:literal) => {{
        const LEAST: $F = $T::MIN as $F;
        const MOST: $F = $top;
        // A NaN becomes the least number here, and 0 at the end.
        let clamped = if $x > LEAST { $x } else { LEAST };
        let clamped = if clamped < MOST { clamped } else { MOST };
        // SAFETY: not NaN and within the range of the type.
        let number = unsafe { clamped.to_int_unchecked::<$Via>() } as $T;
        let number = if $x > MOST { $T::MAX } else { number };
        if $x.is_nan() { 0 } else { number }
    }};
}

/// Like `clamped`, for 32 bits, whose largest number only binary64 can represent.
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

pub(super) use with_integer;

/// The number of `D` nearest to `a`.
#[inline(always)]
fn saturate<A: Integer, D: Integer>(a: A) -> D {
    let bits = a.to_bits();
    if !A::SIGNED {
        return D::from_bits(bits.min(D::MAX));
    }
    // A signed number fits into an i64. So do the limits of every type except u64, whose upper limit it cannot
    // exceed.
    let max = if D::MAX > i64::MAX as u64 { i64::MAX } else { D::MAX as i64 };
    D::from_bits((bits as i64).clamp(D::MIN, max) as u64)
}

pub(super) fn integer_to_integer<A: Integer, D: Integer>(sat: bool, path: HostPath) -> LaneFn {
    match sat {
        false => map1(path, |a: A::Lane| D::from_bits(A::from_lane(a).to_bits()).to_lane()),
        true => map1(path, |a: A::Lane| saturate::<A, D>(A::from_lane(a)).to_lane()),
    }
}

/// `cvt.pack`: clamps and packs a and b, a above b, and the rest of c above both.
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
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &PackIntegersWith) {
        let &PackIntegersWith { least, most, width, has_c } = with;
        let (width, mask) = (width & 31, (1u32 << (width & 31)) - 1);
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                let element = |x: i32| x.max(least).min(most) as u32 & mask;
                let pack = |a: i32, b: i32| element(a) << width | element(b);
                let mut out = apply2(pack, load(args, 0, i), load(args, 1, i));
                if has_c {
                    let above = |out: u32, c: u32| out | c << ((2 * width) & 31);
                    out = apply2(above, out, load(args, 2, i));
                }
                store(path, args, 0, i, out);
            }
        }
    }
}

/// The handler of `cvt.pack`.
pub(super) fn pack_integers(sources: usize, ty: Type, path: HostPath) -> LaneFn {
    let width = ty.bits();
    let (least, most) = match ty.is_signed() {
        true => (-1 << (width - 1), (1 << (width - 1)) - 1),
        false => (0, (1 << width) - 1),
    };
    version_with::<PackIntegers>(path, PackIntegersWith { least, most, width, has_c: sources > 2 })
}
