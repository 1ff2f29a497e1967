//! Events of threads that wait for others or for asynchronous work, and of their calls and ends.

use diag::Span;
use ir::{AsyncStep, CopyGroup, MbarrierOp, Semantics};
use isa::Space;

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
    /// The device runtime has stored a result for it.
    Stored {
        /// Where: global, shared or local memory.
        space: Space,
        /// The address in that space.
        address: u64,
        /// The size.
        bytes: u64,
    },
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
