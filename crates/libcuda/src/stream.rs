//! Streams: work in order, and the order between streams (CUDA C++ Programming Guide, "Streams").
//!
//! A unit of work is an [`Operation`]. A stream that captures a graph adds a node instead of queueing the operation
//! (`graph/capture.rs`); launching a graph queues the operations of its nodes in order. Each queue has a thread, and threads that wait
//! for the queue help with its work (`queue.rs`). The legacy default stream and blocking streams wait for points in each other's queues.
//!
//! A failure is stored in the context, and all later calls return it. A panic counts as a failure; it is also printed on stderr and
//! counted in the report. `planted.rs` plants some behind every entry point.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use cudarc::driver::sys::{CUcontext, CUdevice, CUdeviceptr, CUevent, CUhostFn, CUstream, CUstreamCallback};

use crate::api::api;
use crate::context::{Context, without_contexts};
use crate::driver::driver;
use crate::event::{Event, event};
use crate::graph::CaptureState;
use crate::handles::{Handles, handle_of};
use crate::operation::Operation;
use crate::pointers::Out;
use crate::queue::Queue;
use crate::shared_event::SharedEvent;
use crate::status::of_panic;
use crate::stream_order;
use crate::{INVALID, Status};

/// The streams that the program has created and not destroyed.
pub static STREAMS: Handles<Stream> = Handles::new();

/// The best priority; 0 is the worst.
pub const GREATEST_PRIORITY: c_int = -5;

const NON_BLOCKING: c_uint = 1;

/// Which default stream a null handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// The stream that waits for all blocking streams, as they wait for it.
    Legacy,
    /// A stream per thread.
    PerThread,
}

impl Default {
    /// The stream of a handle. A default stream belongs to the current context. Other streams know their context, so none needs to be
    /// current (Dr.Jit relies on it).
    ///
    /// # Errors
    /// If the handle is invalid, if it names a default stream and no context is current, or if the context is broken.
    pub fn stream(self, handle: CUstream) -> Result<Arc<Stream>, Status> {
        // The handles of the default streams (`CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD`).
        match handle.addr() {
            0 if self == Default::Legacy => Ok(Arc::clone(&Context::current()?.legacy)),
            1 => Ok(Arc::clone(&Context::current()?.legacy)),
            0 | 2 => Ok(Context::current()?.per_thread()),
            _ => {
                driver()?;
                let stream = STREAMS.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)?;
                stream.context()?.check()?;
                Ok(stream)
            }
        }
    }
}

/// Whether a stream and the legacy default stream wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// This is the legacy default stream.
    Legacy,
    /// They wait for each other.
    Blocking,
    /// They do not.
    NonBlocking,
}

/// A stream.
pub struct Stream {
    /// Its pending work.
    pub queue: Arc<Queue>,
    context: Weak<Context>,
    kind: Kind,
    priority: c_int,
    /// A number that no other stream has had.
    pub id: u64,
    /// The graph that it captures, if any.
    pub capture: Mutex<Option<CaptureState>>,
}

