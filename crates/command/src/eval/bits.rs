//! Literals as bits of a type.

use isa::Type;
use sem::convert::convert_float;
use sem::format::{F64, Format};
use sem::round::Mode;

pub use sem::bits::{describe, hex, lanes, value};

use crate::array::{DType, is_hex, parse_float, parse_integer};

/// The forms of literals, for help texts.
pub const LITERALS: &str = "bits as 0x3c00, an integer 42 or -1, a float 1.5, inf or nan where the type is one, \
0f3F800000, true or false for a predicate, or the lanes of a packed value from the lowest on: 1.5,2";

/// The bits that a literal represents in a type.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str, ty: Type) -> Result<u64, String> {
    if ty == Type::Pred {
        return match text {
            "true" | "1" => Ok(1),
            "false" | "0" => Ok(0),
            _ => Err(format!("`{text}` is no predicate: write true or false")),
        };
    }
    let name = ty.to_string();
    let little_endian =
        |bytes: Vec<u8>| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
    if is_hex(text) {
        return parse_integer(text, ty.bits(), &name).map(little_endian);
    }
    if let Some(bits) = float_bits(text, ty) {
        return bits;
    }
    if ty.lanes() > 1 {
        let parts: Vec<&str> = text.split(',').collect();
        let (lanes, element) = (ty.lanes() as usize, ty.element());
        if parts.len() != lanes || element.lanes() > 1 {
            return Err(format!("`{text}` is no {ty}: write its bits (0x..) or its {lanes} lanes (1,2)"));
        }
        let mut bits = 0;
        for (lane, part) in parts.iter().enumerate() {
            bits |= parse(part, element)? << (lane as u32 * (ty.bits() / ty.lanes()));
        }
        return Ok(bits);
    }
    match ty {
        Type::F16 => parse_float(text, DType::F16).map(little_endian),
        Type::Bf16 => parse_float(text, DType::Bf16).map(little_endian),
        Type::F32 => parse_float(text, DType::F32).map(little_endian),
        Type::F64 => parse_float(text, DType::F64).map(little_endian),
        _ => match Format::of(ty) {
            Some(format) => match text.parse::<f64>() {
                Ok(number) => Ok(convert_float(&F64, format, Mode::NEAREST, number.to_bits())),
                Err(_) => Err(format!("`{text}` is no number")),
            },
            None if ty == Type::S2f6 => match text.parse::<f64>() {
                Ok(number) if (number * 64.0).fract() == 0.0 && (-2.0..2.0).contains(&number) => {
                    Ok((number * 64.0) as i8 as u8 as u64)
                }
                _ => Err(format!("`{text}` is no number of 1/64 from -2 to 127/64")),
            },
            None => parse_integer(text, ty.bits(), &name).map(little_endian),
        },
    }
}

/// `0f3F800000`, `0d3FF0000000000000`: bits in PTX's syntax.
fn float_bits(text: &str, ty: Type) -> Option<Result<u64, String>> {
    let (digits, width) = match text.as_bytes() {
        [b'0', b'f' | b'F', ..] => (&text[2..], 32),
        [b'0', b'd' | b'D', ..] => (&text[2..], 64),
        _ => return None,
    };
    let digits_count = width as usize / 4;
    Some(match u64::from_str_radix(digits, 16) {
        Ok(bits) if digits.len() == digits_count && width == ty.bits() => Ok(bits),
        Ok(_) if digits.len() == digits_count => {
            Err(format!("`{text}` has {width} bits, and {ty} has {}", ty.bits()))
        }
        _ => Err(format!(
            "`{text}` must have {digits_count} hexadecimal digits after its first two characters"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_reads_back() {
        for ty in [Type::F16, Type::Bf16] {
            for bits in 0..=0xffff {
                let text = value(ty, bits);
                if !text.starts_with("NaN") {
                    let text = text.trim_end_matches(" (subnormal)");
                    assert_eq!(parse(text, ty), Ok(bits), "{text}");
                }
            }
        }
    }

    #[test]
    fn literals_are_read_by_type() {
        assert_eq!(parse("1", Type::F16), Ok(0x3c00));
        assert_eq!(parse("2,1", Type::F16x2), Ok(0x3c00_4000));
        assert_eq!(parse("1.5,-2", Type::E4m3x2), Ok(0xc03c));
        assert_eq!(parse("1.5,-2", Type::E2m1x2), Ok(0xc3));
        assert_eq!(parse("1.5,-2", Type::S2f6x2), Ok(0x8060));
        assert!(parse("2", Type::S2f6).is_err());
        assert_eq!(parse("-1", Type::U32), Ok(0xffff_ffff));
        assert_eq!(parse("0f3F800000", Type::F32), Ok(0x3f80_0000));
        assert_eq!(parse("0d3FF0000000000000", Type::B64), Ok(0x3ff0_0000_0000_0000));
        for (text, ty) in [
            ("1.5", Type::U32),
            ("0x10000", Type::F16),
            ("1", Type::F16x2),
            ("2", Type::Pred),
            ("0f3F8", Type::F32),
            ("0f3F800000", Type::F16),
            ("", Type::F32),
        ] {
            assert!(parse(text, ty).is_err(), "{text}");
        }
    }
}
