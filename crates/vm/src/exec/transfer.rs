//! Copies between registers and memory, after the access was checked.
//!
//! If consecutive lanes access elements at a constant distance that is not the element size (every second element, or
//! descending elements), one vector function moves whole vectors for all groups that continue the same progression.
//! If a group has lanes of several CTAs, lanes are copied one by one. If all threads of a CTA store to one address,
//! only the element of the last active lane is written. A vector load (`.v2`, `.v4`) first packs the lanes' vectors
//! into a contiguous array and then deinterleaves them into registers.
//!
//! Narrowest tests: `tests/run`: `cp_async*`, `ldmatrix*`, `narrow_*`, `strided_memory`, `last_stays`,
//! `vectors_of_bytes`; crate `lanes`: `tests/handlers/helpers.rs`.

use ir::Width;
use lanes::{Element, Extend, Helpers, LaneWidth, memory};
use machine::mask::{GANG_LANES, GROUP_LANES, Mask};

use super::Active;
use super::addresses::{Addresses, Each, Region};
use crate::affine::{Affine, LaneRows};
use crate::bytes::load;
use crate::registers::lane_width;

mod vectors;

/// One access of the active lanes: what it moves between memory and registers, and where.
pub(super) struct Transfer<'a> {
    pub helpers: &'static Helpers,
    pub rows: LaneRows,
    /// Contains the accesses of all active lanes.
    pub region: Region,
    pub addresses: &'a Addresses,
    pub active: &'a Active,
    /// Bytes of one element.
    pub bytes: u32,
    /// Bytes of all elements of one lane: the size of its vector.
    pub stride: u64,
}

