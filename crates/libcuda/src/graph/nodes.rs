//! Graphs and their nodes, by kind.

use std::ffi::{c_uint, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use caller::structures::BoxCopy;
use cudarc::driver::sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS,
    CUDA_MEMCPY_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdeviceptr, CUevent, CUfunction, CUgraph,
    CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, CUkernel,
};

use super::conditional::conditional;
use super::{
    Body, GRAPHS, Graph, GraphMemory, NODES, Node, copy, fill, free_graph, graph, lock, node, nodes_at,
};
use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::function::function;
use crate::handles::handle_of;
use crate::launch::{KernelLaunch, cluster_of, params};
use crate::pointers::{Bytes, In, InOut, Out, required};
use crate::stream::HostFunction;
use crate::{INVALID, Status};

/// The description of a kernel node (`CUDA_KERNEL_NODE_PARAMS_v1`), with such pointers to parameters.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Description<P> {
    function: CUfunction,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    dynamic_shared: c_uint,
    _pad: MaybeUninit<c_uint>,
    params: P,
    extra: P,
}

/// The description that the program passes, and the one that it gets.
pub type KernelNode<'a> = Description<InOut<'a, Bytes<'a>>>;
type KeptKernelNode = Description<*mut *mut c_void>;

/// The newer description (`CUDA_KERNEL_NODE_PARAMS`). It begins with the older one, and a kernel of a library may replace the function.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Newer<T> {
    older: T,
    kernel: CUkernel,
    context: CUcontext,
}

const _: () = assert!(size_of::<KernelNode>() == size_of::<CUDA_KERNEL_NODE_PARAMS_v1>());
const _: () = assert!(size_of::<Newer<KernelNode>>() == size_of::<CUDA_KERNEL_NODE_PARAMS>());

/// Kernel parameters in the form that a program queries: the bytes, and a pointer to each parameter.
pub struct KernelParams {
    bytes: Vec<u8>,
    pointers: Vec<*mut c_void>,
}

// SAFETY: the pointers point to its own bytes.
unsafe impl Send for KernelParams {}
// SAFETY: as above.
unsafe impl Sync for KernelParams {}

/// The launch that a description of the program specifies.
pub fn kernel(described: KernelNode) -> Result<KernelLaunch, Status> {
    // In the newer description, a kernel of a library may replace the function.
    let function = function(described.function)?;
    let launch = KernelLaunch {
        params: params(&function, described.params, described.extra)?,
        function,
        grid: described.grid,
        block: described.block,
        dynamic_shared: described.dynamic_shared,
        cooperative: false,
        cluster: None,
    };
    launch.check()?;
    Ok(launch)
}

/// The same for the newer description.
pub fn kernel_2(described: Newer<KernelNode>) -> Result<KernelLaunch, Status> {
    let Newer { mut older, kernel: of_library, .. } = described;
    if older.function.is_null() {
        older.function = of_library.cast();
    }
    kernel(older)
}

/// The description of a kernel node.
fn describe(of: &Node) -> Result<KeptKernelNode, Status> {
    let Body::Kernel(launch) = of.body() else { return Err(INVALID) };
    let mut kept = Box::new(KernelParams { bytes: launch.params.clone(), pointers: Vec::new() });
    let start = kept.bytes.as_mut_ptr();
    let pointer = |&(offset, _): &(u64, u64)| start.wrapping_add(offset as usize).cast::<c_void>();
    kept.pointers = launch.function.params.iter().map(pointer).collect();
    let description = Description {
        function: handle_of(&launch.function),
        grid: launch.grid,
        block: launch.block,
        dynamic_shared: launch.dynamic_shared,
        _pad: MaybeUninit::new(0),
        params: kept.pointers.as_mut_ptr(),
        extra: std::ptr::null_mut(),
    };
    *lock(&of.params) = Some(kept);
    Ok(description)
}

