//! Integer arithmetic.
//!
//! PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic Instructions".

use crate::operands::{Sources, each_lane, low_bits, one};
use isa::{Mod, Picks, Type};

/// The low `width` bits as a signed number.
pub const fn sign_extend(x: u64, width: u32) -> i64 {
    let unused = 64 - width;
    ((x << unused) as i64) >> unused
}

/// The number that the bits of an integer type represent.
pub(crate) fn number(ty: Type, x: u64) -> i128 {
    if ty.is_signed() { sign_extend(x, ty.bits()) as i128 } else { low_bits(x, ty.bits()) as i128 }
}

/// The number clamped to the range of an integer type.
pub(crate) fn saturate(ty: Type, x: i128) -> i128 {
    let width = ty.bits();
    let (min, max) = match ty.is_signed() {
        true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
        false => (0, (1i128 << width) - 1),
    };
    x.clamp(min, max)
}

/// An element-wise operation on numbers, modulo 2^width or, with `.sat`, clamped.
fn arithmetic(picks: &Picks, s: &[u64], operation: impl Fn(Type, &[i128]) -> i128) -> [u64; 2] {
    let sat = picks.has(Mod::Sat);
    each_lane(picks.ty(0), s, |ty, lane| {
        let mut numbers = [0; 4];
        for (to, &from) in numbers.iter_mut().zip(lane) {
            *to = number(ty, from);
        }
        let result = operation(ty, &numbers[..lane.len()]);
        (if sat { saturate(ty, result) } else { result }) as u64
    })
}

/// `add`, scalar or packed, `.sat` clamping; `add.cc` gives the carry out too.
pub fn add(picks: &Picks, s: &[u64]) -> [u64; 2] {
    if picks.has(Mod::Cc) {
        return addc(picks, s);
    }
    arithmetic(picks, s, |_, x| x.iter().sum())
}

/// `sub`, scalar or packed, `.sat` clamping; `sub.cc` gives the carry out too: 1 unless the subtraction borrows.
pub fn sub(picks: &Picks, s: &[u64]) -> [u64; 2] {
    if picks.has(Mod::Cc) {
        return subc(picks, &[s.bits(0), s.bits(1), 1]);
    }
    arithmetic(picks, s, |_, x| match x {
        [a, b, ..] => a - b,
        _ => 0,
    })
}

/// The part of a product that `.lo`, `.hi` or `.wide` selects, as a number.
fn product(picks: &Picks, ty: Type, a: u64, b: u64) -> i128 {
    let product = number(ty, a).wrapping_mul(number(ty, b));
    if picks.has(Mod::Hi) {
        // An arithmetic shift for signed numbers only, since a product of two u64 fills all 128 bits.
        return if ty.is_signed() { product >> ty.bits() } else { (product as u128 >> ty.bits()) as i128 };
    }
    product
}

/// `clmad`: the lower or (`.hi`) upper half of the product of polynomials over GF(2), xor c.
pub fn clmad(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [a, b, c] = [s.bits(0), s.bits(1), s.bits(2)];
    let product = (0..64).filter(|i| b >> i & 1 != 0).fold(0, |sum, i| sum ^ (a as u128) << i);
    one(c ^ if picks.has(Mod::Hi) { (product >> 64) as u64 } else { product as u64 })
}

/// `mul`: the `.lo` or `.hi` half of the product.
pub fn mul(picks: &Picks, s: &[u64]) -> [u64; 2] {
    mad(picks, &[s.bits(0), s.bits(1), 0])
}

/// `mad`: the same, plus c. `.hi.sat.s32` clamps the sum; `mad.cc` gives the carry out too.
pub fn mad(picks: &Picks, s: &[u64]) -> [u64; 2] {
    if picks.has(Mod::Cc) {
        return madc(picks, s);
    }
    let ty = picks.ty(0);
    let sum = product(picks, ty, s.bits(0), s.bits(1)).wrapping_add(number(ty, s.bits(2)));
    let sum = if picks.has(Mod::Sat) { saturate(ty, sum) } else { sum };
    one(low_bits(sum as u64, ty.bits()))
}

/// `mul.wide`: all of the product.
pub fn mul_wide(picks: &Picks, s: &[u64]) -> [u64; 2] {
    mad_wide(picks, &[s.bits(0), s.bits(1), 0])
}

/// `mad.wide`: all of the product, plus a c of that width.
pub fn mad_wide(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let ty = picks.ty(0);
    let product = (number(ty, s.bits(0)) * number(ty, s.bits(1))) as u64;
    one(low_bits(product.wrapping_add(s.bits(2)), 2 * ty.bits()))
}

/// `mul24`: bits 31:0 (`.lo`) or 47:16 (`.hi`) of the product of two 24-bit numbers.
pub fn mul24(picks: &Picks, s: &[u64]) -> [u64; 2] {
    mad24(picks, &[s.bits(0), s.bits(1), 0])
}

