//! A prepared launch: what every engine reads of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use check::module::{FuncId, Module, VarId};
use isa::Space;

use crate::block_memory::BlockMemory;
use crate::cooperative::Workspace;
use crate::fault::FaultKind;
use crate::kernel::Kernel;
use crate::launch::LaunchConfig;
use crate::loaded::Image;
use crate::memory::{Extent, HEAP_BASE, Heap, Table, host, resolve, shared_rank};
use crate::runtime_call::DeviceRuntime;
use crate::shared::{SharedLayout, SharedOwner};
use crate::stopwatch::Stopwatch;
use crate::texture::{Object, ObjectTable};

/// No allocation begins below this address. An access below it comes from a null pointer.
const NULL_POINTERS: u64 = 1 << 16;

/// A prepared launch: everything that its threads read.
pub struct Launch {
    pub(crate) image: Arc<Image>,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) config: LaunchConfig,
    /// Global memory as it was when the launch was prepared.
    pub(crate) arena: Arc<Table>,
    pub(crate) heap: Arc<Heap>,
    /// `.const` memory when the launch was prepared.
    pub(crate) constants: Arc<Vec<u8>>,
    /// Textures, samplers and surfaces when the launch was prepared, and the objects bound to variables of the module.
    pub(crate) objects: ObjectTable,
    pub(crate) bindings: Arc<HashMap<usize, Object>>,
    pub(crate) params: Vec<u8>,
    /// Static and dynamic shared memory.
    pub(crate) shared: Arc<SharedLayout>,
    /// For a cooperative launch.
    pub(crate) workspace: Option<Workspace>,
    /// For a kernel with `.minperctamemory`.
    pub(crate) block_memory: Option<BlockMemory>,
    pub(crate) start: Stopwatch,
    /// What its threads have asked of the device runtime.
    pub(crate) runtime: Mutex<DeviceRuntime>,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernel = &self.module().functions[self.entry().index()].name;
        f.debug_struct("Launch").field("kernel", kernel).finish_non_exhaustive()
    }
}

impl Launch {
    /// `%tid` of a thread, by its linear index in the block.
    #[inline]
    pub fn thread(&self, index: usize) -> [u32; 3] {
        let [nx, ny, _] = self.config.block.map(|n| n.max(1) as usize);
        [(index % nx) as u32, (index / nx % ny) as u32, (index / (nx * ny)) as u32]
    }

    /// The linear index of a thread in its block, by its `%tid`.
    pub fn thread_index(&self, [x, y, z]: [u32; 3]) -> usize {
        let [nx, ny, _] = self.config.block.map(|n| n as usize);
        x as usize + nx * (y as usize + ny * z as usize)
    }

    /// `%ctaid` of a block, by its linear index in the grid.
    #[inline]
    pub fn ctaid(&self, index: u64) -> [u32; 3] {
        let [nx, ny, _] = self.config.grid.map(|n| u64::from(n.max(1)));
        if index < nx {
            // Avoid slow divisions.
            return [index as u32, 0, 0];
        }
        [(index % nx) as u32, (index / nx % ny) as u32, (index / (nx * ny)) as u32]
    }

    /// The linear index of a block in the grid, by its `%ctaid`.
    #[inline]
    pub fn block_index(&self, [x, y, z]: [u32; 3]) -> u64 {
        let [nx, ny, _] = self.config.grid.map(u64::from);
        u64::from(x) + nx * (u64::from(y) + ny * u64::from(z))
    }

    /// Blocks of a cluster in x, y and z (`%cluster_nctaid`).
    #[inline]
    pub fn cluster(&self) -> [u32; 3] {
        self.config.cluster.unwrap_or([1; 3])
    }

    /// Clusters of the grid in x, y and z (`%nclusterid`).
    pub fn clusters(&self) -> [u32; 3] {
        let cluster = self.cluster();
        std::array::from_fn(|axis| self.config.grid[axis] / cluster[axis])
    }

    /// Blocks of a cluster (`%cluster_nctarank`).
    #[inline]
    pub fn cluster_blocks(&self) -> u32 {
        self.config.cluster_blocks()
    }

    /// Whether the launch or its kernel specifies the size of clusters (`%is_explicit_cluster`).
    #[inline]
    pub fn is_explicit_cluster(&self) -> bool {
        self.config.cluster.is_some()
    }