impl Stream {
    fn new(context: Weak<Context>, kind: Kind, priority: c_int) -> Arc<Stream> {
        static STREAMS: AtomicU64 = AtomicU64::new(1);
        let id = STREAMS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Stream { queue: Arc::default(), context, kind, priority, id, capture: Mutex::default() })
    }

    /// The legacy default stream of a context.
    pub fn legacy(context: Weak<Context>) -> Arc<Stream> {
        Stream::new(context, Kind::Legacy, 0)
    }

    /// The default stream of a thread.
    pub fn per_thread(context: Weak<Context>) -> Arc<Stream> {
        Stream::new(context, Kind::Blocking, 0)
    }

    /// Its context.
    ///
    /// # Errors
    /// If the context has been destroyed.
    pub fn context(&self) -> Result<Arc<Context>, Status> {
        self.context.upgrade().ok_or(Status::CUDA_ERROR_CONTEXT_IS_DESTROYED)
    }

    /// Whether it belongs to this context.
    pub fn belongs_to(&self, context: &Arc<Context>) -> bool {
        std::ptr::eq(self.context.as_ptr(), Arc::as_ptr(context))
    }

    /// Whether it is the legacy default stream.
    pub fn is_legacy(&self) -> bool {
        self.kind == Kind::Legacy
    }

    /// Makes later work wait for what another stream has to do now.
    pub fn wait_for_work_of(&self, other: &Stream) {
        if let Some(position) = stream_order::position(other) {
            stream_order::stream_waits(self, &position);
        }
        if !other.queue.is_idle() {
            let point = other.queue.now();
            self.queue.push(Box::new(move || point.wait()));
        }
    }

    /// Makes later work wait for what all streams of a context have to do now.
    pub fn wait_for_all_work_of(&self, context: &Context) {
        self.wait_for_work_of(&context.legacy);
        context.live_streams().iter().for_each(|stream| self.wait_for_work_of(stream));
    }

    /// Makes later work wait for other streams as the rules of the legacy default stream require.
    ///
    /// # Errors
    /// If one of these streams captures a graph.
    fn keep_order(&self, context: &Context) -> Result<(), Status> {
        match self.kind {
            Kind::Legacy => {
                let streams = context.live_streams();
                let others = || streams.iter().filter(|stream| stream.kind == Kind::Blocking);
                if others().any(|stream| stream.is_capturing()) {
                    return Err(Status::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
                }
                others().for_each(|stream| self.wait_for_work_of(stream));
            }
            Kind::Blocking => self.wait_for_work_of(&context.legacy),
            Kind::NonBlocking => {}
        }
        Ok(())
    }

    /// Queues an operation after all earlier ones.
    ///
    /// # Errors
    /// If the context is broken.
    pub fn submit(&self, operation: Operation) -> Result<(), Status> {
        let context = self.context()?;
        context.check()?;
        if self.is_capturing() {
            return self.capture_operation(operation);
        }
        self.keep_order(&context)?;
        let position = stream_order::submitted(self, &operation);
        self.queue.push(Box::new(move || stream_order::perform(position, || operation.perform_in(&context))));
        Ok(())
    }

    /// Queues an operation after all earlier ones, and waits for it.
    ///
    /// # Errors
    /// If the context is broken, or breaks in the meantime.
    pub fn submit_and_wait(&self, operation: Operation) -> Result<(), Status> {
        let context = self.context()?;
        context.check()?;
        self.refuse_capture()?;
        self.keep_order(&context)?;
        let of_work = Arc::clone(&context);
        let position = stream_order::submitted(self, &operation);
        let until = position.clone();
        self.queue.push_and_wait(Box::new(move || {
            stream_order::perform(position, || operation.perform_in(&of_work));
        }));
        stream_order::host_waits(until);
        context.check()
    }

    /// Waits until all operations are done.
    ///
    /// # Errors
    /// If the context is broken.
    pub fn synchronize(&self) -> Result<(), Status> {
        let context = self.context()?;
        self.refuse_capture()?;
        let mut positions = vec![stream_order::position(self)];
        if self.kind == Kind::Legacy {
            // An operation submitted now would wait for these streams.
            for stream in context.live_streams().iter().filter(|stream| stream.kind == Kind::Blocking) {
                positions.push(stream_order::position(stream));
                stream.queue.now().wait();
            }
        }
        self.queue.now().wait();
        stream_order::host_waits(positions.into_iter().flatten());
        crate::pool::synchronized();
        crate::output::flush();
        context.check()
    }

    /// Makes later work wait for the last record of an event.
    ///
    /// # Errors
    /// If the context is broken.
    pub fn wait(&self, event: &Event) -> Result<(), Status> {
        if let Some(captured) = event.captured() {
            return self.join(&captured);
        }
        if let Some(position) = event.position() {
            stream_order::stream_waits(self, &position);
        }
        // Who waits for work of this process does it, if nobody else can; so that comes before work of other processes.
        match event.point() {
            Some(point) if !point.is_past() => self.submit(Operation::Wait(point))?,
            _ => self.context()?.check()?,
        }
        match event.shared.as_ref().map(SharedEvent::last) {
            Some(record) if !record.is_past() => self.submit(Operation::Await(record)),
            _ => Ok(()),
        }
    }
}

fn create(result: Out<CUstream>, flags: c_uint, priority: c_int) -> Result<(), Status> {
    let context = Context::current()?;
    let kind = match flags {
        0 => Kind::Blocking,
        NON_BLOCKING => Kind::NonBlocking,
        _ => return Err(INVALID),
    };
    let stream = Stream::new(Arc::downgrade(&context), kind, priority.clamp(GREATEST_PRIORITY, 0));
    result.write(handle_of(&stream))?;
    context.add_stream(&stream);
    STREAMS.insert::<()>(stream);
    Ok(())
}

