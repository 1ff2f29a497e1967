//! Strong accesses and fences (PTX ISA 8.4, "Operation types"): `.relaxed`, `.acquire`, `.release` and `.volatile`
//! loads and stores of memory that other host threads see.
//!
//! Each lane's access, with all elements of a vector, is one relaxed atomic access of the host; an access of 32 bytes
//! is two. Lanes execute in ascending order. The memory model has a separate access for each element. GPUs, however,
//! make one access of up to 16 bytes, and NVIDIA's libraries keep a flag and its value in one such vector. One host
//! fence for all lanes follows an acquire, and one precedes a release; on x86-64 these fences only restrict the
//! compiler. `atom` and `red` need no fence, because the host operations that implement them are sequentially
//! consistent.
//!
//! Accesses to a CTA's own memory are weak for the host (`code/build.rs`, `is_strong`), since all threads of a CTA
//! run on one host thread.
//!
//! Narrowest tests: `ir`: `tests/semantics.rs`; `tests/run`: `strong_*`, `grid_barrier`; `litmus`; `ptxvm`: `lookback`.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use diag::Span;
use ir::{Order, Width};
use lanes::memory;
use portable_atomic::AtomicU128;
use smallvec::SmallVec;

use super::addresses::Addresses;
use super::request::{Request, Resolved};
use super::transfer::{extend, read, write};
use super::{Active, Gang, Step};
use crate::bytes::{load, store};
use crate::code::{Load, Store};
use crate::registers::SlotRef;
use crate::shared::Shared;

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

