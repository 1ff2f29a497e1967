//! Kernels: their attributes and their occupancy.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::{CUfunction, CUmodule};
use machine::KernelAttributes;
use ptxvm::Chip;

use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::handles::{Handles, handle_of};
use crate::launch::Config;
use crate::module::Module;
use crate::pointers::{In, Out};
use crate::{INVALID, Status};

/// The kernels for which the program has handles.
pub static FUNCTIONS: Handles<Function> = Handles::new();

/// Bytes of shared memory that every kernel may use.
const SHARED_DEFAULT: u64 = 48 * 1024;

/// A kernel of a loaded module.
pub struct Function {
    pub module: Arc<Module>,
    pub name: std::ffi::CString,
    pub attributes: KernelAttributes,
    /// Offset and size of each parameter.
    pub params: Vec<(u64, u64)>,
    /// `.reqntid`
    pub required_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`; zeros without it.
    required_cluster: [u32; 3],
    /// `.explicitcluster` or `.reqnctapercluster`
    cluster_must_be_set: bool,
    /// Bytes of dynamic shared memory that a launch may request.
    pub most_dynamic: AtomicU32,
    carveout: AtomicU32,
    non_portable_cluster: AtomicU32,
    scheduling: AtomicU32,
}

impl Function {
    /// The kernel of this name, if the module has one.
    pub fn new(module: &Arc<Module>, name: &str) -> Option<Function> {
        let attributes = module.loaded.attributes(name).ok()?;
        let kernel = module.loaded.module().kernel(name).ok()?;
        Some(Function {
            module: Arc::clone(module),
            name: std::ffi::CString::new(name).ok()?,
            params: machine::param_layout(kernel).0,
            required_block: kernel.bounds.required,
            required_cluster: kernel.bounds.required_cluster.unwrap_or_default(),
            cluster_must_be_set: kernel.bounds.explicit_cluster || kernel.bounds.required_cluster.is_some(),
            most_dynamic: AtomicU32::new(SHARED_DEFAULT.saturating_sub(attributes.shared_bytes) as u32),
            attributes,
            carveout: u32::MAX.into(),
            non_portable_cluster: 0.into(),
            scheduling: 0.into(),
        })
    }

    /// Whether clusters may have more blocks than is portable between GPUs.
    pub fn allows_large_clusters(&self) -> bool {
        self.non_portable_cluster.load(Ordering::Relaxed) != 0
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    fn registers(&self) -> u32 {
        self.attributes.estimated_registers().min(self.module.max_registers)
    }

    /// Answers `cuFuncGetAttribute`.
    pub fn attribute(&self, attribute: u32, chip: &Chip) -> Result<i32, Status> {
        let target = self.module.loaded.module().program().module.target;
        Ok(match attribute {
            0 => self.attributes.max_threads as i32,
            1 => self.attributes.shared_bytes as i32,
            2 => self.attributes.const_bytes as i32,
            3 => self.attributes.local_bytes as i32,
            4 => self.registers() as i32,
            // The manual calls this the PTX version, but it is the target architecture of the PTX: CUB selects by it.
            5 => i32::from(target.number),
            6 => chip.capability as i32,
            7 => 0,
            10 => i32::from(self.cluster_must_be_set),
            11..=13 => self.required_cluster[attribute as usize - 11] as i32,
            8 => self.most_dynamic.load(Ordering::Relaxed) as i32,
            9 => self.carveout.load(Ordering::Relaxed) as i32,
            14 => self.non_portable_cluster.load(Ordering::Relaxed) as i32,
            15 => self.scheduling.load(Ordering::Relaxed) as i32,
            16 | 17 => 0,
            _ => return Err(INVALID),
        })
    }

    /// Performs `cuFuncSetAttribute`.
    pub fn set_attribute(&self, attribute: u32, value: i32, chip: &Chip) -> Result<(), Status> {
        match attribute {
            8 => {
                let most = u64::from(chip.shared_opt_in) * 1024;
                let value = u32::try_from(value).map_err(|_| INVALID)?;
                if u64::from(value) + self.attributes.shared_bytes > most {
                    return Err(INVALID);
                }
                self.most_dynamic.store(value, Ordering::Relaxed);
            }
            9 if (-1..=100).contains(&value) => self.carveout.store(value as u32, Ordering::Relaxed),
            14 if (0..=1).contains(&value) => {
                self.non_portable_cluster.store(value as u32, Ordering::Relaxed)
            }
            15 if (0..=2).contains(&value) => self.scheduling.store(value as u32, Ordering::Relaxed),
            _ => return Err(INVALID),
        }
        Ok(())
    }

    /// The number of blocks that a multiprocessor runs at a time; 0 if it cannot run one.
    pub fn active_blocks(&self, chip: &Chip, block: u32, dynamic: u64) -> u32 {
        let shared = self.attributes.shared_bytes + dynamic;
        if block == 0 || block > self.attributes.max_threads || shared > u64::from(chip.shared_opt_in) * 1024
        {
            return 0;
        }
        chip.occupancy(block, self.registers(), shared).blocks
    }
}

/// The kernel of a handle. If it is a kernel of a library, the one in the current context.
///
/// # Errors
/// If the handle is invalid.
pub fn function(handle: CUfunction) -> Result<Arc<Function>, Status> {
    function_in(handle, Context::current)
}

/// The same in a given context.
///
/// # Errors
/// If the handle is invalid, or there is no context.
pub fn function_in(
    handle: CUfunction,
    context: impl FnOnce() -> Result<Arc<Context>, Status>,
) -> Result<Arc<Function>, Status> {
    match FUNCTIONS.get(handle) {
        Some(function) => Ok(function),
        None => crate::library::kernel(handle.cast())?.function(&*context()?),
    }
}

/// Writes the number of blocks that a multiprocessor runs at a time.
fn occupancy(result: Out<c_int>, handle: CUfunction, block: c_int, dynamic: usize) -> Result<(), Status> {
    Context::current()?;
    let block = u32::try_from(block).ok().filter(|&block| block > 0).ok_or(INVALID)?;
    let blocks = function(handle)?.active_blocks(&driver()?.config.chip, block, dynamic as u64);
    result.write(blocks as c_int)
}

/// A function of the program that says how much dynamic shared memory blocks of a size need (`CUoccupancyB2DSize`). It takes any size.
type DynamicOf = Option<extern "C" fn(block: c_int) -> usize>;

/// Finds the block size that keeps the most threads running.
fn best_block(
    grid: Out<c_int>,
    block: Out<c_int>,
    handle: CUfunction,
    dynamic_of: DynamicOf,
    dynamic: usize,
    limit: c_int,
) -> Result<(), Status> {
    Context::current()?;
    let (function, chip) = (function(handle)?, &driver()?.config.chip);
    let limit = u32::try_from(limit).map_err(|_| INVALID)?;
    let most = function.attributes.max_threads;
    let most = if limit == 0 { most } else { most.min(limit) };
    let sizes = (1..=most.div_ceil(32)).rev().map(|warps| (warps * 32).min(most));
    let threads = |&size: &u32| {
        let dynamic = dynamic_of.map_or(dynamic, |of| of(size as c_int));
        let blocks = function.active_blocks(chip, size, dynamic as u64);
        (blocks * size, blocks)
    };
    // The largest of the best sizes.
    let mut best = (0, 0, 0);
    for size in sizes {
        let (count, blocks) = threads(&size);
        if count > best.0 {
            best = (count, size, blocks);
        }
    }
    grid.write((best.2 * chip.multiprocessors) as c_int)?;
    block.write(best.1 as c_int)
}

api! { API:
    /// An attribute of a kernel.
    cuFuncGetAttribute 2020 "cuFuncGetAttribute" (result: Out<c_int>, attribute: c_uint, handle: CUfunction) {
        Context::current()?;
        result.write(function(handle)?.attribute(attribute, &driver()?.config.chip)?)
    }
    /// Changes an attribute of a kernel.
    cuFuncSetAttribute 9000 "cuFuncSetAttribute" (handle: CUfunction, attribute: c_uint, value: c_int) {
        Context::current()?;
        function(handle)?.set_attribute(attribute, value, &driver()?.config.chip)
    }
    /// What a kernel prefers of L1 cache and shared memory, which has no effect here.
    cuFuncSetCacheConfig 3000 "cuFuncSetCacheConfig" (handle: CUfunction, config: c_uint) {
        Context::current()?;
        function(handle)?;
        if config > 3 { Err(INVALID) } else { Ok(()) }
    }
    /// The width of banks of shared memory, which has no effect here.
    cuFuncSetSharedMemConfig 4020 "cuFuncSetSharedMemConfig" (handle: CUfunction, config: c_uint) {
        Context::current()?;
        function(handle)?;
        if config > 2 { Err(INVALID) } else { Ok(()) }
    }
    /// The module of a kernel.
    cuFuncGetModule 11000 "cuFuncGetModule" (result: Out<CUmodule>, handle: CUfunction) {
        Context::current()?;
        result.write(handle_of(&function(handle)?.module))
    }
    /// The name of a kernel.
    cuFuncGetName 12030 "cuFuncGetName" (result: Out<*const c_char>, handle: CUfunction) {
        result.write(function(handle)?.name.as_ptr())
    }
    /// Offset and size of a parameter of a kernel.
    cuFuncGetParamInfo 12040 "cuFuncGetParamInfo" (handle: CUfunction, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        let function = function(handle)?;
        let (at, size) = function.params.get(index).copied().ok_or(INVALID)?;
        offset.write(at as usize)?;
        bytes.write_if_wanted(size as usize);
        Ok(())
    }
    /// How many parameters a kernel has.
    cuFuncGetParamCount 13020 "cuFuncGetParamCount" (handle: CUfunction, count: Out<usize>) {
        count.write(function(handle)?.params.len())
    }
    /// Whether a kernel is loaded: it is.
    cuFuncIsLoaded 12040 "cuFuncIsLoaded" (state: Out<c_uint>, handle: CUfunction) {
        function(handle)?;
        state.write(1)
    }
    /// Loads a kernel, which it is already.
    cuFuncLoad 12040 "cuFuncLoad" (handle: CUfunction) {
        function(handle).map(drop)
    }
    /// How many blocks of a kernel run on a multiprocessor at a time.
    cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 "cuOccupancyMaxActiveBlocksPerMultiprocessor" (result: Out<c_int>, handle: CUfunction, block: c_int, dynamic: usize) {
        occupancy(result, handle, block, dynamic)
    }
    /// How many blocks of a kernel run on a multiprocessor at a time, with flags, which have no effect here.
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" (result: Out<c_int>, handle: CUfunction, block: c_int, dynamic: usize, flags: c_uint) {
        if flags > 1 {
            return Err(INVALID);
        }
        occupancy(result, handle, block, dynamic)
    }
    /// The block size with the most threads at a time, and the grid that fills the device.
    cuOccupancyMaxPotentialBlockSize 6050 "cuOccupancyMaxPotentialBlockSize" (grid: Out<c_int>, block: Out<c_int>, handle: CUfunction, dynamic_of: DynamicOf, dynamic: usize, limit: c_int) {
        best_block(grid, block, handle, dynamic_of, dynamic, limit)
    }
    /// The block size with the most threads at a time, with flags, which have no effect here.
    cuOccupancyMaxPotentialBlockSizeWithFlags 7000 "cuOccupancyMaxPotentialBlockSizeWithFlags" (grid: Out<c_int>, block: Out<c_int>, handle: CUfunction, dynamic_of: DynamicOf, dynamic: usize, limit: c_int, flags: c_uint) {
        if flags > 1 {
            return Err(INVALID);
        }
        best_block(grid, block, handle, dynamic_of, dynamic, limit)
    }
    /// Bytes of dynamic shared memory that let so many blocks run at a time.
    cuOccupancyAvailableDynamicSMemPerBlock 10020 "cuOccupancyAvailableDynamicSMemPerBlock" (result: Out<usize>, handle: CUfunction, blocks: c_int, block: c_int) {
        Context::current()?;
        let (function, chip) = (function(handle)?, &driver()?.config.chip);
        let blocks = u64::try_from(blocks).ok().filter(|&blocks| blocks > 0 && block > 0);
        let share = u64::from(chip.shared_of_multiprocessor) * 1024 / blocks.ok_or(INVALID)?;
        let reserved = if chip.capability >= 80 { 1024 } else { 0 };
        let share = (share / 128 * 128).min(u64::from(chip.shared_opt_in) * 1024 + reserved);
        result.write(share.saturating_sub(reserved + function.attributes.shared_bytes) as usize)
    }
    /// How many clusters of a kernel run at a time.
    cuOccupancyMaxActiveClusters 11070 "cuOccupancyMaxActiveClusters" (result: Out<c_int>, handle: CUfunction, config: In<Config>) {
        Context::current()?;
        let (function, config, chip) = (function(handle)?, config.read()?, &driver()?.config.chip);
        let threads = config.block.iter().fold(1u32, |n, &d| n.saturating_mul(d));
        let blocks = function.active_blocks(chip, threads, config.dynamic_shared.into()) * chip.multiprocessors;
        let cluster: u32 = config.cluster().map_or(1, |[x, y, z]| x.saturating_mul(y).saturating_mul(z));
        result.write(if chip.capability >= 90 { (blocks / cluster.max(1)) as c_int } else { 0 })
    }
    /// The largest cluster of a kernel.
    cuOccupancyMaxPotentialClusterSize 11070 "cuOccupancyMaxPotentialClusterSize" (result: Out<c_int>, handle: CUfunction, config: In<Config>) {
        Context::current()?;
        let function = function(handle)?;
        config.read()?;
        let most = if function.allows_large_clusters() { 16 } else { 8 };
        result.write(if driver()?.config.chip.capability >= 90 { most } else { 1 })
    }
}
