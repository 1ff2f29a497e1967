//! `cargo xtask record legality`: which forms of the core instructions ptxas accepts, and its words about the others.
//!
//! Each record is one file: a header object, the instructions one a line, then one line for each module that they
//! were asked about in. `conformance/README.md` describes it.

mod errors;
mod gates;
mod mnemonics;
mod operands;
mod registers;
pub mod sweep;
pub mod table;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use isa::{Target, Version};
use serde::Serialize;

use super::lines::{Frame, ask};
use super::oracle::{Oracle, Release};
use super::{Result, Tool};

/// What the headers of the records say.
const COMMAND: &str = "cargo xtask record legality";
/// Where most questions are asked: the newest version and target.
const NEWEST: (Version, Target) = (Version::MAX, Target::sm(121));
/// The newest version that ptxas 12.9 knows.
const LAST_OF_12_9: Version = Version::new(8, 8);

/// The first line of a record.
#[derive(Serialize)]
struct Header<'a> {
    /// How to make this file again.
    recorded_by: &'static str,
    /// How the modules were put to the assembler.
    command: &'static str,
    /// The assemblers.
    tools: &'a [Tool],
    /// What stands between `.target` and the first instruction of each module.
    before: &'a str,
    /// What stands behind the last instruction of each module.
    after: &'static str,
    /// Number of lines that follow with an instruction each.
    instructions: usize,
    /// The distinct lists of errors. The lines of modules name them by their index.
    answers: &'a [Vec<String>],
}

/// A record in the making.
#[derive(Default)]
struct Record {
    answers: Vec<Vec<String>>,
    numbers: HashMap<Vec<String>, usize>,
    /// `RELEASE VERSION TARGET HEAD ANSWER...`
    modules: Vec<String>,
    /// By the answers of ptxas 13.5 and 12.9: how often, and the first instruction.
    differences: BTreeMap<(String, String), (usize, String)>,
}

impl Record {
    fn number(&mut self, answer: &[String]) -> usize {
        if let Some(&number) = self.numbers.get(answer) {
            return number;
        }
        let number = self.answers.len();
        self.answers.push(answer.to_vec());
        self.numbers.insert(answer.to_vec(), number);
        number
    }

    /// Asks about `instructions` in one module.
    fn module(
        &mut self,
        oracle: &Oracle,
        before: &str,
        instructions: &[String],
        (version, target): (Version, Target),
    ) -> Result<Vec<Vec<String>>> {
        let frame = Frame {
            before: format!(".version {version}\n.target {target}\n{before}"),
            after: registers::AFTER.to_owned(),
        };
        let answers = ask(oracle, &frame, instructions)?;
        let mut line =
            format!("{} {version} {target} {}", oracle.release().name(), self.number(&answers.head));
        for answer in &answers.lines {
            line.push(' ');
            line += &self.number(answer).to_string();
        }
        self.modules.push(line);
        Ok(answers.lines)
    }

    /// Asks ptxas 13.5 at the newest version and target, and both releases at the newest that both know.
    fn both(&mut self, oracles: &[Oracle], before: &str, instructions: &[String]) -> Result<()> {
        let mut answers = Vec::new();
        for oracle in oracles {
            match oracle.release() {
                Release::V13_5 => {
                    answers.push(self.module(oracle, before, instructions, NEWEST)?);
                }
                Release::V12_9 => {
                    answers.push(self.module(oracle, before, instructions, (LAST_OF_12_9, NEWEST.1))?);
                }
            }
        }
        let [new, old] = answers.as_slice() else { return Ok(()) };
        for ((instruction, new), old) in instructions.iter().zip(new).zip(old) {
            if new != old {
                let key = (first(new).to_owned(), first(old).to_owned());
                self.differences.entry(key).or_insert_with(|| (0, instruction.clone())).0 += 1;
            }
        }
        Ok(())
    }

