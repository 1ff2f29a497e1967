//! Graphs that decide while they run, and memory of graphs.

mod driver;

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use cudarc::driver::sys::{CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS};

use driver::*;

const NOT_FOUND: u32 = 500;

/// `set` sets a condition to a number in memory, `count` counts one more there and sets the condition to what is missing to ten.
const PTX: &std::ffi::CStr = c"
.version 8.3
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry set(.param .u64 data, .param .u64 handle) {
    .reg .b64 %d, %h; .reg .b32 %v;
    ld.param.u64 %d, [data]; ld.param.u64 %h, [handle];
    ld.global.u32 %v, [%d];
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %h; st.param.b32 [b], %v; call.uni cudaGraphSetConditional, (a, b); }
    ret;
}
.visible .entry count(.param .u64 data, .param .u64 handle) {
    .reg .b64 %d, %h; .reg .b32 %v;
    ld.param.u64 %d, [data]; ld.param.u64 %h, [handle];
    ld.global.u32 %v, [%d]; add.u32 %v, %v, 1; st.global.u32 [%d], %v;
    sub.u32 %v, 10, %v;
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %h; st.param.b32 [b], %v; call.uni cudaGraphSetConditional, (a, b); }
    ret;
}
";

const IF: u64 = 0;
const WHILE: u64 = 1;
const SWITCH: u64 = 2;

fn function(name: &std::ffi::CStr) -> Handle {
    driver::function(driver::load(PTX), name)
}

fn graph() -> Handle {
    let mut graph = null_mut();
    ok!(cuGraphCreate(&raw mut graph, 0));
    graph
}

fn numbers(count: usize) -> u64 {
    let data = allocate(4 * count);
    ok!(cuMemsetD32_v2(data, 0, count));
    data
}

/// Does something with what a node of a kernel of one thread with two parameters of 64 bits is told.
fn with_kernel<T>(function: Handle, values: [u64; 2], work: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> T) -> T {
    let mut params: [*mut c_void; 2] =
        values.each_ref().map(|value| std::ptr::from_ref(value).cast_mut().cast());
    // SAFETY: it has numbers and pointers.
    let mut kernel = unsafe { std::mem::zeroed::<CUDA_KERNEL_NODE_PARAMS>() };
    (kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ) = (1, 1, 1);
    (kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ) = (1, 1, 1);
    (kernel.func, kernel.kernelParams) = (function.cast(), params.as_mut_ptr());
    work(&kernel)
}

fn add_kernel(graph: Handle, function: Handle, behind: &[Handle], values: [u64; 2]) -> Handle {
    let mut node = null_mut();
    with_kernel(function, values, |kernel| {
        ok!(cuGraphAddKernelNode_v2(&raw mut node, graph, behind.as_ptr(), behind.len(), kernel));
    });
    node
}

/// Adds a node that goes by a condition, and returns its graphs.
fn add_conditional(graph: Handle, behind: &[Handle], condition: u64, test: u64, count: u64) -> Vec<Handle> {
    let mut params = [0u64; 32];
    params[0] = 13;
    (params[2], params[3]) = (condition, test | count << 32);
    let mut node = null_mut();
    ok!(cuGraphAddNode_v2(&raw mut node, graph, behind.as_ptr(), null(), behind.len(), &raw mut params));
    let graphs = std::ptr::with_exposed_provenance::<Handle>(params[4] as usize);
    // SAFETY: the driver says that so many are there.
    (0..count as usize).map(|i| unsafe { graphs.add(i).read() }).collect()
}

/// Lets a graph set a number.
fn fill_with(graph: Handle, address: u64, value: u32) {
    let stream = stream(1);
    ok!(cuStreamBeginCaptureToGraph(stream, graph, null(), null(), 0, 0));
    ok!(cuMemsetD32Async(address, value, 1, stream));
    ok!(cuStreamEndCapture(stream, null_mut()));
}

fn instantiate(graph: Handle) -> Handle {
    let mut exec = null_mut();
    ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    exec
}

fn run(exec: Handle) {
    ok!(cuGraphLaunch(exec, null_mut()));
    ok!(cuCtxSynchronize());
}

fn condition(graph: Handle, value: u32, flags: u32) -> u64 {
    let mut condition = 0;
    ok!(cuGraphConditionalHandleCreate(&raw mut condition, graph, null_mut(), value, flags));
    condition
}

#[test]
fn a_kernel_decides_between_two_graphs() {
    start();
    let (graph, data) = (graph(), numbers(2));
    let condition = condition(graph, 0, 0);
    let kernel = add_kernel(graph, function(c"set"), &[], [data, condition]);
    let graphs = add_conditional(graph, &[kernel], condition, IF, 2);
    fill_with(graphs[0], data + 4, 111);
    fill_with(graphs[1], data + 4, 222);
    let exec = instantiate(graph);
    for (given, expected) in [(1, 111), (0, 222), (7, 111)] {
        ok!(cuMemsetD32_v2(data, given, 1));
        run(exec);
        assert_eq!(word(data + 4), expected);
    }
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
    // Its graphs went with it.
    ends!(INVALID_VALUE, cuGraphDestroy(graphs[0]));
}

