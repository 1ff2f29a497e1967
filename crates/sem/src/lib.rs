//! What each PTX instruction computes: pure functions on bits.
//!
//! `sem` is the law: scalar, readable beside the PTX manual, knowing no machine and no memory. Floating point is
//! exact integer arithmetic over one description of a [`format::Format`]: [`round::unpack`] an encoding to its
//! exact value, compute exactly, [`round::pack`] with one rounding.
#![forbid(unsafe_code)]

pub mod approx;
pub mod arith;
pub mod compare;
pub mod convert;
pub mod float;
pub mod format;
pub mod half;
pub mod half_compare;
pub mod integer;
pub mod logic;
mod lookup;
pub mod mixed;
mod operands;
pub mod round;

pub use lookup::lookup;
pub use operands::PureFn;
