//! Patterns: common properties of the addresses in an array.

use lanes::{Helpers, Spread};
use machine::mask::{GANG_LANES, GROUP_LANES, Mask};

/// Properties of a slot's values in some lanes. Computed once for all accesses that use the slot as an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    /// The lanes to which it applies.
    pub mask: Mask,
    pub least: u64,
    pub greatest: u64,
    /// Bits in which some lane differs from the least value.
    pub differ: u64,
    /// The step from lane to lane, if it is the same in all groups and the mask has all lanes of each group: rows of a
    /// matrix, or one value for each group.
    pub common_step: Option<u64>,
    /// For each group, the step from lane to lane, or [`Spread::NO_STEP`] if it is not constant or the mask lacks lanes of the
    /// group.
    steps: [u32; GANG_LANES / GROUP_LANES],
}

impl Pattern {
    /// The step from lane to lane in a group, if it is constant.
    #[inline]
    pub fn step(&self, group: usize) -> Option<u64> {
        (self.steps[group] != Spread::NO_STEP).then_some(self.steps[group].into())
    }

    /// Whether some group has a constant step.
    pub fn has_steps(&self) -> bool {
        self.steps.iter().any(|&step| step != Spread::NO_STEP)
    }

    /// The pattern of an array in the lanes of `mask`, which must not be empty.
    ///
    /// # Safety
    /// The array must have elements of its width, 4 or 8 bytes, for all groups with lanes in the mask.
    pub unsafe fn find(array: *const u8, width: lanes::LaneWidth, mask: Mask, helpers: &Helpers) -> Pattern {
        let (first, end) = mask.group_span();
        // SAFETY: the caller's promise.
        let Spread { least, greatest, differ, steps } =
            unsafe { (helpers.spread)(array, width, &mask.0, first..end) };
        let same = steps[first..end].iter().all(|&step| step == steps[first]);
        let common_step = (same && steps[first] != Spread::NO_STEP).then_some(steps[first].into());
        Pattern { mask, least, greatest, differ, common_step, steps }
    }
}
