//! Global memory: allocations with bounds and lifetimes.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;

use super::ARENA_BASE;
use crate::fault::FaultKind;

/// Alignment of every allocation in bytes, as `cudaMalloc` promises.
const ALIGN: u64 = 256;
/// Bytes behind an allocation that belong to nobody.
const RED_ZONE: u64 = 256;

/// One allocation of global memory. A freed one is kept, without storage, to recognise stale pointers.
pub struct Allocation {
    base: u64,
    bytes: u64,
    storage: Option<NonNull<u8>>,
    name: String,
}

// SAFETY: the storage is plain bytes owned by the allocation; kernels race on it by design and reach it
// only through raw pointers and atomics, never through references.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// First device address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the owner called it ("argument 2", "variable `table`").
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It was given back.
    pub fn is_freed(&self) -> bool {
        self.storage.is_none()
    }

    /// Host address of the first byte; `None` once freed.
    pub(crate) fn storage(&self) -> Option<*mut u8> {
        self.storage.map(NonNull::as_ptr)
    }

    fn layout(bytes: u64) -> Option<Layout> {
        // At least one byte, so that an empty array has an address of its own.
        Layout::from_size_align(usize::try_from(bytes.max(1)).ok()?, ALIGN as usize).ok()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let (Some(storage), Some(layout)) = (self.storage, Allocation::layout(self.bytes)) {
            // SAFETY: `storage` came from `alloc_zeroed` with this very layout and is given back once.
            unsafe { dealloc(storage.as_ptr(), layout) }
        }
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{} {:?}", self.base, self.bytes, self.name)
    }
}

/// The host has no room for an array of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Size asked for, in bytes.
    pub bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: an allocation of {} bytes is not possible here", self.bytes)
    }
}

impl std::error::Error for OutOfMemory {}

/// All allocations of a device, in ascending order of address.
#[derive(Debug, Default)]
pub struct Arena {
    allocations: Vec<Allocation>,
}

impl Arena {
    /// Reserves `bytes` zeroed bytes and returns their device address.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate(&mut self, bytes: u64, name: impl Into<String>) -> Result<u64, OutOfMemory> {
        let end = self.allocations.last().map_or(ARENA_BASE, |a| a.base + a.bytes + RED_ZONE);
        let base = end.next_multiple_of(ALIGN);
        let layout = Allocation::layout(bytes)
            .filter(|_| base.checked_add(bytes).is_some_and(|end| end < 1 << 48))
            .ok_or(OutOfMemory { bytes })?;
        // SAFETY: the layout has at least one byte.
        let storage = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(OutOfMemory { bytes })?;
        self.allocations.push(Allocation { base, bytes, storage: Some(storage), name: name.into() });
        Ok(base)
    }

    /// Gives an allocation back. Later accesses to it fault as use after free.
    ///
    /// # Errors
    /// When `address` is not the first byte of a live allocation.
    pub fn free(&mut self, address: u64) -> Result<(), FaultKind> {
        let found = self.allocations.binary_search_by_key(&address, |a| a.base);
        match found.map(|i| &mut self.allocations[i]) {
            Ok(allocation) if !allocation.is_freed() => {
                let (base, bytes) = (allocation.base, allocation.bytes);
                let name = std::mem::take(&mut allocation.name);
                *allocation = Allocation { base, bytes, storage: None, name };
                Ok(())
            }
            _ => Err(FaultKind::InvalidFree),
        }
    }

    /// Copies bytes into device memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), FaultKind> {
        let place = self.resolve(address, data.len() as u64)?;
        // SAFETY: `resolve` returned `data.len()` valid bytes, and no kernel runs while `self` is borrowed.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place, data.len()) }
        Ok(())
    }

    /// Copies bytes out of device memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), FaultKind> {
        let place = self.resolve(address, data.len() as u64)?;
        // SAFETY: `resolve` returned `data.len()` valid bytes.
        unsafe { std::ptr::copy_nonoverlapping(place, data.as_mut_ptr(), data.len()) }
        Ok(())
    }

    /// Host address of `bytes` bytes at device address `address`.
    pub(crate) fn resolve(&self, address: u64, bytes: u64) -> Result<*mut u8, FaultKind> {
        let allocation = self.find(address).ok_or(FaultKind::OutOfBounds)?;
        let offset = address - allocation.base;
        if offset > allocation.bytes || bytes > allocation.bytes - offset {
            return Err(FaultKind::OutOfBounds);
        }
        let storage = allocation.storage().ok_or(FaultKind::UseAfterFree)?;
        // SAFETY: `offset` is at most the size of the allocation.
        Ok(unsafe { storage.add(offset as usize) })
    }

    /// The allocation at or before `address`: the one that contains it, if any does.
    pub(crate) fn find(&self, address: u64) -> Option<&Allocation> {
        let after = self.allocations.partition_point(|a| a.base <= address);
        self.allocations[..after].last()
    }

    /// The allocation that lies nearest to `address`, for error messages.
    pub fn nearest(&self, address: u64) -> Option<&Allocation> {
        let after = self.allocations.partition_point(|a| a.base <= address);
        let before = self.allocations[..after].last();
        let next = self.allocations.get(after);
        match (before, next) {
            (Some(b), Some(n)) if n.base - address < address.saturating_sub(b.base + b.bytes) => Some(n),
            (Some(b), _) => Some(b),
            (None, next) => next,
        }
    }

    /// All allocations, freed ones included.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_lifetime_are_checked() {
        let mut arena = Arena::default();
        let a = arena.allocate(100, "a").unwrap();
        let b = arena.allocate(8, "b").unwrap();
        assert_eq!(a % ALIGN, 0);
        assert!(b >= a + 100 + RED_ZONE);
        arena.write(a + 96, &[1, 2, 3, 4]).unwrap();
        let mut bytes = [0; 4];
        arena.read(a + 96, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4]);
        assert_eq!(arena.write(a + 97, &[0; 4]), Err(FaultKind::OutOfBounds));
        assert_eq!(arena.write(a - 1, &[0]), Err(FaultKind::OutOfBounds));
        assert_eq!(arena.nearest(b - 1).unwrap().name(), "b");
        assert_eq!(arena.nearest(a + 101).unwrap().name(), "a");
        arena.free(a).unwrap();
        assert_eq!(arena.write(a, &[0]), Err(FaultKind::UseAfterFree));
        assert_eq!(arena.free(a), Err(FaultKind::InvalidFree));
        assert_eq!(arena.free(b + 1), Err(FaultKind::InvalidFree));
    }

    #[test]
    fn an_impossible_size_is_refused() {
        assert!(Arena::default().allocate(u64::MAX, "huge").is_err());
        assert!(Arena::default().allocate(1 << 60, "huge").is_err());
    }
}
