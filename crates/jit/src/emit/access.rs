//! Loads and stores.
//!
//! An access whose addresses step evenly has one check for all lanes, and is one load or store of a vector if its elements
//! are contiguous. Any other one checks each lane, and gathers or scatters. Lanes elsewhere touch no memory.

use std::mem::offset_of;

use iced_x86::code_asm::{AsmMemoryOperand, AsmRegister64, eax, ecx, edx, ptr, qword_ptr, rcx, rdi, rdx};
use ir::{Guard, Slot};
use isa::Space;

use super::host::{MASK, Scattered};
use super::leave::{Kind, Stub};
use super::short::LOW;
use super::{Destination, Emitter, GROUP_LANES, HostVectors, Refused, Result, Vector};
use crate::forms::Form;
use crate::native::{Frame, Region};
use crate::operation::{Access, Bits, Within};
use crate::straight::Straight;

/// Bytes that the host fetches at once.
const LINE: i32 = 64;

/// How the places of one word of local memory step.
const LOCAL: Form = Form { step: 4, span: 64 };

/// The greatest step of short elements of which two vectors hold those of a group.
const MOST_STRIDE: i64 = 8;

/// Where an access finds its elements, once it has been checked: `rcx` and these bytes.
pub(super) enum Places {
    /// From this register and these bytes on, not from `rcx`.
    Even(Form, AsmRegister64, i32),
    /// Likewise; the elements of all lanes follow each other, several for each lane.
    Interleaved(Form, AsmRegister64, i32),
    /// Likewise; all elements of a group are within two vectors, and no lane is elsewhere.
    Strided(Form, AsmRegister64, i32),
    /// For each chunk of 4 bytes: offsets of 4 bytes.
    Narrow(Vec<Vector>),
    /// For each chunk of 8 bytes: offsets of 8 bytes.
    Wide(Vec<Vector>),
}

impl Places {
    pub fn registers(self) -> Vec<Vector> {
        match self {
            Places::Even(..) | Places::Interleaved(..) | Places::Strided(..) => Vec::new(),
            Places::Narrow(registers) | Places::Wide(registers) => registers,
        }
    }

    /// With these bytes more. `None`: they step evenly.
    pub fn scattered(&self, bytes: i32) -> Option<Scattered<'_>> {
        match self {
            Places::Even(..) | Places::Interleaved(..) | Places::Strided(..) => None,
            Places::Narrow(offsets) => Some(Scattered { offsets, wide: false, bytes }),
            Places::Wide(offsets) => Some(Scattered { offsets, wide: true, bytes }),
        }
    }
}

