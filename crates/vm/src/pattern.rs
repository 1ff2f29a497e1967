//! What the addresses in an array have in common.

use crate::mask::{GANG_LANES, GROUP_LANES, Mask};
use lanes::{Helpers, Spread};

/// What the values of a slot have in common in some lanes: found once for all accesses that use it as an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    /// The lanes it holds for.
    pub mask: Mask,
    pub least: u64,
    pub greatest: u64,
    /// Bits in which any lane differs from the least.
    pub differ: u64,
    /// The step that all groups share, if they are whole and do: rows of a matrix, or one value for each group.
    pub common_step: Option<u64>,
    /// For each group, the step from lane to lane, or [`Spread::NO_STEP`]; of all its lanes.
    steps: [u32; GANG_LANES / GROUP_LANES],
}

impl Pattern {
    /// The step from lane to lane in a group, if it is even.
    #[inline]
    pub fn step(&self, group: usize) -> Option<u64> {
        (self.steps[group] != Spread::NO_STEP).then_some(self.steps[group].into())
    }

    /// Some group has an even step.
    pub fn has_steps(&self) -> bool {
        self.steps.iter().any(|&step| step != Spread::NO_STEP)
    }

    /// The pattern of an array in the lanes of `mask`, which is not empty.
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
