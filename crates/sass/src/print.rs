//! Instructions as text: nvdisasm's (12.8), and the fuller style of the SPA 5.3 text.

use std::fmt;
use std::fmt::Write as _;

use crate::arch::Generation;
use crate::instruction::Instruction;
use crate::layout::{Field, Form};
use crate::number;

/// The comparisons, by encoding.
pub const COMPARISONS: [&str; 16] =
    ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T"];
/// The Boolean operators, by encoding.
pub const BOOL_OPS: [&str; 3] = ["AND", "OR", "XOR"];
/// The swizzles, by encoding.
pub const SWIZZLES: [&str; 4] = ["H1_H0", "F32", "H0_H0", "H1_H1"];
/// The names of batch positions.
pub(crate) const BATCH: [&str; 6] =
    ["", "?BATCH_START", "?BATCH_START_TILE", "????3", "?BATCH_END", "?BARRIER_EXEMPT"];

/// How an instruction is spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As nvdisasm 12.8 prints it, with the blanks between the columns of its listing reduced to one.
    #[default]
    Nvdisasm,
    /// Everything is explicit: the guard, every swizzle, braces around immediates, all control fields.
    Full,
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Style::Nvdisasm))
    }
}

impl Instruction {
    /// The instruction as text.
    pub fn text(&self, style: Style) -> String {
        let mut text = String::with_capacity(96);
        let full = style == Style::Full;
        if full || self.get(Field::Pg) != 7 || self.is(Field::PgNot) {
            text.push('@');
            self.predicate(&mut text, Field::Pg, Some(Field::PgNot));
            text.push(' ');
        }
        text.push_str("HSETP2");
        match self.get(Field::Format) & 3 {
            0 => {}
            2 => text.push_str(".BF16_V2"),
            other => modifier(&mut text, "INVALID", other),
        }
        text.push('.');
        text.push_str(COMPARISONS[usize::from(self.get(Field::Cmp) & 15)]);
        if self.is(Field::HAnd) {
            text.push_str(".H_AND");
        }
        if self.is(Field::Ftz) {
            text.push_str(".FTZ");
        }
        match BOOL_OPS.get(usize::from(self.get(Field::Bop))) {
            Some(name) => {
                text.push('.');
                text.push_str(name);
            }
            None if self.arch().generation() == Generation::Maxwell => text.push_str(".INVALIDBOP3"),
            None => text.push_str(".INVALID3"),
        }
        text.push(' ');
        self.predicate(&mut text, Field::Pu, None);
        text.push_str(", ");
        self.predicate(&mut text, Field::Pv, None);
        text.push_str(", ");
        self.operand_a(&mut text, full);
        text.push_str(", ");
        self.operand_b(&mut text, full);
        text.push_str(", ");
        self.predicate(&mut text, Field::Pp, Some(Field::PpNot));
        self.control(&mut text, full);
        text.push(';');
        text
    }

    fn predicate(&self, text: &mut String, field: Field, not: Option<Field>) {
        if not.is_some_and(|not| self.is(not)) {
            text.push('!');
        }
        text.push('P');
        match self.get(field) {
            7 => text.push('T'),
            n => number(text, n),
        }
    }

    /// Appends the suffix for a source's swizzle.
    fn swizzle(&self, text: &mut String, field: Field, full: bool) {
        match self.get(field) & 3 {
            0 if !full => {}
            1 if self.arch().generation() >= Generation::Hopper => text.push_str(".INVALID1"),
            n => {
                text.push('.');
                text.push_str(SWIZZLES[usize::from(n)]);
            }
        }
    }

    fn operand_a(&self, text: &mut String, full: bool) {
        let name = |text: &mut String| register(text, "R", self.get(Field::Ra), 255);
        self.source(text, full, (Field::ANeg, Field::AAbs, Field::ASwizzle), self.reuse().0, name);
    }

    /// A register: the swizzle is inside the bars on Maxwell, and behind them from Volta on.
    fn source(
        &self,
        text: &mut String,
        full: bool,
        (neg, abs, swizzle): (Field, Field, Field),
        reuse: bool,
        name: impl Fn(&mut String),
    ) {
        let maxwell = self.arch().generation() == Generation::Maxwell;
        let bar = if self.is(abs) { "|" } else { "" };
        if self.is(neg) {
            text.push('-');
        }
        text.push_str(bar);
        name(text);
        if maxwell {
            self.swizzle(text, swizzle, full);
        }
        text.push_str(bar);
        if reuse {
            text.push_str(".reuse");
        }
        if !maxwell {
            self.swizzle(text, swizzle, full);
        }
    }