/// A function of the program with its argument.
#[derive(Clone, Copy)]
pub struct HostFunction {
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
}

// SAFETY: the API lets another thread call the function, and the program knows it.
unsafe impl Send for HostFunction {}
// SAFETY: as above.
unsafe impl Sync for HostFunction {}

impl HostFunction {
    /// The function and argument that the program passed.
    ///
    /// # Errors
    /// If there is no function.
    pub fn new(function: CUhostFn, argument: *mut c_void) -> Result<HostFunction, Status> {
        let function = function.ok_or(INVALID)?;
        Ok(HostFunction { function, argument })
    }

    /// The function and argument that the program passed.
    pub fn parts(self) -> (CUhostFn, *mut c_void) {
        (Some(self.function), self.argument)
    }

    /// Calls the function. No context is current during the call, whichever thread works on the stream.
    ///
    /// # Errors
    /// If the function panics.
    pub fn call(self) -> Result<(), Status> {
        // SAFETY: the two types of C functions differ only in whether the function may unwind. This one may: the unwinding ends here.
        let function: unsafe extern "C-unwind" fn(*mut c_void) =
            unsafe { std::mem::transmute(self.function) };
        // SAFETY: the program passed the function to be called with this argument.
        let called = without_contexts(|| machine::caught(|| unsafe { function(self.argument) }));
        called.map_err(|message| of_panic("a host function", &message))
    }
}

/// A callback of the program with its arguments.
#[derive(Clone, Copy)]
pub struct Callback {
    function: unsafe extern "C" fn(CUstream, Status, *mut c_void),
    stream: CUstream,
    argument: *mut c_void,
}

// SAFETY: the API lets another thread call the function, and the program knows it.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    /// Calls the function, even if earlier work has failed.
    ///
    /// # Errors
    /// If the function panics.
    pub fn call(self, status: Status) -> Result<(), Status> {
        // SAFETY: as in `HostFunction::call`.
        let function: unsafe extern "C-unwind" fn(CUstream, Status, *mut c_void) =
            unsafe { std::mem::transmute(self.function) };
        // SAFETY: the program passed the function to be called with these arguments.
        let called =
            without_contexts(|| machine::caught(|| unsafe { function(self.stream, status, self.argument) }));
        called.map_err(|message| of_panic("a callback of a stream", &message))
    }
}

