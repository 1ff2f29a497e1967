//! Formatted output of `vprintf`: C format strings as in CUDA's `printf` (CUDA C++ Programming Guide, "Formatted Output").

/// The source of the values for a format string.
pub trait Arguments {
    /// Why a value cannot be read.
    type Error;

    /// The next value: `bytes` (4 or 8) bytes of the argument buffer, at their natural alignment.
    fn next(&mut self, bytes: u32) -> Result<u64, Self::Error>;

    /// The text at a generic address, up to its NUL or to `limit` bytes.
    fn string(&mut self, address: u64, limit: usize) -> Result<Vec<u8>, Self::Error>;

    /// The error of a call that asks for this many bytes, more than [`MOST`], and prints nothing.
    fn too_long(&self, bytes: usize) -> Self::Error;
}

/// `%[flags][width][.precision][length]conversion`
#[derive(Clone, Copy, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// A number in the format: digits, or a star that takes the value from the arguments.
enum Count {
    None,
    Fixed(usize),
    Argument,
}

/// The most bytes that one call may print. `%999999999d` asks for a gigabyte, which C would print.
pub const MOST: usize = 16 << 20;

/// The most fraction digits of a binary64 (those of the smallest subnormal). It has no more significant digits, either.
const DIGITS: usize = 1074;

/// Appends the formatted text to `out` and returns the number of values that it used. Text that is not a conversion is
/// copied unchanged.
///
/// # Errors
/// The errors of `arguments`, including [`Arguments::too_long`]. `out` then has the text up to the failing conversion.
pub fn print<A: Arguments>(format: &[u8], arguments: &mut A, out: &mut Vec<u8>) -> Result<u32, A::Error> {
    let mut taken = 0;
    let start = out.len();
    let mut rest = format;
    while let Some(percent) = rest.iter().position(|&b| b == b'%') {
        out.extend_from_slice(&rest[..percent]);
        rest = &rest[percent..];
        if rest.get(1) == Some(&b'%') {
            out.push(b'%');
            rest = &rest[2..];
            continue;
        }
        let Some((mut spec, width, precision, bytes, conversion, length)) = parse(rest) else {
            out.push(b'%');
            rest = &rest[1..];
            continue;
        };
        let mut next = |bytes| {
            taken += 1;
            arguments.next(bytes)
        };
        match width {
            Count::None => {}
            Count::Fixed(n) => spec.width = n,
            Count::Argument => {
                let n = next(4)? as i32;
                spec.left |= n < 0;
                spec.width = n.unsigned_abs() as usize;
            }
        }
        match precision {
            Count::None => {}
            Count::Fixed(n) => spec.precision = Some(n),
            Count::Argument => spec.precision = usize::try_from(next(4)? as i32).ok(),
        }
        let value = next(bytes)?;
        let mut text = Vec::new();
        if conversion == b's' {
            let limit = spec.precision.unwrap_or(usize::MAX);
            text = match value {
                0 => b"(null)"[..limit.min(6)].to_vec(),
                address => arguments.string(address, limit)?,
            };
        }
        let bytes_so_far = (out.len() - start).saturating_add(spec.least(conversion).max(text.len()));
        if bytes_so_far > MOST {
            return Err(arguments.too_long(bytes_so_far));
        }
        match conversion {
            b's' => spec.pad(out, b"", &text, false),
            b'c' => spec.pad(out, b"", &[value as u8], false),
            b'p' if value == 0 => spec.pad(out, b"", b"(nil)", false),
            b'p' => spec.pad(out, b"0x", format!("{value:x}").as_bytes(), false),
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => spec.integer(out, value, bytes, &length, conversion),
            _ => spec.float(out, f64::from_bits(value), conversion),
        }
        rest = &rest[length.end..];
    }
    out.extend_from_slice(rest);
    Ok(taken)
}

/// The length modifier, and the end of the conversion.
struct Length {
    /// Significant bits of an integer: 8 for `hh`, 16 for `h`.
    bits: u32,
    end: usize,
}

