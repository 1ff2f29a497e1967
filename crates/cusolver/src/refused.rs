//! What the library does not have.

pub(crate) mod dense;
pub(crate) mod sparse;
