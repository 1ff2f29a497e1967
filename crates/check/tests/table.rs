//! The whole table: random lines and modules that ptxas 13.5 was asked about (`conformance/legality/table.txt.zst`, made by
//! `cargo xtask record legality --only table`), and how far the checker says the same, by opcode.
//!
//! `PTXVM_TABLE` names another record, of another seed; then the figures are only shown, with `PTXVM_SHOW` kinds of difference.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use diag::SourceFile;
use isa::{Target, Version};

/// The record is of the front end.
const FRONT_END: check::Options =
    check::Options { assembly: check::Assembly::FrontEnd, target: None, lenient: false };
/// Others may be of the whole assembler.
const WHOLE: check::Options =
    check::Options { assembly: check::Assembly::Whole, target: None, lenient: false };

/// So many instructions are checked as one module.
const LINES_PER_MODULE: usize = 2000;
/// So many kinds of difference are shown.
const SHOWN: usize = 40;

/// On so many of the recorded questions our verdict differs from that of ptxas, and on so many our first message.
const DIFFERENT: [(Kind, usize, usize); 5] = [
    (Kind::Seed, 3, 400),
    (Kind::Mutant, 178, 2_843),
    (Kind::Gate, 6, 1_130),
    (Kind::Special, 8, 123),
    (Kind::Module, 71, 2_196),
];

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    /// A spelling of a row, with operands of the right kinds.
    Seed,
    /// A seed with one or two things wrong.
    Mutant,
    /// A seed, at versions and targets around those that it needs.
    Gate,
    /// A special register as an operand.
    Special,
    /// A whole module.
    Module,
}

impl Kind {
    /// In the order of the record.
    const ALL: [Kind; 5] = [Kind::Seed, Kind::Mutant, Kind::Gate, Kind::Special, Kind::Module];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Seed => "seeds",
            Kind::Mutant => "mutants",
            Kind::Gate => "gates",
            Kind::Special => "special",
            Kind::Module => "modules",
        })
    }
}

/// `.version` and `.target`.
type Point = (Version, Target);

/// A question and what ptxas answers: its first error, or none if it accepts.
#[derive(Clone, Debug)]
struct Answered {
    kind: Kind,
    /// An instruction, or a whole module.
    text: String,
    /// Where an instruction was asked about.
    at: Option<Point>,
    /// Of a module it has the line: `7: words`.
    answer: Option<String>,
}

impl Answered {
    /// The opcode of an instruction: its first word behind the guard.
    fn opcode(&self) -> &str {
        match self.kind {
            Kind::Special => return "special registers",
            Kind::Module => return "modules",
            _ => {}
        }
        let text = match self.text.strip_prefix('@') {
            Some(guarded) => guarded.split_once(' ').map_or("", |(_, rest)| rest),
            None => &self.text,
        };
        text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()
    }
}

/// The record, and what stands around each instruction.
struct Record {
    /// Lines, and what a module must have or they are empty.
    before: Vec<(String, Point)>,
    after: String,
    /// ptxas made code of each line that it accepts, each in a module of its own.
    code: bool,
    answered: Vec<Answered>,
}

impl Record {
    fn read(path: &Path) -> Record {
        let packed = fs::File::open(path).expect("the record is there");
        let bytes = zstd::decode_all(packed).expect("the record is compressed");
        let text = String::from_utf8(bytes).expect("the record is text");
        let mut lines = text.lines();
        let header: serde_json::Value =
            serde_json::from_str(lines.next().expect("a header")).expect("the header is an object");
        let words = |value: &serde_json::Value| value.as_str().expect("a string").to_owned();
        let list = |name: &str| header[name].as_array().expect("a list").clone();
        let answers: Vec<String> = list("answers").iter().map(words).collect();
        let points: Vec<Point> = list("points").iter().map(|value| point(&words(value))).collect();
        let mut answered = Vec::new();
        for (kind, count) in Kind::ALL.into_iter().zip(list("texts")) {
            let count = count.as_u64().expect("a number") as usize;
            let mut block = || lines.by_ref().take(count).collect::<Vec<&str>>();
            let (texts, places, said) = (block(), block(), block());
            for ((text, places), said) in texts.into_iter().zip(places).zip(said) {
                let text: String = serde_json::from_str(text).expect("a string");
                for (place, answer) in places.split(' ').zip(said.split(' ')) {
                    let at = points[place.parse::<usize>().expect("the number of a point")];
                    let answer = &answers[answer.parse::<usize>().expect("the number of an answer")];
                    answered.push(Answered {
                        kind,
                        text: text.clone(),
                        at: (kind != Kind::Module).then_some(at),
                        answer: (!answer.is_empty()).then(|| answer.clone()),
                    });
                }
            }
        }
        let line = |value: &serde_json::Value| (words(&value[0]), point(&words(&value[1])));
        let before = list("before").iter().map(line).collect();
        let code = header["code"].as_bool().unwrap_or_default();
        Record { before, after: words(&header["after"]), code, answered }
    }

