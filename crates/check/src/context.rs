//! The instruction that is being checked.

use isa::{Form, Picks, Property};
use smallvec::SmallVec;

/// The instruction that a message is about.
pub(crate) struct Context<'s> {
    pub(crate) name: &'s str,
    pub(crate) form: &'static Form,
    pub(crate) picks: &'s Picks,
}

impl Context<'_> {
    pub(crate) fn has(&self, property: Property) -> bool {
        self.form.has(property, self.picks)
    }
}

/// Modifiers that exclude each other: no other message rejects them.
pub(crate) type Apart<'a> = SmallVec<[&'a str; 4]>;
