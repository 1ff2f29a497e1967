//! Integer arithmetic: add, sub, mul, mad, mul24, mad24, sad, min, max, neg, abs, dp4a, dp2a; also on packed halves.

use super::drive::{bytes2, in_pairs, load, map1, map2, map3, store};
use super::path::{BLOCK, Block, Parametric, Path, version_with};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Opcode, Picks, Type};

/// An expression with `$T` as the integer type that a run-time [`Type`] names; bit types are unsigned.
macro_rules! integer {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Type::U16 | Type::B16 => {
                type $T = u16;
                $body
            }
            Type::S16 => {
                type $T = i16;
                $body
            }
            Type::U32 | Type::B32 => {
                type $T = u32;
                $body
            }
            Type::S32 => {
                type $T = i32;
                $body
            }
            Type::U64 | Type::B64 => {
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
pub(super) use integer;

/// Like `integer`, for operations that do not depend on the sign.
macro_rules! unsigned {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Type::U16 | Type::S16 | Type::B16 => {
                type $T = u16;
                $body
            }
            Type::U32 | Type::S32 | Type::B32 => {
                type $T = u32;
                $body
            }
            Type::U64 | Type::S64 | Type::B64 => {
                type $T = u64;
                $body
            }
            _ => return None,
        }
    };
}
pub(super) use unsigned;

/// Like `integer`, for signed types only.
macro_rules! signed {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Type::S16 => {
                type $T = i16;
                $body
            }
            Type::S32 => {
                type $T = i32;
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

/// Like `integer`, with `$W` as the type of the product of two `$T`.
macro_rules! widening {
    ($ty:expr, $T:ident, $W:ident => $body:expr) => {
        match $ty {
            Type::U16 => {
                type $T = u16;
                type $W = u32;
                $body
            }
            Type::S16 => {
                type $T = i16;
                type $W = i32;
                $body
            }
            Type::U32 => {
                type $T = u32;
                type $W = u64;
                $body
            }
            Type::S32 => {
                type $T = i32;
                type $W = i64;
                $body
            }
            _ => return None,
        }
    };
}

/// The high half of a product.
pub(super) trait MulHigh: Copy {
    fn mul_high(self, other: Self) -> Self;
}

macro_rules! mul_high {
    ($($T:ident $W:ident)*) => {
        $(impl MulHigh for $T {
            #[inline(always)]
            fn mul_high(self, other: Self) -> Self {
                ((self as $W).wrapping_mul(other as $W) >> $T::BITS) as $T
            }
        })*
    };
}
mul_high!(u16 u32 i16 i32 u32 u64 i32 i64 u64 u128 i64 i128);

fn mul(picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    Some(match picks.mods() {
        [Mod::Lo] => unsigned!(ty, T => map2(path, |a: T, b: T| a.wrapping_mul(b))),
        [Mod::Hi] => integer!(ty, T => map2(path, |a: T, b: T| a.mul_high(b))),
        [Mod::Wide] => widening!(ty, T, W => map2(path, |a: T, b: T| W::from(a).wrapping_mul(W::from(b)))),
        _ => return None,
    })
}

fn mad(picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    Some(match picks.mods() {
        [Mod::Lo] => unsigned!(ty, T => map3(path, |a: T, b: T, c: T| a.wrapping_mul(b).wrapping_add(c))),
        [Mod::Hi] => integer!(ty, T => map3(path, |a: T, b: T, c: T| a.mul_high(b).wrapping_add(c))),
        [Mod::Hi, Mod::Sat] if ty == Type::S32 => {
            map3(path, |a: i32, b: i32, c: i32| a.mul_high(b).saturating_add(c))
        }
        [Mod::Wide] => widening!(ty, T, W => {
            map3(path, |a: T, b: T, c: W| W::from(a).wrapping_mul(W::from(b)).wrapping_add(c))
        }),
        _ => return None,
    })
}

/// Bits 31:0 or, if `HIGH`, 47:16 of the product of two 24-bit numbers.
#[inline(always)]
fn mul24_unsigned<const HIGH: bool>(a: u32, b: u32) -> u32 {
    let product = u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff);
    if HIGH { (product >> 16) as u32 } else { product as u32 }
}

#[inline(always)]
fn mul24_signed<const HIGH: bool>(a: i32, b: i32) -> i32 {
    let product = i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8);
    if HIGH { (product >> 16) as i32 } else { product as i32 }
}

fn mul24(picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    Some(match (picks.mods(), ty) {
        ([Mod::Lo], Type::U32) => map2(path, |a: u32, b: u32| mul24_unsigned::<false>(a, b)),
        ([Mod::Hi], Type::U32) => map2(path, |a: u32, b: u32| mul24_unsigned::<true>(a, b)),
        ([Mod::Lo], Type::S32) => map2(path, |a: i32, b: i32| mul24_signed::<false>(a, b)),
        ([Mod::Hi], Type::S32) => map2(path, |a: i32, b: i32| mul24_signed::<true>(a, b)),
        _ => return None,
    })
}

