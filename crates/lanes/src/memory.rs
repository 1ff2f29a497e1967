//! Memory that others may use at the same time.
//!
//! The host may read what a kernel writes while it runs. With plain accesses of Rust that would be a data race, which is undefined
//! behaviour, and an atomic one is no vector instruction. So what kernels store in memory that others see, and what the host copies, is
//! moved by instructions of which the compiler knows only that they read or write this memory: what they do is what relaxed atomic
//! accesses of all the bytes in some order do. (Under Miri, and on hosts that have no instruction here, it *is* relaxed atomic accesses.)
//! Nothing orders one access with another: that is for fences, and for accesses that a kernel orders.
//!
//! Weak loads of kernels are plain: they are operands of vector instructions. Whoever writes what a kernel loads weakly meanwhile
//! races with it, as the PTX memory model has it, too.
//!
//! [`read`] and [`write`] use what every host of the architecture has; the paths of [`Path`] have wider vectors.
//!
//! (To make all loads in this way cost mandelbrot 20 % and the portable path half its speed.)

use super::path::Path;
use std::mem::MaybeUninit;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64", target_family = "wasm"))))]
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Reads a value of plain bits from anywhere in memory.
///
/// # Safety
/// There must be a `T` at the place.
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

/// Writes a value of plain bits to anywhere in memory.
///
/// # Safety
/// There must be room for a `T` at the place.
#[inline(always)]
pub unsafe fn write<T: Copy>(to: *mut u8, value: T) {
    let from = (&raw const value).cast::<u8>();
    // SAFETY: both have the bytes of a `T`.
    unsafe { each_part(size_of::<T>(), |at, bytes| move_out(to.wrapping_add(at), from.add(at), bytes)) }
}

/// Offsets and sizes of the parts that one instruction moves.
#[inline(always)]
pub(super) fn each_part(size: usize, mut part: impl FnMut(usize, usize)) {
    if matches!(size, 1 | 2 | 4 | 8 | 16) {
        // Known when it is compiled: no loop is left.
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

/// Copies so many bytes. They may overlap, and arrive as they were before.
///
/// # Safety
/// Both must have so many bytes; the host must have the instructions of `P`.
#[inline(always)]
pub(super) unsafe fn copy<P: Path>(to: *mut u8, from: *const u8, bytes: usize) {
    // By parts of 128 bytes, and then one of each power of two that is left; from the end if what is written would otherwise
    // be read by a later part. Each part is read before it is written.
    macro_rules! part {
        ($size:literal at $at:expr) => {{
            let at = $at;
            // SAFETY: each part is within both.
            unsafe { P::write(to.wrapping_add(at), P::read::<[u8; $size]>(from.wrapping_add(at))) }
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

/// An instruction that loads a register from memory, and what it puts into a place of the caller's own; and the reverse.
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

/// From memory that others may use to a place that is the caller's own.
///
/// # Safety
/// Both must have so many bytes: 1, 2, 4, 8 or 16.
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

/// From a place that is the caller's own to memory that others may use.
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

/// From memory that others may use to a place that is the caller's own.
///
/// # Safety
/// Both must have so many bytes: 1, 2, 4, 8 or 16.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn move_in(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::aarch64::uint8x16_t;
    // SAFETY: the caller's promise; every AArch64 processor that Rust is for has the instructions.
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

/// From a place that is the caller's own to memory that others may use.
///
/// # Safety
/// As for [`move_in`].
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn move_out(to: *mut u8, from: *const u8, bytes: usize) {
    use std::arch::aarch64::uint8x16_t;
    // SAFETY: the caller's promise; every AArch64 processor that Rust is for has the instructions.
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

/// WebAssembly has one thread here.
///
/// # Safety
/// Both must have so many bytes.
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

/// By atomic accesses, of words where they are aligned.
///
/// # Safety
/// Both must have so many bytes.
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
