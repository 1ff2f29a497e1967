//! Kernel launches.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cudarc::driver::sys::{CUfunction, CUlaunchConfig, CUstream};
use ptxvm::Color;

use crate::api::api;
use crate::driver::driver;
use crate::function::{Function, function_in};
use crate::lock;
use crate::log::log;
use crate::operation::Operation;
use crate::pointers::{In, required};
use crate::stream::{Default, Stream};
use crate::{INVALID, Status};

/// A launch of a kernel, with a copy of its parameters.
#[derive(Clone)]
pub struct KernelLaunch {
    pub function: Arc<Function>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    pub cooperative: bool,
    /// The cluster dimensions, if the launch sets them.
    pub cluster: Option<[u32; 3]>,
    pub params: Vec<u8>,
}

/// Whether an overrun is the first one of its instruction. A program that launches in a loop would otherwise get many reports.
fn is_new(overrun: &machine::Fault) -> bool {
    static KNOWN: Mutex<BTreeSet<(String, u32)>> = Mutex::new(BTreeSet::new());
    let mut known = lock(&KNOWN);
    known.insert((overrun.kernel.clone(), overrun.span.start))
}

impl KernelLaunch {
    /// Checks what the manual requires before a launch.
    ///
    /// # Errors
    /// If the device or the kernel does not allow the launch.
    pub fn check(&self) -> Result<(), Status> {
        let [bx, by, bz] = self.block.map(u64::from);
        let [gx, gy, gz] = self.grid.map(u64::from);
        if [bx, by, bz, gx, gy, gz].contains(&0) || bx > 1024 || by > 1024 || bz > 64 {
            return Err(INVALID);
        }
        let threads = bx * by * bz;
        if threads > 1024 || gx > 0x7fff_ffff || gy > 65535 || gz > 65535 {
            return Err(INVALID);
        }
        let function = &self.function;
        if function.required_block.is_some_and(|required| required != self.block) {
            return Err(INVALID);
        }
        if threads > function.attributes.max_threads.into() {
            return Err(Status::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        }
        if self.dynamic_shared > function.most_dynamic.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(INVALID);
        }
        let module = &function.module.loaded.module().program().module;
        let mut config = machine::LaunchConfig::new(self.grid, self.block);
        config.cluster = self.cluster;
        let kernel = function.module.loaded.module().kernel(function.name());
        let bad_cluster = Status::CUDA_ERROR_INVALID_CLUSTER_SIZE;
        let kernel = kernel.map_err(|_| Status::CUDA_ERROR_INVALID_HANDLE)?;
        machine::settle_clusters(module, kernel, &mut config).map_err(|_| bad_cluster)?;
        if config.cluster_blocks() > PORTABLE_CLUSTER && !function.allows_large_clusters() {
            return Err(bad_cluster);
        }
        if self.cooperative {
            let chip = &driver()?.config.chip;
            let active = function.active_blocks(chip, threads as u32, self.dynamic_shared.into());
            if gx * gy * gz > u64::from(active * chip.multiprocessors) {
                return Err(Status::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
            }
        }
        Ok(())
    }

    /// Runs the launch. Reports faults in detail, because the program only gets an error number.
    ///
    /// # Errors
    /// If a thread faults, or the kernel cannot run here.
    pub fn run(self) -> Result<(), Status> {
        let function = Arc::clone(&self.function);
        let launch = function.module.loaded.launch(function.name());
        let launch =
            launch.grid(self.grid).block(self.block).params(self.params).output(crate::output::output());
        // A GPU lets such accesses continue, so they do not fail here either.
        let overruns = Arc::<Mutex<Vec<machine::Fault>>>::default();
        let launch = launch.configure(|config| {
            config.overruns = Some(Arc::clone(&overruns));
            config.dynamic_shared = self.dynamic_shared.into();
            config.cooperative = self.cooperative;
            config.profile.clone_from(&function.module.profile);
            config.cluster = self.cluster;
        });
        crate::initialized::look_at_host();
        let check = crate::tool::check(function.name());
        let launch = check.iter().fold(launch, |launch, check| launch.check(&check.checker));
        #[cfg(test)]
        let launch = crate::planted::watch(launch);
        let start = Instant::now();
        let result = launch.run();
        if let Some(check) = check.filter(|check| check.is_reported) {
            let module = function.module.loaded.module();
            crate::tool::report(function.name(), module.findings(&check.checker));
            crate::tool::report_uses(function.name(), module, &check);
        }
        crate::report::launched(function.name(), start);
        let report = |error: &ptxvm::Error| {
            let message = error.render(Color::Never);
            log!(error, "{}", message.trim_end());
            crate::report::faulted(function.name(), error, message.trim_end());
        };
        let overruns = std::mem::take(&mut *lock(&overruns));
        let module = function.module.loaded.module();
        overruns.into_iter().filter(is_new).for_each(|fault| report(&module.located(Box::new(fault))));
        result.map(drop).map_err(|error| {
            report(&error);
            crate::status::of_error(&error)
        })
    }
}

/// The most blocks of a cluster, unless the kernel allows more (CUDA Programming Guide, "Thread Block Clusters").
pub const PORTABLE_CLUSTER: u32 = 8;

/// The cluster dimensions of the attribute; all zeros: none.
pub fn cluster_of(extents: [u32; 3]) -> Option<[u32; 3]> {
    (extents != [0; 3]).then_some(extents)
}

/// Keys of the `extra` argument.
const END: usize = 0;
const BUFFER: usize = 1;
const BUFFER_BYTES: usize = 2;

/// The bytes of the parameters, from a pointer to each or from one buffer.
///
/// # Safety
/// As for `cuLaunchKernel`.
pub unsafe fn params(
    function: &Function,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<Vec<u8>, Status> {
    let mut bytes = vec![0; function.attributes.param_bytes as usize];
    if !pointers.is_null() {
        if !extra.is_null() {
            return Err(INVALID);
        }
        // SAFETY: the caller's promise.
        let pointers = unsafe { In::new(pointers) }.read_all(function.params.len())?;
        for (pointer, &(offset, size)) in pointers.into_iter().zip(&function.params) {
            required(pointer)?;
            let place = &mut bytes[offset as usize..][..size as usize];
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(pointer.cast(), place.as_mut_ptr(), place.len()) };
        }
        return Ok(bytes);
    }
    if extra.is_null() {
        return if function.params.is_empty() { Ok(bytes) } else { Err(INVALID) };
    }
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), 0);
    for i in (0..8).step_by(2) {
        // SAFETY: the caller's promise: pairs of key and value up to the end key.
        unsafe {
            let value = || extra.add(i + 1).read();
            match extra.add(i).read().addr() {
                END => break,
                BUFFER => buffer = value().cast(),
                BUFFER_BYTES => size = crate::pointers::read(value().cast::<usize>())?,
                _ => return Err(INVALID),
            }
        }
    }
    if buffer.is_null() && !function.params.is_empty() {
        return Err(INVALID);
    }
    let count = size.min(bytes.len());
    // SAFETY: the program says that its buffer has this many bytes.
    unsafe { std::ptr::copy_nonoverlapping(buffer, bytes.as_mut_ptr(), count) };
    Ok(bytes)
}

