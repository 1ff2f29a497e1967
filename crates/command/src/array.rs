//! Arrays on the host: element types, shapes, fill values, and their display.

use half::{bf16, f16};

use super::numbers::parse_size;

macro_rules! dtypes {
    ($($variant:ident $name:literal $npy:literal $bytes:literal $($alias:literal)*;)*) => {
        /// Type of an array's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl DType {
            /// The names that users may write, for help texts.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Its name in PTX (`bool` and `bytes` have none).
            pub fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Its name in `.npy` files. numpy has no bf16: its bits are saved as uint16.
            pub fn npy(self) -> &'static str {
                match self { $(DType::$variant => $npy,)* }
            }

            /// Size of an element.
            pub fn bytes(self) -> usize {
                match self { $(DType::$variant => $bytes,)* }
            }

            /// The type with this name in PTX, Rust or numpy.
            pub fn from_name(name: &str) -> Option<DType> {
                match name { $($name $(| $alias)* => Some(DType::$variant),)* _ => None }
            }

            /// The type with this name in `.npy` files.
            pub fn from_npy(descr: &str) -> Option<DType> {
                // bf16 comes last in the table, so that uint16 is found first.
                [$(DType::$variant),*].into_iter().find(|dtype| dtype.npy() == descr)
            }
        }
    };
}

dtypes! {
    U8 "u8" "|u1" 1 "uint8" "b8";
    U16 "u16" "<u2" 2 "uint16" "b16";
    U32 "u32" "<u4" 4 "uint32" "b32";
    U64 "u64" "<u8" 8 "uint64" "b64";
    S8 "s8" "|i1" 1 "int8" "i8";
    S16 "s16" "<i2" 2 "int16" "i16";
    S32 "s32" "<i4" 4 "int32" "i32";
    S64 "s64" "<i8" 8 "int64" "i64";
    F16 "f16" "<f2" 2 "float16";
    F32 "f32" "<f4" 4 "float32";
    F64 "f64" "<f8" 8 "float64";
    Bool "bool" "|b1" 1;
    Bytes "bytes" "|u1" 1;
    Bf16 "bf16" "<u2" 2 "bfloat16";
}

impl DType {
    /// Whether the elements are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
    }

    fn is_signed(self) -> bool {
        matches!(self, DType::S8 | DType::S16 | DType::S32 | DType::S64)
    }

    /// The little-endian bytes of one element, from a user's text: see [`parse_float`], [`parse_integer`].
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(self, text: &str) -> Result<Vec<u8>, String> {
        let bits = 8 * self.bytes() as u32;
        if self.is_float() && !is_hex(text) {
            return parse_float(text, self);
        }
        if self == DType::Bool && matches!(text, "true" | "false") {
            return Ok(vec![u8::from(text == "true")]);
        }
        parse_integer(text, bits, self.name())
    }

    /// The little-endian bytes of a number in a type of floats, rounded to nearest even.
    pub fn round(self, number: f64) -> Vec<u8> {
        match self {
            DType::F16 => f16::from_f64(number).to_le_bytes().to_vec(),
            DType::Bf16 => bf16::from_f64(number).to_le_bytes().to_vec(),
            DType::F32 => (number as f32).to_le_bytes().to_vec(),
            _ => number.to_le_bytes().to_vec(),
        }
    }

    /// One element as a number, rounded if it has more than 53 bits.
    pub fn to_f64(self, bytes: &[u8]) -> f64 {
        let bits = self.bits(bytes);
        match self {
            DType::F16 => f16::from_bits(bits as u16).to_f64(),
            DType::Bf16 => bf16::from_bits(bits as u16).to_f64(),
            DType::F32 => f32::from_bits(bits as u32).into(),
            DType::F64 => f64::from_bits(bits),
            _ if self.is_signed() => self.extend(bits) as f64,
            _ => bits as f64,
        }
    }

    /// The bits of one element.
    fn bits(self, bytes: &[u8]) -> u64 {
        let mut padded = [0; 8];
        let width = self.bytes().min(bytes.len());
        padded[..width].copy_from_slice(&bytes[..width]);
        u64::from_le_bytes(padded)
    }

    /// The value of the bits of a signed integer.
    fn extend(self, bits: u64) -> i64 {
        let shift = 64 - 8 * self.bytes();
        (bits << shift) as i64 >> shift
    }

    /// The bits of one element as a hexadecimal number.
    pub fn show_bits(self, bytes: &[u8]) -> String {
        format!("0x{:0width$x}", self.bits(bytes), width = 2 * self.bytes())
    }

    /// One element as text: decimal, the shortest that reads back as the same value.
    pub fn show(self, bytes: &[u8]) -> String {
        let bits = self.bits(bytes);
        match self {
            DType::F16 => {
                let value = f16::from_bits(bits as u16);
                show_half(value.to_f64(), |v| f16::from_f64(v).to_f64())
            }
            DType::Bf16 => {
                let value = bf16::from_bits(bits as u16);
                show_half(value.to_f64(), |v| bf16::from_f64(v).to_f64())
            }
            DType::F32 => {
                let value = f32::from_bits(bits as u32);
                show_decimal(value.into(), value.to_string(), || format!("{value:e}"))
            }
            DType::F64 => {
                let value = f64::from_bits(bits);
                show_decimal(value, value.to_string(), || format!("{value:e}"))
            }
            DType::Bool => (if bits == 0 { "false" } else { "true" }).to_owned(),
            _ if self.is_signed() => self.extend(bits).to_string(),
            _ => bits.to_string(),
        }
    }
}