#[test]
fn a_graph_runs_as_long_as_its_kernels_say() {
    start();
    let (graph, data) = (graph(), numbers(1));
    let condition = condition(graph, 1, 1);
    let graphs = add_conditional(graph, &[], condition, WHILE, 1);
    add_kernel(graphs[0], function(c"count"), &[], [data, condition]);
    let exec = instantiate(graph);
    run(exec);
    assert_eq!(word(data), 10);
    // A launch begins with the default again: once more, and ten minus eleven is not zero.
    ok!(cuMemsetD32_v2(data, 4, 1));
    run(exec);
    assert_eq!(word(data), 10);
}

/// XLA changes kernels within conditional nodes and child graphs of instantiated graphs.
#[test]
fn kernels_within_other_nodes_can_be_changed() {
    start();
    let (graph, child, data) = (graph(), self::graph(), numbers(3));
    let condition = condition(graph, 1, 1);
    let graphs = add_conditional(graph, &[], condition, WHILE, 1);
    let body = add_kernel(graphs[0], function(c"count"), &[], [data, condition]);
    add_kernel(child, function(c"count"), &[], [data + 4, condition]);
    let (_, inner) = add_child(graph, child);
    let exec = instantiate(graph);
    run(exec);
    assert_eq!([0, 4, 8].map(|offset| word(data + offset)), [10, 1, 0]);
    for node in [body, inner] {
        with_kernel(function(c"count"), [data + 8, condition], |kernel| {
            ok!(cuGraphExecKernelNodeSetParams_v2(exec, node, kernel));
        });
    }
    run(exec);
    assert_eq!([0, 4].map(|offset| word(data + offset)), [10, 1]);
    assert!(word(data + 8) >= 10);
    // A node of another graph is none of it.
    let other = add_kernel(self::graph(), function(c"count"), &[], [data, condition]);
    with_kernel(function(c"count"), [data, condition], |kernel| {
        ends!(INVALID_VALUE, cuGraphExecKernelNodeSetParams_v2(exec, other, kernel));
    });
}

/// Moves a graph into a node of another, or adds a copy of it.
fn add_node_of(graph: Handle, child: Handle, ownership: u64) -> u32 {
    let (mut params, mut node) = ([0u64; 32], null_mut());
    (params[0], params[2], params[3]) = (4, child.expose_provenance() as u64, ownership);
    // SAFETY: the pointers are good for the call.
    unsafe { cuGraphAddNode_v2(&raw mut node, graph, null(), null(), 0, &raw mut params) }
}

/// XLA moves a graph into a node of another, and then changes nodes by the handles that they had before.
#[test]
fn a_graph_that_moves_into_another_keeps_its_nodes() {
    start();
    let (whole, child, data) = (graph(), graph(), numbers(2));
    let condition = condition(whole, 0, 1);
    let inner = add_kernel(child, function(c"count"), &[], [data, condition]);
    let body = add_conditional(whole, &[], condition, IF, 2)[1];
    // No graph can be in itself.
    assert_eq!([add_node_of(whole, whole, 1), add_node_of(body, whole, 1)], [INVALID_VALUE; 2]);
    assert_eq!(add_node_of(body, child, 1), 0);
    // It is its owner's from now on.
    assert_eq!([0, 1, 2].map(|ownership| add_node_of(whole, child, ownership)), [INVALID_VALUE; 3]);
    ends!(INVALID_VALUE, cuGraphDestroy(child));
    let (mut none, mut count) = (null_mut(), 0);
    ends!(INVALID_VALUE, cuGraphInstantiateWithFlags(&raw mut none, child, 0));
    let exec = instantiate(whole);
    run(exec);
    with_kernel(function(c"count"), [data + 4, condition], |kernel| {
        ok!(cuGraphExecKernelNodeSetParams_v2(exec, inner, kernel));
    });
    run(exec);
    assert_eq!([0, 4].map(|offset| word(data + offset)), [1, 1]);
    ok!(cuGraphDestroy(whole));
    ends!(INVALID_VALUE, cuGraphGetNodes(child, null_mut(), &raw mut count));
}

/// Adds a graph as a node. Returns the node, and the first of its own copy of the graph.
fn add_child(graph: Handle, child: Handle) -> (Handle, Handle) {
    let (mut node, mut copy, mut inner, mut count) = (null_mut(), null_mut(), null_mut(), 1);
    ok!(cuGraphAddChildGraphNode(&raw mut node, graph, null(), 0, child));
    ok!(cuGraphChildGraphNodeGetGraph(node, &raw mut copy));
    ok!(cuGraphGetNodes(copy, &raw mut inner, &raw mut count));
    (node, inner)
}

