//! Control fields: barriers, scheduling, batches.

use std::ops::RangeInclusive;

use super::{Parser, Result};
use crate::instruction::Instruction;
use crate::layout::Field;
use crate::print::BATCH;

/// The contents of the `?` fields.
#[derive(Default)]
struct Schedule {
    /// The scheduling value.
    stall: Option<u16>,
    /// The batch position; 0 is none.
    batch: u16,
}

impl Parser<'_> {
    /// Everything between the operands and the end: `&req={..} &rd=N &wr=N ?sched`.
    pub(super) fn control(&mut self, instruction: &mut Instruction) -> Result<()> {
        let mut schedule = Schedule::default();
        loop {
            let start = self.skip();
            if self.eat("&") {
                self.barrier(instruction, start)?;
            } else if self.text[self.at..].starts_with('?') {
                self.schedule(instruction, &mut schedule)?;
            } else {
                break;
            }
        }
        let silent = self.arch.implies_schedule();
        let reused = instruction.get(Field::Reuse);
        let default = match (silent, reused) {
            (true, 0) => 1,
            // Operands are reused only if the stall does not end a group.
            (true, _) => 17,
            (false, _) => 0,
        };
        instruction.set(Field::Sched, schedule.stall.unwrap_or(default));
        if schedule.batch != 0 {
            if self.arch.word_bits() == 64 || !instruction.is_batch() || reused != 0 {
                let help = "a batch position goes with ?WAITn_END_GROUP and without .reuse".to_owned();
                return self.fail(self.at, "a batch position cannot stand here", Some(help));
            }
            instruction.set(Field::Reuse, schedule.batch);
        } else if reused != 0 && self.arch.word_bits() == 128 && instruction.is_batch() {
            let help = "use ?trans1 to ?trans11".to_owned();
            return self.fail(self.at, "`.reuse` does not go with a stall that ends a group", Some(help));
        }
        Ok(())
    }

    /// `req={5,0}`, `rd=2`, and the older `rd2`, after the `&` at `start`.
    fn barrier(&mut self, instruction: &mut Instruction, start: usize) -> Result<()> {
        let name = self.word().to_ascii_lowercase();
        let (kind, glued) = name.split_at(name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len()));
        let field = match (kind, glued) {
            ("req", "") => {
                self.eat("=");
                let mask = self.barriers()?;
                instruction.set(Field::Wait, mask);
                return Ok(());
            }
            ("rd", _) => Field::ReadBarrier,
            ("wr", _) => Field::WriteBarrier,
            _ => {
                let help = "&req={..}, &rd=N, &wr=N".to_owned();
                return self.fail(start, format!("unknown control field `&{name}`"), Some(help));
            }
        };
        let n = if glued.is_empty() {
            self.eat("=");
            self.integer()?
        } else {
            glued.parse().unwrap_or(-1)
        };
        if !(0..=7).contains(&n) {
            return self.fail(start, "barriers are 0 to 5, and 7 for none", None);
        }
        instruction.set(field, n as u16);
        Ok(())
    }

    /// `?trans4`, `?WAIT2_END_GROUP`, `?BATCH_START`, `?PM1`
    fn schedule(&mut self, instruction: &mut Instruction, schedule: &mut Schedule) -> Result<()> {
        let start = self.at;
        self.at += self.text[start..].bytes().take_while(|b| *b == b'?').count();
        self.word();
        let word = &self.text[start..self.at];
        let upper = word.to_ascii_uppercase();
        let number = |prefix: &str, suffix: &str, range: RangeInclusive<u16>| {
            let digits = upper.strip_prefix(prefix)?.strip_suffix(suffix)?;
            digits.parse::<u16>().ok().filter(|n| range.contains(n))
        };
        if let Some(n) = number("?WAIT", "_END_GROUP", 1..=15) {
            schedule.stall = Some(n);
        } else if let Some(n) = number("?TRANS", "", 1..=11) {
            schedule.stall = Some(16 + n);
        } else if let Some(n) = number("?SCHED", "", 0..=31) {
            schedule.stall = Some(n);
        } else if let Some(n) = number("?PM", "", 1..=3) {
            if !self.arch.has_monitors() {
                return self.fail(start, format!("{} has no `{word}`", self.arch), None);
            }
            instruction.set(Field::Monitor, n);
        } else if let Some(n) = BATCH.iter().skip(1).position(|name| *name == upper) {
            schedule.batch = n as u16 + 1;
        } else {
            let help = "?WAIT1_END_GROUP to 15, ?trans1 to 11, ?PM1 to 3, a batch position".to_owned();
            return self.fail(start, format!("unknown control field `{word}`"), Some(help));
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
}
