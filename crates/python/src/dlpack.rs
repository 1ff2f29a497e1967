//! DLPack: the exchange of memory between tensor libraries (`dlpack.h` of version 1.0).

use std::ffi::c_void;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCapsule};

use crate::memory::is_dense;

/// `DLDevice`
#[repr(C)]
struct Device {
    kind: i32,
    _id: i32,
}

/// `DLDataType`
#[repr(C)]
struct DataType {
    _code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    dimensions: i32,
    data_type: DataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The beginning of `DLManagedTensorVersioned`; `DLManagedTensor` begins with the tensor.
#[repr(C)]
struct Versioned {
    major: u32,
    _minor: u32,
    _manager: *mut c_void,
    _deleter: *mut c_void,
    flags: u64,
    tensor: Tensor,
}

/// `kDLCPU`
const CPU: i32 = 1;
/// `DLPACK_FLAG_BITMASK_READ_ONLY`
const READ_ONLY: u64 = 1;

/// A capsule, and the memory that it keeps alive: first byte, number of bytes, bytes of an element, whether it may be
/// written.
pub type Memory<'py> = (Bound<'py, PyAny>, *mut u8, usize, usize, bool);

/// The memory of an object with `__dlpack__`. The capsule is not consumed: its destructor releases the tensor.
///
/// # Errors
/// When the memory is not on the CPU, or is not contiguous.
pub fn memory<'py>(object: &Bound<'py, PyAny>) -> PyResult<Memory<'py>> {
    let py = object.py();
    if let Some(device) = object.getattr_opt(intern!(py, "__dlpack_device__"))? {
        let (kind, _): (i32, i32) = device.call0()?.extract()?;
        if kind != CPU {
            return Err(PyTypeError::new_err("its memory is not the CPU's: copy it to the CPU first"));
        }
    }
    let export = intern!(py, "__dlpack__");
    let newest = [("max_version", (1, 0))].into_py_dict(py)?;
    let capsule = match object.call_method(export, (), Some(&newest)) {
        // The object implements an older version.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0(export)?,
        other => other?,
    };
    let capsule =
        capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("its __dlpack__ gives no capsule"))?;
    let pointer = |name: &std::ffi::CStr| {
        // SAFETY: it is a live capsule. If its name differs, the call sets an error, which is cleared.
        unsafe {
            match ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) {
                1 => ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()),
                _ => std::ptr::null_mut(),
            }
        }
    };
    let (versioned, plain) = (pointer(c"dltensor_versioned"), pointer(c"dltensor"));
    // SAFETY: an unconsumed capsule of this name holds a structure of this type, which lives as long as the capsule.
    let (tensor, writable) = unsafe {
        match (versioned.cast::<Versioned>().as_ref(), plain.cast::<Tensor>().as_ref()) {
            (Some(versioned), _) if versioned.major == 1 => {
                (&versioned.tensor, versioned.flags & READ_ONLY == 0)
            }
            (None, Some(tensor)) => (tensor, true),
            _ => return Err(PyTypeError::new_err("its __dlpack__ gives no tensor of a known version")),
        }
    };
    if tensor.device.kind != CPU {
        return Err(PyTypeError::new_err("its memory is not the CPU's: copy it to the CPU first"));
    }
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or(0);
    // SAFETY: `shape` points to this number of extents.
    let shape = unsafe { slice(tensor.shape, dimensions) };
    let shape: Vec<usize> = shape.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).collect();
    let bits = usize::from(tensor.data_type.bits) * usize::from(tensor.data_type.lanes);
    let elements = shape.iter().try_fold(1usize, |elements, &extent| elements.checked_mul(extent));
    let bytes = elements.and_then(|elements| elements.checked_mul(bits)).map(|bits| bits.div_ceil(8));
    let bytes = bytes.ok_or_else(|| PyTypeError::new_err("its tensor is too large"))?;
    if !tensor.strides.is_null() {
        // SAFETY: `strides` is not null, so it points to this number of strides. They count elements.
        let strides: Vec<isize> =
            unsafe { slice(tensor.strides, dimensions) }.iter().map(|&step| step as isize).collect();
        if !is_dense(&shape, &strides, 1) {
            return Err(PyTypeError::new_err(
                "its elements do not lie one behind the other: make it contiguous",
            ));
        }
    }
    let start = tensor.data.cast::<u8>().wrapping_add(usize::try_from(tensor.byte_offset).unwrap_or(0));
    Ok((capsule.clone().into_any(), start, bytes, bits / 8, writable))
}

/// # Safety
/// `start` must be null, or point to `count` numbers.
unsafe fn slice<'a>(start: *const i64, count: usize) -> &'a [i64] {
    // SAFETY: the caller's promise.
    if start.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(start, count) } }
}
