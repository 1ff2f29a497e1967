//! Streams (CUDA Runtime API, "Stream Management").

use std::ffi::{c_int, c_uint, c_void};

use crate::api::api;
use crate::context::{device, enter};
use crate::driver::cu;
use crate::pointers::Out;
use crate::{Handle, NULL};

api! { API:
    /// Makes a stream.
    cudaStreamCreate(result: *mut Handle) => cuStreamCreate(result, 0);
    /// Makes a stream, with flags.
    cudaStreamCreateWithFlags(result: *mut Handle, flags: c_uint) => cuStreamCreate(result, flags);
    /// Makes a stream, with a priority.
    cudaStreamCreateWithPriority(result: *mut Handle, flags: c_uint, priority: c_int)
        => cuStreamCreateWithPriority(result, flags, priority);
    /// Destroys a stream when its work is done.
    cudaStreamDestroy(stream: Handle) => cuStreamDestroy_v2(stream);
    /// Waits until all work of a stream is done.
    cudaStreamSynchronize / cudaStreamSynchronize_ptsz (stream: Handle) |default| => cuStreamSynchronize(default.of(stream));
    /// Whether all work of a stream is done.
    cudaStreamQuery / cudaStreamQuery_ptsz (stream: Handle) |default| => cuStreamQuery(default.of(stream));
    /// Lets a stream wait for an event.
    cudaStreamWaitEvent / cudaStreamWaitEvent_ptsz (stream: Handle, event: Handle, flags: c_uint) |default|
        => cuStreamWaitEvent(default.of(stream), event, flags);
    /// Calls a function of the program when all work before is done, whatever happened.
    cudaStreamAddCallback / cudaStreamAddCallback_ptsz (stream: Handle, callback: Handle, data: Handle, flags: c_uint) |default|
        => cuStreamAddCallback(default.of(stream), callback, data, flags);
    /// Says which stream uses managed memory.
    cudaStreamAttachMemAsync / cudaStreamAttachMemAsync_ptsz (stream: Handle, pointer: *mut c_void, bytes: usize, flags: c_uint) |default|
        => cuStreamAttachMemAsync(default.of(stream), pointer, bytes, flags);
    /// The priority of a stream.
    cudaStreamGetPriority / cudaStreamGetPriority_ptsz (stream: Handle, priority: *mut c_int) |default|
        => cuStreamGetPriority(default.of(stream), priority);
    /// The flags of a stream.
    cudaStreamGetFlags / cudaStreamGetFlags_ptsz (stream: Handle, flags: *mut c_uint) |default|
        => cuStreamGetFlags(default.of(stream), flags);
    /// A number that no other stream has.
    cudaStreamGetId / cudaStreamGetId_ptsz (stream: Handle, id: *mut u64) |default| => cuStreamGetId(default.of(stream), id);
    /// The device of a stream.
    cudaStreamGetDevice / cudaStreamGetDevice_ptsz (stream: Handle, result: Out<c_int>) |default| {
        enter()?;
        match default.of(stream).addr() {
            0..=2 => result.write(device()?),
            _ => cu!(cuStreamGetDevice(stream, result)),
        }
    }
    /// An attribute of a stream.
    cudaStreamGetAttribute / cudaStreamGetAttribute_ptsz (stream: Handle, attribute: c_int, value: *mut c_void) |default|
        => cuStreamGetAttribute(default.of(stream), attribute, value);
    /// Changes an attribute of a stream.
    cudaStreamSetAttribute / cudaStreamSetAttribute_ptsz (stream: Handle, attribute: c_int, value: *const c_void) |default|
        => cuStreamSetAttribute(default.of(stream), attribute, value);
    /// Gives a stream the attributes of another one.
    cudaStreamCopyAttributes / cudaStreamCopyAttributes_ptsz (to: Handle, from: Handle) |default|
        => cuStreamCopyAttributes(default.of(to), default.of(from));
    /// From now on work of a stream becomes nodes of a graph.
    cudaStreamBeginCapture / cudaStreamBeginCapture_ptsz (stream: Handle, mode: c_int) |default|
        => cuStreamBeginCapture_v2(default.of(stream), mode);
    /// From now on work of a stream becomes nodes of a graph that there is.
    cudaStreamBeginCaptureToGraph / cudaStreamBeginCaptureToGraph_ptsz (
        stream: Handle, graph: Handle, dependencies: *const Handle, edges: *const c_void, count: usize, mode: c_int
    ) |default| => cuStreamBeginCaptureToGraph(default.of(stream), graph, dependencies, edges, count, mode);
    /// Ends that, and gives the graph.
    cudaStreamEndCapture / cudaStreamEndCapture_ptsz (stream: Handle, graph: *mut Handle) |default|
        => cuStreamEndCapture(default.of(stream), graph);
    /// Whether a stream is captured.
    cudaStreamIsCapturing / cudaStreamIsCapturing_ptsz (stream: Handle, status: *mut c_int) |default|
        => cuStreamIsCapturing(default.of(stream), status);
    /// What is known of a stream that is captured.
    cudaStreamGetCaptureInfo_12 / cudaStreamGetCaptureInfo_12_ptsz [12 as cudaStreamGetCaptureInfo / cudaStreamGetCaptureInfo_ptsz] (
        stream: Handle, status: *mut c_int, id: *mut u64
    ) |default| => cuStreamGetCaptureInfo_v3(default.of(stream), status, id, NULL, NULL, NULL, NULL);
    /// What is known of a stream that is captured.
    cudaStreamGetCaptureInfo_v2 / cudaStreamGetCaptureInfo_v2_ptsz [12] (
        stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut *const Handle, count: *mut usize
    ) |default| => cuStreamGetCaptureInfo_v3(default.of(stream), status, id, graph, dependencies, NULL, count);
    /// What is known of a stream that is captured.
    cudaStreamGetCaptureInfo_v3 / cudaStreamGetCaptureInfo_v3_ptsz [12, 13 as cudaStreamGetCaptureInfo / cudaStreamGetCaptureInfo_ptsz] (
        stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut *const Handle, edges: *mut *const c_void,
        count: *mut usize
    ) |default| => cuStreamGetCaptureInfo_v3(default.of(stream), status, id, graph, dependencies, edges, count);
    /// What the next node of a stream that is captured depends on.
    cudaStreamUpdateCaptureDependencies / cudaStreamUpdateCaptureDependencies_ptsz [12] (
        stream: Handle, dependencies: *mut Handle, count: usize, flags: c_uint
    ) |default| => cuStreamUpdateCaptureDependencies_v2(default.of(stream), dependencies, NULL, count, flags);
    /// What the next node of a stream that is captured depends on.
    cudaStreamUpdateCaptureDependencies_v2 / cudaStreamUpdateCaptureDependencies_v2_ptsz
        [12, 13 as cudaStreamUpdateCaptureDependencies / cudaStreamUpdateCaptureDependencies_ptsz] (
        stream: Handle, dependencies: *mut Handle, edges: *const c_void, count: usize, flags: c_uint
    ) |default| => cuStreamUpdateCaptureDependencies_v2(default.of(stream), dependencies, edges, count, flags);
    /// What the thread may do while a stream is captured.
    cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) => cuThreadExchangeStreamCaptureMode(mode);
}
