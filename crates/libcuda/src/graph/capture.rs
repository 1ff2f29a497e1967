//! Capture: operations that a program submits to streams become nodes of a graph instead of running.

use std::cell::Cell;
use std::ffi::c_uint;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{CUgraph, CUgraphEdgeData, CUgraphNode, CUstream};

use super::{Body, GRAPHS, Graph, Node, graph, lock, nodes_at, number};
use crate::api::api;
use crate::handles::handle_of;
use crate::operation::Operation;
use crate::pointers::{In, InOut, Out};
use crate::stream::Stream;
use crate::{INVALID, Status};

/// A capture in progress. It begins in one stream. Other streams join when they wait for events that were recorded in it.
pub struct Capture {
    graph: Arc<Graph>,
    id: u64,
    /// The stream in which it began.
    origin: u64,
    /// The nodes that the graph had before, which nothing needs to wait for.
    before: Vec<Arc<Node>>,
    /// Whether the program requested something that cannot be captured.
    invalid: Mutex<bool>,
}

/// The state of one stream in a capture.
pub struct CaptureState {
    capture: Arc<Capture>,
    /// The nodes that its next node depends on.
    behind: Vec<Arc<Node>>,
    /// Their handles, as returned to the program.
    handles: Vec<CUgraphNode>,
}

// SAFETY: the handles are only returned to the program.
unsafe impl Send for CaptureState {}

/// What an event recorded in a capture.
#[derive(Clone)]
pub struct Captured {
    capture: Arc<Capture>,
    behind: Vec<Arc<Node>>,
}

impl Captured {
    /// Whether the capture is over.
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.capture) == 1
    }
}

/// The capture status of a stream (`CUstreamCaptureStatus`).
const NONE: u32 = 0;
const ACTIVE: u32 = 1;
const INVALIDATED: u32 = 2;

impl Stream {
    /// Whether the stream captures a graph.
    pub fn is_capturing(&self) -> bool {
        lock(&self.capture).is_some()
    }

