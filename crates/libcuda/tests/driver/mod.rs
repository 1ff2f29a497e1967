//! The driver's C functions, and a context to call them in.
#![allow(dead_code, unused_imports, reason = "each test calls some of them")]

mod functions;

use std::ffi::CStr;
use std::ptr::null_mut;

// Its symbols are what is tested.
use ptxvm_libcuda as _;

pub use functions::*;

/// Makes the primary context of device 0 current in this thread, and returns it.
pub fn start() -> Handle {
    let mut context = null_mut();
    // SAFETY: a pointer of this function.
    unsafe {
        assert_eq!(cuInit(0), 0);
        assert_eq!(cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
        assert_eq!(cuCtxSetCurrent(context), 0);
    }
    context
}

/// Loads PTX.
pub fn load(ptx: &CStr) -> Handle {
    let mut module = null_mut();
    // SAFETY: a text that ends with a zero.
    unsafe { assert_eq!(cuModuleLoadData(&raw mut module, ptx.as_ptr().cast()), 0) };
    module
}

/// A kernel of a loaded module.
pub fn function(module: Handle, name: &CStr) -> Handle {
    let mut function = null_mut();
    // SAFETY: a name that ends with a zero.
    unsafe { assert_eq!(cuModuleGetFunction(&raw mut function, module, name.as_ptr()), 0) };
    function
}
