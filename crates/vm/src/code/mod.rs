//! Executable code: lowered functions with all operands resolved.
//!
//! The code is built when a kernel is first launched with gangs of some number of lanes, and is kept with the loaded module. Slots
//! get byte offsets for that number of lanes, variables get addresses, and pure operations get their vector handler and their
//! function in `sem`. What differs between launches (parameters, extents) is looked up at run time.

mod build;
mod chain;
mod flow;
mod fuse;
mod linear;
mod matrix;
mod native;
mod pace;
mod perf;
mod signature;
mod special;
mod straight;
mod tensor_memory;
mod tiled;
mod trace;
mod way;

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use diag::Span;
use ir::{AtomicOp, BlockId, ShufflePattern, Width};
use isa::{Opcode, Picks, Space};
use lanes::LaneFn;
use machine::mask::Mask;
use machine::{NativeCode, Special};
use sem::PureFn;
use sem::texture::{Lookup, SurfaceAccess};
use smallvec::SmallVec;

use crate::registers::SlotRef;
pub(crate) use build::build;
pub(crate) use flow::{Flow, flows};
pub(crate) use linear::Linear;
pub(crate) use matrix::{
    Fragment, MatrixFactor, MatrixOp, MatrixOperands, MatrixRows, MatrixSource, Multiply, RowFormat,
    ScaleData, Strided,
};
pub use native::listing;
pub(crate) use native::{Compiled, NativeLoop, native_host};
pub(crate) use pace::{Lap, Turn};
pub(crate) use signature::{Signature, Signatures};
pub(crate) use special::affine;
pub(crate) use straight::{CompiledStraight, OfBlocks, Straight, StraightBlock, Visit, Word};
pub(crate) use tensor_memory::{TensorFactor, TensorMemory, TensorMultiply};
pub(crate) use tiled::{TileSource, Tiled};
pub(crate) use trace::Trace;
pub(crate) use way::Way;

pub(crate) type Guard = ir::Guard<SlotRef>;
pub(crate) type Returned = ir::Returned<SlotRef>;
pub(crate) type Barrier = ir::Barrier<SlotRef>;
/// Calls name a signature by its number.
pub(crate) type Call = ir::Call<SlotRef, u32>;
pub(crate) type Terminator = ir::Terminator<SlotRef, u32>;
pub(crate) type Store = ir::Store<SlotRef, Address>;
/// `Err`: no engine executes the instruction.
pub(crate) type WarpOp = ir::WarpOp<SlotRef, Result<MatrixOp, Opcode>, Result<Box<TensorMemory>, Opcode>>;
pub(crate) type MemoryOp = ir::MemoryOp<SlotRef, Address>;
/// A memory access of an operation, for observers.
pub(crate) type Access = ir::Access<SlotRef, Address>;

/// The base of an address.
#[derive(Clone, Copy)]
pub(crate) enum Base {
    Slot(SlotRef),
    /// The offset alone is the address.
    Zero,
    /// The block's shared memory.
    Shared,
    /// The local-memory frame of the current function.
    Frame,
    /// The i-th parameter of the current function, in local memory.
    FrameParam(u32),
    /// The i-th return parameter of the current function, in local memory.
    FrameReturn(u32),
}

/// An address in a state space.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub space: Space,
    pub base: Base,
    pub offset: u64,
    /// Index of the access in the code, which selects its inline cache.
    pub place: usize,
}

/// The most sources of a pure form. A test builds every form.
pub(crate) const MAX_SOURCES: usize = lanes::LaneArgs::SOURCES;

/// A pure operation.
pub(crate) struct Pure {
    pub lanes: Option<LaneFn>,
    pub sem: PureFn,
    /// One lane of `sem` takes longer than sixteen lanes of a vector handler: `sem` computes floating point with exact integers.
    pub slow_sem: bool,
    pub picks: Picks,
    pub dst: [Option<SlotRef>; 2],
    /// Only the first `sources` entries are used.
    pub src: [SlotRef; MAX_SOURCES],
    pub sources: usize,
    /// Whether each source is a destination as well.
    pub in_place: [bool; MAX_SOURCES],
    /// How the operation maps affine forms, and the sources that this rule reads.
    pub linear: Linear,
    pub linear_src: [SlotRef; 3],
    /// Index of the operation in the code, which selects its inline cache.
    pub cached: usize,
}

