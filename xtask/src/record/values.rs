//! `cargo xtask record values`: what ptxas computes when it folds constants of the core instructions.
//!
//! `crates/sem/tests/folds/record.py` assembles the instructions with constant operands and reads the results out of
//! the machine code that nvdisasm lists.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use serde::Serialize;

use super::oracle::{Oracle, Release};
use super::{Result, Tool};

/// The first line of the record.
#[derive(Serialize)]
struct Header {
    /// How to make this file again.
    recorded_by: &'static str,
    /// How the values were found.
    command: String,
    tools: Vec<Tool>,
    /// Number of lines that follow.
    vectors: usize,
}

/// Records `count` vectors into `folder`, with the given disassembler.
pub fn record(root: &Path, oracles: &Path, nvdisasm: &Path, count: usize) -> Result<()> {
    let oracle = Oracle::open(oracles, Release::V13_5)?;
    let script = "crates/sem/tests/folds/record.py";
    let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(python)
        .arg(root.join(script))
        .args([oracle.ptxas(), nvdisasm])
        .arg(count.to_string())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{script} failed").into());
    }
    let vectors = String::from_utf8(output.stdout)?;
    let header = Header {
        recorded_by: "cargo xtask record values",
        command: format!("{script} PTXAS NVDISASM {count}: ptxas -arch sm_100, then nvdisasm -hex"),
        tools: vec![Tool::of(&oracle)?],
        vectors: vectors.lines().count(),
    };
    let text = serde_json::to_string(&header)? + "\n" + &vectors;
    let folder = root.join("conformance/values");
    fs::create_dir_all(&folder)?;
    let path = folder.join("folds.txt.zst");
    fs::write(&path, zstd::encode_all(text.as_bytes(), 19)?)?;
    println!("{}: {} vectors", path.display(), header.vectors);
    Ok(())
}
