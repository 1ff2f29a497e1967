//! Basic blocks that native code takes all lanes through together (crate `jit`).

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use jit::Host;
use machine::NativeCode;

use super::build::{Builder, slice_cost};
use super::straight::{COLD, holds, is_hot};
use super::{Block, Guard, Op, Straight, Terminator};
use crate::registers::SlotRef;

/// Basic blocks that native code takes all lanes through together.
pub(crate) struct Trace {
    /// Computes what is the same in all lanes, or steps evenly. Writes no slot that others read.
    pub before: Vec<Op>,
    /// How branches go.
    ways: Vec<Guard>,
    pub section: Straight,
    /// Copies what `before` has computed.
    pub after: Vec<Op>,
    /// The last basic block, which ends as always.
    pub last: u32,
    /// Instructions of the basic blocks that all lanes execute.
    pub cost: u64,
    /// The lanes that execute others, and their instructions, unless native code counts them.
    pub some: Vec<(Guard, u64)>,
    /// The greatest of their [`Block::slice_cost`](super::Block::slice_cost).
    pub slice_cost: i64,
    visits: AtomicU32,
    /// How often it may fail before it is tried no more.
    credit: AtomicI32,
}

/// How many failures in a row end the trials.
const CREDIT: i32 = 64;

impl Trace {
    /// Whether a visit of the first basic block tries to go the whole way.
    #[inline]
    pub fn is_tried(&self, when: NativeCode) -> bool {
        if when == NativeCode::Hot && self.visits.load(Ordering::Relaxed) < COLD {
            self.visits.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.is_hot(when) && (when == NativeCode::Always || self.credit.load(Ordering::Relaxed) > 0)
    }

    /// As [`StraightBlock::is_hot`](super::StraightBlock::is_hot).
    pub fn is_hot(&self, when: NativeCode) -> bool {
        is_hot(when, &self.visits)
    }

    /// Notes whether lanes went the whole way.
    pub fn note(&self, went: bool) {
        match went {
            true if self.credit.load(Ordering::Relaxed) != CREDIT => {
                self.credit.store(CREDIT, Ordering::Relaxed);
            }
            true => {}
            false => drop(self.credit.fetch_sub(1, Ordering::Relaxed)),
        }
    }

    /// Whether all branches lead all lanes this way. `uniform`: the value of a slot that is the same in all of them.
    pub fn is_way(&self, uniform: impl Fn(SlotRef) -> Option<u64>) -> bool {
        self.ways.iter().all(|way| holds(way, &uniform))
    }
}

impl Builder<'_> {
    /// The traces that begin with basic blocks.
    pub(super) fn traces(
        &self,
        found: Vec<jit::Trace>,
        host: Host,
        slots: &Arc<[SlotRef]>,
        blocks: &[Block],
    ) -> Vec<(u32, Trace)> {
        let of_trace = |found: jit::Trace| {
            let (first, last) = (found.path.first()?.block, found.path.last()?.block);
            if !may_end(&blocks[last as usize].terminator) {
                return None;
            }
            let block = |visited: &jit::Visited| &self.function.blocks[visited.block as usize];
            let cost = |visited: &jit::Visited| block(visited).instructions.len() as u64;
            let some = found
                .path
                .iter()
                .filter(|visited| !visited.is_counted)
                .filter_map(|visited| Some((visited.lanes?.map(|slot| self.slot(slot)), cost(visited))));
            let ops = |ops: &[ir::Op]| ops.iter().map(|op| self.op(op)).collect();
            let trace = Trace {
                before: ops(&found.before),
                ways: found.ways.iter().map(|guard| guard.map(|slot| self.slot(slot))).collect(),
                after: ops(&found.after),
                last,
                cost: found.path.iter().filter(|visited| visited.lanes.is_none()).map(cost).sum(),
                some: some.collect(),
                slice_cost: found.path.iter().map(|visited| slice_cost(block(visited))).max().unwrap_or(0),
                visits: AtomicU32::new(0),
                credit: AtomicI32::new(CREDIT),
                section: self.section(first, found.section, host, slots),
            };
            Some((first, trace))
        };
        found.into_iter().filter_map(of_trace).collect()
    }
}

/// Lanes may part at a barrier for some threads, before the basic block that it ends.
fn may_end(terminator: &Terminator) -> bool {
    !matches!(terminator, Terminator::Barrier(barrier) if barrier.threads.is_some())
}