/// Whether a number is written as raw bits.
pub fn is_hex(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

/// `1.5`, `42`, `-inf`, `nan`, rounded to nearest even in the type's format.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_float(text: &str, dtype: DType) -> Result<Vec<u8>, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is no number (write 1.5, inf, nan, or raw bits as 0x3f800000)"))?;
    // f32 is parsed from the text: going through f64 would round twice.
    let single: f32 = text.parse().unwrap_or(f32::NAN);
    let (bytes, overflow) = match dtype {
        DType::F16 => {
            let half = f16::from_f64(value);
            (half.to_le_bytes().to_vec(), half.is_infinite())
        }
        DType::Bf16 => {
            let half = bf16::from_f64(value);
            (half.to_le_bytes().to_vec(), half.is_infinite())
        }
        DType::F32 => (single.to_le_bytes().to_vec(), single.is_infinite()),
        _ => (value.to_le_bytes().to_vec(), value.is_infinite()),
    };
    let written_infinite = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf");
    if overflow && !written_infinite {
        return Err(format!("`{text}` is too large for {}", dtype.name()));
    }
    Ok(bytes)
}

/// `42`, `-1`, `1e6`, `48K` or raw bits `0x3c00` as little-endian bytes. Numbers that do not fit are refused. The
/// signedness of the type is ignored, because compilers declare signed parameters as unsigned.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_integer(text: &str, bits: u32, type_name: &str) -> Result<Vec<u8>, String> {
    let too_large = || format!("`{text}` does not fit {type_name} ({bits} bits)");
    let value = if is_hex(text) {
        let digits = &text[2..];
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(format!("`{text}` is no hexadecimal number"));
        }
        u128::from_str_radix(digits, 16).map_err(|_| too_large())?
    } else {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let value: u128 = match parse_size(digits) {
            _ if is_plain => digits.parse().map_err(|_| too_large())?,
            Ok(size) => size.into(),
            Err(_) => {
                return Err(if text.parse::<f64>().is_ok() {
                    format!(
                        "`{text}` is no integer, and {type_name} takes integers (write a float as its bits: 0x3fc00000)"
                    )
                } else {
                    format!("`{text}` is no number")
                });
            }
        };
        if text.starts_with('-') {
            if value > 1 << (bits - 1) {
                return Err(too_large());
            }
            let mask = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
            value.wrapping_neg() & mask
        } else {
            value
        }
    };
    if bits < 128 && value >> bits != 0 {
        return Err(too_large());
    }
    Ok(value.to_le_bytes()[..bits as usize / 8].to_vec())
}

