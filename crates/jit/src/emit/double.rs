//! Arithmetic of f64.
//!
//! PTX keeps the bits of one of an operation's NaNs, and the host those of another. So the code computes only where every
//! NaN is the one that arithmetic makes: then it does not matter which. Slots that only arithmetic writes have no other
//! NaNs if they have none at the start of the loop (*clean* slots). Values of any other slot are looked at before they are
//! computed with. Lanes with other NaNs leave.
//!
//! Lanes cannot leave straight-line code. It finds the NaN that PTX keeps: that of the first of some operands, made quiet
//! (`sem`).

use std::collections::BTreeSet;
use std::mem::offset_of;

use iced_x86::code_asm::{dword_ptr, eax, ecx, edx, rcx, rdi, rdx};
use ir::Slot;
use isa::{CmpOp, Rounding};

use super::host::MASK;
use super::{Block, Emitter, HostVectors, Result, Vector};
use crate::loops::{Loop, operations};
use crate::native::Frame;
use crate::operation::{Bits, Conversion, Float, Operation};

/// The NaN that arithmetic on f64 makes.
const NAN_BITS: u64 = sem::format::F64.nan;

/// The slots of a loop that are computed with as f64 and that are clean if they are so at its start.
pub(super) fn clean(source: &Loop) -> BTreeSet<Slot> {
    let all = || operations(&source.bodies);
    let mut doubles: BTreeSet<Slot> =
        all().filter(|op| op.computes_double()).flat_map(Operation::uses).collect();
    // Copies keep NaNs.
    let copies =
        |op: &&Operation| op.keeps_clean() && matches!(op, Operation::Bits { .. } | Operation::Select { .. });
    loop {
        let flows = all().filter(copies).filter(|op| op.defs().iter().any(|slot| doubles.contains(slot)));
        let more: Vec<Slot> =
            flows.flat_map(Operation::uses).filter(|slot| source.wide.contains(slot)).collect();
        let count = doubles.len();
        doubles.extend(more);
        if doubles.len() == count {
            break;
        }
    }
    let mut clean = doubles;
    loop {
        let count = clean.len();
        for op in all() {
            let from_clean =
                || op.uses().iter().all(|slot| !source.wide.contains(slot) || clean.contains(slot));
            if !op.keeps_clean() || copies(&op) && !from_clean() {
                op.defs().iter().for_each(|slot| {
                    clean.remove(slot);
                });
            }
        }
        if clean.len() == count {
            return clean;
        }
    }
}

