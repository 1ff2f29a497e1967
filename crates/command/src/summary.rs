//! The last line of `ptxvm run`.

use std::collections::BTreeMap;

use check::module::Function;
use ptxvm::{LaunchReport, Located};
use serde::Serialize;
use serde_json::Value;

use super::expect::Comparison;
use super::observe::Observed;
use super::options::{Format, RunOptions};
use super::profile::Report;
use super::report::{Failure, print};

/// The object of `--format json`.
#[derive(Serialize)]
pub struct Summary<'a> {
    kernel: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    /// Threads of the whole grid.
    threads: u64,
    thread_instructions: u64,
    /// Median.
    seconds: f64,
    seconds_all: Vec<f64>,
    thread_instructions_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a Report<'a>>,
    /// Present if a tool ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<serde_json::Value>>,
    /// Present with `--expect`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    comparisons: &'a [Comparison],
    /// What `--trace`, `--watch` or `--first-nan` saw.
    #[serde(flatten)]
    observed: BTreeMap<&'static str, &'a Value>,
}

/// The object of `--format json --profile` when the kernel did not end.
#[derive(Serialize)]
struct Stopped<'a> {
    kernel: &'a str,
    profile: &'a Report<'a>,
}

/// Prints the last line of stdout: the kernel and its speed.
///
/// # Errors
/// When stdout cannot be written to.
pub fn print_summary(
    kernel: &Function,
    options: &RunOptions,
    reports: &[LaunchReport],
    profile: Option<&Report>,
    findings: &[Located],
    comparisons: &[Comparison],
    observed: Option<&Observed>,
) -> Result<(), Failure> {
    let summary = Summary::new(kernel, options, reports, profile, findings, comparisons, observed);
    match (profile, options.profile.as_ref().and_then(Option::as_ref)) {
        (Some(report), Some(path)) => report.save(path, &summary.line())?,
        (Some(report), None) if options.format == Format::Human => print(report.table().trim_end())?,
        _ => {}
    }
    match options.format {
        Format::Json => print_json(&summary),
        Format::Human => print(summary.line()),
    }
}

/// Shows or saves the profile of a kernel that did not end, up to where it stopped.
///
/// # Errors
/// When it cannot be written.
pub fn print_profile(kernel: &Function, options: &RunOptions, report: &Report) -> Result<(), Failure> {
    match (&options.profile, options.format) {
        (Some(Some(path)), _) => report.save(path, &format!("{}: stopped before its end", kernel.name)),
        (_, Format::Human) => print(report.table().trim_end()),
        (_, Format::Json) => print_json(&Stopped { kernel: &kernel.name, profile: report }),
    }
}

fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    match serde_json::to_string(object) {
        Ok(line) => print(line),
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}

impl<'a> Summary<'a> {
    /// The summary of these launches.
    pub fn new(
        kernel: &'a Function,
        options: &RunOptions,
        reports: &[LaunchReport],
        profile: Option<&'a Report<'a>>,
        findings: &[Located],
        comparisons: &'a [Comparison],
        observed: Option<&'a Observed>,
    ) -> Summary<'a> {
        let (grid, block) = (options.grid(), options.block(kernel));
        let seconds_all: Vec<f64> = reports.iter().map(|report| report.seconds).collect();
        let seconds = median(&seconds_all);
        let thread_instructions = reports.last().map_or(0, |report| report.thread_instructions);
        Summary {
            kernel: &kernel.name,
            grid,
            block,
            threads: grid.iter().chain(&block).map(|&extent| u64::from(extent)).fold(1, u64::saturating_mul),
            thread_instructions,
            seconds,
            seconds_all,
            thread_instructions_per_second: if seconds > 0.0 {
                thread_instructions as f64 / seconds
            } else {
                0.0
            },
            profile: profile.filter(|_| options.profile == Some(None)),
            comparisons,
            observed: observed.iter().map(|(name, seen)| (*name, seen)).collect(),
            findings: (!options.tool.is_empty()).then(|| findings.iter().map(ptxvm::json::finding).collect()),
        }
    }

    /// The line for people.
    fn line(&self) -> String {
        let extents = |extents: [u32; 3]| extents.map(|extent| extent.to_string()).join("x");
        let median = match self.seconds_all.len() {
            1 => String::new(),
            n => format!(" (median of {n})"),
        };
        format!(
            "{}: grid {}, block {}, {} threads, {}{median}, {} thread-instructions/s",
            self.kernel,
            extents(self.grid),
            extents(self.block),
            self.threads,
            time(self.seconds),
            scaled(self.thread_instructions_per_second),
        )
    }
}

/// The median of sorted times: the mean of the two middle ones if their number is even.
fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len().saturating_sub(1) / 2), sorted.get(sorted.len() / 2)) {
        (Some(low), Some(high)) => (low + high) / 2.0,
        _ => 0.0,
    }
}

/// `1.23 ms`
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// `1.23 G`
fn scaled(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_numbers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[5.0]), 5.0);
    }
}
