//! `--arg SPEC`: the syntax of an argument, and its value for a parameter.

use std::path::PathBuf;

use check::module::Param;
use isa::Kind;

use super::array::{DType, HostArray, is_hex, parse_float, parse_integer, show_shape};
use super::fill::Fill;
use super::numbers::parse_size;
use super::report::Failure;
use super::save::ending;
use super::structure::{self, Field};
use super::tensor_map::{self, MapSpec};
use super::texture::{self, ObjectSpec, ObjectValue};
use super::{npy, npz};

/// A parsed argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// `42`, `-1.5`, `0x3c00`, `inf`: read by the parameter's type.
    Number(String),
    /// `@x.npy`, `@x.bin`, `@x.npz[weights]`, `@x.npy:bf16`
    File {
        /// The file.
        path: PathBuf,
        /// Which array of an archive.
        array: Option<String>,
        /// Read the elements as this type.
        dtype: Option<DType>,
    },
    /// `f16[1024]`, `u32[64x64]=7`, `f32[64]=random`, `bytes[4096]`
    New {
        /// Type of the elements.
        dtype: DType,
        /// Extents.
        shape: Vec<u64>,
        /// What it holds.
        fill: Fill,
    },
    /// `bytes:00ff`: by value.
    Bytes(Vec<u8>),
    /// `{@x.npy, 4, 2.5}`: a structure by value.
    Structure(Vec<Field>),
    /// `texture(@x.npy, filter=linear)`, `surface(..)`, `sampler(..)`: a handle.
    Object(ObjectSpec),
    /// `tensormap(@x.npy, box=64x64)`: a tensor map by value.
    TensorMap(MapSpec),
    /// `numba:@x.npy`: an array as numba passes it, as 5 parameters and 2 for each dimension.
    Numba(Box<Spec>),
}

/// The forms, for help texts.
pub const FORMS: &str = "\
a number 42, -1.5, inf, nan, or its raw bits 0x3c00; an array @x.npy, @x.npz[weights], @x.bin, @x.npy:bf16; \
a new array f32[1024], u32[64x64]=7, f32[64]=random, bytes[4096]; bytes by value bytes:00112233; \
a structure by value {@x.npy, 4, 2.5:f64}; texture(@x.npy, filter=linear), surface(f32[64x64]), sampler(address=wrap); \
tensormap(@x.npy, box=64x64, swizzle=128B); an array for all of its parameters of numba numba:@x.npy";

impl std::str::FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Spec, String> {
        if let Some(fields) = text.strip_prefix('{') {
            let fields =
                fields.strip_suffix('}').ok_or_else(|| format!("`{text}` has no `}}` at its end"))?;
            return structure::parse(fields).map(Spec::Structure);
        }
        if let Some(object) = texture::parse(text) {
            return object.map(Spec::Object);
        }
        if let Some(map) = tensor_map::parse(text) {
            return map.map(Spec::TensorMap);
        }
        if let Some(array) = text.strip_prefix("numba:") {
            return match array.parse()? {
                array @ (Spec::File { .. } | Spec::New { .. }) => Ok(Spec::Numba(Box::new(array))),
                _ => Err(format!("`{array}` is no array: numba:@x.npy, numba:f32[64x64]")),
            };
        }
        if let Some(path) = text.strip_prefix('@') {
            return parse_file(path);
        }
        if let Some(hex) = text.strip_prefix("bytes:") {
            return parse_hex(hex).map(Spec::Bytes);
        }
        if text.contains('[') {
            return parse_new(text);
        }
        // Only the parameter's type decides whether the number fits; that the text is a number is checked now.
        let word = text.trim_start_matches(['+', '-']);
        if is_hex(word) || text.parse::<f64>().is_ok() || parse_size(word).is_ok() {
            return Ok(Spec::Number(text.to_owned()));
        }
        let file = [".npy", ".npz", ".bin"].iter().any(|ending| text.ends_with(ending));
        let hint = if file { format!(" (for the file write @{text})") } else { String::new() };
        Err(format!("`{text}` is no argument{hint}; an argument is {FORMS}"))
    }
}