/// A number as a decimal, or with an exponent if it is very large or very small.
fn show_decimal(value: f64, decimal: String, exponent: impl Fn() -> String) -> String {
    let magnitude = value.abs();
    if value.is_finite() && value != 0.0 && !(1e-5..1e16).contains(&magnitude) { exponent() } else { decimal }
}

/// Integers without a point; other numbers as the shortest decimal that rounds to this value of a narrow format.
fn show_half(value: f64, round: impl Fn(f64) -> f64) -> String {
    if !value.is_finite() || value.fract() == 0.0 {
        return show_decimal(value, value.to_string(), || format!("{value:e}"));
    }
    // Five digits after the first distinguish all values with 11 bits of precision.
    let shortest = (0..=5)
        .filter_map(|digits| format!("{value:.digits$e}").parse::<f64>().ok())
        .find(|&candidate| round(candidate) == value)
        .unwrap_or(value);
    show_decimal(shortest, shortest.to_string(), || format!("{shortest:e}"))
}

/// An array in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArray {
    /// Type of the elements.
    pub dtype: DType,
    /// Extents; empty for a scalar.
    pub shape: Vec<u64>,
    /// The elements, little-endian.
    pub data: Vec<u8>,
}

/// Elements that are shown at each end of a dimension of a long array.
const EDGE: u64 = 4;
/// Arrays with at most this number of elements are shown whole.
const WHOLE: u64 = 64;

/// How arrays are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// As bits, in hexadecimal.
    pub bits: bool,
    /// All elements, however many.
    pub whole: bool,
}

impl HostArray {
    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The index of an element in each dimension, from its index in C order.
    pub fn index(&self, mut element: u64) -> Vec<u64> {
        let mut index: Vec<u64> = Vec::new();
        for &extent in self.shape.iter().rev() {
            index.push(element % extent.max(1));
            element /= extent.max(1);
        }
        index.reverse();
        index
    }

    /// These elements, in C order, as an array of one dimension.
    pub fn part(&self, elements: std::ops::Range<u64>) -> HostArray {
        let (start, end) = (elements.start, elements.end.min(self.elements()));
        let bytes = |element: u64| element as usize * self.dtype.bytes();
        let data = self.data.get(bytes(start)..bytes(end)).unwrap_or_default().to_vec();
        HostArray { dtype: self.dtype, shape: vec![end.saturating_sub(start)], data }
    }

    /// `f32[2x3]`, then the values; the middle is elided if there are many.
    pub fn show(&self, style: Style) -> String {
        let mut text = format!("{}[{}] = ", self.dtype.name(), show_shape(&self.shape));
        let edge = match self.elements() <= WHOLE || style.whole {
            true => self.elements().max(WHOLE),
            false => EDGE,
        };
        let indent = text.len();
        self.show_part(&mut text, &self.shape, 0, (edge, indent), style);
        text
    }

    /// Appends the values of the sub-array that starts at element `start`.
    fn show_part(
        &self,
        text: &mut String,
        shape: &[u64],
        start: u64,
        (edge, indent): (u64, usize),
        style: Style,
    ) {
        let Some((&extent, inner)) = shape.split_first() else {
            let element = self.data.get(start as usize * self.dtype.bytes()..);
            *text += &element.map_or_else(String::new, |bytes| match style.bits {
                true => self.dtype.show_bits(bytes),
                false => self.dtype.show(bytes),
            });
            return;
        };
        let separator =
            if inner.is_empty() { ", ".to_owned() } else { format!(",\n{:width$}", "", width = indent + 1) };
        let stride: u64 = inner.iter().product();
        let skip = if extent > 2 * edge { edge..extent - edge } else { extent..extent };
        text.push('[');
        let mut first = true;
        for i in (0..skip.start).chain(skip.end..extent) {
            if !first {
                *text += &separator;
            }
            if i == skip.end {
                *text += "...";
                *text += &separator;
            }
            first = false;
            self.show_part(text, inner, start + i * stride, (edge, indent + 1), style);
        }
        text.push(']');
    }
}

