//! The kernels of `tests/tools`, each with its bug and without: what the tools say (`tests/tools/README.md`).

mod common;
mod tools {
    pub mod compiled;
}

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};

/// How each is launched: a name, and options.
const WAYS: [(&str, &[&str]); 5] = [
    ("threads_1", &["--threads", "1"]),
    ("threads_2", &["--threads", "2"]),
    ("schedule_1", &["--schedule", "1"]),
    ("schedule_2", &["--schedule", "2"]),
    ("schedule_3", &["--schedule", "3"]),
];

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(2);
    let folder = common::root().join("tests/tools");
    let mut trials = Vec::new();
    for tool in files(&folder).into_iter().filter(|path| path.is_dir()) {
        for path in files(&tool).into_iter().filter(|path| path.extension().is_some_and(|end| end == "ptx")) {
            let name = path.strip_prefix(&folder).unwrap_or(&path).with_extension("").display().to_string();
            let clean = path.clone();
            trials.push(Trial::test(format!("{name}::bug"), move || with_bug(&path).map_err(Failed::from)));
            trials.push(Trial::test(format!("{name}::clean"), move || {
                without_bug(&clean).map_err(Failed::from)
            }));
        }
    }
    trials.extend(tools::compiled::trials(&folder));
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&arguments, trials).exit();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// The words of the comment behind a line.
fn marks(line: &str) -> impl Iterator<Item = &str> {
    line.split_once("; //")
        .or(line.split_once(": //"))
        .or(line.split_once("} //"))
        .or(line.split_once("{ //"))
        .map_or("", |(_, words)| words)
        .split_whitespace()
}

/// The lines of one side of the pair; those of the other are left blank, so that all keep their numbers.
fn side(text: &str, other: &str) -> String {
    let keep = |line: &str| {
        if marks(line).any(|mark| mark == other) { "\n".to_owned() } else { format!("{line}\n") }
    };
    text.lines().map(keep).collect()
}

/// What the header says behind a key.
fn header<'t>(text: &'t str, key: &str) -> Result<Vec<&'t str>, String> {
    let line = text.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(':'));
    Ok(line.ok_or_else(|| format!("the header has no {key}"))?.split_whitespace().collect())
}

struct Seen {
    codes: BTreeSet<String>,
    lines: BTreeSet<u64>,
    stderr: String,
    exit: Option<i32>,
}

/// Launches a text under the name of its file.
fn launch(path: &Path, text: &str, tools: &str, options: &[&str]) -> Result<Seen, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let name = path.file_name().ok_or("no name")?;
    std::fs::write(directory.path().join(name), text).map_err(|error| error.to_string())?;
    let run = |format: &str| {
        let mut command = common::ptxvm();
        command.current_dir(directory.path()).arg("run").arg(name).args(header(text, "RUN")?);
        command.args(options).args(["--tool", tools, "--max-steps", "1e7", "--format", format]);
        common::finish(&mut command)
    };
    let (human, json) = (run("human")?, run("json")?);
    let object = object(&json)?;
    let findings =
        object["findings"].as_array().ok_or_else(|| format!("no findings\n{}", human.transcript()))?;
    let sides = |finding: &serde_json::Value| {
        ["first", "second"].into_iter().filter_map(|side| finding[side]["line"].as_u64()).collect::<Vec<_>>()
    };
    Ok(Seen {
        codes: findings
            .iter()
            .map(|finding| finding["code"].as_str().unwrap_or_default().to_owned())
            .collect(),
        lines: findings.iter().flat_map(sides).collect(),
        stderr: human.stderr,
        exit: human.code,
    })
}

/// What a launch says in JSON.
fn object(json: &common::Outcome) -> Result<serde_json::Value, String> {
    let last = json.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| format!("{error}: {}", json.transcript()))
}

