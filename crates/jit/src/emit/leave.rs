//! Code behind a loop: where lanes leave before an operation, and where an access asks for another region.

use std::collections::BTreeMap;
use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmMemoryOperand, CodeLabel, al, ax, dword_ptr, eax, ecx, edx, esi, ptr, qword_ptr, r8, r9, r10, r11,
    rax, rbp, rcx, rdi, rdx, rsi, rsp,
};
use ir::Slot;

use super::registers::local_place;
use super::{Emitter, HostVectors, Mask, Refused, Result, Vector};
use crate::SPILLED;
use crate::forms::Form;
use crate::native::{Frame, Held, Part, Point};
use crate::operation::Access;

/// Code behind the loop.
pub(super) struct Stub {
    /// Its first instruction.
    pub label: CodeLabel,
    pub kind: Kind,
}

pub(super) enum Kind {
    /// The lanes at the basic block leave before an operation: the index of the point, and the values to store.
    Leave { point: usize, cost: u32, vectors: Vec<(Place, bool)>, masks: Vec<Predicate> },
    /// The lanes leave before they are at the first basic block.
    LeaveAtStart { point: usize },
    /// The strip has done nothing. `flushes`: arithmetic does.
    Skip { flushes: bool },
    /// Not all lanes of evenly stepping addresses are in the region. `rcx` is the distance of the first one from its start. If
    /// the lanes at the basic block are, they go on at `fits`, otherwise at `ask`.
    Exact { access: Access, form: Form, fits: CodeLabel, ask: CodeLabel },
    /// Asks for a region, and goes back to `again`, or to `leave` if there is none. `addresses`: unless they step evenly.
    Ask { access: Access, addresses: Vec<Vector>, again: CodeLabel, leave: CodeLabel },
}

/// Where a chunk is.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Register(Vector),
    Memory(AsmMemoryOperand),
}

/// Where a predicate is.
pub(super) enum Predicate {
    Registers(Vec<Mask>),
    Memory(AsmMemoryOperand),
}

fn place(offset: usize) -> AsmMemoryOperand {
    ptr(rdi + offset)
}