impl<H: HostVectors> Emitter<'_, H> {
    /// How the addresses of an access step, if all are as well aligned as the first one.
    pub(super) fn even_address(&self, access: &Access) -> Option<Form> {
        let form = match self.straight {
            Some(_) if access.within.is_some() => return None,
            Some(straight) => self.pointers[straight.places[access.index]?.0]?,
            None => *self.forms.get(&access.base)?,
        };
        if self.source.is_local(access) && form != Form::UNIFORM {
            return None;
        }
        let align = i64::from(access.align);
        let aligned = form.step % align == 0 && form.span % align == 0;
        (aligned && form.bounds(self.groups).is_some()).then_some(form)
    }

    /// A field of an access's region.
    pub(super) fn region(&self, access: Access, field: usize) -> AsmMemoryOperand {
        qword_ptr(rdi + (offset_of!(Frame, regions) + size_of::<Region>() * access.index + field))
    }

    /// The elements of a chunk have more bytes than those in memory.
    fn is_extended(&self, access: Access, slot: Slot) -> bool {
        access.bytes < if self.is_wide(slot) { 8 } else { 4 }
    }

    pub(super) fn load(&mut self, access: Access, signed: bool, dst: &[Option<Slot>]) -> Result {
        // Another load has loaded them.
        if access.count == 0 {
            return Ok(());
        }
        let places = self.check(access, dst.iter().flatten())?;
        if let Places::Interleaved(form, base, bytes) = places {
            return self.load_interleaved(access, (form, base, bytes), dst);
        }
        let is_plain = |slot: &Slot| !self.forms.contains_key(slot) && !self.is_wide(*slot);
        let is_row = H::ROWS && (access.bytes, access.count) == (4, 4) && dst.iter().flatten().all(is_plain);
        if is_row && self.asm.has_all() && places.scattered(0).is_some() {
            self.load_rows(&places, dst)?;
            self.block.free_vectors.extend(places.registers());
            return Ok(());
        }
        for (element, slot) in dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            if self.forms.contains_key(&slot) {
                let place = ptr(rcx + element as i32 * access.bytes as i32);
                self.load_number(place, access.bytes, signed, slot)?;
                self.set_base(rdx, slot)?;
                continue;
            }
            if self.is_extended(access, slot) {
                self.load_extended(access, signed, &places, element, slot)?;
                continue;
            }
            for chunk in 0..self.chunks(slot) {
                self.load_chunk(access, &places, element, slot, chunk)?;
                self.unpin();
            }
        }
        self.block.free_vectors.extend(places.registers());
        Ok(())
    }

    pub(super) fn store(&mut self, access: Access, src: &[Slot]) -> Result {
        for &slot in src {
            for chunk in 0..self.chunks(slot) {
                self.bits(slot, chunk)?;
                self.unpin();
            }
        }
        let places = self.check(access, src.iter())?;
        if let Places::Interleaved(form, base, bytes) = places {
            return self.store_interleaved(access, (form, base, bytes), src);
        }
        for (element, &slot) in src.iter().enumerate() {
            if self.is_extended(access, slot) {
                self.store_truncated(access, &places, element, slot)?;
                continue;
            }
            for chunk in 0..self.chunks(slot) {
                // It may have been stored meanwhile, with the NaNs of the host.
                let register = self.bits(slot, chunk)?;
                self.store_chunk(access, &places, element, slot, chunk, register)?;
                self.unpin();
            }
        }
        self.block.free_vectors.extend(places.registers());
        Ok(())
    }

    /// A store of some of the lanes.
    pub(super) fn store_some(&mut self, access: Access, src: &[Slot], guard: Guard) -> Result {
        // Often none does. What the store needs is in registers then, so that nothing else is left out.
        let is_plain = self.even_address(&access).is_some_and(|form| form.is_contiguous(&access)) && !H::FEW;
        let mut none = is_plain.then(|| self.asm.create_label());
        if is_plain {
            for &slot in src {
                (0..self.chunks(slot)).try_for_each(|chunk| self.bits(slot, chunk).map(drop))?;
            }
        }
        self.for_some(guard, none.as_mut(), |this| this.store(access, src))
    }

    /// Checks an access of the lanes at the basic block to elements for these slots. If it is not allowed, they leave. `rcx`: what the
    /// places are relative to, on the host.
    pub(super) fn check<'s>(
        &mut self,
        access: Access,
        mut slots: impl Iterator<Item = &'s Slot>,
    ) -> Result<Places> {
        if let Some(form) = self.even_address(&access) {
            let (base, bytes, writes) = match self.straight {
                Some(straight) => {
                    let (pointer, bytes) = straight.places[access.index].ok_or(Refused)?;
                    (self.pointer(pointer)?, bytes, straight.pointers[pointer].write)
                }
                None => {
                    self.check_even(access, form)?;
                    if self.source.is_local(&access) {
                        return Ok(Places::Even(LOCAL, rcx, 0));
                    }
                    (rcx, 0, self.source.accesses[access.index].write)
                }
            };
            if form.is_contiguous(&access) || form.step == 0 && !writes {
                return Ok(Places::Even(form, base, bytes));
            }
            let is_plain = slots.all(|slot| !self.is_extended(access, *slot));
            if form.is_interleaved(&access) && is_plain && self.asm.has_all() {
                return Ok(Places::Interleaved(form, base, bytes));
            }
            if self.is_strided(access, form) {
                return Ok(Places::Strided(form, base, bytes));
            }
            if (base, bytes) != (rcx, 0) {
                self.asm.lea(rcx, ptr(base + bytes))?;
            }
            let mut offsets = Vec::new();
            for part in 0..self.parts {
                offsets.push(self.even_offsets(form, part)?);
            }
            return Ok(Places::Narrow(offsets));
        }
        match (self.straight, access.within) {
            (Some(straight), Some(within)) => self.places_within(straight, access, within),
            (Some(_), None) if !access.checked => Err(Refused),
            _ => self.check_each(access),
        }
    }

    /// What the addresses of a part's lanes are behind that of the first lane of all.
    pub(super) fn even_offsets(&mut self, form: Form, part: usize) -> Result<Vector> {
        let first = part * H::lanes(false);
        let (group, start) = (first / GROUP_LANES, first % GROUP_LANES);
        let at = |lane: usize| u64::from(form.offset(group, start + lane) as u32);
        let constant = self.asm.constant(std::array::from_fn(|i| at(2 * i) | at(2 * i + 1) << 32));
        let register = self.temporary()?;
        self.asm.load(register, constant, false)?;
        Ok(register)
    }

    /// The places of an access whose addresses are within bounds, which have been checked.
    fn places_within(&mut self, straight: &Straight, access: Access, within: Within) -> Result<Places> {
        let (pointer, bytes) = straight.places[access.index].ok_or(Refused)?;
        if self.pointers[pointer] != Some(Form::UNIFORM) {
            return Err(Refused);
        }
        let wide = self.is_wide(access.base);
        let mut offsets = Vec::new();
        for chunk in 0..self.chunks(access.base) {
            let address = self.bits(access.base, chunk)?;
            let base = self.bits(within.base, chunk)?;
            let register = self.temporary()?;
            self.asm.bits(register.into(), Bits::Sub, wide, address, base)?;
            offsets.push(register);
            self.unpin();
        }
        let base = self.pointer(pointer)?;
        self.asm.lea(rcx, ptr(base + bytes))?;
        Ok(if wide { Places::Wide(offsets) } else { Places::Narrow(offsets) })
    }

    /// The host takes short elements out of whole vectors. What lies between them may be read, and is checked in straight-line code.
    fn is_strided(&self, access: Access, form: Form) -> bool {
        let fits = access.bytes < 4 && (1..=MOST_STRIDE).contains(&form.step);
        H::STRIDES && fits && self.straight.is_some() && self.asm.has_all()
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
        self.asm.test(ecx, access.align as i32 - 1)?;
        self.asm.jnz(ask)?;
        let start = self.region(access, offset_of!(Region, start));
        self.asm.sub(rcx, start)?;
        let (least, greatest) = form.bounds(self.groups).ok_or(Refused)?;
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
        if self.source.is_local(&access) {
            self.asm.imul_2(rcx, qword_ptr(rdi + offset_of!(Frame, local_lanes)))?;
            self.add_lanes_before()?;
        }
        let host = self.region(access, offset_of!(Region, host));
        self.asm.add(rcx, host)?;
        self.stubs.push(Stub { label: outside, kind: Kind::Exact { access, form, fits, ask } });
        self.stubs.push(Stub { label: ask, kind: Kind::Ask { access, addresses: Vec::new(), again, leave } });
        Ok(())
    }

    /// Adds the bytes of a row of local memory that are of lanes before this strip to `rcx`. Changes `rdx`.
    fn add_lanes_before(&mut self) -> Result {
        self.asm.mov(rdx, qword_ptr(rdi + offset_of!(Frame, strip)))?;
        self.asm.imul_3(rdx, rdx, LOCAL.span as i32 * self.groups as i32)?;
        Ok(self.asm.add(rcx, rdx)?)
    }

    fn check_each(&mut self, access: Access) -> Result<Places> {
        let [mut again, ask] = std::array::from_fn(|_| self.asm.create_label());
        let (wide, others) = (self.is_wide(access.base), u64::from(access.align - 1));
        let chunks = self.chunks(access.base);
        let addresses = (0..chunks).map(|chunk| self.bits(access.base, chunk)).collect::<Result<Vec<_>>>()?;
        let offsets = (0..chunks).map(|_| self.temporary()).collect::<Result<Vec<_>>>()?;
        let unaligned = if wide { others } else { others | others << 32 };
        let unaligned = self.asm.constant([unaligned; 8]);
        let other = if H::NEEDS_ANOTHER { Some(self.temporary()?) } else { None };
        let local = if self.source.is_local(&access) { Some(self.temporary()?) } else { None };
        // All registers have been found: none moves behind this.
        let leave = self.leave()?;

        self.asm.set_label(&mut again)?;
        self.asm.mov(rcx, access.offset)?;
        let start = self.region(access, offset_of!(Region, start));
        self.asm.sub(rcx, start)?;
        let room = self.region(access, offset_of!(Region, room));
        self.asm.broadcast(H::SCRATCH, rcx, ecx, wide)?;
        for (&offset, &address) in offsets.iter().zip(&addresses) {
            self.asm.add_vectors(offset.into(), address, H::SCRATCH, wide)?;
        }
        self.asm.bound(H::SCRATCH, room, wide)?;
        // `edx`: the lanes that may go on.
        self.asm.xor(edx, edx)?;
        for (chunk, &offset) in offsets.iter().enumerate() {
            self.asm.is_inside(offset, unaligned, other, wide)?;
            self.asm.mask_bits(ecx, MASK, wide)?;
            if chunk > 0 {
                self.asm.shl(ecx, (chunk * H::lanes(wide)) as i32)?;
            }
            self.asm.or(edx, ecx)?;
        }
        self.asm.not(edx)?;
        self.asm.test(edx, eax)?;
        self.asm.jnz(ask)?;
        let host = self.region(access, offset_of!(Region, host));
        self.asm.mov(rcx, host)?;
        if let Some(lanes) = local {
            self.asm.broadcast_place(lanes, qword_ptr(rdi + offset_of!(Frame, local_lanes)), wide)?;
            for (chunk, &offset) in offsets.iter().enumerate() {
                let first = chunk * H::lanes(wide);
                let at = |lane: usize| LOCAL.offset(0, first + lane) as u64;
                let own: [u64; 8] = std::array::from_fn(|i| match wide {
                    true => at(i),
                    false => at(2 * i) | at(2 * i + 1) << 32,
                });
                let own = self.asm.constant(own);
                self.asm.multiply(offset, lanes, wide)?;
                self.asm.add_place(offset.into(), H::SCRATCH, own, wide)?;
            }
            self.add_lanes_before()?;
        }
        self.block.free_vectors.extend(other.into_iter().chain(local));
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
        let (wide, (group, lane)) = (self.is_wide(slot), self.place(slot, chunk));
        let from = element as i32 * access.bytes as i32;
        let &Places::Even(form, base, bytes) = places else {
            let scattered = places.scattered(from).ok_or(Refused)?;
            self.asm.prepare_gather(chunk, wide)?;
            let other = if scattered.wide != wide { Some(self.temporary()?) } else { None };
            self.asm.gather(scattered, chunk, wide, other)?;
            self.block.free_vectors.extend(other);
            return self.define((slot, chunk), false, |asm, dst| asm.copy(dst, H::SCRATCH, wide));
        };
        let place = ptr(base + (bytes + from + form.offset(group, lane) as i32));
        self.fetch_all_ahead(access, (form, base, bytes), slot)?;
        let all = self.asm.has_all();
        let one = form.step == 0;
        if one && !all && !H::MERGES && form != Form::UNIFORM {
            let mut none = self.skip_without_lanes(group)?;
            self.asm.load_lanes(H::SCRATCH.into(), place, None, one, wide)?;
            self.asm.set_label(&mut none)?;
            return self.define((slot, chunk), false, |asm, dst| asm.copy(dst, H::SCRATCH, wide));
        }
        let mask = if all { None } else { Some(self.lanes_of(slot, chunk)?) };
        self.define((slot, chunk), false, |asm, dst| asm.load_lanes(dst, place, mask, one, wide))
    }

    /// Loads elements that have fewer bytes than those of the slot.
    fn load_extended(
        &mut self,
        access: Access,
        signed: bool,
        places: &Places,
        element: usize,
        slot: Slot,
    ) -> Result {
        let (wide, all) = (self.is_wide(slot), self.asm.has_all());
        let from = element as i32 * access.bytes as i32;
        match *places {
            Places::Even(form, base, bytes) if form.step == 0 => {
                return self.load_alike((access, signed), (form, base, bytes + from), slot);
            }
            Places::Even(form, base, bytes) if H::MERGES || all => {
                let clears = signed && self.is_short(slot);
                let low = self.asm.constant(LOW);
                for chunk in 0..self.chunks(slot) {
                    let (group, lane) = self.place(slot, chunk);
                    let first = bytes + from + form.offset(group, lane) as i32;
                    let length = H::lanes(wide) as i32 * access.bytes as i32;
                    self.fetch_ahead(access, base, first, length)?;
                    let mask = if all { None } else { Some(self.lanes_of(slot, chunk)?) };
                    let (place, of) = (ptr(base + first), (access.bytes, signed));
                    if clears {
                        self.asm.load_extended(H::SCRATCH.into(), place, mask, of, wide)?;
                        let value = H::SCRATCH;
                        self.define((slot, chunk), false, |asm, dst| asm.and_place(dst, value, low))?;
                    } else {
                        self.define((slot, chunk), false, |asm, dst| {
                            asm.load_extended(dst, place, mask, of, wide)
                        })?;
                    }
                    self.unpin();
                }
                return Ok(());
            }
            Places::Strided(form, base, bytes) => {
                return self.load_strided((access, signed), (form, base, bytes + from), slot);
            }
            _ => {}
        }
        self.load_each((access, signed), places, from, slot)
    }

    fn load_strided(
        &mut self,
        (access, signed): (Access, bool),
        (form, base, bytes): (Form, AsmRegister64, i32),
        slot: Slot,
    ) -> Result {
        let step = form.step as usize;
        for group in 0..self.groups {
            let first = bytes + form.offset(group, 0) as i32;
            self.fetch_ahead(access, base, first, 16 * step as i32)?;
            let others = [self.temporary()?, self.temporary()?];
            self.asm.load_strided(|byte| ptr(base + (first + byte)), step, access.bytes, others)?;
            self.block.free_vectors.extend(others);
            self.define_extended(slot, group, H::SCRATCH, (8 * access.bytes, signed))?;
        }
        Ok(())
    }

    /// Stores the low bytes of a slot's elements.
    fn store_truncated(&mut self, access: Access, places: &Places, element: usize, slot: Slot) -> Result {
        let (wide, all) = (self.is_wide(slot), self.asm.has_all());
        let to = element as i32 * access.bytes as i32;
        if let &Places::Even(form, base, bytes) = places
            && (H::MERGES || all && !wide)
        {
            for chunk in 0..self.chunks(slot) {
                let value = self.bits(slot, chunk)?;
                let (group, lane) = self.place(slot, chunk);
                let first = bytes + to + form.offset(group, lane) as i32;
                let length = H::lanes(wide) as i32 * access.bytes as i32;
                self.fetch_ahead(access, base, first, length)?;
                self.asm.store_truncated(ptr(base + first), value, chunk, access.bytes, wide)?;
                self.unpin();
            }
            return Ok(());
        }
        if let (&Places::Strided(form, base, bytes), false) = (places, wide) {
            for group in 0..self.groups {
                let value = self.bits(slot, group)?;
                let first = bytes + to + form.offset(group, 0) as i32;
                self.fetch_ahead(access, base, first, 16 * form.step as i32)?;
                let other = self.temporary()?;
                let place = |byte| ptr(base + (first + byte));
                self.asm.store_strided(place, value, form.step as usize, access.bytes, other)?;
                self.block.free_vectors.push(other);
            }
            return Ok(());
        }
        self.store_each(access, places, to, slot)
    }

    /// Loads whole vectors and takes the elements of each lane apart.
    fn load_interleaved(
        &mut self,
        access: Access,
        (form, base, bytes): (Form, AsmRegister64, i32),
        dst: &[Option<Slot>],
    ) -> Result {
        for chunk in 0..self.parts {
            let start = bytes + self.start_of_chunk(access, form, base, bytes, chunk)?;
            let registers = dst.iter().map(|_| self.temporary()).collect::<Result<Vec<_>>>()?;
            self.asm.deinterleave(&registers, |bytes| ptr(base + (start + bytes)))?;
            self.define_elements(chunk, dst, &registers)?;
        }
        Ok(())
    }

    /// Gives slots the elements of a chunk's lanes. Each register may become that of its slot.
    fn define_elements(&mut self, chunk: usize, dst: &[Option<Slot>], registers: &[Vector]) -> Result {
        for (slot, &register) in dst.iter().zip(registers) {
            self.block.free_vectors.push(register);
            let Some(slot) = *slot else { continue };
            self.define((slot, chunk), false, |asm, dst| match dst {
                Destination { register: same, mask: None } if same == register => Ok(()),
                _ => asm.copy(dst, register, false),
            })?;
        }
        self.unpin();
        Ok(())
    }

    /// Loads the four elements of each lane as one vector, and takes them apart.
    fn load_rows(&mut self, places: &Places, dst: &[Option<Slot>]) -> Result {
        self.keep_offsets(places)?;
        for chunk in 0..self.parts {
            let rows = [self.temporary()?, self.temporary()?, self.temporary()?, self.temporary()?];
            for lane in 0..H::lanes(false) {
                let place = self.lane_place(places, chunk * H::lanes(false) + lane, 0)?;
                self.asm.load_row(rows[lane % 4], place, lane / 4)?;
            }
            let elements = self.asm.transpose_rows(rows)?;
            self.define_elements(chunk, dst, &elements)?;
        }
        Ok(())
    }

    /// Joins the elements of each lane and stores whole vectors.
    fn store_interleaved(
        &mut self,
        access: Access,
        (form, base, bytes): (Form, AsmRegister64, i32),
        src: &[Slot],
    ) -> Result {
        for chunk in 0..self.parts {
            let start = bytes + self.start_of_chunk(access, form, base, bytes, chunk)?;
            let registers = src.iter().map(|&slot| self.bits(slot, chunk)).collect::<Result<Vec<_>>>()?;
            let others = [self.temporary()?, self.temporary()?];
            self.asm.interleave(&registers, others, |bytes| ptr(base + (start + bytes)))?;
            self.block.free_vectors.extend(others);
            self.unpin();
        }
        Ok(())
    }

    /// The offset of a chunk's first element in what follows each other. Lets the host fetch more. Changes `rdx`.
    fn start_of_chunk(
        &mut self,
        access: Access,
        form: Form,
        base: AsmRegister64,
        bytes: i32,
        chunk: usize,
    ) -> Result<i32> {
        let first = chunk * H::lanes(false);
        let offset = form.offset(first / GROUP_LANES, first % GROUP_LANES) as i32;
        self.fetch_ahead(access, base, bytes + offset, access.count as i32 * H::BYTES as i32)?;
        Ok(offset)
    }

    /// Lets the host fetch what lanes of other blocks will access: `Frame::ahead` from the bytes of this access. Changes `rdx`.
    fn fetch_ahead(&mut self, access: Access, base: AsmRegister64, first: i32, bytes: i32) -> Result {
        let Some(straight) = self.straight.filter(|_| self.asm.has_all()) else { return Ok(()) };
        let Some((pointer, _)) = straight.places[access.index] else { return Ok(()) };
        if straight.pointers[pointer].space != Space::Global {
            return Ok(());
        }
        // Several accesses may touch the same lines.
        let is_new = |line: &i32| !self.block.fetched.contains(&(pointer, line.div_euclid(LINE)));
        let lines: Vec<i32> = (first..first + bytes).step_by(LINE as usize).filter(is_new).collect();
        if !lines.is_empty() {
            self.asm.mov(rdx, qword_ptr(rdi + (offset_of!(Frame, ahead) + 8 * pointer)))?;
        }
        for line in lines {
            self.block.fetched.insert((pointer, line.div_euclid(LINE)));
            self.asm.prefetcht0(ptr(base + rdx + line))?;
        }
        Ok(())
    }

    /// [`Emitter::fetch_ahead`], of all chunks of an access to consecutive elements.
    fn fetch_all_ahead(
        &mut self,
        access: Access,
        (form, base, bytes): (Form, AsmRegister64, i32),
        slot: Slot,
    ) -> Result {
        if !form.is_contiguous(&access) {
            return Ok(());
        }
        let pieces = if form.span == form.step * GROUP_LANES as i64 { 1 } else { self.groups };
        let length = (self.chunks(slot) * H::BYTES / pieces) as i32;
        (0..pieces).try_for_each(|piece| {
            self.fetch_ahead(access, base, bytes + form.offset(piece, 0) as i32, length)
        })
    }

    fn store_chunk(
        &mut self,
        access: Access,
        places: &Places,
        element: usize,
        slot: Slot,
        chunk: usize,
        value: Vector,
    ) -> Result {
        let (wide, (group, lane)) = (self.is_wide(slot), self.place(slot, chunk));
        let to = element as i32 * access.bytes as i32;
        if let &Places::Even(form, base, bytes) = places {
            let place = ptr(base + (bytes + form.offset(group, lane) as i32));
            self.fetch_all_ahead(access, (form, base, bytes), slot)?;
            return self.asm.store_lanes(place, value, chunk, wide);
        }
        self.asm.scatter(places.scattered(to).ok_or(Refused)?, chunk, wide, value)
    }
}