#[test]
fn copies_of_a_graph_are_changed_one_by_one() {
    start();
    let (whole, child, data) = (graph(), graph(), numbers(4));
    let condition = condition(whole, 0, 0);
    let set = |exec: Handle, node: Handle, i: u64| {
        with_kernel(function(c"count"), [data + 4 * i, condition], |kernel| {
            ok!(cuGraphExecKernelNodeSetParams_v2(exec, node, kernel));
        });
    };
    let seen = |exec: Handle| {
        ok!(cuMemsetD32_v2(data, 0, 4));
        run(exec);
        [0, 4, 8, 12].map(|offset| word(data + offset))
    };
    add_kernel(child, function(c"count"), &[], [data, condition]);
    let ((_, first), (node, second)) = (add_child(whole, child), add_child(whole, child));
    let exec = instantiate(whole);
    assert_eq!(seen(exec), [2, 0, 0, 0]);
    set(exec, second, 1);
    set(exec, first, 2);
    assert_eq!(seen(exec), [0, 1, 1, 0]);
    set(exec, first, 0);
    assert_eq!(seen(exec), [1, 1, 0, 0]);
    // Everything at once, by another graph of this shape; then one of the old nodes again.
    let other = graph();
    add_child(other, child);
    add_child(other, child);
    let mut info = [0; 4];
    ok!(cuGraphExecUpdate_v2(exec, other, &raw mut info));
    assert_eq!(seen(exec), [2, 0, 0, 0]);
    set(exec, second, 3);
    assert_eq!(seen(exec), [1, 0, 0, 1]);
    ok!(cuGraphExecChildGraphNodeSetParams(exec, node, child));
    assert_eq!(seen(exec), [2, 0, 0, 0]);
    // Not by a graph of another shape.
    add_kernel(child, function(c"count"), &[], [data, condition]);
    ends!(INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(exec, node, child));
}

#[test]
fn a_switch_takes_the_graph_of_its_number_or_none() {
    start();
    let (graph, data) = (graph(), numbers(2));
    let condition = condition(graph, 0, 0);
    let kernel = add_kernel(graph, function(c"set"), &[], [data, condition]);
    let graphs = add_conditional(graph, &[kernel], condition, SWITCH, 3);
    for (i, &graph) in graphs.iter().enumerate() {
        fill_with(graph, data + 4, 10 + i as u32);
    }
    let exec = instantiate(graph);
    for (given, expected) in [(2, 12), (0, 10), (3, 99), (1, 11)] {
        ok!(cuMemsetD32_v2(data, given, 1));
        ok!(cuMemsetD32_v2(data + 4, 99, 1));
        run(exec);
        assert_eq!(word(data + 4), expected);
    }
}

#[test]
fn conditions_nest() {
    start();
    let (graph, data) = (graph(), numbers(2));
    let (outer, inner) = (condition(graph, 1, 1), condition(graph, 1, 1));
    let outer_graph = add_conditional(graph, &[], outer, WHILE, 1)[0];
    let kernel = add_kernel(outer_graph, function(c"count"), &[], [data, outer]);
    let inner_graph = add_conditional(outer_graph, &[kernel], inner, IF, 1)[0];
    add_kernel(inner_graph, function(c"count"), &[], [data + 4, inner]);
    run(instantiate(graph));
    assert_eq!((word(data), word(data + 4)), (10, 10));
}

unsafe extern "C" {
    fn ptxvm_host_work(
        stream: Handle,
        work: unsafe extern "C" fn(*mut c_void) -> u32,
        release: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    ) -> u32;
}

