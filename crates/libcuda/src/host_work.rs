//! What our libraries (cuBLAS, cuRAND and the like, `crates/mathlib`) ask of the driver, which compute on device memory with the host's
//! own code.
//!
//! It is no part of CUDA. The documented functions do not suffice: a host function of `cuLaunchHostFunc` cannot fail, nobody says when its
//! argument may go, and it may not reach device memory. Here work of a library is an operation of a stream like any other: graphs
//! capture it, a failure breaks the context as that of a kernel does, and what it needs lives as long as the operation or the graph.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::sys::CUstream;

use crate::driver::driver;
use crate::memory::Kind;
use crate::operation::Operation;
use crate::pointers::Out;
use crate::stream::Default;
use crate::stream_order::{self, Use};
use crate::{INVALID, Status};

/// Work of a library: a function that may run several times, its argument, and what gives the argument back.
pub struct HostWork {
    work: unsafe extern "C" fn(*mut c_void) -> u32,
    release: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: the library promises that any thread may call the functions (`ptxvm_host_work`).
unsafe impl Send for HostWork {}
// SAFETY: as above.
unsafe impl Sync for HostWork {}

impl HostWork {
    /// Runs it.
    ///
    /// # Errors
    /// If it says so: memory that it needs is gone, or the library failed.
    pub fn perform(&self) -> Result<(), Status> {
        // SAFETY: the library passed the function to be called with this argument.
        match unsafe { (self.work)(self.argument) } {
            0 => Ok(()),
            700 => Err(Status::CUDA_ERROR_ILLEGAL_ADDRESS),
            _ => Err(Status::CUDA_ERROR_LAUNCH_FAILED),
        }
    }
}

impl Drop for HostWork {
    fn drop(&mut self) {
        // SAFETY: the library passed the function to be called once, at the end.
        unsafe { (self.release)(self.argument) }
    }
}

/// The number that C gets for a result. No panic reaches the library.
fn number(work: impl FnOnce() -> Result<(), Status>) -> u32 {
    let result = catch_unwind(AssertUnwindSafe(work));
    result.unwrap_or(Err(Status::CUDA_ERROR_UNKNOWN)).err().unwrap_or(Status::CUDA_SUCCESS) as u32
}

/// Queues work in a stream. `release` is called with the argument when nothing can call `work` any more, also if this fails.
#[unsafe(export_name = "ptxvm_host_work")]
extern "C" fn host_work(
    stream: CUstream,
    work: unsafe extern "C" fn(*mut c_void) -> u32,
    release: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
) -> u32 {
    let work = Arc::new(HostWork { work, release, argument });
    number(|| Default::Legacy.stream(stream)?.submit(Operation::Work(work)))
}

/// Checks that bytes are allocated, or will be when a graph is launched. Says where the allocation of the first byte lies; its size is 0
/// if there is none.
#[unsafe(export_name = "ptxvm_host_range")]
extern "C" fn host_range(address: u64, bytes: u64, base: Out<u64>, size: Out<u64>) -> u32 {
    number(|| {
        let allocations = &driver()?.allocations;
        let found = allocations.find(address);
        base.write_if_wanted(found.map_or(0, |allocation| allocation.base));
        size.write_if_wanted(found.map_or(0, |allocation| allocation.bytes));
        allocations.check(address, bytes)
    })
}

/// Lets work that runs in a stream reach device memory at an address of the host, until `ptxvm_host_return` gets what `hold` names.
/// `who` uses the memory, a zero-terminated text for racecheck's messages.
#[unsafe(export_name = "ptxvm_host_borrow")]
extern "C" fn host_borrow(
    address: u64,
    bytes: u64,
    who: *const c_char,
    pointer: Out<*mut c_void>,
    hold: Out<*mut c_void>,
) -> u32 {
    number(|| {
        let driver = driver()?;
        let name = match who.is_null() {
            true => "a library".into(),
            // SAFETY: the library passes a zero-terminated text.
            false => unsafe { CStr::from_ptr(who) }.to_string_lossy(),
        };
        crate::peer::check_work(address, &name)?;
        let gone = |_| Status::CUDA_ERROR_ILLEGAL_ADDRESS;
        let (mut at, mut left, mut held) = (address, bytes, Vec::new());
        loop {
            let mapped = driver.allocations.find(at).is_some_and(|found| found.kind == Kind::Mapped);
            let part = if mapped { left.min(driver.allocations.rest(at)) } else { left };
            let piece = driver.machine.hold(at, part).map_err(gone)?;
            held.push((piece, part));
            (at, left) = (at + part, left - part);
            if left == 0 {
                break;
            }
        }
        // Pieces of memory that the program maps one behind the other may lie apart.
        if held.windows(2).any(|pair| pair[0].0.start().wrapping_add(pair[0].1 as usize) != pair[1].0.start())
        {
            return Err(Status::CUDA_ERROR_NOT_SUPPORTED);
        }
        let start = held.first().ok_or(INVALID)?.0.start();
        stream_order::uses(address, bytes, || Use::by(&name));
        pointer.write(start.cast())?;
        hold.write(Box::into_raw(Box::new(held)).cast())
    })
}

/// Ends what `ptxvm_host_borrow` began. A null pointer ends nothing.
#[unsafe(export_name = "ptxvm_host_return")]
extern "C" fn host_return(hold: *mut c_void) {
    if !hold.is_null() {
        // SAFETY: `ptxvm_host_borrow` made the box, and the library passes it once.
        drop(unsafe { Box::from_raw(hold.cast::<Vec<(machine::Held, u64)>>()) });
    }
}

/// Reports a mistake of the program in a call of a library, as a fault: on stderr and in the report of the process.
/// Both are zero-terminated texts: the function, and what is wrong.
#[unsafe(export_name = "ptxvm_host_failed")]
extern "C" fn host_failed(function: *const c_char, message: *const c_char) {
    if function.is_null() || message.is_null() {
        return;
    }
    // SAFETY: the library passes zero-terminated texts.
    let (function, message) = unsafe { (CStr::from_ptr(function), CStr::from_ptr(message)) };
    let (function, message) = (function.to_string_lossy(), message.to_string_lossy());
    crate::log::log!(error, "{function}: {message}");
    let _ = catch_unwind(|| crate::report::failed(&function, &message));
}
