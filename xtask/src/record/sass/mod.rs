//! `cargo xtask record sass`: what nvdisasm prints for words of HSETP2, and what ptxas makes of `setp` on halves.

mod ask;
#[path = "../../../../crates/sass/tests/record/mod.rs"]
mod format;
mod lowering;
mod words;

use std::fs;
use std::path::Path;

use super::Result;
use super::oracle::Disassembler;

/// Records everything into `folder`; `count` random words of each form and generation.
pub fn record(oracles: &Path, folder: &Path, seed: u64, count: usize, words_only: bool) -> Result<()> {
    fs::create_dir_all(folder)?;
    words::record(oracles, folder, seed, count)?;
    if words_only { Ok(()) } else { lowering::record(oracles, folder) }
}

/// The text of a comment that names a disassembler.
fn provenance(oracles: &Path, disassembler: Disassembler) -> Result<String> {
    Ok(format!(
        "cargo xtask record sass; nvdisasm {} ({}): nvdisasm -b SMxx words.bin",
        disassembler.name(),
        disassembler.build(oracles)?
    ))
}
