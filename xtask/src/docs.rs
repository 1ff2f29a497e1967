//! `cargo xtask docs`: which recorded results back which row of the table, and the pages of docs/isa.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::codegen::root;

/// Options of `cargo xtask docs`.
#[derive(clap::Args)]
pub struct Options {
    /// Write nothing; fail if what is checked in is not what would be written.
    #[arg(long)]
    check: bool,
    /// Use this `ptxvm` instead of building one.
    #[arg(long, value_name = "PATH")]
    ptxvm: Option<PathBuf>,
}

/// Recordings in lines of `instruction operands.. = results`, with the oracle that they are from.
const RECORDINGS: &[(&str, &str)] = &[("ptxas 13.5", "crates/sem/tests/folds/vectors.txt")];

/// Runs the chore.
pub fn run(options: &Options) -> Result<(), String> {
    let root = root();
    let path = root.join("crates/ptxvm/src/cli/oracles.tsv");
    let mut stale = update(&path, &oracles(&root)?, options.check)?;
    // The pages show the file just written, so that the command is built after it.
    let fresh = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = match &options.ptxvm {
        Some(path) => Command::new(path),
        None => {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.current_dir(&root).args(["run", "--quiet", "--release", "--package", "ptxvm", "--"]);
            cargo
        }
    };
    let status = command.args(["isa", "--pages"]).arg(fresh.path()).status();
    if !status.map_err(|error| format!("ptxvm: {error}"))?.success() {
        return Err("ptxvm could not write the pages".into());
    }
    let folder = root.join("docs/isa");
    let wanted = pages(fresh.path())?;
    for (name, text) in &wanted {
        stale |= update(&folder.join(name), text, options.check)?;
    }
    for name in pages(&folder).unwrap_or_default().keys().filter(|name| !wanted.contains_key(*name)) {
        stale = true;
        if !options.check {
            let path = folder.join(name);
            std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    match options.check && stale {
        true => Err("the pages of docs/isa are out of date: run `cargo xtask docs`".into()),
        false => Ok(()),
    }
}

/// Is the file something else than `text`? Then it is written, unless this only checks.
fn update(path: &Path, text: &str, check: bool) -> Result<bool, String> {
    if std::fs::read_to_string(path).is_ok_and(|current| current == text) {
        return Ok(false);
    }
    if !check {
        let folder = path.parent().unwrap_or(path);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(path, text))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(true)
}

/// The Markdown files of a folder by name.
fn pages(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let context = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(context)? {
        let path = entry.map_err(context)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if name.ends_with(".md") {
            pages.insert(name, std::fs::read_to_string(&path).map_err(context)?);
        }
    }
    Ok(pages)
}

/// Counts the recorded vectors of each row.
fn oracles(root: &Path) -> Result<String, String> {
    let mut text = "# Written by `cargo xtask docs` from the recordings: oracle, vectors, row.\n".to_owned();
    for (oracle, file) in RECORDINGS {
        let path = root.join(file);
        let lines = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in lines.lines() {
            let row = row(line).ok_or_else(|| format!("{file}: `{line}` is of no row"))?;
            *counts.entry(row).or_default() += 1;
        }
        for (row, count) in counts {
            text += &format!("{oracle}\t{count}\t{row}\n");
        }
    }
    Ok(text)
}

/// The row that a recorded line is of.
fn row(line: &str) -> Option<&'static str> {
    let (left, _) = line.split_once(" = ")?;
    let mut words = left.split(' ');
    let mut mnemonic = words.next()?.split('.');
    let opcode = mnemonic.next()?;
    let modifiers: Vec<&str> = mnemonic.collect();
    Some(isa::select(opcode, &modifiers, words.count() + 1).ok()?.form().syntax)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_recordings_is_current() {
        let path = root().join("crates/ptxvm/src/cli/oracles.tsv");
        assert!(!update(&path, &oracles(&root()).unwrap(), true).unwrap(), "run `cargo xtask docs`");
    }
}
