//! `cargo xtask record sass`: what nvdisasm prints for words of HSETP2, and what ptxas makes of `setp` on halves.

mod ask;
mod check;
mod cubins;
mod groups;
mod lowering;
mod words;

use std::fs;
use std::path::Path;

pub use check::{check, check_record};

use super::Result;
use super::oracle::Disassembler;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// What nvdisasm prints for words
    Words,
    /// What nvdisasm prints behind control words
    Groups,
    /// What ptxas makes of setp
    Lowering,
    /// Cubins, and how nvdisasm lists them
    Cubins,
}

/// Records everything into `folder`, or one part; `count` random words of each form and generation, with all answers or a
/// sample.
pub fn record(
    oracles: &Path,
    folder: &Path,
    (seed, count): (u64, usize),
    all: bool,
    only: Option<Part>,
) -> Result<()> {
    fs::create_dir_all(folder)?;
    let wanted = |part| only.is_none_or(|only| only == part);
    if wanted(Part::Words) {
        words::record(oracles, folder, (seed, count), if all { 1 } else { words::SHARE })?;
    }
    if wanted(Part::Groups) {
        groups::record(oracles, folder, seed, count / 50)?;
    }
    if wanted(Part::Lowering) {
        lowering::record(oracles, folder)?;
    }
    if wanted(Part::Cubins) {
        cubins::record(oracles, &folder.join("cubins"))?;
    }
    Ok(())
}

/// The text of a comment that names a disassembler.
fn provenance(oracles: &Path, disassembler: Disassembler) -> Result<String> {
    Ok(format!(
        "cargo xtask record sass; nvdisasm {} ({}): nvdisasm -b SMxx words.bin",
        disassembler.name(),
        disassembler.build(oracles)?
    ))
}
