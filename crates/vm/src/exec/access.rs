//! Loads and stores.
//!
//! Every access is checked: address, size, alignment, space and lifetime. The check is made once for all lanes
//! where their addresses lie in one allocation, and lane by lane to find out who is at fault.

use diag::Span;
use ir::Width;
use isa::Space;

use super::pure::group_offset;
use super::{Active, Chunk, Step};
use crate::code::{Address, Base, Load, Store};
use crate::cta::Shared;
use crate::fault::{Access, FaultKind};
use crate::mask::{CHUNK_LANES, GROUP_LANES, Mask};
use crate::memory::resolve_generic;
use crate::registers::{Pattern, Scalar, SlotRef, store};

/// The addresses of the active lanes.
#[derive(Clone, Copy)]
pub(super) enum Addresses {
    /// `base + lane * stride`, without wrapping.
    Linear(Scalar),
    /// One for each lane.
    Each(Each),
}

/// Addresses that stand in a register, plus an offset.
#[derive(Clone, Copy)]
pub(super) struct Each {
    /// The register's array.
    array: *const u8,
    /// Its elements have 4 bytes, and addresses wrap at 32 bits.
    narrow: bool,
    offset: u64,
    /// What is known of the register's values in the active lanes.
    pattern: Pattern,
}

impl Each {
    #[inline]
    fn at(&self, lane: usize) -> u64 {
        // SAFETY: the array has an element for every lane, and lives until a slot of its window is written.
        unsafe {
            if self.narrow {
                u64::from((*self.array.cast::<u32>().add(lane)).wrapping_add(self.offset as u32))
            } else {
                (*self.array.cast::<u64>().add(lane)).wrapping_add(self.offset)
            }
        }
    }

    /// The least and the greatest address of the active lanes, if the offset makes none wrap.
    fn bounds(&self) -> Option<(u64, u64)> {
        let limit = if self.narrow { u64::from(u32::MAX) } else { u64::MAX };
        let shifted = |a: u64| a.checked_add_signed(self.offset as i64).filter(|&a| a <= limit);
        Some((shifted(self.pattern.least)?, shifted(self.pattern.greatest)?))
    }

    /// All active lanes are aligned to `bytes`, a power of two.
    fn aligned(&self, bytes: u64) -> bool {
        (self.pattern.least.wrapping_add(self.offset) | self.pattern.differ) & (bytes - 1) == 0
    }
}

/// What is accessed: for messages and checks.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub space: Space,
    /// Bytes a lane, all elements together.
    pub bytes: u64,
    pub write: bool,
    pub span: Span,
}

/// Where an access of one lane goes.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Host(*mut u8),
    /// Address in the lane's local memory.
    Local(u64),
}

/// Memory of the host that holds device addresses from `base` on.
#[derive(Clone, Copy)]
struct Region {
    storage: *mut u8,
    base: u64,
}

impl Region {
    /// # Safety
    /// The address must be one that the region was found for.
    #[inline]
    unsafe fn at(self, address: u64) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.storage.add((address - self.base) as usize) }
    }
}

