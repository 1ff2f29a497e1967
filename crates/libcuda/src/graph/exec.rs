//! Executable graphs.

use std::ffi::{c_char, c_uint, c_ulonglong};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

use caller::structures::BoxCopy;
use cudarc::driver::sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUevent,
    CUgraph, CUgraphExec, CUgraphExecUpdateResultInfo, CUgraphNode, CUgraphNodeParams, CUstream,
};

use super::nodes::{KernelNode, Newer, body, kernel, kernel_2};
use super::{Body, Choice, Graph, Node, copy, fill, free_graph, graph, lock, node};
use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::handles::{Handles, handle_of};
use crate::operation::Operation;
use crate::pointers::{In, InOut, Out, Text, required};
use crate::stream::{HostFunction, Stream};
use crate::{INVALID, Status};

static EXECS: Handles<Exec> = Handles::new();

/// A graph that can be launched.
struct Exec {
    steps: Mutex<Vec<Step>>,
    flags: u64,
    id: u64,
}

/// Collects every conditional node among steps.
fn choices<'s>(steps: &'s [Step], found: &mut Vec<&'s Choice>) {
    for step in steps {
        match &step.what {
            What::Node(_) => {}
            What::Child(steps) => choices(steps, found),
            What::Choice(choice) => {
                found.push(choice);
                choice.graphs.iter().for_each(|steps| choices(steps, found));
            }
        }
    }
}

/// An instantiated node. Steps are in topological order.
#[derive(Clone)]
pub struct Step {
    /// The number of its graph: copies of a graph have nodes with the same numbers.
    graph: u64,
    /// The number of its node.
    node: u64,
    /// Whether it runs: the program may disable it.
    enabled: bool,
    what: What,
}

#[derive(Clone)]
enum What {
    Node(Body),
    Child(Vec<Step>),
    Choice(Box<Choice>),
}

impl Step {
    /// Whether it may be in the graph of a conditional node.
    pub fn may_be_conditional(&self) -> bool {
        match &self.what {
            // Work of a library is kernels, with NVIDIA's.
            What::Node(Body::Kernel(_) | Body::Work(_) | Body::Copy(..) | Body::Fill(_) | Body::Empty) => {
                true
            }
            What::Node(_) => false,
            What::Child(steps) => steps.iter().all(Step::may_be_conditional),
            What::Choice(_) => true,
        }
    }
}

/// The nodes of a graph, sorted.
pub fn steps(graph: &Graph) -> Result<Vec<Step>, Status> {
    let step = |node: &Arc<Node>| {
        let what = match node.body() {
            Body::Child(child) => What::Child(steps(&child)?),
            Body::Conditional(node) => What::Choice(Box::new(Choice::of(&node)?)),
            other => What::Node(other),
        };
        Ok(Step { graph: graph.id, node: node.id, enabled: true, what })
    };
    graph.sorted()?.iter().map(step).collect()
}

/// The step of a node, possibly in a child graph, at any depth.
fn find(steps: &mut [Step], graph: u64, node: u64) -> Option<&mut Step> {
    for step in steps {
        if (step.graph, step.node) == (graph, node) {
            return Some(step);
        }
        let within = match &mut step.what {
            What::Node(_) => None,
            What::Child(steps) => find(steps, graph, node),
            What::Choice(choice) => choice.graphs.iter_mut().find_map(|steps| find(steps, graph, node)),
        };
        if within.is_some() {
            return within;
        }
    }
    None
}

/// Replaces the bodies of steps by those of others with the same shape. Later changes still name the nodes that the steps were
/// instantiated from.
fn adopt(steps: &mut [Step], others: Vec<Step>) {
    for (step, other) in steps.iter_mut().zip(others) {
        match (&mut step.what, other.what) {
            (What::Child(steps), What::Child(others)) => adopt(steps, others),
            (What::Choice(choice), What::Choice(other)) => {
                choice.condition = other.condition;
                for (steps, others) in choice.graphs.iter_mut().zip(other.graphs) {
                    adopt(steps, others);
                }
            }
            (what, other) => *what = other,
        }
    }
}

