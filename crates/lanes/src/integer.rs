//! Integer arithmetic: add, sub, mul, mad, mul24, mad24, sad, min, max, neg, abs, popc, clz, bfind, brev, bfe, bfi.
//!
//! Division, packed halves and the extended-precision forms have no handlers.

use super::drive::{map1, map2, map3, map4};
use super::{HostPath, LaneFn, only};
use isa::{Mod, Opcode, Picks, Type};

/// An expression with `$T` as each integer type in turn, chosen by a [`Type`] at run time; bit types are unsigned.
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

/// The same for operations that do not look at the sign.
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

/// The same for signed types alone.
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

/// Integer types whose product has a type.
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
trait MulHigh: Copy {
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

/// Bit fields: the low 8 bits of position and length count.
macro_rules! fields {
    ($($extract:ident $extract_signed:ident $insert:ident $U:ident $S:ident;)*) => {
        $(
            #[inline(always)]
            fn $extract(a: $U, position: u32, length: u32) -> $U {
                let (position, length) = (position & 0xff, length & 0xff);
                const TOP: u32 = $U::BITS - 1;
                let shifted = if position > TOP { 0 } else { a >> (position & TOP) };
                // Shifted up and down: the compiler would take a mask of ones for BMI2's scalar instruction.
                let unused = (TOP + 1).saturating_sub(length) & TOP;
                if length == 0 { 0 } else { shifted << unused >> unused }
            }

            /// A field that reaches beyond the source goes on with the sign.
            #[inline(always)]
            fn $extract_signed(a: $S, position: u32, length: u32) -> $S {
                const TOP: u32 = $U::BITS - 1;
                let (position, length) = ((position & 0xff).min(TOP), (length & 0xff).min(TOP + 1));
                let unused = (TOP + 1 - length) & TOP;
                let field = a >> position << unused >> unused;
                if length == 0 { 0 } else { field }
            }

            /// `b` with the low bits of `a` in the field.
            #[inline(always)]
            fn $insert(a: $U, b: $U, position: u32, length: u32) -> $U {
                let (position, length) = (position & 0xff, length & 0xff);
                const TOP: u32 = $U::BITS - 1;
                let ones = if length > TOP { !0 } else { (1 << (length & TOP)) - 1 };
                let mask = if position > TOP { 0 } else { ones << (position & TOP) };
                a << (position & TOP) & mask | b & !mask
            }
        )*
    };
}
fields! {
    extract32 extract_signed32 insert32 u32 i32;
    extract64 extract_signed64 insert64 u64 i64;
}

fn bfe(ty: Type, path: HostPath) -> Option<LaneFn> {
    Some(match ty {
        Type::U32 => map3(path, |a: u32, b: u32, c: u32| extract32(a, b, c)),
        Type::U64 => map3(path, |a: u64, b: u32, c: u32| extract64(a, b, c)),
        Type::S32 => map3(path, |a: i32, b: u32, c: u32| extract_signed32(a, b, c)),
        Type::S64 => map3(path, |a: i64, b: u32, c: u32| extract_signed64(a, b, c)),
        _ => return None,
    })
}

fn bfi(ty: Type, path: HostPath) -> Option<LaneFn> {
    Some(match ty {
        Type::B32 => map4(path, |a: u32, b: u32, c: u32, d: u32| insert32(a, b, c, d)),
        Type::B64 => map4(path, |a: u64, b: u64, c: u32, d: u32| insert64(a, b, c, d)),
        _ => return None,
    })
}

/// The position of the highest bit that differs from the sign, or how far it is from the top.
fn bfind(picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    /// `zeros` above the highest one in a word of `width` bits.
    #[inline(always)]
    fn place<const SHIFT: bool>(zeros: u32, width: u32) -> u32 {
        match zeros == width {
            true => !0,
            false if SHIFT => zeros,
            false => width - 1 - zeros,
        }
    }
    let shift = match picks.mods() {
        [] => false,
        [Mod::Shiftamt] => true,
        _ => return None,
    };
    Some(match (ty, shift) {
        (Type::U32, false) => map1(path, |a: u32| place::<false>(a.leading_zeros(), 32)),
        (Type::U32, true) => map1(path, |a: u32| place::<true>(a.leading_zeros(), 32)),
        (Type::S32, false) => map1(path, |a: i32| place::<false>((a ^ a >> 31).leading_zeros(), 32)),
        (Type::S32, true) => map1(path, |a: i32| place::<true>((a ^ a >> 31).leading_zeros(), 32)),
        (Type::U64, false) => map1(path, |a: u64| place::<false>(a.leading_zeros(), 64)),
        (Type::U64, true) => map1(path, |a: u64| place::<true>(a.leading_zeros(), 64)),
        (Type::S64, false) => map1(path, |a: i64| place::<false>((a ^ a >> 63).leading_zeros(), 64)),
        (Type::S64, true) => map1(path, |a: i64| place::<true>((a ^ a >> 63).leading_zeros(), 64)),
        _ => return None,
    })
}

fn add_sub(opcode: Opcode, picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    Some(match (opcode, picks.mods(), ty) {
        (Opcode::Add, [Mod::Sat], Type::S32) => map2(path, |a: i32, b: i32| a.saturating_add(b)),
        (Opcode::Sub, [Mod::Sat], Type::S32) => map2(path, |a: i32, b: i32| a.saturating_sub(b)),
        (Opcode::Add, [], _) => unsigned!(ty, T => map2(path, |a: T, b: T| a.wrapping_add(b))),
        (Opcode::Sub, [], _) => unsigned!(ty, T => map2(path, |a: T, b: T| a.wrapping_sub(b))),
        _ => return None,
    })
}

/// The handler of a form on integers.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let &[ty] = picks.types() else { return None };
    let plain = only(picks, &[]);
    let relu = only(picks, &[Mod::Relu]) && !plain && ty == Type::S32;
    Some(match (opcode, sources) {
        (Opcode::Add | Opcode::Sub, 2) => return add_sub(opcode, picks, ty, path),
        (Opcode::Mul, 2) => return mul(picks, ty, path),
        (Opcode::Mad, 3) => return mad(picks, ty, path),
        (Opcode::Mul24, 2) => return mul24(picks, ty, path),
        (Opcode::Mad24, 3) => return mad24(picks, ty, path),
        (Opcode::Bfind, 1) => return bfind(picks, ty, path),
        (Opcode::Bfe, 3) if plain => return bfe(ty, path),
        (Opcode::Bfi, 4) if plain => return bfi(ty, path),
        (Opcode::Min, 2) if relu => map2(path, |a: i32, b: i32| a.min(b).max(0)),
        (Opcode::Max, 2) if relu => map2(path, |a: i32, b: i32| a.max(b).max(0)),
        _ if !plain => return None,
        (Opcode::Min, 2) => integer!(ty, T => map2(path, |a: T, b: T| a.min(b))),
        (Opcode::Max, 2) => integer!(ty, T => map2(path, |a: T, b: T| a.max(b))),
        (Opcode::Sad, 3) => integer!(ty, T => map3(path, |a: T, b: T, c: T| {
            let difference = if a > b { a.wrapping_sub(b) } else { b.wrapping_sub(a) };
            c.wrapping_add(difference)
        })),
        (Opcode::Neg, 1) => signed!(ty, T => map1(path, |a: T| a.wrapping_neg())),
        (Opcode::Abs, 1) => signed!(ty, T => map1(path, |a: T| a.wrapping_abs())),
        (Opcode::Popc, 1) => match ty {
            Type::B32 => map1(path, |a: u32| a.count_ones()),
            Type::B64 => map1(path, |a: u64| a.count_ones()),
            _ => return None,
        },
        (Opcode::Clz, 1) => match ty {
            Type::B32 => map1(path, |a: u32| a.leading_zeros()),
            Type::B64 => map1(path, |a: u64| a.leading_zeros()),
            _ => return None,
        },
        (Opcode::Brev, 1) => match ty {
            Type::B32 => map1(path, |a: u32| a.reverse_bits()),
            Type::B64 => map1(path, |a: u64| a.reverse_bits()),
            _ => return None,
        },
        _ => return None,
    })
}
