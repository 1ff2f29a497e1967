//! How the lanes' values of a slot may be alike, whatever the launch.

use ir::{Function, OpKind, SimpleOp, Slot, SlotKind, Touch};
use isa::{Form, Picks};

/// How the lanes' values of a slot may be alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The same in all lanes.
    Uniform,
    /// Steps evenly from lane to lane.
    Even,
    Varies,
}

/// The kind of every slot of a function: the best that all its definitions allow. The interpreter may find less.
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    /// `steps`: whether an instruction makes values that step evenly from lane to lane of such values.
    pub fn of(function: &Function, steps: impl Fn(&Form, &Picks) -> bool) -> Kinds {
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
        let operations: Vec<_> = operations.map(|op| Flow::of(op, &steps)).collect();
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

    pub fn varies(&self, slot: Slot) -> bool {
        self.0[slot.index()] == Kind::Varies
    }

    pub fn is_uniform(&self, slot: Slot) -> bool {
        self.0[slot.index()] == Kind::Uniform
    }

    /// Joins what an operation gives its results. `risen` hears of those whose kind is another now.
    fn define(&mut self, op: &Flow, mut risen: impl FnMut(Slot)) {
        let uses = op.uses.iter().map(|slot| self.0[slot.index()]).max().unwrap_or(Kind::Uniform);
        let result = if op.keeps.is_some_and(|kind| uses <= kind) { uses } else { Kind::Varies };
        for &slot in &op.defs {
            if self.0[slot.index()] < result {
                self.0[slot.index()] = result;
                risen(slot);
            }
        }
    }
}

/// What an operation reads and writes.
struct Flow {
    uses: Vec<Slot>,
    defs: Vec<Slot>,
    /// The results are of the sources' kind, up to this one. `None`: they vary in any case.
    keeps: Option<Kind>,
}

impl Flow {
    fn of(op: &ir::Op, steps: impl Fn(&Form, &Picks) -> bool) -> Flow {
        let (mut uses, mut defs) = (Vec::new(), Vec::new());
        op.clone().visit(&mut |slot, touch| match touch {
            Touch::Use => uses.push(*slot),
            Touch::Def => defs.push(*slot),
        });
        let keeps = match &op.kind {
            OpKind::Pure { form, picks, .. } if steps(form, picks) => Some(Kind::Even),
            OpKind::Simple(SimpleOp::Copy { .. } | SimpleOp::Offset { .. } | SimpleOp::Resize { .. })
            | OpKind::Cvta { .. } => Some(Kind::Even),
            OpKind::Load(_) => Some(Kind::Uniform),
            kind => kind.computes().then_some(Kind::Uniform),
        };
        Flow { uses, defs, keeps }
    }
}
