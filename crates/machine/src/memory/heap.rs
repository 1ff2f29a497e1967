//! The device heap: memory that kernels get from `malloc` (CUDA C++ Programming Guide, "Dynamic Global Memory
//! Allocation and Operations").

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::{Extent, HEAP_BASE};
use crate::fault::FaultKind;

/// The most live bytes, as `cudaLimitMallocHeapSize` has by default.
pub(crate) const DEFAULT_LIMIT: u64 = 8 << 20;
/// Alignment of every allocation in bytes.
const ALIGN: u64 = 16;
/// Bytes after an allocation that belong to no allocation: a 32-bit index stays within them.
const RED_ZONE: u64 = 1 << 32;

/// Allocations of running kernels. They live until they are freed, across launches.
///
/// Addresses are never reused, so a stale pointer is always recognised. Storage is reused, but only within this heap: a
/// thread may be about to access an allocation that another thread frees.
pub struct Heap {
    limit: AtomicU64,
    blocks: RwLock<Blocks>,
}

#[derive(Default)]
struct Blocks {
    /// In ascending order of address. Freed allocations have no storage.
    extents: Vec<Extent>,
    /// Storage by size, for reuse.
    spare: HashMap<usize, Vec<NonNull<u8>>>,
    /// Bytes that kernels have allocated and not freed.
    live: u64,
    /// Addresses of what is not the kernels': its bytes are not in `live`.
    reserved: HashSet<u64>,
}

// SAFETY: storage is plain bytes owned by the heap; kernels race on it by design and reach it only through
// raw pointers and atomics, never through references.
unsafe impl Send for Blocks {}
// SAFETY: as above.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Adds an allocation of zeroed bytes behind the last one. `None` if `bytes` is 0, or the host has too few.
    fn add(&mut self, bytes: u64) -> Option<u64> {
        if bytes == 0 {
            return None;
        }
        let layout = storage_layout(bytes)?;
        // The host limits sizes, but addresses are never reused and may run out.
        let base = match self.extents.last() {
            Some(last) => (last.base + last.bytes).checked_add(RED_ZONE)?.checked_next_multiple_of(ALIGN)?,
            None => HEAP_BASE,
        };
        base.checked_add(bytes)?;
        let storage = match self.spare.get_mut(&layout.size()).and_then(Vec::pop) {
            Some(storage) => {
                // SAFETY: the storage was made with this layout.
                unsafe { storage.write_bytes(0, layout.size()) }
                storage
            }
            None => {
                // SAFETY: the layout has at least `ALIGN` bytes.
                NonNull::new(unsafe { alloc_zeroed(layout) })?
            }
        };
        self.extents.push(Extent { base, bytes, storage: Some(storage.as_ptr()), withheld: false });
        Some(base)
    }
}

impl Default for Heap {
    fn default() -> Heap {
        Heap { limit: AtomicU64::new(DEFAULT_LIMIT), blocks: RwLock::default() }
    }
}

/// Size of the storage of an allocation: one of few sizes, so that freed storage can be reused.
fn storage_layout(bytes: u64) -> Option<Layout> {
    let size = usize::try_from(bytes.max(ALIGN)).ok()?.checked_next_power_of_two()?;
    Layout::from_size_align(size, ALIGN as usize).ok()
}

impl Heap {
    /// Sets the limit on live bytes.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Reserves zeroed bytes. `None` if the limit leaves too few, or `bytes` is 0.
    pub fn allocate(&self, bytes: u64) -> Option<u64> {
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        if bytes > self.limit.load(Ordering::Relaxed).saturating_sub(blocks.live) {
            return None;
        }
        let base = blocks.add(bytes)?;
        blocks.live += bytes;
        Some(base)
    }

    /// Like [`Heap::allocate`], for memory that is not the kernel's. The limit does not apply to it, and it leaves
    /// kernels as much as before.
    pub fn reserve(&self, bytes: u64) -> Option<u64> {
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let base = blocks.add(bytes)?;
        blocks.reserved.insert(base);
        Some(base)
    }

