//! The sessions of the README and of chapters of the book: the text below each `$ ptxvm ...` is what it prints, but for times and what `...`
//! leaves out. Those that need more than the command show as ignored. `crates/python/tests/test_chapter.py` has the sessions of Python.

mod common;

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use regex::Regex;
use snapbox::{Assert, Redactions};

/// The pages whose sessions run here.
const PAGES: &[&str] = &["README.md", "docs/command-line.md", "docs/wrong-number.md"];

/// A command line, and what it prints.
struct Step {
    command: String,
    output: String,
}

fn main() {
    let arguments = Arguments::from_args();
    let trials = PAGES.iter().flat_map(|page| {
        let text = std::fs::read_to_string(common::root().join(page));
        let text = text.unwrap_or_else(|error| panic!("{page} cannot be read: {error}"));
        sessions(&text).into_iter().map(move |(line, steps)| {
            let is_ours =
                steps.iter().all(|step| step.command.contains("ptxvm ") && !step.command.contains("pip "));
            Trial::test(format!("{page}:{line}"), move || steps.iter().try_for_each(run))
                .with_ignored_flag(!is_ours)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// The blocks of a page that are marked as `console`, each with the number of its first line.
fn sessions(text: &str) -> Vec<(usize, Vec<Step>)> {
    let mut sessions = Vec::new();
    let mut session: Option<(usize, Vec<Step>)> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut session, line.strip_prefix("$ ")) {
            (None, _) if line == "```console" => session = Some((number + 1, Vec::new())),
            (None, _) => {}
            (Some(_), _) if line == "```" => sessions.extend(session.take()),
            (Some((_, steps)), Some(command)) => {
                steps.push(Step { command: command.to_owned(), output: String::new() });
            }
            (Some((_, steps)), None) => {
                let output = &mut steps.last_mut().expect("a session begins with a command").output;
                *output += line;
                output.push('\n');
            }
        }
    }
    sessions
}

fn run(step: &Step) -> Result<(), Failed> {
    let folder = Path::new(env!("CARGO_BIN_EXE_ptxvm")).parent().unwrap_or(Path::new("."));
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {}\n}} 2>&1", step.command)])
        .env("PATH", path)
        .current_dir(common::root())
        .output()?;
    let redactions = redactions();
    let expected = redactions.redact(&step.output);
    let assert =
        Assert::new().normalize_paths(false).action(snapbox::assert::Action::Verify).redact_with(redactions);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert
        .try_eq(Some(&step.command), printed.into(), expected.into())
        .map_err(|error| error.to_string().into())
}

/// What is another at each run: times, rates and shares of the time.
fn redactions() -> Redactions {
    let mut redactions = Redactions::new();
    for (placeholder, pattern) in [
        ("[TIME]", r#"(?<redacted>\d+(\.\d+)? (us|ms|s)), "#),
        ("[RATE]", r"(?<redacted>\d+(\.\d+)? ([kMG] )?)thread-instructions/s"),
        ("[SECONDS]", r#""seconds(_all)?":(?<redacted>\[.*\]|[0-9.e-]+)"#),
        ("[NUMBER]", r#"_per_second":(?<redacted>[0-9.]+)"#),
        ("[SHARE]", r"(?m)^(?<redacted> *\d+\.\d%)"),
        ("[REST]", r"(?m)^(?<redacted>\d+ more lines take \d+\.\d%)"),
    ] {
        let pattern = Regex::new(pattern).expect("the pattern is one");
        redactions.insert(placeholder, pattern).expect("the placeholder is one");
    }
    redactions
}