impl Pure {
    pub fn src(&self) -> &[SlotRef] {
        &self.src[..self.sources]
    }
}

/// A load, and how it is fused.
pub(crate) struct Load {
    pub load: ir::Load<SlotRef, Address>,
    /// The load has one element, and only one operation reads it, before any write to memory. So the value may stay in
    /// memory until then.
    pub once: bool,
    /// The reader is a link of a chain, which reads rows of memory in place: the link, and the index of the factor.
    pub chained: Option<(LinkIndex, usize)>,
}

impl Deref for Load {
    type Target = ir::Load<SlotRef, Address>;

    fn deref(&self) -> &Self::Target {
        &self.load
    }
}

/// Identifies a link: the chain in the block, and the link in the chain.
#[derive(Clone, Copy)]
pub(crate) struct LinkIndex {
    pub chain: usize,
    pub link: usize,
}

/// A pure operation whose only use is a store.
pub(crate) struct PureStore {
    pub pure: Pure,
    pub store: Store,
}

/// An `fma` whose addend is the result of the previous link, except for the first. The last link computes the whole
/// chain; an earlier link may compute those before it.
pub(crate) struct Link {
    pub pure: Pure,
    pub index: LinkIndex,
    /// Whether the two factors and the addend keep their registers until the chain ends.
    pub stable: [bool; 3],
    pub last: bool,
}

/// An instruction on a texture or surface: [`ir::TexelOp`].
pub(crate) struct Texel {
    pub work: TexelWork,
    pub handle: SlotRef,
    pub sampler: Option<SlotRef>,
    pub dst: SmallVec<[Option<SlotRef>; 4]>,
    pub src: SmallVec<[SlotRef; 4]>,
}

/// The work of a texture or surface instruction, with its parameters resolved.
pub(crate) enum TexelWork {
    Fetch(Lookup),
    Query { opcode: Opcode, picks: Picks },
    Load(SurfaceAccess),
    Store(SurfaceAccess),
    Reduce(AtomicOp, SurfaceAccess),
}

