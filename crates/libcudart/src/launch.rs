//! Kernel launches (CUDA Runtime API, "Execution Control").

use std::cell::RefCell;
use std::ffi::{c_uint, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::CUlaunchConfig;

use crate::api::{Default, api};
use crate::context::{device, device_count, enter};
use crate::driver::cu;
use crate::error::{Error, remember};
use crate::pointers::{In, Out};
use crate::registry::kernel;
use crate::types::{Dim3, LaunchConfig};
use crate::{Handle, NULL};

/// The launch configuration in `<<<...>>>`.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
}

thread_local! {
    /// The configurations of pending launches. This is a stack, because the arguments of a launch may launch, too.
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// The runtime's error for a launch that the driver rejects: invalid dimensions have their own error.
fn refused(error: Error, block: Dim3) -> Error {
    let threads = u64::from(block.x).saturating_mul(block.y.into()).saturating_mul(block.z.into());
    let bad = threads == 0 || threads > 1024 || block.z > 64;
    match error {
        Error::INVALID_VALUE if bad => Error::INVALID_CONFIGURATION,
        Error::INVALID_RESOURCE_HANDLE => Error::INVALID_DEVICE_FUNCTION,
        error => error,
    }
}

/// Checks that a stream is of the thread's device: a kernel is launched there alone (CUDA C++ Programming Guide, "Stream and Event
/// Behavior"). The driver would launch it on the stream's device.
fn check_stream(stream: Handle) -> Result<(), Error> {
    static ARE_SEVERAL: OnceLock<bool> = OnceLock::new();
    const PER_THREAD: usize = 2;
    if stream.addr() <= PER_THREAD
        || !*ARE_SEVERAL.get_or_init(|| device_count().is_ok_and(|count| count > 1))
    {
        return Ok(());
    }
    let mut of_stream = 0;
    // SAFETY: the driver checks the handle, and there is a place for the number.
    unsafe { cu!(cuStreamGetDevice(stream, &raw mut of_stream)) }?;
    if of_stream == device()? { Ok(()) } else { Err(Error::INVALID_RESOURCE_HANDLE) }
}

/// # Safety
/// As for `cudaLaunchKernel`.
unsafe fn launch(
    host: *const c_void,
    configuration: Configuration,
    arguments: *mut Handle,
    cooperative: bool,
) -> Result<(), Error> {
    enter()?;
    let Configuration { grid, block, shared, stream } = configuration;
    let shared = c_uint::try_from(shared).map_err(|_| Error::INVALID_VALUE)?;
    if [grid.x, grid.y, grid.z].contains(&0) {
        return Err(Error::INVALID_CONFIGURATION);
    }
    let kernel = kernel(host)?;
    check_stream(stream)?;
    // SAFETY: the caller's promise.
    let launched = unsafe {
        match cooperative {
            false => cu!(cuLaunchKernel(
                kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, arguments, NULL
            )),
            true => cu!(cuLaunchCooperativeKernel(
                kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, arguments
            )),
        }
    };
    launched.map_err(|error| refused(error, block))
}

/// Converts a configuration with attributes to the driver's. The attributes themselves are the same.
pub fn of_driver(config: In<LaunchConfig>, default: Default) -> Result<CUlaunchConfig, Error> {
    let LaunchConfig { grid, block, shared, stream, attributes, count } = config.read()?;
    Ok(CUlaunchConfig {
        gridDimX: grid.x,
        gridDimY: grid.y,
        gridDimZ: grid.z,
        blockDimX: block.x,
        blockDimY: block.y,
        blockDimZ: block.z,
        sharedMemBytes: c_uint::try_from(shared).map_err(|_| Error::INVALID_VALUE)?,
        hStream: default.of(stream).cast(),
        attrs: attributes.cast(),
        numAttrs: count,
    })
}

api! { API:
    /// Remembers what `<<<...>>>` says.
    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Handle) -> c_uint {
        let push = |all: &RefCell<Vec<_>>| all.borrow_mut().push(Configuration { grid, block, shared, stream });
        if CONFIGURATIONS.try_with(push).is_err() {
            remember(Error::UNLOADING);
            return 1;
        }
        0
    }
    /// Takes back what `<<<...>>>` said.
    __cudaPopCallConfiguration(grid: Out<Dim3>, block: Out<Dim3>, shared: Out<usize>, stream: Out<Handle>) {
        let last = CONFIGURATIONS.try_with(|all| all.borrow_mut().pop()).map_err(|_| Error::UNLOADING)?;
        let last = last.ok_or(Error::MISSING_CONFIGURATION)?;
        grid.write(last.grid)?;
        block.write(last.block)?;
        shared.write(last.shared)?;
        stream.write(last.stream)
    }
    /// Launches a kernel.
    cudaLaunchKernel / cudaLaunchKernel_ptsz (
        host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut Handle, shared: usize, stream: Handle
    ) |default| {
        launch(host, Configuration { grid, block, shared, stream: default.of(stream) }, arguments, false)
    }
    /// Launches a kernel.
    __cudaLaunchKernel / __cudaLaunchKernel_ptsz (
        host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut Handle, shared: usize, stream: Handle
    ) |default| {
        launch(host, Configuration { grid, block, shared, stream: default.of(stream) }, arguments, false)
    }
    /// Launches a kernel whose blocks may wait for each other.
    cudaLaunchCooperativeKernel / cudaLaunchCooperativeKernel_ptsz (
        host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut Handle, shared: usize, stream: Handle
    ) |default| {
        launch(host, Configuration { grid, block, shared, stream: default.of(stream) }, arguments, true)
    }
    /// Launches a kernel with attributes.
    cudaLaunchKernelExC / cudaLaunchKernelExC_ptsz (config: In<LaunchConfig>, host: *const c_void, arguments: *mut Handle) |default| {
        enter()?;
        let block = config.read()?.block;
        let config = of_driver(config, default)?;
        let kernel = kernel(host)?;
        check_stream(config.hStream.cast())?;
        cu!(cuLaunchKernelEx(&raw const config, kernel, arguments, NULL)).map_err(|error| refused(error, block))
    }
    /// Calls a function of the program when all work before is done.
    cudaLaunchHostFunc / cudaLaunchHostFunc_ptsz (stream: Handle, function: Handle, data: Handle) |default|
        => cuLaunchHostFunc(default.of(stream), function, data);
}