    /// What stands before an instruction.
    fn before(&self, (version, target): Point) -> String {
        let mut text = format!(".version {version}\n.target {target}\n");
        for (line, (first, feature)) in &self.before {
            if version >= *first && target.has(*feature) {
                text += line;
            }
            text.push('\n');
        }
        text
    }
}

/// `VERSION TARGET`
fn point(text: &str) -> Point {
    let (version, target) = text.split_once(' ').expect("a version and a target");
    (Version::parse(version).expect("a version"), Target::parse(target).expect("a target"))
}

/// How many were asked about, and on how many we differ.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    asked: usize,
    /// One accepts and the other rejects.
    verdicts: usize,
    /// Both reject, and say something else first.
    words: usize,
    /// Both reject.
    rejected: usize,
}

impl Count {
    fn add(&mut self, theirs: Option<&String>, ours: Option<&String>) {
        self.asked += 1;
        match (theirs, ours) {
            (Some(theirs), Some(ours)) => {
                self.rejected += 1;
                self.words += usize::from(theirs != ours);
            }
            (None, None) => {}
            _ => self.verdicts += 1,
        }
    }
}

/// The answers in which we differ from ptxas.
struct Agreement {
    by_opcode: BTreeMap<(String, Kind), Count>,
    by_kind: BTreeMap<Kind, Count>,
    /// What ptxas says, what we say, and what about.
    differences: Vec<(Option<String>, Option<String>, Answered)>,
}

impl Agreement {
    /// Asks the checker what ptxas was asked.
    fn of(record: &Record) -> Agreement {
        let mut agreement =
            Agreement { by_opcode: BTreeMap::new(), by_kind: BTreeMap::new(), differences: Vec::new() };
        let mut by_point: BTreeMap<Point, Vec<&Answered>> = BTreeMap::new();
        for answered in &record.answered {
            match answered.at {
                Some(at) if record.code => {
                    let text = format!("{}{}\n{}", record.before(at), answered.text, record.after);
                    let ours = errors(text, &WHOLE).into_iter().next();
                    agreement.compare(answered, ours.map(|(_, message)| message));
                }
                Some(at) => by_point.entry(at).or_default().push(answered),
                None => agreement.compare(answered, of_module(&answered.text)),
            }
        }
        for (at, all) in by_point {
            for chunk in all.chunks(LINES_PER_MODULE) {
                for (answered, ours) in chunk.iter().zip(of_lines(record, at, chunk)) {
                    // What stands in other lines may have had to do with it.
                    let ours = match ours == answered.answer {
                        true => ours,
                        false => of_lines(record, at, &[answered]).pop().flatten(),
                    };
                    agreement.compare(answered, ours);
                }
            }
        }
        agreement
    }

    fn compare(&mut self, answered: &Answered, ours: Option<String>) {
        let theirs = answered.answer.as_ref();
        let by_opcode = self.by_opcode.entry((answered.opcode().to_owned(), answered.kind)).or_default();
        by_opcode.add(theirs, ours.as_ref());
        self.by_kind.entry(answered.kind).or_default().add(theirs, ours.as_ref());
        if theirs != ours.as_ref() {
            self.differences.push((theirs.cloned(), ours, answered.clone()));
        }
    }

