//! Where a library was loaded from.

use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The file of the library that this code is a part of, as the dynamic linker names it. Its name tells the version that the program wants.
pub fn own_path() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the call fills the structure, or returns 0.
    let info = unsafe {
        if libc::dladdr(own_path as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init()
    };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: this is the dynamic linker's name of a library that stays loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
