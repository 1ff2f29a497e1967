//! Observers: callers that watch a launch. They see memory accesses, barriers and other events, and can stop the launch.
//!
//! The interpreter reports every access with its addresses resolved, per block or per thread, and the progress of
//! barriers (`vm/src/exec/watch.rs`, `notify.rs`). Events that are expensive to collect are optional: the interpreter
//! first asks the observer whether it wants them. Events may gain fields (`#[non_exhaustive]`); the enums in them are
//! exhaustive, so that a checker has to decide about each new kind. Narrowest test: `tests/observer.rs` of
//! `vm`.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use ir::AccessKind;
use isa::Space;

use crate::prepared::Launch;

/// Defines an event. More fields may come, so that only its own file makes one by its fields.
macro_rules! event {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident $(<$life:lifetime>)? {
            $($(#[$doc:meta])* $visibility:vis $field:ident: $ty:ty,)*
        }
    ) => {
        $(#[$attribute])*
        #[non_exhaustive]
        pub struct $name $(<$life>)? {
            $($(#[$doc])* $visibility $field: $ty,)*
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// The event with these fields, for engines and for tests of observers.
            #[inline]
            #[allow(clippy::too_many_arguments)] // a type of its own for the fields would be the event again
            pub fn new($($field: $ty),*) -> Self {
                $name { $($field),* }
            }
        }
    };
}

mod access;
mod instruction;
mod operation;
mod synchronization;

pub use access::{AccessEvent, BlockAccess, BlockAddresses, Completion, LaneAccess, ReadValues, Values};
pub use instruction::{InstructionEvent, OperandValue};
pub use operation::{Compute, EnterEvent, Guard, LaneSet, OperationEvent, OperationKind};
pub use synchronization::{
    AsyncEvent, BarrierArrival, BarrierRelease, BarrierWait, CopyGroupEvent, DeviceCall, DeviceFunction,
    ExitEvent, FenceEvent, MbarrierEvent, TensorCells, TensorMemoryAccess, TensorMemoryEvent, WarpEvent,
    WarpKind, WarpLane,
};

/// Watches a launch ([`LaunchConfig::observer`](crate::LaunchConfig::observer)).
///
/// Every host thread that runs blocks reports events, one at a time. The events of one block come in the order of its execution.
/// Returning [`ControlFlow::Break`] ends the launch with a fault of kind [`FaultKind::Stopped`](crate::FaultKind::Stopped) that
/// names the instruction. The instruction has then had no effect yet.
///
/// The interpreter reports everything but single instructions, and the reference engine nothing else
/// ([`LaunchObserver::instruction`]).
///
/// Loads of kernel parameters are not reported as accesses: the values are known at launch.
pub trait LaunchObserver: Send {
    /// The launch begins. Nothing has run yet.
    fn begin(&mut self, _launch: &Launch) {}

    /// Whether the observer wants memory accesses. Asked once the launch has begun.
    fn wants_accesses(&self) -> bool {
        true
    }

    /// Whether the observer wants an access to this space: per block ([`LaunchObserver::block_access`]), and per thread
    /// for the threads that `block_access` returns. Asked before each access.
    fn wants_block_access(&self, _kind: AccessKind, _space: Space) -> bool {
        true
    }

    /// Threads are about to access memory. The access may still fault: its addresses have not been checked.
    fn access(&mut self, _access: &AccessEvent) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Threads of one block are about to access memory. Reporting the access as one block is cheaper than
    /// [`LaunchObserver::access`], which takes longer for this many threads than the access itself. Returns the threads
    /// to report by `access` as well. By default these are all threads.
    fn block_access(&mut self, access: &BlockAccess) -> ControlFlow<(), [u64; 16]> {
        ControlFlow::Continue(*access.threads)
    }

    /// Threads are about to arrive at a barrier of their block.
    fn barrier_arrive(&mut self, _arrival: &BarrierArrival) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Threads are about to wait at a barrier at which they arrived earlier (`barrier.cluster.wait`).
    fn barrier_wait(&mut self, _wait: &BarrierWait) {}

    /// A barrier has released the threads that waited there.
    fn barrier_release(&mut self, _release: &BarrierRelease) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Threads are about to execute a fence.
    fn fence(&mut self, _fence: &FenceEvent) {}

    /// Whether the observer wants a warp-level operation. `whole`: in each warp that executes it, all 32 lanes do so
    /// together and are members.
    fn wants_warp(&self, _kind: WarpKind, _whole: bool) -> bool {
        true
    }

    /// Lanes of a warp are about to execute a warp-level operation together.
    fn warp(&mut self, _warp: &WarpEvent) {}

    /// Threads are about to commit asynchronous copies to a group, or have waited for some groups.
    fn copy_group(&mut self, _group: &CopyGroupEvent) {}

    /// Threads wait for or commit asynchronous work (bulk copies in groups, `wgmma`, `tcgen05`), or execute `setmaxnreg`.
    fn async_step(&mut self, _step: &AsyncEvent) {}

    /// Whether the observer wants accesses to tensor memory. Asked once the launch has begun.
    fn wants_tensor_memory(&self) -> bool {
        false
    }

    /// Threads are about to access tensor memory. Reported only on request ([`LaunchObserver::wants_tensor_memory`]).
    fn tensor_memory(&mut self, _access: &TensorMemoryEvent) {}

    /// A thread is about to operate on an mbarrier object. Follows the access event of the same instruction.
    fn mbarrier(&mut self, _mbarrier: &MbarrierEvent) {}

    /// Threads of a block are about to end.
    fn exit(&mut self, _exit: &ExitEvent) {}

    /// A thread has called a device function that CUDA provides.
    fn device_call(&mut self, _call: &DeviceCall) {}

    /// Whether the observer wants operations ([`LaunchObserver::operation`]).
    fn wants_operations(&self) -> bool {
        false
    }

    /// Whether the observer wants operations at this moment, if it wants them at all. Each host thread asks after it
    /// has reported an access, an operation or the entry of a function. The answer holds for the blocks that this host
    /// thread runs, until it asks again.
    fn follows_operations(&self) -> bool {
        true
    }

    /// Threads are about to execute a step of an operation. Follows the operation's access events. Reported only on
    /// request ([`LaunchObserver::wants_operations`]).
    fn operation(&mut self, _operation: &OperationEvent) {}

    /// Threads enter a function, which has registers of its own. Reported only with operations.
    fn enter(&mut self, _function: &EnterEvent) {}

    /// Whether the observer wants the instructions of this thread ([`LaunchObserver::instruction`]). `thread` is its
    /// linear index in the block. Asked before the thread starts.
    fn wants_instructions(&self, _block: [u32; 3], _thread: u32) -> bool {
        false
    }

    /// A thread has executed an instruction. Reported on request ([`LaunchObserver::wants_instructions`]), and only by
    /// the reference engine: the interpreter joins, splits and reorders instructions. What the instruction did remains
    /// if the observer ends the launch.
    fn instruction(&mut self, _instruction: &InstructionEvent) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Creates an observer for the blocks that one host thread runs, so that several host threads can run checked
    /// blocks in parallel. The launch asks for forks only if it can undo the writes of the kernel.
    ///
    /// If the blocks prove independent and no fork reports a finding ([`LaunchObserver::has_found`]), the run counts,
    /// and `self` hears only the begin and the end. Otherwise the launch undoes all writes and runs again from the
    /// start with `self` as its observer. Returning `None` keeps `self` as the only observer.
    fn fork(&self, _launch: &Launch) -> Option<ObserverHandle> {
        None
    }

    /// The writes that the forks watched have been undone. The launch is about to run again with `self` as its observer.
    fn undone(&mut self) {}

    /// The observer has a finding. If a fork has one, the launch runs again ([`LaunchObserver::fork`]).
    fn has_found(&self) -> bool {
        true
    }

    /// Whether all blocks must run on one host thread, so that the order of events is the same in every run.
    fn wants_one_thread(&self) -> bool {
        false
    }

    /// The launch has ended, normally or with a fault.
    fn end(&mut self, _launch: &Launch) {}
}

/// A handle on an observer, shared by the host threads of a launch.
#[derive(Clone)]
pub struct ObserverHandle(Arc<Mutex<dyn LaunchObserver>>);

impl ObserverHandle {
    /// Shares an observer. Keep a clone of the [`Arc`] to read the observer's findings afterwards.
    pub fn new(observer: Arc<Mutex<impl LaunchObserver + 'static>>) -> ObserverHandle {
        ObserverHandle(observer)
    }

    /// Calls a method of the observer under its lock.
    pub fn notify<T>(&self, event: impl FnOnce(&mut dyn LaunchObserver) -> T) -> T {
        event(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for ObserverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObserverHandle")
    }
}
