//! Every kernel of `tests/run`, launched in every way: what comes out must be what its header says.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use test_utils::header::{self, Launch};

fn main() {
    let mut arguments = Arguments::from_args();
    // Each launch uses all cores by itself.
    arguments.test_threads.get_or_insert(2);
    let folder = common::root().join("tests/run");
    let mut trials = Vec::new();
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // The reference engine runs one thread after the other.
        let in_step = std::fs::read_to_string(&path).is_ok_and(|text| text.contains("\n// IN STEP:"));
        for (way, options, host_path) in ways() {
            if in_step && matches!(way.as_str(), "reference" | "first_nan") {
                continue;
            }
            let path = path.clone();
            trials.push(Trial::test(format!("{stem}::{way}"), move || {
                run_file(&path, &options, host_path).map(drop).map_err(Failed::from)
            }));
        }
        trials
            .push(Trial::test(format!("{stem}::tools"), move || run_with_tools(&path).map_err(Failed::from)));
    }
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&arguments, trials).exit();
}

/// The ways to launch: a name, options, and a host path to force.
fn ways() -> Vec<(String, Vec<&'static str>, Option<&'static str>)> {
    let mut ways = vec![
        ("default".to_owned(), vec![], None),
        ("deterministic".to_owned(), vec!["--deterministic"], None),
        ("schedule_1".to_owned(), vec!["--schedule", "1"], None),
        ("threads_2".to_owned(), vec!["--threads", "2"], None),
        ("native".to_owned(), vec!["--engine", "native"], None),
        ("reference".to_owned(), vec!["--engine", "reference"], None),
        // Who watches changes nothing.
        ("first_nan".to_owned(), vec!["--first-nan"], None),
        ("counters".to_owned(), vec!["--counters"], None),
    ];
    ways.extend(common::host_paths().into_iter().map(|path| (path.to_owned(), vec![], Some(path))));
    ways
}

/// All launches of a file; returns what the tools found, if they ran.
fn run_file(path: &Path, options: &[&str], host_path: Option<&str>) -> Result<BTreeSet<String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut found = BTreeSet::new();
    for launch in header::parse(&text)? {
        let codes = check(&launch, path, options, host_path)
            .map_err(|error| format!("RUN: {}\n{error}", launch.words.join(" ")))?;
        found.extend(codes);
    }
    Ok(found)
}

/// The same under all tools, which find what the header says and nothing else.
fn run_with_tools(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let header = || text.lines().map_while(|line| line.strip_prefix("// ").or(line.strip_prefix("//")));
    if header().any(|line| line.starts_with("NO TOOLS: ")) {
        return Ok(());
    }
    let wanted = header().filter_map(|line| line.strip_prefix("FINDS: ")?.split(':').next());
    let wanted: BTreeSet<String> = wanted.map(str::to_owned).collect();
    let found = run_file(path, &["--tool", "all"], None)?;
    if found == wanted { Ok(()) } else { Err(format!("{found:?} is found instead of {wanted:?}")) }
}

/// The kinds of findings that are told on stderr; `error`: only of errors.
fn findings(stderr: &str, error: bool) -> BTreeSet<String> {
    let code = |line: &str| {
        let rest = line.strip_prefix("error[").or(line.strip_prefix("warning[").filter(|_| !error))?;
        Some(rest.split(']').next()?.to_owned())
    };
    let is_finding = |code: &String| ptxvm::FindingKind::ALL.iter().any(|kind| kind.code() == code);
    stderr.lines().filter_map(code).filter(is_finding).collect()
}

fn check(
    launch: &Launch,
    path: &Path,
    options: &[&str],
    host_path: Option<&str>,
) -> Result<BTreeSet<String>, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let saved = |index: usize| directory.path().join(format!("{index}.bin"));
    let mut command = common::ptxvm();
    command.arg("run").arg(path).args(&launch.words);
    // A header may ask for one of the ways itself, or for what excludes it.
    let asked = |option: &str| launch.words.iter().any(|word| word == option);
    let excluded = |option: &str| match option {
        "--deterministic" => asked("--threads"),
        "--threads" => asked("--deterministic"),
        "--first-nan" => ["--tool", "--profile", "--engine"].into_iter().any(asked),
        "--counters" => ["--tool", "--profile", "--engine"].into_iter().any(asked),
        _ => false,
    };
    command.args(if options.iter().any(|o| asked(o) || excluded(o)) { &[] } else { options });
    command.current_dir(path.parent().unwrap_or(Path::new(".")));
    if let Some(host_path) = host_path {
        command.env("PTXVM_HOST_PATH", host_path);
    }
    for (index, _) in &launch.out {
        command.arg("--out").arg(format!("{}={}", launch.place(*index), saved(*index).display()));
    }
    let outcome = common::finish(&mut command)?;
    let failed = launch.exit == 0 && !findings(&outcome.stderr, true).is_empty();
    let exit = if failed { 3 } else { launch.exit };
    if outcome.code != Some(exit) {
        return Err(format!("expected exit code {exit}\n{}", outcome.transcript()));
    }
    // On one host thread blocks print in their order.
    let in_order = asked("--deterministic") || launch.words.join(" ").contains("--threads 1");
    for (wanted, text, name) in
        [(&launch.stdout, &outcome.stdout, "stdout"), (&launch.stderr, &outcome.stderr, "stderr")]
    {
        let mut rest = text.as_str();
        for wanted in wanted {
            let Some((_, behind)) = rest.split_once(wanted.as_str()) else {
                return Err(format!("{name} does not contain `{wanted}`\n{}", outcome.transcript()));
            };
            rest = if in_order && name == "stdout" { behind } else { text };
        }
    }
    // A space stands behind it, so that one number is not taken for the beginning of another.
    let lines = || outcome.stdout.lines().map(|line| format!("{line} "));
    if let Some(found) =
        launch.no_stdout.iter().find(|no| lines().any(|line| line.contains(&format!("{no} "))))
    {
        return Err(format!("stdout contains `{found}`\n{}", outcome.transcript()));
    }
    for (index, words) in &launch.out {
        let got = std::fs::read(saved(*index)).map_err(|error| error.to_string())?;
        launch.compare(*index, words, &got)?;
    }
    Ok(findings(&outcome.stderr, false))
}
