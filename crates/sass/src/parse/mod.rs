//! Text to instruction: nvdisasm's spelling and the full syntax of the SPA 5.3 text.

mod control;
mod operand;
mod scan;

use diag::{Code, Diagnostic, nearest};

use crate::arch::{Arch, Generation};
use crate::instruction::{Instruction, Unencodable};
use crate::layout::{Field, Form};
use crate::print::{BOOL_OPS, COMPARISONS};

/// A parsed instruction, and what is suspicious about its text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The instruction; it has an encoding.
    pub instruction: Instruction,
    /// Legal, but probably not intended.
    pub warnings: Vec<Diagnostic>,
}

/// Parses one instruction for a target. Comments (`//`, `/* */`, `#`) and the final `;` are optional.
///
/// Spans count bytes of `text`. Omitted parts have the values with which nvdisasm omits them. Without a `?` field,
/// targets whose disassembly does not show scheduling get `?WAIT1_END_GROUP`, so that the word can run.
///
/// # Errors
/// The first mistake, with its place and, where possible, a remedy.
pub fn parse(arch: Arch, text: &str) -> Result<Parsed> {
    let mut parser = Parser { arch, text, at: 0, warnings: Vec::new() };
    let instruction = parser.instruction()?;
    Ok(Parsed { instruction, warnings: parser.warnings })
}

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

struct Parser<'t> {
    arch: Arch,
    text: &'t str,
    at: usize,
    warnings: Vec<Diagnostic>,
}

impl<'t> Parser<'t> {
    fn instruction(&mut self) -> Result<Instruction> {
        let mut guard = (7, 0);
        if self.eat("@") {
            guard = self.predicate(true)?;
        }
        let start = self.skip();
        let mnemonic = self.word();
        if !mnemonic.eq_ignore_ascii_case("HSETP2") {
            return self.fail(start, format!("expected HSETP2, found `{mnemonic}`"), None);
        }
        // Only the operands determine the form: collect into a register form first.
        let mut head = Instruction::new(self.arch, Form::Register);
        head.set(Field::Pg, guard.0);
        head.set(Field::PgNot, guard.1);
        let bop = self.modifiers(&mut head)?;
        let destinations = self.skip();
        head.set(Field::Pu, self.predicate(false)?.0);
        self.comma()?;
        head.set(Field::Pv, self.predicate(false)?.0);
        if head.get(Field::Pu) == head.get(Field::Pv) && head.get(Field::Pu) != 7 {
            let span = self.span(destinations);
            let warning =
                Diagnostic::warning(Code::SameDestination, span, "Pu and Pv are the same predicate");
            self.warnings.push(warning.help("write PT for the one that is not wanted"));
        }
        self.comma()?;
        let a = self.source()?;
        self.operand_a(&mut head, &a)?;
        self.comma()?;
        let b = self.source()?;
        let mut instruction = self.operand_b(head, &b)?;
        let operand = self.skip();
        if self.eat(",") {
            let (p, not) = self.predicate(true)?;
            instruction.set(Field::Pp, p);
            instruction.set(Field::PpNot, not);
            if !bop {
                let message = "a last predicate needs an operator to combine it with";
                return self.fail(
                    operand,
                    message,
                    Some("write .AND, .OR or .XOR after the comparison".into()),
                );
            }
        } else if bop {
            let help = "write `, PT` for none".to_owned();
            return self.fail(operand, "the operator needs a last predicate", Some(help));
        }
        self.control(&mut instruction)?;
        self.eat(";");
        let end = self.skip();
        if end < self.text.len() {
            return self.fail(end, "nothing may follow the instruction", None);
        }
        instruction.encode().map_err(|error| self.unencodable(&error, operand))?;
        Ok(instruction)
    }

    fn unencodable(&self, error: &Unencodable, at: usize) -> Box<Diagnostic> {
        let message = format!("{} cannot encode this: {error}", self.arch);
        Box::new(Diagnostic::error(Code::Unencodable, self.span(at), message))
    }

