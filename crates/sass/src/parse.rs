//! Text to instruction: nvdisasm's spelling and the whole syntax of the SPA 5.3 text.

use diag::{Diagnostic, Span};

use crate::arch::{Arch, Generation};
use crate::instruction::{Instruction, Unencodable};
use crate::layout::{Field, Form, layout};
use crate::number;
use crate::print::{BATCH, BOOL_OPS, COMPARISONS, SWIZZLES};

/// What text said, and what is odd about it.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The instruction; it has a word.
    pub instruction: Instruction,
    /// Things that are legal and probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// Reads one instruction for a target. Comments (`//`, `/* */`, `#`) and the final `;` may be there or not.
///
/// Spans count bytes of `text`. What the text leaves out is as nvdisasm leaves it out; without a `?` field, targets whose
/// disassembly does not show scheduling get `?WAIT1_END_GROUP`, so that the word is one that runs.
///
/// # Errors
/// The first thing that is wrong, with its place and, where there is one, the way out.
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

/// A source as written: its signs, what it is, and its swizzle.
#[derive(Clone, Copy, Debug, Default)]
struct Source<'t> {
    neg: bool,
    abs: bool,
    reuse: bool,
    swizzle: Option<u16>,
    /// The word between the signs, and where it stands.
    word: &'t str,
    start: usize,
    bank: Option<i64>,
    address: Option<i64>,
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
        // The form is known only from the operands: collect into a register form first.
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
            let warning = Diagnostic::warning("same-destination", span, "Pu and Pv are the same predicate");
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
        Box::new(Diagnostic::error("unencodable", self.span(at), message))
    }

    // ---- Modifiers

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
                // Before the comparison it is the format's, after it the operator's.
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
                self.warnings.push(Diagnostic::warning("invalid-modifier", self.span(start), message));
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

    // ---- Operands

    /// `P0` to `P6` and `PT`, with `!` where it may stand.
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

    /// `-|word.swizzle|.reuse.swizzle`, in braces or without.
    fn source(&mut self) -> Result<Source<'t>> {
        let mut source = Source::default();
        let open = self.skip();
        let braces = self.eat("{");
        source.neg = self.eat("-");
        let plus = !source.neg && self.eat("+");
        source.abs = self.eat("|");
        let inner = source.abs && self.eat("-");
        source.start = self.skip();
        source.word = self.word();
        if source.word.is_empty() {
            return self.fail(source.start, "expected an operand", None);
        }
        if source.word.eq_ignore_ascii_case("c") || source.word.eq_ignore_ascii_case("cx") {
            self.address(&mut source)?;
        }
        if inner && is_register(source.word) {
            return self.fail(open, "the `-` stands before the bars: -|R0|", None);
        }
        if plus && is_register(source.word) {
            return self.fail(open, "a register takes no `+`", None);
        }
        self.suffixes(&mut source)?;
        if source.abs {
            if !self.eat("|") {
                return self.fail(self.at, "the closing `|` is missing", None);
            }
            self.suffixes(&mut source)?;
        }
        if braces && !self.eat("}") {
            return self.fail(self.at, "the closing `}` is missing", None);
        }
        Ok(source)
    }

    fn suffixes(&mut self, source: &mut Source<'t>) -> Result<()> {
        while self.text[self.at..].starts_with('.') {
            let start = self.at;
            self.at += 1;
            let word = self.word().to_ascii_uppercase();
            let swizzle = SWIZZLES.iter().position(|name| *name == word).map(|n| n as u16);
            match (word.as_str(), swizzle) {
                ("REUSE", _) if !source.reuse => source.reuse = true,
                ("INVALID1", _)
                    if source.swizzle.is_none() && self.arch.generation() >= Generation::Hopper =>
                {
                    source.swizzle = Some(1);
                    let message = "`.INVALID1` is a name that nvdisasm gives to an encoding without meaning";
                    self.warnings.push(Diagnostic::warning("invalid-modifier", self.span(start), message));
                }
                ("F32", _) if self.arch.generation() >= Generation::Hopper => {
                    let help = "convert first; sm_89 is the last that has it".to_owned();
                    return self.fail(start, format!("{} has no `.F32`", self.arch), Some(help));
                }
                (_, Some(n)) if source.swizzle.is_none() => source.swizzle = Some(n),
                _ => {
                    let help = format!("one of .{}, or .reuse, once", SWIZZLES.join(" ."));
                    return self.fail(start, format!("`.{word}` cannot stand here"), Some(help));
                }
            }
        }
        Ok(())
    }

    /// `[0x2][-0x14]` behind `c`, `[UR4][0x14]` behind `cx`.
    fn address(&mut self, source: &mut Source<'t>) -> Result<()> {
        self.bracket("[")?;
        if source.word.len() == 2 {
            let start = self.skip();
            let word = self.word();
            let Some(n) = self.register_number(word, "UR") else {
                return self.fail(start, format!("expected a uniform register, found `{word}`"), None);
            };
            source.bank = Some(i64::from(n));
        } else {
            source.bank = Some(self.integer()?);
        }
        self.bracket("]")?;
        self.bracket("[")?;
        source.address = Some(self.integer()?);
        self.bracket("]")
    }

    fn bracket(&mut self, bracket: &str) -> Result<()> {
        if self.eat(bracket) { Ok(()) } else { self.fail(self.at, format!("expected `{bracket}`"), None) }
    }

    fn integer(&mut self) -> Result<i64> {
        let start = self.skip();
        let negative = self.eat("-");
        let word = self.word();
        let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) if !digits.starts_with('+') => i64::from_str_radix(digits, 16).ok(),
            Some(_) => None,
            None => word.parse().ok(),
        };
        match value.filter(|value| (0..=0xffff).contains(value)) {
            Some(value) => Ok(if negative { -value } else { value }),
            None => self.fail(start, format!("`{word}` is no number of 16 bits"), None),
        }
    }

    /// The number of `R12`, `RZ`, `UR4`, `URZ`.
    fn register_number(&self, word: &str, prefix: &str) -> Option<u16> {
        let upper = word.to_ascii_uppercase();
        let digits = upper.strip_prefix(prefix)?;
        let zero = match prefix {
            "UR" if self.arch.generation() < Generation::Blackwell => 63,
            _ => 255,
        };
        match digits {
            "Z" => Some(zero),
            _ if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) => None,
            _ => digits.parse().ok().filter(|n| *n <= zero),
        }
    }

    fn operand_a(&mut self, head: &mut Instruction, a: &Source<'t>) -> Result<()> {
        let Some(n) = self.register_number(a.word, "R") else {
            let help = "the first source is a register: R0 to R254 or RZ".to_owned();
            return self.fail(a.start, format!("expected a register, found `{}`", a.word), Some(help));
        };
        head.set(Field::Ra, n);
        head.set(Field::ANeg, u16::from(a.neg));
        head.set(Field::AAbs, u16::from(a.abs));
        head.set(Field::ASwizzle, a.swizzle.unwrap_or(0));
        head.set(Field::Reuse, u16::from(a.reuse));
        Ok(())
    }

    fn operand_b(&mut self, head: Instruction, b: &Source<'t>) -> Result<Instruction> {
        let form = match (b.address.is_some(), b.word.len()) {
            (true, 2) => Form::BoundConstant,
            (true, _) => Form::Constant,
            _ if self.register_number(b.word, "R").is_some() => Form::Register,
            _ if self.register_number(b.word, "UR").is_some() => Form::Uniform,
            _ if is_register(b.word) => {
                return self.fail(b.start, format!("there is no register `{}`", b.word), None);
            }
            _ => Form::Immediate,
        };
        let Some(layout) = layout(self.arch, form) else {
            let message = format!("HSETP2 of {} has no {} operand", self.arch, form.name());
            return self.fail(b.start, message, Some("use a register".into()));
        };
        let mut instruction = Instruction::new(self.arch, form);
        for field in layout.pieces().map(|piece| piece.field) {
            instruction.set(field, head.get(field));
        }
        instruction.set(Field::Reuse, head.get(Field::Reuse));
        if b.reuse {
            if form != Form::Register {
                return self.fail(b.start, "only registers have `.reuse`", None);
            }
            let bit = if self.arch.word_bits() == 64 { 2 } else { 4 };
            instruction.set(Field::Reuse, head.get(Field::Reuse) | bit);
        }
        if form == Form::Immediate {
            self.immediates(&mut instruction, b)?;
            return Ok(instruction);
        }
        instruction.set(Field::BNeg, u16::from(b.neg));
        instruction.set(Field::BAbs, u16::from(b.abs));
        match b.swizzle {
            Some(swizzle) if layout.has(Field::BSwizzle) => instruction.set(Field::BSwizzle, swizzle),
            // A constant of Maxwell is always .F32.
            None | Some(1) => {}
            Some(_) => {
                let help = "leave the swizzle out: the constant is read as .F32".to_owned();
                return self.fail(
                    b.start,
                    format!("{} encodes no swizzle of constants", self.arch),
                    Some(help),
                );
            }
        }
        match form {
            Form::Register => {
                let n = self.register_number(b.word, "R").unwrap_or_default();
                instruction.set(Field::Rb, n);
            }
            Form::Uniform => {
                let n = self.register_number(b.word, "UR").unwrap_or_default();
                instruction.set(Field::Ur, n);
            }
            _ => {
                let (bank, address) = (b.bank.unwrap_or_default(), b.address.unwrap_or_default());
                let lowest = if form == Form::Constant { -0x8000 } else { 0 };
                if address % 4 != 0 || address < lowest {
                    let help = "addresses are multiples of 4, c[] from -0x8000 and cx[] from 0".to_owned();
                    return self.fail(b.start, format!("address {address:#x} cannot be encoded"), Some(help));
                }
                if form == Form::Constant && !(0..32).contains(&bank) {
                    return self.fail(
                        b.start,
                        format!("there is no bank {bank}"),
                        Some("banks are 0 to 31".into()),
                    );
                }
                instruction.set(if form == Form::Constant { Field::Bank } else { Field::Ur }, bank as u16);
                instruction.set(Field::Address, address as u16);
            }
        }
        Ok(instruction)
    }

    /// The high half has been read, the low one follows.
    fn immediates(&mut self, instruction: &mut Instruction, high: &Source<'t>) -> Result<()> {
        self.immediate(instruction, Field::H1, high)?;
        let start = self.skip();
        if !self.eat(",") {
            let help = "an immediate is a pair, the high half first: 1, 1".to_owned();
            return self.fail(start, "the low half of the immediate is missing", Some(help));
        }
        let low = self.source()?;
        self.immediate(instruction, Field::H0, &low)
    }

    fn immediate(&mut self, instruction: &mut Instruction, field: Field, source: &Source<'t>) -> Result<()> {
        let bf16 = instruction.get(Field::Format) == 2;
        let format = number::format(bf16, self.arch.generation() == Generation::Maxwell);
        let Some((bits, exact)) = number::parse(source.word, format) else {
            let help = "a register, c[bank][address], or two numbers such as 1.5, -INF".to_owned();
            return self.fail(
                source.start,
                format!("expected an operand, found `{}`", source.word),
                Some(help),
            );
        };
        if source.swizzle.is_some() || source.reuse {
            return self.fail(source.start, "an immediate takes no suffix", None);
        }
        if !exact {
            let message = format!("`{}` is not exact here and is rounded", source.word);
            self.warnings.push(Diagnostic::warning("rounded", self.span(source.start), message));
        }
        let sign = if source.neg { 0x8000 } else { 0 };
        instruction.set(field, bits | sign);
        Ok(())
    }

    // ---- Control fields

    fn control(&mut self, instruction: &mut Instruction) -> Result<()> {
        let mut sched = None;
        let mut batch = 0;
        loop {
            let start = self.skip();
            if self.eat("&") {
                let name = self.word().to_ascii_lowercase();
                // `&rd=2` and the older `&rd2`.
                let glued = name.strip_prefix("rd").or(name.strip_prefix("wr")).filter(|n| !n.is_empty());
                match (name.as_str(), glued) {
                    ("req", _) => {
                        self.eat("=");
                        let mask = self.barriers()?;
                        instruction.set(Field::Wait, mask);
                    }
                    ("rd" | "wr", _) | (_, Some(_)) => {
                        let field =
                            if name.starts_with("rd") { Field::ReadBarrier } else { Field::WriteBarrier };
                        let n = match glued {
                            Some(digits) => digits.parse().unwrap_or(-1),
                            None => {
                                self.eat("=");
                                self.integer()?
                            }
                        };
                        if !(0..=7).contains(&n) {
                            return self.fail(start, "barriers are 0 to 5, and 7 for none", None);
                        }
                        instruction.set(field, n as u16);
                    }
                    _ => {
                        let help = "&req={..}, &rd=N, &wr=N".to_owned();
                        return self.fail(start, format!("unknown control field `&{name}`"), Some(help));
                    }
                }
            } else if self.text[self.at..].starts_with('?') {
                let from = self.at;
                self.at += self.text[from..].bytes().take_while(|b| *b == b'?').count();
                self.word();
                let word = &self.text[from..self.at];
                let upper = word.to_ascii_uppercase();
                let wait = upper.strip_prefix("?WAIT").and_then(|rest| rest.strip_suffix("_END_GROUP"));
                let named = |digits: &str, range: std::ops::RangeInclusive<u16>| {
                    digits.parse::<u16>().ok().filter(|n| range.contains(n))
                };
                let position = BATCH.iter().position(|name| *name == upper).filter(|n| *n > 0);
                if let Some(n) = wait.and_then(|n| named(n, 1..=15)) {
                    sched = Some(n);
                } else if let Some(n) = upper.strip_prefix("?TRANS").and_then(|n| named(n, 1..=11)) {
                    sched = Some(16 + n);
                } else if let Some(n) = upper.strip_prefix("?SCHED").and_then(|n| named(n, 0..=31)) {
                    sched = Some(n);
                } else if let Some(n) = upper.strip_prefix("?PM").and_then(|n| named(n, 1..=3)) {
                    if !self.arch.has_monitors() {
                        return self.fail(from, format!("{} has no `{word}`", self.arch), None);
                    }
                    instruction.set(Field::Monitor, n);
                } else if let Some(n) = position {
                    batch = n as u16;
                } else {
                    let help =
                        "?WAIT1_END_GROUP to 15, ?trans1 to 11, ?PM1 to 3, a batch position".to_owned();
                    return self.fail(from, format!("unknown control field `{word}`"), Some(help));
                }
            } else {
                break;
            }
        }
        let silent = self.arch.word_bits() == 128 && !self.arch.prints_schedule();
        let reused = instruction.get(Field::Reuse);
        let default = match (silent, reused) {
            (true, 0) => 1,
            // Operands are reused only where the stall does not end a group.
            (true, _) => 17,
            (false, _) => 0,
        };
        instruction.set(Field::Sched, sched.unwrap_or(default));
        if batch != 0 {
            if self.arch.word_bits() == 64 || !instruction.is_batch() || reused != 0 {
                let help = "a batch position goes with ?WAITn_END_GROUP and without .reuse".to_owned();
                return self.fail(self.at, "a batch position cannot stand here", Some(help));
            }
            instruction.set(Field::Reuse, batch);
        } else if reused != 0 && self.arch.word_bits() == 128 && instruction.is_batch() {
            let help = "use ?trans1 to ?trans11".to_owned();
            return self.fail(self.at, "`.reuse` does not go with a stall that ends a group", Some(help));
        }
        Ok(())
    }

    /// `{5,1,0}` or `0x23`
    fn barriers(&mut self) -> Result<u16> {
        let start = self.skip();
        if !self.eat("{") {
            return match self.integer()? {
                mask @ 0..=63 => Ok(mask as u16),
                _ => self.fail(start, "there are six barriers: {5,4,3,2,1,0}", None),
            };
        }
        let mut mask = 0;
        while !self.eat("}") {
            let at = self.skip();
            match self.integer()? {
                n @ 0..=5 => mask |= 1 << n,
                _ => return self.fail(at, "barriers are 0 to 5", None),
            }
            self.eat(",");
        }
        Ok(mask)
    }

    // ---- Characters

    /// Passes blanks and comments, and returns where it got to.
    fn skip(&mut self) -> usize {
        loop {
            let rest = &self.text[self.at..];
            let blanks = rest.len() - rest.trim_start().len();
            self.at += blanks;
            let rest = &self.text[self.at..];
            let comment = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                0
            };
            if comment == 0 {
                return self.at;
            }
            self.at += comment;
        }
    }

    fn eat(&mut self, what: &str) -> bool {
        self.skip();
        let found = self.text[self.at..].starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    fn comma(&mut self) -> Result<()> {
        if self.eat(",") { Ok(()) } else { self.fail(self.at, "expected `,`", None) }
    }

    /// Letters, digits and `_`; of a number also its point and the sign of its exponent.
    fn word(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let number = bytes.get(start).is_some_and(|b| b.is_ascii_digit() || *b == b'.');
        let hex = self.text[start..].starts_with("0x");
        while let Some(&byte) = bytes.get(self.at) {
            let exponent = number
                && !hex
                && self.at > start
                && matches!(bytes[self.at - 1], b'e' | b'E')
                && matches!(byte, b'+' | b'-');
            if !(byte.is_ascii_alphanumeric() || byte == b'_' || number && byte == b'.' || exponent) {
                break;
            }
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn span(&self, start: usize) -> Span {
        Span::new(start as u32, self.at.max(start) as u32)
    }

    fn fail<T>(&self, start: usize, message: impl Into<String>, help: Option<String>) -> Result<T> {
        let mut diagnostic = Diagnostic::error("sass-syntax", self.span(start), message);
        diagnostic.help = help;
        Err(Box::new(diagnostic))
    }
}

/// Whether a word looks like a register rather than a number.
fn is_register(word: &str) -> bool {
    let upper = word.to_ascii_uppercase();
    let digits = upper.strip_prefix("UR").or_else(|| upper.strip_prefix('R'));
    digits.is_some_and(|rest| rest == "Z" || rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The modifier that a wrong one was meant to be.
fn did_you_mean(word: &str) -> Option<String> {
    let meant = match word {
        "LTE" => "LE",
        "GTE" => "GE",
        "LTEU" => "LEU",
        "GTEU" => "GEU",
        "HAND" => "H_AND",
        "BF16" => "BF16_V2",
        "NEQ" => "NE",
        "TRUE" => "T",
        "FALSE" => "F",
        _ => {
            let names = COMPARISONS.iter().chain(&BOOL_OPS).chain(&["H_AND", "FTZ", "BF16_V2"]);
            // A name that differs in one letter.
            names.copied().find(|name| {
                name.len() == word.len()
                    && name.len() > 2
                    && name.bytes().zip(word.bytes()).filter(|(a, b)| a != b).count() == 1
            })?
        }
    };
    Some(format!("did you mean .{meant}?"))
}
