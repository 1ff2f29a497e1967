// rustc: sm_70 sm_90
// rustc -Copt-level=1: sm_75

//! Kernels in Rust, which checks bounds and overflow, and never contracts a product and a sum.
#![no_std]
#![feature(abi_ptx, f16, stdarch_nvptx)]

use core::arch::nvptx::{_block_dim_x, _block_idx_x, _syncthreads, _thread_idx_x};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

fn index() -> usize {
    unsafe { (_block_idx_x() * _block_dim_x() + _thread_idx_x()) as usize }
}

/// Every comparison of doubles.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn cmp_f64(x: *const f64, y: *const f64, out: *mut u32) {
    let i = index();
    let (x, y) = unsafe { (*x.add(i), *y.add(i)) };
    let order = match x.partial_cmp(&y) {
        Some(core::cmp::Ordering::Less) => 0,
        Some(core::cmp::Ordering::Equal) => 16,
        Some(core::cmp::Ordering::Greater) => 32,
        None => 64,
    };
    let flags = u32::from(x < y) + u32::from(x == y) * 2 + u32::from(x != y) * 4 + u32::from(x.is_nan()) * 8;
    unsafe { *out.add(i) = order + flags };
}

/// Halves, each operation rounded.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn half(x: *const f16, y: *const f16, out: *mut f16) {
    let i = index();
    let (x, y) = unsafe { (*x.add(i), *y.add(i)) };
    unsafe { *out.add(i) = if x > y { x + x * y } else { y - x } };
}

/// Halves to other types and back.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn half_cast(x: *const f16, ints: *mut i32, out: *mut f16) {
    let i = index();
    let x = unsafe { *x.add(i) };
    unsafe {
        *ints.add(i) = x as i32;
        *out.add(i) = (x as f64 * 0.3) as f16 + (i as u8) as f16;
    }
}

/// Integers; the program catches division by zero and overflow.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn ints(a: *const i32, b: *const i32, out: *mut i64) {
    let i = index();
    let (a, b) = unsafe { (*a.add(i), *b.add(i)) };
    let unsigned = b as u32;
    let quotient = a.checked_div(b).unwrap_or(3);
    let rotated = a.wrapping_mul(7).rotate_left(3);
    let bits = unsigned.leading_zeros().wrapping_add(unsigned.count_ones()).wrapping_add(unsigned.swap_bytes());
    let mut sum = i64::from(unsigned).wrapping_mul(i64::from(a)).wrapping_add(a as f32 as i64);
    sum = sum.wrapping_add(i64::from(rotated)).wrapping_add(i64::from(a.saturating_add(b)));
    sum = sum.wrapping_add(i64::from(a.clamp(-3, 9))).wrapping_add(i64::from(bits)).wrapping_add(i64::from(quotient));
    unsafe { *out.add(i) = sum };
}

/// The product and the sum are rounded each.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn saxpy(factor: f32, x: *const f32, y: *mut f32, count: usize) {
    let i = index();
    if i < count {
        unsafe { *y.add(i) = factor * *x.add(i) + *y.add(i) };
    }
}

/// A loop over a slice with bounds checks.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn slice_sum(data: *const u8, length: usize, out: *mut u32) {
    let data = unsafe { core::slice::from_raw_parts(data, length) };
    let mut total = 0u32;
    for i in 0..length {
        if i % 3 == 1 {
            total = total.wrapping_add(31 * u32::from(data[i]));
        } else {
            total ^= u32::from(data[length - 1 - i]);
        }
    }
    unsafe { *out = total };
}

/// A `match`, which becomes a table of branches; case 5 reads the next element.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn sw(choice: *mut i32) {
    let i = index();
    let result = match unsafe { *choice.add(i) } {
        0 => 5,
        1 => 3,
        2 => 17,
        3 => i as i32,
        4 => -9,
        5 => unsafe { *choice.add(i + 1) },
        6 => 77,
        _ => -1,
    };
    unsafe { *choice.add(i) = result };
}

/// The product of two 128-bit integers, shifted.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn u128mul(words: *mut u64) {
    let words = unsafe { core::slice::from_raw_parts_mut(words, 4) };
    let x = u128::from(words[0]) | u128::from(words[1]) << 64;
    let y = u128::from(words[2]) | u128::from(words[3]) << 64;
    let product = x.wrapping_mul(y) >> 3;
    words[0] = product as u64;
    words[1] = (product >> 64) as u64;
}

/// An array of the thread's own, sorted by `core`, and a barrier between two steps.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn sorted(data: *mut u32, sums: *mut f64) {
    let (i, mut own) = (index(), [0u32; 8]);
    for (k, word) in own.iter_mut().enumerate() {
        *word = unsafe { *data.add(8 * i + k) };
    }
    own.sort_unstable();
    unsafe { _syncthreads() };
    for (k, word) in own.iter().enumerate() {
        unsafe { *data.add(8 * i + k) = *word };
    }
    unsafe { *sums.add(i) = own.iter().map(|&word| f64::from(word)).sum() };
}