    /// Frees an allocation. Later accesses fault as use after free.
    ///
    /// # Errors
    /// When `address` is not the start of a live allocation.
    pub fn free(&self, address: u64) -> Result<(), FaultKind> {
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let found = blocks.extents.binary_search_by_key(&address, |extent| extent.base);
        let index = found.map_err(|_| FaultKind::InvalidFree)?;
        let storage = blocks.extents[index].storage.take().and_then(NonNull::new);
        let storage = storage.ok_or(FaultKind::InvalidFree)?;
        let bytes = blocks.extents[index].bytes;
        if !blocks.reserved.remove(&address) {
            blocks.live -= bytes;
        }
        if let Some(layout) = storage_layout(bytes) {
            blocks.spare.entry(layout.size()).or_default().push(storage);
        }
        Ok(())
    }

    /// The allocation at or before `address`: the one that contains it, if any does.
    #[inline]
    pub fn find(&self, address: u64) -> Option<Extent> {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        let after = blocks.extents.partition_point(|extent| extent.base <= address);
        blocks.extents[..after].last().copied()
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let live = self
            .extents
            .iter()
            .filter_map(|extent| Some((NonNull::new(extent.storage?)?, storage_layout(extent.bytes)?)));
        let spare = self.spare.iter().flat_map(|(&size, storage)| {
            let layout = Layout::from_size_align(size, ALIGN as usize).ok();
            storage.iter().filter_map(move |&storage| Some((storage, layout?)))
        });
        for (storage, layout) in live.chain(spare) {
            // SAFETY: each storage came from `alloc_zeroed` with this layout, and is in one of the lists only.
            unsafe { dealloc(storage.as_ptr(), layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_lifetime_and_limit_are_kept() {
        let heap = Heap { limit: AtomicU64::new(100), ..Heap::default() };
        let a = heap.allocate(40).unwrap();
        let b = heap.allocate(60).unwrap();
        assert!(b >= a + 40 + RED_ZONE && a.is_multiple_of(ALIGN) && b.is_multiple_of(ALIGN));
        assert_eq!(heap.allocate(1), None);
        assert_eq!(heap.allocate(0), None);
        assert_eq!(heap.allocate(u64::MAX), None);
        let extent = heap.find(a + 39).unwrap();
        assert!(extent.resolve(a + 39, 1).is_ok());
        assert_eq!(extent.resolve(a + 39, 2), Err(FaultKind::OutOfBounds));
        assert_eq!(heap.free(a + 1), Err(FaultKind::InvalidFree));
        heap.free(a).unwrap();
        assert_eq!(heap.free(a), Err(FaultKind::InvalidFree));
        assert_eq!(heap.find(a).unwrap().resolve(a, 1), Err(FaultKind::UseAfterFree));
        // There is room again.
        assert!(heap.allocate(40).is_some() && heap.allocate(1).is_none());
    }

    #[test]
    fn what_is_not_the_kernels_leaves_them_their_limit() {
        let heap = Heap { limit: AtomicU64::new(100), ..Heap::default() };
        let reserved = heap.reserve(1000).unwrap();
        let a = heap.allocate(100).unwrap();
        assert_eq!(heap.allocate(1), None);
        heap.free(reserved).unwrap();
        assert_eq!(heap.allocate(1), None);
        heap.free(a).unwrap();
        assert!(heap.allocate(100).is_some());
    }

    #[test]
    fn storage_is_reused_zeroed_at_a_new_address() {
        let heap = Heap::default();
        let a = heap.allocate(100).unwrap();
        let first = heap.find(a).unwrap().resolve(a, 100).unwrap();
        // SAFETY: 100 bytes of the heap's own storage.
        unsafe { first.write_bytes(0xff, 100) }
        heap.free(a).unwrap();
        let b = heap.allocate(120).unwrap();
        let second = heap.find(b).unwrap().resolve(b, 120).unwrap();
        assert_eq!(first, second);
        assert_ne!(a, b);
        // SAFETY: as above.
        assert!(unsafe { std::slice::from_raw_parts(second, 120) }.iter().all(|&byte| byte == 0));
    }
}
