//! Global memory: allocations with bounds and lifetimes.
//!
//! No operation holds the lock for long, but a move of an allocation to other memory. A copy finds its allocation in the table and releases the lock. A launch uses
//! the table of the time when it was prepared; a change replaces the whole table while a launch uses it. So memory that
//! is freed during a launch stays until the launch has ended, and a launch does not see later allocations.

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::host;
use super::storage::Storage;
use super::table::{AddressTaken, Addresses, Allocation, Keeper, Table, Withheld};
use super::{ALIGN, HOST_MEMORY};
use crate::fault::FaultKind;

/// The host has no room for an allocation of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The requested size in bytes.
    pub bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: an allocation of {} bytes is not possible here", self.bytes)
    }
}

impl std::error::Error for OutOfMemory {}

/// Host memory can be opened only on a device without allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemoryError;

impl fmt::Display for HostMemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("host memory must be opened before anything is allocated or loaded on the device")
    }
}

impl std::error::Error for HostMemoryError {}

/// Global memory. Any thread may allocate, free and copy at any time, also while kernels run.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// Copied on a change if a launch uses it.
    table: RwLock<Arc<Table>>,
    /// Allocations get 32-bit addresses.
    narrow: AtomicBool,
    /// Allocations avoid the addresses that the host could have.
    apart: AtomicBool,
    /// Variables of modules end at multiples of so many bytes; 0 and 1: where they end.
    variable_granule: AtomicU64,
    /// The table without what some launches may not reach, as it is now.
    without: Mutex<Vec<(Arc<Withheld>, Arc<Table>)>>,
}

impl Arena {
    /// The current allocations.
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn without(&self) -> MutexGuard<'_, Vec<(Arc<Withheld>, Arc<Table>)>> {
        self.without.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current allocations without the storage of some. A table is made once for a list, until something changes.
    pub fn table_without(&self, withheld: &Arc<Withheld>) -> Arc<Table> {
        let mut tables = self.without();
        if let Some((_, table)) = tables.iter().find(|(list, _)| Arc::ptr_eq(list, withheld)) {
            return Arc::clone(table);
        }
        let table = Arc::new(self.table().without(withheld));
        tables.push((Arc::clone(withheld), Arc::clone(&table)));
        table
    }

