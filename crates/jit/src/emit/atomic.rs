//! Atomic operations: lane by lane, the lowest first.

use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmMemoryOperand, dword_ptr, eax, edx, ptr, qword_ptr, r10, r10d, r11, r11d, rax, rcx, rdi, rdx,
};
use ir::Slot;

use super::access::Places;
use super::host::{Scattered, low_number};
use super::operations::scratch_place;
use super::{Emitter, Form, GROUP_LANES, HostVectors, NAN_BITS, Refused, Result};
use crate::native::Frame;
use crate::operation::{Access, Change};

/// What is done to each element.
#[derive(Clone, Copy)]
pub(super) struct Update {
    pub op: Change,
    /// By locked instructions: other host threads may access the elements.
    pub locked: bool,
    pub dst: Option<Slot>,
    pub src: Slot,
    /// Often all lanes are there, where the code does not know it.
    pub often_all: bool,
}

/// The value of a lane, and what its element was before.
fn element_of(lane: usize, wide: bool) -> AsmMemoryOperand {
    ptr(rdi + (offset_of!(Frame, elements) + if wide { 8 } else { 4 } * lane))
}

impl<H: HostVectors> Emitter<'_, H> {
    /// Changes the elements of the lanes at the basic block.
    pub(super) fn atomic(&mut self, update: Update, access: Access) -> Result {
        let Update { op, dst, src, .. } = update;
        if self.even_address(&access) == Some(Form::UNIFORM) {
            return self.atomic_of_one(update, access);
        }
        let wide = access.bytes == 8;
        let literal = self.source.literals.get(&src).and_then(|&value| i32::try_from(value).ok());
        let literal = literal.filter(|_| dst.is_none() && !op.is_float());
        let elements = offset_of!(Frame, elements);
        let chunks = if literal.is_some() { 0 } else { self.chunks(src) };
        for chunk in 0..chunks {
            let value = self.bits(src, chunk)?;
            self.asm.store(ptr(rdi + (elements + H::BYTES * chunk)), value, wide)?;
            self.unpin();
        }
        let places = self.check(access, [src].iter())?;
        let all = self.asm.has_all();
        let in_registers = places.scattered(0).filter(|_| !op.is_float()).is_some();
        let places = if all && in_registers { places } else { self.kept_places(places)? };
        let [mut none, mut some, mut next] = std::array::from_fn(|_| self.asm.create_label());
        self.asm.push(r10)?;
        self.asm.push(r11)?;
        self.asm.push(rax)?;
        if !all {
            self.asm.test(eax, eax)?;
            self.asm.jz(none)?;
        }
        if all || update.often_all {
            let lanes = self.all_lanes();
            if !all {
                self.asm.cmp(eax, lanes)?;
                self.asm.jne(some)?;
            }
            match places.scattered(0).filter(|_| in_registers) {
                Some(scattered) => self.change_scattered(update, scattered, (literal, wide))?,
                None => {
                    for lane in 0..self.groups * GROUP_LANES {
                        let place = self.lane_place(&places, lane, 0)?;
                        self.change(update, place, element_of(lane, wide), (literal, wide))?;
                    }
                }
            }
            self.asm.jmp(none)?;
        }
        if !all {
            // One lane after the other, the lowest first.
            self.asm.set_label(&mut some)?;
            self.asm.mov(scratch_place(1), eax)?;
            self.asm.set_label(&mut next)?;
            self.asm.bsf(r10d, scratch_place(1))?;
            let place = self.place_of_r10(&places)?;
            let element = ptr(rdi + r10 * if wide { 8 } else { 4 } + elements);
            self.change(update, place, element, (literal, wide))?;
            self.asm.mov(eax, scratch_place(1))?;
            self.asm.lea(edx, ptr(rax - 1))?;
            self.asm.and(eax, edx)?;
            self.asm.mov(scratch_place(1), eax)?;
            self.asm.jnz(next)?;
        }
        self.asm.set_label(&mut none)?;
        self.asm.pop(rax)?;
        self.asm.pop(r11)?;
        self.asm.pop(r10)?;
        self.block.free_vectors.extend(places.registers());
        let Some(dst) = dst else { return Ok(()) };
        self.each(self.chunks(dst), |this, chunk| {
            let place = ptr(rdi + (elements + H::BYTES * chunk));
            this.define((dst, chunk), false, |asm, dst| asm.load_result(dst, place, wide))
        })
    }

    /// Changes the elements of all lanes. Their offsets are taken out of registers: those that have just been stored in memory as vectors take
    /// twice as long. Changes `rax`, `rdx` and `r10`.
    fn change_scattered(
        &mut self,
        update: Update,
        Scattered { offsets, wide: wide_offsets, .. }: Scattered,
        (literal, wide): (Option<i32>, bool),
    ) -> Result {
        let mut lane = 0;
        let mut change = |this: &mut Self, place| {
            lane += 1;
            this.change(update, place, element_of(lane - 1, wide), (literal, wide))
        };
        for &register in offsets {
            for number in 0..H::BYTES / 16 {
                self.asm.take_16_bytes([r10, rax], register, number)?;
                for (offset, low) in [(r10, r10d), (rax, eax)] {
                    if !wide_offsets {
                        self.asm.movsxd(rdx, low)?;
                        change(self, ptr(rcx + rdx))?;
                        self.asm.sar(offset, 32)?;
                    }
                    change(self, ptr(rcx + offset))?;
                }
            }
        }
        Ok(())
    }

    /// Keeps the offsets of elements in memory, and lets `rcx` have what they are relative to, unless all lanes are there. Changes neither
    /// `r10` nor `r11`, which are needed otherwise.
    fn kept_places(&mut self, places: Places) -> Result<Places> {
        let moved = match places {
            Places::Even(form, base, bytes) => {
                self.asm.lea(rcx, ptr(base + bytes))?;
                let parts = if self.asm.has_all() { 0 } else { self.parts };
                for part in 0..parts {
                    let offsets = self.even_offsets(form, part)?;
                    self.asm.store(
                        ptr(rdi + (offset_of!(Frame, offsets) + H::BYTES * part)),
                        offsets,
                        true,
                    )?;
                    self.block.free_vectors.push(offsets);
                }
                Places::Even(form, rcx, 0)
            }
            places => places,
        };
        self.keep_offsets(&moved)?;
        Ok(moved)
    }

    /// Where the element of lane `r10` is. Changes `rdx`.
    fn place_of_r10(&mut self, places: &Places) -> Result<AsmMemoryOperand> {
        let offsets = offset_of!(Frame, offsets);
        match places {
            Places::Wide(_) => self.asm.mov(rdx, qword_ptr(rdi + r10 * 8 + offsets))?,
            _ => self.asm.movsxd(rdx, dword_ptr(rdi + r10 * 4 + offsets))?,
        }
        Ok(ptr(rcx + rdx))
    }

    /// Changes the element of one lane, by a literal or by the value at `element`, which the element before the operation replaces.
    fn change(
        &mut self,
        Update { op, locked, dst, .. }: Update,
        place: AsmMemoryOperand,
        element: AsmMemoryOperand,
        (literal, wide): (Option<i32>, bool),
    ) -> Result {
        if op.is_float() {
            self.add_float(locked, dword_ptr(place), dword_ptr(element))?;
        } else if let Some(value) = literal {
            let place = if wide { qword_ptr(place) } else { dword_ptr(place) };
            if locked {
                // The next instruction is atomic.
                let _ = self.asm.lock();
            }
            match op {
                Change::And => self.asm.and(place, value)?,
                Change::Or => self.asm.or(place, value)?,
                Change::Xor => self.asm.xor(place, value)?,
                _ => self.asm.add(place, value)?,
            }
        } else if wide {
            self.asm.mov(r11, qword_ptr(element))?;
            self.change_by_r11(op, (locked, dst.is_some()), qword_ptr(place), true)?;
            if dst.is_some() {
                self.asm.mov(qword_ptr(element), r11)?;
            }
        } else {
            self.asm.mov(r11d, dword_ptr(element))?;
            self.change_by_r11(op, (locked, dst.is_some()), dword_ptr(place), false)?;
            if dst.is_some() {
                self.asm.mov(dword_ptr(element), r11d)?;
            }
        }
        Ok(())
    }

    /// `exchanges`: `r11` becomes what the element was before.
    fn change_by_r11(
        &mut self,
        op: Change,
        (locked, exchanges): (bool, bool),
        place: AsmMemoryOperand,
        wide: bool,
    ) -> Result {
        if locked {
            // The next instruction is atomic.
            let _ = self.asm.lock();
        }
        match (op, exchanges, wide) {
            (Change::Add, true, true) => self.asm.xadd(place, r11)?,
            (Change::Add, true, false) => self.asm.xadd(place, r11d)?,
            (Change::Add, false, true) => self.asm.add(place, r11)?,
            (Change::Add, false, false) => self.asm.add(place, r11d)?,
            (Change::And, false, true) => self.asm.and(place, r11)?,
            (Change::And, false, false) => self.asm.and(place, r11d)?,
            (Change::Or, false, true) => self.asm.or(place, r11)?,
            (Change::Or, false, false) => self.asm.or(place, r11d)?,
            (Change::Xor, false, true) => self.asm.xor(place, r11)?,
            (Change::Xor, false, false) => self.asm.xor(place, r11d)?,
            _ => return Err(Refused),
        }
        Ok(())
    }

    /// Adds the number at `element`, which that before the operation replaces. Changes `eax` and `r11`.
    fn add_float(&mut self, locked: bool, place: AsmMemoryOperand, element: AsmMemoryOperand) -> Result {
        let sum = low_number(H::SCRATCH)?;
        let [mut again, mut is_number] = std::array::from_fn(|_| self.asm.create_label());
        self.asm.mov(eax, place)?;
        self.asm.set_label(&mut again)?;
        self.asm.vmovd(sum, eax)?;
        self.asm.vaddss(sum, sum, element)?;
        self.asm.vmovd(r11d, sum)?;
        self.asm.vucomiss(sum, sum)?;
        self.asm.jnp(is_number)?;
        self.asm.mov(r11d, NAN_BITS)?;
        self.asm.set_label(&mut is_number)?;
        if locked {
            self.asm.lock().cmpxchg(place, r11d)?;
            self.asm.jne(again)?;
        } else {
            self.asm.mov(place, r11d)?;
        }
        Ok(self.asm.mov(element, eax)?)
    }

    /// All lanes change one element by one value.
    fn atomic_of_one(&mut self, Update { op, locked, dst, src, .. }: Update, access: Access) -> Result {
        let suits = op.combines() && dst.is_none() && self.is_uniform(src);
        if !suits {
            return Err(Refused);
        }
        let places = self.check(access, [src].iter())?;
        let places = self.kept_places(places)?;
        let mut none = self.asm.create_label();
        self.asm.push(r11)?;
        self.base(r11, src)?;
        if !self.asm.has_all() {
            self.asm.test(eax, eax)?;
            self.asm.jz(none)?;
        }
        if op == Change::Add {
            self.asm.popcnt(rdx, rax)?;
            self.asm.imul_2(r11, rdx)?;
        }
        let place = self.lane_place(&places, 0, 0)?;
        let wide = access.bytes == 8;
        let place = if wide { qword_ptr(place) } else { dword_ptr(place) };
        self.change_by_r11(op, (locked, false), place, wide)?;
        self.asm.set_label(&mut none)?;
        self.asm.pop(r11)?;
        self.block.free_vectors.extend(places.registers());
        Ok(())
    }
}
