//! `tensormap(@x.npy, box=64x64, swizzle=128B)`: a tensor map by value, and the array that it describes.

use check::module::Param;
use ptxvm::tensor_map::{
    ADDRESS, Element, Fill, Im2col, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap,
};

use super::array::DType;
use super::report::Failure;
use super::spec::{Spec, Value};

/// A parsed map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// The tensor.
    array: Box<Spec>,
    /// `name=value`
    options: Vec<(String, String)>,
}

/// The options that users may write, for help texts. Extents are in the order of the array's.
pub const OPTIONS: &str = "\
box=64x64 (or of columns channels=64, pixels=32, lower=-1x-1, upper=-1x-1, and wide=w or wide=w128 for those along the width), extent=100x200, stride=512 (bytes, of all dimensions but the \
last), step=1x2, element=bf16 (PTX's names, f32.ftz, tf32, b4x16, b4x16_p64, b6x16_p32), interleave=16B, swizzle=128B \
(32B 64B 128B 128B-32B 128B-32B-8B 128B-64B), fill=nan";

/// The element types by their PTX names (9.7.9.26.1 tensormap.replace).
const ELEMENTS: [(&str, Element); 16] = [
    ("u8", Element::U8),
    ("u16", Element::U16),
    ("u32", Element::U32),
    ("s32", Element::S32),
    ("u64", Element::U64),
    ("s64", Element::S64),
    ("f16", Element::F16),
    ("f32", Element::F32),
    ("f32.ftz", Element::F32Ftz),
    ("f64", Element::F64),
    ("bf16", Element::Bf16),
    ("tf32", Element::Tf32),
    ("tf32.ftz", Element::Tf32Ftz),
    ("b4x16", Element::U4Align8),
    ("b4x16_p64", Element::U4Align16),
    ("b6x16_p32", Element::U6Align16),
];

const SWIZZLES: [(&str, Swizzle); 7] = [
    ("none", Swizzle::None),
    ("32B", Swizzle::Bytes32),
    ("64B", Swizzle::Bytes64),
    ("128B", Swizzle::Bytes128),
    ("128B-32B", Swizzle::Bytes128By32),
    ("128B-32B-8B", Swizzle::Bytes128By32Flip8),
    ("128B-64B", Swizzle::Bytes128By64),
];

const INTERLEAVES: [(&str, Interleave); 3] =
    [("none", Interleave::None), ("16B", Interleave::Bytes16), ("32B", Interleave::Bytes32)];

/// The modes of columns along the width, and whether a copy takes 128 pixels.
const WIDE: [(&str, bool); 2] = [("w", false), ("w128", true)];

const FILLS: [(&str, Fill); 2] = [("zero", Fill::Zero), ("nan", Fill::Nan)];

/// Parses a text that begins with `tensormap(`; `None` for other texts.
pub fn parse(text: &str) -> Option<Result<MapSpec, String>> {
    Some(parse_inner(text, text.strip_prefix("tensormap(")?))
}