/// Runs steps in a stream, one after the other.
fn launch(steps: &[Step], stream: &Stream) -> Result<(), Status> {
    for step in steps.iter().filter(|step| step.enabled) {
        let body = match &step.what {
            What::Child(steps) => {
                launch(steps, stream)?;
                continue;
            }
            What::Choice(choice) => {
                stream.submit(Operation::Choice(choice.clone()))?;
                continue;
            }
            What::Node(body) => body,
        };
        match body {
            Body::Record(event) => event.record(stream, true)?,
            Body::Wait(event) => stream.wait(event)?,
            other => {
                if let Some(operation) = operation(other) {
                    stream.submit(operation)?;
                }
            }
        }
    }
    Ok(())
}

/// The operation of a node that does not concern other streams.
fn operation(body: &Body) -> Option<Operation> {
    Some(match body.clone() {
        Body::Kernel(launch) => Operation::Kernel(Box::new(launch)),
        Body::Copy(copy, _) => Operation::Copy(Box::new(copy)),
        Body::Fill(fill) => Operation::Fill(fill),
        Body::Host(function) => Operation::Host(function),
        Body::Work(work) => Operation::Work(work),
        Body::Alloc(memory) => Operation::Allocate(memory),
        Body::Free(address) => Operation::Free(address),
        Body::Empty | Body::Record(_) | Body::Wait(_) | Body::Child(_) | Body::Conditional(_) => return None,
    })
}

/// Runs steps now, one after the other.
pub fn perform(steps: &[Step], context: &Context) -> Result<(), Status> {
    for step in steps.iter().filter(|step| step.enabled) {
        match &step.what {
            What::Child(steps) => perform(steps, context)?,
            What::Choice(choice) => choice.perform(context)?,
            What::Node(body) => operation(body).map_or(Ok(()), |operation| operation.perform(context))?,
        }
    }
    Ok(())
}

fn exec(handle: CUgraphExec) -> Result<Arc<Exec>, Status> {
    driver()?;
    EXECS.get(handle).ok_or(INVALID)
}

/// Of `CUgraphInstantiate_flags`: all flags; and automatic freeing together with device launch.
const ALL_FLAGS: u64 = 15;
const EXCLUSIVE: u64 = 1 | 4;

/// How a graph is instantiated, and how that went (`CUDA_GRAPH_INSTANTIATE_PARAMS`). The program sets no results.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instantiation {
    flags: u64,
    stream: MaybeUninit<CUstream>,
    failed: MaybeUninit<CUgraphNode>,
    result: MaybeUninit<u32>,
    _pad: MaybeUninit<u32>,
}

const _: () = assert!(size_of::<Instantiation>() == size_of::<CUDA_GRAPH_INSTANTIATE_PARAMS>());

/// `CUDA_GRAPH_INSTANTIATE_SUCCESS`
const INSTANTIATED: u32 = 0;

fn instantiate(result: Out<CUgraphExec>, of: CUgraph, flags: u64) -> Result<(), Status> {
    // Graphs that kernels launch cannot free memory automatically.
    if flags > ALL_FLAGS || flags & EXCLUSIVE == EXCLUSIVE {
        return Err(INVALID);
    }
    let exec = Arc::new(Exec { steps: Mutex::new(steps(&*free_graph(of)?)?), flags, id: super::number() });
    EXECS.give(result, exec)
}

/// Changes the body of a step. The kind must stay the same.
fn change(of: CUgraphExec, handle: CUgraphNode, body: Body) -> Result<(), Status> {
    with_step(of, handle, |step| {
        match (&mut step.what, body) {
            (What::Child(old), Body::Child(graph)) => {
                let new = steps(&graph)?;
                compare(old, &new).map_err(|_| INVALID)?;
                adopt(old, new);
            }
            (What::Node(old), body) => old.set_params(body)?,
            _ => return Err(INVALID),
        }
        Ok(())
    })
}

