//! Bit operations: popc, clz, bfind, fns, brev, bfe, bfi, szext, bmsk.

use super::drive::{load, map1, map2, map3, map4, store};
use super::path::{BLOCK, Block, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Opcode, Picks, Type};

/// Bit field operations. `$counted` masks the bits of position and length that count.
macro_rules! fields {
    ($($extract:ident $extract_signed:ident $insert:ident $U:ident $S:ident $counted:literal;)*) => {
        $(
            #[inline(always)]
            fn $extract(a: $U, position: u32, length: u32) -> $U {
                let (position, length) = (position & $counted, length & $counted);
                const TOP: u32 = $U::BITS - 1;
                let shifted = if position > TOP { 0 } else { a >> (position & TOP) };
                // Shifts instead of a mask of ones, for which the compiler would use BMI2's scalar instruction.
                let unused = (TOP + 1).saturating_sub(length) & TOP;
                if length == 0 { 0 } else { shifted << unused >> unused }
            }

            /// The part of a field beyond the source is filled with the sign.
            #[inline(always)]
            fn $extract_signed(a: $S, position: u32, length: u32) -> $S {
                const TOP: u32 = $U::BITS - 1;
                let (position, length) = ((position & $counted).min(TOP), (length & $counted).min(TOP + 1));
                let unused = (TOP + 1 - length) & TOP;
                let field = a >> position << unused >> unused;
                if length == 0 { 0 } else { field }
            }

            /// `b` with the field replaced by the low bits of `a`.
            #[inline(always)]
            fn $insert(a: $U, b: $U, position: u32, length: u32) -> $U {
                let (position, length) = (position & $counted, length & $counted);
                const TOP: u32 = $U::BITS - 1;
                let ones = if length > TOP { !0 } else { (1 << (length & TOP)) - 1 };
                let mask = if position > TOP { 0 } else { ones << (position & TOP) };
                a << (position & TOP) & mask | b & !mask
            }
        )*
    };
}
fields! {
    extract32 extract_signed32 insert32 u32 i32 0xff;
    extract64 extract_signed64 insert64 u64 i64 0xffff_ffff;
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

/// The position of the highest bit that differs from the sign, or its distance from the top.
fn bfind(picks: &Picks, ty: Type, path: HostPath) -> Option<LaneFn> {
    /// The result for `zeros` leading zeros in a word of `width` bits.
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

/// One step of a search for a set bit that has `left` set bits below it: skips `width` bits if it is not among these.
#[inline(always)]
fn step((position, left): (u32, u32), counts: u32, width: u32) -> (u32, u32) {
    let count = counts >> (position & 31) & ((1 << width) - 1);
    let skip = u32::from(left >= count).wrapping_neg();
    (position + (width & skip), left - (count & skip))
}

/// The position of the n-th lowest set bit of `mask`, if there are that many: a binary search by the population
/// counts of the parts.
#[inline(always)]
fn nth_one(mask: u32, n: u32) -> u32 {
    let pairs = mask - (mask >> 1 & 0x5555_5555);
    let nibbles = (pairs & 0x3333_3333) + (pairs >> 2 & 0x3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f;
    let halves = (bytes + (bytes >> 8)) & 0x00ff_00ff;
    let place = step((0, n.wrapping_sub(1)), halves, 16);
    let place = step(place, bytes, 8);
    let place = step(place, nibbles, 4);
    step(step(place, pairs, 2), mask, 1).0
}

/// `fns`: the n-th set bit counted up from `base` if n > 0, down if n < 0; `base` itself if n is 0.
#[inline(always)]
fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    let down = offset < 0;
    // Counting down is counting up in the reversed word.
    let (word, start) = if down { (mask.reverse_bits(), 31u32.wrapping_sub(base)) } else { (mask, base) };
    let from = word >> (start & 31) << (start & 31);
    let n = offset.unsigned_abs();
    let position = nth_one(from, if n == 0 { 1 } else { n } & 63);
    let found = if down { 31 - (position & 31) } else { position };
    // For n = 0 the bit at the base must be set.
    let there = if n == 0 { mask >> (base & 31) & 1 != 0 } else { n <= from.count_ones() };
    let found = if there & (base <= 31) { found } else { !0 };
    // The lowest n has no magnitude in its type.
    if offset == i32::MIN { 0 } else { found }
}

/// A separate kernel, because a closure of this length might not be inlined.
struct Fns;

impl Kernel for Fns {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                let (mask, base): (Block<u32>, Block<u32>) = (load(args, 0, i), load(args, 1, i));
                let offset: Block<i32> = load(args, 2, i);
                let mut out = [0; BLOCK];
                for k in 0..BLOCK {
                    out[k] = fns(mask[k], base[k], offset[k]);
                }
                store(path, args, 0, i, out);
            }
        }
    }
}

/// The low `length` bits, zero- or sign-extended; 0 if `length` is 0.
#[inline(always)]
fn extend<const SIGNED: bool>(a: u32, length: u32) -> u32 {
    let unused = 32u32.wrapping_sub(length) & 31;
    let extended = if SIGNED { ((a << unused) as i32 >> unused) as u32 } else { a << unused >> unused };
    if length == 0 { 0 } else { extended }
}

/// `length` ones from `position` on, both at most 32.
#[inline(always)]
fn ones(position: u32, length: u32) -> u32 {
    let ones = if length > 31 { !0 } else { (1 << (length & 31)) - 1 };
    if position > 31 { 0 } else { ones << (position & 31) }
}

/// The handler of a form on bits and fields.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let &[ty] = picks.types() else { return None };
    let clamp = picks.has(Mod::Clamp);
    Some(match (opcode, sources) {
        (Opcode::Bfind, 1) => return bfind(picks, ty, path),
        (Opcode::Szext, 2) => match (ty.is_signed(), clamp) {
            (false, false) => map2(path, |a: u32, b: u32| extend::<false>(a, b & 31)),
            (false, true) => map2(path, |a: u32, b: u32| extend::<false>(a, b.min(32))),
            (true, false) => map2(path, |a: u32, b: u32| extend::<true>(a, b & 31)),
            (true, true) => map2(path, |a: u32, b: u32| extend::<true>(a, b.min(32))),
        },
        (Opcode::Bmsk, 2) if clamp => map2(path, |a: u32, b: u32| ones(a.min(32), b.min(32))),
        (Opcode::Bmsk, 2) => map2(path, |a: u32, b: u32| ones(a & 31, b & 31)),
        _ if !only(picks, &[]) => return None,
        (Opcode::Bfe, 3) => return bfe(ty, path),
        (Opcode::Bfi, 4) => return bfi(ty, path),
        (Opcode::Fns, 3) => version::<Fns>(path),
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
