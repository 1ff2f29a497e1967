//! What a thread knows of other threads: vector clocks, compressed by block.
//!
//! The compression follows the hierarchy of threads (`block.rs`): one number for all threads of a block (its last barrier), one for a warp
//! (its last `bar.warp.sync`), and a clock for the rest, which threads that learned the same share. An mbarrier object is a thread of its
//! own, whose epoch is the phase.

use std::collections::BTreeMap;

/// Counts what a thread has told others: it grows when the thread releases, and with every barrier of its block.
pub(crate) type Epoch = u32;

/// Threads from this index on are no threads of the block: each stands for an mbarrier object, whose epoch is its phase.
pub(crate) const OBJECTS: u16 = 1024;

/// Stands for a block's start.
pub(crate) const STARTED: u16 = u16::MAX;

/// When a thread did something: in which of its epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Linear index of the block in the grid.
    pub block: u32,
    pub thread: u16,
    pub epoch: Epoch,
}

/// For every thread the epoch before which everything that it did happens before whoever has this clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    blocks: BTreeMap<u32, View>,
}

/// What a clock knows of a block.
#[derive(Clone, Debug, Default)]
struct View {
    /// Of all its threads.
    floor: Epoch,
    /// Of some of them more.
    threads: BTreeMap<u16, Epoch>,
}

impl Clock {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Something that the block has done is known.
    pub fn has(&self, block: u32) -> bool {
        self.blocks.contains_key(&block)
    }

    /// What happened at the stamp happens before.
    pub fn knows(&self, stamp: Stamp) -> bool {
        let Some(view) = self.blocks.get(&stamp.block) else { return false };
        stamp.thread < OBJECTS && stamp.epoch < view.floor
            || view.threads.get(&stamp.thread).is_some_and(|&bound| stamp.epoch < bound)
    }

    /// Adds what a thread did before an epoch.
    pub fn raise(&mut self, block: u32, thread: u16, bound: Epoch) {
        let view = self.blocks.entry(block).or_default();
        if thread >= OBJECTS || bound > view.floor {
            let known = view.threads.entry(thread).or_default();
            *known = bound.max(*known);
        }
    }

    /// Adds what all threads of a block did before an epoch.
    pub fn raise_floor(&mut self, block: u32, floor: Epoch) {
        if floor > 0 {
            let view = self.blocks.entry(block).or_default();
            view.floor = floor.max(view.floor);
        }
    }

    /// Adds everything that another one knows.
    pub fn join(&mut self, other: &Clock) {
        for (&block, theirs) in &other.blocks {
            self.raise_floor(block, theirs.floor);
            theirs.threads.iter().for_each(|(&thread, &bound)| self.raise(block, thread, bound));
        }
    }

    /// The same, but of the threads of `own` nothing: its barrier has ordered them.
    pub fn join_foreign(&mut self, other: &Clock, own: u32) {
        for (&block, theirs) in &other.blocks {
            if block != own {
                self.raise_floor(block, theirs.floor);
            }
            let all = theirs.threads.iter().filter(|(thread, _)| block != own || **thread >= OBJECTS);
            all.for_each(|(&thread, &bound)| self.raise(block, thread, bound));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(block: u32, thread: u16, epoch: Epoch) -> Stamp {
        Stamp { block, thread, epoch }
    }

    #[test]
    fn a_clock_knows_what_came_before_its_bounds() {
        let mut clock = Clock::default();
        clock.raise_floor(1, 3);
        clock.raise(1, 7, 5);
        for (thread, epoch, known) in [(0, 2, true), (0, 3, false), (7, 4, true), (7, 5, false)] {
            assert_eq!(clock.knows(stamp(1, thread, epoch)), known, "{thread} {epoch}");
        }
        assert!(!clock.knows(stamp(0, 0, 0)));
    }

    #[test]
    fn a_floor_says_nothing_of_objects() {
        let mut clock = Clock::default();
        clock.raise_floor(0, 9);
        assert!(!clock.knows(stamp(0, OBJECTS, 0)));
        clock.raise(0, OBJECTS, 1);
        assert!(clock.knows(stamp(0, OBJECTS, 0)));
    }

    #[test]
    fn joining_takes_the_later_bounds() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.raise(0, 1, 4);
        b.raise_floor(0, 2);
        b.raise(2, 0, 1);
        a.join(&b);
        assert!(a.knows(stamp(0, 1, 3)) && a.knows(stamp(0, 5, 1)) && a.knows(stamp(2, 0, 0)));
        let mut own = Clock::default();
        own.join_foreign(&a, 0);
        assert!(!own.knows(stamp(0, 1, 3)) && own.knows(stamp(2, 0, 0)));
    }
}
