//! `cp.async`: copies that complete only when their thread waits for them.
//!
//! Issuing a copy reads the source. The destination is written when the thread waits for the copy's group, ends, or
//! hands its copies to an mbarrier. So a kernel that reads the destination too early finds the old contents.
//!
//! `pending.rs` keeps the copies until then. Bulk copies complete at once.
//!
//! Narrowest tests (`tests/run`): `cp_async_rows`, `cp_async_own_groups`.

use diag::Span;
use ir::{BulkMask, CopyAsync, CopyBulk, CopyGroup, MbarrierOp, StoreAsync, StoreBulk, TryCancel};
use isa::Space;
use lanes::memory;
use machine::mask::Mask;
use machine::memory::{map_shared, rank_of_address};
use machine::{FaultKind, NEEDS_CLUSTER};
use smallvec::SmallVec;

use super::addresses::{ROOM, address_of};
use super::atomic::reduce_elements;
use super::pending::{LONGEST, Places};
use super::request::{Request, Resolved};
use super::{Active, Execute, Gang, Step};
use crate::code::Address;
use crate::registers::SlotRef;
use crate::shared::Shared;

/// `st.bulk` needs an address and a size that are multiples of this (PTX ISA, "st.bulk").
const FILL_ALIGN: u64 = 8;

/// The ranks of the CTAs whose bits are set. Without a mask, the only destination is the one that the address names
/// (`None`).
pub(super) fn ranks(blocks: Option<u64>) -> SmallVec<[Option<u32>; 16]> {
    match blocks {
        None => [None].into_iter().collect(),
        Some(mask) => (0..32).filter(|rank| mask >> rank & 1 != 0).map(Some).collect(),
    }
}

impl Execute for CopyAsync<SlotRef, Address> {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let bytes = u64::from(self.bytes);
        let to = Request { space: self.dst.space, bytes, write: true, span };
        let from = Request { space: self.src.space, bytes, write: false, span };
        let ignored = match self.ignore {
            Some(guard) => {
                let predicate = gang.registers.predicate(active.window, guard.slot);
                if guard.negated { !predicate } else { predicate }
            }
            None => Mask::EMPTY,
        };
        let mut sources = gang.addresses(&self.src, active);
        let mut destinations = gang.addresses(&self.dst, active);
        let mut copies = gang.copies.room();
        if self.size.is_none() && self.ignore.is_none() {
            let source = gang.checked_region(shared, &from, &mut sources, active.mask);
            let region = gang.checked_region(shared, &to, &mut destinations, active.mask);
            if let (Some(source), Some(region)) = (source, region) {
                let from = gang.transfer(source, &sources, active, self.bytes, bytes);
                let to = gang.transfer(region, &destinations, active, self.bytes, bytes);
                // SAFETY: the regions hold the copies of all active lanes.
                unsafe { copies.take(&from, &to) }
                gang.copies.issue(active.mask, self.bytes as usize, copies);
                return Ok(());
            }
        }
        let mut places = Vec::with_capacity(active.count);
        copies.bytes.clear();
        for lane in active.mask {
            let mut read = match self.size {
                Some(slot) => gang.registers.get(active.window, slot, lane).min(bytes),
                None => bytes,
            };
            if ignored.contains(lane) {
                read = 0;
            }
            let destination = address_of(&destinations, lane);
            let place = match gang.place(shared, &to, destination) {
                Ok(Resolved::Host(place)) => place,
                Ok(Resolved::Local(_)) => {
                    return Err(gang.access_fault(FaultKind::OutOfBounds, &to, lane, destination));
                }
                Err(kind) => return Err(gang.access_fault(kind, &to, lane, destination)),
            };
            let mut data = [0; LONGEST];
            if read > 0 {
                // The address must be aligned to the size of the copy, even if only a part is read.
                let address = address_of(&sources, lane);
                let fault = |kind| gang.access_fault(kind, &from, lane, address);
                if !address.is_multiple_of(bytes) {
                    return Err(fault(FaultKind::Misaligned));
                }
                for i in 0..read {
                    let byte = Request { bytes: if read == bytes { bytes } else { 1 }, ..from };
                    match gang.place(shared, &byte, address + i) {
                        // SAFETY: the place holds `bytes` bytes of the request.
                        Ok(Resolved::Host(at)) => unsafe {
                            let to = data.as_mut_ptr().add(i as usize);
                            std::ptr::copy_nonoverlapping(at, to, byte.bytes as usize);
                        },
                        Ok(Resolved::Local(_)) => return Err(fault(FaultKind::OutOfBounds)),
                        Err(kind) => return Err(fault(kind)),
                    }
                    if read == bytes {
                        break;
                    }
                }
            }
            places.push(place);
            copies.bytes.extend_from_slice(&data[..self.bytes as usize]);
        }
        copies.places = Places::Each(places);
        gang.copies.issue(active.mask, self.bytes as usize, copies);
        Ok(())
    }
}

