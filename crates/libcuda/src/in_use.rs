//! How much of each device this process uses: for its own limits, and for NVML and `nvidia-smi`.
//!
//! The live report (`live.rs`) has the numbers, too, where other processes read them (crates/devices).

use std::ffi::c_uint;
use std::sync::atomic::{AtomicU64, Ordering};

use ptxvm::process_report::DEVICES;

use crate::Status;
use crate::api::call;
use crate::config::Config;
use crate::pointers::Out;

/// By the ordinal of the device: bytes of memory in use, and contexts.
static USES: [[AtomicU64; 2]; DEVICES] = [const { [AtomicU64::new(0), AtomicU64::new(0)] }; DEVICES];

/// Applies a change to what is used of a device, here and in the live report.
fn change(device: u32, change: impl Fn(&[AtomicU64; 2])) {
    if let Some(uses) = USES.get(device as usize)
        && let Some(&number) = Config::get().numbers.get(device as usize)
    {
        change(uses);
        crate::report::uses(number, |uses| change(uses));
    }
}

/// Memory of a device has been allocated.
pub fn allocated(device: u32, bytes: u64) {
    change(device, |[in_use, _]| {
        in_use.fetch_add(bytes, Ordering::Relaxed);
    });
}

/// Memory of a device has been freed.
pub fn freed(device: u32, bytes: u64) {
    change(device, |[in_use, _]| {
        in_use.fetch_sub(bytes, Ordering::Relaxed);
    });
}

/// A device has got a context.
pub fn context_made(device: u32) {
    change(device, |[_, contexts]| {
        contexts.fetch_add(1, Ordering::Relaxed);
    });
}

/// A device has lost a context.
pub fn context_destroyed(device: u32) {
    change(device, |[_, contexts]| {
        contexts.fetch_sub(1, Ordering::Relaxed);
    });
}

/// Bytes of memory of a device in use.
pub fn bytes(device: u32) -> u64 {
    USES.get(device as usize).map_or(0, |[bytes, _]| bytes.load(Ordering::Relaxed))
}

/// What this process uses of the device with a number in this machine: bytes of memory, with those that pools keep, and contexts. It is
/// no function of the manual: our NVML (crates/nvml) calls it when it finds this driver in its process. It starts nothing, so that a
/// process that asks NVML alone may be forked.
#[unsafe(no_mangle)]
extern "C" fn ptxvm_use_of_device(number: c_uint, bytes: Out<u64>, contexts: Out<u64>) -> Status {
    call("ptxvm_use_of_device", || {
        let ordinal = Config::get().numbers.iter().position(|&other| other == number);
        let uses = ordinal.and_then(|ordinal| Some((ordinal as u32, USES.get(ordinal)?)));
        let (ordinal, [in_use, made]) = uses.ok_or(Status::CUDA_ERROR_INVALID_DEVICE)?;
        bytes.write(in_use.load(Ordering::Relaxed) + crate::pool::kept(ordinal))?;
        contexts.write(made.load(Ordering::Relaxed))
    })
}