/// Adds a node that the program describes.
fn add(
    result: Out<CUgraphNode>,
    of: CUgraph,
    behind: In<CUgraphNode>,
    count: usize,
    body: Body,
) -> Result<(), Status> {
    let graph = graph(of)?;
    let behind = nodes_at(behind, count)?;
    required(result.pointer())?;
    result.write(handle_of(&graph.add(body, &behind)?))
}

/// The kind of a node in its generic description, and the union, of which the program has set the member of this kind.
fn parts(description: InOut<CUgraphNodeParams>) -> Result<(u32, *mut c_void), Status> {
    let place = description.pointer();
    // SAFETY: the program passes a description, which begins with its kind. That may be any number.
    let kind = unsafe { In::<u32>::new(place.cast()) }.read()?;
    Ok((kind, place.wrapping_byte_add(offset_of!(CUgraphNodeParams, __bindgen_anon_1)).cast()))
}

/// The body of a node from its generic description.
pub fn body(description: InOut<CUgraphNodeParams>) -> Result<Body, Status> {
    let (kind, member) = parts(description)?;
    // SAFETY: the kind says which member of the union the program has set.
    unsafe {
        Ok(match kind {
            0 => Body::Kernel(kernel_2(In::new(member.cast()).read()?)?),
            1 => copy(In::new(member.byte_add(offset_of!(CUDA_MEMCPY_NODE_PARAMS, copyParams)).cast()))?,
            2 => Body::Fill(fill(In::new(member.cast()))?),
            3 => {
                let host = In::<CUDA_HOST_NODE_PARAMS>::new(member.cast()).read()?;
                Body::Host(HostFunction::new(host.fn_, host.userData)?)
            }
            CHILD => Body::Child(child(In::new(member.cast()))?),
            5 => Body::Empty,
            6 => Body::Wait(crate::event::event(member.cast::<CUevent>().read())?),
            7 => Body::Record(crate::event::event(member.cast::<CUevent>().read())?),
            10 => alloc(InOut::new(member.cast()))?,
            13 => Body::Conditional(conditional(InOut::new(member.cast()))?),
            11 => Body::Free(member.cast::<CUdeviceptr>().read()),
            _ => return Err(Status::CUDA_ERROR_NOT_SUPPORTED),
        })
    }
}

/// `CU_GRAPH_NODE_TYPE_GRAPH`
const CHILD: u32 = 4;

/// `CUDA_CHILD_GRAPH_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
struct Child {
    graph: CUgraph,
    ownership: u32,
}

/// The graph of a node: a copy (`CUgraphChildGraphNodeOwnership`).
fn child(description: In<Child>) -> Result<Arc<Graph>, Status> {
    let described = description.read()?;
    if described.ownership == COPIED { free_graph(described.graph)?.copy() } else { Err(INVALID) }
}

/// `CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE` and `_MOVE`
const COPIED: u32 = 0;
const MOVED: u32 = 1;

/// Adds a node by its generic description. Only here a graph may become the node's own, with the handles of its nodes.
fn add_described(
    result: Out<CUgraphNode>,
    of: CUgraph,
    behind: In<CUgraphNode>,
    count: usize,
    description: InOut<CUgraphNodeParams>,
) -> Result<(), Status> {
    let Some(child) = moved(description)? else {
        return add(result, of, behind, count, body(description)?);
    };
    if child.contains(&*graph(of)?) {
        return Err(INVALID);
    }
    add(result, of, behind, count, Body::Child(Arc::clone(&child)))?;
    child.is_moved.store(true, Ordering::Release);
    Ok(())
}

/// The graph that a description wants moved, if it wants that.
fn moved(description: InOut<CUgraphNodeParams>) -> Result<Option<Arc<Graph>>, Status> {
    let (kind, member) = parts(description)?;
    if kind != CHILD {
        return Ok(None);
    }
    // SAFETY: the kind says that the program has set this member.
    let child = unsafe { In::<Child>::new(member.cast()) }.read()?;
    (child.ownership == MOVED).then(|| free_graph(child.graph)).transpose()
}

