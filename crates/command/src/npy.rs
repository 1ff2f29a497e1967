//! Reading and writing `.npy` files (NumPy Enhancement Proposal 1, format versions 1.0 to 3.0).
//!
//! Implemented here because a header is untrusted input: with a crate that parses all Python literals, its handling
//! of deep nesting and of shapes with an overflowing product would have to be trusted, too.

use std::io::{self, Write};

use super::array::{DType, HostArray, show_shape};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Why a file cannot be used, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

fn refuse(message: impl Into<String>) -> Refusal {
    Refusal { message: message.into(), help: None }
}

/// A refusal that says what to do.
pub fn refuse_with(message: impl Into<String>, help: impl Into<String>) -> Refusal {
    Refusal { message: message.into(), help: Some(help.into()) }
}

/// The array in a `.npy` file. Fortran order is converted to C order. With `wanted`, the elements are read as another
/// type of the same size.
///
/// # Errors
/// When it is not a `.npy` file, is truncated, or has elements that kernels cannot use.
pub fn read(mut file: Vec<u8>, wanted: Option<DType>) -> Result<HostArray, Refusal> {
    let mut header = Header::parse(&file)?;
    if is_record(&header.descr) {
        // Records are bytes in numpy's layout; their size becomes the last extent.
        if wanted.is_some_and(|wanted| wanted != DType::Bytes) || header.fortran_order {
            return Err(refuse("its elements are records, which are read as bytes only, in C order"));
        }
        let elements = header.shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
        let available = (file.len() - header.length) as u64;
        let elements = elements.filter(|&elements| elements > 0 && available.is_multiple_of(elements));
        let Some(elements) = elements else {
            let shape = show_shape(&header.shape);
            return Err(refuse_with(
                format!("its {available} bytes are not those of [{shape}] records"),
                "save the array again",
            ));
        };
        header.shape.push(available / elements);
        file.drain(..header.length);
        return Ok(HostArray { dtype: DType::Bytes, shape: header.shape, data: file });
    }
    let stored = element_type(&header.descr, wanted)?;
    let dtype = match wanted {
        Some(wanted) if wanted.bytes() == stored.bytes() => wanted,
        Some(wanted) => {
            let (has, want) = (stored.bytes(), wanted.bytes());
            return Err(refuse(format!(
                "its elements are {} of {has} bytes each, and cannot be read as {} of {want} bytes",
                stored.name(),
                wanted.name()
            )));
        }
        None => stored,
    };
    let elements = header.shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    let bytes = elements.and_then(|n| usize::try_from(n).ok()?.checked_mul(dtype.bytes()));
    let available = file.len() - header.length;
    let bytes = bytes.filter(|&bytes| bytes <= available).ok_or_else(|| {
        let (shape, name) = (show_shape(&header.shape), dtype.name());
        refuse_with(
            format!("it is truncated: {name}[{shape}] needs more than the {available} bytes that follow its header"),
            "save the array again",
        )
    })?;
    file.drain(..header.length);
    file.truncate(bytes);
    let data = if header.fortran_order { to_c_order(&file, &header.shape, dtype.bytes()) } else { file };
    Ok(HostArray { dtype, shape: header.shape, data })
}