/// The bug is found at the lines that the text marks, in every way, and in the same words.
fn with_bug(path: &Path) -> Result<(), String> {
    let whole = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let text = side(&whole, "FIX");
    let codes: BTreeSet<String> = header(&whole, "FIND")?.into_iter().map(str::to_owned).collect();
    let sites = text.lines().zip(1..).filter(|(line, _)| marks(line).any(|mark| mark == "SITE"));
    let sites: BTreeSet<u64> = sites.map(|(_, number)| number).collect();
    let beside = path.with_extension("stderr");
    // What races may read memory before it is written.
    let tools = match path.parent().and_then(Path::file_name).and_then(|folder| folder.to_str()) {
        Some("init") => "initcheck",
        Some("leak") => "leakcheck",
        _ => "racecheck,synccheck",
    };
    if let Ok(schedules) = header(&whole, "SCHEDULES") {
        return in_some_schedule(path, &text, tools, (&codes, &sites), schedules[0]);
    }
    let depends_on_order = header(&whole, "ORDER").is_ok();
    if depends_on_order {
        shows_in_another_order(path, &text, tools, (&codes, &sites))?;
    }
    // What synccheck finds beside racecheck it finds alone, where it looks at less.
    let is_sync = path.parent().is_some_and(|folder| folder.ends_with("sync"));
    for (way, options) in WAYS {
        let seen = launch(path, &text, tools, options).map_err(|error| format!("{way}: {error}"))?;
        let told = |what: &str| format!("{way}: {what}\n{}", seen.stderr);
        // Another order shows less of the bug, or also what follows from it.
        let is_part = seen.codes.is_subset(&codes) && seen.lines.is_subset(&sites)
            || seen.codes.is_superset(&codes) && seen.lines.is_superset(&sites);
        if way.starts_with("schedule") && is_part && depends_on_order {
            continue;
        }
        if seen.codes != codes {
            return Err(told(&format!("{:?} instead of {codes:?}", seen.codes)));
        }
        if seen.lines != sites {
            return Err(told(&format!("lines {:?} instead of {sites:?}", seen.lines)));
        }
        let is_error = seen.stderr.lines().any(|line| line.starts_with("error["));
        if seen.exit != Some(if is_error { 3 } else { 0 }) {
            return Err(told(&format!("exit code {:?}", seen.exit)));
        }
        if !way.starts_with("threads") {
            continue;
        }
        if std::env::var_os("PTXVM_BLESS").is_some() {
            std::fs::write(&beside, &seen.stderr).map_err(|error| error.to_string())?;
        }
        if is_sync {
            let alone =
                launch(path, &text, "synccheck", options).map_err(|error| format!("{way}: {error}"))?;
            if alone.stderr != seen.stderr {
                return Err(told(&format!("synccheck alone says\n{}", alone.stderr)));
            }
        }
        let expected = std::fs::read_to_string(&beside).map_err(|error| error.to_string())?;
        if expected != seen.stderr {
            return Err(told(&format!("other words than in {}:", beside.display())));
        }
    }
    Ok(())
}

/// The bug is found under one of so many schedules, and nothing else under any.
fn in_some_schedule(
    path: &Path,
    text: &str,
    tools: &str,
    (codes, sites): (&BTreeSet<String>, &BTreeSet<u64>),
    schedules: &str,
) -> Result<(), String> {
    let mut found = false;
    for seed in 1..=schedules.parse::<u64>().map_err(|error| error.to_string())? {
        let seen = launch(path, text, tools, &["--schedule", &seed.to_string()])?;
        if !seen.codes.is_subset(codes) || !seen.lines.is_subset(sites) {
            return Err(format!("schedule {seed}: something else\n{}", seen.stderr));
        }
        found |= seen.codes == *codes && seen.lines == *sites;
    }
    if found { Ok(()) } else { Err(format!("not found under {schedules} schedules")) }
}

/// A bug that not every order of blocks shows is found whole under one schedule at least.
fn shows_in_another_order(
    path: &Path,
    text: &str,
    tools: &str,
    (codes, sites): (&BTreeSet<String>, &BTreeSet<u64>),
) -> Result<(), String> {
    const SEEDS: u64 = 8;
    for seed in 1..=SEEDS {
        let seen = launch(path, text, tools, &["--schedule", &seed.to_string()])?;
        if seen.codes.is_superset(codes) && seen.lines.is_superset(sites) {
            return Ok(());
        }
    }
    Err(format!("not found whole under {SEEDS} schedules"))
}

/// Nothing is found without it.
fn without_bug(path: &Path) -> Result<(), String> {
    let whole = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let text = side(&whole, "BUG");
    for (way, options) in WAYS {
        let seen = launch(path, &text, "all", options).map_err(|error| format!("{way}: {error}"))?;
        if !seen.codes.is_empty() || seen.exit != Some(0) {
            return Err(format!("{way}: {:?}, exit code {:?}\n{}", seen.codes, seen.exit, seen.stderr));
        }
    }
    Ok(())
}