impl Gang<'_> {
    #[inline(never)]
    pub(super) fn load_strong(
        &mut self,
        op: &Load,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        self.load_elements(op, active, shared, span)?;
        if op.semantics.order.acquires() {
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
            && even.affine.is_uniform()
        {
            // All lanes load from one address. One load is indistinguishable from simultaneous loads by all lanes.
            // SAFETY: the region holds all elements of the access.
            self.load_uniform(op, active, unsafe { region.at(even.affine.base) }, read_strong);
            return Ok(());
        }
        let transfer = self.transfer(region, &addresses, active, op.bytes, bytes);
        if let [Some(slot)] = op.dst[..] {
            self.produce(slot, active, |_, target| {
                // SAFETY: the region holds the accesses of all active lanes, and the array all lanes.
                unsafe {
                    transfer.each_lane(|lane, at| {
                        store(
                            target,
                            slot.width,
                            lane,
                            extend(read_strong(at, op.bytes)[0], op.bytes, op.signed),
                        );
                    });
                }
            });
            return Ok(());
        }
        // Each lane's address is read before its elements are written: a destination may be the register that holds
        // the addresses.
        let targets: SmallVec<[Option<(*mut u8, SlotRef)>; 8]> = op
            .dst
            .iter()
            .map(|slot| slot.map(|slot| (self.registers.update(active.window, slot), slot)))
            .collect();
        // SAFETY: as above.
        unsafe {
            transfer.each_lane(|lane, at| {
                let words = read_strong(at, bytes as u32);
                for (i, target) in targets.iter().enumerate() {
                    if let Some((target, slot)) = *target {
                        store(target, slot.width, lane, element(&words, i, op.bytes, op.signed));
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
        // Values may still be in memory (a load that has not been copied to the register). Read them before the fence
        // and before the first write.
        for slot in &op.src {
            self.registers.read(active.window, *slot);
        }
        if op.semantics.order.releases() {
            fence(Ordering::Release);
        }
        let bytes = u64::from(op.bytes) * op.src.len() as u64;
        let request = Request { space: op.address.space, bytes, write: true, span };
        let mut addresses = self.addresses(&op.address, active);
        let Some(region) = self.checked_region(shared, &request, &mut addresses, active.mask) else {
            return self.store_each(op, active, shared, &request, &addresses, write_strong);
        };
        let transfer = self.transfer(region, &addresses, active, op.bytes, bytes);
        let sources: SmallVec<[(*const u8, Width); 8]> =
            op.src.iter().map(|&slot| (self.registers.read(active.window, slot), slot.width)).collect();
        // SAFETY: the region holds the accesses of all active lanes, and the arrays all lanes.
        unsafe {
            if let [(source, width)] = sources[..] {
                transfer
                    .each_lane(|lane, at| write_strong(at, op.bytes, &[load(source, width, lane), 0, 0, 0]));
                return Ok(());
            }
            transfer.each_lane(|lane, at| {
                let value = |i: usize| load(sources[i].0, sources[i].1, lane);
                write_strong(at, bytes as u32, &side_by_side(sources.len(), op.bytes, value));
            });
        }
        Ok(())
    }

    /// Stores the lanes one by one: local memory, and accesses that fault or lie in several allocations.
    pub(super) fn store_each(
        &mut self,
        op: &Store,
        active: &Active,
        shared: &Shared,
        request: &Request,
        addresses: &Addresses,
        write: unsafe fn(*mut u8, u32, &Words),
    ) -> Step {
        self.each_place(shared, request, addresses, active.mask, |gang, lane, place| {
            let value = |i: usize| gang.registers.get(active.window, op.src[i], lane);
            match place {
                Resolved::Host(at) => {
                    let words = side_by_side(op.src.len(), op.bytes, value);
                    // SAFETY: the place holds all elements of the access.
                    unsafe { write(at, request.bytes as u32, &words) }
                }
                Resolved::Local(at) => {
                    for i in 0..op.src.len() {
                        let value = gang.registers.get(active.window, op.src[i], lane);
                        gang.local.write(lane, at + (i as u64) * u64::from(op.bytes), op.bytes, value);
                    }
                }
            }
        })
    }
}

/// The elements of one lane's access, contiguous, the first one in the lowest bits: up to 32 bytes.
pub(super) type Words = [u64; 4];

/// An element of an access, extended to 64 bits.
#[inline]
pub(super) fn element(words: &Words, index: usize, bytes: u32, signed: bool) -> u64 {
    let at = index * bytes as usize;
    extend(words[at / 8] >> (at % 8 * 8) & u64::MAX >> (64 - 8 * bytes), bytes, signed)
}

/// Packs `count` values of `bytes` bytes each.
#[inline]
pub(super) fn side_by_side(count: usize, bytes: u32, value: impl Fn(usize) -> u64) -> Words {
    let mut words = [0; 4];
    for i in 0..count {
        let at = i * bytes as usize;
        words[at / 8] |= (value(i) & u64::MAX >> (64 - 8 * bytes)) << (at % 8 * 8);
    }
    words
}

/// Whether the address is aligned for one host access. Only `.const` memory and parameters, at a generic address, may
/// be unaligned: no thread writes them meanwhile, so any access reads them whole.
#[inline]
fn is_aligned(at: *const u8, bytes: u32) -> bool {
    at.addr().is_multiple_of(bytes.min(16) as usize)
}

/// Reads `bytes` bytes as one host access; 32 bytes as two, in ascending order.
///
/// # Safety
/// `at` must be valid for `bytes` bytes: 1, 2, 4, 8, 16 or 32.
#[inline]
pub(super) unsafe fn read_strong(at: *const u8, bytes: u32) -> Words {
    if !is_aligned(at, bytes) {
        // SAFETY: the caller's promise.
        return unsafe { read_words(at, bytes) };
    }
    let at = at.cast_mut();
    // SAFETY: the caller's promise, and it is aligned; kernel memory is only reached through raw pointers and atomics.
    unsafe {
        let one: u64 = match bytes {
            1 => AtomicU8::from_ptr(at).load(Ordering::Relaxed).into(),
            2 => AtomicU16::from_ptr(at.cast()).load(Ordering::Relaxed).into(),
            4 => AtomicU32::from_ptr(at.cast()).load(Ordering::Relaxed).into(),
            8 => AtomicU64::from_ptr(at.cast()).load(Ordering::Relaxed),
            _ => {
                let [low, high] = read_16(at);
                let [third, fourth] = if bytes == 32 { read_16(at.add(16)) } else { [0; 2] };
                return [low, high, third, fourth];
            }
        };
        [one, 0, 0, 0]
    }
}

/// Reads 16 bytes as one access of the host.
///
/// # Safety
/// `at` must be valid for 16 bytes and aligned to 16.
#[inline]
unsafe fn read_16(at: *mut u8) -> [u64; 2] {
    // SAFETY: the caller's promise.
    let value = unsafe { AtomicU128::from_ptr(at.cast()) }.load(Ordering::Relaxed);
    [value as u64, (value >> 64) as u64]
}

/// Writes `bytes` bytes as one host access; 32 bytes as two, in ascending order.
///
/// # Safety
/// As for [`read_strong`].
#[inline]
pub(super) unsafe fn write_strong(at: *mut u8, bytes: u32, words: &Words) {
    if !is_aligned(at, bytes) {
        // SAFETY: the caller's promise.
        return unsafe { write_words(at, bytes, words) };
    }
    let wide = |half: usize| u128::from(words[2 * half]) | u128::from(words[2 * half + 1]) << 64;
    // SAFETY: the caller's promise, and it is aligned; kernel memory is only reached through raw pointers and atomics.
    unsafe {
        match bytes {
            1 => AtomicU8::from_ptr(at).store(words[0] as u8, Ordering::Relaxed),
            2 => AtomicU16::from_ptr(at.cast()).store(words[0] as u16, Ordering::Relaxed),
            4 => AtomicU32::from_ptr(at.cast()).store(words[0] as u32, Ordering::Relaxed),
            8 => AtomicU64::from_ptr(at.cast()).store(words[0], Ordering::Relaxed),
            _ => {
                AtomicU128::from_ptr(at.cast()).store(wide(0), Ordering::Relaxed);
                if bytes == 32 {
                    AtomicU128::from_ptr(at.add(16).cast()).store(wide(1), Ordering::Relaxed);
                }
            }
        }
    }
}

/// Reads `bytes` bytes for a weak access.
///
/// # Safety
/// As for [`read_strong`].
#[inline]
pub(super) unsafe fn read_words(at: *const u8, bytes: u32) -> Words {
    let mut words = [0; 4];
    // SAFETY: the caller's promise.
    unsafe {
        if bytes <= 8 {
            words[0] = read(at, bytes, false);
        } else {
            for (i, word) in words.iter_mut().enumerate().take(bytes as usize / 8) {
                *word = read(at.add(8 * i), 8, false);
            }
        }
    }
    words
}

/// Writes `bytes` bytes for a weak access.
///
/// # Safety
/// As for [`read_strong`].
#[inline]
pub(super) unsafe fn write_words(at: *mut u8, bytes: u32, words: &Words) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1..=8 => write(at, bytes, words[0]),
            16 => memory::write(at, [words[0], words[1]]),
            _ => memory::write(at, *words),
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;

    /// Memory that two host threads share.
    #[repr(align(32))]
    struct Place([AtomicU8; 32]);

    /// One host thread writes values whose bytes are all equal; another thread reads until it has seen enough of
    /// them.
    #[test]
    fn accesses_of_up_to_16_bytes_are_whole() {
        for bytes in [2, 4, 8, 16, 32] {
            let (place, done) = (Place(std::array::from_fn(|_| AtomicU8::new(0))), AtomicBool::new(false));
            let at = || place.0.as_ptr().cast_mut().cast::<u8>();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for byte in (0..=u8::MAX).cycle().take_while(|_| !done.load(Ordering::Relaxed)) {
                        let word = u64::from_ne_bytes([byte; 8]);
                        // SAFETY: the place has room for 32 bytes, which are only reached through atomics.
                        unsafe { write_strong(at(), bytes, &[word; 4]) };
                    }
                });
                let (mut values, mut last, start) = (0, 0, Instant::now());
                let mut torn = None;
                while values < 50_000 && start.elapsed() < Duration::from_secs(1) && torn.is_none() {
                    // SAFETY: as above.
                    let words = unsafe { read_strong(at(), bytes) };
                    values += u32::from(words[0] != last);
                    last = words[0];
                    let seen = words.map(u64::to_ne_bytes).concat();
                    let mut accesses = seen[..bytes as usize].chunks(16);
                    torn =
                        accesses.any(|access| access.iter().any(|&byte| byte != access[0])).then_some(words);
                }
                done.store(true, Ordering::Relaxed);
                assert_eq!(torn, None, "{bytes} bytes, after {values} values");
            });
        }
    }
}
