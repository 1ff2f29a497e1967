//! The allocations of global memory at one point in time.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::storage::Storage;
use super::{ARENA_BASE, Extent, HOST_MEMORY, MAPPED_BASE, NARROW_BASE, SHARED_WINDOW};
use crate::fault::FaultKind;

/// The least number of bytes after an allocation that belong to no allocation.
const RED_ZONE: u64 = 256;
/// Allocations begin at multiples of the size of the remaining region, shifted right by this number: 128 GiB at first,
/// and small enough for millions of allocations. The gap before each is at least half of that. At first, a 32-bit index
/// times 16 bytes stays within it.
const STEP_SHIFT: u32 = 18;
/// The same for 32-bit addresses: 16 MiB at first.
const NARROW_STEP_SHIFT: u32 = 7;
/// Where a region tells allocations apart by low bits, so many of them. Dr.Jit compares 34 (two pointers shifted right
/// by 2, as 32 bits).
const LOW_BITS: u32 = 34;
/// There allocations begin at multiples of their size, within these bounds: a GPU aligns small ones for textures, and
/// large ones to pages. Taichi's memory has room for the alignment of its first piece only if it begins at a page.
const GRANULES: [u64; 2] = [512, 2 << 20];

/// One allocation of global memory. A freed allocation stays in the table without storage, to recognise stale pointers.
pub struct Allocation {
    base: u64,
    bytes: u64,
    backing: Backing,
    name: Cow<'static, str>,
}

/// Allocations that a launch may not reach: the first address of each, and why, in words that follow its name.
pub type Withheld = [(u64, Arc<str>)];

/// What keeps memory of the host: that stays until the last launch which uses it has ended, and drops this.
pub type Keeper = Arc<dyn Any + Send + Sync>;

/// The storage of an allocation.
enum Backing {
    /// Its own storage.
    Owned(Storage),
    /// Memory of the host, while it is mapped, and what keeps it, if that is not the one who mapped it.
    Mapped(NonNull<u8>, #[expect(dead_code, reason = "it is only kept")] Option<Keeper>),
    /// All memory of the host. Cannot be freed.
    Window(Option<NonNull<u8>>),
    /// Freed.
    Freed,
    /// Kept from the launch that has this table, with the reason.
    Withheld(Arc<str>),
}

// SAFETY: the storage is plain bytes, which live as long as the allocation. (Memory of the host lives as long as the
// caller who opened or mapped it promised.) Kernels and the host reach the bytes through raw pointers and atomics,
// never through references.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// An allocation at a place from [`Table::place`].
    pub(super) fn new(base: u64, bytes: u64, name: String, storage: Storage) -> Allocation {
        Allocation { base, bytes, backing: Backing::Owned(storage), name: name.into() }
    }

    /// An allocation that maps memory of the host at a device address.
    pub(super) fn mapped(
        base: u64,
        bytes: u64,
        name: String,
        start: NonNull<u8>,
        keeper: Option<Keeper>,
    ) -> Allocation {
        Allocation { base, bytes, backing: Backing::Mapped(start, keeper), name: name.into() }
    }

    /// A window of addresses that are addresses of the host.
    pub(super) fn of_host(addresses: Range<u64>) -> Allocation {
        let Range { start: base, end } = addresses;
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(base as usize));
        Allocation { base, bytes: end - base, backing: Backing::Window(start), name: "host memory".into() }
    }

    /// The allocation after it is freed.
    fn freed(&self) -> Allocation {
        Allocation { base: self.base, bytes: self.bytes, backing: Backing::Freed, name: self.name.clone() }
    }

    /// Its name in messages ("argument 2", "variable `table`").
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The allocation for a launch that may not reach it.
    fn withheld(&self, why: &Arc<str>) -> Allocation {
        let backing = Backing::Withheld(Arc::clone(why));
        Allocation { base: self.base, bytes: self.bytes, backing, name: self.name.clone() }
    }

    /// Why accesses to it fault, in words that follow its name.
    pub fn why_gone(&self) -> Option<&str> {
        match &self.backing {
            Backing::Freed => Some("which was freed"),
            Backing::Withheld(why) => Some(why),
            _ => None,
        }
    }

    /// Whether it was freed.
    fn is_freed(&self) -> bool {
        matches!(self.backing, Backing::Freed)
    }

    /// Its addresses and storage.
    #[inline]
    pub fn extent(&self) -> Extent {
        let start = match &self.backing {
            Backing::Owned(storage) => Some(storage.start()),
            Backing::Mapped(start, _) => Some(*start),
            Backing::Window(start) => *start,
            Backing::Freed | Backing::Withheld(_) => None,
        };
        let withheld = matches!(self.backing, Backing::Withheld(_));
        Extent { base: self.base, bytes: self.bytes, storage: start.map(NonNull::as_ptr), withheld }
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{} {:?}", self.base, self.bytes, self.name)
    }
}

