//! The driver's C functions that most tests call, and a context to call them in.
#![allow(dead_code, reason = "no test calls all of them")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

// Its symbols are what is tested.
use ptxvm_libcuda as _;

pub type Handle = *mut c_void;

unsafe extern "C" {
    fn cuInit(flags: c_uint) -> u32;
    fn cuDevicePrimaryCtxRetain(result: *mut Handle, device: c_int) -> u32;
    pub fn cuCtxSetCurrent(context: Handle) -> u32;
    pub fn cuCtxSynchronize() -> u32;
    pub fn cuMemAlloc_v2(result: *mut u64, bytes: usize) -> u32;
    pub fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> u32;
    pub fn cuModuleLoadData(result: *mut Handle, image: *const c_void) -> u32;
    pub fn cuModuleGetFunction(result: *mut Handle, module: Handle, name: *const c_char) -> u32;
    pub fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> u32;
}

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
