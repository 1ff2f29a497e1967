//! Events (CUDA Runtime API, "Event Management").

use std::ffi::{c_uint, c_void};

use crate::Handle;
use crate::api::api;
use crate::memory::IpcHandle;

api! { API:
    /// Makes an event.
    cudaEventCreate(result: *mut Handle) => cuEventCreate(result, 0);
    /// Makes an event, with flags.
    cudaEventCreateWithFlags(result: *mut Handle, flags: c_uint) => cuEventCreate(result, flags);
    /// Destroys an event.
    cudaEventDestroy(event: Handle) => cuEventDestroy_v2(event);
    /// Records what a stream is doing.
    cudaEventRecord / cudaEventRecord_ptsz (event: Handle, stream: Handle) |default| => cuEventRecord(event, default.of(stream));
    /// Records what a stream is doing, with flags.
    cudaEventRecordWithFlags / cudaEventRecordWithFlags_ptsz (event: Handle, stream: Handle, flags: c_uint) |default|
        => cuEventRecordWithFlags(event, default.of(stream), flags);
    /// Whether what an event recorded is done.
    cudaEventQuery(event: Handle) => cuEventQuery(event);
    /// Waits until what an event recorded is done.
    cudaEventSynchronize(event: Handle) => cuEventSynchronize(event);
    /// Milliseconds between two events.
    cudaEventElapsedTime(result: *mut f32, start: Handle, end: Handle) => cuEventElapsedTime_v2(result, start, end);
    /// Milliseconds between two events.
    cudaEventElapsedTime_v2[12](result: *mut f32, start: Handle, end: Handle) => cuEventElapsedTime_v2(result, start, end);
    /// A handle by which another process opens an event.
    cudaIpcGetEventHandle(handle: *mut c_void, event: Handle) => cuIpcGetEventHandle(handle, event);
    /// Opens an event of another process.
    cudaIpcOpenEventHandle(event: *mut Handle, handle: IpcHandle) => cuIpcOpenEventHandle(event, handle);
}
