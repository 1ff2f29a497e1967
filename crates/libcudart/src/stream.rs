//! Streams (CUDA Runtime API, "Stream Management").

use std::ffi::{c_int, c_uint, c_void};

use crate::Handle;
use crate::api::api;
use crate::context::{device, enter};
use crate::driver::cu;
use crate::error::Error;
use crate::pointers::Out;

/// The capture state of a stream.
///
/// # Safety
/// As for `cudaStreamGetCaptureInfo`.
unsafe fn capture_info(
    stream: Handle,
    status: *mut c_int,
    id: *mut u64,
    graph: *mut Handle,
    dependencies: *mut *const Handle,
    edges: *mut *const c_void,
    count: *mut usize,
) -> Result<(), Error> {
    enter()?;
    // SAFETY: the caller's promise.
    unsafe { cu!(cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count)) }
}

/// # Safety
/// As for `cudaStreamUpdateCaptureDependencies`.
unsafe fn update_dependencies(
    stream: Handle,
    dependencies: *mut Handle,
    edges: *const c_void,
    count: usize,
    flags: c_uint,
) -> Result<(), Error> {
    enter()?;
    // SAFETY: the caller's promise.
    unsafe { cu!(cuStreamUpdateCaptureDependencies_v2(stream, dependencies, edges, count, flags)) }
}

const NOTHING: *mut Handle = std::ptr::null_mut();

