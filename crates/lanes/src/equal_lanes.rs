//! Finds the lanes that hold the same value.
//!
//! These functions compare whole vectors: for `match` the lanes of a warp, for targets of `brx.idx`, barriers and
//! callees all lanes of a gang.
//!
//! Narrowest tests: `tests/run`: `match*`, `brx_idx*`, `call_indirect`; `tests/handlers/helpers.rs`.

use super::HostPath;
use super::helpers::LaneWidth;
use super::path::{BLOCK, Block, Path, WARP};
use std::ops::Range;

/// The bits of a lane, as an integer.
trait Bits: Copy + PartialEq {
    /// All ones if both are equal, otherwise zero.
    fn compare(self, other: Self) -> Self;

    /// Packs elements that are all ones or zero into one bit each.
    fn bits<P: Path>(path: P, x: Block<Self>) -> u16;
}

macro_rules! bits {
    ($($T:ident by $top_bits:ident;)*) => {
        $(impl Bits for $T {
            #[inline(always)]
            fn compare(self, other: $T) -> $T {
                (0 as $T).wrapping_sub((self == other) as $T)
            }

            #[inline(always)]
            fn bits<P: Path>(path: P, x: Block<$T>) -> u16 {
                if P::PATH == HostPath::Portable {
                    // The bits of the result, at the width of the elements: the general code would narrow them first.
                    let mut bits = x;
                    for (lane, bits) in bits.iter_mut().enumerate() {
                        *bits &= 1 << lane;
                    }
                    return bits.iter().fold(0, |all, bits| all | bits) as u16;
                }
                path.$top_bits(x)
            }
        })*
    };
}
bits! {
    u16 by top_bits16;
    u32 by top_bits32;
    u64 by top_bits64;
}

/// The lanes of a block that hold a value.
#[inline(always)]
fn lanes_of<P: Path, T: Bits>(path: P, block: Block<T>, value: T) -> u16 {
    let mut same = block;
    for lane in &mut same {
        *lane = lane.compare(value);
    }
    T::bits(path, same)
}

/// See [`Helpers`](super::Helpers), also for the following functions.
#[inline(always)]
pub(super) unsafe fn lanes_with<P: Path>(
    path: P,
    mask: &mut [u64],
    src: *const u8,
    width: LaneWidth,
    value: u64,
    groups: Range<usize>,
) {
    /// # Safety
    /// As for [`lanes_with`].
    #[inline(always)]
    unsafe fn find<P: Path, T: Bits>(
        path: P,
        mask: &mut [u64],
        src: *const u8,
        value: T,
        groups: Range<usize>,
    ) {
        const GROUPS: usize = 64 / BLOCK;
        let blocks = src.cast::<Block<T>>();
        // One word of the mask at a time; each word is changed only once.
        let words = groups.start / GROUPS..groups.end.div_ceil(GROUPS);
        for (word, bits) in words.clone().zip(&mut mask[words]) {
            let blocks = blocks.wrapping_add(word * GROUPS);
            let mut found = 0;
            let mut add = |group| {
                // SAFETY: the caller's promise.
                let lanes = unsafe { lanes_of::<_, T>(path, blocks.add(group).read(), value) };
                found |= u64::from(lanes) << (group * BLOCK);
            };
            // A loop of known length for whole words.
            match groups.end - word * GROUPS {
                GROUPS.. => (0..GROUPS).for_each(&mut add),
                left => (0..left).for_each(&mut add),
            }
            *bits = found;
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            LaneWidth::Bit => {}
            LaneWidth::B2 => find::<_, u16>(path, mask, src, value as u16, groups),
            LaneWidth::B4 => find::<_, u32>(path, mask, src, value as u32, groups),
            LaneWidth::B8 => find::<_, u64>(path, mask, src, value, groups),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn match_warps<P: Path>(
    path: P,
    dst: *mut u8,
    src: *const u8,
    width: LaneWidth,
    members: &[u32],
    all: bool,
    lanes: usize,
) {
    /// # Safety
    /// As for [`match_warps`].
    #[inline(always)]
    unsafe fn find<P: Path, T: Bits, const ALL: bool>(
        path: P,
        dst: *mut u8,
        src: *const u8,
        members: &[u32],
        lanes: usize,
    ) {
        let (dst, src) = (dst.cast::<u32>(), src.cast::<T>());
        for (warp, &members) in members.iter().enumerate().take(lanes.div_ceil(WARP)) {
            let first = warp * WARP;
            // The last warp may have 16 lanes.
            let count = WARP.min(lanes - first);
            let members = members & u32::MAX >> (WARP - count);
            // SAFETY: the caller's promise.
            unsafe {
                let low = src.add(first).cast::<Block<T>>().read();
                let high = src.add(first + count - BLOCK).cast::<Block<T>>().read();
                for lane in first..first + count {
                    let value = src.add(lane).read();
                    let upper = u32::from(lanes_of::<_, T>(path, high, value)) << BLOCK;
                    let same = (u32::from(lanes_of::<_, T>(path, low, value)) | upper) & members;
                    dst.add(lane).write(if ALL && same != members { 0 } else { same });
                }
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match (width, all) {
            (LaneWidth::Bit, _) => {}
            (LaneWidth::B2, false) => find::<_, u16, false>(path, dst, src, members, lanes),
            (LaneWidth::B4, false) => find::<_, u32, false>(path, dst, src, members, lanes),
            (LaneWidth::B8, false) => find::<_, u64, false>(path, dst, src, members, lanes),
            (LaneWidth::B2, true) => find::<_, u16, true>(path, dst, src, members, lanes),
            (LaneWidth::B4, true) => find::<_, u32, true>(path, dst, src, members, lanes),
            (LaneWidth::B8, true) => find::<_, u64, true>(path, dst, src, members, lanes),
        }
    }
}