    /// The place of a block in its cluster (`%cluster_ctaid`).
    #[inline]
    pub fn cluster_ctaid(&self, ctaid: [u32; 3]) -> [u32; 3] {
        let cluster = self.cluster();
        std::array::from_fn(|axis| ctaid[axis] % cluster[axis])
    }

    /// The rank of a block in its cluster (`%cluster_ctarank`).
    #[inline]
    pub fn cluster_rank(&self, ctaid: [u32; 3]) -> u32 {
        let ([nx, ny, _], [x, y, z]) = (self.cluster(), self.cluster_ctaid(ctaid));
        x + nx * (y + ny * z)
    }

    /// The linear index of the block with this rank in a cluster, which is given by its linear index in the grid.
    pub fn block_of_cluster(&self, cluster: u64, rank: u32) -> u64 {
        let extents = self.cluster();
        let clusters = self.clusters().map(|count| count.max(1));
        let place = |index: u64, [nx, ny, _]: [u32; 3]| {
            let (nx, ny) = (u64::from(nx), u64::from(ny));
            [index % nx, index / nx % ny, index / (nx * ny)]
        };
        let (first, within) = (place(cluster, clusters), place(rank.into(), extents));
        let [x, y, z] = std::array::from_fn(|axis| first[axis] * u64::from(extents[axis]) + within[axis]);
        let [nx, ny, _] = self.config.grid.map(u64::from);
        x + nx * (y + ny * z)
    }

    /// `%ctaid` of the block with this rank in the cluster of the block `ctaid`.
    #[inline]
    pub fn neighbour(&self, ctaid: [u32; 3], rank: u32) -> [u32; 3] {
        let ([nx, ny, _], own) = (self.cluster(), self.cluster_ctaid(ctaid));
        let place = [rank % nx, rank / nx % ny, rank / (nx * ny)];
        std::array::from_fn(|axis| ctaid[axis] - own[axis] + place[axis])
    }

    /// The time since the launch was prepared.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Nanoseconds since the launch was prepared.
    pub fn nanoseconds(&self) -> u64 {
        self.elapsed().as_nanos() as u64
    }

    /// What all launches of the kernel have in common.
    #[doc(hidden)] // for engines
    #[inline]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The layout of a block's shared memory.
    #[doc(hidden)] // for engines
    #[inline]
    pub fn shared(&self) -> &SharedLayout {
        &self.shared
    }

    /// Global memory as it was when the launch was prepared.
    #[doc(hidden)] // for engines
    #[inline]
    pub fn arena(&self) -> &Table {
        &self.arena
    }

    /// The device heap.
    #[doc(hidden)] // for engines
    #[inline]
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// The lowered module.
    #[doc(hidden)] // for engines
    #[inline]
    pub fn program(&self) -> &ir::Program {
        &self.image.program
    }

    /// The kernel's name.
    pub fn kernel_name(&self) -> &str {
        self.function_name(self.kernel.entry.0)
    }

    /// The name of a function, by its index in the module.
    pub fn function_name(&self, index: u32) -> &str {
        self.program().module.functions.get(index as usize).map_or("?", |f| &f.name)
    }

    /// The allocation of global memory at or before `address`: the one that contains it, if any does.
    #[doc(hidden)] // for engines
    #[inline]
    pub fn allocation(&self, address: u64) -> Option<Extent> {
        match address {
            HEAP_BASE.. => self.heap.find(address),
            _ => Some(self.arena.find(address)?.extent()),
        }
    }

