//! Memory of the host that stores allocations.
//!
//! Freed memory is kept for the next allocation of the same size: sizes from 128 KiB to 32 MiB, up to 64 MiB in total.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use super::ALIGN;

/// Sizes in bytes that are kept. Getting the pages of such memory from the host again takes longer than clearing it.
/// The host allocator itself keeps smaller sizes.
const KEPT: std::ops::RangeInclusive<usize> = 1 << 17..=(1 << 25) + ALIGN as usize;
/// The most bytes that are kept in total.
const KEPT_BYTES: usize = 1 << 26;

/// From this size on, the host is asked for pages of 2 MiB. Small pages cost a kernel that goes through 200 MB a fifth of its time.
#[cfg(all(target_os = "linux", not(miri)))]
const LARGE: usize = 1 << 22;

/// Freed memory of the host, the oldest first, for reuse by allocations of the same size.
static SPARE: Mutex<VecDeque<Memory>> = Mutex::new(VecDeque::new());

/// One piece of memory from the host allocator.
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it is plain bytes that only its owner can reach.
unsafe impl Send for Memory {}

impl Memory {
    /// Zeroed memory. For large sizes, the host provides pages when they are first touched.
    fn zeroed(layout: Layout) -> Option<Memory> {
        if let Some(memory) = Memory::spare(layout) {
            // SAFETY: the memory has these bytes.
            unsafe { std::ptr::write_bytes(memory.start.as_ptr(), 0, layout.size()) }
            return Some(memory);
        }
        // SAFETY: the layouts of `Storage` have at least `ALIGN` bytes.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let memory = Memory { start, layout };
        #[cfg(all(target_os = "linux", not(miri)))]
        if layout.size() >= LARGE {
            memory.ask_for_large_pages();
        }
        Some(memory)
    }

    /// Where they are not to be had, small ones do as well.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn ask_for_large_pages(&self) {
        const PAGE: usize = 1 << 21;
        let start = self.start.as_ptr();
        let before = start.addr().wrapping_neg() % PAGE;
        let bytes = self.layout.size().saturating_sub(before) / PAGE * PAGE;
        // SAFETY: these are pages of this memory. Their contents stay as they are.
        unsafe { libc::madvise(start.wrapping_add(before).cast(), bytes, libc::MADV_HUGEPAGE) };
    }

    /// Freed memory with this layout.
    fn spare(layout: Layout) -> Option<Memory> {
        if !KEPT.contains(&layout.size()) {
            return None;
        }
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        // Last in, first out: it may still be in a cache.
        let index = spare.iter().rposition(|memory| memory.layout == layout)?;
        spare.remove(index)
    }

    fn give_back(self) {
        if !KEPT.contains(&self.layout.size()) {
            return self.free();
        }
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = self.layout.size() + spare.iter().map(|memory| memory.layout.size()).sum::<usize>();
        while bytes > KEPT_BYTES
            && let Some(oldest) = spare.pop_front()
        {
            bytes -= oldest.layout.size();
            oldest.free();
        }
        spare.push_back(self);
    }

    fn free(self) {
        // SAFETY: `alloc_zeroed` returned it for this layout, and its owner gives it up.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Bytes of the host with the alignment of allocations, zeroed at first.
pub(super) struct Storage {
    /// `None` only while it is dropped.
    memory: Option<Memory>,
    start: NonNull<u8>,
}

// SAFETY: the storage is plain bytes owned by the allocation; kernels race on it by design and reach it only through raw
// pointers and atomics, never through references.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// `bytes` zeroed bytes, if the host has them.
    pub fn zeroed(bytes: u64) -> Option<Storage> {
        // With a small alignment, the host provides zeroed memory without writing zeros. The storage begins at the
        // first address with the required alignment, so the memory has room for that.
        let size = usize::try_from(bytes.checked_add(ALIGN)?).ok()?;
        let memory = Memory::zeroed(Layout::from_size_align(size, 16).ok()?)?;
        let skipped = memory.start.as_ptr().addr().wrapping_neg() % ALIGN as usize;
        // SAFETY: the memory has `ALIGN` bytes more than requested.
        let start = unsafe { memory.start.add(skipped) };
        Some(Storage { memory: Some(memory), start })
    }

    /// Address of the first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.memory.take().into_iter().for_each(Memory::give_back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_is_used_again_and_zero() {
        // No other test allocates this size.
        let bytes = if cfg!(miri) { 131_073 } else { 1_234_567u64 };
        let first = Storage::zeroed(bytes).unwrap();
        let start = first.start();
        // SAFETY: the storage has these bytes.
        unsafe { std::ptr::write_bytes(start.as_ptr(), 0xff, bytes as usize) }
        drop(first);
        let second = Storage::zeroed(bytes).unwrap();
        assert_eq!(second.start(), start);
        // SAFETY: as above.
        let all = unsafe { std::slice::from_raw_parts(second.start().as_ptr(), bytes as usize) };
        assert!(all.iter().all(|&byte| byte == 0));
        // The kept memory is in use.
        assert_ne!(Storage::zeroed(bytes).unwrap().start(), start);
    }

    #[test]
    fn not_everything_is_kept() {
        let sizes = (0..40).map(|i| 3_000_001 + i);
        drop(sizes.map(|bytes| Storage::zeroed(bytes).unwrap()).collect::<Vec<_>>());
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = spare.iter().map(|memory| memory.layout.size()).sum::<usize>();
        assert!(!spare.is_empty() && bytes <= KEPT_BYTES, "{bytes}");
    }
}
