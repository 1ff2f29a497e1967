//! What the literals of PTX stand for (PTX ISA, "Constants").

use crate::tree::Literal;

/// The value of a numeric literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// An integer constant: decimal, octal (`017`), hexadecimal (`0x1F`) or binary (`0b101`), with or without `U`.
    Integer {
        /// The value modulo 2^64.
        value: u64,
        /// Whether it has the suffix `U`. Without it, it is signed if it fits.
        unsigned: bool,
        /// Whether the value as written does not fit into 64 bits.
        overflow: bool,
    },
    /// `0fXXXXXXXX`: the bits of a single-precision number.
    F32(u32),
    /// `0dXXXXXXXXXXXXXXXX` or a decimal number with a point or an exponent: the bits of a double-precision number.
    F64(u64),
}

impl Literal<'_> {
    /// The number that is written; `None` for a string.
    pub fn value(&self) -> Option<Value> {
        let text = self.text;
        let (mut digits, radix) = match text.as_bytes() {
            [b'0', b'f' | b'F', ..] => return u32::from_str_radix(&text[2..], 16).ok().map(Value::F32),
            [b'0', b'd' | b'D', ..] => return u64::from_str_radix(&text[2..], 16).ok().map(Value::F64),
            [b'0', b'x' | b'X', ..] => (&text[2..], 16),
            [b'0', b'b' | b'B', ..] => (&text[2..], 2),
            [b'0'..=b'9' | b'.', ..] if text.contains(['.', 'e', 'E']) => {
                return text.parse().ok().map(|value: f64| Value::F64(value.to_bits()));
            }
            [b'0', _, ..] => (&text[1..], 8),
            [b'0'..=b'9', ..] => (text, 10),
            _ => return None,
        };
        let unsigned = digits.ends_with(['u', 'U']);
        digits = digits.trim_end_matches(['u', 'U']);
        let (mut value, mut overflow) = (0u64, false);
        for digit in digits.chars() {
            let (scaled, too_large) = value.overflowing_mul(u64::from(radix));
            let (sum, carry) = scaled.overflowing_add(u64::from(digit.to_digit(radix)?));
            (value, overflow) = (sum, overflow | too_large | carry);
        }
        Some(Value::Integer { value, unsigned, overflow })
    }
}
