//! Operations on values that step evenly: one number for all lanes, in [`Frame::bases`].

use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, AsmRegister64, cl, ecx, edx, ptr, qword_ptr, rcx, rdi, rdx,
};
use ir::Slot;
use isa::{CmpOp, Rounding};

use super::host::low_number;
use super::{Emitter, HostVectors, NAN_BITS, Refused, Result, Vector};
use crate::forms::Form;
use crate::native::Frame;
use crate::operation::{Bits, Float, Operation, Ordering};

impl<H: HostVectors> Emitter<'_, H> {
    /// The operation runs once for all lanes.
    pub(super) fn is_scalar(&self, operation: &Operation) -> bool {
        match operation {
            // `load` writes the numbers itself.
            Operation::Load { .. } | Operation::Store { .. } | Operation::Atomic { .. } => false,
            Operation::Compare { ordering: Ordering::Signed | Ordering::Unsigned, src, .. } => {
                src.iter().all(|&slot| self.is_uniform(slot))
            }
            Operation::Compare { .. } => false,
            _ => {
                let dst = operation.defs();
                !dst.is_empty() && dst.iter().all(|slot| self.forms.contains_key(slot))
            }
        }
    }

    pub(super) fn is_uniform(&self, slot: Slot) -> bool {
        self.forms.get(&slot) == Some(&Form::UNIFORM)
    }

    /// Loads the first lane's value, zero-extended.
    pub(super) fn base(&mut self, to: AsmRegister64, slot: Slot) -> Result {
        if let Some(&value) = self.source.literals.get(&slot) {
            let value = if self.is_wide(slot) { value } else { u64::from(value as u32) };
            self.asm.mov(to, value)?;
            return Ok(());
        }
        let place = self.base_place(slot)?;
        self.asm.mov(to, place)?;
        Ok(())
    }

    fn base_place(&self, slot: Slot) -> Result<AsmMemoryOperand> {
        let index = self.layout.evens.iter().position(|even| even.slot == slot).ok_or(Refused)?;
        Ok(qword_ptr(rdi + (offset_of!(Frame, bases) + 8 * index)))
    }

    /// The vector of a slot's values, until the basic block has read them last. Changes no other register.
    pub(super) fn spread(&mut self, slot: Slot, chunk: usize) -> Result<Vector> {
        let form = *self.forms.get(&slot).ok_or(Refused)?;
        let register = self.temporary()?;
        let (wide, (group, start)) = (self.is_wide(slot), self.place(slot, chunk));
        let literal = self.source.literals.get(&slot).copied();
        let first = literal.unwrap_or(0);
        let at = |lane: usize| first.wrapping_add(form.offset(group, start + lane) as u64);
        let lanes: [u64; 8] = std::array::from_fn(|i| match wide {
            true => at(i),
            false => u64::from(at(2 * i) as u32) | at(2 * i + 1) << 32,
        });
        if literal.is_some() {
            let constant = self.asm.constant(lanes);
            self.asm.load(register, constant, false)?;
        } else {
            let base = self.base_place(slot)?;
            self.asm.broadcast_place(register, base, wide)?;
            if lanes != [0; 8] {
                let constant = self.asm.constant(lanes);
                self.asm.add_place(register.into(), register, constant, wide)?;
            }
        }
        self.block.vectors.insert((slot, chunk), (register, false));
        Ok(register)
    }

    /// Writes the first lane's value, zero-extended.
    pub(super) fn set_base(&mut self, from: AsmRegister64, slot: Slot) -> Result {
        let place = self.base_place(slot)?;
        self.asm.mov(place, from)?;
        self.block.checked.remove(&slot);
        // Vectors of the old value.
        for chunk in 0..self.chunks(slot) {
            if let Some((register, _)) = self.block.vectors.remove(&(slot, chunk)) {
                self.block.free_vectors.push(register);
            }
        }
        Ok(())
    }

    pub(super) fn scalar(&mut self, operation: &Operation) -> Result {
        match *operation {
            Operation::Offset { src, addend, .. } => {
                self.base(rcx, src)?;
                self.add(rcx, rdx, addend)?;
            }
            Operation::Widen { signed, src, .. } => self.widened(rcx, ecx, src, signed)?,
            Operation::Narrow { src, .. } => self.base(rcx, src)?,
            Operation::MulWide { signed, src: [a, b], addend, .. } => {
                // The second one is the one that needs no check, if there is one: the check changes `rdx`.
                let [a, b] = if self.is_uniform(b) { [a, b] } else { [b, a] };
                self.widened(rcx, ecx, a, signed)?;
                self.base(rdx, b)?;
                if signed {
                    self.asm.movsxd(rdx, edx)?;
                }
                self.asm.imul_2(rcx, rdx)?;
                if let Some(addend) = addend {
                    self.base(rdx, addend)?;
                    self.asm.add(rcx, rdx)?;
                }
            }
            Operation::Bits { op, wide, src, .. } => self.scalar_bits(op, wide, src)?,
            Operation::Float { op, wide: false, rounding, src, .. } => {
                self.scalar_float(op, rounding, src)?
            }
            _ => return Err(Refused),
        }
        let dst = *operation.defs().first().ok_or(Refused)?;
        if !self.is_wide(dst) {
            self.asm.mov(ecx, ecx)?;
        }
        self.set_base(rcx, dst)
    }

    /// `to += addend`. Changes `scratch` if the addend is large.
    pub(super) fn add(&mut self, to: AsmRegister64, scratch: AsmRegister64, addend: i64) -> Result {
        match i32::try_from(addend) {
            Ok(0) => {}
            Ok(addend) => self.asm.add(to, addend)?,
            Err(_) => {
                self.asm.mov(scratch, addend)?;
                self.asm.add(to, scratch)?;
            }
        }
        Ok(())
    }

    /// Loads a 32-bit value and extends it to 64 bits. The lanes leave if the value of some lane wraps around. Changes
    /// `rdx`.
    fn widened(&mut self, to: AsmRegister64, low: AsmRegister32, slot: Slot, signed: bool) -> Result {
        self.base(to, slot)?;
        if signed {
            self.asm.movsxd(to, low)?;
        }
        let form = *self.forms.get(&slot).ok_or(Refused)?;
        if form == Form::UNIFORM {
            return Ok(());
        }
        let leave = self.leave()?;
        let (least, greatest) = form.bounds(self.groups).ok_or(Refused)?;
        for bound in [least, greatest] {
            if bound != 0 {
                self.asm.lea(rdx, ptr(to + bound as i32))?;
                if signed {
                    self.asm.sub(rdx, i32::MIN)?;
                }
                self.asm.shr(rdx, 32)?;
                self.asm.jnz(leave)?;
            }
        }
        Ok(())
    }

    /// `ecx`: the result, with the NaN of PTX.
    fn scalar_float(&mut self, op: Float, rounding: Rounding, [a, b, c]: [Slot; 3]) -> Result {
        let second = self.temporary()?;
        let [x, y] = [low_number(H::SCRATCH)?, low_number(second)?];
        self.base(rcx, a)?;
        self.asm.vmovd(x, ecx)?;
        let other = match op {
            Float::Rcp | Float::Sqrt => None,
            Float::Fma => Some(c),
            _ => Some(b),
        };
        if let Some(other) = other {
            self.base(rcx, other)?;
            self.asm.vmovd(y, ecx)?;
        }
        match op {
            Float::Rcp => {
                self.asm.mov(ecx, 1f32.to_bits())?;
                self.asm.vmovd(y, ecx)?;
                self.asm.float_scalar(op, rounding, x, y, y)?;
            }
            Float::Fma => {
                let factor = self.temporary()?;
                self.base(rcx, b)?;
                self.asm.vmovd(low_number(factor)?, ecx)?;
                self.asm.float_scalar(op, rounding, x, y, low_number(factor)?)?;
                self.block.free_vectors.push(factor);
            }
            _ => self.asm.float_scalar(op, rounding, x, y, y)?,
        }
        self.block.free_vectors.push(second);
        self.asm.vmovd(ecx, x)?;
        let mut done = self.asm.create_label();
        self.asm.vucomiss(x, x)?;
        self.asm.jnp(done)?;
        self.asm.mov(ecx, NAN_BITS)?;
        self.asm.set_label(&mut done)?;
        // A label stands before an instruction.
        self.asm.nop()?;
        Ok(())
    }

    fn scalar_bits(&mut self, op: Bits, wide: bool, [a, b, c]: [Slot; 3]) -> Result {
        if matches!(op, Bits::Shl | Bits::ShrSigned | Bits::ShrUnsigned) {
            return self.scalar_shift(op, wide, a, b);
        }
        self.base(rcx, a)?;
        if !matches!(op, Bits::Copy | Bits::Neg | Bits::Not) {
            self.base(rdx, b)?;
        }
        match op {
            Bits::Copy => {}
            Bits::Neg => self.asm.neg(rcx)?,
            Bits::Not => self.asm.not(rcx)?,
            Bits::Add => self.asm.add(rcx, rdx)?,
            Bits::Sub => self.asm.sub(rcx, rdx)?,
            Bits::And => self.asm.and(rcx, rdx)?,
            Bits::Or => self.asm.or(rcx, rdx)?,
            Bits::Xor => self.asm.xor(rcx, rdx)?,
            Bits::Mul => self.asm.imul_2(rcx, rdx)?,
            Bits::Mad => {
                self.asm.imul_2(rcx, rdx)?;
                self.base(rdx, c)?;
                self.asm.add(rcx, rdx)?;
            }
            _ => return Err(Refused),
        }
        Ok(())
    }

    /// `rcx = a` shifted by `b`.
    fn scalar_shift(&mut self, op: Bits, wide: bool, a: Slot, b: Slot) -> Result {
        let bits: u32 = if wide { 64 } else { 32 };
        self.base(rdx, a)?;
        self.base(rcx, b)?;
        let mut shift = self.asm.create_label();
        let mut done = self.asm.create_label();
        self.asm.cmp(ecx, bits as i32)?;
        self.asm.jb(shift)?;
        // Every bit is shifted out.
        if op == Bits::ShrSigned {
            self.asm.mov(ecx, bits - 1)?;
        } else {
            self.asm.xor(ecx, ecx)?;
            self.asm.jmp(done)?;
        }
        self.asm.set_label(&mut shift)?;
        match (op, wide) {
            (Bits::Shl, _) => self.asm.shl(rdx, cl)?,
            (Bits::ShrSigned, true) => self.asm.sar(rdx, cl)?,
            (Bits::ShrSigned, false) => self.asm.sar(edx, cl)?,
            _ => self.asm.shr(rdx, cl)?,
        }
        self.asm.mov(rcx, rdx)?;
        self.asm.set_label(&mut done)?;
        // A label stands before an instruction.
        self.asm.nop()?;
        Ok(())
    }

    /// `ecx`: all ones if the comparison of two uniform values holds, else 0.
    pub(super) fn scalar_compare(
        &mut self,
        op: CmpOp,
        wide: bool,
        ordering: Ordering,
        [a, b]: [Slot; 2],
    ) -> Result {
        self.base(rcx, a)?;
        self.base(rdx, b)?;
        if wide {
            self.asm.cmp(rcx, rdx)?;
        } else {
            self.asm.cmp(ecx, edx)?;
        }
        let unsigned = ordering == Ordering::Unsigned;
        match op {
            CmpOp::Eq => self.asm.sete(cl)?,
            CmpOp::Ne => self.asm.setne(cl)?,
            CmpOp::Lt if !unsigned => self.asm.setl(cl)?,
            CmpOp::Le if !unsigned => self.asm.setle(cl)?,
            CmpOp::Gt if !unsigned => self.asm.setg(cl)?,
            CmpOp::Ge if !unsigned => self.asm.setge(cl)?,
            CmpOp::Lt | CmpOp::Lo => self.asm.setb(cl)?,
            CmpOp::Le | CmpOp::Ls => self.asm.setbe(cl)?,
            CmpOp::Gt | CmpOp::Hi => self.asm.seta(cl)?,
            CmpOp::Ge | CmpOp::Hs => self.asm.setae(cl)?,
            _ => return Err(Refused),
        }
        self.asm.movzx(ecx, cl)?;
        self.asm.neg(ecx)?;
        Ok(())
    }
}
