//! `cargo xtask record fail`: what ptxas says about each bad file of `tests/fail`.
//!
//! The words go beside the file as `<name>.ptxas`, one message a line: `line: severity: text`; the record of a file
//! that ptxas takes without a word is empty. They are the list that the checker must meet. With `--check` nothing is
//! written, and a difference is an error.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::oracle::{Oracle, Release, Verdict};
use super::{Result, files_with_extension};

/// Records, or compares, the verdicts on every `.ptx` file of `folder`.
pub fn record(oracles: &Path, folder: &Path, check: bool) -> Result<()> {
    let oracle = Oracle::open(oracles, Release::V13_5)?;
    let files = files_with_extension(folder, "ptx")?;
    let mut stale = Vec::new();
    for file in &files {
        let verdict = oracle.compile(&fs::read(file)?)?;
        let record = file.with_extension("ptxas");
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let text = render(&verdict).replace("'input.ptx'", &format!("'{name}'"));
        if fs::read_to_string(&record).ok().as_deref() != Some(&text) {
            stale.push(record.display().to_string());
            if !check {
                fs::write(&record, text)?;
            }
        }
    }
    println!(
        "{} files, {} records {}",
        files.len(),
        stale.len(),
        if check { "out of date" } else { "written" }
    );
    match check && !stale.is_empty() {
        true => Err(format!("out of date: {}", stale.join(", ")).into()),
        false => Ok(()),
    }
}

/// The text of a `.ptxas` file.
fn render(verdict: &Verdict) -> String {
    let mut text = String::new();
    for message in &verdict.messages {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}: {}: {}", message.line, message.severity, message.text);
    }
    text
}