/// Writes a `.npy` file.
///
/// # Errors
/// When the writer fails.
pub fn write(array: &HostArray, out: &mut impl Write) -> io::Result<()> {
    let mut shape = array.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if array.shape.len() == 1 {
        shape.push(',');
    }
    let mut header =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", array.dtype.npy());
    // Data starts at a multiple of 64 bytes; before it: magic and version (8 bytes), length (2), line feed (1).
    let length = (header.len() + 11).next_multiple_of(64) - 10;
    header += &" ".repeat(length - 1 - header.len());
    header.push('\n');
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&(length as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    out.write_all(&array.data)
}

/// Whether elements are structures: with named fields, or opaque (except for two bytes, which are bf16).
fn is_record(descr: &str) -> bool {
    // Elements that are objects have no bytes with a meaning outside of Python.
    let opaque = descr.trim_start_matches(['<', '|', '=']).strip_prefix('V');
    descr.starts_with('[') && !descr.contains("'|O'") || opaque.is_some_and(|bytes| bytes != "2")
}

/// The type of the elements, if kernels can use it.
fn element_type(descr: &str, wanted: Option<DType>) -> Result<DType, Refusal> {
    if let Some(dtype) = DType::from_npy(descr) {
        return Ok(dtype);
    }
    if let Some(rest) = descr.strip_prefix('>') {
        let little = format!("<{rest}");
        return Err(refuse_with(
            format!("its elements are big-endian (dtype `{descr}`)"),
            format!("save it as little-endian: np.save(path, x.astype('{little}'))"),
        ));
    }
    // The ml_dtypes package saves bfloat16 so: opaque elements of two bytes.
    if matches!(descr, "<V2" | "|V2") {
        return match wanted {
            Some(dtype) => Ok(dtype),
            None => Err(refuse_with(
                "its elements have no type numpy knows (dtype `|V2`)",
                "for bf16 append `:bf16`",
            )),
        };
    }
    let what = match descr.trim_start_matches(['<', '|', '=']).bytes().next() {
        Some(b'[') => "Python objects",
        Some(b'c') => "complex numbers",
        Some(b'O') => "Python objects",
        Some(b'U' | b'S' | b'a') => "strings",
        Some(b'M' | b'm') => "dates or times",
        _ => "of a type",
    };
    Err(refuse_with(
        format!("its elements are {what} (dtype `{descr}`), which kernels cannot take"),
        format!("save one of these dtypes: {} (bf16 as uint16, then `@x.npy:bf16`)", NUMPY_TYPES),
    ))
}

const NUMPY_TYPES: &str =
    "bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64";

/// Converts elements from Fortran to C order.
fn to_c_order(data: &[u8], shape: &[u64], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = width;
    for &extent in shape {
        strides.push(stride);
        stride = stride.saturating_mul(extent as usize);
    }
    let mut index = vec![0u64; shape.len()];
    let mut at = 0;
    while out.len() < data.len() {
        out.extend(&data[at..at + width]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * index[axis] as usize;
            index[axis] = 0;
        }
    }
    out
}

/// The contents of the header.
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<u64>,
    /// Bytes before the data.
    length: usize,
}

impl Header {
    fn parse(file: &[u8]) -> Result<Header, Refusal> {
        let no_npy = || {
            refuse_with(
                "it is no .npy file",
                "write it with np.save, or pass raw bytes from a file named *.bin",
            )
        };
        let rest = file.strip_prefix(MAGIC).ok_or_else(no_npy)?;
        let truncated = || refuse_with("it is truncated: its header is not complete", "save the array again");
        let (length, start) = match rest {
            [1, 0, a, b, ..] => (u32::from(u16::from_le_bytes([*a, *b])), 10),
            [2 | 3, 0, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]), 12),
            [1..=3, 0, ..] | [] | [_] => return Err(truncated()),
            [major, minor, ..] => {
                return Err(refuse(format!(
                    "it is of format version {major}.{minor}, and this reads 1.0 to 3.0"
                )));
            }
        };
        let length = start + length as usize;
        let text = file.get(start..length).ok_or_else(truncated)?;
        let text = std::str::from_utf8(text).map_err(|_| refuse("its header is not text"))?;
        let dictionary = Dictionary(text);
        let missing = |key: &str| refuse(format!("its header has no usable `{key}`: {}", excerpt(text)));
        let descr = dictionary.value("descr").ok_or_else(|| missing("descr"))?;
        let descr = match descr.chars().next() {
            Some(quote @ ('\'' | '"')) => descr[1..].split(quote).next().unwrap_or_default().to_owned(),
            _ => excerpt(descr),
        };
        let fortran_order = match dictionary.value("fortran_order") {
            Some(value) if value.starts_with("True") => true,
            Some(value) if value.starts_with("False") => false,
            _ => return Err(missing("fortran_order")),
        };
        let shape = dictionary.value("shape").and_then(parse_shape).ok_or_else(|| missing("shape"))?;
        Ok(Header { descr, fortran_order, shape, length })
    }
}

/// `(3, 4)`, `(3,)`, `()`
fn parse_shape(text: &str) -> Option<Vec<u64>> {
    let inner = text.strip_prefix('(')?.split(')').next()?;
    let extents = inner.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    // Python 2 wrote `3L`.
    extents.map(|extent| extent.trim_end_matches('L').parse().ok()).collect()
}

/// The start of a text that may be long.
fn excerpt(text: &str) -> String {
    text.chars().take(80).collect::<String>().trim_end().to_owned()
}

