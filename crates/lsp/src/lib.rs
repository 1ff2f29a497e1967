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

mod client;
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
    server::Server::new(client::Framed(output)).run(&frames::messages(input))
}

/// A server in the same program as its client, for editors that have no other process to talk to. It needs no thread.
pub struct Session(server::Server<Vec<String>>);

impl Default for Session {
    fn default() -> Session {
        Session(server::Server::new(Vec::new()))
    }
}

impl Session {
    /// Takes a message of the client, as JSON, and returns what the server says then, with the diagnostics of a text that
    /// has changed.
    pub fn message(&mut self, message: &str) -> Vec<String> {
        let message = serde_json::from_str(message).map_err(|error| format!("a malformed message: {error}"));
        // A `Vec` takes every message.
        let _ = self.0.take(message).and_then(|_| self.0.publish());
        std::mem::take(self.0.client())
    }
}
