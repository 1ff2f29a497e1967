//! Loads and stores.
//!
//! An access whose addresses step evenly has one check for all lanes, and is one load or store of a vector if its elements
//! are contiguous. Any other one checks each lane, and gathers or scatters. Lanes elsewhere touch no memory.

use std::mem::offset_of;

use iced_x86::Register;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegisterK, AsmRegisterYmm, AsmRegisterZmm, eax, ecx, edx, get_ymm, k7, ptr,
    qword_ptr, rcx, rdi, rdx,
};
use ir::Slot;

use super::leave::{Kind, Stub};
use super::{Emitter, Refused, Result, SCRATCH, VECTORS, masked, masked_place};
use crate::forms::Form;
use crate::native::{Frame, Region};
use crate::operation::Access;

/// Where an access finds its elements, once it has been checked: `rcx` and these bytes.
enum Places {
    Even(Form),
    /// For each part: 16 offsets of 4 bytes.
    Narrow(Vec<AsmRegisterZmm>),
    /// For each part: 8 offsets of 8 bytes, and 8 more.
    Wide(Vec<AsmRegisterZmm>),
}

impl Places {
    fn registers(self) -> Vec<AsmRegisterZmm> {
        match self {
            Places::Even(_) => Vec::new(),
            Places::Narrow(registers) | Places::Wide(registers) => registers,
        }
    }
}

/// The low half of a register.
pub(super) fn low(register: AsmRegisterZmm) -> Result<AsmRegisterYmm> {
    let number = Register::from(register) as u32 - Register::ZMM0 as u32;
    get_ymm(Register::YMM0 + number).ok_or(Refused)
}

