//! Memory of the host that a caller passes: whatever has the buffer protocol, `__array_interface__` or DLPack.
//!
//! `PyObject_GetBuffer` is in the limited API since Python 3.11 only. Its symbol and the layout of its structure are the same in 3.9 and 3.10,
//! which no longer change, so one extension serves them all; the tests run on each.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dlpack;

/// `Py_buffer` of Python's C API ("Buffer Protocol").
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_CheckBuffer(object: *mut ffi::PyObject) -> c_int;
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

/// `PyBUF_ANY_CONTIGUOUS`: in the order of C or of Fortran, without holes.
const ANY_CONTIGUOUS: c_int = 0x80 | 0x10 | 0x08;

/// What keeps the memory where it is.
enum Hold {
    /// An export of the object's buffer; given back when this is dropped.
    View(Box<View>),
    /// The object, or the capsule that it gave.
    Object { _object: Py<PyAny> },
}

/// Bytes of the host without holes, which stay where they are as long as this lives. To be dropped by a thread that is attached to the
/// interpreter.
pub struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    writable: bool,
    hold: Hold,
}

impl HostMemory {
    /// The memory of an object; `None` if it is no array.
    ///
    /// # Errors
    /// When it is one, and cannot be used: it has holes, or lies on another device.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<HostMemory>> {
        // SAFETY: `object` is a live object, and the thread is attached.
        if unsafe { PyObject_CheckBuffer(object.as_ptr()) } != 0 {
            return HostMemory::of_buffer(object);
        }
        if let Some(interface) = object.getattr_opt(intern!(object.py(), "__array_interface__"))? {
            return HostMemory::of_interface(object, &interface).map(Some);
        }
        if object.hasattr(intern!(object.py(), "__dlpack__"))? {
            return dlpack::memory(object).map(|(capsule, start, bytes, writable)| {
                Some(HostMemory::new(start, bytes, writable, Hold::Object { _object: capsule.unbind() }))
            });
        }
        Ok(None)
    }

    fn new(start: *mut u8, bytes: usize, writable: bool, hold: Hold) -> HostMemory {
        // Where there are no bytes the pointer may be null.
        let start = NonNull::new(start).unwrap_or(NonNull::dangling());
        HostMemory { start, bytes, writable, hold }
    }

    fn of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Option<HostMemory>> {
        let mut view = Box::new(View {
            buf: std::ptr::null_mut(),
            obj: std::ptr::null_mut(),
            len: 0,
            itemsize: 0,
            readonly: 0,
            ndim: 0,
            format: std::ptr::null_mut(),
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        });
        // SAFETY: `view` is a `Py_buffer`, which stays where it is until it is released.
        let status = unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, ANY_CONTIGUOUS) };
        if status != 0 {
            let error = PyErr::fetch(object.py());
            // numpy says ValueError, memoryview BufferError.
            if error.is_instance_of::<PyValueError>(object.py())
                || error.is_instance_of::<PyBufferError>(object.py())
            {
                return Err(PyTypeError::new_err(HOLES));
            }
            return Err(error);
        }
        let (start, bytes) = (view.buf.cast(), usize::try_from(view.len).unwrap_or(0));
        let writable = view.readonly == 0;
        Ok(Some(HostMemory::new(start, bytes, writable, Hold::View(view))))
    }

    /// `__array_interface__`, version 3 of NumPy's array interface.
    fn of_interface(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>) -> PyResult<HostMemory> {
        let wrong = |what: &str| PyTypeError::new_err(format!("its __array_interface__ {what}"));
        let interface = interface.cast::<PyDict>().map_err(|_| wrong("is no dictionary"))?;
        let item = |name: &str| interface.get_item(name);
        let shape: Vec<usize> = item("shape")?.ok_or_else(|| wrong("has no shape"))?.extract()?;
        let kind: String = item("typestr")?.ok_or_else(|| wrong("has no typestr"))?.extract()?;
        let size: usize =
            kind.get(2..).and_then(|size| size.parse().ok()).ok_or_else(|| wrong("has a wrong typestr"))?;
        if kind.starts_with('>') && size > 1 {
            return Err(wrong("is of numbers whose highest byte comes first"));
        }
        let bytes = shape.iter().try_fold(size, |bytes, &extent| bytes.checked_mul(extent));
        let bytes =
            bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(|| wrong("is too large"))?;
        if let Some(strides) = item("strides")?.filter(|strides| !strides.is_none()) {
            let strides: Vec<isize> = strides.extract()?;
            if !is_dense(&shape, &strides, size) {
                return Err(PyTypeError::new_err(HOLES));
            }
        }
        let data = item("data")?.filter(|data| !data.is_none()).ok_or_else(|| wrong("has no address"))?;
        let (address, read_only): (usize, bool) =
            data.cast::<PyTuple>().map_err(|_| wrong("has no address"))?.extract()?;
        let start = std::ptr::with_exposed_provenance_mut(address);
        Ok(HostMemory::new(start, bytes, !read_only, Hold::Object { _object: object.clone().unbind() }))
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Number of its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it may be written.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// A copy of its bytes.
    pub fn copy(&self) -> Vec<u8> {
        // SAFETY: the object promises so many bytes, which stay there; the caller is attached to the interpreter, as are those who change them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }.to_vec()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Hold::View(view) = &mut self.hold {
            // SAFETY: it was filled by `PyObject_GetBuffer`, and is released once, by a thread that is attached.
            unsafe { PyBuffer_Release(&raw mut **view) }
        }
    }
}

/// What is said of arrays whose elements do not lie one behind the other.
const HOLES: &str = "its elements do not lie one behind the other: make it numpy.ascontiguousarray(x)";

/// Whether elements of so many bytes lie one behind the other, in the order of C or of Fortran.
pub fn is_dense(shape: &[usize], strides: &[isize], size: usize) -> bool {
    if shape.len() != strides.len() {
        return false;
    }
    let follows = |last_first: bool| {
        let mut step = size as isize;
        (0..shape.len()).all(|i| {
            let axis = if last_first { shape.len() - 1 - i } else { i };
            let fits = shape[axis] <= 1 || strides[axis] == step;
            step = step.saturating_mul(shape[axis] as isize);
            fits
        })
    };
    shape.contains(&0) || follows(true) || follows(false)
}