    /// Changes the table under the lock. `change` must be quick.
    fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let result = change(Arc::make_mut(&mut table));
        drop(table);
        // They keep memory, so they go without the lock.
        drop(std::mem::take(&mut *self.without()));
        result
    }

    /// Gives variables of later modules zeros behind them, up to a multiple of so many bytes.
    pub fn round_variables_up(&self, granule: u64) {
        self.variable_granule.store(granule, Ordering::Relaxed);
    }

    /// The bytes of memory for a variable with so many.
    pub fn variable_bytes(&self, bytes: u64) -> u64 {
        let granule = self.variable_granule.load(Ordering::Relaxed).max(1);
        bytes.checked_next_multiple_of(granule).unwrap_or(bytes)
    }

    /// Reserves `bytes` zeroed bytes and returns their device address.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate(&self, bytes: u64, name: impl Into<String>) -> Result<u64, OutOfMemory> {
        self.allocate_aligned(bytes, ALIGN, false, name)
    }

    /// Like [`Arena::allocate`], at a multiple of `align`, with a 32-bit address if `narrow`.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate_aligned(
        &self,
        bytes: u64,
        align: u64,
        narrow: bool,
        name: impl Into<String>,
    ) -> Result<u64, OutOfMemory> {
        let refused = OutOfMemory { bytes };
        let addresses = match () {
            () if narrow || self.narrow.load(Ordering::Relaxed) => Addresses::Narrow,
            () if self.apart.load(Ordering::Relaxed) => Addresses::ApartFromHost,
            () => Addresses::Wide,
        };
        // Before allocating storage, check that there is room among the addresses.
        self.table().place(bytes, align, addresses).ok_or(refused)?;
        let (storage, name) = (Storage::zeroed(bytes).ok_or(refused)?, name.into());
        self.change(|table| {
            let (base, index) = table.place(bytes, align, addresses).ok_or(refused)?;
            table.insert(index, Allocation::new(base, bytes, name, storage));
            Ok(base)
        })
    }

    /// Makes later allocations get 32-bit addresses while there is room for them.
    pub fn use_narrow_addresses(&self) {
        self.narrow.store(true, Ordering::Relaxed);
    }

    /// Makes later allocations avoid the addresses that the host could have, so that an address identifies its owner.
    pub fn keep_apart_from_host(&self) {
        self.apart.store(true, Ordering::Relaxed);
    }

    /// Reserves `bytes` zeroed bytes that have the same address on the host and on the device, and returns that address.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate_shared_with_host(
        &self,
        bytes: u64,
        name: impl Into<String>,
    ) -> Result<NonNull<u8>, OutOfMemory> {
        let refused = OutOfMemory { bytes };
        let (storage, name) = (Storage::zeroed(bytes).ok_or(refused)?, name.into());
        let start = storage.start();
        let base = start.as_ptr().expose_provenance() as u64;
        let inserted = self.change(|table| table.insert_at(Allocation::new(base, bytes, name, storage)));
        inserted.map(|()| start).map_err(|AddressTaken| refused)
    }

    /// Reserves `bytes` zeroed bytes at the address of an earlier, freed allocation.
    ///
    /// # Errors
    /// When another allocation overlaps, or the host cannot provide that much memory.
    pub fn allocate_at(&self, address: u64, bytes: u64, name: impl Into<String>) -> Result<(), OutOfMemory> {
        let refused = OutOfMemory { bytes };
        let (storage, name) = (Storage::zeroed(bytes).ok_or(refused)?, name.into());
        let inserted = self.change(|table| table.insert_at(Allocation::new(address, bytes, name, storage)));
        inserted.map_err(|AddressTaken| refused)
    }

    /// Maps memory of the host at a device address.
    ///
    /// # Errors
    /// When another allocation overlaps.
    ///
    /// # Safety
    /// `start` must point to `bytes` bytes that stay readable and writable until the mapping is freed with
    /// [`Arena::free`] and all launches that began before that have ended.
    pub unsafe fn map_at(
        &self,
        address: u64,
        start: NonNull<u8>,
        bytes: u64,
        name: impl Into<String>,
    ) -> Result<(), AddressTaken> {
        let allocation = Allocation::mapped(address, bytes, name.into(), start, None);
        self.change(|table| table.insert_at(allocation))
    }

    /// Like [`Arena::map_at`], of memory that something keeps. That is dropped when nobody uses the memory any more.
    ///
    /// # Errors
    /// When another allocation overlaps.
    ///
    /// # Safety
    /// `start` must point to `bytes` bytes that stay readable and writable as long as `keeper` is kept.
    pub unsafe fn map_kept(
        &self,
        address: u64,
        start: NonNull<u8>,
        bytes: u64,
        name: impl Into<String>,
        keeper: Keeper,
    ) -> Result<(), AddressTaken> {
        let allocation = Allocation::mapped(address, bytes, name.into(), start, Some(keeper));
        self.change(|table| table.insert_at(allocation))
    }

    /// Moves an allocation to other memory of the host, bytes included. It keeps its address.
    ///
    /// # Errors
    /// When `address` is not the first byte of a live allocation.
    ///
    /// # Safety
    /// As for [`Arena::map_kept`]: `start` must point to as many bytes as the allocation has.
    pub unsafe fn move_to(&self, address: u64, start: NonNull<u8>, keeper: Keeper) -> Result<(), FaultKind> {
        let table = self.table();
        let allocation = table.find(address).ok_or(FaultKind::OutOfBounds)?;
        let bytes = allocation.extent().bytes;
        let from = allocation.extent().resolve(address, bytes)?;
        // Nobody finds the allocation while its bytes are on their way.
        self.change(|table| {
            // SAFETY: both have these bytes, and this function keeps the allocation.
            unsafe { host::copy(from, start.as_ptr(), bytes as usize) }
            table.move_to(address, start, keeper)
        })
    }

    /// Opens the window of host memory: the addresses that it covers become addresses of the host, without bounds or
    /// lifetime. Later allocations get higher addresses.
    ///
    /// # Errors
    /// When there are allocations already: their addresses would be ambiguous.
    ///
    /// # Safety
    /// Kernels may then read and write all memory of this process. The caller of a launch is responsible for its accesses.
    pub unsafe fn open_host_memory(&self) -> Result<(), HostMemoryError> {
        self.change(|table| {
            if !table.is_empty() {
                return Err(HostMemoryError);
            }
            table.insert(0, Allocation::of_host(HOST_MEMORY));
            Ok(())
        })
    }

    /// Frees an allocation. Accesses by later launches fault as use after free.
    ///
    /// # Errors
    /// When `address` is not the first byte of a live allocation.
    pub fn free(&self, address: u64) -> Result<(), FaultKind> {
        // Returning large storage to the host takes a while. Keep it alive until the lock has been released.
        let held = self.table().find(address).cloned();
        let freed = self.change(|table| table.free(address));
        drop(held);
        freed
    }

    /// Copies bytes into device memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), FaultKind> {
        let memory = self.resolve(address, data.len() as u64)?;
        // SAFETY: these are `data.len()` bytes of device memory, which lives as long as `memory`.
        unsafe { host::write(memory.start, data) }
        Ok(())
    }

    /// Copies bytes out of device memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), FaultKind> {
        let memory = self.resolve(address, data.len() as u64)?;
        // SAFETY: these are `data.len()` bytes of device memory, which lives as long as `memory`.
        unsafe { host::read(memory.start, data) }
        Ok(())
    }

    /// Copies bytes from a pointer of the host into device memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    ///
    /// # Safety
    /// `from` must point to `bytes` readable bytes.
    pub unsafe fn copy_in(&self, address: u64, from: *const u8, bytes: u64) -> Result<(), FaultKind> {
        let memory = self.resolve(address, bytes)?;
        // SAFETY: the caller's promise for `from`. `memory` is `bytes` bytes of device memory and lives until the end
        // of this function.
        unsafe { host::copy(from, memory.start, bytes as usize) }
        Ok(())
    }

    /// Copies bytes from device memory to a pointer of the host.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    ///
    /// # Safety
    /// `to` must point to `bytes` writable bytes.
    pub unsafe fn copy_out(&self, address: u64, to: *mut u8, bytes: u64) -> Result<(), FaultKind> {
        let memory = self.resolve(address, bytes)?;
        // SAFETY: the caller's promise for `to`. `memory` is `bytes` bytes of device memory and lives until the end of
        // this function.
        unsafe { host::copy(memory.start, to, bytes as usize) }
        Ok(())
    }

    /// Copies bytes within device memory. The ranges may overlap; the destination gets the old bytes of the source.
    ///
    /// # Errors
    /// When a range is not within one live allocation.
    pub fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), FaultKind> {
        let (source, target) = (self.resolve(from, bytes)?, self.resolve(to, bytes)?);
        // SAFETY: both are `bytes` bytes of device memory, which live as long as `source` and `target`.
        unsafe { host::copy(source.start, target.start, bytes as usize) }
        Ok(())
    }

    /// Fills a range of device memory with a repeated pattern.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn fill(&self, address: u64, pattern: &[u8], bytes: u64) -> Result<(), FaultKind> {
        let memory = self.resolve(address, bytes)?;
        // SAFETY: these are `bytes` bytes of device memory, which lives as long as `memory`.
        unsafe { host::fill(memory.start, pattern, bytes as usize) }
        Ok(())
    }

    /// Checks that `bytes` bytes at an address are within one live allocation.
    ///
    /// # Errors
    /// When they are not.
    pub fn check(&self, address: u64, bytes: u64) -> Result<(), FaultKind> {
        self.resolve(address, bytes).map(|_| ())
    }

    /// The host memory of `bytes` bytes at a device address.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn resolve(&self, address: u64, bytes: u64) -> Result<Held, FaultKind> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let allocation = Arc::clone(table.find(address).ok_or(FaultKind::OutOfBounds)?);
        Ok(Held { start: allocation.extent().resolve(address, bytes)?, _allocation: allocation })
    }
}

