//! `conformance/EXHAUSTIVE.md`: a line for each sweep, host path and share that was run.

use super::{Share, Sweep, Tally, Which};
use clap::ValueEnum;
use indicatif::HumanCount;
use lanes::HostPath;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use test_utils::date::today;

const HEADER: &str = "\
# Exhaustive runs

`cargo exhaustive [SWEEP...] [--only TEXT] [--paths PATH,...] [--share K/N] [--threads N]` writes this table: the last run of each
sweep on each host path.

*Values* are those of the first operand, each with 65,536 of the second (a function's only operand is cut into two
halves): `all`, or the K-th of N equal shares. *Results* are single lanes (predicates p and q each) of the vector
handlers (`crates/lanes`), compared with exact integer arithmetic written from IEEE 754 (`exhaustive/src`, no code of
`sem`, no host floating point). `ex2`, `lg2`, `sin`, `cos`, `tanh`, `words`, `shorts`, `halves` and `packed` (all forms
at once) are compared with `sem`, which computes exactly with integers; `halves` with its results for each half of the
source, and one value in 256 as a whole. `hsetp2` executes the HSETP2 that ptxas makes of a `setp`
(`crates/sass`, one compare of each class), and compares it with the vector handler of that `setp`. *CPU time* (of all
threads) and *wall time* are those of the whole sweep with all its paths, on machines that did other work too; `-` was
not measured.

| sweep | path | values | instructions | results | differences | CPU time | wall time | date | on |
|---|---|---|---|---|---|---|---|---|---|
";

/// The duration of a sweep.
#[derive(Clone, Copy)]
pub struct Time {
    pub wall: Duration,
    /// CPU time of all threads.
    pub cpu: Duration,
}

/// A line of the table.
pub struct Line {
    cells: Vec<String>,
}

/// The first cells identify the run; the others have its results.
const KEY: usize = 3;

impl Line {
    pub fn new(
        (name, sweep): (&str, &dyn Sweep),
        path: HostPath,
        tally: &Tally,
        share: Share,
        time: Time,
        threads: usize,
    ) -> Line {
        let values = if share.of == 1 { "all".to_string() } else { format!("{}/{}", share.number, share.of) };
        let seconds = |time: Duration| format!("{:.0} s", time.as_secs_f64());
        Line {
            cells: vec![
                name.to_string(),
                path.name().to_string(),
                values,
                sweep.instructions().to_string(),
                HumanCount(tally.results).to_string(),
                HumanCount(tally.differences).to_string(),
                seconds(time.cpu),
                seconds(time.wall),
                today(),
                format!("{}, {threads} threads", processor()),
            ],
        }
    }

    fn parse(text: &str) -> Option<Line> {
        let cells = text.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        Some(Line { cells: cells.map(str::to_string).collect() })
    }

    /// The sort key of the line: by sweep and host path, the whole before its shares.
    fn place(&self) -> (Option<usize>, Option<usize>, &str) {
        let name = self.cells[0].split(' ').next().unwrap_or_default();
        let sweep = Which::value_variants().iter().position(|which| which.name() == name);
        let path = HostPath::ALL.iter().position(|path| path.name() == self.cells[1]);
        (sweep, path, if self.cells[2] == "all" { "" } else { &self.cells[2] })
    }
}

/// Writes the lines into the report. They replace those of the same sweep, host path and share.
pub fn merge(lines: Vec<Line>) -> Result<(), String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../conformance/EXHAUSTIVE.md");
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, merged(&old, lines)).map_err(|error| format!("{}: {error}", path.display()))
}

/// The report with the lines merged into it.
pub fn merged(old: &str, mut lines: Vec<Line>) -> String {
    let new: Vec<Vec<String>> = lines.iter().map(|line| line.cells[..KEY].to_vec()).collect();
    let rows = old.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    lines.extend(
        rows.filter_map(Line::parse)
            .filter(|line| line.cells.len() > KEY && !new.contains(&line.cells[..KEY].to_vec())),
    );
    lines.sort_by(|a, b| a.place().cmp(&b.place()));
    let rows: Vec<String> = lines.iter().map(|line| format!("| {} |\n", line.cells.join(" | "))).collect();
    HEADER.to_string() + &rows.concat()
}

/// The processor's name on Linux, otherwise the architecture.
fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    name.unwrap_or(std::env::consts::ARCH).to_string()
}
