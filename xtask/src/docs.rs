//! `cargo xtask docs`: which recorded results back which row of the table, an example of each error, and the pages of
//! docs/isa.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_utils::bad_file::{Agreement, BadFile};
use test_utils::record::is_other_code;

use crate::codegen::root;

/// Options of `cargo xtask docs`.
#[derive(clap::Args)]
pub struct Options {
    /// Write nothing; fail if what is checked in is not what would be written.
    #[arg(long)]
    check: bool,
    /// Use this `ptxvm` instead of building one.
    #[arg(long, value_name = "PATH")]
    ptxvm: Option<PathBuf>,
}

/// Recordings in lines of `instruction operands.. = results`, with the oracle that they are from. Packed ones begin with
/// a line that says how they were made.
const RECORDINGS: &[(&str, &str)] = &[
    ("ptxas 13.5", "crates/sem/tests/folds/vectors.txt"),
    ("ptxas 13.5", "conformance/values/folds.txt.zst"),
    ("libnvvm 12.9", "conformance/values/libnvvm.txt.zst"),
    ("code of ptxas 13.5", "conformance/values/video.txt.zst"),
    ("H100", "conformance/hardware/NVIDIA-H100-80GB-HBM3-sm_90a.txt.zst"),
];

/// What `cargo xtask exhaustive` wrote, if it has run.
const EXHAUSTIVE: &str = "conformance/EXHAUSTIVE.md";

/// Runs the chore.
pub fn run(options: &Options) -> Result<(), String> {
    let root = root();
    let path = root.join("crates/command/src/oracles.tsv");
    let mut stale = update(&path, &oracles(&root)?, options.check)?;
    stale |= update(&root.join("crates/command/src/explain/codes.tsv"), &codes(&root)?, options.check)?;
    // The pages show the file just written, so that the command is built after it.
    let fresh = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = match &options.ptxvm {
        Some(path) => Command::new(path),
        None => {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.current_dir(&root).args([
                "run",
                "--quiet",
                "--release",
                "--package",
                "ptxvm-command",
                "--",
            ]);
            cargo
        }
    };
    let status = command.args(["isa", "--pages"]).arg(fresh.path()).status();
    if !status.map_err(|error| format!("ptxvm: {error}"))?.success() {
        return Err("ptxvm could not write the pages".into());
    }
    let folder = root.join("docs/isa");
    let wanted = pages(fresh.path())?;
    for (name, text) in &wanted {
        stale |= update(&folder.join(name), text, options.check)?;
    }
    for name in pages(&folder).unwrap_or_default().keys().filter(|name| !wanted.contains_key(*name)) {
        stale = true;
        if !options.check {
            let path = folder.join(name);
            std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    match options.check && stale {
        true => Err("the pages of docs/isa are out of date: run `cargo xtask docs`".into()),
        false => Ok(()),
    }
}

/// For each code of the checker: the shortest line of `tests/fail` with it, preferably one that ptxas words in the same way.
fn codes(root: &Path) -> Result<String, String> {
    let folder = root.join("tests/fail");
    let mut examples: BTreeMap<String, (bool, usize, [String; 3])> = BTreeMap::new();
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = BadFile::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let lines: Vec<&str> = file.text.lines().collect();
        for (line, ours) in file.ours() {
            let ptx = lines.get(line as usize - 1).map_or("", |line| line.trim()).replace('\t', " ");
            let differs = ours.ptxas == Agreement::Nothing;
            let example = (differs, ptx.len(), [ptx, ours.message, ours.help.unwrap_or_default()]);
            if !example.2[0].is_empty() {
                let best = examples.entry(ours.code).or_insert_with(|| example.clone());
                *best = example.min(best.clone());
            }
        }
    }
    let line = |(code, (_, _, columns)): (String, (bool, usize, [String; 3]))| {
        format!("{code}\t{}\n", columns.map(|column| column.replace(['\t', '\n'], " ")).join("\t"))
    };
    Ok(examples.into_iter().map(line).collect())
}

/// Is the file something else than `text`? Then it is written, unless this only checks.
fn update(path: &Path, text: &str, check: bool) -> Result<bool, String> {
    if std::fs::read_to_string(path).is_ok_and(|current| current == text) {
        return Ok(false);
    }
    if !check {
        let folder = path.parent().unwrap_or(path);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(path, text))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(true)
}

/// The Markdown files of a folder by name.
fn pages(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let context = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(context)? {
        let path = entry.map_err(context)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if name.ends_with(".md") {
            pages.insert(name, std::fs::read_to_string(&path).map_err(context)?);
        }
    }
    Ok(pages)
}

/// Counts the recorded vectors of each row, and the results of exhaustive sweeps.
fn oracles(root: &Path) -> Result<String, String> {
    let mut counts: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for (oracle, file) in RECORDINGS {
        let path = root.join(file);
        let context = |error: std::io::Error| format!("{}: {error}", path.display());
        let bytes = std::fs::read(&path).map_err(context)?;
        let packed = file.ends_with(".zst");
        let bytes = if packed { zstd::decode_all(&bytes[..]).map_err(context)? } else { bytes };
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines().skip(usize::from(packed)).filter(|line| !is_other_code(line)) {
            let row = row(line).ok_or_else(|| format!("{file}: `{line}` is of no row"))?;
            *counts.entry((format!("{oracle} ({{}} vectors)"), row)).or_default() += 1;
        }
    }
    let sweeps = std::fs::read_to_string(root.join(EXHAUSTIVE)).unwrap_or_default();
    for (sweep, results) in complete_sweeps(&sweeps) {
        for row in swept(sweep) {
            // Each path of the host computes all of them.
            counts.insert((format!("exhaustive sweep {sweep} ({{}} results)"), row), results);
        }
    }
    let mut text = "# Written by `cargo xtask docs` from the recordings: oracle, row.\n".to_owned();
    for ((oracle, row), count) in counts {
        text += &format!("{}\t{row}\n", oracle.replace("{}", &count.to_string()));
    }
    Ok(text)
}

/// The sweeps of all values without a difference, and how many results each had: `| name | path | all | .. |`.
fn complete_sweeps(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            [name, _, "all", _, results, "0", ..] => Some((name, results.replace(',', "").parse().ok()?)),
            _ => None,
        }
    })
}

