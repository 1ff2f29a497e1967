//! `cargo exhaustive`: runs the vector handlers on all operands, against exact integer arithmetic.
//!
//! The oracle is written from IEEE 754 and shares no code with `sem`: the real number of an encoding ([`half`]), the
//! order of two numbers ([`compare`]), the rounding of an exact sum ([`exact`]). There are three exceptions. `sem` is
//! the oracle for the approximate functions ([`approx`]) and for whole tables ([`table`]). The last sweep compares
//! HSETP2 with handlers that the other sweeps check ([`hsetp2`]). Results go to `conformance/EXHAUSTIVE.md`; the
//! tests run the same code on a sample.
#![forbid(unsafe_code)]

mod addend;
mod approx;
mod compare;
mod exact;
mod half;
mod halves;
mod hsetp2;
mod mixed;
mod report;
mod table;
#[cfg(test)]
mod tests;

use approx::Approx;
use clap::{Parser, ValueEnum};
use compare::Compare;
use cpu_time::ProcessTime;
use half::{BF16, F16};
use halves::Halves;
use hsetp2::Hsetp2;
use indicatif::{ProgressBar, ProgressStyle};
use lanes::{Handler, HostPath, available_paths};
use mixed::{Mixed, Operation};
use rayon::prelude::*;
use report::Time;
use std::process::ExitCode;
use std::time::Instant;
use table::{Sources, Table};

/// The number of second operands for each first operand.
const ROW: usize = 1 << 16;

/// The number of differences that are printed.
const EXAMPLES: usize = 10;

/// All pairs of a first and a second operand.
trait Sweep: Sync {
    /// The number of its instructions.
    fn instructions(&self) -> usize;

    /// Runs every instruction on `a` and all values of the second operand. There is a tally for each host path.
    fn row(&self, a: u16, tallies: &mut [Tally]);
}

/// The results on one host path.
#[derive(Default)]
struct Tally {
    /// The number of results compared with the oracle.
    results: u64,
    differences: u64,
    /// The first differences, in words.
    examples: Vec<String>,
}

impl Tally {
    /// Counts results; `example` describes the first one that differs.
    fn count(&mut self, results: usize, differences: u64, example: impl FnOnce() -> String) {
        self.results += results as u64;
        self.differences += differences;
        if differences > 0 && self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }

    fn add(&mut self, other: Tally) {
        self.results += other.results;
        self.differences += other.differences;
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
    }
}

/// The vector handler of an instruction.
fn handler(mnemonic: &str, sources: usize, path: HostPath) -> Result<Handler, String> {
    let mut words = mnemonic.split('.');
    let opcode = words.next().unwrap_or_default();
    let modifiers: Vec<&str> = words.collect();
    let selected =
        isa::select(opcode, &modifiers, 1 + sources).map_err(|_| format!("{mnemonic} is no instruction"))?;
    Handler::new(selected.form(), &selected.picks, path)
        .ok_or_else(|| format!("{mnemonic} has no vector handler on {}", path.name()))
}

/// Runs the vector handlers on all operands there are, against exact integer arithmetic.
#[derive(Parser)]
struct Options {
    /// The sweeps (default: all).
    #[arg(value_enum)]
    which: Vec<Which>,
    /// Host threads (default: all cores).
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Host paths, of those that this machine has (default: all).
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    paths: Vec<String>,
    /// Only every Nth value of the first operand, from the Kth on.
    #[arg(long, value_name = "K/N", value_parser = Share::parse, default_value = "1/1")]
    share: Share,
    /// Only instructions whose names contain this, of the sweeps of the whole table.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Leave conformance/EXHAUSTIVE.md alone.
    #[arg(long)]
    dry_run: bool,
}

/// A sweep by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// setp of f16 and f16x2, plain and with .ftz.
    SetpF16,
    /// setp of bf16 and bf16x2.
    SetpBf16,
    /// setp of b16, s16 and u16.
    SetpInt16,
    /// fma.f32.f16 in four roundings, with .sat and without.
    FmaF16,
    /// add.f32.f16 in four roundings, with .sat and without.
    AddF16,
    /// sub.f32.f16 in four roundings, with .sat and without.
    SubF16,
    /// fma.f32.bf16 in four roundings, with .sat and without.
    FmaBf16,
    /// add.f32.bf16 in four roundings, with .sat and without.
    AddBf16,
    /// sub.f32.bf16 in four roundings, with .sat and without.
    SubBf16,
    /// ex2.approx.f32 of the operand's upper half with all lower halves, with .ftz and without.
    Ex2,
    /// lg2.approx.f32 in the same way.
    Lg2,
    /// sin.approx.f32 in the same way.
    Sin,
    /// cos.approx.f32 in the same way.
    Cos,
    /// tanh.approx.f32 in the same way, but there is none with .ftz.
    Tanh,
    /// Every form of one source of 32 bits, against sem.
    Words,
    /// Every form of two sources of 16 bits or fewer, against sem.
    Shorts,
    /// Every form of one source of two 16-bit numbers, against sem's results for each half.
    Halves,
    /// Every form of two packed 32-bit sources, all values in each half, against sem.
    Packed,
    /// The HSETP2 that setp of halves becomes, executed, against the executed setp.
    Hsetp2,
}

impl Which {
    /// Is it a sweep of the whole table?
    fn is_table(self) -> bool {
        matches!(self, Which::Words | Which::Shorts | Which::Halves | Which::Packed)
    }

