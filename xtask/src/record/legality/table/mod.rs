//! Every opcode: what ptxas says of random lines made from all rows of the table, and of random modules.
//!
//! All of it comes from one seed. Each line is asked about in a module of its own, so that no error hides another's.
//! `conformance/README.md` describes the record.

mod file;
mod gates;
mod modules;
mod mutants;
pub(super) mod seeds;
mod special;

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use fastrand::Rng;
use isa::{Suffix, Target, Version};

use self::file::Answered;
use super::super::oracle::{Message, Oracle, Release, Severity};
use super::super::{Result, Tool};

/// So many questions are put to an assembler before the next ones are written.
const QUESTIONS_AT_ONCE: usize = 2000;

/// `.version` and `.target`.
pub(super) type Point = (Version, Target);

/// The newest of both.
const NEWEST: Point = (Version::MAX, Target::sm(121));

/// The targets that ptxas 13.5 can be asked about: sm_101 with a suffix is sm_110 by now.
pub(super) fn targets() -> impl Iterator<Item = Target> {
    Target::all().filter(|target| target.suffix == Suffix::None || target.number != 101)
}

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
    const ALL: [Kind; 5] = [Kind::Seed, Kind::Mutant, Kind::Gate, Kind::Special, Kind::Module];
}

/// Something to ask about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    kind: Kind,
    /// An instruction, or a whole module.
    text: String,
    /// Where an instruction is asked about; of a module nothing, as it says so itself.
    at: Option<Point>,
}

impl Question {
    fn line(kind: Kind, text: String, at: Point) -> Question {
        Question { kind, text, at: Some(nearest(at)) }
    }

    /// The module that asks.
    fn source(&self) -> String {
        match self.at {
            Some(at) => format!("{}{}\n{AFTER}", before(at), self.text),
            None => self.text.clone(),
        }
    }
}

/// Is there such a module? ptxas says less about the lines of one that is none, and older ones have no parameters.
pub(super) fn exists((version, target): Point) -> bool {
    version >= target.first_version().max(Version::new(1, 4))
}

/// The point nearest to one: the newest plain target that the version has, where it lacks this one.
fn nearest((version, target): Point) -> Point {
    let version = version.max(Version::new(1, 4));
    if exists((version, target)) {
        return (version, target);
    }
    let older = targets().filter(|&target| target.suffix == Suffix::None && exists((version, target)));
    (version, older.last().unwrap_or(target))
}

/// What stands before an instruction, line by line, and which version and target each needs: a module that has something of a later one
/// may not be read to its end.
const FRAME: [(&str, Version, Target); 16] = {
    const ANY: (Version, Target) = (Version::new(1, 4), Target::sm(10));
    const fn always(line: &str) -> (&str, Version, Target) {
        (line, ANY.0, ANY.1)
    }
    [
        always(".global .align 64 .b8 in_global[1024];"),
        always(".shared .align 64 .b8 in_shared[1024];"),
        always(".const .align 64 .b8 in_const[1024];"),
        always(".func callee() { ret; }"),
        always(".entry probe(.param .align 64 .b8 in_param[128])"),
        always("{"),
        always(".local .align 64 .b8 in_local[1024];"),
        (".param .align 64 .b8 out_param[1024];", Version::new(2, 0), Target::sm(10)),
        always(
            ".reg .pred %p<9>; .reg .b8 %b8_<9>; .reg .b16 %b16_<9>; .reg .b32 %b32_<150>; .reg .b64 %b64_<99>;",
        ),
        (".reg .b128 %b128_<9>;", Version::new(8, 3), Target::sm(70)),
        always(
            ".reg .f32 %f<9>; .reg .f64 %d<9>; .reg .s16 %sh<9>; .reg .u32 %u<9>; .reg .s64 %sd<9>; .reg .f16 %h<9>;",
        ),
        always(".reg .v2 .b32 %v2; .reg .v4 .f32 %v4;"),
        always(
            ".reg .u8 %u8_<9>; .reg .s8 %s8_<9>; .reg .u16 %u16_<9>; .reg .s32 %s32_<9>; .reg .u64 %u64_<9>;",
        ),
        (".reg .f16x2 %f16x2_<9>;", Version::new(4, 2), Target::sm(53)),
        ("targets: .branchtargets label;", Version::new(6, 0), Target::sm(30)),
        always("label:"),
    ]
};

/// What stands before an instruction: a line that the version or target lacks is empty.
pub(super) fn before(at: Point) -> String {
    let (version, target) = at;
    let mut text = format!(".version {version}\n.target {target}\n");
    for (line, first, feature) in FRAME {
        if version >= first && target.has(feature) {
            text += line;
        }
        text.push('\n');
    }
    text
}

/// What stands behind it.
pub(super) const AFTER: &str = "exit;\n}\n";

/// Random questions of every kind, none twice.
fn questions(seed: u64) -> Vec<Question> {
    let mut rng = Rng::with_seed(seed);
    let mut all = seeds::all(&mut rng);
    all.extend(mutants::all(&mut rng));
    all.extend(gates::all(&mut rng));
    all.extend(special::all(&mut rng));
    all.extend(modules::all(&mut rng));
    let mut seen = HashSet::new();
    all.retain(|question| seen.insert(question.clone()));
    all
}

