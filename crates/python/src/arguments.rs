//! Arguments of a launch: numbers typed by the kernel's signature, arrays by their address, tuples as structures.

use half::{bf16, f16};
use isa::{Kind, Type};
use ptxvm::Param;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyTuple, PyType};

use crate::memory::HostMemory;
use crate::texture::{Object, ObjectUse};

/// An array argument, and the offset of its address in the parameters.
pub struct Array {
    /// The index of the argument.
    pub index: usize,
    /// Its memory.
    pub memory: HostMemory,
    /// Offset of the address; `None` for texels, for which kernels get the handle of an object instead.
    pub offset: Option<usize>,
    /// Whether its device memory must have [`ALIGNMENT`](crate::place::ALIGNMENT).
    pub aligned: bool,
}

/// The destination of an object's handle.
pub enum Target {
    /// This offset in the parameters.
    Offset(usize),
    /// This variable of the module.
    Variable(String),
}

/// The arrays and objects that arguments refer to.
#[derive(Default)]
pub struct Referred {
    /// The arrays.
    pub arrays: Vec<Array>,
    /// Textures, surfaces and samplers.
    pub objects: Vec<ObjectUse>,
}

impl Referred {
    /// Adds an object, and the array with its texels.
    ///
    /// # Errors
    /// When that array cannot be used.
    pub fn add_object(
        &mut self,
        py: Python<'_>,
        index: usize,
        object: &Object,
        target: Target,
    ) -> PyResult<()> {
        let mut texels = None;
        if let Some(array) = object.texels(py) {
            let memory =
                HostMemory::of(array)?.ok_or_else(|| PyTypeError::new_err("has no array of texels"))?;
            texels = Some(self.arrays.len());
            self.arrays.push(Array { index, memory, offset: None, aligned: object.is_surface() });
        }
        self.objects.push(ObjectUse { description: object.description(), texels, target });
        Ok(())
    }

    /// Appends the references of a structure that begins at offset `start`.
    fn append(&mut self, other: Referred, start: usize) {
        let arrays = self.arrays.len();
        self.arrays.extend(
            other
                .arrays
                .into_iter()
                .map(|array| Array { offset: array.offset.map(|offset| start + offset), ..array }),
        );
        self.objects.extend(other.objects.into_iter().map(|object| {
            let target = match object.target {
                Target::Offset(offset) => Target::Offset(start + offset),
                variable @ Target::Variable(_) => variable,
            };
            ObjectUse { texels: object.texels.map(|array| arrays + array), target, ..object }
        }));
    }
}

/// The bytes of all parameters. Addresses of arrays and handles of objects are filled in later.
#[derive(Default)]
pub struct Parameters {
    /// The bytes, as in parameter space.
    pub bytes: Vec<u8>,
    /// The arrays and objects that they refer to.
    pub referred: Referred,
}

/// A parameter of a kernel, and its offset.
pub struct Slot {
    /// The declared parameter.
    pub param: Param,
    /// Offset of its first byte.
    pub offset: usize,
}

impl Parameters {
    /// Writes one argument at its parameter's offset. Addresses have `address_bytes` bytes.
    ///
    /// # Errors
    /// When the argument does not fit the parameter.
    pub fn put(
        &mut self,
        index: usize,
        slot: &Slot,
        value: &Bound<'_, PyAny>,
        address_bytes: usize,
    ) -> PyResult<()> {
        let param = &slot.param;
        let size = param.bytes as usize;
        if param.array {
            return self.put_structure(index, slot, value, address_bytes);
        }
        let mut bytes = [0; 8];
        let takes_address = size == address_bytes && !param.ty.is_float();
        if takes_address && value.is_none() {
            return Ok(());
        }
        if let Some(number) = number(value, param.ty)? {
            bytes = number.to_le_bytes();
        } else if let Ok(object) = value.cast::<Object>() {
            if size != HANDLE_BYTES || param.ty.is_float() {
                return Err(PyTypeError::new_err(format!("is a {}", type_name(value))));
            }
            self.referred.add_object(value.py(), index, object.get(), Target::Offset(slot.offset))?;
        } else if let Some(memory) = HostMemory::of(value)? {
            if !takes_address {
                return Err(PyTypeError::new_err("is an array"));
            }
            self.referred.arrays.push(Array { index, memory, offset: Some(slot.offset), aligned: false });
        } else {
            let advice = list_advice(value);
            return Err(PyTypeError::new_err(format!("is a {}{advice}", type_name(value))));
        }
        self.bytes[slot.offset..slot.offset + size].copy_from_slice(&bytes[..size]);
        Ok(())
    }