api! { API:
    /// Makes a stream.
    cudaStreamCreate(result: *mut Handle) {
        enter()?;
        cu!(cuStreamCreate(result, 0))
    }
    /// Makes a stream, with flags.
    cudaStreamCreateWithFlags(result: *mut Handle, flags: c_uint) {
        enter()?;
        cu!(cuStreamCreate(result, flags))
    }
    /// Makes a stream, with a priority.
    cudaStreamCreateWithPriority(result: *mut Handle, flags: c_uint, priority: c_int) {
        enter()?;
        cu!(cuStreamCreateWithPriority(result, flags, priority))
    }
    /// Destroys a stream when its work is done.
    cudaStreamDestroy(stream: Handle) {
        enter()?;
        cu!(cuStreamDestroy_v2(stream))
    }
    /// Waits until all work of a stream is done.
    cudaStreamSynchronize / cudaStreamSynchronize_ptsz (stream: Handle) |default| {
        enter()?;
        cu!(cuStreamSynchronize(default.of(stream)))
    }
    /// Whether all work of a stream is done.
    cudaStreamQuery / cudaStreamQuery_ptsz (stream: Handle) |default| {
        enter()?;
        cu!(cuStreamQuery(default.of(stream)))
    }
    /// Lets a stream wait for an event.
    cudaStreamWaitEvent / cudaStreamWaitEvent_ptsz (stream: Handle, event: Handle, flags: c_uint) |default| {
        enter()?;
        cu!(cuStreamWaitEvent(default.of(stream), event, flags))
    }
    /// Calls a function of the program when all work before is done, whatever happened.
    cudaStreamAddCallback / cudaStreamAddCallback_ptsz (stream: Handle, callback: Handle, data: Handle, flags: c_uint) |default| {
        enter()?;
        cu!(cuStreamAddCallback(default.of(stream), callback, data, flags))
    }
    /// Says which stream uses managed memory.
    cudaStreamAttachMemAsync / cudaStreamAttachMemAsync_ptsz (stream: Handle, pointer: *mut c_void, bytes: usize, flags: c_uint) |default| {
        enter()?;
        cu!(cuStreamAttachMemAsync(default.of(stream), pointer, bytes, flags))
    }
    /// The priority of a stream.
    cudaStreamGetPriority / cudaStreamGetPriority_ptsz (stream: Handle, priority: *mut c_int) |default| {
        enter()?;
        cu!(cuStreamGetPriority(default.of(stream), priority))
    }
    /// The flags of a stream.
    cudaStreamGetFlags / cudaStreamGetFlags_ptsz (stream: Handle, flags: *mut c_uint) |default| {
        enter()?;
        cu!(cuStreamGetFlags(default.of(stream), flags))
    }
    /// A number that no other stream has.
    cudaStreamGetId / cudaStreamGetId_ptsz (stream: Handle, id: *mut u64) |default| {
        enter()?;
        cu!(cuStreamGetId(default.of(stream), id))
    }
    /// The device of a stream.
    cudaStreamGetDevice / cudaStreamGetDevice_ptsz (stream: Handle, result: Out<c_int>) |default| {
        enter()?;
        match default.of(stream).addr() {
            0..=2 => result.write(device()?),
            _ => cu!(cuStreamGetDevice(stream, result)),
        }
    }
    /// An attribute of a stream.
    cudaStreamGetAttribute / cudaStreamGetAttribute_ptsz (stream: Handle, attribute: c_int, value: *mut c_void) |default| {
        enter()?;
        cu!(cuStreamGetAttribute(default.of(stream), attribute, value))
    }
    /// Changes an attribute of a stream.
    cudaStreamSetAttribute / cudaStreamSetAttribute_ptsz (stream: Handle, attribute: c_int, value: *const c_void) |default| {
        enter()?;
        cu!(cuStreamSetAttribute(default.of(stream), attribute, value))
    }
    /// Gives a stream the attributes of another one.
    cudaStreamCopyAttributes / cudaStreamCopyAttributes_ptsz (to: Handle, from: Handle) |default| {
        enter()?;
        cu!(cuStreamCopyAttributes(default.of(to), default.of(from)))
    }
    /// From now on work of a stream becomes nodes of a graph.
    cudaStreamBeginCapture / cudaStreamBeginCapture_ptsz (stream: Handle, mode: c_int) |default| {
        enter()?;
        cu!(cuStreamBeginCapture_v2(default.of(stream), mode))
    }
    /// From now on work of a stream becomes nodes of a graph that there is.
    cudaStreamBeginCaptureToGraph / cudaStreamBeginCaptureToGraph_ptsz (
        stream: Handle, graph: Handle, dependencies: *const Handle, edges: *const c_void, count: usize, mode: c_int
    ) |default| {
        enter()?;
        cu!(cuStreamBeginCaptureToGraph(default.of(stream), graph, dependencies, edges, count, mode))
    }
    /// Ends that, and gives the graph.
    cudaStreamEndCapture / cudaStreamEndCapture_ptsz (stream: Handle, graph: *mut Handle) |default| {
        enter()?;
        cu!(cuStreamEndCapture(default.of(stream), graph))
    }
    /// Whether a stream is captured.
    cudaStreamIsCapturing / cudaStreamIsCapturing_ptsz (stream: Handle, status: *mut c_int) |default| {
        enter()?;
        cu!(cuStreamIsCapturing(default.of(stream), status))
    }
    /// What is known of a stream that is captured.
    cudaStreamGetCaptureInfo_12 / cudaStreamGetCaptureInfo_12_ptsz [12 as cudaStreamGetCaptureInfo / cudaStreamGetCaptureInfo_ptsz] (
        stream: Handle, status: *mut c_int, id: *mut u64
    ) |default| {
        capture_info(default.of(stream), status, id, NOTHING, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut())
    }
    /// What is known of a stream that is captured.
    cudaStreamGetCaptureInfo_v2 / cudaStreamGetCaptureInfo_v2_ptsz [12] (
        stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut *const Handle, count: *mut usize
    ) |default| {
        capture_info(default.of(stream), status, id, graph, dependencies, std::ptr::null_mut(), count)
    }
    /// What is known of a stream that is captured.
    cudaStreamGetCaptureInfo_v3 / cudaStreamGetCaptureInfo_v3_ptsz [12, 13 as cudaStreamGetCaptureInfo / cudaStreamGetCaptureInfo_ptsz] (
        stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut *const Handle, edges: *mut *const c_void,
        count: *mut usize
    ) |default| {
        capture_info(default.of(stream), status, id, graph, dependencies, edges, count)
    }
    /// What the next node of a stream that is captured depends on.
    cudaStreamUpdateCaptureDependencies / cudaStreamUpdateCaptureDependencies_ptsz [12] (
        stream: Handle, dependencies: *mut Handle, count: usize, flags: c_uint
    ) |default| {
        update_dependencies(default.of(stream), dependencies, std::ptr::null(), count, flags)
    }
    /// What the next node of a stream that is captured depends on.
    cudaStreamUpdateCaptureDependencies_v2 / cudaStreamUpdateCaptureDependencies_v2_ptsz
        [12, 13 as cudaStreamUpdateCaptureDependencies / cudaStreamUpdateCaptureDependencies_ptsz] (
        stream: Handle, dependencies: *mut Handle, edges: *const c_void, count: usize, flags: c_uint
    ) |default| {
        update_dependencies(default.of(stream), dependencies, edges, count, flags)
    }
    /// What the thread may do while a stream is captured.
    cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        enter()?;
        cu!(cuThreadExchangeStreamCaptureMode(mode))
    }
}
