//! Resolves the `--arg` options to the parameters of a kernel.

use std::ops::Range;

use check::module::{Function, Param};
use ptxvm::{short_name, short_param, signature};

use super::report::{Failure, code};
use super::spec::{FORMS, Spec, Value};
use super::texture::ObjectValue;

/// The values of all parameters, and the option of each.
pub struct Arguments {
    /// By parameter.
    pub values: Vec<Value>,
    /// The objects that variables of the module are bound to.
    pub bound: Vec<(String, ObjectValue)>,
    /// The variables of the module that are set, by their names in PTX, and their bytes.
    pub variables: Vec<(String, Vec<u8>)>,
    /// By option: the parameter that holds its value, or the address of its array.
    params: Vec<usize>,
}

/// An array on the command line: `2`, or `2.0` for the first array in structure 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the `--arg`.
    pub index: usize,
    /// Index of the array in a structure.
    pub field: Option<usize>,
}

impl std::str::FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let number = |part: &str| part.parse().map_err(|_| format!("`{text}` is no index of an argument"));
        match text.split_once('.') {
            Some((index, field)) => Ok(Place { index: number(index)?, field: Some(number(field)?) }),
            None => Ok(Place { index: number(text)?, field: None }),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.field {
            Some(field) => write!(f, "{}.{field}", self.index),
            None => write!(f, "{}", self.index),
        }
    }
}

/// Elements of an array on the command line: `2[10:20]`, `2[5]`, or `2` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The array.
    pub place: Place,
    /// The elements, in C order; up to [`u64::MAX`] for all from the first on.
    pub elements: Option<Range<u64>>,
}

impl std::str::FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let Some((place, elements)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) else {
            return Ok(Part { place: text.parse()?, elements: None });
        };
        let number = |part: &str, default| match part.trim() {
            "" => Ok(default),
            part => part.parse().map_err(|_| format!("`[{elements}]` are no elements: 2[10:20], 2[5]")),
        };
        let elements = match elements.split_once(':') {
            Some((start, end)) => number(start, 0)?..number(end, u64::MAX)?,
            None => {
                let index: u64 = number(elements, u64::MAX)?;
                index..index.checked_add(1).ok_or_else(|| format!("`{text}` has no index: 2[5]"))?
            }
        };
        Ok(Part { place: place.parse()?, elements: Some(elements) })
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.elements {
            None => write!(f, "{}", self.place),
            Some(Range { start, end: u64::MAX }) => write!(f, "{}[{start}:]", self.place),
            Some(Range { start, end }) => write!(f, "{}[{start}:{end}]", self.place),
        }
    }
}

impl Arguments {
    /// The values of all parameters of a kernel.
    ///
    /// # Errors
    /// When there are too many or too few, one does not fit, or a file cannot be used.
    pub fn resolve(kernel: &Function, specs: &[Spec]) -> Result<Arguments, Failure> {
        let is_numba = |spec: &Spec| matches!(spec, Spec::Numba(_));
        if !specs.iter().any(is_numba) && specs.len() != kernel.params.len() {
            return Err(wrong_count(kernel, specs.len()));
        }
        let (mut values, mut params) = (Vec::new(), Vec::new());
        for (i, spec) in specs.iter().enumerate() {
            let param = |at: usize| kernel.params.get(at);
            let at = values.len();
            let named = |param: &Param, failure: Failure| {
                let bad = failure.code == code::BAD_INPUT;
                let name = short_param(&kernel.name, &param.name);
                let failure = failure.context(format_args!("argument {i} (`{name}`)"));
                if bad { failure } else { failure.more_help(signature(kernel)) }
            };
            match (spec, param(at), param(at + DATA)) {
                (Spec::Numba(inner), _, Some(data)) => {
                    let array = inner.resolve(data).map_err(|failure| named(data, failure))?;
                    params.push(at + DATA);
                    values.extend(numba(array));
                    let wide = |param: &Param| param.bytes == 8 && !param.array;
                    if !kernel.params.iter().take(values.len()).skip(at).all(wide) {
                        let message = "numba's arrays take parameters of 8 bytes";
                        return Err(named(data, Failure::usage(message)));
                    }
                }
                (spec, Some(param), _) if !is_numba(spec) => {
                    params.push(at);
                    values.push(spec.resolve(param).map_err(|failure| named(param, failure))?);
                }
                _ => return Err(wrong_count(kernel, at + 1 + specs.len() - i)),
            }
        }
        if values.len() != kernel.params.len() {
            return Err(wrong_count(kernel, values.len()));
        }
        Ok(Arguments { values, params, bound: Vec::new(), variables: Vec::new() })
    }

    /// The parameter of an option's array or value.
    pub fn param(&self, index: usize) -> Option<usize> {
        self.params.get(index).copied()
    }

    /// The option of a parameter's array.
    pub fn option(&self, param: usize) -> usize {
        self.params.iter().position(|&of| of == param).unwrap_or(param)
    }
}

/// The index of the address among numba's parameters for an array.
const DATA: usize = 4;

/// numba's parameters for an array of d dimensions: meminfo, parent, items, bytes of an item, data, d extents, d
/// strides.
fn numba(array: Value) -> Vec<Value> {
    let word = |value: u64| Value::Bytes(value.to_le_bytes().to_vec());
    let (shape, bytes) = match array.array() {
        Some((dtype, shape)) => (shape.to_vec(), dtype.bytes() as u64),
        None => (Vec::new(), 0),
    };
    let strides = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product::<u64>() * bytes);
    let mut values = vec![word(0), word(0), word(shape.iter().product()), word(bytes), array];
    values.extend(shape.iter().copied().map(word).collect::<Vec<_>>());
    values.extend(strides.map(word));
    values
}

fn wrong_count(kernel: &Function, given: usize) -> Failure {
    let takes = kernel.params.len();
    let what =
        if given < takes { "parameters without one are marked below" } else { "leave out the last ones" };
    let plural = if takes == 1 { "" } else { "s" };
    Failure::usage(format!(
        "kernel `{}` takes {takes} argument{plural} (--arg), but {given} {} given",
        short_name(&kernel.name),
        if given == 1 { "was" } else { "were" },
    ))
    .help(format!("{what}; an argument is {FORMS}\n{}", marked_signature(kernel, given)))
}

/// The signature with a mark at each parameter from `given` on.
fn marked_signature(kernel: &Function, given: usize) -> String {
    let text = signature(kernel);
    let mark = |(i, line): (usize, &str)| {
        let missing = i > given && i <= kernel.params.len();
        if missing { format!("{line}    <- missing") } else { line.to_owned() }
    };
    text.lines().enumerate().map(mark).collect::<Vec<_>>().join("\n")
}
