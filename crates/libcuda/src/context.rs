//! Contexts: the state in which a thread's calls run, and the unit of failure.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::ThreadId;

use cudarc::driver::sys::{CUcontext, CUctxCreateParams, CUdevice, CUevent};

use crate::api::api;
use crate::driver::{Driver, driver};
use crate::handles::{Handles, handle_of};
use crate::lock;
use crate::peer::Peers;
use crate::pointers::{Out, required};
use crate::stream::{self, Stream};
use crate::{INVALID, Status};

/// The contexts that have not been destroyed.
pub static CONTEXTS: Handles<Context> = Handles::new();

/// A context of a device.
pub struct Context {
    /// The number of its device.
    pub device: u32,
    /// A number that no other context has had.
    pub id: u64,
    flags: AtomicU32,
    /// The `CUresult` that broke it, or 0. Once it is broken, every call returns this error.
    failure: AtomicU32,
    /// Whether it is destroyed.
    destroyed: AtomicBool,
    /// The default stream that waits for all blocking streams, as they wait for it.
    pub legacy: Arc<Stream>,
    /// The streams that the program created, and the default streams of threads.
    streams: Mutex<Vec<Weak<Stream>>>,
    per_thread: Mutex<HashMap<ThreadId, Arc<Stream>>>,
    /// The values of limits, by number of the `CUlimit`.
    limits: Mutex<HashMap<u32, usize>>,
    /// The contexts of other devices whose memory its kernels reach.
    pub peers: Peers,
    cache_config: AtomicU32,
    shared_config: AtomicU32,
    /// The API version that `cuCtxGetApiVersion` returns.
    api_version: u32,
}

impl Context {
    fn new(device: u32, flags: u32, api_version: u32) -> Arc<Context> {
        static CONTEXTS: AtomicU64 = AtomicU64::new(1);
        let id = CONTEXTS.fetch_add(1, Ordering::Relaxed);
        crate::in_use::context_made(device);
        Arc::new_cyclic(|context| Context {
            device,
            id,
            flags: flags.into(),
            failure: 0.into(),
            destroyed: false.into(),
            legacy: Stream::legacy(Weak::clone(context)),
            streams: Mutex::default(),
            per_thread: Mutex::default(),
            limits: Mutex::new(LIMITS.into()),
            peers: Peers::default(),
            cache_config: 0.into(),
            shared_config: 0.into(),
            api_version,
        })
    }

    /// The current context of the calling thread.
    ///
    /// # Errors
    /// If there is none, or it is broken.
    pub fn current() -> Result<Arc<Context>, Status> {
        driver()?;
        let context = top().ok_or(Status::CUDA_ERROR_INVALID_CONTEXT)?;
        context.check()?;
        Ok(context)
    }

    /// The current context of the calling thread, if it has one.
    ///
    /// # Errors
    /// If it is broken.
    pub fn current_if_any() -> Result<Option<Arc<Context>>, Status> {
        driver()?;
        top().map(|context| context.check().map(|()| context)).transpose()
    }

    /// The context in which an object is freed: the current one, or the object's own if the thread has none. (The manual requires a
    /// current context, but programs that shut down rely on none being needed.)
    ///
    /// # Errors
    /// If there is neither, or the context is broken.
    pub fn current_or(owner: Option<u64>) -> Result<Arc<Context>, Status> {
        driver()?;
        let of_owner = || CONTEXTS.find(|context| Some(context.id) == owner);
        let context = top().or_else(of_owner).ok_or(Status::CUDA_ERROR_INVALID_CONTEXT)?;
        context.check()?;
        Ok(context)
    }

    /// Checks that it is not broken.
    ///
    /// # Errors
    /// The error that broke it.
    pub fn check(&self) -> Result<(), Status> {
        if self.destroyed.load(Ordering::Relaxed) {
            return Err(Status::CUDA_ERROR_CONTEXT_IS_DESTROYED);
        }
        match self.failure.load(Ordering::Relaxed) {
            0 => Ok(()),
            // SAFETY: `fail` stored the number of a status.
            number => Err(unsafe { std::mem::transmute::<u32, Status>(number) }),
        }
    }

