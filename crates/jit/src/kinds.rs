//! How the lanes' values of a slot may be alike, whatever the launch.

use std::collections::{BTreeMap, BTreeSet};

use ir::{Base, Function, Load, OpKind, SimpleOp, Slot, SlotKind, Touch};
use isa::{Form, Picks, Space};

/// How the lanes' values of a slot may be alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The same in all lanes.
    Uniform,
    /// Steps evenly from lane to lane.
    Even,
    Varies,
}

/// What is known of values that all lanes load from one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loads {
    /// They are alike.
    Alike,
    /// Nothing, since the lanes are of many blocks, and the address may be one of each block's own memory.
    Vary,
}

/// It loads a parameter of the kernel.
pub(crate) fn is_of_param(load: &Load) -> bool {
    matches!(load.address.base, Base::KernelParam(_))
}

/// The kind of every slot of a function: the best that all its definitions allow. The interpreter may find less.
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    /// `steps`: whether an instruction makes values that step evenly from lane to lane of such values.
    pub fn of(function: &Function, loads: Loads, steps: impl Fn(&Form, &Picks) -> bool) -> Kinds {
        // Which special registers are the same in all lanes does not matter here: none is a literal.
        let start = function.slots.iter().map(|info| match info.kind {
            SlotKind::Special(_) => Kind::Even,
            _ => Kind::Uniform,
        });
        let mut kinds = Kinds(start.collect());
        // What callers and calls give may be anything.
        function.params.iter().flatten().for_each(|slot| kinds.0[slot.index()] = Kind::Varies);
        for block in &function.blocks {
            block.terminator.clone().visit(&mut |slot, touch| {
                if touch == Touch::Def {
                    kinds.0[slot.index()] = Kind::Varies;
                }
            });
        }
        let operations = function.prologue.iter().chain(&function.ops);
        let operations: Vec<_> = operations.map(|op| Flow::of(op, loads, &steps)).collect();
        let mut readers = vec![Vec::new(); function.slots.len()];
        for (index, op) in operations.iter().enumerate() {
            op.uses.iter().for_each(|slot| readers[slot.index()].push(index));
        }
        // A kind rises twice at the most, so this ends soon in whatever order the operations stand.
        let mut waiting: Vec<usize> = (0..operations.len()).rev().collect();
        while let Some(index) = waiting.pop() {
            kinds.define(&operations[index], |slot| waiting.extend(&readers[slot.index()]));
        }
        kinds
    }

    /// A temporary, which is no slot of the function, varies.
    fn of_slot(&self, slot: Slot) -> Kind {
        self.0.get(slot.index()).copied().unwrap_or(Kind::Varies)
    }

    pub fn varies(&self, slot: Slot) -> bool {
        self.0[slot.index()] == Kind::Varies
    }

    pub fn is_uniform(&self, slot: Slot) -> bool {
        self.0[slot.index()] == Kind::Uniform
    }

    /// Joins what an operation gives its results. `risen` hears of those whose kind is another now.
    fn define(&mut self, op: &Flow, mut risen: impl FnMut(Slot)) {
        let result = op.result(op.uses.iter().map(|slot| self.0[slot.index()]).max());
        for &slot in &op.defs {
            if self.0[slot.index()] < result {
                self.0[slot.index()] = result;
                risen(slot);
            }
        }
    }
}

/// The kinds of slots at the start of each basic block. A slot that varies at one place need not do so at another.
pub(crate) struct Starts<'f> {
    function: &'f Function,
    kinds: &'f Kinds,
    flows: Vec<Flow>,
    /// By basic block: the kinds of what is live there.
    live: Vec<BTreeMap<Slot, Kind>>,
}

impl<'f> Starts<'f> {
    /// `kinds`: those of the function.
    pub fn of(
        function: &'f Function,
        kinds: &'f Kinds,
        loads: Loads,
        steps: impl Fn(&Form, &Picks) -> bool,
    ) -> Starts<'f> {
        let flows = function.ops.iter().map(|op| Flow::of(op, loads, &steps)).collect();
        let mut starts =
            Starts { function, kinds, flows, live: vec![BTreeMap::new(); function.blocks.len()] };
        if let (Some(block), Some(live)) = (function.blocks.first(), starts.live.first_mut()) {
            live.extend(block.live_in.iter().map(|&slot| (slot, kinds.of_slot(slot))));
        }
        // A kind rises twice at the most, so this ends soon in whatever order the basic blocks stand.
        let mut waiting: BTreeSet<u32> = BTreeSet::from([0]);
        let mut reached = vec![false; function.blocks.len()];
        while let Some(index) = waiting.pop_first() {
            reached[index as usize] = true;
            let block = &function.blocks[index as usize];
            let mut here = starts.at(index);
            block.ops.clone().for_each(|op| here.pass(op));
            block.terminator.clone().visit(&mut |slot, touch| {
                if touch == Touch::Def {
                    here.changed.insert(*slot, Kind::Varies);
                }
            });
            let changed = here.changed;
            for next in block.terminator.successors() {
                let mut risen = !reached[next.index()];
                for &slot in &function.blocks[next.index()].live_in {
                    let kind = changed.get(&slot).copied().unwrap_or_else(|| kinds.of_slot(slot));
                    let known = starts.live[next.index()].entry(slot).or_insert(kind);
                    risen |= *known < kind;
                    *known = kind.max(*known);
                }
                if risen {
                    waiting.insert(next.0);
                }
            }
        }
        starts
    }

    /// At the start of a basic block.
    pub fn at(&self, index: u32) -> Here<'_> {
        Here { starts: self, changed: self.live[index as usize].clone() }
    }
}