    fn write(
        self,
        recorded_by: &'static str,
        path: &Path,
        tools: &[Tool],
        before: &str,
        instructions: &[String],
    ) -> Result<()> {
        let header = Header {
            recorded_by,
            command: "ptxas -c -arch compute_121 (or, for a target with a suffix, that very one) -o /dev/null FILE",
            tools,
            before,
            after: registers::AFTER,
            instructions: instructions.len(),
            answers: &self.answers,
        };
        let mut text = serde_json::to_string(&header)? + "\n";
        for line in instructions.iter().chain(&self.modules) {
            text += line;
            text.push('\n');
        }
        let packed = zstd::encode_all(text.as_bytes(), 19)?;
        fs::write(path, &packed)?;
        println!(
            "{}: {} instructions, {} modules, {} distinct answers, {} bytes",
            path.display(),
            instructions.len(),
            self.modules.len(),
            self.answers.len(),
            packed.len()
        );
        Ok(())
    }
}

/// The first error, or that there is none.
fn first(answer: &[String]) -> &str {
    answer.first().map_or("accepted", String::as_str)
}

/// What can be recorded by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// All forms of the core instructions
    Core,
    /// Random lines of all rows of the table, and random modules
    Table,
}

/// Records what ptxas says into `folder`.
pub fn record(oracles: &Path, folder: &Path, only: Option<Part>) -> Result<()> {
    fs::create_dir_all(folder)?;
    if only != Some(Part::Table) {
        record_core(oracles, folder)?;
    }
    if only != Some(Part::Core) {
        table::record(oracles, folder)?;
    }
    Ok(())
}

/// Records mnemonics, operands and gates of the core.
fn record_core(oracles: &Path, folder: &Path) -> Result<()> {
    let oracles =
        Release::ALL.iter().map(|&release| Oracle::open(oracles, release)).collect::<Result<Vec<_>>>()?;
    let tools = oracles.iter().map(Tool::of).collect::<Result<Vec<_>>>()?;
    let before = registers::before();
    let mut differences = String::from(
        "# Where ptxas 12.9 (at .version 8.8) and 13.5 (at .version 9.5) say different things\n\n\
         Written by `cargo xtask record legality`, from the first error of each instruction.\n",
    );
    for (name, instructions) in [("mnemonics", mnemonics::all()), ("operands", operands::all())] {
        let mut record = Record::default();
        record.both(&oracles, &before, &instructions)?;
        differences += &format!("\n## {name}\n\n| count | such as | 13.5 | 12.9 |\n|---|---|---|---|\n");
        for ((new, old), (count, instruction)) in &record.differences {
            let instruction = instruction.replace('|', "\\|");
            differences += &format!("| {count} | `{instruction}` | {new} | {old} |\n");
        }
        record.write(COMMAND, &folder.join(format!("{name}.txt.zst")), &tools, &before, &instructions)?;
    }
    fs::write(folder.join("ptxas-12.9.md"), differences)?;
    let newest = &oracles[0];
    let (before, instructions) = (registers::plain(), gates::all());
    let mut record = Record::default();
    for version in Version::all() {
        for target in Target::all().filter(|&target| newest.knows(target)) {
            record.module(newest, &before, &instructions, (version, target))?;
        }
    }
    record.write(COMMAND, &folder.join("gates.txt.zst"), &tools, &before, &instructions)
}

/// Versions and targets at which [`errors`] are asked about.
const ERRORS_AT: [(Version, Target); 4] = [
    NEWEST,
    (Version::new(7, 8), Target::sm(80)),
    (Version::new(4, 1), Target::sm(50)),
    (Version::new(1, 4), Target::sm(13)),
];

/// Records what ptxas 13.5 says of random instructions with several errors, into `path`.
pub fn record_errors(oracles: &Path, path: &Path, seed: u64, count: usize) -> Result<()> {
    let oracle = Oracle::open(oracles, Release::V13_5)?;
    let (before, instructions) = (errors::before(), errors::some(seed, count));
    let mut record = Record::default();
    for at in ERRORS_AT {
        record.module(&oracle, &before, &instructions, at)?;
    }
    let tools = [Tool::of(&oracle)?];
    record.write("cargo xtask record errors", path, &tools, &before, &instructions)
}
