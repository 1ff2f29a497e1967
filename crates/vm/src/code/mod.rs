//! Executable code: lowered functions with every place resolved.
//!
//! Made when a kernel is first launched with gangs of some size, and kept with the loaded module: slots get byte offsets for the number
//! of lanes of a gang, variables their addresses, pure operations their vector handler and their function in `sem`. What
//! launches differ in (parameters, extents) is looked up when they run.

mod build;
mod chain;
mod flow;
mod fuse;
mod linear;
mod matrix;
mod shuffle;
mod signature;
mod special;
mod tensor_memory;
mod tiled;

use diag::Span;
use ir::{
    AccessKind, AsyncStep, AtomicOp, BarrierReduction, Clock, CopyGroup, MbarrierOp, Order, ReduxOp,
    Semantics, ShuffleMode, StackOp, VoteMode, Width,
};
use isa::{Opcode, Picks, Space, Type};
use sem::PureFn;
use sem::texture::{Lookup, SurfaceAccess};
use smallvec::SmallVec;

use crate::mask::Mask;
use crate::registers::SlotRef;
use lanes::LaneFn;

pub(crate) use build::build;
pub use build::function_address;
pub(crate) use flow::{Flow, flows};
pub(crate) use linear::Linear;
pub(crate) use matrix::{
    Fragment, MatrixFactor, MatrixOp, MatrixOperands, MatrixRows, MatrixSource, Multiply, RowFormat,
    ScaleData, Strided,
};
pub(crate) use shuffle::{ShufflePattern, shuffle_source};
pub(crate) use signature::{Signature, Signatures};
pub(crate) use special::Special;
pub(crate) use tensor_memory::{TensorFactor, TensorMemory, TensorMultiply};
pub(crate) use tiled::{TileSource, Tiled};

/// `@p` / `@!p`
#[derive(Clone, Copy)]
pub(crate) struct Guard {
    pub slot: SlotRef,
    pub negated: bool,
}

/// Start of an address.
#[derive(Clone, Copy)]
pub(crate) enum Base {
    Slot(SlotRef),
    /// The offset is the address.
    Zero,
    /// The block's shared memory.
    Shared,
    /// The frame of local memory of the function that is being executed.
    Frame,
    /// Its i-th parameter, in local memory.
    FrameParam(u32),
    /// Its i-th return parameter, in local memory.
    FrameReturn(u32),
}

/// An address in a state space.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub space: Space,
    pub base: Base,
    pub offset: u64,
    /// Index of the access in the code.
    pub place: usize,
}

/// No pure form has more sources (tested by building every one).
pub(crate) const MAX_SOURCES: usize = lanes::LaneArgs::SOURCES;

/// A pure operation.
pub(crate) struct Pure {
    pub lanes: Option<LaneFn>,
    pub sem: PureFn,
    /// One lane takes `sem` longer than sixteen a vector handler: it has no floating point but exact integers.
    pub slow_sem: bool,
    pub picks: Picks,
    pub dst: [Option<SlotRef>; 2],
    /// The first `sources` of these.
    pub src: [SlotRef; MAX_SOURCES],
    pub sources: usize,
    /// Sources that are destinations too.
    pub in_place: [bool; MAX_SOURCES],
    /// How it maps values that step evenly from lane to lane, and the sources that it looks at.
    pub linear: Linear,
    pub linear_src: [SlotRef; 3],
    /// Index of the operation in the code.
    pub cached: usize,
}

impl Pure {
    pub fn src(&self) -> &[SlotRef] {
        &self.src[..self.sources]
    }
}

pub(crate) enum WarpOp {
    Shuffle {
        mode: ShuffleMode,
        dst: Option<SlotRef>,
        pred: Option<SlotRef>,
        a: SlotRef,
        b: SlotRef,
        c: SlotRef,
        /// Known if `b` and `c` are literals.
        pattern: Option<Box<ShufflePattern>>,
    },
    Vote {
        mode: VoteMode,
        dst: Option<SlotRef>,
        a: SlotRef,
        negated: bool,
    },
    Match {
        all: bool,
        dst: Option<SlotRef>,
        pred: Option<SlotRef>,
        a: SlotRef,
    },
    Redux {
        op: ReduxOp,
        ty: Type,
        dst: Option<SlotRef>,
        a: SlotRef,
        nan: bool,
        abs: bool,
    },
    Elect {
        dst: Option<SlotRef>,
        pred: Option<SlotRef>,
    },
    Sync,
    Matrix(MatrixOp),
    TensorMemory(Box<TensorMemory>),
    Unsupported {
        opcode: Opcode,
    },
}

