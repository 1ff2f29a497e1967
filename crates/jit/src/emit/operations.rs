//! Machine code for single operations.

use std::mem::offset_of;

use iced_x86::code_asm::{AsmMemoryOperand, dword_ptr, eax, ecx, edx, qword_ptr, rcx, rdi};
use ir::Slot;
use isa::{BoolOp, CmpOp, Rounding};

use super::atomic::Update;
use super::host::{Chooser, MASK};
use super::{Emitter, HostVectors, Mask, Refused, Result, Vector};
use crate::Frame;
use crate::operation::{Bits, Float, Half, Operation, Ordering};

impl<H: HostVectors> Emitter<'_, H> {
    pub(super) fn operation(&mut self, operation: &Operation) -> Result {
        if self.is_scalar(operation) && !matches!(operation, Operation::Compare { .. }) {
            return self.scalar(operation);
        }
        match *operation {
            Operation::Float { op, wide: true, rounding, dst, src, .. } => {
                self.double(op, rounding, dst, src)
            }
            Operation::Mixed { op, format, rounding, dst, src } => {
                self.each(self.parts, |this, part| this.mixed((op, format), rounding, dst, src, part))
            }
            Operation::Bits { op: op @ (Bits::AbsFlushed | Bits::NegFlushed), dst, src: [a, ..], .. } => {
                self.each(self.parts, |this, part| this.flushed_sign(op, dst, a, part))
            }
            Operation::Convert { conversion, rounding, dst, src } => {
                self.convert(conversion, rounding, dst, src)
            }
            Operation::Bits { op, wide: true, dst, src } if op.is_arithmetic() => {
                self.each(self.chunks(dst), |this, chunk| this.double_sign(op, dst, src[0], chunk))
            }
            Operation::Float { op, rounding, dst, src, .. } => {
                self.each(self.parts, |this, part| this.float(op, rounding, dst, src, part))
            }
            Operation::Bits {
                op: op @ (Bits::MulHighSigned | Bits::MulHighUnsigned),
                dst,
                src: [a, b, _],
                ..
            } => {
                let signed = op == Bits::MulHighSigned;
                self.each(self.parts, |this, part| this.mul_high(signed, dst, [a, b], part))
            }
            Operation::Bits { op, dst, src, .. } if self.is_short(dst) => {
                self.each(self.parts, |this, part| this.short_bits(op, dst, src, part))
            }
            Operation::Bits { op, wide, dst, src } => {
                self.each(self.chunks(dst), |this, chunk| this.on_bits(op, wide, dst, src, chunk))
            }
            Operation::Offset { wide, dst, src, addend } => {
                self.each(self.chunks(dst), |this, chunk| this.offset(wide, dst, src, addend, chunk))
            }
            Operation::MulWide { signed, dst, src, addend } => {
                self.each(self.chunks(dst), |this, chunk| this.mul_wide(signed, dst, src, addend, chunk))
            }
            Operation::Funnel { up, dst, high, low } => {
                self.each(self.parts, |this, part| this.funnel(up, dst, [high, low], part))
            }
            Operation::Field { up, down, signed, dst, src } => {
                self.each(self.parts, |this, part| this.field([up, down], signed, dst, src, part))
            }
            Operation::Widen { signed, dst, src } => self.each(self.chunks(dst), |this, chunk| {
                this.widen(signed, src, chunk, H::SCRATCH)?;
                this.define((dst, chunk), false, |asm, dst| asm.copy(dst, H::SCRATCH, true))
            }),
            Operation::Narrow { dst, src } => self.each(self.parts, |this, part| this.narrow(dst, src, part)),
            Operation::Resize { bits, signed, dst, src } => {
                self.each(self.parts, |this, part| this.resize(bits, signed, dst, src, part))
            }
            Operation::Pack { bits, dst, src } => {
                self.each(self.parts, |this, part| this.pack(bits, dst, src, part))
            }
            Operation::Unpack { bits, dst, src } => {
                self.each(self.parts, |this, part| this.unpack(bits, dst, src, part))
            }
            Operation::FromHalf { format, dst, src } => {
                self.each(self.parts, |this, part| this.half_as_single(format, dst, src, part))
            }
            Operation::ToHalf { format, rounding, dst, src, low } => self.each(self.parts, |this, part| {
                this.singles_as_halves((format, rounding), dst, src, low, part)
            }),
            Operation::Half { op, format, packed, dst, src } => {
                self.each(self.parts, |this, part| this.half((op, format, packed), dst, src, part))
            }
            Operation::Integral { rounding, dst, src } => {
                self.each(self.parts, |this, part| this.integral(rounding, dst, src, part))
            }
            Operation::ToInteger { signed, rounding, dst, src } => {
                self.each(self.parts, |this, part| this.round_to_integer(signed, rounding, dst, src, part))
            }
            Operation::Call { index, dst, ref src } => self.call(index, &[dst], src),
            Operation::Load { access, signed, ref dst, guard: None } => self.load(access, signed, dst),
            Operation::Load { access, signed, ref dst, guard: Some(guard) } => {
                self.for_some(guard, None, |this| this.load(access, signed, dst))
            }
            Operation::Store { access, ref src, guard: None } => self.store(access, src),
            Operation::Store { access, ref src, guard: Some(guard) } => self.store_some(access, src, guard),
            Operation::Atomic { op, access, locked, dst, src, guard } => {
                let often_all = guard.is_some() && self.asm.has_all();
                let update = Update { op, locked, dst, src, often_all };
                match guard {
                    None => self.atomic(update, access),
                    Some(guard) => self.for_some(guard, None, |this| this.atomic(update, access)),
                }
            }
            Operation::Select { wide, dst, src, pred } => {
                self.each(self.chunks(dst), |this, chunk| this.select(wide, dst, src, pred, chunk))
            }
            Operation::Compare { op, wide, ordering, dst, src, with } => {
                let scalar = self.is_scalar(operation);
                self.compare(op, (wide, ordering, scalar), dst, src, with)
            }
            Operation::CompareHalves { op, format, dst, src } => self.compare_halves(op, format, dst, src),
            Operation::SelectHalves { dst, src, preds } => {
                self.each(self.parts, |this, part| this.select_halves(dst, src, preds, part))
            }
            Operation::Logic { op, dst, src } => self.logic(op, dst, src),
            Operation::Pass { dst, src, negated } => {
                self.predicate(src, ecx)?;
                if negated {
                    self.asm.not(ecx)?;
                }
                self.define_predicate(dst)
            }
            Operation::Count { lanes, cost } => {
                self.predicate(lanes.slot, ecx)?;
                if lanes.negated {
                    self.asm.not(ecx)?;
                }
                self.asm.and(ecx, eax)?;
                self.asm.popcnt(ecx, ecx)?;
                self.asm.imul_3(rcx, rcx, i32::try_from(cost).map_err(|_| Refused)?)?;
                Ok(self.asm.add(qword_ptr(rdi + offset_of!(Frame, instructions)), rcx)?)
            }
            Operation::Product { index, format, ref dst, ref src } => {
                self.need_warp()?;
                match format.filter(|_| H::PRODUCTS && self.asm.has_all()) {
                    Some(format) => self.product(format, dst, src),
                    None => self.call(index, dst, src),
                }
            }
            Operation::Shuffle { dst, pred, src, ref pattern } => {
                self.need_warp()?;
                if let Some(dst) = dst {
                    self.shuffle(dst, src, &pattern.from)?;
                }
                if let Some(pred) = pred {
                    self.asm.mov(ecx, pattern.in_range)?;
                    self.define_predicate(pred)?;
                }
                Ok(())
            }
        }
    }

    /// Lets lanes leave a loop before an operation of a whole warp if they are not all there.
    fn need_warp(&mut self) -> Result {
        if self.straight.is_some() || self.asm.has_all() {
            return Ok(());
        }
        let leave = self.leave()?;
        Ok(self.asm.jmp(leave)?)
    }

    /// Lets each lane of a strip, which is a warp, have the value of another one.
    fn shuffle(&mut self, dst: Slot, src: Slot, from: &[u32]) -> Result {
        let (mut sources, mut raw) = (Vec::new(), false);
        for part in 0..self.parts {
            let (register, is_raw) = self.moved(src, part)?;
            sources.push(register);
            raw |= is_raw;
        }
        let mut permuted = Vec::new();
        for (part, lanes) in from.chunks(H::lanes(false)).enumerate() {
            self.asm.permute(&sources, lanes)?;
            if dst != src {
                self.define((dst, part), raw, |asm, dst| asm.copy(dst, H::SCRATCH, false))?;
                continue;
            }
            // The result replaces its source.
            let register = self.temporary()?;
            self.asm.copy(register.into(), H::SCRATCH, false)?;
            permuted.push(register);
        }
        for (part, &register) in permuted.iter().enumerate() {
            self.define((dst, part), raw, |asm, dst| asm.copy(dst, register, false))?;
        }
        self.block.free_vectors.extend(permuted);
        Ok(())
    }

    /// Does something for each chunk.
    pub(super) fn each(&mut self, chunks: usize, mut f: impl FnMut(&mut Self, usize) -> Result) -> Result {
        for chunk in 0..chunks {
            f(self, chunk)?;
            self.unpin();
        }
        Ok(())
    }

    /// The registers of the current operation may become those of others, if the host has few.
    pub(super) fn unpin(&mut self) {
        if H::FEW {
            self.block.pinned.clear();
        }
    }

    fn offset(&mut self, wide: bool, dst: Slot, src: Slot, addend: i64, chunk: usize) -> Result {
        let a = self.bits(src, chunk)?;
        let lanes = if wide { addend as u64 } else { u64::from(addend as u32) * 0x1_0000_0001 };
        let addend = self.asm.constant([lanes; 8]);
        self.define((dst, chunk), false, |asm, dst| asm.add_place(dst, a, addend, wide))
    }

    /// Extends a half of a chunk of a 32-bit slot to 64 bits.
    fn widen(&mut self, signed: bool, src: Slot, chunk: usize, to: Vector) -> Result {
        let whole = self.bits(src, chunk / 2)?;
        self.asm.widen(to, whole, chunk % 2 == 1, signed)
    }

    fn narrow(&mut self, dst: Slot, src: Slot, part: usize) -> Result {
        let (first, second) = (self.bits(src, 2 * part)?, self.bits(src, 2 * part + 1)?);
        let other = self.second()?;
        self.asm.narrow(first, second, other)?;
        self.give_back(other);
        self.define((dst, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))
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
        let other = if H::NEEDS_ANOTHER && !signed { Some(self.temporary()?) } else { None };
        self.asm.round_to_integer(a, signed, rounding, other)?;
        self.block.free_vectors.extend(other);
        self.define((dst, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))
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
        let other = self.second()?;
        self.widen(signed, a, chunk, H::SCRATCH)?;
        self.widen(signed, b, chunk, other)?;
        self.asm.multiply_halves(other, signed)?;
        self.give_back(other);
        self.define((dst, chunk), false, |asm, dst| match addend {
            Some(addend) => asm.add_vectors(dst, H::SCRATCH, addend, true),
            None => asm.copy(dst, H::SCRATCH, true),
        })
    }

    fn select(&mut self, wide: bool, dst: Slot, [a, b]: [Slot; 2], pred: Slot, chunk: usize) -> Result {
        let (a, b) = (self.bits(a, chunk)?, self.bits(b, chunk)?);
        let mask = self.chosen(pred, chunk, wide)?;
        // Where a word has other lanes, finding these may change the mask.
        if self.is_word(dst) && !self.asm.has_all() {
            self.asm.choose(H::SCRATCH, a, b, mask, wide)?;
            return self.define((dst, chunk), false, |asm, dst| asm.copy(dst, H::SCRATCH, wide));
        }
        self.define((dst, chunk), false, |asm, dst| asm.choose(dst.register, a, b, mask, wide))
    }

    fn logic(&mut self, op: BoolOp, dst: Slot, [a, b]: [Slot; 2]) -> Result {
        let has_masks = |slot| self.block.masks.contains_key(&slot);
        // At most one of the sources comes from memory, and it is not overwritten before.
        let stay = has_masks(a) && (has_masks(b) || b != dst) || has_masks(b) && a != dst;
        if let Some(masks) = if stay { self.own_masks(dst) } else { None } {
            for (part, to) in masks.into_iter().enumerate() {
                let [a, b] = [self.chosen(a, part, false)?, self.chosen(b, part, false)?];
                self.asm.combine_masks(op, to, a, b)?;
            }
            return Ok(());
        }
        self.predicate(a, ecx)?;
        self.predicate(b, edx)?;
        self.combine(op)?;
        self.define_predicate(dst)
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
        match op {
            Float::Min | Float::Max => {
                self.asm.extreme(op, false, a, b)?;
                return self.define((dst, part), true, |asm, dst| {
                    let in_place = dst.register == H::SCRATCH;
                    if in_place { Ok(()) } else { asm.copy(dst, H::SCRATCH, false) }
                });
            }
            Float::Rcp => {
                self.asm.mov(ecx, 1f32.to_bits())?;
                self.asm.broadcast(H::SCRATCH, rcx, ecx, false)?;
            }
            _ => {}
        }
        let c = if op == Float::Fma { self.number(src[2], part)? } else { a };
        self.define((dst, part), true, |asm, dst| asm.float(dst, op, false, rounding, [a, b, c]))
    }

    /// The absolute value or the negation, of a product that flushes.
    fn flushed_sign(&mut self, op: Bits, dst: Slot, src: Slot, part: usize) -> Result {
        let (a, product) = (self.number(src, part)?, self.temporary()?);
        self.asm.mov(ecx, 1f32.to_bits())?;
        self.asm.broadcast(H::SCRATCH, rcx, ecx, false)?;
        let sources = [a, H::SCRATCH, a];
        self.asm.float(product.into(), Float::Mul, false, Rounding::NearestEven, sources)?;
        let (op, bits) = match op {
            Bits::AbsFlushed => (Bits::And, 0x7fff_ffffu32),
            _ => (Bits::Xor, 0x8000_0000),
        };
        self.asm.mov(ecx, bits)?;
        self.asm.broadcast(H::SCRATCH, rcx, ecx, false)?;
        self.block.free_vectors.push(product);
        self.define((dst, part), true, |asm, dst| asm.bits(dst, op, false, product, H::SCRATCH))
    }

    fn on_bits(&mut self, op: Bits, wide: bool, dst: Slot, src: [Slot; 3], chunk: usize) -> Result {
        if op == Bits::Copy {
            let (a, raw) = self.moved(src[0], chunk)?;
            return self.define((dst, chunk), raw, |asm, dst| asm.copy(dst, a, wide));
        }
        let operation = Operation::Bits { op, wide, dst, src };
        let uses = operation.uses();
        let is_shift = matches!(op, Bits::Shl | Bits::ShrSigned | Bits::ShrUnsigned);
        let a = if op.is_arithmetic() { self.number(uses[0], chunk)? } else { self.bits(uses[0], chunk)? };
        let b = match uses.get(1) {
            // The distance has 32 bits.
            Some(&distance) if is_shift && wide => {
                self.widen(false, distance, chunk, H::SCRATCH)?;
                H::SCRATCH
            }
            Some(&slot) => self.bits(slot, chunk)?,
            None => a,
        };
        match op {
            Bits::Mad => {
                let c = self.bits(src[2], chunk)?;
                self.asm.multiply(a, b, wide)?;
                return self
                    .define((dst, chunk), false, |asm, dst| asm.add_vectors(dst, H::SCRATCH, c, wide));
            }
            Bits::Neg => self.asm.bits(H::SCRATCH.into(), Bits::Xor, false, H::SCRATCH, H::SCRATCH)?,
            Bits::AbsFloat | Bits::NegFloat => {
                let bits = if op == Bits::AbsFloat { 0x7fff_ffffu32 } else { 0x8000_0000 };
                self.asm.mov(ecx, bits)?;
                self.asm.broadcast(H::SCRATCH, rcx, ecx, false)?;
            }
            _ => {}
        }
        let raw = op.is_arithmetic() && !wide;
        self.define((dst, chunk), raw, |asm, dst| asm.bits(dst, op, wide, a, b))
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
        let in_masks = p.filter(|&p| q.is_none() && with.is_none_or(|(_, other)| other != p));
        let masks = in_masks.and_then(|p| self.own_masks(p));
        let halves = if wide { 2 } else { 1 };
        if let Some(masks) = masks {
            for (part, to) in masks.into_iter().enumerate() {
                // The second half first: its bits go up.
                for half in (0..halves).rev() {
                    let mask = if wide && half == 0 { MASK } else { to };
                    self.compare_chunk(op, (wide, ordering), src, halves * part + half, mask)?;
                }
                if wide {
                    self.asm.join_halves(to)?;
                }
                if let Some((op, other)) = with {
                    let other = self.chosen(other, part, false)?;
                    self.asm.combine_masks(op, to, to, other)?;
                }
            }
            return Ok(());
        }
        for chunk in 0..halves * self.parts {
            self.compare_chunk(op, (wide, ordering), src, chunk, MASK)?;
            self.unpin();
            self.add_lanes(chunk, wide)?;
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
        to: Mask,
    ) -> Result {
        if let Ordering::Float | Ordering::Flushed = ordering {
            let (a, b) = (self.number(src[0], chunk)?, self.number(src[1], chunk)?);
            return self.asm.compare_float(to, op, wide, a, b);
        }
        let (a, b) = (self.bits(src[0], chunk)?, self.bits(src[1], chunk)?);
        if !matches!(ordering, Ordering::Short | Ordering::Half(_)) {
            return self.asm.compare_integer(to, op, ordering == Ordering::Unsigned, wide, a, b);
        }
        let (x, y) = (self.temporary()?, self.temporary()?);
        self.block.free_vectors.extend([x, y]);
        if let Ordering::Half(format) = ordering {
            self.asm.half_to_single(x, a, false, format)?;
            self.asm.half_to_single(y, b, false, format)?;
            return self.asm.compare_float(to, op, false, x, y);
        }
        self.extend(x, a, 16, true)?;
        self.extend(y, b, 16, true)?;
        self.asm.compare_integer(to, op, false, false, x, y)
    }

    /// Puts the lanes of a chunk, which `MASK` has, beside those of the chunks before it in `ecx`. Changes `edx`.
    fn add_lanes(&mut self, chunk: usize, wide: bool) -> Result {
        if chunk == 0 {
            return self.asm.mask_bits(ecx, MASK, wide);
        }
        self.asm.mask_bits(edx, MASK, wide)?;
        self.asm.shl(edx, (chunk * H::lanes(wide)) as i32)?;
        Ok(self.asm.or(ecx, edx)?)
    }

    fn compare_halves(
        &mut self,
        op: CmpOp,
        format: Half,
        dst: [Option<Slot>; 2],
        [a, b]: [Slot; 2],
    ) -> Result {
        for (dst, upper) in dst.into_iter().zip([false, true]) {
            let Some(dst) = dst else { continue };
            let masks = self.own_masks(dst);
            let singles = [self.temporary()?, self.temporary()?];
            for part in 0..self.parts {
                for (slot, single) in [a, b].into_iter().zip(singles) {
                    // What is the same in all lanes is there from the first part.
                    if part == 0 || !self.is_uniform(slot) {
                        let pairs = self.bits(slot, part)?;
                        self.asm.half_to_single(single, pairs, upper, format)?;
                    }
                }
                let to = masks.as_ref().map_or(MASK, |masks| masks[part]);
                self.asm.compare_float(to, op, false, singles[0], singles[1])?;
                self.unpin();
                if masks.is_none() {
                    self.add_lanes(part, false)?;
                }
            }
            self.block.free_vectors.extend(singles);
            if masks.is_none() {
                self.define_predicate(dst)?;
            }
        }
        Ok(())
    }

    fn select_halves(&mut self, dst: Slot, [a, b]: [Slot; 2], preds: [Slot; 2], part: usize) -> Result {
        let (a, b) = (self.bits(a, part)?, self.bits(b, part)?);
        let low = self.temporary()?;
        for (pred, is_low) in preds.into_iter().zip([true, false]) {
            let mask = self.chosen(pred, part, false)?;
            self.asm.choose(H::SCRATCH, a, b, mask, false)?;
            if is_low {
                self.asm.copy(low.into(), H::SCRATCH, false)?;
            }
        }
        self.asm.join_low_and_high(low)?;
        self.block.free_vectors.push(low);
        self.define((dst, part), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))
    }

    /// The lanes of a chunk for which a predicate holds.
    fn chosen(&mut self, pred: Slot, chunk: usize, wide: bool) -> Result<Mask> {
        let chooser = match self.block.masks.get(&pred) {
            Some(masks) => Chooser::Register(masks[if wide { chunk / 2 } else { chunk }]),
            None => Chooser::Memory(self.predicate_place(pred)?),
        };
        self.asm.chosen(chooser, chunk, wide)
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

pub(super) fn scratch_place(index: usize) -> AsmMemoryOperand {
    dword_ptr(rdi + (offset_of!(Frame, scratch) + 4 * index))
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

/// The rounding in the operand of `vroundps` (8: it signals nothing) and of `vcvtps2ph`.
pub(super) fn rounding_operand(rounding: Rounding) -> Result<i32> {
    Ok(match rounding {
        Rounding::NearestEven => 0,
        Rounding::TowardNegative => 1,
        Rounding::TowardPositive => 2,
        Rounding::TowardZero => 3,
        _ => return Err(Refused),
    })
}

/// The predicate of `vpcmpd`, and whether the operator itself is unsigned.
pub(super) fn integer_predicate(op: CmpOp) -> Option<(i32, bool)> {
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