/// Another allocation overlaps these addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressTaken;

impl fmt::Display for AddressTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("something else lies at these addresses")
    }
}

impl std::error::Error for AddressTaken {}

/// All allocations of a device, in ascending order of address. A copy is cheap: it shares the allocations.
///
/// A launch uses the table of the time when it was prepared. So an allocation that is freed during the launch keeps its
/// storage until the launch has ended, and `free` never waits for a launch.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: Vec<Entry>,
    /// The number of freed allocations in `entries`.
    freed: usize,
}

/// The most freed allocations that the table keeps apart.
const MOST_FREED: usize = 1 << 16;

/// An allocation, and its first address.
type Entry = (u64, Arc<Allocation>);

/// A region of addresses for allocations, and the width of the gaps between them.
struct Region {
    range: Range<u64>,
    step_shift: u32,
    /// Whether the low bits of addresses go on from one allocation to the next, as they would without gaps. Programs
    /// written for a GPU compare them instead of whole pointers: what such a program has lies close together there.
    low_bits_go_on: bool,
}

/// Below the windows of the generic address space.
const NARROW: Region =
    Region { range: NARROW_BASE..SHARED_WINDOW, step_shift: NARROW_STEP_SHIFT, low_bits_go_on: false };
/// Above these windows.
const WIDE: Region = Region { range: ARENA_BASE..MAPPED_BASE, step_shift: STEP_SHIFT, low_bits_go_on: false };
/// The part of `WIDE` that contains no address of the host.
const APART: Region =
    Region { range: HOST_MEMORY.end..MAPPED_BASE, step_shift: STEP_SHIFT, low_bits_go_on: true };

/// Which addresses an allocation may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addresses {
    /// 32-bit addresses if there is room.
    Narrow,
    /// 64-bit addresses.
    Wide,
    /// Addresses that the host cannot have.
    ApartFromHost,
}

impl Region {
    /// The first free address with room for `bytes` bytes, and the index for its allocation.
    fn place(&self, allocations: &[Entry], bytes: u64, align: u64) -> Option<(u64, usize)> {
        let index = allocations.partition_point(|(base, _)| *base < self.range.end);
        let before = allocations[..index]
            .last()
            .map(|(_, a)| a)
            .filter(|a| a.base + a.bytes.max(1) > self.range.start);
        let base = match before.map(|a| a.base + a.bytes) {
            None => self.range.start.checked_next_multiple_of(align)?,
            Some(end) => {
                let step = self.range.end.saturating_sub(end) >> self.step_shift;
                let step = step.checked_ilog2().map_or(0, |log| 1 << log).max(2 * RED_ZONE);
                let base = end.checked_add(step / 2)?.checked_next_multiple_of(step.max(align))?;
                let low = match self.low_bits_go_on {
                    true => {
                        let granule = bytes.min(GRANULES[1]).next_power_of_two().max(GRANULES[0]);
                        (end & (step.min(1 << LOW_BITS) - 1)).next_multiple_of(align.max(granule))
                    }
                    false => 0,
                };
                base.checked_add(low)?
            }
        };
        let end = base.checked_add(bytes)?.checked_add(RED_ZONE)?;
        (end <= self.range.end).then_some((base, index))
    }
}

impl Table {
    /// The address for an allocation of `bytes` bytes, and its index in the table.
    pub(crate) fn place(&self, bytes: u64, align: u64, addresses: Addresses) -> Option<(u64, usize)> {
        let place = |region: Region| region.place(&self.entries, bytes, align);
        match addresses {
            Addresses::Narrow => place(NARROW).or_else(|| place(WIDE)),
            Addresses::Wide => place(WIDE),
            Addresses::ApartFromHost => place(APART),
        }
    }

    /// Adds an allocation at a given address. Forgets freed allocations that overlap it.
    ///
    /// # Errors
    /// When a live allocation overlaps it.
    pub fn insert_at(&mut self, allocation: Allocation) -> Result<(), AddressTaken> {
        let (base, end) = (allocation.base, allocation.base.checked_add(allocation.bytes.max(1)));
        let end = end.ok_or(AddressTaken)?;
        let after = self.entries.partition_point(|(other, _)| *other < end);
        let overlaps = |(other, entry): &&Entry| *other + entry.bytes.max(1) > base;
        let count = self.entries[..after].iter().rev().take_while(overlaps).count();
        let overlapped = after - count..after;
        if self.entries[overlapped.clone()].iter().any(|(_, entry)| !entry.is_freed()) {
            return Err(AddressTaken);
        }
        self.freed -= count;
        self.entries.splice(overlapped, [(base, Arc::new(allocation))]);
        Ok(())
    }

