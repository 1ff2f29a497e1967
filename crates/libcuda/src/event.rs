//! Events: moments in the work of streams.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use cudarc::driver::sys::{CUevent, CUstream};

use crate::Status;
use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::handles::{Handles, handle_of};
use crate::operation::Operation;
use crate::pointers::write;
use crate::queue::Point;
use crate::stream::Stream;

/// Events that have not been destroyed.
pub static EVENTS: Handles<Event> = Handles::new();

const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;

/// An event.
pub struct Event {
    /// The number of its context.
    pub context: u64,
    timing: bool,
    last: Mutex<Option<Record>>,
}

/// When it was recorded last.
#[derive(Clone)]
struct Record {
    point: Point,
    time: Moment,
}

/// When the work before a record was done.
pub type Moment = Arc<OnceLock<Instant>>;

impl Event {
    /// The moment when it was recorded last.
    pub fn point(&self) -> Option<Point> {
        Some(self.last()?.point)
    }

    fn last(&self) -> Option<Record> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records what a stream is doing.
    ///
    /// # Errors
    /// When the stream's context is broken, or another one.
    pub fn record(&self, stream: &Stream, _external: bool) -> Result<(), Status> {
        if stream.context()?.id != self.context {
            return Err(Status::CUDA_ERROR_INVALID_HANDLE);
        }
        let time = Moment::default();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        stream.submit(Operation::Stamp(Arc::clone(&time)))?;
        *last = Some(Record { point: stream.queue.now(), time });
        Ok(())
    }

    /// Whether what was recorded is done.
    fn is_past(&self) -> bool {
        self.point().is_none_or(|point| point.is_past())
    }

    /// When it was done.
    fn time(&self) -> Result<Instant, Status> {
        let Record { point, time } =
            self.last().filter(|_| self.timing).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)?;
        if !point.is_past() {
            return Err(Status::CUDA_ERROR_NOT_READY);
        }
        time.get().copied().ok_or(Status::CUDA_ERROR_NOT_READY)
    }
}

/// The event of a handle.
///
/// # Errors
/// When it is none.
pub fn event(handle: CUevent) -> Result<Arc<Event>, Status> {
    driver()?;
    EVENTS.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
}

/// Milliseconds between two events.
fn elapsed(result: *mut f32, start: CUevent, end: CUevent) -> Result<(), Status> {
    let (start, end) = (event(start)?.time()?, event(end)?.time()?);
    let milliseconds = match end.checked_duration_since(start) {
        Some(duration) => duration.as_secs_f64() * 1e3,
        None => -(start.duration_since(end).as_secs_f64() * 1e3),
    };
    // SAFETY: the caller's promise.
    unsafe { write(result, milliseconds as f32) }
}

api! { API:
    /// Makes an event.
    cuEventCreate 2000 "cuEventCreate" (result: *mut CUevent, flags: c_uint) {
        let context = Context::current()?;
        // One of several processes has no time.
        if flags > 7 || flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
            return Err(Status::CUDA_ERROR_INVALID_VALUE);
        }
        let event = Arc::new(Event { context: context.id, timing: flags & DISABLE_TIMING == 0, last: Mutex::default() });
        write(result, handle_of(&event))?;
        EVENTS.insert::<()>(event);
        Ok(())
    }
    /// Destroys an event.
    cuEventDestroy 4000 "cuEventDestroy_v2" (handle: CUevent) {
        driver()?;
        EVENTS.remove(handle).map(drop).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
    }
    /// Records what a stream is doing.
    cuEventRecord 2000 "cuEventRecord" / 7000 "cuEventRecord_ptsz" (handle: CUevent, of: CUstream) |default| {
        event(handle)?.record(&*default.stream(of)?, false)
    }
    /// Records what a stream is doing, inside or outside of a capture.
    cuEventRecordWithFlags 11010 "cuEventRecordWithFlags" / 11010 "cuEventRecordWithFlags_ptsz" (handle: CUevent, of: CUstream, flags: c_uint) |default| {
        if flags > 1 {
            return Err(Status::CUDA_ERROR_INVALID_VALUE);
        }
        event(handle)?.record(&*default.stream(of)?, flags == 1)
    }
    /// Whether what an event recorded is done.
    cuEventQuery 2000 "cuEventQuery" (handle: CUevent) {
        let event = event(handle)?;
        Context::current()?;
        if event.is_past() { Ok(()) } else { Err(Status::CUDA_ERROR_NOT_READY) }
    }
    /// Waits until what an event recorded is done.
    cuEventSynchronize 2000 "cuEventSynchronize" (handle: CUevent) {
        let event = event(handle)?;
        if let Some(point) = event.point() {
            point.wait();
        }
        crate::output::flush();
        Context::current().map(drop)
    }
    /// Milliseconds between two events.
    cuEventElapsedTime 2000 "cuEventElapsedTime" (result: *mut f32, start: CUevent, end: CUevent) {
        elapsed(result, start, end)
    }
    /// Milliseconds between two events.
    cuEventElapsedTime 12080 "cuEventElapsedTime_v2" (result: *mut f32, start: CUevent, end: CUevent) {
        elapsed(result, start, end)
    }
}
