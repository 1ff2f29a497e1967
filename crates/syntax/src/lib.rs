//! Syntax of NVIDIA PTX: lexer, syntax tree with spans, parser and printer.
//!
//! It knows the grammar and no instruction. Parsing never fails: it gives a tree, which may be wrong, and the list of
//! everything that does not follow the grammar.
//!
//! ```
//! let text = ".version 8.5\n.target sm_90\n.entry k() { add.u32 %r1, %r2 1; ret; }";
//! let source = diag::SourceFile::new("k.ptx", text);
//! let (tree, diagnostics) = syntax::parse(&source);
//! assert_eq!(tree.items.len(), 3);
//! assert_eq!(diagnostics[0].message, "Parsing error near '1': syntax error");
//! ```
//!
//! The grammar is that of ptxas: what it calls a parse error is one here, at the same place, and what it refuses later
//! is in the tree. Where several things may be said, its words are used.
#![forbid(unsafe_code)]

mod lexer;
mod literal;
mod parser;
mod printer;
pub mod tree;

pub use literal::Value;
pub use parser::{MAX_DEPTH, MAX_ERRORS, MAX_NODES, parse};
pub use tree::Tree;