/// A range of device memory, which stays valid while this value lives, even if the program frees it.
#[derive(Debug)]
pub struct Held {
    start: *mut u8,
    _allocation: Arc<Allocation>,
}

impl Held {
    /// Where the range begins in memory of the host.
    pub fn start(&self) -> *mut u8 {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{ARENA_BASE, MAPPED_BASE, NARROW_BASE, SHARED_WINDOW};

    #[test]
    fn bounds_and_lifetime_are_checked() {
        let arena = Arena::default();
        let a = arena.allocate(100, "a").unwrap();
        let b = arena.allocate(8, "b").unwrap();
        assert_eq!(a % ALIGN, 0);
        // A 32-bit index times 16 bytes does not reach the next allocation.
        assert!(b >= a + 100 + (16 << 32));
        arena.write(a + 96, &[1, 2, 3, 4]).unwrap();
        let mut bytes = [0; 4];
        arena.read(a + 96, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4]);
        assert_eq!(arena.write(a + 97, &[0; 4]), Err(FaultKind::OutOfBounds));
        assert_eq!(arena.write(a - 1, &[0]), Err(FaultKind::OutOfBounds));
        assert_eq!(arena.table().nearest(b - 1).unwrap().name(), "b");
        assert_eq!(arena.table().nearest(a + 101).unwrap().name(), "a");
        arena.free(a).unwrap();
        assert_eq!(arena.write(a, &[0]), Err(FaultKind::UseAfterFree));
        assert_eq!(arena.free(a), Err(FaultKind::InvalidFree));
        assert_eq!(arena.free(b + 1), Err(FaultKind::InvalidFree));
    }