/// The kinds of slots at a place in a basic block.
pub(crate) struct Here<'k> {
    starts: &'k Starts<'k>,
    changed: BTreeMap<Slot, Kind>,
}

impl Here<'_> {
    fn of(&self, slot: Slot) -> Kind {
        self.changed.get(&slot).copied().unwrap_or_else(|| self.starts.kinds.of_slot(slot))
    }

    pub fn varies(&self, slot: Slot) -> bool {
        self.of(slot) == Kind::Varies
    }

    pub fn is_uniform(&self, slot: Slot) -> bool {
        self.of(slot) == Kind::Uniform
    }

    /// The slot, which is none of the function's, has one value in all lanes.
    pub fn add_uniform(&mut self, slot: Slot) {
        self.changed.insert(slot, Kind::Uniform);
    }

    /// Those that hold at every place.
    pub fn anywhere(&self) -> &Kinds {
        self.starts.kinds
    }

    /// What the function's operation with this index reads and writes.
    pub fn flow(&self, op: u32) -> &Flow {
        &self.starts.flows[op as usize]
    }

    /// The kind of the results of the function's operation with this index.
    pub fn result(&self, op: u32) -> Kind {
        let flow = &self.starts.flows[op as usize];
        flow.result(flow.uses.iter().map(|slot| self.of(*slot)).max())
    }

    /// Goes on behind an operation that some lanes execute: those for which a predicate holds.
    pub fn pass_some(&mut self, op: u32, pred: Slot) {
        let result = self.result(op).max(self.of(pred));
        for &slot in &self.starts.flows[op as usize].defs {
            let kind = if result == Kind::Uniform { result.max(self.of(slot)) } else { Kind::Varies };
            self.changed.insert(slot, kind);
        }
    }

    /// Goes on behind an operation.
    pub fn pass(&mut self, op: u32) {
        let (result, guarded) = (self.result(op), self.starts.function.ops[op as usize].guard.is_some());
        for &slot in &self.starts.flows[op as usize].defs {
            let kind = if guarded { result.max(self.of(slot)) } else { result };
            self.changed.insert(slot, kind);
        }
    }
}

/// What an operation reads and writes.
pub(crate) struct Flow {
    pub uses: Vec<Slot>,
    pub defs: Vec<Slot>,
    /// The results are of the sources' kind, up to this one. `None`: they vary in any case.
    keeps: Option<Kind>,
}

impl Flow {
    /// The kind of the results, from the greatest of the sources.
    fn result(&self, uses: Option<Kind>) -> Kind {
        let uses = uses.unwrap_or(Kind::Uniform);
        if self.keeps.is_some_and(|kind| uses <= kind) { uses } else { Kind::Varies }
    }

    fn of(op: &ir::Op, loads: Loads, steps: impl Fn(&Form, &Picks) -> bool) -> Flow {
        let (mut uses, mut defs) = (Vec::new(), Vec::new());
        op.clone().visit(&mut |slot, touch| match touch {
            Touch::Use => uses.push(*slot),
            Touch::Def => defs.push(*slot),
        });
        let keeps = match &op.kind {
            OpKind::Pure { form, picks, .. } if steps(form, picks) => Some(Kind::Even),
            OpKind::Simple(SimpleOp::Copy { .. } | SimpleOp::Offset { .. } | SimpleOp::Resize { .. })
            | OpKind::Cvta { .. } => Some(Kind::Even),
            // Each lane has its own local memory.
            OpKind::Load(load) if load.address.space == Space::Local => None,
            OpKind::Load(load) if loads == Loads::Vary && !is_of_param(load) => None,
            OpKind::Load(_) => Some(Kind::Uniform),
            kind => kind.computes().then_some(Kind::Uniform),
        };
        Flow { uses, defs, keeps }
    }
}
