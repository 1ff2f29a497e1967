//! Checks a PTX module: names, types, operands, `.version` and `.target`. Messages are worded like those of NVIDIA's
//! assembler.
//!
//! Only [`check`] makes a [`Module`]. Code that has a [`Module`] may therefore rely on two facts: every name is
//! resolved, and every instruction is legal.
//!
//! The [`Module`] is the contract between the front end and the engines. Registers, variables, labels and functions
//! are indices. An instruction is a row of the table (`&'static isa::Form`), its picks (`isa::Picks`) and resolved
//! operands. The checker makes explicit what the source implies: the `.ftz` of `.target sm_1x`, and the moves of
//! `moves.rs`.
//!
//! [`check`] takes the diagnostics of the parser and returns one list in ptxas's order. Each diagnostic gets its sort
//! key (`order.rs`) where it is made; `sink.rs` collects and sorts them. Errors that ptxas finds only when it
//! generates code (`assembly.rs`) come last, and only for modules without other errors; [`Options::assembly`] selects
//! which of them apply. The library and the driver check with [`Assembly::Relocatable`], which accepts undefined
//! names; `machine` rejects the launch of a kernel that needs one (`undefined.rs`).
#![forbid(unsafe_code)]

mod address;
mod alias;
mod assembly;
mod body;
mod call;
mod checker;
mod combination;
mod context;
mod debug;
mod destination;
mod directive;
mod emit;
mod expansion;
mod function;
mod index;
mod initializer;
mod instruction;
mod link;
mod literal;
mod matching;
mod messages;
mod modifiers;
pub mod module;
mod moves;
pub mod names;
mod near_fit;
mod opcode_rules;
mod opcodes;
mod operand;
mod order;
mod place;
mod pragma;
mod product;
mod ranges;
mod required;
mod scalar;
mod scope;
mod selection;
mod sink;
mod source;
mod special;
mod texture;
mod value;
mod variable;
mod vector;
mod video;
mod words;

use diag::{Diagnostic, SourceFile};
use isa::Target;
use syntax::Tree;

pub use diag::nearest;
pub use link::{Part, link};
pub use module::Module;
pub use opcodes::{all as opcodes, display_name as instruction_name};

/// How far ptxas processes the file; its messages depend on that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assembly {
    /// It generates no code (`ptxas -c -arch compute_…`).
    FrontEnd,
    /// It generates relocatable code: other files may define functions.
    #[default]
    Relocatable,
    /// It generates code to be loaded without linking.
    Whole,
}

/// What to check the file against.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How the file will be used.
    pub assembly: Assembly,
    /// Check as if this were the `.target`.
    pub target: Option<Target>,
    /// Also accept forms that ptxas rejects although compilers emit them (isa/lenient.isa); each gets a warning.
    pub lenient: bool,
}

/// Checks a tree. `parsed` are the parser's diagnostics. The result contains all diagnostics in ptxas's order: by
/// line, except errors that ptxas finds at the end of the file. It contains a module if no diagnostic is an error.
pub fn check(
    source: &SourceFile,
    tree: &Tree,
    parsed: Vec<Diagnostic>,
    options: &Options,
) -> (Option<Module>, Vec<Diagnostic>) {
    let mut checker = checker::Checker::new(source, options);
    checker.sink.syntax_errors(parsed);
    checker.module(tree);
    checker.finish()
}
