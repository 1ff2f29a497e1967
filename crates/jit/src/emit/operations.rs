//! Machine code for single operations.

use std::mem::offset_of;

use iced_x86::Register;
use iced_x86::code_asm::{AsmRegisterK, AsmRegisterZmm, dword_ptr, ecx, edx, k3, k4, k5, k6, k7, rdi};
use ir::Slot;
use isa::{BoolOp, CmpOp, Rounding};

use super::{Emitter, Refused, Result, SCRATCH};
use crate::Frame;
use crate::operation::{Bits, Float, Operation, Ordering};

impl Emitter<'_> {
    pub(super) fn operation(&mut self, operation: &Operation) -> Result {
        match *operation {
            Operation::Float { op, rounding, dst, src } => {
                (0..self.parts).try_for_each(|part| self.float(op, rounding, dst, src, part))
            }
            Operation::Bits { op, dst, src } => {
                (0..self.parts).try_for_each(|part| self.on_bits(op, dst, src, part))
            }
            Operation::Select { dst, src, pred } => {
                (0..self.parts).try_for_each(|part| self.select(dst, src, pred, part))
            }
            Operation::Compare { op, ordering, dst, src, with } => self.compare(op, ordering, dst, src, with),
            Operation::Logic { op, dst, src: [a, b] } => {
                self.predicate(a, ecx)?;
                self.predicate(b, edx)?;
                self.combine(op)?;
                self.define_predicate(dst)
            }
            Operation::Pass { dst, src, negated } => {
                self.predicate(src, ecx)?;
                if negated {
                    self.asm.not(ecx)?;
                }
                self.define_predicate(dst)
            }
        }
    }

    fn select(&mut self, dst: Slot, [a, b]: [Slot; 2], pred: Slot, part: usize) -> Result {
        let (a, b) = (self.bits(a, part)?, self.bits(b, part)?);
        let mask = match self.block.masks.get(&pred) {
            Some(masks) => masks[part],
            None => {
                let place = self.predicate_place(pred)?;
                self.asm.kmovd(k7, place)?;
                if part == 1 {
                    self.asm.kshiftrd(k7, k7, 16)?;
                }
                k7
            }
        };
        self.asm.vmovdqa32(SCRATCH, b)?;
        self.asm.vmovdqa32(masked(SCRATCH, mask), a)?;
        self.define((dst, part), false, |asm, dst| asm.vmovdqa32(dst, SCRATCH))
    }

    /// `ecx = ecx op edx`.
    fn combine(&mut self, op: BoolOp) -> Result {
        match op {
            BoolOp::And => self.asm.and(ecx, edx)?,
            BoolOp::Or => self.asm.or(ecx, edx)?,
            BoolOp::Xor => self.asm.xor(ecx, edx)?,
        }
        Ok(())
    }

    fn float(&mut self, op: Float, rounding: Rounding, dst: Slot, src: [Slot; 3], part: usize) -> Result {
        let (a, b) = (self.number(src[0], part)?, self.number(src[1], part)?);
        // The last operand has the rounding.
        let rounded = |last: AsmRegisterZmm| match rounding {
            Rounding::NearestEven => Ok(last),
            Rounding::TowardZero => Ok(last.rz_sae()),
            Rounding::TowardNegative => Ok(last.rd_sae()),
            Rounding::TowardPositive => Ok(last.ru_sae()),
            _ => Err(Refused),
        };
        let last = rounded(b)?;
        match op {
            Float::Div => self.define((dst, part), true, |asm, dst| asm.vdivps(dst, a, last)),
            Float::Sqrt => {
                let a = rounded(a)?;
                self.define((dst, part), true, |asm, dst| asm.vsqrtps(dst, a))
            }
            Float::Rcp => {
                self.asm.mov(ecx, 1f32.to_bits())?;
                self.asm.vpbroadcastd(SCRATCH, ecx)?;
                let a = rounded(a)?;
                self.define((dst, part), true, |asm, dst| asm.vdivps(dst, SCRATCH, a))
            }
            Float::Min | Float::Max => {
                // The host returns the second of two zeros, and of two values that do not compare.
                self.asm.vcmpps(k7, a, b, float_predicate(CmpOp::Eq))?;
                if op == Float::Min {
                    self.asm.vminps(SCRATCH, a, b)?;
                    self.asm.vpord(SCRATCH.k7(), a, b)?;
                } else {
                    self.asm.vmaxps(SCRATCH, a, b)?;
                    self.asm.vpandd(SCRATCH.k7(), a, b)?;
                }
                self.asm.vcmpunordps(k7, b, b)?;
                self.asm.vmovdqa32(SCRATCH.k7(), a)?;
                self.define((dst, part), true, |asm, dst| {
                    if is_same(dst, SCRATCH) { Ok(()) } else { asm.vmovdqa32(dst, SCRATCH) }
                })
            }
            Float::Add => self.define((dst, part), true, |asm, dst| asm.vaddps(dst, a, last)),
            Float::Sub => self.define((dst, part), true, |asm, dst| asm.vsubps(dst, a, last)),
            Float::Mul => self.define((dst, part), true, |asm, dst| asm.vmulps(dst, a, last)),
            Float::Fma => {
                let c = self.number(src[2], part)?;
                let addend = rounded(c)?;
                self.define((dst, part), true, |asm, dst| {
                    // The result takes the place of an operand.
                    if is_same(dst, a) {
                        return asm.vfmadd213ps(dst, b, addend);
                    }
                    if is_same(dst, b) {
                        return asm.vfmadd213ps(dst, a, addend);
                    }
                    if !is_same(dst, c) {
                        asm.vmovdqa32(dst, c)?;
                    }
                    asm.vfmadd231ps(dst, a, last)
                })
            }
        }
    }

    fn on_bits(&mut self, op: Bits, dst: Slot, src: [Slot; 3], part: usize) -> Result {
        let operation = Operation::Bits { op, dst, src };
        let uses = operation.uses();
        let mut read =
            |slot| if op.is_arithmetic() { self.number(slot, part) } else { self.bits(slot, part) };
        let (a, b) = (read(uses[0])?, read(*uses.get(1).unwrap_or(&uses[0]))?);
        match op {
            Bits::Mad => {
                let c = self.bits(src[2], part)?;
                self.asm.vpmulld(SCRATCH, a, b)?;
                return self.define((dst, part), false, |asm, dst| asm.vpaddd(dst, SCRATCH, c));
            }
            Bits::Neg => self.asm.vpxord(SCRATCH, SCRATCH, SCRATCH)?,
            Bits::AbsFloat | Bits::NegFloat => {
                let bits = if op == Bits::AbsFloat { 0x7fff_ffffu32 } else { 0x8000_0000 };
                self.asm.mov(ecx, bits)?;
                self.asm.vpbroadcastd(SCRATCH, ecx)?;
            }
            _ => {}
        }
        self.define((dst, part), op.is_arithmetic(), |asm, dst| match op {
            Bits::Add => asm.vpaddd(dst, a, b),
            Bits::Sub => asm.vpsubd(dst, a, b),
            Bits::Mul => asm.vpmulld(dst, a, b),
            Bits::MinSigned => asm.vpminsd(dst, a, b),
            Bits::MinUnsigned => asm.vpminud(dst, a, b),
            Bits::MaxSigned => asm.vpmaxsd(dst, a, b),
            Bits::MaxUnsigned => asm.vpmaxud(dst, a, b),
            Bits::And => asm.vpandd(dst, a, b),
            Bits::Or => asm.vpord(dst, a, b),
            Bits::Xor => asm.vpxord(dst, a, b),
            // The complement of the first operand.
            Bits::Not => asm.vpternlogd(dst, a, a, 0x55),
            Bits::Shl => asm.vpsllvd(dst, a, b),
            Bits::ShrSigned => asm.vpsravd(dst, a, b),
            Bits::ShrUnsigned => asm.vpsrlvd(dst, a, b),
            Bits::Neg => asm.vpsubd(dst, SCRATCH, a),
            Bits::AbsSigned => asm.vpabsd(dst, a),
            Bits::AbsFloat => asm.vpandd(dst, a, SCRATCH),
            Bits::NegFloat => asm.vpxord(dst, a, SCRATCH),
            Bits::FromSigned => asm.vcvtdq2ps(dst, a),
            Bits::FromUnsigned => asm.vcvtudq2ps(dst, a),
            Bits::Copy => asm.vmovdqa32(dst, a),
            Bits::Mad => Ok(()),
        })
    }

    fn compare(
        &mut self,
        op: CmpOp,
        ordering: Ordering,
        dst: [Option<Slot>; 2],
        src: [Slot; 2],
        with: Option<(BoolOp, Slot)>,
    ) -> Result {
        let [p, q] = dst;
        // Masks that stay in their registers need no way through another one.
        let alone = p.filter(|p| q.is_none() && with.is_none() && !self.is_passed(*p));
        let masks = match alone {
            Some(p) => self.masks_of(p)?,
            None => self.block.free_masks.clone(),
        };
        for part in 0..self.parts {
            let to = *masks.get(part).ok_or(Refused)?;
            if ordering == Ordering::Float {
                let (a, b) = (self.number(src[0], part)?, self.number(src[1], part)?);
                self.asm.vcmpps(to, a, b, float_predicate(op))?;
                continue;
            }
            let (a, b) = (self.bits(src[0], part)?, self.bits(src[1], part)?);
            let (op, unsigned) = integer_predicate(op).ok_or(Refused)?;
            if unsigned || ordering == Ordering::Unsigned {
                self.asm.vpcmpud(to, a, b, op)?;
            } else {
                self.asm.vpcmpd(to, a, b, op)?;
            }
        }
        if alone.is_some() {
            return Ok(());
        }
        // The registers of the masks are those of the results, and a result may be what both are combined with.
        let scratch = |index: usize| dword_ptr(rdi + (offset_of!(Frame, scratch) + 4 * index));
        if self.parts == 2 {
            self.asm.kunpckwd(k7, masks[1], masks[0])?;
            self.asm.kmovd(scratch(0), k7)?;
        } else {
            self.asm.kmovd(scratch(0), masks[0])?;
        }
        if let Some((_, c)) = with {
            self.predicate(c, edx)?;
            self.asm.mov(scratch(1), edx)?;
        }
        for (slot, complement) in [(p, false), (q, true)] {
            let Some(slot) = slot else { continue };
            self.asm.mov(ecx, scratch(0))?;
            if complement {
                self.asm.not(ecx)?;
            }
            if let Some((op, _)) = with {
                self.asm.mov(edx, scratch(1))?;
                self.combine(op)?;
            }
            self.define_predicate(slot)?;
        }
        Ok(())
    }
}

