//! Observers: callers that watch a launch. They see memory accesses, barriers and other events, and can stop the launch.
//!
//! The interpreter reports every access with its addresses resolved, per block or per thread, and the progress of
//! barriers (`exec/watch.rs`, `exec/notify.rs`). Events that are expensive to collect are optional: the interpreter
//! first asks the observer whether it wants them. Events may gain fields (`#[non_exhaustive]`); the enums in them are
//! exhaustive, so that a checker has to decide about each new kind. Narrowest test: `tests/observer.rs`.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use diag::Span;
use ir::{AccessKind, AsyncStep, CopyGroup, MbarrierOp, Semantics};
use isa::Space;

use crate::mask::Mask;

/// Defines an event. More fields may come, so that only this file makes one by its fields.
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

use crate::prepared::Launch;

/// Watches a launch on the interpreter ([`LaunchConfig::observer`](crate::LaunchConfig::observer)).
///
/// Every host thread that runs blocks reports events, one at a time. The events of one block come in the order of its execution.
/// Returning [`ControlFlow::Break`] ends the launch with a fault of kind [`FaultKind::Stopped`](crate::FaultKind::Stopped) that
/// names the instruction. The instruction has then had no effect yet.
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

event! {
    /// One operation's access to memory, by all threads that execute it together.
    #[derive(Clone, Debug)]
    pub struct AccessEvent<'a> {
        /// What the access does. An instruction that copies makes two or more accesses; the sources come first.
        pub kind: AccessKind,
        /// Order and scope.
        pub semantics: Semantics,
        /// The space that the instruction names; [`Space::Generic`] if none.
        pub space: Space,
        /// The instruction, in the PTX source.
        pub span: Span,
        /// The accesses of the threads that execute the instruction, in ascending order of threads. For a matrix that a
        /// warp accesses as a whole there is one entry for each row, with the thread that provides the row's address.
        pub lanes: &'a [LaneAccess],
        /// When the access completes.
        pub completion: Completion,
        /// The bytes to be written, and those in memory now.
        pub values: Values<'a>,
    }
}

/// When an access completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Before the thread continues.
    AtOnce,
    /// When the thread has waited for the `cp.async` group that contains the copy.
    Group,
    /// When the phase of an mbarrier object completes. The [`MbarrierEvent`] follows.
    Mbarrier,
    /// When the thread has waited for the bulk group that contains the copy.
    BulkGroup,
    /// When the warp has waited for the `wgmma` group that contains the operation.
    ProductGroup,
    /// When the phase completes of the mbarrier object that the thread's next `tcgen05.commit` names.
    Commit,
}

/// The bytes of an access. They are read only when the observer asks for them.
#[derive(Clone, Copy)]
pub struct Values<'a>(&'a dyn ReadValues);

/// Reads the bytes of an access, for [`Values`].
pub trait ReadValues {
    /// [`Values::stored`]
    fn stored(&self, lane: &LaneAccess) -> Option<u128>;
    /// [`Values::memory`]
    fn memory(&self, lane: &LaneAccess) -> Option<u128>;
}

impl<'a> Values<'a> {
    /// The bytes that an engine reads so.
    pub fn new(values: &'a dyn ReadValues) -> Values<'a> {
        Values(values)
    }

    /// The value that a thread is about to store, little-endian. `None` unless the access stores up to 16 bytes from registers.
    pub fn stored(&self, lane: &LaneAccess) -> Option<u128> {
        self.0.stored(lane)
    }

    /// The bytes in memory before the access, little-endian: up to 16 bytes of shared or global memory.
    pub fn memory(&self, lane: &LaneAccess) -> Option<u128> {
        self.0.memory(lane)
    }
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values")
    }
}