    /// Adds an allocation at the place that [`Table::place`] returned.
    pub fn insert(&mut self, index: usize, allocation: Allocation) {
        self.entries.insert(index, (allocation.base, Arc::new(allocation)));
    }

    /// Gives an allocation other memory of the host, as mapped. Users that still hold the allocation keep its storage alive.
    ///
    /// # Errors
    /// When `address` is not the first byte of a live allocation, or is the window of all host memory.
    pub fn move_to(&mut self, address: u64, start: NonNull<u8>, keeper: Keeper) -> Result<(), FaultKind> {
        let found = self.entries.binary_search_by_key(&address, |(base, _)| *base);
        let allocation = found.map(|index| &mut self.entries[index].1).map_err(|_| FaultKind::OutOfBounds)?;
        if !matches!(allocation.backing, Backing::Owned(_) | Backing::Mapped(..)) {
            return Err(FaultKind::UseAfterFree);
        }
        let moved = Backing::Mapped(start, Some(keeper));
        *allocation = Arc::new(Allocation {
            base: allocation.base,
            bytes: allocation.bytes,
            backing: moved,
            name: allocation.name.clone(),
        });
        Ok(())
    }

    /// Removes the storage of an allocation. Users that still hold the allocation keep the storage alive.
    ///
    /// # Errors
    /// When `address` is not the first byte of a live allocation, or is the window of all host memory.
    pub fn free(&mut self, address: u64) -> Result<(), FaultKind> {
        let found = self.entries.binary_search_by_key(&address, |(base, _)| *base);
        let allocation = found.map(|index| &mut self.entries[index].1).map_err(|_| FaultKind::InvalidFree)?;
        if !matches!(allocation.backing, Backing::Owned(_) | Backing::Mapped(..)) {
            return Err(FaultKind::InvalidFree);
        }
        *allocation = Arc::new(allocation.freed());
        self.freed += 1;
        if self.freed > MOST_FREED {
            self.join_freed();
        }
        Ok(())
    }

    /// The table without the storage of some allocations, which are given by first address, each with the reason.
    pub fn without(&self, withheld: &Withheld) -> Table {
        let mut table = self.clone();
        for (address, why) in withheld {
            if let Ok(index) = table.entries.binary_search_by_key(address, |(base, _)| *base)
                && !table.entries[index].1.is_freed()
            {
                let (_, allocation) = &mut table.entries[index];
                *allocation = Arc::new(allocation.withheld(why));
            }
        }
        table
    }

    /// Merges adjacent freed allocations.
    fn join_freed(&mut self) {
        self.entries.dedup_by(|(_, next), (_, first)| {
            let both = next.is_freed() && first.is_freed();
            if both {
                let (base, end) = (first.base, next.base + next.bytes);
                let name = "memory that was freed".into();
                *first = Arc::new(Allocation { base, bytes: end - base, backing: Backing::Freed, name });
            }
            both
        });
        self.freed = self.entries.iter().filter(|(_, allocation)| allocation.is_freed()).count();
    }

    /// The allocation at or before `address`: the one that contains it, if any does.
    #[inline]
    pub fn find(&self, address: u64) -> Option<&Arc<Allocation>> {
        let after = self.entries.partition_point(|(base, _)| *base <= address);
        self.entries[..after].last().map(|(_, allocation)| allocation)
    }

    /// The allocation nearest to `address`, for error messages.
    pub fn nearest(&self, address: u64) -> Option<&Allocation> {
        let after = self.entries.partition_point(|(base, _)| *base <= address);
        let before = self.entries[..after].last().map(|(_, allocation)| &**allocation);
        let next = self.entries.get(after).map(|(_, allocation)| &**allocation);
        match (before, next) {
            (Some(b), Some(n)) if n.base - address < address.saturating_sub(b.base + b.bytes) => Some(n),
            (Some(b), _) => Some(b),
            (None, next) => next,
        }
    }

    /// Whether the table has no allocations.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether all memory has bounds and only one device address.
    pub fn is_memory_once(&self) -> bool {
        let mut mapped = Vec::new();
        for (_, allocation) in &self.entries {
            match allocation.backing {
                Backing::Window(_) => return false,
                Backing::Mapped(start, _) => mapped.push((start.addr().get() as u64, allocation.bytes)),
                Backing::Owned(_) | Backing::Freed | Backing::Withheld(_) => {}
            }
        }
        mapped.sort_unstable();
        mapped.windows(2).all(|pair| pair[0].0.saturating_add(pair[0].1) <= pair[1].0)
    }

    /// All allocations, freed ones included.
    #[cfg(test)]
    pub fn allocations(&self) -> impl Iterator<Item = &Allocation> {
        self.entries.iter().map(|(_, allocation)| &**allocation)
    }
}
