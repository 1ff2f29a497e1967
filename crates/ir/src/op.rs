//! Lowered code: blocks of operations on slots.
//!
//! A *slot* is a place of the register file that holds one value for each lane. Registers of the PTX source,
//! literals and special registers all become slots, so that an engine has one kind of operand.

use check::module::{FuncId, RegId, VarId};
use diag::Span;
use isa::{Form, Picks, Space, SpecialRegister, Type, Validity};
use smallvec::SmallVec;

use crate::semantics::Semantics;
use crate::tensor_memory::TensorMemoryOp;

/// A slot of the function's register window: index into [`Function::slots`](crate::Function::slots).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

impl Slot {
    /// The slot as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A block of the control-flow graph: index into [`Function::blocks`](crate::Function::blocks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

impl BlockId {
    /// The block as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Width of a slot's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// A predicate: one bit.
    Pred,
    /// Two bytes; holds 8-bit values too.
    W16,
    /// Four bytes.
    W32,
    /// Eight bytes. 128-bit registers are two of these, low half first.
    W64,
}

impl Width {
    /// The width that holds values of a type (of one half of it for 128 bits).
    pub fn of(ty: Type) -> Width {
        match ty {
            Type::Pred => Width::Pred,
            _ => match ty.bits() {
                0..=16 => Width::W16,
                17..=32 => Width::W32,
                _ => Width::W64,
            },
        }
    }

    /// Bytes of one element; 0 for predicates, which are bits.
    pub fn bytes(self) -> usize {
        match self {
            Width::Pred => 0,
            Width::W16 => 2,
            Width::W32 => 4,
            Width::W64 => 8,
        }
    }

    /// Bits of one element.
    pub fn bits(self) -> u32 {
        match self {
            Width::Pred => 1,
            other => other.bytes() as u32 * 8,
        }
    }

    /// `value` cut to this width.
    pub fn truncate(self, value: u64) -> u64 {
        match self {
            Width::W64 => value,
            other => value & ((1 << other.bits()) - 1),
        }
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotKind {
    /// A register that is live across blocks, or any if values share no slots.
    Register(RegId),
    /// One half of a 128-bit register: 0 low, 1 high.
    Half(RegId, u8),
    /// The carry flag `CC.CF`.
    Carry,
    /// Where the thread's stack ended when the function was called.
    StackEntry,
    /// A literal: the same for all lanes, never written.
    Constant(u64),
    /// A special register that does not change while a block runs; set when the function is entered.
    Special(SpecialRegister),
    /// A temporary, or registers that live within one block only (several may share the slot).
    Temporary,
    /// Written by the prologue alone.
    Invariant,
}

/// Description of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotInfo {
    /// Width of its elements.
    pub width: Width,
    /// What it holds.
    pub kind: SlotKind,
}

/// `@p` / `@!p`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate.
    pub slot: Slot,
    /// Execute where it is false.
    pub negated: bool,
}

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A slot of 4 or 8 bytes.
    Slot(Slot),
    /// A variable; the engine knows its address.
    Variable(VarId),
    /// The i-th parameter of a kernel, in `.param` space.
    KernelParam(u32),
    /// The i-th parameter of the function that is being executed: in its caller's local memory.
    FrameParam(u32),
    /// The i-th return parameter of the function that is being executed: in its caller's local memory.
    FrameReturn(u32),
    /// A `.local` or `.param` variable of this function: byte offset in its frame of local memory.
    Frame(u32),
    /// A function (function pointers).
    Function(FuncId),
    /// Zero: the offset is the address.
    Zero,
}

/// An address: base plus offset in bytes, in a state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// State space of the access.
    pub space: Space,
    /// Start.
    pub base: Base,
    /// Added to the start.
    pub offset: i64,
}

/// Operation of `atom` and `red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AtomicOp {
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

/// What a bulk copy leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BulkMask {
    /// `.cp_mask`: of each 16 bytes those whose bits are set are copied.
    Bytes(Slot),
    /// `.multicast::cluster`: the blocks of the cluster whose bits are set, by rank, receive the data, each at the same place of its memory.
    Blocks(Slot),
}

/// How each element that `cp.reduce.async.bulk` brings is combined with the one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    /// The operation.
    pub op: AtomicOp,
    /// The type of the elements.
    pub ty: Type,
    /// Subnormal operands and results of the addition are zeros of their sign.
    pub flush: bool,
}

