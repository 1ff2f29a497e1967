//! Lowered code: basic blocks of operations on slots.
//!
//! A *slot* is a place of the register file that holds one value per lane. PTX registers, literals and special
//! registers all become slots, so an engine has a single kind of operand.

use check::module::{FuncId, RegId, VarId};
use diag::Span;
use isa::{Form, Picks, Space, SpecialRegister, Type};
use smallvec::SmallVec;

use crate::memory::{AtomicOp, Load, MemoryOp, Store};
use crate::simple::SimpleOp;
use crate::tensor_memory::TensorMemoryOp;
use crate::warp::WarpOp;

/// A slot of the function's register window: index into [`Function::slots`](crate::Function::slots).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

impl Slot {
    /// The slot as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A basic block of the control-flow graph: index into [`Function::blocks`](crate::Function::blocks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

impl BlockId {
    /// The basic block as an index.
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
    /// Eight bytes. A 128-bit register takes two of these, low half first.
    W64,
}

impl Width {
    /// The width that holds values of a type. For a 128-bit type, the width of one half.
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

    /// `value` truncated to this width.
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
    /// A register that is live across basic blocks. Any register, if the pass that shares slots is off.
    Register(RegId),
    /// One half of a 128-bit register: 0 low, 1 high.
    Half(RegId, u8),
    /// The carry flag `CC.CF`.
    Carry,
    /// The end of the thread's stack when the function was called.
    StackEntry,
    /// A literal: the same in all lanes, never written.
    Constant(u64),
    /// A special register that is constant while a CTA runs; set on entry to the function.
    Special(SpecialRegister),
    /// A temporary, or registers that are live within one basic block only (several may share the slot).
    Temporary,
    /// Written only by the prologue.
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
pub struct Guard<S = Slot> {
    /// The predicate.
    pub slot: S,
    /// Execute where the predicate is false.
    pub negated: bool,
}

impl<S> Guard<S> {
    /// The guard on what `slot` makes of its predicate.
    pub fn map<T>(self, slot: impl FnOnce(S) -> T) -> Guard<T> {
        Guard { slot: slot(self.slot), negated: self.negated }
    }
}

/// What an address is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A slot of 4 or 8 bytes.
    Slot(Slot),
    /// A variable; the engine knows its address.
    Variable(VarId),
    /// The i-th parameter of a kernel, in `.param` space.
    KernelParam(u32),
    /// The i-th parameter of the executing function, in its caller's local memory.
    FrameParam(u32),
    /// The i-th return parameter of the executing function, in its caller's local memory.
    FrameReturn(u32),
    /// A `.local` or `.param` variable of this function: byte offset in its frame of local memory.
    Frame(u32),
    /// A function, for function pointers.
    Function(FuncId),
    /// Zero: the offset is the whole address.
    Zero,
}

/// An address in a state space: base plus offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// State space of the access.
    pub space: Space,
    /// The base.
    pub base: Base,
    /// Bytes added to the base.
    pub offset: i64,
}

/// What an operation does with the stack of `alloca`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackOp {
    /// `alloca`: takes bytes; the result is their address.
    Allocate {
        /// Alignment of the start, in bytes.
        align: u32,
    },
    /// `stacksave`: the result is the end of the stack.
    Save,
    /// `stackrestore`: releases everything taken since the matching `stacksave`.
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

/// A matrix operation of a whole warp, such as `mma`, `ldmatrix` or `wmma.load`. `form` and `picks` define it.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixOp {
    /// What it does.
    pub kind: MatrixKind,
    /// The form of the instruction.
    pub form: &'static Form,
    /// Its modifiers.
    pub picks: Picks,
    /// The registers of the result's fragment.
    pub dst: SmallVec<[Option<Slot>; 8]>,
    /// The fragments that the operation reads, one after the other. Sparse products then have the metadata and the
    /// selector; block-scaled products then have scales, byte-id and thread-id of A and of B.
    pub src: SmallVec<[Slot; 8]>,
    /// Address of the matrix, or of the lane's row of it.
    pub address: Option<Address>,
    /// Stride between rows (or columns) in memory, in elements. `None`: the rows are contiguous.
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