/// A Python dictionary with simple values.
struct Dictionary<'a>(&'a str);

impl<'a> Dictionary<'a> {
    /// The text that starts with the value of a key.
    fn value(&self, key: &str) -> Option<&'a str> {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let after = quoted.iter().find_map(|key| self.0.split_once(key.as_str()))?.1;
        after.trim_start().strip_prefix(':').map(str::trim_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(array: &HostArray) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(array, &mut bytes).unwrap();
        bytes
    }

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (dtype, shape) in [
            (DType::F32, vec![]),
            (DType::U8, vec![5]),
            (DType::S64, vec![2, 3]),
            (DType::Bool, vec![0, 7]),
            (DType::F16, vec![1; 60]),
        ] {
            let n: u64 = shape.iter().product();
            let data = (0..n as usize * dtype.bytes()).map(|i| i as u8).collect();
            let array = HostArray { dtype, shape, data };
            let bytes = saved(&array);
            assert_eq!((bytes.len() - array.data.len()) % 64, 0);
            assert_eq!(read(bytes, None).unwrap(), array);
        }
    }

    #[test]
    fn written_files_are_what_another_reader_expects() {
        let array = HostArray {
            dtype: DType::F32,
            shape: vec![2, 2],
            data: vec![0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64],
        };
        let bytes = saved(&array);
        let npy = npyz::NpyFile::new(bytes.as_slice()).unwrap();
        assert_eq!(npy.shape(), [2, 2]);
        assert_eq!(npy.into_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn bf16_is_saved_as_uint16_and_read_when_asked() {
        let array = HostArray { dtype: DType::Bf16, shape: vec![1], data: vec![0x80, 0x3f] };
        assert_eq!(read(saved(&array), None).unwrap().dtype, DType::U16);
        assert_eq!(read(saved(&array), Some(DType::Bf16)).unwrap(), array);
        let opaque = file("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", &[0x80, 0x3f]);
        assert_eq!(read(opaque.clone(), Some(DType::Bf16)).unwrap(), array);
        assert!(read(opaque, None).unwrap_err().help.unwrap().contains(":bf16"));
    }

    #[test]
    fn fortran_order_becomes_c_order() {
        let bytes = file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", &[0, 3, 1, 4, 2, 5]);
        assert_eq!(read(bytes, None).unwrap().data, [0, 1, 2, 3, 4, 5]);
        let bytes =
            file("{'descr': '<u2', 'fortran_order': True, 'shape': (2, 1, 2), }", &[0, 0, 2, 0, 1, 0, 3, 0]);
        assert_eq!(read(bytes, None).unwrap().data, [0, 0, 1, 0, 2, 0, 3, 0]);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_reason() {
        let refusal = |header: &str| read(file(header, &[0; 16]), None).unwrap_err().message;
        let with =
            |descr: &str| refusal(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}"));
        assert!(with("'>f4'").contains("big-endian"));
        assert!(with("'<c8'").contains("complex"));
        assert!(with("'|O'").contains("objects"));
        assert!(with("'<U3'").contains("strings"));
        assert!(with("[('a', '|O')]").contains("Python objects"));
        let records = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }";
        assert!(refusal(records).contains("not those of [3] records"));
        assert!(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }").contains("truncated"));
        let overflow = "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808, 4), }";
        assert!(refusal(overflow).contains("truncated"));
        assert!(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }").contains("shape"));
        assert!(refusal(&"(".repeat(60_000)).contains("descr"));
        assert!(read(b"PK\x03\x04".to_vec(), None).unwrap_err().message.contains("no .npy file"));
        assert!(read(Vec::new(), None).is_err());
        let whole = saved(&HostArray { dtype: DType::F32, shape: vec![4], data: vec![0; 16] });
        for length in 0..whole.len() {
            assert!(read(whole[..length].to_vec(), None).is_err(), "{length}");
        }
    }

    #[test]
    fn another_type_must_have_the_same_size() {
        let bytes = saved(&HostArray { dtype: DType::U32, shape: vec![1], data: vec![0; 4] });
        assert_eq!(read(bytes.clone(), Some(DType::F32)).unwrap().dtype, DType::F32);
        assert!(read(bytes, Some(DType::Bf16)).unwrap_err().message.contains("cannot be read as bf16"));
    }
}
