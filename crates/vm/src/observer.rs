//! Who may watch a launch from outside: sees accesses to memory and barriers, and can stop the run.
//!
//! An observer is told every access with its addresses resolved, block by block or thread by thread, and what becomes of barriers
//! (`exec/watch.rs`, `exec/tell.rs`). It says what it wants to be told; what takes time to find out is asked for first. Narrowest test:
//! `tests/observer.rs`.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use diag::Span;
use ir::{AccessKind, AsyncStep, CopyGroup, MbarrierOp, Semantics};
use isa::Space;

use crate::grid::Launch;
use crate::mask::Mask;

/// Watches a launch on the interpreter ([`LaunchConfig::observer`](crate::LaunchConfig::observer)).
///
/// Events come from every host thread that runs blocks, one at a time; those of one block come in the order in which it
/// executes. Returning [`ControlFlow::Break`] ends the launch with a fault of the kind
/// [`FaultKind::Stopped`](crate::FaultKind::Stopped) that names the instruction, before that has done anything.
///
/// Parameters of kernels are known when it is launched: reading them is no access.
pub trait LaunchObserver: Send {
    /// The launch begins: nothing has run.
    fn begin(&mut self, _launch: &Launch) {}

    /// Whether it wants to be told of accesses to memory; asked when the launch has begun.
    fn wants_accesses(&self) -> bool {
        true
    }

    /// Whether it wants to be told of an access of whole blocks to a space ([`LaunchObserver::block_access`]), and of what remains of it
    /// thread by thread. Asked before each.
    fn wants_block_access(&self, _kind: AccessKind, _space: Space) -> bool {
        true
    }

    /// Threads are about to access memory. The access may still fault: its addresses have not been checked.
    fn access(&mut self, _access: &AccessEvent) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// The same of a block, as a whole: what [`LaunchObserver::access`] would be told of so many threads takes longer than the access.
    /// Returns the threads of which that is to be told nevertheless: all, unless this is implemented.
    fn block_access(&mut self, access: &BlockAccess) -> ControlFlow<(), [u64; 16]> {
        ControlFlow::Continue(*access.threads)
    }

    /// Threads are about to arrive at a barrier of their block.
    fn barrier_arrive(&mut self, _arrival: &BarrierArrival) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Threads are about to wait at a barrier that they have arrived at before (`barrier.cluster.wait`).
    fn barrier_wait(&mut self, _wait: &BarrierWait) {}

    /// A barrier has let those go that waited there.
    fn barrier_release(&mut self, _release: &BarrierRelease) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Threads are about to execute a fence.
    fn fence(&mut self, _fence: &FenceEvent) {}

    /// Whether it wants to be told of a warp-level operation. `whole`: all 32 lanes of each warp that executes it do so together, and are
    /// members.
    fn wants_warp(&self, _kind: WarpKind, _whole: bool) -> bool {
        true
    }

    /// Lanes of a warp are about to execute a warp-level operation together.
    fn warp(&mut self, _warp: &WarpEvent) {}

    /// Threads are about to commit asynchronous copies to a group, or have waited for some.
    fn copy_group(&mut self, _group: &CopyGroupEvent) {}

    /// Threads say something about work that they have given to others: bulk copies in groups, `wgmma`, `tcgen05`; or `setmaxnreg`.
    fn async_step(&mut self, _step: &AsyncEvent) {}

    /// Whether it wants to be told of accesses to tensor memory; asked when the launch has begun.
    fn wants_tensor_memory(&self) -> bool {
        false
    }

    /// Threads are about to access tensor memory. Only for those who want it.
    fn tensor_memory(&mut self, _access: &TensorMemoryEvent) {}

    /// A thread is about to do something to an mbarrier object: after the access of the same instruction.
    fn mbarrier(&mut self, _mbarrier: &MbarrierEvent) {}

    /// Threads of a block are about to end.
    fn exit(&mut self, _exit: &ExitEvent) {}

    /// A thread has called a function that CUDA provides.
    fn device_call(&mut self, _call: &DeviceCall) {}

