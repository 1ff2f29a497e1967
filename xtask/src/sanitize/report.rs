//! `conformance/SANITIZERS.md`: what ran, when, and what was left out.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use super::{Skipped, Tool};
use crate::codegen::root;
use test_utils::date::today;

const HEADER: &str = "\
# Sanitizers

`cargo xtask sanitize` runs tests under Miri (undefined behaviour of any kind, on the portable path), AddressSanitizer (accesses
outside of memory, on all paths) and ThreadSanitizer (data races between host threads; kernels share memory by atomics only), with a
nightly toolchain that nothing else needs. `--tool` runs one of them. This page is written by it.
";

/// What came of a job.
pub struct Run {
    /// Arguments of `cargo test`.
    pub tests: String,
    pub passed: bool,
    pub outcome: String,
    time: Duration,
    /// Names and reasons.
    left_out: Vec<(String, String)>,
}

impl Run {
    /// Reads the log of the tests.
    pub fn new(tests: String, passed: bool, time: Duration, log: &str, skipped: Skipped) -> Run {
        let mut left_out: Vec<(String, String)> =
            skipped.iter().map(|(name, why)| ((*name).to_owned(), (*why).to_owned())).collect();
        left_out.extend(log.lines().filter_map(ignored));
        // Tests of files do not say why: their files are not on this machine.
        let told = left_out.len();
        left_out.retain(|(_, why)| !why.is_empty());
        if told > left_out.len() {
            let files = format!("{} tests of files", told - left_out.len());
            left_out.push((files, "the files are not here".to_owned()));
        }
        let outcome = match findings(log) {
            0 if passed => format!("{} passed", count(log, " passed")),
            0 => format!("{} passed, {} FAILED", count(log, " passed"), count(log, " failed")),
            n => format!("{n} FINDINGS"),
        };
        Run { tests, passed, outcome, time, left_out }
    }
}

/// Numbers before a word in the summaries of all test binaries.
fn count(log: &str, word: &str) -> u64 {
    let summaries = log.lines().filter(|line| line.starts_with("test result:"));
    let numbers = summaries.filter_map(|line| {
        let before = &line[..line.find(word)?];
        before.rsplit(' ').next()?.parse::<u64>().ok()
    });
    numbers.sum()
}

/// Messages of sanitizers.
fn findings(log: &str) -> usize {
    const WORDS: [&str; 3] =
        ["error: Undefined Behavior", "ERROR: AddressSanitizer", "WARNING: ThreadSanitizer"];
    log.lines().filter(|line| WORDS.iter().any(|word| line.contains(word))).count()
}

/// `test NAME ... ignored, REASON`
fn ignored(line: &str) -> Option<(String, String)> {
    let (name, why) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    let why = why.trim_start_matches(',').trim();
    Some((name.trim().to_owned(), why.to_owned()))
}

/// Writes the section of a tool anew.
pub fn record(tool: Tool, version: &str, runs: &[Run]) -> Result<(), String> {
    let path = root().join("conformance/SANITIZERS.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    let mut text = HEADER.to_owned();
    for other in Tool::ALL {
        if other == tool {
            text += &section(tool, version, runs);
        } else {
            text += old_section(&old, other);
        }
    }
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn heading(tool: Tool) -> String {
    format!("\n## {}\n", tool.name())
}

/// A tool's section of the page, if it has one.
fn old_section(page: &str, tool: Tool) -> &str {
    let Some(start) = page.find(&heading(tool)) else { return "" };
    let end = page[start + 1..].find("\n## ").map_or(page.len(), |end| start + 1 + end);
    &page[start..end]
}

fn section(tool: Tool, version: &str, runs: &[Run]) -> String {
    let mut text = format!("{}\n{}, {version}.\n\n", heading(tool), today());
    text += "| `cargo test` | outcome | seconds |\n|---|---|---|\n";
    for run in runs {
        writeln!(text, "| `{}` | {} | {} |", run.tests, run.outcome, run.time.as_secs())
            .expect("strings take text");
    }
    if runs.iter().any(|run| !run.left_out.is_empty()) {
        text += "\n| left out | because |\n|---|---|\n";
        for (name, why) in runs.iter().flat_map(|run| &run.left_out) {
            writeln!(text, "| `{name}` | {why} |").expect("strings take text");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
test a::b ... ok
test a::c ... ignored, it takes hours
test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.1s
test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s
";

    #[test]
    fn logs_are_read() {
        assert_eq!((count(LOG, " passed"), count(LOG, " failed"), findings(LOG)), (15, 2, 0));
        let run = Run::new("-p x".to_owned(), false, Duration::ZERO, LOG, &[("long", "too long")]);
        assert_eq!(run.outcome, "15 passed, 2 FAILED");
        let all: Vec<&str> = run.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(all, ["long", "a::c"]);
        assert_eq!(findings("error: Undefined Behavior: of some kind"), 1);
    }

    #[test]
    fn sections_of_other_tools_stay() {
        let run = || Run::new("-p x".to_owned(), true, Duration::ZERO, LOG, &[]);
        let page =
            format!("{HEADER}{}{}", section(Tool::Miri, "1", &[run()]), section(Tool::Thread, "2", &[run()]));
        assert_eq!(old_section(&page, Tool::Miri), section(Tool::Miri, "1", &[run()]));
        assert_eq!(old_section(&page, Tool::Thread), section(Tool::Thread, "2", &[run()]));
        assert_eq!(old_section(&page, Tool::Address), "");
    }
}