fn parse_file(text: &str) -> Result<Spec, String> {
    let (path, dtype) = match text.rsplit_once(':').map(|(path, name)| (path, DType::from_name(name))) {
        Some((path, Some(dtype))) => (path, Some(dtype)),
        _ => (text, None),
    };
    // A name may have brackets itself.
    let (path, array) = match path.strip_suffix(']').and_then(|path| path.split_once(".npz[")) {
        Some((stem, array)) => (format!("{stem}.npz"), Some(array.to_owned())),
        None => (path.to_owned(), None),
    };
    if path.is_empty() {
        return Err("a file name must follow `@`".to_owned());
    }
    if ![".npy", ".npz", ".bin"].iter().any(|ending| path.ends_with(ending)) {
        return Err(format!("`{path}` must end in .npy, .npz or .bin: the name says how to read the file"));
    }
    Ok(Spec::File { path: path.into(), array, dtype })
}

fn parse_hex(hex: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = hex.as_bytes().chunks(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(|| "two hexadecimal digits for each byte must follow `bytes:`".to_owned())
}

fn parse_new(text: &str) -> Result<Spec, String> {
    let (array, fill) = match text.split_once('=') {
        Some((array, fill)) => (array, Some(fill)),
        None => (text, None),
    };
    let (name, rest) = array.split_once('[').unwrap_or((array, ""));
    let dtype = DType::from_name(name)
        .ok_or_else(|| format!("`{name}` is no element type; there are {}", DType::NAMES.join(", ")))?;
    let extents = rest.strip_suffix(']').ok_or_else(|| format!("`{text}` has no `]` after the extents"))?;
    let shape = extents
        .split(['x', ','])
        .map(|extent| {
            parse_size(extent.trim())
                .map_err(|_| format!("`{extent}` is no extent of an array: {name}[64x64]"))
        })
        .collect::<Result<Vec<u64>, String>>()?;
    let elements = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    elements
        .and_then(|n| n.checked_mul(dtype.bytes() as u64))
        .filter(|&bytes| bytes <= isize::MAX as u64)
        .ok_or_else(|| format!("`{text}` is larger than any memory"))?;
    let fill = fill.map_or(Ok(Fill::Zeros), |fill| Fill::parse(fill, dtype))?;
    if let Fill::List(list) = &fill
        && elements != Some((list.len() / dtype.bytes()) as u64)
    {
        return Err(format!(
            "`{array}` does not have the {} elements of the list",
            list.len() / dtype.bytes()
        ));
    }
    Ok(Spec::New { dtype, shape, fill })
}

/// The value of one parameter of a launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The address of a new array with this content.
    Array(HostArray),
    /// These bytes, with the addresses of new arrays at some offsets.
    Structure {
        /// The bytes.
        bytes: Vec<u8>,
        /// The offset of each address, and its array.
        arrays: Vec<(usize, Value)>,
    },
    /// The handle of a new texture, sampler or surface.
    Object(ObjectValue),
    /// The address of a new array of zeros.
    Zeros {
        /// Type of the elements.
        dtype: DType,
        /// Extents.
        shape: Vec<u64>,
        /// Initcheck treats it as unwritten.
        undefined: bool,
    },
}

impl Value {
    /// Type and shape, if it is an array.
    pub fn array(&self) -> Option<(DType, &[u64])> {
        match self {
            Value::Bytes(_) | Value::Structure { .. } => None,
            Value::Array(array) => Some((array.dtype, &array.shape)),
            Value::Zeros { dtype, shape, .. } => Some((*dtype, shape)),
            Value::Object(object) => object.image.as_ref()?.0.array(),
        }
    }

