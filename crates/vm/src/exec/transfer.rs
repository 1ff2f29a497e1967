//! Copies between registers and memory that has been checked.

use std::mem::MaybeUninit;

use ir::Width;
use lanes::{Element, Extend, Helpers, LaneWidth, memory};

use super::Active;
use crate::mask::{CHUNK_LANES, GROUP_LANES, Mask};
use crate::pattern::Pattern;
use crate::registers::lane_width;
use crate::scalar::{LaneRows, Scalar};

/// The addresses of the active lanes.
#[derive(Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "it lives on the stack while one access runs")]
pub(super) enum Addresses {
    /// They step evenly along rows and columns.
    Even(Even),
    /// One for each lane.
    Each(Each),
}

/// Room for an address of every lane.
pub(super) type Room = [MaybeUninit<u64>; CHUNK_LANES];
pub(super) const ROOM: Room = [MaybeUninit::uninit(); CHUNK_LANES];

impl Addresses {
    /// Those of all lanes up to the last active group; of lanes that are not active, anything.
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
        // SAFETY: they have been written, whole groups of them.
        unsafe { room.assume_init_ref() }
    }
}

/// Addresses that step evenly and do not wrap.
#[derive(Clone, Copy)]
pub(super) struct Even {
    /// Steps are 64 bits wide.
    pub scalar: Scalar,
    pub rows: LaneRows,
    /// The least and the greatest address of all lanes, active or not.
    pub bounds: (u64, u64),
}

impl Even {
    /// The addresses `value + offset`, if none wraps; `narrow` ones wrap at 32 bits.
    #[inline]
    pub fn new(value: Scalar, offset: u64, narrow: bool, rows: LaneRows) -> Option<Even> {
        let base = value.base.wrapping_add(offset);
        let extend = |step: u64| if narrow { step as i32 as u64 } else { step };
        let (base, limit) = if narrow { (base & 0xffff_ffff, u64::from(u32::MAX)) } else { (base, u64::MAX) };
        let scalar = Scalar { base, ..value.map(extend) };
        let (least, greatest) = scalar.span(rows)?;
        let bounds = (base.checked_add_signed(least)?, base.checked_add_signed(greatest)?);
        (bounds.1 <= limit).then_some(Even { scalar, rows, bounds })
    }

    pub fn uniform(address: u64, rows: LaneRows) -> Even {
        Even { scalar: Scalar::uniform(address), rows, bounds: (address, address) }
    }

    #[inline]
    pub fn at(&self, lane: usize) -> u64 {
        self.scalar.at(lane, self.rows)
    }

    /// That of the first lane of a block.
    #[inline]
    pub fn of_block(&self, block: usize) -> u64 {
        self.scalar.base.wrapping_add(self.scalar.block_stride.wrapping_mul(block as u64))
    }

