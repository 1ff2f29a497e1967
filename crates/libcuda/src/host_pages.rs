//! Memory that host and device reach at one address, page by page from the host: which pages nobody has touched since.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a page; of a host with larger ones nothing is told apart.
const PAGE: u64 = 4096;
/// Of an entry of the kernel's table of pages (Linux, "pagemap"): the page is there, or has been written to disk.
const TOUCHED: u64 = 3 << 62;

/// Bytes by address: a whole number of pages each.
static PAGES: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

fn pages() -> MutexGuard<'static, BTreeMap<u64, usize>> {
    PAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// New pages for so many bytes, if the host has them and tells who touches them.
pub fn map(bytes: u64) -> Option<NonNull<u8>> {
    const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let bytes = usize::try_from(bytes.checked_next_multiple_of(PAGE)?).ok()?;
    // SAFETY: it asks for new memory at any address.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, PROTECTION, FLAGS, -1, 0) };
    let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED)?;
    // SAFETY: the pages are there. One that is touched must not bring others along.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
    pages().insert(start.as_ptr().expose_provenance() as u64, bytes);
    Some(start)
}

/// Memory that begins there is made of such pages.
pub fn has(address: u64) -> bool {
    pages().contains_key(&address)
}

/// Gives pages back, if there are any.
///
/// # Safety
/// Nobody may use them any more.
pub unsafe fn unmap(address: u64) {
    if let Some(bytes) = pages().remove(&address) {
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: this is what was mapped; the caller's promise.
        unsafe { libc::munmap(start, bytes) };
    }
}

/// Calls `f` with start and size of the pages that somebody may have touched.
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