    /// Breaks it: pending operations do not run, and every call fails.
    pub fn fail(&self, status: Status) {
        let _ = self.failure.compare_exchange(0, status as u32, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn streams(&self) -> MutexGuard<'_, Vec<Weak<Stream>>> {
        lock(&self.streams)
    }

    /// The live streams, except for the legacy default stream.
    pub fn live_streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = self.streams();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.iter().filter_map(Weak::upgrade).collect()
    }

    /// Adds a stream.
    pub fn add_stream(&self, stream: &Arc<Stream>) {
        self.streams().push(Arc::downgrade(stream));
    }

    /// The default stream of the calling thread.
    pub fn per_thread(self: &Arc<Context>) -> Arc<Stream> {
        let mut streams = lock(&self.per_thread);
        let stream = streams.entry(std::thread::current().id()).or_insert_with(|| {
            let stream = Stream::per_thread(Arc::downgrade(self));
            self.add_stream(&stream);
            stream
        });
        Arc::clone(stream)
    }

    /// Waits until all its operations are done.
    ///
    /// # Errors
    /// The error that broke it.
    pub fn synchronize(&self) -> Result<(), Status> {
        let positions = crate::stream_order::everything();
        self.legacy.queue.now().wait();
        for stream in self.live_streams() {
            stream.queue.now().wait();
        }
        crate::stream_order::host_waits(positions);
        crate::pool::synchronized();
        crate::output::flush();
        self.check()
    }

    /// Destroys it: waits for its operations, and frees what belongs to it.
    fn destroy(self: &Arc<Context>, driver: &Driver) {
        let _ = self.synchronize();
        self.destroyed.store(true, Ordering::Relaxed);
        CONTEXTS.remove::<()>(handle_of(self));
        crate::stream::STREAMS.remove_if(|stream| stream.belongs_to(self));
        crate::event::EVENTS.remove_if(|event| event.context == self.id);
        crate::module::forget(self.id);
        crate::array::forget(self.id);
        crate::leak::report(Some(self.id));
        driver.allocations.free_all(driver, self.id);
        crate::in_use::context_destroyed(self.device);
    }

    /// The value of a limit, by number of the `CUlimit`.
    pub fn limit(&self, limit: u32) -> Option<usize> {
        lock(&self.limits).get(&limit).copied()
    }
}

/// `CUlimit`: stack size, printf fifo, malloc heap, device runtime sync depth and pending launches, L2 fetch granularity, persisting L2.
const LIMITS: [(u32, usize); 7] = [(0, 1024), (1, 1 << 20), (2, 8 << 20), (3, 2), (4, 2048), (5, 64), (6, 0)];
const MALLOC_HEAP: u32 = 2;

/// The primary context of a device.
pub struct Primary {
    device: u32,
    state: Mutex<PrimaryState>,
}

#[derive(Default)]
struct PrimaryState {
    context: Option<Arc<Context>>,
    users: u32,
    flags: u32,
}