    /// Whether it wants to be told of operations ([`LaunchObserver::operation`]).
    fn wants_operations(&self) -> bool {
        false
    }

    /// Whether it wants to be told of operations now, if it does at all. Each host thread asks when it has told of an access, an
    /// operation or the beginning of a function, and what it hears holds for the blocks that it runs until it asks again.
    fn follows_operations(&self) -> bool {
        true
    }

    /// Threads are about to execute a step of an operation: behind its accesses. Only for those who want it.
    fn operation(&mut self, _operation: &OperationEvent) {}

    /// Threads begin a function, with registers of their own. Only for those who want operations.
    fn enter(&mut self, _function: &EnterEvent) {}

    /// Another observer, for the blocks that one host thread runs, where blocks are not seen to depend on each other. If no such observer
    /// has found anything in the end ([`LaunchObserver::has_found`]), that is all; `self` hears nothing but the beginning and the end. Else
    /// all is undone, and `self` watches the launch from the start. `None`: it always does.
    fn fork(&self, _launch: &Launch) -> Option<ObserverHandle> {
        None
    }

    /// What such observers saw has been undone: the launch is about to run again, and `self` watches it.
    fn undone(&mut self) {}

    /// It has something to say that others must not be left without.
    fn has_found(&self) -> bool {
        true
    }

    /// Whether all blocks are to run on one host thread when it watches, so that it hears the same every time.
    fn wants_one_thread(&self) -> bool {
        false
    }

    /// The launch has ended, by itself or with a fault.
    fn end(&mut self, _launch: &Launch) {}
}

/// One operation's access to memory, by all threads that execute it together.
#[derive(Clone, Debug)]
pub struct AccessEvent<'a> {
    /// What it does. An instruction that copies is two accesses or more: sources come first.
    pub kind: AccessKind,
    /// Order and scope.
    pub semantics: Semantics,
    /// The space that the instruction names; [`Space::Generic`] if none.
    pub space: Space,
    /// The instruction, in the PTX source.
    pub span: Span,
    /// Who accesses what, in ascending order of threads; threads that do not execute the instruction are not here. Of what a
    /// warp reads or writes as a whole (matrices) it is the thread that gives the address, once for each row.
    pub lanes: &'a [LaneAccess],
    /// When it is done.
    pub completion: Completion,
    /// What is about to be written, and what is there.
    pub values: Values<'a>,
}

/// When an access is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Before the thread goes on.
    AtOnce,
    /// When the thread has waited for the group of copies that it belongs to.
    Group,
    /// When the phase of an mbarrier object is over: its [`MbarrierEvent`] follows.
    Mbarrier,
    /// When the thread has waited for the group of bulk copies that it belongs to.
    BulkGroup,
    /// When the warp has waited for the group of `wgmma` that it belongs to.
    ProductGroup,
    /// When the phase of the mbarrier object is over that the thread's next `tcgen05.commit` names.
    Commit,
}

/// The bytes that an access is about. Nobody looks at them unless asked.
#[derive(Clone, Copy)]
pub struct Values<'a>(pub(crate) &'a dyn ReadValues);

/// Finds the bytes of an access.
pub(crate) trait ReadValues {
    fn stored(&self, lane: &LaneAccess) -> Option<u128>;
    fn memory(&self, lane: &LaneAccess) -> Option<u128>;
}

impl Values<'_> {
    /// What a thread is about to store, the byte of the lowest address lowest; `None` unless it is a store of up to 16 bytes from
    /// registers.
    pub fn stored(&self, lane: &LaneAccess) -> Option<u128> {
        self.0.stored(lane)
    }

    /// What is in memory now where a thread accesses it: up to 16 bytes of shared or global memory.
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
    /// Its index in the block: `%tid.x` first.
    pub thread: u32,
    /// The space that the address leads to: never generic, unless it leads nowhere.
    pub space: Space,
    /// The address in that space; of shared memory, in that of its owner.
    pub address: u64,
    /// `%ctaid` of the block that the memory belongs to: of the shared memory of another block of the cluster that one, else `block`.
    pub owner: [u32; 3],
    /// Size in bytes; 0 where a copy copies nothing.
    pub bytes: u64,
}

