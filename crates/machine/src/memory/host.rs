//! Copies between the host and device memory, which kernels may access at the same time.
//!
//! A read that races with a kernel's store is no data race: both use [`lanes::memory`]. For stores that are not ordered before a
//! copy, the copy sees what the PTX memory model allows for weak operations (PTX ISA, "Memory Consistency Model").

use lanes::{HostPath, memory};

/// Bytes copied at a time.
const PART: usize = 64;
/// Bytes to which a short pattern is repeated.
const BUFFER: usize = 4096;

/// Copies bytes out of device memory.
///
/// # Safety
/// `from` must point to `to.len()` bytes of device memory that stay valid.
#[inline]
pub unsafe fn read(from: *const u8, to: &mut [u8]) {
    let (parts, rest) = to.as_chunks_mut::<PART>();
    let start = parts.len() * PART;
    // SAFETY: each part is within the range.
    unsafe {
        parts.iter_mut().enumerate().for_each(|(i, part)| *part = memory::read(from.add(i * PART)));
        rest.iter_mut().enumerate().for_each(|(i, byte)| *byte = memory::read(from.add(start + i)));
    }
}

/// Copies bytes into device memory.
///
/// # Safety
/// As for [`read`].
#[inline]
pub unsafe fn write(to: *mut u8, from: &[u8]) {
    let (parts, rest) = from.as_chunks::<PART>();
    let start = parts.len() * PART;
    // SAFETY: each part is within the range.
    unsafe {
        parts.iter().enumerate().for_each(|(i, part)| memory::write(to.add(i * PART), *part));
        rest.iter().enumerate().for_each(|(i, byte)| memory::write(to.add(start + i), *byte));
    }
}

/// Copies bytes within device memory. The ranges may overlap; the destination gets the old bytes of the source.
///
/// # Safety
/// Both must point to `bytes` bytes, as for [`read`].
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    let helpers = lanes::helpers(lanes::host_path().unwrap_or(HostPath::Portable));
    // SAFETY: the caller's promise.
    unsafe { (helpers.copy)(to, from, bytes) }
}

/// Fills device memory with a repeated pattern. Does nothing if the pattern is empty.
///
/// # Safety
/// `to` must point to `bytes` bytes, as for [`read`].
#[inline]
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
