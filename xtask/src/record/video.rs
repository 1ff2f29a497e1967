//! `cargo xtask record video`: what the code computes that ptxas makes of video instructions.
//!
//! The script beside the tests of `sem` makes up the instructions and reads the code.

use std::path::Path;

use super::oracle::{Disassembler, Oracle, Release};
use super::values::{ask, write};
use super::{Result, Tool};

/// Records `count` vectors under `root`.
pub fn record(root: &Path, oracles: &Path, count: usize) -> Result<()> {
    let ptxas = Oracle::open(oracles, Release::V13_5)?;
    let script = "crates/sem/tests/video/record.py";
    let tools = [ptxas.ptxas().to_owned(), Disassembler::V13_5.open(oracles)?.to_owned()];
    let vectors = ask(root, script, &tools, count)?;
    let command = format!("{script} PTXAS NVDISASM {count}: ptxas -arch sm_75, then nvdisasm");
    write(root, "video.txt.zst", "cargo xtask record video", command, Tool::of(&ptxas)?, &vectors)
}