/// One thread's part of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneAccess {
    /// `%ctaid` of its block.
    pub block: [u32; 3],
    /// Its linear index in the block: `%tid.x` varies fastest.
    pub thread: u32,
    /// The space of the resolved address. It is generic only if the address is in no space.
    pub space: Space,
    /// The address in that space. For shared memory, an address in the owner's shared memory.
    pub address: u64,
    /// `%ctaid` of the block that owns the memory: another block of the cluster if the access is to its shared memory,
    /// otherwise `block`.
    pub owner: [u32; 3],
    /// Size in bytes. 0 if a copy copies nothing.
    pub bytes: u64,
}

/// A memory access of one operation by threads of one block, with the same size and space for each thread. It is a
/// load, a store or an atomic operation that completes before the threads continue. Launches with clusters of several
/// blocks do not report it.
#[derive(Clone, Copy, Debug)]
pub struct BlockAccess<'a> {
    /// What it does.
    pub kind: AccessKind,
    /// Order and scope.
    pub semantics: Semantics,
    /// The instruction, in the PTX source.
    pub span: Span,
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// The space of the resolved addresses. Never generic.
    pub space: Space,
    /// Bytes for each thread.
    pub bytes: u64,
    /// The threads that execute it: one bit for each thread of the block.
    pub threads: &'a [u64; 16],
    /// The address of each thread.
    pub addresses: BlockAddresses<'a>,
}

impl BlockAccess<'_> {
    /// Calls `f` with the address and size of each part of the accessed memory until `f` returns false. Returns whether
    /// every call returned true. Memory that several threads access may be passed only once.
    pub fn parts(&self, mut f: impl FnMut(u64, u64) -> bool) -> bool {
        let (bytes, threads) = (self.bytes, Mask(*self.threads));
        let BlockAddresses::Even { start, width, step, pitch } = self.addresses else {
            return threads.into_iter().all(|thread| f(self.addresses.of(thread as u32), bytes));
        };
        let end =
            threads.words().last().map_or(0, |last| 64 * threads.words().len() as u32 - last.leading_zeros());
        let are_all = threads.count() == end;
        if !are_all || step != 0 && step != bytes {
            return threads.into_iter().all(|thread| f(self.addresses.of(thread as u32), bytes));
        }
        let is_linear = pitch == step.wrapping_mul(width.into());
        let width = if is_linear { end } else { width.min(end) }.max(1);
        // With a pitch of 0 all rows access the same memory: one row is enough.
        let end = if pitch == 0 { width.min(end) } else { end };
        (0..end).step_by(width as usize).zip(0u64..).all(|(first, row)| {
            let count = if step == 0 { 1 } else { width.min(end - first).into() };
            f(start.wrapping_add(row.wrapping_mul(pitch)), count * bytes)
        })
    }
}

impl BlockAddresses<'_> {
    /// The address of a thread.
    pub fn of(&self, thread: u32) -> u64 {
        match *self {
            BlockAddresses::Each(all) => all.get(thread as usize).copied().unwrap_or(0),
            BlockAddresses::Even { start, width, step, pitch } => {
                let (column, row) = (u64::from(thread % width), u64::from(thread / width));
                start.wrapping_add(column.wrapping_mul(step)).wrapping_add(row.wrapping_mul(pitch))
            }
        }
    }
}

/// The addresses of a block's threads, in the resolved space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAddresses<'a> {
    /// Thread `t` has the address `start + t % width * step + t / width * pitch`.
    Even {
        /// The address of thread 0, even if thread 0 does not execute the operation.
        start: u64,
        /// Threads in a row.
        width: u32,
        /// From one thread of a row to the next, modulo 2^64.
        step: u64,
        /// From one row to the next, modulo 2^64.
        pitch: u64,
    },
    /// One address for each thread. The entries of threads that do not execute the operation are arbitrary.
    Each(&'a [u64]),
}

event! {
    /// Threads arrive at a barrier (`bar`, `barrier`, `barrier.cluster`).
    #[derive(Clone, Debug, PartialEq)]
    pub struct BarrierArrival<'a> {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// The barrier's number. 16 is the barrier of the cluster.
        pub barrier: u64,
        /// Whether the threads wait at the barrier (not `.arrive`).
        pub waits: bool,
        /// The number of threads that the barrier expects. `None`: all threads of the block, or of the cluster.
        pub count: Option<u64>,
        /// The instruction.
        pub span: Span,
        /// Their indices in the block, ascending.
        pub threads: &'a [u32],
    }
}