/// `cp.async`
pub(crate) struct CopyAsync {
    pub dst: Address,
    pub src: Address,
    pub bytes: u32,
    /// Bytes that are read, if not all.
    pub size: Option<SlotRef>,
    /// Nothing is read where it holds.
    pub ignore: Option<Guard>,
}

/// `cp.async.bulk`
pub(crate) struct CopyBulk {
    pub dst: Address,
    pub src: Address,
    pub size: SlotRef,
    pub mbarrier: Option<Address>,
    pub mask: Option<BulkMask>,
    pub ends: Option<[SlotRef; 2]>,
    pub report: Option<isa::Validity>,
    pub reduction: Option<ir::Reduction>,
}

/// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`: [`ir::TensorOp`]
pub(crate) struct CopyTensor {
    pub kind: ir::TensorKind,
    pub picks: Picks,
    pub map: Address,
    pub shared: Address,
    pub coordinates: SmallVec<[SlotRef; 4]>,
    pub offsets: SmallVec<[SlotRef; 4]>,
    pub mbarrier: Option<Address>,
    pub blocks: Option<SlotRef>,
}

impl CopyTensor {
    /// The mbarrier object may be that of the other block of a pair.
    pub fn is_pair(&self) -> bool {
        self.picks.has(isa::Mod::CtaGroup2)
    }
}

/// `tensormap.replace`
pub(crate) struct TensorMapReplace {
    pub address: Address,
    pub picks: Picks,
    pub ordinal: u64,
    pub value: SlotRef,
}

/// What a bulk copy leaves out: [`ir::BulkMask`].
pub(crate) enum BulkMask {
    Bytes(SlotRef),
    Blocks(SlotRef),
}

/// `clusterlaunchcontrol.try_cancel`
pub(crate) struct TryCancel {
    pub dst: Address,
    pub mbarrier: Address,
    /// Of all blocks of the cluster.
    pub all: bool,
}

/// `st.bulk`
pub(crate) struct StoreBulk {
    pub address: Address,
    pub size: SlotRef,
}

/// `st.async`, `red.async`
pub(crate) struct StoreAsync {
    pub address: Address,
    pub src: SmallVec<[SlotRef; 4]>,
    /// Bytes of one element.
    pub bytes: u32,
    pub reduction: Option<ir::Reduction>,
    pub mbarrier: Address,
}

pub(crate) struct Mbarrier {
    pub op: MbarrierOp,
    pub address: Option<Address>,
    pub dst: Option<SlotRef>,
    pub report: Option<SlotRef>,
    pub value: Option<SlotRef>,
    /// The blocks whose objects are meant, by rank.
    pub blocks: Option<SlotRef>,
}

pub(crate) struct Load {
    pub address: Address,
    pub dst: SmallVec<[Option<SlotRef>; 4]>,
    /// Bytes of one element.
    pub bytes: u32,
    pub signed: bool,
    pub order: Order,
    /// One element, read by one operation only, before anything is written to memory: it can stay there until then.
    pub once: bool,
    /// That operation is a link of a chain, which takes rows of memory as they are: the link, and which factor it is.
    pub chained: Option<(LinkIndex, usize)>,
}

/// The place of a link: which chain of the block, and which of its links.
#[derive(Clone, Copy)]
pub(crate) struct LinkIndex {
    pub chain: usize,
    pub link: usize,
}

pub(crate) struct Store {
    pub address: Address,
    pub src: SmallVec<[SlotRef; 4]>,
    /// Bytes of one element.
    pub bytes: u32,
    pub order: Order,
}

/// A pure operation whose result goes to memory and nowhere else.
pub(crate) struct PureStore {
    pub pure: Pure,
    pub store: Store,
}

/// An `fma` whose sum is that of the link before, if it is not the first. The last one computes all of them, or an earlier
/// one those before it.
pub(crate) struct Link {
    pub pure: Pure,
    pub index: LinkIndex,
    /// Both factors and the sum keep their registers until the chain ends.
    pub stable: [bool; 3],
    pub last: bool,
}

pub(crate) struct Atomic {
    pub op: AtomicOp,
    pub ty: Type,
    /// As of [`ir::OpKind::Atomic`], and `vector` too.
    pub flush: bool,
    pub address: Address,
    pub vector: u32,
    pub dst: Option<SlotRef>,
    pub a: SlotRef,
    pub b: Option<SlotRef>,
}

