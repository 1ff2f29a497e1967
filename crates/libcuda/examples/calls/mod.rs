//! A kernel of one block, launched through the C functions of the driver.

#[path = "../../tests/driver/mod.rs"]
mod driver;

use std::ffi::c_void;
use std::ptr::null_mut;

pub use driver::start;
use driver::*;

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

/// Waits for all launches.
pub fn synchronize() {
    ok!(cuCtxSynchronize());
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
        let (module, data) = (load(PTX), allocate(THREADS as usize * 4));
        ok!(cuMemsetD32_v2(data, 0, THREADS as usize));
        Kernel { module, function: function(module, c"add"), data }
    }

    /// Launches it.
    pub fn launch(&self) {
        let mut params = [(&raw const self.data).cast_mut().cast::<c_void>()];
        let (params, none) = (params.as_mut_ptr(), null_mut());
        ok!(cuLaunchKernel(self.function, 1, 1, 1, THREADS, 1, 1, 0, none, params, null_mut()));
    }

    /// What every number must be after all launches that were synchronised with.
    #[allow(dead_code)] // the bench does not ask
    pub fn counts(&self) -> [u32; THREADS as usize] {
        let mut counts = [0; THREADS as usize];
        ok!(cuMemcpyDtoH_v2(counts.as_mut_ptr().cast(), self.data, size_of_val(&counts)));
        counts
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        ok!(cuMemFree_v2(self.data));
        ok!(cuModuleUnload(self.module));
    }
}
