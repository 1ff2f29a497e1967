//! The view of a launch for an engine outside of this crate: its configuration, and global memory through checked copies.

use check::module::{FuncId, Module, VarId};

use crate::block_memory::BlockMemory;
use crate::fault::FaultKind;
use crate::grid::Launch;
use crate::launch::LaunchConfig;
use crate::memory::host;
use crate::shared::SharedOwner;

impl Launch {
    /// The checked module.
    pub fn module(&self) -> &Module {
        &self.program().module
    }

    /// The kernel.
    pub fn entry(&self) -> FuncId {
        self.kernel.entry
    }

    /// The configuration of the launch.
    pub fn config(&self) -> &LaunchConfig {
        &self.config
    }

    /// The bytes of the kernel's parameters.
    pub fn params(&self) -> &[u8] {
        &self.params
    }

    /// Offset in bytes of a parameter of the kernel.
    pub fn param_offset(&self, index: u32) -> u64 {
        self.kernel.param_offsets.get(index as usize).copied().unwrap_or(0)
    }

    /// The bytes of `.const` memory.
    pub fn constants(&self) -> &[u8] {
        &self.constants
    }

    /// Address of a variable of the module in its own space.
    pub fn variable_address(&self, id: VarId) -> u64 {
        self.shared.address(id).unwrap_or_else(|| self.image.address(id.index()))
    }

    /// Bytes of shared memory of a block, static and dynamic.
    pub fn shared_bytes(&self) -> u64 {
        self.shared.bytes
    }

    /// Like [`Launch::shared_bytes`], with the gaps between variables.
    pub fn shared_span(&self) -> u64 {
        self.shared.span
    }

    /// Bytes at the start of a block's shared memory that are reserved for the system and zero at the start of the
    /// block. 0 for a kernel that does not read their offset.
    pub fn reserved_shared_bytes(&self) -> u64 {
        let first = self.shared.extents.first().filter(|extent| extent.owner == SharedOwner::System);
        first.map_or(0, |extent| extent.end)
    }

    /// Whether an access to shared memory is within one variable, or within dynamic shared memory.
    pub fn is_shared(&self, address: u64, bytes: u64) -> bool {
        let end = address.checked_add(bytes);
        self.shared.find(address).zip(end).is_some_and(|(extent, end)| end <= extent.end)
    }

    /// Address of the workspace of a cooperative launch, otherwise 0. `%envreg1` is its high half, `%envreg2` its low half.
    pub fn grid_workspace(&self) -> u64 {
        self.workspace.as_ref().map_or(0, |workspace| workspace.address())
    }

    /// Bytes of global memory that each block has for itself (`%perctamemorysize`). 0 for a kernel that requests none.
    pub fn block_memory_bytes(&self) -> u64 {
        self.block_memory.as_ref().map_or(0, BlockMemory::bytes)
    }

    /// Generic address of that memory (`%perctamemoryoffset`), by the block's linear index in the grid.
    pub fn block_memory(&self, block: u64) -> u64 {
        self.block_memory.as_ref().map_or(0, |memory| memory.of(block))
    }

    /// Copies bytes out of global memory, the device heap included.
    ///
    /// # Errors
    /// When they are not within one live allocation.
    pub fn read_global(&self, address: u64, data: &mut [u8]) -> Result<(), FaultKind> {
        let from = self.resolve_global(address, data.len())?;
        // SAFETY: the allocation has these bytes, and the launch keeps it alive. Kernels of other launches may race on them.
        unsafe { host::read(from, data) }
        Ok(())
    }

    /// Copies bytes into global memory, the device heap included.
    ///
    /// # Errors
    /// When they are not within one live allocation.
    pub fn write_global(&self, address: u64, data: &[u8]) -> Result<(), FaultKind> {
        let to = self.resolve_global(address, data.len())?;
        // SAFETY: as in `read_global`.
        unsafe { host::write(to, data) }
        Ok(())
    }

    fn resolve_global(&self, address: u64, bytes: usize) -> Result<*mut u8, FaultKind> {
        self.allocation(address).ok_or(FaultKind::OutOfBounds)?.resolve(address, bytes as u64)
    }

    /// `malloc` of the device heap: zeroed bytes, if there is room.
    pub fn heap_allocate(&self, bytes: u64) -> Option<u64> {
        self.heap.allocate(bytes)
    }

    /// `free` of the device heap.
    ///
    /// # Errors
    /// [`FaultKind::InvalidFree`] when `address` is not the start of a live allocation.
    pub fn heap_free(&self, address: u64) -> Result<(), FaultKind> {
        self.heap.free(address)
    }
}
