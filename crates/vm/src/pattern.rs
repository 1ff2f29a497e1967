//! What the addresses in an array have in common.

use crate::mask::{CHUNK_LANES, GROUP_LANES, Mask};

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
    /// For each group, the step from lane to lane, or [`Pattern::NO_STEP`]; of all its lanes.
    steps: [u32; CHUNK_LANES / GROUP_LANES],
}

impl Pattern {
    const NO_STEP: u32 = u32::MAX;

    /// The step from lane to lane in a group, if it is even.
    #[inline]
    pub fn step(&self, group: usize) -> Option<u64> {
        (self.steps[group] != Self::NO_STEP).then_some(self.steps[group].into())
    }

    /// Some group has an even step.
    pub fn has_steps(&self) -> bool {
        self.steps.iter().any(|&step| step != Self::NO_STEP)
    }

    /// Finds the pattern of an array in the lanes of `mask`, which is not empty.
    ///
    /// # Safety
    /// The array must have elements for all groups with lanes in the mask.
    pub unsafe fn find<T: Copy + Into<u64>>(array: *const T, mask: Mask) -> Pattern {
        let (first, end) = mask.group_span();
        let mut pattern = Pattern {
            mask,
            least: u64::MAX,
            greatest: 0,
            differ: 0,
            common_step: None,
            steps: [Self::NO_STEP; CHUNK_LANES / GROUP_LANES],
        };
        let (mut ones, mut zeros) = (0, 0);
        let mut whole = true;
        for group in first..end {
            let lanes = mask.group(group);
            // SAFETY: the caller's promise.
            let values: [u64; GROUP_LANES] =
                std::array::from_fn(|i| unsafe { (*array.add(group * GROUP_LANES + i)).into() });
            if lanes == u16::MAX {
                let step = values[1].wrapping_sub(values[0]);
                let even = (0..GROUP_LANES)
                    .fold(0, |d, i| d | (values[i] ^ values[0].wrapping_add(step.wrapping_mul(i as u64))));
                if even == 0 && step < u64::from(Self::NO_STEP) {
                    pattern.steps[group] = step as u32;
                    // Ascending: the ends are the bounds.
                    pattern.least = pattern.least.min(values[0]);
                    pattern.greatest = pattern.greatest.max(values[GROUP_LANES - 1]);
                } else {
                    pattern.least = values.iter().fold(pattern.least, |m, &v| m.min(v));
                    pattern.greatest = values.iter().fold(pattern.greatest, |m, &v| m.max(v));
                }
                ones |= values.iter().fold(0, |b, &v| b | v);
                zeros |= values.iter().fold(0, |b, &v| b | !v);
            } else {
                whole = false;
                for (_, &v) in values.iter().enumerate().filter(|(i, _)| lanes >> i & 1 != 0) {
                    pattern.least = pattern.least.min(v);
                    pattern.greatest = pattern.greatest.max(v);
                    ones |= v;
                    zeros |= !v;
                }
            }
        }
        pattern.differ = ones & zeros;
        if whole && pattern.steps[first..end].iter().all(|&step| step == pattern.steps[first]) {
            pattern.common_step = pattern.step(first);
        }
        pattern
    }
}
