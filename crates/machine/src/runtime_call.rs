//! The functions of CUDA's device runtime, and what they leave to be done (`device_runtime.rs`).

use std::collections::{BTreeMap, HashMap};

use check::module::FuncId;

/// A function of the device runtime. Programs of CUDA 12 and later call it with `__cudaCDP2` for `cuda`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeCall {
    /// `void *cudaGetParameterBuffer(size_t alignment, size_t size)`
    Buffer,
    /// `void *cudaGetParameterBufferV2(void *kernel, dim3 grid, dim3 block, unsigned dynamicShared)`
    BufferV2,
    /// `cudaError_t cudaLaunchDevice(void *kernel, void *buffer, dim3 grid, dim3 block, unsigned dynamicShared, cudaStream_t stream)`
    Launch,
    /// `cudaError_t cudaLaunchDeviceV2(void *buffer, cudaStream_t stream)`
    LaunchV2,
    /// `cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)`
    StreamCreate,
    /// `cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)`
    EventCreate,
    /// `cudaError_t cudaStreamDestroy(cudaStream_t stream)`, and the same of an event.
    Destroy,
    /// `cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)`
    Record,
    /// `cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)`
    WaitEvent,
    /// `cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)`
    Copy,
    /// `cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)`
    Fill,
    /// `cudaError_t cudaMalloc(void **place, size_t bytes)`
    Malloc,
    /// `cudaError_t cudaFree(void *address)`
    Free,
    /// `cudaError_t cudaGetLastError()`
    LastError,
    /// `cudaError_t cudaPeekAtLastError()`
    PeekError,
    /// `const char *cudaGetErrorString(cudaError_t error)`
    ErrorString,
    /// `cudaError_t cudaGetDevice(int *device)`
    Device,
    /// `cudaError_t cudaGetDeviceCount(int *count)`
    DeviceCount,
}

impl RuntimeCall {
    /// The function with this name.
    pub fn of(name: &str) -> Option<RuntimeCall> {
        let rest = name.strip_prefix("__cudaCDP2").or_else(|| name.strip_prefix("cuda"))?;
        // With a default stream for each thread: on the device, it is the block's either way.
        Some(match rest.strip_suffix("_ptsz").unwrap_or(rest) {
            "GetParameterBuffer" => RuntimeCall::Buffer,
            "GetParameterBufferV2" => RuntimeCall::BufferV2,
            "LaunchDevice" => RuntimeCall::Launch,
            "LaunchDeviceV2" => RuntimeCall::LaunchV2,
            "StreamCreateWithFlags" => RuntimeCall::StreamCreate,
            "EventCreateWithFlags" => RuntimeCall::EventCreate,
            "StreamDestroy" | "EventDestroy" => RuntimeCall::Destroy,
            "EventRecord" | "EventRecordWithFlags" => RuntimeCall::Record,
            "StreamWaitEvent" => RuntimeCall::WaitEvent,
            "MemcpyAsync" => RuntimeCall::Copy,
            "MemsetAsync" => RuntimeCall::Fill,
            "Malloc" => RuntimeCall::Malloc,
            "Free" => RuntimeCall::Free,
            "GetLastError" => RuntimeCall::LastError,
            "PeekAtLastError" => RuntimeCall::PeekError,
            "GetErrorString" => RuntimeCall::ErrorString,
            "GetDevice" => RuntimeCall::Device,
            "GetDeviceCount" => RuntimeCall::DeviceCount,
            _ => return None,
        })
    }

    /// How many bytes it stores where its first argument points.
    pub fn stores(self) -> Option<u32> {
        match self {
            RuntimeCall::StreamCreate | RuntimeCall::EventCreate | RuntimeCall::Malloc => Some(8),
            RuntimeCall::Device | RuntimeCall::DeviceCount => Some(4),
            _ => None,
        }
    }

    /// Sizes in bytes of its parameters and of its result, in modules with addresses of 64 bits: there is no other runtime.
    pub fn signature(self) -> (&'static [u64], Option<u64>) {
        match self {
            RuntimeCall::Buffer => (&[8, 8], Some(8)),
            RuntimeCall::BufferV2 => (&[8, 12, 12, 4], Some(8)),
            RuntimeCall::Launch => (&[8, 8, 12, 12, 4, 8], Some(4)),
            RuntimeCall::LaunchV2 | RuntimeCall::Record => (&[8, 8], Some(4)),
            RuntimeCall::StreamCreate | RuntimeCall::EventCreate => (&[8, 4], Some(4)),
            RuntimeCall::Destroy | RuntimeCall::Free | RuntimeCall::Device | RuntimeCall::DeviceCount => {
                (&[8], Some(4))
            }
            RuntimeCall::WaitEvent => (&[8, 8, 4], Some(4)),
            RuntimeCall::Copy => (&[8, 8, 8, 4, 8], Some(4)),
            RuntimeCall::Fill => (&[8, 4, 8, 8], Some(4)),
            RuntimeCall::Malloc => (&[8, 8], Some(4)),
            RuntimeCall::LastError | RuntimeCall::PeekError => (&[], Some(4)),
            RuntimeCall::ErrorString => (&[4], Some(8)),
        }
    }
}

/// A kernel that a kernel has launched.
#[derive(Clone, Debug)]
pub struct Child {
    /// The kernel.
    pub function: FuncId,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u64,
    /// Its parameters.
    pub params: Vec<u8>,
}

/// What is to be done when a grid has ended.
#[derive(Clone, Debug)]
pub enum Work {
    /// A launch.
    Launch(Child),
    /// A copy of bytes between addresses of global memory.
    Copy {
        /// Where they go.
        to: u64,
        /// Where they are.
        from: u64,
        /// How many.
        bytes: u64,
    },
    /// The same value for so many bytes at an address of global memory.
    Fill {
        /// The first.
        to: u64,
        /// The value.
        value: u8,
        /// How many.
        bytes: u64,
    },
}

/// Work, and where it belongs in the order.
#[derive(Debug)]
pub(crate) struct Queued {
    pub is_tail: bool,
    pub block: u64,
    pub work: Work,
}

/// What the device runtime knows of a grid.
#[derive(Debug, Default)]
pub(crate) struct DeviceRuntime {
    /// Buffers for parameters, by address: the launch that one is for, or its size.
    pub buffers: BTreeMap<u64, Result<Child, u64>>,
    pub queue: Vec<Queued>,
    pub bytes: usize,
    /// The last error of each thread, by the linear indices of block and thread.
    pub errors: HashMap<(u64, usize), u64>,
    /// Where texts of errors are.
    pub texts: BTreeMap<&'static str, u64>,
    pub handles: u64,
}
