//! Sources: registers, constants, immediates.

use diag::{Code, Diagnostic};

use super::{Parser, Result};
use crate::arch::Generation;
use crate::instruction::Instruction;
use crate::layout::{Field, Form, layout};
use crate::number;
use crate::print::SWIZZLES;

/// A source as written: its signs, its word, and its swizzle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source<'t> {
    neg: bool,
    abs: bool,
    reuse: bool,
    swizzle: Option<u16>,
    /// The word between the signs, and its place.
    word: &'t str,
    start: usize,
    bank: Option<i64>,
    address: Option<i64>,
}

impl<'t> Parser<'t> {
    /// `-|word.swizzle|.reuse.swizzle`, optionally in braces.
    pub(super) fn source(&mut self) -> Result<Source<'t>> {
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
                    self.warnings.push(Diagnostic::warning(Code::InvalidModifier, self.span(start), message));
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

    /// `[0x2][-0x14]` after `c`, `[UR4][0x14]` after `cx`.
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

    pub(super) fn operand_a(&mut self, head: &mut Instruction, a: &Source<'t>) -> Result<()> {
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

    pub(super) fn operand_b(&mut self, head: Instruction, b: &Source<'t>) -> Result<Instruction> {
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
            // A constant of Maxwell always means .F32.
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

    /// Parses the low half, after the high one.
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
            self.warnings.push(Diagnostic::warning(Code::Rounded, self.span(source.start), message));
        }
        let sign = if source.neg { 0x8000 } else { 0 };
        instruction.set(field, bits | sign);
        Ok(())
    }
}

/// Whether a word looks like a register rather than a number.
fn is_register(word: &str) -> bool {
    let upper = word.to_ascii_uppercase();
    let digits = upper.strip_prefix("UR").or_else(|| upper.strip_prefix('R'));
    digits.is_some_and(|rest| rest == "Z" || rest.bytes().all(|b| b.is_ascii_digit()))
}