    /// The value itself if it is an array, or an array field of a structure.
    pub fn at(&self, field: Option<usize>) -> Option<&Value> {
        match (self, field) {
            (Value::Structure { arrays, .. }, Some(field)) => arrays.get(field).map(|(_, array)| array),
            (array, None) => array.array().map(|_| array),
            _ => None,
        }
    }

    /// Size of the array in bytes; 0 for other values.
    pub fn array_bytes(&self) -> u64 {
        self.array().map_or(0, |(dtype, shape)| shape.iter().product::<u64>() * dtype.bytes() as u64)
    }
}

impl Spec {
    /// The value of this argument for a parameter. Reads files.
    ///
    /// # Errors
    /// When a file cannot be used (bad input), or the argument does not fit the parameter (wrong usage).
    pub fn resolve(&self, param: &Param) -> Result<Value, Failure> {
        let type_name = ptxvm::describe(param);
        let mismatch = |what: String| Failure::usage(format!("{what}, but the parameter is {type_name}"));
        match self {
            Spec::Number(_) if param.array => {
                let bytes = param.bytes;
                Err(mismatch("it is a number".to_owned()).help(format!(
                    "pass its {bytes} bytes: bytes:0011.., @x.bin, or the fields of a structure: {{2:f16}}"
                )))
            }
            Spec::Number(text) => number(text, param, &type_name).map(Value::Bytes).map_err(Failure::usage),
            Spec::Structure(fields) => structure::resolve(fields, param),
            Spec::TensorMap(map) => map.resolve(param),
            Spec::Object(_) if param.array || param.bytes != 8 => Err(mismatch("it is a handle".to_owned())),
            Spec::Object(object) => object.resolve().map(Value::Object),
            Spec::Numba(array) => array.resolve(param),
            Spec::Bytes(bytes) if bytes.len() as u64 == param.bytes => Ok(Value::Bytes(bytes.clone())),
            Spec::Bytes(bytes) => Err(mismatch(format!("it is {} bytes", bytes.len()))),
            Spec::File { path, .. } if param.array => {
                if ending(path) != Some(b"bin") {
                    return Err(mismatch("it is an array".to_owned())
                        .help("a parameter that is passed by value takes bytes:0011.. or @x.bin"));
                }
                let bytes = read_file(path)?;
                if bytes.len() as u64 == param.bytes {
                    return Ok(Value::Bytes(bytes));
                }
                Err(mismatch(format!("`{}` has {} bytes", path.display(), bytes.len())))
            }
            Spec::File { .. } | Spec::New { .. } if !takes_address(param) => {
                Err(mismatch("it is an array".to_owned())
                    .help("an array goes to a parameter that holds an address (.u64)"))
            }
            Spec::File { .. } | Spec::New { .. } => self.resolve_array(),
        }
    }

    /// The array of this argument. Reads files.
    ///
    /// # Errors
    /// When a file cannot be used, or the argument is not an array.
    pub fn resolve_array(&self) -> Result<Value, Failure> {
        match self {
            Spec::File { path, array, dtype } => read_array(path, array.as_deref(), *dtype).map(Value::Array),
            Spec::New { dtype, shape, fill } => {
                let elements = shape.iter().product::<u64>() as usize;
                // An array that is too large for the host is an error, not an abort.
                let bytes = elements.saturating_mul(dtype.bytes());
                let is_filled = !matches!(fill, Fill::Zeros | Fill::Undefined);
                if is_filled && Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
                    let shape = show_shape(shape);
                    return Err(Failure::usage(format!("there is no memory for {}[{shape}]", dtype.name())));
                }
                let (dtype, shape) = (*dtype, shape.clone());
                Ok(match fill.bytes(dtype, elements) {
                    Some(data) => Value::Array(HostArray { dtype, shape, data }),
                    None => Value::Zeros { dtype, shape, undefined: *fill == Fill::Undefined },
                })
            }
            _ => Err(Failure::usage("it is no array")),
        }
    }
}

