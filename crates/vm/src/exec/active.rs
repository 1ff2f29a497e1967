//! Which lanes execute an operation.

use machine::mask::{GROUP_LANES, Mask};

use crate::registers::{COMPACTED_LANES, Window};

/// Lanes are compacted if compaction divides the number of lanes per operation by at least this factor.
const LEAST_GAIN: usize = 2;
/// Compaction starts only after the lanes have run one operation for each `LANES_BY_OPERATION` of them, and at least
/// `LEAST_OPERATIONS`.
const LANES_BY_OPERATION: usize = 32;
const LEAST_OPERATIONS: usize = 8;

/// The lanes that execute an operation.
#[derive(Clone, Copy)]
pub(crate) struct Active {
    pub mask: Mask,
    /// Number of active lanes.
    pub count: usize,
    /// The groups that hold the active lanes: the first, and one past the last.
    pub groups: (usize, usize),
    /// The first active lane and one past the last, if all between are active; else `(0, 0)`.
    pub range: (usize, usize),
    /// All lanes of `groups` are active.
    pub whole_groups: bool,
    /// All lanes of the gang are active.
    pub all_lanes: bool,
    /// No other path needs any slot of the window: results may be written in all lanes.
    pub alone: bool,
    pub window: Window,
    /// The window and the groups, for inline caches.
    pub place: [u32; 4],
    pub frame: u32,
    /// The lanes are those of a path, and few compared to the span of their groups.
    pub few: bool,
    /// Operations of the basic blocks that these lanes have run together.
    pub operations: usize,
    /// Pure operations run in compacted lanes.
    pub compacts: bool,
    /// A guard holds only for some lanes of the path: the other lanes keep their values.
    pub guarded: bool,
}

impl Active {
    pub fn new(window: Window, frame: u32) -> Active {
        Active {
            mask: Mask::EMPTY,
            count: 0,
            groups: (0, 0),
            range: (0, 0),
            whole_groups: false,
            all_lanes: false,
            alone: false,
            window,
            place: [window.index, window.offset, 0, 0],
            frame,
            few: false,
            operations: 0,
            compacts: false,
            guarded: false,
        }
    }

    /// The lanes of the active groups: the first, and one past the last.
    pub fn lanes(&self) -> (usize, usize) {
        (self.groups.0 * GROUP_LANES, self.groups.1 * GROUP_LANES)
    }

    /// Sets the lanes of a mask, in a gang of `lanes` lanes.
    pub fn set_mask(&mut self, mask: Mask, lanes: usize) {
        self.mask = mask;
        self.count = mask.count() as usize;
        self.groups = mask.group_span();
        self.range = mask.range_of(self.groups, self.count);
        let all = self.groups.1 * GROUP_LANES;
        self.whole_groups = self.count == all - self.groups.0 * GROUP_LANES;
        self.all_lanes = self.whole_groups && all == lanes && self.groups.0 == 0;
        self.place[2..].copy_from_slice(&[self.groups.0 as u32, self.groups.1 as u32]);
    }

    /// Sets the lanes of a path, in a gang of `lanes` lanes.
    pub fn set_path(&mut self, mask: Mask, lanes: usize) {
        self.set_mask(mask, lanes);
        let compacted = self.count.next_multiple_of(GROUP_LANES);
        let span = (self.groups.1 - self.groups.0) * GROUP_LANES;
        self.few = compacted <= COMPACTED_LANES && LEAST_GAIN * compacted <= span;
        (self.operations, self.compacts) = (0, false);
    }

    /// Notes that the lanes are about to run a basic block of `operations` operations. Compaction pays only where
    /// lanes stay together. It does not pay for lanes that leave a loop at different times.
    #[inline]
    pub fn expect(&mut self, operations: usize) {
        self.operations += operations;
        self.compacts = self.few && self.operations >= LEAST_OPERATIONS.max(self.count / LANES_BY_OPERATION);
    }

    /// Sets all threads of a gang.
    pub fn set_everyone(&mut self, everyone: &Everyone) {
        (self.mask, self.count, self.groups) =
            (everyone.mask, everyone.threads, (0, everyone.threads.div_ceil(GROUP_LANES)));
        self.range = (0, everyone.threads);
        (self.few, self.compacts) = (false, false);
        (self.whole_groups, self.all_lanes) = (everyone.whole_groups, everyone.all_lanes);
        self.place[2..].copy_from_slice(&[0, self.groups.1 as u32]);
    }
}

/// The threads of a gang.
pub(crate) struct Everyone {
    pub mask: Mask,
    pub threads: usize,
    /// As in [`Active`].
    whole_groups: bool,
    all_lanes: bool,
}

impl Everyone {
    /// The first `threads` of `lanes` lanes.
    pub fn new(threads: usize, lanes: usize) -> Everyone {
        Everyone {
            mask: Mask::first(threads),
            threads,
            whole_groups: threads.is_multiple_of(GROUP_LANES),
            all_lanes: threads == lanes,
        }
    }
}
