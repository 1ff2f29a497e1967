//! Mbarrier objects and asynchronous copies of a block: what has no thread of its own has a number in clocks.

use std::collections::VecDeque;
use std::sync::Arc;

use vm::CopyGroup;

use super::BlockOrder;
use crate::clock::{Clock, Epoch, OBJECTS, Stamp};

/// An mbarrier object.
pub(super) struct ObjectOrder {
    /// The thread that stands for it.
    thread: u16,
    phase: Epoch,
    /// What those know who have arrived in this phase, and in all phases before.
    arrivals: Clock,
    over: Arc<Clock>,
    /// The same before the latest phases ended, the last one first.
    before: VecDeque<Arc<Clock>>,
}

/// Phases that the state of an mbarrier object tells apart.
const PHASES: usize = 8;

/// The asynchronous copies of a thread, which are counted in batches: a commit ends one, and so does telling an mbarrier object.
#[derive(Default)]
pub(super) struct CopyOrder {
    batch: Epoch,
    /// By group: the batch that began when it was committed.
    groups: Vec<Epoch>,
    /// Copies of the batches before the first number were done in the epoch.
    waits: Vec<(Epoch, Epoch)>,
    /// The number by which clocks know copies that mbarrier objects tell of.
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

    /// The stamp of copies that complete on an object.
    pub fn object_stamp(&mut self, address: u64) -> Stamp {
        let block = self.index;
        let object = self.object(address);
        Stamp { block, thread: object.thread, epoch: object.phase }
    }

    /// The stamp of what a thread has begun with `tcgen05`, which it commits now.
    pub fn commit_stamp(&mut self, thread: u32) -> Stamp {
        let (block, numbers) = (self.index, &mut self.numbers);
        let (number, count) = self.commits.entry(thread).or_insert_with(|| (next_number(numbers), 0));
        *count += 1;
        Stamp { block, thread: *number, epoch: *count - 1 }
    }

    /// What those know who have arrived at an object in this phase, and before: to be added to.
    pub fn arrivals(&mut self, address: u64) -> &mut Clock {
        &mut self.object(address).arrivals
    }

    /// The phase of an object ends.
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

    /// What a thread learns that has seen that a phase is over, behind which so many later ones are over, too.
    pub fn object_over(&mut self, address: u64, later: u32) -> Arc<Clock> {
        let object = self.object(address);
        let before = (later as usize).checked_sub(1).and_then(|later| object.before.get(later));
        Arc::clone(before.unwrap_or(&object.over))
    }

    /// The batch that a thread's next copy belongs to.
    pub fn group_of(&self, thread: u32) -> Epoch {
        self.copies.get(&thread).map_or(0, |copies| copies.batch)
    }

    /// A copy of `batch` that a thread issued is done before what `thread` does now: the one waited for it, or the other has seen the phase of
    /// an mbarrier object over that was told of it.
    pub fn knows_copy(&self, thread: u32, issuer: u16, batch: Epoch) -> bool {
        let (block, Some(copies)) = (self.index, self.copies.get(&issuer.into())) else { return false };
        let wait = copies.waits.iter().find(|(done, _)| *done > batch);
        wait.is_some_and(|&(_, epoch)| self.knows(thread, Stamp { block, thread: issuer, epoch }))
            || copies
                .thread
                .is_some_and(|number| self.knows(thread, Stamp { block, thread: number, epoch: batch }))
    }

    /// Exchanges what threads know of their copies with that of another state of the block.
    pub fn swap_copies(&mut self, other: &mut BlockOrder) {
        std::mem::swap(&mut self.copies, &mut other.copies);
    }

    /// The first batch of copies of a thread that it has not waited for.
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

    /// The stamp of a thread's latest copies, which an mbarrier object is to be told of when they are done.
    pub fn copies_stamp(&mut self, thread: u32) -> Stamp {
        let (block, numbers) = (self.index, &mut self.numbers);
        let copies = self.copies.entry(thread).or_default();
        copies.batch += 1;
        let number = *copies.thread.get_or_insert_with(|| next_number(numbers));
        Stamp { block, thread: number, epoch: copies.batch - 1 }
    }
}

/// The next number of what is no thread.
pub(super) fn next_number(numbers: &mut u16) -> u16 {
    *numbers += 1;
    OBJECTS + *numbers - 1
}
