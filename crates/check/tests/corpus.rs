//! Files that compilers wrote: the checker accepts exactly those that ptxas 13.5 accepts (its verdicts are recorded in
//! `conformance/corpus`). Files whose opcodes are not in the table get one error for each place that names one.
//! Files that are not in the corpus at hand (`tests/corpus/README.md`) are skipped, by name and counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use diag::SourceFile;
use libtest_mimic::{Arguments, Failed, Trial};

/// The records are of the whole assembler.
const WHOLE: check::Options =
    check::Options { assembly: check::Assembly::Whole, target: None, lenient: false };

struct Verdict {
    accepted: bool,
    /// (line, text)
    messages: Vec<(u64, String)>,
}

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let verdicts = read_verdicts(&root.join("conformance/corpus/verdicts.jsonl.zst"));
    let corpus = test_utils::corpus::path();
    if !corpus.is_dir() {
        eprintln!("{}", test_utils::corpus::MISSING);
    }
    let (mut missing, mut trials) = (0, Vec::new());
    for (file, verdict) in verdicts {
        let path = corpus.join(&file);
        let there = path.exists();
        missing += usize::from(!there);
        trials.push(Trial::test(file, move || run(&path, &verdict)).with_ignored_flag(!there));
    }
    if missing > 0 {
        eprintln!("{missing} of {} files of the corpus are not here and are skipped", trials.len());
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn read_verdicts(path: &Path) -> BTreeMap<String, Verdict> {
    let file = fs::File::open(path).expect("the recorded verdicts are there");
    let bytes = zstd::decode_all(file).expect("the recorded verdicts are compressed");
    let text = String::from_utf8(bytes).expect("the recorded verdicts are text");
    let mut verdicts = BTreeMap::new();
    // The first line says how the record was made.
    for line in text.lines().skip(1) {
        let record: serde_json::Value = serde_json::from_str(line).expect("each line is an object");
        let of_13_5 = record["verdicts"]
            .as_array()
            .and_then(|all| all.iter().find(|v| v["release"] == "13.5"))
            .expect("ptxas 13.5 was asked");
        let messages = of_13_5["messages"].as_array().map_or(Vec::new(), |messages| {
            let read = |m: &serde_json::Value| {
                (m["line"].as_u64().unwrap_or(0), m["text"].as_str().unwrap_or_default().to_owned())
            };
            let said = |m: &&serde_json::Value| matches!(m["severity"].as_str(), Some("error" | "fatal"));
            messages.iter().filter(said).map(read).collect()
        });
        let accepted = of_13_5["accepted"].as_bool().expect("a verdict is true or false");
        let name = record["file"].as_str().expect("a record names its file").to_owned();
        verdicts.insert(name, Verdict { accepted, messages });
    }
    assert!(!verdicts.is_empty(), "there are verdicts");
    verdicts
}

fn run(path: &PathBuf, verdict: &Verdict) -> Result<(), Failed> {
    let source = SourceFile::from_bytes(path.display().to_string(), fs::read(path)?);
    let (tree, parsed) = syntax::parse(&source);
    let (module, mut diagnostics) = check::check(&source, &tree, parsed, &WHOLE);
    diagnostics.retain(diag::Diagnostic::is_error);
    if module.is_some() != diagnostics.is_empty() {
        return Err("a module comes exactly when there is no error".into());
    }
    diagnostics.retain(|d| d.code != "unsupported-instruction");
    let ours: Vec<(u64, String)> = diagnostics
        .iter()
        .map(|d| (u64::from(source.position(d.span.start).line), d.message.clone()))
        .collect();
    if ours.is_empty() != verdict.accepted {
        return Err(format!("ptxas accepted: {}; we say {ours:?}", verdict.accepted).into());
    }
    // What is said of the whole file ends the run of ptxas: it names one function of those that nobody defines.
    let (of_file, theirs): (Vec<_>, Vec<_>) =
        verdict.messages.iter().cloned().partition(|(line, _)| *line == 0);
    let is_said = of_file.iter().all(|(_, text)| ours.iter().any(|(_, ours)| ours == text));
    if !is_said || of_file.is_empty() && !verdict.accepted && ours != theirs {
        return Err(format!("ptxas says {:?}\nwe say    {ours:?}", verdict.messages).into());
    }
    Ok(())
}