    /// The least and the greatest address of the lanes of a mask: where addresses step evenly, those of the first and the
    /// last lane.
    pub fn bounds_of(&self, mask: Mask) -> Option<(u64, u64)> {
        let (rows, Scalar { base, step, block_stride, .. }) = (self.rows, self.scalar);
        let join = |(a, b): (u64, u64), (c, d): (u64, u64)| (a.min(c), b.max(d));
        let order = |first: u64, last: u64| (first.min(last), first.max(last));
        if !rows.has_whole_groups() {
            return mask.into_iter().map(|lane| (self.at(lane), self.at(lane))).reduce(join);
        }
        let lanes = if rows.blocks() == 1 { CHUNK_LANES } else { rows.block_lanes() };
        if self.scalar.is_linear_in_block(step, rows) && lanes.is_multiple_of(64) {
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

    /// All lanes are aligned to `bytes`, a power of two.
    #[inline]
    pub fn aligned(&self, bytes: u64) -> bool {
        let Scalar { base, step, pitch, block_stride } = self.scalar;
        (base | step | pitch | block_stride) & (bytes - 1) == 0
    }

    /// The step from lane to lane that all groups have.
    #[inline]
    pub fn group_step(&self) -> Option<u64> {
        let Scalar { step, .. } = self.scalar;
        (self.rows.has_whole_groups() || self.scalar.is_linear(step, self.rows)).then_some(step)
    }

    /// The elements of `bytes` bytes stand one after the other in each block.
    pub fn consecutive_in_block(&self, bytes: u64) -> bool {
        self.scalar.is_linear_in_block(bytes, self.rows)
    }

    /// The elements of `bytes` bytes stand one after the other, in the order of the lanes.
    #[inline]
    pub fn consecutive(&self, bytes: u64) -> bool {
        self.scalar.is_linear(bytes, self.rows)
    }
}

/// Addresses that stand in a register, plus an offset.
#[derive(Clone, Copy)]
pub(super) struct Each {
    /// The register's array.
    pub array: *const u8,
    /// Its elements have 4 bytes, and addresses wrap at 32 bits.
    pub narrow: bool,
    pub offset: u64,
    /// What is known of the register's values in the active lanes.
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

    /// All active lanes are aligned to `bytes`, a power of two.
    pub fn aligned(&self, bytes: u64) -> bool {
        (self.pattern.least.wrapping_add(self.offset) | self.pattern.differ) & (bytes - 1) == 0
    }
}

/// Memory of the host that holds device addresses from `base` on.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub storage: *mut u8,
    pub base: u64,
    /// One past its last address.
    pub end: u64,
    /// If every block has such memory of its own: bytes from one block's to the next. Even addresses have been changed to make
    /// up for it.
    pub stride: usize,
    /// It may not be there the next time: memory of another block, which may end.
    pub passing: bool,
}

impl Region {
    /// If it holds the addresses from `least` to `end`, exclusive.
    pub fn holding(self, least: u64, end: u64) -> Option<Region> {
        (self.base <= least && end <= self.end).then_some(self)
    }

    /// # Safety
    /// The address must be one that the region was found for.
    #[inline]
    pub unsafe fn at(self, address: u64) -> *mut u8 {
        // Not `add`: memory of the host is many of its objects (`Extent::resolve`).
        self.storage.wrapping_add(address.wrapping_sub(self.base) as usize)
    }
}

/// The transfer of one element after the other between memory and registers.
pub(super) struct Transfer<'a> {
    pub helpers: &'static Helpers,
    pub rows: LaneRows,
    /// Holds the accesses of all active lanes.
    pub region: Region,
    pub addresses: &'a Addresses,
    pub active: &'a Active,
    /// Bytes of one element.
    pub bytes: u32,
    /// Bytes of all elements of a lane.
    pub stride: u64,
}

