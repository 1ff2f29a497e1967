//! `libptxvm_audit.so`: has the dynamic linker of a program open ptxvm's libraries in place of NVIDIA's (rtld-audit(7)).
//!
//! Programs find NVIDIA's libraries in many ways: a run path inside a library (PyTorch), an absolute path (JAX), a search
//! path. The dynamic linker asks an auditing library before it searches for any of them, so this is the one place that no
//! way leads around. `ptxvm exec` names this library in `LD_AUDIT` and the folder of ptxvm's libraries in
//! `PTXVM_LIBRARIES`:
//!
//! - What has the name of a file there is opened from there.
//!   Where a program asks for a name, it gets the path only where the dynamic linker searches. Given a path at once, the linker
//!   forgets the name if it has the file already, under another name (cuBLASLt is the same file as cuBLAS) or by another path, and
//!   then finds the versions of that name nowhere.
//! - The files in its folder `wrappers` need NVIDIA's library of the same name. Each is opened where the search has found
//!   that one, whose path is noted beside the wrapper (`NAME.wraps`). The wrapper opens it by a path with `/./`, which is
//!   left alone.
//!
//! XLA gets answers of its own from cuDNN (`cudnn.rs`).
//!
//! The dynamic linker loads this library before the program, with a C library of its own.
#![cfg(target_os = "linux")]

mod cudnn;

use std::ffi::{CStr, CString, OsStr, c_char, c_uint};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A library of ptxvm: its file name and its path.
struct Library {
    name: Vec<u8>,
    path: CString,
}

/// The libraries of ptxvm.
struct Libraries {
    /// What stands for a library of NVIDIA's.
    replacements: Vec<Library>,
    /// What needs a library of NVIDIA's.
    wrappers: Vec<Library>,
}

/// The libraries in the folder that the environment names.
fn libraries() -> &'static Libraries {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let folder = PathBuf::from(std::env::var_os("PTXVM_LIBRARIES").unwrap_or_default());
        Libraries { replacements: in_folder(&folder), wrappers: in_folder(&folder.join("wrappers")) }
    })
}

fn in_folder(folder: &Path) -> Vec<Library> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let library = |file: std::fs::DirEntry| {
        let name = file.file_name().into_vec();
        let path = CString::new(file.path().into_os_string().into_vec()).ok()?;
        name.starts_with(b"lib").then_some(Library { name, path })
    };
    files.flatten().filter_map(library).collect()
}

/// The library of the name that a path ends with.
fn named<'a>(libraries: &'a [Library], asked: &Path) -> Option<&'a CStr> {
    let name = asked.file_name()?.as_bytes();
    libraries.iter().find(|library| library.name == name).map(|library| library.path.as_c_str())
}

/// A wrapper of the library at a path, which is noted for it.
fn wrapper(asked: &[u8]) -> Option<&'static CStr> {
    if asked.windows(3).any(|part| part == b"/./") {
        return None;
    }
    let real = Path::new(OsStr::from_bytes(asked));
    let wrapper = named(&libraries().wrappers, real).filter(|_| real.is_file())?;
    let note = Path::new(OsStr::from_bytes(wrapper.to_bytes())).with_added_extension("wraps");
    std::fs::write(note, std::path::absolute(real).ok()?.as_os_str().as_bytes()).ok()?;
    Some(wrapper)
}

/// The dynamic linker asks which version of its interface this library speaks: the functions below are the same in all.
#[unsafe(no_mangle)]
extern "C" fn la_version(version: c_uint) -> c_uint {
    version
}

/// The dynamic linker is about to search for a library, or has found a path where it may be. Returns what it takes instead.
///
/// # Safety
/// `name` must be a string of C that outlives the search.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_objsearch(name: *const c_char, _: *mut usize, _: c_uint) -> *const c_char {
    if name.is_null() {
        return name;
    }
    // SAFETY: the dynamic linker passes a string of C.
    let asked = unsafe { CStr::from_ptr(name) }.to_bytes();
    if !asked.contains(&b'/') {
        return name;
    }
    let ours = named(&libraries().replacements, Path::new(OsStr::from_bytes(asked)));
    ours.or_else(|| wrapper(asked)).map_or(name, CStr::as_ptr)
}