/// The registers are one, whatever mask or rounding they have.
fn is_same(one: AsmRegisterZmm, other: AsmRegisterZmm) -> bool {
    Register::from(one) == Register::from(other)
}

/// The register, for a merge under a mask.
fn masked(register: AsmRegisterZmm, mask: AsmRegisterK) -> AsmRegisterZmm {
    match mask {
        m if m == k3 => register.k3(),
        m if m == k4 => register.k4(),
        m if m == k5 => register.k5(),
        m if m == k6 => register.k6(),
        _ => register.k7(),
    }
}

/// The predicate of `vcmpps`. None signals for quiet NaNs.
fn float_predicate(op: CmpOp) -> i32 {
    match op {
        CmpOp::Eq => 0x00,
        CmpOp::Nan => 0x03,
        CmpOp::Neu => 0x04,
        CmpOp::Num => 0x07,
        CmpOp::Equ => 0x08,
        CmpOp::Ne => 0x0c,
        CmpOp::Lt | CmpOp::Lo => 0x11,
        CmpOp::Le | CmpOp::Ls => 0x12,
        CmpOp::Geu => 0x15,
        CmpOp::Gtu => 0x16,
        CmpOp::Ltu => 0x19,
        CmpOp::Leu => 0x1a,
        CmpOp::Ge | CmpOp::Hs => 0x1d,
        CmpOp::Gt | CmpOp::Hi => 0x1e,
    }
}

/// The predicate of `vpcmpd`, and whether the operator itself is unsigned.
fn integer_predicate(op: CmpOp) -> Option<(i32, bool)> {
    Some(match op {
        CmpOp::Eq => (0, false),
        CmpOp::Lt => (1, false),
        CmpOp::Le => (2, false),
        CmpOp::Ne => (4, false),
        CmpOp::Ge => (5, false),
        CmpOp::Gt => (6, false),
        CmpOp::Lo => (1, true),
        CmpOp::Ls => (2, true),
        CmpOp::Hs => (5, true),
        CmpOp::Hi => (6, true),
        _ => return None,
    })
}