impl Chunk<'_> {
    /// Evaluates an address in the active lanes.
    pub(super) fn addresses(&mut self, address: &Address, active: &Active) -> Addresses {
        let slot = match address.base {
            Base::Slot(slot) => slot,
            base => {
                let start = self.fixed_base(base, active.frame).wrapping_add(address.offset);
                return Addresses::Linear(Scalar::uniform(start));
            }
        };
        // 32-bit addresses wrap at 32 bits.
        let narrow = slot.width != Width::W64;
        if let Some(scalar) = self.registers.scalar(active.window, slot) {
            let base = scalar.base.wrapping_add(address.offset);
            let base = if narrow { u64::from(base as u32) } else { base };
            let stride = if narrow { i64::from(scalar.stride as u32 as i32) } else { scalar.stride as i64 };
            let last = i128::from(base) + i128::from(stride) * (self.lanes as i128 - 1);
            if (0..=i128::from(if narrow { u64::from(u32::MAX) } else { u64::MAX })).contains(&last) {
                return Addresses::Linear(Scalar { base, stride: stride as u64 });
            }
        }
        let array = self.registers.read(active.window, slot);
        let pattern = self.registers.pattern(active.window, slot, active.mask);
        Addresses::Each(Each { array, narrow, offset: address.offset, pattern })
    }

    /// The memory that holds all of `least .. greatest + bytes`, if it is all in one place (and not local).
    fn region(&self, shared: &Shared, request: &Request, least: u64, greatest: u64) -> Option<Region> {
        let end = greatest.checked_add(request.bytes)?;
        let (space, offset) = match request.space {
            Space::Generic => {
                let (space, start) = resolve_generic(least);
                if resolve_generic(end - 1).0 != space {
                    return None;
                }
                (space, least - start)
            }
            space => (space, 0),
        };
        let within = |storage: *mut u8, bytes: u64| {
            (end - offset <= bytes).then_some(Region { storage, base: offset })
        };
        match space {
            Space::Shared => within(shared.memory.as_ptr(), shared.memory_bytes),
            Space::Const if !request.write => {
                within(self.launch.constants.as_ptr().cast_mut(), self.launch.constants.len() as u64)
            }
            Space::Param if !request.write => {
                within(self.launch.params.as_ptr().cast_mut(), self.launch.params.len() as u64)
            }
            Space::Global => {
                let allocation = self.launch.arena.find(least)?;
                let storage = allocation.storage()?;
                (end <= allocation.base() + allocation.bytes())
                    .then_some(Region { storage, base: allocation.base() })
            }
            _ => None,
        }
    }

    /// Checks the access of one lane.
    pub(super) fn place(&self, shared: &Shared, request: &Request, address: u64) -> Result<Place, FaultKind> {
        if address % request.bytes.next_power_of_two().min(32) != 0 && request.bytes.is_power_of_two() {
            return Err(FaultKind::Misaligned);
        }
        let (space, inner) = match request.space {
            Space::Generic => resolve_generic(address),
            space => (space, address),
        };
        match space {
            Space::Local => {
                let end = inner.checked_add(request.bytes).ok_or(FaultKind::OutOfBounds)?;
                if end > self.local.bytes() { Err(FaultKind::OutOfBounds) } else { Ok(Place::Local(inner)) }
            }
            Space::Const | Space::Param if request.write => Err(FaultKind::ReadOnly),
            Space::Global => self.launch.arena.resolve(inner, request.bytes).map(Place::Host),
            _ => match self.region(shared, request, address, address) {
                // SAFETY: the region was found for this address.
                Some(region) => Ok(Place::Host(unsafe { region.at(address) })),
                None => Err(FaultKind::OutOfBounds),
            },
        }
    }

    /// The fault of one lane's access.
    pub(super) fn access_fault(
        &self,
        kind: FaultKind,
        request: &Request,
        lane: usize,
        address: u64,
    ) -> Box<crate::fault::Fault> {
        let access = Access {
            address,
            bytes: request.bytes,
            space: request.space,
            write: request.write,
            nearest: self.launch.describe(request.space, address, request.bytes),
        };
        self.fault(kind, request.span, Mask::single(lane), Some(access), "")
    }

    /// Calls `f` with the place of every active lane's access, after all have been checked.
    pub(super) fn each_place(
        &mut self,
        shared: &Shared,
        request: &Request,
        addresses: &Addresses,
        mask: Mask,
        mut f: impl FnMut(&mut Self, usize, Place),
    ) -> Step {
        // `f` may write the register that the addresses stand in.
        let mut all = [0; CHUNK_LANES];
        for lane in mask {
            all[lane] = address_of(addresses, lane);
        }
        let of = |lane: usize| all[lane];
        for lane in mask {
            if let Err(kind) = self.place(shared, request, of(lane)) {
                return Err(self.access_fault(kind, request, lane, of(lane)));
            }
        }
        for lane in mask {
            if let Ok(place) = self.place(shared, request, of(lane)) {
                f(self, lane, place);
            }
        }
        Ok(())
    }

    /// The region of an access whose lanes are all aligned and in bounds.
    fn checked_region(
        &self,
        shared: &Shared,
        request: &Request,
        addresses: &Addresses,
        mask: Mask,
    ) -> Option<Region> {
        let align = request.bytes - 1;
        if !request.bytes.is_power_of_two() {
            return None;
        }
        match addresses {
            Addresses::Linear(Scalar { base, stride }) => {
                if base & align != 0 || stride & align != 0 {
                    return None;
                }
                let (first, last) = (mask.lowest()? as u64, mask.highest()? as u64);
                let a = base.wrapping_add(stride.wrapping_mul(first));
                let b = base.wrapping_add(stride.wrapping_mul(last));
                self.region(shared, request, a.min(b), a.max(b))
            }
            Addresses::Each(each) => {
                let (least, greatest) = each.bounds()?;
                each.aligned(request.bytes).then(|| self.region(shared, request, least, greatest))?
            }
        }
    }

    pub(super) fn load(&mut self, op: &Load, active: Active, shared: &mut Shared, span: Span) -> Step {
        let bytes = u64::from(op.bytes) * op.dst.len() as u64;
        let request = Request { space: op.address.space, bytes, write: false, span };
        let addresses = self.addresses(&op.address, &active);
        if let Addresses::Linear(Scalar { base, stride: 0 }) = addresses
            && let Some(region) = self.checked_region(shared, &request, &addresses, active.mask)
        {
            for (i, slot) in op.dst.iter().enumerate() {
                let Some(slot) = *slot else { continue };
                // SAFETY: the region holds all elements of the access.
                let value = unsafe { read(region.at(base).add(i * op.bytes as usize), op.bytes, op.signed) };
                let whole = self.whole(&active, slot);
                self.registers.set_all(active.window, slot, value, active.mask, whole);
            }
            return Ok(());
        }
        match self.checked_region(shared, &request, &addresses, active.mask) {
            Some(region) => {
                let (first, end) = self.groups(&active);
                let addresses = self.kept(op, addresses);
                for (i, slot) in op.dst.iter().enumerate() {
                    let Some(slot) = *slot else { continue };
                    let merge = !self.whole(&active, slot);
                    let array = if merge {
                        self.registers.scratch(0)
                    } else {
                        self.registers.overwrite(active.window, slot)
                    };
                    let offset = i * op.bytes as usize;
                    for group in first..end {
                        let lanes = active.mask.group(group);
                        // SAFETY: the region holds the accesses of all active lanes, and the array the group.
                        unsafe {
                            let to = array.add(group_offset(slot, group));
                            load_group(op, slot, to, region, &addresses, group, lanes, offset, bytes);
                        }
                    }
                    if merge {
                        self.registers.merge(active.window, slot, 0, active.mask);
                    }
                }
                Ok(())
            }
            None => self.load_each(op, active, shared, &request, &addresses),
        }
    }

    /// Addresses that stay while the destinations of a load are written: a single destination may be the register
    /// that they stand in, since each lane's address is read before its value is written.
    fn kept(&self, op: &Load, addresses: Addresses) -> Addresses {
        match addresses {
            Addresses::Each(each) if op.dst.len() > 1 => {
                let copy = self.registers.scratch(1);
                let bytes = if each.narrow { 4 } else { 8 };
                // SAFETY: both have `lanes` elements of this size; nothing else uses the scratch array meanwhile.
                unsafe { std::ptr::copy_nonoverlapping(each.array, copy, bytes * self.lanes) }
                Addresses::Each(Each { array: copy, ..each })
            }
            other => other,
        }
    }

    /// Lane by lane: local memory, and accesses that fault or are spread over several allocations.
    #[inline(never)]
    fn load_each(
        &mut self,
        op: &Load,
        active: Active,
        shared: &Shared,
        request: &Request,
        addresses: &Addresses,
    ) -> Step {
        let arrays: Vec<Option<(*mut u8, SlotRef)>> = op
            .dst
            .iter()
            .map(|slot| slot.map(|slot| (self.registers.update(active.window, slot), slot)))
            .collect();
        self.each_place(shared, request, addresses, active.mask, |chunk, lane, place| {
            for (i, slot) in arrays.iter().enumerate() {
                let Some((array, slot)) = *slot else { continue };
                let value = match place {
                    // SAFETY: the place holds all elements of the access.
                    Place::Host(at) => unsafe { read(at.add(i * op.bytes as usize), op.bytes, op.signed) },
                    Place::Local(at) => {
                        let value = chunk.local.read(lane, at + (i as u64) * u64::from(op.bytes), op.bytes);
                        extend(value, op.bytes, op.signed)
                    }
                };
                // SAFETY: arrays have an element for every lane.
                unsafe { store(array, slot.width, lane, value) }
            }
        })
    }

    pub(super) fn store(&mut self, op: &Store, active: Active, shared: &mut Shared, span: Span) -> Step {
        let bytes = u64::from(op.bytes) * op.src.len() as u64;
        let request = Request { space: op.address.space, bytes, write: true, span };
        let addresses = self.addresses(&op.address, &active);
        let Some(region) = self.checked_region(shared, &request, &addresses, active.mask) else {
            return self.each_place(shared, &request, &addresses, active.mask, |chunk, lane, place| {
                for (i, slot) in op.src.iter().enumerate() {
                    let value = chunk.registers.get(active.window, *slot, lane);
                    match place {
                        // SAFETY: the place holds all elements of the access.
                        Place::Host(at) => unsafe { write(at.add(i * op.bytes as usize), op.bytes, value) },
                        Place::Local(at) => {
                            chunk.local.write(lane, at + (i as u64) * u64::from(op.bytes), op.bytes, value);
                        }
                    }
                }
            });
        };
        let (first, end) = self.groups(&active);
        for (i, slot) in op.src.iter().enumerate() {
            let array = self.registers.read(active.window, *slot);
            let offset = i * op.bytes as usize;
            for group in first..end {
                let lanes = active.mask.group(group);
                // SAFETY: the region holds the accesses of all active lanes, and the array the group.
                unsafe {
                    let from = array.add(group_offset(*slot, group));
                    store_group(op.bytes, *slot, from, region, &addresses, group, lanes, offset, bytes);
                }
            }
        }
        Ok(())
    }
}

