//! `libptxvm_audit.so`: has the dynamic linker of a program open ptxvm's libraries in place of NVIDIA's (rtld-audit(7)).
//!
//! Programs find NVIDIA's libraries in many ways: a run path inside a library (PyTorch), an absolute path (JAX), a search
//! path. The dynamic linker asks an auditing library before it searches for any of them, so this is the one place that no
//! way leads around. `ptxvm exec` names this library in `LD_AUDIT` and the folder of ptxvm's libraries in
//! `PTXVM_LIBRARIES`: what has the name of a file there is opened from there.
//!
//! The dynamic linker loads this library before the program, with a C library of its own.
#![cfg(target_os = "linux")]

use std::ffi::{CStr, CString, OsStr, c_char, c_uint};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::OnceLock;

/// `LA_SER_ORIG`: the name is the one that the program asks for.
const ORIGINAL: c_uint = 1;

/// A library of ptxvm: its file name and its path.
struct Library {
    name: Vec<u8>,
    path: CString,
}

/// The libraries in the folder that the environment names.
fn libraries() -> &'static [Library] {
    static LIBRARIES: OnceLock<Vec<Library>> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let folder = std::env::var_os("PTXVM_LIBRARIES").unwrap_or_default();
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        let library = |file: std::fs::DirEntry| {
            let name = file.file_name().into_vec();
            let path = CString::new(file.path().into_os_string().into_vec()).ok()?;
            name.starts_with(b"lib").then_some(Library { name, path })
        };
        files.flatten().filter_map(library).collect()
    })
}

/// Our library of the name that a path ends with.
fn replacement(asked: &[u8]) -> Option<&'static CStr> {
    let name = std::path::Path::new(OsStr::from_bytes(asked)).file_name()?.as_bytes();
    libraries().iter().find(|library| library.name == name).map(|library| library.path.as_c_str())
}

/// The dynamic linker asks which version of its interface this library speaks: the functions below are the same in all.
#[unsafe(no_mangle)]
extern "C" fn la_version(version: c_uint) -> c_uint {
    version
}

/// The dynamic linker is about to search for a library. Returns the name that it takes instead.
///
/// # Safety
/// `name` must be a string of C that outlives the search.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_objsearch(name: *const c_char, _: *mut usize, flag: c_uint) -> *const c_char {
    if flag != ORIGINAL || name.is_null() {
        return name;
    }
    // SAFETY: the dynamic linker passes a string of C.
    let asked = unsafe { CStr::from_ptr(name) };
    replacement(asked.to_bytes()).map_or(name, CStr::as_ptr)
}
