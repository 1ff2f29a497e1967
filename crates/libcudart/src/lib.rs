//! The CUDA runtime on top of a CUDA driver, for programs that nvcc compiled. Two libraries, `libcudart.so.12` and `libcudart.so.13`,
//! export its functions under the names of their major version (`crates/cudart12`, `crates/cudart13`).
//!
//! Most functions call the driver's public functions, after creating the context that a runtime program never creates itself. The
//! runtime's own state is the registry of compiled kernels and variables, the configurations of launches, and each thread's last error.
//!
//! Each file has a group of functions of the manual, declared with `api!`. `docs/libcudart.md` lists them all.
#![recursion_limit = "512"]

pub mod api;
pub mod array;
pub mod context;
pub mod copy;
pub mod device;
pub mod driver;
pub mod error;
pub mod event;
pub mod exports;
pub mod function;
pub mod graph;
pub mod launch;
pub mod library;

pub mod memory;
mod names;
pub mod nodes;
mod pointers;
pub mod pool;
pub mod properties;
pub mod registry;
pub mod stream;
pub mod texture;
pub mod types;
pub mod unsupported;

use std::ffi::c_void;

pub use api::{Function, functions};

/// A handle of a driver object.
pub type Handle = *mut c_void;

/// The null handle.
pub const NULL: Handle = std::ptr::null_mut();

/// The functions, one table per file.
static TABLES: &[&[Function]] = &[
    array::API,
    copy::API,
    device::API,
    error::API,
    event::API,
    function::API,
    graph::API,
    launch::API,
    library::API,
    memory::API,
    nodes::API,
    pool::API,
    properties::API,
    registry::API,
    stream::API,
    texture::API,
    unsupported::API,
];