/// `atom` on 128 bits: halves, low first.
pub(crate) struct AtomicWide {
    pub address: Address,
    pub dst: [Option<SlotRef>; 2],
    pub compare: Option<[SlotRef; 2]>,
    pub new: [SlotRef; 2],
}

/// An instruction on a texture or surface: [`ir::TexelOp`].
pub(crate) struct Texel {
    pub work: TexelWork,
    pub handle: SlotRef,
    pub sampler: Option<SlotRef>,
    pub dst: SmallVec<[Option<SlotRef>; 4]>,
    pub src: SmallVec<[SlotRef; 4]>,
}

/// What it does, looked up.
pub(crate) enum TexelWork {
    Fetch(Lookup),
    Query { opcode: Opcode, picks: Picks },
    Load(SurfaceAccess),
    Store(SurfaceAccess),
    Reduce(AtomicOp, SurfaceAccess),
}

pub(crate) enum Kind {
    Pure(Box<Pure>),
    Copy {
        dst: SlotRef,
        src: SlotRef,
    },
    Not {
        dst: SlotRef,
        src: SlotRef,
    },
    Resize {
        dst: SlotRef,
        src: SlotRef,
        bits: u32,
        signed: bool,
    },
    Offset {
        dst: SlotRef,
        src: SlotRef,
        addend: u64,
    },
    /// An aligned part of the kernel's parameters.
    Param {
        dst: SlotRef,
        offset: u32,
        bytes: u32,
        signed: bool,
    },
    /// An address without an access: the same for all lanes.
    AddressOf {
        dst: SlotRef,
        base: Base,
        offset: u64,
    },
    Pack {
        dst: SlotRef,
        src: SmallVec<[SlotRef; 4]>,
        bits: u32,
    },
    Unpack {
        dst: SmallVec<[Option<SlotRef>; 4]>,
        src: SlotRef,
        bits: u32,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    /// A load or store that other host threads may answer, or that answers them.
    LoadStrong(Box<Load>),
    StoreStrong(Box<Store>),
    PureStore(Box<PureStore>),
    Link(Box<Link>),
    Atomic(Box<Atomic>),
    AtomicWide(Box<AtomicWide>),
    Stack {
        op: StackOp,
        dst: Option<SlotRef>,
        value: Option<SlotRef>,
    },
    IsSpace {
        dst: SlotRef,
        src: SlotRef,
        space: Space,
        own: bool,
    },
    MapShared {
        dst: SlotRef,
        src: SlotRef,
        rank: SlotRef,
        generic: bool,
    },
    SharedObject {
        dst: SlotRef,
        src: SlotRef,
    },
    RankOf {
        dst: SlotRef,
        src: SlotRef,
        generic: bool,
    },
    ReadClock {
        dst: SlotRef,
        clock: Clock,
    },
    Sleep {
        duration: SlotRef,
    },
    ActiveMask {
        dst: SlotRef,
    },
    Fence(Semantics),
    CopyAsync(Box<CopyAsync>),
    CopyGroup(CopyGroup),
    AsyncStep(AsyncStep),
    CopyBulk(Box<CopyBulk>),
    CopyTensor(Box<CopyTensor>),
    TensorMemory(Box<TensorMemory>),
    TensorMapReplace(Box<TensorMapReplace>),
    TensorMapCopy(Box<[Address; 2]>),
    TryCancel(Box<TryCancel>),
    StoreAsync(Box<StoreAsync>),
    StoreBulk(Box<StoreBulk>),
    Mbarrier(Box<Mbarrier>),
    Warp {
        op: Box<WarpOp>,
        members: Option<SlotRef>,
    },
    Texel(Box<Texel>),
    Unsupported {
        opcode: Opcode,
    },
}

/// An access of an operation to memory, for those who watch: [`ir::Access`].
pub(crate) struct Access {
    pub kind: AccessKind,
    pub start: Start,
    pub extent: Extent,
    pub semantics: Semantics,
    pub multicast: Option<Multicast>,
}

/// Which blocks of the cluster an access goes to: [`ir::Multicast`].
#[derive(Clone, Copy)]
pub(crate) enum Multicast {
    Mask(SlotRef),
    All,
}

/// Where an access begins.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    Address(Address),
    Descriptor(SlotRef),
    Texels,
    Tensor,
    Box(Address),
}