    #[test]
    fn narrow_allocations_keep_out_of_the_windows() {
        let arena = Arena::default();
        let wide = arena.allocate(8, "wide").unwrap();
        arena.use_narrow_addresses();
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
        assert!(arena.table().allocations().is_sorted_by_key(|a| a.extent().base));
    }

    #[test]
    fn there_is_room_for_many_allocations_and_every_alignment() {
        let arena = Arena::default();
        for narrow in [false, true] {
            if narrow {
                arena.use_narrow_addresses();
            }
            for i in 0..if cfg!(miri) { 50 } else { 5_000 } {
                arena.allocate(i % 7, "").unwrap();
            }
            assert_eq!(arena.allocate_aligned(1, 1 << 20, false, "").unwrap() % (1 << 20), 0);
        }
        let table = arena.table();
        let all: Vec<_> =
            table.allocations().map(|a| (a.extent().base, a.extent().base + a.extent().bytes)).collect();
        assert!(all.windows(2).all(|pair| pair[1].0 >= pair[0].1 + 256));
        let wide = all.windows(2).filter(|pair| pair[0].0 >= ARENA_BASE);
        assert!(wide.map(|pair| pair[1].0 - pair[0].0).min() > Some(1 << 32));
    }

    #[test]
    fn programs_tell_allocations_apart_by_low_bits() {
        let arena = Arena::default();
        arena.keep_apart_from_host();
        let sizes = [4u64, 8, 1, 4096, 513, 4];
        let bases = sizes.map(|bytes| arena.allocate(bytes, "").unwrap());
        let low = bases.map(|base| base & ((1 << 34) - 1));
        assert_eq!(low, [0, 512, 1024, 4096, 8192, 9216]);
        assert!(bases.windows(2).all(|pair| pair[1] - pair[0] >= 1 << 36));
        assert_eq!(arena.allocate_aligned(4, 1 << 20, false, "").unwrap() & ((1 << 34) - 1), 1 << 20);
    }

