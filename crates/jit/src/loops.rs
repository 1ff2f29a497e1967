//! Which loops can be compiled.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use diag::Span;
use ir::{BlockId, Function, MemoryOp, OpKind, Slot, SlotKind, Terminator, Width};
use isa::{Form, Picks, Space};

use crate::join::join_loads;
use crate::kinds::{Kinds, Loads};
use crate::operation::Operation;
use crate::{Host, MOST_ACCESSES, MOST_BLOCKS, MOST_PREDICATES};

/// A slot that passes between basic blocks of a loop, or into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The slot.
    pub slot: Slot,
    /// The loop writes it.
    pub defined: bool,
    /// An operation sees its bits, or it leaves the loop: its NaNs must be PTX's.
    pub(crate) visible: bool,
}

/// An access of a loop to memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The state space of the instruction.
    pub space: Space,
    /// Bytes of one lane's access, all elements together.
    pub bytes: u64,
    /// What each address is a multiple of.
    pub align: u64,
    /// It stores.
    pub write: bool,
    /// Bytes added to the addresses that a frame has.
    pub offset: i64,
    /// Addresses have 32 bits.
    pub narrow: bool,
    /// The instruction.
    pub span: Span,
}

/// A loop that consists of operations that native code has.
#[derive(Debug)]
pub struct Loop {
    /// Its basic blocks. The first is its header.
    pub blocks: Range<u32>,
    /// Where lanes leave the loop.
    pub exits: Vec<BlockId>,
    /// The predicates of a frame.
    pub predicates: Vec<Value>,
    /// The accesses to memory.
    pub accesses: Vec<Access>,
    /// The operations that vector handlers compute: basic block, counted from the first one, and operation.
    pub calls: Vec<(usize, usize)>,
    /// All lanes of each warp must be there, since they exchange values.
    pub whole_warps: bool,
    /// The slots of 4 and 8 bytes that pass between basic blocks, or into the loop.
    pub(crate) words: Vec<Value>,
    pub(crate) bodies: Vec<Body>,
    /// The slots of 8 bytes.
    pub(crate) wide: BTreeSet<Slot>,
    /// The slots of 2 bytes.
    pub(crate) short: BTreeSet<Slot>,
    /// The slots that hold literals.
    pub(crate) literals: BTreeMap<Slot, u64>,
    /// The slots that are the same in all lanes throughout a launch.
    pub(crate) fixed: BTreeSet<Slot>,
    /// The slots that are live at the start of the loop.
    pub(crate) live_in: BTreeSet<Slot>,
}

/// What a loop consists of.
pub(crate) struct Parts {
    pub blocks: Range<u32>,
    pub exits: Vec<BlockId>,
    pub bodies: Vec<Body>,
    pub accesses: Vec<Access>,
    pub calls: Vec<(usize, usize)>,
}

/// A basic block of a loop, and those that are joined to it.
#[derive(Debug)]
pub(crate) struct Body {
    pub operations: Vec<Operation>,
    /// Where the operations of each of these basic blocks begin.
    pub starts: Vec<Start>,
    /// The instruction of each operation, and behind them that of the end.
    pub spans: Vec<Span>,
    /// The slots that lanes elsewhere need while others are in this basic block. Lower basic blocks have none then.
    pub needed: BTreeSet<Slot>,
    pub end: End,
    /// Instructions that a lane executes here.
    pub cost: u32,
    /// How often lanes are here, roughly.
    pub weight: u32,
}

/// Where the operations of a basic block begin in a [`Body`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub operation: usize,
    /// The basic block, counted from the first one of the loop.
    pub block: usize,
    /// Instructions that a lane executes there.
    pub cost: u32,
}

/// How a basic block of a loop ends. Places are indices of [`Frame::pending`](crate::Frame::pending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Jump(usize),
    Branch {
        pred: Slot,
        negated: bool,
        taken: usize,
        otherwise: usize,
    },
    /// The basic block is joined to the one before: no lane is ever at its start.
    Joined,
}

