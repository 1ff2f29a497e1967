//! The values of PTX literals (PTX ISA, "Constants").

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
        /// Whether ptxas reports that the value does not fit 64 bits: bit 63 was set before the last digit.
        overflow: bool,
    },
    /// `0fXXXXXXXX`: the bits of a single-precision number.
    F32(u32),
    /// `0dXXXXXXXXXXXXXXXX` or a decimal number with a point or an exponent: the bits of a double-precision number.
    F64(u64),
}

impl Literal<'_> {
    /// The value of the literal; `None` for a string.
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
            overflow |= value > i64::MAX as u64;
            value = value.wrapping_mul(u64::from(radix)).wrapping_add(u64::from(digit.to_digit(radix)?));
        }
        Some(Value::Integer { value, unsigned, overflow })
    }
}

#[cfg(test)]
mod tests {
    use diag::Span;

    use super::*;

    fn value(text: &str) -> Option<Value> {
        Literal { text, span: Span::at(0) }.value()
    }

    fn integer(value: u64) -> Option<Value> {
        Some(Value::Integer { value, unsigned: false, overflow: false })
    }

    #[test]
    fn integers() {
        for (text, number) in [
            ("0", 0),
            ("10", 10),
            ("017", 15),
            ("0x1F", 31),
            ("0Xff", 255),
            ("0b101", 5),
            ("0B1", 1),
            ("00", 0),
            ("18446744073709551615", u64::MAX),
            ("0xFFFFFFFFFFFFFFFF", u64::MAX),
            ("01777777777777777777777", u64::MAX),
        ] {
            assert_eq!(value(text), integer(number), "{text}");
        }
        for text in ["2U", "0x2U", "02U", "0b10U"] {
            assert_eq!(
                value(text),
                Some(Value::Integer { value: 2, unsigned: true, overflow: false }),
                "{text}"
            );
        }
        // Like ptxas: many numbers of 65 bits and more are silently taken modulo 2^64.
        for (text, low, overflow) in [
            ("18446744073709551616", 0, false),
            ("36893488147419103233", 1, false),
            ("0x1FFFFFFFFFFFFFFFF", u64::MAX, false),
            ("0x7FFFFFFFFFFFFFFFF", u64::MAX, false),
            ("02000000000000000000001", 1, false),
            ("92233720368547758079", u64::MAX, false),
            ("92233720368547758080", 0, true),
            ("0x80000000000000001", 1, true),
            ("0x100000000000000001", 1, false),
        ] {
            assert_eq!(value(text), Some(Value::Integer { value: low, unsigned: false, overflow }), "{text}");
        }
    }

    #[test]
    fn floating_point_numbers() {
        assert_eq!(value("0f3F800000"), Some(Value::F32(0x3F80_0000)));
        assert_eq!(value("0FfFc00001"), Some(Value::F32(0xFFC0_0001)));
        assert_eq!(value("0d3FF0000000000000"), Some(Value::F64(0x3FF0_0000_0000_0000)));
        assert_eq!(value("0D7ff8000000000001"), Some(Value::F64(0x7FF8_0000_0000_0001)));
        for (text, number) in [
            ("1.", 1.0),
            (".5", 0.5),
            ("1.5e3", 1500.0),
            ("1E-3", 0.001),
            ("08.8", 8.8),
            ("1e999", f64::INFINITY),
        ] {
            assert_eq!(value(text), Some(Value::F64(f64::to_bits(number))), "{text}");
        }
    }

    #[test]
    fn what_is_no_number() {
        for text in ["\"7\"", "", "x", "0fxyz", "0x", "0b2", "9a"] {
            assert!(matches!(value(text), None | Some(Value::Integer { value: 0, .. })), "{text}");
        }
        assert_eq!(value("\"7\""), None);
    }
}
