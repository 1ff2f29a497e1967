//! Basic blocks that native code takes all lanes through together, one behind the other.
//!
//! Straight-line code ends where a basic block ends: at a shuffle, which begins one, and at a branch. A *trace* goes on there, if the
//! branch is likely to lead all lanes the same way, or around one basic block, which is then executed by some of the lanes
//! (if-conversion). What is the same in all lanes, or steps evenly, is computed first, into temporaries, and with it the way of all
//! branches. So before the trace has an effect it is known to be the right one; otherwise the lanes go on as if there were none. Which lanes
//! execute a basic block that a branch leads around may be known only to native code, which then counts their instructions.

use std::collections::BTreeSet;

use ir::{BlockId, Function, Guard, Op, OpKind, Slot, SlotInfo, SlotKind, Terminator, Touch, Width};
use isa::{CmpOp, SpecialValue};

use crate::Host;
use crate::kinds::{Here, Starts};
use crate::straight::{Addresses, Class, Finder, Straight, Visited};

/// The most basic blocks of a trace.
const MOST_BLOCKS: usize = 32;
/// The most operations that some of the lanes execute.
const MOST_OF_SOME: usize = 16;

/// Basic blocks that native code takes all lanes through together.
#[derive(Debug)]
pub struct Trace {
    /// The basic blocks, at least two. How the last one ends is not part of the trace.
    pub path: Vec<Visited>,
    /// What the interpreter computes first. It writes temporaries only.
    pub before: Vec<Op>,
    /// How branches go: these must hold in all lanes, after `before`.
    pub ways: Vec<Guard>,
    /// What native code computes.
    pub section: Straight,
    /// What the interpreter computes last: it copies temporaries to the slots that they are for.
    pub after: Vec<Op>,
}

/// The traces of a function. None begins where another one comes through, or with a basic block that only jumps.
/// `temporaries`: as [`StraightCode::temporaries`](crate::StraightCode::temporaries).
pub(crate) fn traces(
    function: &Function,
    host: Host,
    starts: &Starts,
    addresses: &Addresses,
    temporaries: &mut Vec<Width>,
) -> Vec<Trace> {
    let (mut found, ways) = (Vec::new(), Ways::of(function));
    let mut passed = vec![false; function.blocks.len()];
    for (first, block) in (0..).zip(&function.blocks) {
        let only_jumps = block.ops.is_empty() && matches!(block.terminator, Terminator::Jump(_));
        if passed[first as usize] || only_jumps {
            continue;
        }
        let mut path = ways.candidates(starts, first);
        while path.len() > 1 {
            match Finder::new(function, host, &path, starts, addresses, temporaries).trace(&path) {
                Ok(trace) => {
                    path[1..].iter().for_each(|visited| passed[visited.block as usize] = true);
                    found.extend(trace);
                    break;
                }
                Err(most) => shorten(&mut path, most),
            }
        }
    }
    found
}

/// Leaves at most so many basic blocks, and one less. All lanes are in the last one.
fn shorten(path: &mut Vec<Visited>, most: usize) {
    path.truncate(most.min(path.len() - 1));
    if path.last().is_some_and(|last| last.lanes.is_some()) {
        path.pop();
    }
}

/// Which way lanes are likely to go.
struct Ways<'f> {
    function: &'f Function,
    /// Where loops begin.
    headers: BTreeSet<u32>,
    /// The predicates that hold for a certain index, or for all others. Where an index is compared with a bound, all lanes of a gang are
    /// likely to be on one side.
    picked: BTreeSet<Slot>,
    /// What depends on the block's place in the grid. A place within the block that is compared with a bound is likely to divide the
    /// threads of each block.
    of_grid: BTreeSet<Slot>,
}

