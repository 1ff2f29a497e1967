//! `atom` and `red`.
//!
//! Lanes execute in ascending order, and each receives the value before its own operation. Faster code with the same
//! results handles common cases:
//! - all lanes combine one operand value into one integer element, and no lane reads the old value: one combined
//!   operation;
//! - all lanes operate on one element: one host atomic operation, so other host threads see a single update;
//! - so do lanes that follow each other;
//! - counters in the CTA's own shared memory (histograms);
//! - few active lanes.
//!
//! If the host needs a compare-exchange loop, the elements of a warp are all read first, so that their cache misses
//! overlap. Narrowest tests (`tests/run`): `atomics_*`.

use diag::Span;
use ir::{AtomicOp, Width};
use isa::Space;
use lanes::Helpers;
use machine::FaultKind;
use machine::mask::{GANG_LANES, Mask};
use machine::memory::resolve;

use super::addresses::{Addresses, Each, ROOM, Region, address_of};
use super::request::{Request, Resolved};
use super::transfer::{read, write};
use super::update::{Atomic, Operands, Update, integer, update_atomically};
use super::{Active, Execute, Gang, Step};
use crate::bytes::store;
use crate::code::Base;
use crate::shared::Shared;

/// Up to this many active lanes are handled one by one.
const FEW_LANES: usize = 32;

impl Execute for Atomic {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let bytes = self.ty.bytes();
        let request = Request { space: self.address.space, bytes: bytes.into(), write: true, span };
        if self.vector > 0 {
            gang.check_vector(self, active, shared, &request)?;
        }
        if gang.atomic_repeated(self, active, shared, &request) {
            return Ok(());
        }
        let mut addresses = gang.addresses(&self.address, active);
        if matches!(bytes, 4 | 8)
            && let Some(region) = gang.checked_region(shared, &request, &mut addresses, active.mask)
        {
            // Only this host thread accesses shared memory.
            let own = shared.has(region.storage);
            gang.atomic_in_region(self, active, &addresses, region, own);
            return Ok(());
        }
        gang.atomic_each(self, active, shared, &request, &addresses)
    }
}

