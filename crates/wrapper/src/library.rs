//! NVIDIA's library.

use std::ffi::{CStr, CString, OsString, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// An argument or the result of any function: all are integers or pointers.
pub type Word = usize;

/// Any function of such a library: there are at most six arguments.
type Function = unsafe extern "C" fn(Word, Word, Word, Word, Word, Word) -> Word;

/// NVIDIA's library, which is opened when it is first called.
pub struct Library {
    /// What people call it.
    name: &'static str,
    /// What a call returns if the library or the function is not there.
    missing: Word,
    /// The dynamic linker's handle; 0 where it cannot be opened.
    handle: OnceLock<Word>,
}

impl Library {
    /// The library of a name in messages. A call returns `missing` if the library, or the function, is not there.
    pub const fn new(name: &'static str, missing: Word) -> Library {
        Library { name, missing, handle: OnceLock::new() }
    }

    /// Whether it can be opened.
    pub fn is_there(&self) -> bool {
        self.handle() != 0
    }

    /// Calls its function of a name.
    ///
    /// # Safety
    /// The arguments must be as the function wants them. Those that it has no parameters for are ignored.
    pub unsafe fn call(&self, function: &CStr, words: [Word; 6]) -> Word {
        let handle = std::ptr::with_exposed_provenance_mut::<c_void>(self.handle());
        if handle.is_null() {
            return self.missing;
        }
        // SAFETY: the handle is open, and the name is a string of C.
        let address = unsafe { libc::dlsym(handle, function.as_ptr()) };
        if address.is_null() {
            return self.missing;
        }
        let [a, b, c, d, e, f] = words;
        // SAFETY: a function of C takes the words that it has parameters for, which the caller answers for.
        unsafe { std::mem::transmute::<*mut c_void, Function>(address)(a, b, c, d, e, f) }
    }

    fn handle(&self) -> Word {
        *self.handle.get_or_init(|| {
            let Some(path) = path() else {
                eprintln!("ptxvm: nobody has said where NVIDIA's {} is", self.name);
                return 0;
            };
            // Its calls of its own functions must not come back to us.
            let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
            // SAFETY: the path is a string of C. The library's initialisation has no requirements.
            let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
            if handle.is_null() {
                // SAFETY: after a failure there is a message, a string of C.
                let message = unsafe { CStr::from_ptr(libc::dlerror()) };
                eprintln!("ptxvm: cannot open NVIDIA's {}: {}", self.name, message.to_string_lossy());
            }
            handle.expose_provenance()
        })
    }
}

/// The path that `crates/audit` has noted when it put the library that this is part of in the way of NVIDIA's.
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