/// The form of slots whose values are the same in all lanes whatever the launch, for readers of code that no launch has made.
pub fn uniform(
    function: &Function,
    steps: impl Fn(&Form, &Picks) -> bool,
) -> impl Fn(Slot) -> Option<crate::Form> {
    let (kinds, count) = (Kinds::of(function, Loads::Alike, steps), function.slots.len());
    move |slot| (slot.index() < count && kinds.is_uniform(slot)).then_some(crate::Form::UNIFORM)
}

/// The loops of a function that native code of a host can run, outermost first. No loop is part of another. `steps`: whether an
/// instruction makes values that step evenly from lane to lane of such values.
pub fn loops(function: &Function, host: Host, steps: impl Fn(&Form, &Picks) -> bool) -> Vec<Loop> {
    let mut candidates: Vec<Range<u32>> = Vec::new();
    for (index, block) in (0..).zip(&function.blocks) {
        let back = block.terminator.successors().into_iter().filter(|next| next.0 <= index);
        candidates.extend(back.map(|header| header.0..index + 1));
    }
    candidates.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let kinds = OnceCell::new();
    let kinds = || kinds.get_or_init(|| Kinds::of(function, Loads::Alike, &steps));
    let mut found: Vec<Loop> = Vec::new();
    for range in candidates {
        let apart = found.last().is_none_or(|last| last.blocks.end <= range.start);
        if apart && let Some(found_loop) = Loop::new(function, host, range, kinds) {
            found.push(found_loop);
        }
    }
    found
}