/// The description of memory of a graph (`CUDA_MEM_ALLOC_NODE_PARAMS`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Reservation {
    /// Its properties and the devices that reach it, which have no effect. The program need not set all of them.
    properties: MaybeUninit<[u64; 13]>,
    bytes: usize,
    address: CUdeviceptr,
}

const _: () = assert!(size_of::<Reservation>() == size_of::<CUDA_MEM_ALLOC_NODE_PARAMS>());

/// Reserves memory of a graph.
fn alloc(description: InOut<Reservation>) -> Result<Body, Status> {
    let described = description.read()?;
    let memory = GraphMemory::reserve(&Context::current()?, described.bytes, "cuGraphAddMemAllocNode")?;
    description.write(Reservation { address: memory.address, ..described })?;
    Ok(Body::Alloc(memory))
}

api! { API:
    /// Makes a graph.
    cuGraphCreate 10000 "cuGraphCreate" (result: Out<CUgraph>, flags: c_uint) {
        driver()?;
        if flags != 0 {
            return Err(INVALID);
        }
        let graph = Graph::new();
        GRAPHS.give(result, graph)
    }
    /// Destroys a graph. What was instantiated of it stays.
    cuGraphDestroy 10000 "cuGraphDestroy" (handle: CUgraph) {
        free_graph(handle)?;
        GRAPHS.remove(handle).ok_or(INVALID)?.destroy();
        Ok(())
    }
    /// Copies a graph.
    cuGraphClone 10000 "cuGraphClone" (result: Out<CUgraph>, original: CUgraph) {
        let copy = graph(original)?.copy()?;
        GRAPHS.give(result, copy)
    }
    /// The node of a copy that stands for one of the original.
    cuGraphNodeFindInClone 10000 "cuGraphNodeFindInClone" (result: Out<CUgraphNode>, original: CUgraphNode, of: CUgraph) {
        let id = node(original)?.id;
        let found = graph(of)?.nodes().into_iter().find(|node| node.id == id).ok_or(INVALID)?;
        result.write(handle_of(&found))
    }
    /// Destroys a node and its edges.
    cuGraphDestroyNode 10000 "cuGraphDestroyNode" (handle: CUgraphNode) {
        let node = node(handle)?;
        let graph = node.graph()?;
        let mut content = lock(&graph.content);
        content.nodes.retain(|other| other.id != node.id);
        content.edges.retain(|&(from, to)| from != node.id && to != node.id);
        NODES.remove(handle).map(drop).ok_or(INVALID)
    }
    /// What kind of node it is.
    cuGraphNodeGetType 10000 "cuGraphNodeGetType" (handle: CUgraphNode, result: Out<c_uint>) {
        result.write(node(handle)?.body().kind().0)
    }
    /// A number that no other graph has.
    cuGraphGetId 13010 "cuGraphGetId" (handle: CUgraph, result: Out<c_uint>) {
        result.write(graph(handle)?.id as c_uint)
    }
    /// The number of a node in its graph.
    cuGraphNodeGetLocalId 13010 "cuGraphNodeGetLocalId" (handle: CUgraphNode, result: Out<c_uint>) {
        result.write(node(handle)?.id as c_uint)
    }
    /// The number of a node for tools.
    cuGraphNodeGetToolsId 13010 "cuGraphNodeGetToolsId" (handle: CUgraphNode, result: Out<u64>) {
        result.write(node(handle)?.id)
    }
    /// The graph of a node.
    cuGraphNodeGetContainingGraph 13010 "cuGraphNodeGetContainingGraph" (handle: CUgraphNode, result: Out<CUgraph>) {
        result.write(handle_of(&node(handle)?.graph()?))
    }
    /// Adds a kernel.
    cuGraphAddKernelNode 10000 "cuGraphAddKernelNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, description: In<KernelNode>) {
        add(result, of, behind, count, Body::Kernel(kernel(description.read()?)?))
    }
    /// Adds a kernel.
    cuGraphAddKernelNode 12000 "cuGraphAddKernelNode_v2" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, description: In<Newer<KernelNode>>) {
        add(result, of, behind, count, Body::Kernel(kernel_2(description.read()?)?))
    }
    /// What a kernel node does.
    cuGraphKernelNodeGetParams 10000 "cuGraphKernelNodeGetParams" (handle: CUgraphNode, result: Out<KeptKernelNode>) {
        result.write(describe(&*node(handle)?)?)
    }
    /// What a kernel node does.
    cuGraphKernelNodeGetParams 12000 "cuGraphKernelNodeGetParams_v2" (handle: CUgraphNode, result: Out<Newer<KeptKernelNode>>) {
        let older = describe(&*node(handle)?)?;
        result.write(Newer { older, kernel: std::ptr::null_mut(), context: std::ptr::null_mut() })
    }
    /// Changes what a kernel node does.
    cuGraphKernelNodeSetParams 10000 "cuGraphKernelNodeSetParams" (handle: CUgraphNode, description: In<KernelNode>) {
        node(handle)?.set_params(Body::Kernel(kernel(description.read()?)?))
    }
    /// Changes what a kernel node does.
    cuGraphKernelNodeSetParams 12000 "cuGraphKernelNodeSetParams_v2" (handle: CUgraphNode, description: In<Newer<KernelNode>>) {
        node(handle)?.set_params(Body::Kernel(kernel_2(description.read()?)?))
    }
    /// Copies attributes from one kernel node to another: whether its blocks may wait for each other, and its clusters.
    cuGraphKernelNodeCopyAttributes 11000 "cuGraphKernelNodeCopyAttributes" (to: CUgraphNode, from: CUgraphNode) {
        let (Body::Kernel(from), Body::Kernel(mut launch)) = (node(from)?.body(), node(to)?.body()) else { return Err(INVALID) };
        (launch.cooperative, launch.cluster) = (from.cooperative, from.cluster);
        node(to)?.set_body(Body::Kernel(launch));
        Ok(())
    }
    /// An attribute of a kernel node.
    cuGraphKernelNodeGetAttribute 11000 "cuGraphKernelNodeGetAttribute" (handle: CUgraphNode, attribute: c_uint, value: Out<u32>) {
        let Body::Kernel(launch) = node(handle)?.body() else { return Err(INVALID) };
        match attribute {
            2 => value.write(launch.cooperative.into()),
            4 => (0..3).try_for_each(|i| value.write_at(i, launch.cluster.unwrap_or_default()[i])),
            1..=14 => (0..16).try_for_each(|i| value.write_at(i, 0)),
            _ => Err(INVALID),
        }
    }
    /// Changes an attribute of a kernel node: all but cooperation and clusters have no effect here.
    cuGraphKernelNodeSetAttribute 11000 "cuGraphKernelNodeSetAttribute" (handle: CUgraphNode, attribute: c_uint, value: InOut<u32>) {
        let Body::Kernel(mut launch) = node(handle)?.body() else { return Err(INVALID) };
        if attribute == 2 {
            launch.cooperative = value.read()? != 0;
            node(handle)?.set_body(Body::Kernel(launch));
        } else if attribute == 4 {
            launch.cluster = cluster_of([value.read()?, value.read_at(1)?, value.read_at(2)?]);
            node(handle)?.set_body(Body::Kernel(launch));
        }
        if (1..=14).contains(&attribute) { Ok(()) } else { Err(INVALID) }
    }
    /// Adds a copy.
    cuGraphAddMemcpyNode 10000 "cuGraphAddMemcpyNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, described: In<BoxCopy>, _context: CUcontext) {
        add(result, of, behind, count, copy(described)?)
    }
    /// What a copy node does.
    cuGraphMemcpyNodeGetParams 10000 "cuGraphMemcpyNodeGetParams" (handle: CUgraphNode, result: Out<BoxCopy>) {
        match node(handle)?.body() {
            Body::Copy(_, Some(described)) => result.write(*described),
            Body::Copy(copy, None) => result.write(copy.describe()),
            _ => Err(INVALID),
        }
    }
    /// Changes what a copy node does.
    cuGraphMemcpyNodeSetParams 10000 "cuGraphMemcpyNodeSetParams" (handle: CUgraphNode, described: In<BoxCopy>) {
        node(handle)?.set_params(copy(described)?)
    }
    /// Adds a fill.
    cuGraphAddMemsetNode 10000 "cuGraphAddMemsetNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, params: In<CUDA_MEMSET_NODE_PARAMS>, _context: CUcontext) {
        add(result, of, behind, count, Body::Fill(fill(params)?))
    }
    /// What a fill node does.
    cuGraphMemsetNodeGetParams 10000 "cuGraphMemsetNodeGetParams" (handle: CUgraphNode, result: Out<CUDA_MEMSET_NODE_PARAMS>) {
        let Body::Fill(fill) = node(handle)?.body() else { return Err(INVALID) };
        result.write(CUDA_MEMSET_NODE_PARAMS {
            dst: fill.address,
            pitch: fill.pitch as usize,
            value: fill.value,
            elementSize: fill.element as c_uint,
            width: fill.width as usize,
            height: fill.height as usize,
        })
    }
    /// Changes what a fill node does.
    cuGraphMemsetNodeSetParams 10000 "cuGraphMemsetNodeSetParams" (handle: CUgraphNode, params: In<CUDA_MEMSET_NODE_PARAMS>) {
        node(handle)?.set_params(Body::Fill(fill(params)?))
    }
    /// Adds a call of a function of the program.
    cuGraphAddHostNode 10000 "cuGraphAddHostNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, params: In<CUDA_HOST_NODE_PARAMS>) {
        let host = params.read()?;
        add(result, of, behind, count, Body::Host(HostFunction::new(host.fn_, host.userData)?))
    }
    /// What a host node calls.
    cuGraphHostNodeGetParams 10000 "cuGraphHostNodeGetParams" (handle: CUgraphNode, result: Out<CUDA_HOST_NODE_PARAMS>) {
        let Body::Host(host) = node(handle)?.body() else { return Err(INVALID) };
        let (function, argument) = host.parts();
        result.write(CUDA_HOST_NODE_PARAMS { fn_: function, userData: argument })
    }
    /// Changes what a host node calls.
    cuGraphHostNodeSetParams 10000 "cuGraphHostNodeSetParams" (handle: CUgraphNode, params: In<CUDA_HOST_NODE_PARAMS>) {
        let host = params.read()?;
        node(handle)?.set_params(Body::Host(HostFunction::new(host.fn_, host.userData)?))
    }
    /// Adds a graph as a node.
    cuGraphAddChildGraphNode 10000 "cuGraphAddChildGraphNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, child: CUgraph) {
        let child = free_graph(child)?.copy()?;
        add(result, of, behind, count, Body::Child(child))
    }
    /// The graph of such a node.
    cuGraphChildGraphNodeGetGraph 10000 "cuGraphChildGraphNodeGetGraph" (handle: CUgraphNode, result: Out<CUgraph>) {
        let Body::Child(child) = node(handle)?.body() else { return Err(INVALID) };
        if GRAPHS.get::<()>(handle_of(&child)).is_none() {
            GRAPHS.insert::<()>(Arc::clone(&child));
        }
        result.write(handle_of(&child))
    }
    /// Adds a node that does nothing.
    cuGraphAddEmptyNode 10000 "cuGraphAddEmptyNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize) {
        add(result, of, behind, count, Body::Empty)
    }
    /// Adds the record of an event.
    cuGraphAddEventRecordNode 11010 "cuGraphAddEventRecordNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, event: CUevent) {
        add(result, of, behind, count, Body::Record(crate::event::event(event)?))
    }
    /// The event that a node records.
    cuGraphEventRecordNodeGetEvent 11010 "cuGraphEventRecordNodeGetEvent" (handle: CUgraphNode, result: Out<CUevent>) {
        let Body::Record(event) = node(handle)?.body() else { return Err(INVALID) };
        result.write(handle_of(&event))
    }
    /// Changes the event that a node records.
    cuGraphEventRecordNodeSetEvent 11010 "cuGraphEventRecordNodeSetEvent" (handle: CUgraphNode, event: CUevent) {
        node(handle)?.set_params(Body::Record(crate::event::event(event)?))
    }
    /// Adds waiting for an event.
    cuGraphAddEventWaitNode 11010 "cuGraphAddEventWaitNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, event: CUevent) {
        add(result, of, behind, count, Body::Wait(crate::event::event(event)?))
    }
    /// The event that a node waits for.
    cuGraphEventWaitNodeGetEvent 11010 "cuGraphEventWaitNodeGetEvent" (handle: CUgraphNode, result: Out<CUevent>) {
        let Body::Wait(event) = node(handle)?.body() else { return Err(INVALID) };
        result.write(handle_of(&event))
    }
    /// Changes the event that a node waits for.
    cuGraphEventWaitNodeSetEvent 11010 "cuGraphEventWaitNodeSetEvent" (handle: CUgraphNode, event: CUevent) {
        node(handle)?.set_params(Body::Wait(crate::event::event(event)?))
    }
    /// Adds memory of the graph.
    cuGraphAddMemAllocNode 11040 "cuGraphAddMemAllocNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, description: InOut<Reservation>) {
        let body = alloc(description)?;
        add(result, of, behind, count, body)
    }
    /// What memory a node is.
    cuGraphMemAllocNodeGetParams 11040 "cuGraphMemAllocNodeGetParams" (handle: CUgraphNode, result: Out<Reservation>) {
        let Body::Alloc(memory) = node(handle)?.body() else { return Err(INVALID) };
        result.write(Reservation { properties: MaybeUninit::new([0; 13]), bytes: memory.bytes, address: memory.address })
    }
    /// Adds the end of the use of memory.
    cuGraphAddMemFreeNode 11040 "cuGraphAddMemFreeNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, address: CUdeviceptr) {
        driver()?.allocations.check(address, 1)?;
        add(result, of, behind, count, Body::Free(address))
    }
    /// The memory whose use ends.
    cuGraphMemFreeNodeGetParams 11040 "cuGraphMemFreeNodeGetParams" (handle: CUgraphNode, result: Out<CUdeviceptr>) {
        let Body::Free(address) = node(handle)?.body() else { return Err(INVALID) };
        result.write(address)
    }
    /// Adds a node of any kind.
    cuGraphAddNode 12020 "cuGraphAddNode" (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, count: usize, description: InOut<CUgraphNodeParams>) {
        add_described(result, of, behind, count, description)
    }
    /// Adds a node of any kind.
    cuGraphAddNode 12030 "cuGraphAddNode_v2", 13040 "cuGraphAddNode_v3"
        (result: Out<CUgraphNode>, of: CUgraph, behind: In<CUgraphNode>, _edges: *const CUgraphEdgeData, count: usize, description: InOut<CUgraphNodeParams>) {
        add_described(result, of, behind, count, description)
    }
    /// Changes what a node does.
    cuGraphNodeSetParams 12020 "cuGraphNodeSetParams", 13040 "cuGraphNodeSetParams_v2" (handle: CUgraphNode, description: InOut<CUgraphNodeParams>) {
        node(handle)?.set_params(body(description)?)
    }
}
