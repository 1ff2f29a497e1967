//! Copies between the host and device memory that kernels may use at the same time.
//!
//! To read what a kernel stores meanwhile is no data race: both go through [`lanes::memory`]. What a copy sees of stores that are
//! not ordered before it is what the PTX memory model says of weak operations (PTX ISA, "Memory Consistency Model").

use lanes::{HostPath, memory};

/// Bytes that are copied at a time.
const PART: usize = 64;
/// Bytes that a pattern is repeated to.
const BUFFER: usize = 4096;

/// Copies bytes out of device memory.
///
/// # Safety
/// `from` must point to `to.len()` bytes of device memory, which stay valid.
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
pub unsafe fn write(to: *mut u8, from: &[u8]) {
    let (parts, rest) = from.as_chunks::<PART>();
    let start = parts.len() * PART;
    // SAFETY: each part is within the range.
    unsafe {
        parts.iter().enumerate().for_each(|(i, part)| memory::write(to.add(i * PART), *part));
        rest.iter().enumerate().for_each(|(i, byte)| memory::write(to.add(start + i), *byte));
    }
}

/// Copies bytes from one place of device memory to another. They may overlap, and arrive as they were before.
///
/// # Safety
/// Both must point to so many bytes, as for [`read`].
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    let helpers = lanes::helpers(lanes::host_path().unwrap_or(HostPath::Portable));
    // SAFETY: the caller's promise.
    unsafe { (helpers.copy)(to, from, bytes) }
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
