//! `--arg '{@x.npy, 4, 2.5}'`: a structure by value, which may contain the addresses of arrays.

use check::module::Param;

use super::array::{DType, is_hex};
use super::report::Failure;
use super::spec::{Spec, Value};

/// A parsed field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// An array: its address, 8 bytes.
    Array(Spec),
    /// A number as bytes.
    Number(Vec<u8>),
}

/// Parses the text between the braces. Integers are `s32` (hexadecimal ones `u32`), decimals `f32`; `4:u64` has an
/// explicit type.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<Vec<Field>, String> {
    let mut fields = Vec::new();
    let (mut depth, mut start) = (0u32, 0);
    for (at, letter) in text.char_indices().chain([(text.len(), ',')]) {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 || at == text.len() => {
                fields.push(field(text[start..at].trim())?);
                start = at + 1;
            }
            _ => {}
        }
    }
    Ok(fields)
}

fn field(text: &str) -> Result<Field, String> {
    if text.starts_with('@') || text.contains('[') {
        return Ok(Field::Array(text.parse()?));
    }
    let default = if is_hex(text) {
        DType::U32
    } else if text.parse::<i128>().is_ok() {
        DType::S32
    } else {
        DType::F32
    };
    let (number, dtype) = match text.split_once(':') {
        Some((number, name)) => {
            (number, DType::from_name(name).ok_or_else(|| format!("`{name}` is no type of a field"))?)
        }
        None => (text, default),
    };
    dtype.parse(number).map(Field::Number).map_err(|error| {
        format!(
            "`{text}` is no field: {error}; a field is an array, or a number such as 4, 2.5, 4:u64, 2.5:f64"
        )
    })
}

/// The value for a parameter: each field is aligned to its size, as in C.
///
/// # Errors
/// When the sizes differ, or a file cannot be used.
pub fn resolve(fields: &[Field], param: &Param) -> Result<Value, Failure> {
    let (mut bytes, mut arrays, mut align) = (Vec::new(), Vec::new(), 1);
    let mut layout = Vec::new();
    for field in fields {
        let number = match field {
            Field::Number(number) => number.clone(),
            Field::Array(_) => vec![0; 8],
        };
        align = align.max(number.len());
        bytes.resize(bytes.len().next_multiple_of(number.len()), 0);
        layout.push(format!("{} at {}", number.len(), bytes.len()));
        if let Field::Array(spec) = field {
            arrays.push((bytes.len(), spec.resolve_array()?));
        }
        bytes.extend(number);
    }
    bytes.resize(bytes.len().next_multiple_of(align), 0);
    if bytes.len() as u64 != param.bytes {
        let (takes, layout) = (param.bytes, layout.join(", "));
        return Err(Failure::usage(format!(
            "the structure has {} bytes, but the parameter has {takes}",
            bytes.len()
        ))
        .help(format!(
            "its fields have these bytes: {layout}; write the types of numbers as 4:u64, 2.5:f64"
        )));
    }
    Ok(Value::Structure { bytes, arrays })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_their_types() {
        let number = |bytes: &[u8]| Field::Number(bytes.to_vec());
        let array = |text: &str| Field::Array(text.parse().unwrap());
        assert_eq!(
            parse("@x.npy, 4, 2.5,f32[2,3]=1, -1:s64, 0x7").unwrap(),
            [
                array("@x.npy"),
                number(&[4, 0, 0, 0]),
                number(&2.5f32.to_le_bytes()),
                array("f32[2,3]=1"),
                number(&[255; 8]),
                number(&[7, 0, 0, 0]),
            ]
        );
        for wrong in ["", "1,", "4:x", "x.npy", "{1}", "300:u8", "5000000000"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
