//! Where values are: in registers of the host, or in memory if there are too few.
//!
//! A basic block copies what it needs to registers, and drops or stores the value that it reads last when it needs one
//! more. Registers that the current operation uses are pinned.

use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, dword_ptr, eax, ecx, edx, ptr, qword_ptr, rdi, rdx,
};
use ir::Slot;

use super::{Block, Destination, Emitter, HostVectors, Mask, Refused, Result, Vector};
use crate::forms::Form;
use crate::native::Frame;
use crate::{MOST_PREDICATES, SPILLED};

pub(super) fn local_place<H: HostVectors>(index: usize) -> AsmMemoryOperand {
    ptr(rdi + (offset_of!(Frame, locals) + H::BYTES * index))
}

fn local_predicate_place(index: usize) -> AsmMemoryOperand {
    dword_ptr(rdi + (offset_of!(Frame, local_predicates) + 4 * index))
}

impl<H: HostVectors> Emitter<'_, H> {
    /// The slot passes between basic blocks, or into the loop.
    pub(super) fn is_word(&self, slot: Slot) -> bool {
        self.layout.words.iter().any(|value| value.slot == slot)
    }

    /// The place of a word's chunk in the register file. Changes `rdx`.
    pub(super) fn word_place(&mut self, slot: Slot, chunk: usize) -> Result<AsmMemoryOperand> {
        let index = self.layout.words.iter().position(|value| value.slot == slot).ok_or(Refused)?;
        let (group, lane) = self.place(slot, chunk);
        self.asm.mov(rdx, qword_ptr(rdi + (offset_of!(Frame, words) + 8 * (2 * index + group))))?;
        let bytes = match () {
            () if self.is_wide(slot) => 8,
            () if self.is_short(slot) => 2,
            () => 4,
        };
        Ok(ptr(rdx + lane * bytes))
    }

    /// Loads a word's chunk from the register file. Changes `rdx`.
    pub(super) fn load_word(&mut self, to: Vector, slot: Slot, chunk: usize) -> Result {
        let place = self.word_place(slot, chunk)?;
        if self.is_short(slot) { self.asm.load_short(to, place) } else { self.asm.load(to, place, true) }
    }

    /// Stores a word's chunk to the register file, or elements of it. Changes `rdx`.
    pub(super) fn store_word(
        &mut self,
        from: Vector,
        slot: Slot,
        chunk: usize,
        mask: Option<Mask>,
    ) -> Result {
        let (wide, place) = (self.is_wide(slot), self.word_place(slot, chunk)?);
        match (mask, self.is_short(slot)) {
            (None, true) => self.asm.store_short(place, from),
            (None, false) => self.asm.store(place, from, wide),
            (Some(mask), true) => self.asm.merge_short(place, from, mask),
            (Some(mask), false) => self.asm.merge(place, from, wide, mask),
        }
    }

    /// Frees the registers of values that no operation behind `at` reads.
    pub(super) fn release(&mut self, at: usize) {
        let Block { last, vectors, stored, masks, stored_masks, free_vectors, free_masks, .. } =
            &mut self.block;
        let is_over = |slot: &Slot| last.get(slot).is_none_or(|&last| last <= at);
        vectors.retain(|(slot, _), (register, _)| {
            let over = is_over(slot);
            if over {
                free_vectors.push(*register);
            }
            !over
        });
        stored.retain(|(slot, _), _| !is_over(slot));
        stored_masks.retain(|slot, _| !is_over(slot));
        masks.retain(|slot, registers| {
            let over = is_over(slot);
            if over {
                free_masks.append(registers);
            }
            !over
        });
    }

    /// The register of a value whose NaNs may be the host's.
    pub(super) fn number(&mut self, slot: Slot, chunk: usize) -> Result<Vector> {
        // One register has all chunks of what is the same in all lanes.
        let few = H::FEW || self.straight.is_some();
        let same = few && self.forms.get(&slot) == Some(&Form::UNIFORM) && !self.is_word(slot);
        let chunk = if same { 0 } else { chunk };
        let local = self.block.vectors.get(&(slot, chunk)).map(|(register, _)| *register);
        let register = match local.or_else(|| self.words.get(&(slot, chunk)).copied()) {
            Some(register) => register,
            None => {
                let stored = self.block.stored.get(&(slot, chunk)).copied();
                if stored.is_none() && !self.is_word(slot) {
                    return self.spread(slot, chunk);
                }
                let register = self.temporary()?;
                match stored {
                    Some((index, _)) => self.asm.load(register, local_place::<H>(index), true)?,
                    None => self.load_word(register, slot, chunk)?,
                }
                self.block.vectors.insert((slot, chunk), (register, stored.is_some_and(|(_, raw)| raw)));
                register
            }
        };
        self.block.pinned.push(register);
        Ok(register)
    }

    /// The register of a value with the NaNs of PTX.
    pub(super) fn bits(&mut self, slot: Slot, chunk: usize) -> Result<Vector> {
        let register = self.number(slot, chunk)?;
        if let Some((_, raw @ true)) = self.block.vectors.get_mut(&(slot, chunk)) {
            *raw = false;
            self.asm.canonicalize(register)?;
        }
        Ok(register)
    }

    /// The register of a value that is moved, and whether its NaNs are the host's.
    pub(super) fn moved(&mut self, slot: Slot, chunk: usize) -> Result<(Vector, bool)> {
        let register = self.number(slot, chunk)?;
        let raw = self.block.vectors.get(&(slot, chunk)).is_some_and(|(_, raw)| *raw);
        Ok((register, raw))
    }

    /// A register until the end of the operation. The caller gives it back to `free_vectors`.
    pub(super) fn temporary(&mut self) -> Result<Vector> {
        if self.block.free_vectors.is_empty() {
            self.evict()?;
        }
        let register = self.block.free_vectors.pop().ok_or(Refused)?;
        self.block.pinned.push(register);
        Ok(register)
    }

    /// Frees the register whose value is read last of all.
    fn evict(&mut self) -> Result {
        if !self.spills {
            return Err(Refused);
        }
        let Block { vectors, pinned, last, .. } = &self.block;
        let free = vectors.iter().filter(|(_, (register, _))| !pinned.contains(register));
        let victim = free.max_by_key(|((slot, chunk), _)| (last.get(slot).copied(), *chunk));
        let (&(slot, chunk), &(register, raw)) = victim.ok_or(Refused)?;
        // Words and numbers for all lanes are elsewhere, too.
        let is_local = !self.is_word(slot) && !self.forms.contains_key(&slot);
        if is_local && !self.block.stored.contains_key(&(slot, chunk)) {
            let used = |index| self.block.stored.values().any(|(other, _)| *other == index);
            let index = (0..SPILLED).find(|&index| !used(index)).ok_or(Refused)?;
            self.asm.store(local_place::<H>(index), register, true)?;
            self.block.stored.insert((slot, chunk), (index, raw));
        }
        self.block.vectors.remove(&(slot, chunk));
        self.block.free_vectors.push(register);
        Ok(())
    }

    /// Other lanes need the values of the slot while lanes are in the current basic block: none does if all are.
    fn is_needed(&self, slot: Slot) -> bool {
        !self.asm.has_all() && self.source.bodies[self.block.index].needed.contains(&slot)
    }

    /// Defines a chunk: `write` emits what computes it, into the register that it gets. `raw`: its NaNs are the host's. The
    /// register may be masked, so it is written last, and once.
    pub(super) fn define(
        &mut self,
        (slot, chunk): (Slot, usize),
        raw: bool,
        write: impl FnOnce(&mut H, Destination) -> Result,
    ) -> Result {
        let key = (slot, chunk);
        self.block.stored.remove(&key);
        self.block.checked.remove(&slot);
        let known = self.block.vectors.get(&key).map(|(register, _)| *register);
        if !self.is_word(slot) {
            let register = known.map_or_else(|| self.temporary(), Ok)?;
            write(&mut self.asm, register.into())?;
            self.block.vectors.insert(key, (register, raw));
            return Ok(());
        }
        let visible = self.layout.words.iter().any(|value| value.slot == slot && value.visible);
        let word = self.words.get(&key).copied();
        // In the register file are the values of lanes outside of the loop, too.
        let needed = self.is_needed(slot) || word.is_none() && !self.asm.has_all();
        // What reads a value under a mask waits for the mask. So the basic block has a copy for itself.
        let copy = match word {
            _ if known.is_some() => known,
            Some(_) if needed => self.block.free_vectors.pop(),
            Some(_) => None,
            None => Some(self.temporary()?),
        };
        if let Some(copy) = copy {
            self.block.vectors.insert(key, (copy, false));
        }
        if let (Some(word), None, false) = (word, copy, raw && visible || needed && !H::MERGES) {
            let mask = if needed { Some(self.lanes_of(slot, chunk)?) } else { None };
            return write(&mut self.asm, Destination { register: word, mask });
        }
        let first = copy.unwrap_or(H::SCRATCH);
        write(&mut self.asm, first.into())?;
        if raw && visible {
            self.asm.canonicalize(first)?;
        }
        let Some(word) = word else {
            let mask = if needed { Some(self.lanes_of(slot, chunk)?) } else { None };
            return self.store_word(first, slot, chunk, mask);
        };
        let mask = if needed { Some(self.lanes_of(slot, chunk)?) } else { None };
        self.asm.copy(Destination { register: word, mask }, first, self.is_wide(slot))
    }

    /// Loads a predicate.
    pub(super) fn predicate(&mut self, slot: Slot, to: AsmRegister32) -> Result {
        match self.block.masks.get(&slot).cloned() {
            Some(masks) => self.asm.joined(&masks, to),
            None => {
                let place = self.predicate_place(slot)?;
                Ok(self.asm.mov(to, place)?)
            }
        }
    }

    /// The place of a predicate that has no registers.
    pub(super) fn predicate_place(&self, slot: Slot) -> Result<AsmMemoryOperand> {
        if let Some(&index) = self.block.stored_masks.get(&slot) {
            return Ok(local_predicate_place(index));
        }
        let index = self.source.predicates.iter().position(|value| value.slot == slot).ok_or(Refused)?;
        Ok(dword_ptr(rdi + (offset_of!(Frame, passed) + 4 * index)))
    }

    /// Defines a predicate by `ecx`. Changes `edx`.
    pub(super) fn define_predicate(&mut self, slot: Slot) -> Result {
        if self.is_passed(slot) && self.asm.has_all() {
            let place = self.predicate_place(slot)?;
            return Ok(self.asm.mov(place, ecx)?);
        }
        if self.is_passed(slot) {
            // The lanes that are not here keep theirs.
            let place = self.predicate_place(slot)?;
            self.asm.mov(edx, place)?;
            self.asm.xor(ecx, edx)?;
            self.asm.and(ecx, eax)?;
            self.asm.xor(edx, ecx)?;
            self.asm.mov(place, edx)?;
            return Ok(());
        }
        let Some(masks) = self.own_masks(slot) else {
            let used = |index| self.block.stored_masks.values().any(|other| *other == index);
            let known = self.block.stored_masks.get(&slot).copied();
            let free = || (0..MOST_PREDICATES).find(|&index| !used(index));
            let index = known.or_else(free).ok_or(Refused)?;
            self.block.stored_masks.insert(slot, index);
            self.asm.mov(local_predicate_place(index), ecx)?;
            return Ok(());
        };
        self.asm.split(&masks)
    }

    /// The predicate passes between basic blocks.
    pub(super) fn is_passed(&self, slot: Slot) -> bool {
        self.source.predicates.iter().any(|value| value.slot == slot)
    }

    /// The registers of a predicate that the basic block defines for itself. `None`: it does not, or all are in use.
    pub(super) fn own_masks(&mut self, slot: Slot) -> Option<Vec<Mask>> {
        if self.is_passed(slot) {
            return None;
        }
        if let Some(masks) = self.block.masks.get(&slot) {
            return Some(masks.clone());
        }
        let start = self.block.free_masks.len().checked_sub(self.parts)?;
        let masks = self.block.free_masks.split_off(start);
        self.block.stored_masks.remove(&slot);
        self.block.masks.insert(slot, masks.clone());
        Some(masks)
    }
}