/// `cp.async.bulk`: completes at once.
impl Execute for CopyBulk<SlotRef, Address> {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let at = |gang: &mut Gang, address: &Address| {
            let mut room = ROOM;
            gang.addresses(address, active).all(active, &mut room).to_vec()
        };
        let between_blocks = self.dst.space == Space::Shared && self.src.space == Space::Shared;
        if between_blocks && !gang.launch.is_explicit_cluster() {
            return Err(gang.fault(FaultKind::AddressSpace, span, active.mask, None, NEEDS_CLUSTER));
        }
        let (to, from) = (at(gang, &self.dst), at(gang, &self.src));
        let objects = self.mbarrier.as_ref().map(|address| (at(gang, address), address.space));
        for lane in active.mask {
            let bytes = gang.registers.get(active.window, self.size, lane);
            let (mut byte_mask, mut blocks) = (u64::MAX, None);
            match self.mask {
                Some(BulkMask::Bytes(mask)) => byte_mask = gang.registers.get(active.window, mask, lane),
                Some(BulkMask::Blocks(mask)) => blocks = Some(gang.registers.get(active.window, mask, lane)),
                None => {}
            }
            // Bytes that the instruction ignores at either end are not copied and need not be in bounds.
            let [left, right] = self
                .ends
                .map_or([0; 2], |ends| ends.map(|slot| gang.registers.get(active.window, slot, lane)));
            let skipped = left.min(bytes);
            let part = (skipped, (bytes - skipped).saturating_sub(right));
            for rank in ranks(blocks) {
                let to = gang.in_block(to[lane], self.dst.space, rank);
                let object = objects.as_ref().map(|(objects, space)| {
                    let object = gang.in_block(objects[lane], *space, rank);
                    (*space, object)
                });
                if bytes > 0 {
                    let write = Request { space: self.dst.space, bytes, write: true, span };
                    let read = Request { space: self.src.space, bytes, write: false, span };
                    let to =
                        gang.bulk_place(shared, &write, lane, to, (0, bytes))?.wrapping_add(skipped as usize);
                    let from = gang.bulk_place(shared, &read, lane, from[lane], part)?;
                    let (bytes, copy) = (part.1 as usize, gang.registers.helpers().copy);
                    // SAFETY: both places hold `bytes` bytes; without ignored ends they are aligned to 16.
                    unsafe {
                        match &self.reduction {
                            Some(reduction) => reduce_elements(reduction, from, to, bytes),
                            None if byte_mask & 0xffff == 0xffff => copy(to, from, bytes),
                            None => {
                                let chosen = (0..bytes).filter(|byte| byte_mask >> (byte % 16) & 1 != 0);
                                chosen.for_each(|byte| {
                                    memory::write(to.add(byte), from.add(byte).read());
                                });
                            }
                        }
                    }
                    if let Some((report, (space, object))) = self.report.zip(object) {
                        // Read the copied bytes back: no other thread can change them meanwhile.
                        // SAFETY: the place holds `bytes` bytes of shared memory, which only this host thread
                        // accesses.
                        let data = unsafe { std::slice::from_raw_parts(to, bytes) };
                        if sem::validity::is_found(report, skipped, data) {
                            gang.apply_mbarrier(MbarrierOp::Report, 0, space, object, lane, shared, span)?;
                        }
                    }
                }
                if let Some(object) = object {
                    gang.complete_copy(bytes, object, (self.dst.space, to), lane, shared, span)?;
                }
            }
        }
        Ok(())
    }
}

/// `st.bulk`: writes zeros to the CTA's own shared memory.
impl Execute for StoreBulk<SlotRef, Address> {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let mut room = ROOM;
        let addresses = gang.addresses(&self.address, active).all(active, &mut room).to_vec();
        for lane in active.mask {
            let (bytes, address) = (gang.registers.get(active.window, self.size, lane), addresses[lane]);
            let request = Request { space: self.address.space, bytes, write: true, span };
            let fault = |kind| Err(gang.access_fault(kind, &request, lane, address));
            if bytes == 0 {
                continue;
            }
            if !address.is_multiple_of(FILL_ALIGN) || !bytes.is_multiple_of(FILL_ALIGN) {
                return fault(FaultKind::Misaligned);
            }
            let Some(region) = gang.region(shared, &request, address, address) else {
                return fault(Gang::why_outside(shared, request.space, address));
            };
            // SAFETY: the region was found for this address.
            let at = unsafe { region.at(address) };
            if !shared.has(at) {
                return fault(FaultKind::OutOfBounds);
            }
            // SAFETY: the region has `bytes` bytes from there on, which only this host thread accesses.
            unsafe { at.write_bytes(0, bytes as usize) }
        }
        Ok(())
    }
}