/// An operation's access to memory by threads of one block, each as many bytes of one space: a load, a store or an atomic
/// operation that is done before the threads go on, and not by blocks of a cluster.
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
    /// The space that the addresses lead to: never generic.
    pub space: Space,
    /// Bytes of each thread.
    pub bytes: u64,
    /// Who executes it: a bit for each thread of the block.
    pub threads: &'a [u64; 16],
    /// Where.
    pub addresses: BlockAddresses<'a>,
}

impl BlockAccess<'_> {
    /// Calls `f` with the address and the size of each part of memory that makes up the access, until it says no; true if it never has.
    /// What several threads access may come once.
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
        // Rows of threads that access the same are looked at once.
        let end = if pitch == 0 { width.min(end) } else { end };
        (0..end).step_by(width as usize).zip(0u64..).all(|(first, row)| {
            let count = if step == 0 { 1 } else { width.min(end - first).into() };
            f(start.wrapping_add(row.wrapping_mul(pitch)), count * bytes)
        })
    }
}

impl BlockAddresses<'_> {
    /// That of a thread.
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

/// The addresses of a block's threads, in the space that they lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAddresses<'a> {
    /// That of thread `t` is `start + t % width * step + t / width * pitch`.
    Even {
        /// Of thread 0, which need not be among those that execute it.
        start: u64,
        /// Threads of a row.
        width: u32,
        /// From one thread of a row to the next, modulo 2^64.
        step: u64,
        /// From one row to the next, modulo 2^64.
        pitch: u64,
    },
    /// By thread; anything for those that do not execute it.
    Each(&'a [u64]),
}

/// Threads arrive at a barrier (`bar`, `barrier`, `barrier.cluster`).
#[derive(Clone, Debug, PartialEq)]
pub struct BarrierArrival<'a> {
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// The barrier's number; 16 for that of the cluster.
    pub barrier: u64,
    /// They wait there: not `.arrive`.
    pub waits: bool,
    /// For so many threads; for all of the block, or the cluster, if absent.
    pub count: Option<u64>,
    /// The instruction.
    pub span: Span,
    /// Their indices in the block, ascending.
    pub threads: &'a [u32],
}

/// Threads wait at a barrier at which they have arrived before.
#[derive(Clone, Debug, PartialEq)]
pub struct BarrierWait<'a> {
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// The barrier's number; 16 for that of the cluster.
    pub barrier: u64,
    /// The instruction.
    pub span: Span,
    /// Their indices in the block, ascending.
    pub threads: &'a [u32],
}

/// A barrier is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierRelease {
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// The barrier's number; 16 for that of the cluster.
    pub barrier: u64,
    /// The instruction that completed it: of the last to arrive, or one that ended threads.
    pub span: Span,
}

/// Threads execute `fence` or `membar`.
#[derive(Clone, Debug, PartialEq)]
pub struct FenceEvent<'a> {
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// Order and scope; a fence between proxies has no scope.
    pub semantics: Semantics,
    /// The instruction.
    pub span: Span,
    /// Their indices in the block, ascending.
    pub threads: &'a [u32],
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
    /// Of matrices: all lanes of the warp belong to it.
    Matrix,
}

/// Lanes of a block execute a warp-level operation.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpEvent<'a> {
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// What it does.
    pub kind: WarpKind,
    /// The instruction.
    pub span: Span,
    /// Who executes it together, in ascending order.
    pub lanes: &'a [WarpLane],
}

/// A lane's part of a warp-level operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpLane {
    /// Its index in the block.
    pub thread: u32,
    /// The member mask; `None` where the instruction has none.
    pub members: Option<u32>,
    /// Of a shuffle, the thread that it reads from.
    pub source: Option<u32>,
}

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

/// Threads wait for asynchronous work, or give it an end; see [`AsyncStep`].
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

