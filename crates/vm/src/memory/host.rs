//! Copies between the host and device memory that kernels may use at the same time.
//!
//! A kernel that writes what the host reads meanwhile is no data race here: device memory is read and written by relaxed atomic
//! operations, of eight bytes where it is aligned and of one elsewhere. So an element that is aligned comes over as a whole, and
//! nothing is said of the order of several (PTX ISA, "Memory Consistency Model": the host's copies are weak operations).

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Bytes of an atomic word.
const WORD: usize = size_of::<AtomicU64>();
/// Bytes that pass through the stack at a time.
const BUFFER: usize = 4096;

/// Bytes before the first aligned word of a range, bytes of its words, and the bytes behind them.
fn parts(start: *const u8, bytes: usize) -> (usize, usize) {
    let head = start.align_offset(WORD).min(bytes);
    (head, (bytes - head) / WORD * WORD)
}

/// Copies bytes out of device memory.
///
/// # Safety
/// `from` must point to `to.len()` bytes of device memory, which stay valid; whoever else accesses them does so by atomic operations, or
/// is a kernel that races with its host.
pub unsafe fn read(from: *mut u8, to: &mut [u8]) {
    let (head, words) = parts(from, to.len());
    // SAFETY: every place is within the range, and words are aligned.
    unsafe {
        let byte = |i: usize| AtomicU8::from_ptr(from.add(i)).load(Relaxed);
        (0..head).for_each(|i| to[i] = byte(i));
        let target = to[head..head + words].as_chunks_mut::<WORD>().0;
        for (i, word) in target.iter_mut().enumerate() {
            *word = AtomicU64::from_ptr(from.add(head + i * WORD).cast()).load(Relaxed).to_ne_bytes();
        }
        (head + words..to.len()).for_each(|i| to[i] = byte(i));
    }
}

/// Copies bytes into device memory.
///
/// # Safety
/// As for [`read`].
pub unsafe fn write(to: *mut u8, from: &[u8]) {
    let (head, words) = parts(to, from.len());
    // SAFETY: every place is within the range, and words are aligned.
    unsafe {
        let byte = |i: usize| AtomicU8::from_ptr(to.add(i)).store(from[i], Relaxed);
        (0..head).for_each(byte);
        let source = from[head..head + words].as_chunks::<WORD>().0;
        for (i, word) in source.iter().enumerate() {
            AtomicU64::from_ptr(to.add(head + i * WORD).cast()).store(u64::from_ne_bytes(*word), Relaxed);
        }
        (head + words..from.len()).for_each(byte);
    }
}

/// Copies bytes from one place of device memory to another. They may overlap.
///
/// # Safety
/// Both must point to so many bytes, as for [`read`].
pub unsafe fn copy(from: *mut u8, to: *mut u8, bytes: usize) {
    let mut buffer = [0; BUFFER];
    let backwards = (from.addr()..from.addr() + bytes).contains(&to.addr());
    let count = bytes.div_ceil(BUFFER);
    for i in 0..count {
        let start = if backwards { count - 1 - i } else { i } * BUFFER;
        let part = &mut buffer[..BUFFER.min(bytes - start)];
        // SAFETY: the part is within the range.
        unsafe {
            read(from.add(start), part);
            write(to.add(start), part);
        }
    }
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