/// Loads one element for each active lane of a group.
///
/// # Safety
/// `to` is the group's part of an array of the slot's width; the region holds the accesses of all active lanes.
#[allow(clippy::too_many_arguments)]
#[inline]
unsafe fn load_group(
    op: &Load,
    slot: SlotRef,
    to: *mut u8,
    region: Region,
    addresses: &Addresses,
    group: usize,
    lanes: u16,
    offset: usize,
    stride: u64,
) {
    let width = slot.width.bytes();
    let straight = op.bytes as usize == width;
    // SAFETY: the caller's promise.
    unsafe {
        if lanes == u16::MAX && straight {
            match shape(addresses, group, stride) {
                Shape::Consecutive(start) if offset == 0 && stride == u64::from(op.bytes) => {
                    return std::ptr::copy_nonoverlapping(region.at(start), to, width * GROUP_LANES);
                }
                Shape::Same(start) => {
                    let at = region.at(start).add(offset);
                    for i in 0..GROUP_LANES {
                        std::ptr::copy_nonoverlapping(at, to.add(i * width), width);
                    }
                    return;
                }
                _ => {}
            }
            match width {
                2 => return gather::<u16>(to, region, addresses, group, offset),
                4 => return gather::<u32>(to, region, addresses, group, offset),
                _ => return gather::<u64>(to, region, addresses, group, offset),
            }
        }
        for i in (0..GROUP_LANES).filter(|i| lanes >> i & 1 != 0) {
            let at = region.at(address_of(addresses, group * GROUP_LANES + i)).add(offset);
            store(to, slot.width, i, read(at, op.bytes, op.signed));
        }
    }
}