impl Gang<'_> {
    /// Checks the address of each lane's whole vector: it must be aligned and lie in global memory.
    #[inline(never)]
    fn check_vector(&mut self, op: &Atomic, active: &Active, shared: &Shared, request: &Request) -> Step {
        let request = Request { bytes: op.vector.into(), ..*request };
        let addresses = self.addresses(&op.address, active);
        for lane in active.mask {
            let address = address_of(&addresses, lane);
            if resolve(request.space, address).0 != Space::Global {
                return Err(self.access_fault(FaultKind::AddressSpace, &request, lane, address));
            }
        }
        self.each_place(shared, &request, &addresses, active.mask, |_, _, _| {})
    }

    /// Handles an integer operation with one operand value in all lanes, on one element, whose old value no lane
    /// reads: one update of the element has the effect of all. Returns false if the operation is not of this kind.
    #[inline(never)]
    fn atomic_repeated(&self, op: &Atomic, active: &Active, shared: &Shared, request: &Request) -> bool {
        if op.dst.is_some() || op.ty.is_float() || !matches!(request.bytes, 4 | 8) {
            return false;
        }
        let Some(a) = self.registers.uniform(active.window, op.a) else { return false };
        let all = match op.op {
            AtomicOp::Add => a.wrapping_mul(active.count as u64),
            AtomicOp::And | AtomicOp::Or | AtomicOp::Min | AtomicOp::Max | AtomicOp::Exchange => a,
            // An even number of XORs with one value cancels out.
            AtomicOp::Xor => a * (active.count % 2) as u64,
            AtomicOp::Inc | AtomicOp::Dec | AtomicOp::CompareAndSwap => return false,
        };
        let start = match op.address.base {
            Base::Slot(slot) => self.registers.uniform(active.window, slot).map(|a| (a, slot.width)),
            base => Some((self.fixed_base(base, active.frame), Width::W64)),
        };
        let Some((start, width)) = start else { return false };
        let address = width.truncate(start.wrapping_add(op.address.offset));
        if !address.is_multiple_of(request.bytes) {
            return false;
        }
        let Some(region) = self.region(shared, request, address, address) else { return false };
        if region.stride > 0 && self.registers.rows().blocks() > 1 {
            // Each CTA has its own element.
            return false;
        }
        // SAFETY: the region holds the element, which is aligned.
        unsafe {
            update_atomically(region.at(address), op.ty.bytes(), |old| integer(op.op, op.ty, old, all, 0));
        }
        true
    }

    /// The operation on a region that holds the elements of all active lanes. `own`: only this host thread accesses
    /// the memory.
    fn atomic_in_region(
        &mut self,
        op: &Atomic,
        active: &Active,
        addresses: &Addresses,
        region: Region,
        own: bool,
    ) {
        if let (true, None, AtomicOp::Add, Addresses::Each(each)) = (own, op.dst, op.op, addresses)
            && let (Some(a), false, 4) =
                (self.registers.uniform(active.window, op.a), op.ty.is_float(), op.ty.bytes())
            && each.narrow
        {
            // Histograms.
            return self.count(each, region, a as u32, active);
        }
        let mut operands = self.scratch.atomic.take().unwrap_or_else(Operands::new);
        if let Addresses::Even(even) = addresses
            && even.affine.is_uniform()
        {
            self.take_operands(op, active, &mut operands);
            let update = Update::of(op, own);
            // SAFETY: the region holds the element, which is aligned.
            unsafe { update.one_element(&mut operands, active, region.at(even.affine.base)) };
            self.write_old_values(op, active, &operands);
            self.scratch.atomic = Some(operands);
            return;
        }
        if active.count <= FEW_LANES {
            self.atomic_few(op, active, addresses, region, own, &mut operands);
            self.scratch.atomic = Some(operands);
            return;
        }
        let end = active.lanes().1;
        let helpers = self.registers.helpers();
        let base = find_offsets(addresses, region, helpers, active, &mut operands.offsets);
        if let (Addresses::Each(_), 1..) = (addresses, region.stride) {
            // Each CTA has its own memory.
            let blocks = operands.offsets[..end].chunks_mut(self.registers.rows().block_lanes()).enumerate();
            blocks.for_each(|(block, offsets)| {
                offsets.iter_mut().for_each(|o| *o = o.wrapping_add((block * region.stride) as u64));
            });
        }
        self.take_operands(op, active, &mut operands);
        let update = Update::of(op, own);
        // SAFETY: the region holds the elements of all active lanes, which are aligned.
        let all = || unsafe {
            match op.ty.bytes() {
                4 => update.lanes::<u32>(&mut operands, active, base, own),
                _ => update.lanes::<u64>(&mut operands, active, base, own),
            }
        };
        let threads = if own { 1 } else { self.launch.config().host_threads() };
        self.launch.turns.take(active.count, threads, all);
        self.write_old_values(op, active, &operands);
        self.scratch.atomic = Some(operands);
    }

    /// Writes the elements' old values to the destination, if there is one.
    fn write_old_values(&mut self, op: &Atomic, active: &Active, operands: &Operands) {
        let (Some(dst), (first, end)) = (op.dst, active.lanes()) else { return };
        self.produce(dst, active, |_, target| {
            for lane in first..end {
                // SAFETY: the array has an element for every lane.
                unsafe { store(target, dst.width, lane, operands.old[lane]) }
            }
        });
    }

    /// Reads the operands of all lanes of the active groups, or only of the active lanes if these are few.
    fn take_operands(&mut self, op: &Atomic, active: &Active, operands: &mut Operands) {
        let (registers, Operands { a, b, .. }) = (&mut self.registers, operands);
        for (slot, values) in [(Some(op.a), a), (op.b, b)] {
            let Some(slot) = slot else { continue };
            if active.count <= FEW_LANES {
                active
                    .mask
                    .into_iter()
                    .for_each(|lane| values[lane] = registers.get(active.window, slot, lane));
            } else {
                registers.widen(active.window, slot, &mut values[..active.lanes().1]);
            }
        }
    }

    /// The operation for few active lanes, where reading the operands of all lanes would take longer.
    fn atomic_few(
        &mut self,
        op: &Atomic,
        active: &Active,
        addresses: &Addresses,
        region: Region,
        own: bool,
        operands: &mut Operands,
    ) {
        self.take_operands(op, active, operands);
        let transfer = self.transfer(region, addresses, active, op.ty.bytes(), op.ty.bytes().into());
        for lane in active.mask {
            // SAFETY: the region holds the elements of all active lanes.
            let at = unsafe { transfer.at(lane) };
            operands.offsets[lane] = at.addr().wrapping_sub(region.storage.addr()) as u64;
        }
        let update = Update::of(op, own);
        // SAFETY: as above; elements are aligned.
        unsafe {
            match op.ty.bytes() {
                4 => update.lanes::<u32>(operands, active, region.storage, own),
                _ => update.lanes::<u64>(operands, active, region.storage, own),
            }
        }
        if let Some(dst) = op.dst {
            self.write_lanes(dst, active, |_, lane| operands.old[lane]);
        }
    }

    /// Adds one value for every active lane to 4-byte elements in memory that only this host thread accesses.
    fn count(&self, each: &Each, region: Region, addend: u32, active: &Active) {
        let base = region.storage.wrapping_add(each.offset.wrapping_sub(region.base) as usize);
        for (block, mask) in self.parts(active.mask) {
            // SAFETY: the array has an address for every lane, and the region holds the elements of the active ones,
            // which are aligned.
            unsafe { add_to_each(base.wrapping_add(block * region.stride), each.array.cast(), &mask, addend) }
        }
    }

    /// Handles the lanes one by one: elements of 16 bits, local memory, and accesses that fault or that lie in
    /// several allocations.
    fn atomic_each(
        &mut self,
        op: &Atomic,
        active: &Active,
        shared: &mut Shared,
        request: &Request,
        addresses: &Addresses,
    ) -> Step {
        let bytes = op.ty.bytes();
        let [update, update_own] = [false, true].map(|own| Update::of(op, own));
        // The destination may be one of the sources, so old values are written to it only after all lanes are done.
        let old_values = self.registers.scratch(1);
        // Only this host thread accesses shared memory.
        let own = |at: *const u8| shared.has(at);
        self.each_place(shared, request, addresses, active.mask, |gang, lane, place| {
            let a = gang.registers.get(active.window, op.a, lane);
            let b = op.b.map_or(0, |slot| gang.registers.get(active.window, slot, lane));
            let old = match place {
                Resolved::Host(at) if !own(at) => {
                    // SAFETY: the place holds `bytes` aligned bytes.
                    unsafe { update_atomically(at, bytes, |old| update.apply(old, a, b)) }
                }
                // SAFETY: the place holds `bytes` bytes.
                Resolved::Host(at) => unsafe {
                    let old = read(at, bytes, false);
                    write(at, bytes, update_own.apply(old, a, b));
                    old
                },
                Resolved::Local(at) => {
                    let old = gang.local.read(lane, at, bytes);
                    gang.local.write(lane, at, bytes, update.apply(old, a, b));
                    old
                }
            };
            if let Some(dst) = op.dst {
                // SAFETY: scratch arrays have an element of any width for every lane.
                unsafe { store(old_values, dst.width, lane, old) }
            }
        })?;
        if let Some(dst) = op.dst {
            self.registers.merge(active.window, dst, 1, active.mask);
        }
        Ok(())
    }
}

