//! The results of the instruction in the middle.

use isa::Second;

use super::super::{Generator, Place};
use super::places::Cell;
use super::{Hood, Source, Target};
use crate::catalog::Slot;

/// A register that an instruction wrote.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub register: String,
    pub bits: u32,
}

impl Generator<'_, '_> {
    /// The text of a destination, and the values that it writes: the first result and the second.
    pub(super) fn result_operand(&mut self, hood: &mut Hood, slot: &Slot) -> Option<(String, Vec<Value>)> {
        let bits = self.register_bits(slot)?;
        let (count, braces) = slot.count;
        let mut results: Vec<Value> = match hood.target {
            Target::Register if bits != 8 => {
                let registers = self.registers(bits, count);
                registers.into_iter().map(|register| Value { register, bits }).collect()
            }
            _ => (0..count).map(|_| self.own_result(hood, bits)).collect(),
        };
        let mut text = results.iter().map(|value| &value.register[..]).collect::<Vec<_>>().join(", ");
        if braces {
            text = format!("{{{text}}}");
        }
        let second = match slot.second {
            Second::Required => true,
            Second::Optional => self.random.percent(50),
            Second::None => false,
        };
        if second {
            let value = self.own_result(hood, 1);
            text += &format!("|{}", value.register);
            results.push(value);
        }
        Some((text, results))
    }

    /// A result register that only the neighbourhood uses. If a guard may skip the write, it is initialised before.
    pub(super) fn own_result(&mut self, hood: &mut Hood, bits: u32) -> Value {
        let register = hood.fresh(bits);
        if !hood.guard.is_empty() {
            hood.line(match bits {
                1 => format!("setp.eq.u32 {register}, 0, 1;"),
                8 => format!("cvt.u8.u32 {register}, %thread;"),
                128 => format!("mov.b128 {register}, %q0;"),
                _ => format!("mov.b{bits} {register}, 77;"),
            });
        }
        Value { register, bits }
    }

    /// The use of a second result: none, or it remains live.
    pub(super) fn note_second(&mut self, hood: &mut Hood, value: &Value) -> Option<()> {
        if self.random.percent(50) {
            return Some(());
        }
        self.keep(hood, value);
        Some(())
    }

    /// Keeps the value live.
    pub(super) fn keep(&mut self, hood: &mut Hood, value: &Value) {
        let Value { register, bits } = value;
        hood.line(match bits {
            1 => format!("mov.pred {}, {register};", self.predicate()),
            8 => format!("cvt.u32.u8 {}, {register};", self.word()),
            _ => format!("mov.b{bits} {}, {register};", self.register(*bits)),
        });
    }

    /// Uses the result as the target says.
    pub(super) fn hand_on(&mut self, hood: &mut Hood, value: &Value, place: &Place) -> Option<()> {
        match hood.target {
            Target::Register if value.bits == 8 => self.keep(hood, value),
            Target::Register | Target::Unread => {}
            Target::Copied => {
                self.keep(hood, value);
                if self.random.percent(50) {
                    self.keep(hood, value);
                }
            }
            Target::Branch => self.branch_on(hood, value),
            _ => {
                let value = match value.bits {
                    1 => {
                        let word = hood.fresh(32);
                        hood.line(format!("selp.b32 {word}, 1, 0, {};", value.register));
                        Value { register: word, bits: 32 }
                    }
                    _ => value.clone(),
                };
                self.store_result(hood, &value, place)?;
            }
        }
        Some(())
    }

    /// The branch that follows reads it.
    fn branch_on(&mut self, hood: &mut Hood, value: &Value) {
        let Value { register, bits } = value;
        let (mut predicate, label, word) = (hood.fresh(1), self.label(), self.word());
        match bits {
            1 => predicate.clone_from(register),
            8 => {
                let wide = hood.fresh(32);
                hood.line(format!("cvt.u32.u8 {wide}, {register};\nsetp.ne.u32 {predicate}, {wide}, 0;"));
            }
            128 => {
                let (low, high) = (hood.fresh(64), hood.fresh(64));
                hood.line(format!(
                    "mov.b128 {{{low}, {high}}}, {register};\nsetp.ne.b64 {predicate}, {low}, {high};"
                ));
            }
            _ => hood.line(format!("setp.gt.s{bits} {predicate}, {register}, 0;")),
        }
        let not = if self.random.percent(50) { "!" } else { "" };
        hood.line(format!("@{not}{predicate} bra {label};\nadd.u32 {word}, {word}, 1;\n{label}:"));
    }

