//! Strong accesses: `.relaxed`, `.acquire`, `.release` and `.volatile` loads and stores of memory that other host threads
//! see, and fences (PTX ISA 8.4, "Operation types").
//!
//! Each element is one atomic access of the host, in ascending order of lanes. What acquires is followed by a fence of the host
//! for all lanes together, and what releases stands behind one: on x86-64 these cost nothing but order for the compiler.
//! `atom` and `red` need none: the host's operations that do them are sequentially consistent.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use diag::Span;
use ir::Order;

use super::access::{Request, Resolved};
use super::addresses::Addresses;
use super::transfer::extend;
use super::{Active, Chunk, Step};
use crate::bytes::store;
use crate::code::{Load, Store};
use crate::cta::Shared;

/// `fence` and `membar`.
pub(super) fn execute_fence(order: Order) {
    match order {
        Order::Weak | Order::Volatile | Order::Relaxed => {}
        Order::Acquire => fence(Ordering::Acquire),
        Order::Release => fence(Ordering::Release),
        Order::AcquireRelease => fence(Ordering::AcqRel),
        Order::Sequential => fence(Ordering::SeqCst),
    }
}

impl Chunk<'_> {
    #[inline(never)]
    pub(super) fn load_strong(
        &mut self,
        op: &Load,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        self.load_elements(op, active, shared, span)?;
        if op.order.acquires() {
            fence(Ordering::Acquire);
        }
        Ok(())
    }

    fn load_elements(&mut self, op: &Load, active: &Active, shared: &Shared, span: Span) -> Step {
        let bytes = u64::from(op.bytes) * op.dst.len() as u64;
        let request = Request { space: op.address.space, bytes, write: false, span };
        let mut addresses = self.addresses(&op.address, active);
        let Some(region) = self.checked_region(shared, &request, &mut addresses, active.mask) else {
            return self.load_each(op, active, shared, &request, &addresses, read_strong);
        };
        if let Addresses::Even(even) = &addresses
            && even.scalar.is_uniform()
        {
            // All lanes look at one element: looking once is as good as looking for each at the same time.
            // SAFETY: the region holds all elements of the access.
            self.load_uniform(op, active, unsafe { region.at(even.scalar.base) }, read_strong);
            return Ok(());
        }
        let addresses = self.kept(op, addresses);
        let transfer = self.transfer(region, &addresses, active, op.bytes, bytes);
        for (element, slot) in op.dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            self.produce(slot, active, |_, target| {
                for lane in active.mask {
                    // SAFETY: the region holds the accesses of all active lanes, and the array all lanes.
                    unsafe {
                        let at = transfer.at(lane).add(element * op.bytes as usize);
                        store(target, slot.width, lane, read_strong(at, op.bytes, op.signed));
                    }
                }
            });
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn store_strong(
        &mut self,
        op: &Store,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        // Values may still stand in memory: they are read before the fence, and before anything is written.
        for slot in &op.src {
            self.registers.read(active.window, *slot);
        }
        if op.order.releases() {
            fence(Ordering::Release);
        }
        let bytes = u64::from(op.bytes) * op.src.len() as u64;
        let request = Request { space: op.address.space, bytes, write: true, span };
        let mut addresses = self.addresses(&op.address, active);
        let Some(region) = self.checked_region(shared, &request, &mut addresses, active.mask) else {
            return self.store_each(op, active, shared, &request, &addresses, write_strong);
        };
        let transfer = self.transfer(region, &addresses, active, op.bytes, bytes);
        for lane in active.mask {
            for (element, slot) in op.src.iter().enumerate() {
                let value = self.registers.get(active.window, *slot, lane);
                // SAFETY: the region holds the accesses of all active lanes.
                unsafe { write_strong(transfer.at(lane).add(element * op.bytes as usize), op.bytes, value) }
            }
        }
        Ok(())
    }

    /// A store lane by lane: local memory, and accesses that fault or are spread over several allocations.
    pub(super) fn store_each(
        &mut self,
        op: &Store,
        active: &Active,
        shared: &Shared,
        request: &Request,
        addresses: &Addresses,
        write: unsafe fn(*mut u8, u32, u64),
    ) -> Step {
        self.each_place(shared, request, addresses, active.mask, |chunk, lane, place| {
            for (i, slot) in op.src.iter().enumerate() {
                let value = chunk.registers.get(active.window, *slot, lane);
                match place {
                    // SAFETY: the place holds all elements of the access.
                    Resolved::Host(at) => unsafe { write(at.add(i * op.bytes as usize), op.bytes, value) },
                    Resolved::Local(at) => {
                        chunk.local.write(lane, at + (i as u64) * u64::from(op.bytes), op.bytes, value);
                    }
                }
            }
        })
    }
}

/// Reads an element as one access of the host, and extends it to 64 bits.
///
/// # Safety
/// `at` must be valid for `bytes` bytes and aligned to them.
#[inline]
unsafe fn read_strong(at: *const u8, bytes: u32, signed: bool) -> u64 {
    let at = at.cast_mut();
    // SAFETY: the caller's promise; kernel memory is only reached through raw pointers and atomics.
    let value = unsafe {
        match bytes {
            1 => AtomicU8::from_ptr(at).load(Ordering::Relaxed).into(),
            2 => AtomicU16::from_ptr(at.cast()).load(Ordering::Relaxed).into(),
            4 => AtomicU32::from_ptr(at.cast()).load(Ordering::Relaxed).into(),
            _ => AtomicU64::from_ptr(at.cast()).load(Ordering::Relaxed),
        }
    };
    extend(value, bytes, signed)
}

/// Writes the low bytes of a value as one access of the host.
///
/// # Safety
/// `at` must be valid for `bytes` bytes and aligned to them.
#[inline]
unsafe fn write_strong(at: *mut u8, bytes: u32, value: u64) {
    // SAFETY: the caller's promise; kernel memory is only reached through raw pointers and atomics.
    unsafe {
        match bytes {
            1 => AtomicU8::from_ptr(at).store(value as u8, Ordering::Relaxed),
            2 => AtomicU16::from_ptr(at.cast()).store(value as u16, Ordering::Relaxed),
            4 => AtomicU32::from_ptr(at.cast()).store(value as u32, Ordering::Relaxed),
            _ => AtomicU64::from_ptr(at.cast()).store(value, Ordering::Relaxed),
        }
    }
}