/// Combines the elements in `bytes` bytes at `from` into those at `to`, each by one atomic update.
///
/// # Safety
/// Both pointers must be valid for `bytes` bytes and aligned to an element.
pub(super) unsafe fn reduce_elements(reduction: &ir::Reduction, from: *const u8, to: *mut u8, bytes: usize) {
    let &ir::Reduction { op, ty, addition } = reduction;
    let (update, size) = (Update::new(op, ty, addition), ty.bytes());
    for offset in (0..bytes).step_by(size as usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let a = read(from.add(offset).cast_mut(), size, false);
            update_atomically(to.add(offset), size, |old| update.apply(old, a, 0));
        }
    }
}

/// Adds `addend` to the element at `base` plus each lane's offset, for each lane of the mask.
///
/// # Safety
/// `offsets` must have an entry for every lane of the mask, and `base` plus that offset must be valid for an aligned
/// element.
#[inline(never)]
unsafe fn add_to_each(base: *mut u8, offsets: *const u32, mask: &Mask, addend: u32) {
    mask.for_each(|lane| {
        // SAFETY: the caller's promise.
        unsafe {
            let at = base.wrapping_add(offsets.add(lane).read() as usize).cast::<u32>();
            at.write(at.read().wrapping_add(addend));
        }
    });
}

/// Fills `offsets` with the offsets of the lanes' elements from the pointer that is returned.
fn find_offsets(
    addresses: &Addresses,
    region: Region,
    helpers: &Helpers,
    active: &Active,
    offsets: &mut [u64; GANG_LANES],
) -> *mut u8 {
    match addresses {
        Addresses::Even(_) => {
            let mut room = ROOM;
            let all = addresses.all(active, &mut room);
            offsets[..all.len()].copy_from_slice(all);
            region.storage.wrapping_sub(region.base as usize)
        }
        Addresses::Each(each) => {
            let (to, count) = (offsets.as_mut_ptr(), active.lanes().1);
            // SAFETY: the array has an element for every lane.
            unsafe {
                match each.narrow {
                    true => {
                        let extend = helpers.extend;
                        extend(to.cast(), lanes::LaneWidth::B8, each.array, lanes::Extend::U32, count);
                    }
                    false => std::ptr::copy_nonoverlapping(each.array.cast(), to, count),
                }
            }
            region.storage.wrapping_add(each.offset.wrapping_sub(region.base) as usize)
        }
    }
}