impl Loop {
    fn new<'k>(
        function: &Function,
        host: Host,
        blocks: Range<u32>,
        kinds: impl Fn() -> &'k Kinds,
    ) -> Option<Loop> {
        if blocks.len() > MOST_BLOCKS {
            return None;
        }
        let width = |slot: Slot| function.slots[slot.index()].width;
        let literal = |slot: Slot| match function.slots[slot.index()].kind {
            SlotKind::Constant(value) => Some(value),
            _ => None,
        };
        let inside = &function.blocks[blocks.start as usize..blocks.end as usize];
        let mut exits: Vec<BlockId> = Vec::new();
        let mut place = |next: BlockId| {
            if blocks.contains(&next.0) {
                return (next.0 - blocks.start) as usize;
            }
            let exit = exits.iter().position(|exit| *exit == next).unwrap_or_else(|| {
                exits.push(next);
                exits.len() - 1
            });
            blocks.len() + exit
        };
        let (mut bodies, mut accesses, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for block in inside {
            let ops = &function.ops[block.ops.start as usize..block.ops.end as usize];
            let operations = ops.iter().enumerate().map(|(at, op)| {
                let shifts = Operation::of_shifts(&op.kind, literal).filter(|_| op.guard.is_none());
                let operation = shifts.or_else(|| Operation::of(op, width, accesses.len(), calls.len()));
                let operation = operation.or_else(|| Operation::of_warp(op, literal, calls.len()))?;
                // Lanes that wait for what others add must give them a turn.
                if matches!(operation, Operation::Atomic { dst: Some(_), .. }) {
                    return None;
                }
                if operation.is_call() {
                    calls.push((bodies.len(), at));
                }
                if let Some(access) = operation.access() {
                    accesses.push(Access {
                        space: space_of(&op.kind)?,
                        bytes: u64::from(access.bytes * access.count),
                        align: access.align.into(),
                        write: operation.writes(),
                        offset: access.offset,
                        narrow: width(access.base) == Width::W32,
                        span: op.span,
                    });
                }
                Some(operation)
            });
            let operations = operations.collect::<Option<_>>()?;
            let cost = u32::try_from(block.instructions.len()).ok()?;
            let end = match block.terminator {
                Terminator::Jump(next) => End::Jump(place(next)),
                Terminator::Branch { pred, negated, taken, otherwise } => {
                    End::Branch { pred, negated, taken: place(taken), otherwise: place(otherwise) }
                }
                _ => return None,
            };
            bodies.push(Body {
                operations,
                starts: vec![Start { operation: 0, block: bodies.len(), cost }],
                spans: ops.iter().map(|op| op.span).chain([block.span]).collect(),
                needed: BTreeSet::new(),
                end,
                cost,
                weight: 0,
            });
        }
        join(&mut bodies);
        if host.has_many_vectors() {
            bodies.iter_mut().for_each(|body| join_loads(&mut body.operations, &mut accesses));
        }
        if blocks.len() + exits.len() > MOST_BLOCKS || accesses.len() > MOST_ACCESSES {
            return None;
        }

        for index in 0..bodies.len() {
            let backs = bodies.iter().enumerate().skip(index);
            let around = backs.filter(|(from, body)| body.end.places().any(|to| to <= *from && to <= index));
            bodies[index].weight = 8u32.saturating_pow(around.count() as u32);
        }

        let live_at = |id: &BlockId| function.blocks[id.index()].live_in.iter().copied();
        let live_out: BTreeSet<Slot> = exits.iter().flat_map(live_at).collect();
        let live_in = |index: usize| live_at(&BlockId(blocks.start + index as u32)).collect::<Vec<_>>();
        let visited: Vec<usize> =
            (0..bodies.len()).filter(|&index| bodies[index].end != End::Joined).collect();
        let live: BTreeSet<Slot> = visited.iter().flat_map(|&index| live_in(index)).collect();
        for &index in &visited {
            let waiting = visited.iter().filter(|&&other| other > index && waits(&bodies, index, other));
            let live = waiting.flat_map(|&other| live_in(other));
            bodies[index].needed = live_out.iter().copied().chain(live).collect();
        }
        let defined: BTreeSet<Slot> = operations(&bodies).flat_map(Operation::defs).collect();
        // The interpreter keeps what is the same in all lanes, or steps evenly, in a form that makes addresses cheap.
        let kinds = kinds();
        let divides =
            bodies.iter().any(|body| matches!(body.end, End::Branch { pred, .. } if kinds.varies(pred)));
        if !divides && live_out.iter().any(|slot| defined.contains(slot) && !kinds.varies(*slot)) {
            return None;
        }
        let live_in = function.blocks[blocks.start as usize].live_in.iter().copied().collect();
        let parts = Parts { blocks, exits, bodies, accesses, calls };
        let found = Loop::of_parts(function, kinds, width, parts, &live, &live_out, live_in);
        (found.predicates.len() <= MOST_PREDICATES).then_some(found)
    }

    /// The access is to local memory.
    pub(crate) fn is_local(&self, access: &crate::operation::Access) -> bool {
        self.accesses.get(access.index).is_some_and(|access| access.space == Space::Local)
    }

    /// `live`: the slots that are live at the start of some basic block; `live_out`: behind them; `live_in`: at the start of the
    /// first one.
    pub(crate) fn of_parts(
        function: &Function,
        kinds: &Kinds,
        width: impl Fn(Slot) -> Width,
        Parts { blocks, exits, bodies, accesses, calls }: Parts,
        live: &BTreeSet<Slot>,
        live_out: &BTreeSet<Slot>,
        live_in: BTreeSet<Slot>,
    ) -> Loop {
        let defined: BTreeSet<Slot> = operations(&bodies).flat_map(Operation::defs).collect();
        let used: BTreeSet<Slot> = operations(&bodies).flat_map(Operation::uses).collect();
        let ends = bodies.iter().filter_map(|body| match body.end {
            End::Branch { pred, .. } => Some(pred),
            End::Jump(_) | End::Joined => None,
        });
        let used: BTreeSet<Slot> = used.into_iter().chain(ends).collect();
        let seen: BTreeSet<Slot> =
            operations(&bodies).filter(|op| op.sees_bits()).flat_map(Operation::uses).collect();
        let all = used.iter().chain(&defined).copied().collect::<BTreeSet<_>>();
        // What is written in the basic block that reads it never leaves its registers.
        let passes = all
            .into_iter()
            .filter(|slot| live.contains(slot) || live_out.contains(slot) || !defined.contains(slot));
        let (predicates, words): (Vec<Value>, Vec<Value>) = passes
            .map(|slot| Value {
                slot,
                defined: defined.contains(&slot),
                visible: seen.contains(&slot) || live_out.contains(&slot),
            })
            .partition(|value| width(value.slot) == Width::Pred);
        let slots = || used.iter().chain(&defined).copied();
        let of_width = |bits| slots().filter(|&slot| width(slot) == bits).collect();
        let (wide, short) = (of_width(Width::W64), of_width(Width::W16));
        let literal = |slot: Slot| match function.slots.get(slot.index())?.kind {
            SlotKind::Constant(value) if width(slot) == Width::W16 => Some((slot, value & 0xffff)),
            SlotKind::Constant(value) => Some((slot, value)),
            _ => None,
        };
        let literals = slots().filter_map(literal).collect();
        // The prologue also computes what differs from lane to lane, or from CTA to CTA.
        let is_fixed = |slot: &Slot| {
            let info = function.slots.get(slot.index());
            info.is_some_and(|info| info.kind == SlotKind::Invariant) && kinds.is_uniform(*slot)
        };
        let fixed = slots().filter(is_fixed).collect();
        let whole_warps = operations(&bodies).any(Operation::is_of_warp);
        Loop {
            whole_warps,
            blocks,
            exits,
            predicates,
            accesses,
            calls,
            words,
            bodies,
            wide,
            short,
            literals,
            fixed,
            live_in,
        }
    }
}

