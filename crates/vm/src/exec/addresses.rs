//! The addresses of an access, in affine form or from a register's array, and the memory that holds them.

use std::mem::MaybeUninit;

use machine::mask::{GANG_LANES, GROUP_LANES, Mask};

use super::Active;
use crate::affine::{Affine, LaneRows};
use crate::pattern::Pattern;

/// The addresses of the active lanes.
#[derive(Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "it lives on the stack while one access runs")]
pub(super) enum Addresses {
    /// The addresses have an affine form.
    Even(Even),
    /// One address for each lane.
    Each(Each),
}

/// A buffer for one address for each lane.
pub(super) type Room = [MaybeUninit<u64>; GANG_LANES];
pub(super) const ROOM: Room = [MaybeUninit::uninit(); GANG_LANES];

impl Addresses {
    /// The addresses of all lanes up to the last active group. Entries of inactive lanes are arbitrary.
    pub fn all<'r>(&self, active: &Active, room: &'r mut Room) -> &'r [u64] {
        let room = &mut room[..active.lanes().1];
        for (group, to) in room.as_chunks_mut::<GROUP_LANES>().0.iter_mut().enumerate() {
            let first = group * GROUP_LANES;
            match self {
                Addresses::Even(even) => {
                    let (start, step) = (even.at(first), even.group_step());
                    for (i, to) in to.iter_mut().enumerate() {
                        to.write(match step {
                            Some(step) => start.wrapping_add(step.wrapping_mul(i as u64)),
                            None => even.at(first + i),
                        });
                    }
                }
                Addresses::Each(each) => {
                    for (i, to) in to.iter_mut().enumerate() {
                        to.write(each.at(first + i));
                    }
                }
            }
        }
        // SAFETY: the loop has written whole groups, which are all entries.
        unsafe { room.assume_init_ref() }
    }
}

/// Addresses in affine form that do not wrap around.
#[derive(Clone, Copy)]
pub(super) struct Even {
    /// Steps are sign-extended to 64 bits.
    pub affine: Affine,
    pub rows: LaneRows,
    /// The least and the greatest address of all lanes, active or not.
    pub bounds: (u64, u64),
}

impl Even {
    /// The addresses `value + offset`, if none wraps around. `narrow` addresses have 32 bits.
    #[inline]
    pub fn new(value: Affine, offset: u64, narrow: bool, rows: LaneRows) -> Option<Even> {
        let base = value.base.wrapping_add(offset);
        let extend = |step: u64| if narrow { step as i32 as u64 } else { step };
        let (base, limit) = if narrow { (base & 0xffff_ffff, u64::from(u32::MAX)) } else { (base, u64::MAX) };
        let affine = Affine { base, ..value.map(extend) };
        let (least, greatest) = affine.span(rows)?;
        let bounds = (base.checked_add_signed(least)?, base.checked_add_signed(greatest)?);
        (bounds.1 <= limit).then_some(Even { affine, rows, bounds })
    }

    pub fn uniform(address: u64, rows: LaneRows) -> Even {
        Even { affine: Affine::uniform(address), rows, bounds: (address, address) }
    }

    #[inline]
    pub fn at(&self, lane: usize) -> u64 {
        self.affine.at(lane, self.rows)
    }

    /// The address of the first lane of a CTA.
    #[inline]
    pub fn of_block(&self, block: usize) -> u64 {
        self.affine.base.wrapping_add(self.affine.block_stride.wrapping_mul(block as u64))
    }

    /// The least and the greatest address of the lanes of a mask. Where addresses are linear in the lane, these are
    /// the addresses of the first and the last lane.
    pub fn bounds_of(&self, mask: Mask) -> Option<(u64, u64)> {
        let (rows, Affine { base, step, block_stride, .. }) = (self.rows, self.affine);
        let join = |(a, b): (u64, u64), (c, d): (u64, u64)| (a.min(c), b.max(d));
        let order = |first: u64, last: u64| (first.min(last), first.max(last));
        if !rows.has_whole_groups() {
            return mask.into_iter().map(|lane| (self.at(lane), self.at(lane))).reduce(join);
        }
        let lanes = if rows.blocks() == 1 { GANG_LANES } else { rows.block_lanes() };
        if self.affine.is_linear_in_block(step, rows) && lanes.is_multiple_of(64) {
            let blocks = mask.words().chunks(lanes / 64).enumerate();
            let of_block = |(block, words): (usize, &[u64])| {
                let (first, last) =
                    (words.iter().position(|&w| w != 0)?, words.iter().rposition(|&w| w != 0)?);
                let first = 64 * first + words[first].trailing_zeros() as usize;
                let last = 64 * last + words[last].ilog2() as usize;
                let start = base.wrapping_add(block_stride.wrapping_mul(block as u64));
                let at = |lane: usize| start.wrapping_add(step.wrapping_mul(lane as u64));
                Some(order(at(first), at(last)))
            };
            return blocks.filter_map(of_block).reduce(join);
        }
        // A group lies within a row.
        let (first, end) = mask.group_span();
        let groups = (first..end).map(|group| (group * GROUP_LANES, mask.group(group)));
        let of_group = |(lane, lanes): (usize, u16)| {
            let [first, last] = [lanes.trailing_zeros(), lanes.ilog2()].map(|at| self.at(lane + at as usize));
            order(first, last)
        };
        groups.filter(|group| group.1 != 0).map(of_group).reduce(join)
    }

