//! The core instructions, form by form: the checker accepts exactly what ptxas 13.5 accepts, at every version and
//! target, and finds fault with the rest in its words. `cargo xtask record legality` recorded them in
//! `conformance/legality`.
//!
//! `differences.txt` there lists the instructions on which we differ knowingly. One that agrees must be taken out.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use diag::SourceFile;
use isa::{Target, Version};

/// The records are of the front end.
const FRONT_END: check::Options =
    check::Options { assembly: check::Assembly::FrontEnd, target: None, lenient: false };

/// So many instructions are checked as one module.
const LINES_PER_MODULE: usize = 20_000;
/// So many kinds of difference are shown, unless `PTXVM_SHOW` names another number.
const SHOWN: usize = 20;

/// What was recorded of one set of instructions.
struct Record {
    before: String,
    after: String,
    answers: Vec<Vec<String>>,
    instructions: Vec<String>,
    modules: Vec<Module>,
}

/// What one release says about the instructions at one version and target.
struct Module {
    release: String,
    version: Version,
    target: Target,
    /// The answer to `.version` and `.target`, and to each instruction: indices of [`Record::answers`].
    head: usize,
    answers: Vec<usize>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/legality")
}

fn read(name: &str) -> Record {
    let packed = fs::File::open(folder().join(name)).expect("the record is there");
    let bytes = zstd::decode_all(packed).expect("the record is compressed");
    let text = String::from_utf8(bytes).expect("the record is text");
    let mut lines = text.lines();
    let header: serde_json::Value =
        serde_json::from_str(lines.next().expect("a header")).expect("the header is an object");
    let words = |value: &serde_json::Value| value.as_str().expect("a string").to_owned();
    let answers = header["answers"].as_array().expect("answers").iter();
    let answers = answers.map(|a| a.as_array().expect("a list").iter().map(words).collect()).collect();
    let count = header["instructions"].as_u64().expect("a number") as usize;
    let instructions: Vec<String> = lines.by_ref().take(count).map(str::to_owned).collect();
    let modules = lines.map(|line| {
        let mut words = line.split(' ');
        let mut next = || words.next().expect("release, version, target");
        let release = next().to_owned();
        let version = Version::parse(next()).expect("a version");
        let target = Target::parse(next()).expect("a target");
        let mut numbers = words.map(|number| number.parse().expect("the number of an answer"));
        let head = numbers.next().expect("an answer");
        let answers: Vec<usize> = numbers.collect();
        assert_eq!(answers.len(), count, "an answer for each instruction");
        Module { release, version, target, head, answers }
    });
    let modules = modules.collect();
    Record {
        before: words(&header["before"]),
        after: words(&header["after"]),
        answers,
        instructions,
        modules,
    }
}

/// What we say about `.version` and `.target`, and about each instruction, of the numbers of answers of a record.
fn ours(record: &Record, module: &Module) -> (Vec<String>, Vec<Vec<String>>) {
    let mut head = Vec::new();
    let mut answers = vec![Vec::new(); record.instructions.len()];
    let parts = record.instructions.chunks(LINES_PER_MODULE).zip(answers.chunks_mut(LINES_PER_MODULE));
    for (instructions, answers) in parts {
        let mut text = format!(".version {}\n.target {}\n{}", module.version, module.target, record.before);
        let first = text.lines().count() + 1;
        for instruction in instructions {
            text += instruction;
            text.push('\n');
        }
        text += &record.after;
        let source = SourceFile::from_bytes("input.ptx", text.into_bytes());
        let (tree, parsed) = syntax::parse(&source);
        let (_, diagnostics) = check::check(&source, &tree, parsed, &FRONT_END);
        head.clear();
        for diagnostic in diagnostics.into_iter().filter(diag::Diagnostic::is_error) {
            let line = source.position(diagnostic.span.start).line as usize;
            match line.checked_sub(first) {
                Some(line) if line < answers.len() => answers[line].push(diagnostic.message),
                Some(_) => panic!("behind the last instruction: {}", diagnostic.message),
                None if line <= 2 => head.push(diagnostic.message),
                None => {}
            }
        }
    }
    (head, answers)
}

/// `instruction` lines by the reason above them, of the instructions on which we differ from ptxas knowingly.
fn known_differences() -> HashMap<String, String> {
    let text = fs::read_to_string(folder().join("differences.txt")).expect("differences.txt is there");
    let (mut reason, mut known) = (String::new(), HashMap::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ") {
            Some(text) => reason = text.to_owned(),
            None => {
                known.insert(line.to_owned(), reason.clone());
            }
        }
    }
    known
}

/// Kinds of difference: our answer and ptxas's, with how often and where first.
#[derive(Default)]
struct Differences {
    kinds: BTreeMap<(String, String), (usize, String)>,
    count: usize,
    verdicts: usize,
}

