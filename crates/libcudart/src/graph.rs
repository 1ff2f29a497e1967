//! Graphs (CUDA Runtime API, "Graph Management"), except for the parameters of nodes.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::api::api;
use crate::context::enter;
use crate::driver::cu;
use crate::{Handle, NULL};

api! { API:
    /// Makes a graph.
    cudaGraphCreate(graph: *mut Handle, flags: c_uint) => cuGraphCreate(graph, flags);
    /// Destroys a graph.
    cudaGraphDestroy(graph: Handle) => cuGraphDestroy(graph);
    /// Makes a copy of a graph.
    cudaGraphClone(clone: *mut Handle, graph: Handle) => cuGraphClone(clone, graph);
    /// The node of a copy that was made of a node.
    cudaGraphNodeFindInClone(result: *mut Handle, node: Handle, clone: Handle) => cuGraphNodeFindInClone(result, node, clone);
    /// What a node does.
    cudaGraphNodeGetType(node: Handle, kind: *mut c_int) => cuGraphNodeGetType(node, kind);
    /// The nodes of a graph.
    cudaGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) => cuGraphGetNodes(graph, nodes, count);
    /// The nodes of a graph that depend on none.
    cudaGraphGetRootNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) => cuGraphGetRootNodes(graph, nodes, count);
    /// The dependencies between the nodes of a graph.
    cudaGraphGetEdges[12](graph: Handle, from: *mut Handle, to: *mut Handle, count: *mut usize)
        => cuGraphGetEdges_v2(graph, from, to, NULL, count);
    /// The dependencies between the nodes of a graph.
    cudaGraphGetEdges_v2[12, 13 as cudaGraphGetEdges](graph: Handle, from: *mut Handle, to: *mut Handle, edges: *mut c_void, count: *mut usize)
        => cuGraphGetEdges_v2(graph, from, to, edges, count);
    /// The nodes that a node depends on.
    cudaGraphNodeGetDependencies[12](node: Handle, nodes: *mut Handle, count: *mut usize)
        => cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
    /// The nodes that a node depends on.
    cudaGraphNodeGetDependencies_v2[12, 13 as cudaGraphNodeGetDependencies](node: Handle, nodes: *mut Handle, edges: *mut c_void, count: *mut usize)
        => cuGraphNodeGetDependencies_v2(node, nodes, edges, count);
    /// The nodes that depend on a node.
    cudaGraphNodeGetDependentNodes[12](node: Handle, nodes: *mut Handle, count: *mut usize)
        => cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
    /// The nodes that depend on a node.
    cudaGraphNodeGetDependentNodes_v2[12, 13 as cudaGraphNodeGetDependentNodes](
        node: Handle, nodes: *mut Handle, edges: *mut c_void, count: *mut usize
    ) => cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count);
    /// Adds dependencies.
    cudaGraphAddDependencies[12](graph: Handle, from: *const Handle, to: *const Handle, count: usize)
        => cuGraphAddDependencies_v2(graph, from, to, NULL, count);
    /// Adds dependencies.
    cudaGraphAddDependencies_v2[12, 13 as cudaGraphAddDependencies](
        graph: Handle, from: *const Handle, to: *const Handle, edges: *const c_void, count: usize
    ) => cuGraphAddDependencies_v2(graph, from, to, edges, count);
    /// Takes dependencies away.
    cudaGraphRemoveDependencies[12](graph: Handle, from: *const Handle, to: *const Handle, count: usize)
        => cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
    /// Takes dependencies away.
    cudaGraphRemoveDependencies_v2[12, 13 as cudaGraphRemoveDependencies](
        graph: Handle, from: *const Handle, to: *const Handle, edges: *const c_void, count: usize
    ) => cuGraphRemoveDependencies_v2(graph, from, to, edges, count);
    /// Takes a node out of its graph.
    cudaGraphDestroyNode(node: Handle) => cuGraphDestroyNode(node);
    /// Makes an executable graph.
    cudaGraphInstantiate(result: *mut Handle, graph: Handle, flags: u64) => cuGraphInstantiateWithFlags(result, graph, flags);
    /// Makes an executable graph.
    cudaGraphInstantiateWithFlags(result: *mut Handle, graph: Handle, flags: u64) => cuGraphInstantiateWithFlags(result, graph, flags);
    /// Makes an executable graph, and says what is wrong with it.
    cudaGraphInstantiateWithParams / cudaGraphInstantiateWithParams_ptsz (result: *mut Handle, graph: Handle, params: *mut c_void) |_default|
        => cuGraphInstantiateWithParams(result, graph, params);
    /// The flags of an executable graph.
    cudaGraphExecGetFlags(graph: Handle, flags: *mut u64) => cuGraphExecGetFlags(graph, flags);
    /// Destroys an executable graph.
    cudaGraphExecDestroy(graph: Handle) => cuGraphExecDestroy(graph);
    /// Gives an executable graph the parameters of another graph.
    cudaGraphExecUpdate(graph: Handle, from: Handle, result: *mut c_void) => cuGraphExecUpdate_v2(graph, from, result);
    /// Brings an executable graph to the device.
    cudaGraphUpload / cudaGraphUpload_ptsz (graph: Handle, stream: Handle) |default| => cuGraphUpload(graph, default.of(stream));
    /// Runs an executable graph.
    cudaGraphLaunch / cudaGraphLaunch_ptsz (graph: Handle, stream: Handle) |default| => cuGraphLaunch(graph, default.of(stream));
    /// Whether a node of an executable graph runs.
    cudaGraphNodeGetEnabled(graph: Handle, node: Handle, enabled: *mut c_uint) => cuGraphNodeGetEnabled(graph, node, enabled);
    /// Lets a node of an executable graph run, or not.
    cudaGraphNodeSetEnabled(graph: Handle, node: Handle, enabled: c_uint) => cuGraphNodeSetEnabled(graph, node, enabled);
    /// Writes a graph as text.
    cudaGraphDebugDotPrint(graph: Handle, path: *const c_char, flags: c_uint) => cuGraphDebugDotPrint(graph, path, flags);
    /// A value that conditional nodes go by.
    cudaGraphConditionalHandleCreate(result: *mut u64, graph: Handle, value: c_uint, flags: c_uint) {
        enter()?;
        let mut context = NULL;
        cu!(cuCtxGetCurrent(&raw mut context))?;
        cu!(cuGraphConditionalHandleCreate(result, graph, context, value, flags))
    }
    /// A number that no other graph has.
    cudaGraphGetId[13](graph: Handle, id: *mut c_uint) => cuGraphGetId(graph, id);
    /// A number that no other executable graph has.
    cudaGraphExecGetId[13](graph: Handle, id: *mut c_uint) => cuGraphExecGetId(graph, id);
    /// The graph of a node.
    cudaGraphNodeGetContainingGraph[13](node: Handle, graph: *mut Handle) => cuGraphNodeGetContainingGraph(node, graph);
    /// A number that no other node of the graph has.
    cudaGraphNodeGetLocalId[13](node: Handle, id: *mut c_uint) => cuGraphNodeGetLocalId(node, id);
    /// A number that no other node has.
    cudaGraphNodeGetToolsId[13](node: Handle, id: *mut u64) => cuGraphNodeGetToolsId(node, id);
    /// Makes an object that graphs keep alive.
    cudaUserObjectCreate(result: *mut Handle, pointer: *mut c_void, destroy: Handle, count: c_uint, flags: c_uint)
        => cuUserObjectCreate(result, pointer, destroy, count, flags);
    /// Counts more users of such an object.
    cudaUserObjectRetain(object: Handle, count: c_uint) => cuUserObjectRetain(object, count);
    /// Counts fewer users of such an object.
    cudaUserObjectRelease(object: Handle, count: c_uint) => cuUserObjectRelease(object, count);
    /// Lets a graph keep such an object alive.
    cudaGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint)
        => cuGraphRetainUserObject(graph, object, count, flags);
    /// The opposite.
    cudaGraphReleaseUserObject(graph: Handle, object: Handle, count: c_uint) => cuGraphReleaseUserObject(graph, object, count);
}
