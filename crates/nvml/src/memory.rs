//! Memory, and who uses it. Nothing here measures how busy a device is.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use crate::api::api;
use crate::pointers::{Out, write_list};
use crate::state::{Handle, device, number, processes, same_for_all};
use crate::status::Status;

/// `nvmlMemory_t`.
#[repr(C)]
struct Memory {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlMemory_v2_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Memory2 {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// `nvmlUtilization_t`.
#[repr(C)]
struct Utilization {
    device: c_uint,
    memory: c_uint,
}

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
struct Process1 {
    id: c_uint,
    bytes: c_ulonglong,
}

/// `nvmlProcessInfo_v2_t`, which is also the third.
#[repr(C)]
struct Process2 {
    id: c_uint,
    bytes: c_ulonglong,
    instance: c_uint,
    compute_instance: c_uint,
}

/// `nvmlProcessDetail_v1_t`.
#[repr(C)]
struct Detail {
    process: Process2,
    protected_bytes: c_ulonglong,
}

/// `nvmlProcessDetailList_v1_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct DetailList<'a> {
    version: c_uint,
    mode: c_uint,
    count: c_uint,
    places: std::mem::ManuallyDrop<Out<'a, Detail>>,
}

/// `nvmlFieldValue_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Field {
    id: c_uint,
    scope: c_uint,
    timestamp: i64,
    latency: i64,
    kind: c_uint,
    status: Status,
    value: u64,
}

/// What a process is in that runs on no part of a device.
const NO_INSTANCE: c_uint = 0xffff_ffff;

fn process((id, bytes): (u32, u64)) -> Process2 {
    Process2 { id, bytes, instance: NO_INSTANCE, compute_instance: NO_INSTANCE }
}

/// The number that marks a version of a structure.
const fn version<T>(number: c_uint) -> c_uint {
    size_of::<T>() as c_uint | number << 24
}

/// Bytes of a device: all, and those in use. Each process has its own limit, so that together they could use more than there is.
fn memory(of: Handle) -> Result<(u64, u64), Status> {
    let total = device(of)?.memory;
    let used = processes(number(of)?).iter().map(|(_, bytes)| bytes).sum::<u64>();
    Ok((total, used.min(total)))
}

api! { API:
    /// Bytes of memory: all, free, and in use by the processes of this `ptxvm exec`.
    nvmlDeviceGetMemoryInfo (of: Handle, result: Out<Memory>) {
        let (total, used) = memory(of)?;
        result.write(Memory { total, free: total - used, used })
    }
    /// Bytes of memory: all, reserved (none), free, and in use by the processes of this `ptxvm exec`.
    nvmlDeviceGetMemoryInfo_v2 (of: Handle, result: Out<Memory2>) {
        let (total, used) = memory(of)?;
        let version = version::<Memory2>(2);
        if result.read()?.version != version {
            return Err(Status::ARGUMENT_VERSION_MISMATCH);
        }
        result.write(Memory2 { version, total, reserved: 0, free: total - used, used })
    }
    /// Bytes of memory that the bus shows: all of the device's, of which nothing is mapped.
    nvmlDeviceGetBAR1MemoryInfo (of: Handle, result: Out<Memory>) {
        let total = device(of)?.memory;
        result.write(Memory { total, free: total, used: 0 })
    }
    /// How busy device and memory have been, in percent: not measured, 0.
    nvmlDeviceGetUtilizationRates (of: Handle, result: Out<Utilization>) {
        device(of)?;
        result.write(Utilization { device: 0, memory: 0 })
    }
    /// How busy encoder, decoder and the like have been, in percent: there are none, 0.
    nvmlDeviceGetEncoderUtilization nvmlDeviceGetDecoderUtilization nvmlDeviceGetJpgUtilization nvmlDeviceGetOfaUtilization (of: Handle, result: Out<c_uint>, period: Out<c_uint>) {
        device(of)?;
        result.write(0)?;
        period.write(0)
    }
    /// What the encoder does: nothing.
    nvmlDeviceGetEncoderStats (of: Handle, sessions: Out<c_uint>, frames: Out<c_uint>, latency: Out<c_uint>) {
        device(of)?;
        sessions.write(0)?;
        frames.write(0)?;
        latency.write(0)
    }
    /// Who uses the encoder: nobody.
    nvmlDeviceGetEncoderSessions (of: Handle, count: Out<c_uint>, _places: *mut c_void) {
        same_for_all(of, count, 0)
    }
    /// The processes of this `ptxvm exec` that have contexts, with their bytes of memory: the first form of the structure.
    nvmlDeviceGetComputeRunningProcesses (of: Handle, count: Out<c_uint>, places: Out<Process1>) {
        let all = processes(number(of)?).into_iter().map(|(id, bytes)| Process1 { id, bytes });
        write_list(count, places, all.collect())
    }
    /// The processes of this `ptxvm exec` that have contexts, with their bytes of memory.
    nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2 (of: Handle, count: Out<c_uint>, places: Out<Process2>) {
        write_list(count, places, processes(number(of)?).into_iter().map(process).collect())
    }
    /// Processes that draw, or that share a device by MPS: none.
    nvmlDeviceGetGraphicsRunningProcesses_v3 nvmlDeviceGetGraphicsRunningProcesses_v2 nvmlDeviceGetGraphicsRunningProcesses nvmlDeviceGetMPSComputeRunningProcesses_v3 nvmlDeviceGetMPSComputeRunningProcesses_v2 nvmlDeviceGetMPSComputeRunningProcesses (of: Handle, count: Out<c_uint>, _places: *mut c_void) {
        same_for_all(of, count, 0)
    }
    /// The processes of a mode, with their bytes of memory.
    nvmlDeviceGetRunningProcessDetailList (of: Handle, result: Out<DetailList<'_>>) {
        let number = number(of)?;
        let mut list = result.read()?;
        if list.version != version::<DetailList<'_>>(1) {
            return Err(Status::ARGUMENT_VERSION_MISMATCH);
        }
        // Compute, graphics, MPS, all.
        let all = match list.mode {
            0 | 3 => processes(number),
            1 | 2 => Vec::new(),
            _ => return Err(Status::INVALID_ARGUMENT),
        };
        let room = std::mem::replace(&mut list.count, all.len() as c_uint);
        result.write(list)?;
        if all.len() > room as usize {
            return Err(Status::INSUFFICIENT_SIZE);
        }
        let details = all.into_iter().map(|of| Detail { process: process(of), protected_bytes: 0 });
        details.enumerate().try_for_each(|(at, detail)| list.places.write_at(at, detail))
    }
    /// How busy each process has kept the device: nobody has looked.
    nvmlDeviceGetProcessUtilization (of: Handle, _samples: *mut c_void, count: Out<c_uint>, _since: c_ulonglong) {
        device(of)?;
        count.write(0)?;
        Err(Status::NOT_FOUND)
    }
    /// Fields by their numbers: each is told to be not supported.
    nvmlDeviceGetFieldValues nvmlDeviceClearFieldValues (of: Handle, count: c_int, fields: Out<Field>) {
        device(of)?;
        let count = usize::try_from(count).map_err(|_| Status::INVALID_ARGUMENT)?;
        (0..count).try_for_each(|at| {
            let field = fields.read_at(at)?;
            fields.write_at(at, Field { status: Status::NOT_SUPPORTED, ..field })
        })
    }
}
