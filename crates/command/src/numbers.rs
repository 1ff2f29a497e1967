//! Numbers of bytes, elements and steps, as people write them.

/// `1024`, `1e6`, `48K`: `K`, `M` and `G` are powers of 1024, `e6` is a power of ten.
///
/// # Errors
/// When it is not such a number, or exceeds 64 bits.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size (write 4096, 48K, 2M, 1G or 1e6)");
    let (text_digits, factor) =
        match text.strip_suffix("iB").or_else(|| text.strip_suffix('B')).unwrap_or(text) {
            number if number.ends_with(['k', 'K']) => (&number[..number.len() - 1], 1 << 10),
            number if number.ends_with('M') => (&number[..number.len() - 1], 1 << 20),
            number if number.ends_with('G') => (&number[..number.len() - 1], 1 << 30),
            // `48B` and `48iB` are not accepted.
            number if number.len() < text.len() => return Err(wrong()),
            number => (number, 1),
        };
    let (digits, exponent) = text_digits.split_once(['e', 'E']).unwrap_or((text_digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(digits) || !is_number(exponent) {
        return Err(wrong());
    }
    let value = || {
        let power = 10u64.checked_pow(exponent.parse().ok()?)?;
        digits.parse::<u64>().ok()?.checked_mul(power)?.checked_mul(factor)
    };
    value().ok_or_else(|| format!("`{text}` does not fit 64 bits"))
}

/// A number with a comma between thousands: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_parted() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, value) in [
            ("0", 0),
            ("4096", 4096),
            ("1e6", 1_000_000),
            ("48K", 48 << 10),
            ("48k", 48 << 10),
            ("48KiB", 48 << 10),
            ("2MB", 2 << 20),
            ("1G", 1 << 30),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(value), "{text}");
        }
        for text in [
            "",
            "-4",
            "K",
            "1.5",
            "e6",
            "1e",
            "1e20",
            "48B",
            "48iB",
            "4x",
            "18446744073709551616",
            "17179869184G",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