/// # Safety
/// As [`load_group`]'s, with all lanes active.
#[inline]
unsafe fn gather<T: Copy>(to: *mut u8, region: Region, addresses: &Addresses, group: usize, offset: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        for i in 0..GROUP_LANES {
            let at = region.at(address_of(addresses, group * GROUP_LANES + i)).add(offset);
            *to.cast::<T>().add(i) = at.cast::<T>().read_unaligned();
        }
    }
}

/// Stores one element for each active lane of a group, in ascending order.
///
/// # Safety
/// `from` is the group's part of an array of the slot's width; the region holds the accesses of all active lanes.
#[allow(clippy::too_many_arguments)]
#[inline]
unsafe fn store_group(
    bytes: u32,
    slot: SlotRef,
    from: *const u8,
    region: Region,
    addresses: &Addresses,
    group: usize,
    lanes: u16,
    offset: usize,
    stride: u64,
) {
    let width = slot.width.bytes();
    // SAFETY: the caller's promise.
    unsafe {
        if lanes == u16::MAX
            && bytes as usize == width
            && stride == u64::from(bytes)
            && let Shape::Consecutive(start) = shape(addresses, group, stride)
        {
            return std::ptr::copy_nonoverlapping(from, region.at(start), width * GROUP_LANES);
        }
        for i in (0..GROUP_LANES).filter(|i| lanes >> i & 1 != 0) {
            let at = region.at(address_of(addresses, group * GROUP_LANES + i)).add(offset);
            write(at, bytes, crate::registers::load(from, slot.width, i));
        }
    }
}