    /// The name on the command line.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
    }

    fn sweep(self, only: &str, paths: &[HostPath]) -> Result<Box<dyn Sweep>, String> {
        Ok(match self {
            Which::SetpF16 => Box::new(Compare::halves(&F16, paths)?),
            Which::SetpBf16 => Box::new(Compare::halves(&BF16, paths)?),
            Which::SetpInt16 => Box::new(Compare::integers(paths)?),
            Which::FmaF16 => Box::new(Mixed::new(Operation::Fma, &F16, paths)?),
            Which::AddF16 => Box::new(Mixed::new(Operation::Add, &F16, paths)?),
            Which::SubF16 => Box::new(Mixed::new(Operation::Sub, &F16, paths)?),
            Which::FmaBf16 => Box::new(Mixed::new(Operation::Fma, &BF16, paths)?),
            Which::AddBf16 => Box::new(Mixed::new(Operation::Add, &BF16, paths)?),
            Which::SubBf16 => Box::new(Mixed::new(Operation::Sub, &BF16, paths)?),
            Which::Ex2 => {
                Box::new(Approx::new(&["ex2.approx.f32", "ex2.approx.ftz.f32"], sem::approx::ex2, paths)?)
            }
            Which::Lg2 => {
                Box::new(Approx::new(&["lg2.approx.f32", "lg2.approx.ftz.f32"], sem::approx::lg2, paths)?)
            }
            Which::Sin => {
                Box::new(Approx::new(&["sin.approx.f32", "sin.approx.ftz.f32"], sem::approx::sin, paths)?)
            }
            Which::Cos => {
                Box::new(Approx::new(&["cos.approx.f32", "cos.approx.ftz.f32"], sem::approx::cos, paths)?)
            }
            Which::Tanh => Box::new(Approx::new(&["tanh.approx.f32"], sem::approx::tanh, paths)?),
            Which::Words => Box::new(Table::new(Sources::Word, only, paths)?),
            Which::Shorts => Box::new(Table::new(Sources::Shorts, only, paths)?),
            Which::Halves => Box::new(Halves::new(only, paths)?),
            Which::Packed => Box::new(Table::new(Sources::Packed, only, paths)?),
            Which::Hsetp2 => Box::new(Hsetp2::new(paths)?),
        })
    }
}

/// Part K of N of the first operand's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    number: usize,
    of: usize,
}

impl Share {
    fn parse(text: &str) -> Result<Share, String> {
        let (number, of) = text.split_once('/').ok_or("must be K/N")?;
        let parse = |text: &str| text.parse::<usize>().map_err(|error| error.to_string());
        let (number, of) = (parse(number)?, parse(of)?);
        if (1..=of).contains(&number) && of <= ROW {
            Ok(Share { number, of })
        } else {
            Err("K is 1 to N".into())
        }
    }

    /// The values of the first operand.
    fn values(self) -> Vec<u16> {
        (self.number - 1..ROW).step_by(self.of).map(|a| a as u16).collect()
    }
}

/// Runs a sweep on these values of the first operand. Returns a tally for each host path.
fn run_sweep(sweep: &dyn Sweep, values: &[u16], paths: usize, done: impl Fn() + Sync) -> Vec<Tally> {
    let none = || -> Vec<Tally> { (0..paths).map(|_| Tally::default()).collect() };
    let row = |mut tallies: Vec<Tally>, &a: &u16| {
        sweep.row(a, &mut tallies);
        done();
        tallies
    };
    let sum = |mut a: Vec<Tally>, b: Vec<Tally>| {
        a.iter_mut().zip(b).for_each(|(a, b)| a.add(b));
        a
    };
    values.par_iter().fold(none, row).reduce(none, sum)
}

/// The sweep as the command line says it.
fn name_of(which: Which, only: &str) -> String {
    if only.is_empty() { which.name() } else { format!("{} --only {only}", which.name()) }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut paths = available_paths();
    if !options.paths.is_empty() {
        if let Some(name) = options.paths.iter().find(|name| !paths.iter().any(|path| path.name() == **name))
        {
            return Err(format!("this machine has no path '{name}'"));
        }
        paths.retain(|path| options.paths.iter().any(|name| name == path.name()));
    }
    let threads =
        options.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| error.to_string())?;
    let which = if options.which.is_empty() { Which::value_variants() } else { &options.which };
    if !options.only.is_empty() && !which.iter().all(|which| which.is_table()) {
        return Err("--only chooses among the instructions of words, shorts, halves and packed".into());
    }
    let mut differences = 0;
    for &which in which {
        let sweep = which.sweep(&options.only, &paths)?;
        let values = options.share.values();
        let style = "{prefix:28} {bar:40} {pos}/{len} {elapsed} of {duration}";
        let style = ProgressStyle::with_template(style).map_err(|error| error.to_string())?;
        let bar = ProgressBar::new(values.len() as u64).with_style(style).with_prefix(which.name());
        let (start, start_cpu) = (Instant::now(), ProcessTime::now());
        let tallies = pool.install(|| run_sweep(&*sweep, &values, paths.len(), || bar.inc(1)));
        let time = Time { wall: start.elapsed(), cpu: start_cpu.elapsed() };
        bar.finish();
        for (path, tally) in paths.iter().zip(&tallies) {
            differences += tally.differences;
            let (name, path) = (which.name(), path.name());
            let (results, different) = (tally.results, tally.differences);
            println!("{name} on {path}: {results} results, {different} differences");
            for example in &tally.examples {
                println!("  {example}");
            }
        }
        if !options.dry_run {
            let line = |(&path, tally)| {
                report::Line::new(
                    (&name_of(which, &options.only), &*sweep),
                    path,
                    tally,
                    options.share,
                    time,
                    threads,
                )
            };
            report::merge(paths.iter().zip(&tallies).map(line).collect())?;
        }
    }
    if differences > 0 { Err(format!("{differences} results differ from the oracle")) } else { Ok(()) }
}
