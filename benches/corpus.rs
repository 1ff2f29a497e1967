//! How many instructions of threads the launches of tests/corpus execute in a second, on grids large enough to be worth it.
//!
//! `cargo bench -p ptxvm-command --bench corpus` prints a table, the slowest first; a word behind `--` picks kernels that have it in their name.
//! A launch is made as often as it takes for some 2^18 threads, by a higher grid: nearly all kernels do not look at `%ctaid.z`, and do the same
//! work again. What does look there, or counts blocks, is launched as it is, and marked. (Where a row of the grid has few threads, they are few in a
//! higher grid, too: blocks run together with those of their row.) One host thread. A product of matrices counts as one instruction of each thread, so
//! kernels with products are marked: theirs are worth tens or hundreds of others.

#[path = "../crates/command/tests/common/mod.rs"]
mod common;

use std::path::Path;

use serde_json::Value;

/// Threads of a launch.
const THREADS: u64 = 1 << 18;
/// Launches of each, of which the median counts.
const REPEATS: &str = "5";
/// Thread-instructions a second that no launch should be below.
const WANTED: f64 = 5e8;

/// A launch that was measured.
struct Row {
    name: String,
    /// What a reader should know.
    mark: String,
    instructions: f64,
    /// Thread-instructions a second.
    rate: f64,
}

/// What a launch of this grid reports; `None` where it fails.
fn measure(case: &common::Case, number: usize, kernel: &Path, grid: [u32; 3]) -> Option<Row> {
    let extents = |extents: [u32; 3]| extents.map(|extent| extent.to_string()).join(",");
    let mut command = common::ptxvm();
    command.current_dir(common::root().join("tests/corpus")).arg("run").arg(kernel);
    command.args([
        "--grid",
        &extents(grid),
        "--block",
        &extents(case.block),
        "--shared",
        &case.shared.to_string(),
    ]);
    command.args(["--threads", "1", "--repeat", REPEATS, "--format", "json"]);
    if case.lenient {
        command.arg("--lenient");
    }
    if let Some(entry) = &case.entry {
        command.args(["--entry", entry]);
    }
    for arg in &case.args {
        command.args(["--arg", arg]);
    }
    let outcome = common::finish(&mut command).ok()?;
    let report: Value = serde_json::from_str(outcome.stdout.lines().next()?).ok()?;
    let number_of = |name: &str| report[name].as_f64();
    Some(Row {
        name: case.name(number),
        mark: if grid == case.grid { "as it is" } else { "" }.into(),
        instructions: number_of("thread_instructions")?,
        rate: number_of("thread_instructions_per_second")?,
    })
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let Some(corpus) = common::corpus() else { return println!("the corpus is not here") };
    let mut rows = Vec::new();
    for (number, case) in common::cases(&common::root().join("tests/corpus")).iter().enumerate() {
        let name = case.name(number);
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let threads: u64 = case.grid.iter().chain(&case.block).map(|&extent| u64::from(extent)).product();
        let times = (THREADS / threads).clamp(1, 65_535 / u64::from(case.grid[2])) as u32;
        let raised = [case.grid[0], case.grid[1], case.grid[2] * times];
        let text = std::fs::read_to_string(corpus.join(&case.kernel)).unwrap_or_default();
        let looks =
            ["%ctaid.z", "%nctaid", "%cluster", "barrier.cluster"].iter().any(|word| text.contains(word));
        let row = if looks { None } else { measure(case, number, &corpus, raised) };
        match row.or_else(|| measure(case, number, &corpus, case.grid)) {
            Some(row) => rows.push(row),
            None => println!("{name} fails"),
        }
    }
    rows.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    println!("| launch | | million thread-instructions | million a second |\n|---|---|---:|---:|");
    for row in &rows {
        let millions = |x: f64| x / 1e6;
        let (instructions, rate) = (millions(row.instructions), millions(row.rate));
        println!("| {} | {} | {instructions:.2} | {rate:.0} |", row.name, row.mark);
    }
    let slow = rows.iter().filter(|row| row.rate < WANTED).count();
    println!("\n{slow} of {} launches below {} million a second", rows.len(), WANTED / 1e6);
}
