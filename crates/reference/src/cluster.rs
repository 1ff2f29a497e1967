//! A cluster: blocks that run together, reach each other's shared memory and have a barrier of their own (PTX ISA, "Cluster of
//! Cooperative Thread Arrays", "barrier.cluster").

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashSet;

use vm::Launch;

use crate::tensor_memory::TensorMemory;

/// What the blocks of a cluster share.
pub(crate) struct Cluster {
    /// By rank.
    blocks: Vec<Member>,
    /// How often its barrier has completed.
    generation: Cell<u64>,
}

struct Member {
    shared: RefCell<Vec<u8>>,
    tensor_memory: RefCell<TensorMemory>,
    /// Threads that have not ended.
    alive: Cell<usize>,
    /// Those of them that have arrived at the barrier.
    arrived: RefCell<HashSet<usize>>,
}

impl Cluster {
    /// A cluster none of whose threads has run.
    pub fn new(launch: &Launch) -> Cluster {
        let member = |_| Member {
            shared: RefCell::new(vec![0; launch.shared_span() as usize]),
            tensor_memory: RefCell::default(),
            alive: Cell::new(launch.config().block_threads() as usize),
            arrived: RefCell::default(),
        };
        Cluster { blocks: (0..launch.cluster_blocks()).map(member).collect(), generation: Cell::new(0) }
    }

    /// There is a block of this rank, and all its threads have ended.
    pub fn has_ended(&self, rank: u32) -> bool {
        self.blocks.get(rank as usize).is_some_and(|block| block.alive.get() == 0)
    }

    /// Reads shared memory of a block; false where there is none.
    pub fn read(&self, rank: u32, at: u64, data: &mut [u8]) -> bool {
        self.with(rank, at, data.len(), |place| data.copy_from_slice(place))
    }

    /// Writes shared memory of a block; false where there is none.
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

    /// The tensor memory of a block that is there.
    pub fn tensor_memory(&self, rank: u32) -> RefMut<'_, TensorMemory> {
        self.blocks[rank as usize].tensor_memory.borrow_mut()
    }

    /// How often the barrier has completed.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// A thread has arrived, and the barrier is not complete.
    pub fn has_arrived(&self, rank: u32, thread: usize) -> bool {
        self.blocks[rank as usize].arrived.borrow().contains(&thread)
    }

    /// A thread arrives at the barrier.
    pub fn arrive(&self, rank: u32, thread: usize) {
        self.blocks[rank as usize].arrived.borrow_mut().insert(thread);
        self.complete();
    }

    /// A thread has ended: nobody waits for it any more.
    pub fn end(&self, rank: u32, thread: usize) {
        let block = &self.blocks[rank as usize];
        block.alive.set(block.alive.get() - 1);
        block.arrived.borrow_mut().remove(&thread);
        self.complete();
    }

    /// Completes the barrier if all that are left have arrived.
    fn complete(&self) {
        if self.blocks.iter().all(|block| block.arrived.borrow().len() == block.alive.get()) {
            self.blocks.iter().for_each(|block| block.arrived.borrow_mut().clear());
            self.generation.set(self.generation.get() + 1);
        }
    }
}