/// Runs `work` on the step of a node.
fn with_step<T>(
    of: CUgraphExec,
    handle: CUgraphNode,
    work: impl FnOnce(&mut Step) -> Result<T, Status>,
) -> Result<T, Status> {
    let (exec, node) = (exec(of)?, node(handle)?);
    let graph = node.graph()?.id;
    let mut steps = lock(&exec.steps);
    // A node of a clone also names the step of its original.
    let known = find(&mut steps, graph, node.id).is_some();
    let step = match known {
        true => find(&mut steps, graph, node.id),
        false => steps.iter_mut().find(|step| step.node == node.id),
    };
    work(step.ok_or(INVALID)?)
}

/// Compares the kinds of steps in order. Fails with the first node that differs, if the numbers of steps are equal.
fn compare(old: &[Step], new: &[Step]) -> Result<(), Option<u64>> {
    if old.len() != new.len() {
        return Err(None);
    }
    for (old, new) in old.iter().zip(new) {
        match (&old.what, &new.what) {
            (What::Child(old), What::Child(new)) => compare(old, new)?,
            (What::Choice(old), What::Choice(new))
                if old.test == new.test && old.graphs.len() == new.graphs.len() =>
            {
                for (old, new) in old.graphs.iter().zip(&new.graphs) {
                    compare(old, new)?;
                }
            }
            (What::Node(old), What::Node(new)) if old.kind() == new.kind() => {}
            _ => return Err(Some(new.node)),
        }
    }
    Ok(())
}

/// Results of an update (`CUgraphExecUpdateResult`).
const UPDATED: u32 = 0;
const TOPOLOGY_CHANGED: u32 = 2;
const NODE_TYPE_CHANGED: u32 = 3;

/// How an update went, and the nodes that kept it from succeeding (`CUgraphExecUpdateResultInfo`).
#[repr(C)]
struct Update {
    result: u32,
    _pad: u32,
    nodes: [CUgraphNode; 2],
}

const _: () = assert!(size_of::<Update>() == size_of::<CUgraphExecUpdateResultInfo>());

/// Gives the executable graph the bodies of another graph with the same shape. Otherwise returns the reason and the node.
fn update(of: CUgraphExec, with: CUgraph) -> Result<Result<(), (u32, CUgraphNode)>, Status> {
    let (exec, graph) = (exec(of)?, free_graph(with)?);
    let new = steps(&graph)?;
    let mut old = lock(&exec.steps);
    if let Err(node) = compare(&old, &new) {
        let id = node.unwrap_or(0);
        let node = graph.nodes().into_iter().find(|node| node.id == id);
        let why = if node.is_some() { NODE_TYPE_CHANGED } else { TOPOLOGY_CHANGED };
        return Ok(Err((why, node.map_or(std::ptr::null_mut(), |node| handle_of(&node)))));
    }
    adopt(&mut old, new);
    Ok(Ok(()))
}

/// The graph in the DOT language of Graphviz.
fn dot(graph: &Graph) -> String {
    let label = |node: &Arc<Node>| match node.body() {
        Body::Kernel(launch) => launch.function.name().to_owned(),
        body => body.kind().1.to_owned(),
    };
    let nodes = graph.nodes();
    let nodes = nodes.iter().map(|node| format!("    n{} [label={:?}];\n", node.id, label(node)));
    let edges = graph.edges();
    let edges = edges.iter().map(|(from, to)| format!("    n{} -> n{};\n", from.id, to.id));
    format!("digraph {{\n{}}}\n", nodes.chain(edges).collect::<String>())
}

