//! How lanes go from basic block to basic block.
//!
//! The code of a basic block begins with the lanes that are there, `eax`. Beside it is code without masks, for all lanes of
//! the vectors: as long as they stay together they go from one such code to the next, and nothing has to know where they are.

use iced_x86::code_asm::{AsmRegister32, CodeLabel, eax, ecx, r10};
use ir::Guard;

use super::operations::scratch_place;
use super::{Emitter, GROUP_LANES, HostVectors, PENDING, Result, pending_place};
use crate::loops::{Body, End};

/// Where code begins.
pub(super) struct Labels {
    /// Of basic blocks, for the lanes that are there.
    pub some: Vec<CodeLabel>,
    /// Of basic blocks, for all lanes of the vectors.
    pub all: Vec<CodeLabel>,
    /// The end of the loop.
    pub done: CodeLabel,
}

impl Labels {
    /// What stands behind a basic block.
    pub fn behind(&self, index: usize) -> CodeLabel {
        self.some.get(index + 1).copied().unwrap_or(self.done)
    }
}

/// The bits of the first lanes.
pub(super) fn bits_of(lanes: usize) -> i32 {
    (u32::MAX >> (32 - lanes)) as i32
}

impl<H: HostVectors> Emitter<'_, H> {
    /// The bits of all lanes of the vectors.
    pub(super) fn all_lanes(&self) -> i32 {
        bits_of(self.groups * GROUP_LANES)
    }

    /// Takes the lanes at the start of a basic block, or goes to `next` if there is none.
    pub(super) fn take_pending(&mut self, index: usize, next: CodeLabel) -> Result {
        match PENDING.get(index) {
            Some(&(register, ..)) => {
                self.asm.mov(eax, register)?;
                self.asm.test(eax, eax)?;
                self.asm.jz(next)?;
                self.asm.xor(register, register)?;
            }
            None => {
                self.asm.mov(eax, pending_place(index))?;
                self.asm.test(eax, eax)?;
                self.asm.jz(next)?;
                self.asm.mov(pending_place(index), 0)?;
            }
        }
        Ok(())
    }

    /// Sends the lanes `eax` on from a basic block.
    pub(super) fn end(&mut self, index: usize, body: &Body, labels: &Labels) -> Result {
        match body.end {
            End::Jump(place) => {
                self.arrive(place, eax)?;
                self.go(index, place, None, labels)
            }
            End::Branch { taken, otherwise, .. } => {
                self.choose_ways(body)?;
                self.split(index, [taken, otherwise], labels)
            }
            End::Joined => Ok(()),
        }
    }

    /// Sends all lanes of the vectors on from a basic block.
    pub(super) fn end_of_all(&mut self, index: usize, body: &Body, labels: &Labels) -> Result {
        let (taken, otherwise) = match body.end {
            End::Jump(place) => return self.go_with_all(index, place, labels),
            End::Branch { taken, otherwise, .. } => (taken, otherwise),
            End::Joined => return Ok(()),
        };
        let [mut some, mut none] = std::array::from_fn(|_| self.asm.create_label());
        self.choose_ways(body)?;
        self.asm.jz(none)?;
        self.asm.cmp(ecx, eax)?;
        self.asm.jne(some)?;
        self.go_with_all(index, taken, labels)?;
        self.asm.set_label(&mut none)?;
        self.go_with_all(index, otherwise, labels)?;
        self.asm.set_label(&mut some)?;
        self.split(index, [taken, otherwise], labels)?;
        Ok(self.asm.jmp(labels.behind(index))?)
    }

    /// `ecx`: which of the lanes `eax` take a branch, with the host's flags for it.
    fn choose_ways(&mut self, body: &Body) -> Result {
        if let End::Branch { pred, negated, .. } = body.end {
            self.predicate(pred, ecx)?;
            if negated {
                self.asm.not(ecx)?;
            }
            self.asm.and(ecx, eax)?;
        }
        Ok(())
    }

    /// Sends the lanes `ecx` one way, and those of `eax` that are not among them another.
    fn split(&mut self, index: usize, [taken, otherwise]: [usize; 2], labels: &Labels) -> Result {
        self.asm.xor(eax, ecx)?;
        self.arrive(taken, ecx)?;
        self.arrive(otherwise, eax)?;
        // The lower one first. If both are the same, either way finds its lanes.
        let mut ways = [(taken, ecx), (otherwise, eax)];
        ways.sort_by_key(|(place, _)| *place);
        for (place, lanes) in ways {
            self.go(index, place, Some(lanes), labels)?;
        }
        Ok(())
    }

    /// Adds lanes to those that are at a place.
    fn arrive(&mut self, place: usize, lanes: AsmRegister32) -> Result {
        match PENDING.get(place).filter(|_| place < self.source.bodies.len()) {
            Some(&(register, ..)) => self.asm.or(register, lanes)?,
            None => self.asm.or(pending_place(place), lanes)?,
        }
        Ok(())
    }

    /// Goes back to a basic block, if `lanes` has any. The code behind this one finds lanes that go forward.
    fn go(&mut self, from: usize, place: usize, lanes: Option<AsmRegister32>, labels: &Labels) -> Result {
        if place > from {
            return Ok(());
        }
        let mut forward = self.asm.create_label();
        if let Some(lanes) = lanes {
            self.asm.test(lanes, lanes)?;
            self.asm.jz(forward)?;
        }
        self.asm.dec(r10)?;
        self.asm.js(labels.done)?;
        self.asm.jmp(labels.some[place])?;
        self.asm.set_label(&mut forward)?;
        // A label stands before an instruction.
        self.asm.nop()?;
        Ok(())
    }

    /// Goes to a place with all lanes of the vectors, `eax`.
    fn go_with_all(&mut self, from: usize, place: usize, labels: &Labels) -> Result {
        match labels.all.get(place) {
            Some(&next) if place > from => return Ok(self.asm.jmp(next)?),
            Some(&next) => {
                self.asm.dec(r10)?;
                self.asm.jns(next)?;
            }
            None => {}
        }
        // They leave the loop, or have no time left.
        self.arrive(place, eax)?;
        Ok(self.asm.jmp(labels.done)?)
    }

    /// What some of the lanes do. `none`: a label to go to where none does.
    pub(super) fn for_some(
        &mut self,
        guard: Guard,
        none: Option<&mut CodeLabel>,
        write: impl FnOnce(&mut Self) -> Result,
    ) -> Result {
        let all = self.asm.has_all();
        self.asm.mov(scratch_place(0), eax)?;
        self.predicate(guard.slot, ecx)?;
        if guard.negated {
            self.asm.not(ecx)?;
        }
        self.asm.and(eax, ecx)?;
        if let Some(none) = &none {
            self.asm.jz(**none)?;
        }
        self.asm.set_all(false);
        self.asm.take_lanes()?;
        write(self)?;
        self.asm.set_all(all);
        if let Some(none) = none {
            self.asm.set_label(none)?;
        }
        self.asm.mov(eax, scratch_place(0))?;
        if all { Ok(()) } else { self.asm.take_lanes() }
    }
}