impl Differences {
    fn compare(&mut self, place: impl Fn() -> String, theirs: &[String], ours: &[String]) -> bool {
        if agree(theirs, ours) {
            return true;
        }
        self.count += 1;
        self.verdicts += usize::from(theirs.is_empty() != ours.is_empty());
        let key = (format!("{:?}", theirs.first()), format!("{:?}", ours.first()));
        self.kinds.entry(key).or_insert_with(|| (0, place())).0 += 1;
        false
    }

    fn report(&self) -> String {
        let mut text = format!("{} differ, {} of them in the verdict\n", self.count, self.verdicts);
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let shown = std::env::var("PTXVM_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(SHOWN);
        for ((theirs, ours), (count, place)) in kinds.into_iter().take(shown) {
            let _ = write!(text, "{count} times, such as {place}\n  ptxas {theirs}\n  ours  {ours}\n");
        }
        text
    }
}

/// Both accept, or both say the same thing first, and what both say comes in the same order. Of a line that does not parse we say only that.
fn agree(theirs: &[String], ours: &[String]) -> bool {
    let unparsed = |said: &[String]| said.last().filter(|text| text.starts_with("Parsing error")).cloned();
    theirs.first() == ours.first() && same_order(theirs, ours)
        || unparsed(theirs).is_some() && unparsed(theirs) == unparsed(ours)
}

/// Does what both say come in the same order?
fn same_order(theirs: &[String], ours: &[String]) -> bool {
    let common = |of: &[String], other: &[String]| -> Vec<String> {
        let mut left = other.to_vec();
        let mut is_common = |text: &String| {
            let found = left.iter().position(|other| other == text);
            found.map(|index| left.swap_remove(index)).is_some()
        };
        of.iter().filter(|text| is_common(text)).cloned().collect()
    };
    common(theirs, ours) == common(ours, theirs)
}

/// Replays what ptxas 13.5 said. `least` instructions must have been recorded.
fn replay(name: &str, least: usize) {
    let record = read(name);
    assert!(record.instructions.len() >= least, "only {} instructions", record.instructions.len());
    let known = known_differences();
    let (mut differences, mut stale) = (Differences::default(), Vec::new());
    for module in record.modules.iter().filter(|module| module.release == "13.5") {
        let (head, answers) = ours(&record, module);
        let place = |line: &str| format!("{line} ({}, {})", module.version, module.target);
        differences.compare(|| place(".target"), &record.answers[module.head], &head);
        for ((instruction, &theirs), ours) in record.instructions.iter().zip(&module.answers).zip(&answers) {
            let theirs = &record.answers[theirs];
            if !known.contains_key(instruction) {
                differences.compare(|| place(instruction), theirs, ours);
            } else if agree(theirs, ours) {
                stale.push(instruction);
            }
        }
    }
    assert!(stale.is_empty(), "agree with ptxas, take them out of differences.txt: {stale:#?}");
    assert!(differences.count == 0, "{}", differences.report());
}

/// Random instructions of the whole table with one to three faults each, asked about at four versions: on so many ptxas
/// and we say exactly the same, and on so many what both say comes in another order.
const SAME: usize = 19_948;
const OUT_OF_ORDER: usize = 413;

/// `PTXVM_ERRORS` names another record, of another seed, and the figures are only shown.
#[test]
fn errors() {
    let other = std::env::var("PTXVM_ERRORS").ok();
    let record = read(other.as_deref().unwrap_or("errors.txt.zst"));
    let (mut several, mut same, mut all, mut out_of_order) = (0, 0, 0, 0);
    let mut shown = String::new();
    for module in &record.modules {
        let (_, answers) = ours(&record, module);
        for ((instruction, &theirs), ours) in record.instructions.iter().zip(&module.answers).zip(&answers) {
            let theirs = &record.answers[theirs];
            all += 1;
            several += usize::from(theirs.len() > 1);
            same += usize::from(theirs == ours);
            if !same_order(theirs, ours) {
                out_of_order += 1;
                let place = format!("{instruction} ({}, {})", module.version, module.target);
                let _ = writeln!(shown, "{place}\n  ptxas {theirs:?}\n  ours  {ours:?}");
            }
        }
    }
    println!(
        "{shown}{all} answers, {several} of several errors: {same} the same, {out_of_order} in another order"
    );
    if other.is_none() {
        assert!(several >= 9_000, "only {several} of several errors");
        assert!(same >= SAME, "{same} answers are the same, {SAME} were");
        assert!(out_of_order <= OUT_OF_ORDER, "{out_of_order} are in another order, {OUT_OF_ORDER} were");
    }
}

#[test]
fn mnemonics() {
    replay("mnemonics.txt.zst", 150_000);
}

#[test]
fn operands() {
    replay("operands.txt.zst", 80_000);
}

#[test]
fn gates() {
    replay("gates.txt.zst", 100);
}
