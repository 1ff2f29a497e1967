//! Diagnostics of ptxvm: source files, spans, messages, and the two forms in which messages are printed.
//!
//! A [`Diagnostic`] is a message of any stage about a span of a [`SourceFile`]. Only this crate turns one into text:
//! [`render`] for people, [`json`] for programs.
#![forbid(unsafe_code)]

mod code;
mod diagnostic;
mod json;
mod render;
mod source;
mod suggest;

pub use code::Code;
pub use diagnostic::{Diagnostic, Fix, Help, Label, Severity};
pub use json::{json, json_with_fault};
pub use render::{Color, render};
pub use source::{Position, SourceFile, Span};
pub use suggest::nearest;