/// An instruction on a texture or surface. `form` and `picks` define it.
#[derive(Clone, Debug, PartialEq)]
pub struct TexelOp {
    /// What it does.
    pub kind: TexelKind,
    /// The form of the instruction.
    pub form: &'static Form,
    /// Its modifiers.
    pub picks: Picks,
    /// The handle.
    pub handle: Slot,
    /// The handle of a separate sampler, if there is one.
    pub sampler: Option<Slot>,
    /// The registers of the result.
    pub dst: SmallVec<[Option<Slot>; 4]>,
    /// The used elements of the other operands ([`isa::texture::elements`]), coordinates first.
    pub src: SmallVec<[Slot; 4]>,
}

/// What ends or awaits a group of asynchronous copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyGroup {
    /// The copies since the last commit become a group.
    Commit,
    /// Waits until at most this many of the latest groups are pending.
    Wait(u32),
    /// Waits for all copies, committed or not.
    WaitAll,
}

/// An instruction about asynchronous work or about the warp's registers. Engines do such work when it is issued, so
/// these instructions have no effect; observers are notified of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsyncStep {
    /// `cp.async.bulk.commit_group`
    CommitBulk,
    /// `cp.async.bulk.wait_group`: at most `pending` of the latest groups are still pending; with `read`, at most
    /// `pending` have not yet read their sources.
    WaitBulk {
        /// The most groups that may be pending.
        pending: u32,
        /// `.read`
        read: bool,
    },
    /// `wgmma.fence`
    FenceProducts,
    /// `wgmma.commit_group`
    CommitProducts,
    /// `wgmma.wait_group`: at most this many of the latest groups are pending.
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
        /// Registers per thread.
        count: u32,
    },
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Execute only in lanes where the guard holds.
    pub guard: Option<Guard>,
    /// The source instruction.
    pub span: Span,
    /// What to do.
    pub kind: OpKind,
}

/// Kinds of operations.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // fields are the operands of the manual
pub enum OpKind {
    /// A pure instruction; `sem` defines what it computes.
    Pure {
        form: &'static Form,
        picks: Picks,
        function: &'static str,
        dst: [Option<Slot>; 2],
        src: SmallVec<[Slot; 4]>,
    },
    Simple(SimpleOp),
    /// The address of `base` plus `offset`, without an access.
    AddressOf {
        dst: Slot,
        base: Base,
        offset: i64,
    },
    /// Combines two pairs of 16-bit halves. The low half comes from the first pair where the first predicate holds,
    /// otherwise from the second pair. The second predicate selects the high half in the same way.
    SelectPair {
        dst: Slot,
        pairs: [Slot; 2],
        preds: [Slot; 2],
    },
    Load(Load),
    Store(Store),
    /// Converts an address in `space` to a generic one, or back (`to_space`).
    Cvta {
        dst: Slot,
        src: Slot,
        space: Space,
        to_space: bool,
    },
    /// The first operation of its basic block. `members` is the member mask; it is `None` in the old forms without a
    /// mask, where the members are the lanes that are converged.
    Warp {
        op: WarpOp,
        members: Option<Slot>,
    },
    /// Any other access to memory.
    Memory(Box<MemoryOp>),
    /// An operation that a single thread issues: products, copies, shifts.
    TensorMemory(Box<TensorMemoryOp>),
    Texel(Box<TexelOp>),
    /// An instruction that is checked but that no engine executes, such as adding a number to a predicate or an
    /// instruction that needs a fabric. A kernel that can reach one is not launched.
    Unsupported {
        form: &'static Form,
        picks: Picks,
    },
}

impl OpKind {
    /// The operation, if it is a [`MemoryOp`].
    pub fn memory(&self) -> Option<&MemoryOp> {
        match self {
            OpKind::Memory(op) => Some(op),
            _ => None,
        }
    }

    /// Whether the operation only computes slot values and has no other effect.
    pub fn computes(&self) -> bool {
        match self {
            OpKind::Pure { .. }
            | OpKind::AddressOf { .. }
            | OpKind::SelectPair { .. }
            | OpKind::Cvta { .. } => true,
            OpKind::Simple(op) => op.computes(),
            _ => false,
        }
    }
}
