//! Global memory: allocations with bounds and lifetimes.

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;

use super::storage::Storage;
use super::{ALIGN, ARENA_BASE, Extent, HEAP_BASE, HOST_MEMORY, NARROW_BASE, SHARED_WINDOW};
use crate::fault::FaultKind;

/// Fewest bytes behind an allocation that belong to nobody.
const RED_ZONE: u64 = 256;
/// Allocations begin at multiples of the room that is left, shifted right by this: 128 GiB at first, and small enough for
/// millions of allocations. The gap before each is at least half of that: what an index of 32 bits times 16 bytes reaches.
const STEP_SHIFT: u32 = 18;
/// The same where addresses have 32 bits: 16 MiB at first.
const NARROW_STEP_SHIFT: u32 = 7;

/// One allocation of global memory. A freed one is kept, without storage, to recognise stale pointers.
pub struct Allocation {
    base: u64,
    bytes: u64,
    /// Where it begins on the host; absent once freed.
    start: Option<NonNull<u8>>,
    /// What it is stored in; absent once freed, and where the memory is the host's.
    storage: Option<Storage>,
    name: String,
}

// SAFETY: what it points to is plain bytes; kernels race on it by design and reach it
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
        self.start.is_none()
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent { base: self.base, bytes: self.bytes, storage: self.start.map(NonNull::as_ptr) }
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

/// Host memory can be opened on a device without allocations only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemoryError;

impl fmt::Display for HostMemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("host memory must be opened before anything is allocated or loaded on the device")
    }
}

impl std::error::Error for HostMemoryError {}

/// All allocations of a device, in ascending order of address.
#[derive(Debug, Default)]
pub struct Arena {
    allocations: Vec<Allocation>,
    /// Addresses are to have 32 bits.
    narrow: bool,
}

/// Where a part of the arena begins and ends, and how wide its gaps are.
struct Room {
    range: Range<u64>,
    step_shift: u32,
}

/// Below the windows.
const NARROW: Room = Room { range: NARROW_BASE..SHARED_WINDOW, step_shift: NARROW_STEP_SHIFT };
/// Above them.
const WIDE: Room = Room { range: ARENA_BASE..HEAP_BASE, step_shift: STEP_SHIFT };

impl Room {
    /// The first free address that has so many bytes behind it, and where its allocation stands among the others.
    fn place(&self, allocations: &[Allocation], bytes: u64, align: u64) -> Option<(u64, usize)> {
        let index = allocations.partition_point(|a| a.base < self.range.end);
        let before = allocations[..index].last().filter(|a| a.base + a.bytes.max(1) > self.range.start);
        let base = match before.map(|a| a.base + a.bytes) {
            None => self.range.start.checked_next_multiple_of(align)?,
            Some(end) => {
                let step = self.range.end.saturating_sub(end) >> self.step_shift;
                let step = step.checked_ilog2().map_or(0, |log| 1 << log).max(2 * RED_ZONE);
                end.checked_add(step / 2)?.checked_next_multiple_of(step.max(align))?
            }
        };
        let end = base.checked_add(bytes)?.checked_add(RED_ZONE)?;
        (end <= self.range.end).then_some((base, index))
    }
}