api! { API:
    /// Writes a graph to a file, in the language of Graphviz.
    cuGraphDebugDotPrint 11030 "cuGraphDebugDotPrint" (of: CUgraph, path: Text, _flags: c_uint) {
        let graph = graph(of)?;
        let path = std::str::from_utf8(path.bytes()?).map_err(|_| INVALID)?;
        std::fs::write(path, dot(&graph)).map_err(|_| Status::CUDA_ERROR_OPERATING_SYSTEM)
    }
    /// Makes a graph ready to be launched.
    cuGraphInstantiate 10000 "cuGraphInstantiate", 11000 "cuGraphInstantiate_v2"
        (result: Out<CUgraphExec>, of: CUgraph, _error: *mut CUgraphNode, _log: *mut c_char, _bytes: usize) {
        instantiate(result, of, 0)
    }
    /// Makes a graph ready to be launched.
    cuGraphInstantiateWithFlags 11040 "cuGraphInstantiateWithFlags" (result: Out<CUgraphExec>, of: CUgraph, flags: c_ulonglong) {
        instantiate(result, of, flags)
    }
    /// Makes a graph ready to be launched, and reports how that went.
    cuGraphInstantiateWithParams 12000 "cuGraphInstantiateWithParams" / 12000 "cuGraphInstantiateWithParams_ptsz" (result: Out<CUgraphExec>, of: CUgraph, params: InOut<Instantiation>) {
        let given = params.read()?;
        instantiate(result, of, given.flags)?;
        let (failed, result) = (MaybeUninit::new(std::ptr::null_mut()), MaybeUninit::new(INSTANTIATED));
        params.write(Instantiation { failed, result, ..given })
    }
    /// Destroys what can be launched; launches that have begun go on.
    cuGraphExecDestroy 10000 "cuGraphExecDestroy" (handle: CUgraphExec) {
        driver()?;
        EXECS.remove(handle).map(drop).ok_or(INVALID)
    }
    /// The flags that it was instantiated with.
    cuGraphExecGetFlags 12000 "cuGraphExecGetFlags" (handle: CUgraphExec, flags: Out<u64>) {
        flags.write(exec(handle)?.flags)
    }
    /// A number that no other has.
    cuGraphExecGetId 13010 "cuGraphExecGetId" (handle: CUgraphExec, id: Out<c_uint>) {
        id.write(exec(handle)?.id as c_uint)
    }
    /// Launches a graph in a stream.
    cuGraphLaunch 10000 "cuGraphLaunch" / 10000 "cuGraphLaunch_ptsz" (handle: CUgraphExec, of: CUstream) |default| {
        let (exec, stream) = (exec(handle)?, default.stream(of)?);
        let steps = lock(&exec.steps).clone();
        let mut found = Vec::new();
        choices(&steps, &mut found);
        for fill in found.iter().filter_map(|choice| choice.condition.reset()) {
            stream.submit(Operation::Fill(fill))?;
        }
        launch(&steps, &stream)
    }
    /// Moves a graph to the device beforehand, where it is.
    cuGraphUpload 11010 "cuGraphUpload" / 11010 "cuGraphUpload_ptsz" (handle: CUgraphExec, of: CUstream) |default| {
        exec(handle)?;
        default.stream(of).map(drop)
    }
    /// Changes what a kernel node does.
    cuGraphExecKernelNodeSetParams 10010 "cuGraphExecKernelNodeSetParams" (handle: CUgraphExec, of: CUgraphNode, description: In<KernelNode>) {
        change(handle, of, Body::Kernel(kernel(description.read()?)?))
    }
    /// Changes what a kernel node does.
    cuGraphExecKernelNodeSetParams 12000 "cuGraphExecKernelNodeSetParams_v2" (handle: CUgraphExec, of: CUgraphNode, description: In<Newer<KernelNode>>) {
        change(handle, of, Body::Kernel(kernel_2(description.read()?)?))
    }
    /// Changes what a copy node does.
    cuGraphExecMemcpyNodeSetParams 10020 "cuGraphExecMemcpyNodeSetParams" (handle: CUgraphExec, of: CUgraphNode, described: In<BoxCopy>, _context: CUcontext) {
        change(handle, of, copy(described)?)
    }
    /// Changes what a fill node does.
    cuGraphExecMemsetNodeSetParams 10020 "cuGraphExecMemsetNodeSetParams" (handle: CUgraphExec, of: CUgraphNode, params: In<CUDA_MEMSET_NODE_PARAMS>, _context: CUcontext) {
        change(handle, of, Body::Fill(fill(params)?))
    }
    /// Changes what a host node calls.
    cuGraphExecHostNodeSetParams 10020 "cuGraphExecHostNodeSetParams" (handle: CUgraphExec, of: CUgraphNode, params: In<CUDA_HOST_NODE_PARAMS>) {
        let host = params.read()?;
        change(handle, of, Body::Host(HostFunction::new(host.fn_, host.userData)?))
    }
    /// Changes the graph of a node.
    cuGraphExecChildGraphNodeSetParams 11010 "cuGraphExecChildGraphNodeSetParams" (handle: CUgraphExec, of: CUgraphNode, child: CUgraph) {
        change(handle, of, Body::Child(graph(child)?))
    }
    /// Changes the event that a node records.
    cuGraphExecEventRecordNodeSetEvent 11010 "cuGraphExecEventRecordNodeSetEvent" (handle: CUgraphExec, of: CUgraphNode, event: CUevent) {
        change(handle, of, Body::Record(crate::event::event(event)?))
    }
    /// Changes the event that a node waits for.
    cuGraphExecEventWaitNodeSetEvent 11010 "cuGraphExecEventWaitNodeSetEvent" (handle: CUgraphExec, of: CUgraphNode, event: CUevent) {
        change(handle, of, Body::Wait(crate::event::event(event)?))
    }
    /// Changes what a node of any kind does.
    cuGraphExecNodeSetParams 12020 "cuGraphExecNodeSetParams" (handle: CUgraphExec, of: CUgraphNode, description: InOut<CUgraphNodeParams>) {
        change(handle, of, body(description)?)
    }
    /// Switches a node on or off.
    cuGraphNodeSetEnabled 11060 "cuGraphNodeSetEnabled" (handle: CUgraphExec, of: CUgraphNode, enabled: c_uint) {
        with_step(handle, of, |step| {
            match &step.what {
                What::Node(Body::Kernel(_) | Body::Copy(..) | Body::Fill(_)) => step.enabled = enabled != 0,
                _ => return Err(INVALID),
            }
            Ok(())
        })
    }
    /// Whether a node is switched on.
    cuGraphNodeGetEnabled 11060 "cuGraphNodeGetEnabled" (handle: CUgraphExec, of: CUgraphNode, enabled: Out<c_uint>) {
        enabled.write(with_step(handle, of, |step| Ok(step.enabled.into()))?)
    }
    /// Changes all nodes to what those of another graph of the same shape do.
    cuGraphExecUpdate 10020 "cuGraphExecUpdate" (handle: CUgraphExec, with: CUgraph, node: Out<CUgraphNode>, result: Out<c_uint>) {
        let outcome = update(handle, with)?;
        let (why, which) = outcome.err().unwrap_or((UPDATED, std::ptr::null_mut()));
        node.write_if_wanted(which);
        result.write(why)?;
        if why == UPDATED { Ok(()) } else { Err(Status::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) }
    }
    /// Changes all nodes to what those of another graph of the same shape do.
    cuGraphExecUpdate 12000 "cuGraphExecUpdate_v2" (handle: CUgraphExec, with: CUgraph, info: Out<Update>) {
        required(info.pointer())?;
        let outcome = update(handle, with)?;
        let (why, node) = outcome.err().unwrap_or((UPDATED, std::ptr::null_mut()));
        info.write(Update { result: why, _pad: 0, nodes: [node, std::ptr::null_mut()] })?;
        if why == UPDATED { Ok(()) } else { Err(Status::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) }
    }
}
