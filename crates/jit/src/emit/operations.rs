//! Machine code for single operations.

use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegisterK, AsmRegisterZmm, CodeAssembler, dword_ptr, ecx, edx, k7, rdi,
};
use iced_x86::{IcedError, Register};
use ir::Slot;
use isa::{BoolOp, CmpOp, Rounding};

use super::access::low;
use super::{Emitter, Refused, Result, SCRATCH, masked};
use crate::Frame;
use crate::operation::{Bits, Float, Operation, Ordering};

impl Emitter<'_> {
    pub(super) fn operation(&mut self, operation: &Operation) -> Result {
        if self.is_scalar(operation) && !matches!(operation, Operation::Compare { .. }) {
            return self.scalar(operation);
        }
        match *operation {
            Operation::Float { op, wide: true, rounding, dst, src } => self.double(op, rounding, dst, src),
            Operation::Convert { conversion, rounding, dst, src } => {
                self.convert(conversion, rounding, dst, src)
            }
            Operation::Bits { op, wide: true, dst, src } if op.is_arithmetic() => {
                (0..self.chunks(dst)).try_for_each(|chunk| self.double_sign(op, dst, src[0], chunk))
            }
            Operation::Float { op, rounding, dst, src, .. } => {
                (0..self.parts).try_for_each(|part| self.float(op, rounding, dst, src, part))
            }
            Operation::Bits { op, wide, dst, src } => {
                (0..self.chunks(dst)).try_for_each(|chunk| self.on_bits(op, wide, dst, src, chunk))
            }
            Operation::Offset { wide, dst, src, addend } => {
                (0..self.chunks(dst)).try_for_each(|chunk| self.offset(wide, dst, src, addend, chunk))
            }
            Operation::MulWide { signed, dst, src, addend } => {
                (0..self.chunks(dst)).try_for_each(|chunk| self.mul_wide(signed, dst, src, addend, chunk))
            }
            Operation::Widen { signed, dst, src } => (0..self.chunks(dst)).try_for_each(|chunk| {
                self.widen(signed, src, chunk, SCRATCH)?;
                self.define((dst, chunk), false, |asm, dst| asm.vmovdqa64(dst, SCRATCH))
            }),
            Operation::Narrow { dst, src } => {
                (0..self.parts).try_for_each(|part| self.narrow(dst, src, part))
            }
            Operation::ToInteger { signed, rounding, dst, src } => {
                (0..self.parts).try_for_each(|part| self.round_to_integer(signed, rounding, dst, src, part))
            }
            Operation::Call { index, dst, ref src } => self.call(index, dst, src),
            Operation::Load { access, ref dst } => self.load(access, dst),
            Operation::Store { access, ref src } => self.store(access, src),
            Operation::Select { wide, dst, src, pred } => {
                (0..self.chunks(dst)).try_for_each(|chunk| self.select(wide, dst, src, pred, chunk))
            }
            Operation::Compare { op, wide, ordering, dst, src, with } => {
                let scalar = self.is_scalar(operation);
                self.compare(op, (wide, ordering, scalar), dst, src, with)
            }
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

    fn offset(&mut self, wide: bool, dst: Slot, src: Slot, addend: i64, chunk: usize) -> Result {
        let a = self.bits(src, chunk)?;
        let lanes = if wide { addend as u64 } else { u64::from(addend as u32) * 0x1_0000_0001 };
        let addend = self.constant([lanes; 8]);
        self.define((dst, chunk), false, |asm, dst| {
            if wide { asm.vpaddq(dst, a, addend) } else { asm.vpaddd(dst, a, addend) }
        })
    }

    /// Extends 8 lanes of a 32-bit slot to 64 bits.
    fn widen(&mut self, signed: bool, src: Slot, chunk: usize, to: AsmRegisterZmm) -> Result {
        let whole = self.bits(src, chunk / 2)?;
        let mut half = low(whole)?;
        if chunk % 2 == 1 {
            half = low(to)?;
            self.asm.vextracti32x8(half, whole, 1)?;
        }
        if signed {
            self.asm.vpmovsxdq(to, half)?;
        } else {
            self.asm.vpmovzxdq(to, half)?;
        }
        Ok(())
    }

    fn narrow(&mut self, dst: Slot, src: Slot, part: usize) -> Result {
        let (first, second) = (self.bits(src, 2 * part)?, self.bits(src, 2 * part + 1)?);
        let other = self.temporary()?;
        self.asm.vpmovqd(low(SCRATCH)?, first)?;
        self.asm.vpmovqd(low(other)?, second)?;
        self.asm.vinserti32x8(SCRATCH, SCRATCH, low(other)?, 1)?;
        self.block.free_vectors.push(other);
        self.define((dst, part), false, |asm, dst| asm.vmovdqa32(dst, SCRATCH))
    }

    fn round_to_integer(
        &mut self,
        signed: bool,
        rounding: Rounding,
        dst: Slot,
        src: Slot,
        part: usize,
    ) -> Result {
        let a = self.number(src, part)?;
        let rounded = rounded!(a, rounding);
        if signed {
            // The host makes the least integer of numbers that are too large.
            self.asm.vcvtps2dq(SCRATCH, rounded)?;
            let bound = self.constant([u64::from(2f32.powi(31).to_bits()) * 0x1_0000_0001; 8]);
            self.asm.vcmpps(k7, a, bound, float_predicate(CmpOp::Ge))?;
            let greatest = self.constant([0x7fff_ffff_7fff_ffff; 8]);
            self.asm.vmovdqu32(SCRATCH.k7(), greatest)?;
            self.asm.vcmpps(k7, a, a, float_predicate(CmpOp::Nan))?;
        } else {
            // The host makes the greatest integer of numbers that are too large, and of negative ones.
            self.asm.vcvtps2udq(SCRATCH, rounded)?;
            let zero = self.constant([0; 8]);
            self.asm.vcmpps(k7, a, zero, float_predicate(CmpOp::Ltu))?;
        }
        self.asm.vpxord(SCRATCH.k7(), SCRATCH, SCRATCH)?;
        self.define((dst, part), false, |asm, dst| asm.vmovdqa32(dst, SCRATCH))
    }

    fn mul_wide(
        &mut self,
        signed: bool,
        dst: Slot,
        [a, b]: [Slot; 2],
        addend: Option<Slot>,
        chunk: usize,
    ) -> Result {
        let addend = addend.map(|slot| self.bits(slot, chunk)).transpose()?;
        let other = self.temporary()?;
        self.widen(signed, a, chunk, SCRATCH)?;
        self.widen(signed, b, chunk, other)?;
        // The low halves of the elements.
        if signed {
            self.asm.vpmuldq(SCRATCH, SCRATCH, other)?;
        } else {
            self.asm.vpmuludq(SCRATCH, SCRATCH, other)?;
        }
        self.block.free_vectors.push(other);
        self.define((dst, chunk), false, |asm, dst| match addend {
            Some(addend) => asm.vpaddq(dst, SCRATCH, addend),
            None => asm.vmovdqa64(dst, SCRATCH),
        })
    }

    fn select(&mut self, wide: bool, dst: Slot, [a, b]: [Slot; 2], pred: Slot, chunk: usize) -> Result {
        let (a, b) = (self.bits(a, chunk)?, self.bits(b, chunk)?);
        let (part, offset) = self.place(dst, chunk);
        let mut mask = match self.block.masks.get(&pred) {
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
        if offset > 0 {
            self.asm.kshiftrw(k7, mask, 8)?;
            mask = k7;
        }
        if wide {
            self.asm.vmovdqa64(SCRATCH, b)?;
            self.asm.vmovdqa64(masked(SCRATCH, mask), a)?;
            return self.define((dst, chunk), false, |asm, dst| asm.vmovdqa64(dst, SCRATCH));
        }
        self.asm.vmovdqa32(SCRATCH, b)?;
        self.asm.vmovdqa32(masked(SCRATCH, mask), a)?;
        self.define((dst, chunk), false, |asm, dst| asm.vmovdqa32(dst, SCRATCH))
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
        let last = rounded!(b, rounding);
        match op {
            Float::Div => self.define((dst, part), true, |asm, dst| asm.vdivps(dst, a, last)),
            Float::Sqrt => {
                let a = rounded!(a, rounding);
                self.define((dst, part), true, |asm, dst| asm.vsqrtps(dst, a))
            }
            Float::Rcp => {
                self.asm.mov(ecx, 1f32.to_bits())?;
                self.asm.vpbroadcastd(SCRATCH, ecx)?;
                let a = rounded!(a, rounding);
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
                let addend = rounded!(c, rounding);
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

    fn on_bits(&mut self, op: Bits, wide: bool, dst: Slot, src: [Slot; 3], chunk: usize) -> Result {
        let operation = Operation::Bits { op, wide, dst, src };
        let uses = operation.uses();
        let is_shift = matches!(op, Bits::Shl | Bits::ShrSigned | Bits::ShrUnsigned);
        let a = if op.is_arithmetic() { self.number(uses[0], chunk)? } else { self.bits(uses[0], chunk)? };
        let b = match uses.get(1) {
            // The distance has 32 bits.
            Some(&distance) if is_shift && wide => {
                self.widen(false, distance, chunk, SCRATCH)?;
                SCRATCH
            }
            Some(&slot) => self.bits(slot, chunk)?,
            None => a,
        };
        match op {
            Bits::Mad => {
                let c = self.bits(src[2], chunk)?;
                if wide {
                    self.asm.vpmullq(SCRATCH, a, b)?;
                    return self.define((dst, chunk), false, |asm, dst| asm.vpaddq(dst, SCRATCH, c));
                }
                self.asm.vpmulld(SCRATCH, a, b)?;
                return self.define((dst, chunk), false, |asm, dst| asm.vpaddd(dst, SCRATCH, c));
            }
            Bits::Neg => self.asm.vpxord(SCRATCH, SCRATCH, SCRATCH)?,
            Bits::AbsFloat | Bits::NegFloat => {
                let bits = if op == Bits::AbsFloat { 0x7fff_ffffu32 } else { 0x8000_0000 };
                self.asm.mov(ecx, bits)?;
                self.asm.vpbroadcastd(SCRATCH, ecx)?;
            }
            _ => {}
        }
        if wide {
            return self.define((dst, chunk), false, |asm, dst| wide_bits(asm, op, dst, a, b));
        }
        self.define((dst, chunk), op.is_arithmetic(), |asm, dst| match op {
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
        (wide, ordering, scalar): (bool, Ordering, bool),
        dst: [Option<Slot>; 2],
        src: [Slot; 2],
        with: Option<(BoolOp, Slot)>,
    ) -> Result {
        let [p, q] = dst;
        let alone = p.filter(|_| q.is_none() && with.is_none());
        if scalar {
            self.scalar_compare(op, wide, ordering, src)?;
            return match alone {
                Some(p) => self.define_predicate(p),
                None => {
                    self.asm.mov(scratch_place(0), ecx)?;
                    self.combined(dst, with)
                }
            };
        }
        // Masks that stay in their registers need no way through another one.
        let masks = alone.filter(|p| !self.is_passed(*p)).and_then(|p| self.masks_of(p));
        let halves = if wide { 2 } else { 1 };
        if let Some(masks) = masks {
            for (part, to) in masks.into_iter().enumerate() {
                // The second half first: its bits go up.
                for half in (0..halves).rev() {
                    let mask = if wide && half == 0 { k7 } else { to };
                    self.compare_chunk(op, (wide, ordering), src, halves * part + half, mask)?;
                }
                if wide {
                    self.asm.kunpckbw(to, to, k7)?;
                }
            }
            return Ok(());
        }
        for chunk in 0..halves * self.parts {
            self.compare_chunk(op, (wide, ordering), src, chunk, k7)?;
            if chunk == 0 {
                self.asm.kmovd(ecx, k7)?;
                continue;
            }
            self.asm.kmovd(edx, k7)?;
            self.asm.shl(edx, (chunk * 16 / halves) as i32)?;
            self.asm.or(ecx, edx)?;
        }
        if let Some(p) = alone {
            return self.define_predicate(p);
        }
        self.asm.mov(scratch_place(0), ecx)?;
        self.combined(dst, with)
    }

    /// Changes `rdx`.
    fn compare_chunk(
        &mut self,
        op: CmpOp,
        (wide, ordering): (bool, Ordering),
        src: [Slot; 2],
        chunk: usize,
        to: AsmRegisterK,
    ) -> Result {
        if ordering == Ordering::Float {
            let (a, b) = (self.number(src[0], chunk)?, self.number(src[1], chunk)?);
            if wide {
                self.asm.vcmppd(to, a, b, float_predicate(op))?;
            } else {
                self.asm.vcmpps(to, a, b, float_predicate(op))?;
            }
            return Ok(());
        }
        let (a, b) = (self.bits(src[0], chunk)?, self.bits(src[1], chunk)?);
        let (op, unsigned) = integer_predicate(op).ok_or(Refused)?;
        match (wide, unsigned || ordering == Ordering::Unsigned) {
            (true, true) => self.asm.vpcmpuq(to, a, b, op)?,
            (true, false) => self.asm.vpcmpq(to, a, b, op)?,
            (false, true) => self.asm.vpcmpud(to, a, b, op)?,
            (false, false) => self.asm.vpcmpd(to, a, b, op)?,
        }
        Ok(())
    }

    /// Defines the results of a comparison, which `Frame::scratch` has, combined with another predicate.
    fn combined(&mut self, [p, q]: [Option<Slot>; 2], with: Option<(BoolOp, Slot)>) -> Result {
        if let Some((_, c)) = with {
            self.predicate(c, edx)?;
            self.asm.mov(scratch_place(1), edx)?;
        }
        for (slot, complement) in [(p, false), (q, true)] {
            let Some(slot) = slot else { continue };
            self.asm.mov(ecx, scratch_place(0))?;
            if complement {
                self.asm.not(ecx)?;
            }
            if let Some((op, _)) = with {
                self.asm.mov(edx, scratch_place(1))?;
                self.combine(op)?;
            }
            self.define_predicate(slot)?;
        }
        Ok(())
    }
}

/// The registers are one, whatever mask or rounding they have.
pub(super) fn is_same(one: AsmRegisterZmm, other: AsmRegisterZmm) -> bool {
    Register::from(one) == Register::from(other)
}

fn scratch_place(index: usize) -> AsmMemoryOperand {
    dword_ptr(rdi + (offset_of!(Frame, scratch) + 4 * index))
}

/// An operation on values of 64 bits.
fn wide_bits(
    asm: &mut CodeAssembler,
    op: Bits,
    dst: AsmRegisterZmm,
    a: AsmRegisterZmm,
    b: AsmRegisterZmm,
) -> std::result::Result<(), IcedError> {
    match op {
        Bits::Add => asm.vpaddq(dst, a, b),
        Bits::Sub => asm.vpsubq(dst, a, b),
        Bits::Mul => asm.vpmullq(dst, a, b),
        Bits::MinSigned => asm.vpminsq(dst, a, b),
        Bits::MinUnsigned => asm.vpminuq(dst, a, b),
        Bits::MaxSigned => asm.vpmaxsq(dst, a, b),
        Bits::MaxUnsigned => asm.vpmaxuq(dst, a, b),
        Bits::And => asm.vpandq(dst, a, b),
        Bits::Or => asm.vporq(dst, a, b),
        Bits::Xor => asm.vpxorq(dst, a, b),
        Bits::Not => asm.vpternlogq(dst, a, a, 0x55),
        Bits::Shl => asm.vpsllvq(dst, a, b),
        Bits::ShrSigned => asm.vpsravq(dst, a, b),
        Bits::ShrUnsigned => asm.vpsrlvq(dst, a, b),
        Bits::Neg => asm.vpsubq(dst, SCRATCH, a),
        Bits::AbsSigned => asm.vpabsq(dst, a),
        Bits::Copy => asm.vmovdqa64(dst, a),
        // `on_bits` has the first. There are no others of 64 bits.
        Bits::Mad | Bits::AbsFloat | Bits::NegFloat | Bits::FromSigned | Bits::FromUnsigned => Ok(()),
    }
}

/// The predicate of `vcmpps`. None signals for quiet NaNs.
pub(super) fn float_predicate(op: CmpOp) -> i32 {
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
