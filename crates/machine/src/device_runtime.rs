//! CUDA's device runtime: kernels that launch kernels (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism").
//!
//! A thread asks for a buffer, puts the parameters there, and launches. Nothing runs before the grid of the thread has ended: the guide
//! promises no more than that a child has ended before its parent counts as ended, that it sees what its launching thread wrote before,
//! and that the launches of a block into one stream run in order. So a launch only queues [`Work`], and whoever runs the grid runs the
//! queue after it: blocks in ascending order, each in the order of its calls, and launches into `cudaStreamTailLaunch` last. Copies
//! and fills are queued too. Streams and events of the device need nothing more.

use std::sync::PoisonError;

use check::module::{FuncId, Function};

use crate::launch::LaunchConfig;
use crate::memory::{CODE_STRIDE, CODE_WINDOW};
use crate::prepared::Launch;
pub use crate::runtime_call::{Child, RuntimeCall, Work};
use crate::runtime_call::{DeviceRuntime, Queued};
use crate::{FaultKind, device, param_layout};

/// A grid whose launches are nested deeper cannot launch (Programming Guide, "Nesting Depth").
pub const MOST_NESTED: u32 = 24;
/// The most launches, copies and fills that wait for a grid's end. A GPU starts them earlier, so its limit
/// (`cudaLimitDevRuntimePendingLaunchCount`) would be met too early here.
const MOST_QUEUED: usize = 1 << 20;
/// The most bytes of parameters that wait.
const MOST_BYTES: usize = 1 << 28;
/// `cudaStreamTailLaunch`.
const TAIL: u64 = 3;
/// Handles of streams and events that kernels make begin here.
const HANDLES: u64 = 1 << 12;

/// Errors of the runtime (`cudaError_t`).
mod code {
    pub const INVALID_VALUE: u64 = 1;
    pub const MEMORY_ALLOCATION: u64 = 2;
    pub const INVALID_CONFIGURATION: u64 = 9;
    pub const LAUNCH_MAX_DEPTH_EXCEEDED: u64 = 65;
    pub const INVALID_DEVICE_FUNCTION: u64 = 98;
    pub const INVALID_RESOURCE_HANDLE: u64 = 400;
    pub const LAUNCH_OUT_OF_RESOURCES: u64 = 701;

    /// What `cudaGetErrorString` says of an error.
    pub fn text(error: u64) -> &'static str {
        match error {
            0 => "no error",
            INVALID_VALUE => "invalid argument",
            MEMORY_ALLOCATION => "out of memory",
            INVALID_CONFIGURATION => "invalid configuration argument",
            LAUNCH_MAX_DEPTH_EXCEEDED => "launch would exceed maximum depth of nested launches",
            INVALID_DEVICE_FUNCTION => "invalid device function",
            INVALID_RESOURCE_HANDLE => "invalid resource handle",
            LAUNCH_OUT_OF_RESOURCES => "too many resources requested for launch",
            _ => "unrecognized error code",
        }
    }
}

/// Who calls: the linear indices of block and thread.
pub type Caller = (u64, usize);

/// What a call gives: its result, and a value to store ([`RuntimeCall::stores`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The result.
    pub result: u64,
    /// The value.
    pub store: Option<u64>,
}

