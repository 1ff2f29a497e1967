//! NVRTC that gives PTX where a program wants machine code: `libptxvm_nvrtc.so` (NVRTC User Guide).
//!
//! A program that compiles for `sm_90` asks for machine code afterwards, which ptxvm does not run. NVIDIA's library does
//! the work here, too, but for `compute_90`, and the machine code that the program gets is PTX: a driver loads both by the
//! same call.
//!
//! `ptxvm exec` puts a copy of this library in the way of NVIDIA's (`crates/audit`), which the copy opens by the path that
//! the program's search led to. The copy has NVIDIA's name inside (`DT_SONAME`), so that whoever asks for that name later
//! finds the copy, which was there first.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// `NVRTC_ERROR_INTERNAL_ERROR`.
const INTERNAL_ERROR: c_int = 11;

/// Arguments and result of any function here: there are at most six, all of them integers or pointers.
type Word = usize;
type Function = unsafe extern "C" fn(Word, Word, Word, Word, Word, Word) -> Word;

/// Programs that are compiled to PTX although their options name a GPU.
static PROGRAMS: Mutex<Option<HashSet<Word>>> = Mutex::new(None);

fn programs() -> MutexGuard<'static, Option<HashSet<Word>>> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// NVIDIA's library, as the dynamic linker's handle; 0 where it cannot be opened.
fn library() -> Word {
    static LIBRARY: OnceLock<Word> = OnceLock::new();
    *LIBRARY.get_or_init(|| {
        let Some(path) = path() else {
            eprintln!("ptxvm: nobody has said where NVIDIA's NVRTC is");
            return 0;
        };
        // Its calls of its own functions must not come back to us.
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
        // SAFETY: the path is a string of C. NVRTC's initialisation has no requirements.
        let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
        if handle.is_null() {
            // SAFETY: after a failure there is a message, a string of C.
            let message = unsafe { CStr::from_ptr(libc::dlerror()) };
            eprintln!("ptxvm: cannot open NVIDIA's NVRTC: {}", message.to_string_lossy());
        }
        handle.expose_provenance()
    })
}

