//! The PTX instruction table.
#![forbid(unsafe_code)]

mod types;

pub use types::{BoolOp, CmpOp, Kind, Rounding, Space, Type};