    /// Agreement by opcode and in all, then what differs: the commonest kinds of difference, of each the shortest case.
    fn report(&self, shown: usize) -> String {
        let mut text = String::from(
            "| opcode | of | asked | other verdict | both reject | other first message |\n|---|---|---|---|---|---|\n",
        );
        for ((opcode, kind), count) in &self.by_opcode {
            if count.verdicts + count.words > 0 {
                row(&mut text, opcode, *kind, *count);
            }
        }
        for (kind, count) in &self.by_kind {
            row(&mut text, "all", *kind, *count);
        }
        for (title, is_verdict) in [("other verdict", true), ("other first message", false)] {
            let _ = writeln!(text, "\n{title}");
            let mut classes: BTreeMap<(String, String), Vec<&Answered>> = BTreeMap::new();
            for (theirs, ours, question) in &self.differences {
                if is_verdict == (theirs.is_none() || ours.is_none()) {
                    classes
                        .entry((general(theirs.as_ref()), general(ours.as_ref())))
                        .or_default()
                        .push(question);
                }
            }
            let mut classes: Vec<_> = classes.into_iter().collect();
            classes.sort_by_key(|(_, questions)| std::cmp::Reverse(questions.len()));
            for ((theirs, ours), mut questions) in classes.into_iter().take(shown) {
                questions.sort_by_key(|question| question.text.len());
                let _ = writeln!(text, "{} times\n  ptxas {theirs}\n  ours  {ours}", questions.len());
                for question in questions.iter().take(6) {
                    let _ = match question.at {
                        Some((version, target)) => {
                            writeln!(text, "    {} ({version}, {target})", question.text)
                        }
                        None => writeln!(text, "    {}", question.text.replace('\n', "\n      ")),
                    };
                }
            }
        }
        text
    }
}

fn row(text: &mut String, opcode: &str, kind: Kind, count: Count) {
    let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
    let _ = writeln!(
        text,
        "| {opcode} | {kind} | {} | {} ({:.3} %) | {} | {} ({:.2} %) |",
        count.asked,
        count.verdicts,
        share(count.verdicts, count.asked),
        count.rejected,
        count.words,
        share(count.words, count.rejected),
    );
}

/// A message without what it names, so that those of a kind fall together.
fn general(message: Option<&String>) -> String {
    let Some(message) = message else { return "accepts".into() };
    let parts = message.split('\'').enumerate();
    let general: Vec<&str> = parts.map(|(index, part)| if index % 2 == 1 { "_" } else { part }).collect();
    let general = general.join("'");
    match general.split_once(": ") {
        Some((line, words)) if line.parse::<u32>().is_ok() => words.to_owned(),
        _ => general,
    }
}

/// What we say first about each of the lines.
fn of_lines(record: &Record, at: Point, lines: &[&Answered]) -> Vec<Option<String>> {
    let mut text = record.before(at);
    let first = text.lines().count() + 1;
    for answered in lines {
        text += &answered.text;
        text.push('\n');
    }
    text += &record.after;
    let mut answers: Vec<Option<String>> = vec![None; lines.len()];
    for (line, message) in errors(text, &FRONT_END) {
        if let Some(line) = line.checked_sub(first).filter(|&line| line <= lines.len()) {
            answers[line.min(lines.len() - 1)].get_or_insert(message);
        }
    }
    answers
}

/// What we say first about a module.
fn of_module(text: &str) -> Option<String> {
    let (line, message) = errors(text.to_owned(), &FRONT_END).into_iter().next()?;
    Some(format!("{line}: {message}"))
}

/// All errors of a module, with their lines.
fn errors(text: String, options: &check::Options) -> Vec<(usize, String)> {
    let source = SourceFile::from_bytes("input.ptx", text.into_bytes());
    let (tree, parsed) = syntax::parse(&source);
    let (_, diagnostics) = check::check(&source, &tree, parsed, options);
    // ptxas refuses modules of 32 bits. They run here, and a warning has its words.
    let errors = diagnostics.into_iter().filter(|d| {
        d.is_error() || d.code == diag::Code::NarrowAddress && options.assembly == check::Assembly::Whole
    });
    errors.map(|d| (source.position(d.span.start).line as usize, d.message)).collect()
}

#[test]
fn checker_agrees_with_ptxas_on_the_whole_table() {
    let other = std::env::var("PTXVM_TABLE").ok();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/legality/table.txt.zst");
    let record = Record::read(other.as_deref().map_or(&recorded, Path::new));
    let agreement = Agreement::of(&record);
    if other.is_some() {
        let shown = std::env::var("PTXVM_SHOW").ok().and_then(|n| n.parse().ok()).unwrap_or(SHOWN);
        println!("{}", agreement.report(shown));
        return;
    }
    assert!(record.answered.len() > 300_000, "only {} answers", record.answered.len());
    for (kind, verdicts, words) in DIFFERENT {
        let count = agreement.by_kind.get(&kind).copied().unwrap_or_default();
        assert!(
            count.verdicts <= verdicts && count.words <= words,
            "{kind}: other verdicts {} ({verdicts} were), other words {} ({words} were)\n{}",
            count.verdicts,
            count.words,
            agreement.report(SHOWN),
        );
    }
}
