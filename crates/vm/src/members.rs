//! What the blocks of a cluster know of each other: shared memory, tensor memory, the barrier of the cluster.

use std::cell::Cell;
use std::rc::Rc;

use sem::tensor_memory::Misuse;

use crate::tensor_memory::TensorMemoryOf;

/// The state that the blocks of a cluster share.
pub(crate) struct Members {
    blocks: Vec<Member>,
    /// How often the barrier of the cluster has completed.
    generation: Cell<u32>,
    /// Counts changes that another block may have waited for.
    changes: Cell<u64>,
}

/// A block of a cluster.
pub(crate) struct Member {
    /// Its shared memory, and the size of that in bytes.
    memory: *mut u8,
    bytes: usize,
    tensor_memory: TensorMemoryOf,
    /// All remaining threads have arrived at the barrier of the cluster.
    arrived: Cell<bool>,
    /// All threads have ended.
    ended: Cell<bool>,
}

impl Member {
    /// A block with `bytes` bytes of shared memory at `memory`.
    pub fn new(memory: *mut u8, bytes: usize, tensor_memory: TensorMemoryOf) -> Member {
        Member { memory, bytes, tensor_memory, arrived: Cell::new(false), ended: Cell::new(false) }
    }
}

impl Members {
    pub fn new(blocks: impl Iterator<Item = Member>) -> Members {
        Members { blocks: blocks.collect(), generation: Cell::new(0), changes: Cell::new(0) }
    }

    /// Before the blocks of another cluster start.
    pub fn reset(&self) {
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
