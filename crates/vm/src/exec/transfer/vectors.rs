//! Accesses of more than one element a lane (`.v2`, `.v4`), as a whole and lane by lane.

use lanes::memory;
use machine::mask::GROUP_LANES;

use super::super::addresses::Addresses;
use super::{Transfer, ones};

impl Transfer<'_> {
    /// If the vectors of all lanes of the active groups are contiguous in memory: their start.
    pub(super) fn consecutive_vectors(&self) -> Option<*mut u8> {
        match self.addresses {
            Addresses::Even(even) if even.consecutive(self.stride) && self.active.whole_groups => {
                // SAFETY: the first lane's access lies within the region.
                Some(unsafe { self.region.at(even.at(self.active.lanes().0)) })
            }
            _ => None,
        }
    }

    /// If the vectors of all lanes of the active groups lie at a constant distance: the start and the distance.
    pub fn even_vectors(&self) -> Option<(*const u8, usize)> {
        let (first, end) = self.active.groups;
        let (count, step) = self.even_groups(first)?;
        // SAFETY: the first lane is active: its access lies within the region.
        (first + count == end).then(|| (unsafe { self.at(first * GROUP_LANES) }.cast_const(), step))
    }

    /// The vectors of the active groups as a contiguous array with an entry for each lane, active or not. This is the
    /// memory itself if the vectors are contiguous there, else `room`, into which they are copied.
    ///
    /// # Safety
    /// `room` must have space for one vector for each lane of the active groups.
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
        let (to, (first, end)) = (room.cast::<T>(), self.active.lanes());
        // SAFETY: the caller's promise; the region holds the accesses of all active lanes.
        unsafe {
            if !self.active.whole_groups {
                // Inactive lanes must not expose what the array held before.
                std::ptr::write_bytes(to, 0, end - first);
            }
            self.each_lane(|lane, at| to.add(lane - first).write_unaligned(at.cast::<T>().read_unaligned()));
        }
    }

    /// Copies `N` bytes of each active lane, in ascending order of lanes, to a contiguous array.
    ///
    /// # Safety
    /// The region must hold the accesses of all active lanes, and `room` must have space for `N` bytes for each.
    pub unsafe fn take_each<const N: usize>(&self, room: *mut u8) {
        let (to, mut next) = (room.cast::<[u8; N]>(), 0);
        // SAFETY: the caller's promise.
        unsafe {
            self.each_lane(|_, at| {
                to.add(next).write_unaligned(at.cast::<[u8; N]>().read_unaligned());
                next += 1;
            });
        }
    }

    /// Calls `f` with every active lane, in ascending order, and the host address of its access.
    ///
    /// # Safety
    /// The region must hold the accesses of all active lanes.
    #[inline(always)]
    pub unsafe fn each_lane(&self, mut f: impl FnMut(usize, *mut u8)) {
        for group in self.active.groups.0..self.active.groups.1 {
            // SAFETY: the caller's promise.
            unsafe { self.each_lane_of(group, &mut f) }
        }
    }

    /// [`Transfer::each_lane`] for the lanes of one group.
    ///
    /// # Safety
    /// As [`Transfer::each_lane`].
    #[inline(always)]
    pub(super) unsafe fn each_lane_of(&self, group: usize, mut f: impl FnMut(usize, *mut u8)) {
        let (lanes, lane) = (self.active.mask.group(group), group * GROUP_LANES);
        if lanes == 0 {
            return;
        }
        // SAFETY: the caller's promise; the first lane of a group that steps evenly is only where the others are counted from.
        unsafe {
            match self.step(group) {
                Some(step) => {
                    let (start, step) = (self.at(lane), step as usize);
                    let at = |i: usize| start.wrapping_add(i.wrapping_mul(step));
                    match lanes {
                        u16::MAX => (0..GROUP_LANES).for_each(|i| f(lane + i, at(i))),
                        _ => ones(lanes).for_each(|i| f(lane + i, at(i))),
                    }
                }
                None if lanes == u16::MAX => {
                    (lane..lane + GROUP_LANES).for_each(|lane| f(lane, self.at(lane)));
                }
                None => ones(lanes).for_each(|i| f(lane + i, self.at(lane + i))),
            }
        }
    }

    /// Where a store can write the vectors of the active groups contiguously. `None` unless all lanes of these groups
    /// are active and their vectors are contiguous in memory.
    pub fn vectors_target(&self) -> Option<*mut u8> {
        self.consecutive_vectors()
    }

    /// Stores the active lanes' vectors from a contiguous array, in ascending order of lanes.
    ///
    /// # Safety
    /// The array must have a vector for each lane of the active groups.
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
}