impl Transfer<'_> {
    /// The step from lane to lane in a group, if it is even.
    #[inline]
    fn step(&self, group: usize) -> Option<u64> {
        match self.addresses {
            Addresses::Even(even) => even.group_step(),
            Addresses::Each(_) if self.splits_groups() => None,
            Addresses::Each(each) => each.pattern.step(group),
        }
    }

    /// A group has lanes of several blocks, which have memory of their own.
    #[inline]
    fn splits_groups(&self) -> bool {
        self.region.stride > 0 && !self.rows.has_whole_groups()
    }

    /// If the vectors of all lanes of the active groups stand one after the other: where they start.
    fn consecutive_vectors(&self) -> Option<*mut u8> {
        match self.addresses {
            Addresses::Even(even) if even.consecutive(self.stride) && self.active.whole_groups => {
                // SAFETY: the first lane's access lies within the region.
                Some(unsafe { self.region.at(even.at(self.active.lanes().0)) })
            }
            _ => None,
        }
    }

    /// The vectors of the active lanes one after the other, with gaps for others of the active groups: in memory, or
    /// brought together in an array.
    ///
    /// # Safety
    /// The array must have room for a vector for all lanes of the active groups.
    pub unsafe fn pack_vectors(&self, room: *mut u8) -> *const u8 {
        if let Some(start) = self.consecutive_vectors() {
            return start;
        }
        // SAFETY: the caller's promise; the region holds the accesses of all active lanes.
        unsafe {
            match self.stride {
                2 => self.pack::<[u8; 2]>(room),
                4 => self.pack::<[u8; 4]>(room),
                8 => self.pack::<[u8; 8]>(room),
                _ => self.pack::<[u8; 16]>(room),
            }
        }
        room
    }

    /// # Safety
    /// As [`Transfer::pack_vectors`].
    unsafe fn pack<T: Copy>(&self, room: *mut u8) {
        let (first, end) = self.active.groups;
        let to = room.cast::<T>();
        for group in first..end {
            let (lanes, lane) = (self.active.mask.group(group), group * GROUP_LANES);
            // SAFETY: the caller's promise; the region holds the accesses of all active lanes.
            unsafe {
                let to = to.add((group - first) * GROUP_LANES);
                if lanes != u16::MAX {
                    // No lane shows what the array held before.
                    std::ptr::write_bytes(to, 0, GROUP_LANES);
                }
                match self.step(group) {
                    Some(step) => {
                        let (start, step) = (self.at(lane), step as usize);
                        let read =
                            |i: usize| start.wrapping_add(i.wrapping_mul(step)).cast::<T>().read_unaligned();
                        ones(lanes).for_each(|i| to.add(i).write_unaligned(read(i)));
                    }
                    None => ones(lanes).for_each(|i| {
                        to.add(i).write_unaligned(self.at(lane + i).cast::<T>().read_unaligned())
                    }),
                }
            }
        }
    }

    /// Where the vectors of the active groups can be written one after the other, if all lanes of these store them so.
    pub fn vectors_target(&self) -> Option<*mut u8> {
        self.consecutive_vectors()
    }

    /// Stores vectors that stand one after the other in an array, those of the active lanes, in ascending order.
    ///
    /// # Safety
    /// The array must have a vector for all lanes of the active groups.
    pub unsafe fn store_vectors(&self, from: *const u8) {
        // SAFETY: the caller's promise; the region holds the accesses of all active lanes.
        unsafe {
            match self.stride {
                2 => self.unpack::<[u8; 2]>(from),
                4 => self.unpack::<[u8; 4]>(from),
                8 => self.unpack::<[u8; 8]>(from),
                _ => self.unpack::<[u8; 16]>(from),
            }
        }
    }

    /// # Safety
    /// As [`Transfer::store_vectors`].
    unsafe fn unpack<T: Copy>(&self, from: *const u8) {
        let first = self.active.lanes().0;
        for group in self.active.groups.0..self.active.groups.1 {
            for i in ones(self.active.mask.group(group)) {
                let lane = group * GROUP_LANES + i;
                // SAFETY: the caller's promise; the region holds the accesses of all active lanes.
                unsafe { memory::write(self.at(lane), from.cast::<T>().add(lane - first).read_unaligned()) }
            }
        }
    }

    /// If the elements of all active lanes stand one after the other: where they start, and the lanes.
    fn consecutive(&self) -> Option<(*mut u8, usize, usize)> {
        let bytes = u64::from(self.bytes);
        let (first, end) = self.active.range;
        match self.addresses {
            Addresses::Even(even) if first < end && self.stride == bytes && even.consecutive(bytes) => {
                // SAFETY: the first lane's access lies within the region.
                Some((unsafe { self.region.at(even.at(first)) }, first, end))
            }
            _ => None,
        }
    }

    /// The element's kind for gathers and scatters, if a slot of this width holds it as it is.
    fn kind(&self, width: Width, signed: bool) -> Option<Element> {
        match (self.bytes, width) {
            (1, Width::W16) if signed => Some(Element::S8),
            (1, Width::W16) => Some(Element::U8),
            (2, Width::W16) => Some(Element::B2),
            (4, Width::W32) => Some(Element::B4),
            (8, Width::W64) => Some(Element::B8),
            _ => None,
        }
    }

    /// The step from lane to lane that all groups share, if they are whole.
    fn common_step(&self) -> Option<u64> {
        match self.addresses {
            Addresses::Even(even) => even.group_step().filter(|_| self.active.whole_groups),
            Addresses::Each(_) if self.splits_groups() => None,
            Addresses::Each(each) => each.pattern.common_step,
        }
    }

    /// The addresses, if they follow no pattern that is worth a closer look.
    fn scattered(&self) -> Option<&Each> {
        match self.addresses {
            Addresses::Each(each) if self.splits_groups() || !each.pattern.has_steps() => Some(each),
            _ => None,
        }
    }

    /// What to add to a register's value to get the host address of an element, and the active lanes for which that holds:
    /// those of one block after the other, if each has memory of its own.
    fn host_bases(&self, each: &Each, element: usize) -> impl Iterator<Item = (*mut u8, Mask)> {
        let offset = each.offset.wrapping_sub(self.region.base) as usize;
        let base = self.region.storage.wrapping_add(offset).wrapping_add(element * self.bytes as usize);
        let (stride, mask, lanes) = (self.region.stride, self.active.mask, self.rows.block_lanes());
        let parts = if stride == 0 { 1 } else { self.rows.blocks() };
        (0..parts).map(move |block| {
            let part = if parts == 1 { mask } else { mask & Mask::range(block * lanes, (block + 1) * lanes) };
            (base.wrapping_add(block * stride), part)
        })
    }

    /// Where a lane's access goes.
    ///
    /// # Safety
    /// The lane must be one of those whose accesses the region holds.
    #[inline]
    pub unsafe fn at(&self, lane: usize) -> *mut u8 {
        // SAFETY: the caller's promise; every block has such memory.
        unsafe {
            match self.addresses {
                Addresses::Even(even) => self.region.at(even.at(lane)),
                Addresses::Each(each) if self.region.stride == 0 => self.region.at(each.at(lane)),
                Addresses::Each(each) => {
                    self.region.at(each.at(lane)).add(self.rows.block_of(lane) * self.region.stride)
                }
            }
        }
    }

    /// Loads one element for each active lane.
    ///
    /// # Safety
    /// `to` must be an array of `width` for all lanes.
    pub unsafe fn load(&self, element: usize, signed: bool, width: Width, to: *mut u8) {
        if let Some((start, first, end)) = self.consecutive() {
            let (size, lanes) = (width.bytes(), end - first);
            let (to, whole_groups) = (to.wrapping_add(first * size), lanes.is_multiple_of(GROUP_LANES));
            // SAFETY: the region holds the accesses of all these lanes, and `to` has room for them.
            unsafe {
                if size == self.bytes as usize {
                    return std::ptr::copy_nonoverlapping(start, to, lanes * size);
                }
                if whole_groups {
                    return self.load_extended(start, signed, width, to, lanes);
                }
            }
        }
        let kind = self.kind(width, signed);
        if let Some(step) = self.common_step()
            && (step == 0 || step == u64::from(self.bytes) && step == self.stride)
        {
            // SAFETY: the region holds the accesses of all active lanes, which are whole groups.
            unsafe {
                match kind {
                    Some(Element::B2) => return self.load_rows::<u16>(step, element, to),
                    Some(Element::B4) => return self.load_rows::<u32>(step, element, to),
                    Some(Element::B8) => return self.load_rows::<u64>(step, element, to),
                    _ => {}
                }
            }
        }
        if let (Some(each), Some(kind)) = (self.scattered(), kind) {
            let offsets = if each.narrow { LaneWidth::B4 } else { LaneWidth::B8 };
            for (base, mask) in self.host_bases(each, element) {
                // SAFETY: the region holds the accesses of all active lanes.
                unsafe { (self.helpers.gather)(to, kind, base, each.array, offsets, mask.words()) }
            }
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            match (self.bytes, signed, width) {
                (1, false, Width::W16) => self.load_groups(element, to, |x: u8| u16::from(x)),
                (1, true, Width::W16) => self.load_groups(element, to, |x: i8| i16::from(x)),
                (1, false, Width::W32) => self.load_groups(element, to, |x: u8| u32::from(x)),
                (1, true, Width::W32) => self.load_groups(element, to, |x: i8| i32::from(x)),
                (1, false, _) => self.load_groups(element, to, |x: u8| u64::from(x)),
                (1, true, _) => self.load_groups(element, to, |x: i8| i64::from(x)),
                (2, _, Width::W16) => self.load_groups(element, to, |x: u16| x),
                (2, false, Width::W32) => self.load_groups(element, to, |x: u16| u32::from(x)),
                (2, true, Width::W32) => self.load_groups(element, to, |x: i16| i32::from(x)),
                (2, false, _) => self.load_groups(element, to, |x: u16| u64::from(x)),
                (2, true, _) => self.load_groups(element, to, |x: i16| i64::from(x)),
                (4, false, Width::W64) => self.load_groups(element, to, |x: u32| u64::from(x)),
                (4, true, Width::W64) => self.load_groups(element, to, |x: i32| i64::from(x)),
                (4, ..) => self.load_groups(element, to, |x: u32| x),
                _ => self.load_groups(element, to, |x: u64| x),
            }
        }
    }

    /// Loads elements that stand one after the other and are narrower than their registers.
    ///
    /// # Safety
    /// There must be so many, a multiple of 16, and `to` must have as many elements of `width`.
    unsafe fn load_extended(&self, from: *const u8, signed: bool, width: Width, to: *mut u8, lanes: usize) {
        let Helpers { extend, widen_bytes, .. } = *self.helpers;
        let mut words = [0u16; CHUNK_LANES];
        let words = words.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller's promise; there are no more lanes than words.
        unsafe {
            match (self.bytes, width) {
                (1, Width::W16) => widen_bytes(to, from, signed, lanes),
                (1, _) => {
                    widen_bytes(words, from, signed, lanes);
                    let from = if signed { Extend::S16 } else { Extend::U16 };
                    extend(to, lane_width(width), words, from, lanes);
                }
                (2, _) => {
                    extend(to, lane_width(width), from, if signed { Extend::S16 } else { Extend::U16 }, lanes)
                }
                _ => {
                    extend(to, lane_width(width), from, if signed { Extend::S32 } else { Extend::U32 }, lanes)
                }
            }
        }
    }

    /// Loads one element of `M` for each active lane into an array of `R`, group by group.
    ///
    /// # Safety
    /// `to` must be an array of `R` for all lanes.
    unsafe fn load_groups<M: Copy, R: Copy>(&self, element: usize, to: *mut u8, extend: impl Fn(M) -> R) {
        let offset = element * self.bytes as usize;
        // SAFETY: the region holds the accesses of all active lanes.
        let read = |at: *mut u8| unsafe { extend(at.cast::<M>().read_unaligned()) };
        let (first, end) = self.active.groups;
        for group in first..end {
            let (lanes, lane) = (self.active.mask.group(group), group * GROUP_LANES);
            // SAFETY: `to` has the group, of whose lanes only active ones are read.
            unsafe {
                let to = to.cast::<R>().add(lane);
                match self.step(group) {
                    Some(step) => {
                        let start = self.at(lane).wrapping_add(offset);
                        let step = step as usize;
                        if lanes != u16::MAX {
                            ones(lanes)
                                .for_each(|i| *to.add(i) = read(start.wrapping_add(i.wrapping_mul(step))));
                        } else if step == size_of::<M>() {
                            let all = start.cast::<[M; GROUP_LANES]>().read_unaligned();
                            (0..GROUP_LANES).for_each(|i| *to.add(i) = extend(all[i]));
                        } else {
                            (0..GROUP_LANES)
                                .for_each(|i| *to.add(i) = read(start.wrapping_add(i.wrapping_mul(step))));
                        }
                    }
                    None => {
                        ones(lanes).for_each(|i| *to.add(i) = read(self.at(lane + i).wrapping_add(offset)))
                    }
                }
            }
        }
    }

    /// Loads one element for each lane of whole groups: a row of elements, or (step 0) one for the whole group.
    ///
    /// # Safety
    /// As [`Transfer::load`].
    unsafe fn load_rows<T: Copy>(&self, step: u64, element: usize, to: *mut u8) {
        let (first, end) = self.active.groups;
        for group in first..end {
            let lane = group * GROUP_LANES;
            // SAFETY: the region holds the accesses of the group's lanes, and `to` the group.
            unsafe {
                let from = self.at(lane).cast::<T>().add(element);
                let to = to.cast::<T>().add(lane).cast::<[T; GROUP_LANES]>();
                *to = match step {
                    0 => [from.read_unaligned(); GROUP_LANES],
                    _ => from.cast::<[T; GROUP_LANES]>().read_unaligned(),
                };
            }
        }
    }

    /// Stores one element for each active lane, in ascending order.
    ///
    /// # Safety
    /// `from` must be an array of `width` for all lanes.
    pub unsafe fn store(&self, element: usize, width: Width, from: *const u8) {
        if let Some((start, first, end)) = self.consecutive() {
            let (size, lanes) = (width.bytes(), end - first);
            let (from, whole_groups) = (from.wrapping_add(first * size), lanes.is_multiple_of(GROUP_LANES));
            // SAFETY: the region holds the accesses of all these lanes, and `from` has them.
            unsafe {
                if size == self.bytes as usize {
                    return (self.helpers.copy)(start, from, lanes * size);
                }
                if whole_groups {
                    return self.store_truncated(start, width, from, lanes);
                }
            }
        }
        let kind = self.kind(width, false);
        if let (Some(each), Some(kind)) = (self.scattered(), kind) {
            let offsets = if each.narrow { LaneWidth::B4 } else { LaneWidth::B8 };
            for (base, mask) in self.host_bases(each, element) {
                // SAFETY: the region holds the accesses of all active lanes.
                unsafe { (self.helpers.scatter)(from, kind, base, each.array, offsets, mask.words()) }
            }
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            match (self.bytes, width) {
                (1, Width::W16) => self.store_groups(element, from, |x: u16| x as u8),
                (1, Width::W32) => self.store_groups(element, from, |x: u32| x as u8),
                (1, _) => self.store_groups(element, from, |x: u64| x as u8),
                (2, Width::W16) => self.store_groups(element, from, |x: u16| x),
                (2, Width::W32) => self.store_groups(element, from, |x: u32| x as u16),
                (2, _) => self.store_groups(element, from, |x: u64| x as u16),
                (4, Width::W64) => self.store_groups(element, from, |x: u64| x as u32),
                (4, _) => self.store_groups(element, from, |x: u32| x),
                _ => self.store_groups(element, from, |x: u64| x),
            }
        }
    }

    /// Stores elements one after the other that are narrower than their registers.
    ///
    /// # Safety
    /// There must be room for so many, a multiple of 16, and `from` must have as many elements of `width`.
    unsafe fn store_truncated(&self, to: *mut u8, width: Width, from: *const u8, lanes: usize) {
        let Helpers { truncate, narrow_bytes, copy, .. } = *self.helpers;
        let mut room = [0u32; CHUNK_LANES];
        let room = room.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller's promise; there are no more lanes than words.
        unsafe {
            match (self.bytes, width) {
                (1, Width::W16) => narrow_bytes(to, from, lanes),
                (1, _) => {
                    truncate(room, LaneWidth::B2, from, lane_width(width), lanes);
                    narrow_bytes(to, room, lanes);
                }
                (2, _) => {
                    truncate(room, LaneWidth::B2, from, lane_width(width), lanes);
                    copy(to, room, 2 * lanes);
                }
                _ => {
                    truncate(room, LaneWidth::B4, from, lane_width(width), lanes);
                    copy(to, room, 4 * lanes);
                }
            }
        }
    }

    /// Stores one element of `M` for each active lane from an array of `R`, group by group.
    ///
    /// # Safety
    /// `from` must be an array of `R` for all lanes.
    unsafe fn store_groups<R: Copy, M: Copy>(&self, element: usize, from: *const u8, cut: impl Fn(R) -> M) {
        let offset = element * self.bytes as usize;
        let (first, end) = self.active.groups;
        for group in first..end {
            let (lanes, lane) = (self.active.mask.group(group), group * GROUP_LANES);
            // SAFETY: the region holds the accesses of all active lanes, and `from` the group.
            unsafe {
                let from = from.cast::<R>().add(lane);
                let Some(step) = self.step(group) else {
                    for i in ones(lanes) {
                        memory::write(self.at(lane + i).wrapping_add(offset), cut(from.add(i).read()));
                    }
                    continue;
                };
                let (start, step) = (self.at(lane).wrapping_add(offset), step as usize);
                let write = |i: usize| {
                    memory::write(start.wrapping_add(i.wrapping_mul(step)), cut(from.add(i).read()));
                };
                match (step, lanes) {
                    (_, 0) => {}
                    // The last lane's element is what stays.
                    (0, lanes) => write(lanes.ilog2() as usize),
                    (step, u16::MAX) if step == size_of::<M>() => {
                        let all: [M; GROUP_LANES] = std::array::from_fn(|i| cut(from.add(i).read()));
                        memory::write(start, all);
                    }
                    (_, u16::MAX) => (0..GROUP_LANES).for_each(write),
                    (_, lanes) => ones(lanes).for_each(write),
                }
            }
        }
    }
}

