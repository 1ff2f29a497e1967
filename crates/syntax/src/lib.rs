//! Syntax of NVIDIA PTX: lexer, syntax tree with spans, parser and printer.
//!
//! It knows the grammar and no instruction. Parsing never fails: it gives a tree, which may be wrong, and the list of
//! everything that does not follow the grammar.
#![forbid(unsafe_code)]

mod lexer;
mod literal;
mod parser;
mod printer;
pub mod tree;

pub use literal::Value;
pub use parser::{MAX_DEPTH, MAX_ERRORS, MAX_NODES, parse};
pub use tree::Tree;