/// What is done to tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorMemoryAccess {
    /// `tcgen05.ld`
    Load,
    /// `tcgen05.st`
    Store,
    /// `tcgen05.cp`, from shared memory; `tcgen05.shift`, from other cells.
    Copy,
    /// `tcgen05.mma` that writes D.
    Product,
    /// The same, added to what D is.
    Accumulate,
}

/// Threads access tensor memory; what is misused faults afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMemoryEvent<'a> {
    /// `%ctaid` of their block.
    pub block: [u32; 3],
    /// The instruction.
    pub span: Span,
    /// What they do.
    pub access: TensorMemoryAccess,
    /// To which cells.
    pub cells: &'a [TensorCells],
    /// What these are made of, one for each, if that is in tensor memory, too: of a row of D the row of A.
    pub sources: &'a [TensorCells],
}

/// Cells of a lane of tensor memory, by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorCells {
    /// The thread, by its index in the block.
    pub thread: u32,
    /// Of loads and stores the register, by its place in the operand.
    pub register: u32,
    /// `%ctaid` of the block that the memory belongs to.
    pub owner: [u32; 3],
    /// The lane.
    pub lane: u32,
    /// Which cells of it.
    pub columns: std::ops::Range<u32>,
}

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
    /// The copy that completes it, and not the thread: the transactions of a bulk copy.
    pub by_copy: bool,
    /// The object, in shared memory of its owner.
    pub address: u64,
    /// `%ctaid` of the block that it belongs to.
    pub owner: [u32; 3],
    /// There was an object.
    pub exists: bool,
    /// By this the phase ends.
    pub completes: bool,
    /// The phase that was looked at is over.
    pub over: bool,
    /// So many later ones are, too.
    pub later: u32,
}

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

/// What a thread called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFunction {
    /// `malloc`: bytes, and the address, 0 if there was no room.
    Malloc {
        /// Asked for.
        bytes: u64,
        /// Of the allocation.
        address: u64,
    },
    /// `free` of this address.
    Free {
        /// Of the allocation, or 0.
        address: u64,
    },
    /// The barrier of the grid (`cudaCGSynchronize`): the thread arrives there.
    GridSynchronize,
}

/// A thread has called a function that CUDA provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCall {
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// Its index in the block.
    pub thread: u32,
    /// The call.
    pub span: Span,
    /// What it called.
    pub function: DeviceFunction,
}

/// How the results of a step depend on what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// On all of it.
    Compute,
    /// They are what is read, bit for bit: so many of its lowest bits.
    Copy {
        /// So many.
        bits: u32,
    },
    /// What is read stands side by side in it, so many bits each, the first lowest.
    Pack {
        /// Of each.
        bits: u32,
    },
    /// Each is so many bits of what is read, the first the lowest.
    Unpack {
        /// Of each.
        bits: u32,
    },
    /// On nothing.
    Defined,
    /// They are elements of memory: of the access that was told before.
    Load {
        /// Bytes of each.
        bytes: u32,
    },
    /// Elements of memory are written.
    Store {
        /// Bytes of each.
        bytes: u32,
    },
    /// Memory is read, combined and written.
    Atomic,
    /// Memory is copied, as the accesses say that were told before.
    CopyMemory,
    /// On what the lane that [`WarpLane::source`] names has.
    Shuffle,
    /// On what all lanes of the warp have.
    Collective,
    /// On all rows of memory that the warp reads.
    LoadMatrix,
    /// What all lanes of the warp have is written.
    StoreMatrix,
    /// A branch, a barrier, a call: what is written is defined.
    Decide,
}

/// The lanes that execute together, and who they are.
#[derive(Clone, Copy)]
pub struct LaneSet<'a> {
    pub(crate) words: &'a [u64],
    pub(crate) who: &'a dyn Fn(usize) -> ([u32; 3], u32),
}

impl LaneSet<'_> {
    /// A bit for each of up to 1024 lanes.
    pub fn words(&self) -> &[u64] {
        self.words
    }

    /// `%ctaid` of a lane's block, and its index there.
    pub fn who(&self, lane: usize) -> ([u32; 3], u32) {
        (self.who)(lane)
    }
}

