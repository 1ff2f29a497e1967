//! Kernel launches.

use std::collections::BTreeSet;
use std::ffi::c_uint;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cudarc::driver::sys::{CUfunction, CUlaunchAttribute, CUlaunchAttributeValue, CUlaunchConfig, CUstream};
use ptxvm::Color;

use crate::api::api;
use crate::driver::driver;
use crate::function::{Function, function_in};
use crate::lock;
use crate::log::log;
use crate::operation::Operation;
use crate::pointers::{Bytes, In, InOut, read, read_bytes, required};
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
            config.withheld = crate::peer::withheld(function.module.context);
            config.device = crate::peer::place(function.module.context);
        });
        crate::initialized::look_at_host();
        let check = crate::tool::check(function.name());
        let launch = check.iter().fold(launch, |launch, check| launch.check(&check.checker));
        #[cfg(test)]
        let launch = crate::planted::watch(launch);
        let start = Instant::now();
        let result = crate::debug::run(function.name(), launch);
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

/// The bytes of the parameters, from a pointer to each or from one buffer. As in `cuLaunchKernel`, `extra` has pairs of key and value up
/// to the end key.
pub fn params(function: &Function, pointers: InOut<Bytes>, extra: InOut<Bytes>) -> Result<Vec<u8>, Status> {
    let mut bytes = vec![0; function.attributes.param_bytes as usize];
    if !pointers.is_null() {
        if !extra.is_null() {
            return Err(INVALID);
        }
        for (i, &(offset, size)) in function.params.iter().enumerate() {
            let pointer = pointers.read_at(i)?;
            required(pointer.pointer())?;
            read_bytes(pointer, &mut bytes[offset as usize..][..size as usize])?;
        }
        return Ok(bytes);
    }
    if extra.is_null() {
        return if function.params.is_empty() { Ok(bytes) } else { Err(INVALID) };
    }
    let (mut buffer, mut size) = (Bytes::none(), 0);
    for i in (0..8).step_by(2) {
        match extra.read_at(i)?.pointer().addr() {
            END => break,
            BUFFER => buffer = extra.read_at(i + 1)?,
            BUFFER_BYTES => size = usize::from_ne_bytes(read(extra.read_at(i + 1)?)?),
            _ => return Err(INVALID),
        }
    }
    if buffer.is_null() && !function.params.is_empty() {
        return Err(INVALID);
    }
    let count = size.min(bytes.len());
    read_bytes(buffer, &mut bytes[..count])?;
    Ok(bytes)
}

/// Checks a launch and submits it. Kernel and stream must be of the same device.
pub fn submit(stream: &Stream, launch: KernelLaunch) -> Result<(), Status> {
    if launch.function.module.device != stream.context()?.device {
        return Err(Status::CUDA_ERROR_INVALID_HANDLE);
    }
    launch.check()?;
    stream.submit(Operation::Kernel(Box::new(launch)))
}

/// Attributes of a launch that have an effect (`CUlaunchAttributeID`).
const COOPERATIVE: u32 = 2;
const CLUSTER: u32 = 4;

/// An attribute of a launch (`CUlaunchAttribute`). Any number could be its id.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    id: c_uint,
    _pad: MaybeUninit<c_uint>,
    value: CUlaunchAttributeValue,
}

/// How a kernel is launched (`CUlaunchConfig`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Config<'a> {
    grid: [c_uint; 3],
    pub block: [c_uint; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: c_uint,
    stream: CUstream,
    attributes: In<'a, Attribute>,
    count: c_uint,
}

const _: () = assert!(size_of::<Attribute>() == size_of::<CUlaunchAttribute>());
const _: () = assert!(size_of::<Config>() == size_of::<CUlaunchConfig>());

impl Config<'_> {
    /// The values of an attribute.
    fn values(&self, wanted: u32) -> impl Iterator<Item = CUlaunchAttributeValue> {
        // Without a place there are none.
        let all = self.attributes.read_all(self.count as usize).unwrap_or_default();
        all.into_iter().filter(move |attribute| attribute.id == wanted).map(|attribute| attribute.value)
    }

    /// Whether the blocks may wait for each other.
    fn is_cooperative(&self) -> bool {
        // SAFETY: the id says which member of the union the program has set.
        self.values(COOPERATIVE).last().is_some_and(|value| unsafe { value.cooperative } != 0)
    }

    /// The cluster dimensions.
    pub fn cluster(&self) -> Option<[u32; 3]> {
        // SAFETY: as above.
        let extents = self.values(CLUSTER).map(|value| unsafe { value.clusterDim });
        extents.map(|of| [of.x, of.y, of.z]).find_map(cluster_of)
    }
}

/// Performs `cuLaunchKernelEx`.
fn launch_ex(
    config: In<Config>,
    handle: CUfunction,
    pointers: InOut<Bytes>,
    extra: InOut<Bytes>,
    default: Default,
) -> Result<(), Status> {
    let config = config.read()?;
    let stream = default.stream(config.stream)?;
    let function = function_in(handle, || stream.context())?;
    let launch = KernelLaunch {
        params: params(&function, pointers, extra)?,
        function,
        grid: config.grid,
        block: config.block,
        dynamic_shared: config.dynamic_shared,
        cooperative: config.is_cooperative(),
        cluster: config.cluster(),
    };
    if config.count > 0 && config.attributes.pointer().is_null() {
        return Err(INVALID);
    }
    submit(&stream, launch)
}

api! { API:
    /// Launches a kernel.
    cuLaunchKernel 4000 "cuLaunchKernel" / 7000 "cuLaunchKernel_ptsz" (
        handle: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        dynamic_shared: c_uint, of: CUstream, pointers: InOut<Bytes>, extra: InOut<Bytes>
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
        dynamic_shared: c_uint, of: CUstream, pointers: InOut<Bytes>
    ) |default| {
        let stream = default.stream(of)?;
        let function = function_in(handle, || stream.context())?;
        let params = params(&function, pointers, InOut::none())?;
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        submit(&stream, KernelLaunch { function, grid, block, dynamic_shared, cooperative: true, cluster: None, params })
    }
    /// Launches a kernel with attributes.
    cuLaunchKernelEx 11060 "cuLaunchKernelEx" / 11060 "cuLaunchKernelEx_ptsz" (
        config: In<Config>, handle: CUfunction, pointers: InOut<Bytes>, extra: InOut<Bytes>
    ) |default| {
        launch_ex(config, handle, pointers, extra, default)
    }
}
