//! The sources of the instruction in the middle.

use super::super::{Generator, Place};
use super::places::Cell;
use super::{Hood, Source};
use crate::catalog::Slot;

impl Generator<'_, '_> {
    /// A source operand of a pure instruction.
    pub(super) fn source_operand(&mut self, hood: &mut Hood, slot: &Slot, place: &Place) -> Option<String> {
        if slot.range.is_some() {
            return self.operand(slot);
        }
        let bits = self.register_bits(slot)?;
        let (count, braces) = slot.count;
        let mut text = match hood.source {
            Source::Register if count == 1 && slot.literal && self.random.percent(15) => {
                self.literal(slot.ty)
            }
            _ => None,
        }
        .map_or_else(
            || self.values(hood, slot.ty.bits(), bits, count, place).map(|all| all.join(", ")),
            Some,
        )?;
        if braces {
            text = format!("{{{text}}}");
        }
        if slot.negatable && slot.ty == isa::Type::Pred && self.random.percent(30) {
            text = format!("!{text}");
        }
        Some(text)
    }

    /// The register width of an operand.
    pub(super) fn register_bits(&mut self, slot: &Slot) -> Option<u32> {
        let bits = match slot.ty.bits() {
            bits @ (1 | 8 | 16 | 32 | 64) => bits,
            2..8 if !slot.wider => return None,
            bits @ 2..16 => bits.next_multiple_of(8),
            bits if bits <= 64 => bits,
            _ => return None,
        };
        if slot.wider && slot.count.0 == 1 && !slot.ty.is_float() && self.random.percent(30) {
            return Some(*self.random.pick(&[bits.max(16), bits.max(32), 64]));
        }
        // 8-bit registers are rare where wider ones are allowed.
        Some(if bits == 8 && slot.wider && self.random.percent(80) { 16 } else { bits })
    }

    /// Values for an operand of a type of `type_bits`, in registers of `bits`.
    pub(super) fn values(
        &mut self,
        hood: &mut Hood,
        type_bits: u32,
        bits: u32,
        count: usize,
        place: &Place,
    ) -> Option<Vec<String>> {
        if hood.source != Source::Vector || bits == 1 || bits > 64 {
            return (0..count).map(|_| self.value(hood, type_bits, bits, place)).collect();
        }
        // All from one vector load.
        let bytes = type_bits.max(8) as usize / 8;
        let widest = if self.has_wide() && bytes >= 4 { 32 } else { 16 };
        let lengths: Vec<usize> = [2, 4, 8]
            .into_iter()
            .filter(|&n| n >= count && n * bytes <= widest && (n < 8 || n * bytes == 32))
            .collect();
        if lengths.is_empty() {
            return None;
        }
        let length = *self.random.pick(&lengths);
        let (cell, offset) = self.source_cell(hood, length * bytes, place)?;
        if length * bytes > 16 && !matches!(cell.space, "" | ".global") {
            return None;
        }
        let registers: Vec<String> = (0..length).map(|_| hood.fresh(bits)).collect();
        let ty = load_type(bytes, bits, self.random.percent(50));
        hood.line(format!(
            "ld{}.v{length}.{ty} {{{}}}, {};",
            cell.space,
            registers.join(", "),
            cell.address(offset)
        ));
        let first = self.random.below(length);
        Some((0..count).map(|i| registers[(first + i) % length].clone()).collect())
    }

    /// One value.
    pub(super) fn value(
        &mut self,
        hood: &mut Hood,
        type_bits: u32,
        bits: u32,
        place: &Place,
    ) -> Option<String> {
        if bits == 1 {
            return self.predicate_value(hood, place);
        }
        if bits > 64 {
            return self.quad_value(hood, place);
        }
        match hood.source {
            Source::Steps => return Some(self.stepping(hood, bits)),
            Source::Copied if bits > 8 => {
                let (first, copy) = (self.register(bits), hood.fresh(bits));
                hood.line(format!("mov.b{bits} {copy}, {first};"));
                if self.random.percent(50) {
                    hood.line(format!("add.u{bits} {first}, {first}, 1;"));
                }
                return Some(copy);
            }
            Source::Packed if bits > 8 => return Some(self.packed(hood, bits)),
            Source::Register if bits > 8 => return Some(self.register(bits)),
            _ => {}
        }
        let (all, own) = (bits as usize / 8, type_bits.max(8) as usize / 8);
        let bytes = match hood.source {
            Source::Narrow => *self.random.pick(&[1, 2, 4].map(|n: usize| n.min((all / 2).max(1)))),
            _ if own < all && self.random.percent(50) => own,
            _ => all,
        };
        let (cell, offset) = self.source_cell(hood, bytes, place)?;
        let register = hood.fresh(bits);
        let ty = load_type(bytes, bits, self.random.percent(50));
        hood.line(format!("ld{}.{ty} {register}, {};", cell.space, cell.address(offset)));
        Some(register)
    }

