//! A language server for PTX (`ptxvm lsp`): diagnostics with fixes, hover, completion, definitions, references, rename,
//! outline, folding, semantic tokens, formatting and signatures.
//!
//! What it says comes from the crates that everybody can use: `syntax` (tree, layout, directives), `check` (diagnostics with
//! fixes, `check::names`), `isa` (forms, gates, meanings, `isa::next_modifiers`) and `sem` (`sem::bits`). This crate only turns
//! that into the protocol.
//!
//! One thread answers messages in the order in which they come. A change makes the text new and the analysis old; the whole
//! file is checked again when it is asked about, or when no further message waits. That takes some tens of
//! milliseconds for 10,000 lines, most of it in the check, and nothing is kept from one version to the next.
#![forbid(unsafe_code)]

mod completion;
mod cursor;
mod document;
mod fixes;
mod hover;
mod navigation;
mod outline;
mod server;
mod signature;
mod tokens;

use std::io::{self, BufRead, Write};

/// Serves one client until it says `exit` or closes its end. Returns whether it said `shutdown` before, as the protocol wants.
///
/// # Errors
/// When the output cannot be written.
pub fn serve(input: impl BufRead + Send + 'static, output: impl Write) -> io::Result<bool> {
    server::Server::new(output).run(&frames::messages(input))
}
