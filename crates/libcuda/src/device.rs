//! Devices, and the queries of programs about them.

use std::ffi::{c_char, c_int, c_uint};

use cudarc::driver::sys::{CUdevice, CUdevprop, CUuuid};

use crate::api::api;
use crate::chip::Attributes;
use crate::driver::{driver, start};
use crate::pointers::{Out, Text};
use crate::{INVALID, Status};

/// Copies as much of a text as there is room for into a buffer of the program.
fn write_text(buffer: Out<c_char>, length: c_int, text: &str) -> Result<(), Status> {
    let room = usize::try_from(length).ok().and_then(|length| length.checked_sub(1));
    let bytes = text.bytes().take(room.ok_or(INVALID)?).chain([0]);
    bytes.enumerate().try_for_each(|(i, byte)| buffer.write_at(i, byte as c_char))
}

api! { API:
    /// Starts the driver.
    cuInit 2000 "cuInit" (flags: c_uint) {
        if flags != 0 {
            return Err(INVALID);
        }
        start().map(drop)
    }
    /// The CUDA version of the driver.
    cuDriverGetVersion 2020 "cuDriverGetVersion" (version: Out<c_int>) {
        version.write(crate::DRIVER_VERSION)
    }
    /// The device of a number.
    cuDeviceGet 2000 "cuDeviceGet" (result: Out<CUdevice>, ordinal: c_int) {
        result.write(driver()?.ordinal(ordinal)? as CUdevice)
    }
    /// How many devices there are.
    cuDeviceGetCount 2000 "cuDeviceGetCount" (count: Out<c_int>) {
        count.write(driver()?.config.count() as c_int)
    }
    /// The name of a device.
    cuDeviceGetName 2000 "cuDeviceGetName" (name: Out<c_char>, length: c_int, device: CUdevice) {
        driver()?.ordinal(device)?;
        write_text(name, length, &driver()?.config.name)
    }
    /// What tells a device, or a part of one, from others.
    cuDeviceGetUuid 9020 "cuDeviceGetUuid", 11040 "cuDeviceGetUuid_v2" (result: Out<CUuuid>, device: CUdevice) {
        let bytes = devices::uuid(driver()?.number(device)?);
        result.write(CUuuid { bytes: bytes.map(|byte| byte as c_char) })
    }
    /// Bytes of memory of a device.
    cuDeviceTotalMem 3020 "cuDeviceTotalMem_v2" (bytes: Out<usize>, device: CUdevice) {
        driver()?.ordinal(device)?;
        bytes.write(driver()?.config.memory as usize)
    }
    /// An attribute of a device.
    cuDeviceGetAttribute 2000 "cuDeviceGetAttribute" (result: Out<c_int>, attribute: c_uint, device: CUdevice) {
        let number = driver()?.number(device)?;
        let value = driver()?.config.chip.attribute(attribute, number);
        result.write(value.ok_or(INVALID)?)
    }
    /// The compute capability of a device: the old way to ask.
    cuDeviceComputeCapability 2000 "cuDeviceComputeCapability" (major: Out<c_int>, minor: Out<c_int>, device: CUdevice) {
        driver()?.ordinal(device)?;
        let chip = &driver()?.config.chip;
        major.write(chip.major() as c_int)?;
        minor.write(chip.minor() as c_int)
    }
    /// Properties of a device: the old way to ask.
    cuDeviceGetProperties 2000 "cuDeviceGetProperties" (result: Out<CUdevprop>, device: CUdevice) {
        let device = driver()?.number(device)?;
        let chip = &driver()?.config.chip;
        let attribute = |number| chip.attribute(number, device).unwrap_or(0);
        result.write(CUdevprop {
            maxThreadsPerBlock: attribute(1),
            maxThreadsDim: [2, 3, 4].map(attribute),
            maxGridSize: [5, 6, 7].map(attribute),
            sharedMemPerBlock: attribute(8),
            totalConstantMemory: attribute(9),
            SIMDWidth: attribute(10),
            memPitch: attribute(11),
            regsPerBlock: attribute(12),
            clockRate: attribute(13),
            textureAlign: attribute(14),
        })
    }
    /// The place of a device on the bus.
    cuDeviceGetPCIBusId 4010 "cuDeviceGetPCIBusId" (buffer: Out<c_char>, length: c_int, device: CUdevice) {
        write_text(buffer, length, &devices::bus_id(driver()?.number(device)?))
    }
    /// The device at a place on the bus.
    cuDeviceGetByPCIBusId 4010 "cuDeviceGetByPCIBusId" (result: Out<CUdevice>, id: Text) {
        let id = id.bytes()?;
        let of = |number: &u32| devices::bus_id(*number).as_bytes().eq_ignore_ascii_case(id);
        let ordinal = driver()?.config.numbers.iter().position(of).ok_or(Status::CUDA_ERROR_INVALID_DEVICE)?;
        result.write(ordinal as CUdevice)
    }
    /// The locally unique number of a device: of Windows only.
    cuDeviceGetLuid 10000 "cuDeviceGetLuid" (_luid: *mut c_char, _mask: *mut c_uint, _device: CUdevice) {
        Err(Status::CUDA_ERROR_NOT_SUPPORTED)
    }
    /// Whether contexts may be limited in their execution resources: not here.
    cuDeviceGetExecAffinitySupport 11040 "cuDeviceGetExecAffinitySupport" (result: Out<c_int>, _kind: c_uint, device: CUdevice) {
        driver()?.ordinal(device)?;
        result.write(0)
    }
    /// Lets writes of other devices become visible, which they are.
    cuFlushGPUDirectRDMAWrites 11030 "cuFlushGPUDirectRDMAWrites" (_target: c_uint, _scope: c_uint) {
        crate::context::Context::current().map(drop)
    }
    /// Starts profiling by NVIDIA's tools, of which there are none.
    cuProfilerStart 4000 "cuProfilerStart" () {
        crate::context::Context::current().map(drop)
    }
    /// Stops profiling by NVIDIA's tools.
    cuProfilerStop 4000 "cuProfilerStop" () {
        crate::context::Context::current().map(drop)
    }
    /// The name of a status.
    cuGetErrorName 6000 "cuGetErrorName" (status: c_uint, result: Out<*const c_char>) {
        let found = crate::status::describe(status);
        result.write(found.map_or(std::ptr::null(), |(name, _)| name.as_ptr()))?;
        found.map(drop).ok_or(INVALID)
    }
    /// What a status means.
    cuGetErrorString 6000 "cuGetErrorString" (status: c_uint, result: Out<*const c_char>) {
        let found = crate::status::describe(status);
        result.write(found.map_or(std::ptr::null(), |(_, text)| text.as_ptr()))?;
        found.map(drop).ok_or(INVALID)
    }
}