impl fmt::Debug for LaneSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x?}", self.words)
    }
}

/// What a step of an operation does to registers.
///
/// A register is named by a window and a number in it. Numbers also stand for literals, special registers and intermediate
/// results; what is read at the entry of a function before it is written is told with [`EnterEvent`].
#[derive(Clone, Copy)]
pub struct OperationEvent<'a> {
    /// The instruction.
    pub span: Span,
    /// Which lanes: the same number for those that can execute together.
    pub gang: usize,
    /// The registers of a call of a function.
    pub window: u32,
    /// How results depend on what is read.
    pub kind: OperationKind,
    /// What is read for results, and stored.
    pub uses: &'a [u32],
    /// What is written.
    pub defs: &'a [Option<u32>],
    /// Predicates, by the index in `defs`: one bit each.
    pub predicates: u32,
    /// What decides where or whether something happens: addresses, guards, branches, masks.
    pub decides: &'a [u32],
    /// Who executes it.
    pub lanes: LaneSet<'a>,
    /// The guard, where the operation does nothing but give registers values; of others it is a step of its own, which decides.
    pub guard: Option<Guard<'a>>,
    pub(crate) values: &'a dyn Fn(usize, usize) -> u64,
    pub(crate) previous: &'a dyn Fn(usize, usize) -> u64,
    pub(crate) compute: Option<Compute<'a>>,
    pub(crate) combine: &'a dyn Fn(usize, &[u64; 32]) -> Option<u64>,
}

/// What says who executes an operation.
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    /// A predicate.
    pub slot: u32,
    /// Who comes to the operation, and executes it or not.
    pub lanes: LaneSet<'a>,
}

/// The results of an operation for values of its uses.
pub(crate) type Compute<'a> = &'a dyn Fn(&[u64]) -> [u64; 2];

impl OperationEvent<'_> {
    /// The value of a use, by its index, in a lane; 0 where there is none.
    pub fn value(&self, index: usize, lane: usize) -> u64 {
        (self.values)(index, lane)
    }

    /// What a lane has where a result goes, by its index in `defs`, before.
    pub fn previous(&self, index: usize, lane: usize) -> u64 {
        (self.previous)(index, lane)
    }

    /// The result in a lane of a vote or a reduction if the lanes of its warp had these values; `None` of other operations.
    pub fn combine(&self, lane: usize, values: &[u64; 32]) -> Option<u64> {
        (self.combine)(lane, values)
    }

    /// What the results would be of other values of the uses, of as many; `None` where that cannot be asked for.
    pub fn compute(&self, values: &[u64]) -> Option<[u64; 2]> {
        self.compute.filter(|_| values.len() == self.uses.len()).map(|compute| compute(values))
    }
}

/// Lanes begin a function.
#[derive(Clone, Copy)]
pub struct EnterEvent<'a> {
    /// As of [`OperationEvent`].
    pub gang: usize,
    /// As of [`OperationEvent`].
    pub window: u32,
    /// A kernel begins, and with it a block.
    pub is_kernel: bool,
    /// Where the function stands.
    pub span: Span,
    /// Registers that may be read before they are written, with their names; parameters are not among them.
    pub unwritten: &'a [(u32, &'a str)],
    /// Who begins.
    pub lanes: LaneSet<'a>,
}

/// A handle on an observer, shared by the host threads of a launch.
#[derive(Clone)]
pub struct ObserverHandle(Arc<Mutex<dyn LaunchObserver>>);

impl ObserverHandle {
    /// Shares an observer; keep a clone of the [`Arc`] to ask it afterwards.
    pub fn new(observer: Arc<Mutex<impl LaunchObserver + 'static>>) -> ObserverHandle {
        ObserverHandle(observer)
    }

    /// Tells it something.
    pub(crate) fn notify<T>(&self, event: impl FnOnce(&mut dyn LaunchObserver) -> T) -> T {
        event(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for ObserverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObserverHandle")
    }
}
