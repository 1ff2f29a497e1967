//! The record: questions by kind, then the points they are asked about at and the answers, each as numbers.

use std::collections::HashMap;
use std::fs;
use std::hash::Hash;
use std::path::Path;

use serde::Serialize;

use super::{AFTER, FRAME, Kind, NEWEST, Question};
use crate::record::{Result, Tool};

/// A question and what ptxas answers: its first error, or none if it accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub question: Question,
    /// Of a module it has the line: `7: words`.
    pub answer: Option<String>,
}

/// The first line.
#[derive(Serialize)]
struct Header<'a> {
    recorded_by: &'static str,
    command: &'static str,
    tool: &'a Tool,
    /// The assembler made code of what it accepts.
    code: bool,
    /// What stands before each instruction, behind `.version` and `.target`: a line, and the `VERSION TARGET` without which it is empty.
    before: Vec<[String; 2]>,
    after: &'static str,
    /// The distinct answers, whose numbers follow; the first is that there is no error.
    answers: &'a [String],
    /// `VERSION TARGET` that instructions are asked about at.
    points: Vec<String>,
    /// How many texts follow of each kind.
    texts: Vec<usize>,
}

/// Things with numbers, in the order in which they came.
struct Numbers<T> {
    all: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Numbers<T> {
    fn new(first: T) -> Numbers<T> {
        Numbers { all: vec![first.clone()], numbers: HashMap::from([(first, 0)]) }
    }

    fn of(&mut self, thing: &T) -> usize {
        if let Some(&number) = self.numbers.get(thing) {
            return number;
        }
        self.all.push(thing.clone());
        self.numbers.insert(thing.clone(), self.all.len() - 1);
        self.all.len() - 1
    }
}

pub fn write(path: &Path, tool: &Tool, code: bool, answered: &[Answered]) -> Result<()> {
    let (mut answers, mut points) = (Numbers::new(String::new()), Numbers::new(NEWEST));
    let (mut body, mut counts) = (String::new(), Vec::new());
    for kind in Kind::ALL {
        let of_kind = answered.iter().filter(|a| a.question.kind == kind);
        let mut texts: Vec<(&str, Vec<&Answered>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for answered in of_kind {
            let text = answered.question.text.as_str();
            let place = *places.entry(text).or_insert_with(|| {
                texts.push((text, Vec::new()));
                texts.len() - 1
            });
            texts[place].1.push(answered);
        }
        counts.push(texts.len());
        // Columns compress better than rows.
        for (text, _) in &texts {
            body += &serde_json::to_string(text)?;
            body.push('\n');
        }
        for (_, asked) in &texts {
            let of_point = |a: &&Answered| points.of(&a.question.at.unwrap_or(NEWEST)).to_string();
            body += &asked.iter().map(of_point).collect::<Vec<_>>().join(" ");
            body.push('\n');
        }
        for (_, asked) in &texts {
            let of_answer = |a: &&Answered| answers.of(&a.answer.clone().unwrap_or_default()).to_string();
            body += &asked.iter().map(of_answer).collect::<Vec<_>>().join(" ");
            body.push('\n');
        }
    }
    let header = Header {
        recorded_by: "cargo xtask record legality --only table",
        command: match code {
            true => {
                "ptxas -arch TARGET (the own one, or sm_75 for older ones) -o /dev/null FILE, a file for each instruction"
            }
            false => {
                "ptxas -c -arch compute_121 (or, for a target with a suffix, that very one) -o /dev/null FILE, \
                 a file for each instruction and module"
            }
        },
        tool,
        code,
        before: FRAME.map(|(line, version, target)| [line.into(), format!("{version} {target}")]).into(),
        after: AFTER,
        answers: &answers.all,
        points: points.all.iter().map(|(version, target)| format!("{version} {target}")).collect(),
        texts: counts,
    };
    let text = serde_json::to_string(&header)? + "\n" + &body;
    let packed = zstd::encode_all(text.as_bytes(), 22)?;
    fs::write(path, &packed)?;
    println!("{}: {} answers, {} bytes", path.display(), answered.len(), packed.len());
    Ok(())
}
