//! `cargo xtask record video` and `record integer`: what the code computes that ptxas makes of instructions which GPUs do not have.
//!
//! The scripts beside the tests of `sem` make up the instructions and read the code.

use std::path::Path;

use super::oracle::{Disassembler, Oracle, Release};
use super::values::{ask, write};
use super::{Result, Tool};

/// Records `count` vectors of video instructions under `root`.
pub fn record_video(root: &Path, oracles: &Path, count: usize) -> Result<()> {
    record(root, oracles, count, "video", "cargo xtask record video")
}

/// Records `count` vectors of carry chains and 64-bit fields under `root`.
pub fn record_integer(root: &Path, oracles: &Path, count: usize) -> Result<()> {
    record(root, oracles, count, "integer", "cargo xtask record integer")
}

fn record(root: &Path, oracles: &Path, count: usize, name: &str, recorded_by: &'static str) -> Result<()> {
    let ptxas = Oracle::open(oracles, Release::V13_5)?;
    let script = format!("crates/sem/tests/code/{name}.py");
    let tools = [ptxas.ptxas().to_owned(), Disassembler::V13_5.open(oracles)?.to_owned()];
    let vectors = ask(root, &script, &tools, count)?;
    let command = format!("{script} PTXAS NVDISASM {count}: ptxas -arch sm_75, then nvdisasm");
    write(root, &format!("{name}.txt.zst"), recorded_by, command, Tool::of(&ptxas)?, &vectors)
}
