//! Asks an assembler about many instructions at once, each on a line of its own.

use super::Result;
use super::oracle::{Oracle, Severity, Verdict};

/// So many lines are put into one file. A line that does not parse costs one more run of its file.
const LINES_PER_FILE: usize = 1000;

/// What stands around the instructions that an assembler is asked about.
pub struct Frame {
    /// From `.version` to the line before the first instruction, with a line break at its end.
    pub before: String,
    /// Behind the last instruction.
    pub after: String,
}

/// What the assembler said.
pub struct Answers {
    /// The errors on the first two lines: `.version` and `.target`.
    pub head: Vec<String>,
    /// The errors of each instruction, in the order in which they were said; none when it is legal.
    pub lines: Vec<Vec<String>>,
}

/// Asks about each of `instructions` between `frame`'s halves.
///
/// A line that does not parse ends the assembler's run, so it is blanked and its file asked about again.
pub fn ask<S: AsRef<str>>(oracle: &Oracle, frame: &Frame, instructions: &[S]) -> Result<Answers> {
    let first = frame.before.lines().count() + 1;
    let mut answers = Answers { head: Vec::new(), lines: Vec::with_capacity(instructions.len()) };
    for chunk in instructions.chunks(LINES_PER_FILE) {
        let mut unparsed: Vec<Option<Vec<String>>> = vec![None; chunk.len()];
        let (head, mut lines) = loop {
            let mut source = frame.before.clone();
            for (instruction, unparsed) in chunk.iter().zip(&unparsed) {
                source += if unparsed.is_some() { "" } else { instruction.as_ref() };
                source.push('\n');
            }
            source += &frame.after;
            let verdict = oracle.assemble(source.as_bytes())?;
            let (head, mut lines, fatal) = sort(&verdict, first, chunk.len())?;
            match fatal {
                // It is about other PTX, which the assembler makes of one of the lines.
                Some(line) if unparsed[line].is_some() => {
                    return Err(format!("the same line ends the run twice: {}", chunk[line].as_ref()).into());
                }
                Some(line) => unparsed[line] = Some(std::mem::take(&mut lines[line])),
                None => break (head, lines),
            }
        };
        for (line, unparsed) in lines.iter_mut().zip(unparsed) {
            if let Some(said) = unparsed {
                *line = said;
            }
        }
        answers.head = head;
        answers.lines.append(&mut lines);
    }
    Ok(answers)
}

/// The errors of the head, those of each of `count` lines from line `first` on, and which line ended the run.
type Sorted = (Vec<String>, Vec<Vec<String>>, Option<usize>);

fn sort(verdict: &Verdict, first: usize, count: usize) -> Result<Sorted> {
    let (mut head, mut lines, mut fatal) = (Vec::new(), vec![Vec::new(); count], None);
    for message in &verdict.messages {
        let place = message.line as usize;
        match message.severity {
            Severity::Info | Severity::Warning => continue,
            Severity::Fatal if message.is_about_options() => continue,
            Severity::Fatal if place < first => {
                return Err(format!("the frame is not understood: {}", message.text).into());
            }
            _ => {}
        }
        match place.checked_sub(first) {
            Some(line) if line < count => {
                lines[line].push(message.text.clone());
                if message.severity == Severity::Fatal {
                    fatal = Some(line);
                }
            }
            Some(_) => return Err(format!("line {place}: {}", message.text).into()),
            None if place <= 2 => head.push(message.text.clone()),
            None => {}
        }
    }
    Ok((head, lines, fatal))
}