impl Arena {
    /// Reserves `bytes` zeroed bytes and returns their device address.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate(&mut self, bytes: u64, name: impl Into<String>) -> Result<u64, OutOfMemory> {
        self.allocate_aligned(bytes, ALIGN, name)
    }

    /// The same at an address that is a multiple of `align`.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate_aligned(
        &mut self,
        bytes: u64,
        align: u64,
        name: impl Into<String>,
    ) -> Result<u64, OutOfMemory> {
        let refused = OutOfMemory { bytes };
        let narrow = if self.narrow { NARROW.place(&self.allocations, bytes, align) } else { None };
        let place = narrow.or_else(|| WIDE.place(&self.allocations, bytes, align));
        let (base, index) = place.ok_or(refused)?;
        let storage = Storage::zeroed(bytes).ok_or(refused)?;
        let (start, storage) = (Some(storage.start()), Some(storage));
        self.allocations.insert(index, Allocation { base, bytes, start, storage, name: name.into() });
        Ok(base)
    }

    /// From now on addresses fit in 32 bits as long as there is room for that, or no longer need to.
    pub fn use_narrow_addresses(&mut self, narrow: bool) {
        self.narrow = narrow;
    }

    /// Whether addresses are to fit in 32 bits.
    pub fn has_narrow_addresses(&self) -> bool {
        self.narrow
    }

    /// Opens the window of host memory: from now on the addresses that it covers are addresses of the host, without
    /// bounds or lifetime. Later allocations lie behind it.
    ///
    /// # Errors
    /// When there are allocations already: their addresses would be ambiguous.
    ///
    /// # Safety
    /// Kernels may then read and write whatever this process can: whoever launches them answers for what they do.
    pub unsafe fn open_host_memory(&mut self) -> Result<(), HostMemoryError> {
        if !self.allocations.is_empty() {
            return Err(HostMemoryError);
        }
        let Range { start, end } = HOST_MEMORY;
        let (base, bytes, name) = (start, end - start, "host memory".to_owned());
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(start as usize));
        self.allocations.push(Allocation { base, bytes, start, storage: None, name });
        Ok(())
    }

    /// Gives an allocation back. Later accesses to it fault as use after free.
    ///
    /// # Errors
    /// When `address` is not the first byte of a live allocation.
    pub fn free(&mut self, address: u64) -> Result<(), FaultKind> {
        let found = self.allocations.binary_search_by_key(&address, |a| a.base);
        match found.map(|i| &mut self.allocations[i]) {
            Ok(allocation) if allocation.storage.is_some() => {
                (allocation.start, allocation.storage) = (None, None);
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
        self.find(address).ok_or(FaultKind::OutOfBounds)?.extent().resolve(address, bytes)
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
        // What an index of 32 bits reaches, and more.
        assert!(b >= a + 100 + (16 << 32));
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
    fn narrow_allocations_keep_out_of_the_windows() {
        let mut arena = Arena::default();
        let wide = arena.allocate(8, "wide").unwrap();
        arena.use_narrow_addresses(true);
        let first = arena.allocate(8, "first").unwrap();
        let second = arena.allocate(8, "second").unwrap();
        assert_eq!((first, wide), (NARROW_BASE, ARENA_BASE));
        assert!(second > first + (1 << 20) && second < SHARED_WINDOW, "{second:#x}");
        // Reserved address space costs no memory until it is written.
        let large = SHARED_WINDOW - second - (100 << 20);
        arena.allocate(large, "large").unwrap();
        let fits = arena.allocate(2000, "fits").unwrap();
        assert!(fits < SHARED_WINDOW, "{fits:#x}");
        let wide = arena.allocate(100 << 20, "does not fit").unwrap();
        assert!(wide > ARENA_BASE, "{wide:#x}");
        assert!(arena.allocate(2000, "fits still").unwrap() < SHARED_WINDOW);
        assert!(arena.allocations().is_sorted_by_key(Allocation::base));
    }

    #[test]
    fn there_is_room_for_many_allocations_and_every_alignment() {
        let mut arena = Arena::default();
        for narrow in [false, true] {
            arena.use_narrow_addresses(narrow);
            for i in 0..5_000 {
                arena.allocate(i % 7, "").unwrap();
            }
            assert_eq!(arena.allocate_aligned(1, 1 << 20, "").unwrap() % (1 << 20), 0);
        }
        let allocations = arena.allocations().windows(2);
        assert!(allocations.clone().all(|pair| pair[1].base >= pair[0].base + pair[0].bytes + RED_ZONE));
        let wide = allocations.filter(|pair| pair[0].base >= ARENA_BASE);
        assert!(wide.map(|pair| pair[1].base - pair[0].base).min() > Some(1 << 32));
    }

    #[test]
    fn host_memory_is_read_in_place_once_it_is_opened() {
        let value = [1u8, 2, 3, 4];
        let address = value.as_ptr().expose_provenance() as u64;
        let mut bytes = [0; 4];
        let mut arena = Arena::default();
        assert!(arena.read(address, &mut bytes).is_err());
        // SAFETY: only `value` is read.
        unsafe { arena.open_host_memory() }.unwrap();
        arena.read(address, &mut bytes).unwrap();
        assert_eq!(bytes, value);
        assert_eq!(arena.read(0, &mut bytes), Err(FaultKind::OutOfBounds));
        let own = arena.allocate(16, "own").unwrap();
        assert!(own >= HOST_MEMORY.end);
        // SAFETY: it is refused.
        assert_eq!(unsafe { arena.open_host_memory() }, Err(HostMemoryError));
        assert_eq!(arena.free(HOST_MEMORY.start), Err(FaultKind::InvalidFree));
    }

    #[test]
    fn an_impossible_size_is_refused() {
        assert!(Arena::default().allocate(u64::MAX, "huge").is_err());
        assert!(Arena::default().allocate(1 << 60, "huge").is_err());
    }
}