impl Launch {
    /// Calls a function of the device runtime with these arguments. A mistake of the program is an error code, as the guide has it.
    pub fn runtime_call(&self, call: RuntimeCall, caller: Caller, arguments: &[u128]) -> Answer {
        let argument = |i: usize| arguments.get(i).copied().unwrap_or(0) as u64;
        let extents = |i: usize| {
            let packed = arguments.get(i).copied().unwrap_or(0);
            [packed as u32, (packed >> 32) as u32, (packed >> 64) as u32]
        };
        let store = |value: u64| Ok(Answer { result: 0, store: Some(value) });
        let done = |result: Result<(), u64>| result.map(|()| Answer::default());
        let result = match call {
            RuntimeCall::Buffer => self.buffer(argument(1), Err(argument(1))).map(of_address),
            RuntimeCall::BufferV2 => {
                let child = self.child(argument(0), extents(1), extents(2), argument(3));
                child.and_then(|(child, bytes)| self.buffer(bytes, Ok(child))).map(of_address)
            }
            RuntimeCall::Launch => {
                let child = self.child(argument(0), extents(2), extents(3), argument(4));
                done(child.and_then(|(child, bytes)| {
                    self.launch(caller.0, argument(1), argument(5), Some((child, bytes)))
                }))
            }
            RuntimeCall::LaunchV2 => done(self.launch(caller.0, argument(0), argument(1), None)),
            // `cudaStreamNonBlocking`, `cudaEventDisableTiming`: there are no others on the device.
            RuntimeCall::StreamCreate if argument(1) != 1 => Err(code::INVALID_VALUE),
            RuntimeCall::EventCreate if argument(1) != 2 => Err(code::INVALID_VALUE),
            RuntimeCall::StreamCreate | RuntimeCall::EventCreate => store(self.handle()),
            RuntimeCall::Destroy => done(self.known(argument(0), 0)),
            RuntimeCall::Record => done(self.known(argument(0), 0).and(self.known(argument(1), TAIL + 2))),
            RuntimeCall::WaitEvent => done(self.known(argument(0), TAIL + 2).and(self.known(argument(1), 0))),
            RuntimeCall::Copy => {
                let (to, from, bytes) = (argument(0), argument(1), argument(2));
                let known = self.known(argument(4), TAIL + 2);
                done(
                    known.and_then(|()| {
                        self.queue_bytes(caller.0, argument(4), Work::Copy { to, from, bytes })
                    }),
                )
            }
            RuntimeCall::Fill => {
                let (to, value, bytes) = (argument(0), argument(1) as u8, argument(2));
                let known = self.known(argument(3), TAIL + 2);
                done(
                    known.and_then(|()| {
                        self.queue_bytes(caller.0, argument(3), Work::Fill { to, value, bytes })
                    }),
                )
            }
            RuntimeCall::Malloc => match self.heap_allocate(argument(1)) {
                Some(address) => store(address),
                None => Err(code::MEMORY_ALLOCATION),
            },
            RuntimeCall::Free if argument(0) == 0 => done(Ok(())),
            RuntimeCall::Free => done(self.heap_free(argument(0)).map_err(|_| code::INVALID_VALUE)),
            RuntimeCall::LastError => Ok(Answer { result: self.last_error(caller, true), store: None }),
            RuntimeCall::PeekError => Ok(Answer { result: self.last_error(caller, false), store: None }),
            RuntimeCall::ErrorString => self.text(argument(0)).map(of_address),
            RuntimeCall::Device => store(self.config.device[0].into()),
            RuntimeCall::DeviceCount => store(self.config.device[1].into()),
        };
        result.unwrap_or_else(|error| {
            self.runtime().errors.insert(caller, error);
            let gives_address =
                matches!(call, RuntimeCall::Buffer | RuntimeCall::BufferV2 | RuntimeCall::ErrorString);
            Answer { result: if gives_address { 0 } else { error }, store: None }
        })
    }

    fn runtime(&self) -> std::sync::MutexGuard<'_, DeviceRuntime> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of an error's text.
    fn text(&self, error: u64) -> Result<u64, u64> {
        let (text, mut runtime) = (code::text(error), self.runtime());
        if let Some(&address) = runtime.texts.get(text) {
            return Ok(address);
        }
        let address = self.heap_allocate(text.len() as u64 + 1).ok_or(code::MEMORY_ALLOCATION)?;
        let bytes = [text.as_bytes(), &[0]].concat();
        self.write_global(address, &bytes).map_err(|_| code::MEMORY_ALLOCATION)?;
        runtime.texts.insert(text, address);
        Ok(address)
    }

    /// A handle for a stream or an event.
    fn handle(&self) -> u64 {
        let mut runtime = self.runtime();
        runtime.handles += 1;
        HANDLES + runtime.handles
    }

    /// Whether a handle is one that a kernel of this launch has made, or below `special`.
    fn known(&self, handle: u64, special: u64) -> Result<(), u64> {
        let made = HANDLES + 1..=HANDLES + self.runtime().handles;
        if handle < special || made.contains(&handle) { Ok(()) } else { Err(code::INVALID_RESOURCE_HANDLE) }
    }

    fn last_error(&self, caller: Caller, forgets: bool) -> u64 {
        let errors = &mut self.runtime().errors;
        let error = if forgets { errors.remove(&caller) } else { errors.get(&caller).copied() };
        error.unwrap_or(0)
    }

    /// A launch of the kernel with this address, and the bytes of its parameters.
    fn child(
        &self,
        address: u64,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u64,
    ) -> Result<(Child, u64), u64> {
        let (function, kernel) = self.kernel_at(address).ok_or(code::INVALID_DEVICE_FUNCTION)?;
        if self.config.nesting + 1 >= MOST_NESTED {
            return Err(code::LAUNCH_MAX_DEPTH_EXCEEDED);
        }
        let config = LaunchConfig { dynamic_shared, ..LaunchConfig::new(grid, block) };
        device::check_extents(kernel, &config).map_err(|_| code::INVALID_CONFIGURATION)?;
        let (_, bytes) = param_layout(kernel);
        Ok((Child { function, grid, block, dynamic_shared, params: Vec::new() }, bytes))
    }

    /// The kernel whose address this is.
    fn kernel_at(&self, address: u64) -> Option<(FuncId, &Function)> {
        let offset = address.checked_sub(CODE_WINDOW).filter(|offset| offset.is_multiple_of(CODE_STRIDE))?;
        let index = u32::try_from(offset / CODE_STRIDE).ok()?;
        let function = self.module().functions.get(index as usize)?;
        (function.is_entry && function.body.is_some()).then_some((FuncId(index), function))
    }

