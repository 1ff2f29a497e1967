//! Half precision comparison: `set` and `setp` of [`crate::compare`], which support every type.
//!
//! PTX ISA, "Half Precision Comparison Instructions".

pub use crate::compare::{set, setp};
