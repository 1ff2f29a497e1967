//! Global memory that each block of a launch has for itself (PTX ISA 9.4, `.minperctamemory`, `%perctamemorysize` and
//! `%perctamemoryoffset`). A GPU gives it to the resident blocks, one after the other. Here each block has its own, zeroed.

use std::sync::Arc;

use crate::error::LaunchError;
use crate::memory::Heap;

/// The size of a block's memory is rounded up to a multiple of this number of bytes.
const GRANULE: u64 = 16;

/// The memory of all blocks of a launch, consecutively.
pub(crate) struct BlockMemory {
    heap: Arc<Heap>,
    address: u64,
    bytes: u64,
}

impl BlockMemory {
    /// Reserves at least `least` bytes for each of `blocks` blocks. `None` if the kernel requests none.
    pub fn reserve(heap: &Arc<Heap>, blocks: u64, least: u64) -> Result<Option<BlockMemory>, LaunchError> {
        if least == 0 {
            return Ok(None);
        }
        let bytes = least.next_multiple_of(GRANULE);
        let Some(address) = blocks.checked_mul(bytes).and_then(|all| heap.reserve(all)) else {
            let what =
                format!("there is no memory for {blocks} blocks with {bytes} bytes each (.minperctamemory)");
            return Err(LaunchError::Invalid(what));
        };
        Ok(Some(BlockMemory { heap: Arc::clone(heap), address, bytes }))
    }

    /// Bytes of each block.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Generic address of the memory of a block, by its linear index in the grid.
    pub fn of(&self, block: u64) -> u64 {
        self.address + block * self.bytes
    }
}

impl Drop for BlockMemory {
    fn drop(&mut self) {
        // A kernel may have freed it, which is the kernel's error.
        let _ = self.heap.free(self.address);
    }
}
