//! `ptxvm.evaluate`: executes one pure instruction on whole arrays with the vector handlers.

use std::sync::{Mutex, PoisonError};

use command::{Alone, Source, ones};
use isa::{Kind, OperandKind, Type};
use lanes::{Handler, LaneWidth, Operand};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{other, unless_panics};
use crate::memory::HostMemory;

/// Lanes of one handler call.
const LANES: usize = 1024;
/// Elements of one unit of work of a thread.
const SHARE: usize = 64 * LANES;

/// The name, type and bits of an operand or result, the number of its packed elements, and their type.
type Description = (String, String, u32, u32, String);

/// Name, meaning and limits of an instruction's operands.
#[pyclass(frozen, module = "ptxvm")]
pub struct Instruction {
    alone: Alone,
    handler: Option<Handler>,
}

fn describe(name: &str, ty: Type) -> Description {
    (name.to_owned(), ty.name().to_owned(), ty.bits(), ty.lanes(), ty.element().name().to_owned())
}

/// Bytes of an element of an array of such values.
fn element_bytes(ty: Type) -> usize {
    (ty.bits() as usize).div_ceil(8)
}

#[pymethods]
impl Instruction {
    /// The instruction with so many source values, for a target, or for the newest that has it.
    #[new]
    #[pyo3(signature = (mnemonic, count, target = None))]
    fn new(py: Python<'_>, mnemonic: &str, count: usize, target: Option<&str>) -> PyResult<Instruction> {
        unless_panics(py, || {
            let target = crate::module::options(py, false, target)?.target;
            let alone =
                Alone::resolve(mnemonic, count, target).map_err(|text| other(py, "instruction", &text))?;
            let path = lanes::host_path().map_err(|error| other(py, "host-path", &error.to_string()))?;
            let handler = Handler::new(alone.form, &alone.picks, path);
            Ok(Instruction { alone, handler })
        })
    }

    /// Its sources, in order; the carry comes last.
    #[getter]
    fn sources(&self) -> Vec<Description> {
        self.alone.sources.iter().map(|Source { name, ty, .. }| describe(name, *ty)).collect()
    }

    /// Its results: one or two.
    #[getter]
    fn results(&self) -> Vec<Description> {
        self.alone.results.iter().map(|(name, ty)| describe(name, *ty)).collect()
    }

    /// Computes elements of arrays from elements of arrays, all of so many elements; sources may have one for all. `plain` leaves the vector
    /// handlers out.
    #[pyo3(signature = (count, sources, results, plain = false))]
    fn run(
        &self,
        py: Python<'_>,
        count: usize,
        sources: Vec<Bound<'_, PyAny>>,
        results: Vec<Bound<'_, PyAny>>,
        plain: bool,
    ) -> PyResult<()> {
        unless_panics(py, || self.run_now(py, count, &sources, &results, plain))
    }
}

impl Instruction {
    fn run_now(
        &self,
        py: Python<'_>,
        count: usize,
        sources: &[Bound<'_, PyAny>],
        results: &[Bound<'_, PyAny>],
        plain: bool,
    ) -> PyResult<()> {
        let memory = |object: &Bound<'_, PyAny>| {
            HostMemory::of(object)?.ok_or_else(|| PyValueError::new_err("an operand is no array"))
        };
        let inputs = sources.iter().map(memory).collect::<PyResult<Vec<_>>>()?;
        let outputs = results.iter().map(memory).collect::<PyResult<Vec<_>>>()?;
        let Alone { sources, results, .. } = &self.alone;
        if inputs.len() != sources.len() || outputs.len() != results.len() {
            return Err(PyValueError::new_err("operands are missing"));
        }
        let mut arrays = Vec::new();
        for (input, source) in inputs.iter().zip(sources) {
            let size = element_bytes(source.ty);
            let uniform = input.bytes() == size && count != 1;
            if !uniform && Some(input.bytes()) != count.checked_mul(size) {
                return Err(PyValueError::new_err(format!(
                    "operand {} has another number of elements",
                    source.name
                )));
            }
            // SAFETY: the object keeps these bytes alive. Concurrent writes give arbitrary values, as with any array.
            let bytes = unsafe { std::slice::from_raw_parts(input.start().as_ptr(), input.bytes()) };
            if let Some((least, greatest)) = source.range
                && bytes
                    .chunks_exact(size)
                    .any(|element| !(least..=greatest).contains(&(load(element) as i64)))
            {
                let text = format!("operand {} must be {least} to {greatest}", source.name);
                return Err(other(py, "arguments", &text));
            }
            arrays.push(Input { bytes, ty: source.ty, uniform });
        }
        let mut written = Vec::new();
        for (output, (_, ty)) in outputs.iter().zip(results) {
            if !output.writable() || Some(output.bytes()) != count.checked_mul(element_bytes(*ty)) {
                return Err(PyValueError::new_err("a result has another size"));
            }
            // SAFETY: as above. The caller has just created the results, and nobody else uses them.
            written.push(unsafe { std::slice::from_raw_parts_mut(output.start().as_ptr(), output.bytes()) });
        }
        // An operand that must be a constant is uniform in a handler call.
        let is_constant = |source: &Source| {
            let mut specs = self.alone.form.operands_with(&self.alone.picks);
            specs.any(|spec| spec.kind == OperandKind::Immediate && spec.name == source.name)
        };
        let constants_vary =
            arrays.iter().zip(sources).any(|(array, source)| !array.uniform && is_constant(source));
        let handler = self.handler.as_ref().filter(|_| !plain && !constants_vary);
        let mut written = written.into_iter();
        let (Some(first), second) = (written.next(), written.next()) else { return Ok(()) };
        let chunk = |result: usize| SHARE * element_bytes(results[result].1);
        let mut seconds = second.map(|second| second.chunks_mut(chunk(1)));
        let shares = first.chunks_mut(chunk(0)).enumerate();
        let shares = Mutex::new(shares.map(|(i, first)| {
            let second = seconds.as_mut().and_then(Iterator::next);
            (i * SHARE, first, second)
        }));
        let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some((start, first, second)) = next() {
                self.share(handler, &arrays, start, first, second);
            }
        };
        let done =
            py.detach(|| if count > SHARE { machine::on_host_threads(work) } else { machine::caught(work) });
        done.map_err(|message| {
            other(py, "defect", &format!("ptxvm itself failed, which is a defect of it: {message}"))
        })
    }
}