    fn operand_b(&self, text: &mut String, full: bool) {
        let fields = (Field::BNeg, Field::BAbs, Field::BSwizzle);
        match self.form() {
            Form::Register => {
                let name = |text: &mut String| register(text, "R", self.get(Field::Rb), 255);
                self.source(text, full, fields, self.reuse().1, name);
            }
            Form::Immediate => {
                let bf16 = self.get(Field::Format) == 2;
                for (field, end) in [(Field::H1, ", "), (Field::H0, "")] {
                    text.push_str(if full { "{" } else { "" });
                    number::print(text, bf16, self.get(field));
                    text.push_str(if full { "}" } else { "" });
                    text.push_str(end);
                }
            }
            _ => {
                let bar = if self.is(Field::BAbs) { "|" } else { "" };
                if self.is(Field::BNeg) {
                    text.push('-');
                }
                text.push_str(bar);
                self.unswizzled(text);
                if self.has(Field::BSwizzle) {
                    self.swizzle(text, Field::BSwizzle, full);
                }
                text.push_str(bar);
            }
        }
    }

    /// A constant or a uniform register.
    fn unswizzled(&self, text: &mut String) {
        let address = self.get(Field::Address);
        let last = if self.arch().generation() >= Generation::Blackwell { 255 } else { 63 };
        let blank = if self.arch().generation() == Generation::Maxwell { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = match self.form() {
            Form::BoundConstant => {
                text.push_str("cx[");
                register(text, "UR", self.get(Field::Ur), last);
                write!(text, "] [{address:#x}]")
            }
            Form::Constant => {
                let signed = address as i16;
                let sign = if signed < 0 { "-" } else { "" };
                write!(text, "c[{:#x}]{blank}[{sign}{:#x}]", self.get(Field::Bank), signed.unsigned_abs())
            }
            _ => {
                register(text, "UR", self.get(Field::Ur), last);
                Ok(())
            }
        };
    }

    /// Control information, with the blank before it, or before the semicolon.
    fn control(&self, text: &mut String, full: bool) {
        let sched = self.get(Field::Sched);
        let before = text.len();
        if full || self.arch().prints_schedule() {
            if self.is(Field::Wait) {
                let barriers = (0..6).rev().filter(|n| self.get(Field::Wait) >> n & 1 != 0);
                let list: Vec<String> = barriers.map(|n| n.to_string()).collect();
                text.push_str(&format!(" &req={{{}}}", list.join(",")));
            }
            // nvdisasm shows the barriers that an instruction sets only for variable latency; HSETP2 has a fixed one.
            for (field, name) in [(Field::ReadBarrier, "rd"), (Field::WriteBarrier, "wr")] {
                if full && self.get(field) != 7 {
                    text.push_str(&format!(" &{name}={:#x}", self.get(field)));
                }
            }
            match sched {
                // Text without a schedule would mean another one.
                0 if self.arch().implies_schedule() => text.push_str(" ?sched0"),
                0 => {}
                1..=15 => text.push_str(&format!(" ?WAIT{sched}_END_GROUP")),
                17..=27 => text.push_str(&format!(" ?trans{}", sched - 16)),
                other => text.push_str(&format!(" ?sched{other}")),
            }
            let batch = BATCH.get(usize::from(self.get(Field::Reuse))).copied().unwrap_or("");
            if self.is_batch() && self.arch().word_bits() == 128 && !batch.is_empty() {
                text.push(' ');
                text.push_str(batch);
            }
        }
        if self.is(Field::Monitor) {
            text.push_str(" ?PM");
            number(text, self.get(Field::Monitor));
        }
        // A hidden column still leaves a blank.
        let barriers = self.get(Field::WriteBarrier) != 7 || self.get(Field::ReadBarrier) != 7;
        let hidden = sched != 0 || self.is(Field::Wait) || barriers && self.arch().shows_barriers();
        if text.len() == before && hidden {
            text.push(' ');
        }
    }
}

fn modifier(text: &mut String, name: &str, n: u16) {
    text.push('.');
    text.push_str(name);
    number(text, n);
}

fn register(text: &mut String, prefix: &str, n: u16, zero: u16) {
    text.push_str(prefix);
    if n == zero { text.push('Z') } else { number(text, n) }
}

/// Appends a decimal number.
fn number(text: &mut String, n: u16) {
    // Writing to a String cannot fail.
    let _ = write!(text, "{n}");
}
