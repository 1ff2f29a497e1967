//! Slots of their own for the results of native code that checks addresses.
//!
//! A strip that is skipped begins again with what was there before. So native code must not overwrite it: neither what it has read
//! itself, nor what the first basic block of a trace reads. Compilers use registers again all the time. What would overwrite such a slot
//! goes into a temporary instead, which the interpreter copies to the slot behind the section.

use std::collections::BTreeMap;

use ir::{Base, OpKind, Slot};
use isa::Space;

use super::Finder;
use crate::kinds::Here;
use crate::loops::space_of;
use crate::operation::Operation;

impl Finder<'_> {
    /// The results of operation `at` may have slots of their own until the section ends. Where the interpreter may run an operation with
    /// a guard instead, some lanes would have nothing there.
    pub(super) fn owns(&self, at: usize) -> bool {
        self.tentative || self.ops[at].guard.is_none()
    }

    /// Slots of their own for the results of operation `at` that would overwrite what a strip which is skipped begins again with.
    pub(super) fn own_slots(&mut self, at: usize, operation: &Operation) -> BTreeMap<Slot, Slot> {
        let mut owns = BTreeMap::new();
        if !self.owns(at) || at >= self.checks_until && !self.section.checks {
            return owns;
        }
        for slot in operation.defs() {
            if let Some(own) = self.section.own(slot) {
                owns.insert(slot, own);
            } else if self.section.overwrites(operation, slot) {
                owns.insert(slot, self.temporary(self.width(slot)));
            }
        }
        owns
    }
}

/// Native code can check where the operation goes, lane by lane.
pub(super) fn can_check(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Load(_) | OpKind::Store(_))
        && matches!(space_of(kind), Some(Space::Global | Space::Generic))
}

/// Native code may have to check where the operation goes: its address may differ from lane to lane in any way.
pub(super) fn may_check(kinds: &Here, kind: &OpKind) -> bool {
    let address = match kind {
        OpKind::Load(load) => &load.address,
        OpKind::Store(store) => &store.address,
        _ => return false,
    };
    can_check(kind) && matches!(address.base, Base::Slot(slot) if kinds.anywhere().varies(slot))
}
