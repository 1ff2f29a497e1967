//! Arithmetic of f64.
//!
//! PTX keeps the bits of one of an operation's NaNs, and the host those of another. So the code computes only where every
//! NaN is the one that arithmetic makes: then it does not matter which. Slots that only arithmetic writes have no other
//! NaNs if they have none at the start of the loop (*clean* slots). Values of any other slot are looked at before they are
//! computed with. Lanes with other NaNs leave.

use std::collections::BTreeSet;
use std::mem::offset_of;

use iced_x86::code_asm::{AsmRegisterZmm, dword_ptr, eax, ecx, edx, k7, rcx, rdi, rdx};
use ir::Slot;
use isa::{CmpOp, Rounding};

use super::access::low;
use super::operations::{float_predicate, is_same};
use super::{Block, Emitter, Result, SCRATCH};
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

impl Emitter<'_> {
    /// Looks at the clean slots at the start of the loop.
    pub(super) fn check_clean(&mut self) -> Result {
        let enters = |slot: &Slot| self.source.live_in.contains(slot) || !self.is_defined(*slot);
        let clean: Vec<Slot> = self.clean.iter().copied().filter(enters).collect();
        if clean.is_empty() {
            return Ok(());
        }
        self.block = Block::default();
        let leave = self.leave_at_start()?;
        self.asm.mov(eax, dword_ptr(rdi + offset_of!(Frame, lanes)))?;
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
                    self.asm.vmovdqu64(SCRATCH, place)?;
                    self.other_nans(SCRATCH, chunk)?;
                }
                self.asm.test(ecx, eax)?;
                self.asm.jnz(leave)?;
            }
        }
        Ok(())
    }

    /// Adds the lanes of a chunk with NaNs that arithmetic does not make to `ecx`. Changes `edx`.
    fn other_nans(&mut self, register: AsmRegisterZmm, chunk: usize) -> Result {
        const DIFFERS: i32 = 4;
        let nan = self.constant([NAN_BITS; 8]);
        self.asm.vcmpunordpd(k7, register, register)?;
        self.asm.vpcmpuq(k7.k7(), register, nan, DIFFERS)?;
        self.asm.kmovd(edx, k7)?;
        self.asm.shl(edx, 8 * chunk as i32)?;
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
        }
        Ok(())
    }

    pub(super) fn double(&mut self, op: Float, rounding: Rounding, dst: Slot, src: [Slot; 3]) -> Result {
        let uses = Operation::Float { op, wide: true, rounding, dst, src }.uses();
        self.check_sources(&uses)?;
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
        let key = (dst, chunk);
        let a = self.bits(src[0], chunk)?;
        let b = if matches!(op, Float::Rcp | Float::Sqrt) { a } else { self.bits(src[1], chunk)? };
        let last = rounded!(b, rounding);
        match op {
            Float::Add => self.define(key, false, |asm, dst| asm.vaddpd(dst, a, last)),
            Float::Sub => self.define(key, false, |asm, dst| asm.vsubpd(dst, a, last)),
            Float::Mul => self.define(key, false, |asm, dst| asm.vmulpd(dst, a, last)),
            Float::Div => self.define(key, false, |asm, dst| asm.vdivpd(dst, a, last)),
            Float::Sqrt => self.define(key, false, |asm, dst| asm.vsqrtpd(dst, last)),
            Float::Rcp => {
                let one = self.constant([1f64.to_bits(); 8]);
                self.asm.vmovdqu64(SCRATCH, one)?;
                self.define(key, false, |asm, dst| asm.vdivpd(dst, SCRATCH, last))
            }
            Float::Min | Float::Max => {
                // As for f32: the host returns the second of two zeros, and of two values that do not compare.
                self.asm.vcmppd(k7, a, b, float_predicate(CmpOp::Eq))?;
                if op == Float::Min {
                    self.asm.vminpd(SCRATCH, a, b)?;
                    self.asm.vporq(SCRATCH.k7(), a, b)?;
                } else {
                    self.asm.vmaxpd(SCRATCH, a, b)?;
                    self.asm.vpandq(SCRATCH.k7(), a, b)?;
                }
                self.asm.vcmpunordpd(k7, b, b)?;
                self.asm.vmovdqa64(SCRATCH.k7(), a)?;
                self.define(key, false, |asm, dst| asm.vmovdqa64(dst, SCRATCH))
            }
            Float::Fma => {
                let c = self.bits(src[2], chunk)?;
                let addend = rounded!(c, rounding);
                self.define(key, false, |asm, dst| {
                    if is_same(dst, a) {
                        return asm.vfmadd213pd(dst, b, addend);
                    }
                    if is_same(dst, b) {
                        return asm.vfmadd213pd(dst, a, addend);
                    }
                    if !is_same(dst, c) {
                        asm.vmovdqa64(dst, c)?;
                    }
                    asm.vfmadd231pd(dst, a, last)
                })
            }
        }
    }

    /// The absolute value or the negation.
    pub(super) fn double_sign(&mut self, op: Bits, dst: Slot, src: Slot, chunk: usize) -> Result {
        let a = self.bits(src, chunk)?;
        let sign = self.constant([1 << 63; 8]);
        self.asm.vmovdqu64(SCRATCH, sign)?;
        match op {
            Bits::AbsFloat => self.asm.vpandnq(SCRATCH, SCRATCH, a)?,
            _ => self.asm.vpxorq(SCRATCH, SCRATCH, a)?,
        }
        // A NaN keeps its sign and becomes quiet.
        let quiet = self.constant([1 << 51; 8]);
        self.asm.vcmpunordpd(k7, a, a)?;
        self.asm.vporq(SCRATCH.k7(), a, quiet)?;
        self.define((dst, chunk), false, |asm, dst| asm.vmovdqa64(dst, SCRATCH))
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
                (0..self.parts).try_for_each(|part| self.narrow_double(conversion, rounding, dst, src, part))
            }
            _ => (0..self.chunks(dst))
                .try_for_each(|chunk| self.widen_to_double(conversion, rounding, dst, src, chunk)),
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
            let a = rounded!(a, rounding);
            return self.define(key, false, |asm, dst| match conversion {
                Conversion::FromSigned64 => asm.vcvtqq2pd(dst, a),
                _ => asm.vcvtuqq2pd(dst, a),
            });
        }
        let whole = self.bits(src, chunk / 2)?;
        let mut half = low(whole)?;
        if chunk % 2 == 1 {
            half = low(SCRATCH)?;
            self.asm.vextracti32x8(half, whole, 1)?;
        }
        // These are exact.
        self.define(key, false, |asm, dst| match conversion {
            Conversion::FromSigned => asm.vcvtdq2pd(dst, half),
            Conversion::FromUnsigned => asm.vcvtudq2pd(dst, half),
            _ => asm.vcvtps2pd(dst, half),
        })
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
        for (half, to) in [SCRATCH, other].into_iter().enumerate() {
            let a = self.bits(src, 2 * part + half)?;
            let rounded = rounded!(a, rounding);
            if conversion == Conversion::ToSingle {
                self.asm.vcvtpd2ps(low(to)?, rounded)?;
                continue;
            }
            // The host makes the least integer of numbers that are too large.
            self.asm.vcvtpd2dq(low(to)?, rounded)?;
            let bound = self.constant([2f64.powi(31).to_bits(); 8]);
            self.asm.vcmppd(k7, a, bound, float_predicate(CmpOp::Ge))?;
            let greatest = self.constant([0x7fff_ffff_7fff_ffff; 8]);
            self.asm.vmovdqu32(low(to)?.k7(), greatest)?;
        }
        self.asm.vinserti32x8(SCRATCH, SCRATCH, low(other)?, 1)?;
        self.block.free_vectors.push(other);
        self.define((dst, part), false, |asm, dst| asm.vmovdqa32(dst, SCRATCH))
    }
}
