//! A cluster: CTAs that run together, can access each other's shared memory and share a barrier (PTX ISA, "Cluster of
//! Cooperative Thread Arrays", "barrier.cluster").

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashSet;

use machine::Launch;

use crate::tensor_memory::TensorMemory;

/// What the CTAs of a cluster share.
pub(crate) struct Cluster {
    /// By rank.
    blocks: Vec<Member>,
    /// How many times its barrier has completed.
    generation: Cell<u64>,
}

struct Member {
    shared: RefCell<Vec<u8>>,
    tensor_memory: RefCell<TensorMemory>,
    /// Number of live threads.
    alive: Cell<usize>,
    /// The live threads that have arrived at the barrier.
    arrived: RefCell<HashSet<usize>>,
}

impl Cluster {
    /// A cluster in which no thread has run.
    pub fn new(launch: &Launch) -> Cluster {
        let member = |_| Member {
            shared: RefCell::new(vec![0; launch.shared_span() as usize]),
            tensor_memory: RefCell::default(),
            alive: Cell::new(launch.config().block_threads() as usize),
            arrived: RefCell::default(),
        };
        Cluster { blocks: (0..launch.cluster_blocks()).map(member).collect(), generation: Cell::new(0) }
    }

    /// Whether there is a CTA of this rank and all its threads have ended.
    pub fn has_ended(&self, rank: u32) -> bool {
        self.blocks.get(rank as usize).is_some_and(|block| block.alive.get() == 0)
    }

    /// Reads a CTA's shared memory; `false` if the access is out of bounds.
    pub fn read(&self, rank: u32, at: u64, data: &mut [u8]) -> bool {
        self.with(rank, at, data.len(), |place| data.copy_from_slice(place))
    }

    /// Writes a CTA's shared memory; `false` if the access is out of bounds.
    pub fn write(&self, rank: u32, at: u64, data: &[u8]) -> bool {
        self.with(rank, at, data.len(), |place| place.copy_from_slice(data))
    }

    fn with(&self, rank: u32, at: u64, bytes: usize, f: impl FnOnce(&mut [u8])) -> bool {
        let block = self.blocks.get(rank as usize).filter(|block| block.alive.get() > 0);
        let Some(block) = block else { return false };
        let mut shared = block.shared.borrow_mut();
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let place = start.checked_add(bytes).and_then(|end| shared.get_mut(start..end));
        place.map(f).is_some()
    }

    /// The tensor memory of a CTA, which must exist.
    pub fn tensor_memory(&self, rank: u32) -> RefMut<'_, TensorMemory> {
        self.blocks[rank as usize].tensor_memory.borrow_mut()
    }

    /// How many times the barrier has completed.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Whether a thread has arrived in the current generation, which is not complete.
    pub fn has_arrived(&self, rank: u32, thread: usize) -> bool {
        self.blocks[rank as usize].arrived.borrow().contains(&thread)
    }

    /// A thread arrives at the barrier.
    pub fn arrive(&self, rank: u32, thread: usize) {
        self.blocks[rank as usize].arrived.borrow_mut().insert(thread);
        self.complete();
    }

    /// Records that a thread has ended: the barrier no longer waits for it.
    pub fn end(&self, rank: u32, thread: usize) {
        let block = &self.blocks[rank as usize];
        block.alive.set(block.alive.get() - 1);
        block.arrived.borrow_mut().remove(&thread);
        self.complete();
    }

    /// Completes the barrier if all live threads have arrived.
    fn complete(&self) {
        if self.blocks.iter().all(|block| block.arrived.borrow().len() == block.alive.get()) {
            self.blocks.iter().for_each(|block| block.arrived.borrow_mut().clear());
            self.generation.set(self.generation.get() + 1);
        }
    }
}