    #[test]
    fn host_memory_is_read_in_place_once_it_is_opened() {
        let mut value = [1u8, 2, 3, 4];
        let address = value.as_mut_ptr().expose_provenance() as u64;
        let mut bytes = [0; 4];
        let arena = Arena::default();
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
    fn memory_of_the_host_is_mapped_and_given_back() {
        let arena = Arena::default();
        arena.keep_apart_from_host();
        let own = arena.allocate(16, "own").unwrap();
        assert!(own >= HOST_MEMORY.end);
        let mut bytes = [1u8, 2, 3, 4];
        let start = NonNull::from(&mut bytes).cast::<u8>();
        // SAFETY: they outlive the arena.
        let map = |address| unsafe { arena.map_at(address, start, 4, "mapped") };
        map(MAPPED_BASE).unwrap();
        assert_eq!(map(MAPPED_BASE + 3), Err(AddressTaken));
        assert_eq!(map(u64::MAX), Err(AddressTaken));
        // The next piece follows without a gap.
        map(MAPPED_BASE + 4).unwrap();
        arena.write(MAPPED_BASE + 6, &[7]).unwrap();
        assert_eq!(arena.read(MAPPED_BASE + 2, &mut [0; 4]), Err(FaultKind::OutOfBounds));
        let mut third = [0];
        arena.read(MAPPED_BASE + 2, &mut third).unwrap();
        assert_eq!(third, [7]);
        arena.free(MAPPED_BASE).unwrap();
        assert_eq!(arena.write(MAPPED_BASE, &[0]), Err(FaultKind::UseAfterFree));
        map(MAPPED_BASE).unwrap();
        arena.write(MAPPED_BASE, &[0]).unwrap();
        // Other allocations still get lower addresses.
        assert!(arena.allocate(16, "own").unwrap() < MAPPED_BASE);
    }

    #[test]
    fn what_is_moved_keeps_address_and_bytes() {
        let arena = Arena::default();
        let address = arena.allocate(8, "moved").unwrap();
        arena.write(address, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let before = arena.table();
        let mut place = [0u8; 8];
        let start = NonNull::from(&mut place).cast::<u8>();
        let keeper: Keeper = Arc::new("what keeps it");
        // SAFETY: the place outlives the arena.
        let move_to = |address| unsafe { arena.move_to(address, start, Arc::clone(&keeper)) };
        move_to(address).unwrap();
        arena.write(address, &[9]).unwrap();
        // SAFETY: these are the bytes of `place`, and nobody else uses them now.
        assert_eq!(unsafe { start.cast::<[u8; 8]>().read() }, [9, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(arena.table().find(address).unwrap().name(), "moved");
        // Whoever has the table from before sees the bytes from before.
        // SAFETY: the table keeps them.
        assert_eq!(unsafe { *before.find(address).unwrap().extent().resolve(address, 1).unwrap() }, 1);
        assert!(move_to(address + 1).is_err());
        // Until it is freed, and whoever still uses it then has gone.
        let user = arena.table();
        arena.free(address).unwrap();
        assert_eq!(Arc::strong_count(&keeper), 2);
        drop(user);
        assert_eq!(Arc::strong_count(&keeper), 1);
        assert_eq!(move_to(address), Err(FaultKind::UseAfterFree));
    }

    #[test]
    fn memory_shared_with_the_host_has_one_address() {
        let arena = Arena::default();
        for _ in 0..100 {
            let start = arena.allocate_shared_with_host(300_000, "shared").unwrap();
            let address = start.as_ptr().expose_provenance() as u64;
            arena.write(address + 299_999, &[9]).unwrap();
            // SAFETY: the allocation has this many bytes, and no other thread knows them.
            assert_eq!(unsafe { start.add(299_999).read() }, 9);
            let mut out = [0u8; 2];
            // SAFETY: `out` has two bytes.
            unsafe { arena.copy_out(address + 299_998, out.as_mut_ptr(), 2) }.unwrap();
            assert_eq!(out, [0, 9]);
            // The host allocator returns the same addresses again.
            arena.free(address).unwrap();
        }
        assert!(arena.table().allocations().count() < 100);
    }

    #[test]
    fn an_impossible_size_is_refused() {
        assert!(Arena::default().allocate(u64::MAX, "huge").is_err());
        assert!(Arena::default().allocate(1 << 60, "huge").is_err());
    }

    #[test]
    fn who_has_the_table_keeps_what_is_freed() {
        let arena = Arena::default();
        let address = arena.allocate(1 << 20, "array").unwrap();
        arena.write(address, &[7; 16]).unwrap();
        let table = arena.table();
        arena.free(address).unwrap();
        let other = arena.allocate(1 << 20, "other").unwrap();
        let extent = table.find(address).unwrap().extent();
        // SAFETY: the table keeps it.
        assert_eq!(unsafe { *extent.resolve(address, 1).unwrap() }, 7);
        assert!(table.find(other).unwrap().extent().resolve(other, 1).is_err());
        assert_eq!(
            arena.table().find(address).unwrap().extent().resolve(address, 1),
            Err(FaultKind::UseAfterFree)
        );
    }

    #[test]
    fn copies_within_and_patterns() {
        let arena = Arena::default();
        let a = arena.allocate(16, "a").unwrap();
        arena.fill(a, &[1, 2, 3], 8).unwrap();
        arena.copy(a, a + 2, 8).unwrap();
        let mut bytes = [0; 16];
        arena.read(a, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 1, 2, 3, 1, 2, 3, 1, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(arena.copy(a, a + 9, 8), Err(FaultKind::OutOfBounds));
        assert_eq!(arena.fill(a + 9, &[1], 8), Err(FaultKind::OutOfBounds));
        // Longer ones, forwards and backwards, at every alignment.
        let long = arena.allocate(2000, "long").unwrap();
        let pattern: Vec<u8> = (0..251).collect();
        for (from, to, count) in [(3u64, 10, 1901), (10, 3, 1901), (0, 500, 129), (7, 7, 255), (1, 130, 128)]
        {
            arena.fill(long, &pattern, 2000).unwrap();
            let mut expected = vec![0; 2000];
            arena.read(long, &mut expected).unwrap();
            expected.copy_within(from as usize..(from + count) as usize, to as usize);
            arena.copy(long + from, long + to, count).unwrap();
            let mut bytes = vec![0; 2000];
            arena.read(long, &mut bytes).unwrap();
            assert!(bytes == expected, "{from} {to} {count}");
        }
    }

    #[test]
    fn a_million_arrays_leave_little_behind() {
        let arena = Arena::default();
        let first = arena.allocate(8, "first").unwrap();
        let kept = arena.allocate(8, "kept").unwrap();
        arena.free(first).unwrap();
        let count = if cfg!(miri) { 100 } else { 1_000_000 };
        let addresses: Vec<u64> = (0..count)
            .map(|_| {
                let address = arena.allocate(8, "").unwrap();
                arena.free(address).unwrap();
                address
            })
            .collect();
        let table = arena.table();
        assert!(table.allocations().count() < 70_000);
        let extent = |address| table.find(address).unwrap().extent();
        let freed = |address: &u64| extent(*address).resolve(*address, 8) == Err(FaultKind::UseAfterFree);
        assert!(addresses.iter().all(freed));
        assert_eq!(arena.write(first, &[0]), Err(FaultKind::UseAfterFree));
        assert_eq!(arena.write(kept + 4, &[0; 4]), Ok(()));
    }
}