fn mad24(picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    Some(match (picks.mods(), ty) {
        ([Mod::Hi, Mod::Sat], Type::S32) => {
            map3(path, |a: i32, b: i32, c: i32| mul24_signed::<true>(a, b).saturating_add(c))
        }
        ([Mod::Lo], Type::U32) => {
            map3(path, |a: u32, b: u32, c: u32| mul24_unsigned::<false>(a, b).wrapping_add(c))
        }
        ([Mod::Hi], Type::U32) => {
            map3(path, |a: u32, b: u32, c: u32| mul24_unsigned::<true>(a, b).wrapping_add(c))
        }
        ([Mod::Lo], Type::S32) => {
            map3(path, |a: i32, b: i32, c: i32| mul24_signed::<false>(a, b).wrapping_add(c))
        }
        ([Mod::Hi], Type::S32) => {
            map3(path, |a: i32, b: i32, c: i32| mul24_signed::<true>(a, b).wrapping_add(c))
        }
        _ => return None,
    })
}

/// Dot products: c plus the products of the bytes of two words, or of the halves of one word with two bytes of the
/// other.
struct Dot<const HALVES: bool>;

#[derive(Clone, Copy)]
struct DotWith {
    /// The sign bits of the parts of a and of b; 0 if they are unsigned.
    signs: [u32; 2],
    /// The bit offset of b's first part.
    from: u32,
}

impl<const HALVES: bool> Parametric for Dot<HALVES> {
    type With = DotWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &DotWith) {
        // The value of a part, with its sign.
        let part = |x: u32, shift: u32, mask: u32, sign: u32| {
            let part = x >> shift & mask;
            part.wrapping_sub((part & sign) << 1)
        };
        let &DotWith { signs: [a_sign, b_sign], from } = with;
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                let (a, b): (Block<u32>, Block<u32>) = (load(args, 0, i), load(args, 1, i));
                let mut sum: Block<u32> = load(args, 2, i);
                for k in 0..BLOCK {
                    let b = b[k] >> (from & 31);
                    for n in 0..if HALVES { 2 } else { 4 } {
                        let (shift, mask) = if HALVES { (16 * n, 0xffff) } else { (8 * n, 0xff) };
                        let product =
                            part(a[k], shift, mask, a_sign).wrapping_mul(part(b, 8 * n, 0xff, b_sign));
                        sum[k] = sum[k].wrapping_add(product);
                    }
                }
                store(path, args, 0, i, sum);
            }
        }
    }
}

fn dot(opcode: Opcode, picks: &Picks, path: HostPath) -> LaneFn {
    let sign = |i: usize, sign: u32| if picks.ty(i).is_signed() { sign } else { 0 };
    let halves = opcode == Opcode::Dp2a;
    let from = if halves && picks.has(Mod::Hi) { 16 } else { 0 };
    let with = DotWith { signs: [sign(0, if halves { 0x8000 } else { 0x80 }), sign(1, 0x80)], from };
    if halves { version_with::<Dot<true>>(path, with) } else { version_with::<Dot<false>>(path, with) }
}

fn add_sub(opcode: Opcode, picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    Some(match (opcode, picks.mods(), ty) {
        (Opcode::Add, [Mod::Sat], _) => integer!(ty, T => map2(path, |a: T, b: T| a.saturating_add(b))),
        (Opcode::Sub, [Mod::Sat], Type::S32) => map2(path, |a: i32, b: i32| a.saturating_sub(b)),
        (Opcode::Add, [], _) => unsigned!(ty, T => map2(path, |a: T, b: T| a.wrapping_add(b))),
        (Opcode::Sub, [], _) => unsigned!(ty, T => map2(path, |a: T, b: T| a.wrapping_sub(b))),
        _ => return None,
    })
}

/// The handler of a form on integers.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    match (opcode, sources, picks.types()) {
        (Opcode::Dp4a | Opcode::Dp2a, 3, _) => Some(dot(opcode, picks, path)),
        (_, _, [ty @ (Type::U16x2 | Type::S16x2)]) => {
            Some(in_pairs(2, scalar(opcode, sources, picks, ty.element(), path)?))
        }
        (_, _, [ty @ (Type::U8x4 | Type::S8x4)]) => bytes(opcode, sources, picks, ty.is_signed(), path),
        (_, _, &[ty]) => scalar(opcode, sources, picks, ty, path),
        _ => None,
    }
}