impl Transfer<'_> {
    /// The byte distance between consecutive lanes of a group, if it is constant.
    #[inline]
    fn step(&self, group: usize) -> Option<u64> {
        match self.addresses {
            Addresses::Even(even) => even.group_step(),
            Addresses::Each(_) if self.splits_groups() => None,
            Addresses::Each(each) => each.pattern.step(group),
        }
    }

    /// A group may have lanes of several CTAs, and each CTA has its own memory.
    #[inline]
    fn splits_groups(&self) -> bool {
        self.region.stride > 0 && !self.rows.has_whole_groups()
    }

    /// If the active lanes are one range and their elements are contiguous in memory: the start, the first lane, and
    /// one past the last.
    pub fn consecutive(&self) -> Option<(*mut u8, usize, usize)> {
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

    /// The element's kind for gathers and scatters, if no conversion beyond what they support is needed to fill a
    /// slot of this width.
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

    /// The byte distance between consecutive lanes that all groups share, if all lanes of the active groups are
    /// active.
    fn common_step(&self) -> Option<u64> {
        match self.addresses {
            Addresses::Even(even) => even.group_step().filter(|_| self.active.whole_groups),
            Addresses::Each(_) if self.splits_groups() => None,
            Addresses::Each(each) => each.pattern.common_step,
        }
    }

    /// The addresses, if no group has a constant distance between its lanes.
    fn scattered(&self) -> Option<&Each> {
        match self.addresses {
            Addresses::Each(each) if self.splits_groups() || !each.pattern.has_steps() => Some(each),
            _ => None,
        }
    }

    /// The host address to which a lane's register value is added to reach an element, with the active lanes for
    /// which it holds. If each CTA has its own memory, there is one such base for each CTA.
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

    /// The host address of a lane's access.
    ///
    /// # Safety
    /// The region must hold the lane's access.
    #[inline]
    pub unsafe fn at(&self, lane: usize) -> *mut u8 {
        // SAFETY: the caller's promise; every CTA has a copy of the region, `stride` bytes after the one before.
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

    /// Loads element number `element` of each active lane's vector.
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
            if kind.is_none()
                && let Some(each) = self.scattered()
            {
                return self.gather_extended(each, element, signed, width, to);
            }
            match (self.bytes, signed, width) {
                (1, false, Width::W16) => self.load_groups(element, to, |x: u8| u16::from(x)),
                (1, true, Width::W16) => self.load_groups(element, to, |x: i8| i16::from(x)),
                (1, false, Width::W32) => self.load_groups(element, to, |x: u8| u32::from(x)),
                (1, true, Width::W32) => self.load_groups(element, to, |x: i8| i32::from(x)),
                (1, false, _) => self.load_groups(element, to, |x: u8| u64::from(x)),
                (1, true, _) => self.load_groups(element, to, |x: i8| i64::from(x)),
                (2, _, Width::W16) => self.load_elements::<u16>(element, width, to),
                (2, false, Width::W32) => self.load_groups(element, to, |x: u16| u32::from(x)),
                (2, true, Width::W32) => self.load_groups(element, to, |x: i16| i32::from(x)),
                (2, false, _) => self.load_groups(element, to, |x: u16| u64::from(x)),
                (2, true, _) => self.load_groups(element, to, |x: i16| i64::from(x)),
                (4, false, Width::W64) => self.load_groups(element, to, |x: u32| u64::from(x)),
                (4, true, Width::W64) => self.load_groups(element, to, |x: i32| i64::from(x)),
                (4, ..) => self.load_elements::<u32>(element, width, to),
                _ => self.load_elements::<u64>(element, width, to),
            }
        }
    }

    /// Loads contiguous elements that are narrower than their registers.
    ///
    /// # Safety
    /// `lanes` must be a multiple of 16. `from` must have `lanes` elements, and `to` must have space for `lanes`
    /// elements of `width`.
    unsafe fn load_extended(&self, from: *const u8, signed: bool, width: Width, to: *mut u8, lanes: usize) {
        let Helpers { extend, widen_bytes, .. } = *self.helpers;
        let mut words = [0u16; GANG_LANES];
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

    /// Loads elements that are narrower than their registers, from addresses without a pattern.
    ///
    /// # Safety
    /// As [`Transfer::load`].
    unsafe fn gather_extended(&self, each: &Each, element: usize, signed: bool, width: Width, to: *mut u8) {
        let Helpers { gather, extend, .. } = *self.helpers;
        let (kind, storage, from) = match (self.bytes, signed) {
            (1, false) => (Element::U8, Width::W16, Extend::U16),
            (1, true) => (Element::S8, Width::W16, Extend::S16),
            (2, false) => (Element::B2, Width::W16, Extend::U16),
            (2, true) => (Element::B2, Width::W16, Extend::S16),
            (_, false) => (Element::B4, Width::W32, Extend::U32),
            (_, true) => (Element::B4, Width::W32, Extend::S32),
        };
        let offsets = if each.narrow { LaneWidth::B4 } else { LaneWidth::B8 };
        let mut room = [0u32; GANG_LANES];
        let room = room.as_mut_ptr().cast::<u8>();
        let (first, end) = self.active.lanes();
        // SAFETY: the region holds the accesses of all active lanes; there are no more lanes than words, and `to` has them.
        unsafe {
            for (base, mask) in self.host_bases(each, element) {
                gather(room, kind, base, each.array, offsets, mask.words());
            }
            let (from_lane, to) = (room.add(first * storage.bytes()), to.add(first * width.bytes()));
            extend(to, lane_width(width), from_lane, from, end - first);
        }
    }

    /// How many groups, from `group` on, have only active lanes and continue one arithmetic progression of addresses;
    /// and its step.
    #[inline]
    fn even_groups(&self, group: usize) -> Option<(usize, usize)> {
        if self.active.mask.group(group) != u16::MAX {
            return None;
        }
        let step = self.step(group)?;
        let end = match self.addresses {
            Addresses::Even(even) if even.affine.is_linear(step, self.rows) => self.active.groups.1,
            Addresses::Even(even) if even.affine.is_linear_in_block(step, self.rows) => {
                // A CTA has whole groups here: `step` returns `None` for a group with lanes of several CTAs.
                let block = self.rows.block_of(group * GROUP_LANES) + 1;
                self.active.groups.1.min(block * self.rows.block_lanes() / GROUP_LANES)
            }
            _ => group + 1,
        };
        let end = match self.active.whole_groups {
            true => end,
            false => (group + 1..end).find(|&next| self.active.mask.group(next) != u16::MAX).unwrap_or(end),
        };
        Some((end - group, step as usize))
    }

    /// Loads one element of type `M` for each active lane into an array of `R`, group by group.
    ///
    /// # Safety
    /// `to` must be an array of `R` for all lanes.
    unsafe fn load_groups<M: Copy, R: Copy>(&self, element: usize, to: *mut u8, extend: impl Fn(M) -> R) {
        let offset = element * self.bytes as usize;
        // SAFETY: the region holds the accesses of all active lanes.
        let read = |at: *mut u8| unsafe { extend(at.wrapping_add(offset).cast::<M>().read_unaligned()) };
        for group in self.active.groups.0..self.active.groups.1 {
            let lane = group * GROUP_LANES;
            let row = self.step(group) == Some(size_of::<M>() as u64);
            // SAFETY: as above; `to` has all lanes.
            unsafe {
                if row && self.active.mask.group(group) == u16::MAX {
                    let all = self.at(lane).wrapping_add(offset).cast::<[M; GROUP_LANES]>().read_unaligned();
                    let to = to.cast::<R>().add(lane);
                    (0..GROUP_LANES).for_each(|i| to.add(i).write(extend(all[i])));
                } else {
                    self.each_lane_of(group, |lane, at| to.cast::<R>().add(lane).write(read(at)));
                }
            }
        }
    }

    /// Loads one element of type `T` for each active lane. One call of a helper loads all consecutive groups with a
    /// common step.
    ///
    /// # Safety
    /// `to` must be an array of `T` for all lanes.
    unsafe fn load_elements<T: Copy>(&self, element: usize, width: Width, to: *mut u8) {
        let offset = element * self.bytes as usize;
        let mut group = self.active.groups.0;
        while group < self.active.groups.1 {
            let lane = group * GROUP_LANES;
            // SAFETY: the region holds the accesses of all active lanes, and the bytes between the accesses of a
            // group with a constant step.
            unsafe {
                if let Some((count, step)) = self.even_groups(group) {
                    let (to, lanes) = (to.add(lane * size_of::<T>()), count * GROUP_LANES);
                    let from = self.at(lane).wrapping_add(offset);
                    (self.helpers.load_strided)(to, lane_width(width), from, step, lanes);
                    group += count;
                    continue;
                }
                self.each_lane_of(group, |lane, at| {
                    to.cast::<T>().add(lane).write(at.wrapping_add(offset).cast::<T>().read_unaligned());
                });
            }
            group += 1;
        }
    }

    /// Loads one element for each lane of whole groups: contiguous elements, or (step 0) one element for the whole
    /// group.
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
            // SAFETY: the region holds the accesses of all these lanes, and `from` has an element for each.
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
            if self.has_one_address_a_block() {
                return self.store_last(element, width, from);
            }
            let one_a_group = matches!(self.addresses, Addresses::Even(even) if even.affine.step == 0);
            match (self.bytes, width) {
                (2, Width::W16) if !one_a_group => self.store_elements::<u16>(element, width, from),
                (4, Width::W32) if !one_a_group => self.store_elements::<u32>(element, width, from),
                (8, _) if !one_a_group => self.store_elements::<u64>(element, width, from),
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

    /// All lanes of a CTA have one address, and CTAs are large enough for [`Transfer::store_last`] to pay.
    fn has_one_address_a_block(&self) -> bool {
        let one = |affine: &Affine| affine.step | affine.pitch == 0;
        let large = self.rows.blocks() == 1 || self.rows.block_lanes() >= 64;
        large && matches!(self.addresses, Addresses::Even(even) if one(&even.affine))
    }

    /// Stores the element of the last active lane of each CTA. If all lanes have one address, this is the value that
    /// remains.
    ///
    /// # Safety
    /// As [`Transfer::store`].
    unsafe fn store_last(&self, element: usize, width: Width, from: *const u8) {
        let lanes = self.rows.block_lanes();
        for block in 0..self.rows.blocks() {
            let of_block = match self.rows.blocks() {
                1 => self.active.mask,
                _ => self.active.mask & Mask::range(block * lanes, (block + 1) * lanes),
            };
            if let Some(lane) = of_block.highest() {
                // SAFETY: the caller's promise: the lane is active.
                unsafe {
                    let at = self.at(lane).wrapping_add(element * self.bytes as usize);
                    write(at, self.bytes, load(from, width, lane));
                }
            }
        }
    }

    /// Stores one element of type `T` for each active lane, in ascending order of lanes. One call of a helper stores
    /// all consecutive groups with a common step.
    ///
    /// # Safety
    /// `from` must be an array of `T` for all lanes.
    unsafe fn store_elements<T: Copy>(&self, element: usize, width: Width, from: *const u8) {
        let offset = element * self.bytes as usize;
        let mut group = self.active.groups.0;
        while group < self.active.groups.1 {
            let lane = group * GROUP_LANES;
            // SAFETY: the region holds the accesses of all active lanes.
            unsafe {
                match self.even_groups(group).filter(|&(_, step)| step != 0) {
                    Some((count, step)) => {
                        let (from, lanes) = (from.add(lane * size_of::<T>()), count * GROUP_LANES);
                        let to = self.at(lane).wrapping_add(offset);
                        (self.helpers.store_strided)(from, lane_width(width), to, step, lanes);
                        group += count;
                        continue;
                    }
                    None => self.store_group(group, offset, from, |x: T| x),
                }
            }
            group += 1;
        }
    }

    /// Stores contiguous elements that are narrower than their registers.
    ///
    /// # Safety
    /// `lanes` must be a multiple of 16. `to` must have space for `lanes` elements, and `from` must have `lanes`
    /// elements of `width`.
    unsafe fn store_truncated(&self, to: *mut u8, width: Width, from: *const u8, lanes: usize) {
        let Helpers { truncate, narrow_bytes, copy, .. } = *self.helpers;
        let mut room = [0u32; GANG_LANES];
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

    /// Stores one element of type `M` for each active lane from an array of `R`, group by group.
    ///
    /// # Safety
    /// `from` must be an array of `R` for all lanes.
    unsafe fn store_groups<R: Copy, M: Copy>(&self, element: usize, from: *const u8, cut: impl Fn(R) -> M) {
        let offset = element * self.bytes as usize;
        for group in self.active.groups.0..self.active.groups.1 {
            // SAFETY: the caller's promise.
            unsafe { self.store_group(group, offset, from, &cut) }
        }
    }

    /// [`Transfer::store_groups`] for one group, at `offset` bytes after the lanes' addresses.
    ///
    /// # Safety
    /// As [`Transfer::store_groups`].
    #[inline(always)]
    unsafe fn store_group<R: Copy, M: Copy>(
        &self,
        group: usize,
        offset: usize,
        from: *const u8,
        cut: impl Fn(R) -> M,
    ) {
        let (lanes, lane) = (self.active.mask.group(group), group * GROUP_LANES);
        // SAFETY: the region holds the accesses of all active lanes, and `from` the group.
        unsafe {
            let from = from.cast::<R>().add(lane);
            let Some(step) = self.step(group) else {
                for i in ones(lanes) {
                    memory::write(self.at(lane + i).wrapping_add(offset), cut(from.add(i).read()));
                }
                return;
            };
            let (start, step) = (self.at(lane).wrapping_add(offset), step as usize);
            let write = |i: usize| {
                memory::write(start.wrapping_add(i.wrapping_mul(step)), cut(from.add(i).read()));
            };
            match (step, lanes) {
                (_, 0) => {}
                // All lanes have one address: the last lane's element remains.
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

/// The indices of the set bits, in ascending order.
#[inline]
fn ones(mut lanes: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let i = (lanes != 0).then(|| lanes.trailing_zeros() as usize)?;
        lanes &= lanes - 1;
        Some(i)
    })
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
