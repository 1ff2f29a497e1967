//! Mbarrier objects and asynchronous copies of a block. Each has a clock index of its own, beyond those of threads.

use std::collections::VecDeque;
use std::sync::Arc;

use machine::CopyGroup;

use super::BlockOrder;
use crate::clock::{Clock, Epoch, OBJECTS, Stamp};

/// An mbarrier object.
pub(super) struct ObjectOrder {
    /// Its index in clocks.
    thread: u16,
    phase: Epoch,
    /// What the threads know that have arrived, in this phase and all earlier ones.
    arrivals: Clock,
    over: Arc<Clock>,
    /// The values of `over` before the latest phases ended, last first.
    before: VecDeque<Arc<Clock>>,
}

/// The number of phases that the state of an mbarrier object distinguishes.
const PHASES: usize = 8;

/// The asynchronous copies of a thread, counted in batches. A commit ends a batch, and so does attaching copies to an mbarrier object.
#[derive(Default)]
pub(super) struct CopyOrder {
    batch: Epoch,
    /// By group: the batch that began at its commit.
    groups: Vec<Epoch>,
    /// Pairs of a batch and an epoch: copies of earlier batches were done in the epoch.
    waits: Vec<(Epoch, Epoch)>,
    /// The clock index of copies that signal mbarrier objects.
    thread: Option<u16>,
}

impl BlockOrder {
    fn object(&mut self, address: u64) -> &mut ObjectOrder {
        let numbers = &mut self.numbers;
        self.objects.entry(address).or_insert_with(|| ObjectOrder {
            thread: next_number(numbers),
            phase: 0,
            arrivals: Clock::default(),
            over: Arc::default(),
            before: VecDeque::new(),
        })
    }

    /// The stamp of copies that signal an object.
    pub fn object_stamp(&mut self, address: u64) -> Stamp {
        let block = self.index;
        let object = self.object(address);
        Stamp { block, thread: object.thread, epoch: object.phase }
    }

    /// The stamp of the `tcgen05` work that a thread commits now.
    pub fn commit_stamp(&mut self, thread: u32) -> Stamp {
        let (block, numbers) = (self.index, &mut self.numbers);
        let (number, count) = self.commits.entry(thread).or_insert_with(|| (next_number(numbers), 0));
        *count += 1;
        Stamp { block, thread: *number, epoch: *count - 1 }
    }

    /// What the threads know that have arrived at an object in this phase and before. The caller adds to it.
    pub fn arrivals(&mut self, address: u64) -> &mut Clock {
        &mut self.object(address).arrivals
    }

    /// A phase of an object ends.
    pub fn complete_object(&mut self, address: u64) {
        let block = self.index;
        let object = self.object(address);
        object.phase += 1;
        let (thread, phase) = (object.thread, object.phase);
        let arrivals = std::mem::take(&mut object.arrivals);
        object.before.truncate(PHASES - 2);
        object.before.push_front(Arc::clone(&object.over));
        let over = Arc::make_mut(&mut object.over);
        over.join(&arrivals);
        over.raise(block, thread, phase);
    }

    /// What a thread acquires when it sees that a phase is over, and `later` more phases after it.
    pub fn object_over(&mut self, address: u64, later: u32) -> Arc<Clock> {
        let object = self.object(address);
        let before = (later as usize).checked_sub(1).and_then(|later| object.before.get(later));
        Arc::clone(before.unwrap_or(&object.over))
    }

    /// The batch that a thread's next copy belongs to.
    pub fn group_of(&self, thread: u32) -> Epoch {
        self.copies.get(&thread).map_or(0, |copies| copies.batch)
    }

    /// Whether a copy of `batch` by `issuer` is done before what `thread` does now: either the issuer waited for it, or `thread` has seen
    /// the end of the phase of an mbarrier object that the copy signals.
    pub fn knows_copy(&self, thread: u32, issuer: u16, batch: Epoch) -> bool {
        let (block, Some(copies)) = (self.index, self.copies.get(&issuer.into())) else { return false };
        let wait = copies.waits.iter().find(|(done, _)| *done > batch);
        wait.is_some_and(|&(_, epoch)| self.knows(thread, Stamp { block, thread: issuer, epoch }))
            || copies
                .thread
                .is_some_and(|number| self.knows(thread, Stamp { block, thread: number, epoch: batch }))
    }

    /// Swaps what threads know of their copies with another state of the block.
    pub fn swap_copies(&mut self, other: &mut BlockOrder) {
        std::mem::swap(&mut self.copies, &mut other.copies);
    }

    /// The first batch of copies that a thread has not waited for.
    pub fn first_pending(&self, thread: u32) -> Epoch {
        self.copies.get(&thread).and_then(|copies| copies.waits.last()).map_or(0, |&(done, _)| done)
    }

    pub fn commit_or_wait(&mut self, thread: u32, group: CopyGroup) {
        let epoch = self.epoch(thread);
        let copies = self.copies.entry(thread).or_default();
        let done = match group {
            CopyGroup::Commit => {
                copies.batch += 1;
                copies.groups.push(copies.batch);
                return;
            }
            CopyGroup::Wait(keep) => {
                let done = copies.groups.len().checked_sub(keep as usize + 1);
                done.map_or(0, |last| copies.groups[last])
            }
            CopyGroup::WaitAll => {
                copies.batch += 1;
                copies.batch
            }
        };
        if copies.waits.last().is_none_or(|&(before, _)| before < done) {
            copies.waits.push((done, epoch));
        }
    }

    /// The stamp of a thread's latest copies, which will signal an mbarrier object.
    pub fn copies_stamp(&mut self, thread: u32) -> Stamp {
        let (block, numbers) = (self.index, &mut self.numbers);
        let copies = self.copies.entry(thread).or_default();
        copies.batch += 1;
        let number = *copies.thread.get_or_insert_with(|| next_number(numbers));
        Stamp { block, thread: number, epoch: copies.batch - 1 }
    }
}

/// The next clock index beyond those of threads.
pub(super) fn next_number(numbers: &mut u16) -> u16 {
    *numbers += 1;
    OBJECTS + *numbers - 1
}