#[inline]
fn address_of(addresses: &Addresses, lane: usize) -> u64 {
    match addresses {
        Addresses::Linear(s) => s.base.wrapping_add(s.stride.wrapping_mul(lane as u64)),
        Addresses::Each(each) => each.at(lane),
    }
}

/// How the addresses of a group whose lanes are all active lie.
enum Shape {
    /// `stride` bytes apart, from the first on.
    Consecutive(u64),
    /// All the same.
    Same(u64),
    Scattered,
}

#[inline]
fn shape(addresses: &Addresses, group: usize, stride: u64) -> Shape {
    let start = address_of(addresses, group * GROUP_LANES);
    let step = match addresses {
        Addresses::Linear(s) => Some(s.stride),
        Addresses::Each(each) => each.pattern.step(group),
    };
    match step {
        Some(0) => Shape::Same(start),
        Some(step) if step == stride => Shape::Consecutive(start),
        _ => Shape::Scattered,
    }
}

/// Reads an element and extends it to 64 bits.
///
/// # Safety
/// `at` must be valid for `bytes` bytes.
#[inline]
pub(super) unsafe fn read(at: *const u8, bytes: u32, signed: bool) -> u64 {
    // SAFETY: the caller's promise.
    let value = unsafe {
        match bytes {
            1 => u64::from(*at),
            2 => u64::from(at.cast::<u16>().read_unaligned()),
            4 => u64::from(at.cast::<u32>().read_unaligned()),
            _ => at.cast::<u64>().read_unaligned(),
        }
    };
    extend(value, bytes, signed)
}

#[inline]
fn extend(value: u64, bytes: u32, signed: bool) -> u64 {
    match bytes {
        1 if signed => value as u8 as i8 as u64,
        2 if signed => value as u16 as i16 as u64,
        4 if signed => value as u32 as i32 as u64,
        _ => value,
    }
}

/// Writes the low bytes of a value.
///
/// # Safety
/// `at` must be valid for `bytes` bytes.
#[inline]
pub(super) unsafe fn write(at: *mut u8, bytes: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => *at = value as u8,
            2 => at.cast::<u16>().write_unaligned(value as u16),
            4 => at.cast::<u32>().write_unaligned(value as u32),
            _ => at.cast::<u64>().write_unaligned(value),
        }
    }
}
