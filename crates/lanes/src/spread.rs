//! Finds common properties of the numbers in an array.

use super::MAX_LANES;
use super::helpers::LaneWidth;
use super::mask_ops::group;
use super::path::{BLOCK, Block, Path};
use std::ops::Range;

/// Common properties of the numbers in some lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The least number.
    pub least: u64,
    /// The greatest number.
    pub greatest: u64,
    /// Bits that differ between any two numbers.
    pub differ: u64,
    /// For each group of 16 lanes that are all in the mask: the step between lanes, if it is constant and below 2^27
    /// and no lane wraps; otherwise [`Spread::NO_STEP`]. The search stops after [`Spread::PATIENCE`] groups without a
    /// step.
    pub steps: [u32; MAX_LANES / BLOCK],
}

impl Spread {
    /// No constant step.
    pub const NO_STEP: u32 = u32::MAX;
    /// Number of groups without a step after which no other group is examined.
    pub const PATIENCE: usize = 4;
}

/// Groups per word of a mask.
const GROUPS: usize = 64 / BLOCK;

macro_rules! find {
    ($T:ident, $array:expr, $mask:expr, $groups:expr) => {{
        let array = $array.cast::<Block<$T>>();
        let groups: Range<usize> = $groups;
        let mut steps = [Spread::NO_STEP; MAX_LANES / BLOCK];
        let (mut least, mut greatest) = ([$T::MAX; BLOCK], [0; BLOCK]);
        let (mut ones, mut zeros) = ([0; BLOCK], [0; BLOCK]);
        // First the steps, number by number, so that the loop that follows keeps the numbers of a group in one
        // register.
        let mut scattered = 0;
        for index in groups.clone().filter(|&index| group($mask, index) == u16::MAX) {
            let start = array.wrapping_add(index).cast::<$T>();
            // SAFETY: the caller's promise.
            let at = |i: usize| unsafe { start.add(i).read() };
            let step = at(1).wrapping_sub(at(0));
            // A small step does not wrap if the last number is not below the first. The first three numbers reject
            // scattered ones quickly.
            if step < 1 << 27
                && at(0) <= at(BLOCK - 1)
                && at(2).wrapping_sub(at(1)) == step
                && (0..BLOCK).all(|i| at(i) == at(0).wrapping_add(step * i as $T))
            {
                steps[index] = step as u32;
            } else {
                scattered += 1;
            }
            if scattered == Spread::PATIENCE {
                break;
            }
        }
        let mut take = |values: Block<$T>| {
            for i in 0..BLOCK {
                least[i] = least[i].min(values[i]);
                greatest[i] = greatest[i].max(values[i]);
                ones[i] |= values[i];
                zeros[i] |= !values[i];
            }
        };
        let (first, end) = (groups.start / GROUPS, groups.end.div_ceil(GROUPS));
        if $mask.get(first..end).is_some_and(|words| words.iter().all(|&word| word == !0)) {
            // SAFETY: the caller's promise.
            groups.for_each(|index| take(unsafe { *array.add(index) }));
        } else {
            for index in groups {
                let lanes = group($mask, index);
                if lanes == 0 {
                    continue;
                }
                // SAFETY: the caller's promise.
                let mut values: Block<$T> = unsafe { *array.add(index) };
                let any = values[lanes.trailing_zeros() as usize % BLOCK];
                for (i, value) in values.iter_mut().enumerate() {
                    *value = if lanes >> i & 1 != 0 { *value } else { any };
                }
                take(values);
            }
        }
        let any = |bits: Block<$T>| bits.iter().fold(0, |a, b| a | b);
        Spread {
            least: least.iter().fold($T::MAX, |a, &b| a.min(b)).into(),
            greatest: greatest.iter().fold(0, |a, &b| a.max(b)).into(),
            differ: (any(ones) & any(zeros)).into(),
            steps,
        }
    }};
}

/// See [`Helpers`](super::Helpers).
#[inline(always)]
pub(super) unsafe fn spread<P: Path>(
    _: P,
    array: *const u8,
    width: LaneWidth,
    mask: &[u64],
    groups: Range<usize>,
) -> Spread {
    match width {
        LaneWidth::B4 => find!(u32, array, mask, groups),
        _ => find!(u64, array, mask, groups),
    }
}