/// A source: an element for each lane, or one for all.
struct Input<'a> {
    bytes: &'a [u8],
    ty: Type,
    uniform: bool,
}

impl Input<'_> {
    /// The value of an element; 8-bit elements are extended, as handlers require.
    fn get(&self, index: usize) -> u64 {
        let size = element_bytes(self.ty);
        let at = if self.uniform { 0 } else { index * size };
        let value = load(&self.bytes[at..at + size]);
        match (self.ty, self.ty.kind()) {
            (Type::Pred, _) => u64::from(value != 0),
            (ty, Kind::Signed) if ty.bits() == 8 => value as u8 as i8 as u16 as u64,
            _ => value,
        }
    }
}

fn load(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn store(bytes: &mut [u8], value: u64) {
    bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]);
}

impl Instruction {
    /// Computes the elements of one share, from `start` on.
    fn share(
        &self,
        handler: Option<&Handler>,
        inputs: &[Input],
        start: usize,
        first: &mut [u8],
        mut second: Option<&mut [u8]>,
    ) {
        let results = &self.alone.results;
        let size = element_bytes(results[0].1);
        let count = first.len() / size;
        let Some(handler) = handler else {
            let mut values = vec![0; inputs.len()];
            for i in 0..count {
                for (value, input) in values.iter_mut().zip(inputs) {
                    *value = input.get(start + i) & ones(input.ty.bits());
                }
                let [a, b] = self.alone.compute(&values);
                store(&mut first[i * size..][..size], a);
                if let Some(second) = &mut second {
                    store(&mut second[i..=i], b);
                }
            }
            return;
        };
        let mut operands: Vec<Operand> =
            handler.sources().iter().map(|&width| Operand::new(width, LANES)).collect();
        let mut destination = Operand::new(handler.destination(), LANES);
        let mut flag = Operand::new(LaneWidth::Bit, LANES);
        for (operand, input) in operands.iter_mut().zip(inputs).filter(|(_, input)| input.uniform) {
            (0..LANES).for_each(|lane| operand.set(lane, input.get(0)));
        }
        for begin in (0..count).step_by(LANES) {
            let lanes = (count - begin).min(LANES);
            for (operand, input) in operands.iter_mut().zip(inputs).filter(|(_, input)| !input.uniform) {
                fill(operand, input, start + begin, lanes);
            }
            let sources: Vec<&Operand> = operands.iter().collect();
            handler.run(&mut destination, second.is_some().then_some(&mut flag), &sources);
            spread(&destination, results[0].1, &mut first[begin * size..][..lanes * size]);
            if let Some(second) = &mut second {
                spread(&flag, Type::Pred, &mut second[begin..][..lanes]);
            }
        }
    }
}

/// Copies elements to the lanes of an operand.
fn fill(operand: &mut Operand, input: &Input, start: usize, lanes: usize) {
    let size = element_bytes(input.ty);
    let bytes = &input.bytes[start * size..][..lanes * size];
    macro_rules! copy {
        ($($size:literal $T:ty;)*) => {
            match (input.ty, size) {
                $((ty, $size) if ty != Type::Pred => {
                    for (lane, bytes) in operand.bits_mut::<$T>().iter_mut().zip(bytes.as_chunks::<$size>().0) {
                        *lane = <$T>::from_le_bytes(*bytes);
                    }
                })*
                _ => (0..lanes).for_each(|lane| operand.set(lane, input.get(start + lane))),
            }
        };
    }
    copy! { 2 u16; 4 u32; 8 u64; }
}

/// Copies the lanes of a result to elements.
fn spread(operand: &Operand, ty: Type, bytes: &mut [u8]) {
    macro_rules! copy {
        ($($size:literal $T:ty;)*) => {
            match (ty, element_bytes(ty)) {
                $((ty, $size) if ty != Type::Pred => {
                    for (lane, bytes) in operand.bits::<$T>().iter().zip(bytes.as_chunks_mut::<$size>().0) {
                        *bytes = lane.to_le_bytes();
                    }
                })*
                _ => bytes.iter_mut().enumerate().for_each(|(lane, byte)| *byte = operand.get(lane) as u8),
            }
        };
    }
    copy! { 2 u16; 4 u32; 8 u64; }
}
