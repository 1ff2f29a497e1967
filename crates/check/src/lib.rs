//! Checks a PTX module: names, types, operands, `.version` and `.target`, in the words of NVIDIA's assembler.
//!
//! [`check`] is the only door to a [`Module`]: whatever has one knows that every name is resolved and every
//! instruction is legal.
//!
//! The [`Module`] is the contract between the front end and the engines. Registers, variables, labels and functions are indices; an
//! instruction is a row of the table (`&'static isa::Form`), what was picked of its modifiers (`isa::Picks`), and resolved operands. What
//! the source leaves implicit is written out: the `.ftz` that `.target sm_1x` implies, and the moves of `moves.rs`.
//!
//! [`check`] takes the diagnostics of the parser and returns one list in ptxas's order. Each diagnostic gets its key (`order.rs`) where it
//! is made; `context.rs` collects and sorts them. What ptxas says only when it generates code (`assembly.rs`) is looked for in modules
//! without errors, and comes last; [`Options::assembly`] says how far ptxas would go. The library and the driver check with
//! [`Assembly::Relocatable`], which takes names that nobody defines: the launch of a kernel that needs one is refused (`vm`,
//! `undefined.rs`).
#![forbid(unsafe_code)]

mod address;
mod assembly;
mod body;
mod call;
mod checker;
mod combination;
mod context;
mod debug;
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
mod missing;
pub mod module;
mod moves;
mod near_fit;
mod opcode_rules;
mod opcodes;
mod operand;
mod order;
mod pragma;
mod ranges;
mod required;
mod scope;
mod selection;
mod special;
mod texture;
mod variable;
mod vector;
mod video;

use diag::{Diagnostic, SourceFile};
use isa::Target;
use syntax::Tree;

pub use diag::nearest;
pub use link::{Part, link};
pub use module::Module;
pub use opcodes::{all as opcodes, display_name as instruction_name};

/// How far ptxas would go with the file: what it says depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assembly {
    /// It generates no code (`ptxas -c -arch compute_…`).
    FrontEnd,
    /// It generates code that is linked with more: functions may be defined elsewhere.
    #[default]
    Relocatable,
    /// It generates code that is loaded as it is.
    Whole,
}

/// What to check against, besides the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What is to become of the file.
    pub assembly: Assembly,
    /// Check as if `.target` said this.
    pub target: Option<Target>,
    /// Accept forms too that ptxas rejects and compilers emit all the same (isa/lenient.isa); each gets a warning.
    pub lenient: bool,
}

/// Checks a tree. `parsed` is what the parser reported; it comes back among all diagnostics, which are in ptxas's order: by
/// line, but for what it finds at the end of the file. There is a module if none of them is an error.
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