impl Primary {
    /// An inactive primary context.
    pub fn new(device: u32) -> Primary {
        Primary { device, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, PrimaryState> {
        lock(&self.state)
    }

    fn retain(&self) -> Arc<Context> {
        let mut state = self.state();
        state.users += 1;
        let (device, flags) = (self.device, state.flags);
        Arc::clone(state.context.get_or_insert_with(|| {
            let context = Context::new(device, flags, crate::DRIVER_VERSION as u32);
            CONTEXTS.insert::<()>(Arc::clone(&context));
            context
        }))
    }

    fn release(&self, driver: &Driver) -> Result<(), Status> {
        let mut state = self.state();
        state.users = state.users.checked_sub(1).ok_or(Status::CUDA_ERROR_INVALID_CONTEXT)?;
        if state.users == 0 {
            let context = state.context.take();
            drop(state);
            context.iter().for_each(|context| context.destroy(driver));
        }
        Ok(())
    }

    /// Destroys it regardless of its users.
    fn reset(&self, driver: &Driver) {
        let context = self.state().context.take();
        context.iter().for_each(|context| context.destroy(driver));
    }

    fn set_flags(&self, flags: u32) {
        let mut state = self.state();
        state.flags = flags;
        state.context.iter().for_each(|context| context.flags.store(flags, Ordering::Relaxed));
    }
}

type Stack = RefCell<Vec<Arc<Context>>>;

thread_local! {
    /// The context stack of the thread; the last one is current. It stays usable after the thread's values have been dropped, since
    /// destructors of the program's static objects run later and may call the driver.
    static STACK: ManuallyDrop<Stack> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    /// Empties the stack when the thread ends.
    static EMPTIES_STACK: EmptiesStack = const { EmptiesStack };
}

struct EmptiesStack;

impl Drop for EmptiesStack {
    fn drop(&mut self) {
        STACK.with(|stack| drop(stack.take()));
    }
}

/// The thread's current context, even if it is broken.
pub fn top() -> Option<Arc<Context>> {
    STACK.with(|stack| stack.borrow().last().cloned())
}

fn push(context: Arc<Context>) {
    // An error means that the thread is past its end.
    let _ = EMPTIES_STACK.try_with(|_| ());
    STACK.with(|stack| stack.borrow_mut().push(context));
}

fn pop() -> Result<Arc<Context>, Status> {
    STACK.with(|stack| stack.borrow_mut().pop()).ok_or(Status::CUDA_ERROR_INVALID_CONTEXT)
}

/// Replaces the current context.
pub fn set_current(context: Option<Arc<Context>>) {
    let _ = pop();
    if let Some(context) = context {
        push(context);
    }
}

/// Runs `work` with an empty context stack, as on a thread of the driver, and restores the stack afterwards.
pub fn without_contexts<T>(work: impl FnOnce() -> T) -> T {
    let contexts = STACK.with(|stack| stack.take());
    let result = work();
    STACK.with(|stack| stack.replace(contexts));
    result
}

/// The context of a handle, or the current one for a null handle.
pub fn context_or_current(handle: CUcontext) -> Result<Arc<Context>, Status> {
    if handle.is_null() { Context::current() } else { context(handle) }
}

/// The same for functions that had no argument in an earlier version. Some programs look up the name with `_v2` first (numba 0.60) and
/// call it without an argument, so an invalid handle counts as no argument.
fn loosely(handle: CUcontext) -> Result<Arc<Context>, Status> {
    context(handle).or_else(|_| {
        driver()?;
        top().ok_or(Status::CUDA_ERROR_INVALID_CONTEXT)
    })
}

/// The context of a handle.
pub fn context(handle: CUcontext) -> Result<Arc<Context>, Status> {
    driver()?;
    CONTEXTS.get(handle).ok_or(Status::CUDA_ERROR_INVALID_CONTEXT)
}

/// Creates a context and pushes it.
fn create(result: Out<CUcontext>, flags: c_uint, device: CUdevice, api_version: u32) -> Result<(), Status> {
    let driver = driver()?;
    let ordinal = driver.ordinal(device)?;
    check_flags(flags)?;
    let context = Context::new(ordinal, flags, api_version);
    result.write(handle_of(&context))?;
    CONTEXTS.insert::<()>(Arc::clone(&context));
    push(context);
    Ok(())
}

/// Destroys a context. If it is the current one, it is popped.
fn destroy(handle: CUcontext) -> Result<(), Status> {
    let context = context(handle)?;
    STACK.with(|stack| drop(stack.borrow_mut().pop_if(|top| Arc::ptr_eq(top, &context))));
    context.destroy(driver()?);
    Ok(())
}

/// Checks flags: scheduling (0, 1, 2 or 4), mapping host memory, local memory, core dumps, synchronous copies.
fn check_flags(flags: c_uint) -> Result<(), Status> {
    match flags & !0xff == 0 && matches!(flags & 7, 0 | 1 | 2 | 4) {
        true => Ok(()),
        false => Err(INVALID),
    }
}

api! { API:
    /// Makes a context for a device and pushes it.
    cuCtxCreate 2000 "cuCtxCreate" (result: Out<CUcontext>, flags: c_uint, device: CUdevice) {
        create(result, flags, device, 3010)
    }
    /// Makes a context for a device and pushes it.
    cuCtxCreate 3020 "cuCtxCreate_v2" (result: Out<CUcontext>, flags: c_uint, device: CUdevice) {
        create(result, flags, device, 3020)
    }
    /// Makes a context with limits of its execution resources, which have no effect here.
    cuCtxCreate 11040 "cuCtxCreate_v3" (result: Out<CUcontext>, _affinity: *const (), _count: c_int, flags: c_uint, device: CUdevice) {
        create(result, flags, device, 11040)
    }
    /// Makes a context with parameters, of which none has an effect here.
    cuCtxCreate 12050 "cuCtxCreate_v4" (result: Out<CUcontext>, _params: *const CUctxCreateParams, flags: c_uint, device: CUdevice) {
        create(result, flags, device, 12050)
    }
    /// Destroys a context and all that belongs to it.
    cuCtxDestroy 4000 "cuCtxDestroy_v2", 2000 "cuCtxDestroy" (handle: CUcontext) {
        destroy(handle)
    }
    /// Makes a context the current one of this thread, on top of those that are.
    cuCtxPushCurrent 2000 "cuCtxPushCurrent", 4000 "cuCtxPushCurrent_v2" (handle: CUcontext) {
        push(context(handle)?);
        Ok(())
    }
    /// Takes the current context away from this thread.
    cuCtxPopCurrent 2000 "cuCtxPopCurrent", 4000 "cuCtxPopCurrent_v2" (result: Out<CUcontext>) {
        driver()?;
        result.write_if_wanted(handle_of(&pop()?));
        Ok(())
    }
    /// Makes a context the current one of this thread instead of that which is.
    cuCtxSetCurrent 4000 "cuCtxSetCurrent" (handle: CUcontext) {
        driver()?;
        set_current(if handle.is_null() { None } else { Some(context(handle)?) });
        Ok(())
    }
    /// The current context, or null.
    cuCtxGetCurrent 4000 "cuCtxGetCurrent" (result: Out<CUcontext>) {
        driver()?;
        result.write(top().map_or(std::ptr::null_mut(), |context| handle_of(&context)))
    }
    /// The device of the current context.
    cuCtxGetDevice 2000 "cuCtxGetDevice" (device: Out<CUdevice>) {
        driver()?;
        let context = top().ok_or(Status::CUDA_ERROR_INVALID_CONTEXT)?;
        device.write(context.device as CUdevice)
    }
    /// The device of a context.
    cuCtxGetDevice 13000 "cuCtxGetDevice_v2" (device: Out<CUdevice>, handle: CUcontext) {
        device.write(loosely(handle)?.device as CUdevice)
    }
    /// The flags of the current context.
    cuCtxGetFlags 7000 "cuCtxGetFlags" (flags: Out<c_uint>) {
        flags.write(Context::current()?.flags.load(Ordering::Relaxed))
    }
    /// Changes the flags of the current context.
    cuCtxSetFlags 12010 "cuCtxSetFlags" (flags: c_uint) {
        check_flags(flags)?;
        Context::current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }
    /// A number that no other context has.
    cuCtxGetId 12000 "cuCtxGetId" (handle: CUcontext, id: Out<u64>) {
        id.write(context_or_current(handle)?.id)
    }
    /// Waits until all work of the current context is done.
    cuCtxSynchronize 2000 "cuCtxSynchronize" () {
        Context::current()?.synchronize()
    }
    /// Waits until all work of a context is done.
    cuCtxSynchronize 13000 "cuCtxSynchronize_v2" (handle: CUcontext) {
        loosely(handle)?.synchronize()
    }
    /// A limit of the current context.
    cuCtxGetLimit 3010 "cuCtxGetLimit" (value: Out<usize>, limit: c_uint) {
        let value_of = Context::current()?.limit(limit).ok_or(Status::CUDA_ERROR_UNSUPPORTED_LIMIT)?;
        value.write(value_of)
    }
    /// Changes a limit of the current context: the heap of device `malloc` has an effect.
    cuCtxSetLimit 3010 "cuCtxSetLimit" (limit: c_uint, value: usize) {
        let context = Context::current()?;
        let mut limits = lock(&context.limits);
        *limits.get_mut(&limit).ok_or(Status::CUDA_ERROR_UNSUPPORTED_LIMIT)? = value;
        if limit == MALLOC_HEAP {
            driver()?.machine.set_heap_limit(value as u64);
        }
        Ok(())
    }
    /// What the current context prefers of L1 cache and shared memory, which has no effect here.
    cuCtxGetCacheConfig 3020 "cuCtxGetCacheConfig" (config: Out<c_uint>) {
        config.write(Context::current()?.cache_config.load(Ordering::Relaxed))
    }
    /// Sets what the current context prefers of L1 cache and shared memory.
    cuCtxSetCacheConfig 3020 "cuCtxSetCacheConfig" (config: c_uint) {
        if config > 3 {
            return Err(INVALID);
        }
        Context::current()?.cache_config.store(config, Ordering::Relaxed);
        Ok(())
    }
    /// The width of banks of shared memory, which has no effect here.
    cuCtxGetSharedMemConfig 4020 "cuCtxGetSharedMemConfig" (config: Out<c_uint>) {
        config.write(Context::current()?.shared_config.load(Ordering::Relaxed))
    }
    /// Sets the width of banks of shared memory.
    cuCtxSetSharedMemConfig 4020 "cuCtxSetSharedMemConfig" (config: c_uint) {
        if config > 2 {
            return Err(INVALID);
        }
        Context::current()?.shared_config.store(config, Ordering::Relaxed);
        Ok(())
    }
    /// The API version that a context was made with.
    cuCtxGetApiVersion 3020 "cuCtxGetApiVersion" (handle: CUcontext, version: Out<c_uint>) {
        version.write(context_or_current(handle)?.api_version)
    }
    /// The range of priorities of streams.
    cuCtxGetStreamPriorityRange 5050 "cuCtxGetStreamPriorityRange" (least: Out<c_int>, greatest: Out<c_int>) {
        Context::current()?;
        least.write_if_wanted(0);
        greatest.write_if_wanted(stream::GREATEST_PRIORITY);
        Ok(())
    }
    /// Gives persisting lines of the L2 cache back, of which there are none.
    cuCtxResetPersistingL2Cache 11000 "cuCtxResetPersistingL2Cache" () {
        Context::current().map(drop)
    }
    /// Counts one more user of a context: the old way to share one.
    cuCtxAttach 2000 "cuCtxAttach" (result: Out<CUcontext>, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID);
        }
        result.write(handle_of(&Context::current()?))
    }
    /// Counts one user less of a context: the old way to destroy one.
    cuCtxDetach 2000 "cuCtxDetach" (handle: CUcontext) {
        destroy(handle)
    }
    /// Records in an event what all streams of a context are doing.
    cuCtxRecordEvent 12050 "cuCtxRecordEvent" (handle: CUcontext, event: CUevent) {
        crate::event::event(event)?.record(&context_or_current(handle)?.legacy, false)
    }
    /// Lets all work of a context that comes later wait for an event.
    cuCtxWaitEvent 12050 "cuCtxWaitEvent" (handle: CUcontext, event: CUevent) {
        let (context, event) = (context_or_current(handle)?, crate::event::event(event)?);
        std::iter::once(Arc::clone(&context.legacy)).chain(context.live_streams()).try_for_each(|stream| stream.wait(&event))
    }
    /// Makes the primary context of a device active, or counts one more user of it.
    cuDevicePrimaryCtxRetain 7000 "cuDevicePrimaryCtxRetain" (result: Out<CUcontext>, device: CUdevice) {
        let primary = driver()?.primary(device)?;
        required(result.pointer())?;
        result.write(handle_of(&primary.retain()))
    }
    /// Counts one user less of the primary context of a device; without users it ends.
    cuDevicePrimaryCtxRelease 7000 "cuDevicePrimaryCtxRelease", 11000 "cuDevicePrimaryCtxRelease_v2" (device: CUdevice) {
        driver()?.primary(device)?.release(driver()?)
    }
    /// Ends the primary context of a device, whoever uses it.
    cuDevicePrimaryCtxReset 7000 "cuDevicePrimaryCtxReset", 11000 "cuDevicePrimaryCtxReset_v2" (device: CUdevice) {
        driver()?.primary(device)?.reset(driver()?);
        Ok(())
    }
    /// Sets the flags of the primary context of a device.
    cuDevicePrimaryCtxSetFlags 7000 "cuDevicePrimaryCtxSetFlags", 11000 "cuDevicePrimaryCtxSetFlags_v2" (device: CUdevice, flags: c_uint) {
        check_flags(flags)?;
        driver()?.primary(device)?.set_flags(flags);
        Ok(())
    }
    /// The flags of the primary context of a device, and whether it is active.
    cuDevicePrimaryCtxGetState 7000 "cuDevicePrimaryCtxGetState" (device: CUdevice, flags: Out<c_uint>, active: Out<c_int>) {
        let state = driver()?.primary(device)?.state();
        flags.write(state.flags)?;
        active.write(state.context.is_some().into())
    }
}
