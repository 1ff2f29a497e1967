//! Logic and shifts.
//!
//! PTX ISA, "Logic and Shift Instructions", and prmt of "Data Movement and Conversion Instructions".

use crate::integer::number;
use crate::operands::{Sources, low_bits, one};
use isa::{BoolOp, Mod, Opaque, Picks};

/// `and`
pub fn and(_: &Picks, s: &[u64]) -> [u64; 2] {
    one(s.bits(0) & s.bits(1))
}

/// `or`
pub fn or(_: &Picks, s: &[u64]) -> [u64; 2] {
    one(s.bits(0) | s.bits(1))
}

/// `xor`
pub fn xor(_: &Picks, s: &[u64]) -> [u64; 2] {
    one(s.bits(0) ^ s.bits(1))
}

/// `not`
pub fn not(picks: &Picks, s: &[u64]) -> [u64; 2] {
    one(low_bits(!s.bits(0), picks.ty(0).bits()))
}

/// `cnot`: 1 if a is 0, else 0.
pub fn cnot(picks: &Picks, s: &[u64]) -> [u64; 2] {
    one((low_bits(s.bits(0), picks.ty(0).bits()) == 0) as u64)
}

/// The shift amount: 32 bits, clamped to the type's width, which shifts out all bits.
fn shift_amount(picks: &Picks, s: &[u64]) -> u32 {
    (s.bits(1) as u32).min(picks.ty(0).bits())
}

/// `shl`
pub fn shl(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let shifted = s.bits(0).checked_shl(shift_amount(picks, s)).unwrap_or(0);
    one(low_bits(shifted, picks.ty(0).bits()))
}

/// `shr`: fills with the sign in signed types, with zeros in others.
pub fn shr(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let shifted = number(picks.ty(0), s.bits(0)) >> shift_amount(picks, s);
    one(low_bits(shifted as u64, picks.ty(0).bits()))
}

/// `shf`: the high word of {b, a} shifted left, or the low word of it shifted right, by c clamped to 32 or modulo 32.
pub fn shf(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let pair = low_bits(s.bits(1), 32) << 32 | low_bits(s.bits(0), 32);
    let c = low_bits(s.bits(2), 32);
    let n = if picks.has(Mod::Clamp) { c.min(32) } else { c & 31 };
    one(low_bits(if picks.has(Mod::L) { pair << n >> 32 } else { pair >> n }, 32))
}

/// `lop3`: the truth table `immLut` on each bit of a, b, c. With a Boolean operator the second result is
/// `(d != 0) BoolOp q`.
pub fn lop3(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let [a, b, c, table] = [0, 1, 2, 3].map(|i| s.bits(i) as u32);
    let mut d = 0;
    for row in 0..8u32 {
        let pick = |x: u32, bit: u32| if row >> bit & 1 != 0 { x } else { !x };
        if table >> row & 1 != 0 {
            d |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    let (any, q) = (d != 0, s.bit(4));
    let p = match picks.bool_op() {
        None => false,
        Some(BoolOp::And) => any & q,
        Some(BoolOp::Or) => any | q,
        Some(BoolOp::Xor) => any ^ q,
    };
    [d as u64, p as u64]
}

/// `prmt`: four bytes selected from {b, a}. In the generic form each nibble of c selects one, and its top bit
/// replicates the byte's sign. In the modes, the low two bits of c select a row of the manual's table.
pub fn prmt(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let bytes = (low_bits(s.bits(1), 32) << 32 | low_bits(s.bits(0), 32)).to_le_bytes();
    let row = (s.bits(2) & 3) as u32;
    let control = picks.mods().iter().find_map(|&m| prmt_mode(m, row)).unwrap_or(s.bits(2) as u32);
    let mut d = [0; 4];
    for (i, d) in d.iter_mut().enumerate() {
        let nibble = control >> (4 * i) & 0xf;
        let byte = bytes[(nibble & 7) as usize];
        *d = if nibble & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 };
    }
    one(u32::from_le_bytes(d) as u64)
}

/// The generic control that is equivalent to a mode: one nibble for each byte, the highest byte first.
fn prmt_mode(mode: Mod, row: u32) -> Option<u32> {
    let table = match mode {
        Mod::F4e => [0x3210, 0x4321, 0x5432, 0x6543],
        Mod::B4e => [0x5670, 0x6701, 0x7012, 0x0123],
        Mod::Rc8 => [0x0000, 0x1111, 0x2222, 0x3333],
        Mod::Ecl => [0x3210, 0x3211, 0x3222, 0x3333],
        Mod::Ecr => [0x0000, 0x1110, 0x2210, 0x3210],
        Mod::Rc16 => [0x1010, 0x3232, 0x1010, 0x3232],
        _ => return None,
    };
    Some(table[row as usize & 3])
}

/// `istypep`: whether this is a handle of that kind. A bit of the handle says so, as in ptxas's code.
pub fn istypep(picks: &Picks, s: &[u64]) -> [u64; 2] {
    let kinds =
        [(Mod::Texref, Opaque::Texture), (Mod::Samplerref, Opaque::Sampler), (Mod::Surfref, Opaque::Surface)];
    one(kinds.iter().any(|&(word, kind)| picks.has(word) && s.bits(0) & kind.mark() != 0).into())
}
