//! The workspace of a cooperative launch (CUDA C++ Programming Guide, "Grid Synchronization").
//!
//! `grid_group::sync` is a loop of the kernel's own on a word of this memory, whose address the driver leaves in
//! `%envreg1` (its high half) and `%envreg2` (its low half); of any other launch they are zero, and the kernel traps.

use std::sync::Arc;

use crate::launch::LaunchError;
use crate::memory::Heap;

/// Blocks of a cooperative launch: all must be able to run at the same time, whatever the host.
pub(crate) const COOPERATIVE_BLOCKS: u64 = crate::grid::RESIDENT_BLOCKS as u64;

/// Size in bytes: its size as an `u32`, the word of the barrier, and room that newer versions of CUDA may use.
const BYTES: u32 = 64;

/// Memory that lives as long as its launch.
pub(crate) struct Workspace {
    heap: Arc<Heap>,
    address: u64,
}

impl Workspace {
    /// For a grid of so many blocks.
    pub fn new(heap: &Arc<Heap>, blocks: u64) -> Result<Workspace, LaunchError> {
        if blocks > COOPERATIVE_BLOCKS {
            return Err(LaunchError::Invalid(format!(
                "the blocks of a cooperative launch run at the same time, at most {COOPERATIVE_BLOCKS} of them: \
                 the grid has {blocks}"
            )));
        }
        let missing = || LaunchError::Invalid("there is no memory for a cooperative launch".to_owned());
        let address = heap.reserve(BYTES.into()).ok_or_else(missing)?;
        if let Some(storage) =
            heap.find(address).and_then(|extent| extent.resolve(address, BYTES.into()).ok())
        {
            // SAFETY: the allocation has these bytes, and nobody else knows it yet.
            unsafe { storage.cast::<[u8; 4]>().write(BYTES.to_le_bytes()) }
        }
        Ok(Workspace { heap: Arc::clone(heap), address })
    }

    /// Its device address.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A kernel may have freed it.
        let _ = self.heap.free(self.address);
    }
}
