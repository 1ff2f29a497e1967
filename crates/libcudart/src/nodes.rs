//! Nodes of graphs, and their parameters (CUDA Runtime API, "Graph Management"). Most parameters are the driver's. Those of kernels name
//! kernels by host addresses, and those of copies have the runtime's own structures.

use std::ffi::{c_char, c_int, c_void};

use caller::structures::{ARRAY, BoxCopy, BoxSide, HOST, UNIFIED};
use cudarc::driver::sys::CUDA_KERNEL_NODE_PARAMS;

use crate::api::api;
use crate::context::enter;
use crate::copy::{described, from_symbol, linear, to_symbol};
use crate::driver::cu;
use crate::error::Error;
use crate::pointers::{In, Out};
use crate::registry::{host_of, kernel};
use crate::types::{Dim3, KernelNode, Memcpy3D};
use crate::{Handle, NULL};

/// Converts the parameters of a kernel node to the driver's.
fn kernel_params(params: In<KernelNode>) -> Result<CUDA_KERNEL_NODE_PARAMS, Error> {
    let KernelNode { host, grid, block, shared, arguments, extra } = params.read()?;
    let kernel = kernel(host)?;
    // SAFETY: all zeros is a valid value: it has only numbers and pointers.
    let mut params = unsafe { std::mem::zeroed::<CUDA_KERNEL_NODE_PARAMS>() };
    (params.gridDimX, params.gridDimY, params.gridDimZ) = (grid.x, grid.y, grid.z);
    (params.blockDimX, params.blockDimY, params.blockDimZ) = (block.x, block.y, block.z);
    (params.sharedMemBytes, params.kernelParams, params.extra) = (shared, arguments, extra);
    // Handles of functions are accepted, too.
    match is_kernel(kernel) {
        true => params.kern = kernel.cast(),
        false => params.func = kernel.cast(),
    }
    Ok(params)
}

/// Whether the driver knows the handle as a kernel.
fn is_kernel(handle: Handle) -> bool {
    let mut name = std::ptr::null::<c_char>();
    // SAFETY: the arguments meet the requirements of the function.
    unsafe { cu!(cuKernelGetName(&raw mut name, handle)) }.is_ok()
}

/// Converts the driver's description of a copy to the runtime's.
fn copy_of_driver(copy: &BoxCopy) -> Memcpy3D {
    let position = |[x, y, z]: [usize; 3], array: Handle| {
        let element =
            if array.is_null() { 1 } else { crate::array::element_bytes(array).unwrap_or(1).max(1) };
        crate::types::Extent { width: x / element, height: y, depth: z }
    };
    let at = |side: &BoxSide| {
        let pointer = match side.memory_type {
            HOST => side.host,
            ARRAY => NULL,
            _ => std::ptr::without_provenance_mut(side.device as usize),
        };
        crate::types::PitchedPtr { pointer, pitch: side.pitch, width: side.pitch, height: side.height }
    };
    let BoxCopy { from, to, extents } = copy;
    let kind = match (from.memory_type, to.memory_type) {
        (UNIFIED, _) | (_, UNIFIED) => crate::copy::BY_ADDRESS,
        (from, to) => c_int::from(to != HOST) + 2 * c_int::from(from != HOST),
    };
    Memcpy3D {
        from_array: from.array,
        from_position: position(from.start, from.array),
        from: at(from),
        to_array: to.array,
        to_position: position(to.start, to.array),
        to: at(to),
        extent: position(*extents, if to.array.is_null() { from.array } else { to.array }),
        kind,
    }
}

fn context() -> Result<Handle, Error> {
    enter()?;
    let mut context = NULL;
    // SAFETY: the arguments meet the requirements of the function.
    unsafe { cu!(cuCtxGetCurrent(&raw mut context)) }?;
    Ok(context)
}

/// `cudaGraphNodeParams`: a type, and a union.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeParams {
    kind: c_int,
    reserved: [c_int; 3],
    union: [u64; 30],
}

const _: () = assert!(size_of::<NodeParams>() == size_of::<cudarc::driver::sys::CUgraphNodeParams>());

/// The types of nodes whose parameters differ from the driver's.
const KERNEL: c_int = 0;
const COPY: c_int = 1;

/// `cudaMemcpyNodeParams` of a [`Memcpy3D`], `CUDA_MEMCPY_NODE_PARAMS` of a [`BoxCopy`].
#[repr(C)]
#[derive(Clone, Copy)]
struct CopyNode<C> {
    flags: c_int,
    reserved: c_int,
    context: Handle,
    copy: C,
}