    /// A buffer of so many bytes for parameters.
    fn buffer(&self, bytes: u64, of: Result<Child, u64>) -> Result<u64, u64> {
        let address = self.heap_allocate(bytes.max(1)).ok_or(code::MEMORY_ALLOCATION)?;
        self.runtime().buffers.insert(address, of);
        Ok(address)
    }

    /// Queues a launch with the parameters that are in a buffer, which is given back. `other` says what is launched, if not the buffer.
    fn launch(&self, block: u64, buffer: u64, stream: u64, other: Option<(Child, u64)>) -> Result<(), u64> {
        self.known(stream, TAIL + 2)?;
        let of_buffer = self.runtime().buffers.remove(&buffer);
        let child = match (of_buffer, other) {
            (Some(Ok(child)), None) => {
                let bytes = self.kernel_bytes(child.function);
                self.filled(child, buffer, bytes)
            }
            (Some(Err(room)), Some((child, bytes))) if bytes <= room => self.filled(child, buffer, bytes),
            // A kernel without parameters needs no buffer.
            (None, Some((child, 0))) if buffer == 0 => return self.queue(block, stream, Work::Launch(child)),
            (None, _) => return Err(code::INVALID_VALUE),
            _ => Err(code::INVALID_VALUE),
        };
        // It was allocated, and is freed once.
        let _ = self.heap_free(buffer);
        self.queue(block, stream, Work::Launch(child?))
    }

    /// The bytes of a kernel's parameters.
    fn kernel_bytes(&self, function: FuncId) -> u64 {
        param_layout(&self.module().functions[function.index()]).1
    }

    /// A launch with the parameters in a buffer.
    fn filled(&self, mut child: Child, buffer: u64, bytes: u64) -> Result<Child, u64> {
        child.params.resize(bytes as usize, 0);
        self.read_global(buffer, &mut child.params).map_err(|_| code::INVALID_VALUE)?;
        Ok(child)
    }

    /// Queues a copy or a fill, if there is such memory.
    fn queue_bytes(&self, block: u64, stream: u64, work: Work) -> Result<(), u64> {
        let places = match work {
            Work::Copy { to, from, bytes } => [(to, bytes), (from, bytes)],
            Work::Fill { to, bytes, .. } => [(to, bytes); 2],
            Work::Launch(_) => [(0, 0); 2],
        };
        let is_there = |&(address, bytes): &(u64, u64)| {
            bytes == 0
                || self.allocation(address).is_some_and(|extent| extent.resolve(address, bytes).is_ok())
        };
        if places.iter().all(is_there) { self.queue(block, stream, work) } else { Err(code::INVALID_VALUE) }
    }

    fn queue(&self, block: u64, stream: u64, work: Work) -> Result<(), u64> {
        let mut runtime = self.runtime();
        let bytes = if let Work::Launch(child) = &work { child.params.len() } else { 0 };
        if runtime.queue.len() >= MOST_QUEUED || runtime.bytes + bytes > MOST_BYTES {
            return Err(code::LAUNCH_OUT_OF_RESOURCES);
        }
        runtime.bytes += bytes;
        runtime.queue.push(Queued { is_tail: stream == TAIL, block, work });
        Ok(())
    }

    /// How much is queued so far.
    pub fn queued_work(&self) -> usize {
        self.runtime().queue.len()
    }

    /// Forgets what has been queued since then, for a launch that goes back to an earlier time.
    pub fn forget_work(&self, since: usize) {
        let mut runtime = self.runtime();
        runtime.queue.truncate(since);
        runtime.errors.clear();
    }

    /// What the kernel has queued, in the order in which it is to be done. The grid must have ended.
    pub fn take_work(&self) -> Vec<Work> {
        let runtime = std::mem::take(&mut *self.runtime());
        for buffer in runtime.buffers.into_keys().chain(runtime.texts.into_values()) {
            // A kernel may also have freed it.
            let _ = self.heap_free(buffer);
        }
        let mut queue = runtime.queue;
        queue.sort_by_key(|queued| (queued.is_tail, queued.block));
        queue.into_iter().map(|queued| queued.work).collect()
    }

    /// Does what is not a launch.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn do_work(&self, work: &Work) -> Result<(), FaultKind> {
        /// Bytes at a time.
        const PART: u64 = 1 << 16;
        let part = |at: u64, bytes: u64| vec![0; (bytes - at).min(PART) as usize];
        match *work {
            Work::Launch(_) => {}
            Work::Copy { to, from, bytes } => {
                for at in (0..bytes).step_by(PART as usize) {
                    let mut data = part(at, bytes);
                    self.read_global(from + at, &mut data)?;
                    self.write_global(to + at, &data)?;
                }
            }
            Work::Fill { to, value, bytes } => {
                for at in (0..bytes).step_by(PART as usize) {
                    let mut data = part(at, bytes);
                    data.fill(value);
                    self.write_global(to + at, &data)?;
                }
            }
        }
        Ok(())
    }
}

/// An address as a result.
fn of_address(address: u64) -> Answer {
    Answer { result: address, store: None }
}
