//! `cargo litmus`: all litmus tests, as often as one likes.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressIterator, ProgressStyle};
use litmus::{kernel, run, variants};

/// Runs litmus tests and compares what comes out with what the PTX memory model permits.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo litmus
  cargo litmus --runs 1000 --only 'MP, release/acquire'
  cargo litmus --only 'SB, relaxed, gpu' --print     their kernels

Exit codes: 0 nothing forbidden was seen; 1 something was.")]
struct Options {
    /// How often each test is run
    #[arg(long, default_value_t = 1_000_000)]
    runs: u64,
    /// Only tests whose names have this in them
    #[arg(long, value_name = "WORDS", default_value = "")]
    only: String,
    /// Print the kernels instead of running them
    #[arg(long)]
    print: bool,
}

/// The results of the tests of one shape.
#[derive(Default)]
struct Row {
    tests: u64,
    runs: u64,
    permitted: usize,
    seen: usize,
    forbidden: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut chosen = variants();
    chosen.retain(|variant| variant.name.contains(&options.only));
    if options.print {
        chosen.iter().for_each(|variant| println!("{}", kernel::layout(variant).text));
        return ExitCode::SUCCESS;
    }
    let style = ProgressStyle::with_template("{spinner} tests {wide_bar} {pos}/{len} {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(chosen.len() as u64).with_style(style);
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for variant in chosen.iter().progress_with(bar) {
        let row = rows.entry(variant.shape).or_default();
        row.tests += 1;
        match run(variant, options.runs) {
            Ok(tally) => {
                row.runs += tally.runs;
                row.permitted += tally.permitted;
                row.seen += tally.seen.len() - tally.forbidden.len();
                for outcome in &tally.forbidden {
                    eprintln!("{}: forbidden {outcome:?}, {} times", variant.name, tally.seen[outcome]);
                }
                row.forbidden += u64::from(!tally.forbidden.is_empty());
            }
            Err(error) => {
                eprintln!("{}: {error}", variant.name);
                row.forbidden += 1;
            }
        }
    }
    println!(
        "| shape | tests | runs | outcomes permitted | of them seen | tests that failed |\n|---|---|---|---|---|---|"
    );
    let mut all = Row::default();
    for (shape, row) in &rows {
        let Row { tests, runs, permitted, seen, forbidden } = *row;
        println!("| {shape} | {tests} | {runs} | {permitted} | {seen} | {forbidden} |");
        all.tests += tests;
        all.runs += runs;
        all.permitted += permitted;
        all.seen += seen;
        all.forbidden += forbidden;
    }
    println!("| all | {} | {} | {} | {} | {} |", all.tests, all.runs, all.permitted, all.seen, all.forbidden);
    if all.forbidden == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