    /// Describes the allocation or variable nearest to an access.
    pub fn describe(&self, space: Space, address: u64, bytes: u64) -> Option<String> {
        let (space, inner) = resolve(space, address);
        let limit = |what: &str, size: u64| Some(format!("{what} has {size} bytes"));
        match space {
            Space::Global if inner < NULL_POINTERS => Some(match inner {
                0 => "a null pointer".to_owned(),
                n => format!("{n} bytes behind a null pointer"),
            }),
            Space::Global => {
                let (name, extent, gone) = match inner {
                    HEAP_BASE.. => {
                        let extent = self.heap.find(inner)?;
                        (
                            "an allocation of `malloc`",
                            extent,
                            extent.storage.is_none().then_some("which was freed"),
                        )
                    }
                    _ => self.arena.nearest(inner).map(|a| (a.name(), a.extent(), a.why_gone()))?,
                };
                let gone = gone.map(|why| format!(", {why}")).unwrap_or_default();
                let place = place_beside(extent.base, extent.bytes, inner, bytes);
                Some(format!("{place} {name}, {} bytes at {:#x}{gone}", extent.bytes, extent.base))
            }
            Space::Shared if shared_rank(inner).0 >= self.cluster_blocks() => {
                let (rank, blocks) = (shared_rank(inner).0, self.cluster_blocks());
                Some(format!("shared memory of rank {rank} in a cluster of {blocks}"))
            }
            Space::Shared if let Some(extent) = self.shared.nearest(shared_rank(inner).1) => {
                let size = extent.end - extent.base;
                let place = place_beside(extent.base, size, shared_rank(inner).1, bytes);
                let name = match extent.owner {
                    SharedOwner::Variable(id) => {
                        format!("shared variable `{}`", self.program().module.variables[id.index()].name)
                    }
                    SharedOwner::Dynamic => "dynamic shared memory".to_owned(),
                    SharedOwner::System => "shared memory that is reserved for the system".to_owned(),
                };
                let block = match self.cluster_blocks() {
                    1 => String::new(),
                    _ => format!(" of the block of rank {}", shared_rank(inner).0),
                };
                let base = inner - shared_rank(inner).1 + extent.base;
                Some(format!("{place} {name}, {size} bytes at {base:#x}{block}"))
            }
            Space::Shared => limit("shared memory of this block", self.shared.bytes),
            Space::Const => limit(".const memory", self.constants.len() as u64),
            Space::Param => limit("the kernel's parameter space", self.params.len() as u64),
            Space::Local => Some("outside the local memory of this thread".to_owned()),
            _ => None,
        }
    }

    /// The checked module.
    #[inline]
    pub fn module(&self) -> &Module {
        &self.program().module
    }

    /// The kernel.
    #[inline]
    pub fn entry(&self) -> FuncId {
        self.kernel.entry
    }

    /// The configuration of the launch.
    #[inline]
    pub fn config(&self) -> &LaunchConfig {
        &self.config
    }

    /// The bytes of the kernel's parameters.
    #[inline]
    pub fn params(&self) -> &[u8] {
        &self.params
    }

    /// Offset in bytes of a parameter of the kernel.
    #[inline]
    pub fn param_offset(&self, index: u32) -> u64 {
        self.kernel.param_offsets.get(index as usize).copied().unwrap_or(0)
    }

    /// The bytes of `.const` memory.
    #[inline]
    pub fn constants(&self) -> &[u8] {
        &self.constants
    }

    /// Address of a variable of the module in its own space.
    #[inline]
    pub fn variable_address(&self, id: VarId) -> u64 {
        self.shared.address(id).unwrap_or_else(|| self.image.address(id.index()))
    }

    /// Bytes of shared memory of a block, static and dynamic.
    #[inline]
    pub fn shared_bytes(&self) -> u64 {
        self.shared.bytes
    }

    /// `%total_smem_size`: the same in whole granules of the GPU's allocations.
    pub fn total_shared_bytes(&self) -> u64 {
        self.shared.total()
    }

    /// Like [`Launch::shared_bytes`], with the gaps between variables.
    #[inline]
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
    #[inline]
    pub fn is_shared(&self, address: u64, bytes: u64) -> bool {
        let end = address.checked_add(bytes);
        self.shared.find(address).zip(end).is_some_and(|(extent, end)| end <= extent.end)
    }

    /// Address of the workspace of a cooperative launch, otherwise 0. `%envreg1` is its high half, `%envreg2` its low half.
    #[inline]
    pub fn grid_workspace(&self) -> u64 {
        self.workspace.as_ref().map_or(0, |workspace| workspace.address())
    }

    /// Bytes of global memory that each block has for itself (`%perctamemorysize`). 0 for a kernel that requests none.
    #[inline]
    pub fn block_memory_bytes(&self) -> u64 {
        self.block_memory.as_ref().map_or(0, BlockMemory::bytes)
    }

    /// Generic address of that memory (`%perctamemoryoffset`), by the block's linear index in the grid.
    #[inline]
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

/// Where an access is relative to `size` bytes at `base`. The access is not entirely within them.
fn place_beside(base: u64, size: u64, address: u64, bytes: u64) -> String {
    let end = base + size;
    if address < base {
        format!("{} bytes before", base - address)
    } else if address >= end {
        match address - end {
            0 => "just past the end of".to_owned(),
            n => format!("{n} bytes past the end of"),
        }
    } else if address.saturating_add(bytes) > end {
        format!("reaching {} bytes past the end of", address.saturating_add(bytes) - end)
    } else {
        format!("{} bytes into", address - base)
    }
}
