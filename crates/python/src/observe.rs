//! What a launch looks for besides running: `tool=`, `trace=`, `watch=`, `first_nan=`.
//!
//! A launch has one observer, so one of the four at a time. What the observer saw becomes JSON, as the command prints
//! it, with the command's text beside it (`rendered`); `ptxvm/_observed.py` makes objects of that.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use isa::Type;
#[cfg(debug_assertions)]
use ptxvm::observe::AccessEvent;
use ptxvm::observe::{FirstNonFinite, InstructionEvent, LaunchObserver, ObserverHandle, WriteWatch};
use ptxvm::observed::watch::{Element, Writers};
use ptxvm::observed::{nonfinite, trace, value, watch};
use ptxvm::{Checker, Loaded, Tools, by_cause};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use serde_json::{Value, json};

use crate::arguments::Referred;
use crate::launch::{extents, lock};
use crate::memory::HostMemory;
use crate::place::Placed;

/// Writes of an element that are kept.
const KEPT_WRITES: usize = 100;

/// The options of a launch that ask for an observer.
#[derive(Default)]
pub struct Questions<'py> {
    /// `tool=`
    pub tool: Option<Bound<'py, PyAny>>,
    /// `undefined=`: arrays that count as unwritten.
    pub undefined: Option<Bound<'py, PyAny>>,
    /// `trace=`
    pub trace: Option<Bound<'py, PyAny>>,
    /// `watch=`
    pub watch: Option<Bound<'py, PyAny>>,
    /// `first_nan=`
    pub first_nan: bool,
}

/// The arrays of a launch, and where they lie.
#[derive(Clone, Copy)]
pub struct Arrays<'a> {
    /// The number of arguments. Arrays with a higher index are those that variables are bound to.
    pub arguments: usize,
    /// The arrays.
    pub referred: &'a Referred,
    /// Their places.
    pub placed: &'a Placed<'a>,
}

impl Arrays<'_> {
    /// The element at an address: `2[17]`.
    fn element(self, address: u64) -> Option<String> {
        self.referred.arrays.iter().enumerate().find_map(|(at, array)| {
            let offset = address.checked_sub(self.placed.address(at))?;
            (offset < array.memory.bytes() as u64 && array.index < self.arguments)
                .then(|| format!("{}[{}]", array.index, offset / array.memory.item_bytes() as u64))
        })
    }

    /// The device address of a byte of an argument's array.
    fn device(self, host: usize, bytes: usize) -> Option<u64> {
        self.referred.arrays.iter().enumerate().find_map(|(at, array)| {
            let offset = host.checked_sub(array.memory.start().as_ptr() as usize)?;
            let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= array.memory.bytes());
            is_inside.then(|| self.placed.address(at) + offset as u64)
        })
    }

    /// Adds the element at an address to the address.
    fn name(self, address: &mut Value) {
        if address.is_object() {
            let at = address["address"].as_u64().filter(|_| address["space"] == "global");
            address["element"] = json!(at.and_then(|at| self.element(at)));
        }
    }
}

/// Collects the instructions of a thread.
pub struct Trace {
    places: ptxvm::Places,
    thread: ([u32; 3], u32),
    steps: Vec<Value>,
}

impl LaunchObserver for Trace {
    fn wants_instructions(&self, block: [u32; 3], thread: u32) -> bool {
        (block, thread) == self.thread
    }

    fn instruction(&mut self, event: &InstructionEvent) -> ControlFlow<()> {
        let step = trace::json(&self.places, event);
        self.steps.push(with_text(step, &trace::text(&self.places, event)));
        ControlFlow::Continue(())
    }
}

/// Fails at the first access. Tests see with it what a panic becomes, in builds with checks.
#[cfg(debug_assertions)]
pub struct Planted;

#[cfg(debug_assertions)]
impl LaunchObserver for Planted {
    fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
        panic!("planted in an observer of {} lanes", access.lanes.len())
    }
}

/// The observer of a launch.
pub enum Observation {
    /// `tool=`
    Tools(Tools, Arc<Mutex<Checker>>),
    /// `trace=`
    Trace(Arc<Mutex<Trace>>),
    /// `watch=`: the elements and their types, in the order of the observer's ranges.
    Watch(Vec<(Element, Option<Type>)>, Arc<Mutex<WriteWatch>>),
    /// `first_nan=`
    FirstNan(Arc<Mutex<FirstNonFinite>>),
}

