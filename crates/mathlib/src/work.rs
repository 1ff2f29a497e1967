//! Work in streams.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use caller::log;

use crate::driver::{Driver, Error, checked};

/// A stream, as a number: `cudaStream_t` or `CUstream`. 0 and 1 are the default stream of the current context, 2 that of the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream(usize);

impl Stream {
    /// The stream of a handle that the program passes.
    pub fn of(handle: *mut c_void) -> Stream {
        Stream(handle.expose_provenance())
    }

    /// The handle that the program passed.
    pub fn handle(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}

/// Work, and the function that it is for.
struct Work {
    name: &'static str,
    run: Box<dyn Fn() -> Result<(), Error> + Send + Sync>,
}

/// Queues work for a function of the library, behind all that the stream has to do. A stream that captures a graph adds a node instead,
/// so the work may run several times, or never. No context is current while it runs. Its error, or a panic, breaks the context, as
/// that of a kernel does.
///
/// # Errors
/// If the stream is invalid, or the context broken, or there is no driver of ptxvm.
pub fn submit(
    stream: Stream,
    name: &'static str,
    run: impl Fn() -> Result<(), Error> + Send + Sync + 'static,
) -> Result<(), Error> {
    let driver = Driver::get()?;
    let work = Box::into_raw(Box::new(Work { name, run: Box::new(run) }));
    // SAFETY: `release` gets the box back, once, when nothing can call `perform` any more.
    checked(unsafe { (driver.work)(stream.handle(), perform, release, work.cast()) })
}

/// Runs work for the driver.
unsafe extern "C" fn perform(work: *mut c_void) -> u32 {
    // SAFETY: `submit` made it, and the driver has not released it.
    let work = unsafe { &*work.cast::<Work>() };
    let name = work.name;
    match catch_unwind(AssertUnwindSafe(|| (work.run)())) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            crate::driver::failed(name, &format!("its work in a stream failed with error {}", error.0));
            error.0
        }
        Err(_) => {
            crate::driver::failed(name, "ptxvm itself failed, which is a defect of it");
            Error::LAUNCH_FAILED.0
        }
    }
}

/// Gives work back.
unsafe extern "C" fn release(work: *mut c_void) {
    // SAFETY: `submit` made it, and the driver calls this once.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    if catch_unwind(AssertUnwindSafe(|| drop(work))).is_err() {
        log!(error, "ptxvm itself failed, which is a defect of it");
    }
}

/// Waits until all that a stream has to do is done.
///
/// # Errors
/// If the stream is invalid or captures a graph, or if the context is broken.
pub fn synchronize(stream: Stream) -> Result<(), Error> {
    let driver = Driver::get()?;
    // SAFETY: the driver checks the handle.
    checked(unsafe { (driver.stream_synchronize)(stream.handle()) })
}

/// Whether a stream captures a graph.
///
/// # Errors
/// If the stream is invalid.
pub fn is_capturing(stream: Stream) -> Result<bool, Error> {
    let (driver, mut status) = (Driver::get()?, 0);
    // SAFETY: the driver checks the handle, and the place lives as long as the call.
    checked(unsafe { (driver.is_capturing)(stream.handle(), &raw mut status) })?;
    Ok(status != 0)
}

/// Makes later work of a stream wait for what another one has to do now.
///
/// # Errors
/// If a stream is invalid, or captures a graph that the other one is no part of.
pub fn order(before: Stream, after: Stream) -> Result<(), Error> {
    const WITHOUT_TIME: u32 = 2;
    let driver = Driver::get()?;
    let mut event = std::ptr::null_mut();
    // SAFETY: the driver checks the handles, and the event lives until it has been waited for.
    unsafe {
        checked((driver.make_event)(&raw mut event, WITHOUT_TIME))?;
        let recorded = checked((driver.record_event)(event, before.handle()));
        let ordered = recorded.and_then(|()| checked((driver.wait_for_event)(after.handle(), event, 0)));
        checked((driver.destroy_event)(event))?;
        ordered
    }
}

/// Copies bytes in stream order, between any of host and device.
///
/// # Errors
/// If memory of the device is not allocated, or as for [`submit`].
///
/// # Safety
/// What of it is memory of the host must stay valid until the stream has done the copy.
pub unsafe fn copy(stream: Stream, to: u64, from: u64, bytes: usize) -> Result<(), Error> {
    let driver = Driver::get()?;
    // SAFETY: the caller's promise.
    checked(unsafe { (driver.copy_async)(to, from, bytes, stream.handle()) })
}