    /// Reads `.LT.H_AND.FTZ.AND`, in any order, and returns whether there was a Boolean operator.
    fn modifiers(&mut self, head: &mut Instruction) -> Result<bool> {
        let mut seen = Vec::new();
        loop {
            let start = self.at;
            if !self.text[self.at..].starts_with('.') {
                break;
            }
            self.at += 1;
            let word = self.word().to_ascii_uppercase();
            let bop = BOOL_OPS.iter().position(|name| *name == word);
            let (field, value) = match (word.as_str(), COMPARISONS.iter().position(|name| *name == word)) {
                (_, Some(n)) => (Field::Cmp, n),
                ("H_AND", _) => (Field::HAnd, 1),
                ("FTZ", _) => (Field::Ftz, 1),
                ("BF16_V2", _) => (Field::Format, 2),
                ("INVALIDBOP3", _) if self.arch.generation() == Generation::Maxwell => (Field::Bop, 3),
                ("INVALID1", _) => (Field::Format, 1),
                // Before the comparison it belongs to the format, after it to the operator.
                ("INVALID3", _)
                    if !seen.contains(&Field::Cmp) && self.arch.generation() >= Generation::Hopper =>
                {
                    (Field::Format, 3)
                }
                ("INVALID3", _) if self.arch.generation() != Generation::Maxwell => (Field::Bop, 3),
                _ => match bop {
                    Some(n) => (Field::Bop, n),
                    None => {
                        return self.fail(start, format!("unknown modifier `.{word}`"), did_you_mean(&word));
                    }
                },
            };
            if seen.contains(&field) {
                return self.fail(start, format!("`.{word}` says again what another modifier says"), None);
            }
            if field == Field::Format && self.arch.generation() < Generation::Hopper {
                let help = "BF16 is compared from sm_90 on".to_owned();
                return self.fail(start, format!("{} has no `.{word}`", self.arch), Some(help));
            }
            if word.starts_with("INVALID") {
                let message =
                    format!("`.{word}` is a name that nvdisasm gives to an encoding without meaning");
                self.warnings.push(Diagnostic::warning(Code::InvalidModifier, self.span(start), message));
            }
            seen.push(field);
            head.set(field, value as u16);
        }
        if !seen.contains(&Field::Cmp) {
            let help = format!("one of .{}", COMPARISONS.join(" ."));
            return self.fail(self.at, "the comparison is missing", Some(help));
        }
        Ok(seen.contains(&Field::Bop))
    }

    /// `P0` to `P6` and `PT`, with `!` if it is allowed.
    fn predicate(&mut self, negatable: bool) -> Result<(u16, u16)> {
        let start = self.skip();
        let not = self.eat("!");
        if not && !negatable {
            return self.fail(start, "a destination cannot be negated", None);
        }
        let word = self.word();
        let upper = word.to_ascii_uppercase();
        let number = match upper.strip_prefix('P') {
            Some("T") => Some(7),
            Some(digits) => digits.parse().ok().filter(|n| *n < 7 && digits.len() == 1),
            None => None,
        };
        match number {
            Some(n) => Ok((n, u16::from(not))),
            None => self.fail(
                start,
                format!("expected a predicate, found `{word}`"),
                Some("predicates are P0 to P6 and PT".into()),
            ),
        }
    }
}

/// The modifier that was probably meant.
fn did_you_mean(word: &str) -> Option<String> {
    let names = COMPARISONS.iter().chain(&BOOL_OPS).chain(&["H_AND", "FTZ", "BF16_V2"]).copied();
    let meant = match word {
        // Spellings of other languages, for which the nearest name would be wrong.
        "LTE" => "LE",
        "GTE" => "GE",
        "LTEU" => "LEU",
        "GTEU" => "GEU",
        "BF16" => "BF16_V2",
        "HAND" => "H_AND",
        "NEQ" => "NE",
        "TRUE" => "T",
        "FALSE" => "F",
        _ if word.len() == 1 => return None,
        _ => nearest(word, names)?,
    };
    Some(format!("did you mean .{meant}?"))
}