/// How much an access touches.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    Bytes(u32),
    AtMost { bytes: u32, size: Option<SlotRef>, ignore: Option<Guard> },
    Slot(SlotRef),
    Rows(u32),
    Matrix { lines: u32, line_bits: u32, element_bits: u32, stride: Option<SlotRef> },
    Factor,
    Texels,
    Lines,
}

/// An operation.
pub(crate) struct Op {
    pub guard: Option<Guard>,
    pub kind: Kind,
    pub span: Span,
}

#[derive(Clone, Copy)]
pub(crate) enum Callee {
    /// Index into [`Code::functions`].
    Direct(u32),
    /// The slot that holds its address, and the number of its signature.
    Indirect(SlotRef, u32),
}

#[derive(Clone, Copy)]
pub(crate) enum Argument {
    /// Byte offset in the caller's frame.
    Frame(u32),
    Slot(SlotRef),
}

#[derive(Clone, Copy)]
pub(crate) enum Returned {
    /// Byte offset in the caller's frame.
    Frame(u32),
    Slot(SlotRef),
    Ignored,
}

pub(crate) struct Call {
    pub callee: Callee,
    pub arguments: Vec<Argument>,
    pub returned: Vec<Returned>,
    pub next: u32,
}

pub(crate) struct Reduction {
    pub op: BarrierReduction,
    pub dst: SlotRef,
    pub negated: bool,
    pub src: SlotRef,
}

pub(crate) struct Barrier {
    pub barrier: SlotRef,
    pub threads: Option<SlotRef>,
    pub arrive: bool,
    pub reduction: Option<Reduction>,
    pub next: u32,
}

pub(crate) enum Terminator {
    Jump(u32),
    Branch { pred: SlotRef, negated: bool, taken: u32, otherwise: u32 },
    BranchIndexed { index: SlotRef, targets: Vec<u32> },
    Call(Box<Call>),
    Barrier(Box<Barrier>),
    ClusterBarrier { arrive: bool, next: u32 },
    Return,
    Exit,
    Trap,
}

/// A warp-level operation that has its block for itself.
pub(crate) struct Meeting {
    /// Slots that it reads, and that it writes.
    pub uses: Vec<SlotRef>,
    pub defs: Vec<SlotRef>,
    pub next: u32,
}

pub(crate) struct Block {
    pub ops: Vec<Op>,
    /// What each of them does to memory; nothing for parameters, which are known.
    pub accesses: Vec<Box<[Access]>>,
    pub terminator: Terminator,
    pub span: Span,
    /// Slots live on entry, a bit each: index of the slot in its window.
    pub live_in: Vec<u64>,
    /// Starts with a warp-level operation.
    pub warp: bool,
    /// That is all there is in it: lanes of several calls can meet here.
    pub meeting: Option<Box<Meeting>>,
    /// What a turn of a loop through it takes from the budget, besides a unit for each block.
    pub turn_cost: i64,
    /// Instructions that a thread executes by going through it.
    pub cost: u64,
}

pub(crate) struct Function {
    pub blocks: Vec<Block>,
    /// Size of its register window.
    pub slots: u32,
    pub bytes: u64,
    /// What slots hold on entry, in every block of the launch.
    pub constants: Vec<(SlotRef, u64)>,
    pub specials: Vec<(SlotRef, Special)>,
    /// What they hold in one block.
    pub block_specials: Vec<(SlotRef, Special)>,
    /// Registers that are read before they are written: indices of slots.
    pub zeros: Vec<u32>,
    /// Run once, after the slots are set.
    pub prologue: Vec<Op>,
    pub frame_bytes: u32,
    pub frame_align: u32,
    pub params: Vec<Option<SlotRef>>,
    pub returns: Vec<Option<SlotRef>>,
}

/// The functions that a kernel can reach, ready to run.
pub(crate) struct Code {
    /// By `FuncId`; `None` for declarations, and what the kernel cannot reach.
    pub functions: Vec<Option<Function>>,
    /// By `FuncId`: the number of its signature; `None` for kernels, which nobody calls.
    pub callable: Vec<Option<u32>>,
    pub signatures: Signatures,
    /// Lanes of a gang.
    pub lanes: usize,
    /// Number of accesses and of pure operations.
    pub accesses: usize,
    pub pure_operations: usize,
    /// The most chains of a block.
    pub chains: usize,
}

/// Bytes of a slot's array.
pub(crate) fn array_bytes(width: Width, lanes: usize) -> usize {
    match width {
        Width::Pred => size_of::<Mask>(),
        other => (other.bytes() * lanes).next_multiple_of(64),
    }
}
