//! `conformance/MUTANTS.md`: which faults were found, by what.

use super::list::Mutant;
use crate::codegen::root;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use test_utils::date::today;

const HEADER: &str = "\
# Planted faults

`cargo xtask mutants` plants one fault after the other in a copy of the tree and runs the narrowest tests that should
notice. `xtask/src/mutants/list/` has the faults as they are planted. Those that are not in the second table have not been
planted yet, or were not found.

";

/// Tests that a line names.
const NAMED: usize = 4;

fn path() -> PathBuf {
    root().join("conformance/MUTANTS.md")
}

fn start_of_line(mutant: &Mutant) -> String {
    format!("| {} | `{}` |", mutant.name, mutant.file)
}

/// The report says that the fault was found.
pub fn has(mutant: &Mutant) -> bool {
    let text = fs::read_to_string(path()).unwrap_or_default();
    text.lines().any(|line| line.starts_with(&start_of_line(mutant)))
}

/// Some of the tests that found a fault.
pub fn some(names: &[String]) -> String {
    match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

/// `crates/vm/src/exec/pure.rs` is in `crates/vm`, `isa/mixed.isa` in `isa`.
fn part_of(file: &str) -> &str {
    let depth = if file.starts_with("crates/") { 2 } else { 1 };
    let end = file.match_indices('/').nth(depth - 1).map_or(file.len(), |(at, _)| at);
    &file[..end]
}

/// Writes the faults that were found into the report; those of earlier runs stay while they are in the list.
pub fn record(all: &[Mutant], found: &[(&Mutant, Vec<String>)]) -> Result<(), String> {
    let old = fs::read_to_string(path()).unwrap_or_default();
    let mut lines = String::new();
    // Planted and found, by part of the tree.
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for mutant in all {
        let start = start_of_line(mutant);
        let count = counts.entry(part_of(&mutant.file)).or_default();
        count.0 += 1;
        if let Some((_, names)) = found.iter().find(|(other, _)| other.name == mutant.name) {
            let tests = format!("`{}`: {}", mutant.test, some(names));
            writeln!(lines, "{start} {tests} | {} |", today()).expect("strings take text");
        } else if let Some(line) = old.lines().find(|line| line.starts_with(&start)) {
            lines.extend([line, "\n"]);
        } else {
            continue;
        }
        count.1 += 1;
    }
    let mut text = format!("{HEADER}| in | faults | found |\n|---|---|---|\n");
    for (part, (planted, found)) in counts {
        writeln!(text, "| `{part}` | {planted} | {found} |").expect("strings take text");
    }
    text += "\n| fault | in | found by | date |\n|---|---|---|---|\n";
    text += &lines;
    fs::write(path(), text).map_err(|error| format!("{}: {error}", path().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_tree() {
        assert_eq!(part_of("crates/vm/src/exec/pure.rs"), "crates/vm");
        assert_eq!(part_of("isa/mixed.isa"), "isa");
    }

    #[test]
    fn long_lists_of_tests_are_cut() {
        let names: Vec<String> = (0..6).map(|i| i.to_string()).collect();
        assert_eq!(some(&names), "0, 1, 2, 3 and 2 more");
        assert_eq!(some(&names[..4]), "0, 1, 2, 3");
    }
}