event! {
    /// Threads wait at a barrier at which they arrived earlier.
    #[derive(Clone, Debug, PartialEq)]
    pub struct BarrierWait<'a> {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// The barrier's number. 16 is the barrier of the cluster.
        pub barrier: u64,
        /// The instruction.
        pub span: Span,
        /// Their indices in the block, ascending.
        pub threads: &'a [u32],
    }
}

event! {
    /// A barrier is complete.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BarrierRelease {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// The barrier's number. 16 is the barrier of the cluster.
        pub barrier: u64,
        /// The instruction that completed the barrier: that of the last thread to arrive, or one that ended threads.
        pub span: Span,
    }
}

event! {
    /// Threads execute `fence` or `membar`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct FenceEvent<'a> {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// Order and scope. A proxy fence has no scope.
        pub semantics: Semantics,
        /// The instruction.
        pub span: Span,
        /// Their indices in the block, ascending.
        pub threads: &'a [u32],
    }
}

/// What a warp-level operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpKind {
    /// `bar.warp.sync`
    Sync,
    /// `shfl`
    Shuffle,
    /// Votes, matches, reductions, elections.
    Collective,
    /// A matrix operation, which all lanes of the warp execute.
    Matrix,
}

event! {
    /// Lanes of a block execute a warp-level operation.
    #[derive(Clone, Debug, PartialEq)]
    pub struct WarpEvent<'a> {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// What it does.
        pub kind: WarpKind,
        /// The instruction.
        pub span: Span,
        /// The lanes that execute the operation together, in ascending order.
        pub lanes: &'a [WarpLane],
    }
}

event! {
    /// A lane's part of a warp-level operation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct WarpLane {
        /// Its index in the block.
        pub thread: u32,
        /// The member mask; `None` where the instruction has none.
        pub members: Option<u32>,
        /// For a shuffle: the thread that this lane reads from.
        pub source: Option<u32>,
    }
}

event! {
    /// Threads commit asynchronous copies, or have waited for them.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CopyGroupEvent<'a> {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// What they do.
        pub group: CopyGroup,
        /// The instruction.
        pub span: Span,
        /// Their indices in the block, ascending.
        pub threads: &'a [u32],
    }
}

event! {
    /// Threads wait for asynchronous work or commit it; see [`AsyncStep`].
    #[derive(Clone, Debug, PartialEq)]
    pub struct AsyncEvent<'a> {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// What they do.
        pub step: AsyncStep,
        /// The instruction.
        pub span: Span,
        /// Their indices in the block, ascending.
        pub threads: &'a [u32],
    }
}

/// What an instruction does to tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorMemoryAccess {
    /// `tcgen05.ld`
    Load,
    /// `tcgen05.st`
    Store,
    /// `tcgen05.cp`, from shared memory; `tcgen05.shift`, from other cells.
    Copy,
    /// `tcgen05.mma` that overwrites D.
    Product,
    /// `tcgen05.mma` that adds to D.
    Accumulate,
}

event! {
    /// Threads access tensor memory. Misuse faults after this event.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TensorMemoryEvent<'a> {
        /// `%ctaid` of their block.
        pub block: [u32; 3],
        /// The instruction.
        pub span: Span,
        /// What they do.
        pub access: TensorMemoryAccess,
        /// The cells that they access.
        pub cells: &'a [TensorCells],
        /// The source of each entry of `cells`, if the sources are in tensor memory, too. For a row of D this is the row of A.
        pub sources: &'a [TensorCells],
    }
}