    /// Writes a structure by value: a tuple, or any object with the same number of bytes.
    fn put_structure(
        &mut self,
        index: usize,
        slot: &Slot,
        value: &Bound<'_, PyAny>,
        address_bytes: usize,
    ) -> PyResult<()> {
        let size = slot.param.bytes as usize;
        let bytes = if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
            let mut structure = Structure { index, address_bytes, ..Structure::default() };
            structure.fields(value, 0)?;
            self.referred.append(structure.referred, slot.offset);
            structure.bytes
        } else if let Some(bytes) = scalar_bytes(value)? {
            bytes
        } else if let Some(memory) = HostMemory::of(value)? {
            memory.copy()
        } else {
            return Err(PyTypeError::new_err(format!(
                "is a {}: a structure is a tuple of its fields, or its bytes",
                type_name(value)
            )));
        };
        if bytes.len() != size {
            return Err(PyTypeError::new_err(format!("has {} bytes", bytes.len())));
        }
        self.bytes[slot.offset..slot.offset + size].copy_from_slice(&bytes);
        Ok(())
    }
}

/// A structure in C's layout: each field is aligned to its size.
#[derive(Default)]
struct Structure {
    index: usize,
    address_bytes: usize,
    bytes: Vec<u8>,
    /// References, with offsets from the start of the structure.
    referred: Referred,
}

/// The handle of a texture, surface or sampler is a 64-bit number.
const HANDLE_BYTES: usize = 8;
/// Maximum nesting depth of structures.
const DEEPEST: usize = 32;

impl Structure {
    /// Appends the fields, and returns their maximum alignment.
    fn fields(&mut self, fields: &Bound<'_, PyAny>, depth: usize) -> PyResult<usize> {
        if depth > DEEPEST {
            return Err(PyTypeError::new_err("is a structure of too many structures"));
        }
        // Nested structures begin at a multiple of their own alignment, which a first layout determines.
        let mut align = 1;
        for field in fields.try_iter()? {
            align = align.max(self.field(&field?, depth)?);
        }
        self.pad(align);
        Ok(align)
    }

    fn pad(&mut self, align: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
    }

    fn append(&mut self, bytes: &[u8]) -> usize {
        self.pad(bytes.len().max(1));
        self.bytes.extend(bytes);
        bytes.len().max(1)
    }

    /// Appends one field, and returns its alignment.
    fn field(&mut self, field: &Bound<'_, PyAny>, depth: usize) -> PyResult<usize> {
        if field.is_instance_of::<PyTuple>() {
            let mut inner =
                Structure { index: self.index, address_bytes: self.address_bytes, ..Structure::default() };
            let align = inner.fields(field, depth + 1)?;
            self.pad(align);
            let start = self.bytes.len();
            self.bytes.extend(inner.bytes);
            self.referred.append(inner.referred, start);
            return Ok(align);
        }
        if field.is_none() {
            return Ok(self.append(&[0; 8][..self.address_bytes]));
        }
        if let Ok(flag) = field.cast::<PyBool>() {
            return Ok(self.append(&[u8::from(flag.is_true())]));
        }
        if let Ok(number) = field.cast_exact::<PyFloat>() {
            return Ok(self.append(&(number.value() as f32).to_le_bytes()));
        }
        if field.is_exact_instance_of::<PyInt>() {
            let bits = integer(field, 32).map_err(|_| {
                PyOverflowError::new_err(format!(
                    "has the field {field}, which needs more than 32 bits: numpy.int64({field})"
                ))
            })?;
            return Ok(self.append(&(bits as u32).to_le_bytes()));
        }
        if let Some(bytes) = scalar_bytes(field)? {
            return Ok(self.append(&bytes));
        }
        if let Ok(bytes) = field.cast::<PyBytes>() {
            self.bytes.extend(bytes.as_bytes());
            return Ok(1);
        }
        if let Ok(object) = field.cast::<Object>() {
            self.pad(HANDLE_BYTES);
            let target = Target::Offset(self.bytes.len());
            self.referred.add_object(field.py(), self.index, object.get(), target)?;
            return Ok(self.append(&[0; HANDLE_BYTES]));
        }
        if let Some(memory) = HostMemory::of(field)? {
            self.pad(self.address_bytes);
            let offset = Some(self.bytes.len());
            self.referred.arrays.push(Array { index: self.index, memory, offset, aligned: false });
            return Ok(self.append(&[0; 8][..self.address_bytes]));
        }
        let advice = list_advice(field);
        Err(PyTypeError::new_err(format!("has a field of type {}{advice}", type_name(field))))
    }
}