/// What a library of ptxvm's does is a kernel with NVIDIA's: it may be where a host function may not.
#[test]
fn conditional_nodes_have_work_of_libraries() {
    unsafe extern "C" fn more(count: *mut c_void) -> u32 {
        // SAFETY: it is a number that lives as long as the graph.
        unsafe { *count.cast::<u32>() += 1 };
        0
    }
    unsafe extern "C" fn keep(_: *mut c_void) {}
    unsafe extern "C-unwind" fn nothing(_: *mut c_void) {}
    start();
    let (graph, data, mut done) = (graph(), numbers(1), 0u32);
    let condition = condition(graph, 1, 1);
    let within = add_conditional(graph, &[], condition, WHILE, 1)[0];
    let kernel = add_kernel(within, function(c"count"), &[], [data, condition]);
    let stream = stream(1);
    ok!(cuStreamBeginCaptureToGraph(stream, within, &raw const kernel, null(), 1, 0));
    // SAFETY: the functions take the address of the number.
    assert_eq!(unsafe { ptxvm_host_work(stream, more, keep, (&raw mut done).cast()) }, 0);
    ok!(cuStreamEndCapture(stream, null_mut()));
    let exec = instantiate(graph);
    run(exec);
    assert_eq!((word(data), done), (10, 10));
    let within = add_conditional(graph, &[], condition, IF, 1)[0];
    ok!(cuStreamBeginCaptureToGraph(stream, within, null(), null(), 0, 0));
    ok!(cuLaunchHostFunc(stream, Some(nothing), null_mut()));
    ok!(cuStreamEndCapture(stream, null_mut()));
    let mut exec = null_mut();
    ends!(NOT_SUPPORTED, cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
}

/// What a graph has already is no part of a capture, which need not come behind it.
#[test]
fn a_capture_adds_to_a_graph() {
    start();
    let (graph, data) = (graph(), numbers(2));
    let condition = condition(graph, 0, 0);
    add_kernel(graph, function(c"count"), &[], [data, condition]);
    fill_with(graph, data + 4, 7);
    run(instantiate(graph));
    assert_eq!((word(data), word(data + 4)), (1, 7));
}

#[test]
fn bad_conditional_nodes_are_refused() {
    start();
    let (graph, mut handle) = (graph(), 0);
    ends!(INVALID_VALUE, cuGraphConditionalHandleCreate(&raw mut handle, null_mut(), null_mut(), 0, 0));
    ends!(INVALID_VALUE, cuGraphConditionalHandleCreate(null_mut(), graph, null_mut(), 0, 0));
    ends!(INVALID_VALUE, cuGraphConditionalHandleCreate(&raw mut handle, graph, null_mut(), 0, 2));
    let condition = condition(graph, 0, 1);
    let mut node = null_mut();
    for (handle, test, count) in [
        (condition + 4, IF, 1),
        (condition, IF, 0),
        (condition, IF, 3),
        (condition, WHILE, 2),
        (condition, SWITCH, 0),
        (condition, 3, 1),
    ] {
        let mut params = [0u64; 32];
        params[0] = 13;
        (params[2], params[3]) = (handle, test | count << 32);
        ends!(INVALID_VALUE, cuGraphAddNode_v2(&raw mut node, graph, null(), null(), 0, &raw mut params));
    }
    add_conditional(graph, &[], condition, IF, 1);
    let mut copy = null_mut();
    ends!(NOT_SUPPORTED, cuGraphClone(&raw mut copy, graph));
}

/// Adds memory to a graph, and returns its node and address.
fn add_memory(graph: Handle, bytes: usize) -> (Handle, u64) {
    // SAFETY: it has numbers and pointers, and enumerations that have a zero.
    let mut params = unsafe { std::mem::MaybeUninit::<CUDA_MEM_ALLOC_NODE_PARAMS>::zeroed().assume_init() };
    params.bytesize = bytes;
    let mut node = null_mut();
    ok!(cuGraphAddMemAllocNode(&raw mut node, graph, null(), 0, &raw mut params));
    (node, params.dptr)
}

#[test]
fn memory_of_a_graph_is_there_again_at_each_launch() {
    start();
    let graph = graph();
    let (memory, address) = add_memory(graph, 64);
    let kernel = function(c"count");
    let condition = numbers(1);
    let node = add_kernel(graph, kernel, &[memory], [address, condition]);
    let exec = instantiate(graph);
    for _ in 0..3 {
        run(exec);
        assert_eq!(word(address), 1);
        // Given back outside of the graph.
        ok!(cuMemFreeAsync(address, null_mut()));
        ok!(cuCtxSynchronize());
    }
    // And by a node of it.
    let mut free = null_mut();
    let behind = [node];
    ok!(cuGraphAddMemFreeNode(&raw mut free, graph, behind.as_ptr(), 1, address));
    let exec = instantiate(graph);
    run(exec);
    run(exec);
    let mut base = 0;
    ends!(NOT_FOUND, cuMemGetAddressRange_v2(&raw mut base, null_mut(), address));
}

#[test]
fn memory_of_a_captured_graph_is_used_before_it_is_there() {
    start();
    let (stream, mut graph, result) = (stream(1), null_mut(), numbers(1));
    ok!(cuStreamBeginCapture_v2(stream, 0));
    let mut address = 0;
    ok!(cuMemAllocAsync(&raw mut address, 4, stream));
    ok!(cuMemsetD32Async(address, 77, 1, stream));
    ok!(cuMemcpyDtoDAsync_v2(result, address, 4, stream));
    ok!(cuMemFreeAsync(address, stream));
    ok!(cuStreamEndCapture(stream, &raw mut graph));
    let exec = instantiate(graph);
    for _ in 0..2 {
        ok!(cuMemsetD32_v2(result, 0, 1));
        run(exec);
        assert_eq!(word(result), 77);
    }
}
