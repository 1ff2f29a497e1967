//! Machine code for operations without control flow: a loop over strips around them.
//!
//! Accesses to memory have been checked. Their pointers are in registers, and advance from strip to strip. There is code for all
//! lanes of a strip, without masks, and code for some.

use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmRegister64, CodeLabel, eax, ecx, edx, ptr, qword_ptr, r8, r9, r10, r11, r12, r13, r14, r15, rbp, rbx,
    rcx, rdi, rdx, rsi,
};

use super::{Emitter, GROUP_LANES, HostVectors, Result};
use crate::native::{Frame, Lanes, Part, Steps};
use crate::straight::Straight;

/// Registers for pointers, and whether a function must keep them.
const POINTERS: [(AsmRegister64, bool); 9] = [
    (rsi, false),
    (r8, false),
    (r9, false),
    (r10, false),
    (r11, false),
    (rbx, true),
    (rbp, true),
    (r12, true),
    (r13, true),
];
/// The number of the strip, and how many are left in the run. A function must keep them.
const STRIP: AsmRegister64 = r14;
const LEFT: AsmRegister64 = r15;

impl<H: HostVectors> Emitter<'_, H> {
    pub(super) fn whole_straight(&mut self, straight: &Straight) -> Result {
        let registers = POINTERS.into_iter().take(straight.pointers.len());
        let pointers = registers.clone().filter(|(_, keep)| *keep).map(|(register, _)| register);
        let kept: Vec<AsmRegister64> = pointers.chain([STRIP, LEFT]).collect();
        let [mut next, mut none, mut some, mut finish] = std::array::from_fn(|_| self.asm.create_label());

        self.mark(Part::Entry);
        for &register in &kept {
            self.asm.push(register)?;
        }
        self.asm.begin()?;
        for (index, (register, _)) in registers.enumerate() {
            self.asm.mov(register, qword_ptr(rdi + (offset_of!(Frame, pointers) + 8 * index)))?;
        }
        self.asm.mov(STRIP, qword_ptr(rdi + offset_of!(Frame, strip)))?;
        self.asm.mov(LEFT, qword_ptr(rdi + offset_of!(Frame, left_in_run)))?;
        self.asm.set_label(&mut next)?;
        self.strip_of_masks()?;
        self.load_lanes(eax, offset_of!(Frame, lanes))?;
        self.asm.test(eax, eax)?;
        self.asm.jz(none)?;
        self.load_predicates()?;
        if straight.counts() {
            self.asm.mov(rcx, qword_ptr(rdi + offset_of!(Frame, instructions)))?;
            self.asm.mov(qword_ptr(rdi + offset_of!(Frame, instructions_before)), rcx)?;
        }
        let all = self.all_lanes();
        self.asm.cmp(eax, all)?;
        self.asm.jne(some)?;
        self.lanes_together(true, none)?;
        self.asm.set_label(&mut some)?;
        self.lanes_together(false, none)?;

        self.mark(Part::Exit);
        self.asm.set_label(&mut none)?;
        let mut within = self.asm.create_label();
        self.asm.inc(STRIP)?;
        self.asm.cmp(STRIP, qword_ptr(rdi + offset_of!(Frame, end)))?;
        self.asm.jae(finish)?;
        self.advance_words()?;
        self.asm.lea(rcx, ptr(rdi + offset_of!(Frame, advance)))?;
        self.asm.dec(LEFT)?;
        self.asm.jnz(within)?;
        self.asm.mov(LEFT, qword_ptr(rdi + offset_of!(Frame, run)))?;
        self.asm.lea(rcx, ptr(rdi + offset_of!(Frame, jump)))?;
        self.asm.dec(qword_ptr(rdi + offset_of!(Frame, left_runs)))?;
        self.asm.jnz(within)?;
        self.asm.mov(rdx, qword_ptr(rdi + offset_of!(Frame, runs)))?;
        self.asm.mov(qword_ptr(rdi + offset_of!(Frame, left_runs)), rdx)?;
        self.asm.lea(rcx, ptr(rdi + offset_of!(Frame, leap)))?;
        self.asm.set_label(&mut within)?;
        self.advance_evens()?;
        self.advance_pointers()?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut finish)?;
        self.asm.vzeroupper()?;
        for &register in kept.iter().rev() {
            self.asm.pop(register)?;
        }
        self.asm.ret()?;
        self.mark(Part::Behind);
        self.behind(none)
    }

    /// Sets `rdx` to the number that the strip has in masks, which repeat.
    fn strip_of_masks(&mut self) -> Result {
        let strips = size_of::<Lanes>() * 8 / (GROUP_LANES * self.groups);
        self.asm.mov(rdx, STRIP)?;
        Ok(self.asm.and(edx, strips as i32 - 1)?)
    }

    /// Notes that the strip is skipped.
    pub(super) fn skip(&mut self) -> Result {
        self.strip_of_masks()?;
        self.load_lanes(ecx, offset_of!(Frame, lanes))?;
        self.store_lanes(offset_of!(Frame, skipped))?;
        if self.straight.is_some_and(Straight::counts) {
            self.asm.mov(rcx, qword_ptr(rdi + offset_of!(Frame, instructions_before)))?;
            self.asm.mov(qword_ptr(rdi + offset_of!(Frame, instructions)), rcx)?;
        }
        Ok(())
    }

    /// The operations for a strip: for all of its lanes, or for the lanes `eax`. Goes to `done`.
    fn lanes_together(&mut self, all: bool, done: CodeLabel) -> Result {
        let body = &self.source.bodies[0];
        self.mark(Part::Block { index: 0, all });
        self.asm.set_all(all);
        if !all {
            self.asm.take_lanes()?;
        }
        self.new_block(0, body);
        self.operations(body)?;
        self.asm.set_all(false);
        if self.source.predicates.iter().any(|predicate| predicate.defined) {
            self.strip_of_masks()?;
            self.store_predicates()?;
        }
        Ok(self.asm.jmp(done)?)
    }

    /// The register with a pointer, which may be `rcx`.
    pub(super) fn pointer(&mut self, index: usize) -> Result<AsmRegister64> {
        if let Some(&(register, _)) = POINTERS.get(index) {
            return Ok(register);
        }
        self.asm.mov(rcx, qword_ptr(rdi + (offset_of!(Frame, pointers) + 8 * index)))?;
        Ok(rcx)
    }

    /// Advances the pointers by [`Steps::pointers`] of the steps at `rcx`. Changes `rdx`.
    pub(super) fn advance_pointers(&mut self) -> Result {
        let count = self.straight.map_or(0, |straight| straight.pointers.len());
        for index in 0..count {
            let step = qword_ptr(rcx + (offset_of!(Steps, pointers) + 8 * index));
            if let Some(&(register, _)) = POINTERS.get(index) {
                self.asm.add(register, step)?;
            } else {
                self.asm.mov(rdx, step)?;
                self.asm.add(qword_ptr(rdi + (offset_of!(Frame, pointers) + 8 * index)), rdx)?;
            }
        }
        Ok(())
    }
}
