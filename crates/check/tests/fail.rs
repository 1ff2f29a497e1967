//! Holds the checker against the comments of the files in `tests/fail`: what it says of each line, and whether ptxas
//! says the same (their README describes the comments). `PTXVM_BLESS=1` writes what it says into the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use diag::{Color, Diagnostic, SourceFile};
use libtest_mimic::{Arguments, Failed, Trial};
use test_utils::bad_file::{Agreement, BadFile, Ours, Said};

/// The records are of the whole assembler.
const WHOLE: check::Options =
    check::Options { assembly: check::Assembly::Whole, target: None, lenient: false };

/// Messages of one line, each with its severity.
type Lines = BTreeMap<u32, Vec<(String, String)>>;

fn main() {
    let arguments = Arguments::from_args();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fail");
    let mut trials = Vec::new();
    for entry in fs::read_dir(&directory).expect("tests/fail can be listed") {
        let path = entry.expect("tests/fail can be listed").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("ptx") => trials.push(Trial::test(name, move || run(&path))),
            Some("stderr") if !path.with_extension("ptx").exists() => {
                trials.push(Trial::test(name, || Err("the rendering of no file".into())));
            }
            _ => {}
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn run(path: &Path) -> Result<(), Failed> {
    let recorded = fs::read_to_string(path)?;
    let file = BadFile::parse(&recorded)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source = SourceFile::new(name, file.text.clone());
    let (tree, parsed) = syntax::parse(&source);
    let (_, diagnostics) = check::check(&source, &tree, parsed, &WHOLE);
    compare_annotations(path, &recorded, &file, &source, &diagnostics)?;
    compare_rendering(&path.with_extension("stderr"), &source, &diagnostics)?;
    match (compare(&file.ptxas(), &source, &diagnostics), file.reason) {
        (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
        (Ok(()), Some(_)) => Err("agrees with ptxas: take out the reason why it differs".into()),
        (Err(failed), None) => Err(failed),
    }
}

fn is_blessing() -> bool {
    std::env::var_os("PTXVM_BLESS").is_some()
}

fn compare_annotations(
    path: &Path,
    recorded: &str,
    file: &BadFile,
    source: &SourceFile,
    diagnostics: &[Diagnostic],
) -> Result<(), Failed> {
    let ours = diagnostics.iter().map(|d| annotation(source, d)).collect::<Result<Vec<_>, _>>()?;
    let said = file.annotate(&ours, &file.ptxas()).render();
    if is_blessing() {
        fs::write(path, said)?;
        return Ok(());
    }
    match difference(recorded, &said) {
        None => Ok(()),
        Some(lines) => Err(format!("{} differs (PTXVM_BLESS=1 writes it)\n{lines}", path.display()).into()),
    }
}

/// The annotation of a diagnostic, and its line.
fn annotation(source: &SourceFile, diagnostic: &Diagnostic) -> Result<(u32, Ours), Failed> {
    let position = source.position(diagnostic.span.start);
    let marked = source.slice(diagnostic.span).lines().next().unwrap_or_default();
    let (message, help) = (diagnostic.message.clone(), diagnostic.help.clone());
    if message.contains('\n') || help.as_ref().is_some_and(|help| help.contains('\n')) {
        return Err(format!("an annotation is one line: {message}").into());
    }
    let ours = Ours {
        column: position.column,
        width: marked.chars().count().max(1) as u32,
        severity: diagnostic.severity.name().to_owned(),
        code: diagnostic.code.name().to_owned(),
        message,
        help,
        ptxas: Agreement::Nothing,
    };
    Ok((position.line, ours))
}

/// The lines between those that both texts begin with and end in.
fn difference(recorded: &str, said: &str) -> Option<String> {
    let (old, new): (Vec<_>, Vec<_>) = (recorded.lines().collect(), said.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[same..], &new[same..]);
    let behind = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - behind], &new[..new.len() - behind]);
    let old = old.iter().map(|line| format!("- {line}\n"));
    let lines: String = old.chain(new.iter().map(|line| format!("+ {line}\n"))).collect();
    (!lines.is_empty()).then(|| format!("line {}\n{lines}", same + 1))
}

/// Some diagnostics say more than annotations can: they point at other places, too, or are not in the order of the
/// lines. The whole rendering of their file is recorded beside it. Others may have such a record.
fn compare_rendering(path: &Path, source: &SourceFile, diagnostics: &[Diagnostic]) -> Result<(), Failed> {
    let must_be_there = diagnostics.iter().any(|d| !d.labels.is_empty() || !d.notes.is_empty())
        || !diagnostics.is_sorted_by_key(|d| source.position(d.span.start).line);
    if !must_be_there && !path.exists() {
        return Ok(());
    }
    let rendered: String = diagnostics.iter().map(|d| diag::render(source, d, Color::Never)).collect();
    if is_blessing() {
        fs::write(path, rendered)?;
        return Ok(());
    }
    match difference(&fs::read_to_string(path).unwrap_or_default(), &rendered) {
        None => Ok(()),
        Some(lines) => Err(format!("{} differs (PTXVM_BLESS=1 writes it)\n{lines}", path.display()).into()),
    }
}

/// Compares line by line. A fatal error ends the assembler's run: behind it we may say more, never less.
fn compare(ptxas: &[Said], source: &SourceFile, diagnostics: &[Diagnostic]) -> Result<(), Failed> {
    let mut expected = Lines::new();
    let fatal = ptxas.iter().any(|said| said.severity == "fatal");
    for said in ptxas.iter().filter(|said| said.severity != "info") {
        let severity = if said.severity == "fatal" { "error" } else { &said.severity };
        expected.entry(said.line).or_default().push((severity.to_owned(), said.text.clone()));
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
