//! Events: points in the operations of streams.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use cudarc::driver::sys::{CUevent, CUstream};

use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::graph::{Body, Captured};
use crate::handles::Handles;
use crate::lock;
use crate::operation::Operation;
use crate::pointers::Out;
use crate::queue::Point;
use crate::shared_event::{SharedEvent, SharedRecord};
use crate::stream::Stream;
use crate::stream_order::{self, Position};
use crate::{INVALID, Status};

/// The events that have not been destroyed.
pub static EVENTS: Handles<Event> = Handles::new();

const DISABLE_TIMING: c_uint = 2;
const INTERPROCESS: c_uint = 4;

/// An event.
pub struct Event {
    /// The number of its context, and that of its device.
    pub context: u64,
    device: u32,
    timing: bool,
    /// What other processes know of it, if they may.
    pub shared: Option<Arc<SharedEvent>>,
    last: Mutex<Option<Record>>,
}

/// The last record of an event.
#[derive(Clone)]
enum Record {
    /// After the operations of a stream.
    Work { point: Point, time: Moment, position: Option<Position> },
    /// In the graph that a stream captured.
    Graph(Captured),
}

/// When the operations before a record were done.
pub type Moment = Arc<OnceLock<Instant>>;

impl Event {
    /// Adds an event of a context, and writes its handle.
    ///
    /// # Errors
    /// If there is no place for the handle.
    pub fn insert(
        result: Out<CUevent>,
        context: &Context,
        timing: bool,
        shared: Option<Arc<SharedEvent>>,
    ) -> Result<(), Status> {
        let event = Arc::new(Event {
            context: context.id,
            device: context.device,
            timing,
            shared,
            last: Mutex::default(),
        });
        EVENTS.give(result, event)
    }

    /// The point of the last record.
    pub fn point(&self) -> Option<Point> {
        match self.last()? {
            Record::Work { point, .. } => Some(point),
            Record::Graph(_) => None,
        }
    }

    /// What happens before the last record, for racecheck.
    pub fn position(&self) -> Option<Position> {
        match self.last()? {
            Record::Work { position, .. } => position,
            Record::Graph(_) => None,
        }
    }

    /// What it recorded in a capture that is still in progress.
    pub fn captured(&self) -> Option<Captured> {
        match self.last()? {
            Record::Graph(captured) if !captured.is_over() => Some(captured),
            _ => None,
        }
    }

    fn last(&self) -> Option<Record> {
        lock(&self.last).clone()
    }

    /// Records a point in a stream. If the stream captures a graph, the event marks a place in the graph; an `external` event becomes a
    /// node.
    ///
    /// # Errors
    /// If the stream's context is broken, or is not the event's.
    pub fn record(self: &Arc<Event>, stream: &Stream, external: bool) -> Result<(), Status> {
        if stream.context()?.id != self.context {
            return Err(Status::CUDA_ERROR_INVALID_HANDLE);
        }
        if let Some(captured) = stream.captured() {
            if external {
                return stream.capture_node(Body::Record(Arc::clone(self)));
            }
            *lock(&self.last) = Some(Record::Graph(captured));
            return Ok(());
        }
        let time = Moment::default();
        let mut last = lock(&self.last);
        let shared = self.shared.as_ref().map(SharedEvent::record);
        stream.submit(Operation::Stamp(Arc::clone(&time), shared.clone())).inspect_err(|_| {
            // Nobody waits for what will not come.
            shared.iter().for_each(SharedRecord::end);
        })?;
        let position = stream_order::position(stream);
        *last = Some(Record::Work { point: stream.queue.now(), time, position });
        Ok(())
    }

    /// Whether all that was recorded is done.
    fn is_past(&self) -> bool {
        let (mut is_past, position) = match self.last() {
            Some(Record::Work { point, position, .. }) => (point.is_past(), position),
            _ => (true, None),
        };
        is_past &= self.shared.as_ref().is_none_or(|shared| shared.last().is_past());
        if is_past {
            stream_order::host_waits(position);
        }
        is_past
    }

    /// Checks that the event can be queried.
    fn check(&self) -> Result<(), Status> {
        match self.captured() {
            Some(_) => Err(Status::CUDA_ERROR_CAPTURED_EVENT),
            None => Context::current_or(Some(self.context)).map(drop),
        }
    }

    /// When the recorded operations were done.
    fn time(&self) -> Result<Instant, Status> {
        let Some(Record::Work { point, time, .. }) = self.last().filter(|_| self.timing) else {
            return Err(Status::CUDA_ERROR_INVALID_HANDLE);
        };
        if !point.is_past() {
            return Err(Status::CUDA_ERROR_NOT_READY);
        }
        time.get().copied().ok_or(Status::CUDA_ERROR_NOT_READY)
    }
}

/// The event of a handle.
///
/// # Errors
/// If the handle is invalid.
pub fn event(handle: CUevent) -> Result<Arc<Event>, Status> {
    driver()?;
    EVENTS.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
}

api! { API:
    /// Makes an event.
    cuEventCreate 2000 "cuEventCreate" (result: Out<CUevent>, flags: c_uint) {
        let context = Context::current()?;
        // An interprocess event must not have timing.
        if flags > 7 || flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0 {
            return Err(INVALID);
        }
        let shared = (flags & INTERPROCESS != 0).then(SharedEvent::new).transpose()?;
        Event::insert(result, &context, flags & DISABLE_TIMING == 0, shared)
    }
    /// Destroys an event.
    cuEventDestroy 2000 "cuEventDestroy", 4000 "cuEventDestroy_v2" (handle: CUevent) {
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
            return Err(INVALID);
        }
        event(handle)?.record(&*default.stream(of)?, flags == 1)
    }
    /// Whether what an event recorded is done.
    cuEventQuery 2000 "cuEventQuery" (handle: CUevent) {
        let event = event(handle)?;
        event.check()?;
        if event.is_past() { Ok(()) } else { Err(Status::CUDA_ERROR_NOT_READY) }
    }
    /// Waits until what an event recorded is done.
    cuEventSynchronize 2000 "cuEventSynchronize" (handle: CUevent) {
        let event = event(handle)?;
        event.check()?;
        if let Some(point) = event.point() {
            let position = event.position();
            point.wait();
            stream_order::host_waits(position);
        }
        if let Some(shared) = &event.shared {
            shared.last().wait(&*Context::current_or(Some(event.context))?);
        }
        crate::pool::synchronized();
        crate::output::flush();
        Context::current_or(Some(event.context)).map(drop)
    }
    /// Milliseconds between two events of one device.
    cuEventElapsedTime 2000 "cuEventElapsedTime", 12080 "cuEventElapsedTime_v2" (result: Out<f32>, start: CUevent, end: CUevent) {
        let (start, end) = (event(start)?, event(end)?);
        if start.device != end.device {
            return Err(Status::CUDA_ERROR_INVALID_HANDLE);
        }
        let (start, end) = (start.time()?, end.time()?);
        let milliseconds = match end.checked_duration_since(start) {
            Some(duration) => duration.as_secs_f64() * 1e3,
            None => -(start.duration_since(end).as_secs_f64() * 1e3),
        };
        result.write(milliseconds as f32)
    }
}
