//! NVRTC that gives PTX where a program wants machine code: `libptxvm_nvrtc.so` (NVRTC User Guide).
//!
//! A program that compiles for `sm_90` asks for machine code afterwards, which ptxvm does not run. NVIDIA's library does
//! the work here, too, but for `compute_90`, and the machine code that the program gets is PTX: a driver loads both by the
//! same call.
//!
//! `crates/wrapper` says how it comes before NVIDIA's.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wrapper::{Library, Word};

/// NVIDIA's library; `NVRTC_ERROR_INTERNAL_ERROR` where it is missing.
static NVRTC: Library = Library::new("NVRTC", 11);

/// Programs that are compiled to PTX although their options name a GPU.
static PROGRAMS: Mutex<Option<HashSet<Word>>> = Mutex::new(None);

fn programs() -> MutexGuard<'static, Option<HashSet<Word>>> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A function that is NVIDIA's, unchanged.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn forward(name: &CStr, words: [Word; 6]) -> Word {
    // SAFETY: the program's promise.
    unsafe { NVRTC.call(name, words) }
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
unsafe fn compile(name: &CStr, [program, count, options, ..]: [Word; 6]) -> Word {
    let options = std::ptr::with_exposed_provenance::<*const c_char>(options);
    let given: Vec<*const c_char> = match options.is_null() {
        true => Vec::new(),
        // SAFETY: the program promises so many options.
        false => unsafe { std::slice::from_raw_parts(options, usize::try_from(count as c_int).unwrap_or(0)) }
            .to_vec(),
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
    // SAFETY: the program's promise, with as many options.
    unsafe { forward(name, [program, pointers.len(), pointers.as_ptr().expose_provenance(), 0, 0, 0]) }
}

/// Whether a program that asks for machine code gets PTX.
fn is_ptx(program: Word) -> bool {
    programs().as_ref().is_some_and(|programs| programs.contains(&program))
}

/// `nvrtcGetCUBINSize`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn cubin_size(name: &CStr, words: [Word; 6]) -> Word {
    // SAFETY: the program's promise; both functions have the same parameters.
    unsafe { forward(if is_ptx(words[0]) { c"nvrtcGetPTXSize" } else { name }, words) }
}

/// `nvrtcGetCUBIN`.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn cubin(name: &CStr, words: [Word; 6]) -> Word {
    // SAFETY: the program's promise; the place is as large as `cubin_size` has said.
    unsafe { forward(if is_ptx(words[0]) { c"nvrtcGetPTX" } else { name }, words) }
}

/// `nvrtcGetErrorString`, which has a text where there is no library, too.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn error_string(name: &CStr, words: [Word; 6]) -> Word {
    if !NVRTC.is_there() {
        return c"NVIDIA's NVRTC cannot be opened".as_ptr().expose_provenance();
    }
    // SAFETY: the program's promise.
    unsafe { forward(name, words) }
}

/// `nvrtcDestroyProgram`. A later program may have the same address.
///
/// # Safety
/// As for NVIDIA's.
unsafe fn destroy(name: &CStr, words: [Word; 6]) -> Word {
    let place = std::ptr::with_exposed_provenance::<Word>(words[0]);
    if !place.is_null()
        && let Some(programs) = programs().as_mut()
    {
        // SAFETY: the place holds a program.
        programs.remove(unsafe { &*place });
    }
    // SAFETY: the program's promise.
    unsafe { forward(name, words) }
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