/// The rows whose instructions a sweep runs.
fn swept(sweep: &str) -> Vec<&'static str> {
    let lines = match sweep.rsplit_once('-') {
        Some(("setp", "int16")) => vec!["setp.eq.u16 0 0 = 0".to_owned()],
        Some(("setp", ty)) => vec![format!("setp.eq.{ty} 0 0 = 0"), format!("setp.eq.{ty}x2 0 0 = 0")],
        Some(("fma", ty)) => vec![format!("fma.rn.f32.{ty} 0 0 0 = 0")],
        Some((opcode, ty)) => vec![format!("{opcode}.f32.{ty} 0 0 = 0")],
        // Held against `sem`, which is no oracle of its own.
        None => Vec::new(),
    };
    lines.iter().filter_map(|line| row(line)).collect()
}

/// The row that a recorded line is of.
fn row(line: &str) -> Option<&'static str> {
    let (left, _) = line.split_once(" = ")?;
    // Video instructions stand there with their operands: `vadd.u32.u32.u32 d.h0, a, b, c : 1 2 3`.
    let (left, operands) = match left.split_once(" : ") {
        Some((instruction, _)) => (instruction, instruction.split(", ").count()),
        None => (left, left.split(' ').count()),
    };
    let mut mnemonic = left.split(' ').next()?.split('.');
    let opcode = mnemonic.next()?;
    let modifiers: Vec<&str> = mnemonic.collect();
    Some(isa::select(opcode, &modifiers, operands).ok()?.form().syntax)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// But for sweeps, which run for hours and may be recorded before `cargo xtask docs` runs again.
    #[test]
    fn the_list_of_recordings_is_current() {
        let recorded = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with("exhaustive sweep")).map(str::to_owned).collect()
        };
        let path = root().join("crates/command/src/oracles.tsv");
        let current = std::fs::read_to_string(path).unwrap();
        assert_eq!(recorded(&current), recorded(&oracles(&root()).unwrap()), "run `cargo xtask docs`");
    }

    #[test]
    fn complete_sweeps_back_the_rows_that_they_run() {
        let text = "| sweep | path | values | instructions | results | differences |\n|---|---|---|---|---|---|\n\
                    | setp-f16 | avx2 | all | 56 | 360,777 | 0 | 1 s |\n\
                    | add-bf16 | avx2 | 1/3 | 8 | 5 | 0 | 1 s |\n| fma-f16 | avx2 | all | 8 | 5 | 1 | 1 s |\n";
        assert_eq!(complete_sweeps(text).collect::<Vec<_>>(), [("setp-f16", 360_777)]);
        for (sweep, row) in [
            ("setp-f16", "setp.CmpOp{.ftz}.f16x2 p[|q], a, b"),
            ("setp-bf16", "setp.CmpOp.bf16 p, a, b"),
            ("setp-int16", "setp.CmpOp{.ftz}.type p[|q], a, b"),
            ("sub-bf16", "sub{.rnd}{.sat}.f32.atype d, a, c"),
            ("fma-f16", "fma.rnd{.sat}.f32.abtype d, a, b, c"),
        ] {
            assert!(swept(sweep).contains(&row), "{sweep} runs {:?}", swept(sweep));
        }
    }
}