impl Emitter<'_> {
    /// How the addresses of an access step, if all are as well aligned as the first one.
    pub(super) fn even_address(&self, access: &Access) -> Option<Form> {
        let form = *self.forms.get(&access.base)?;
        let bytes = i64::from(access.bytes * access.count);
        let aligned = bytes.count_ones() == 1 && form.step % bytes == 0 && form.span % bytes == 0;
        (aligned && form.bounds(self.parts).is_some()).then_some(form)
    }

    /// A field of an access's region.
    pub(super) fn region(&self, access: Access, field: usize) -> AsmMemoryOperand {
        qword_ptr(rdi + (offset_of!(Frame, regions) + size_of::<Region>() * access.index + field))
    }

    pub(super) fn load(&mut self, access: Access, dst: &[Option<Slot>]) -> Result {
        let places = self.check(access)?;
        for (element, slot) in dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            if self.forms.contains_key(&slot) {
                let place = ptr(rcx + element as i32 * access.bytes as i32);
                if self.is_wide(slot) {
                    self.asm.mov(rdx, place)?;
                } else {
                    self.asm.mov(edx, place)?;
                }
                self.set_base(rdx, slot)?;
                continue;
            }
            for chunk in 0..self.chunks(slot) {
                self.load_chunk(access, &places, element, slot, chunk)?;
            }
        }
        self.block.free_vectors.extend(places.registers());
        Ok(())
    }

    pub(super) fn store(&mut self, access: Access, src: &[Slot]) -> Result {
        for &slot in src {
            for chunk in 0..self.chunks(slot) {
                self.bits(slot, chunk)?;
            }
        }
        let places = self.check(access)?;
        for (element, &slot) in src.iter().enumerate() {
            for chunk in 0..self.chunks(slot) {
                let register = self.number(slot, chunk)?;
                self.store_chunk(access, &places, element, slot, chunk, register)?;
            }
        }
        self.block.free_vectors.extend(places.registers());
        Ok(())
    }

    /// Checks an access of the lanes at the basic block. If it is not allowed, they leave. `rcx`: what the places are
    /// relative to, on the host.
    fn check(&mut self, access: Access) -> Result<Places> {
        if let Some(form) = self.even_address(&access) {
            self.check_even(access, form)?;
            let contiguous = form.step == i64::from(access.bytes) && access.count == 1;
            if contiguous || form.step == 0 && !self.source.accesses[access.index].write {
                return Ok(Places::Even(form));
            }
            let mut offsets = Vec::new();
            for part in 0..self.parts {
                let at = |lane: usize| u64::from(form.offset(part, lane) as u32);
                let constant = self.constant(std::array::from_fn(|i| at(2 * i) | at(2 * i + 1) << 32));
                let register = self.temporary()?;
                self.asm.vmovdqu32(register, constant)?;
                offsets.push(register);
            }
            return Ok(Places::Narrow(offsets));
        }
        self.check_each(access)
    }

    fn check_even(&mut self, access: Access, form: Form) -> Result {
        let leave = self.leave()?;
        let [mut again, mut fits, outside, ask] = std::array::from_fn(|_| self.asm.create_label());
        let room = self.region(access, offset_of!(Region, room));
        self.asm.set_label(&mut again)?;
        self.base(rcx, access.base)?;
        self.add(rcx, rdx, access.offset)?;
        if !self.is_wide(access.base) {
            self.asm.mov(ecx, ecx)?;
        }
        self.asm.test(ecx, (access.bytes * access.count) as i32 - 1)?;
        self.asm.jnz(ask)?;
        self.asm.sub(rcx, self.region(access, offset_of!(Region, start)))?;
        let (least, greatest) = form.bounds(self.parts).ok_or(Refused)?;
        for bound in [Some(least), Some(greatest).filter(|&greatest| greatest != least)].into_iter().flatten()
        {
            if bound == 0 {
                self.asm.cmp(rcx, room)?;
            } else {
                self.asm.lea(rdx, ptr(rcx + bound as i32))?;
                self.asm.cmp(rdx, room)?;
            }
            self.asm.jae(outside)?;
        }
        self.asm.set_label(&mut fits)?;
        self.asm.add(rcx, self.region(access, offset_of!(Region, host)))?;
        self.stubs.push(Stub { label: outside, kind: Kind::Exact { access, form, fits, ask } });
        self.stubs.push(Stub { label: ask, kind: Kind::Ask { access, addresses: Vec::new(), again, leave } });
        Ok(())
    }

    fn check_each(&mut self, access: Access) -> Result<Places> {
        let [mut again, ask] = std::array::from_fn(|_| self.asm.create_label());
        let (wide, bytes) = (self.is_wide(access.base), u64::from(access.bytes * access.count));
        let chunks = self.chunks(access.base);
        let addresses = (0..chunks).map(|chunk| self.bits(access.base, chunk)).collect::<Result<Vec<_>>>()?;
        let offsets = (0..chunks).map(|_| self.temporary()).collect::<Result<Vec<_>>>()?;
        let unaligned = if wide { bytes - 1 } else { (bytes - 1) | (bytes - 1) << 32 };
        let unaligned = self.constant([unaligned; 8]);
        // All registers have been found: none moves behind this.
        let leave = self.leave()?;

        self.asm.set_label(&mut again)?;
        self.asm.mov(rcx, access.offset)?;
        self.asm.sub(rcx, self.region(access, offset_of!(Region, start)))?;
        let room = self.region(access, offset_of!(Region, room));
        if wide {
            self.asm.vpbroadcastq(SCRATCH, rcx)?;
        } else {
            self.asm.vpbroadcastd(SCRATCH, ecx)?;
        }
        for (&offset, &address) in offsets.iter().zip(&addresses) {
            if wide {
                self.asm.vpaddq(offset, address, SCRATCH)?;
            } else {
                self.asm.vpaddd(offset, address, SCRATCH)?;
            }
        }
        if wide {
            self.asm.vpbroadcastq(SCRATCH, room)?;
        } else {
            self.asm.vpbroadcastd(SCRATCH, room)?;
        }
        // `edx`: the lanes that may go on.
        self.asm.xor(edx, edx)?;
        for (chunk, &offset) in offsets.iter().enumerate() {
            const LESS: i32 = 1;
            if wide {
                self.asm.vpcmpuq(k7, offset, SCRATCH, LESS)?;
                self.asm.vptestnmq(k7.k7(), offset, unaligned)?;
            } else {
                self.asm.vpcmpud(k7, offset, SCRATCH, LESS)?;
                self.asm.vptestnmd(k7.k7(), offset, unaligned)?;
            }
            self.asm.kmovd(ecx, k7)?;
            if chunk > 0 {
                self.asm.shl(ecx, (chunk * if wide { 8 } else { 16 }) as i32)?;
            }
            self.asm.or(edx, ecx)?;
        }
        self.asm.not(edx)?;
        self.asm.test(edx, eax)?;
        self.asm.jnz(ask)?;
        self.asm.mov(rcx, self.region(access, offset_of!(Region, host)))?;
        self.stubs.push(Stub { label: ask, kind: Kind::Ask { access, addresses, again, leave } });
        Ok(if wide { Places::Wide(offsets) } else { Places::Narrow(offsets) })
    }

    fn load_chunk(
        &mut self,
        access: Access,
        places: &Places,
        element: usize,
        slot: Slot,
        chunk: usize,
    ) -> Result {
        let (wide, (part, offset)) = (self.is_wide(slot), self.place(slot, chunk));
        let from = element as i32 * access.bytes as i32;
        let Places::Even(form) = places else {
            self.gather(places, slot, chunk, from)?;
            return self.define((slot, chunk), false, |asm, dst| {
                if wide { asm.vmovdqa64(dst, SCRATCH) } else { asm.vmovdqa32(dst, SCRATCH) }
            });
        };
        let place = ptr(rcx + (from + form.offset(part, offset / 8) as i32));
        let (broadcast, mask) = (form.step == 0, self.lanes_of(slot, chunk)?);
        self.define((slot, chunk), false, |asm, dst| {
            let is_masked = !VECTORS.contains(&dst) && dst != SCRATCH;
            let dst = if is_masked { dst } else { masked(dst, mask).z() };
            match (broadcast, wide) {
                (true, true) => asm.vpbroadcastq(dst, place),
                (true, false) => asm.vpbroadcastd(dst, place),
                (false, true) => asm.vmovdqu64(dst, place),
                (false, false) => asm.vmovdqu32(dst, place),
            }
        })
    }

    /// The lanes of a chunk, in `k7`: gathers and scatters clear their masks.
    fn mask_of(&mut self, slot: Slot, chunk: usize) -> Result<AsmRegisterK> {
        let mask = self.lanes_of(slot, chunk)?;
        if mask != k7 {
            self.asm.kmovw(k7, mask)?;
        }
        Ok(k7)
    }

    /// Loads a chunk to `SCRATCH`.
    fn gather(&mut self, places: &Places, slot: Slot, chunk: usize, from: i32) -> Result {
        let (part, offset) = self.place(slot, chunk);
        let (wide, upper) = (self.is_wide(slot), offset > 0);
        self.asm.vpxord(SCRATCH, SCRATCH, SCRATCH)?;
        self.mask_of(slot, chunk)?;
        match places {
            Places::Even(_) => Err(Refused),
            Places::Wide(offsets) if wide => {
                Ok(self.asm.vpgatherqq(SCRATCH.k7(), ptr(rcx + offsets[chunk] * 1 + from))?)
            }
            Places::Wide(offsets) => {
                let other = self.temporary()?;
                self.asm.vpgatherqd(low(SCRATCH)?.k7(), ptr(rcx + offsets[2 * part] * 1 + from))?;
                self.asm.vpxord(other, other, other)?;
                let mask = self.lanes_of(slot, chunk)?;
                self.asm.kshiftrw(k7, mask, 8)?;
                self.asm.vpgatherqd(low(other)?.k7(), ptr(rcx + offsets[2 * part + 1] * 1 + from))?;
                self.asm.vinserti32x8(SCRATCH, SCRATCH, low(other)?, 1)?;
                self.block.free_vectors.push(other);
                Ok(())
            }
            Places::Narrow(offsets) if wide => {
                let index = self.temporary()?;
                self.asm.vextracti32x8(low(index)?, offsets[part], i32::from(upper))?;
                self.asm.vpgatherdq(SCRATCH.k7(), ptr(rcx + low(index)? * 1 + from))?;
                self.block.free_vectors.push(index);
                Ok(())
            }
            Places::Narrow(offsets) => {
                Ok(self.asm.vpgatherdd(SCRATCH.k7(), ptr(rcx + offsets[part] * 1 + from))?)
            }
        }
    }

    fn store_chunk(
        &mut self,
        access: Access,
        places: &Places,
        element: usize,
        slot: Slot,
        chunk: usize,
        value: AsmRegisterZmm,
    ) -> Result {
        let (wide, (part, offset)) = (self.is_wide(slot), self.place(slot, chunk));
        let to = element as i32 * access.bytes as i32;
        if let Places::Even(form) = places {
            let mask = self.lanes_of(slot, chunk)?;
            let place = masked_place(ptr(rcx + form.offset(part, offset / 8) as i32), mask);
            if wide {
                self.asm.vmovdqu64(place, value)?;
            } else {
                self.asm.vmovdqu32(place, value)?;
            }
            return Ok(());
        }
        self.mask_of(slot, chunk)?;
        match places {
            Places::Even(_) => return Err(Refused),
            Places::Wide(offsets) if wide => {
                self.asm.vpscatterqq(ptr(rcx + offsets[chunk] * 1 + to).k7(), value)?;
            }
            Places::Wide(offsets) => {
                self.asm.vpscatterqd(ptr(rcx + offsets[2 * part] * 1 + to).k7(), low(value)?)?;
                self.asm.vextracti32x8(low(SCRATCH)?, value, 1)?;
                let mask = self.lanes_of(slot, chunk)?;
                self.asm.kshiftrw(k7, mask, 8)?;
                self.asm.vpscatterqd(ptr(rcx + offsets[2 * part + 1] * 1 + to).k7(), low(SCRATCH)?)?;
            }
            Places::Narrow(offsets) if wide => {
                self.asm.vextracti32x8(low(SCRATCH)?, offsets[part], i32::from(offset > 0))?;
                self.asm.vpscatterdq(ptr(rcx + low(SCRATCH)? * 1 + to).k7(), value)?;
            }
            Places::Narrow(offsets) => {
                self.asm.vpscatterdd(ptr(rcx + offsets[part] * 1 + to).k7(), value)?;
            }
        }
        Ok(())
    }
}
