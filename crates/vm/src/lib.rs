//! The machine that runs lowered PTX: launches, address spaces, barriers, warp collectives, and the
//! block-vectorised interpreter.
//!
//! A [`Device`] owns memory and loaded modules. [`Device::launch`] runs a kernel, and either leaves its results in
//! memory or reports which thread faulted where. This crate uses `unsafe`, unlike the crates before it: it reaches
//! kernel memory through raw pointers, since kernels race on it by design, and vector handlers work on raw arrays.

mod affine;
mod block_memory;
mod builtin;
mod bytes;
mod cluster;
mod cluster_size;
mod code;
mod cooperative;
mod cta;
mod cta_batch;
mod device;
mod exec;
mod fault;
mod footprint;
mod global;
mod grid;
mod grid_barrier;
mod kernel;
mod launch;
mod limits;
mod loaded;
mod mask;
mod memory;
mod observer;
mod output;
mod panics;
mod pattern;
mod pool;
pub mod printf;
mod profile;
mod registers;
mod shared;
mod standstill;
mod stopwatch;
mod tensor_memory;
mod texture;
mod undefined;

pub use builtin::why_missing;
pub use cluster_size::settle as settle_clusters;
pub use code::function_address;
pub use cooperative::COOPERATIVE_BLOCKS;
pub use device::Device;
pub use fault::{Access, Fault, FaultKind};
pub use grid::Launch;
pub use ir::{AccessKind, AsyncStep, CopyGroup, MbarrierOp, Order, Scope, Semantics, Unsupported};
pub use kernel::param_layout;
pub use lanes::{HOST_PATH_VARIABLE, HostPath, HostPathError, available_paths, host_path};
pub use launch::{LaunchConfig, LaunchError, LaunchReport, LoadError, MAX_SLEEP, Place};
pub use loaded::{KernelAttributes, Loaded};
pub use memory::{
    ARENA_BASE, AddressTaken, CODE_STRIDE, CODE_WINDOW, CONST_WINDOW, HEAP_BASE, HostMemoryError,
    LOCAL_WINDOW, MAPPED_BASE, MOST_CLUSTER_BLOCKS, NARROW_BASE, OutOfMemory, PARAM_WINDOW, SHARED_WINDOW,
    STACK_BASE, WINDOW_BYTES, generic_offset, map_shared, rank_of_address, resolve, shared_base,
    shared_object, shared_rank,
};
pub use observer::{
    AccessEvent, AsyncEvent, BarrierArrival, BarrierRelease, BarrierWait, BlockAccess, BlockAddresses,
    Completion, CopyGroupEvent, DeviceCall, DeviceFunction, EnterEvent, ExitEvent, FenceEvent, Guard,
    LaneAccess, LaneSet, LaunchObserver, MbarrierEvent, ObserverHandle, OperationEvent, OperationKind,
    TensorCells, TensorMemoryAccess, TensorMemoryEvent, Values, WarpEvent, WarpKind, WarpLane,
};
pub use output::Output;
pub use panics::{caught, report_briefly};
pub use pool::on_host_threads;
pub use profile::{Accesses, Counts, Profile};
pub use shared::{RESERVED_FOR_GROUPS, RESERVED_SHARED_BYTES};
pub use texture::{Bound, HandleFault, Object, ObjectError, Placed, missed};
pub use undefined::Undefined;
