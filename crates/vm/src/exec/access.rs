//! Loads and stores.
//!
//! Every access is checked: address, size, alignment, space and lifetime. If the addresses of all lanes lie in one
//! allocation, one check covers them all. Otherwise each lane is checked, which also finds the lane that faults.

use std::sync::PoisonError;

use diag::Span;
use ir::Width;
use isa::Space;
use lanes::LaneWidth;
use machine::mask::{GANG_LANES, GROUP_LANES, Mask};
use machine::memory::{Extent, resolve};
use machine::{Access, FaultKind};
use smallvec::SmallVec;

use super::addresses::{Addresses, Each, Even, Region, address_of};
use super::inline_cache::AccessCache;
use super::pure::group_offset;
use super::region::{region_of_launch, region_of_shared, space_of};
use super::request::{Request, Resolved};
use super::strong::{Words, element, read_words, write_words};
use super::transfer::{Transfer, extend};
use super::{Active, Gang, Step};
use crate::bytes::store;
use crate::code::{Address, Base, Load, Store};
use crate::registers::{SlotRef, lane_width};
use crate::shared::Shared;

impl Gang<'_> {
    /// The addresses in affine form; as an error, the register that holds them if they have none.
    #[inline]
    pub(super) fn even(&self, address: &Address, active: &Active) -> Result<Even, SlotRef> {
        let rows = self.registers.rows();
        let Base::Slot(slot) = address.base else {
            let start = self.fixed_base(address.base, active.frame).wrapping_add(address.offset);
            return Ok(Even::uniform(start, rows));
        };
        // 32-bit addresses wrap at 32 bits.
        let narrow = slot.width != Width::W64;
        let affine = self.registers.affine(active.window, slot).ok_or(slot)?;
        let even = Even::new(affine, address.offset, narrow, rows).ok_or(slot)?;
        // If groups have lanes of several CTAs, addresses are better looked at one by one.
        if even.group_step().is_some() { Ok(even) } else { Err(slot) }
    }

    /// Evaluates an address in the active lanes.
    pub(super) fn addresses(&mut self, address: &Address, active: &Active) -> Addresses {
        match self.even(address, active) {
            Ok(even) => Addresses::Even(even),
            Err(slot) => self.each(slot, address.offset, active),
        }
    }

    /// Addresses that are read from a register's array.
    #[inline(never)]
    fn each(&mut self, slot: SlotRef, offset: u64, active: &Active) -> Addresses {
        let narrow = slot.width != Width::W64;
        let array = self.registers.read(active.window, slot);
        let pattern = self.registers.pattern(active.window, slot, active.mask);
        Addresses::Each(Each { array, narrow, offset, pattern })
    }

    /// The region that holds all of `least .. greatest + bytes`, if one allocation does and it is not local memory.
    pub(super) fn region(
        &self,
        shared: &Shared,
        request: &Request,
        least: u64,
        greatest: u64,
    ) -> Option<Region> {
        let Some((_, Space::Shared)) = space_of(request, least, greatest) else {
            return region_of_launch(self.launch, request, least, greatest);
        };
        let inner = resolve(request.space, least).1;
        let (memory, start, own) = shared.memory_at(inner)?;
        let region = region_of_shared(self.launch, (memory, start), request, least, greatest)?;
        Some(Region { stride: shared.stride, passing: !own, ..region })
    }

    /// If the address is in shared memory: the whole shared memory of the CTA that it names, as one region. The
    /// caller must have checked each access.
    pub(super) fn all_shared(&self, shared: &Shared, space: Space, address: u64) -> Option<Region> {
        let (space, inner) = resolve(space, address);
        let (storage, start, own) = (space == Space::Shared).then(|| shared.memory_at(inner))??;
        let base = address - inner + start;
        let end = base + shared.memory_bytes;
        Some(Region { storage, base, end, stride: shared.stride, passing: !own })
    }

    /// Checks the access of one lane.
    pub(super) fn place_of(
        &self,
        shared: &Shared,
        request: &Request,
        lane: usize,
        address: u64,
    ) -> Result<Resolved, FaultKind> {
        let place = match self.place(shared, request, address) {
            Err(kind) => self.overrun(shared, request, lane, address).ok_or(kind)?,
            Ok(place) => place,
        };
        let block = self.registers.rows().block_of(lane);
        Ok(match place {
            Resolved::Host(at) if block > 0 && shared.memory_of_first().contains(&(at as usize)) => {
                // SAFETY: every CTA has its own memory, `stride` bytes after that of the CTA before.
                Resolved::Host(unsafe { at.add(block * shared.stride) })
            }
            place => place,
        })
    }

    /// The memory of an access past the end of the CTA's shared memory, if the launch permits it
    /// ([`crate::LaunchConfig::overruns`]).
    #[cold]
    fn overrun(&self, shared: &Shared, request: &Request, lane: usize, address: u64) -> Option<Resolved> {
        let overruns = self.launch.config().overruns.as_ref()?;
        let (Space::Shared, inner) = resolve(request.space, address) else { return None };
        let (memory, start, _) = shared.memory_at(inner)?;
        let offset = inner - start;
        if !self.launch.shared().is_overrun(offset, request.bytes) || !address.is_multiple_of(request.bytes) {
            return None;
        }
        let mut overruns = overruns.lock().unwrap_or_else(PoisonError::into_inner);
        if overruns.iter().all(|known| known.span != request.span) {
            let mut fault = self.access_fault(FaultKind::OutOfBounds, request, lane, address);
            let note = "it stays within the 128 bytes that a GPU allocates at least, and goes on as there";
            fault.notes.push((note.to_owned(), None));
            overruns.push(*fault);
        }
        Some(Resolved::Host(memory.wrapping_add(offset as usize)))
    }

    /// Checks the access of one lane, as a lane of the gang's first CTA.
    pub(super) fn place(
        &self,
        shared: &Shared,
        request: &Request,
        address: u64,
    ) -> Result<Resolved, FaultKind> {
        // No access is larger than 32 bytes (`.v8.b32`, `.v4.b64`).
        if !address.is_multiple_of(request.bytes) {
            return Err(FaultKind::Misaligned);
        }
        let (space, inner) = resolve(request.space, address);
        match space {
            Space::Local => {
                let inside = self.local.contains(inner, request.bytes);
                if inside { Ok(Resolved::Local(inner)) } else { Err(FaultKind::OutOfBounds) }
            }
            Space::Const | Space::Param if request.write => Err(FaultKind::ReadOnly),
            Space::Global => {
                let allocation = self.launch.allocation(inner).ok_or(FaultKind::OutOfBounds)?;
                allocation.resolve(inner, request.bytes).map(Resolved::Host)
            }
            _ => match self.region(shared, request, address, address) {
                // SAFETY: the region was found for this address.
                Some(region) => Ok(Resolved::Host(unsafe { region.at(address) })),
                None => Err(Self::why_outside(shared, space, inner)),
            },
        }
    }

    /// The kind of fault for an address for which no region was found.
    pub(super) fn why_outside(shared: &Shared, space: Space, address: u64) -> FaultKind {
        let (space, inner) = resolve(space, address);
        let ended = space == Space::Shared && shared.has_ended(inner);
        if ended { FaultKind::ClusterTarget } else { FaultKind::OutOfBounds }
    }

    /// The fault of one lane's access.
    pub(super) fn access_fault(
        &self,
        kind: FaultKind,
        request: &Request,
        lane: usize,
        address: u64,
    ) -> Box<machine::Fault> {
        let access = Access {
            address,
            bytes: request.bytes,
            space: request.space,
            write: request.write,
            nearest: self.launch.describe(request.space, address, request.bytes),
        };
        self.fault(kind, request.span, Mask::single(lane), Some(access), "")
    }

    /// Checks the accesses of all active lanes, then calls `f` with the memory of each.
    pub(super) fn each_place(
        &mut self,
        shared: &Shared,
        request: &Request,
        addresses: &Addresses,
        mask: Mask,
        mut f: impl FnMut(&mut Self, usize, Resolved),
    ) -> Step {
        // `f` may write the register that holds the addresses.
        let mut places = [Resolved::Local(0); GANG_LANES];
        let mut known = [None; 2];
        for lane in mask {
            let address = address_of(addresses, lane);
            let near = self.global_place(&mut known, request, address);
            let place = near.map_or_else(|| self.place_of(shared, request, lane, address), Ok);
            places[lane] = place.map_err(|kind| self.access_fault(kind, request, lane, address))?;
        }
        for lane in mask {
            f(self, lane, places[lane]);
        }
        Ok(())
    }

    /// The memory of an access in global memory, if it is allowed. `known`: the allocations found last. Lanes often access two by
    /// turns.
    fn global_place(
        &self,
        known: &mut [Option<Extent>; 2],
        request: &Request,
        address: u64,
    ) -> Option<Resolved> {
        let (Space::Global, inner) = resolve(request.space, address) else { return None };
        if !address.is_multiple_of(request.bytes) {
            return None;
        }
        let of = |extent: &Extent| extent.resolve(inner, request.bytes).ok();
        if let Some(at) = known.iter().flatten().find_map(of) {
            return Some(Resolved::Host(at));
        }
        let extent = self.launch.allocation(inner)?;
        let at = of(&extent)?;
        *known = [Some(extent), known[0]];
        Some(Resolved::Host(at))
    }

    /// The region of an access, if all lanes are aligned and in bounds. If each CTA has its own copy of the region,
    /// `Region::stride` bytes apart, this stride is added to the addresses' CTA stride, so that [`Region::at`] finds
    /// each lane's copy.
    #[inline]
    fn even_region(&self, shared: &Shared, request: &Request, even: &mut Even, mask: Mask) -> Option<Region> {
        if !even.aligned(request.bytes) {
            return None;
        }
        let (least, greatest) = even.bounds;
        let region = match self.region(shared, request, least, greatest) {
            None => self.active_region(shared, request, even, mask),
            found => found,
        }?;
        even.affine.block_stride = even.affine.block_stride.wrapping_add(region.stride as u64);
        Some(region)
    }

    /// [`Gang::even_region`] if inactive lanes are out of bounds.
    #[cold]
    fn active_region(&self, shared: &Shared, request: &Request, even: &Even, mask: Mask) -> Option<Region> {
        let (least, greatest) = even.bounds_of(mask)?;
        (least, greatest).ne(&even.bounds).then(|| self.region(shared, request, least, greatest))?
    }

    /// The region of an access, if all lanes are aligned and in bounds. Changes affine addresses as
    /// [`Gang::even_region`] does.
    pub(super) fn checked_region(
        &self,
        shared: &Shared,
        request: &Request,
        addresses: &mut Addresses,
        mask: Mask,
    ) -> Option<Region> {
        if !request.bytes.is_power_of_two() {
            return None;
        }
        match addresses {
            Addresses::Even(even) => self.even_region(shared, request, even, mask),
            Addresses::Each(each) => {
                let (least, greatest) = each.bounds()?;
                each.aligned(request.bytes).then(|| self.region(shared, request, least, greatest))?
            }
        }
    }

    #[inline(never)]
    pub(super) fn load(&mut self, op: &Load, active: &Active, shared: &mut Shared, span: Span) -> Step {
        if self.load_cached(op, active) {
            return Ok(());
        }
        self.load_unplanned(op, active, shared, span)
    }

    #[inline(never)]
    fn load_unplanned(&mut self, op: &Load, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let bytes = u64::from(op.bytes) * op.dst.len() as u64;
        let request = Request { space: op.address.space, bytes, write: false, span };
        let mut addresses = self.addresses(&op.address, active);
        let Some(region) = self.checked_region(shared, &request, &mut addresses, active.mask) else {
            if self.load_local(op, active, &request, &addresses) {
                return Ok(());
            }
            return self.load_each(op, active, shared, &request, &addresses, read_words);
        };
        if let Addresses::Even(even) = &addresses {
            if even.affine.is_uniform() {
                // SAFETY: the region holds all elements of the access.
                self.load_uniform(op, active, unsafe { region.at(even.affine.base) }, read_words);
                return Ok(());
            }
            if let Some(cached) = AccessCache::new(even, region, bytes, &op.address, active) {
                self.caches.access[op.address.place] = cached;
                if self.load_cached(op, active) {
                    return Ok(());
                }
            }
        }
        let transfer = self.transfer(region, &addresses, active, op.bytes, bytes);
        // A destination of a vector may hold the addresses: all vectors are packed before the first destination is
        // written.
        if self.load_vectors(op, active, &transfer) {
            return Ok(());
        }
        let addresses = self.kept(op, addresses);
        let transfer = self.transfer(region, &addresses, active, op.bytes, bytes);
        for (element, slot) in op.dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            self.produce(slot, active, |_, target| {
                // SAFETY: the region holds the accesses of all active lanes, and the array all lanes.
                unsafe { transfer.load(element, op.signed, slot.width, target) }
            });
        }
        Ok(())
    }

    /// Loads the same elements for all lanes.
    #[inline]
    pub(super) fn load_uniform(
        &mut self,
        op: &Load,
        active: &Active,
        start: *const u8,
        read: unsafe fn(*const u8, u32) -> Words,
    ) {
        // SAFETY: the caller has checked the access.
        let words = unsafe { read(start, op.bytes * op.dst.len() as u32) };
        for (i, slot) in op.dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            let value = element(&words, i, op.bytes, op.signed);
            let whole = self.whole(active, slot);
            self.registers.set_all(active.window, slot, value, active.mask, whole);
        }
    }

    pub(super) fn transfer<'a>(
        &self,
        region: Region,
        addresses: &'a Addresses,
        active: &'a Active,
        bytes: u32,
        stride: u64,
    ) -> Transfer<'a> {
        let (helpers, rows) = (self.registers.helpers(), self.registers.rows());
        Transfer { helpers, rows, region, addresses, active, bytes, stride }
    }

    /// Buffer for a vector of up to 16 bytes for each lane: both scratch arrays.
    fn vector_room(&self) -> *mut u8 {
        self.registers.scratch(1)
    }

    /// Loads vectors of up to 16 bytes by deinterleaving; packs them into a buffer first unless they lie at a
    /// constant distance. Returns false if the load is not of this kind.
    fn load_vectors(&mut self, op: &Load, active: &Active, transfer: &Transfer) -> bool {
        let (count, bytes) = (op.dst.len(), op.bytes as usize);
        let as_it_is = |slot: SlotRef| slot.width.bytes() == bytes;
        let from_bytes = |slot: SlotRef| bytes == 1 && slot.width == Width::W16;
        let fits = |slot: &Option<SlotRef>| {
            slot.is_some_and(|slot| (as_it_is(slot) || from_bytes(slot)) && self.whole(active, slot))
        };
        if !matches!(count, 2 | 4) || count * bytes > 16 || !op.dst.iter().all(fits) {
            return false;
        }
        let first = active.groups.0;
        let lanes = (active.groups.1 - first) * GROUP_LANES;
        // Deinterleave in place if the vectors lie at a constant distance; else pack them.
        let (vectors, step) = transfer.even_vectors().filter(|_| bytes > 1).unwrap_or_else(|| {
            // SAFETY: the buffer has room for the vectors of all lanes.
            (unsafe { transfer.pack_vectors(self.vector_room()) }, count * bytes)
        });
        let arrays: SmallVec<[*mut u8; 4]> = op
            .dst
            .iter()
            .flatten()
            // SAFETY: the group lies within the array.
            .map(|&slot| unsafe {
                self.registers.overwrite(active.window, slot).add(group_offset(slot, first))
            })
            .collect();
        // SAFETY: there are vectors for all lanes of the groups, the arrays are those of different slots.
        unsafe {
            match bytes {
                1 => (self.registers.helpers().split_bytes)(&arrays, vectors, op.signed, lanes),
                2 => (self.registers.helpers().deinterleave)(&arrays, vectors, step, LaneWidth::B2, lanes),
                4 => (self.registers.helpers().deinterleave)(&arrays, vectors, step, LaneWidth::B4, lanes),
                _ => (self.registers.helpers().deinterleave)(&arrays, vectors, step, LaneWidth::B8, lanes),
            }
        }
        true
    }

    /// Addresses that stay valid while the destinations of a load are written. Several destinations need a copy of
    /// the register that holds the addresses. A single destination may be this register, since each lane's address is
    /// read before its value is written.
    pub(super) fn kept(&self, op: &Load, addresses: Addresses) -> Addresses {
        match addresses {
            Addresses::Each(each) if op.dst.len() > 1 => {
                let copy = self.registers.scratch(1);
                let bytes = if each.narrow { 4 } else { 8 };
                // SAFETY: both arrays have `lanes` elements of this size; nothing else uses the scratch array
                // meanwhile.
                unsafe { std::ptr::copy_nonoverlapping(each.array, copy, bytes * self.threads.lanes) }
                Addresses::Each(Each { array: copy, ..each })
            }
            other => other,
        }
    }

    /// Where an operation can write its results directly: the memory of a store whose active lanes are one range
    /// ([`Active::range`]) that starts at a group's first lane, and whose elements are contiguous.
    pub(super) fn store_target(
        &mut self,
        op: &Store,
        active: &Active,
        shared: &Shared,
        span: Span,
    ) -> Option<*mut u8> {
        let (first, end) = active.range;
        if first == end || !first.is_multiple_of(GROUP_LANES) {
            return None;
        }
        if let Some((cached, start)) = self.cached(&op.address, active) {
            return cached.is_consecutive().then_some(start);
        }
        let bytes = u64::from(op.bytes);
        let request = Request { space: op.address.space, bytes, write: true, span };
        let mut even = self.even(&op.address, active).ok().filter(|even| even.affine.step == bytes)?;
        let region = self.even_region(shared, &request, &mut even, active.mask)?;
        if let Some(cached) = AccessCache::new(&even, region, bytes, &op.address, active) {
            self.caches.access[op.address.place] = cached;
        }
        if !even.consecutive(bytes) {
            return None;
        }
        // SAFETY: the first active lane's access lies within the region.
        Some(unsafe { region.at(even.at(first)) })
    }

    /// Loads the lanes one by one: local memory, and accesses that fault or lie in several allocations.
    #[inline(never)]
    pub(super) fn load_each(
        &mut self,
        op: &Load,
        active: &Active,
        shared: &Shared,
        request: &Request,
        addresses: &Addresses,
        read: unsafe fn(*const u8, u32) -> Words,
    ) -> Step {
        let arrays: Vec<Option<(*mut u8, SlotRef)>> = op
            .dst
            .iter()
            .map(|slot| slot.map(|slot| (self.registers.update(active.window, slot), slot)))
            .collect();
        self.each_place(shared, request, addresses, active.mask, |gang, lane, place| {
            let words = match place {
                // SAFETY: the place holds all elements of the access.
                Resolved::Host(at) => unsafe { read(at, request.bytes as u32) },
                Resolved::Local(_) => [0; 4],
            };
            for (i, slot) in arrays.iter().enumerate() {
                let Some((array, slot)) = *slot else { continue };
                let value = match place {
                    Resolved::Host(_) => element(&words, i, op.bytes, op.signed),
                    Resolved::Local(at) => {
                        let value = gang.local.read(lane, at + (i as u64) * u64::from(op.bytes), op.bytes);
                        extend(value, op.bytes, op.signed)
                    }
                };
                // SAFETY: arrays have an element for every lane.
                unsafe { store(array, slot.width, lane, value) }
            }
        })
    }

    #[inline(never)]
    pub(super) fn store(&mut self, op: &Store, active: &Active, shared: &mut Shared, span: Span) -> Step {
        if self.store_cached(op, active) {
            return Ok(());
        }
        if let [slot] = op.src[..]
            && slot.width.bytes() == op.bytes as usize
            && let Some(target) = self.store_target(op, active, shared, span)
        {
            let ((first, end), bytes) = (active.range, op.bytes as usize);
            let array = self.registers.read(active.window, slot);
            // SAFETY: the array has the lanes, and the target room for them.
            unsafe {
                let copy = self.registers.helpers().copy;
                copy(target, array.add(first * bytes), (end - first) * bytes);
            }
            return Ok(());
        }
        // Values may still be in the memory that is written now: all are read before the first is written.
        for slot in &op.src {
            self.registers.read(active.window, *slot);
        }
        let bytes = u64::from(op.bytes) * op.src.len() as u64;
        let request = Request { space: op.address.space, bytes, write: true, span };
        let mut addresses = self.addresses(&op.address, active);
        let Some(region) = self.checked_region(shared, &request, &mut addresses, active.mask) else {
            if self.store_local(op, active, &request, &addresses) {
                return Ok(());
            }
            return self.store_each(op, active, shared, &request, &addresses, write_words);
        };
        let transfer = self.transfer(region, &addresses, active, op.bytes, bytes);
        if self.store_vectors(op, active, &transfer) {
            return Ok(());
        }
        for (element, slot) in op.src.iter().enumerate() {
            let array = self.registers.read(active.window, *slot);
            // SAFETY: the region holds the accesses of all active lanes, and the array all lanes.
            unsafe { transfer.store(element, slot.width, array) }
        }
        Ok(())
    }

    /// The reverse of [`Gang::load_vectors`].
    fn store_vectors(&mut self, op: &Store, active: &Active, transfer: &Transfer) -> bool {
        let (count, bytes) = (op.src.len(), op.bytes as usize);
        let fits = |slot: &SlotRef| slot.width.bytes() == bytes;
        if !matches!(count, 2 | 4) || count * bytes > 16 || !op.src.iter().all(fits) {
            return false;
        }
        let first = active.groups.0;
        let lanes = (active.groups.1 - first) * GROUP_LANES;
        let arrays: SmallVec<[*const u8; 4]> = op
            .src
            .iter()
            .map(|&slot| {
                let array = self.registers.read(active.window, slot);
                // SAFETY: the group lies within the array.
                unsafe { array.add(group_offset(slot, first)) }
            })
            .collect();
        let (interleave, width) = (self.registers.helpers().interleave, lane_width(op.src[0].width));
        // SAFETY: the region holds the accesses of all active lanes, and there is room for vectors of all lanes.
        unsafe {
            match transfer.vectors_target() {
                Some(start) => interleave(start, &arrays, width, lanes),
                None => {
                    interleave(self.vector_room(), &arrays, width, lanes);
                    transfer.store_vectors(self.vector_room());
                }
            }
        }
        true
    }
}
