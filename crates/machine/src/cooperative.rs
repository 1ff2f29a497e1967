//! The workspace of a cooperative launch (CUDA C++ Programming Guide, "Grid Synchronization").
//!
//! `grid_group::sync` is a loop in the kernel itself on a word of this memory. The driver leaves the memory's address
//! in `%envreg1` (high half) and `%envreg2` (low half). In any other launch these are zero, and the kernel traps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::LaunchError;
use crate::memory::{Heap, host};

/// The most blocks of a cooperative launch. They all run at the same time, on any host. This is the most that any
/// current GPU has room for (148 multiprocessors of 32 blocks).
pub const COOPERATIVE_BLOCKS: u64 = 148 * 32;

/// Size in bytes. The workspace contains its size as a `u32`, the word of the barrier, and room that newer versions of
/// CUDA may use.
const BYTES: u32 = 64;

/// The workspaces of a device. A launch reuses one that an earlier launch has returned.
#[derive(Default)]
pub(crate) struct Workspaces {
    spare: Mutex<Vec<u64>>,
}

/// The workspace of one launch.
pub(crate) struct Workspace {
    heap: Arc<Heap>,
    workspaces: Arc<Workspaces>,
    address: u64,
}

impl Workspaces {
    /// A workspace for a grid of `blocks` blocks.
    pub fn take(self: &Arc<Self>, heap: &Arc<Heap>, blocks: u64) -> Result<Workspace, LaunchError> {
        if blocks > COOPERATIVE_BLOCKS {
            return Err(LaunchError::Invalid(format!(
                "the blocks of a cooperative launch run at the same time, at most {COOPERATIVE_BLOCKS} of them: \
                 the grid has {blocks}"
            )));
        }
        let missing = || LaunchError::Invalid("there is no memory for a cooperative launch".to_owned());
        let address = self.spare().pop().or_else(|| heap.reserve(BYTES.into())).ok_or_else(missing)?;
        let workspace = Workspace { heap: Arc::clone(heap), workspaces: Arc::clone(self), address };
        let storage = workspace.storage().ok_or_else(missing)?;
        let mut contents = [0; BYTES as usize];
        contents[..4].copy_from_slice(&BYTES.to_le_bytes());
        // SAFETY: the allocation has these bytes, and no launch uses it.
        unsafe { host::write(storage, &contents) }
        Ok(workspace)
    }

    fn spare(&self) -> MutexGuard<'_, Vec<u64>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspace {
    /// Its device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its host address. `None` if a kernel has freed it.
    fn storage(&self) -> Option<*mut u8> {
        self.heap.find(self.address)?.resolve(self.address, BYTES.into()).ok()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if self.storage().is_some() {
            self.workspaces.spare().push(self.address);
        }
    }
}
