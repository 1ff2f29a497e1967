//! Lowered functions: basic blocks of operations, terminators, and the slots of PTX registers.

use std::ops::Range;

use check::module::{FuncId, PrototypeId, RegId};
use diag::Span;

use crate::op::{BarrierReduction, BlockId, Op, Slot, SlotInfo};
use crate::operands::MapOperands;

/// Argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<S = Slot> {
    /// A `.param` variable of the caller: byte offset in its frame. The callee reads it in place.
    Frame(u32),
    /// A register or literal for a `.reg` parameter.
    Slot(S),
}

/// Destination of a call's return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned<S = Slot> {
    /// A `.param` variable of the caller: byte offset in its frame. The callee writes it in place.
    Frame(u32),
    /// A register, for a `.reg` return parameter.
    Slot(S),
    /// `_`
    Ignored,
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<S = Slot, P = PrototypeId> {
    /// A function by name.
    Direct(FuncId),
    /// The function whose address the slot holds. It must have the signature of this prototype of the caller's body.
    Indirect(S, P),
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Call<S = Slot, P = PrototypeId> {
    pub callee: Callee<S, P>,
    pub arguments: Vec<Argument<S>>,
    pub returned: Vec<Returned<S>>,
    pub next: BlockId,
}

/// What `barrier.red` computes of a predicate in all threads.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct BarrierResult<S = Slot> {
    pub op: BarrierReduction,
    pub dst: S,
    pub negated: bool,
    pub src: S,
}

/// `bar`/`barrier`.
#[derive(Clone, Debug, PartialEq)]
pub struct Barrier<S = Slot> {
    /// Its number.
    pub barrier: S,
    /// Number of participating threads; all threads of the CTA if absent.
    pub threads: Option<S>,
    /// `.arrive`: does not wait.
    pub arrive: bool,
    /// `.red`
    pub reduction: Option<BarrierResult<S>>,
    /// Where its threads go on.
    pub next: BlockId,
}

/// How a block ends, with slots `S` and prototypes `P`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Terminator<S = Slot, P = PrototypeId> {
    Jump(BlockId),
    /// To `taken` where `pred` differs from `negated`, otherwise to `otherwise`.
    Branch {
        pred: S,
        negated: bool,
        taken: BlockId,
        otherwise: BlockId,
    },
    /// `brx.idx`. An index past the end is undefined behaviour in PTX; engines fault.
    BranchIndexed {
        index: S,
        targets: Vec<BlockId>,
    },
    Call(Box<Call<S, P>>),
    Barrier(Box<Barrier<S>>),
    /// `barrier.cluster.arrive` and `.wait`.
    ClusterBarrier {
        arrive: bool,
        next: BlockId,
    },
    /// Return from a function, or end of a kernel's thread.
    Return,
    /// End of the thread.
    Exit,
    Trap,
}

impl<S: Copy, P: Copy> Terminator<S, P> {
    /// The terminator with other operands and prototypes.
    pub fn map<A, M: MapOperands<S, A>, Q>(
        &self,
        to: &mut M,
        prototype: impl FnOnce(P) -> Q,
    ) -> Terminator<M::Slot, Q> {
        match *self {
            Terminator::Jump(next) => Terminator::Jump(next),
            Terminator::Branch { pred, negated, taken, otherwise } => {
                Terminator::Branch { pred: to.source(pred), negated, taken, otherwise }
            }
            Terminator::BranchIndexed { index, ref targets } => {
                Terminator::BranchIndexed { index: to.source(index), targets: targets.clone() }
            }
            Terminator::Call(ref call) => Terminator::Call(Box::new(Call {
                callee: match call.callee {
                    Callee::Direct(id) => Callee::Direct(id),
                    Callee::Indirect(slot, of) => Callee::Indirect(to.source(slot), prototype(of)),
                },
                arguments: Vec::from_iter(call.arguments.iter().map(|argument| match *argument {
                    Argument::Frame(at) => Argument::Frame(at),
                    Argument::Slot(slot) => Argument::Slot(to.source(slot)),
                })),
                returned: Vec::from_iter(call.returned.iter().map(|returned| match *returned {
                    Returned::Frame(at) => Returned::Frame(at),
                    Returned::Slot(slot) => Returned::Slot(to.result(slot)),
                    Returned::Ignored => Returned::Ignored,
                })),
                next: call.next,
            })),
            Terminator::Barrier(ref barrier) => Terminator::Barrier(Box::new(Barrier {
                barrier: to.control(barrier.barrier),
                threads: barrier.threads.map(|threads| to.control(threads)),
                arrive: barrier.arrive,
                reduction: barrier.reduction.as_ref().map(|&BarrierResult { op, dst, negated, src }| {
                    let src = to.source(src);
                    BarrierResult { op, dst: to.result(dst), negated, src }
                }),
                next: barrier.next,
            })),
            Terminator::ClusterBarrier { arrive, next } => Terminator::ClusterBarrier { arrive, next },
            Terminator::Return => Terminator::Return,
            Terminator::Exit => Terminator::Exit,
            Terminator::Trap => Terminator::Trap,
        }
    }
}