impl<'f> Ways<'f> {
    fn of(function: &'f Function) -> Ways<'f> {
        let (headers, picked, of_grid) = (BTreeSet::new(), BTreeSet::new(), of_grid(function));
        let mut ways = Ways { function, headers, picked, of_grid };
        for (from, block) in (0..).zip(&function.blocks) {
            ways.headers.extend(block.terminator.successors().iter().map(|to| to.0).filter(|&to| to <= from));
        }
        for op in function.prologue.iter().chain(&function.ops) {
            let OpKind::Pure { picks, dst, .. } = &op.kind else { continue };
            if matches!(picks.cmp(), Some(CmpOp::Eq | CmpOp::Ne)) {
                ways.picked.extend(dst.iter().flatten());
            }
        }
        ways
    }

    /// The basic blocks that lanes are likely to come to, one behind the other. A loop is native code of another kind.
    fn candidates(&self, starts: &Starts, first: u32) -> Vec<Visited> {
        let mut path = vec![Visited::by_all(first)];
        let mut here = starts.at(first);
        while path.len() < MOST_BLOCKS - 1 {
            let last = path[path.len() - 1];
            let block = last.of(self.function);
            block.ops.clone().for_each(|op| here.pass(op));
            let (some, next) = match block.terminator {
                Terminator::Jump(next) => (None, next),
                // A branch often leads around what only some lanes do: those out of bounds.
                Terminator::Branch { pred, taken, otherwise, .. }
                    if taken.0 > last.block && self.is_together(&here, pred) =>
                {
                    (None, otherwise)
                }
                Terminator::Branch { .. } => match self.around(last.block) {
                    Some((some, next)) => (Some(some), next),
                    None => break,
                },
                _ => break,
            };
            let from = some.map_or(last.block, |some| some.block);
            let is_loop = |to: u32| self.headers.contains(&to);
            if next.0 <= from || is_loop(next.0) || some.is_some_and(|some| is_loop(some.block)) {
                break;
            }
            if let Some(some) = some {
                let pred = some.lanes.map_or(Slot(0), |lanes| lanes.slot);
                some.of(self.function).ops.clone().for_each(|op| here.pass_some(op, pred));
                path.push(some);
            }
            path.push(Visited::by_all(next.0));
        }
        path
    }

    /// Whether all lanes of a gang are likely to go one way.
    fn is_together(&self, here: &Here, pred: Slot) -> bool {
        let is_bound = !self.picked.contains(&pred) && self.of_grid.contains(&pred);
        here.is_uniform(pred) || !here.varies(pred) && is_bound
    }

    /// A small basic block that a branch leads some lanes around, and the next one, where they meet.
    fn around(&self, last: u32) -> Option<(Visited, BlockId)> {
        let Terminator::Branch { pred, negated, taken, otherwise } =
            self.function.blocks[last as usize].terminator
        else {
            return None;
        };
        let side = |(some, next, negated): (BlockId, BlockId, bool)| {
            let block = &self.function.blocks[some.index()];
            let ops = &self.function.ops[block.ops.start as usize..block.ops.end as usize];
            let leads_on = block.terminator == Terminator::Jump(next) && some.0 > last;
            if !leads_on || ops.len() > MOST_OF_SOME {
                return None;
            }
            let mut is_plain = ops.iter().all(|op| op.guard.is_none());
            let defines = &mut |slot: &mut Slot, touch| is_plain &= touch != Touch::Def || *slot != pred;
            ops.iter().for_each(|op| op.clone().visit(defines));
            let lanes = Some(Guard { slot: pred, negated });
            is_plain.then_some((Visited { block: some.0, lanes, is_counted: false }, next))
        };
        [(otherwise, taken, !negated), (taken, otherwise, negated)].into_iter().find_map(side)
    }
}

/// The slots that depend on the block's place in the grid.
fn of_grid(function: &Function) -> BTreeSet<Slot> {
    let is_place = |info: &&SlotInfo| match info.kind {
        SlotKind::Special(register) => {
            matches!(register.value(), SpecialValue::Ctaid(_) | SpecialValue::Clusterid(_))
        }
        _ => false,
    };
    // For each slot, what operations write that read it.
    let mut results = vec![Vec::new(); function.slots.len()];
    for op in function.prologue.iter().chain(&function.ops) {
        let (mut uses, mut defs) = (Vec::new(), Vec::new());
        op.clone()
            .visit(&mut |slot, touch| if touch == Touch::Use { uses.push(*slot) } else { defs.push(*slot) });
        uses.iter().for_each(|slot| results[slot.index()].extend(&defs));
    }
    let slots = (0..).map(Slot).zip(&function.slots);
    let mut waiting: Vec<Slot> = slots.filter(|(_, info)| is_place(info)).map(|(slot, _)| slot).collect();
    let mut found: BTreeSet<Slot> = waiting.iter().copied().collect();
    while let Some(slot) = waiting.pop() {
        waiting.extend(results[slot.index()].iter().filter(|result| found.insert(**result)));
    }
    found
}

impl Finder<'_> {
    /// What the basic blocks make together; `Ok(None)`: nothing that is worth it. `Err`: only so many of them can be one trace.
    fn trace(mut self, path: &[Visited]) -> Result<Option<Trace>, usize> {
        let (mut at, mut ways, mut with_operations) = (0, Vec::new(), 0);
        let mut visits = path.to_vec();
        for (index, visited) in path.iter().enumerate() {
            let block = visited.of(self.function);
            let before = self.operations();
            for _ in block.ops.clone() {
                match self.class(at) {
                    Class::Vector(operation) if self.takes(at, &operation) => self.add(at, operation),
                    Class::Even if self.is_known(at) => self.pass(at),
                    _ => return Err(index),
                }
                self.go_on(at);
                at += 1;
            }
            with_operations += usize::from(self.operations() > before);
            let Some(next) = visits.get_mut(index + 1) else { break };
            let Terminator::Branch { pred, negated, .. } = block.terminator else { continue };
            let known = self.known(pred);
            match (next.lanes, known) {
                (Some(lanes), Some(slot)) => next.lanes = Some(Guard { slot, ..lanes }),
                (Some(lanes), None) => {
                    let cost = next.of(self.function).instructions.len();
                    self.count(at - 1, lanes, u32::try_from(cost).map_err(|_| index + 1)?);
                    next.is_counted = true;
                }
                (None, known) => ways.push(Guard { slot: known.ok_or(index + 1)?, negated: !negated }),
            }
        }
        if with_operations < 2 {
            return Ok(None);
        }
        let Some((before, section, after)) = self.whole() else { return Ok(None) };
        Ok(Some(Trace { path: visits, before, ways, section, after }))
    }
}
