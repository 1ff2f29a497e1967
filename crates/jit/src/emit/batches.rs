//! The loop over batches, around the code that takes one batch through the loop of the program.

use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, CodeLabel, dword_ptr, eax, ecx, k1, k2, ptr, qword_ptr, r10, rcx, rdi,
    rdx, word_ptr,
};
use isa::Space;

use super::{Emitter, PENDING, Result, SCRATCH, masked_place, pending_place};
use crate::native::{Frame, Lanes, Region};

impl Emitter<'_> {
    /// The lanes of the batch with the number `rdx`, in one of the masks of all batches at this offset in the frame.
    fn lanes_place(&self, offset: usize) -> AsmMemoryOperand {
        match self.parts {
            1 => word_ptr(rdi + rdx * 2 + offset),
            _ => dword_ptr(rdi + rdx * 4 + offset),
        }
    }

    fn load_lanes(&mut self, to: AsmRegister32, offset: usize) -> Result {
        let place = self.lanes_place(offset);
        match self.parts {
            1 => self.asm.movzx(to, place)?,
            _ => self.asm.mov(to, place)?,
        }
        Ok(())
    }

    /// Writes `ecx`.
    fn store_lanes(&mut self, offset: usize) -> Result {
        let place = self.lanes_place(offset);
        match self.parts {
            1 => self.asm.mov(place, iced_x86::code_asm::cx)?,
            _ => self.asm.mov(place, ecx)?,
        }
        Ok(())
    }

    /// Loads what a batch begins with. A batch without lanes goes to `none`.
    pub(super) fn begin_batch(&mut self, none: CodeLabel) -> Result {
        self.asm.mov(rdx, qword_ptr(rdi + offset_of!(Frame, batch)))?;
        self.load_lanes(eax, offset_of!(Frame, lanes))?;
        self.asm.test(eax, eax)?;
        self.asm.jz(none)?;
        self.asm.mov(dword_ptr(rdi + offset_of!(Frame, current)), eax)?;
        for index in 0..self.source.predicates.len() {
            self.load_lanes(ecx, offset_of!(Frame, predicates) + size_of::<Lanes>() * index)?;
            self.asm.mov(dword_ptr(rdi + (offset_of!(Frame, passed) + 4 * index)), ecx)?;
        }
        for ((slot, chunk), register) in self.words.clone() {
            let place = self.word_place(slot, chunk)?;
            self.asm.vmovdqu32(register, place)?;
        }
        if !self.source.accesses.is_empty() {
            self.asm.mov(r10, qword_ptr(rdi + offset_of!(Frame, share)))?;
        }
        for (place, (register, ..)) in self.registers().enumerate() {
            if place == 0 {
                self.asm.mov(register, eax)?;
            } else {
                self.asm.xor(register, register)?;
            }
        }
        let blocks = self.source.bodies.len();
        for place in PENDING.len().min(blocks)..blocks + self.source.exits.len() {
            self.asm.mov(pending_place(place), 0)?;
        }
        Ok(())
    }

    /// Stores what a batch has computed. Goes to `stop` if lanes are left in the loop.
    pub(super) fn end_batch(&mut self, stop: CodeLabel) -> Result {
        self.asm.mov(eax, dword_ptr(rdi + offset_of!(Frame, current)))?;
        self.asm.kmovd(k1, eax)?;
        self.asm.kshiftrd(k2, k1, 16)?;
        for ((slot, chunk), word) in self.words.clone() {
            if self.layout.words.iter().any(|value| value.slot == slot && value.defined) {
                let (mask, place) = (self.lanes_of(slot, chunk)?, self.word_place(slot, chunk)?);
                self.store_vector(slot, masked_place(place, mask), word)?;
            }
        }
        self.asm.mov(rdx, qword_ptr(rdi + offset_of!(Frame, batch)))?;
        for exit in 0..self.source.exits.len() {
            self.asm.mov(ecx, pending_place(self.source.bodies.len() + exit))?;
            self.store_lanes(offset_of!(Frame, exits) + size_of::<Lanes>() * exit)?;
        }
        for (index, predicate) in self.source.predicates.iter().enumerate() {
            if predicate.defined {
                self.asm.mov(ecx, dword_ptr(rdi + (offset_of!(Frame, passed) + 4 * index)))?;
                self.store_lanes(offset_of!(Frame, predicates) + size_of::<Lanes>() * index)?;
            }
        }
        self.asm.cmp(dword_ptr(rdi + offset_of!(Frame, left)), 0)?;
        self.asm.jne(stop)?;
        self.asm.test(r10, r10)?;
        self.asm.js(stop)?;
        Ok(())
    }

    /// Goes on to the next batch, or to `finish` behind the last one.
    pub(super) fn next_batch(&mut self, next: CodeLabel, finish: CodeLabel) -> Result {
        let batch = qword_ptr(rdi + offset_of!(Frame, batch));
        self.asm.mov(rcx, batch)?;
        self.asm.inc(rcx)?;
        self.asm.mov(batch, rcx)?;
        self.asm.cmp(rcx, qword_ptr(rdi + offset_of!(Frame, end)))?;
        self.asm.jae(finish)?;
        for word in 0..self.layout.words.len() {
            self.asm.mov(rdx, qword_ptr(rdi + (offset_of!(Frame, word_steps) + 8 * word)))?;
            for part in 0..self.parts {
                let place = offset_of!(Frame, words) + 8 * (2 * word + part);
                self.asm.add(qword_ptr(rdi + place), rdx)?;
            }
        }

        let mut within = self.asm.create_label();
        let left = qword_ptr(rdi + offset_of!(Frame, left_in_run));
        self.asm.lea(rcx, ptr(rdi + offset_of!(Frame, advance)))?;
        self.asm.dec(left)?;
        self.asm.jnz(within)?;
        self.asm.mov(rdx, qword_ptr(rdi + offset_of!(Frame, run)))?;
        self.asm.mov(left, rdx)?;
        self.asm.lea(rcx, ptr(rdi + offset_of!(Frame, jump)))?;
        for (index, access) in self.source.accesses.iter().enumerate() {
            // Only shared memory is another one in the next CTA.
            if matches!(access.space, Space::Shared | Space::Generic) {
                self.asm.mov(rdx, qword_ptr(rdi + (offset_of!(Frame, strides) + 8 * index)))?;
                let region = offset_of!(Frame, regions) + size_of::<Region>() * index;
                self.asm.add(qword_ptr(rdi + (region + offset_of!(Region, host))), rdx)?;
            }
        }
        self.asm.set_label(&mut within)?;
        let evens: Vec<_> = self.layout.evens.iter().map(|even| even.slot).collect();
        for (chunk, slots) in evens.chunks(8).enumerate() {
            let entered = ptr(rdi + (offset_of!(Frame, entered) + 64 * chunk));
            self.asm.vmovdqu64(SCRATCH, entered)?;
            self.asm.vpaddq(SCRATCH, SCRATCH, ptr(rcx + 64 * chunk))?;
            let mut bits = [u64::MAX; 8];
            for (bits, &slot) in bits.iter_mut().zip(slots) {
                *bits = if self.is_wide(slot) { u64::MAX } else { u32::MAX.into() };
            }
            if bits != [u64::MAX; 8] {
                let bits = self.constant(bits);
                self.asm.vpandq(SCRATCH, SCRATCH, bits)?;
            }
            self.asm.vmovdqu64(entered, SCRATCH)?;
            self.asm.vmovdqu64(ptr(rdi + (offset_of!(Frame, bases) + 64 * chunk)), SCRATCH)?;
        }
        self.asm.jmp(next)?;
        Ok(())
    }
}
