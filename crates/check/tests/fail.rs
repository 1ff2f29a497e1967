//! Holds the checker against what ptxas says of the files in `tests/fail` (their README says how records are read), and
//! our rendering of each file against `<name>.stderr`. `PTXVM_BLESS=1` writes the renderings again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use diag::{Color, Diagnostic, SourceFile};
use libtest_mimic::{Arguments, Failed, Trial};

/// The records are of the whole assembler.
const WHOLE: check::Options =
    check::Options { assembly: check::Assembly::Whole, target: None, lenient: false };

/// Messages of one line, each with its severity.
type Lines = BTreeMap<u32, Vec<(String, String)>>;

fn main() {
    let arguments = Arguments::from_args();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fail");
    let differences = read_differences(&directory.join("differences.txt"));
    let mut trials = Vec::new();
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&directory).expect("tests/fail can be listed") {
        let path = entry.expect("tests/fail can be listed").path();
        if path.extension().is_some_and(|extension| extension == "ptx") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let reason = differences.get(&name).cloned();
            names.insert(name.clone());
            trials.push(Trial::test(name, move || run(&path, reason.as_deref())));
        }
    }
    for stale in differences.into_keys().filter(|name| !names.contains(name)) {
        trials.push(Trial::test(format!("differences.txt: {stale}"), || Err("there is no such file".into())));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// `name: reason` lines of files on which we differ from ptxas knowingly.
fn read_differences(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).expect("differences.txt is there");
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| {
            let (name, reason) = line.split_once(": ").expect("a line is `name: reason`");
            (name.to_owned(), reason.to_owned())
        })
        .collect()
}

fn run(path: &PathBuf, reason: Option<&str>) -> Result<(), Failed> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source = SourceFile::from_bytes(name, fs::read(path)?);
    let (tree, parsed) = syntax::parse(&source);
    let (_, diagnostics) = check::check(&source, &tree, parsed, &WHOLE);
    compare_rendering(&path.with_extension("stderr"), &source, &diagnostics)?;
    let record = fs::read_to_string(path.with_extension("ptxas"))?;
    match (compare(&record, &source, &diagnostics), reason) {
        (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
        (Ok(()), Some(_)) => Err("agrees with ptxas: take it out of differences.txt".into()),
        (Err(failed), None) => Err(failed),
    }
}

fn compare_rendering(path: &Path, source: &SourceFile, diagnostics: &[Diagnostic]) -> Result<(), Failed> {
    let rendered: String = diagnostics.iter().map(|d| diag::render(source, d, Color::Never)).collect();
    if std::env::var_os("PTXVM_BLESS").is_some() {
        fs::write(path, rendered)?;
        return Ok(());
    }
    let recorded = fs::read_to_string(path).unwrap_or_default();
    if recorded == rendered {
        return Ok(());
    }
    Err(format!("{} differs (PTXVM_BLESS=1 writes it):\n{rendered}", path.display()).into())
}

/// Compares line by line. A fatal error ends the assembler's run: behind it we may say more, never less.
fn compare(record: &str, source: &SourceFile, diagnostics: &[Diagnostic]) -> Result<(), Failed> {
    let mut expected = Lines::new();
    let mut fatal = false;
    for line in record.lines() {
        let mut parts = line.splitn(3, ": ");
        let (Some(number), Some(severity), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("`{line}` is no record").into());
        };
        fatal |= severity == "fatal";
        let severity = match severity {
            "info" => continue,
            "fatal" => "error",
            other => other,
        };
        expected.entry(number.parse()?).or_default().push((severity.to_owned(), text.to_owned()));
    }
    // What it says of the file as a whole has a place with us.
    let mut of_file = expected.remove(&0).unwrap_or_default();
    let mut ours = Lines::new();
    for d in diagnostics {
        let line = source.position(d.span.start).line;
        let message = (d.severity.name().to_owned(), d.message.clone());
        match of_file.iter().position(|expected| *expected == message) {
            Some(index) => drop(of_file.remove(index)),
            None => ours.entry(line).or_default().push(message),
        }
    }
    if !of_file.is_empty() {
        expected.insert(0, of_file);
    }
    let mut report = String::new();
    let lines: BTreeSet<u32> = expected.keys().chain(ours.keys()).copied().collect();
    for line in lines {
        let nothing = Vec::new();
        let wanted = expected.get(&line).unwrap_or(&nothing);
        let got = ours.get(&line).unwrap_or(&nothing);
        // The words of a syntax error are those of another parser; that there is one on this line must agree.
        let syntax = wanted.iter().any(|(_, text)| text.starts_with("Parsing error near"));
        let agrees = match (syntax, fatal) {
            (true, _) => got.iter().any(|(severity, _)| severity == "error"),
            (false, true) => got.starts_with(wanted),
            (false, false) => got == wanted,
        };
        if !agrees {
            report += &format!("line {line}\n  ptxas: {wanted:?}\n  ours:  {got:?}\n");
        }
    }
    if report.is_empty() { Ok(()) } else { Err(report.into()) }
}
