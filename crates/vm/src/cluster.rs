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

use std::cell::Cell;
use std::rc::Rc;

use machine::{Fault, Place};
use sem::tensor_memory::Misuse;

use crate::affine::LaneRows;
use crate::code::Code;
use crate::cta::{Cta, Progress};
use crate::cta_batch::CtaBatch;
use crate::exec::{Observer, Step};
use crate::grid::Run;
use crate::tensor_memory::TensorMemoryOf;

/// The blocks of a cluster in flight, or of a CTA batch if clusters have one block. Reused for the next ones.
pub(crate) struct Cluster<'l> {
    launch: &'l Run<'l>,
    /// By rank. Only one if clusters have one block.
    ctas: Vec<Cta<'l>>,
    members: Option<Rc<Members>>,
}

/// The state that the blocks of a cluster share.
pub(crate) struct Members {
    blocks: Vec<Member>,
    /// How often the barrier of the cluster has completed.
    generation: Cell<u32>,
    /// Counts changes that another block may have waited for.
    changes: Cell<u64>,
}

/// A block of a cluster.
struct Member {
    /// Its shared memory, and the size of that in bytes.
    memory: *mut u8,
    bytes: usize,
    tensor_memory: TensorMemoryOf,
    /// All remaining threads have arrived at the barrier of the cluster.
    arrived: Cell<bool>,
    /// All threads have ended.
    ended: Cell<bool>,
}

impl Members {
    fn new(ctas: &[Cta]) -> Members {
        let member = |cta: &Cta| Member {
            memory: cta.shared.memory.as_ptr(),
            bytes: cta.shared.memory_bytes as usize,
            tensor_memory: Rc::clone(&cta.shared.tensor_memory),
            arrived: Cell::new(false),
            ended: Cell::new(false),
        };
        let blocks = ctas.iter().map(member).collect();
        Members { blocks, generation: Cell::new(0), changes: Cell::new(0) }
    }

    fn reset(&self) {
        self.generation.set(0);
        for block in &self.blocks {
            block.arrived.set(false);
            block.ended.set(false);
        }
    }

    /// The start of the shared memory of the block with this rank. `None` if the block has ended or does not exist.
    pub fn memory(&self, rank: u32) -> Option<*mut u8> {
        let block = self.blocks.get(rank as usize)?;
        (!block.ended.get()).then_some(block.memory)
    }

    /// The tensor memory of the block with this rank.
    pub fn tensor_memory(&self, rank: u32) -> Result<TensorMemoryOf, Misuse> {
        let block = self.blocks.get(rank as usize).ok_or(Misuse::Pair)?;
        if block.ended.get() { Err(Misuse::PairEnded) } else { Ok(Rc::clone(&block.tensor_memory)) }
    }

    /// Whether a block with this rank exists and has ended.
    pub fn has_ended(&self, rank: u32) -> bool {
        self.blocks.get(rank as usize).is_some_and(|block| block.ended.get())
    }

    /// Whether a host address is in the shared memory of one of the blocks.
    pub fn has(&self, place: *const u8) -> bool {
        self.blocks.iter().any(|block| {
            let start = block.memory.addr();
            (start..start + block.bytes).contains(&place.addr())
        })
    }

    /// How often the barrier of the cluster has completed.
    pub fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// Takes note whether all remaining threads of a block have arrived at the barrier of the cluster, and whether all
    /// threads have ended. Completes the barrier if it waited for no other block.
    pub fn report(&self, rank: u32, arrived: bool, ended: bool) {
        let Some(block) = self.blocks.get(rank as usize) else { return };
        block.arrived.set(arrived);
        block.ended.set(ended);
        if self.blocks.iter().all(|block| block.arrived.get()) {
            self.generation.set(self.generation.get().wrapping_add(1));
            self.blocks.iter().for_each(|block| block.arrived.set(block.ended.get()));
            self.note_change();
        }
    }

    /// Notes a change that another block may have waited for.
    pub fn note_change(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// The number of changes noted so far.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }
}

impl<'l> Cluster<'l> {
    /// For blocks whose lanes form rows of a gang as `rows` describes.
    pub fn new(launch: &'l Run<'l>, code: &'l Code, rows: LaneRows) -> Cluster<'l> {
        let mut ctas: Vec<Cta> =
            (0..launch.cluster_blocks()).map(|rank| Cta::new(launch, code, rows, rank)).collect();
        let members = (ctas.len() > 1).then(|| Rc::new(Members::new(&ctas)));
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