/// The path that `crates/audit` has noted when it put this library in the way of NVIDIA's.
fn path() -> Option<CString> {
    // SAFETY: all bits may be zero.
    let mut here: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of this library's, and the place is good for the call.
    let found = unsafe { libc::dladdr(path as *const c_void, &raw mut here) };
    if found == 0 || here.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` gave a string of C that lives as long as this library.
    let name = unsafe { CStr::from_ptr(here.dli_fname) };
    let name = Path::new(name.to_str().ok()?).file_name()?;
    let folder = std::env::var_os("PTXVM_LIBRARIES")?;
    let note = Path::new(&folder).join("wrappers").join(name).with_added_extension("wraps");
    let path = PathBuf::from(OsString::from_vec(std::fs::read(note).ok()?));
    // The audit leaves alone what is asked for with `/./`.
    let path = path.parent()?.join(".").join(path.file_name()?);
    CString::new(path.into_os_string().into_vec()).ok()
}

/// A function of NVIDIA's library.
fn real(name: &CStr) -> Option<Function> {
    let handle = std::ptr::with_exposed_provenance_mut::<c_void>(library());
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is open, and the name is a string of C.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: a function of C takes the words that it has parameters for, and ignores the others.
    (!address.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Function>(address) })
}

/// Calls NVIDIA's function of a name.
///
/// # Safety
/// The arguments must be as the function wants them.
unsafe fn call(name: &CStr, words: [Word; 6]) -> Word {
    let Some(function) = real(name) else { return INTERNAL_ERROR as Word };
    let [a, b, c, d, e, f] = words;
    // SAFETY: the caller's promise.
    unsafe { function(a, b, c, d, e, f) }
}

/// A function that is NVIDIA's, unchanged.
macro_rules! forward {
    ($name:ident, $text:literal) => {
        #[allow(non_snake_case)]
        mod $name {
            pub unsafe extern "C" fn call(
                a: usize,
                b: usize,
                c: usize,
                d: usize,
                e: usize,
                f: usize,
            ) -> usize {
                // SAFETY: the program's promise to the function of this name.
                unsafe { super::call($text, [a, b, c, d, e, f]) }
            }
        }
    };
}

/// An option for PTX where it wants machine code: `sm_90` becomes `compute_90`.
fn for_ptx(option: &str) -> Option<String> {
    let (name, target) = option.rsplit_once(['=', ' ']).unwrap_or(("", option));
    let is_target = matches!(name.trim(), "-arch" | "--gpu-architecture" | "");
    let number = target.strip_prefix("sm_").filter(|_| is_target)?;
    Some(format!("{}compute_{number}", &option[..option.len() - target.len()]))
}

/// `nvrtcCompileProgram`, for PTX.
///
/// # Safety
/// As for NVIDIA's.
unsafe extern "C" fn compile(program: Word, count: c_int, options: *const *const c_char) -> Word {
    let count_given = usize::try_from(count).unwrap_or(0);
    let given: Vec<*const c_char> = match options.is_null() {
        true => Vec::new(),
        // SAFETY: the program promises so many options.
        false => unsafe { std::slice::from_raw_parts(options, count_given) }.to_vec(),
    };
    let mut changed = false;
    let taken: Vec<CString> = given
        .iter()
        .map(|&option| {
            // SAFETY: each option is a string of C.
            let option = unsafe { CStr::from_ptr(option) };
            let ours = option.to_str().ok().and_then(for_ptx).and_then(|option| CString::new(option).ok());
            changed |= ours.is_some();
            ours.unwrap_or_else(|| option.to_owned())
        })
        .collect();
    let pointers: Vec<*const c_char> = taken.iter().map(|option| option.as_ptr()).collect();
    if changed {
        programs().get_or_insert_default().insert(program);
    }
    let words = [program, pointers.len(), pointers.as_ptr().expose_provenance(), 0, 0, 0];
    // SAFETY: the program's promise, with as many options.
    unsafe { call(c"nvrtcCompileProgram", words) }
}

/// Whether a program that asks for machine code gets PTX.
fn is_ptx(program: Word) -> bool {
    programs().as_ref().is_some_and(|programs| programs.contains(&program))
}

/// `nvrtcGetCUBINSize`.
///
/// # Safety
/// As for NVIDIA's.
unsafe extern "C" fn cubin_size(program: Word, size: Word) -> Word {
    let name = if is_ptx(program) { c"nvrtcGetPTXSize" } else { c"nvrtcGetCUBINSize" };
    // SAFETY: the program's promise; both functions have the same parameters.
    unsafe { call(name, [program, size, 0, 0, 0, 0]) }
}

/// `nvrtcGetCUBIN`.
///
/// # Safety
/// As for NVIDIA's.
unsafe extern "C" fn cubin(program: Word, place: Word) -> Word {
    let name = if is_ptx(program) { c"nvrtcGetPTX" } else { c"nvrtcGetCUBIN" };
    // SAFETY: the program's promise; the place is as large as `cubin_size` has said.
    unsafe { call(name, [program, place, 0, 0, 0, 0]) }
}

/// `nvrtcGetErrorString`, which has a text where there is no library, too.
///
/// # Safety
/// As for NVIDIA's.
unsafe extern "C" fn error_string(error: Word) -> Word {
    match library() {
        0 => c"NVIDIA's NVRTC cannot be opened".as_ptr().expose_provenance(),
        // SAFETY: the program's promise.
        _ => unsafe { call(c"nvrtcGetErrorString", [error, 0, 0, 0, 0, 0]) },
    }
}

/// `nvrtcDestroyProgram`. A later program may have the same address.
///
/// # Safety
/// As for NVIDIA's.
unsafe extern "C" fn destroy(place: *const Word) -> Word {
    if !place.is_null()
        && let Some(programs) = programs().as_mut()
    {
        // SAFETY: the place holds a program.
        programs.remove(unsafe { &*place });
    }
    // SAFETY: the program's promise.
    unsafe { call(c"nvrtcDestroyProgram", [place.expose_provenance(), 0, 0, 0, 0, 0]) }
}

include!(concat!(env!("OUT_DIR"), "/exports.rs"));

#[cfg(test)]
mod tests {
    use super::for_ptx;

    #[test]
    fn options_for_a_gpu_become_options_for_ptx() {
        for (option, ours) in [
            ("--gpu-architecture=sm_90a", Some("--gpu-architecture=compute_90a")),
            ("-arch=sm_80", Some("-arch=compute_80")),
            ("-arch sm_80", Some("-arch compute_80")),
            ("sm_100", Some("compute_100")),
            ("-arch=compute_90", None),
            ("-DNAME=sm_90", None),
            ("--include-path=/x/sm_90", None),
        ] {
            assert_eq!(for_ptx(option).as_deref(), ours, "{option}");
        }
    }
}
