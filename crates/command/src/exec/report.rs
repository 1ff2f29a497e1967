//! The report on the processes of a program, for people and for programs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use ptxvm::process_report::MOST;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::live;
use crate::profile::{Modules, OfModule};
use crate::report::say;

/// What `--report` writes.
#[derive(Serialize)]
pub struct Report {
    /// The program's exit code; `None` if a signal ended it.
    exit_code: Option<i32>,
    /// From the program's start to its end.
    seconds: f64,
    launches: u64,
    /// The time in all kernels.
    kernel_seconds: f64,
    /// Calls of driver functions.
    calls: u64,
    /// The time in these calls, including kernels that they waited for.
    call_seconds: f64,
    /// The kernels of all processes.
    kernels: Vec<Kernel>,
    faults: Vec<Value>,
    /// The findings of tools.
    findings: Vec<Value>,
    /// The number of faults, and of findings that are errors.
    pub errors: u64,
    not_supported: Vec<String>,
    /// Why modules were not loaded.
    not_loaded: Vec<String>,
    /// The report of each process with a driver.
    processes: Vec<Value>,
    /// The number of processes that ended without a final report.
    #[serde(skip)]
    incomplete: usize,
}

/// The driver's report on its process (crates/libcuda/src/report.rs).
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub struct OfProcess {
    pub calls: u64,
    pub call_seconds: f64,
    pub kernels: Vec<Kernel>,
    pub faults: Vec<Value>,
    pub findings: Vec<Value>,
    pub errors: u64,
    pub not_supported: Vec<String>,
    pub not_loaded: Vec<String>,
    #[serde(skip_serializing)]
    pub profiles: Vec<OfModule>,
    /// Other fields of the report.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

#[derive(Clone, Deserialize, Serialize)]
pub struct Kernel {
    pub name: String,
    pub launches: u64,
    pub seconds: f64,
}

impl Report {
    /// Combines the files that the driver wrote in each process: reports, and profiles if they were requested.
    pub fn read(folder: &Path, time: Duration, status: ExitStatus) -> (Report, Modules) {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = files.map(|file| file.path()).collect();
        files.sort();
        let mut modules = Modules::default();
        let mut kernels: BTreeMap<String, Kernel> = BTreeMap::new();
        let mut report = Report {
            exit_code: status.code(),
            seconds: time.as_secs_f64(),
            launches: 0,
            kernel_seconds: 0.0,
            calls: 0,
            call_seconds: 0.0,
            kernels: Vec::new(),
            faults: Vec::new(),
            findings: Vec::new(),
            errors: 0,
            not_supported: Vec::new(),
            not_loaded: Vec::new(),
            processes: Vec::new(),
            incomplete: 0,
        };
        for path in files {
            let is_complete = path.extension().is_some_and(|extension| extension == "json");
            let process = match is_complete {
                true => of_file(&path),
                false => live::read(&path).ok(),
            };
            let Some(mut process) = process else { continue };
            process.other.insert("complete".to_owned(), is_complete.into());
            report.incomplete += usize::from(!is_complete);
            // A profile is in a file of its own.
            std::mem::take(&mut process.profiles).into_iter().for_each(|module| modules.add(module));
            report.processes.push(json!(process));
            for kernel in process.kernels {
                let name = kernel.name.clone();
                let sum = kernels.entry(name.clone()).or_insert(Kernel { name, launches: 0, seconds: 0.0 });
                sum.launches += kernel.launches;
                sum.seconds += kernel.seconds;
            }
            report.calls += process.calls;
            report.call_seconds += process.call_seconds;
            report.errors += process.errors;
            report.faults.extend(process.faults);
            report.findings.extend(process.findings);
            report.not_supported.extend(process.not_supported);
            report.not_loaded.extend(process.not_loaded);
        }
        report.not_supported.sort();
        report.not_supported.dedup();
        report.kernels = kernels.into_values().collect();
        report.kernels.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        report.launches = report.kernels.iter().map(|kernel| kernel.launches).sum();
        // The sum of an empty iterator is -0.0.
        report.kernel_seconds = report.kernels.iter().map(|kernel| kernel.seconds).sum::<f64>() + 0.0;
        (report, modules)
    }

    /// Shows the report to people.
    pub fn say(&self) {
        if self.processes.is_empty() {
            say("ptxvm: the program did not use the CUDA driver");
            return;
        }
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let told = |list: &[Value], what| match list.len() {
            MOST.. => format!("{MOST} {what}s or more"),
            number => count(number, what),
        };
        let findings = match self.findings.len() {
            0 => String::new(),
            _ => format!(", {}", told(&self.findings, "finding")),
        };
        say(format_args!(
            "ptxvm: {} launched {}, {:.3} s in kernels of {:.3} s, {}{findings}",
            count(self.kernels.len(), "kernel"),
            count(self.launches as usize, "time"),
            self.kernel_seconds,
            self.seconds,
            told(&self.faults, "fault"),
        ));
        say(format_args!(
            "ptxvm: {:.3} s in {} of the driver, kernels that they waited for included",
            self.call_seconds,
            count(self.calls as usize, "call"),
        ));
        for (list, what) in [(&self.faults, "faults"), (&self.findings, "findings")] {
            let mut kernels: Vec<String> = list
                .iter()
                .map(|one| &one["kernel"])
                .filter(|name| name.is_string())
                .map(Value::to_string)
                .collect();
            kernels.dedup();
            if !kernels.is_empty() {
                say(format_args!("ptxvm: {what} in {}", kernels.join(", ")));
            }
        }
        if let Some(first) = self.not_loaded.first() {
            let more = if self.not_loaded.len() >= MOST { " or more" } else { "" };
            let modules = count(self.not_loaded.len(), "module");
            say(format_args!(
                "ptxvm: {modules}{more} could not be loaded, the first because of this:\n{first}"
            ));
        }
        if !self.not_supported.is_empty() {
            say(format_args!("ptxvm: not supported, and asked for: {}", self.not_supported.join(", ")));
        }
        if self.incomplete > 0 {
            say(format_args!(
                "ptxvm: {} ended by _exit, abort or a signal, or still ran: the above is what was known until then",
                match self.incomplete {
                    1 => "1 process".to_owned(),
                    number => format!("{number} processes"),
                }
            ));
        }
    }
}

fn of_file(path: &Path) -> Option<OfProcess> {
    serde_json::from_reader(BufReader::new(File::open(path).ok()?)).ok()
}