/// Parses a conversion, whose first byte is `%`: flags, width, precision, bytes of the value, conversion and length.
/// `None` if the text is not a conversion.
fn parse(text: &[u8]) -> Option<(Spec, Count, Count, u32, u8, Length)> {
    let mut at = 1;
    let mut spec = Spec::default();
    loop {
        match text.get(at)? {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        at += 1;
    }
    let count = |at: &mut usize| {
        if text.get(*at) == Some(&b'*') {
            *at += 1;
            return Count::Argument;
        }
        let digits = text[*at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let number = text[*at..*at + digits].iter();
        let number = number.fold(0usize, |n, b| n.saturating_mul(10).saturating_add(usize::from(b - b'0')));
        *at += digits;
        if digits == 0 { Count::None } else { Count::Fixed(number) }
    };
    let width = count(&mut at);
    let mut precision = Count::None;
    if text.get(at) == Some(&b'.') {
        at += 1;
        precision = match count(&mut at) {
            Count::None => Count::Fixed(0),
            other => other,
        };
    }
    let lengths: [(&[u8], u32, u32); 8] = [
        (b"hh", 4, 8),
        (b"h", 4, 16),
        (b"ll", 8, 64),
        (b"l", 8, 64),
        (b"j", 8, 64),
        (b"z", 8, 64),
        (b"t", 8, 64),
        (b"", 4, 32),
    ];
    let (name, bytes, bits) = lengths.into_iter().find(|(name, ..)| text[at..].starts_with(name))?;
    at += name.len();
    let conversion = *text.get(at)?;
    let bytes = match conversion {
        b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => bytes,
        b'c' => 4,
        b's' | b'p' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => 8,
        _ => return None,
    };
    Some((spec, width, precision, bytes, conversion, Length { bits, end: at + 1 }))
}

impl Spec {
    /// The least number of bytes that a conversion prints: its width or its digits.
    fn least(&self, conversion: u8) -> usize {
        let digits = match conversion {
            b's' | b'c' | b'p' => 0,
            // Trailing zeros are not printed.
            b'g' | b'G' if !self.alternate => 0,
            _ => self.precision.unwrap_or(0),
        };
        self.width.max(digits)
    }

    /// Writes `prefix` and `body`, padded to the width with blanks, or with zeros between the two.
    fn pad(&self, out: &mut Vec<u8>, prefix: &[u8], body: &[u8], zeros: bool) {
        let fill = self.width.saturating_sub(prefix.len() + body.len());
        let zeros = zeros && !self.left;
        if !self.left && !zeros {
            out.resize(out.len() + fill, b' ');
        }
        out.extend_from_slice(prefix);
        if zeros {
            out.resize(out.len() + fill, b'0');
        }
        out.extend_from_slice(body);
        if self.left {
            out.resize(out.len() + fill, b' ');
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match negative {
            true => "-",
            false if self.plus => "+",
            false if self.space => " ",
            false => "",
        }
    }

    fn integer(&self, out: &mut Vec<u8>, value: u64, bytes: u32, length: &Length, conversion: u8) {
        let unused = 64 - length.bits.min(bytes * 8);
        let unsigned = value << unused >> unused;
        let signed = (value << unused) as i64 >> unused;
        let (mut prefix, mut digits) = match conversion {
            b'd' | b'i' => (self.sign(signed < 0), signed.unsigned_abs().to_string()),
            b'u' => ("", unsigned.to_string()),
            b'o' => ("", format!("{unsigned:o}")),
            b'x' => ("0x", format!("{unsigned:x}")),
            _ => ("0X", format!("{unsigned:X}")),
        };
        if matches!(conversion, b'x' | b'X') && (!self.alternate || unsigned == 0) {
            prefix = "";
        }
        if let Some(least) = self.precision {
            if least == 0 && unsigned == 0 {
                digits.clear();
            }
            digits.insert_str(0, &"0".repeat(least.saturating_sub(digits.len())));
        }
        if conversion == b'o' && self.alternate && !digits.starts_with('0') {
            digits.insert(0, '0');
        }
        self.pad(out, prefix.as_bytes(), digits.as_bytes(), self.zero && self.precision.is_none());
    }

    fn float(&self, out: &mut Vec<u8>, value: f64, conversion: u8) {
        let upper = conversion.is_ascii_uppercase();
        let case = |text: String| if upper { text.to_ascii_uppercase() } else { text };
        let mut prefix = self.sign(value.is_sign_negative()).to_owned();
        let magnitude = value.abs();
        if !magnitude.is_finite() {
            let text = if magnitude.is_nan() { "nan" } else { "inf" };
            return self.pad(out, prefix.as_bytes(), case(text.to_owned()).as_bytes(), false);
        }
        let body = match conversion.to_ascii_lowercase() {
            b'e' => exponential(magnitude, self.precision.unwrap_or(6), self.alternate),
            b'f' => fixed(magnitude, self.precision.unwrap_or(6), self.alternate),
            b'g' => general(magnitude, self.precision.unwrap_or(6).max(1), self.alternate),
            _ => {
                prefix.push_str("0x");
                hexadecimal(magnitude, self.precision, self.alternate)
            }
        };
        self.pad(out, case(prefix).as_bytes(), case(body).as_bytes(), self.zero);
    }
}

/// `%f`
fn fixed(value: f64, precision: usize, point: bool) -> String {
    let (dot, shown) = (if precision == 0 && point { "." } else { "" }, precision.min(DIGITS));
    format!("{value:.shown$}{dot}{}", "0".repeat(precision - shown))
}

/// `%e`: the exponent has a sign and at least two digits.
fn exponential(value: f64, precision: usize, point: bool) -> String {
    let shown = precision.min(DIGITS);
    let text = format!("{value:.shown$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (dot, zeros) = (if precision == 0 && point { "." } else { "" }, "0".repeat(precision - shown));
    format!("{digits}{dot}{zeros}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `%g`: `precision` significant digits, in the shorter of the forms of `%e` and `%f`, without trailing zeros.
fn general(value: f64, precision: usize, keep_zeros: bool) -> String {
    let precision = if keep_zeros { precision } else { precision.min(DIGITS) };
    let scientific = exponential(value, precision - 1, keep_zeros);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let x: i32 = exponent.parse().unwrap_or(0);
    let trim = |digits: &str| match digits.contains('.') && !keep_zeros {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if x < -4 || x >= precision as i32 {
        return format!("{}e{exponent}", trim(digits));
    }
    trim(&fixed(value, (precision as i32 - 1 - x) as usize, keep_zeros))
}

/// `%a` after its `0x`: one digit before the point, and a binary exponent.
fn hexadecimal(value: f64, precision: Option<usize>, point: bool) -> String {
    const DIGITS: usize = 13;
    let bits = value.to_bits();
    let (biased, mut fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    // Subnormal numbers have the smallest exponent and 0 before the point.
    let exponent = if bits == 0 { 0 } else { biased.max(1) - 1023 };
    let mut lead = u64::from(biased > 0);
    let mut digits = DIGITS;
    match precision {
        Some(wanted) if wanted < DIGITS => {
            // Round to nearest even.
            let dropped = 4 * (DIGITS - wanted) as u32;
            let whole = lead << 52 | fraction;
            let (kept, rest, half) = (whole >> dropped, whole & ((1 << dropped) - 1), 1u64 << (dropped - 1));
            let kept = kept + u64::from(rest > half || rest == half && kept & 1 == 1);
            lead = kept >> (4 * wanted);
            fraction = kept & ((1 << (4 * wanted)) - 1);
            digits = wanted;
        }
        Some(_) => {}
        None => {
            while digits > 0 && fraction & 0xf == 0 {
                fraction >>= 4;
                digits -= 1;
            }
        }
    }
    let zeros = "0".repeat(precision.unwrap_or(0).saturating_sub(DIGITS));
    let dot = if digits > 0 || point { "." } else { "" };
    let fraction = if digits > 0 { format!("{fraction:0digits$x}") } else { String::new() };
    format!("{lead}{dot}{fraction}{zeros}p{exponent:+}")
}

/// A message for users.
pub fn why_too_long(bytes: usize) -> String {
    format!("one call asks for {bytes} bytes of text, by its widths and precisions; it may print {MOST}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values in order, and texts by index.
    struct List<'a>(std::iter::Copied<std::slice::Iter<'a, u64>>, &'a [&'a str]);

    impl Arguments for List<'_> {
        type Error = ();

        fn next(&mut self, bytes: u32) -> Result<u64, ()> {
            let value = self.0.next().ok_or(())?;
            Ok(if bytes == 4 { u64::from(value as u32) } else { value })
        }

        fn string(&mut self, address: u64, limit: usize) -> Result<Vec<u8>, ()> {
            let text = self.1.get(address as usize - 1).ok_or(())?.as_bytes();
            Ok(text[..text.len().min(limit)].to_vec())
        }

        fn too_long(&self, _: usize) {}
    }

    #[track_caller]
    fn check(format: &str, values: &[u64], wanted: &str) {
        let mut out = Vec::new();
        let taken = print(format.as_bytes(), &mut List(values.iter().copied(), &["abc", ""]), &mut out);
        assert_eq!((String::from_utf8(out).unwrap().as_str(), taken), (wanted, Ok(values.len() as u32)));
    }

    /// Expected results from glibc 2.36 for the same formats and values.
    #[test]
    fn conversions_are_those_of_c() {
        let f = f64::to_bits;
        let i = |x: i64| x as u64;
        check("plain, 100%%\n", &[], "plain, 100%\n");
        check("%d %i %5d|%-5d|%05d|%+d|% d", &[1, i(-2), 3, 4, i(-5), 6, 7], "1 -2     3|4    |-0005|+6| 7");
        check("%u %o %x %X %#x %#o %#X", &[i(-1), 8, 255, 255, 255, 8, 0], "4294967295 10 ff FF 0xff 010 0");
        check(
            "%hd %hhu %ld %lld %lx %zu",
            &[65535, 511, i(-1), i64::MIN as u64, i(-1), 9],
            "-1 255 -1 -9223372036854775808 ffffffffffffffff 9",
        );
        check(
            "%.3d|%8.3d|%-8.3d|%08.3d|%.0d|%+.2d",
            &[5, 5, 5, 5, 0, 5],
            "005|     005|005     |     005||+05",
        );
        check("%*d|%-*d|%*d|%.*f", &[4, 1, 4, 2, i(-4), 3, 2, f(1.005)], "   1|2   |3   |1.00");
        check("%c%c %5c|%-3c|", &[104, 105, 120, 121], "hi     x|y  |");
        check("%s|%5s|%-5s|%.2s|%s|%s", &[1, 1, 1, 1, 2, 0], "abc|  abc|abc  |ab||(null)");
        check("%p %p %8p", &[0x1234, 0, 0x10], "0x1234 (nil)     0x10");
        check(
            "%f %.0f %#.0f %10.3f|%-10.1f|%010.2f",
            &[f(1.5), f(2.5), f(2.0), f(3.1418), f(-1.25), f(-1.0)],
            "1.500000 2 2.      3.142|-1.2      |-000001.00",
        );
        check(
            "%e %E %.0e %#.0e %.2e",
            &[f(12345.678), f(1e-10), f(5.0), f(5.0), f(0.0)],
            "1.234568e+04 1.000000E-10 5e+00 5.e+00 0.00e+00",
        );
        check("%e %.3e", &[f(1e300), f(1e-300)], "1.000000e+300 1.000e-300");
        check(
            "%g %g %g %g %g %G",
            &[f(100000.0), f(1e6), f(0.0001), f(0.00001), f(0.1), f(1e-7)],
            "100000 1e+06 0.0001 1e-05 0.1 1E-07",
        );
        check(
            "%#g %.3g %.0g %g %10g|",
            &[f(1.0), f(1234.5), f(99.0), f(0.0), f(2.5)],
            "1.00000 1.23e+03 1e+02 0        2.5|",
        );
        check(
            "%a %a %a %A %.2a %.0a %a",
            &[f(1.0), f(0.1), f(-0.5), f(255.5), f(1.999), f(1.5), f(0.0)],
            "0x1p+0 0x1.999999999999ap-4 -0x1p-1 0X1.FFP+7 0x2.00p+0 0x2p+0 0x0p+0",
        );
        check(
            "%a %.15a %020a",
            &[f(5e-324), f(1.0), f(1.0)],
            "0x0.0000000000001p-1022 0x1.000000000000000p+0 0x000000000000001p+0",
        );
        check(
            "%f %F %e %g %5.1f|%-6f|%06f",
            &[
                f(f64::INFINITY),
                f(f64::INFINITY),
                f(f64::NAN),
                f(-f64::INFINITY),
                f(f64::NAN),
                f(f64::INFINITY),
                f(f64::NAN),
            ],
            "inf INF nan -inf   nan|inf   |   nan",
        );
    }

    #[test]
    fn what_is_no_conversion_is_copied() {
        check("%y %", &[], "%y %");
        check("100%, %5", &[], "100%, %5");
    }

    #[test]
    fn what_would_take_all_memory_is_refused() {
        let print = |format: &str, values: &[u64]| {
            let mut out = Vec::new();
            let printed = print(format.as_bytes(), &mut List(values.iter().copied(), &["abc"]), &mut out);
            (printed, out.len())
        };
        let huge = i64::from(i32::MIN) as u64;
        for format in [
            "%999999999d",
            "%.999999999d",
            "%99999999999999999999s",
            "%999999999c",
            "%-999999999p",
            "%.999999999x",
        ] {
            assert_eq!(print(format, &[1]), (Err(()), 0), "{format}");
        }
        for format in ["%.999999999f", "%.999999999e", "%#.999999999g", "%.999999999a", "%999999999g"] {
            assert_eq!(print(format, &[1f64.to_bits()]), (Err(()), 0), "{format}");
        }
        assert_eq!(print("%*d", &[huge, 1]), (Err(()), 0));
        assert_eq!(print("%.*d", &[huge, 1]), (Ok(2), 1));
        assert_eq!(print("%9999999d%9999999d", &[1, 1]), (Err(()), 9_999_999));
        assert_eq!(print("%16777216d", &[1]), (Ok(1), MOST));
        assert_eq!(print("%16777217d", &[1]), (Err(()), 0));
        // These print no more than the value has.
        assert_eq!(print("%.999999999g", &[0.1f64.to_bits()]), (Ok(1), 57));
        assert_eq!(print("%.999999999s", &[1]), (Ok(1), 3));
    }

    /// Compares with the C library of this machine, also for more digits than any number has.
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    #[test]
    fn random_formats_print_what_the_c_library_prints() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let counts = ["", "0", "1", "7", "20", "300", "1074", "1075", "65535", "65536", "70000"];
        for round in 0..20_000 {
            let conversion = b"diuoxXcfFeEgGaA"[random(15) as usize] as char;
            let flags: String = "-+ #0".chars().filter(|_| random(3) == 0).collect();
            // Long texts are slow.
            let most = if round % 20 == 0 { counts.len() as u64 } else { 6 };
            let (width, precision) = (counts[random(most) as usize], counts[random(most) as usize]);
            let point =
                if random(2) == 0 && conversion != 'c' { format!(".{precision}") } else { String::new() };
            let format = format!("{flags}{}{point}", width.trim_start_matches('0'));
            let is_float = "fFeEgGaA".contains(conversion);
            let exponent = random(2047) << 52;
            let value = match random(4) {
                0 if is_float => (random(2000) as f64 / 8.0).to_bits(),
                0 => random(300),
                1 if is_float => exponent,
                1 => 0,
                _ if is_float => exponent | random(1 << 31) << 21 | random(2) << 63,
                _ => random(1 << 31) << random(2) | random(2) << 31,
            };
            let format = std::ffi::CString::new(format!("<%{format}{conversion}>")).unwrap();
            let mut wanted = vec![0u8; 80_000];
            // SAFETY: the buffer has `bytes` bytes, and there is one value of the type that the conversion takes.
            let length = unsafe {
                let (to, bytes) = (wanted.as_mut_ptr().cast(), wanted.len());
                match is_float {
                    true => libc::snprintf(to, bytes, format.as_ptr(), f64::from_bits(value)),
                    false => libc::snprintf(to, bytes, format.as_ptr(), value as u32),
                }
            };
            wanted.truncate(usize::try_from(length).unwrap());
            let mut out = Vec::new();
            print(format.as_bytes(), &mut List([value].iter().copied(), &[]), &mut out).unwrap();
            assert!(out == wanted, "{format:?} of {value:#x}");
        }
    }
}
