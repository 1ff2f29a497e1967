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
    /// What is read before native code writes it.
    pub entering: BTreeSet<Slot>,
    /// Native code writes some of that, or memory.
    destroys: bool,
    /// Native code checks addresses. Strips that it skips begin again with what was there before.
    pub checks: bool,
    /// What native code computes, by the slots of the basic block.
    pub ranges: Ranges,
}

impl Section {
    /// There is no room for another operation.
    pub fn is_full(&self, operation: &Operation) -> bool {
        self.vector.len() + self.renamed.len() >= MOST_OPERATIONS
            || self.accesses == MOST_ACCESSES && operation.access().is_some()
    }

    /// An access with a guard cannot be added: its guard is not known before native code runs, or where it does not hold, a slot
    /// keeps what another slot has. Neither can an access that native code checks behind what a strip could not begin again after, nor
    /// such an operation behind the access, unless it only writes memory. `owns`: results may have slots of their own.
    pub fn hinders(&self, op: &ir::Op, operation: &Operation, owns: bool) -> bool {
        let is_renamed = |slot: &Slot| self.renamed.contains_key(slot);
        let hinders = |guard: Guard| self.has_defined(guard.slot) || operation.defs().iter().any(is_renamed);
        let checks = operation.access().is_some_and(|access| access.checked);
        let overwrites = || !owns && operation.defs().iter().any(|slot| self.overwrites(operation, *slot));
        if checks && self.destroys || (checks || self.checks) && overwrites() {
            return true;
        }
        operation.access().is_some() && operation.guard().is_none() && op.guard.is_some_and(hinders)
    }

    /// The operation writes into a slot what native code has found there before, or finds there itself.
    pub fn overwrites(&self, operation: &Operation, slot: Slot) -> bool {
        let is_read = || operation.uses().iter().any(|used| self.now(*used) == slot);
        self.entering.contains(&slot) || !self.defs.contains(&slot) && is_read()
    }

    /// The slot of its own that native code gives what is computed for a slot.
    pub fn own(&self, slot: Slot) -> Option<Slot> {
        self.renamed.get(&slot).copied().filter(|own| self.defs.contains(own))
    }

    /// The slot that has the value of a slot now.
    pub fn now(&self, slot: Slot) -> Slot {
        self.renamed.get(&slot).copied().unwrap_or(slot)
    }

    /// Native code computes the value that a slot has now.
    pub fn has_defined(&self, slot: Slot) -> bool {
        self.defs.contains(&self.now(slot))
    }

    /// Adds an operation to those of native code. `owns`: slots of their own that results have.
    pub fn add(&mut self, op: &ir::Op, mut operation: Operation, owns: &BTreeMap<Slot, Slot>, kinds: &Here) {
        let known = operation.access().and_then(|access| access.within).map(|within| within.base);
        for slot in operation.uses().into_iter().filter(|&slot| Some(slot) != known && kinds.varies(slot)) {
            self.varying.insert(self.now(slot));
        }
        let mut op = op.clone();
        let own = |slot: Slot| owns.get(&slot).copied().unwrap_or(slot);
        op.visit(&mut |slot, touch| *slot = if touch == Touch::Use { self.now(*slot) } else { own(*slot) });
        operation.rename_uses(|slot| self.now(slot));
        operation.rename_defs(own);
        self.accesses += usize::from(operation.access().is_some());
        if operation.is_call() {
            self.calls.push(self.vector.len());
        }
        let uses: Vec<Slot> = operation.uses().into_iter().chain(op.guard.map(|guard| guard.slot)).collect();
        self.entering.extend(uses.iter().filter(|slot| !self.defs.contains(slot)));
        self.uses.extend(uses);
        let overwrites = operation.defs().iter().any(|slot| self.entering.contains(slot));
        self.destroys |= overwrites || operation.writes();
        self.checks |= operation.access().is_some_and(|access| access.checked);
        for slot in operation.defs() {
            self.renamed.remove(&slot);
            self.defs.insert(slot);
        }
        self.renamed.extend(owns);
        self.vector.push(op);
        self.operations.push(operation);
    }
}
