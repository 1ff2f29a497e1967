//! `cargo xtask mutants`: plants one fault after the other in a copy of the tree, and sees whether the tests notice.
//!
//! `list/` has the faults, each with the tests that should find it.

mod list;
mod report;
mod scratch;

use list::Mutant;
use scratch::{Outcome, Scratch};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::codegen::root;

/// Which faults to plant, and where.
#[derive(clap::Args)]
pub struct Options {
    /// The faults by name (default: all).
    names: Vec<String>,
    /// Only faults in files whose path starts so (`crates/vm`).
    #[arg(long = "in", value_name = "PATH")]
    within: Option<String>,
    /// Only faults that conformance/MUTANTS.md does not have.
    #[arg(long)]
    missing: bool,
    /// The folder for the copy and what is built there. It is kept, so that the next run builds less.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("ptxvm-mutants"))]
    scratch: PathBuf,
    /// Tests that take longer have found the fault: it hangs.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u64,
    /// Leave conformance/MUTANTS.md alone.
    #[arg(long)]
    dry_run: bool,
}

impl Options {
    fn chooses(&self, mutant: &Mutant) -> bool {
        (self.names.is_empty() || self.names.contains(&mutant.name))
            && self.within.as_ref().is_none_or(|path| mutant.file.starts_with(path))
            && !(self.missing && report::has(mutant))
    }
}

/// `cargo xtask mutants`
pub fn run(options: &Options) -> Result<(), String> {
    let all = list::all()?;
    for mutant in &all {
        mutant.apply(&read(&root().join(&mutant.file))?)?;
    }
    if let Some(unknown) = options.names.iter().find(|name| !all.iter().any(|mutant| mutant.name == **name)) {
        return Err(format!("no fault is named '{unknown}'"));
    }
    let chosen: Vec<&Mutant> = all.iter().filter(|mutant| options.chooses(mutant)).collect();
    let scratch = Scratch::new(&options.scratch, Duration::from_secs(options.limit))?;
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
    let (start, count) = (Instant::now(), chosen.len());
    let (mut survivors, mut broken) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    for mutant in chosen {
        eprint!("{}: ", mutant.name);
        let begin = Instant::now();
        let outcome = scratch.with(mutant);
        eprint!("{} s, ", begin.elapsed().as_secs());
        match outcome {
            Ok(Outcome::Failed(names)) => {
                eprintln!("found by {}", report::some(&names));
                found.push((mutant, names));
            }
            Ok(Outcome::Passed) => {
                eprintln!("NOT FOUND by cargo test {}", mutant.test);
                survivors.push(mutant.name.as_str());
            }
            // The others can still be planted.
            Err(error) => {
                eprintln!("{error}");
                broken.push(mutant.name.as_str());
            }
        }
        if !options.dry_run {
            report::record(&all, &found)?;
        }
    }
    eprintln!("{count} faults in {} s, {} found", start.elapsed().as_secs(), found.len());
    match (&survivors[..], &broken[..]) {
        ([], []) => Ok(()),
        ([], _) => Err(format!("could not be tried: {}", broken.join(", "))),
        _ => Err(format!("the tests do not find {}", survivors.join(", "))),
    }
}

fn read(path: &std::path::Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