/// What to do with the stack of `alloca`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackOp {
    /// `alloca`: takes bytes; the result is where they start.
    Allocate {
        /// Alignment of the start, in bytes.
        align: u32,
    },
    /// `stacksave`: the result is where the stack ends.
    Save,
    /// `stackrestore`: gives back what was taken since.
    Restore,
}

/// How a barrier combines predicates (`barrier.red`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BarrierReduction {
    PopulationCount,
    And,
    Or,
}

/// Lane mapping of `shfl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What `vote` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}

/// Reduction of `redux.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ReduxOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// A special register whose value changes while the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `%clock`, `%clock_hi`, `%clock64`: thread-instructions executed so far by the block, and nanoseconds that it slept.
    Cycles {
        /// The high word (`%clock_hi`).
        high: bool,
    },
    /// `%globaltimer` and its halves: nanoseconds.
    Nanoseconds {
        /// The high word (`%globaltimer_hi`).
        high: bool,
    },
}

/// Kinds of operations on matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixKind {
    /// `mma` and `wmma.mma`: registers only.
    Multiply,
    /// `wgmma.mma_async`, whose factors may lie in shared memory.
    GroupMultiply,
    /// `ldmatrix`
    LoadRows,
    /// `stmatrix`
    StoreRows,
    /// `movmatrix`
    Transpose,
    /// `wmma.load`
    Load,
    /// `wmma.store`
    Store,
}

/// What a whole warp does with a matrix: `mma`, `ldmatrix`, `wmma.load` and their kin, as `form` and `picks` say.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixOp {
    /// What it does.
    pub kind: MatrixKind,
    /// The row of the instruction.
    pub form: &'static Form,
    /// What was picked of its modifiers.
    pub picks: Picks,
    /// The registers of the result's fragment.
    pub dst: SmallVec<[Option<Slot>; 8]>,
    /// The fragments that are read, one after the other; of sparse products then the metadata and the selector, of
    /// block-scaled ones then scales, byte-id and thread-id of A and of B.
    pub src: SmallVec<[Slot; 8]>,
    /// Where the matrix, or the lane's row of it, lies in memory.
    pub address: Option<Address>,
    /// Elements from one row (or column) in memory to the next; without it they lie one after the other.
    pub stride: Option<Slot>,
}

/// What an instruction does with a texture or surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TexelKind {
    /// `tex` and `tld4`
    Fetch,
    /// `txq` and `suq`
    Query,
    /// `suld`
    Load,
    /// `sust`
    Store,
    /// `sured`
    Reduce(AtomicOp),
}

/// An instruction on a texture or surface, as `form` and `picks` say.
#[derive(Clone, Debug, PartialEq)]
pub struct TexelOp {
    /// What it does.
    pub kind: TexelKind,
    /// The row of the instruction.
    pub form: &'static Form,
    /// What was picked of its modifiers.
    pub picks: Picks,
    /// The handle.
    pub handle: Slot,
    /// The handle of the sampler, if it has one of its own.
    pub sampler: Option<Slot>,
    /// The registers of the result.
    pub dst: SmallVec<[Option<Slot>; 4]>,
    /// The elements of the other operands that matter ([`isa::texture::elements`]), coordinates first.
    pub src: SmallVec<[Slot; 4]>,
}

