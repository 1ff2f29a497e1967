//! Machine code as text, beside the PTX that it is for.

use std::fmt::Write as _;

use diag::Span;

use crate::native::{Mark, Native, Part};

impl Native {
    /// The code in Intel's syntax, a line for each instruction with its offset. `ptx`: the text of an instruction.
    pub fn listing(&self, ptx: impl Fn(Span) -> String) -> String {
        let mut text = String::new();
        let ends = self.layout.marks.iter().skip(1).map(|mark| mark.offset).chain([self.code().len()]);
        for (mark, end) in self.layout.marks.iter().zip(ends) {
            let of = match mark.part {
                Part::Entry => "  loads values".to_owned(),
                Part::Block { index, all: true } => format!("  basic block {index}, with all threads"),
                Part::Block { index, .. } => format!("  basic block {index}"),
                Part::Instruction(span) => format!("    {}", ptx(span)),
                Part::Exit => "  stores values".to_owned(),
                Part::Behind => "  faults and other regions".to_owned(),
                Part::Constants => break,
            };
            let _ = writeln!(text, "{of}");
            self.instructions(mark, end, &mut text);
        }
        text
    }

    /// The instructions of a part.
    #[cfg(all(target_arch = "x86_64", unix))]
    fn instructions(&self, mark: &Mark, end: usize, text: &mut String) {
        use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

        let code = self.code().get(mark.offset..end).unwrap_or_default();
        let decoder = Decoder::with_ip(64, code, mark.offset as u64, DecoderOptions::NONE);
        let mut formatter = IntelFormatter::new();
        let options = formatter.options_mut();
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_branch_leading_zeros(false);
        options.set_space_after_operand_separator(true);
        for instruction in decoder {
            let mut line = String::new();
            formatter.format(&instruction, &mut line);
            let _ = writeln!(text, "{:8x}  {line}", instruction.ip());
        }
    }

    #[cfg(not(all(target_arch = "x86_64", unix)))]
    fn instructions(&self, _: &Mark, _: usize, _: &mut String) {}
}
