//! The loop over strips, around the code that takes one strip of lanes through the program (strip-mining).

use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, CodeLabel, cx, dword_ptr, eax, ecx, edx, ptr, qword_ptr, r10, rcx, rdi,
    rdx, word_ptr,
};
use isa::Space;

use super::{Emitter, HostVectors, PENDING, Result, pending_place};
use crate::native::{Frame, Lanes, Region, Steps};

impl<H: HostVectors> Emitter<'_, H> {
    /// The lanes of strip `rdx` in a mask of all lanes, which is at this offset in the frame.
    fn lanes_place(&self, offset: usize) -> AsmMemoryOperand {
        match self.groups {
            1 => word_ptr(rdi + rdx * 2 + offset),
            _ => dword_ptr(rdi + rdx * 4 + offset),
        }
    }

    pub(super) fn load_lanes(&mut self, to: AsmRegister32, offset: usize) -> Result {
        let place = self.lanes_place(offset);
        match self.groups {
            1 => self.asm.movzx(to, place)?,
            _ => self.asm.mov(to, place)?,
        }
        Ok(())
    }

    /// Writes `ecx`.
    pub(super) fn store_lanes(&mut self, offset: usize) -> Result {
        let place = self.lanes_place(offset);
        match self.groups {
            1 => self.asm.mov(place, cx)?,
            _ => self.asm.mov(place, ecx)?,
        }
        Ok(())
    }

    /// Loads what a strip begins with. A strip without lanes goes to `none`.
    pub(super) fn begin_strip(&mut self, none: CodeLabel) -> Result {
        self.asm.mov(rdx, qword_ptr(rdi + offset_of!(Frame, strip)))?;
        self.load_lanes(eax, offset_of!(Frame, lanes))?;
        self.asm.test(eax, eax)?;
        self.asm.jz(none)?;
        self.asm.mov(dword_ptr(rdi + offset_of!(Frame, current)), eax)?;
        self.load_predicates()?;
        for ((slot, chunk), register) in self.words.clone() {
            self.load_word(register, slot, chunk)?;
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

    /// Copies the predicates of strip `rdx` to where operations find them.
    pub(super) fn load_predicates(&mut self) -> Result {
        for index in 0..self.source.predicates.len() {
            self.load_lanes(ecx, offset_of!(Frame, predicates) + size_of::<Lanes>() * index)?;
            self.asm.mov(dword_ptr(rdi + (offset_of!(Frame, passed) + 4 * index)), ecx)?;
        }
        Ok(())
    }

    /// Copies the predicates of strip `rdx` back.
    pub(super) fn store_predicates(&mut self) -> Result {
        for (index, predicate) in self.source.predicates.iter().enumerate() {
            if predicate.defined {
                self.asm.mov(ecx, dword_ptr(rdi + (offset_of!(Frame, passed) + 4 * index)))?;
                self.store_lanes(offset_of!(Frame, predicates) + size_of::<Lanes>() * index)?;
            }
        }
        Ok(())
    }

    /// Stores what a strip has computed. Goes to `stop` if lanes are left in the loop.
    pub(super) fn end_strip(&mut self, stop: CodeLabel) -> Result {
        self.asm.set_all(false);
        let stores = |slot| self.layout.words.iter().any(|value| value.slot == slot && value.defined);
        let words: Vec<_> = self.words.clone().into_iter().filter(|((slot, _), _)| stores(*slot)).collect();
        if !words.is_empty() {
            self.asm.mov(eax, dword_ptr(rdi + offset_of!(Frame, current)))?;
            self.asm.take_lanes()?;
        }
        for ((slot, chunk), word) in words {
            let mask = self.lanes_of(slot, chunk)?;
            self.store_word(word, slot, chunk, Some(mask))?;
        }
        self.asm.mov(rdx, qword_ptr(rdi + offset_of!(Frame, strip)))?;
        for exit in 0..self.source.exits.len() {
            self.asm.mov(ecx, pending_place(self.source.bodies.len() + exit))?;
            self.store_lanes(offset_of!(Frame, exits) + size_of::<Lanes>() * exit)?;
        }
        self.store_predicates()?;
        self.asm.cmp(dword_ptr(rdi + offset_of!(Frame, left)), 0)?;
        self.asm.jne(stop)?;
        self.asm.test(r10, r10)?;
        self.asm.js(stop)?;
        Ok(())
    }

    /// Goes on to the next strip, or to `finish` behind the last one.
    pub(super) fn next_strip(&mut self, next: CodeLabel, finish: CodeLabel) -> Result {
        let strip = qword_ptr(rdi + offset_of!(Frame, strip));
        self.asm.mov(rcx, strip)?;
        self.asm.inc(rcx)?;
        self.asm.mov(strip, rcx)?;
        self.asm.cmp(rcx, qword_ptr(rdi + offset_of!(Frame, end)))?;
        self.asm.jae(finish)?;
        self.advance_words()?;
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
        self.advance_evens()?;
        self.asm.jmp(next)?;
        Ok(())
    }

    /// Advances the places of words. Changes `rdx`.
    pub(super) fn advance_words(&mut self) -> Result {
        for word in 0..self.layout.words.len() {
            self.asm.mov(rdx, qword_ptr(rdi + (offset_of!(Frame, word_steps) + 8 * word)))?;
            for group in 0..self.groups {
                let place = offset_of!(Frame, words) + 8 * (2 * word + group);
                self.asm.add(qword_ptr(rdi + place), rdx)?;
            }
        }
        Ok(())
    }

    /// Advances the numbers for all lanes by [`Steps::evens`] of the steps at `rcx`. Changes `rdx`.
    pub(super) fn advance_evens(&mut self) -> Result {
        let evens: Vec<_> = self.layout.evens.iter().map(|even| even.slot).collect();
        for (index, slot) in evens.into_iter().enumerate() {
            if self.source.fixed.contains(&slot) {
                continue;
            }
            self.asm.mov(rdx, ptr(rcx + (offset_of!(Steps, evens) + 8 * index)))?;
            self.asm.add(rdx, qword_ptr(rdi + (offset_of!(Frame, entered) + 8 * index)))?;
            if !self.is_wide(slot) {
                self.asm.mov(edx, edx)?;
            }
            for to in [offset_of!(Frame, entered), offset_of!(Frame, bases)] {
                self.asm.mov(qword_ptr(rdi + (to + 8 * index)), rdx)?;
            }
        }
        Ok(())
    }
}