event! {
    /// A range of columns in one lane of tensor memory.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TensorCells {
        /// The thread, by its index in the block.
        pub thread: u32,
        /// For loads and stores: the index of the register in the operand.
        pub register: u32,
        /// `%ctaid` of the block that the memory belongs to.
        pub owner: [u32; 3],
        /// The lane.
        pub lane: u32,
        /// The columns of the lane.
        pub columns: std::ops::Range<u32>,
    }
}

event! {
    /// A thread does something to an mbarrier object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MbarrierEvent {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// Its index in the block.
        pub thread: u32,
        /// The instruction.
        pub span: Span,
        /// What it does.
        pub op: MbarrierOp,
        /// Whether a copy performs the operation, not the thread: the complete-tx of a bulk copy.
        pub by_copy: bool,
        /// The address of the object in its owner's shared memory.
        pub address: u64,
        /// `%ctaid` of the block that owns the object.
        pub owner: [u32; 3],
        /// Whether an object was there.
        pub exists: bool,
        /// Whether the operation completes the phase.
        pub completes: bool,
        /// Whether the tested phase is complete.
        pub over: bool,
        /// How many later phases are complete as well.
        pub later: u32,
    }
}

event! {
    /// Threads of a block end.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ExitEvent<'a> {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// The instruction.
        pub span: Span,
        /// Their indices in the block, ascending.
        pub threads: &'a [u32],
    }
}

/// What a thread called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFunction {
    /// `malloc`: the size, and the address that it returned.
    Malloc {
        /// The requested size.
        bytes: u64,
        /// The address of the allocation. 0 if there was no room.
        address: u64,
    },
    /// `free` of this address.
    Free {
        /// The address of the allocation, or 0.
        address: u64,
    },
    /// The thread arrives at the barrier of the grid (`cudaCGSynchronize`).
    GridSynchronize,
}

event! {
    /// A thread has called a device function that CUDA provides.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DeviceCall {
        /// `%ctaid` of the block.
        pub block: [u32; 3],
        /// Its index in the block.
        pub thread: u32,
        /// The call.
        pub span: Span,
        /// The called function.
        pub function: DeviceFunction,
    }
}

/// How the results of a step depend on its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// On all bits of all sources.
    Compute,
    /// The result is the source, bit for bit, in its lowest bits.
    Copy {
        /// The number of these bits.
        bits: u32,
    },
    /// The result is a concatenation of the sources, with the first source in the lowest bits.
    Pack {
        /// The bits of each source.
        bits: u32,
    },
    /// The results are consecutive parts of the source, with the first result from the lowest bits.
    Unpack {
        /// The bits of each result.
        bits: u32,
    },
    /// On nothing.
    Defined,
    /// The results are elements of memory: those of the preceding access event.
    Load {
        /// The bytes of each element.
        bytes: u32,
    },
    /// The sources are written to elements of memory.
    Store {
        /// The bytes of each element.
        bytes: u32,
    },
    /// Memory is read, modified and written.
    Atomic,
    /// Memory is copied as the preceding access events describe.
    CopyMemory,
    /// On the source in the lane that [`WarpLane::source`] names.
    Shuffle,
    /// On the sources in all lanes of the warp.
    Collective,
    /// On all rows of memory that the warp reads.
    LoadMatrix,
    /// The sources in all lanes of the warp are written to memory.
    StoreMatrix,
    /// A branch, a barrier or a call. Its results are always defined.
    Decide,
}

/// The lanes that execute together, and their threads.
#[derive(Clone, Copy)]
pub struct LaneSet<'a> {
    words: &'a [u64],
    who: &'a dyn Fn(usize) -> ([u32; 3], u32),
}

impl<'a> LaneSet<'a> {
    /// Lanes by [`LaneSet::words`], whose threads are found by [`LaneSet::who`].
    pub fn new(words: &'a [u64], who: &'a dyn Fn(usize) -> ([u32; 3], u32)) -> LaneSet<'a> {
        LaneSet { words, who }
    }

    /// One bit for each of up to 1024 lanes.
    pub fn words(&self) -> &[u64] {
        self.words
    }

    /// `%ctaid` of a lane's block, and the lane's index in that block.
    pub fn who(&self, lane: usize) -> ([u32; 3], u32) {
        (self.who)(lane)
    }
}