    /// Invalidates the capture of the stream, because the program waits for the stream.
    ///
    /// # Errors
    /// If the stream captures a graph.
    pub fn refuse_capture(&self) -> Result<(), Status> {
        match &*lock(&self.capture) {
            None => Ok(()),
            Some(state) => {
                *lock(&state.capture.invalid) = true;
                Err(Status::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
            }
        }
    }

    /// Adds a node to the graph that the stream captures.
    ///
    /// # Errors
    /// If the capture is invalid.
    pub fn capture_node(&self, body: Body) -> Result<(), Status> {
        let mut state = lock(&self.capture);
        let state = state.as_mut().ok_or(Status::CUDA_ERROR_ILLEGAL_STATE)?;
        if *lock(&state.capture.invalid) {
            return Err(Status::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
        let node = state.capture.graph.add(body, &state.behind)?;
        state.behind = vec![node];
        Ok(())
    }

    /// Adds an operation to the graph that the stream captures.
    ///
    /// # Errors
    /// If the capture is invalid, or the operation cannot be captured.
    pub fn capture_operation(&self, operation: Operation) -> Result<(), Status> {
        let body = match operation {
            Operation::Kernel(launch) => Body::Kernel(*launch),
            Operation::Copy(copy) => Body::Copy(*copy, None),
            Operation::Fill(fill) => Body::Fill(fill),
            Operation::Host(function) => Body::Host(function),
            Operation::Work(work) => Body::Work(work),
            Operation::Free(address) => Body::Free(address),
            Operation::Nothing | Operation::Keep(_) => return Ok(()),
            Operation::Callback(_)
            | Operation::Allocate(_)
            | Operation::Choice(_)
            | Operation::Stamp(..)
            | Operation::Await(_)
            | Operation::WaitValue(_)
            | Operation::WriteValue(_) => {
                self.refuse_capture()?;
                return Err(Status::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            }
            Operation::Wait(_) => {
                let _ = self.refuse_capture();
                return Err(Status::CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
            }
        };
        self.capture_node(body)
    }

    /// What an event records of the stream, if the stream captures a graph.
    pub fn captured(&self) -> Option<Captured> {
        let state = lock(&self.capture);
        state
            .as_ref()
            .map(|state| Captured { capture: Arc::clone(&state.capture), behind: state.behind.clone() })
    }

    /// Waits for an event that was recorded in a capture: the stream joins the capture.
    ///
    /// # Errors
    /// If the stream is in another capture.
    pub fn join(&self, captured: &Captured) -> Result<(), Status> {
        let mut state = lock(&self.capture);
        let state = state.get_or_insert_with(|| CaptureState {
            capture: Arc::clone(&captured.capture),
            behind: Vec::new(),
            handles: Vec::new(),
        });
        if !Arc::ptr_eq(&state.capture, &captured.capture) {
            *lock(&state.capture.invalid) = true;
            return Err(Status::CUDA_ERROR_STREAM_CAPTURE_MERGE);
        }
        for node in &captured.behind {
            if !state.behind.iter().any(|other| Arc::ptr_eq(other, node)) {
                state.behind.push(Arc::clone(node));
            }
        }
        Ok(())
    }
}

fn begin(stream: &Stream, graph: Arc<Graph>, behind: Vec<Arc<Node>>, mode: u32) -> Result<(), Status> {
    if mode > 2 {
        return Err(INVALID);
    }
    if stream.is_legacy() {
        return Err(Status::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut state = lock(&stream.capture);
    if state.is_some() {
        return Err(Status::CUDA_ERROR_ILLEGAL_STATE);
    }
    let before = graph.nodes();
    let capture = Capture { graph, id: number(), origin: stream.id, before, invalid: Mutex::new(false) };
    *state = Some(CaptureState { capture: Arc::new(capture), behind, handles: Vec::new() });
    Ok(())
}

fn end(stream: &Stream) -> Result<Arc<Graph>, Status> {
    let mut state = lock(&stream.capture);
    let of_stream = state.as_ref().ok_or(Status::CUDA_ERROR_ILLEGAL_STATE)?;
    if of_stream.capture.origin != stream.id {
        *lock(&of_stream.capture.invalid) = true;
        return Err(Status::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    let of_stream = state.take().ok_or(Status::CUDA_ERROR_ILLEGAL_STATE)?;
    drop(state);
    let capture = of_stream.capture;
    for other in stream.context()?.live_streams() {
        lock(&other.capture).take_if(|state| Arc::ptr_eq(&state.capture, &capture));
    }
    if *lock(&capture.invalid) {
        return Err(Status::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    let content = lock(&capture.graph.content);
    let is_last = |node: &Node| content.edges.iter().all(|(from, _)| *from != node.id);
    let is_joined = |node: &Arc<Node>| {
        of_stream.behind.iter().chain(&capture.before).any(|other| Arc::ptr_eq(other, node))
    };
    if content.nodes.iter().any(|node| is_last(node) && !is_joined(node)) {
        return Err(Status::CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    }
    drop(content);
    Ok(Arc::clone(&capture.graph))
}

/// Where the program wants the state of a capture.
struct Places<'a> {
    status: Out<'a, c_uint>,
    id: Out<'a, u64>,
    graph: Out<'a, CUgraph>,
    nodes: Out<'a, *const CUgraphNode>,
    count: Out<'a, usize>,
}

fn describe(stream: &Stream, places: &Places) -> Result<(), Status> {
    let mut state = lock(&stream.capture);
    let Some(state) = state.as_mut() else { return places.status.write(NONE) };
    let invalid = *lock(&state.capture.invalid);
    places.status.write(if invalid { INVALIDATED } else { ACTIVE })?;
    state.handles = state.behind.iter().map(handle_of).collect();
    places.id.write_if_wanted(state.capture.id);
    if !places.graph.is_null() {
        let handle = handle_of(&state.capture.graph);
        if GRAPHS.get(handle).is_none() {
            GRAPHS.insert::<()>(Arc::clone(&state.capture.graph));
        }
        places.graph.write(handle)?;
    }
    places.nodes.write_if_wanted(state.handles.as_ptr());
    places.count.write_if_wanted(state.handles.len());
    Ok(())
}

fn set_behind(stream: &Stream, nodes: In<CUgraphNode>, count: usize, flags: c_uint) -> Result<(), Status> {
    let nodes = nodes_at(nodes, count)?;
    let mut state = lock(&stream.capture);
    let state = state.as_mut().ok_or(Status::CUDA_ERROR_ILLEGAL_STATE)?;
    match flags {
        0 => state.behind.extend(nodes),
        1 => state.behind = nodes,
        _ => return Err(INVALID),
    }
    Ok(())
}

thread_local! {
    /// How strictly the thread rejects calls that could break a capture in another thread. No call can do that here.
    static MODE: Cell<u32> = const { Cell::new(0) };
}

api! { API:
    /// Lets a stream record a graph.
    cuStreamBeginCapture 10000 "cuStreamBeginCapture" / 10000 "cuStreamBeginCapture_ptsz" (of: CUstream) |default| {
        begin(&*default.stream(of)?, Graph::new(), Vec::new(), 0)
    }
    /// Lets a stream record a graph.
    cuStreamBeginCapture 10010 "cuStreamBeginCapture_v2" / 10010 "cuStreamBeginCapture_v2_ptsz" (of: CUstream, mode: c_uint) |default| {
        begin(&*default.stream(of)?, Graph::new(), Vec::new(), mode)
    }
    /// Lets a stream add to a graph.
    cuStreamBeginCaptureToGraph 12030 "cuStreamBeginCaptureToGraph" / 12030 "cuStreamBeginCaptureToGraph_ptsz" (of: CUstream, to: CUgraph, behind: In<CUgraphNode>, _data: *const CUgraphEdgeData, count: usize, mode: c_uint) |default| {
        let behind = nodes_at(behind, count)?;
        begin(&*default.stream(of)?, graph(to)?, behind, mode)
    }
    /// Ends the recording of a graph.
    cuStreamEndCapture 10000 "cuStreamEndCapture" / 10000 "cuStreamEndCapture_ptsz" (of: CUstream, result: Out<CUgraph>) |default| {
        let recorded = end(&*default.stream(of)?);
        if recorded.is_err() && !result.is_null() {
            result.write(std::ptr::null_mut())?;
        }
        let recorded = recorded?;
        // A program that captured into its own graph has it already.
        result.write_if_wanted(handle_of(&recorded));
        if GRAPHS.get::<()>(handle_of(&recorded)).is_none() {
            GRAPHS.insert::<()>(recorded);
        }
        Ok(())
    }
    /// Whether a stream records a graph.
    cuStreamIsCapturing 10000 "cuStreamIsCapturing" / 10000 "cuStreamIsCapturing_ptsz" (of: CUstream, status: Out<c_uint>) |default| {
        let (id, graph, nodes, count) = (Out::none(), Out::none(), Out::none(), Out::none());
        describe(&*default.stream(of)?, &Places { status, id, graph, nodes, count })
    }
    /// What a stream records.
    cuStreamGetCaptureInfo 10010 "cuStreamGetCaptureInfo" / 10010 "cuStreamGetCaptureInfo_ptsz" (of: CUstream, status: Out<c_uint>, id: Out<u64>) |default| {
        let (graph, nodes, count) = (Out::none(), Out::none(), Out::none());
        describe(&*default.stream(of)?, &Places { status, id, graph, nodes, count })
    }
    /// What a stream records, and what its next node will depend on.
    cuStreamGetCaptureInfo 11030 "cuStreamGetCaptureInfo_v2" / 11030 "cuStreamGetCaptureInfo_v2_ptsz" (of: CUstream, status: Out<c_uint>, id: Out<u64>, graph: Out<CUgraph>, nodes: Out<*const CUgraphNode>, count: Out<usize>) |default| {
        describe(&*default.stream(of)?, &Places { status, id, graph, nodes, count })
    }
    /// What a stream records, what its next node will depend on, and the data of these edges: there are none.
    cuStreamGetCaptureInfo 12030 "cuStreamGetCaptureInfo_v3" / 12030 "cuStreamGetCaptureInfo_v3_ptsz" (of: CUstream, status: Out<c_uint>, id: Out<u64>, graph: Out<CUgraph>, nodes: Out<*const CUgraphNode>, data: Out<*const CUgraphEdgeData>, count: Out<usize>) |default| {
        data.write_if_wanted(std::ptr::null());
        describe(&*default.stream(of)?, &Places { status, id, graph, nodes, count })
    }
    /// Changes what the next node of a stream will depend on.
    cuStreamUpdateCaptureDependencies 11030 "cuStreamUpdateCaptureDependencies" / 11030 "cuStreamUpdateCaptureDependencies_ptsz" (of: CUstream, nodes: In<CUgraphNode>, count: usize, flags: c_uint) |default| {
        set_behind(&*default.stream(of)?, nodes, count, flags)
    }
    /// Changes what the next node of a stream will depend on.
    cuStreamUpdateCaptureDependencies 12030 "cuStreamUpdateCaptureDependencies_v2" / 12030 "cuStreamUpdateCaptureDependencies_v2_ptsz" (of: CUstream, nodes: In<CUgraphNode>, _data: *const CUgraphEdgeData, count: usize, flags: c_uint) |default| {
        set_behind(&*default.stream(of)?, nodes, count, flags)
    }
    /// Changes how strict a thread is about calls that could spoil a capture of another thread.
    cuThreadExchangeStreamCaptureMode 10010 "cuThreadExchangeStreamCaptureMode" (mode: InOut<c_uint>) {
        let wanted = mode.read()?;
        if wanted > 2 {
            return Err(INVALID);
        }
        mode.write(MODE.replace(wanted))
    }
}