/// `2x3`
pub fn show_shape(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(dtype: DType, text: &str) -> String {
        dtype.show(&dtype.parse(text).unwrap())
    }

    #[test]
    fn numbers_are_shown_as_they_were_written() {
        for text in ["0", "-0", "1", "-1.5", "0.1", "65504", "NaN", "inf", "-inf", "6e-8"] {
            assert_eq!(show(DType::F16, text), text);
        }
        for text in ["0", "0.1", "-2.5", "NaN", "1e-38"] {
            assert_eq!(show(DType::Bf16, text), text);
            assert_eq!(show(DType::F32, text), text);
            assert_eq!(show(DType::F64, text), text);
        }
        assert_eq!(show(DType::S8, "-128"), "-128");
        assert_eq!(show(DType::U64, "18446744073709551615"), "18446744073709551615");
        assert_eq!(show(DType::F16, "0x3c01"), "1.001");
        assert_eq!(DType::F16.show(&[1, 0]), "6e-8");
    }

    #[test]
    fn every_half_is_shown_so_that_it_reads_back() {
        for bits in 0..=u16::MAX {
            for dtype in [DType::F16, DType::Bf16] {
                let text = dtype.show(&bits.to_le_bytes());
                if text != "NaN" {
                    assert_eq!(dtype.parse(&text).unwrap(), bits.to_le_bytes(), "{text}");
                }
            }
        }
    }

    #[test]
    fn raw_bits_and_ranges() {
        assert_eq!(DType::F16.parse("0x3c00").unwrap(), [0x00, 0x3c]);
        assert_eq!(DType::Bf16.parse("1").unwrap(), [0x80, 0x3f]);
        assert_eq!(parse_integer("-1", 32, ".u32").unwrap(), [255; 4]);
        assert_eq!(parse_integer("4294967295", 32, ".s32").unwrap(), [255; 4]);
        assert_eq!(
            parse_integer("-170141183460469231731687303715884105728", 128, ".b128").unwrap()[15],
            0x80
        );
        for wrong in [
            "4294967296",
            "-2147483649",
            "0x100000000",
            "0x",
            "0xg",
            "1.5",
            "",
            "-",
            "1e10",
            "8G",
            "99999999999999999999999999999999999999999999",
        ] {
            assert!(parse_integer(wrong, 32, ".u32").is_err(), "{wrong}");
        }
        assert_eq!(parse_integer("1e3", 32, ".u32"), Ok(1000u32.to_le_bytes().to_vec()));
        assert_eq!(parse_integer("-48K", 32, ".s32"), Ok((-(48i32 << 10)).to_le_bytes().to_vec()));
        assert!(DType::F16.parse("65520").is_err());
        assert!(DType::F32.parse("1e39").is_err());
        assert!(DType::F32.parse("one").is_err());
        assert!(DType::F32.parse("0x100000000").is_err());
    }

    #[test]
    fn long_arrays_show_head_and_tail() {
        let array = |shape: &[u64]| HostArray {
            dtype: DType::U8,
            shape: shape.to_vec(),
            data: (0..shape.iter().product::<u64>()).map(|i| i as u8).collect(),
        };
        assert_eq!(array(&[]).show(Style::default()), "u8[] = 0");
        assert_eq!(array(&[0]).show(Style::default()), "u8[0] = []");
        assert_eq!(array(&[3]).show(Style::default()), "u8[3] = [0, 1, 2]");
        assert_eq!(array(&[100]).show(Style::default()), "u8[100] = [0, 1, 2, 3, ..., 96, 97, 98, 99]");
        assert_eq!(array(&[2, 2]).show(Style::default()), "u8[2x2] = [[0, 1],\n           [2, 3]]");
        assert_eq!(array(&[2, 0]).show(Style::default()), "u8[2x0] = [[],\n           []]");
        let text = array(&[10, 10]).show(Style::default());
        assert!(text.contains("[0, 1, 2, 3, ..., 6, 7, 8, 9],\n"), "{text}");
        assert!(text.contains(" ...,\n"), "{text}");
        assert!(text.ends_with("[90, 91, 92, 93, ..., 96, 97, 98, 99]]"), "{text}");
    }
}