impl<H: HostVectors> Emitter<'_, H> {
    /// The label of code by which the lanes leave before the current operation.
    pub(super) fn leave(&mut self) -> Result<CodeLabel> {
        if self.straight.is_some() {
            let label = self.asm.create_label();
            self.stubs.push(Stub { label, kind: Kind::Skip { flushes: self.asm.flushes } });
            return Ok(label);
        }
        let mut held: Vec<(Slot, Held)> = Vec::new();
        let (mut vectors, mut masks) = (Vec::new(), Vec::new());
        // What is a word is there in any case, and numbers for all lanes are in the frame.
        let is_local = |slot: Slot| !self.is_word(slot) && !self.forms.contains_key(&slot);
        let stored = self.block.stored.iter();
        let stored = stored.map(|(&key, &(index, raw))| (key, (Place::Memory(local_place::<H>(index)), raw)));
        let mut values: BTreeMap<(Slot, usize), (Place, bool)> = stored.collect();
        let registers = self.block.vectors.iter().filter(|((slot, _), _)| is_local(*slot));
        values.extend(registers.map(|(&key, &(register, raw))| (key, (Place::Register(register), raw))));
        for ((slot, chunk), value) in values {
            if chunk == 0 {
                held.push((slot, Held::Vectors(vectors.len() * H::BYTES)));
            }
            vectors.push(value);
        }
        for (&slot, registers) in &self.block.masks {
            held.push((slot, Held::Mask((H::BYTES * vectors.len()).div_ceil(64) + masks.len())));
            masks.push(Predicate::Registers(registers.clone()));
        }
        for &slot in self.block.stored_masks.keys() {
            held.push((slot, Held::Mask((H::BYTES * vectors.len()).div_ceil(64) + masks.len())));
            masks.push(Predicate::Memory(self.predicate_place(slot)?));
        }
        if vectors.len() + masks.len() > SPILLED {
            return Err(Refused);
        }
        let label = self.asm.create_label();
        let (block, operation, cost) = self.source.bodies[self.block.index].origin(self.block.at);
        let point = self.layout.points.len();
        self.layout.points.push(Point { block, operation, values: held });
        self.stubs.push(Stub { label, kind: Kind::Leave { point, cost, vectors, masks } });
        Ok(label)
    }

    /// The label of code by which the lanes leave before the loop begins.
    pub(super) fn leave_at_start(&mut self) -> Result<CodeLabel> {
        let (label, point) = (self.asm.create_label(), self.layout.points.len());
        self.layout.points.push(Point { block: 0, operation: 0, values: Vec::new() });
        self.stubs.push(Stub { label, kind: Kind::LeaveAtStart { point } });
        Ok(label)
    }

    /// The code behind the loop. `done`: the end of the function.
    pub(super) fn behind(&mut self, done: CodeLabel) -> Result {
        let mut ask = self.asm.create_label();
        let asks = self.stubs.iter().any(|stub| matches!(stub.kind, Kind::Ask { .. }));
        for mut stub in std::mem::take(&mut self.stubs) {
            self.asm.set_label(&mut stub.label)?;
            match stub.kind {
                Kind::Leave { point, cost, vectors, masks } => {
                    self.leave_at(point, cost, &vectors, &masks)?;
                    self.asm.jmp(done)?;
                }
                Kind::LeaveAtStart { point } => {
                    if let Some((register, ..)) = self.registers().next() {
                        self.asm.xor(register, register)?;
                    }
                    self.leave_at(point, 0, &[], &[])?;
                    self.asm.jmp(done)?;
                }
                Kind::Skip { flushes } => {
                    self.asm.flushes = flushes;
                    self.set_flushing(false)?;
                    self.skip()?;
                    self.asm.jmp(done)?;
                }
                Kind::Exact { access, form, fits, ask } => {
                    self.exact(access, form, ask)?;
                    self.asm.jmp(fits)?;
                }
                Kind::Ask { access, addresses, again, leave } => {
                    if addresses.is_empty() {
                        self.base(rdx, access.base)?;
                        self.asm.mov(place(offset_of!(Frame, addresses)), rdx)?;
                    }
                    for (index, register) in addresses.into_iter().enumerate() {
                        self.asm.store(
                            place(offset_of!(Frame, addresses) + H::BYTES * index),
                            register,
                            true,
                        )?;
                    }
                    self.asm.mov(ecx, access.index as u32)?;
                    self.asm.call(ask)?;
                    self.asm.jnz(again)?;
                    self.asm.jmp(leave)?;
                }
            }
        }
        if asks {
            self.asm.set_label(&mut ask)?;
            self.find_region()?;
        }
        self.mark(Part::Constants);
        for (mut label, lanes) in std::mem::take(&mut self.asm.constants) {
            self.asm.set_label(&mut label)?;
            self.asm.dq(&lanes[..H::BYTES / 8])?;
        }
        Ok(())
    }

    fn leave_at(
        &mut self,
        point: usize,
        cost: u32,
        vectors: &[(Place, bool)],
        masks: &[Predicate],
    ) -> Result {
        let spilled = |byte: usize| place(offset_of!(Frame, spilled) + byte);
        for (index, &(vector, raw)) in vectors.iter().enumerate() {
            match vector {
                Place::Register(register) => self.asm.copy(H::SCRATCH.into(), register, true)?,
                Place::Memory(place) => self.asm.load(H::SCRATCH, place, true)?,
            }
            if raw {
                self.asm.canonicalize(H::SCRATCH)?;
            }
            self.asm.store(spilled(H::BYTES * index), H::SCRATCH, true)?;
        }
        let first_mask = (H::BYTES * vectors.len()).div_ceil(64);
        for (index, predicate) in masks.iter().enumerate() {
            match predicate {
                Predicate::Registers(registers) => self.asm.joined(registers, ecx)?,
                Predicate::Memory(place) => self.asm.mov(ecx, *place)?,
            }
            self.asm.mov(spilled(64 * (first_mask + index)), ecx)?;
        }
        self.asm.mov(dword_ptr(rdi + offset_of!(Frame, left)), eax)?;
        self.asm.mov(dword_ptr(rdi + offset_of!(Frame, point)), point as i32)?;
        // The interpreter counts the basic block.
        self.asm.popcnt(ecx, eax)?;
        self.asm.imul_3(rcx, rcx, i32::try_from(cost).map_err(|_| Refused)?)?;
        self.asm.sub(r11, rcx)?;
        Ok(())
    }

    /// Checks the first and the last address of the lanes at the basic block. Keeps `rcx`.
    fn exact(&mut self, access: Access, form: Form, ask: CodeLabel) -> Result {
        let room = self.region(access, offset_of!(crate::Region, room));
        for group in 0..self.groups {
            let mut next = self.asm.create_label();
            let lanes = |emitter: &mut Self| -> Result {
                if group == 0 {
                    emitter.asm.movzx(edx, ax)?;
                } else {
                    emitter.asm.mov(edx, eax)?;
                    emitter.asm.shr(edx, 16)?;
                }
                Ok(())
            };
            lanes(self)?;
            self.asm.test(edx, edx)?;
            self.asm.jz(next)?;
            for last in [false, true] {
                lanes(self)?;
                if last {
                    self.asm.bsr(edx, edx)?;
                } else {
                    self.asm.bsf(edx, edx)?;
                }
                let step = i32::try_from(form.step).map_err(|_| Refused)?;
                self.asm.imul_3(rdx, rdx, step)?;
                self.asm.lea(rdx, ptr(rdx + rcx + form.offset(group, 0) as i32))?;
                self.asm.cmp(rdx, room)?;
                self.asm.jae(ask)?;
            }
            self.asm.set_label(&mut next)?;
            // A label stands before an instruction.
            self.asm.nop()?;
        }
        Ok(())
    }

    /// Calls `Frame::find_region` for access `ecx` and the lanes `eax`. Keeps all registers but `rcx` and `rdx`. Not zero: a
    /// region has been found.
    fn find_region(&mut self) -> Result {
        let vectors: Vec<Vector> = (0..H::VECTORS).map(Vector).chain([H::SCRATCH]).chain(H::NAN).collect();
        self.asm.mov(dword_ptr(rdi + offset_of!(Frame, asking)), eax)?;
        self.save(&vectors, true)?;
        self.call_host(offset_of!(Frame, find_region))?;
        self.asm.movzx(edx, al)?;
        self.save(&vectors, false)?;
        self.asm.test(edx, edx)?;
        self.asm.ret()?;
        Ok(())
    }

    /// Saves these registers, all masks but `k7`, and those words that a function may change and that are in use. Or loads
    /// them.
    fn save(&mut self, vectors: &[Vector], saves: bool) -> Result {
        let word = |index: usize| qword_ptr(rdi + (offset_of!(Frame, saved_words) + 8 * index));
        for (index, &register) in vectors.iter().enumerate() {
            let place = place(offset_of!(Frame, saved) + H::BYTES * index);
            if saves {
                self.asm.store(place, register, true)?;
            } else {
                self.asm.load(register, place, true)?;
            }
        }
        self.asm.save_masks(saves)?;
        for (index, register) in [rax, rsi, r8, r9, r10, r11].into_iter().enumerate() {
            if saves {
                self.asm.mov(word(index), register)?;
            } else {
                self.asm.mov(register, word(index))?;
            }
        }
        Ok(())
    }

    /// Calls a function of the frame, with the frame and `ecx`.
    fn call_host(&mut self, function: usize) -> Result {
        self.asm.vzeroupper()?;
        self.asm.push(rbp)?;
        self.asm.push(rdi)?;
        self.asm.mov(rbp, rsp)?;
        // The calling convention wants it.
        self.asm.and(rsp, -16)?;
        self.asm.mov(esi, ecx)?;
        self.asm.call(qword_ptr(rdi + function))?;
        self.asm.mov(rsp, rbp)?;
        self.asm.pop(rdi)?;
        self.asm.pop(rbp)?;
        Ok(())
    }

    /// Lets the interpreter compute an operation.
    pub(super) fn call(&mut self, index: usize, dst: &[Slot], src: &[Slot]) -> Result {
        let operand = |operand: usize, chunk: usize, short: bool| {
            let bytes = if short { H::BYTES / 2 } else { H::BYTES };
            place(offset_of!(Frame, operands) + size_of::<[u8; 256]>() * operand + bytes * chunk)
        };
        for (number, &slot) in src.iter().enumerate() {
            let short = self.is_short(slot);
            for chunk in 0..self.chunks(slot) {
                let register = self.bits(slot, chunk)?;
                let place = operand(number, chunk, short);
                match short {
                    true => self.asm.store_short(place, register)?,
                    false => self.asm.store(place, register, true)?,
                }
                self.block.pinned.clear();
            }
        }
        let mut live: Vec<Vector> = self.words.values().copied().chain(H::NAN).collect();
        live.extend(self.block.vectors.values().map(|(register, _)| *register));
        self.save(&live, true)?;
        self.asm.mov(ecx, index as u32)?;
        self.call_host(offset_of!(Frame, call))?;
        self.save(&live, false)?;
        for (number, &slot) in dst.iter().enumerate() {
            let (wide, short) = (self.is_wide(slot), self.is_short(slot));
            for chunk in 0..self.chunks(slot) {
                let result = operand(src.len() + number, chunk, short);
                if short {
                    self.asm.load_short(H::SCRATCH, result)?;
                    self.define((slot, chunk), false, |asm, dst| asm.copy(dst, H::SCRATCH, false))?;
                } else {
                    self.define((slot, chunk), false, |asm, dst| asm.load_result(dst, result, wide))?;
                }
                self.unpin();
            }
        }
        Ok(())
    }
}