/// The bits of a number for a parameter of this type; `None` if the value is not a number.
fn number(value: &Bound<'_, PyAny>, ty: Type) -> PyResult<Option<u64>> {
    // `bool` is an `int`, and `numpy.float64` a `float`.
    if value.is_instance_of::<PyInt>() {
        return if ty.is_float() {
            float_bits(value, ty).map(Some)
        } else {
            integer(value, ty.bits()).map(Some)
        };
    }
    if value.is_instance_of::<PyFloat>() {
        return float_bits(value, ty).map(Some);
    }
    if !is_scalar(value)? {
        return Ok(None);
    }
    let kind: char =
        value.getattr(intern!(value.py(), "dtype"))?.getattr(intern!(value.py(), "kind"))?.extract()?;
    let is_integer = matches!(kind, 'i' | 'u' | 'b');
    if ty.kind() == Kind::Bits {
        let bytes = scalar_bytes(value)?.unwrap_or_default();
        if bytes.len() as u32 * 8 == ty.bits() {
            return Ok(Some(bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))));
        }
    }
    match (is_integer, ty.is_float()) {
        (true, false) => integer(value, ty.bits()).map(Some),
        _ => float_bits(value, ty).map(Some),
    }
}

/// An integer of `bits` bits, signed or not.
fn integer(value: &Bound<'_, PyAny>, bits: u32) -> PyResult<u64> {
    let py = value.py();
    let integer = value.call_method0(intern!(py, "__index__"))?;
    let wide: i128 = integer.extract().map_err(|_| too_large(value, bits))?;
    let fits = wide >= -(1i128 << (bits - 1)) && wide < 1i128 << bits;
    if fits { Ok(wide as u64) } else { Err(too_large(value, bits)) }
}

fn too_large(value: &Bound<'_, PyAny>, bits: u32) -> PyErr {
    PyOverflowError::new_err(format!("is {value}, which has more than {bits} bits"))
}

/// A number in a floating-point format, rounded to nearest even. For a parameter of type `.b*`, the size selects the
/// format; there are two formats of 16 bits.
fn float_bits(value: &Bound<'_, PyAny>, ty: Type) -> PyResult<u64> {
    let number: f64 = value.extract()?;
    Ok(match (ty, ty.kind(), ty.bits()) {
        (Type::Bf16, ..) => bf16::from_f64(number).to_bits().into(),
        (_, Kind::Float, 16) => f16::from_f64(number).to_bits().into(),
        (_, Kind::Bits, 16) => {
            return Err(PyTypeError::new_err(format!(
                "is the float {value}, which may be f16 or bf16 here: pass numpy.float16({value}) or ml_dtypes.bfloat16({value})"
            )));
        }
        (_, Kind::Float | Kind::Bits, 32) => (number as f32).to_bits().into(),
        (_, Kind::Float | Kind::Bits, 64) => number.to_bits(),
        _ => return Err(PyTypeError::new_err(format!("is the float {value}"))),
    })
}

/// Whether it is a scalar of numpy, or of a package that extends it (bfloat16, float8).
fn is_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = value.py();
    if GENERIC.get(py).is_none() {
        // If numpy is not loaded, no such scalar exists.
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        if !modules.contains(intern!(py, "numpy"))? {
            return Ok(false);
        }
    }
    value.is_instance(GENERIC.import(py, "numpy", "generic")?)
}

/// The bytes of a numpy scalar.
fn scalar_bytes(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if !is_scalar(value)? {
        return Ok(None);
    }
    let bytes = value.call_method0(intern!(value.py(), "tobytes"))?;
    Ok(Some(bytes.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes().to_vec()))
}

/// What to do instead of passing a list; empty for anything else.
pub fn list_advice(value: &Bound<'_, PyAny>) -> &'static str {
    match value.is_instance_of::<PyList>() {
        true => " (a list has no type: numpy.array([...], dtype=\"float32\"))",
        false => "",
    }
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}
