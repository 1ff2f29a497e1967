//! Selectors: the parts of 32-bit operands that the video instructions take (PTX ISA, "Video Instructions").

/// The size of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `.b`: 8 bits.
    Byte,
    /// `.h`: 16 bits.
    Half,
}

/// A selector of an operand: `.h0`, `.b3210`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// The size of the parts.
    pub unit: Unit,
    digits: [u8; 4],
    count: u8,
}

impl Selector {
    /// Reads a selector without its dot. `None` if no instruction has it.
    pub fn parse(text: &str) -> Option<Selector> {
        let unit = if text.starts_with('h') { Unit::Half } else { Unit::Byte };
        let written = text.strip_prefix(['h', 'b'])?.as_bytes();
        // The parts of two operands are numbered together.
        let limit = if unit == Unit::Half { b'4' } else { b'8' };
        if written.len() > 4 || !written.iter().all(|digit| (b'0'..limit).contains(digit)) {
            return None;
        }
        let mut digits = [0; 4];
        for (digit, &character) in digits.iter_mut().zip(written) {
            *digit = character - b'0';
        }
        Some(Selector { unit, digits, count: written.len() as u8 })
    }

    /// `.b01`, `.b12`, `.b23`: ptxas accepts these on `d` and `c` of scalar instructions, and generates the same code
    /// as without them.
    pub fn is_ignored(self) -> bool {
        self.unit == Unit::Byte && matches!(self.digits(), [0, 1] | [1, 2] | [2, 3])
    }

    /// The numbers of the parts as written: the highest element's first.
    pub fn digits(&self) -> &[u8] {
        &self.digits[..usize::from(self.count)]
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".{}", if self.unit == Unit::Half { 'h' } else { 'b' })?;
        self.digits().iter().try_for_each(|digit| write!(f, "{digit}"))
    }
}

/// The selectors that an operand takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selectable {
    /// One part: `.b0` to `.b3`, `.h0`, `.h1`.
    Part,
    /// Two halves of both sources together: `.h10`, digits 0 to 3.
    Halves,
    /// Four bytes of both sources together: `.b3210`, digits 0 to 7.
    Bytes,
    /// Halves of the destination: `.h0`, `.h1`, `.h10`.
    HalfMask,
    /// Bytes of the destination, in descending order: `.b0` to `.b3210`.
    ByteMask,
}

impl Selectable {
    /// Does the operand take this selector?
    pub fn allows(self, selector: Selector) -> bool {
        let digits = selector.digits();
        let falling = !digits.is_empty() && digits.is_sorted_by(|high, low| high > low);
        let below = |limit: u8| digits.iter().all(|&digit| digit < limit);
        match (self, selector.unit) {
            (Selectable::Part, Unit::Byte) => digits.len() == 1 && below(4),
            (Selectable::Part, Unit::Half) => digits.len() == 1 && below(2),
            (Selectable::Halves, unit) => unit == Unit::Half && digits.len() == 2,
            (Selectable::Bytes, unit) => unit == Unit::Byte && digits.len() == 4,
            (Selectable::HalfMask, unit) => unit == Unit::Half && falling && below(2),
            (Selectable::ByteMask, unit) => unit == Unit::Byte && falling && below(4),
        }
    }

    /// The selectors in words.
    pub fn describe(self) -> &'static str {
        match self {
            Selectable::Part => ".b0 .b1 .b2 .b3 .h0 .h1",
            Selectable::Halves => ".h and two digits from 0 to 3, such as .h10",
            Selectable::Bytes => ".b and four digits from 0 to 7, such as .b3210",
            Selectable::HalfMask => ".h0 .h1 .h10",
            Selectable::ByteMask => ".b and falling digits from 3 to 0, such as .b20",
        }
    }
}

/// The selectors and signs on the operands of a video instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parts {
    /// The selectors of `d`, `a`, `b` and `c`.
    pub selectors: [Option<Selector>; 4],
    /// The product of `a` and `b` is negated: one of them has a minus.
    pub negated_product: bool,
    /// `c` is negated.
    pub negated_addend: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_and_printed() {
        for text in ["h0", "h1", "h10", "h33", "b0", "b3", "b3210", "b7654", "b0000"] {
            assert_eq!(Selector::parse(text).map(|s| s.to_string()), Some(format!(".{text}")));
        }
        for wrong in ["", "x", "h4", "b8", "h44", "b32107", "b0x", "hh", "B0"] {
            assert_eq!(Selector::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn operands_take_their_own_selectors() {
        let allowed =
            |selectable: Selectable, text| Selector::parse(text).is_some_and(|s| selectable.allows(s));
        let cases = [
            (Selectable::Part, "b3", "b4"),
            (Selectable::Part, "h1", "h2"),
            (Selectable::Part, "b0", "b"),
            (Selectable::Halves, "h33", "h3"),
            (Selectable::Halves, "h10", "b10"),
            (Selectable::Bytes, "b0777", "b077"),
            (Selectable::HalfMask, "h10", "h01"),
            (Selectable::HalfMask, "h1", "h2"),
            (Selectable::ByteMask, "b20", "b02"),
            (Selectable::ByteMask, "b3210", "b00"),
            (Selectable::ByteMask, "b3", "b"),
        ];
        for (selectable, good, bad) in cases {
            assert!(allowed(selectable, good), "{selectable:?} {good}");
            assert!(!allowed(selectable, bad), "{selectable:?} {bad}");
        }
    }
}
