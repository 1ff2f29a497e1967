//! A kernel of one block, launched through the C functions of the driver.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

// Its symbols are what is called.
use ptxvm_libcuda as _;

type Handle = *mut c_void;

unsafe extern "C" {
    fn cuInit(flags: c_uint) -> u32;
    fn cuDevicePrimaryCtxRetain(result: *mut Handle, device: c_int) -> u32;
    fn cuCtxSetCurrent(context: Handle) -> u32;
    fn cuCtxSynchronize() -> u32;
    fn cuMemAlloc_v2(result: *mut u64, bytes: usize) -> u32;
    fn cuMemFree_v2(address: u64) -> u32;
    fn cuMemsetD32_v2(address: u64, value: c_uint, count: usize) -> u32;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> u32;
    fn cuModuleLoadData(result: *mut Handle, image: *const c_void) -> u32;
    fn cuModuleUnload(module: Handle) -> u32;
    fn cuModuleGetFunction(result: *mut Handle, module: Handle, name: *const c_char) -> u32;
    fn cuLaunchKernel(
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

/// Adds 1 to as many numbers as the block has threads.
const PTX: &std::ffi::CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 data)
{
    .reg .b64 %a;
    .reg .u32 %i;
    ld.param.u64 %a, [data];
    mov.u32 %i, %tid.x;
    mad.wide.u32 %a, %i, 4, %a;
    ld.global.u32 %i, [%a];
    add.u32 %i, %i, 1;
    st.global.u32 [%a], %i;
    ret;
}
";

const THREADS: u32 = 128;

/// Makes the primary context current in this thread.
pub fn start() {
    let mut context = null_mut();
    // SAFETY: there is a place for the context.
    unsafe {
        assert_eq!(cuInit(0), 0);
        assert_eq!(cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
        assert_eq!(cuCtxSetCurrent(context), 0);
    }
}

/// Waits for all launches.
pub fn synchronize() {
    // SAFETY: it takes nothing.
    assert_eq!(unsafe { cuCtxSynchronize() }, 0);
}

/// The kernel with its numbers, which are 0 at first.
pub struct Kernel {
    module: Handle,
    function: Handle,
    data: u64,
}

impl Kernel {
    /// Loads it.
    pub fn new() -> Kernel {
        let mut kernel = Kernel { module: null_mut(), function: null_mut(), data: 0 };
        // SAFETY: there are places for all results.
        unsafe {
            assert_eq!(cuModuleLoadData(&raw mut kernel.module, PTX.as_ptr().cast()), 0);
            assert_eq!(cuModuleGetFunction(&raw mut kernel.function, kernel.module, c"add".as_ptr()), 0);
            assert_eq!(cuMemAlloc_v2(&raw mut kernel.data, THREADS as usize * 4), 0);
            assert_eq!(cuMemsetD32_v2(kernel.data, 0, THREADS as usize), 0);
        }
        kernel
    }

    /// Launches it.
    pub fn launch(&self) {
        let mut params = [(&raw const self.data).cast_mut().cast::<c_void>()];
        // SAFETY: the kernel has one parameter of eight bytes.
        let status = unsafe {
            cuLaunchKernel(
                self.function,
                1,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                null_mut(),
                params.as_mut_ptr(),
                null_mut(),
            )
        };
        assert_eq!(status, 0);
    }

    /// What every number must be after all launches that were synchronised with.
    #[allow(dead_code)] // the bench does not ask
    pub fn counts(&self) -> [u32; THREADS as usize] {
        let mut counts = [0; THREADS as usize];
        // SAFETY: there is a place for so many bytes.
        let status = unsafe { cuMemcpyDtoH_v2(counts.as_mut_ptr().cast(), self.data, size_of_val(&counts)) };
        assert_eq!(status, 0);
        counts
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: both are the kernel's own.
        unsafe {
            assert_eq!(cuMemFree_v2(self.data), 0);
            assert_eq!(cuModuleUnload(self.module), 0);
        }
    }
}