fn parse_inner(text: &str, inner: &str) -> Result<MapSpec, String> {
    let inner = inner.strip_suffix(')').ok_or_else(|| format!("`{text}` has no `)` at its end"))?;
    let mut parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or_default();
    let array = match first.parse()? {
        array @ (Spec::File { .. } | Spec::New { .. }) => Box::new(array),
        _ => return Err(format!("`{first}` is no tensor: @x.npy, f32[64x64]")),
    };
    let option = |part: &str| {
        let (name, value) =
            part.split_once('=').ok_or_else(|| format!("`{part}` is no option; there are {OPTIONS}"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let spec = MapSpec { array, options: parts.map(option).collect::<Result<_, String>>()? };
    // Mistakes in the text are reported before files are read.
    spec.describe(None, &[1])?;
    Ok(spec)
}

fn known<T: Copy>(name: &str, value: &str, all: &[(&str, T)]) -> Result<T, String> {
    all.iter().find(|(known, _)| *known == value).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("`{value}` is no {name}; there are {}", names.join(", "))
    })
}

/// Numbers separated by `x`, in reverse order.
fn numbers<T: std::str::FromStr>(name: &str, value: &str) -> Result<Vec<T>, String> {
    let number = |part: &str| part.parse().map_err(|_| format!("`{value}` is no value of {name}"));
    value.rsplit('x').map(number).collect()
}

fn number<T: std::str::FromStr + Copy>(name: &str, value: &str) -> Result<T, String> {
    match numbers(name, value)?[..] {
        [number] => Ok(number),
        _ => Err(format!("`{value}` is no value of {name}")),
    }
}

/// Writes numbers to `places`. There must be `count`, if it is known.
fn place<T: Copy>(name: &str, values: &[T], places: &mut [T], count: Option<usize>) -> Result<(), String> {
    if values.len() > places.len() || count.is_some_and(|count| count != values.len()) {
        let count = count.unwrap_or(places.len());
        return Err(format!("{name} has {} numbers, and the tensor needs {count}", values.len()));
    }
    places[..values.len()].copy_from_slice(values);
    Ok(())
}

fn element_of(dtype: DType) -> Result<Element, String> {
    let name = match dtype {
        DType::Bytes => "u8",
        other => other.name(),
    };
    known("element of a tensor map", name, &ELEMENTS)
}

impl MapSpec {
    /// The map for an array of this type and shape. Without a type, only the text is checked.
    fn describe(&self, dtype: Option<DType>, shape: &[u64]) -> Result<TensorMap, String> {
        let option = |wanted: &str| {
            self.options.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        let element = match (option("element"), dtype) {
            (Some(name), _) => known("element", name, &ELEMENTS)?,
            (None, Some(dtype)) => element_of(dtype)?,
            (None, None) => Element::U8,
        };
        let mut extents: Vec<u64> = shape.iter().rev().copied().collect();
        if let Some(value) = option("extent") {
            extents = numbers("extent", value)?;
        }
        if !(1..=MOST_DIMENSIONS).contains(&extents.len()) {
            return Err("a tensor has 1 to 5 dimensions".to_owned());
        }
        let rank = extents.len();
        let mut map = TensorMap::tiled(element, 0, &extents, &vec![1; rank]);
        let is_known = dtype.is_some();
        let count = |less: usize| is_known.then(|| rank.saturating_sub(less));
        let wide = option("wide").map(|mode| known("wide", mode, &WIDE)).transpose()?;
        let mut columns: Option<Im2col> = None;
        let mut taken = None;
        for (name, value) in &self.options {
            let corners = if wide.is_some() { Some(1) } else { count(2) };
            let corner = |corner: &mut [i32; 3]| place(name, &numbers(name, value)?, corner, corners);
            match name.as_str() {
                "element" | "extent" | "wide" => {}
                "box" => taken = Some(numbers::<u32>(name, value)?),
                "stride" => place(name, &numbers(name, value)?, &mut map.strides, count(1))?,
                "step" => place(name, &numbers(name, value)?, &mut map.steps, count(0))?,
                "interleave" => map.interleave = known(name, value, &INTERLEAVES)?,
                "swizzle" => map.swizzle = known(name, value, &SWIZZLES)?,
                "fill" => map.fill = known(name, value, &FILLS)?,
                "channels" => columns.get_or_insert_default().channels = number(name, value)?,
                "pixels" => columns.get_or_insert_default().pixels = number(name, value)?,
                "lower" => corner(&mut columns.get_or_insert_default().lower)?,
                "upper" => corner(&mut columns.get_or_insert_default().upper)?,
                _ => return Err(format!("`{name}` is no option here; there are {OPTIONS}")),
            }
        }
        map.mode = match (columns, taken) {
            (Some(columns), None) => match wide {
                Some(w128) => Mode::Im2colWide { columns, w128 },
                None => Mode::Im2col(columns),
            },
            (None, Some(_)) if wide.is_some() => return Err("a box has no wide=".to_owned()),
            (None, Some(taken)) => {
                let mut all = [1; MOST_DIMENSIONS];
                place("box", &taken, &mut all, count(0))?;
                Mode::Tiled(all)
            }
            (None, None) => return Err("a tensor map needs box=64x64, or channels= and pixels=".to_owned()),
            (Some(_), Some(_)) => return Err("a tensor map has a box or columns, not both".to_owned()),
        };
        Ok(map)
    }

    /// The map for a parameter of 128 bytes. Reads files.
    ///
    /// # Errors
    /// When a file cannot be used, the parameter is of another kind, or no driver would accept the map.
    pub fn resolve(&self, param: &Param) -> Result<Value, Failure> {
        let type_name = ptxvm::describe(param);
        if !param.array || param.bytes != ptxvm::tensor_map::BYTES as u64 {
            return Err(Failure::usage(format!("it is a tensor map, but the parameter is {type_name}"))
                .help("a tensor map goes to a parameter .align 64 .b8 [128]"));
        }
        let array = self.array.resolve_array()?;
        let (dtype, shape) = array.array().ok_or_else(|| Failure::usage("it is no array"))?;
        let map = self.describe(Some(dtype), shape).map_err(Failure::usage)?;
        map.check()
            .map_err(|unmet| Failure::usage(format!("there is no such tensor map: {unmet}")).help(OPTIONS))?;
        Ok(Value::Structure { bytes: map.to_bytes().to_vec(), arrays: vec![(ADDRESS, array)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Result<TensorMap, String> {
        let spec = parse(text).unwrap()?;
        let array = spec.array.resolve_array().unwrap();
        let (dtype, shape) = array.array().unwrap();
        let map = spec.describe(Some(dtype), shape)?;
        map.check().map(|()| map).map_err(str::to_owned)
    }

    #[test]
    fn extents_are_written_as_those_of_the_array() {
        let tiled = map("tensormap(f16[100x256], box=32x64, swizzle=128B, step=2x1, fill=nan)").unwrap();
        let expected = TensorMap {
            swizzle: Swizzle::Bytes128,
            fill: Fill::Nan,
            steps: [1, 2, 1, 1, 1],
            ..TensorMap::tiled(Element::F16, 0, &[256, 100], &[64, 32])
        };
        assert_eq!(tiled, expected);
        let wider =
            map("tensormap(bytes[4096], element=tf32.ftz, extent=2x3x5, stride=96x32, box=1x3x4)").unwrap();
        assert_eq!((wider.element, wider.rank), (Element::Tf32Ftz, 3));
        assert_eq!(
            (wider.extents, wider.strides),
            ([5, 3, 2, 1, 1], [32, 96, wider.strides[2], wider.strides[3]])
        );
        assert_eq!(wider.mode, Mode::Tiled([4, 3, 1, 1, 1]));
        let image = map("tensormap(f32[2x5x7x8], channels=8, pixels=16, lower=-1x0, upper=-1x-2)").unwrap();
        let columns = Im2col { lower: [0, -1, 0], upper: [-2, -1, 0], channels: 8, pixels: 16 };
        assert_eq!(image.mode, Mode::Im2col(columns));
        let wide =
            map("tensormap(f32[2x5x7x8], channels=8, wide=w128, lower=-1, upper=2, swizzle=64B)").unwrap();
        let columns = Im2col { lower: [-1, 0, 0], upper: [2, 0, 0], channels: 8, pixels: 0 };
        assert_eq!(wide.mode, Mode::Im2colWide { columns, w128: true });
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for (text, part) in [
            ("tensormap(f32[3], box=4", "`)`"),
            ("tensormap(7, box=4)", "no tensor"),
            ("tensormap(f32[64x64])", "box=64x64"),
            ("tensormap(f32[64x64], box=4, channels=3)", "not both"),
            ("tensormap(f32[64x64], box=4x4, wide=w)", "no wide="),
            ("tensormap(f32[4x4x4], channels=4, wide=h)", "`h` is no wide"),
            ("tensormap(f32[4x4x4x4], channels=4, wide=w, lower=1x1)", "lower has 2 numbers"),
            ("tensormap(f32[64x64], box=4)", "box has 1 numbers, and the tensor needs 2"),
            ("tensormap(f32[64x64], box=4x4x4x4x4x4)", "box has 6 numbers"),
            ("tensormap(f32[64x64], box=4x4, swizzle=96B)", "`96B` is no swizzle"),
            ("tensormap(f32[64x64], box=4x4, swizle=64B)", "`swizle` is no option here"),
            ("tensormap(f32[64x64], box=4x4, round)", "`round` is no option"),
            ("tensormap(s8[64x64], box=4x4)", "no element"),
            ("tensormap(f32[64x64], box=4x3)", "multiple of 16 bytes"),
            ("tensormap(f32[64x63], box=4x4)", "strides"),
            ("tensormap(f32[2x2x2x2x2x2], box=4)", "1 to 5 dimensions"),
            ("tensormap(f32[64x64], box=4x)", "no value of box"),
        ] {
            let error = map(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(parse("texture(f32[3])").is_none());
    }
}
