//! `cargo xtask record corpus`: what two releases of ptxas say about each file of the corpus.
//!
//! Writes `verdicts.jsonl.zst`: one header object (what was asked, and how), then one object a file.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::oracle::{Message, Oracle, Release};
use super::{Result, Tool, files_with_extension};

/// The first line: where the others come from.
#[derive(Serialize)]
struct Header {
    /// How to make this file again.
    recorded_by: &'static str,
    /// How each file was put to the assembler.
    command: &'static str,
    /// The build string of each assembler, in the order of `verdicts`.
    tools: Vec<Tool>,
    files: usize,
}

/// One file and what the assemblers said.
#[derive(Serialize)]
struct Entry<'a> {
    /// Relative to the corpus, with `/` between folders.
    file: String,
    verdicts: Vec<ToolVerdict<'a>>,
}

/// One assembler's verdict on one file.
#[derive(Serialize)]
struct ToolVerdict<'a> {
    release: &'static str,
    accepted: bool,
    messages: &'a [Message],
}

/// Asks all releases about every `.ptx` file under `corpus` and writes the verdicts into `folder`.
pub fn record(oracles: &Path, corpus: &Path, folder: &Path) -> Result<()> {
    let files = files_with_extension(corpus, "ptx")?;
    let oracles =
        Release::ALL.iter().map(|&release| Oracle::open(oracles, release)).collect::<Result<Vec<_>>>()?;
    let header = Header {
        recorded_by: "cargo xtask record corpus",
        command: "ptxas -arch TARGET (the own one of the file, or sm_75 for older ones) -o /dev/null FILE",
        tools: oracles.iter().map(Tool::of).collect::<Result<_>>()?,
        files: files.len(),
    };
    let mut lines = serde_json::to_string(&header)? + "\n";
    let mut accepted = vec![0; oracles.len()];
    for file in &files {
        let source = fs::read(file)?;
        let verdicts = oracles.iter().map(|oracle| oracle.compile(&source)).collect::<Result<Vec<_>>>()?;
        for (count, verdict) in accepted.iter_mut().zip(&verdicts) {
            *count += usize::from(verdict.accepted);
        }
        let verdicts = oracles.iter().zip(&verdicts).map(|(oracle, verdict)| ToolVerdict {
            release: oracle.release().name(),
            accepted: verdict.accepted,
            messages: &verdict.messages,
        });
        let name = file.strip_prefix(corpus)?.to_string_lossy().replace('\\', "/");
        lines += &serde_json::to_string(&Entry { file: name, verdicts: verdicts.collect() })?;
        lines.push('\n');
    }
    fs::create_dir_all(folder)?;
    let path = folder.join("verdicts.jsonl.zst");
    fs::File::create(&path)?.write_all(&zstd::encode_all(lines.as_bytes(), 19)?)?;
    for (oracle, count) in oracles.iter().zip(accepted) {
        println!("ptxas {} accepts {count} of {} files", oracle.release().name(), files.len());
    }
    println!("wrote {}", path.display());
    Ok(())
}
