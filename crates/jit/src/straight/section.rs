//! The operations of a section while it is being found.

use std::collections::{BTreeMap, BTreeSet};

use ir::{Guard, Slot, Touch};

use super::MOST_OPERATIONS;
use crate::MOST_ACCESSES;
use crate::kinds::Here;
use crate::operation::Operation;
use crate::ranges::Ranges;

/// The operations of a section so far.
#[derive(Default)]
pub(super) struct Section {
    /// The indices of all operations in the basic block.
    pub at: Vec<usize>,
    /// Those of the interpreter, which run before.
    pub before: Vec<ir::Op>,
    /// Those of native code, and what they are there.
    pub vector: Vec<ir::Op>,
    pub operations: Vec<Operation>,
    pub calls: Vec<usize>,
    pub accesses: usize,
    /// What native code reads and writes.
    pub uses: BTreeSet<Slot>,
    pub defs: BTreeSet<Slot>,
    /// The slots whose values other slots have, since native code still needs what was there before.
    pub renamed: BTreeMap<Slot, Slot>,
    /// Temporaries that have been taken.
    pub taken: usize,
    pub varying: BTreeSet<Slot>,
    /// What native code computes, by the slots of the basic block.
    pub ranges: Ranges,
}

impl Section {
    /// There is no room for another operation.
    pub fn is_full(&self, operation: &Operation) -> bool {
        self.vector.len() == MOST_OPERATIONS || self.accesses == MOST_ACCESSES && operation.access().is_some()
    }

    /// An access with a guard cannot be added: its guard is not known before native code runs, or where it does not hold, a slot
    /// keeps what another slot has.
    pub fn hinders(&self, op: &ir::Op, operation: &Operation) -> bool {
        let is_renamed = |slot: &Slot| self.renamed.contains_key(slot);
        let hinders = |guard: Guard| self.has_defined(guard.slot) || operation.defs().iter().any(is_renamed);
        operation.access().is_some() && operation.guard().is_none() && op.guard.is_some_and(hinders)
    }

    /// The slot that has the value of a slot now.
    pub fn now(&self, slot: Slot) -> Slot {
        self.renamed.get(&slot).copied().unwrap_or(slot)
    }

    /// Native code computes the value that a slot has now.
    pub fn has_defined(&self, slot: Slot) -> bool {
        self.defs.contains(&slot) && !self.renamed.contains_key(&slot)
    }

    /// Adds operation `at` of a basic block to those of native code.
    pub fn add(&mut self, at: usize, op: &ir::Op, mut operation: Operation, kinds: &Here) {
        self.at.push(at);
        let known = operation.access().and_then(|access| access.within).map(|within| within.base);
        for slot in operation.uses().into_iter().filter(|&slot| Some(slot) != known && kinds.varies(slot)) {
            self.varying.insert(self.now(slot));
        }
        let mut op = op.clone();
        op.visit(&mut |slot, touch| {
            if touch == Touch::Use {
                *slot = self.now(*slot);
            }
        });
        operation.rename_uses(|slot| self.now(slot));
        self.accesses += usize::from(operation.access().is_some());
        if operation.is_call() {
            self.calls.push(self.vector.len());
        }
        self.uses.extend(operation.uses().into_iter().chain(op.guard.map(|guard| guard.slot)));
        for slot in operation.defs() {
            self.renamed.remove(&slot);
            self.defs.insert(slot);
        }
        self.vector.push(op);
        self.operations.push(operation);
    }
}
