//! HSETP2, the SASS instruction that compares halves: text, bits and meaning, for every generation that has it.
//!
//! [`Instruction`] holds the fields of a word. [`Instruction::decode`] and [`Instruction::encode`] convert from and
//! to bits with one table of fields (`layout.rs`); [`parse`] and [`Instruction::text`] convert from and to text.
//! [`execute`] computes the result, and [`lower`] translates a PTX `setp` to HSETP2.
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
