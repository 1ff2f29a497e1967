//! What the tests and chores of several crates share. Features name what needs other crates, so that the tests of a small
//! crate do not compile a large one.

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub mod archive;
pub mod bad_file;
pub mod corpus;
pub mod date;
#[cfg(feature = "folds")]
pub mod folds;
pub mod gcc;
pub mod header;
pub mod page;
#[cfg(feature = "records")]
pub mod record;
#[cfg(feature = "programs")]
pub mod registered;
#[cfg(feature = "records")]
pub mod words;

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether all elements have the same bits; shows the first few that differ.
pub fn compare(got: &[u8], wanted: &[u8], width: usize) -> Result<(), String> {
    if got.len() != wanted.len() {
        return Err(format!("{} bytes, expected {}", got.len(), wanted.len()));
    }
    let pairs = got.chunks_exact(width).zip(wanted.chunks_exact(width)).enumerate();
    let different: Vec<_> = pairs.filter(|(_, (got, wanted))| got != wanted).collect();
    if different.is_empty() {
        return Ok(());
    }
    let hex = |bytes: &[u8]| bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut text = format!("{} of {} elements differ:", different.len(), got.len() / width);
    for (i, (got, wanted)) in different.into_iter().take(8) {
        let _ = write!(text, "\n  [{i}] is 0x{}, expected 0x{}", hex(got), hex(wanted));
    }
    Err(text)
}
