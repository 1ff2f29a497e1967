//! What a thread knows of other threads: vector clocks, compressed by block.
//!
//! The compression follows the hierarchy of threads (`block.rs`): one number for all threads of a block (its last barrier), one for a
//! warp (its last `bar.warp.sync`), and a clock for the rest, shared by threads that learned the same. An mbarrier object counts as a
//! thread whose epoch is its phase.

use std::collections::BTreeMap;

/// Counts what a thread has released: it grows with each release, and with each barrier of the block.
pub(crate) type Epoch = u32;

/// Clock indices from here on are no threads of the block: each represents, for example, an mbarrier object, whose epoch is its phase.
pub(crate) const OBJECTS: u16 = 1024;

/// The clock index of a block's start.
pub(crate) const STARTED: u16 = u16::MAX;

/// When a thread did something: its epoch at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Linear index of the block in the grid.
    pub block: u32,
    pub thread: u16,
    pub epoch: Epoch,
}

/// A bound for each thread: what the thread did in epochs before the bound happens before what the owner of this clock does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    blocks: BTreeMap<u32, View>,
}

/// What a clock knows of a block.
#[derive(Clone, Debug, Default)]
struct View {
    /// The bound of all its threads.
    floor: Epoch,
    /// Larger bounds of some threads.
    threads: BTreeMap<u16, Epoch>,
}

impl Clock {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether anything that the block has done is known.
    pub fn has(&self, block: u32) -> bool {
        self.blocks.contains_key(&block)
    }

    /// Whether what happened at the stamp is known to happen before.
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

    /// Adds everything that another clock knows.
    pub fn join(&mut self, other: &Clock) {
        for (&block, theirs) in &other.blocks {
            self.raise_floor(block, theirs.floor);
            theirs.threads.iter().for_each(|(&thread, &bound)| self.raise(block, thread, bound));
        }
    }

    /// The same, except what the threads of block `own` did: the block's barrier has ordered that.
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