/// Checks a launch and submits it.
pub fn submit(stream: &Stream, launch: KernelLaunch) -> Result<(), Status> {
    launch.check()?;
    stream.submit(Operation::Kernel(Box::new(launch)))
}

/// Attributes of a launch that have an effect (`CUlaunchAttributeID`).
const COOPERATIVE: u32 = 2;
const CLUSTER: u32 = 4;

/// The values of an attribute of a launch.
///
/// # Safety
/// `config.attrs` must point to `config.numAttrs` attributes, and this one's value must begin with a `T`.
unsafe fn attributes<T>(config: &CUlaunchConfig, wanted: u32) -> impl Iterator<Item = T> {
    let count = if config.attrs.is_null() { 0 } else { config.numAttrs as usize };
    (0..count).filter_map(move |i| {
        // SAFETY: the caller's promise. Any number could be its id.
        unsafe {
            let attribute = config.attrs.add(i);
            let id = (&raw const (*attribute).id).cast::<u32>().read();
            (id == wanted).then(|| (&raw const (*attribute).value).cast::<T>().read())
        }
    })
}

/// The cluster dimensions among the attributes of a launch.
///
/// # Safety
/// `config.attrs` must point to `config.numAttrs` attributes.
pub unsafe fn clusters(config: &CUlaunchConfig) -> Option<[u32; 3]> {
    // SAFETY: the caller's promise.
    unsafe { attributes(config, CLUSTER) }.find_map(cluster_of)
}

/// Performs `cuLaunchKernelEx`.
///
/// # Safety
/// As for `cuLaunchKernelEx`.
unsafe fn launch_ex(
    config: In<CUlaunchConfig>,
    handle: CUfunction,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
    default: Default,
) -> Result<(), Status> {
    // SAFETY: the caller's promise.
    unsafe {
        let config = config.read()?;
        let stream = default.stream(config.hStream)?;
        let function = function_in(handle, || stream.context())?;
        let launch = KernelLaunch {
            params: params(&function, pointers, extra)?,
            function,
            grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
            block: [config.blockDimX, config.blockDimY, config.blockDimZ],
            dynamic_shared: config.sharedMemBytes,
            cooperative: attributes::<c_int>(&config, COOPERATIVE).last().is_some_and(|value| value != 0),
            cluster: clusters(&config),
        };
        if config.numAttrs > 0 && config.attrs.is_null() {
            return Err(INVALID);
        }
        submit(&stream, launch)
    }
}

api! { API:
    /// Launches a kernel.
    cuLaunchKernel 4000 "cuLaunchKernel" / 7000 "cuLaunchKernel_ptsz" (
        handle: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        dynamic_shared: c_uint, of: CUstream, pointers: *mut *mut c_void, extra: *mut *mut c_void
    ) |default| {
        let stream = default.stream(of)?;
        let function = function_in(handle, || stream.context())?;
        let params = params(&function, pointers, extra)?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        submit(&stream, KernelLaunch { function, grid, block, dynamic_shared, cooperative: false, cluster: None, params })
    }
    /// Launches a kernel whose blocks may wait for each other.
    cuLaunchCooperativeKernel 9000 "cuLaunchCooperativeKernel" / 9000 "cuLaunchCooperativeKernel_ptsz" (
        handle: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        dynamic_shared: c_uint, of: CUstream, pointers: *mut *mut c_void
    ) |default| {
        let stream = default.stream(of)?;
        let function = function_in(handle, || stream.context())?;
        let params = params(&function, pointers, std::ptr::null_mut())?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        submit(&stream, KernelLaunch { function, grid, block, dynamic_shared, cooperative: true, cluster: None, params })
    }
    /// Launches a kernel with attributes.
    cuLaunchKernelEx 11060 "cuLaunchKernelEx" / 11060 "cuLaunchKernelEx_ptsz" (
        config: In<CUlaunchConfig>, handle: CUfunction, pointers: *mut *mut c_void, extra: *mut *mut c_void
    ) |default| {
        launch_ex(config, handle, pointers, extra, default)
    }
}
