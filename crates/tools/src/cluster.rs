//! The order between threads of a cluster of several blocks: the cluster barrier (PTX ISA, "barrier.cluster").

use std::collections::HashMap;
use std::sync::Arc;

use crate::block::{BlockOrder, Threads, contains, insert};
use crate::clock::{Clock, STARTED};

/// The threads that have arrived at a cluster barrier in its current phase.
#[derive(Default)]
pub(crate) struct ClusterOrder {
    /// By block.
    arrived: HashMap<u32, Threads>,
    /// By block: threads that wait for the phase in which they arrived.
    late: HashMap<u32, Threads>,
    /// What the arrived threads release.
    clock: Clock,
    /// The same for the previous phase.
    over: Arc<Clock>,
    /// What was done before relaxed arrivals, in this phase and in the previous one.
    passed: Clock,
    passed_over: Clock,
}

impl ClusterOrder {
    /// Threads of a block arrive; `relaxed`: they release nothing.
    pub fn arrive(&mut self, order: &mut BlockOrder, threads: &[u32], relaxed: bool) {
        let arrived = self.arrived.entry(order.index).or_default();
        for &thread in threads {
            insert(arrived, thread);
            if relaxed {
                order.release(thread, &mut self.passed);
                self.clock.raise(order.index, STARTED, 1);
            } else {
                order.release(thread, &mut self.clock);
            }
        }
    }

    /// Threads of a block wait for the phase in which they arrived.
    pub fn wait(&mut self, order: &mut BlockOrder, threads: &[u32]) {
        let (mut early, mut late) = ([0; 16], [0; 16]);
        for &thread in threads {
            let arrived = self.arrived.get(&order.index).is_some_and(|arrived| contains(arrived, thread));
            insert(if arrived { &mut late } else { &mut early }, thread);
        }
        if !self.over.is_empty() {
            order.acquire_all(&early, &self.over);
        }
        if early != [0; 16] {
            order.passed.join(&self.passed_over);
        }
        let known = self.late.entry(order.index).or_default();
        known.iter_mut().zip(&late).for_each(|(known, late)| *known |= late);
    }

    /// Completes the phase. Returns the threads that waited for it, by block, the clock that they acquire, and what relaxed arrivals show
    /// to be over.
    pub fn complete(&mut self) -> (HashMap<u32, Threads>, Arc<Clock>, Clock) {
        self.arrived.clear();
        self.over = Arc::new(std::mem::take(&mut self.clock));
        self.passed_over = std::mem::take(&mut self.passed);
        (std::mem::take(&mut self.late), Arc::clone(&self.over), self.passed_over.clone())
    }
}
