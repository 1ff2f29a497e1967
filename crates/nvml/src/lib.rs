//! NVIDIA's management library (NVML) without a GPU: `libnvidia-ml.so.1` over the devices that ptxvm's CUDA driver has.
//!
//! It tells what is true of these devices: names, places, sizes, clocks of the emulated chip, processes and their memory. What a device has
//! not (temperature, power, fans, links) is `NVML_ERROR_NOT_SUPPORTED`, as on a GPU that lacks a sensor. It never starts the driver, so
//! that a process which only asks here may be forked. As NVIDIA's, it does not care for `CUDA_VISIBLE_DEVICES`.
//!
//! Each file has a group of functions of the manual, declared with `api!`. `docs/nvml.md` lists them all.

mod api;
mod clock;
mod device;

mod memory;
mod pointers;
mod state;
mod status;
mod system;
mod topology;
mod unsupported;

pub use api::Function;
pub use status::Status;

/// The functions, one table per file.
static TABLES: &[&[&[Function]]] =
    &[clock::API, device::API, memory::API, status::API, system::API, topology::API, unsupported::API];

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).flat_map(|symbols| symbols.iter())
}
