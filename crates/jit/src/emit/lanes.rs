//! Accesses lane by lane: of elements that the host neither gathers nor scatters.

use std::mem::offset_of;

use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister64, CodeLabel, byte_ptr, dword_ptr, eax, edx, ptr, qword_ptr, r11, r11b,
    r11d, r11w, rcx, rdi, rdx, word_ptr,
};
use ir::Slot;

use super::access::Places;
use super::host::Scattered;
use super::{Emitter, GROUP_LANES, HostVectors, Refused, Result};
use crate::forms::Form;
use crate::native::Frame;
use crate::operation::Access;

/// In straight-line code an access that takes lane by lane is as slow as so many operations. The interpreter is faster if there are
/// not so many.
const OPERATIONS_OF_ONE: usize = 8;

impl<H: HostVectors> Emitter<'_, H> {
    /// Notes that an access takes lane by lane.
    fn note_by_lane(&mut self, access: Access, places: &Places) -> Result {
        // The code for some of the lanes seldom runs.
        if self.straight.is_some() && self.asm.has_all() && !matches!(places, Places::Even(..)) {
            self.by_lane.insert(access.index);
        }
        let operations = self.source.bodies[0].operations.len();
        if OPERATIONS_OF_ONE * self.by_lane.len() > operations { Err(Refused) } else { Ok(()) }
    }

    /// Loads an element to `rdx`, extended as a slot needs it.
    pub(super) fn load_number(
        &mut self,
        place: AsmMemoryOperand,
        bytes: u32,
        signed: bool,
        slot: Slot,
    ) -> Result {
        match (bytes, signed, self.is_wide(slot)) {
            (1, false, _) => self.asm.movzx(edx, byte_ptr(place))?,
            (2, false, _) => self.asm.movzx(edx, word_ptr(place))?,
            (4, true, true) => self.asm.movsxd(rdx, dword_ptr(place))?,
            (4, ..) => self.asm.mov(edx, place)?,
            (1, true, true) => self.asm.movsx(rdx, byte_ptr(place))?,
            (2, true, true) => self.asm.movsx(rdx, word_ptr(place))?,
            (1, true, false) => self.asm.movsx(edx, byte_ptr(place))?,
            (2, true, false) => self.asm.movsx(edx, word_ptr(place))?,
            _ => self.asm.mov(rdx, place)?,
        }
        if signed && self.is_short(slot) {
            self.asm.and(edx, 0xffff)?;
        }
        Ok(())
    }

    /// Jumps to the label if no lane of a group is here: then nobody has checked its addresses.
    pub(super) fn skip_without_lanes(&mut self, group: usize) -> Result<CodeLabel> {
        let label = self.asm.create_label();
        self.asm.test(eax, (0xffff_u32 << (16 * group)) as i32)?;
        self.asm.jz(label)?;
        Ok(label)
    }

    /// All lanes of a group have the same element.
    pub(super) fn load_alike(
        &mut self,
        (access, signed): (Access, bool),
        (form, base, bytes): (Form, AsmRegister64, i32),
        slot: Slot,
    ) -> Result {
        let (wide, all) = (self.is_wide(slot), self.asm.has_all());
        let value = self.temporary()?;
        for group in 0..self.groups {
            if group == 0 || form != Form::UNIFORM {
                let alike = all || form == Form::UNIFORM;
                let none = if alike { None } else { Some(self.skip_without_lanes(group)?) };
                let place = ptr(base + (bytes + form.offset(group, 0) as i32));
                self.load_number(place, access.bytes, signed, slot)?;
                if let Some(mut none) = none {
                    self.asm.set_label(&mut none)?;
                }
                self.asm.broadcast(value, rdx, edx, wide)?;
            }
            let of_group = self.chunks(slot) / self.groups;
            for chunk in group * of_group..(group + 1) * of_group {
                self.define((slot, chunk), false, |asm, dst| asm.copy(dst, value, wide))?;
            }
        }
        self.block.free_vectors.push(value);
        Ok(())
    }

    /// Loads an element for each lane of the basic block, `from` bytes behind its place.
    pub(super) fn load_each(
        &mut self,
        (access, signed): (Access, bool),
        places: &Places,
        from: i32,
        slot: Slot,
    ) -> Result {
        self.note_by_lane(access, places)?;
        let (wide, all) = (self.is_wide(slot), self.asm.has_all());
        self.keep_offsets(places)?;
        for lane in 0..self.groups * GROUP_LANES {
            let mut next = self.asm.create_label();
            if !all {
                self.asm.test(eax, 1 << lane)?;
                self.asm.jz(next)?;
            }
            let place = self.lane_place(places, lane, from)?;
            self.load_number(place, access.bytes, signed, slot)?;
            let to = rdi + offset_of!(Frame, elements);
            if wide {
                self.asm.mov(qword_ptr(to + 8 * lane), rdx)?;
            } else {
                self.asm.mov(dword_ptr(to + 4 * lane), edx)?;
            }
            if !all {
                self.asm.set_label(&mut next)?;
                // A label stands before an instruction.
                self.asm.nop()?;
            }
        }
        for chunk in 0..self.chunks(slot) {
            let place = ptr(rdi + (offset_of!(Frame, elements) + H::BYTES * chunk));
            self.define((slot, chunk), false, |asm, dst| asm.load_result(dst, place, wide))?;
            self.unpin();
        }
        Ok(())
    }

    /// Stores the low bytes of a slot's elements, `to` bytes behind the places of the lanes.
    pub(super) fn store_each(&mut self, access: Access, places: &Places, to: i32, slot: Slot) -> Result {
        self.note_by_lane(access, places)?;
        let (wide, elements) = (self.is_wide(slot), rdi + offset_of!(Frame, elements));
        for chunk in 0..self.chunks(slot) {
            let value = self.bits(slot, chunk)?;
            self.asm.store(ptr(elements + H::BYTES * chunk), value, wide)?;
            self.unpin();
        }
        self.keep_offsets(places)?;
        let moved;
        let places = match *places {
            // `r11` has the elements below.
            Places::Even(form, base, bytes) | Places::Strided(form, base, bytes) if base == r11 => {
                self.asm.lea(rcx, ptr(base + bytes))?;
                moved = Places::Even(form, rcx, 0);
                &moved
            }
            _ => places,
        };
        self.asm.push(r11)?;
        for lane in 0..self.groups * GROUP_LANES {
            let mut next = self.asm.create_label();
            self.asm.test(eax, 1 << lane)?;
            self.asm.jz(next)?;
            let place = self.lane_place(places, lane, to)?;
            self.asm.mov(r11d, dword_ptr(elements + if wide { 8 } else { 4 } * lane))?;
            match access.bytes {
                1 => self.asm.mov(byte_ptr(place), r11b)?,
                2 => self.asm.mov(word_ptr(place), r11w)?,
                _ => self.asm.mov(dword_ptr(place), r11d)?,
            }
            self.asm.set_label(&mut next)?;
            // A label stands before an instruction.
            self.asm.nop()?;
        }
        Ok(self.asm.pop(r11)?)
    }

    /// Stores the offsets of scattered elements, for `lane_place`.
    pub(super) fn keep_offsets(&mut self, places: &Places) -> Result {
        let Some(Scattered { offsets, .. }) = places.scattered(0) else { return Ok(()) };
        for (index, &offset) in offsets.iter().enumerate() {
            let place = ptr(rdi + (offset_of!(Frame, offsets) + H::BYTES * index));
            self.asm.store(place, offset, true)?;
        }
        Ok(())
    }

    /// Where a lane's element is. Changes `rdx`.
    pub(super) fn lane_place(
        &mut self,
        places: &Places,
        lane: usize,
        bytes: i32,
    ) -> Result<AsmMemoryOperand> {
        let offsets = rdi + offset_of!(Frame, offsets);
        match places {
            Places::Even(form, base, first) | Places::Strided(form, base, first) => {
                let offset = form.offset(lane / GROUP_LANES, lane % GROUP_LANES) as i32;
                return Ok(ptr(*base + (first + bytes + offset)));
            }
            Places::Narrow(_) => self.asm.movsxd(rdx, dword_ptr(offsets + 4 * lane))?,
            Places::Wide(_) => self.asm.mov(rdx, qword_ptr(offsets + 8 * lane))?,
            Places::Interleaved(..) => return Err(Refused),
        }
        Ok(ptr(rcx + rdx + bytes))
    }
}
