//! Host memory with one address for host and device: which of its pages have never been touched, and how it moves to shared memory.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use crate::lock;
use crate::share::Shared;

/// The page size. If the host has larger pages, touched and untouched ones are not distinguished.
const PAGE: u64 = 4096;
/// New pages, which take memory when they are touched.
const NEW: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
/// Bits of an entry of the kernel's page table (Linux, "pagemap"): the page is present, or has been swapped out.
const TOUCHED: u64 = 3 << 62;

/// New pages of the host, which are unmapped with it.
pub struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is plain memory; whoever uses it synchronizes with the others.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

/// A live [`Pages`].
struct Mapping {
    bytes: usize,
    /// Whether it matters which pages have been touched.
    is_watched: bool,
}

/// The live mappings, by address.
static MAPPINGS: Mutex<BTreeMap<u64, Mapping>> = Mutex::new(BTreeMap::new());

fn mappings() -> MutexGuard<'static, BTreeMap<u64, Mapping>> {
    lock(&MAPPINGS)
}

impl Pages {
    /// Maps new pages, if the host has them. For watched ones it is known which have been touched.
    pub fn map(bytes: u64, is_watched: bool) -> Option<Pages> {
        const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
        let bytes = usize::try_from(bytes.checked_next_multiple_of(PAGE)?).ok()?;
        // SAFETY: it asks for new memory at any address.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, PROTECTION, NEW, -1, 0) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED)?;
        if is_watched {
            // SAFETY: the pages are mapped. Touching one must not make others present.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
        }
        let pages = Pages { start, bytes };
        mappings().insert(pages.address(), Mapping { bytes, is_watched });
        Some(pages)
    }

    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its address, for host and device.
    pub fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        mappings().remove(&self.address());
        // SAFETY: this is the mapping from `map`, and nothing uses it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Whether the memory that begins at an address is watched.
pub fn is_watched(address: u64) -> bool {
    mappings().get(&address).is_some_and(|mapping| mapping.is_watched)
}

/// Makes the mapping that begins at an address one that other processes can open, without changing address or bytes. Returns a second
/// mapping of the same memory, or nothing if no mapping begins there.
///
/// # Safety
/// Nothing may use the pages meanwhile.
pub unsafe fn share(address: u64) -> Option<std::io::Result<Shared>> {
    let mappings = mappings();
    let bytes = mappings.get(&address)?.bytes;
    let start = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(address as usize))?;
    let share = || {
        let shared = Shared::new(bytes)?;
        // SAFETY: both mappings have these bytes, and the caller promises that nobody uses the pages.
        unsafe {
            std::ptr::copy_nonoverlapping(start.as_ptr(), shared.start().as_ptr(), bytes);
            shared.map_over(start, 0, bytes)?;
        }
        Ok(shared)
    };
    Some(share())
}

/// Reserves addresses of the host, aligned as wanted.
pub fn reserve(bytes: u64, align: u64) -> Option<u64> {
    let (bytes, align) = (usize::try_from(bytes).ok()?, usize::try_from(align).ok()?);
    let all = bytes.checked_add(align)?;
    // SAFETY: it asks for new pages at any address.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, NEW, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let before = start.align_offset(align);
    // SAFETY: both are parts of these new pages, outside what is kept.
    unsafe {
        if before > 0 {
            libc::munmap(start, before);
        }
        libc::munmap(start.byte_add(before + bytes), align - before);
    }
    Some(start.expose_provenance() as u64 + before as u64)
}

/// Makes pages inside a reserved range unusable again.
///
/// # Safety
/// They must be in such a range, and nothing may use them any more.
pub unsafe fn withdraw(address: u64, bytes: u64) {
    let place = std::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: the caller's promise.
    unsafe { libc::mmap(place, bytes as usize, libc::PROT_NONE, NEW | libc::MAP_FIXED, -1, 0) };
}

/// Gives back a range from [`reserve`].
///
/// # Safety
/// It must be such a range, and nothing may use it any more.
pub unsafe fn unreserve(address: u64, bytes: u64) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(address as usize), bytes as usize) };
}

/// Calls `f` with the start and size of the watched pages that may have been touched.
pub fn each_touched(mut f: impl FnMut(u64, u64)) {
    let mappings = mappings();
    let mut watched = mappings.iter().filter(|(_, mapping)| mapping.is_watched).peekable();
    if watched.peek().is_none() {
        return;
    }
    let table = File::open("/proc/self/pagemap");
    for (&start, mapping) in watched {
        let mut entries = vec![0; mapping.bytes / PAGE as usize * 8];
        let is_known =
            table.as_ref().is_ok_and(|table| table.read_exact_at(&mut entries, start / PAGE * 8).is_ok());
        for (entry, page) in entries.chunks_exact(8).zip(0..) {
            let entry = entry.try_into().map_or(0, u64::from_le_bytes);
            if !is_known || entry & TOUCHED != 0 {
                f(start + page * PAGE, PAGE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_shared_keeps_address_and_bytes() {
        let pages = Pages::map(10_000, false).unwrap();
        let (start, address) = (pages.start(), pages.address());
        // SAFETY: the pages are mapped, and no other thread knows them.
        unsafe {
            start.add(9_999).write(5);
            let second = share(address).unwrap().unwrap();
            assert_eq!((start.add(9_999).read(), second.start().add(9_999).read()), (5, 5));
            start.write(7);
            assert_eq!((second.start().read(), second.bytes()), (7, 12_288));
            drop(pages);
            assert_eq!(second.start().read(), 7);
            assert!(share(address).is_none());
        }
    }

    #[test]
    fn only_watched_pages_are_reported() {
        let (watched, other) = (Pages::map(8192, true).unwrap(), Pages::map(8192, false).unwrap());
        // SAFETY: the pages are mapped, and no other thread knows them.
        unsafe {
            watched.start().add(4096).write(1);
            other.start().write(1);
        }
        let mut touched = Vec::new();
        each_touched(|start, bytes| touched.push((start, bytes)));
        assert!(touched.contains(&(watched.address() + 4096, 4096)));
        assert!(is_watched(watched.address()) && !is_watched(other.address()));
        assert!(!touched.iter().any(|&(start, _)| start == other.address() || start == watched.address()));
    }
}
