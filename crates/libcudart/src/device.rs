//! Devices (CUDA Runtime API, "Device Management", "Peer Device Memory Access", "Version Management").

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::api::api;
use crate::context::{bind, check_device, device, device_count, enter, primary, reset, start};
use crate::driver::cu;
use crate::error::Error;
use crate::pointers::{In, Out};
use crate::{Handle, NULL};

/// The versions that the libraries report: those of the headers whose functions they have.
pub const VERSION_12: c_int = 12090;
#[allow(missing_docs)]
pub const VERSION_13: c_int = 13050;

/// Sets the flags of the primary context of a device.
fn set_flags(device: c_int, flags: c_uint) -> Result<(), Error> {
    // SAFETY: the arguments meet the requirements of the function.
    unsafe { cu!(cuDevicePrimaryCtxSetFlags_v2(device, flags)) }
}

/// # Safety
/// As for `cudaGetDriverEntryPointByVersion`.
unsafe fn entry_point(
    name: *const c_char,
    result: *mut Handle,
    version: c_int,
    flags: u64,
    found: *mut c_int,
) -> Result<(), Error> {
    start()?;
    let mut unused = 0;
    let found = if found.is_null() { &raw mut unused } else { found };
    // SAFETY: the caller's promise.
    unsafe { cu!(cuGetProcAddress_v2(name, result, version, flags, found)) }
}