impl<'py> Questions<'py> {
    /// The name of the option that is given.
    ///
    /// # Errors
    /// When several are.
    pub fn given(&self) -> PyResult<Option<&'static str>> {
        let all = [
            ("tool", self.tool.is_some()),
            ("trace", self.trace.is_some()),
            ("watch", self.watch.is_some()),
            ("first_nan", self.first_nan),
        ];
        let given: Vec<_> = all.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        if self.undefined.is_some() && self.tool.is_none() {
            return Err(PyValueError::new_err("undefined= is for tool=\"initcheck\""));
        }
        match given[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [one, other, ..] => {
                let text =
                    format!("{one}= and {other}= both watch the launch: ask for one, then for the other");
                Err(PyValueError::new_err(text))
            }
        }
    }

    /// The observer, if an option asks for one. `extents` are those of the grid and of a block.
    ///
    /// # Errors
    /// When there is no such tool, thread or element.
    pub fn observation(
        &self,
        loaded: &Loaded,
        shape: [[u32; 3]; 2],
        arrays: Arrays<'_>,
    ) -> PyResult<Option<Observation>> {
        if let Some(names) = &self.tool {
            let tools = tools(names)?;
            let checker = Checker::shared(tools);
            self.tell_memory(&mut lock(&checker), arrays)?;
            return Ok(Some(Observation::Tools(tools, checker)));
        }
        if let Some(place) = &self.trace {
            let thread = thread(place, shape)?;
            let places = loaded.module().places();
            return Ok(Some(Observation::Trace(Arc::new(Mutex::new(Trace {
                places,
                thread,
                steps: Vec::new(),
            })))));
        }
        if let Some(wanted) = &self.watch {
            let elements = watched(wanted, arrays)?;
            let ranges = elements.iter().map(|(element, _)| element.range.clone()).collect();
            return Ok(Some(Observation::Watch(elements, WriteWatch::shared(ranges, KEPT_WRITES))));
        }
        Ok(self.first_nan.then(|| Observation::FirstNan(FirstNonFinite::shared())))
    }

    /// Tells a checker which arrays hold values.
    fn tell_memory(&self, checker: &mut Checker, arrays: Arrays<'_>) -> PyResult<()> {
        for (at, array) in arrays.referred.arrays.iter().enumerate() {
            checker.defined_memory(arrays.placed.address(at), array.memory.bytes() as u64);
        }
        for object in self.undefined.iter().map(several).collect::<PyResult<Vec<_>>>()?.concat() {
            let memory = HostMemory::of(&object)?;
            let range = memory.as_ref().map(|memory| (memory.start().as_ptr() as usize, memory.bytes()));
            let address = range.and_then(|(start, bytes)| Some((arrays.device(start, bytes)?, bytes)));
            let (address, bytes) = address.ok_or_else(|| {
                PyValueError::new_err("undefined= names something that is no array among the arguments")
            })?;
            checker.undefined_memory(address, bytes as u64);
        }
        Ok(())
    }
}

/// One object, or the objects of a tuple or a list.
fn several<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_many = object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>();
    if is_many { object.try_iter()?.collect() } else { Ok(vec![object.clone()]) }
}

/// `"racecheck,initcheck"`, or a tuple of names.
fn tools(names: &Bound<'_, PyAny>) -> PyResult<Tools> {
    let names: Vec<String> = several(names)?.iter().map(|name| name.extract()).collect::<PyResult<_>>()?;
    names.join(",").parse().map_err(PyValueError::new_err)
}

/// `(0, 3)`, `((1, 0), (3, 0, 0))`: a block and a thread in it, each by its linear index or its coordinates.
fn thread(place: &Bound<'_, PyAny>, [grid, block]: [[u32; 3]; 2]) -> PyResult<([u32; 3], u32)> {
    let wrong = || PyTypeError::new_err("trace= is a block and a thread in it: (0, 3), ((1, 0), (3, 0, 0))");
    let pair = place.cast::<PyTuple>().map_err(|_| wrong())?;
    if pair.len() != 2 {
        return Err(wrong());
    }
    let of_grid = coordinates(&pair.get_item(0)?, grid, "block")?;
    let [x, y, z] = coordinates(&pair.get_item(1)?, block, "thread")?;
    // A block that is too large for this is refused at launch.
    Ok((of_grid, block[1].wrapping_mul(z).wrapping_add(y).wrapping_mul(block[0]).wrapping_add(x)))
}

fn coordinates(at: &Bound<'_, PyAny>, extents_of: [u32; 3], what: &str) -> PyResult<[u32; 3]> {
    let missing = || {
        let extents = extents_of.map(|extent| extent.to_string()).join("x");
        PyValueError::new_err(format!("trace=: there is no {what} {at}: there are {extents}"))
    };
    let [nx, ny, nz] = extents_of.map(u64::from);
    let found = if at.is_instance_of::<PyTuple>() {
        let [x, y, z] = extents(at)?;
        // Coordinates that are not written are 0; extents would be 1.
        match at.len()? {
            1 => [x, 0, 0],
            2 => [x, y, 0],
            _ => [x, y, z],
        }
    } else {
        let index: u64 = at.extract().map_err(|_| missing())?;
        if index >= nx.saturating_mul(ny).saturating_mul(nz) {
            return Err(missing());
        }
        [index % nx, index / nx % ny, index / (nx * ny)].map(|n| n as u32)
    };
    let is_there = found.iter().zip(extents_of).all(|(&at, extent)| at < extent);
    if is_there { Ok(found) } else { Err(missing()) }
}

