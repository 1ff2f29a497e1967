//! Graphs: operations with dependencies, defined once and launched often (CUDA C++ Programming Guide, "CUDA Graphs").

mod capture;
mod conditional;
mod edges;
mod exec;
mod memory;
mod nodes;
mod user_objects;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use caller::structures::BoxCopy;
use cudarc::driver::sys::{CUDA_MEMSET_NODE_PARAMS, CUgraph, CUgraphNode};

use crate::api::Function;
use crate::copy::{Copy, copy_3d};
use crate::driver::driver;
use crate::event::Event;
use crate::fill::Fill;
use crate::handles::{Handles, handle_of};
use crate::host_work::HostWork;
use crate::launch::KernelLaunch;
use crate::lock;
use crate::pointers::In;
use crate::stream::HostFunction;
use crate::{INVALID, Status};

pub use capture::{CaptureState, Captured};
pub use conditional::Choice;
pub use memory::GraphMemory;

/// The API functions of this module.
pub static API: &[&[&[Function]]] =
    &[capture::API, conditional::API, edges::API, exec::API, nodes::API, user_objects::API];

/// The graphs and nodes that have not been destroyed.
static GRAPHS: Handles<Graph> = Handles::new();
static NODES: Handles<Node> = Handles::new();

/// What a node does.
#[derive(Clone)]
pub enum Body {
    /// Runs a kernel.
    Kernel(KernelLaunch),
    /// Copies memory; with the program's description, if there is one.
    Copy(Copy, Option<Box<BoxCopy>>),
    /// Fills memory.
    Fill(Fill),
    /// Calls a function of the program.
    Host(HostFunction),
    /// Has a library of ours compute on device memory.
    Work(Arc<HostWork>),
    /// Runs another graph.
    Child(Arc<Graph>),
    /// Does nothing.
    Empty,
    /// Waits for an event.
    Wait(Arc<Event>),
    /// Records an event.
    Record(Arc<Event>),
    /// Allocates memory of the graph; its address never changes.
    Alloc(Arc<GraphMemory>),
    /// Frees such memory.
    Free(u64),
    /// Runs other graphs, depending on a value that kernels set.
    Conditional(Arc<conditional::Conditional>),
}

// SAFETY: pointers of the program in descriptions are only returned to it.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

impl Body {
    /// The number of its kind (`CUgraphNodeType`), and a name for people.
    fn kind(&self) -> (u32, &'static str) {
        match self {
            Body::Kernel(_) => (0, "kernel"),
            Body::Copy(..) => (1, "memcpy"),
            Body::Fill(_) => (2, "memset"),
            Body::Host(_) | Body::Work(_) => (3, "host"),
            Body::Child(_) => (4, "graph"),
            Body::Empty => (5, "empty"),
            Body::Wait(_) => (6, "wait"),
            Body::Record(_) => (7, "record"),
            Body::Alloc(_) => (10, "alloc"),
            Body::Free(_) => (11, "free"),
            Body::Conditional(_) => (13, "conditional"),
        }
    }

    /// Takes the parameters of another body of the same kind. A kernel's attributes stay, because they have their own functions.
    fn set_params(&mut self, mut new: Body) -> Result<(), Status> {
        if self.kind() != new.kind() {
            return Err(INVALID);
        }
        if let (Body::Kernel(old), Body::Kernel(new)) = (&*self, &mut new) {
            (new.cooperative, new.cluster) = (old.cooperative, old.cluster);
        }
        *self = new;
        Ok(())
    }
}

/// A node of a graph.
pub struct Node {
    graph: Weak<Graph>,
    /// A number that no other node has, except for its counterparts in clones of the graph, which are found by it.
    id: u64,
    body: Mutex<Body>,
    /// The kernel parameters that `cuGraphKernelNodeGetParams` returned: they must stay valid.
    params: Mutex<Option<Box<nodes::KernelParams>>>,
}

impl Node {
    fn body(&self) -> Body {
        lock(&self.body).clone()
    }

    fn set_body(&self, body: Body) {
        *lock(&self.body) = body;
    }

    /// Changes its parameters. The kind must stay the same.
    fn set_params(&self, new: Body) -> Result<(), Status> {
        lock(&self.body).set_params(new)
    }

    fn graph(&self) -> Result<Arc<Graph>, Status> {
        self.graph.upgrade().ok_or(INVALID)
    }
}

/// A graph.
pub struct Graph {
    /// A number that no other graph has had.
    id: u64,
    content: Mutex<Content>,
    /// The user objects that it retains, and its number of references to each.
    objects: Mutex<Vec<(Arc<user_objects::UserObject>, u32)>>,
    /// The values that were created for its conditional nodes.
    conditions: Mutex<Vec<Arc<conditional::Condition>>>,
    /// Whether it was moved into a node of another graph, which owns it since.
    is_moved: AtomicBool,
}

/// The nodes in order of creation, and the edges between them by node number.
#[derive(Default)]
struct Content {
    nodes: Vec<Arc<Node>>,
    edges: BTreeSet<(u64, u64)>,
}

fn number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

impl Graph {
    fn new() -> Arc<Graph> {
        Arc::new(Graph {
            id: number(),
            content: Mutex::default(),
            objects: Mutex::default(),
            conditions: Mutex::default(),
            is_moved: AtomicBool::new(false),
        })
    }

    /// Adds a node that depends on others.
    ///
    /// # Errors
    /// If one of them is not in this graph, or occurs twice.
    pub fn add(self: &Arc<Graph>, body: Body, behind: &[Arc<Node>]) -> Result<Arc<Node>, Status> {
        self.add_as(number(), body, behind)
    }