api! { API:
    /// How many devices there are.
    cudaGetDeviceCount(count: Out<c_int>) {
        count.write(0)?;
        count.write(device_count()?)
    }
    /// The device of this thread.
    cudaGetDevice(result: Out<c_int>) {
        result.write(device()?)
    }
    /// Makes a device that of this thread.
    cudaSetDevice(device: c_int) {
        bind(device)
    }
    /// Makes the context of a device, with flags.
    cudaInitDevice(device: c_int, device_flags: c_uint, flags: c_uint) {
        check_device(device)?;
        if flags & 1 != 0 {
            set_flags(device, device_flags)?;
        }
        primary(device).map(drop)
    }
    /// Which devices may be chosen for the program: all.
    cudaSetValidDevices(devices: *mut c_int, count: c_int) {
        for i in 0..usize::try_from(count).map_err(|_| Error::INVALID_VALUE)? {
            check_device(In::new(devices.wrapping_add(i)).read()?)?;
        }
        Ok(())
    }
    /// The device that fits best: they are all the same.
    cudaChooseDevice(result: Out<c_int>, properties: *const c_void) {
        if properties.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        check_device(0)?;
        result.write(0)
    }
    /// Sets the flags of the device of this thread.
    cudaSetDeviceFlags(flags: c_uint) {
        set_flags(device()?, flags)
    }
    /// The flags of the device of this thread.
    cudaGetDeviceFlags(flags: *mut c_uint) {
        let (device, mut active) = (device()?, 0);
        cu!(cuDevicePrimaryCtxGetState(device, flags, &raw mut active))
    }
    /// An attribute of a device.
    cudaDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) {
        check_device(device)?;
        cu!(cuDeviceGetAttribute(value, attribute, device))
    }
    /// What a device can do with another one.
    cudaDeviceGetP2PAttribute(value: *mut c_int, attribute: c_int, from: c_int, to: c_int) {
        check_device(from)?;
        check_device(to)?;
        cu!(cuDeviceGetP2PAttribute(value, attribute, from, to))
    }
    /// Whether a device can reach memory of another one.
    cudaDeviceCanAccessPeer(result: *mut c_int, device: c_int, peer: c_int) {
        check_device(device)?;
        check_device(peer)?;
        cu!(cuDeviceCanAccessPeer(result, device, peer))
    }
    /// Lets the device of this thread reach memory of another one.
    cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) => cuCtxEnablePeerAccess(primary(peer)?, flags);
    /// The opposite.
    cudaDeviceDisablePeerAccess(peer: c_int) => cuCtxDisablePeerAccess(primary(peer)?);
    /// The device on a place of the PCI bus.
    cudaDeviceGetByPCIBusId(result: *mut c_int, name: *const c_char) {
        start()?;
        cu!(cuDeviceGetByPCIBusId(result, name))
    }
    /// The place of a device on the PCI bus.
    cudaDeviceGetPCIBusId(name: *mut c_char, bytes: c_int, device: c_int) {
        check_device(device)?;
        cu!(cuDeviceGetPCIBusId(name, bytes, device))
    }
    /// The range of priorities of streams.
    cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) => cuCtxGetStreamPriorityRange(least, greatest);
    /// A limit of the device.
    cudaDeviceGetLimit(value: *mut usize, limit: c_int) => cuCtxGetLimit(value, limit);
    /// Changes a limit of the device.
    cudaDeviceSetLimit(limit: c_int, value: usize) => cuCtxSetLimit(limit, value);
    /// What is preferred of L1 cache and shared memory.
    cudaDeviceGetCacheConfig(config: *mut c_int) => cuCtxGetCacheConfig(config);
    /// Sets what is preferred of L1 cache and shared memory.
    cudaDeviceSetCacheConfig(config: c_int) => cuCtxSetCacheConfig(config);
    /// The width of banks of shared memory.
    cudaDeviceGetSharedMemConfig(config: *mut c_int) => cuCtxGetSharedMemConfig(config);
    /// Sets the width of banks of shared memory.
    cudaDeviceSetSharedMemConfig(config: c_int) => cuCtxSetSharedMemConfig(config);
    /// Waits until all work of the device is done.
    cudaDeviceSynchronize() => cuCtxSynchronize();
    /// Ends the context of the device, with all that belongs to it.
    cudaDeviceReset() {
        reset()
    }
    /// The old name of `cudaDeviceSynchronize`.
    cudaThreadSynchronize[12]() => cuCtxSynchronize();
    /// The old name of `cudaDeviceReset`.
    cudaThreadExit[12]() {
        reset()
    }
    /// The old name of `cudaDeviceGetLimit`.
    cudaThreadGetLimit[12](value: *mut usize, limit: c_int) => cuCtxGetLimit(value, limit);
    /// The old name of `cudaDeviceSetLimit`.
    cudaThreadSetLimit[12](limit: c_int, value: usize) => cuCtxSetLimit(limit, value);
    /// The old name of `cudaDeviceGetCacheConfig`.
    cudaThreadGetCacheConfig[12](config: *mut c_int) => cuCtxGetCacheConfig(config);
    /// The old name of `cudaDeviceSetCacheConfig`.
    cudaThreadSetCacheConfig[12](config: c_int) => cuCtxSetCacheConfig(config);
    /// Turned binary64 into binary32 for devices without it: there are none any more.
    cudaSetDoubleForDevice[12](_value: *mut f64) {
        Ok(())
    }
    /// The opposite.
    cudaSetDoubleForHost[12](_value: *mut f64) {
        Ok(())
    }
    /// Gives persisting lines of the L2 cache back.
    cudaCtxResetPersistingL2Cache() => cuCtxResetPersistingL2Cache();
    /// Makes writes of other devices visible.
    cudaDeviceFlushGPUDirectRDMAWrites(target: c_int, scope: c_int) => cuFlushGPUDirectRDMAWrites(target, scope);
    /// The CUDA version of the driver; 0 if there is none.
    cudaDriverGetVersion(version: Out<c_int>) {
        version.write(0)?;
        match cu!(cuDriverGetVersion(version)) {
            Err(Error::INSUFFICIENT_DRIVER) => Ok(()),
            other => other,
        }
    }
    /// The CUDA version of the runtime.
    cudaRuntimeGetVersion_12[12 as cudaRuntimeGetVersion](version: Out<c_int>) {
        version.write(VERSION_12)
    }
    /// The CUDA version of the runtime.
    cudaRuntimeGetVersion_13[13 as cudaRuntimeGetVersion](version: Out<c_int>) {
        version.write(VERSION_13)
    }
    /// Looks a function of the driver up, as of CUDA 12.9.
    cudaGetDriverEntryPoint_12 / cudaGetDriverEntryPoint_12_ptsz [12 as cudaGetDriverEntryPoint / cudaGetDriverEntryPoint_ptsz] (
        name: *const c_char, result: *mut Handle, flags: u64, found: *mut c_int
    ) |default| {
        entry_point(name, result, VERSION_12, flags_of(flags, default), found)
    }
    /// Looks a function of the driver up, as of CUDA 13.5.
    cudaGetDriverEntryPoint_13 / cudaGetDriverEntryPoint_13_ptsz [13 as cudaGetDriverEntryPoint / cudaGetDriverEntryPoint_ptsz] (
        name: *const c_char, result: *mut Handle, flags: u64, found: *mut c_int
    ) |default| {
        entry_point(name, result, VERSION_13, flags_of(flags, default), found)
    }
    /// Looks a function of the driver up, as of some CUDA version.
    cudaGetDriverEntryPointByVersion / cudaGetDriverEntryPointByVersion_ptsz (
        name: *const c_char, result: *mut Handle, version: c_uint, flags: u64, found: *mut c_int
    ) |default| {
        entry_point(name, result, version as c_int, flags_of(flags, default), found)
    }
    /// Tables that NVIDIA's own libraries ask for: there are none here.
    cudaGetExportTable(result: Out<Handle>, _id: *const c_void) {
        result.write(NULL)?;
        Err(Error::NOT_SUPPORTED)
    }
    /// Lets a profiler begin: there is none.
    cudaProfilerStart() {
        enter()
    }
    /// Lets a profiler end.
    cudaProfilerStop() {
        enter()
    }
}

/// Programs with per-thread default streams get the matching functions, unless they request others.
fn flags_of(flags: u64, default: crate::api::Default) -> u64 {
    const PER_THREAD_STREAM: u64 = 2;
    match (flags, default) {
        (0, crate::api::Default::PerThread) => PER_THREAD_STREAM,
        _ => flags,
    }
}
