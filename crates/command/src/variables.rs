//! `--set NAME=ARRAY`, `--get NAME`: variables of the module, before and after the launch.

use std::path::PathBuf;

use check::module::{Param, Variable};
use isa::Space;
use ptxvm::{Loaded, Module, short_name};

use super::array::{DType, HostArray};
use super::report::Failure;
use super::spec::{Spec, Value};

/// `--set NAME=@x.npy`, `--set scale=2.5`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    name: String,
    spec: Spec,
    /// The value as written.
    text: String,
}

impl std::str::FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Assignment, String> {
        let (name, text) = text.split_once('=').ok_or("write it as NAME=ARRAY: table=@x.npy, scale=2.5")?;
        let is_value = |spec: &Spec| {
            matches!(spec, Spec::Number(_) | Spec::File { .. } | Spec::New { .. } | Spec::Bytes(_))
        };
        match text.parse().ok().filter(is_value) {
            Some(spec) => Ok(Assignment { name: name.to_owned(), spec, text: text.to_owned() }),
            None => Err(format!("`{text}` is no value of a variable: @x.npy, f32[4]=1, bytes:00ff, 2.5")),
        }
    }
}

/// `--get NAME`, `--get NAME=PATH`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The variable.
    pub name: String,
    /// Where to save it; else it is shown.
    pub path: Option<PathBuf>,
}

impl std::str::FromStr for Query {
    type Err = String;

    fn from_str(text: &str) -> Result<Query, String> {
        let Some((name, path)) = text.split_once('=') else {
            return Ok(Query { name: text.to_owned(), path: None });
        };
        if ![".npy", ".bin"].iter().any(|ending| path.ends_with(ending)) {
            return Err(format!("`{path}` must end in .npy or .bin"));
        }
        Ok(Query { name: name.to_owned(), path: Some(path.into()) })
    }
}

/// A variable in global or constant memory, by its name in PTX or demangled, or a part that no other has.
///
/// # Errors
/// When there is none, or several.
pub fn find<'m>(module: &'m Module, name: &str) -> Result<&'m Variable, Failure> {
    let placed = module.program().module.variables.iter();
    let all: Vec<_> = placed
        .filter(|v| {
            v.function.is_none() && v.opaque.is_none() && matches!(v.space, Space::Global | Space::Const)
        })
        .collect();
    if let Some(exact) = all.iter().find(|v| v.name == name || short_name(&v.name) == name) {
        return Ok(exact);
    }
    let names = |of: &[&Variable]| of.iter().map(|v| short_name(&v.name)).collect::<Vec<_>>().join(", ");
    let parts: Vec<_> = all.iter().copied().filter(|v| v.name.contains(name)).collect();
    match &parts[..] {
        [only] => Ok(only),
        [] if all.is_empty() => {
            Err(Failure::usage(format!("there is no variable `{name}`: the module has none")))
        }
        [] => Err(Failure::usage(format!("there is no variable `{name}`"))
            .help(format!("the variables are {}", names(&all)))),
        several => Err(Failure::usage(format!("several variables have `{name}` in their names"))
            .help(format!("they are {}", names(several)))),
    }
}

impl Assignment {
    /// The variable's name in PTX, and the bytes to write.
    ///
    /// # Errors
    /// When there is no such variable, or the value does not fit.
    pub fn resolve(&self, module: &Module) -> Result<(String, Vec<u8>), Failure> {
        let fail = |failure: Failure| failure.context(format_args!("--set {}", self.name));
        let variable = find(module, &self.name).map_err(fail)?;
        let value = match &self.spec {
            Spec::Number(_) if variable.array => {
                let (ty, text) = (variable.ty.name(), &self.text);
                let elements = variable.bytes / u64::from(variable.ty.bytes());
                Err(Failure::usage("the variable is an array")
                    .help(format!("--set {}={ty}[{elements}]={text}", self.name)))
            }
            Spec::File { .. } | Spec::New { .. } => self.spec.resolve_array(),
            scalar => scalar.resolve(&as_parameter(variable)),
        };
        let data = match value.map_err(fail)? {
            Value::Array(HostArray { data, .. }) | Value::Bytes(data) => data,
            Value::Zeros { dtype, shape, .. } => {
                vec![0; shape.iter().product::<u64>() as usize * dtype.bytes()]
            }
            _ => return Err(fail(Failure::usage("it is no value of a variable"))),
        };
        if data.len() as u64 != variable.bytes {
            let (text, has, given) = (&self.text, variable.bytes, data.len());
            return Err(fail(Failure::usage(format!("the variable has {has} bytes, and `{text}` {given}"))));
        }
        Ok((variable.name.clone(), data))
    }
}

/// A parameter of the type of a variable: numbers are read in the same way.
fn as_parameter(variable: &Variable) -> Param {
    Param {
        name: variable.name.clone(),
        ty: variable.ty,
        opaque: None,
        bytes: variable.bytes,
        align: variable.align,
        array: variable.array,
        pointer: None,
        in_register: false,
        register: None,
        span: variable.span,
    }
}

/// The contents of a variable, as an array of its element type.
///
/// # Errors
/// When it cannot be read.
pub fn read(loaded: &Loaded, variable: &Variable) -> Result<HostArray, Failure> {
    let mut data = vec![0; variable.bytes as usize];
    let result = loaded.read_variable(&variable.name, 0, &mut data);
    result.map_err(|error| Failure::usage(format!("--get {}: {error}", variable.name)))?;
    let dtype = DType::from_name(variable.ty.name()).filter(|dtype| data.len().is_multiple_of(dtype.bytes()));
    let dtype = dtype.unwrap_or(DType::Bytes);
    Ok(HostArray { dtype, shape: vec![(data.len() / dtype.bytes()) as u64], data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_and_queries_are_read() {
        assert!("table=@x.npy".parse::<Assignment>().is_ok() && "scale=2.5".parse::<Assignment>().is_ok());
        assert!("table".parse::<Assignment>().is_err() && "t={1, 2}".parse::<Assignment>().is_err());
        assert_eq!("t".parse(), Ok(Query { name: "t".into(), path: None }));
        assert_eq!("t=a.npy".parse(), Ok(Query { name: "t".into(), path: Some("a.npy".into()) }));
        assert!("t=a.png".parse::<Query>().is_err());
    }
}
