//! The library and the machine as a whole.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::api::api;
use crate::pointers::{Out, write_list, write_text};
use crate::state::Handle;
use crate::state::{begin, devices, end, handle};
use crate::status::Status;

/// The name of a process: the program's, as it was called.
fn name_of_process(id: u32) -> Result<String, Status> {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).map_err(|_| Status::NOT_FOUND)?;
    let name = line.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

api! { API:
    /// Begins the use of the library. It does not start the CUDA driver.
    nvmlInit_v2 nvmlInit () {
        begin()
    }
    /// Begins the use of the library; the flags allow for machines without devices and change nothing here.
    nvmlInitWithFlags (_flags: c_uint) {
        begin()
    }
    /// Ends the use of the library that one call has begun.
    nvmlShutdown () {
        end()
    }
    /// The version of the driver: 999 and the CUDA version, which no driver of NVIDIA's has.
    nvmlSystemGetDriverVersion (version: Out<c_char>, length: c_uint) {
        devices()?;
        write_text(version, length, devices::DRIVER_VERSION)
    }
    /// The version of the library: NVML's, and that of the driver.
    nvmlSystemGetNVMLVersion (version: Out<c_char>, length: c_uint) {
        devices()?;
        write_text(version, length, &format!("13.{}", devices::DRIVER_VERSION))
    }
    /// The CUDA version of the driver, as `cuDriverGetVersion` tells it.
    nvmlSystemGetCudaDriverVersion_v2 nvmlSystemGetCudaDriverVersion (version: Out<c_int>) {
        devices()?;
        version.write(devices::CUDA_VERSION)
    }
    /// The name of a process.
    nvmlSystemGetProcessName (id: c_uint, name: Out<c_char>, length: c_uint) {
        devices()?;
        let mut text = name_of_process(id)?;
        // The manual has it cut off.
        let room = (length as usize).checked_sub(1).ok_or(Status::INVALID_ARGUMENT)?;
        text.truncate(text.floor_char_boundary(room));
        write_text(name, length, &text)
    }
    /// The host interface cards: none.
    nvmlSystemGetHicVersion (count: Out<c_uint>, _cards: *mut c_void) {
        devices()?;
        count.write(0)
    }
    /// The devices that are near to a processor of the host: all.
    nvmlSystemGetTopologyGpuSet (_processor: c_uint, count: Out<c_uint>, places: Out<Handle>) {
        let all = (0..devices()?.count).map(handle);
        write_list(count, places, all.collect())
    }
    /// How many devices are hidden from NVML: none.
    nvmlGetExcludedDeviceCount (count: Out<c_uint>) {
        devices()?;
        count.write(0)
    }
    /// How many S-class units there are: none.
    nvmlUnitGetCount (count: Out<c_uint>) {
        devices()?;
        count.write(0)
    }
}
