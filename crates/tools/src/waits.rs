//! Asynchronous work that threads wait for in groups, and when it is done (PTX ISA 9.7.9.25 and 9.7.15.7).
//!
//! An access of a copy or of `wgmma` is recorded with the number of its group, and is done when its thread has waited for that group.
//! The waits are operations of the lowered code (`AsyncStep`). In the interpreter they do nothing, because it runs such work at once.

use std::collections::HashMap;

use machine::{AccessKind, AsyncStep, Completion};

use crate::block::BlockOrder;
use crate::clock::{Epoch, Stamp};
use crate::shadow::Record;

/// Asynchronous work that accesses memory for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// `cp.async`
    Copy,
    /// A bulk copy in a group: its read of the source, and its write.
    BulkRead,
    BulkWrite,
    /// `wgmma` reads an operand matrix.
    Product,
    /// `tcgen05` reads shared memory. It is done when it has signaled the mbarrier object that the next `tcgen05.commit` names.
    Tensor,
    /// A bulk copy that signals an mbarrier object.
    Object,
}

impl Work {
    pub fn of(completion: Completion, kind: AccessKind) -> Option<Work> {
        match completion {
            Completion::AtOnce => None,
            Completion::Group => Some(Work::Copy),
            Completion::BulkGroup if kind.writes() => Some(Work::BulkWrite),
            Completion::BulkGroup => Some(Work::BulkRead),
            Completion::ProductGroup => Some(Work::Product),
            Completion::Commit => Some(Work::Tensor),
            Completion::Mbarrier => Some(Work::Object),
        }
    }

    /// Whether it accesses memory through the async proxy (9.7.9.25.2 and 9.7.15.4).
    pub fn is_of_async_proxy(self) -> bool {
        self != Work::Copy
    }
}

/// The groups of a thread.
#[derive(Default)]
struct Groups {
    committed: Epoch,
    /// Pairs of a group and an epoch: work of earlier groups was done in the epoch.
    waits: Vec<(Epoch, Epoch)>,
}

/// The groups of all threads, by block and thread.
#[derive(Default)]
pub(crate) struct Waits {
    groups: HashMap<(Work, u32, u16), Groups>,
}

impl Waits {
    /// The group that a thread's next work belongs to.
    pub fn group(&mut self, work: Work, block: u32, thread: u32) -> Epoch {
        self.groups.entry((work, block, thread as u16)).or_default().committed
    }

    /// Whether work is done before what a thread does now. This holds for the issuing thread, too.
    pub fn is_done(&self, work: Work, earlier: &Record, order: &BlockOrder, thread: u32) -> bool {
        let Stamp { block, thread: issuer, epoch: group } = earlier.stamp();
        let Some(groups) = self.groups.get(&(work, block, issuer)) else { return false };
        let wait = groups.waits.iter().find(|(done, _)| *done > group);
        wait.is_some_and(|&(_, epoch)| order.knows(thread, Stamp { block, thread: issuer, epoch }))
    }

    /// Threads of a block commit groups, or wait for some.
    pub fn step(&mut self, order: &BlockOrder, step: AsyncStep, threads: &[u32]) {
        let (works, pending): (&[Work], _) = match step {
            AsyncStep::CommitBulk => (&[Work::BulkRead, Work::BulkWrite], None),
            AsyncStep::CommitProducts => (&[Work::Product], None),
            AsyncStep::WaitBulk { pending, read: true } => (&[Work::BulkRead], Some(pending)),
            AsyncStep::WaitBulk { pending, read: false } => {
                (&[Work::BulkRead, Work::BulkWrite], Some(pending))
            }
            AsyncStep::WaitProducts(pending) => (&[Work::Product], Some(pending)),
            AsyncStep::FenceProducts
            | AsyncStep::WaitTensorLoads
            | AsyncStep::WaitTensorStores
            | AsyncStep::FenceTensor { .. }
            | AsyncStep::SetRegisters { .. } => return,
        };
        for (&work, &thread) in works.iter().flat_map(|work| threads.iter().map(move |t| (work, t))) {
            // A thread without such work has nothing to wait for.
            let Some(groups) = self.groups.get_mut(&(work, order.index, thread as u16)) else { continue };
            let Some(pending) = pending else {
                groups.committed += 1;
                continue;
            };
            let done = groups.committed.saturating_sub(pending);
            if groups.waits.last().is_none_or(|&(before, _)| before < done) {
                groups.waits.push((done, order.epoch(thread)));
            }
        }
    }

    /// A block has ended: only its writes to global memory remain visible.
    pub fn end_block(&mut self, index: u32) {
        self.groups.retain(|&(work, block, _), _| block != index || work == Work::BulkWrite);
    }

    /// All work before is done.
    pub fn clear(&mut self) {
        self.groups.clear();
    }
}
