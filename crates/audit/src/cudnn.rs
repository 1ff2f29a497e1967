//! What XLA's plugin for CUDA gets when it asks cuDNN for something.
//!
//! XLA compiles nothing before it has a handle of cuDNN, even where it calls nothing else of it. NVIDIA's cuDNN has
//! NVIDIA's CUDA runtime inside, which runs on NVIDIA's driver only, so it has no handle to give. Here XLA gets one, and
//! each function that would compute something with it returns `CUDNN_STATUS_NOT_SUPPORTED`.
//!
//! Only XLA's plugin is answered so: the dynamic linker reports who looks up a name, and in which library.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;

/// `LA_FLG_BINDTO` and `LA_FLG_BINDFROM`.
const BIND_TO: c_uint = 1;
const BIND_FROM: c_uint = 2;

/// What the dynamic linker keeps with XLA's plugin for us, where the address of a description is with others.
const XLA: usize = 1;

/// `CUDNN_STATUS_SUCCESS`, and `CUDNN_STATUS_NOT_SUPPORTED` of version 9.
const SUCCESS: c_int = 0;
const NOT_SUPPORTED: c_int = 3000;

/// The start of `struct link_map`.
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *const c_char,
}

/// `Elf64_Sym`
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

/// The dynamic linker has loaded a library. Returns whether the names are of interest that it looks up, or that it has.
///
/// # Safety
/// `map` must be the dynamic linker's description of a library.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_objopen(map: *const LinkMap, _: isize, cookie: *mut usize) -> c_uint {
    // SAFETY: the dynamic linker passes its description, which begins with these fields.
    let name = unsafe { (*map).name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: the name is a string of C.
    let Ok(path) = unsafe { CStr::from_ptr(name) }.to_str() else { return 0 };
    match Path::new(path).file_name().and_then(|name| name.to_str()) {
        Some("xla_cuda_plugin.so") => {
            // SAFETY: the place is for us to write to.
            unsafe { cookie.write(XLA) };
            BIND_FROM
        }
        Some("libcudnn.so.9") => BIND_TO,
        _ => 0,
    }
}

/// A library has looked up a name in cuDNN. Returns the address that it gets.
///
/// # Safety
/// `symbol` must be what the dynamic linker has found, `from` what it keeps with the library that asks, and `name` a
/// string of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_symbind64(
    symbol: *const Symbol,
    _: c_uint,
    from: *const usize,
    _: *const usize,
    _: *mut c_uint,
    name: *const c_char,
) -> usize {
    // SAFETY: the dynamic linker passes all three.
    let (theirs, from, name) = unsafe { ((*symbol).value, *from, CStr::from_ptr(name)) };
    // glibc 2.36 also reports what `dlsym` finds for libraries that `la_objopen` has no interest in.
    if from != XLA {
        return theirs;
    }
    let ours: *const c_void = match name.to_bytes() {
        b"cudnnCreate" => create as *const c_void,
        b"cudnnDestroy" => destroy as *const c_void,
        b"cudnnSetStream" => set_stream as *const c_void,
        // They need no handle.
        b"cudnnGetVersion" | b"cudnnGetCudartVersion" | b"cudnnGetProperty" => return theirs,
        b"cudnnGetErrorString" | b"cudnnGetLastErrorString" => return theirs,
        name if name.starts_with(b"cudnn") => refuse as *const c_void,
        _ => return theirs,
    };
    ours.expose_provenance()
}

/// `cudnnCreate`
///
/// # Safety
/// `handle` must be null or a place for a handle.
unsafe extern "C" fn create(handle: *mut *const c_void) -> c_int {
    static HANDLE: u8 = 0;
    if !handle.is_null() {
        // SAFETY: the caller vouches for the place.
        unsafe { handle.write((&raw const HANDLE).cast()) };
    }
    SUCCESS
}

/// `cudnnDestroy`
extern "C" fn destroy(_: *const c_void) -> c_int {
    SUCCESS
}

/// `cudnnSetStream`
extern "C" fn set_stream(_: *const c_void, _: *const c_void) -> c_int {
    SUCCESS
}

/// Any function that would compute. It looks at no argument.
extern "C" fn refuse() -> c_int {
    NOT_SUPPORTED
}