impl fmt::Debug for LaneSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x?}", self.words)
    }
}

event! {
    /// What a step of an operation does to registers.
    ///
    /// A window and a number in the window identify a register. Numbers also identify literals, special registers and
    /// intermediate results. [`EnterEvent`] lists the registers that a function may read before it writes them.
    #[derive(Clone, Copy)]
    pub struct OperationEvent<'a> {
        /// The instruction.
        pub span: Span,
        /// The gang. Lanes that can execute together have the same number.
        pub gang: usize,
        /// The register window of the call.
        pub window: u32,
        /// How the results depend on `uses`.
        pub kind: OperationKind,
        /// Registers that the results depend on, or that are stored.
        pub uses: &'a [u32],
        /// Registers that are written.
        pub defs: &'a [Option<u32>],
        /// One bit for each entry of `defs`: whether it is a predicate.
        pub predicates: u32,
        /// Registers that decide where or whether something happens: addresses, guards, branch conditions, masks.
        pub decides: &'a [u32],
        /// The lanes that execute it.
        pub lanes: LaneSet<'a>,
        /// The guard, if the operation only writes registers. For other operations the guard is reported as a separate step
        /// of kind [`OperationKind::Decide`].
        pub guard: Option<Guard<'a>>,
        values: &'a dyn Fn(usize, usize) -> u64,
        previous: &'a dyn Fn(usize, usize) -> u64,
        compute: Option<Compute<'a>>,
        combine: &'a dyn Fn(usize, &[u64; 32]) -> Option<u64>,
    }
}

/// The guard of an operation.
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    /// The predicate register.
    pub slot: u32,
    /// The lanes that reach the operation, whether or not they execute it.
    pub lanes: LaneSet<'a>,
}

/// Computes the results of an operation from the values of its uses.
pub type Compute<'a> = &'a dyn Fn(&[u64]) -> [u64; 2];

impl OperationEvent<'_> {
    /// The value of use `index` in a lane. 0 if there is no such use.
    pub fn value(&self, index: usize, lane: usize) -> u64 {
        (self.values)(index, lane)
    }

    /// The old value of entry `index` of `defs` in a lane.
    pub fn previous(&self, index: usize, lane: usize) -> u64 {
        (self.previous)(index, lane)
    }

    /// The result of a vote or reduction in a lane if the lanes of its warp had these values. `None` for other operations.
    pub fn combine(&self, lane: usize, values: &[u64; 32]) -> Option<u64> {
        (self.combine)(lane, values)
    }

    /// The results for other values of the uses. `None` if the number of values differs or the operation cannot be evaluated.
    pub fn compute(&self, values: &[u64]) -> Option<[u64; 2]> {
        self.compute.filter(|_| values.len() == self.uses.len()).map(|compute| compute(values))
    }
}

event! {
    /// Lanes enter a function.
    #[derive(Clone, Copy)]
    pub struct EnterEvent<'a> {
        /// As in [`OperationEvent`].
        pub gang: usize,
        /// As in [`OperationEvent`].
        pub window: u32,
        /// Whether the function is the kernel: a block begins.
        pub is_kernel: bool,
        /// The function in the PTX source.
        pub span: Span,
        /// Registers that may be read before they are written, with their names. Parameters are not included.
        pub unwritten: &'a [(u32, &'a str)],
        /// The lanes that enter.
        pub lanes: LaneSet<'a>,
    }
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

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("slot", &self.slot).field("lanes", &self.lanes).finish_non_exhaustive()
    }
}

impl fmt::Debug for OperationEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationEvent")
            .field("span", &self.span)
            .field("kind", &self.kind)
            .field("uses", &self.uses)
            .field("defs", &self.defs)
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EnterEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterEvent")
            .field("span", &self.span)
            .field("is_kernel", &self.is_kernel)
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ObserverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObserverHandle")
    }
}