/// Whether a parameter can hold the address of an array.
pub fn takes_address(param: &Param) -> bool {
    !param.array && matches!(param.bytes, 4 | 8) && !param.ty.is_float()
}

/// The bytes of a number for a parameter.
fn number(text: &str, param: &Param, type_name: &str) -> Result<Vec<u8>, String> {
    if param.ty.kind() == Kind::Float && param.ty.lanes() == 1 && !is_hex(text) {
        let dtype = DType::from_name(param.ty.name());
        return dtype.map_or_else(
            || Err(format!("{type_name} takes raw bits: 0x..")),
            |dtype| parse_float(text, dtype),
        );
    }
    parse_integer(text, param.ty.bits().clamp(8, 128), type_name)
}

fn read_file(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::bad(format!("cannot read `{}`: {error}", path.display())))
}

/// An array from a `.npy`, `.npz` or `.bin` file.
fn read_array(
    path: &std::path::Path,
    array: Option<&str>,
    dtype: Option<DType>,
) -> Result<HostArray, Failure> {
    let file = read_file(path)?;
    let name = path.display();
    let place = array.map_or_else(|| name.to_string(), |array| format!("{name}[{array}]"));
    let refuse = |message: String| Failure::bad(format!("cannot use `{place}`: {message}"));
    let refused = |refusal: npy::Refusal| {
        let failure = refuse(refusal.message);
        match refusal.help {
            Some(help) => failure.help(help),
            None => failure,
        }
    };
    if ending(path) == Some(b"npz") {
        let file = match array {
            Some(array) => npz::read(&file, array),
            None => Err(npz::which(&file, &format!("@{name}"))),
        };
        return file.and_then(|file| npy::read(file, dtype)).map_err(refused);
    }
    if ending(path) == Some(b"npy") {
        return npy::read(file, dtype).map_err(refused);
    }
    let dtype = dtype.unwrap_or(DType::Bytes);
    if file.len() % dtype.bytes() != 0 {
        let (length, bytes) = (file.len(), dtype.bytes());
        return Err(refuse(format!(
            "its {length} bytes are not a multiple of the {bytes} bytes of {}",
            dtype.name()
        )));
    }
    Ok(HostArray { dtype, shape: vec![(file.len() / dtype.bytes()) as u64], data: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Spec {
        text.parse().unwrap()
    }

    fn param(ty: &str, bytes: u64, array: bool) -> Param {
        Param {
            name: "p".to_owned(),
            ty: isa::Type::from_name(ty).unwrap(),
            opaque: None,
            bytes,
            align: 1,
            array,
            pointer: None,
            register: None,
            in_register: false,
            span: diag::Span::default(),
        }
    }

    #[test]
    fn every_form_is_read() {
        assert_eq!(parse("42"), Spec::Number("42".into()));
        assert_eq!(parse("-inf"), Spec::Number("-inf".into()));
        assert_eq!(parse("0x3C00"), Spec::Number("0x3C00".into()));
        assert_eq!(parse("@a:b/x.npy"), Spec::File { path: "a:b/x.npy".into(), array: None, dtype: None });
        let file = |path: &str, array: Option<&str>, dtype| Spec::File {
            path: path.into(),
            array: array.map(str::to_owned),
            dtype,
        };
        assert_eq!(parse("@x.npy:bf16"), file("x.npy", None, Some(DType::Bf16)));
        assert_eq!(parse("@x.npz"), file("x.npz", None, None));
        assert_eq!(parse("@d/x.npz[w.0[1]]"), file("d/x.npz", Some("w.0[1]"), None));
        assert_eq!(parse("@x.npz[w:0]:bf16"), file("x.npz", Some("w:0"), Some(DType::Bf16)));
        assert_eq!(parse("f16[1024]"), Spec::New { dtype: DType::F16, shape: vec![1024], fill: Fill::Zeros });
        assert_eq!(
            parse("u32[64x64]=7"),
            Spec::New { dtype: DType::U32, shape: vec![64, 64], fill: Fill::Element(vec![7, 0, 0, 0]) }
        );
        assert_eq!(
            parse("s16[2]=-1, 2"),
            Spec::New { dtype: DType::S16, shape: vec![2], fill: Fill::List(vec![255, 255, 2, 0]) }
        );
        assert_eq!(
            parse("bytes[4096]"),
            Spec::New { dtype: DType::Bytes, shape: vec![4096], fill: Fill::Zeros }
        );
        assert_eq!(parse("bytes:00fF"), Spec::Bytes(vec![0, 255]));
    }

    #[test]
    fn what_is_no_argument_is_refused_with_the_forms() {
        for (text, part) in [
            ("", FORMS),
            ("x.npy", "write @x.npy"),
            ("@", "file name"),
            ("@x.txt", ".npy, .npz or .bin"),
            ("@x.npz[a", ".npy, .npz or .bin"),
            ("@x.npy[a]", ".npy, .npz or .bin"),
            ("x.npz", "write @x.npz"),
            ("f17[3]", "f16, f32"),
            ("f16[3", "`]`"),
            ("f16[]", "extent"),
            ("f16[-1]", "extent"),
            ("u64[4294967296x4294967296]", "larger than any memory"),
            ("u8[2]=256", "does not fit"),
            ("u8[2]=1,2,3", "the 3 elements of the list"),
            ("bytes:0", "two hexadecimal digits"),
            ("bytes:é", "two hexadecimal digits"),
        ] {
            let error = text.parse::<Spec>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_are_read_by_the_type_of_the_parameter() {
        let bytes = |text: &str, ty: &str, n| match parse(text).resolve(&param(ty, n, false)) {
            Ok(Value::Bytes(bytes)) => bytes,
            other => panic!("{text} {ty}: {other:?}"),
        };
        assert_eq!(bytes("42", "u32", 4), [42, 0, 0, 0]);
        assert_eq!(bytes("-1", "u64", 8), [255; 8]);
        assert_eq!(bytes("1", "f32", 4), [0, 0, 128, 63]);
        assert_eq!(bytes("0x3f800000", "f32", 4), [0, 0, 128, 63]);
        assert_eq!(bytes("-2.5", "f64", 8), (-2.5f64).to_le_bytes());
        assert_eq!(bytes("0x3c00", "b16", 2), [0, 0x3c]);
        assert_eq!(bytes("1.5", "f16", 2), [0, 0x3e]);
        for (text, ty, n) in
            [("1.5", "u32", 4), ("65536", "u16", 2), ("0x1ffffffff", "f32", 4), ("nan", "b16", 2)]
        {
            assert_eq!(parse(text).resolve(&param(ty, n, false)).unwrap_err().code, 2, "{text} {ty}");
        }
    }

    #[test]
    fn arrays_need_an_address_and_structures_need_bytes() {
        assert_eq!(
            parse("u8[2]=3").resolve(&param("u64", 8, false)).unwrap(),
            Value::Array(HostArray { dtype: DType::U8, shape: vec![2], data: vec![3, 3] })
        );
        assert!(parse("u8[2]").resolve(&param("f64", 8, false)).is_err());
        assert!(parse("u8[2]").resolve(&param("b8", 16, true)).is_err());
        assert!(parse("7").resolve(&param("b8", 16, true)).is_err());
        assert_eq!(parse("bytes:0102").resolve(&param("b8", 2, true)).unwrap(), Value::Bytes(vec![1, 2]));
        assert!(parse("bytes:0102").resolve(&param("b8", 3, true)).is_err());
        assert_eq!(parse("@nowhere/x.npy").resolve(&param("u64", 8, false)).unwrap_err().code, 1);
    }
}
