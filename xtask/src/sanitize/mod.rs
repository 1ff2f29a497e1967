//! `cargo xtask sanitize`: runs tests under Miri, AddressSanitizer and ThreadSanitizer.
//!
//! They need a nightly toolchain; nothing that users build does.

mod report;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::codegen::root;
use report::Run;

/// What to run.
#[derive(clap::Args)]
pub struct Options {
    /// Only this tool (repeat it for several).
    #[arg(long, value_enum)]
    tool: Vec<Tool>,
    /// The toolchain: a nightly one.
    #[arg(long, default_value = "nightly")]
    toolchain: String,
    /// The folder for what is built, and for the logs. It is kept, so that the next run builds less.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("ptxvm-sanitize"))]
    scratch: PathBuf,
    /// Leave conformance/SANITIZERS.md alone.
    #[arg(long)]
    dry_run: bool,
}

/// A sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tool {
    /// Undefined behaviour of any kind, on the portable path.
    Miri,
    /// Accesses outside of what was allocated, or after it was freed.
    Address,
    /// Data races between host threads.
    Thread,
}

/// Tests that are left out, and why.
type Skipped = &'static [(&'static str, &'static str)];

/// Tests that one command runs.
struct Job {
    /// Of `cargo test`.
    arguments: &'static [&'static str],
    /// Of the tests.
    filters: &'static [&'static str],
    skipped: Skipped,
}

const MIRI: &[Job] = &[
    Job {
        arguments: &["-p", "ptxvm-machine", "-p", "ptxvm-vm", "--lib"],
        filters: &[],
        skipped: &[
            (
                "every_rule_agrees_with_every_lane",
                "74,400 scalar forms of up to 1024 lanes each: hours; it has no unsafe code",
            ),
            ("many_variables_lie_closer", "a thousand declarations to check; it has no unsafe code"),
        ],
    },
    Job {
        arguments: &["-p", "ptxvm-lanes", "--test", "handlers"],
        filters: &["helpers", "chain", "select", "tiles", "nans_of_binary64"],
        skipped: &[],
    },
    // Tests that Miri cannot run, or not in time, are marked there.
    Job { arguments: &["-p", "ptxvm", "--test", "in_process"], filters: &["alone::"], skipped: &[] },
];

const ADDRESS: &[Job] = &[
    Job { arguments: &["-p", "ptxvm-lanes", "--tests"], filters: &[], skipped: &[] },
    Job { arguments: &["-p", "ptxvm-machine", "-p", "ptxvm-vm", "--lib"], filters: &[], skipped: &[] },
    Job {
        arguments: &["-p", "ptxvm", "--lib", "--tests"],
        filters: &[],
        skipped: &[(
            "some_launches_leak_nothing",
            "it measures the memory of the process, and AddressSanitizer keeps what was freed",
        )],
    },
    Job { arguments: &["-p", "ptxvm-command", "--bins", "--tests"], filters: &[], skipped: &[] },
];

const THREAD: &[Job] = &[
    Job { arguments: &["-p", "ptxvm-machine", "-p", "ptxvm-vm", "--lib"], filters: &[], skipped: &[] },
    // Launches of more than a moment go to four host threads; `contended` is one.
    Job { arguments: &["-p", "ptxvm", "--test", "in_process"], filters: &["together::"], skipped: &[] },
    // Several threads on one device.
    Job { arguments: &["-p", "ptxvm", "--test", "concurrent"], filters: &[], skipped: &[] },
];

impl Tool {
    const ALL: [Tool; 3] = [Tool::Miri, Tool::Address, Tool::Thread];

