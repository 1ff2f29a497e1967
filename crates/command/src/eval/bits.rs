//! Conversions between bits and the values of a type.

use isa::{Kind, Type};
use sem::convert::convert_float;
use sem::format::{F64, Format, Specials};
use sem::round::Mode;

use crate::alone::ones;
use crate::array::{DType, is_hex, parse_float, parse_integer};

/// `0x7e00`, as wide as the type; a predicate is 0 or 1.
pub fn hex(ty: Type, bits: u64) -> String {
    match ty {
        Type::Pred => bits.to_string(),
        _ => format!("0x{bits:0width$x}", width = ty.bits().div_ceil(4) as usize),
    }
}

/// `0x7e00 = NaN (quiet)`; only the bits for a packed value, see [`lanes`].
pub fn describe(ty: Type, bits: u64) -> String {
    if ty.lanes() > 1 { hex(ty, bits) } else { format!("{} = {}", hex(ty, bits), value(ty, bits)) }
}

/// The elements of a packed value, lowest first.
pub fn lanes(ty: Type, bits: u64) -> impl Iterator<Item = u64> {
    // A 6-bit element occupies a byte.
    let width = ty.bits() / ty.lanes();
    (0..ty.lanes()).map(move |lane| bits >> (lane * width) & ones(width))
}

/// The value of a scalar.
pub fn value(ty: Type, bits: u64) -> String {
    match (Format::of(ty), ty.kind()) {
        (Some(format), _) => float(ty, format, bits),
        (None, _) if ty == Type::Ue8m0 => match bits {
            0xff => "NaN".to_owned(),
            _ => decimal(2f64.powi(bits as i32 - 127), 2f64.powi(bits as i32 - 127)),
        },
        (None, _) if ty == Type::S2f6 => (f64::from(bits as u8 as i8) / 64.0).to_string(),
        (None, Kind::Predicate) => if bits == 0 { "false" } else { "true" }.to_owned(),
        (None, Kind::Signed) => {
            let shift = 64 - ty.bits();
            ((bits << shift) as i64 >> shift).to_string()
        }
        _ => bits.to_string(),
    }
}

fn float(ty: Type, format: &Format, bits: u64) -> String {
    let magnitude = bits & format.magnitude_mask();
    let sign = if bits & format.sign() == 0 { "" } else { "-" };
    if format.is_nan(bits) {
        let negative = if sign.is_empty() { "" } else { ", sign set" };
        let quiet = magnitude >> (format.fraction_bits + format.padding - 1) & 1 != 0;
        return match format.specials {
            Specials::InfinityAndNan => {
                format!("NaN ({}{negative})", if quiet { "quiet" } else { "signalling" })
            }
            _ => "NaN".to_owned(),
        };
    }
    if format.specials == Specials::InfinityAndNan && magnitude == format.infinity() {
        return format!("{sign}inf");
    }
    let subnormal = magnitude != 0 && magnitude < format.min_normal();
    let note = if subnormal { " (subnormal)" } else { "" };
    format!("{sign}{}{note}", magnitude_text(ty, format, magnitude))
}

/// The shortest decimal of at least three digits that is closer to this number than to any other of the format.
fn magnitude_text(ty: Type, format: &Format, magnitude: u64) -> String {
    if ty == Type::F64 {
        return decimal(f64::from_bits(magnitude), f64::from_bits(magnitude));
    }
    let stored = (magnitude >> format.padding) as i32;
    let field = stored >> format.fraction_bits;
    let fraction = stored & ((1 << format.fraction_bits) - 1);
    // binary64 represents the numbers of all narrower formats exactly, and also the midpoints between them.
    let (significand, exponent) = match field {
        0 => (fraction, format.min_exponent()),
        _ => (fraction | 1 << format.fraction_bits, format.min_exponent() + field - 1),
    };
    let unit = 2f64.powi(exponent - format.fraction_bits as i32);
    let exact = f64::from(significand) * unit;
    let candidates = (2..=9).filter_map(|digits| format!("{exact:.digits$e}").parse::<f64>().ok());
    let near = candidates.filter(|candidate| (candidate - exact).abs() < unit / 4.0).take(1).next();
    decimal(near.unwrap_or(exact), exact)
}

fn decimal(shown: f64, exact: f64) -> String {
    if exact.fract() == 0.0 && exact < 1e7 {
        return exact.to_string();
    }
    if (1e-5..1e16).contains(&exact) { shown.to_string() } else { format!("{shown:e}") }
}

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
    fn bits_are_described() {
        for (ty, bits, text) in [
            (Type::F16, 0x7e00, "0x7e00 = NaN (quiet)"),
            (Type::F16, 0xfc01, "0xfc01 = NaN (signalling, sign set)"),
            (Type::F16, 1, "0x0001 = 5.96e-8 (subnormal)"),
            (Type::F16, 0x3c01, "0x3c01 = 1.001"),
            (Type::F16, 0xfc00, "0xfc00 = -inf"),
            (Type::F16, 0x8000, "0x8000 = -0"),
            (Type::F16, 0x7bff, "0x7bff = 65504"),
            (Type::Bf16, 0x3fc0, "0x3fc0 = 1.5"),
            (Type::F32, 0x3dcccccd, "0x3dcccccd = 0.1"),
            (Type::F32, 0x7f7fffff, "0x7f7fffff = 3.4028235e38"),
            (Type::F32, 1, "0x00000001 = 1.4e-45 (subnormal)"),
            (Type::F64, 0x3fb999999999999a, "0x3fb999999999999a = 0.1"),
            (Type::E4m3, 0x7f, "0x7f = NaN"),
            (Type::E4m3, 0xc0, "0xc0 = -2"),
            (Type::E5m2, 0x7c, "0x7c = inf"),
            (Type::E2m3, 0x1f, "0x1f = 7.5"),
            (Type::E3m2, 0x21, "0x21 = -0.0625 (subnormal)"),
            (Type::E2m1, 0x9, "0x9 = -0.5 (subnormal)"),
            (Type::S2f6, 0xe0, "0xe0 = -0.5"),
            (Type::Ue5m3, 0xfe, "0xfe = 114688"),
            (Type::Ue8m0, 0x7f, "0x7f = 1"),
            (Type::Ue8m0, 0xff, "0xff = NaN"),
            (Type::Tf32, 0x3f9e0000, "0x3f9e0000 = 1.2344"),
            (Type::S16, 0xffff, "0xffff = -1"),
            (Type::B64, u64::MAX, "0xffffffffffffffff = 18446744073709551615"),
            (Type::Pred, 1, "1 = true"),
        ] {
            assert_eq!(describe(ty, bits), text);
        }
    }

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
