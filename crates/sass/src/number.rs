//! Immediates as text: FP16 and BF16 numbers in nvdisasm's spelling.

use isa::Rounding;
use sem::convert::convert_float;
use sem::format::{BF16, F16, F64, Format, Specials};
use sem::round::Mode;

/// The upper 10 bits of an FP16, which fit an immediate of Maxwell.
const F16_UPPER: Format = Format {
    exponent_bits: 5,
    fraction_bits: 4,
    padding: 6,
    specials: Specials::InfinityAndNan,
    nan: 0x7e00,
};

/// The format of an immediate's halves.
pub(crate) fn format(bf16: bool, upper_only: bool) -> &'static Format {
    match (bf16, upper_only) {
        (true, _) => &BF16,
        (false, true) => &F16_UPPER,
        (false, false) => &F16,
    }
}

/// Appends a number as nvdisasm prints it; `bf16` gives the format of the bits.
pub(crate) fn print(text: &mut String, bf16: bool, bits: u16) {
    let format = if bf16 { &BF16 } else { &F16 };
    let bits = u64::from(bits);
    let negative = bits & format.sign() != 0;
    let magnitude = bits & format.magnitude_mask();
    if format.is_nan(bits) {
        text.push_str(if negative { "-QNAN " } else { "+QNAN " });
    } else if magnitude == format.infinity() {
        text.push_str(if negative { "-INF " } else { "+INF " });
    } else if magnitude == 0 {
        text.push_str(if negative { "-0.0 " } else { "0" });
    } else {
        // Exact: both formats are subsets of binary64.
        let value = f64::from_bits(convert_float(format, &F64, Mode::NEAREST, bits));
        if value.abs() > 1e9 { exponential(text, value, 20) } else { general(text, value) }
    }
}

/// C's `%.{digits}e`.
fn exponential(text: &mut String, value: f64, digits: usize) {
    let written = format!("{value:.digits$e}");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    text.push_str(&format!("{mantissa}e{sign}{:02}", exponent.abs()));
}

/// C's `%.20g` of a nonzero number.
fn general(text: &mut String, value: f64) {
    let written = format!("{value:.19e}");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    if exponent < -4 {
        text.push_str(&format!("{mantissa}e-{:02}", -exponent));
        return;
    }
    // The mantissa has all significant digits, so this many decimals show the same number.
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    let decimals = (digits - 1 - exponent).max(0) as usize;
    text.push_str(&format!("{value:.decimals$}"));
}

/// Parses a number or `INF`, `QNAN`, `SNAN`, `NAN`, with an optional sign; `None` if the text is none of these. The
/// second part is whether the result equals the written number.
pub(crate) fn parse(text: &str, format: &Format) -> Option<(u16, bool)> {
    let (negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let quiet = 1 << (format.fraction_bits + format.padding - 1);
    let (bits, exact) = match magnitude.to_ascii_uppercase().as_str() {
        "INF" => (format.infinity(), true),
        "QNAN" | "NAN" => (format.infinity() | quiet, true),
        "SNAN" => (format.infinity() | quiet >> 1, true),
        _ if !magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') => return None,
        _ => {
            let value: f64 = magnitude.parse().ok()?;
            let bits = convert_float(&F64, format, Mode::rounding(Rounding::NearestEven), value.to_bits());
            let back = f64::from_bits(convert_float(format, &F64, Mode::NEAREST, bits));
            // Overflow or underflow even in binary64.
            let lost = value.is_infinite() || value == 0.0 && has_digit(magnitude);
            // nvdisasm prints 20 digits; some BF16 numbers have more.
            (bits, !lost && (back == value || (back - value).abs() <= value * 1e-15))
        }
    };
    Some(((bits | if negative { format.sign() } else { 0 }) as u16, exact))
}

/// Whether a nonzero digit precedes the exponent.
fn has_digit(number: &str) -> bool {
    number.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).any(|byte| matches!(byte, b'1'..=b'9'))
}
