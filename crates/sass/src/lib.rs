//! HSETP2, the SASS instruction that compares halves: text, bits and meaning, on every generation that has it.
//!
//! [`Instruction`] is what a word says; [`Instruction::decode`] and [`Instruction::encode`] go between it and bits by
//! one table of fields (`layout.rs`), [`Instruction::text`] and [`parse`] between it and text, [`execute`] says what it
//! computes, and [`lower`] which HSETP2 a PTX `setp` becomes.
#![forbid(unsafe_code)]

mod arch;
pub mod binary;
mod execute;
mod instruction;
mod layout;
mod lower;
mod number;
mod parse;
mod print;

pub use arch::{Arch, Generation};
pub use execute::{Executable, Meaningless, Outcome, Thread, execute};
pub use instruction::{Illegal, Instruction, Unencodable};
pub use layout::{Field, Form};
pub use lower::{Lowered, NotLowered, Operands, Origin, Source, lower};
pub use parse::{Parsed, parse};
pub use print::{BOOL_OPS, COMPARISONS, SWIZZLES, Style};
