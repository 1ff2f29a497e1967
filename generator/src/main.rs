//! `cargo kernels`: random kernels on every engine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use generator::{Difference, Kernel, Random, classes, generate, run, walk};
use indicatif::{ParallelProgressIterator, ProgressBar, ProgressStyle};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Runs random kernels on the reference engine and on the interpreter, and compares all memory.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo kernels --count 3000
  cargo kernels --count 10000 --survey kernels    what kernels are made of
  cargo kernels --first 123 --count 1 --print     the kernel of seed 123
  cargo kernels --walk                            every instruction with every neighbour

Exit codes: 0 all engines agree; 1 a kernel showed a difference.")]
struct Options {
    /// Kernels to run (default: 10,000, or the whole walk)
    #[arg(long)]
    count: Option<u64>,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Not random kernels, but a walk through all instructions with all neighbours that optimisations join: seeds are numbers of
    /// its kernels. With `--survey`, says which have been made
    #[arg(long)]
    walk: bool,
    /// Print the kernels instead of running them
    #[arg(long)]
    print: bool,
    /// Run none: say how many have which class of statements, and write the shortest of each class into a folder
    #[arg(long, value_name = "FOLDER")]
    survey: Option<PathBuf>,
    /// Where kernels that show a difference are written, made small
    #[arg(long, value_name = "FOLDER", default_value = "target/kernels")]
    keep: PathBuf,
}

impl Options {
    fn count(&self) -> u64 {
        self.count.unwrap_or_else(|| if self.walk { walk::len() } else { 10_000 })
    }

    fn kernel(&self, seed: u64) -> Kernel {
        if self.walk { walk::kernel(seed) } else { generate(&mut Random::seeded(seed)) }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let seeds = options.first..options.first + options.count();
    if options.print {
        seeds.for_each(|seed| println!("{}", options.kernel(seed).text()));
        return ExitCode::SUCCESS;
    }
    if let Some(folder) = &options.survey {
        if options.walk {
            print_coverage();
            return ExitCode::SUCCESS;
        }
        return match write_survey(folder, options.count()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {}: {error}", folder.display());
                ExitCode::FAILURE
            }
        };
    }
    let style = ProgressStyle::with_template("{spinner} kernels {wide_bar} {pos}/{len} {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let found = AtomicUsize::new(0);
    let threads = AtomicUsize::new(0);
    let run = |seed: u64| {
        let kernel = options.kernel(seed);
        threads.fetch_add(kernel.threads() as usize, Ordering::Relaxed);
        let Some(failure) = run(&kernel) else { return };
        found.fetch_add(1, Ordering::Relaxed);
        let (name, file) = if options.walk { ("Walk", "walk_") } else { ("Seed", "") };
        let path = options.keep.join(format!("{file}{seed}.ptx"));
        let text = failure.text(&format!("{name} {seed}"));
        let written = std::fs::create_dir_all(&options.keep).and_then(|()| std::fs::write(&path, text));
        let place = written.map_or_else(|error| error.to_string(), |()| path.display().to_string());
        let Difference { way, what, .. } = &failure.difference;
        eprintln!("seed {seed}, {way}: {what}\n  {place}");
    };
    let len = options.count();
    seeds.into_par_iter().progress_with(ProgressBar::new(len).with_style(style)).for_each(run);
    let (found, threads) = (found.into_inner(), threads.into_inner());
    println!("{len} kernels, {threads} threads: {found} showed a difference");
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the shortest kernel of each class among the first `count`, and prints a table of them.
fn write_survey(folder: &Path, count: u64) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    println!("| class | of 1,000 kernels | the shortest |\n|---|---|---|");
    for (class, found, shortest) in classes::survey(count) {
        let share = found as u64 * 1000 / count.max(1);
        let Some((seed, kernel)) = shortest else {
            println!("| {} | {share} | none |", class.name);
            continue;
        };
        let (grid, block) = (kernel.grid, kernel.block);
        let cluster = match kernel.cluster {
            [1, 1, 1] => String::new(),
            cluster => format!(", cluster {cluster:?}"),
        };
        let text = format!("// Seed {seed}, grid {grid:?}{cluster}, block {block:?}\n{}", kernel.text());
        std::fs::write(folder.join(format!("{}.ptx", class.name)), text)?;
        println!("| {} | {share} | [seed {seed}]({}.ptx) |", class.name, class.name);
    }
    Ok(())
}

/// Prints how many of the walk's subjects have had which neighbours.
fn print_coverage() {
    let coverage = walk::coverage(1);
    let forms = walk::MIDDLES.len();
    println!("| before it | instructions |\n|---|---|");
    for (source, count) in coverage.by_source() {
        println!("| {source:?} | {count} of {forms} |");
    }
    println!("\n| behind it | instructions |\n|---|---|");
    for (target, count) in coverage.by_target() {
        println!("| {target:?} | {count} of {forms} |");
    }
    println!("\n{} neighbourhoods in {} kernels; {} are none", coverage.made, walk::len(), coverage.left_out);
}
