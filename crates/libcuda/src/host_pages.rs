//! Host memory with one address for host and device, and which of its pages have never been touched.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::share::Shared;

/// The page size. If the host has larger pages, touched and untouched ones are not distinguished.
const PAGE: u64 = 4096;
/// Bits of an entry of the kernel's page table (Linux, "pagemap"): the page is present, or has been swapped out.
const TOUCHED: u64 = 3 << 62;

/// Address and size of each mapping, in whole pages.
static PAGES: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

fn pages() -> MutexGuard<'static, BTreeMap<u64, usize>> {
    PAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maps new pages, if the host has them and reports which are touched.
pub fn map(bytes: u64) -> Option<NonNull<u8>> {
    const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let bytes = usize::try_from(bytes.checked_next_multiple_of(PAGE)?).ok()?;
    // SAFETY: it asks for new memory at any address.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, PROTECTION, FLAGS, -1, 0) };
    let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED)?;
    // SAFETY: the pages are mapped. Touching one must not make others present.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
    pages().insert(start.as_ptr().expose_provenance() as u64, bytes);
    Some(start)
}

/// Whether the memory that begins at an address is such a mapping.
pub fn has(address: u64) -> bool {
    pages().contains_key(&address)
}

/// Unmaps a mapping, if there is one at the address.
///
/// # Safety
/// Nothing may use the pages any more.
pub unsafe fn unmap(address: u64) {
    if let Some(bytes) = pages().remove(&address) {
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: this is the mapping from `map`; the caller promises that nothing uses it.
        unsafe { libc::munmap(start, bytes) };
    }
}

/// Makes the mapping that begins at an address one that other processes can open, without changing address or bytes. Returns a second
/// mapping of the same memory, or nothing if no mapping begins there.
///
/// # Safety
/// Nothing may use the pages meanwhile.
pub unsafe fn share(address: u64) -> Option<std::io::Result<Shared>> {
    let pages = pages();
    let &bytes = pages.get(&address)?;
    let start = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(address as usize))?;
    let share = || {
        let shared = Shared::new(bytes)?;
        // SAFETY: both mappings have these bytes, and the caller promises that nobody uses the pages.
        unsafe {
            std::ptr::copy_nonoverlapping(start.as_ptr(), shared.start().as_ptr(), bytes);
            shared.map_over(start)?;
        }
        Ok(shared)
    };
    Some(share())
}

/// Calls `f` with the start and size of the pages that may have been touched.
pub fn each_touched(mut f: impl FnMut(u64, u64)) {
    let pages = pages();
    if pages.is_empty() {
        return;
    }
    let table = File::open("/proc/self/pagemap");
    for (&start, &bytes) in pages.iter() {
        let mut entries = vec![0; bytes / PAGE as usize * 8];
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
        let start = map(10_000).unwrap();
        let address = start.as_ptr().expose_provenance() as u64;
        // SAFETY: the pages are mapped, and no other thread knows them.
        unsafe {
            start.add(9_999).write(5);
            let second = share(address).unwrap().unwrap();
            assert_eq!((start.add(9_999).read(), second.start().add(9_999).read()), (5, 5));
            start.write(7);
            assert_eq!((second.start().read(), second.bytes()), (7, 12_288));
            unmap(address);
            assert_eq!(second.start().read(), 7);
            assert!(!has(address) && share(address).is_none());
        }
    }
}
