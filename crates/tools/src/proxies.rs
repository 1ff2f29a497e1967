//! Fences between the generic proxy and the async proxy (PTX ISA 8.9.2, "Proxy-preserved base causality order").
//!
//! A fence keeps what its thread knew. A read through the async proxy needs a fence between it and an earlier generic write.

use std::collections::{HashMap, HashSet};

use crate::block::{BlockOrder, Mark};
use crate::clock::{Epoch, Stamp};

/// A fence of a thread.
struct Fence {
    /// The epoch of the thread that the fence ended.
    epoch: Epoch,
    /// What the thread knew.
    mark: Mark,
}

/// The most fences of a thread that are kept.
const MOST_FENCES: usize = 64;

/// All fences between the two proxies, by block and thread.
#[derive(Default)]
pub(crate) struct Proxies {
    fences: HashMap<(u32, u16), Vec<Fence>>,
    /// Ended blocks that had fences. Which of their writes precede a fence is no longer known.
    ended: HashSet<u32>,
}

impl Proxies {
    /// Threads of a block execute `fence.proxy.async`.
    pub fn fence(&mut self, order: &mut BlockOrder, threads: &[u32]) {
        for &thread in threads {
            let epoch = order.epoch(thread);
            let mark = order.mark(thread);
            let fences = self.fences.entry((order.index, thread as u16)).or_default();
            if fences.len() == MOST_FENCES {
                fences.remove(0);
            }
            fences.push(Fence { epoch, mark });
        }
    }

    /// A block has ended.
    pub fn end_block(&mut self, index: u32) {
        let before = self.fences.len();
        self.fences.retain(|&(block, _), _| block != index);
        if self.fences.len() < before {
            self.ended.insert(index);
        }
    }

    /// Whether some thread has executed a fence between a write through the generic proxy and the later access of a thread.
    pub fn are_linked(&self, write: Stamp, order: &BlockOrder, thread: u32) -> bool {
        if self.ended.contains(&write.block) {
            return true;
        }
        let known =
            |&(block, by): &(u32, u16), epoch| order.knows(thread, Stamp { block, thread: by, epoch });
        // Usually the writing thread executes the fence.
        let own = self.fences.get(&(write.block, write.thread)).into_iter().flatten();
        if own
            .clone()
            .find(|fence| fence.epoch >= write.epoch)
            .is_some_and(|fence| known(&(write.block, write.thread), fence.epoch))
        {
            return true;
        }
        self.fences.iter().any(|(by, fences)| {
            let latest = fences.iter().rev().find(|fence| known(by, fence.epoch));
            latest.is_some_and(|fence| fence.mark.knows(by, write))
        })
    }
}