    fn store_result(&mut self, hood: &mut Hood, value: &Value, place: &Place) -> Option<()> {
        let Value { register, bits } = value;
        let all = *bits as usize / 8;
        if hood.target == Target::Vector && *bits <= 64 {
            return self.store_vector(hood, value, place);
        }
        let bytes = match hood.target {
            Target::Low if all > 1 && *bits <= 64 => {
                let narrower = [1, 2, 4].into_iter().filter(|&bytes| bytes < all).count();
                [1, 2, 4][self.random.below(narrower)]
            }
            _ => all,
        };
        let (cell, offset) = match hood.target {
            Target::InPlace => self.source_place(hood, bytes)?,
            Target::Strided => (self.strided(bytes)?, 0),
            Target::Elsewhere => (self.elsewhere(hood, bytes, true, place)?, 0),
            _ => (self.dense(hood, bytes), 0),
        };
        hood.line(format!("st{}.b{} {}, {register};", cell.space, 8 * bytes, cell.address(offset)));
        if hood.target == Target::ReadAgain {
            self.keep(hood, value);
        }
        Some(())
    }

    /// A part of a cell that a source was loaded from.
    pub(super) fn source_place(&mut self, hood: &mut Hood, bytes: usize) -> Option<(Cell, usize)> {
        let cells: Vec<&Cell> =
            hood.cells.iter().filter(|cell| cell.writable && cell.bytes >= bytes).collect();
        if cells.is_empty() {
            return None;
        }
        let cell = (*self.random.pick(&cells)).clone();
        let offset = self.random.below(cell.bytes / bytes) * bytes;
        Some((cell, offset))
    }

    /// Stores a vector with the value as one element. The others are any registers, including former sources.
    fn store_vector(&mut self, hood: &mut Hood, value: &Value, place: &Place) -> Option<()> {
        let all = value.bits as usize / 8;
        let bytes = match self.random.percent(60) {
            true => all,
            false => [1, 2, 4, 8].map(|bytes: usize| bytes.min(all))[self.random.below(4)],
        };
        let length = self.vector_length(bytes);
        let (cell, offset) = match hood.cells.iter().any(|cell| cell.writable && cell.bytes >= length * bytes)
        {
            true if self.random.percent(80) => self.source_place(hood, length * bytes)?,
            _ => match self.random.below(3) {
                0 => (self.strided(length * bytes).unwrap_or(self.dense(hood, length * bytes)), 0),
                1 => (self.elsewhere(hood, length * bytes, true, place)?, 0),
                _ => (self.dense(hood, length * bytes), 0),
            },
        };
        let length = if length * bytes > 16 && matches!(cell.space, ".shared" | ".local") {
            16 / bytes
        } else {
            length
        };
        if length == 8 && bytes < 4 {
            return None;
        }
        let mut elements: Vec<String> = (0..length)
            .map(|_| match self.random.below(3) {
                0 => value.register.clone(),
                _ => self.other_element(hood, value),
            })
            .collect();
        let at = self.random.below(length);
        elements[at].clone_from(&value.register);
        let (elements, kind) = (elements.join(", "), 8 * bytes);
        hood.line(format!("st{}.v{length}.b{kind} {}, {{{elements}}};", cell.space, cell.address(offset)));
        Some(())
    }

    /// The number of elements of `bytes` bytes in a vector.
    pub(super) fn vector_length(&mut self, bytes: usize) -> usize {
        let widest = if self.has_wide() && bytes >= 4 { 32 } else { 16 };
        let lengths: Vec<usize> =
            [2, 4, 8].into_iter().filter(|&n| n * bytes <= widest && (n < 8 || n * bytes == 32)).collect();
        *self.random.pick(&lengths)
    }

    /// A vector element beside a value: a register of the neighbourhood of the same kind, or any register of the same
    /// size.
    fn other_element(&mut self, hood: &mut Hood, value: &Value) -> String {
        let kind = &value.register[..3];
        let loaded: usize = value.register[3..].parse().unwrap_or(0);
        // Lower-numbered registers were loaded or computed just before.
        if hood.source != Source::Register && loaded > 0 && hood.guard.is_empty() && self.random.percent(60) {
            return format!("{kind}{}", self.random.below(loaded));
        }
        match value.bits {
            16 | 32 | 64 => self.register(value.bits),
            _ => value.register.clone(),
        }
    }
}