/// Calls `work` with the driver's form of a node's parameters, and copies back what `work` writes.
///
/// # Safety
/// A non-null pointer must point to a `cudaGraphNodeParams`.
unsafe fn with_params(
    params: *mut NodeParams,
    work: impl FnOnce(*mut NodeParams) -> Result<(), Error>,
) -> Result<(), Error> {
    let context = context()?;
    // SAFETY: the caller's promise; the union has room for each of its members.
    unsafe {
        let mut of_driver = In::new(params).read()?;
        let (from, to) = ((&raw const (*params).union), (&raw mut of_driver.union));
        match of_driver.kind {
            KERNEL => {
                let mut kernel = kernel_params(In::new(from.cast()))?;
                kernel.ctx = context.cast();
                of_driver.union = [0; 30];
                to.cast::<CUDA_KERNEL_NODE_PARAMS>().write(kernel);
                work(&raw mut of_driver)
            }
            COPY => {
                let CopyNode { flags, copy, .. } = from.cast::<CopyNode<Memcpy3D>>().read();
                let copy = described(&copy)?;
                of_driver.union = [0; 30];
                to.cast::<CopyNode<BoxCopy>>().write(CopyNode { flags, reserved: 0, context, copy });
                work(&raw mut of_driver)
            }
            _ => work(params),
        }
    }
}

/// # Safety
/// As for `cudaGraphAddNode`.
unsafe fn add_node(
    node: *mut Handle,
    graph: Handle,
    dependencies: *const Handle,
    edges: *const c_void,
    count: usize,
    params: *mut NodeParams,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe {
        with_params(params, |params| cu!(cuGraphAddNode_v2(node, graph, dependencies, edges, count, params)))
    }
}

