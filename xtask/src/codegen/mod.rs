//! `cargo xtask codegen`: isa/*.isa to Rust.

mod constant;
mod emit;
mod message;
mod operand;
mod parse;
mod table;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options of `cargo xtask codegen`.
#[derive(clap::Args)]
pub struct Options {
    /// Write nothing; fail if what is checked in is not what would be written.
    #[arg(long)]
    check: bool,
}

/// The workspace's root folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Runs the chore.
pub fn run(options: &Options) -> Result<(), String> {
    generate(&root(), options.check)
}

/// Compiles the table of the tree at `root`; with `check`, only sees whether that was done.
pub fn generate(root: &Path, check: bool) -> Result<(), String> {
    let table = read_table(&root.join("isa"))?;
    let folder = root.join("crates/isa/src/generated");
    let files = [
        ("opcodes.rs", emit::opcodes(&table)),
        ("effects.rs", emit::effects(&table)),
        ("mods.rs", emit::mods(&table)),
        ("forms.rs", emit::forms(&table)?),
        ("messages.rs", message::messages(&table)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        let text = format(&text)?;
        let current = std::fs::read_to_string(&path).unwrap_or_default();
        if current == text {
            continue;
        }
        if check {
            return Err(format!("{} is out of date: run `cargo xtask codegen`", path.display()));
        }
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Reads `sets.isa`, whose definitions all files share, then every other file in the order of their names, and last
/// `messages.isa`, whose definitions are for itself.
fn read_table(folder: &Path) -> Result<table::Table, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "isa"))
        .collect();
    let is = |path: &Path, name: &str| path.file_stem().is_some_and(|stem| stem == name);
    paths.sort_by_key(|path| (!is(path, "sets"), is(path, "messages"), path.clone()));
    let mut table = table::Table::default();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        parse::file(&text, &mut table).map_err(|(line, e)| format!("{}:{line}: {e}", path.display()))?;
    }
    table.rows.sort_by(|a, b| a.opcode.cmp(&b.opcode));
    Ok(table)
}

/// Formats Rust text as the workspace's `rustfmt.toml` says.
fn format(text: &str) -> Result<String, String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("rustfmt: {e}"))?;
    let mut input = child.stdin.take().ok_or("rustfmt: no standard input")?;
    let owned = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(owned.as_bytes()));
    let output = child.wait_with_output().map_err(|e| format!("rustfmt: {e}"))?;
    writer.join().map_err(|_| "rustfmt: writer died")?.map_err(|e| format!("rustfmt: {e}"))?;
    if !output.status.success() {
        return Err("rustfmt rejects the generated text".into());
    }
    String::from_utf8(output.stdout).map_err(|e| format!("rustfmt: {e}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_current() {
        assert_eq!(super::run(&super::Options { check: true }), Ok(()));
    }
}