/// `st.async`, `red.async`: complete at once.
impl Execute for StoreAsync<SlotRef, Address> {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let (to, objects) = (gang.addresses(&self.address, active), gang.addresses(&self.mbarrier, active));
        let all =
            active.mask.into_iter().map(|lane| (lane, address_of(&to, lane), address_of(&objects, lane)));
        let bytes = u64::from(self.bytes) * self.src.len() as u64;
        let request = Request { space: self.address.space, bytes, write: true, span };
        for (lane, to, object) in all.collect::<Vec<_>>() {
            let at = match gang.place(shared, &request, to) {
                Ok(Resolved::Host(at)) if shared.has(at) => at,
                Ok(_) => return Err(gang.access_fault(FaultKind::OutOfBounds, &request, lane, to)),
                Err(kind) => return Err(gang.access_fault(kind, &request, lane, to)),
            };
            for (i, &slot) in self.src.iter().enumerate() {
                let value = gang.registers.get(active.window, slot, lane).to_le_bytes();
                // SAFETY: the place holds all elements, which are at most 8 bytes each.
                unsafe {
                    let at = at.add(i * self.bytes as usize);
                    match &self.reduction {
                        Some(reduction) => {
                            reduce_elements(reduction, value.as_ptr(), at, self.bytes as usize);
                        }
                        None => std::ptr::copy_nonoverlapping(value.as_ptr(), at, self.bytes as usize),
                    }
                }
            }
            let places = ((self.mbarrier.space, object), (self.address.space, to));
            gang.complete_copy(bytes, places.0, places.1, lane, shared, span)?;
        }
        Ok(())
    }
}

/// `clusterlaunchcontrol.try_cancel`: completes at once with a refusal.
impl Execute for TryCancel<Address> {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let (to, objects) = (gang.addresses(&self.dst, active), gang.addresses(&self.mbarrier, active));
        let all =
            active.mask.into_iter().map(|lane| (lane, address_of(&to, lane), address_of(&objects, lane)));
        let blocks = self.all.then(|| (1 << gang.launch.cluster_blocks()) - 1);
        for (lane, to, object) in all.collect::<Vec<_>>() {
            for rank in ranks(blocks) {
                let (to_space, space) = (self.dst.space, self.mbarrier.space);
                let (to, object) = (gang.in_block(to, to_space, rank), gang.in_block(object, space, rank));
                let bytes = ir::RESPONSE_BYTES;
                let write = Request { space: to_space, bytes: bytes.into(), write: true, span };
                let place = gang.bulk_place(shared, &write, lane, to, (0, write.bytes))?;
                // SAFETY: the place holds `bytes` bytes of the request.
                unsafe { memory::write(place, [0u8; ir::RESPONSE_BYTES as usize]) }
                gang.complete_copy(bytes.into(), (space, object), (to_space, to), lane, shared, span)?;
            }
        }
        Ok(())
    }
}

impl Gang<'_> {
    /// The address itself, or the corresponding address in the shared memory of the CTA with this rank.
    pub(super) fn in_block(&self, address: u64, space: Space, rank: Option<u32>) -> u64 {
        rank.map_or(address, |rank| map_shared(address, rank, space == Space::Generic))
    }

    /// Completes transactions of `bytes` bytes at an mbarrier object. The object must be in the shared memory of the
    /// CTA that received the data.
    pub(super) fn complete_copy(
        &self,
        bytes: u64,
        (space, object): (Space, u64),
        (to_space, to): (Space, u64),
        lane: usize,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        let complete = MbarrierOp::CompleteTransactions;
        let rank = |space, address| rank_of_address(address, space == Space::Generic);
        if rank(space, object) != rank(to_space, to) {
            let note = "the mbarrier object is not in the shared memory of the block that the data goes to";
            return Err(self.fault(FaultKind::Mbarrier, span, Mask::single(lane), None, note));
        }
        self.apply_mbarrier(complete, bytes, space, object, lane, shared, span)?;
        Ok(())
    }

    /// The host address of a bulk copy's source or destination, which must be aligned to 16 bytes and a multiple of
    /// 16 bytes long. The result points to the part of `bytes` bytes that starts `skipped` bytes after the address;
    /// only this part must be in bounds.
    fn bulk_place(
        &self,
        shared: &Shared,
        request: &Request,
        lane: usize,
        address: u64,
        (skipped, bytes): (u64, u64),
    ) -> Step<*mut u8> {
        let fault = |kind| Err(self.access_fault(kind, request, lane, address));
        if !address.is_multiple_of(LONGEST as u64) || !request.bytes.is_multiple_of(LONGEST as u64) {
            return fault(FaultKind::Misaligned);
        }
        if bytes == 0 {
            return Ok(std::ptr::dangling_mut());
        }
        let (part, address) = (Request { bytes, ..*request }, address.wrapping_add(skipped));
        match self.region(shared, &part, address, address) {
            // SAFETY: the region was found for this address.
            Some(region) => Ok(unsafe { region.at(address) }),
            None => fault(Self::why_outside(shared, request.space, address)),
        }
    }

    pub(super) fn copy_group(&mut self, group: CopyGroup, lanes: Mask) {
        match group {
            CopyGroup::Commit => {
                self.copies.commit(lanes, lanes == self.alive);
            }
            CopyGroup::Wait(keep) => self.copies.finish_groups(lanes, Some(keep)),
            CopyGroup::WaitAll => self.copies.finish(lanes),
        }
    }
}