/// The elements that `watch=` names.
fn watched(wanted: &Bound<'_, PyAny>, arrays: Arrays<'_>) -> PyResult<Vec<(Element, Option<Type>)>> {
    // Of each element: whether it is of an array, its address there or on the device, its size, and its type.
    let named: Vec<(bool, u64, usize, String)> =
        wanted.py().import("ptxvm._observed")?.call_method1("elements", (wanted,))?.extract()?;
    let element = |(is_host, address, bytes, dtype): (bool, u64, usize, String)| {
        if !is_host {
            let range = address..address.saturating_add(bytes as u64);
            return Ok((Element { name: format!("{address:#x}"), range, ty: None }, None));
        }
        let start = usize::try_from(address).ok().and_then(|host| arrays.device(host, bytes));
        let start = start.ok_or_else(|| {
            PyValueError::new_err("watch= names an array that is not among the arguments of the launch")
        })?;
        let name = arrays.element(start).unwrap_or_else(|| format!("{start:#x}"));
        let element = Element { name, range: start..start + bytes as u64, ty: Some(dtype.clone()) };
        Ok((element, type_of(&dtype)))
    };
    named.into_iter().map(element).collect()
}

/// The type of PTX that a type of NumPy or of ml_dtypes is.
fn type_of(dtype: &str) -> Option<Type> {
    let name = match dtype {
        "bfloat16" => "bf16".to_owned(),
        "float8_e4m3fn" => "e4m3".to_owned(),
        "float8_e5m2" => "e5m2".to_owned(),
        "bool" => "u8".to_owned(),
        _ => dtype.replace("uint", "u").replace("int", "s").replace("float", "f"),
    };
    Type::from_name(&name)
}

fn show(bits: u128, ty: Option<Type>) -> String {
    value::show(ty.unwrap_or(Type::B64), bits)
}

fn with_text(mut object: Value, text: &str) -> Value {
    object["rendered"] = json!(text);
    object
}

impl Observation {
    /// The observer.
    pub fn handle(&self) -> ObserverHandle {
        match self {
            Observation::Tools(_, checker) => ObserverHandle::new(Arc::clone(checker)),
            Observation::Trace(trace) => ObserverHandle::new(Arc::clone(trace)),
            Observation::Watch(_, watch) => ObserverHandle::new(Arc::clone(watch)),
            Observation::FirstNan(search) => ObserverHandle::new(Arc::clone(search)),
        }
    }

    /// The tools that run.
    pub fn tools(&self) -> Tools {
        match self {
            Observation::Tools(tools, _) => *tools,
            _ => Tools::default(),
        }
    }

    /// What the observer saw, as objects, and the attribute for it. The launch has ended, normally or not, and its
    /// arrays are still in place.
    ///
    /// # Errors
    /// Those of Python, when the objects are made.
    pub fn finish<'py>(
        &self,
        py: Python<'py>,
        loaded: &Loaded,
        block: [u32; 3],
        arrays: Arrays<'_>,
    ) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let (name, seen) = match self {
            Observation::Tools(_, checker) => {
                let findings = by_cause(loaded.module().findings(checker));
                let object =
                    |found: &ptxvm::Located| with_text(ptxvm::json::finding(found), &found.to_string());
                ("findings", findings.iter().map(object).collect())
            }
            Observation::Trace(trace) => {
                let mut steps = std::mem::take(&mut lock(trace).steps);
                steps.iter_mut().for_each(|step| arrays.name(&mut step["address"]));
                ("trace", Value::from(steps))
            }
            Observation::Watch(elements, watch) => ("watch", writes(elements, watch, loaded, block)),
            Observation::FirstNan(search) => {
                let places = loaded.module().places();
                let element = |address| arrays.element(address);
                let context = nonfinite::Context { places: &places, element: &element, block };
                let flows = lock(search).flows();
                let object = |flow| {
                    let mut object = nonfinite::json(flow, &context);
                    arrays.name(&mut object["origin"]["address"]);
                    for passage in object["passages"].as_array_mut().into_iter().flatten() {
                        arrays.name(&mut passage["stored"]);
                    }
                    with_text(object, &nonfinite::flow_text(flow, &context))
                };
                ("first_nan", flows.iter().map(object).collect())
            }
        };
        let make = py.import("ptxvm._observed")?.getattr(name)?;
        let made = match self {
            Observation::Watch(elements, _) => {
                let types: Vec<_> = elements.iter().map(|(element, _)| element.ty.as_deref()).collect();
                make.call1((seen.to_string(), block, types))
            }
            _ => make.call1((seen.to_string(), block)),
        };
        Ok((name, made?))
    }
}

fn writes(
    elements: &[(Element, Option<Type>)],
    watch: &Mutex<WriteWatch>,
    loaded: &Loaded,
    block: [u32; 3],
) -> Value {
    let read = |range: &Range<u64>| {
        let mut bytes = [0; 16];
        let count = usize::try_from(range.end - range.start).ok()?;
        loaded.device().read_at(range.start, bytes.get_mut(..count)?).ok()?;
        Some(u128::from_le_bytes(bytes))
    };
    let writers = Writers::of(watch, &loaded.module().places(), block, read);
    let of = elements.iter().zip(&writers.of);
    of.map(|((element, ty), writes)| {
        let text = watch::text(element, writes, |bits| show(bits, *ty));
        with_text(watch::json(element, writes), &text)
    })
    .collect()
}
