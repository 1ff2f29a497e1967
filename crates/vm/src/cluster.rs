//! Clusters: blocks that run together, access each other's shared memory and have a barrier of their own (PTX ISA,
//! "Cluster of Cooperative Thread Arrays").
//!
//! All blocks of a cluster run in turns on one host thread. So no other host thread accesses their shared memory, and a
//! block's writes to another block's memory are visible at that block's next time slice. [`Members`] holds everything
//! that the blocks know of each other.
//!
//! A block finds another block's memory by the rank in the address (`Shared::memory_at`). Such an access has no inline
//! cache, since the other block may end.
//!
//! Narrowest tests: `tests/run`: `cluster_*`, `fault_cluster_*`; `tests/tools`: `cluster_*`.

use std::rc::Rc;

use machine::{Fault, Place};

use crate::affine::LaneRows;
use crate::code::Code;
use crate::cta::{Cta, Progress};
use crate::cta_batch::CtaBatch;
use crate::exec::{Observer, Step, Stopped};
use crate::members::Members;
use crate::run::Run;

/// The blocks of a cluster in flight, or of a CTA batch if clusters have one block. Reused for the next ones.
pub(crate) struct Cluster<'l> {
    launch: &'l Run<'l>,
    /// By rank. Only one if clusters have one block.
    ctas: Vec<Cta<'l>>,
    members: Option<Rc<Members>>,
}

impl<'l> Cluster<'l> {
    /// For blocks whose lanes form rows of a gang as `rows` describes.
    pub fn new(launch: &'l Run<'l>, code: &'l Code, rows: LaneRows) -> Cluster<'l> {
        let mut ctas: Vec<Cta> =
            (0..launch.cluster_blocks()).map(|rank| Cta::new(launch, code, rows, rank)).collect();
        let members =
            (ctas.len() > 1).then(|| Rc::new(Members::new(ctas.iter().map(|cta| cta.shared.member()))));
        if let Some(members) = &members {
            ctas.iter_mut().for_each(|cta| cta.shared.join(Rc::clone(members)));
        }
        Cluster { launch, ctas, members }
    }

    /// Starts the blocks of a CTA batch, or of a cluster of several blocks.
    pub fn start(&mut self, batch: CtaBatch) -> Step {
        let Some(members) = &self.members else {
            return self.ctas.iter_mut().try_for_each(|cta| cta.start(batch));
        };
        members.reset();
        let cluster = batch.first / self.ctas.len() as u64;
        let mut ranks = (0..).zip(&mut self.ctas);
        ranks.try_for_each(|(rank, cta)| {
            let first = self.launch.block_of_cluster(cluster, rank);
            cta.start(CtaBatch { first, blocks: 1, stride: 1 })
        })
    }

    /// Goes on with blocks that have stopped, of which those of this CTA batch begin with number `first`. They have just been started.
    pub fn resume(&mut self, stopped: &Stopped<'l>, first: usize) {
        self.ctas.iter_mut().for_each(|cta| cta.resume(stopped, first));
    }

    /// Gives every block a time slice.
    pub fn step(&mut self, observer: &mut impl Observer) -> Step<Progress> {
        let Some(members) = &self.members else { return self.ctas[0].step(observer) };
        let changes = members.changes();
        let (mut all_spinning, mut all_blocked, mut all_waiting) = (true, true, true);
        for (rank, cta) in (0..).zip(&mut self.ctas) {
            if members.has_ended(rank) {
                continue;
            }
            match cta.step(observer)? {
                Progress::Finished => members.note_change(),
                Progress::Running { spinning, blocked, waiting } => {
                    all_spinning &= spinning;
                    all_blocked &= blocked;
                    all_waiting &= waiting;
                }
                stopped @ Progress::Stopped(..) => return Ok(stopped),
            }
        }
        if (0..).zip(&self.ctas).all(|(rank, _)| members.has_ended(rank)) {
            return Ok(Progress::Finished);
        }
        let changed = members.changes() != changes;
        if all_waiting && !changed {
            return Err(self.deadlock_fault());
        }
        Ok(Progress::Running {
            spinning: all_spinning && !changed,
            blocked: all_blocked && !changed,
            waiting: false,
        })
    }

    /// The fault of blocks that are in a deadlock.
    pub fn deadlock_fault(&mut self) -> Box<Fault> {
        let ended = |rank| self.members.as_ref().is_some_and(|members| members.has_ended(rank));
        let rank = (0..).zip(&self.ctas).position(|(rank, _)| !ended(rank)).unwrap_or(0);
        self.ctas[rank].deadlock_fault()
    }

    /// Thread-instructions executed since the last call.
    pub fn take_instructions(&mut self) -> u64 {
        self.ctas.iter_mut().map(Cta::take_instructions).sum()
    }

    /// The place of some remaining thread.
    pub fn place(&self) -> Option<Place> {
        self.ctas.iter().find_map(Cta::place)
    }
}