pub(crate) enum Kind {
    Pure(Box<Pure>),
    Simple(ir::SimpleOp<SlotRef>),
    /// An aligned part of the kernel's parameters.
    Param {
        dst: SlotRef,
        offset: u32,
        bytes: u32,
        signed: bool,
    },
    /// An address without an access, uniform in all lanes.
    AddressOf {
        dst: SlotRef,
        base: Base,
        offset: u64,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    /// A strong load or store, which may synchronise with other host threads.
    LoadStrong(Box<Load>),
    StoreStrong(Box<Store>),
    PureStore(Box<PureStore>),
    Link(Box<Link>),
    Memory(Box<MemoryOp>),
    TensorMemory(Box<TensorMemory>),
    Warp {
        op: Box<WarpOp>,
        members: Option<SlotRef>,
        /// Of a shuffle whose `b` and `c` are literals.
        pattern: Option<Box<ShufflePattern>>,
    },
    Texel(Box<Texel>),
    /// Operations that may run as native code together.
    Straight(Box<Straight>),
    Unsupported {
        opcode: Opcode,
    },
}

/// An operation.
pub(crate) struct Op {
    pub guard: Option<Guard>,
    pub kind: Kind,
    pub span: Span,
}

// Every step of the interpreter reads one.
const _: () = assert!(size_of::<Op>() <= 104);

/// A warp-level operation that is alone in its basic block.
pub(crate) struct Meeting {
    /// The slots that it reads and writes.
    pub uses: Vec<SlotRef>,
    pub defs: Vec<SlotRef>,
    pub next: BlockId,
}

pub(crate) struct Block {
    pub ops: Vec<Op>,
    /// The memory accesses of each operation. Loads of parameters have none, since the values are known.
    pub accesses: Vec<Box<[Access]>>,
    pub terminator: Terminator,
    pub span: Span,
    /// Live-in slots: one bit for each slot, by its index in the window.
    pub live_in: Vec<u64>,
    /// Begins with a warp-level operation.
    pub warp: bool,
    /// Present if that operation is the whole basic block: lanes of several calls can meet here.
    pub meeting: Option<Box<Meeting>>,
    /// Present if the block begins a loop that may run as native code.
    pub native: Option<Box<NativeLoop>>,
    /// Present if some of its operations may run as native code together.
    pub straight: Option<Box<StraightBlock>>,
    /// Present if it and others may run as native code together.
    pub trace: Option<Box<Trace>>,
    /// How some threads may go alone to where the others are, by whether they take the branch that ends the basic block.
    pub ways: [OnceLock<Option<Box<Way>>>; 2],
    /// Present if the threads of many blocks have code apart.
    pub of_blocks: Option<Box<OfBlocks>>,
    /// Additional budget that a loop iteration through this basic block takes. Every basic block takes one unit.
    pub slice_cost: i64,
    /// Instructions of the basic block, as counted for each thread.
    pub cost: u64,
}

impl Block {
    /// Whether the slot with this index is live at the start.
    pub fn is_live(&self, slot: u32) -> bool {
        self.live_in.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }
}

pub(crate) struct Function {
    pub blocks: Vec<Block>,
    /// All its slots, by index.
    pub all: Vec<SlotRef>,
    /// Index of the first one that only native code and the operations around it have.
    pub temporaries: u32,
    /// Size of the register window: slots and bytes.
    pub slots: u32,
    pub bytes: u64,
    /// Values of slots on entry, the same in every block of the launch.
    pub constants: Vec<(SlotRef, u64)>,
    pub specials: Vec<(SlotRef, Special)>,
    /// Values of slots on entry that differ between blocks of the launch.
    pub block_specials: Vec<(SlotRef, Special)>,
    /// Slots that may be read before they are written, by index. They are zeroed on entry.
    pub zeros: Vec<u32>,
    /// Runs once, after the slots above are set.
    pub prologue: Vec<Op>,
    pub frame_bytes: u32,
    pub frame_align: u32,
    pub params: Vec<Option<SlotRef>>,
    pub returns: Vec<Option<SlotRef>>,
}

/// The functions that a kernel can reach, ready to run.
pub(crate) struct Code {
    /// By `FuncId`. `None` for declarations and unreachable functions.
    pub functions: Vec<Option<Function>>,
    /// By `FuncId`: the number of the signature. `None` for kernels, which cannot be called.
    pub callable: Vec<Option<u32>>,
    pub signatures: Signatures,
    /// Lanes of a gang.
    pub lanes: usize,
    /// Number of accesses, and of pure operations: one inline cache for each.
    pub accesses: usize,
    pub pure_operations: usize,
    /// The largest number of chains in a basic block.
    pub chains: usize,
    /// Number of accesses in loops that may run as native code, and of pointers in straight-line code.
    pub native_accesses: usize,
    /// How many gangs have run, until native code is worth compiling.
    pub gangs: AtomicU32,
    /// Threads of many blocks have run without a gang, the last time this was tried.
    pub coarsens: AtomicBool,
    /// So many CTA batches of them take [`SHORT`].
    pub short_range: AtomicU64,
    /// Some of them may have waited for others.
    pub waits: AtomicBool,
    /// Their way has been too long for that.
    pub is_too_long: AtomicBool,
}

impl Code {
    /// Counts a gang. Returns whether native code is worth compiling.
    pub fn note_gang(&self, when: NativeCode) -> bool {
        let is_hot = straight::is_hot(when, &self.gangs);
        if !is_hot {
            self.gangs.fetch_add(1, Ordering::Relaxed);
        }
        is_hot
    }

    /// Notes how long so many CTA batches have taken without a gang. Other data may take longer, so the range grows slowly.
    pub fn note_range(&self, batches: u64, time: Duration) {
        let batches = batches * SHORT.as_nanos() as u64 / (time.as_nanos() as u64).max(1);
        let grown = 2 * self.short_range.load(Ordering::Relaxed) + 1;
        self.short_range.store(batches.min(grown), Ordering::Relaxed);
    }
}

/// To divide what takes less time among host threads takes longer.
const SHORT: Duration = Duration::from_micros(10);

/// Bytes of a slot's array.
pub(crate) fn array_bytes(width: Width, lanes: usize) -> usize {
    match width {
        Width::Pred => size_of::<Mask>(),
        other => (other.bytes() * lanes).next_multiple_of(64),
    }
}
