//! Lowered functions: blocks of operations, how they end, and where registers of the source went.

use std::ops::Range;

use check::module::{FuncId, PrototypeId, RegId};
use diag::Span;

use crate::op::{BarrierReduction, BlockId, Op, Slot, SlotInfo};

/// Argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A `.param` variable of the caller: byte offset in its frame. The callee reads it in place.
    Frame(u32),
    /// A register or literal for a `.reg` parameter.
    Slot(Slot),
}

/// Destination of a call's return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// A `.param` variable of the caller: byte offset in its frame. The callee writes it in place.
    Frame(u32),
    /// A register, for a `.reg` return parameter.
    Slot(Slot),
    /// `_`
    Ignored,
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function by name.
    Direct(FuncId),
    /// The function whose "address" the slot holds, which must have the signature of a prototype of the caller's body.
    Indirect(Slot, PrototypeId),
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Terminator {
    Jump(BlockId),
    /// To `taken` where `pred` is not `negated`.
    Branch {
        pred: Slot,
        negated: bool,
        taken: BlockId,
        otherwise: BlockId,
    },
    /// `brx.idx`: an index past the end is undefined; we fault.
    BranchIndexed {
        index: Slot,
        targets: Vec<BlockId>,
    },
    Call {
        callee: Callee,
        arguments: Vec<Argument>,
        returned: Vec<Returned>,
        next: BlockId,
    },
    /// `bar`/`barrier`. `threads`: number of threads that take part, all of the block if absent.
    Barrier {
        barrier: Slot,
        threads: Option<Slot>,
        /// `.arrive`: does not wait.
        arrive: bool,
        reduction: Option<(BarrierReduction, Slot, bool, Slot)>,
        next: BlockId,
    },
    /// `barrier.cluster.arrive` and `.wait`.
    ClusterBarrier {
        arrive: bool,
        next: BlockId,
    },
    /// End of a function, or of a kernel's thread.
    Return,
    /// End of the thread.
    Exit,
    Trap,
}

/// A block of the control-flow graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its operations: a range of [`Function::ops`].
    pub ops: Range<u32>,
    /// How it ends.
    pub terminator: Terminator,
    /// The instruction that ends it.
    pub span: Span,
    /// Instructions of the source that a thread executes by going through it. One that spreads over several blocks
    /// stands where it begins.
    pub instructions: Vec<Span>,
    /// Register slots that are live on entry, ascending.
    pub live_in: Vec<Slot>,
    /// A loop through this block may wait for another thread: it has an atomic, a volatile or acquiring load,
    /// or a fence, so that whoever spins here must let others run.
    pub may_spin: bool,
    /// It has an atomic operation without a result (`red`). Whoever loops around it learns nothing by it, and waits for others only if
    /// weak loads show what they do, which nobody may rely on.
    pub reduces: bool,
}

/// A parameter kept in a register (`.func` with `.reg` parameters).
pub type RegisterParam = Option<Slot>;

/// A lowered function or kernel.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its slots: registers that live across blocks come first.
    pub slots: Vec<SlotInfo>,
    /// Blocks in layout order, entry first. Whoever runs the lowest of several waiting blocks first
    /// reconverges diverged lanes at the earliest place: a loop's blocks stand together, after its header,
    /// before its exits.
    pub blocks: Vec<Block>,
    /// Operations of all blocks.
    pub ops: Vec<Op>,
    /// Operations of a kernel whose results are the same in every block of a launch: whoever enters it executes them
    /// first, and need not again for the next block that it runs with the same registers.
    pub prologue: Vec<Op>,
    /// Bytes of local memory that a thread in this function needs (`.local` and `.param` variables).
    pub frame_bytes: u32,
    /// Alignment of that memory in bytes: that of the variable with the greatest.
    pub frame_align: u32,
    /// For each parameter: its slot if it is a `.reg` parameter.
    pub params: Vec<RegisterParam>,
    /// For each return parameter: its slot if it is a `.reg` parameter.
    pub returns: Vec<RegisterParam>,
    /// Where registers of the source are, in ascending order of register, half and block: see [`Function::place_of`].
    pub registers: Vec<RegisterPlace>,
}

/// Where a register of the source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterPlace {
    /// The register.
    pub register: RegId,
    /// Of registers of 128 bits: 0 the low half, 1 the high one.
    pub half: u8,
    /// The block in which it is there; `None` if it is in all of them.
    pub block: Option<BlockId>,
    /// The slot that holds its value, from where it is written to where it is read last. If it was copied, and the copy dropped,
    /// that is the slot of what it was copied from.
    pub slot: Slot,
}

impl Function {
    /// The slot of (a half of) a register in a block. `None` where the register has no value that anybody reads; with
    /// [`Options::NONE`](crate::Options::NONE) only registers that no instruction names have none.
    pub fn place_of(&self, register: RegId, half: u8, block: BlockId) -> Option<Slot> {
        let first = self.registers.partition_point(|place| (place.register, place.half) < (register, half));
        let places = &self.registers[first..];
        let mut places = places.iter().take_while(|place| (place.register, place.half) == (register, half));
        let place = places.find(|place| place.block.is_none_or(|b| b == block))?;
        Some(place.slot)
    }

    /// The operations that an instruction of the source became, by block and index in [`Function::ops`]: those of the prologue
    /// are not among them. Where it also ends a block, [`Block::span`] says so.
    pub fn operations_of(&self, span: Span) -> impl Iterator<Item = (BlockId, usize)> {
        let blocks = self.blocks.iter().enumerate();
        let all =
            blocks.flat_map(|(block, b)| b.ops.clone().map(move |op| (BlockId(block as u32), op as usize)));
        all.filter(move |&(_, op)| self.ops[op].span == span)
    }
}
