//! Syntax of NVIDIA PTX: lexer, syntax tree with spans, parser and printer.
//!
//! This crate knows the grammar, but no instruction. Parsing never fails: it returns a tree, which may be wrong, and
//! a diagnostic for everything that violates the grammar.
//!
//! ```
//! let text = ".version 8.5\n.target sm_90\n.entry k() { add.u32 %r1, %r2 1; ret; }";
//! let source = diag::SourceFile::new("k.ptx", text);
//! let (tree, diagnostics) = syntax::parse(&source);
//! assert_eq!(tree.items.len(), 3);
//! assert_eq!(diagnostics[0].message, "Parsing error near '1': syntax error");
//! ```
//!
//! The grammar is that of ptxas. A parse error of ptxas is a parse error here, at the same position; what ptxas
//! rejects later is in the tree. Where there is a choice of messages, those of ptxas are used.
#![forbid(unsafe_code)]

mod directive;
mod format;
pub mod lexer;
mod literal;
mod parser;
mod printer;
pub mod tree;

pub use directive::{DIRECTIVES, Directive, Place};
pub use format::format;
pub use literal::Value;
pub use parser::{DECLARED_TYPES, MAX_DEPTH, MAX_ERRORS, MAX_NODES, parse};
pub use tree::Tree;
