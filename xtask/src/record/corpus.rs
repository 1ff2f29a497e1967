//! `cargo xtask record corpus`: what two releases of ptxas say about each file of the corpus.
//!
//! Writes `verdicts.jsonl.zst`: one header object (what was asked, and how), then one object a file. What it had on files
//! that are not in the folder stays, so that it can be of several corpora.

use std::collections::BTreeMap;
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
    let path = folder.join("verdicts.jsonl.zst");
    let mut entries = read(&path)?;
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
        let entry = Entry { file: name.clone(), verdicts: verdicts.collect() };
        entries.insert(name, serde_json::to_string(&entry)?);
    }
    let header = Header {
        recorded_by: "cargo xtask record corpus",
        command: "ptxas -arch TARGET (the own one of the file, or sm_75 for older ones) -o /dev/null FILE",
        tools: oracles.iter().map(Tool::of).collect::<Result<_>>()?,
        files: entries.len(),
    };
    let mut lines = serde_json::to_string(&header)? + "\n";
    entries.into_values().for_each(|entry| lines += &(entry + "\n"));
    fs::create_dir_all(folder)?;
    fs::File::create(&path)?.write_all(&zstd::encode_all(lines.as_bytes(), 19)?)?;
    for (oracle, count) in oracles.iter().zip(accepted) {
        println!("ptxas {} accepts {count} of {} files", oracle.release().name(), files.len());
    }
    println!("wrote {}", path.display());
    Ok(())
}

/// The lines of an earlier record, by file; none where there is no record.
fn read(path: &Path) -> Result<BTreeMap<String, String>> {
    let Ok(file) = fs::File::open(path) else { return Ok(BTreeMap::new()) };
    let text = String::from_utf8(zstd::decode_all(file)?)?;
    let entry = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line)?;
        let file = entry["file"].as_str().ok_or("a line names no file")?;
        Ok((file.to_owned(), line.to_owned()))
    };
    text.lines().skip(1).map(entry).collect()
}