    fn add_as(self: &Arc<Graph>, id: u64, body: Body, behind: &[Arc<Node>]) -> Result<Arc<Node>, Status> {
        let graph = Arc::downgrade(self);
        let node = Arc::new(Node { graph, id, body: Mutex::new(body), params: Mutex::default() });
        let mut content = lock(&self.content);
        for other in behind {
            if !content.nodes.iter().any(|node| Arc::ptr_eq(node, other))
                || !content.edges.insert((other.id, id))
            {
                content.edges.retain(|(_, to)| *to != id);
                return Err(INVALID);
            }
        }
        content.nodes.push(Arc::clone(&node));
        NODES.insert::<()>(Arc::clone(&node));
        Ok(node)
    }

    /// Whether another graph is this one, or in a node of it, at any depth.
    fn contains(&self, other: &Graph) -> bool {
        let is_within = |node: &Arc<Node>| match node.body() {
            Body::Child(graph) => graph.contains(other),
            Body::Conditional(node) => node.graphs.iter().any(|graph| graph.contains(other)),
            _ => false,
        };
        std::ptr::eq(self, other) || self.nodes().iter().any(is_within)
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        lock(&self.content).nodes.clone()
    }

    /// The edges, as pairs of nodes.
    fn edges(&self) -> Vec<(Arc<Node>, Arc<Node>)> {
        let content = lock(&self.content);
        let node = |id: u64| content.nodes.iter().find(|node| node.id == id).cloned();
        content.edges.iter().filter_map(|&(from, to)| Some((node(from)?, node(to)?))).collect()
    }

    /// A graph with the same nodes and edges.
    fn copy(&self) -> Result<Arc<Graph>, Status> {
        let copy = Graph::new();
        for node in self.nodes() {
            let body = match node.body() {
                Body::Child(graph) => Body::Child(graph.copy()?),
                // The manual: "The graph cannot be cloned."
                Body::Conditional(_) => return Err(Status::CUDA_ERROR_NOT_SUPPORTED),
                other => other,
            };
            copy.add_as(node.id, body, &[])?;
        }
        lock(&copy.content).edges = lock(&self.content).edges.clone();
        Ok(copy)
    }

    /// The nodes in topological order. Among those that could come next, the one added first comes first.
    ///
    /// # Errors
    /// If the edges have a cycle.
    fn sorted(&self) -> Result<Vec<Arc<Node>>, Status> {
        let content = lock(&self.content);
        let mut waits_for: Vec<BTreeSet<u64>> = content
            .nodes
            .iter()
            .map(|node| {
                content.edges.iter().filter(|(_, to)| *to == node.id).map(|(from, _)| *from).collect()
            })
            .collect();
        let mut sorted: Vec<Arc<Node>> = Vec::new();
        let mut done = vec![false; content.nodes.len()];
        while sorted.len() < content.nodes.len() {
            let next = (0..content.nodes.len()).find(|&i| !done[i] && waits_for[i].is_empty());
            let next = next.ok_or(INVALID)?;
            done[next] = true;
            let id = content.nodes[next].id;
            for set in &mut waits_for {
                set.remove(&id);
            }
            sorted.push(Arc::clone(&content.nodes[next]));
        }
        Ok(sorted)
    }

    /// Invalidates the handles of its nodes, and frees their memory.
    fn destroy(&self) {
        for node in lock(&self.content).nodes.drain(..) {
            NODES.remove::<()>(handle_of(&node));
            match node.body() {
                Body::Child(graph) => {
                    GRAPHS.remove::<()>(handle_of(&graph));
                    graph.destroy();
                }
                Body::Conditional(node) => node.destroy(),
                _ => {}
            }
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.release_all_objects();
        for node in &self.content.get_mut().unwrap_or_else(PoisonError::into_inner).nodes {
            NODES.remove::<()>(handle_of(node));
        }
    }
}

fn graph(handle: CUgraph) -> Result<Arc<Graph>, Status> {
    driver()?;
    GRAPHS.get(handle).ok_or(INVALID)
}

/// A graph that no node of another graph owns.
fn free_graph(handle: CUgraph) -> Result<Arc<Graph>, Status> {
    let graph = graph(handle)?;
    if graph.is_moved.load(Ordering::Acquire) { Err(INVALID) } else { Ok(graph) }
}

fn node(handle: CUgraphNode) -> Result<Arc<Node>, Status> {
    driver()?;
    NODES.get(handle).ok_or(INVALID)
}

/// The nodes that the program passes.
fn nodes_at(handles: In<CUgraphNode>, count: usize) -> Result<Vec<Arc<Node>>, Status> {
    handles.read_all(count)?.into_iter().map(node).collect()
}

/// The copy that the program describes.
fn copy(described: In<BoxCopy>) -> Result<Body, Status> {
    Ok(Body::Copy(copy_3d(described)?, Some(Box::new(described.read()?))))
}

/// The fill that the program describes.
fn fill(params: In<CUDA_MEMSET_NODE_PARAMS>) -> Result<Fill, Status> {
    let params = params.read()?;
    if !matches!(params.elementSize, 1 | 2 | 4) || params.width == 0 || params.height == 0 {
        return Err(INVALID);
    }
    let fill = Fill {
        address: params.dst,
        pitch: params.pitch as u64,
        element: params.elementSize.into(),
        value: params.value,
        width: params.width as u64,
        height: params.height as u64,
    };
    fill.check()?;
    Ok(fill)
}
