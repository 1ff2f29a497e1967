//! `cargo xtask mutants`: plants one fault after the other in a copy of the tree, and sees whether the tests notice.
//!
//! `list.txt` has the faults, each with the tests that should find it.

mod list;
mod scratch;

use list::{MUTANTS, Mutant};
use scratch::{Outcome, Scratch};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::codegen::root;
use crate::date::today;

/// Which faults to plant, and where.
#[derive(clap::Args)]
pub struct Options {
    /// The faults by name (default: all).
    names: Vec<String>,
    /// The folder for the copy and what is built there. It is kept, so that the next run builds less.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("ptxvm-mutants"))]
    scratch: PathBuf,
    /// Leave conformance/MUTANTS.md alone.
    #[arg(long)]
    dry_run: bool,
}

/// `cargo xtask mutants`
pub fn run(options: &Options) -> Result<(), String> {
    let all = list::parse(MUTANTS)?;
    for mutant in &all {
        mutant.apply(&read(&root().join(&mutant.file))?)?;
    }
    if let Some(unknown) = options.names.iter().find(|name| !all.iter().any(|mutant| mutant.name == **name)) {
        return Err(format!("no fault is named '{unknown}'"));
    }
    let chosen: Vec<&Mutant> = all
        .iter()
        .filter(|mutant| options.names.is_empty() || options.names.contains(&mutant.name))
        .collect();
    let scratch = Scratch::new(&options.scratch)?;
    scratch.copy_tree()?;
    let mut tests: Vec<&str> = chosen.iter().map(|mutant| mutant.test.as_str()).collect();
    tests.sort_unstable();
    tests.dedup();
    for test in tests {
        eprintln!("without a fault: cargo test {test}");
        if let Outcome::Failed(names) = scratch.test(test)? {
            return Err(format!("cargo test {test} fails without a fault: {}", names.join(", ")));
        }
    }
    let mut survivors = Vec::new();
    let mut found = Vec::new();
    for mutant in chosen {
        eprint!("{}: ", mutant.name);
        match scratch.with(mutant)? {
            Outcome::Failed(names) => {
                eprintln!("found by {}", names.join(", "));
                found.push((mutant, names));
            }
            Outcome::Passed => {
                eprintln!("NOT FOUND by cargo test {}", mutant.test);
                survivors.push(mutant.name.as_str());
            }
        }
        if !options.dry_run {
            record(&all, &found)?;
        }
    }
    match survivors[..] {
        [] => Ok(()),
        _ => Err(format!("the tests do not find {}", survivors.join(", "))),
    }
}

fn read(path: &std::path::Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

const HEADER: &str = "\
# Planted faults

`cargo xtask mutants` plants one fault after the other in a copy of the tree and runs the narrowest tests that should
notice. `xtask/src/mutants/list.txt` has the faults as they are planted. Those that are not in this table have not been
planted yet, or were not found.

| fault | in | found by | date |
|---|---|---|---|
";

/// Writes the faults that were found into the report; those of earlier runs stay while they are in the list.
fn record(all: &[Mutant], found: &[(&Mutant, Vec<String>)]) -> Result<(), String> {
    let path = root().join("conformance/MUTANTS.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    let mut text = HEADER.to_string();
    for mutant in all {
        let start = format!("| {} | `{}` |", mutant.name, mutant.file);
        if let Some((_, names)) = found.iter().find(|(other, _)| other.name == mutant.name) {
            let tests = format!("`{}`: {}", mutant.test, names.join(", "));
            writeln!(text, "{start} {tests} | {} |", today()).expect("strings take text");
        } else if let Some(line) = old.lines().find(|line| line.starts_with(&start)) {
            text.extend([line, "\n"]);
        }
    }
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}