api! { API:
    /// Adds a node to a graph.
    cudaGraphAddNode[12](node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, params: *mut NodeParams) {
        add_node(node, graph, dependencies, std::ptr::null(), count, params)
    }
    /// Adds a node to a graph.
    cudaGraphAddNode_v2[12, 13 as cudaGraphAddNode](
        node: *mut Handle, graph: Handle, dependencies: *const Handle, edges: *const c_void, count: usize, params: *mut NodeParams
    ) {
        add_node(node, graph, dependencies, edges, count, params)
    }
    /// Changes the parameters of a node.
    cudaGraphNodeSetParams(node: Handle, params: *mut NodeParams) {
        with_params(params, |params| cu!(cuGraphNodeSetParams(node, params)))
    }
    /// Changes the parameters of a node of an executable graph.
    cudaGraphExecNodeSetParams(graph: Handle, node: Handle, params: *mut NodeParams) {
        with_params(params, |params| cu!(cuGraphExecNodeSetParams(graph, node, params)))
    }
    /// Adds a node that launches a kernel.
    cudaGraphAddKernelNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, params: In<KernelNode>)
        => cuGraphAddKernelNode_v2(node, graph, dependencies, count, &kernel_params(params)?);
    /// What a node launches.
    cudaGraphKernelNodeGetParams(node: Handle, result: Out<KernelNode>) {
        enter()?;
        // All zeros is a valid value: it has only numbers and pointers.
        let mut params = std::mem::zeroed::<CUDA_KERNEL_NODE_PARAMS>();
        cu!(cuGraphKernelNodeGetParams_v2(node, &raw mut params))?;
        let handle = if params.kern.is_null() { params.func.cast() } else { params.kern.cast() };
        result.write(KernelNode {
            host: host_of(handle),
            grid: Dim3 { x: params.gridDimX, y: params.gridDimY, z: params.gridDimZ },
            block: Dim3 { x: params.blockDimX, y: params.blockDimY, z: params.blockDimZ },
            shared: params.sharedMemBytes,
            arguments: params.kernelParams,
            extra: params.extra,
        })
    }
    /// Changes what a node launches.
    cudaGraphKernelNodeSetParams(node: Handle, params: In<KernelNode>) => cuGraphKernelNodeSetParams_v2(node, &kernel_params(params)?);
    /// Changes what a node of an executable graph launches.
    cudaGraphExecKernelNodeSetParams(graph: Handle, node: Handle, params: In<KernelNode>)
        => cuGraphExecKernelNodeSetParams_v2(graph, node, &kernel_params(params)?);
    /// Gives a node the attributes of another one.
    cudaGraphKernelNodeCopyAttributes(to: Handle, from: Handle) => cuGraphKernelNodeCopyAttributes(to, from);
    /// An attribute of a node that launches a kernel.
    cudaGraphKernelNodeGetAttribute(node: Handle, attribute: c_int, value: *mut c_void)
        => cuGraphKernelNodeGetAttribute(node, attribute, value);
    /// Changes an attribute of a node that launches a kernel.
    cudaGraphKernelNodeSetAttribute(node: Handle, attribute: c_int, value: *const c_void)
        => cuGraphKernelNodeSetAttribute(node, attribute, value);
    /// Adds a node that copies.
    cudaGraphAddMemcpyNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, params: In<Memcpy3D>)
        => cuGraphAddMemcpyNode(node, graph, dependencies, count, &described(&params.read()?)?, context()?);
    /// Adds a node that copies bytes.
    cudaGraphAddMemcpyNode1D(
        node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int
    ) => cuGraphAddMemcpyNode(node, graph, dependencies, count, &linear(to, from, bytes, kind)?, context()?);
    /// Adds a node that copies bytes to a variable.
    cudaGraphAddMemcpyNodeToSymbol(
        node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, symbol: *const c_void, from: *const c_void, bytes: usize,
        offset: usize, kind: c_int
    ) => cuGraphAddMemcpyNode(node, graph, dependencies, count, &to_symbol(symbol, from, bytes, offset, kind)?, context()?);
    /// Adds a node that copies bytes from a variable.
    cudaGraphAddMemcpyNodeFromSymbol(
        node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, to: *mut c_void, symbol: *const c_void, bytes: usize,
        offset: usize, kind: c_int
    ) => cuGraphAddMemcpyNode(node, graph, dependencies, count, &from_symbol(to, symbol, bytes, offset, kind)?, context()?);
    /// What a node copies.
    cudaGraphMemcpyNodeGetParams(node: Handle, result: Out<Memcpy3D>) {
        enter()?;
        let mut copy = std::mem::MaybeUninit::<BoxCopy>::uninit();
        cu!(cuGraphMemcpyNodeGetParams(node, copy.as_mut_ptr()))?;
        result.write(copy_of_driver(&copy.assume_init()))
    }
    /// Changes what a node copies.
    cudaGraphMemcpyNodeSetParams(node: Handle, params: In<Memcpy3D>) => cuGraphMemcpyNodeSetParams(node, &described(&params.read()?)?);
    /// Changes what a node copies, to bytes.
    cudaGraphMemcpyNodeSetParams1D(node: Handle, to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int)
        => cuGraphMemcpyNodeSetParams(node, &linear(to, from, bytes, kind)?);
    /// Changes what a node copies, to bytes to a variable.
    cudaGraphMemcpyNodeSetParamsToSymbol(node: Handle, symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int)
        => cuGraphMemcpyNodeSetParams(node, &to_symbol(symbol, from, bytes, offset, kind)?);
    /// Changes what a node copies, to bytes from a variable.
    cudaGraphMemcpyNodeSetParamsFromSymbol(node: Handle, to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_int)
        => cuGraphMemcpyNodeSetParams(node, &from_symbol(to, symbol, bytes, offset, kind)?);
    /// Changes what a node of an executable graph copies.
    cudaGraphExecMemcpyNodeSetParams(graph: Handle, node: Handle, params: In<Memcpy3D>)
        => cuGraphExecMemcpyNodeSetParams(graph, node, &described(&params.read()?)?, context()?);
    /// Changes what a node of an executable graph copies, to bytes.
    cudaGraphExecMemcpyNodeSetParams1D(graph: Handle, node: Handle, to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int)
        => cuGraphExecMemcpyNodeSetParams(graph, node, &linear(to, from, bytes, kind)?, context()?);
    /// Changes what a node of an executable graph copies, to bytes to a variable.
    cudaGraphExecMemcpyNodeSetParamsToSymbol(
        graph: Handle, node: Handle, symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int
    ) => cuGraphExecMemcpyNodeSetParams(graph, node, &to_symbol(symbol, from, bytes, offset, kind)?, context()?);
    /// Changes what a node of an executable graph copies, to bytes from a variable.
    cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        graph: Handle, node: Handle, to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_int
    ) => cuGraphExecMemcpyNodeSetParams(graph, node, &from_symbol(to, symbol, bytes, offset, kind)?, context()?);
    /// Adds a node that fills memory.
    cudaGraphAddMemsetNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, params: *const c_void)
        => cuGraphAddMemsetNode(node, graph, dependencies, count, params, context()?);
    /// What a node fills.
    cudaGraphMemsetNodeGetParams(node: Handle, params: *mut c_void) => cuGraphMemsetNodeGetParams(node, params);
    /// Changes what a node fills.
    cudaGraphMemsetNodeSetParams(node: Handle, params: *const c_void) => cuGraphMemsetNodeSetParams(node, params);
    /// Changes what a node of an executable graph fills.
    cudaGraphExecMemsetNodeSetParams(graph: Handle, node: Handle, params: *const c_void)
        => cuGraphExecMemsetNodeSetParams(graph, node, params, context()?);
    /// Adds a node that calls a function of the program.
    cudaGraphAddHostNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, params: *const c_void)
        => cuGraphAddHostNode(node, graph, dependencies, count, params);
    /// What a node calls.
    cudaGraphHostNodeGetParams(node: Handle, params: *mut c_void) => cuGraphHostNodeGetParams(node, params);
    /// Changes what a node calls.
    cudaGraphHostNodeSetParams(node: Handle, params: *const c_void) => cuGraphHostNodeSetParams(node, params);
    /// Changes what a node of an executable graph calls.
    cudaGraphExecHostNodeSetParams(graph: Handle, node: Handle, params: *const c_void) => cuGraphExecHostNodeSetParams(graph, node, params);
    /// Adds a node that runs another graph.
    cudaGraphAddChildGraphNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, child: Handle)
        => cuGraphAddChildGraphNode(node, graph, dependencies, count, child);
    /// The graph that a node runs.
    cudaGraphChildGraphNodeGetGraph(node: Handle, graph: *mut Handle) => cuGraphChildGraphNodeGetGraph(node, graph);
    /// Changes the graph that a node of an executable graph runs.
    cudaGraphExecChildGraphNodeSetParams(graph: Handle, node: Handle, child: Handle)
        => cuGraphExecChildGraphNodeSetParams(graph, node, child);
    /// Adds a node that does nothing.
    cudaGraphAddEmptyNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize)
        => cuGraphAddEmptyNode(node, graph, dependencies, count);
    /// Adds a node that records an event.
    cudaGraphAddEventRecordNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, event: Handle)
        => cuGraphAddEventRecordNode(node, graph, dependencies, count, event);
    /// The event that a node records.
    cudaGraphEventRecordNodeGetEvent(node: Handle, event: *mut Handle) => cuGraphEventRecordNodeGetEvent(node, event);
    /// Changes the event that a node records.
    cudaGraphEventRecordNodeSetEvent(node: Handle, event: Handle) => cuGraphEventRecordNodeSetEvent(node, event);
    /// Changes the event that a node of an executable graph records.
    cudaGraphExecEventRecordNodeSetEvent(graph: Handle, node: Handle, event: Handle)
        => cuGraphExecEventRecordNodeSetEvent(graph, node, event);
    /// Adds a node that waits for an event.
    cudaGraphAddEventWaitNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, event: Handle)
        => cuGraphAddEventWaitNode(node, graph, dependencies, count, event);
    /// The event that a node waits for.
    cudaGraphEventWaitNodeGetEvent(node: Handle, event: *mut Handle) => cuGraphEventWaitNodeGetEvent(node, event);
    /// Changes the event that a node waits for.
    cudaGraphEventWaitNodeSetEvent(node: Handle, event: Handle) => cuGraphEventWaitNodeSetEvent(node, event);
    /// Changes the event that a node of an executable graph waits for.
    cudaGraphExecEventWaitNodeSetEvent(graph: Handle, node: Handle, event: Handle) => cuGraphExecEventWaitNodeSetEvent(graph, node, event);
    /// Adds a node that allocates memory.
    cudaGraphAddMemAllocNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, params: *mut c_void)
        => cuGraphAddMemAllocNode(node, graph, dependencies, count, params);
    /// What a node allocates.
    cudaGraphMemAllocNodeGetParams(node: Handle, params: *mut c_void) => cuGraphMemAllocNodeGetParams(node, params);
    /// Adds a node that gives memory back.
    cudaGraphAddMemFreeNode(node: *mut Handle, graph: Handle, dependencies: *const Handle, count: usize, pointer: *mut c_void)
        => cuGraphAddMemFreeNode(node, graph, dependencies, count, pointer);
    /// The memory that a node gives back.
    cudaGraphMemFreeNodeGetParams(node: Handle, pointer: *mut c_void) => cuGraphMemFreeNodeGetParams(node, pointer);
}