/// The handler of a form on packed bytes.
fn bytes(opcode: Opcode, sources: usize, picks: &Picks, signed: bool, path: HostPath) -> Option<LaneFn> {
    Some(match (opcode, sources, picks.mods(), signed) {
        (Opcode::Add, 2, [], _) => bytes2(path, |a: u8, b: u8| a.wrapping_add(b)),
        (Opcode::Add, 2, [Mod::Sat], false) => bytes2(path, |a: u8, b: u8| a.saturating_add(b)),
        (Opcode::Add, 2, [Mod::Sat], true) => bytes2(path, |a: i8, b: i8| a.saturating_add(b) as u8),
        (Opcode::Sub, 2, [], _) => bytes2(path, |a: u8, b: u8| a.wrapping_sub(b)),
        (Opcode::Sub, 2, [Mod::Sat], false) => bytes2(path, |a: u8, b: u8| a.saturating_sub(b)),
        (Opcode::Sub, 2, [Mod::Sat], true) => bytes2(path, |a: i8, b: i8| a.saturating_sub(b) as u8),
        (Opcode::Min, 2, [], false) => bytes2(path, |a: u8, b: u8| a.min(b)),
        (Opcode::Min, 2, [], true) => bytes2(path, |a: i8, b: i8| a.min(b) as u8),
        (Opcode::Min, 2, [Mod::Relu], true) => bytes2(path, |a: i8, b: i8| a.min(b).max(0) as u8),
        (Opcode::Max, 2, [], false) => bytes2(path, |a: u8, b: u8| a.max(b)),
        (Opcode::Max, 2, [], true) => bytes2(path, |a: i8, b: i8| a.max(b) as u8),
        (Opcode::Max, 2, [Mod::Relu], true) => bytes2(path, |a: i8, b: i8| a.max(b).max(0) as u8),
        // Setting the highest bit of each byte prevents borrows between bytes; the exclusive or then corrects these
        // bits.
        (Opcode::Neg, 1, [], true) => {
            map1(path, |a: u32| (HIGHEST - (a & !HIGHEST)) ^ (HIGHEST ^ a & HIGHEST))
        }
        _ => return None,
    })
}

/// The highest bit of each byte.
const HIGHEST: u32 = 0x8080_8080;

/// One half of the product of two polynomials over GF(2), plus c.
#[inline(always)]
fn carryless<const HIGH: bool>(a: u64, b: u64, c: u64) -> u64 {
    let mut sum = 0;
    for i in 0..64 {
        let term = match (HIGH, i) {
            (true, 0) => 0,
            (true, _) => a >> (64 - i),
            (false, _) => a << i,
        };
        sum ^= term & (b >> i & 1).wrapping_neg();
    }
    sum ^ c
}

fn clmad(picks: &Picks, path: HostPath) -> Option<LaneFn> {
    Some(match picks.mods() {
        [Mod::Lo] => map3(path, |a: u64, b: u64, c: u64| carryless::<false>(a, b, c)),
        [Mod::Hi] => map3(path, |a: u64, b: u64, c: u64| carryless::<true>(a, b, c)),
        _ => return None,
    })
}

/// The handler of a form on scalar integers.
fn scalar(opcode: Opcode, sources: usize, picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    let plain = only(picks, &[]);
    let relu = only(picks, &[Mod::Relu]) && !plain;
    Some(match (opcode, sources) {
        (Opcode::Add | Opcode::Sub, 2) => return add_sub(opcode, picks, ty, path),
        (Opcode::Mul, 2) => return mul(picks, ty, path),
        (Opcode::Mad, 3) => return mad(picks, ty, path),
        (Opcode::Clmad, 3) => return clmad(picks, path),
        (Opcode::Mul24, 2) => return mul24(picks, ty, path),
        (Opcode::Mad24, 3) => return mad24(picks, ty, path),
        (Opcode::Min, 2) if relu => signed!(ty, T => map2(path, |a: T, b: T| a.min(b).max(0))),
        (Opcode::Max, 2) if relu => signed!(ty, T => map2(path, |a: T, b: T| a.max(b).max(0))),
        _ if !plain => return None,
        (Opcode::Min, 2) => integer!(ty, T => map2(path, |a: T, b: T| a.min(b))),
        (Opcode::Max, 2) => integer!(ty, T => map2(path, |a: T, b: T| a.max(b))),
        (Opcode::Sad, 3) => integer!(ty, T => map3(path, |a: T, b: T, c: T| {
            let difference = if a > b { a.wrapping_sub(b) } else { b.wrapping_sub(a) };
            c.wrapping_add(difference)
        })),
        (Opcode::Neg, 1) => signed!(ty, T => map1(path, |a: T| a.wrapping_neg())),
        (Opcode::Abs, 1) => signed!(ty, T => map1(path, |a: T| a.wrapping_abs())),
        _ => return None,
    })
}
