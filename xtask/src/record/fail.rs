//! `cargo xtask record fail`: what ptxas says about each bad file of `tests/fail`.
//!
//! It goes into the comments of the file, beside what ptxvm says. ptxas gets the file without these comments. With
//! `--check` nothing is written, and a difference is an error.

use std::fs;
use std::path::Path;

use test_utils::bad_file::{BadFile, Said};

use super::oracle::{Oracle, Release};
use super::{Result, files_with_extension};

/// Records, or compares, the verdicts on every `.ptx` file of `folder`.
pub fn record(oracles: &Path, folder: &Path, check: bool) -> Result<()> {
    let oracle = Oracle::open(oracles, Release::V13_5)?;
    let files = files_with_extension(folder, "ptx")?;
    let mut stale = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let recorded = fs::read_to_string(path)?;
        let file = BadFile::parse(&recorded).map_err(|error| format!("{name}: {error}"))?;
        let ptxas = ask(&oracle, &file.text, &name)?;
        let said = file.annotate(&file.ours(), &ptxas).render();
        if said != recorded {
            stale.push(path.display().to_string());
            if !check {
                fs::write(path, said)?;
            }
        }
    }
    println!("{} files, {} {}", files.len(), stale.len(), if check { "out of date" } else { "written" });
    match check && !stale.is_empty() {
        true => Err(format!("out of date: {}", stale.join(", ")).into()),
        false => Ok(()),
    }
}

/// What the assembler says of a file of this name.
fn ask(oracle: &Oracle, text: &str, name: &str) -> Result<Vec<Said>> {
    let verdict = oracle.compile(text.as_bytes())?;
    let said = verdict.messages.into_iter().map(|message| Said {
        line: message.line,
        severity: message.severity.to_string(),
        text: message.text.replace("'input.ptx'", &format!("'{name}'")),
    });
    Ok(said.collect())
}