/// Joins each basic block to the one before, if all its lanes come from there and nowhere else.
fn join(bodies: &mut [Body]) {
    for index in (1..bodies.len()).rev() {
        let from = |place| bodies.iter().flat_map(|body| body.end.places()).filter(move |to| *to == place);
        if bodies[index - 1].end != End::Jump(index) || from(index).count() != 1 {
            continue;
        }
        let [first, second] = &mut bodies[index - 1..=index] else { continue };
        let count = first.operations.len();
        first.operations.append(&mut second.operations);
        first
            .starts
            .extend(second.starts.iter().map(|start| Start { operation: start.operation + count, ..*start }));
        first.spans.truncate(count);
        first.spans.append(&mut second.spans);
        first.cost += second.cost;
        first.end = std::mem::replace(&mut second.end, End::Joined);
    }
}

/// Whether lanes may be at the start of basic block `other` while some are in the lower block `index`: they came from below
/// both, or before lanes went back from below `other`.
fn waits(bodies: &[Body], index: usize, other: usize) -> bool {
    (0..).zip(bodies).take(other).any(|(from, body)| {
        body.end.places().any(|to| to == other && from < index || to <= index && to <= from)
    })
}

impl End {
    /// Where lanes go.
    fn places(self) -> impl Iterator<Item = usize> {
        let (place, other) = match self {
            End::Jump(place) => (Some(place), None),
            End::Branch { taken, otherwise, .. } => (Some(taken), Some(otherwise)),
            End::Joined => (None, None),
        };
        place.into_iter().chain(other)
    }
}

impl Body {
    /// The basic block of an operation, the operation there, and the instructions of this basic block and of those behind it.
    pub fn origin(&self, operation: usize) -> (usize, usize, u32) {
        let index = self.starts.partition_point(|start| start.operation <= operation) - 1;
        let start = self.starts[index];
        (start.block, operation - start.operation, self.starts[index..].iter().map(|start| start.cost).sum())
    }
}

/// The state space of an access.
pub(crate) fn space_of(op: &OpKind) -> Option<Space> {
    match op {
        OpKind::Load(load) => Some(load.address.space),
        OpKind::Store(store) => Some(store.address.space),
        OpKind::Memory(op) if let MemoryOp::Atomic(atomic) = &**op => Some(atomic.address.space),
        _ => None,
    }
}

pub(crate) fn operations(bodies: &[Body]) -> impl Iterator<Item = &Operation> {
    bodies.iter().flat_map(|body| &body.operations)
}
