//! `cargo kernels`: random kernels on every engine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use generator::{Difference, Random, generate, run_seed};
use indicatif::{ParallelProgressIterator, ProgressBar, ProgressStyle};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Runs random kernels on the reference engine and on the interpreter, and compares all memory.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo kernels --count 3000
  cargo kernels --first 123 --count 1 --print     the kernel of seed 123

Exit codes: 0 all engines agree; 1 a kernel showed a difference.")]
struct Options {
    /// Kernels to run
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Print the kernels instead of running them
    #[arg(long)]
    print: bool,
    /// Where kernels that show a difference are written, made small
    #[arg(long, value_name = "FOLDER", default_value = "target/kernels")]
    keep: PathBuf,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let seeds = options.first..options.first + options.count;
    if options.print {
        seeds.for_each(|seed| println!("{}", generate(&mut Random::seeded(seed)).text()));
        return ExitCode::SUCCESS;
    }
    let style = ProgressStyle::with_template("{spinner} kernels {wide_bar} {pos}/{len} {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let found = AtomicUsize::new(0);
    let threads = AtomicUsize::new(0);
    let run = |seed: u64| {
        let (launched, failure) = run_seed(seed);
        threads.fetch_add(launched as usize, Ordering::Relaxed);
        let Some(failure) = failure else { return };
        found.fetch_add(1, Ordering::Relaxed);
        let path = options.keep.join(format!("{seed}.ptx"));
        let written =
            std::fs::create_dir_all(&options.keep).and_then(|()| std::fs::write(&path, failure.text(seed)));
        let place = written.map_or_else(|error| error.to_string(), |()| path.display().to_string());
        let Difference { way, what, .. } = &failure.difference;
        eprintln!("seed {seed}, {way}: {what}\n  {place}");
    };
    let len = options.count;
    seeds.into_par_iter().progress_with(ProgressBar::new(len).with_style(style)).for_each(run);
    let (found, threads) = (found.into_inner(), threads.into_inner());
    println!("{len} kernels, {threads} threads: {found} showed a difference");
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
