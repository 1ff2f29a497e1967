//! Operations on registers: fill, merge under a mask, compress, expand, extend, truncate and permute.

use super::drive::Lane;
use super::helpers::{Extend, LaneWidth};
use super::path::{BLOCK, Block, Path, WARP};
use super::select::Select;
use std::ops::Range;

/// The mask's bits for a group of 16 lanes.
#[inline(always)]
pub(super) fn group(mask: &[u64], group: usize) -> u16 {
    (mask[group / 4] >> (group % 4 * BLOCK)) as u16
}

/// See [`Helpers`](super::Helpers), also for the following functions.
#[inline(always)]
pub(super) unsafe fn fill<P: Path>(_: P, dst: *mut u8, width: LaneWidth, value: u64, lanes: usize) {
    /// # Safety
    /// `dst` must be valid for `count` elements.
    #[inline(always)]
    unsafe fn fill<T: Copy>(dst: *mut u8, value: T, count: usize) {
        for i in 0..count {
            // SAFETY: the caller's promise.
            unsafe { dst.cast::<T>().add(i).write(value) }
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            LaneWidth::Bit => fill(dst, 0u16.wrapping_sub(value as u16 & 1), lanes / BLOCK),
            LaneWidth::B2 => fill(dst, value as u16, lanes),
            LaneWidth::B4 => fill(dst, value as u32, lanes),
            LaneWidth::B8 => fill(dst, value, lanes),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn ramp<P: Path>(
    _: P,
    dst: *mut u8,
    width: LaneWidth,
    base: u64,
    stride: u64,
    lanes: usize,
) {
    macro_rules! ramp {
        ($T:ident) => {{
            // Element by element: with blocks of lanes, the compiler processes several blocks at once and scatters
            // their elements.
            let (base, stride) = (base as $T, stride as $T);
            for i in 0..lanes / BLOCK * BLOCK {
                // SAFETY: the caller's promise.
                unsafe { dst.cast::<$T>().add(i).write(base.wrapping_add(stride.wrapping_mul(i as $T))) }
            }
        }};
    }
    match width {
        LaneWidth::Bit => {}
        LaneWidth::B2 => ramp!(u16),
        LaneWidth::B4 => ramp!(u32),
        LaneWidth::B8 => ramp!(u64),
    }
}

#[inline(always)]
pub(super) unsafe fn merge<P: Path>(
    path: P,
    dst: *mut u8,
    src: *const u8,
    width: LaneWidth,
    mask: &[u64],
    groups: Range<usize>,
) {
    /// # Safety
    /// `dst` and `src` must be valid for the groups.
    #[inline(always)]
    unsafe fn merge<P: Path, T: Select>(
        path: P,
        dst: *mut u8,
        src: *const u8,
        mask: &[u64],
        groups: Range<usize>,
    ) {
        let (dst, src) = (dst.cast::<Block<T>>(), src.cast::<Block<T>>());
        for i in groups {
            let m = group(mask, i);
            // SAFETY: the caller's promise.
            unsafe {
                match m {
                    0 => {}
                    0xffff => dst.add(i).write(src.add(i).read()),
                    _ => dst.add(i).write(T::select(path, m, src.add(i).read(), dst.add(i).read())),
                }
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            LaneWidth::Bit => {
                let (dst, src) = (dst.cast::<u16>(), src.cast::<u16>());
                for i in groups {
                    let m = group(mask, i);
                    dst.add(i).write(src.add(i).read() & m | dst.add(i).read() & !m);
                }
            }
            LaneWidth::B2 => merge::<_, u16>(path, dst, src, mask, groups),
            LaneWidth::B4 => merge::<_, u32>(path, dst, src, mask, groups),
            LaneWidth::B8 => merge::<_, u64>(path, dst, src, mask, groups),
        }
    }
}

/// Elements whose masked lanes can be compressed and expanded.
trait Compress: Select {
    /// See [`Path::compress32`].
    fn compress<P: Path>(path: P, x: Block<Self>, mask: u16, to: &mut Block<Self>);
    /// See [`Path::expand32`].
    fn expand<P: Path>(path: P, from: &Block<Self>, mask: u16) -> Block<Self>;
}

impl Compress for u16 {
    #[inline(always)]
    fn compress<P: Path>(path: P, x: Block<u16>, mask: u16, to: &mut Block<u16>) {
        let mut wide = [0; BLOCK];
        path.compress32(x.map(u32::from), mask, &mut wide);
        *to = wide.map(|x| x as u16);
    }
    #[inline(always)]
    fn expand<P: Path>(path: P, from: &Block<u16>, mask: u16) -> Block<u16> {
        path.expand32(&from.map(u32::from), mask).map(|x| x as u16)
    }
}

macro_rules! compress {
    ($($T:ident $compress:ident $expand:ident)*) => {
        $(impl Compress for $T {
            #[inline(always)]
            fn compress<P: Path>(path: P, x: Block<$T>, mask: u16, to: &mut Block<$T>) {
                path.$compress(x, mask, to)
            }
            #[inline(always)]
            fn expand<P: Path>(path: P, from: &Block<$T>, mask: u16) -> Block<$T> {
                path.$expand(from, mask)
            }
        })*
    };
}
compress!(u32 compress32 expand32 u64 compress64 expand64);

/// A word of the mask (64 lanes) with at most this many lanes is copied lane by lane.
const FEW_OF_WORD: u32 = 8;

/// Copies the elements of a mask's lanes from an array to the contiguous `packed`, or with `BACK` from `packed` to
/// the array.
///
/// # Safety
/// As for [`Helpers`](super::Helpers). The function does not write the side that it reads.
#[inline(always)]
unsafe fn repack<P: Path, T: Compress, const BACK: bool>(
    path: P,
    array: *mut u8,
    packed: *mut u8,
    mask: &[u64],
) {
    let (array, mut packed) = (array.cast::<T>(), packed.cast::<T>());
    for (i, &word) in mask.iter().enumerate() {
        let mut rest = word;
        // SAFETY: the caller's promise.
        unsafe {
            if word.count_ones() <= FEW_OF_WORD {
                while rest != 0 {
                    let element = array.add(64 * i + rest.trailing_zeros() as usize);
                    if BACK {
                        element.write(packed.read())
                    } else {
                        packed.write(element.read())
                    }
                    packed = packed.add(1);
                    rest &= rest - 1;
                }
                continue;
            }
            for group in 4 * i..4 * i + 4 {
                let lanes = rest as u16;
                rest >>= BLOCK;
                if lanes == 0 {
                    continue;
                }
                let block = array.cast::<Block<T>>().add(group);
                if BACK {
                    let elements = T::expand(path, &*packed.cast(), lanes);
                    block.write(T::select(path, lanes, elements, block.read()));
                } else {
                    T::compress(path, block.read(), lanes, &mut *packed.cast());
                }
                packed = packed.add(lanes.count_ones() as usize);
            }
        }
    }
}

#[inline(always)]
pub(super) unsafe fn compress<P: Path>(
    path: P,
    dst: *mut u8,
    src: *const u8,
    width: LaneWidth,
    mask: &[u64],
) {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            LaneWidth::Bit => {}
            LaneWidth::B2 => repack::<_, u16, false>(path, src.cast_mut(), dst, mask),
            LaneWidth::B4 => repack::<_, u32, false>(path, src.cast_mut(), dst, mask),
            LaneWidth::B8 => repack::<_, u64, false>(path, src.cast_mut(), dst, mask),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn expand<P: Path>(path: P, dst: *mut u8, src: *const u8, width: LaneWidth, mask: &[u64]) {
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            LaneWidth::Bit => {}
            LaneWidth::B2 => repack::<_, u16, true>(path, dst, src.cast_mut(), mask),
            LaneWidth::B4 => repack::<_, u32, true>(path, dst, src.cast_mut(), mask),
            LaneWidth::B8 => repack::<_, u64, true>(path, dst, src.cast_mut(), mask),
        }
    }
}

/// dst = f(src), lane by lane.
///
/// # Safety
/// Both must be valid for `lanes` lanes.
#[inline(always)]
unsafe fn convert<A: Lane, R: Lane>(dst: *mut u8, src: *const u8, lanes: usize, f: impl Fn(A) -> R) {
    for i in 0..lanes / BLOCK {
        // SAFETY: the caller's promise.
        unsafe {
            let block = src.cast::<Block<A>>().add(i).read();
            dst.cast::<Block<R>>().add(i).write(super::drive::apply1(&f, block));
        }
    }
}

#[inline(always)]
pub(super) unsafe fn extend<P: Path>(
    _: P,
    dst: *mut u8,
    width: LaneWidth,
    src: *const u8,
    from: Extend,
    lanes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (from, width) {
            (_, LaneWidth::Bit) => {}
            (Extend::U8, LaneWidth::B2) => convert(dst, src, lanes, |x: u16| x & 0xff),
            (Extend::U8, LaneWidth::B4) => convert(dst, src, lanes, |x: u16| u32::from(x & 0xff)),
            (Extend::U8, LaneWidth::B8) => convert(dst, src, lanes, |x: u16| u64::from(x & 0xff)),
            (Extend::S8, LaneWidth::B2) => convert(dst, src, lanes, |x: u16| i16::from(x as i8)),
            (Extend::S8, LaneWidth::B4) => convert(dst, src, lanes, |x: u16| i32::from(x as i8)),
            (Extend::S8, LaneWidth::B8) => convert(dst, src, lanes, |x: u16| i64::from(x as i8)),
            (Extend::U16 | Extend::S16, LaneWidth::B2) => convert(dst, src, lanes, |x: u16| x),
            (Extend::U16, LaneWidth::B4) => convert(dst, src, lanes, |x: u16| u32::from(x)),
            (Extend::U16, LaneWidth::B8) => convert(dst, src, lanes, |x: u16| u64::from(x)),
            (Extend::S16, LaneWidth::B4) => convert(dst, src, lanes, |x: i16| i32::from(x)),
            (Extend::S16, LaneWidth::B8) => convert(dst, src, lanes, |x: i16| i64::from(x)),
            (Extend::U32 | Extend::S32, LaneWidth::B2) => convert(dst, src, lanes, |x: u32| x as u16),
            (Extend::U32 | Extend::S32, LaneWidth::B4) => convert(dst, src, lanes, |x: u32| x),
            (Extend::U32, LaneWidth::B8) => convert(dst, src, lanes, |x: u32| u64::from(x)),
            (Extend::S32, LaneWidth::B8) => convert(dst, src, lanes, |x: i32| i64::from(x)),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn truncate<P: Path>(
    _: P,
    dst: *mut u8,
    width: LaneWidth,
    src: *const u8,
    from: LaneWidth,
    lanes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (from, width) {
            (LaneWidth::B4, LaneWidth::B2) => convert(dst, src, lanes, |x: u32| x as u16),
            (LaneWidth::B8, LaneWidth::B2) => convert(dst, src, lanes, |x: u64| x as u16),
            (LaneWidth::B8, LaneWidth::B4) => convert(dst, src, lanes, |x: u64| x as u32),
            (LaneWidth::B2, LaneWidth::B2) => convert(dst, src, lanes, |x: u16| x),
            (LaneWidth::B4, LaneWidth::B4) => convert(dst, src, lanes, |x: u32| x),
            (LaneWidth::B8, LaneWidth::B8) => convert(dst, src, lanes, |x: u64| x),
            _ => {}
        }
    }
}

#[inline(always)]
pub(super) unsafe fn permute_warps<P: Path>(
    path: P,
    dst: *mut u8,
    src: *const u8,
    from: &[u32; WARP],
    lanes: usize,
) {
    let (dst, src) = (dst.cast::<u32>(), src.cast::<u32>());
    for first in (0..lanes).step_by(WARP) {
        // SAFETY: the caller's promise. The last warp may have 16 lanes.
        unsafe {
            if lanes - first >= WARP {
                let warp = src.add(first).cast::<[u32; WARP]>().read_unaligned();
                dst.add(first).cast::<[u32; WARP]>().write_unaligned(path.permute(warp, *from));
            } else {
                let mut warp = [0; WARP];
                warp[..BLOCK].copy_from_slice(&src.add(first).cast::<Block<u32>>().read_unaligned());
                let warp = path.permute(warp, *from);
                dst.add(first).cast::<Block<u32>>().write_unaligned(std::array::from_fn(|i| warp[i]));
            }
        }
    }
}
