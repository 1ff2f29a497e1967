//! What a program asks and tells the driver that computes on device memory itself (`PTXVM_HOST_ACCESS=1`).
//!
//! It is no part of CUDA: `ptxvm.torch` calls it, which has torch's CPU kernels compute on device memory,
//! and our libraries do (`host_work.rs`).

use std::ffi::c_int;

use crate::config::Config;

/// Whether the host reaches device memory at its device addresses: 1, or 0.
#[unsafe(export_name = "ptxvm_has_host_access")]
extern "C" fn has_host_access() -> c_int {
    Config::get().host_access.into()
}

/// The host has written to device memory: `initcheck` counts these bytes as written.
#[unsafe(export_name = "ptxvm_host_wrote")]
extern "C" fn host_wrote(address: u64, bytes: u64) {
    crate::initialized::written(address, bytes);
    crate::module::written(address, bytes);
}