/// What a copy of a box of a tensor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorKind {
    /// From global to shared memory.
    Load,
    /// From shared to global memory.
    Store,
    /// The same, each element combined with the one that is there.
    Reduce(AtomicOp),
}

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`, as `picks` say.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorOp {
    /// What it does.
    pub kind: TensorKind,
    /// What was picked of the instruction's modifiers.
    pub picks: Picks,
    /// Where the tensor map is.
    pub map: Address,
    /// Where the box is in shared memory.
    pub shared: Address,
    /// Of the first element, the innermost dimension first.
    pub coordinates: SmallVec<[Slot; 4]>,
    /// Added to the inner coordinates of each pixel (`.im2col`).
    pub offsets: SmallVec<[Slot; 4]>,
    /// Told of the bytes of a load.
    pub mbarrier: Option<Address>,
    /// `.multicast::cluster`: the blocks that receive a load, by rank.
    pub blocks: Option<Slot>,
}

/// What to do with an mbarrier object in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MbarrierOp {
    /// Makes the object; the value is the number of arrivals that complete a phase.
    Init {
        /// `.layout::v1`: it keeps what asynchronous operations report.
        reports: bool,
    },
    /// Something was reported; the object must be one that keeps reports.
    Report,
    /// Is the object of this layout?
    CheckLayout {
        /// As of [`MbarrierOp::Init`].
        reports: bool,
    },
    /// Ends its life.
    Invalidate,
    /// The phase waits for so many more bytes.
    ExpectTransactions,
    /// So many bytes have come.
    CompleteTransactions,
    /// Threads have arrived: the value is how many, one if absent.
    Arrive {
        /// They do not take part in later phases.
        drop: bool,
        /// The phase must not complete by it.
        no_complete: bool,
    },
    /// [`MbarrierOp::ExpectTransactions`], then one arrival.
    ArriveExpecting {
        /// As of [`MbarrierOp::Arrive`].
        drop: bool,
    },
    /// The thread's copies so far are an arrival when they are done. `counted`: it is not among those that the
    /// phase waits for, so that it makes no difference to them.
    ArriveAfterCopies {
        /// Without `.noinc`.
        counted: bool,
    },
    /// Is the phase over whose state, or parity, the value is?
    Test {
        /// The value is a parity.
        parity: bool,
        /// Of the conditional phase, which only ends when nothing was reported.
        conditional: bool,
    },
    /// The number of arrivals that the state waited for. Touches no memory.
    PendingCount,
}

/// What ends or awaits a group of asynchronous copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyGroup {
    /// The copies since the last commit are a group.
    Commit,
    /// Waits until at most so many of the latest groups are pending.
    Wait(u32),
    /// Waits for all copies, committed or not.
    WaitAll,
}

/// What an instruction says about work that others have been given, or about registers of the warp. Such work is done here when it is
/// issued, so that nothing has to be done; observers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsyncStep {
    /// `cp.async.bulk.commit_group`
    CommitBulk,
    /// `cp.async.bulk.wait_group`: at most so many of the latest groups are pending; `read`: have not read their sources.
    WaitBulk {
        /// So many.
        pending: u32,
        /// `.read`
        read: bool,
    },
    /// `wgmma.fence`
    FenceProducts,
    /// `wgmma.commit_group`
    CommitProducts,
    /// `wgmma.wait_group`: at most so many of the latest groups are pending.
    WaitProducts(u32),
    /// `tcgen05.wait::ld`
    WaitTensorLoads,
    /// `tcgen05.wait::st`
    WaitTensorStores,
    /// `tcgen05.fence::before_thread_sync`, `tcgen05.fence::after_thread_sync`
    FenceTensor {
        /// `before_thread_sync`
        before: bool,
    },
    /// `setmaxnreg`
    SetRegisters {
        /// `.inc`
        increase: bool,
        /// Registers of each thread.
        count: u32,
    },
}

/// A warp-level operation: executed when the lanes that its member mask names are together.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // fields are the operands of the manual
pub enum WarpOp {
    Shuffle {
        mode: ShuffleMode,
        dst: Option<Slot>,
        pred: Option<Slot>,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    Vote {
        mode: VoteMode,
        dst: Option<Slot>,
        a: Slot,
        negated: bool,
    },
    /// `match.any` / `match.all`; `wide`: 64-bit values.
    Match {
        all: bool,
        dst: Option<Slot>,
        pred: Option<Slot>,
        a: Slot,
    },
    Redux {
        op: ReduxOp,
        ty: Type,
        dst: Option<Slot>,
        a: Slot,
        nan: bool,
        abs: bool,
    },
    Elect {
        dst: Option<Slot>,
        pred: Option<Slot>,
    },
    /// `bar.warp.sync`
    Sync,
    Matrix(Box<MatrixOp>),
    TensorMemory(Box<TensorMemoryOp>),
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Execute only in lanes where it holds.
    pub guard: Option<Guard>,
    /// The instruction in the source.
    pub span: Span,
    /// What to do.
    pub kind: OpKind,
}

/// Kinds of operations.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // fields are the operands of the manual
pub enum OpKind {
    /// A pure instruction: `sem` says what it computes.
    Pure {
        form: &'static Form,
        picks: Picks,
        function: &'static str,
        dst: [Option<Slot>; 2],
        src: SmallVec<[Slot; 4]>,
    },
    /// `dst = src`, of the same width.
    Copy {
        dst: Slot,
        src: Slot,
    },
    /// `dst = !src`, both predicates.
    Not {
        dst: Slot,
        src: Slot,
    },
    /// `dst` = the low `bits` bits of `src`, extended by sign or zero, cut to `dst`'s width.
    Resize {
        dst: Slot,
        src: Slot,
        bits: u32,
        signed: bool,
    },
    /// `dst = src + addend`, wrapping.
    Offset {
        dst: Slot,
        src: Slot,
        addend: i64,
    },
    /// The address of something, without an access.
    AddressOf {
        dst: Slot,
        base: Base,
        offset: i64,
    },
    /// Several narrow values side by side in a wide one, the first lowest; each is `bits` wide.
    Pack {
        dst: Slot,
        src: SmallVec<[Slot; 4]>,
        bits: u32,
    },
    /// The reverse of [`OpKind::Pack`].
    Unpack {
        dst: SmallVec<[Option<Slot>; 4]>,
        src: Slot,
        bits: u32,
    },
    /// Of two pairs of 16-bit halves, the low half of the first where the first predicate holds, else that of the second; the
    /// high half by the other predicate.
    SelectPair {
        dst: Slot,
        pairs: [Slot; 2],
        preds: [Slot; 2],
    },
    /// Elements of `bytes` bytes each, one after the other; extended by sign or zero to their slot's width.
    Load {
        address: Address,
        dst: SmallVec<[Option<Slot>; 4]>,
        bytes: u32,
        signed: bool,
        semantics: Semantics,
    },
    /// Elements of `bytes` bytes each, one after the other.
    Store {
        address: Address,
        src: SmallVec<[Slot; 4]>,
        bytes: u32,
        semantics: Semantics,
    },
    /// `atom` (with `dst`) and `red`. `b` is the new value for [`AtomicOp::CompareAndSwap`], whose compare value is `a`.
    /// `flush`: subnormal operands and results of an addition are zeros of their sign, unless the address, which may be
    /// generic, lies in shared memory. `vector`: bytes of the vector of which it is the first element, and 0 of any other: a vector is
    /// aligned as a whole, and lies in global memory.
    Atomic {
        op: AtomicOp,
        ty: Type,
        flush: bool,
        address: Address,
        vector: u32,
        dst: Option<Slot>,
        a: Slot,
        b: Option<Slot>,
        semantics: Semantics,
    },
    /// `atom.exch.b128` and `atom.cas.b128`: of values of two halves, low first; what is written if `compare` (or there is
    /// none) stands there.
    AtomicWide {
        address: Address,
        dst: [Option<Slot>; 2],
        compare: Option<[Slot; 2]>,
        new: [Slot; 2],
        semantics: Semantics,
    },
    /// `alloca`, `stacksave` and `stackrestore`: `value` is the number of bytes, or where the stack is to end.
    Stack {
        op: StackOp,
        dst: Option<Slot>,
        value: Option<Slot>,
    },
    /// From an address in `space` to a generic one, or (`to_space`) back.
    Cvta {
        dst: Slot,
        src: Slot,
        space: Space,
        to_space: bool,
    },
    /// `isspacep`; `own`: the block's own shared memory alone, not that of others of its cluster.
    IsSpace {
        dst: Slot,
        src: Slot,
        space: Space,
        own: bool,
    },
    /// The generic address of what `src` names in `.shared::cluster`, whether it is a generic address or one of `.shared::cluster` in a
    /// register that is wider.
    SharedObject {
        dst: Slot,
        src: Slot,
    },
    /// `mapa`: the address in the shared memory of the block of a rank that corresponds to `src`, which is one of `.shared::cluster` or
    /// `generic`.
    MapShared {
        dst: Slot,
        src: Slot,
        rank: Slot,
        generic: bool,
    },
    /// `getctarank`: the rank of the block whose shared memory an address lies in.
    RankOf {
        dst: Slot,
        src: Slot,
        generic: bool,
    },
    ReadClock {
        dst: Slot,
        clock: Clock,
    },
    /// `nanosleep`: lets others run, and the clock of cycles go on.
    Sleep {
        /// Nanoseconds, of 32 bits.
        duration: Slot,
    },
    /// `activemask`
    ActiveMask {
        dst: Slot,
    },
    /// `fence` and `membar`: orders the thread's accesses.
    Fence {
        semantics: Semantics,
    },
    /// First operation of its block; `members` is the member mask (`None` for the old forms without one:
    /// whatever lanes are together).
    Warp {
        op: WarpOp,
        members: Option<Slot>,
    },
    /// `cp.async`: copies `size` of `bytes` bytes (all, if absent) from `src`, none where `ignore` holds; zeros fill
    /// the rest. Done when the thread waits for it.
    CopyAsync {
        dst: Address,
        src: Address,
        bytes: u32,
        size: Option<Slot>,
        ignore: Option<Guard>,
    },
    CopyGroup(CopyGroup),
    AsyncStep(AsyncStep),
    /// `cp.async.bulk`: copies `size` bytes, which the mbarrier object then has received.
    CopyBulk {
        dst: Address,
        src: Address,
        size: Slot,
        mbarrier: Option<Address>,
        mask: Option<BulkMask>,
        /// `.ignore_oob`: so many bytes at the beginning and at the end, which need not be there, are not copied.
        ends: Option<[Slot; 2]>,
        /// What the mbarrier object is told of the bytes.
        report: Option<Validity>,
        reduction: Option<Reduction>,
    },
    CopyTensor(Box<TensorOp>),
    /// What a thread has done for itself: products, copies, shifts.
    TensorMemory(Box<TensorMemoryOp>),
    /// `tensormap.replace`: changes the field that `picks` and `ordinal` name.
    TensorMapReplace {
        address: Address,
        picks: Picks,
        ordinal: u64,
        value: Slot,
    },
    /// `tensormap.cp_fenceproxy`: each warp copies a tensor map, once.
    TensorMapCopy {
        dst: Address,
        src: Address,
    },
    /// `clusterlaunchcontrol.try_cancel`: asks for the work of a cluster that has not begun, which is refused: all count as begun.
    /// 16 bytes that say so go to `dst`, and the mbarrier object has received them; of all blocks of the cluster, if it says so.
    TryCancel {
        dst: Address,
        mbarrier: Address,
        all: bool,
    },
    /// `st.bulk`: zeros in shared memory of the block.
    StoreBulk {
        address: Address,
        /// Bytes, a multiple of 8, of 32 or 64 bits.
        size: Slot,
    },
    /// `st.async`, `red.async`: stores elements of so many bytes, or combines one with what is there; the mbarrier object has received
    /// them then.
    StoreAsync {
        address: Address,
        src: SmallVec<[Slot; 4]>,
        bytes: u32,
        reduction: Option<Reduction>,
        mbarrier: Address,
    },
    /// `dst`: the state before the operation, the count, or whether the phase is over.
    Mbarrier {
        op: MbarrierOp,
        address: Option<Address>,
        dst: Option<Slot>,
        /// Of a test, whether something was reported in the last phase that is over.
        report: Option<Slot>,
        value: Option<Slot>,
        /// The blocks whose objects are meant, by rank; without it the one at the address.
        blocks: Option<Slot>,
        semantics: Semantics,
    },
    Texel(Box<TexelOp>),
    /// Checked and not executed by any engine (a number added to a predicate, what needs a fabric): a kernel that can reach it is not
    /// launched.
    Unsupported {
        form: &'static Form,
        picks: Picks,
    },
}

impl OpKind {
    /// It computes values of slots, and touches nothing else.
    pub fn computes(&self) -> bool {
        matches!(
            self,
            OpKind::Pure { .. }
                | OpKind::Copy { .. }
                | OpKind::Not { .. }
                | OpKind::Resize { .. }
                | OpKind::Offset { .. }
                | OpKind::AddressOf { .. }
                | OpKind::Pack { .. }
                | OpKind::Unpack { .. }
                | OpKind::SelectPair { .. }
                | OpKind::Cvta { .. }
                | OpKind::IsSpace { .. }
                | OpKind::MapShared { .. }
                | OpKind::RankOf { .. }
                | OpKind::SharedObject { .. }
        )
    }
}
