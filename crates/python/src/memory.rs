//! Host memory that a caller passes, with the buffer protocol, `__array_interface__` or DLPack.
//!
//! `PyObject_GetBuffer` is in the limited API only since Python 3.11. Its symbol and the layout of its structure are
//! the same in 3.9 and 3.10, which are frozen, so one extension works with all versions; the tests run on each.

use std::ffi::{CStr, c_char, c_int, c_void};
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

/// `PyBUF_ANY_CONTIGUOUS`: contiguous, in C or Fortran order.
const ANY_CONTIGUOUS: c_int = 0x80 | 0x10 | 0x08;
/// `PyBUF_FORMAT`: requests the element format.
const FORMAT: c_int = 0x04;

/// What keeps the memory alive and in place.
enum Hold {
    /// An export of the object's buffer, which is released when this is dropped.
    View(Box<View>),
    /// The object, or its DLPack capsule.
    Object { _object: Py<PyAny> },
}

/// Contiguous bytes of the host, which stay in place while this lives. A thread that is attached to the interpreter
/// must drop it.
pub struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    item_bytes: usize,
    writable: bool,
    hold: Hold,
}

impl HostMemory {
    /// The memory of an object; `None` if the object is not an array.
    ///
    /// # Errors
    /// When it is an array that cannot be used: not contiguous, or on another device.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<HostMemory>> {
        // SAFETY: `object` is a live object, and the thread is attached.
        if unsafe { PyObject_CheckBuffer(object.as_ptr()) } != 0 {
            return HostMemory::of_buffer(object);
        }
        if let Some(interface) = object.getattr_opt(intern!(object.py(), "__array_interface__"))? {
            return HostMemory::of_interface(object, &interface).map(Some);
        }
        if object.hasattr(intern!(object.py(), "__dlpack__"))? {
            return dlpack::memory(object).map(|(capsule, start, bytes, item, writable)| {
                let hold = Hold::Object { _object: capsule.unbind() };
                Some(HostMemory::new(start, [bytes, item], writable, hold))
            });
        }
        Ok(None)
    }

    fn new(start: *mut u8, [bytes, item_bytes]: [usize; 2], writable: bool, hold: Hold) -> HostMemory {
        // The pointer may be null if there are no bytes.
        let start = NonNull::new(start).unwrap_or(NonNull::dangling());
        HostMemory { start, bytes, item_bytes: item_bytes.max(1), writable, hold }
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
        let mut get = |flags: c_int| {
            // SAFETY: `view` is a `Py_buffer` that does not move until it is released.
            match unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) } {
                0 => Ok(()),
                _ => Err(PyErr::fetch(object.py())),
            }
        };
        // Some types have no buffer format (ml_dtypes, dates); NumPy alone knows them.
        let has_format = get(ANY_CONTIGUOUS | FORMAT).is_ok();
        if !has_format && let Err(error) = get(ANY_CONTIGUOUS) {
            // numpy raises ValueError, memoryview BufferError.
            if error.is_instance_of::<PyValueError>(object.py())
                || error.is_instance_of::<PyBufferError>(object.py())
            {
                return Err(PyTypeError::new_err(HOLES));
            }
            return Err(error);
        }
        let (start, bytes) = (view.buf.cast(), usize::try_from(view.len).unwrap_or(0));
        let (writable, format) = (view.readonly == 0, view.format);
        let item = usize::try_from(view.itemsize).unwrap_or(1);
        let memory = HostMemory::new(start, [bytes, item], writable, Hold::View(view));
        if has_format && !format.is_null() {
            // SAFETY: the export has a string there, which is valid until it is released.
            check_format(unsafe { CStr::from_ptr(format) }.to_bytes())?;
        } else if !has_format && let Some(dtype) = object.getattr_opt(intern!(object.py(), "dtype"))? {
            check_dtype(&dtype)?;
        }
        Ok(Some(memory))
    }

    /// `__array_interface__`, version 3 of NumPy's array interface.
    fn of_interface(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>) -> PyResult<HostMemory> {
        let wrong = |what: &str| PyTypeError::new_err(format!("its __array_interface__ {what}"));
        let interface = interface.cast::<PyDict>().map_err(|_| wrong("is no dictionary"))?;
        let item = |name: &str| interface.get_item(name);
        let shape: Vec<usize> = item("shape")?.ok_or_else(|| wrong("has no shape"))?.extract()?;
        let kind: String = item("typestr")?.ok_or_else(|| wrong("has no typestr"))?.extract()?;
        check_typestr(&kind)?;
        let size: usize =
            kind.get(2..).and_then(|size| size.parse().ok()).ok_or_else(|| wrong("has a wrong typestr"))?;
        if let Some(fields) = item("descr")? {
            check_fields(&fields, 0)?;
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
        Ok(HostMemory::new(
            start,
            [bytes, size],
            !read_only,
            Hold::Object { _object: object.clone().unbind() },
        ))
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Number of its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of bytes of an element, at least 1.
    pub fn item_bytes(&self) -> usize {
        self.item_bytes
    }

    /// Whether it may be written.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// A copy of its bytes.
    pub fn copy(&self) -> Vec<u8> {
        // SAFETY: the object promises this number of bytes, which stay in place. The caller is attached to the
        // interpreter, as are those who change them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }.to_vec()
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Hold::View(view) = &mut self.hold {
            // SAFETY: `PyObject_GetBuffer` filled it, and an attached thread releases it once.
            unsafe { PyBuffer_Release(&raw mut **view) }
        }
    }
}

/// The message for arrays whose elements are pointers to objects.
const OBJECTS: &str = "its elements are objects of Python, which kernels cannot use: give them a type, numpy.asarray(x, dtype=\"float32\")";
/// The message for numbers in foreign byte order.
const FOREIGN_ORDER: &str =
    "the highest byte of its elements comes first: make it x.astype(x.dtype.newbyteorder(\"=\"))";

/// Refuses elements that are objects, and numbers in foreign byte order. The format has the syntax of `struct`, with
/// the additions of PEP 3118.
fn check_format(format: &[u8]) -> PyResult<()> {
    let (mut foreign, mut in_name) = (false, false);
    for &code in format {
        match code {
            b':' => in_name = !in_name,
            _ if in_name => {}
            b'O' => return Err(PyTypeError::new_err(OBJECTS)),
            b'>' | b'!' => foreign = true,
            b'<' | b'@' | b'=' | b'^' => foreign = false,
            b'h' | b'H' | b'i' | b'I' | b'l' | b'L' | b'q' | b'Q' | b'n' | b'N' | b'e' | b'f' | b'd'
            | b'g' | b'u' | b'w' | b'P'
                if foreign =>
            {
                return Err(PyTypeError::new_err(FOREIGN_ORDER));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same check for a type as NumPy's array interface spells it: `<f4`, `|O8`.
fn check_typestr(kind: &str) -> PyResult<()> {
    let size = kind.get(2..).and_then(|size| size.parse().ok()).unwrap_or(0u64);
    match kind.get(..2) {
        Some(kind) if kind.ends_with('O') => Err(PyTypeError::new_err(OBJECTS)),
        Some(kind) if kind.starts_with('>') && size > 1 && !kind.ends_with(['V', 'S']) => {
            Err(PyTypeError::new_err(FOREIGN_ORDER))
        }
        _ => Ok(()),
    }
}

/// The same check for the fields of a structure, `[(name, type, shape), ...]`, whose types may be such lists.
fn check_fields(fields: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    const DEEPEST: usize = 32;
    for field in fields.try_iter()? {
        let kind = field?.get_item(1)?;
        match kind.extract::<String>() {
            Ok(kind) => check_typestr(&kind)?,
            Err(_) if depth < DEEPEST => check_fields(&kind, depth + 1)?,
            Err(_) => return Err(PyTypeError::new_err("its elements are structures of too many structures")),
        }
    }
    Ok(())
}

/// The same check for a `dtype` of NumPy.
fn check_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = dtype.py();
    if dtype.getattr_opt(intern!(py, "hasobject"))?.is_some_and(|has| has.is_truthy().unwrap_or(false)) {
        return Err(PyTypeError::new_err(OBJECTS));
    }
    match dtype.getattr_opt(intern!(py, "isnative"))? {
        Some(is_native) if !is_native.is_truthy()? => Err(PyTypeError::new_err(FOREIGN_ORDER)),
        _ => Ok(()),
    }
}

/// The message for arrays that are not contiguous.
const HOLES: &str = "its elements do not lie one behind the other: pass y = numpy.ascontiguousarray(x), and take what was written back: x[...] = y";

/// Whether elements of `size` bytes are contiguous, in C or Fortran order.
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