/// `mad24`: the same, plus c. `.hi.sat.s32` clamps the sum.
pub fn mad24(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let ty = picks.ty(0);
    let factor = |i: usize| match ty.is_signed() {
        true => sign_extend(s.bits(i), 24),
        false => low_bits(s.bits(i), 24) as i64,
    };
    let product = factor(0) * factor(1);
    let part = if picks.has(Mod::Hi) { product >> 16 } else { product };
    // Bits 47:16 of the product are a 32-bit number of the instruction's type.
    let sum = number(ty, part as u64) + number(ty, s.bits(2));
    one(low_bits((if picks.has(Mod::Sat) { saturate(ty, sum) } else { sum }) as u64, 32))
}

/// `sad`: c + |a - b|.
pub fn sad(picks: &Picks, s: &[u64]) -> [u64; 2] {
    arithmetic(picks, s, |_, x| match x {
        [a, b, c, ..] => c + (a - b).abs(),
        _ => 0,
    })
}

/// `div`, rounded toward zero. A division by zero gives all ones, for every type and dividend: ptxas folds to -1, and
/// the code it calls returns -1. The most negative number divided by -1 wraps to itself.
pub fn div(picks: &Picks, s: &[u64]) -> [u64; 2] {
    arithmetic(picks, s, |_, x| match x {
        [a, b, ..] if *b != 0 => a / b,
        _ => -1,
    })
}

/// `rem`, with the sign of the dividend. A division by zero gives all ones, as in `div`.
pub fn rem(picks: &Picks, s: &[u64]) -> [u64; 2] {
    arithmetic(picks, s, |_, x| match x {
        [a, b, ..] if *b != 0 => a % b,
        _ => -1,
    })
}

/// `min`, scalar or packed; `.relu` makes a negative result 0.
pub fn min(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let floor = if picks.has(Mod::Relu) { 0 } else { i128::MIN };
    arithmetic(picks, s, |_, x| (*x.iter().min().unwrap_or(&0)).max(floor))
}

/// `max`, scalar or packed; `.relu` makes a negative result 0.
pub fn max(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let floor = if picks.has(Mod::Relu) { 0 } else { i128::MIN };
    arithmetic(picks, s, |_, x| (*x.iter().max().unwrap_or(&0)).max(floor))
}

/// `abs`. The most negative number maps to itself.
pub fn abs(picks: &Picks, s: &[u64]) -> [u64; 2] {
    arithmetic(picks, s, |_, x| x[0].abs())
}

/// `neg`. The most negative number maps to itself.
pub fn neg(picks: &Picks, s: &[u64]) -> [u64; 2] {
    arithmetic(picks, s, |_, x| -x[0])
}

/// `popc`: the number of ones.
pub fn popc(picks: &Picks, s: &[u64]) -> [u64; 2] {
    one(low_bits(s.bits(0), picks.ty(0).bits()).count_ones() as u64)
}

/// `clz`: the number of zeros above the highest one; the width of the type if there is none.
pub fn clz(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let width = picks.ty(0).bits();
    one(low_bits(s.bits(0), width).leading_zeros() as u64 - (64 - width) as u64)
}

/// `bfind`: the position of the highest bit that differs from the sign, or with `.shiftamt` its distance from the
/// top; 0xffffffff if there is none.
pub fn bfind(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let ty = picks.ty(0);
    let a = number(ty, s.bits(0));
    let a = if a < 0 { !a } else { a } as u64;
    let position = 63u64.wrapping_sub(a.leading_zeros() as u64);
    one(match a {
        0 => 0xffff_ffff,
        _ if picks.has(Mod::Shiftamt) => ty.bits() as u64 - 1 - position,
        _ => position,
    })
}

/// `brev`: the bits in reverse order.
pub fn brev(picks: &Picks, s: &[u64]) -> [u64; 2] {
    one(s.bits(0).reverse_bits() >> (64 - picks.ty(0).bits()))
}

/// The position and length of a `bfe` or `bfi` field. 64-bit fields use all bits of these operands, 32-bit fields the
/// low 8, as in the code that ptxas generates. The manual says the low 8 bits for both.
fn field(picks: &Picks, position: u64, length: u64) -> (u32, u32) {
    let counted = if picks.ty(0).bits() == 64 { 32 } else { 8 };
    (low_bits(position, counted) as u32, low_bits(length, counted) as u32)
}

/// `bfe`: the field of c bits at position b, extended by its sign in signed types.
pub fn bfe(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let ty = picks.ty(0);
    let (position, length) = field(picks, s.bits(1), s.bits(2));
    // Beyond the type a signed source continues with its sign, which is the effect of the manual's loop.
    let shifted = number(ty, s.bits(0)) >> position.min(64);
    let field = match (length.min(64), ty.is_signed()) {
        (0, _) => 0,
        (length, true) => sign_extend(shifted as u64, length) as u64,
        (length, false) => low_bits(shifted as u64, length),
    };
    one(low_bits(field, ty.bits()))
}

/// `bfi`: b with the low d bits of a inserted at position c.
pub fn bfi(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (position, length) = field(picks, s.bits(2), s.bits(3));
    let mask = low_bits(u64::MAX, length.min(64)).checked_shl(position).unwrap_or(0);
    let mask = if length == 0 { 0 } else { mask };
    let field = s.bits(0).checked_shl(position).unwrap_or(0);
    one(low_bits((field & mask) | (s.bits(1) & !mask), picks.ty(0).bits()))
}