/// The bits that are set, in ascending order.
#[inline]
fn ones(mut lanes: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let i = (lanes != 0).then(|| lanes.trailing_zeros() as usize)?;
        lanes &= lanes - 1;
        Some(i)
    })
}

#[inline]
pub(super) fn address_of(addresses: &Addresses, lane: usize) -> u64 {
    match addresses {
        Addresses::Even(even) => even.at(lane),
        Addresses::Each(each) => each.at(lane),
    }
}

/// Reads an element and extends it to 64 bits.
///
/// # Safety
/// `at` must be valid for `bytes` bytes.
#[inline]
pub(super) unsafe fn read(at: *const u8, bytes: u32, signed: bool) -> u64 {
    // SAFETY: the caller's promise.
    let value = unsafe {
        match bytes {
            1 => u64::from(*at),
            2 => u64::from(at.cast::<u16>().read_unaligned()),
            4 => u64::from(at.cast::<u32>().read_unaligned()),
            _ => at.cast::<u64>().read_unaligned(),
        }
    };
    extend(value, bytes, signed)
}

#[inline]
pub(super) fn extend(value: u64, bytes: u32, signed: bool) -> u64 {
    match bytes {
        1 if signed => value as u8 as i8 as u64,
        2 if signed => value as u16 as i16 as u64,
        4 if signed => value as u32 as i32 as u64,
        _ => value,
    }
}

/// Writes the low bytes of a value.
///
/// # Safety
/// `at` must be valid for `bytes` bytes.
#[inline]
pub(super) unsafe fn write(at: *mut u8, bytes: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => memory::write(at, value as u8),
            2 => memory::write(at, value as u16),
            4 => memory::write(at, value as u32),
            _ => memory::write(at, value),
        }
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
                let linear = Scalar::linear(0, step, rows).pitch;
                [(step, linear, 0), (step, linear, 4096), (step, 1000, 8), (step, 4, 0)]
            }) {
                let scalar = Scalar { base: 1 << 20, step, pitch, block_stride };
                let even = Even::new(scalar, 0, false, rows).unwrap();
                for mask in masks {
                    let all = || mask.into_iter().map(|lane| even.at(lane));
                    assert_eq!(even.bounds_of(mask), all().min().zip(all().max()), "{scalar:?} {block:?}");
                }
                assert_eq!(even.bounds_of(Mask::EMPTY), None);
            }
        }
    }
}
