//! A CUDA driver without a GPU: `libcuda.so.1` on top of ptxvm. It has the functions of the CUDA Driver API. Kernels run on the CPU, and
//! faults in them are reported on stderr with source line, thread and allocation.
//!
//! Each file has a group of functions of the manual, declared with `api!`, and their implementation. `docs/libcuda.md` lists them all.
//!
//! For the environment variables see `config` (devices) and `log` (messages).

mod api;
mod array;
mod cache;
mod chip;
mod config;
mod context;
mod copy;
mod debug;
mod device;
mod driver;
mod event;
mod fill;
mod function;
mod graph;
mod handles;
mod host_access;
mod host_pages;
mod host_work;
mod image;
mod in_use;
mod initialized;
mod ipc;
mod jit;
mod launch;
mod leak;
mod library;
mod link;
mod live;
mod managed;
mod memory;
mod module;
mod old_launch;
mod operation;
mod origin;
mod output;
mod peer;
#[cfg(test)]
mod planted;
mod pointers;
mod pool;
mod proc;
mod process;
mod producer;
mod profile;
mod queue;
mod report;
mod save;
mod share;
mod shared_event;
mod status;
mod stream;
mod stream_order;
mod stream_value;
mod tensor_map;
mod texture;
mod tool;
mod unsupported;
mod virtual_memory;

use std::sync::{Mutex, MutexGuard, PoisonError};

use caller::log;

pub use api::{Function, functions};
pub use cudarc::driver::sys::CUresult as Status;

/// The CUDA version that the driver reports.
pub const DRIVER_VERSION: i32 = devices::CUDA_VERSION;

/// What most functions answer to arguments that they do not take.
const INVALID: Status = Status::CUDA_ERROR_INVALID_VALUE;

/// Locks a mutex, also after a panic of its last holder: a panic ends one call, not the driver.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The functions, one table per file.
static TABLES: &[&[&[Function]]] = &[
    array::API,
    context::API,
    copy::API,
    device::API,
    event::API,
    fill::API,
    function::API,
    ipc::API,
    launch::API,
    library::API,
    link::API,
    managed::API,
    memory::API,
    old_launch::API,
    peer::API,
    pool::API,
    stream_value::API,
    virtual_memory::API,
    module::API,
    proc::API,
    stream::API,
    tensor_map::API,
    texture::API,
    unsupported::API,
];
