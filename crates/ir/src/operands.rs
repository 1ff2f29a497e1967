//! Operands of operations in another representation: slots under other names, or as an engine keeps them.
//!
//! An operation has one traversal of its operands, `map`, which says what it does with each. The visitor of slots, the
//! engine's copy of the operation and the flow of values for observers follow from it.

use crate::op::{Address, Slot};
use crate::visit::{Touch, Visitor, visit_address};

/// Gives each operand another representation. An operation passes what it reads before what it writes.
pub trait MapOperands<S, A> {
    /// What a slot becomes.
    type Slot;
    /// What an address becomes.
    type Address;

    /// A slot whose value is stored, or determines the results.
    fn source(&mut self, slot: S) -> Self::Slot;

    /// A slot that decides where or whether something happens, such as a size or a mask.
    fn control(&mut self, slot: S) -> Self::Slot {
        self.source(slot)
    }

    /// A slot that is written.
    fn result(&mut self, slot: S) -> Self::Slot;

    /// The slot of a result that may be unused.
    fn maybe_result(&mut self, slot: Option<S>) -> Option<Self::Slot> {
        slot.map(|slot| self.result(slot))
    }

    /// An address that the operation accesses.
    fn address(&mut self, address: A) -> Self::Address;
}

/// Renames slots.
pub(crate) struct Rename<'a>(pub Visitor<'a>);

impl MapOperands<Slot, Address> for Rename<'_> {
    type Slot = Slot;
    type Address = Address;

    fn source(&mut self, mut slot: Slot) -> Slot {
        (self.0)(&mut slot, Touch::Use);
        slot
    }

    fn result(&mut self, mut slot: Slot) -> Slot {
        (self.0)(&mut slot, Touch::Def);
        slot
    }

    fn address(&mut self, mut address: Address) -> Address {
        visit_address(&mut address, self.0);
        address
    }
}
