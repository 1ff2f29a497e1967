//! Copies between the host and device memory that kernels may use at the same time.
//!
//! To read what a kernel stores meanwhile is no data race: both go through [`lanes::memory`]. What a copy sees of stores that are
//! not ordered before it is what the PTX memory model says of weak operations (PTX ISA, "Memory Consistency Model").

use lanes::HostPath;

/// Bytes that a pattern is repeated to.
const BUFFER: usize = 4096;

/// The fastest way to copy that this host has.
fn copy_bytes() -> unsafe fn(*mut u8, *const u8, usize) {
    lanes::helpers(lanes::host_path().unwrap_or(HostPath::Portable)).copy
}

/// Copies bytes out of device memory.
///
/// # Safety
/// `from` must point to `to.len()` bytes of device memory, which stay valid.
pub unsafe fn read(from: *const u8, to: &mut [u8]) {
    // SAFETY: the caller's promise.
    unsafe { copy_bytes()(to.as_mut_ptr(), from, to.len()) }
}

/// Copies bytes into device memory.
///
/// # Safety
/// As for [`read`].
pub unsafe fn write(to: *mut u8, from: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe { copy_bytes()(to, from.as_ptr(), from.len()) }
}

/// Copies bytes from one place of device memory to another. They may overlap, and arrive as they were before.
///
/// # Safety
/// Both must point to so many bytes, as for [`read`].
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_bytes()(to, from, bytes) }
}

/// Sets device memory to a pattern, over and over from its first byte on; nothing happens if the pattern is empty.
///
/// # Safety
/// `to` must point to so many bytes, as for [`read`].
pub unsafe fn fill(to: *mut u8, pattern: &[u8], bytes: usize) {
    if pattern.is_empty() {
        return;
    }
    let repeated = pattern.repeat((BUFFER / pattern.len()).max(1));
    for start in (0..bytes).step_by(repeated.len()) {
        let part = &repeated[..repeated.len().min(bytes - start)];
        // SAFETY: the part is within the range.
        unsafe { write(to.add(start), part) }
    }
}
