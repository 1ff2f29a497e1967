//! Accesses to memory that other threads may use at the same time.
//!
//! The host may read what a kernel writes while the kernel runs. With plain Rust accesses that would be a data race,
//! which is undefined behaviour, and atomic accesses cannot be vector instructions. So stores of kernels to memory
//! that others can see, and copies of the host, use instructions about which the compiler knows only that they read
//! or write this memory. Their effect is that of relaxed atomic accesses to all the bytes in some order. (Under Miri,
//! and on hosts without such instructions here, they *are* relaxed atomic accesses.) Nothing orders these accesses
//! among each other; that is the task of fences and of the kernel's ordered accesses.
//!
//! Weak loads of kernels are plain: they become operands of vector instructions. A write that is concurrent with a
//! weak load of a kernel is a data race, as in the PTX memory model.
//!
//! [`read`] and [`write`] use instructions that every host of the architecture has; the paths of [`Path`] have wider
//! vectors.
//!
//! (Making all loads go through these functions slowed mandelbrot by 20 % and halved the speed of the portable path.)

use super::path::Path;
use std::mem::MaybeUninit;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64", target_family = "wasm"))))]
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Reads a value of plain bits from any address.
///
/// # Safety
/// `from` must be valid for reads of a `T`.
#[inline(always)]
pub unsafe fn read<T: Copy>(from: *const u8) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let to = value.as_mut_ptr().cast::<u8>();
    // SAFETY: both have the bytes of a `T`.
    unsafe {
        each_part(size_of::<T>(), |at, bytes| move_in(from.wrapping_add(at), to.add(at), bytes));
        value.assume_init()
    }
}

/// Writes a value of plain bits to any address.
///
/// # Safety
/// `to` must be valid for writes of a `T`.
#[inline(always)]
pub unsafe fn write<T: Copy>(to: *mut u8, value: T) {
    let from = (&raw const value).cast::<u8>();
    // SAFETY: both have the bytes of a `T`.
    unsafe { each_part(size_of::<T>(), |at, bytes| move_out(to.wrapping_add(at), from.add(at), bytes)) }
}

/// Calls `part` with the offsets and sizes of the parts that one instruction each can move.
#[inline(always)]
pub(super) fn each_part(size: usize, mut part: impl FnMut(usize, usize)) {
    if matches!(size, 1 | 2 | 4 | 8 | 16) {
        // `size` is a compile-time constant: no loop remains.
        return part(0, size);
    }
    let mut at = 0;
    for bytes in [16, 8, 4, 2, 1] {
        while size - at >= bytes {
            part(at, bytes);
            at += bytes;
        }
    }
}

/// Copies `bytes` bytes. The areas may overlap; the destination receives the source's original contents.
///
/// # Safety
/// Both areas must have `bytes` bytes.
#[inline(always)]
pub(super) unsafe fn copy<P: Path>(path: P, to: *mut u8, from: *const u8, bytes: usize) {
    // Copies parts of 128 bytes, and then one part of each power of two in the rest. It starts from the end if
    // otherwise a part would overwrite bytes that a later part reads. Each part is read before it is written.
    macro_rules! part {
        ($size:literal at $at:expr) => {{
            let at = $at;
            // SAFETY: each part is within both.
            unsafe { path.write(to.wrapping_add(at), path.read::<[u8; $size]>(from.wrapping_add(at))) }
        }};
    }
    macro_rules! rest {
        ($($size:literal)*) => { $(if bytes & $size != 0 { part!($size at bytes & !(2 * $size - 1)) })* };
    }
    let whole = bytes & !127;
    let descending = to.addr().wrapping_sub(from.addr()) < bytes;
    if descending {
        rest!(1 2 4 8 16 32 64);
        for behind in (0..whole).step_by(128) {
            part!(128 at whole - 128 - behind);
        }
    } else {
        for at in (0..whole).step_by(128) {
            part!(128 at at);
        }
        rest!(64 32 16 8 4 2 1);
    }
}

/// An instruction that loads a register from memory, followed by a plain store to private memory; and the reverse.
#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! load {
    ($text:literal, $class:ident, $ty:ty, $from:expr, $to:expr) => {{
        let value: $ty;
        std::arch::asm!($text, out($class) value, in(reg) $from, options(readonly, nostack, preserves_flags));
        $to.cast::<$ty>().write_unaligned(value);
    }};
}
#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! store {
    ($text:literal, $class:ident, $ty:ty, $to:expr, $from:expr) => {{
        let value = $from.cast::<$ty>().read_unaligned();
        std::arch::asm!($text, in($class) value, in(reg) $to, options(nostack, preserves_flags));
    }};
}