/// A basic block of the control-flow graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its operations: a range of [`Function::ops`].
    pub ops: Range<u32>,
    /// How it ends.
    pub terminator: Terminator,
    /// The instruction that ends it.
    pub span: Span,
    /// The source instructions that a thread executes by passing through this basic block. An instruction that spans
    /// several basic blocks is listed where it begins.
    pub instructions: Vec<Span>,
    /// Register slots that are live on entry, ascending.
    pub live_in: Vec<Slot>,
    /// A loop through this basic block may wait for another thread: the basic block has an atomic, a volatile or
    /// acquiring load, or a fence. An engine must let other threads run while a thread spins here.
    pub may_spin: bool,
    /// The basic block has an atomic operation without a result (`red`). A loop around it reads nothing through it:
    /// the loop can wait for other threads only by weak loads, and weak loads guarantee no visibility.
    pub reduces: bool,
}

/// The slot of a parameter that is kept in a register (`.reg` parameters of a `.func`).
pub type RegisterParam = Option<Slot>;

/// A lowered function or kernel.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its slots. Registers that are live across basic blocks come first.
    pub slots: Vec<SlotInfo>,
    /// Basic blocks in layout order, entry first. The basic blocks of a loop are contiguous, after its header and
    /// before its exits. Hence an engine that always runs the lowest of several waiting basic blocks reconverges
    /// diverged lanes at the earliest point.
    pub blocks: Vec<Block>,
    /// Operations of all blocks.
    pub ops: Vec<Op>,
    /// Operations of a kernel whose results are the same in every CTA of a launch. An engine executes them on entry,
    /// and need not repeat them for the next CTA that it runs with the same registers.
    pub prologue: Vec<Op>,
    /// Bytes of local memory that a thread needs in this function (`.local` and `.param` variables).
    pub frame_bytes: u32,
    /// Alignment of that memory in bytes: the largest alignment of its variables.
    pub frame_align: u32,
    /// For each parameter: its slot if it is a `.reg` parameter.
    pub params: Vec<RegisterParam>,
    /// For each return parameter: its slot if it is a `.reg` parameter.
    pub returns: Vec<RegisterParam>,
    /// Where PTX registers are, in ascending order of register, half and basic block: see [`Function::place_of`].
    pub registers: Vec<RegisterPlace>,
}

/// Where a PTX register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterPlace {
    /// The register.
    pub register: RegId,
    /// For 128-bit registers: 0 is the low half, 1 the high half.
    pub half: u8,
    /// The basic block in which this place is valid; `None`: all of them.
    pub block: Option<BlockId>,
    /// The slot that holds the register's value, from its write to its last read. If a pass dropped a copy to the
    /// register, this is the slot of the copy's source.
    pub slot: Slot,
}

impl Function {
    /// The slot of a register (or of its half) in a basic block. `None` if nothing reads the register's value. With
    /// [`Options::NONE`](crate::Options::NONE), only registers that no instruction names have no slot.
    pub fn place_of(&self, register: RegId, half: u8, block: BlockId) -> Option<Slot> {
        let first = self.registers.partition_point(|place| (place.register, place.half) < (register, half));
        let places = &self.registers[first..];
        let mut places = places.iter().take_while(|place| (place.register, place.half) == (register, half));
        let place = places.find(|place| place.block.is_none_or(|b| b == block))?;
        Some(place.slot)
    }

    /// The operations that a source instruction became, as basic block and index in [`Function::ops`]. Operations of
    /// the prologue are not included. If the instruction also ends a basic block, [`Block::span`] is its span.
    pub fn operations_of(&self, span: Span) -> impl Iterator<Item = (BlockId, usize)> {
        let blocks = self.blocks.iter().enumerate();
        let all =
            blocks.flat_map(|(block, b)| b.ops.clone().map(move |op| (BlockId(block as u32), op as usize)));
        all.filter(move |&(_, op)| self.ops[op].span == span)
    }
}