    /// Whether the addresses of all lanes are aligned to `bytes`, a power of two.
    #[inline]
    pub fn aligned(&self, bytes: u64) -> bool {
        let Affine { base, step, pitch, block_stride } = self.affine;
        (base | step | pitch | block_stride) & (bytes - 1) == 0
    }

    /// The distance between consecutive lanes, if it is the same within all groups.
    #[inline]
    pub fn group_step(&self) -> Option<u64> {
        let Affine { step, .. } = self.affine;
        (self.rows.has_whole_groups() || self.affine.is_linear(step, self.rows)).then_some(step)
    }

    /// Whether the elements of `bytes` bytes are contiguous within each CTA, in the order of the lanes.
    pub fn consecutive_in_block(&self, bytes: u64) -> bool {
        self.affine.is_linear_in_block(bytes, self.rows)
    }

    /// Whether the elements of `bytes` bytes are contiguous, in the order of the lanes.
    #[inline]
    pub fn consecutive(&self, bytes: u64) -> bool {
        self.affine.is_linear(bytes, self.rows)
    }
}

/// Addresses from a register's array, plus an offset.
#[derive(Clone, Copy)]
pub(super) struct Each {
    /// The register's array.
    pub array: *const u8,
    /// Elements have 4 bytes, and addresses wrap around at 32 bits.
    pub narrow: bool,
    pub offset: u64,
    /// What the register's values in the active lanes have in common.
    pub pattern: Pattern,
}

impl Each {
    #[inline]
    pub fn at(&self, lane: usize) -> u64 {
        // SAFETY: the array has an element for every lane, and lives until a slot of its window is written.
        unsafe {
            if self.narrow {
                u64::from((*self.array.cast::<u32>().add(lane)).wrapping_add(self.offset as u32))
            } else {
                (*self.array.cast::<u64>().add(lane)).wrapping_add(self.offset)
            }
        }
    }

    /// The least and the greatest address of the active lanes, if the offset makes none wrap.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let limit = if self.narrow { u64::from(u32::MAX) } else { u64::MAX };
        let shifted = |a: u64| a.checked_add_signed(self.offset as i64).filter(|&a| a <= limit);
        Some((shifted(self.pattern.least)?, shifted(self.pattern.greatest)?))
    }

    /// Whether the addresses of all active lanes are aligned to `bytes`, a power of two.
    pub fn aligned(&self, bytes: u64) -> bool {
        (self.pattern.least.wrapping_add(self.offset) | self.pattern.differ) & (bytes - 1) == 0
    }
}

/// Host memory that backs the device addresses from `base` on.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub storage: *mut u8,
    pub base: u64,
    /// One past its last address.
    pub end: u64,
    /// If each CTA has its own copy of this memory: bytes from one copy to the next, else 0. Affine addresses already
    /// include this stride.
    pub stride: usize,
    /// The memory may be gone the next time: it belongs to another CTA, which may end.
    pub passing: bool,
}

impl Region {
    /// The region, if it holds the addresses from `least` to `end`, exclusive.
    pub fn holding(self, least: u64, end: u64) -> Option<Region> {
        (self.base <= least && end <= self.end).then_some(self)
    }

    /// # Safety
    /// The address must be one that the region was found for.
    #[inline]
    pub unsafe fn at(self, address: u64) -> *mut u8 {
        // Not `add`: a region may span several allocations of the host (`Extent::resolve`).
        self.storage.wrapping_add(address.wrapping_sub(self.base) as usize)
    }
}

#[inline]
pub(super) fn address_of(addresses: &Addresses, lane: usize) -> u64 {
    match addresses {
        Addresses::Even(even) => even.at(lane),
        Addresses::Each(each) => each.at(lane),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_lanes() {
        let masks = [
            Mask::first(1),
            Mask::first(100),
            Mask::single(63) | Mask::single(130),
            Mask::range(40, 50) | Mask::range(200, 222),
            Mask::first(256),
        ];
        for (block, lanes, blocks) in
            [([256, 1, 1], 256, 1), ([64, 1, 1], 256, 4), ([32, 1, 1], 256, 8), ([16, 16, 1], 256, 1)]
        {
            let rows = LaneRows::of(block, lanes, blocks);
            let steps = [0, 4, 64, 4u64.wrapping_neg()];
            for (step, pitch, block_stride) in steps.iter().flat_map(|&step| {
                let linear = Affine::linear(0, step, rows).pitch;
                [(step, linear, 0), (step, linear, 4096), (step, 1000, 8), (step, 4, 0)]
            }) {
                let affine = Affine { base: 1 << 20, step, pitch, block_stride };
                let even = Even::new(affine, 0, false, rows).unwrap();
                for mask in masks {
                    let all = || mask.into_iter().map(|lane| even.at(lane));
                    assert_eq!(even.bounds_of(mask), all().min().zip(all().max()), "{affine:?} {block:?}");
                }
                assert_eq!(even.bounds_of(Mask::EMPTY), None);
            }
        }
    }
}