    /// The cell and the offset that a source is loaded from.
    fn source_cell(&mut self, hood: &mut Hood, bytes: usize, place: &Place) -> Option<(Cell, usize)> {
        let large = bytes.max(hood.least_cell);
        let cell = match hood.source {
            // Several loads from one cell.
            _ if !hood.cells.is_empty() && self.random.percent(40) => hood.cells[0].clone(),
            Source::Alike | Source::Same => self.alike(hood, large, place),
            Source::Strided => self.strided(large)?,
            Source::Elsewhere => self.elsewhere(hood, large, hood.least_cell > 1, place)?,
            _ => self.dense(hood, large),
        };
        if cell.bytes < bytes {
            return None;
        }
        let offset = self.random.below(cell.bytes / bytes) * bytes;
        hood.cells.push(cell.clone());
        Some((cell, offset))
    }

    fn predicate_value(&mut self, hood: &mut Hood, place: &Place) -> Option<String> {
        let predicate = hood.fresh(1);
        match hood.source {
            Source::Register | Source::Packed => return Some(self.predicate()),
            Source::Copied => {
                let from = self.predicate();
                hood.line(format!("mov.pred {predicate}, {from};"));
            }
            Source::Steps => {
                let bound = self.random.below(64);
                hood.line(format!("setp.lt.u32 {predicate}, %thread, {bound};"));
            }
            _ => {
                let value = self.value(hood, 32, 32, place)?;
                let bound = self.random.below(100);
                hood.line(format!("setp.gt.s32 {predicate}, {value}, {bound};"));
            }
        }
        Some(predicate)
    }

    fn quad_value(&mut self, hood: &mut Hood, place: &Place) -> Option<String> {
        if !self.has_quads() {
            return None;
        }
        match hood.source {
            Source::Register | Source::Copied => return Some(self.register(128)),
            Source::Steps | Source::Packed | Source::Same => {
                let (a, b, quad) = (self.stepping(hood, 64), self.double(), hood.fresh(128));
                hood.line(format!("mov.b128 {quad}, {{{a}, {b}}};"));
                return Some(quad);
            }
            _ => {}
        }
        let (cell, offset) = self.source_cell(hood, 16, place)?;
        let quad = hood.fresh(128);
        hood.line(format!("ld{}.b128 {quad}, {};", cell.space, cell.address(offset)));
        Some(quad)
    }

    /// A number with a constant step from thread to thread.
    fn stepping(&mut self, hood: &mut Hood, bits: u32) -> String {
        let word = hood.fresh(32);
        let (step, start) =
            (*self.random.pick(&[1, 1, 2, 4, 12, 65535, 0x0100_0001]), self.random.bits() as u8);
        let index = if self.random.percent(70) { "%thread" } else { "%block" };
        hood.line(format!("mad.lo.u32 {word}, {index}, {step}, {start};"));
        if bits == 32 {
            return word;
        }
        let register = hood.fresh(bits);
        hood.line(format!("cvt.u{bits}.u32 {register}, {word};"));
        register
    }

    /// A value packed from halves, or an unpacked half.
    fn packed(&mut self, hood: &mut Hood, bits: u32) -> String {
        let half = match bits {
            16 => {
                let (low, high, word) = (hood.fresh(16), hood.fresh(16), self.word());
                hood.line(format!("mov.b32 {{{low}, {high}}}, {word};"));
                return if self.random.percent(50) { low } else { high };
            }
            32 => 16,
            _ => 32,
        };
        let (a, b, register) = (self.register(half), self.register(half), hood.fresh(bits));
        hood.line(format!("mov.b{bits} {register}, {{{a}, {b}}};"));
        register
    }
}

/// The type of a load of `bytes` bytes into a register of `bits` bits.
pub(super) fn load_type(bytes: usize, bits: u32, signed: bool) -> String {
    let kind = match 8 * bytes as u32 == bits {
        true => "b",
        false if signed => "s",
        false => "u",
    };
    format!("{kind}{}", 8 * bytes)
}
