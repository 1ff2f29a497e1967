//! The C library: [`ptx_run`], and [`ptxvm_run`], which also returns a status. `include/ptxvm.h` declares them for C.
//!
//! Pointers of the caller's process are device addresses here: memory is trusted. No text and no launch makes these
//! functions abort or unwind; they write errors to stderr.

mod cache;
mod run;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use run::{Failure, Launch};

/// Everything went well.
pub const PTXVM_OK: c_int = 0;
/// The PTX is wrong.
pub const PTXVM_BAD_PTX: c_int = 1;
/// The launch is wrong: the arguments, the extents, shared memory.
pub const PTXVM_BAD_LAUNCH: c_int = 2;
/// A thread faulted.
pub const PTXVM_FAULT: c_int = 3;
/// A defect of the library itself.
pub const PTXVM_DEFECT: c_int = 4;

/// Runs the first kernel of a PTX text and waits until it has ended. Returns one of the `PTXVM_` codes; what is wrong
/// is written to stderr, with the kernel and the line.
///
/// `args[i]` *is* the value of parameter `i`: a pointer of this process, or an integer or the bits of a float in its
/// low bytes. A text is compiled when it is first seen. Threads may call this at the same time.
///
/// # Safety
/// `ptx` must be a NUL-terminated string, `args` point to `n_args` values, and every address that the kernel computes
/// must be good for what it does there.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // the signature that gpuocelot gave it
pub unsafe extern "C" fn ptxvm_run(
    ptx: *const c_char,
    n_args: c_int,
    args: *const *mut c_void,
    block_x: c_int,
    block_y: c_int,
    block_z: c_int,
    grid_x: c_int,
    grid_y: c_int,
    grid_z: c_int,
    shared_bytes: c_int,
) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(|| {
        if ptx.is_null() {
            return Err(Failure::launch("the PTX text is a null pointer"));
        }
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(ptx) }.to_bytes();
        let launch = Launch {
            n_args,
            args,
            block: [block_x, block_y, block_z],
            grid: [grid_x, grid_y, grid_z],
            shared_bytes,
        };
        // SAFETY: the caller's promise.
        unsafe { run::run(text, &launch) }
    }));
    match result {
        Ok(Ok(())) => PTXVM_OK,
        Ok(Err(Failure { code, message })) => {
            run::say(&message);
            code
        }
        Err(_) => {
            run::say("error: ptxvm itself failed, which is a defect of it; the launch was given up\n");
            PTXVM_DEFECT
        }
    }
}

/// [`ptxvm_run`] under the name and with the signature of gpuocelot's function: what goes wrong can only be read on
/// stderr.
///
/// # Safety
/// As for [`ptxvm_run`].
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn ptx_run(
    ptx: *const c_char,
    n_args: c_int,
    args: *const *mut c_void,
    block_x: c_int,
    block_y: c_int,
    block_z: c_int,
    grid_x: c_int,
    grid_y: c_int,
    grid_z: c_int,
    shared_bytes: c_int,
) {
    // SAFETY: the caller's promise.
    unsafe { ptxvm_run(ptx, n_args, args, block_x, block_y, block_z, grid_x, grid_y, grid_z, shared_bytes) };
}
