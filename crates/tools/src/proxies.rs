//! Fences between the generic proxy and the async proxy (PTX ISA 8.9.2, "Proxy-preserved base causality order").
//!
//! A fence keeps what its thread knew. A read through the async proxy looks for a fence on the way from a write through the generic proxy.

use std::collections::{HashMap, HashSet};

use crate::block::{BlockOrder, Mark};
use crate::clock::{Epoch, Stamp};

/// A fence of a thread.
struct Fence {
    /// It ended this epoch of the thread.
    epoch: Epoch,
    /// What the thread knew.
    mark: Mark,
}

/// Fences of a thread that are kept.
const MOST_FENCES: usize = 64;

/// All fences between the two proxies, by block and thread.
#[derive(Default)]
pub(crate) struct Proxies {
    fences: HashMap<(u32, u16), Vec<Fence>>,
    /// Blocks that are over and had fences: which writes these followed is no longer known.
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

    /// A block is over.
    pub fn end_block(&mut self, index: u32) {
        let before = self.fences.len();
        self.fences.retain(|&(block, _), _| block != index);
        if self.fences.len() < before {
            self.ended.insert(index);
        }
    }

    /// Between a write through the generic proxy and what a thread does now, which comes later, some thread has executed a fence.
    pub fn are_linked(&self, write: Stamp, order: &BlockOrder, thread: u32) -> bool {
        if self.ended.contains(&write.block) {
            return true;
        }
        let known =
            |&(block, by): &(u32, u16), epoch| order.knows(thread, Stamp { block, thread: by, epoch });
        // Mostly the thread that wrote.
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
