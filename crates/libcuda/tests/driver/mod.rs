//! The driver's C functions, and a context to call them in.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test calls some of them")]

mod functions;

use std::ffi::CStr;
use std::ptr::{null, null_mut};

// Its symbols are what is tested.
use ptxvm_libcuda as _;

pub use functions::*;

pub const INVALID_VALUE: u32 = 1;
pub const INVALID_CONTEXT: u32 = 201;
pub const NOT_READY: u32 = 600;
pub const NOT_SUPPORTED: u32 = 801;

/// Calls a function that has to succeed.
macro_rules! ok {
    ($($call:tt)*) => { ends!(0, $($call)*) };
}

/// Calls a function that has to end with this status.
macro_rules! ends {
    ($status:expr, $($call:tt)*) => {{
        // SAFETY: the pointers are good for the call, or null.
        let status = unsafe { $($call)* };
        assert_eq!(status, $status, "{}: {}", stringify!($($call)*), name(status));
    }};
}

pub(crate) use {ends, ok};

/// The name of a status.
pub fn name(status: u32) -> String {
    let mut name = null();
    // SAFETY: the driver gives out texts that stay.
    unsafe {
        cuGetErrorName(status, &raw mut name);
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// Makes the primary context of device 0 current in this thread, and returns it.
pub fn start() -> Handle {
    let mut context = null_mut();
    ok!(cuInit(0));
    ok!(cuDevicePrimaryCtxRetain(&raw mut context, 0));
    ok!(cuCtxSetCurrent(context));
    context
}

/// Loads PTX.
pub fn load(ptx: &CStr) -> Handle {
    let mut module = null_mut();
    ok!(cuModuleLoadData(&raw mut module, ptx.as_ptr().cast()));
    module
}

/// A kernel of a loaded module.
pub fn function(module: Handle, name: &CStr) -> Handle {
    let mut function = null_mut();
    ok!(cuModuleGetFunction(&raw mut function, module, name.as_ptr()));
    function
}

/// So many bytes of new memory.
pub fn allocate(bytes: usize) -> u64 {
    let mut address = 0;
    ok!(cuMemAlloc_v2(&raw mut address, bytes));
    address
}

/// What is in a word of memory.
pub fn word(address: u64) -> u32 {
    let mut value = 0u32;
    ok!(cuMemcpyDtoH_v2((&raw mut value).cast(), address, 4));
    value
}

/// A new stream.
pub fn stream(flags: u32) -> Handle {
    let mut stream = null_mut();
    ok!(cuStreamCreate(&raw mut stream, flags));
    stream
}
