//! Loads and stores between memory and lanes: with one address per lane, or of consecutive bytes and vectors.
//!
//! The caller has checked every address. Each element of kernel memory is read or written whole, by a single access.

use super::HostPath;
use super::helpers::{Element, LaneWidth, MemoryRows};
use super::mask_ops::group;
use super::memory;
use super::path::{BLOCK, Block, Path, WARP};

/// Calls `f(lane)` for every lane of the mask, in ascending order.
#[inline(always)]
fn each_lane(mask: &[u64], mut f: impl FnMut(usize)) {
    for i in 0..mask.len() * (64 / BLOCK) {
        let bits = group(mask, i);
        if bits == !0 {
            for lane in 0..BLOCK {
                f(i * BLOCK + lane);
            }
        } else {
            let mut rest = bits;
            while rest != 0 {
                f(i * BLOCK + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }
}

/// An expression in which `$offset(lane)` is the offset of a lane, compiled for each width of offsets.
macro_rules! with_offsets {
    ($offsets:expr, $width:expr, $offset:ident => $body:expr) => {
        match $width {
            LaneWidth::B4 => {
                let offsets = $offsets.cast::<u32>();
                // SAFETY: the caller's promise: every lane of the mask has an offset.
                let $offset = |lane: usize| unsafe { offsets.add(lane).read() as usize };
                $body
            }
            _ => {
                let offsets = $offsets.cast::<u64>();
                // SAFETY: as above.
                let $offset = |lane: usize| unsafe { offsets.add(lane).read() as usize };
                $body
            }
        }
    };
}

/// dst[lane] = f(memory at base + offset)
///
/// # Safety
/// As for [`gather`].
#[inline(always)]
unsafe fn load_lanes<M, R>(
    dst: *mut u8,
    base: *const u8,
    mask: &[u64],
    offset: impl Fn(usize) -> usize,
    f: impl Fn(M) -> R,
) {
    let dst = dst.cast::<R>();
    // SAFETY: the caller's promise.
    each_lane(mask, |lane| unsafe {
        dst.add(lane).write(f(base.wrapping_add(offset(lane)).cast::<M>().read_unaligned()));
    });
}

/// See [`Helpers`](super::Helpers), also for the following functions.
#[inline(always)]
pub(super) unsafe fn gather<P: Path>(
    _: P,
    dst: *mut u8,
    element: Element,
    base: *const u8,
    offsets: *const u8,
    width: LaneWidth,
    mask: &[u64],
) {
    // SAFETY: the caller's promise.
    with_offsets!(offsets, width, offset => unsafe {
        match element {
            Element::U8 => load_lanes(dst, base, mask, offset, |x: u8| u16::from(x)),
            Element::S8 => load_lanes(dst, base, mask, offset, |x: i8| i16::from(x)),
            Element::B2 => load_lanes(dst, base, mask, offset, |x: u16| x),
            Element::B4 => load_lanes(dst, base, mask, offset, |x: u32| x),
            Element::B8 => load_lanes(dst, base, mask, offset, |x: u64| x),
        }
    });
}

/// memory at base + offset = f(src[lane])
///
/// # Safety
/// As for [`scatter`].
#[inline(always)]
unsafe fn store_lanes<A, M: Copy>(
    src: *const u8,
    base: *mut u8,
    mask: &[u64],
    offset: impl Fn(usize) -> usize,
    f: impl Fn(A) -> M,
) {
    let src = src.cast::<A>();
    // SAFETY: the caller's promise.
    each_lane(mask, |lane| unsafe {
        memory::write::<M>(base.wrapping_add(offset(lane)), f(src.add(lane).read()));
    });
}

#[inline(always)]
pub(super) unsafe fn scatter<P: Path>(
    _: P,
    src: *const u8,
    element: Element,
    base: *mut u8,
    offsets: *const u8,
    width: LaneWidth,
    mask: &[u64],
) {
    // SAFETY: the caller's promise.
    with_offsets!(offsets, width, offset => unsafe {
        match element {
            Element::U8 | Element::S8 => store_lanes(src, base, mask, offset, |x: u16| x as u8),
            Element::B2 => store_lanes(src, base, mask, offset, |x: u16| x),
            Element::B4 => store_lanes(src, base, mask, offset, |x: u32| x),
            Element::B8 => store_lanes(src, base, mask, offset, |x: u64| x),
        }
    });
}

#[inline(always)]
pub(super) unsafe fn widen_bytes<P: Path>(_: P, dst: *mut u8, src: *const u8, signed: bool, lanes: usize) {
    let sign = if signed { 0x80 } else { 0 };
    for i in 0..lanes / BLOCK {
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = src.cast::<[u8; BLOCK]>().add(i).read_unaligned();
            let mut out = [0u16; BLOCK];
            for k in 0..BLOCK {
                // A branch-free sign extension.
                out[k] = (u16::from(bytes[k]) ^ sign).wrapping_sub(sign);
            }
            dst.cast::<[u16; BLOCK]>().add(i).write(out);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn narrow_bytes<P: Path>(path: P, dst: *mut u8, src: *const u8, lanes: usize) {
    for i in 0..lanes / BLOCK {
        // SAFETY: the caller's promise.
        unsafe {
            let words = src.cast::<[u16; BLOCK]>().add(i).read();
            let mut out = [0; BLOCK];
            for k in 0..BLOCK {
                out[k] = words[k] as u8;
            }
            path.write::<[u8; BLOCK]>(dst.add(i * BLOCK), out);
        }
    }
}

/// An expression with `$T` as the unsigned integer of a width; empty for predicates.
macro_rules! with_width {
    ($width:expr, $T:ident => $body:expr) => {
        match $width {
            LaneWidth::Bit => {}
            LaneWidth::B2 => {
                type $T = u16;
                $body
            }
            LaneWidth::B4 => {
                type $T = u32;
                $body
            }
            LaneWidth::B8 => {
                type $T = u64;
                $body
            }
        }
    };
}

/// Loads element k of every vector in memory into register k. Vectors have `N` elements; `step` is their stride in
/// bytes.
///
/// # Safety
/// As for [`deinterleave`].
#[inline(always)]
unsafe fn split<T: Copy + Default, const N: usize>(
    dst: [*mut u8; N],
    src: *const u8,
    step: usize,
    lanes: usize,
) {
    for i in 0..lanes / BLOCK {
        let from = src.wrapping_add((i * BLOCK).wrapping_mul(step));
        // SAFETY: the caller's promise. Memory is at least aligned to its elements.
        unsafe {
            let vectors: Block<[T; N]> = if step == size_of::<[T; N]>() {
                from.cast::<Block<[T; N]>>().read_unaligned()
            } else {
                std::array::from_fn(|lane| {
                    from.wrapping_add(lane.wrapping_mul(step)).cast::<[T; N]>().read_unaligned()
                })
            };
            for k in 0..N {
                let mut out = [T::default(); BLOCK];
                for lane in 0..BLOCK {
                    out[lane] = vectors[lane][k];
                }
                dst[k].cast::<[T; BLOCK]>().add(i).write(out);
            }
        }
    }
}

/// The same for vectors of four words, four lanes at a time.
///
/// # Safety
/// As for [`deinterleave`].
#[inline(always)]
unsafe fn split_four<P: Path>(path: P, dst: [*mut u8; 4], src: *const u8, step: usize, lanes: usize) {
    let vector = |lane: usize| src.wrapping_add(lane.wrapping_mul(step)).cast::<[u32; 4]>();
    for i in 0..lanes / 4 {
        // SAFETY: the caller's promise.
        unsafe {
            let columns = path.transpose4([
                vector(4 * i).read_unaligned(),
                vector(4 * i + 1).read_unaligned(),
                vector(4 * i + 2).read_unaligned(),
                vector(4 * i + 3).read_unaligned(),
            ]);
            for k in 0..4 {
                dst[k].cast::<[u32; 4]>().add(i).write(columns[k]);
            }
        }
    }
}

/// Splits pairs of halves by shifts, which vectorize better than element moves.
///
/// # Safety
/// As for [`deinterleave`].
#[inline(always)]
unsafe fn split_words(low: *mut u8, high: *mut u8, src: *const u8, lanes: usize) {
    for i in 0..lanes / BLOCK {
        // SAFETY: the caller's promise.
        unsafe {
            let pairs = src.cast::<[u32; BLOCK]>().add(i).read_unaligned();
            let (mut a, mut b) = ([0u16; BLOCK], [0u16; BLOCK]);
            for lane in 0..BLOCK {
                a[lane] = pairs[lane] as u16;
                b[lane] = (pairs[lane] >> 16) as u16;
            }
            low.cast::<[u16; BLOCK]>().add(i).write(a);
            high.cast::<[u16; BLOCK]>().add(i).write(b);
        }
    }
}

/// The inverse of [`split_words`].
///
/// # Safety
/// As for [`interleave`].
#[inline(always)]
unsafe fn join_words<P: Path>(path: P, dst: *mut u8, low: *const u8, high: *const u8, lanes: usize) {
    for i in 0..lanes / BLOCK {
        // SAFETY: the caller's promise.
        unsafe {
            let a = low.cast::<[u16; BLOCK]>().add(i).read();
            let b = high.cast::<[u16; BLOCK]>().add(i).read();
            let mut pairs = [0u32; BLOCK];
            for lane in 0..BLOCK {
                pairs[lane] = u32::from(a[lane]) | u32::from(b[lane]) << 16;
            }
            path.write(dst.cast::<[u32; BLOCK]>().add(i).cast(), pairs);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn deinterleave<P: Path>(
    path: P,
    dst: &[*mut u8],
    src: *const u8,
    step: usize,
    width: LaneWidth,
    lanes: usize,
) {
    // SAFETY: the caller's promise.
    with_width!(width, T => unsafe {
        match *dst {
            [a, b] if size_of::<T>() == 2 && step == 4 => split_words(a, b, src, lanes),
            [a, b] => split::<T, 2>([a, b], src, step, lanes),
            [a, b, c, d] if size_of::<T>() == 4 => split_four(path, [a, b, c, d], src, step, lanes),
            [a, b, c, d] => split::<T, 4>([a, b, c, d], src, step, lanes),
            _ => {}
        }
    });
}

/// Loads byte k of every vector of bytes in memory into register k. `V` holds a vector; `top` is 0x80 for signed
/// bytes, otherwise 0.
macro_rules! split_bytes {
    ($V:ident, $dst:expr, $src:expr, $top:expr, $lanes:expr) => {
        for i in 0..$lanes / BLOCK {
            // SAFETY: the caller's promise.
            unsafe {
                let vectors = $src.cast::<Block<$V>>().add(i).read_unaligned();
                for (k, register) in $dst.iter().enumerate() {
                    let mut out = [0u16; BLOCK];
                    for lane in 0..BLOCK {
                        // A branch-free sign extension.
                        let byte = (vectors[lane] >> (8 * k)) as u16 & 0xff;
                        out[lane] = (byte ^ $top).wrapping_sub($top);
                    }
                    register.cast::<Block<u16>>().add(i).write(out);
                }
            }
        }
    };
}

#[inline(always)]
pub(super) unsafe fn split_bytes<P: Path>(_: P, dst: &[*mut u8], src: *const u8, signed: bool, lanes: usize) {
    let top = if signed { 0x80 } else { 0 };
    match dst.len() {
        2 => split_bytes!(u16, dst, src, top, lanes),
        _ => split_bytes!(u32, dst, src, top, lanes),
    }
}

/// The elements in reverse order.
#[inline(always)]
fn reversed<T: Copy + Default>(elements: Block<T>) -> Block<T> {
    let mut out = [T::default(); BLOCK];
    for lane in 0..BLOCK {
        out[lane] = elements[BLOCK - 1 - lane];
    }
    out
}

#[inline(always)]
pub(super) unsafe fn load_strided<P: Path>(
    path: P,
    dst: *mut u8,
    width: LaneWidth,
    src: *const u8,
    step: usize,
    lanes: usize,
) {
    // SAFETY: the caller's promise. Memory between elements is read, too, but as memory that other threads may use.
    with_width!(width, T => unsafe {
        let size = size_of::<T>();
        // With narrow vectors, reading element by element is faster.
        let by_vectors = P::PATH != HostPath::Portable;
        for i in 0..lanes / BLOCK {
            let from = src.wrapping_add((i * BLOCK).wrapping_mul(step));
            let mut out = [T::default(); BLOCK];
            if step == 2 * size && by_vectors {
                // The second half ends with the last element, so it reads nothing beyond that.
                let (low, high): (Block<T>, Block<T>) = (path.read(from), path.read(from.wrapping_add((BLOCK - 1) * size)));
                for lane in 0..BLOCK / 2 {
                    out[lane] = low[2 * lane];
                    out[BLOCK / 2 + lane] = high[2 * lane + 1];
                }
            } else if step == size.wrapping_neg() && by_vectors {
                out = reversed(path.read::<Block<T>>(from.wrapping_sub((BLOCK - 1) * size)));
            } else if step == size {
                out = path.read::<Block<T>>(from);
            } else {
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = from.wrapping_add(lane.wrapping_mul(step)).cast::<T>().read_unaligned();
                }
            }
            dst.cast::<Block<T>>().add(i).write_unaligned(out);
        }
    });
}

#[inline(always)]
pub(super) unsafe fn store_strided<P: Path>(
    path: P,
    src: *const u8,
    width: LaneWidth,
    dst: *mut u8,
    step: usize,
    lanes: usize,
) {
    // SAFETY: the caller's promise.
    with_width!(width, T => unsafe {
        let size = size_of::<T>();
        for i in 0..lanes / BLOCK {
            let to = dst.wrapping_add((i * BLOCK).wrapping_mul(step));
            let from = src.cast::<Block<T>>().add(i);
            if step == size.wrapping_neg() {
                path.write(to.wrapping_sub((BLOCK - 1) * size), reversed(from.read_unaligned()));
                continue;
            }
            if step == size {
                path.write(to, from.read_unaligned());
                continue;
            }
            for lane in 0..BLOCK {
                memory::write(to.wrapping_add(lane.wrapping_mul(step)), from.cast::<T>().add(lane).read_unaligned());
            }
        }
    });
}

/// Stores element k of every vector in memory from register k. Vectors have `N` elements.
///
/// # Safety
/// As for [`interleave`].
#[inline(always)]
unsafe fn join<P: Path, T: Copy + Default, const N: usize>(
    path: P,
    dst: *mut u8,
    src: [*const u8; N],
    lanes: usize,
) {
    for i in 0..lanes / BLOCK {
        // SAFETY: the caller's promise.
        unsafe {
            let mut vectors = [[T::default(); N]; BLOCK];
            for k in 0..N {
                let register = src[k].cast::<[T; BLOCK]>().add(i).read();
                for lane in 0..BLOCK {
                    vectors[lane][k] = register[lane];
                }
            }
            path.write(dst.cast::<[[T; N]; BLOCK]>().add(i).cast(), vectors);
        }
    }
}

/// The same for vectors of four words.
///
/// # Safety
/// As for [`interleave`].
#[inline(always)]
unsafe fn join_four<P: Path>(path: P, dst: *mut u8, src: [*const u8; 4], lanes: usize) {
    for i in 0..lanes / 4 {
        // SAFETY: the caller's promise.
        unsafe {
            let registers = src.map(|register| register.cast::<[u32; 4]>().add(i).read());
            path.write(dst.cast::<[[u32; 4]; 4]>().add(i).cast(), path.transpose4(registers));
        }
    }
}

#[inline(always)]
pub(super) unsafe fn interleave<P: Path>(
    path: P,
    dst: *mut u8,
    src: &[*const u8],
    width: LaneWidth,
    lanes: usize,
) {
    // SAFETY: the caller's promise.
    with_width!(width, T => unsafe {
        match *src {
            [a, b] if size_of::<T>() == 2 => join_words(path, dst, a, b, lanes),
            [a, b] => join::<_, T, 2>(path, dst, [a, b], lanes),
            [a, b, c, d] if size_of::<T>() == 4 => join_four(path, dst, [a, b, c, d], lanes),
            [a, b, c, d] => join::<_, T, 4>(path, dst, [a, b, c, d], lanes),
            _ => {}
        }
    });
}

#[inline(always)]
pub(super) unsafe fn load_tiles<P: Path>(
    path: P,
    dst: &[*mut u8],
    base: *const u8,
    addresses: &[u64],
    warps: u32,
    transposed: bool,
) {
    let mut rest = warps;
    while rest != 0 {
        let first = rest.trailing_zeros() as usize * WARP;
        rest &= rest - 1;
        for (tile, register) in dst.iter().enumerate() {
            let mut rows = [[0u16; 8]; 8];
            for (row, &address) in rows.iter_mut().zip(&addresses[first + 8 * tile..][..8]) {
                // SAFETY: the caller's promise.
                *row = unsafe { base.wrapping_add(address as usize).cast::<[u16; 8]>().read_unaligned() };
            }
            // SAFETY: the caller's promise.
            unsafe {
                let rows = if transposed { path.transpose_halves(rows) } else { rows };
                register.cast::<u32>().add(first).cast::<[[u16; 8]; 8]>().write_unaligned(rows);
            }
        }
    }
}

#[inline(always)]
pub(super) unsafe fn copy_rows<P: Path>(
    _: P,
    dst: *mut u8,
    width: LaneWidth,
    src: *const u8,
    rows: MemoryRows,
    broadcast: bool,
) {
    // SAFETY: the caller's promise.
    with_width!(width, T => unsafe {
        if rows.groups == 1 && broadcast {
            for row in 0..rows.count {
                let value = src.wrapping_add(row.wrapping_mul(rows.pitch)).cast::<T>().read_unaligned();
                dst.cast::<[T; BLOCK]>().add(row).write_unaligned([value; BLOCK]);
            }
            return;
        }
        for row in 0..rows.count {
            let from = src.wrapping_add(row.wrapping_mul(rows.pitch)).cast::<[T; BLOCK]>();
            let to = dst.cast::<[T; BLOCK]>().add(row * rows.groups);
            for group in 0..rows.groups {
                to.add(group).write_unaligned(match broadcast {
                    true => [from.cast::<T>().read_unaligned(); BLOCK],
                    false => from.add(group).read_unaligned(),
                });
            }
        }
    });
}