    fn name(self) -> &'static str {
        match self {
            Tool::Miri => "Miri",
            Tool::Address => "AddressSanitizer",
            Tool::Thread => "ThreadSanitizer",
        }
    }

    fn jobs(self) -> &'static [Job] {
        match self {
            Tool::Miri => MIRI,
            Tool::Address => ADDRESS,
            Tool::Thread => THREAD,
        }
    }

    /// Components of the toolchain that it needs.
    fn components(self) -> &'static [&'static str] {
        match self {
            Tool::Miri => &["miri", "rust-src"],
            Tool::Address => &[],
            // The standard library is built with it, too: what threads hand over through it would look like races.
            Tool::Thread => &["rust-src"],
        }
    }

    /// The arguments of cargo before those of the job.
    fn command(self, host: &str) -> Vec<String> {
        let words: &[&str] = match self {
            Tool::Miri => &["miri", "test"],
            Tool::Address => &["test", "--target", host],
            Tool::Thread => &["test", "-Zbuild-std", "--target", host],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn environment(self) -> Vec<(&'static str, String)> {
        match self {
            // Kernels are files, and memory of the host is reached by its addresses. Memory of kernels is copied by other sizes than it is
            // written by, which Miri's stale reads cannot follow.
            Tool::Miri => {
                let flags = "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-disable-weak-memory-emulation";
                vec![("MIRIFLAGS", flags.to_owned())]
            }
            Tool::Address => vec![("RUSTFLAGS", "-Zsanitizer=address".to_owned())],
            Tool::Thread => vec![("RUSTFLAGS", "-Zsanitizer=thread".to_owned())],
        }
    }
}

/// `cargo xtask sanitize`
pub fn run(options: &Options) -> Result<(), String> {
    fs::create_dir_all(&options.scratch)
        .map_err(|error| format!("{}: {error}", options.scratch.display()))?;
    let tools: Vec<Tool> =
        Tool::ALL.into_iter().filter(|tool| options.tool.is_empty() || options.tool.contains(tool)).collect();
    let (version, host) = toolchain(&options.toolchain, &tools)?;
    let mut failed = Vec::new();
    for tool in tools {
        let runs: Vec<Run> =
            tool.jobs().iter().map(|job| run_job(options, tool, &host, job)).collect::<Result<_, _>>()?;
        failed.extend(
            runs.iter().filter(|run| !run.passed).map(|run| format!("{}: {}", tool.name(), run.tests)),
        );
        if !options.dry_run {
            report::record(tool, &version, &runs)?;
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("findings, or failed tests:\n{}", failed.join("\n"))) }
}

/// The version of the toolchain, and the target of the host; an error that says what to install if it is not there.
fn toolchain(name: &str, tools: &[Tool]) -> Result<(String, String), String> {
    let output = |arguments: &[&str]| {
        let output = Command::new("rustup").args(arguments).output();
        let output = output.map_err(|error| format!("rustup: {error}"))?;
        Ok::<_, String>(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    let Some(text) = output(&["run", name, "rustc", "--version", "--verbose"])? else {
        return Err(format!(
            "there is no toolchain '{name}': rustup toolchain install {name} --profile minimal"
        ));
    };
    let version = text.lines().next().unwrap_or_default().to_owned();
    let host =
        text.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?.to_owned();
    let installed = output(&["component", "list", "--installed", "--toolchain", name])?.unwrap_or_default();
    let mut missing: Vec<&str> = tools.iter().flat_map(|tool| tool.components()).copied().collect();
    missing.retain(|component| !installed.lines().any(|line| line.starts_with(component)));
    missing.sort_unstable();
    missing.dedup();
    match missing[..] {
        [] => Ok((version, host)),
        _ => Err(format!(
            "'{name}' lacks parts: rustup component add {} --toolchain {name}",
            missing.join(" ")
        )),
    }
}

/// Runs the tests of a job.
fn run_job(options: &Options, tool: Tool, host: &str, job: &Job) -> Result<Run, String> {
    let mut words = tool.command(host);
    words.extend(job.arguments.iter().map(|word| (*word).to_owned()));
    let cargo = |more: &[&str], log: &Path| {
        let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let copy = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new("rustup");
        command.args(["run", &options.toolchain, "cargo"]).args(&words).args(more).current_dir(root());
        // Each tool builds the same crates with other flags.
        command.env("CARGO_TARGET_DIR", options.scratch.join(tool.name()));
        command.env_remove("RUSTUP_TOOLCHAIN").envs(tool.environment());
        command.stdin(Stdio::null()).stdout(file).stderr(copy);
        let start = Instant::now();
        let status = command.status().map_err(|error| format!("rustup: {error}"))?;
        Ok::<_, String>((status.success(), start.elapsed()))
    };
    let tests = format!("{} {}", job.arguments.join(" "), job.filters.join(" ")).trim_end().to_owned();
    eprintln!("{}: cargo test {tests}", tool.name());
    let name = tests.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let log = options.scratch.join(format!("{}{name}.txt", tool.name()));
    let read =
        || fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    if !cargo(&["--no-run"], &log)?.0 {
        return Err(format!("cargo test {tests} does not build under {}:\n{}", tool.name(), read()));
    }
    let mut more = vec!["--no-fail-fast", "--"];
    more.extend(job.filters);
    more.extend(job.skipped.iter().flat_map(|(name, _)| ["--skip", name]));
    let (passed, time) = cargo(&more, &log)?;
    let run = Run::new(tests, passed, time, &read(), job.skipped);
    eprintln!("  {} in {} s", run.outcome, Duration::as_secs(&time));
    if !passed {
        eprintln!("  see {}", log.display());
    }
    Ok(run)
}