/// `fns`: the position of the n-th one of the mask, counted up from `base` if n > 0, down if n < 0; 0xffffffff if
/// there is none. A `base` above 31 is undefined by the manual and finds nothing, as on an H100. There the lowest n, whose
/// magnitude is none of its type, gives 0.
pub fn fns(_: &Picks, s: &[u64]) -> [u64; 2] {
    const NONE: u64 = 0xffff_ffff;
    let (mask, base, offset) = (s.bits(0) as u32, low_bits(s.bits(1), 32), sign_extend(s.bits(2), 32));
    if offset == i32::MIN.into() {
        return one(0);
    }
    if base > 31 {
        return one(NONE);
    }
    let is_set = |position: &u64| mask >> position & 1 != 0;
    let skip = (offset.unsigned_abs() as usize).saturating_sub(1);
    one(match offset {
        0 => (base..=base).find(is_set),
        1.. => (base..32).filter(is_set).nth(skip),
        _ => (0..=base).rev().filter(is_set).nth(skip),
    }
    .unwrap_or(NONE))
}

/// `szext`: the low b bits of a, extended by zeros or by their sign. From b = 32 on, `.clamp` keeps all of a and
/// `.wrap` takes b modulo 32.
pub fn szext(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (a, b) = (s.bits(0), low_bits(s.bits(1), 32));
    let length = if picks.has(Mod::Clamp) { b.min(32) } else { b & 31 } as u32;
    let extended = match (length, picks.ty(0).is_signed()) {
        (0, _) => 0,
        (_, true) => sign_extend(a, length) as u64,
        (_, false) => low_bits(a, length),
    };
    one(low_bits(extended, 32))
}

/// `bmsk`: b ones from position a up. `.clamp` takes both as they are, `.wrap` modulo 32.
pub fn bmsk(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let clamp = picks.has(Mod::Clamp);
    let place = |i: usize| match low_bits(s.bits(i), 32) {
        x if clamp => x.min(32),
        x => x & 31,
    };
    one(low_bits(low_bits(u64::MAX, place(1) as u32) << place(0), 32))
}

/// The packed elements of a 32-bit source as numbers.
fn elements(ty: Type, x: u64, width: u32) -> [i64; 4] {
    [0, 1, 2, 3].map(|i| {
        let element = x.checked_shr(i * width).unwrap_or(0);
        if ty.is_signed() { sign_extend(element, width) } else { low_bits(element, width) as i64 }
    })
}

/// `dp4a`: c plus the dot product of four bytes with four bytes.
pub fn dp4a(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (a, b) = (elements(picks.ty(0), s.bits(0), 8), elements(picks.ty(1), s.bits(1), 8));
    let sum: i64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    one(low_bits(s.bits(2).wrapping_add(sum as u64), 32))
}

/// `dp2a`: c plus the dot product of two halves with the two low (`.lo`) or high (`.hi`) bytes of b.
pub fn dp2a(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let (a, b) = (elements(picks.ty(0), s.bits(0), 16), elements(picks.ty(1), s.bits(1), 8));
    let start = if picks.has(Mod::Hi) { 2 } else { 0 };
    let sum: i64 = a[..2].iter().zip(&b[start..]).map(|(a, b)| a * b).sum();
    one(low_bits(s.bits(2).wrapping_add(sum as u64), 32))
}

/// A sum of unsigned numbers and the carry out of the type's width.
fn with_carry(width: u32, terms: [u64; 3]) -> [u64; 2] {
    let sum: u128 = terms.iter().map(|&x| x as u128).sum();
    [low_bits(sum as u64, width), (sum >> width != 0) as u64]
}

/// `add.cc`, `addc`, `addc.cc`: a + b + CC.CF, and the carry out. `add.cc` has no carry in.
pub fn addc(picks: &Picks, s: &[u64]) -> [u64; 2] {
    with_carry(picks.ty(0).bits(), [s.bits(0), s.bits(1), s.bit(2) as u64])
}

/// `sub.cc`, `subc`, `subc.cc`: a + ~b + CC.CF, and the carry out, which is 0 where the difference borrows. `sub.cc`
/// has a carry in of 1. The manual calls both flags borrows. In all code that ptxas generates, the flag is the carry
/// of this sum. The difference is visible when additions and subtractions share the flag.
pub fn subc(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let width = picks.ty(0).bits();
    with_carry(width, [s.bits(0), low_bits(!s.bits(1), width), s.bit(2) as u64])
}

/// `mad.cc`, `madc`, `madc.cc`: the low or high half of a * b, plus c, plus CC.CF, and the carry out of that sum.
/// `mad.cc` has no carry in.
pub fn madc(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let ty = picks.ty(0);
    let part = low_bits(product(picks, ty, s.bits(0), s.bits(1)) as u64, ty.bits());
    with_carry(ty.bits(), [part, s.bits(2), s.bit(3) as u64])
}