/// Copies from memory that other threads may use to private memory.
///
/// # Safety
/// Both must have `bytes` bytes, which must be 1, 2, 4, 8 or 16.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn move_in(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::__m128i;
    // SAFETY: the caller's promise; every x86-64 processor has the instructions.
    unsafe {
        match bytes {
            16 => load!("movdqu {}, [{}]", xmm_reg, __m128i, from, to),
            8 => load!("mov {:r}, [{}]", reg, u64, from, to),
            4 => load!("mov {:e}, [{}]", reg, u32, from, to),
            2 => load!("movzx {:e}, word ptr [{}]", reg, u16, from, to),
            _ => load!("mov {}, [{}]", reg_byte, u8, from, to),
        }
    }
}

/// Copies from private memory to memory that other threads may use.
///
/// # Safety
/// As for [`move_in`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn move_out(to: *mut u8, from: *const u8, bytes: usize) {
    use std::arch::x86_64::__m128i;
    // SAFETY: the caller's promise; every x86-64 processor has the instructions.
    unsafe {
        match bytes {
            16 => store!("movdqu [{1}], {0}", xmm_reg, __m128i, to, from),
            8 => store!("mov [{1}], {0:r}", reg, u64, to, from),
            4 => store!("mov [{1}], {0:e}", reg, u32, to, from),
            2 => store!("mov [{1}], {0:x}", reg, u16, to, from),
            _ => store!("mov [{1}], {0}", reg_byte, u8, to, from),
        }
    }
}

/// Copies from memory that other threads may use to private memory.
///
/// # Safety
/// Both must have `bytes` bytes, which must be 1, 2, 4, 8 or 16.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn move_in(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::aarch64::uint8x16_t;
    // SAFETY: the caller's promise; every AArch64 processor that Rust supports has the instructions.
    unsafe {
        match bytes {
            16 => load!("ldr {:q}, [{}]", vreg, uint8x16_t, from, to),
            8 => load!("ldr {:x}, [{}]", reg, u64, from, to),
            4 => load!("ldr {:w}, [{}]", reg, u32, from, to),
            2 => load!("ldrh {:w}, [{}]", reg, u16, from, to),
            _ => load!("ldrb {:w}, [{}]", reg, u8, from, to),
        }
    }
}

/// Copies from private memory to memory that other threads may use.
///
/// # Safety
/// As for [`move_in`].
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn move_out(to: *mut u8, from: *const u8, bytes: usize) {
    use std::arch::aarch64::uint8x16_t;
    // SAFETY: the caller's promise; every AArch64 processor that Rust supports has the instructions.
    unsafe {
        match bytes {
            16 => store!("str {0:q}, [{1}]", vreg, uint8x16_t, to, from),
            8 => store!("str {0:x}, [{1}]", reg, u64, to, from),
            4 => store!("str {0:w}, [{1}]", reg, u32, to, from),
            2 => store!("strh {0:w}, [{1}]", reg, u16, to, from),
            _ => store!("strb {0:w}, [{1}]", reg, u8, to, from),
        }
    }
}

/// On WebAssembly, ptxvm has a single thread, so plain copies are enough.
///
/// # Safety
/// Both must have `bytes` bytes.
#[cfg(all(target_family = "wasm", not(miri)))]
#[inline(always)]
pub(super) unsafe fn move_in(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// # Safety
/// As for [`move_in`].
#[cfg(all(target_family = "wasm", not(miri)))]
#[inline(always)]
pub(super) unsafe fn move_out(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// By relaxed atomic accesses, of words if they are aligned.
///
/// # Safety
/// Both must have `bytes` bytes.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64", target_family = "wasm"))))]
#[inline(always)]
pub(super) unsafe fn move_in(from: *const u8, to: *mut u8, bytes: usize) {
    let (from, mut at) = (from.cast_mut(), 0);
    // SAFETY: the caller's promise; the words are aligned.
    unsafe {
        while at < bytes {
            if bytes - at >= 8 && from.add(at).addr().is_multiple_of(8) {
                let word = AtomicU64::from_ptr(from.add(at).cast()).load(Relaxed);
                to.add(at).cast::<u64>().write_unaligned(word);
                at += 8;
            } else {
                to.add(at).write(AtomicU8::from_ptr(from.add(at)).load(Relaxed));
                at += 1;
            }
        }
    }
}

/// # Safety
/// As for [`move_in`].
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64", target_family = "wasm"))))]
#[inline(always)]
pub(super) unsafe fn move_out(to: *mut u8, from: *const u8, bytes: usize) {
    let mut at = 0;
    // SAFETY: the caller's promise; the words are aligned.
    unsafe {
        while at < bytes {
            if bytes - at >= 8 && to.add(at).addr().is_multiple_of(8) {
                let word = from.add(at).cast::<u64>().read_unaligned();
                AtomicU64::from_ptr(to.add(at).cast()).store(word, Relaxed);
                at += 8;
            } else {
                AtomicU8::from_ptr(to.add(at)).store(from.add(at).read(), Relaxed);
                at += 1;
            }
        }
    }
}
