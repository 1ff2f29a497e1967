//! The machine on which PTX runs: memory, devices, loaded modules, launches, faults, observers.
//!
//! A [`Device`] owns memory and loaded modules. [`Device::prepare`] checks a launch and takes what it needs. An engine
//! (`vm`, `reference`) runs the prepared [`Launch`], and either leaves its results in memory or reports which thread
//! faulted where. This crate executes no instruction. It uses `unsafe`, since kernels race on their memory by design.

mod block_memory;
mod bound;
pub mod builtin;
mod cluster_size;
mod cooperative;
mod device;
pub mod device_runtime;
mod error;
mod fault;
mod kernel;
mod launch;
mod loaded;
pub mod mask;
pub mod memory;
mod native_code;
mod observer;
mod output;
mod panics;
pub mod pool;
mod prepared;
pub mod printf;
mod profile;
mod runtime_call;
pub mod shared;
mod special;
mod stopwatch;
pub mod texture;
mod undefined;

pub use bound::{Bound, HandleFault, missed};
pub use builtin::why_missing;
pub use cluster_size::{NEEDS_CLUSTER, settle as settle_clusters};
pub use cooperative::COOPERATIVE_BLOCKS;
pub use device::Device;
pub use error::{LaunchError, LoadError, Place};
pub use fault::{Access, Fault, FaultKind};
pub use ir::{AccessKind, AsyncStep, CopyGroup, MbarrierOp, Order, Scope, Semantics, Unsupported};
pub use kernel::{Kernel, KernelAttributes, param_layout};
pub use lanes::{HOST_PATH_VARIABLE, HostPath, HostPathError, available_paths, host_path};
pub use launch::{LaunchConfig, LaunchReport, MAX_SLEEP, RESIDENT_BLOCKS};
pub use loaded::Loaded;
pub use memory::{
    ARENA_BASE, AddressTaken, CODE_STRIDE, CODE_WINDOW, CONST_WINDOW, HEAP_BASE, Held, HostMemoryError,
    Keeper, LOCAL_WINDOW, MAPPED_BASE, MOST_CLUSTER_BLOCKS, NARROW_BASE, OutOfMemory, PARAM_WINDOW,
    SHARED_WINDOW, STACK_BASE, WINDOW_BYTES, function_address, generic_offset, map_shared, rank_of_address,
    resolve, shared_base, shared_object, shared_rank,
};
pub use native_code::{ENGINE_VARIABLE, EngineError, NativeCode, native_code};
pub use observer::{
    AccessEvent, AsyncEvent, BarrierArrival, BarrierRelease, BarrierWait, BlockAccess, BlockAddresses,
    Completion, Compute, CopyGroupEvent, DeviceCall, DeviceFunction, EnterEvent, ExitEvent, FenceEvent,
    Guard, InstructionEvent, LaneAccess, LaneSet, LaunchObserver, MbarrierEvent, ObserverHandle,
    OperandValue, OperationEvent, OperationKind, ReadValues, TensorCells, TensorMemoryAccess,
    TensorMemoryEvent, Values, WarpEvent, WarpKind, WarpLane,
};
pub use output::Output;
pub use panics::{caught, report_briefly};
pub use pool::on_host_threads;
pub use prepared::Launch;
pub use profile::{Accesses, Counts, Profile};
pub use special::Special;
pub use stopwatch::Stopwatch;
pub use texture::{Object, ObjectError, Placed};
pub use undefined::Undefined;
