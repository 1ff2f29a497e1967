//! `cargo xtask record values`: what ptxas and libnvvm compute when they fold constants of the core instructions.
//!
//! The scripts beside the tests of `sem` make the programs and read the results. `record.py` assembles the instructions
//! with constant operands and reads the machine code that nvdisasm lists; `libnvvm.py` compiles expressions of LLVM
//! that mean what the instructions mean and reads the PTX.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use serde::Serialize;

use super::oracle::{self, Disassembler, Oracle, Release};
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

/// Records `count` vectors of each oracle under `root`.
pub fn record(root: &Path, oracles: &Path, count: usize) -> Result<()> {
    let ptxas = Oracle::open(oracles, Release::V13_5)?;
    let script = "crates/sem/tests/folds/record.py";
    let tools =
        [ptxas.ptxas().as_os_str(), Disassembler::V13_5.open(oracles)?.as_os_str()].map(OsStr::to_owned);
    let command = format!("{script} PTXAS NVDISASM {count}: ptxas -arch sm_100, then nvdisasm -hex");
    let vectors = ask(root, script, &tools, count)?;
    let by = "cargo xtask record values";
    write(root, "folds.txt.zst", by, command, Tool::of(&ptxas)?, &vectors)?;

    // ptxas is of the same build as libnvvm, which does not say its own.
    let sibling = Oracle::open(oracles, Release::V12_9)?;
    let script = "crates/sem/tests/folds/libnvvm.py";
    let tools = [oracle::libnvvm(oracles)?.into_os_string()];
    let command = format!("{script} LIBNVVM {count}: nvvmCompileProgram with -arch=compute_100 -opt=3");
    let vectors = ask(root, script, &tools, count)?;
    write(root, "libnvvm.txt.zst", by, command, Tool::of(&sibling)?, &vectors)
}

/// What a script says when it may use `tools` and is to find `count` vectors.
pub(super) fn ask(root: &Path, script: &str, tools: &[impl AsRef<OsStr>], count: usize) -> Result<String> {
    let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(python)
        .arg(root.join(script))
        .args(tools)
        .arg(count.to_string())
        .stderr(Stdio::inherit())
        .output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(format!("{script} failed").into()),
    }
}

/// Writes a record into `conformance/values`.
pub(super) fn write(
    root: &Path,
    name: &str,
    recorded_by: &'static str,
    command: String,
    tool: Tool,
    vectors: &str,
) -> Result<()> {
    let vectors_count = vectors.lines().count();
    let header = Header { recorded_by, command, tools: vec![tool], vectors: vectors_count };
    let text = serde_json::to_string(&header)? + "\n" + vectors;
    let folder = root.join("conformance/values");
    fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    fs::write(&path, zstd::encode_all(text.as_bytes(), 19)?)?;
    println!("{}: {vectors_count} vectors", path.display());
    Ok(())
}
