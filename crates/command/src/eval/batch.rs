//! `ptxvm eval --batch`: evaluates many instructions, one per line, as fast as possible.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::rc::Rc;

use isa::{Target, Type};

use super::json::{Evaluation, Refusal};
use crate::alone::{Alone, MAX_SOURCES, ones};
use crate::options::Format;

/// Maximum number of cached instructions: hostile input has an unbounded number of spellings.
const REMEMBERED: usize = 1 << 16;
/// Bytes of one read. Results are written when they reach this size, or when no more input is available.
const CHUNK: usize = 1 << 18;

type Resolved = Result<Rc<Alone>, Rc<str>>;

/// Evaluates lines, and caches the instructions that they name.
pub struct Batch {
    target: Option<Target>,
    format: Format,
    known: HashMap<Vec<u8>, Vec<(usize, Resolved)>>,
}

impl Batch {
    /// For one target, or for the newest that has each instruction.
    pub fn new(target: Option<Target>, format: Format) -> Batch {
        Batch { target, format, known: HashMap::new() }
    }

    /// Answers each line of the input with one line.
    ///
    /// # Errors
    /// When the input cannot be read or the output not be written.
    pub fn run(&mut self, mut input: impl Read, mut output: impl Write) -> io::Result<()> {
        let mut pending = Vec::with_capacity(2 * CHUNK);
        let mut answers = Vec::with_capacity(2 * CHUNK);
        loop {
            let start = pending.len();
            pending.resize(start + CHUNK, 0);
            let read = match input.read(&mut pending[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(error),
                Ok(0) => {
                    pending.truncate(start);
                    break;
                }
                Ok(read) => read,
            };
            pending.truncate(start + read);
            let Some(end) = pending[start..].iter().rposition(|&byte| byte == b'\n') else { continue };
            let end = start + end;
            for line in pending[..end].split(|&byte| byte == b'\n') {
                self.line(line, &mut answers);
            }
            pending.drain(..=end);
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
        if !pending.is_empty() {
            self.line(&pending, &mut answers);
            output.write_all(&answers)?;
        }
        output.flush()
    }

    /// Appends the answer to one line, as text.
    fn line(&mut self, line: &[u8], answers: &mut Vec<u8>) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.format == Format::Json {
            return self.json_line(line, answers);
        }
        answers.extend_from_slice(line);
        answers.push(b'\t');
        if let Err(message) = self.evaluate(line, answers) {
            answers.extend_from_slice(b"error: ");
            answers.extend_from_slice(message.as_bytes());
        }
        answers.push(b'\n');
    }

    /// Appends the answer to one line, as a JSON object.
    fn json_line(&mut self, line: &[u8], answers: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line);
        let written = match self.read(line) {
            Ok((alone, values)) => {
                let instruction = text.split('\t').next().unwrap_or_default();
                let values = &values[..alone.sources.len()];
                serde_json::to_writer(&mut *answers, &Evaluation::new(&alone, instruction, values))
            }
            Err(error) => serde_json::to_writer(&mut *answers, &Refusal { line: &text, error: &error }),
        };
        written.expect("strings can be written to a vector");
        answers.push(b'\n');
    }

    /// The instruction of a line, and its operands.
    fn read(&mut self, line: &[u8]) -> Result<(Rc<Alone>, [u64; MAX_SOURCES]), String> {
        let mut columns = line.split(|&byte| byte == b'\t');
        let instruction = columns.next().unwrap_or_default();
        let resolved = self.resolve(instruction, columns.clone().count());
        let alone = resolved.map_err(|message| message.to_string())?;
        let mut values = [0; MAX_SOURCES];
        for ((value, column), source) in values.iter_mut().zip(columns).zip(&alone.sources) {
            *value = operand(column, source.ty).map_err(|what| format!("operand {}: {what}", source.name))?;
            if let Some((least, greatest)) = source.range
                && !(least..=greatest).contains(&(*value as i64))
            {
                return Err(format!("operand {} must be {least} to {greatest}", source.name));
            }
        }
        Ok((alone, values))
    }

    /// Appends the results, or nothing if the line is wrong.
    fn evaluate(&mut self, line: &[u8], answers: &mut Vec<u8>) -> Result<(), String> {
        let (alone, values) = self.read(line)?;
        let results = alone.compute(&values[..alone.sources.len()]);
        for (i, (value, (_, ty))) in results.into_iter().zip(&alone.results).enumerate() {
            if i > 0 {
                answers.push(b'\t');
            }
            for digit in (0..ty.bits().div_ceil(4)).rev() {
                answers.push(b"0123456789abcdef"[(value >> (4 * digit) & 15) as usize]);
            }
        }
        Ok(())
    }

    fn resolve(&mut self, instruction: &[u8], count: usize) -> Resolved {
        if let Some(variants) = self.known.get(instruction)
            && let Some((_, resolved)) = variants.iter().find(|(known, _)| *known == count)
        {
            return resolved.clone();
        }
        let resolved: Resolved = match std::str::from_utf8(instruction) {
            // All numbers of operands that no instruction has share a cache entry.
            Ok(name) => {
                Alone::resolve(name, count.min(MAX_SOURCES + 1), self.target).map(Rc::new).map_err(Rc::from)
            }
            Err(_) => Err("the instruction is not text".into()),
        };
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        let variants = self.known.entry(instruction.to_vec()).or_default();
        if variants.len() <= MAX_SOURCES {
            variants.push((count, resolved.clone()));
        }
        resolved
    }
}

/// The value of one column: bare hexadecimal digits, or 0 or 1 for a predicate.
fn operand(column: &[u8], ty: Type) -> Result<u64, String> {
    let shown = || String::from_utf8_lossy(&column[..column.len().min(40)]).escape_debug().to_string();
    if ty == Type::Pred {
        return match column {
            b"0" => Ok(0),
            b"1" => Ok(1),
            _ => Err(format!("a predicate is 0 or 1, not '{}'", shown())),
        };
    }
    let mut value = 0u64;
    let mut fits = true;
    for &byte in column {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return Err(format!("'{}' is not in bare hexadecimal digits, as 3c00 is", shown())),
        };
        fits &= value >> 60 == 0;
        value = value << 4 | u64::from(digit);
    }
    if column.is_empty() {
        return Err("there is none".to_owned());
    }
    if !fits || value > ones(ty.bits()) {
        return Err(format!("'{}' does not fit {ty} ({} bits)", shown(), ty.bits()));
    }
    Ok(value)
}