/// Asks about all of them; those that ptxas crashes on, or has errors elsewhere for, are left out.
fn ask(
    oracles: &Path,
    questions: &[Question],
    some: fn(&Path, &[Question]) -> Result<Vec<Answered>>,
) -> Result<Vec<Answered>> {
    let workers = std::thread::available_parallelism()?.get();
    let part = questions.len().div_ceil(workers).max(1);
    let parts: Vec<std::result::Result<Vec<Answered>, String>> = std::thread::scope(|scope| {
        let handles: Vec<_> = questions
            .chunks(part)
            .map(|part| scope.spawn(move || some(oracles, part).map_err(|error| error.to_string())))
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("a worker panicked")).collect()
    });
    let mut answered = Vec::with_capacity(questions.len());
    for part in parts {
        answered.extend(part?);
    }
    println!("{} of {} questions were answered", answered.len(), questions.len());
    Ok(answered)
}

fn ask_some(oracles: &Path, questions: &[Question]) -> Result<Vec<Answered>> {
    let oracle = Oracle::open(oracles, Release::V13_5)?;
    let mut answered = Vec::with_capacity(questions.len());
    for (number, chunk) in questions.chunks(QUESTIONS_AT_ONCE).enumerate() {
        if number % 10 == 9 {
            println!("{} of {}", number * QUESTIONS_AT_ONCE, questions.len());
        }
        let sources: Vec<String> = chunk.iter().map(Question::source).collect();
        for ((question, verdict), source) in chunk.iter().zip(oracle.assemble_each(&sources)?).zip(&sources) {
            let Some(verdict) = verdict else { continue };
            // What old versions and targets lack of the frame says nothing about the instruction.
            let lines = question.at.map_or(0..=u32::MAX, |at| {
                let line = before(at).lines().count() as u32 + 1;
                line..=line + 1
            });
            let counts = |message: &Message| {
                message.severity >= Severity::Error
                    && !message.is_about_options()
                    && lines.contains(&message.line)
            };
            let fails =
                |message: &Message| message.severity >= Severity::Error && !message.is_about_options();
            let is_rejected = verdict.messages.iter().any(fails);
            let mut first = verdict.messages.into_iter().find(counts);
            // ptxas takes all modules of a run for one program.
            if question.at.is_none()
                && first.as_ref().is_some_and(|m| m.text.contains("Duplicate definition"))
            {
                first = oracle.assemble(source.as_bytes())?.messages.into_iter().find(counts);
            }
            // Where it fails elsewhere, it does in what the assembler itself puts in the instruction's place.
            if first.is_none() && is_rejected {
                continue;
            }
            let answer = first.map(|message| match question.at {
                Some(_) => message.text,
                None => format!("{}: {}", message.line, message.text),
            });
            answered.push(Answered { question: question.clone(), answer });
        }
    }
    Ok(answered)
}

/// Asks the whole assembler about each line by itself: code is made of modules that have no errors at all.
fn compile_some(oracles: &Path, questions: &[Question]) -> Result<Vec<Answered>> {
    let oracle = Oracle::open(oracles, Release::V13_5)?;
    let mut answered = Vec::with_capacity(questions.len());
    for question in questions {
        // It crashes on some.
        let Ok(verdict) = oracle.compile(question.source().as_bytes()) else { continue };
        let mut errors = verdict.messages.into_iter().filter(|message| message.severity >= Severity::Error);
        let answer = errors.next().map(|message| message.text);
        let is_fault_of_its_own =
            answer.as_ref().is_some_and(|said| said.contains("Internal compiler error"));
        if answer.is_some() == verdict.accepted || is_fault_of_its_own {
            continue;
        }
        answered.push(Answered { question: question.clone(), answer });
    }
    Ok(answered)
}

/// Records what ptxas 13.5 says, into `folder`.
pub fn record(oracles: &Path, folder: &Path) -> Result<()> {
    let tool = Tool::of(&Oracle::open(oracles, Release::V13_5)?)?;
    file::write(&folder.join("table.txt.zst"), &tool, false, &ask(oracles, &questions(1), ask_some)?)
}

/// Asks ptxas 13.5 about other lines and modules, those of `seed`, and has the checker's test show how far it agrees. With `code` it is asked
/// about lines only, and makes code of them.
pub fn compare(root: &Path, oracles: &Path, (seed, share): (u64, u16), code: bool, to: &Path) -> Result<()> {
    let tool = Tool::of(&Oracle::open(oracles, Release::V13_5)?)?;
    let mut some: Vec<Question> = questions(seed);
    some.retain(|question| !code || question.kind != Kind::Module);
    let some: Vec<Question> = some.into_iter().step_by(share.into()).collect();
    file::write(to, &tool, code, &ask(oracles, &some, if code { compile_some } else { ask_some })?)?;
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--package", "ptxvm-check", "--test", "table", "--", "--nocapture"])
        .env("PTXVM_TABLE", to.canonicalize()?)
        .current_dir(root)
        .status()?;
    if status.success() { Ok(()) } else { Err("the test of the checker failed".into()) }
}