api! { API:
    /// Makes a stream.
    cuStreamCreate 2000 "cuStreamCreate" (result: Out<CUstream>, flags: c_uint) {
        create(result, flags, 0)
    }
    /// Makes a stream with a priority, which has no effect here.
    cuStreamCreateWithPriority 5050 "cuStreamCreateWithPriority" (result: Out<CUstream>, flags: c_uint, priority: c_int) {
        create(result, flags, priority)
    }
    /// Destroys a stream; its work is done nevertheless.
    cuStreamDestroy 2000 "cuStreamDestroy", 4000 "cuStreamDestroy_v2" (handle: CUstream) {
        driver()?;
        let stream = STREAMS.remove(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)?;
        // The context still waits for it.
        stream.submit(Operation::Keep(Arc::clone(&stream))).or(Ok(()))
    }
    /// Waits until all work of a stream is done.
    cuStreamSynchronize 2000 "cuStreamSynchronize" / 7000 "cuStreamSynchronize_ptsz" (handle: CUstream) |default| {
        default.stream(handle)?.synchronize()
    }
    /// Whether all work of a stream is done.
    cuStreamQuery 2000 "cuStreamQuery" / 7000 "cuStreamQuery_ptsz" (handle: CUstream) |default| {
        let stream = default.stream(handle)?;
        stream.refuse_capture()?;
        let position = stream_order::position(&stream);
        if !stream.queue.is_idle() {
            return Err(Status::CUDA_ERROR_NOT_READY);
        }
        stream_order::host_waits(position);
        Ok(())
    }
    /// Lets a stream wait for an event.
    cuStreamWaitEvent 3020 "cuStreamWaitEvent" / 7000 "cuStreamWaitEvent_ptsz" (handle: CUstream, of: CUevent, flags: c_uint) |default| {
        if flags > 1 {
            return Err(INVALID);
        }
        default.stream(handle)?.wait(&*event(of)?)
    }
    /// Calls a function of the program when all work before is done.
    cuLaunchHostFunc 10000 "cuLaunchHostFunc" / 10000 "cuLaunchHostFunc_ptsz" (handle: CUstream, function: CUhostFn, argument: *mut c_void) |default| {
        default.stream(handle)?.submit(Operation::Host(HostFunction::new(function, argument)?))
    }
    /// Calls a function of the program when all work before is done.
    cuLaunchHostFunc 13010 "cuLaunchHostFunc_v2" / 13010 "cuLaunchHostFunc_v2_ptsz" (handle: CUstream, function: CUhostFn, argument: *mut c_void, _mode: c_uint) |default| {
        default.stream(handle)?.submit(Operation::Host(HostFunction::new(function, argument)?))
    }
    /// Calls a function of the program, with the stream and its status, when all work before is done.
    cuStreamAddCallback 5000 "cuStreamAddCallback" / 7000 "cuStreamAddCallback_ptsz" (handle: CUstream, function: CUstreamCallback, argument: *mut c_void, flags: c_uint) |default| {
        let function = function.filter(|_| flags == 0).ok_or(INVALID)?;
        default.stream(handle)?.submit(Operation::Callback(Callback { function, stream: handle, argument }))
    }
    /// The flags that a stream was made with.
    cuStreamGetFlags 5050 "cuStreamGetFlags" / 7000 "cuStreamGetFlags_ptsz" (handle: CUstream, flags: Out<c_uint>) |default| {
        flags.write((default.stream(handle)?.kind == Kind::NonBlocking).into())
    }
    /// The priority that a stream was made with.
    cuStreamGetPriority 5050 "cuStreamGetPriority" / 7000 "cuStreamGetPriority_ptsz" (handle: CUstream, priority: Out<c_int>) |default| {
        priority.write(default.stream(handle)?.priority)
    }
    /// A number that no other stream has.
    cuStreamGetId 12000 "cuStreamGetId" / 12000 "cuStreamGetId_ptsz" (handle: CUstream, id: Out<u64>) |default| {
        id.write(default.stream(handle)?.id)
    }
    /// The context of a stream.
    cuStreamGetCtx 9020 "cuStreamGetCtx" / 9020 "cuStreamGetCtx_ptsz" (handle: CUstream, context: Out<CUcontext>) |default| {
        context.write(handle_of(&default.stream(handle)?.context()?))
    }
    /// The context of a stream; no stream here belongs to a green context.
    cuStreamGetCtx 12050 "cuStreamGetCtx_v2" / 12050 "cuStreamGetCtx_v2_ptsz" (handle: CUstream, context: Out<CUcontext>, green: Out<*mut c_void>) |default| {
        context.write(handle_of(&default.stream(handle)?.context()?))?;
        green.write_if_wanted(std::ptr::null_mut());
        Ok(())
    }
    /// The device of a stream.
    cuStreamGetDevice 12080 "cuStreamGetDevice" / 12080 "cuStreamGetDevice_ptsz" (handle: CUstream, device: Out<CUdevice>) |default| {
        device.write(default.stream(handle)?.context()?.device as CUdevice)
    }
    /// Tells which stream uses managed memory, which makes no difference here.
    cuStreamAttachMemAsync 6000 "cuStreamAttachMemAsync" / 7000 "cuStreamAttachMemAsync_ptsz" (handle: CUstream, address: CUdeviceptr, _bytes: usize, flags: c_uint) |default| {
        let stream = default.stream(handle)?;
        if !matches!(flags, 1 | 2 | 4) || driver()?.allocations.find(address).is_none() {
            return Err(INVALID);
        }
        stream.submit(Operation::Nothing)
    }
    /// Copies the attributes of a stream to another one: none has an effect here.
    cuStreamCopyAttributes 11000 "cuStreamCopyAttributes" / 11000 "cuStreamCopyAttributes_ptsz" (to: CUstream, from: CUstream) |default| {
        default.stream(to)?;
        default.stream(from).map(drop)
    }
    /// Sets an attribute of a stream: none has an effect here.
    cuStreamSetAttribute 11000 "cuStreamSetAttribute" / 11000 "cuStreamSetAttribute_ptsz" (handle: CUstream, attribute: c_uint, value: *const c_void) |default| {
        default.stream(handle)?;
        if value.is_null() || !matches!(attribute, 1 | 3 | 8 | 10) { Err(INVALID) } else { Ok(()) }
    }
}