impl<H: HostVectors> Emitter<'_, H> {
    /// Looks at the clean slots at the start of the loop.
    pub(super) fn check_clean(&mut self) -> Result {
        let enters = |slot: &Slot| self.source.live_in.contains(slot) || !self.is_defined(*slot);
        let clean: Vec<Slot> = self.clean.iter().copied().filter(enters).collect();
        if clean.is_empty() {
            return Ok(());
        }
        self.block = Block::default();
        let leave = self.leave_at_start()?;
        self.asm.mov(eax, dword_ptr(rdi + offset_of!(Frame, current)))?;
        for slot in clean {
            if self.layout.evens.iter().any(|even| even.slot == slot) {
                let mut fits = self.asm.create_label();
                self.base(rcx, slot)?;
                self.asm.mov(rdx, NAN_BITS)?;
                self.asm.cmp(rcx, rdx)?;
                self.asm.je(fits)?;
                // Without its sign, a NaN is above infinity.
                self.asm.add(rcx, rcx)?;
                self.asm.mov(rdx, 2 * sem::format::F64.infinity())?;
                self.asm.cmp(rcx, rdx)?;
                self.asm.ja(leave)?;
                self.asm.set_label(&mut fits)?;
                // A label stands before an instruction.
                self.asm.nop()?;
            }
            if self.is_word(slot) {
                self.asm.xor(ecx, ecx)?;
                for chunk in 0..self.chunks(slot) {
                    let place = self.word_place(slot, chunk)?;
                    self.asm.load(H::SCRATCH, place, true)?;
                    self.other_nans(H::SCRATCH, chunk)?;
                }
                self.asm.test(ecx, eax)?;
                self.asm.jnz(leave)?;
            }
        }
        Ok(())
    }

    /// Adds the lanes of a chunk with NaNs that arithmetic does not make to `ecx`. Changes `edx`.
    fn other_nans(&mut self, register: Vector, chunk: usize) -> Result {
        let nan = self.asm.constant([NAN_BITS; 8]);
        self.asm.other_nans(register, nan)?;
        self.asm.mask_bits(edx, MASK, true)?;
        self.asm.shl(edx, (H::lanes(true) * chunk) as i32)?;
        self.asm.or(ecx, edx)?;
        Ok(())
    }

    /// The lanes leave before an operation that computes with other NaNs.
    fn check_sources(&mut self, slots: &[Slot]) -> Result {
        for &slot in slots {
            let literal = self.source.literals.get(&slot);
            let is_number = literal.is_some_and(|&value| !f64::from_bits(value).is_nan());
            if is_number || self.clean.contains(&slot) || !self.block.checked.insert(slot) {
                continue;
            }
            let registers = (0..self.chunks(slot)).map(|chunk| self.bits(slot, chunk));
            let registers = registers.collect::<Result<Vec<_>>>()?;
            let leave = self.leave()?;
            self.asm.xor(ecx, ecx)?;
            for (chunk, register) in registers.into_iter().enumerate() {
                self.other_nans(register, chunk)?;
            }
            self.asm.test(ecx, eax)?;
            self.asm.jnz(leave)?;
            self.unpin();
        }
        Ok(())
    }

    pub(super) fn double(&mut self, op: Float, rounding: Rounding, dst: Slot, src: [Slot; 3]) -> Result {
        if self.straight.is_none() {
            let uses = Operation::Float { op, wide: true, rounding, flushes: false, dst, src }.uses();
            self.check_sources(&uses)?;
        }
        (0..self.chunks(dst)).try_for_each(|chunk| {
            self.double_chunk(op, rounding, dst, src, chunk)?;
            // Registers of the next chunk are others.
            self.block.pinned.clear();
            Ok(())
        })
    }

    fn double_chunk(
        &mut self,
        op: Float,
        rounding: Rounding,
        dst: Slot,
        src: [Slot; 3],
        chunk: usize,
    ) -> Result {
        let any_nans = self.straight.is_some();
        let src = match op {
            // The host keeps the NaN of its first operand.
            Float::Add | Float::Mul if any_nans => [src[1], src[0], src[2]],
            _ => src,
        };
        let a = self.bits(src[0], chunk)?;
        let b = if matches!(op, Float::Rcp | Float::Sqrt) { a } else { self.bits(src[1], chunk)? };
        let c = if op == Float::Fma { self.bits(src[2], chunk)? } else { a };
        match op {
            Float::Min | Float::Max => self.asm.extreme(op, true, a, b)?,
            Float::Sub | Float::Fma if any_nans => {
                self.asm.float(H::SCRATCH.into(), op, true, rounding, [a, b, c])?;
            }
            _ => {
                if op == Float::Rcp {
                    let one = self.asm.constant([1f64.to_bits(); 8]);
                    self.asm.load(H::SCRATCH, one, true)?;
                }
                let sources = [a, b, c];
                return self
                    .define((dst, chunk), false, |asm, dst| asm.float(dst, op, true, rounding, sources));
            }
        }
        if any_nans {
            self.mend_nans(op, [a, b, c])?;
        }
        self.define((dst, chunk), false, |asm, dst| asm.copy(dst, H::SCRATCH, true))
    }

    /// Lets the scratch register, which has the host's result, have the NaNs that PTX keeps.
    fn mend_nans(&mut self, op: Float, [a, b, c]: [Vector; 3]) -> Result {
        if op == Float::Sub {
            return self.asm.keep_nans(b);
        }
        self.asm.compare_float(MASK, CmpOp::Nan, true, H::SCRATCH, H::SCRATCH)?;
        if op != Float::Fma {
            // The second one of two NaNs.
            self.asm.choose(H::SCRATCH, b, H::SCRATCH, MASK, true)?;
            return self.asm.keep_nans(H::SCRATCH);
        }
        let mut numbers = self.asm.create_label();
        self.asm.mask_bits(edx, MASK, true)?;
        self.asm.test(edx, edx)?;
        self.asm.jz(numbers)?;
        for source in [a, c, b] {
            self.asm.keep_nans(source)?;
        }
        self.asm.set_label(&mut numbers)?;
        // A label stands before an instruction.
        Ok(self.asm.nop()?)
    }

    /// The absolute value or the negation.
    pub(super) fn double_sign(&mut self, op: Bits, dst: Slot, src: Slot, chunk: usize) -> Result {
        let a = self.bits(src, chunk)?;
        self.asm.double_sign(op, a)?;
        self.define((dst, chunk), false, |asm, dst| asm.copy(dst, H::SCRATCH, true))
    }

    pub(super) fn convert(
        &mut self,
        conversion: Conversion,
        rounding: Rounding,
        dst: Slot,
        src: Slot,
    ) -> Result {
        match conversion {
            Conversion::ToSingle | Conversion::ToSigned => {
                self.each(self.parts, |this, part| this.narrow_double(conversion, rounding, dst, src, part))
            }
            _ => self.each(self.chunks(dst), |this, chunk| {
                this.widen_to_double(conversion, rounding, dst, src, chunk)
            }),
        }
    }

    fn widen_to_double(
        &mut self,
        conversion: Conversion,
        rounding: Rounding,
        dst: Slot,
        src: Slot,
        chunk: usize,
    ) -> Result {
        let key = (dst, chunk);
        if let Conversion::FromSigned64 | Conversion::FromUnsigned64 = conversion {
            let a = self.bits(src, chunk)?;
            let signed = conversion == Conversion::FromSigned64;
            return self.define(key, false, |asm, dst| asm.double_from_wide(dst, a, signed, rounding));
        }
        let whole = self.bits(src, chunk / 2)?;
        // The host may put the upper half into the scratch register.
        self.define(key, false, |asm, dst| asm.double_from_half(dst, whole, chunk % 2 == 1, conversion))
    }

    fn narrow_double(
        &mut self,
        conversion: Conversion,
        rounding: Rounding,
        dst: Slot,
        src: Slot,
        part: usize,
    ) -> Result {
        let other = self.temporary()?;
        for (half, to) in [H::SCRATCH, other].into_iter().enumerate() {
            let a = self.bits(src, 2 * part + half)?;
            self.asm.narrow_double(to, a, conversion, rounding)?;
        }
        self.asm.join_low(other)?;
        self.block.free_vectors.push(other);
        self.define((dst, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))
    }
}
