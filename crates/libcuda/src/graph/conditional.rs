//! Conditional nodes: `if`, `while` and `switch` on a value that kernels set (CUDA C++ Programming Guide, "Conditional Graph Nodes").
//! The value is a word of device memory and its address is the handle: `cudaGraphSetConditional` of a kernel stores to it.
//!
//! A node is one operation that runs the steps of the graph that the value selects.

use std::collections::HashMap;
use std::ffi::c_uint;
use std::sync::{Arc, LazyLock, Mutex, Weak};

use cudarc::driver::sys::{CUcontext, CUgraph};

use super::exec::{Step, perform, steps};
use super::{GRAPHS, Graph, graph, lock};
use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::fill::Fill;
use crate::handles::handle_of;
use crate::memory::{Kind, allocate, free};
use crate::pointers::{InOut, Out};
use crate::{INVALID, Status};

/// A value that conditional nodes test.
pub struct Condition {
    address: u64,
    /// Its value at the start of each launch; `None`: it keeps its value.
    default: Option<u32>,
}

impl Condition {
    fn value(&self) -> Result<u32, Status> {
        let mut bytes = [0; 4];
        let known = driver()?.machine.read(self.address, &mut bytes);
        known.map_err(|_| Status::CUDA_ERROR_ILLEGAL_ADDRESS)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The fill that sets the default value, if there is one.
    pub fn reset(&self) -> Option<Fill> {
        let value = self.default?;
        Some(Fill { address: self.address, pitch: 0, element: 4, value, width: 1, height: 1 })
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        // Its context may have freed it already.
        let _ = free(self.address);
    }
}

/// By handle. The graph for which a condition was created keeps it alive, and so do its nodes.
static CONDITIONS: LazyLock<Mutex<HashMap<u64, Weak<Condition>>>> = LazyLock::new(Mutex::default);

/// How a node uses the value (`CUgraphConditionalNodeType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Runs the first graph if the value is not zero, and the second one, if there is one, if it is zero.
    If,
    /// Runs the graph while the value is not zero.
    While,
    /// Runs the graph with this index, if there is one.
    Switch,
}

impl Test {
    /// The index of the graph to run.
    fn choose(self, value: u32) -> usize {
        match self {
            Test::If | Test::While => usize::from(value == 0),
            Test::Switch => value as usize,
        }
    }
}

/// A conditional node.
pub struct Conditional {
    pub condition: Arc<Condition>,
    pub test: Test,
    pub graphs: Vec<Arc<Graph>>,
    /// Handles of its graphs, which the program reads in place.
    handles: Vec<CUgraph>,
}

// SAFETY: handles are only returned to the program.
unsafe impl Send for Conditional {}
// SAFETY: as above.
unsafe impl Sync for Conditional {}

impl Conditional {
    /// Invalidates the handles of its graphs.
    pub fn destroy(&self) {
        for graph in &self.graphs {
            GRAPHS.remove::<()>(handle_of(graph));
            graph.destroy();
        }
    }
}

/// An instantiated conditional node.
#[derive(Clone)]
pub struct Choice {
    pub condition: Arc<Condition>,
    pub test: Test,
    pub graphs: Vec<Vec<Step>>,
}

impl Choice {
    /// Instantiates a node.
    ///
    /// # Errors
    /// If the edges of a graph have a cycle, or a graph has nodes that are not allowed there.
    pub fn of(node: &Conditional) -> Result<Choice, Status> {
        let graphs = node.graphs.iter().map(|graph| steps(graph)).collect::<Result<Vec<_>, _>>()?;
        if graphs.iter().flatten().any(|step| !step.may_be_conditional()) {
            return Err(Status::CUDA_ERROR_NOT_SUPPORTED);
        }
        Ok(Choice { condition: Arc::clone(&node.condition), test: node.test, graphs })
    }

    /// Runs what the value selects now.
    ///
    /// # Errors
    /// If something in it fails.
    pub fn perform(&self, context: &Context) -> Result<(), Status> {
        loop {
            let chosen = self.test.choose(self.condition.value()?);
            let Some(steps) = self.graphs.get(chosen) else { return Ok(()) };
            perform(steps, context)?;
            context.check()?;
            if self.test != Test::While {
                return Ok(());
            }
        }
    }
}

/// `CUDA_CONDITIONAL_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Description {
    handle: u64,
    test: u32,
    count: u32,
    graphs: *const CUgraph,
    context: CUcontext,
}

/// Creates a node from a description, and writes the address of its graphs into it.
pub fn conditional(description: InOut<Description>) -> Result<Arc<Conditional>, Status> {
    let described = description.read()?;
    let (test, allowed) = match described.test {
        0 => (Test::If, 1..=2),
        1 => (Test::While, 1..=1),
        2 => (Test::Switch, 1..=u32::from(u16::MAX)),
        _ => return Err(INVALID),
    };
    let condition = lock(&CONDITIONS).get(&described.handle).and_then(Weak::upgrade).ok_or(INVALID)?;
    if !allowed.contains(&described.count) {
        return Err(INVALID);
    }
    let graphs: Vec<_> = (0..described.count).map(|_| Graph::new()).collect();
    for graph in &graphs {
        GRAPHS.insert::<()>(Arc::clone(graph));
    }
    let handles = graphs.iter().map(handle_of).collect();
    let node = Conditional { condition, test, graphs, handles };
    description.write(Description { graphs: node.handles.as_ptr(), ..described })?;
    Ok(Arc::new(node))
}

api! { API:
    /// Makes a value that conditional nodes of a graph go by.
    cuGraphConditionalHandleCreate 12030 "cuGraphConditionalHandleCreate" (result: Out<u64>, of: CUgraph, context: CUcontext, value: c_uint, flags: c_uint) {
        let graph = graph(of)?;
        let context = if context.is_null() { Context::current()? } else { crate::context::context(context)? };
        if result.is_null() || flags > 1 {
            return Err(INVALID);
        }
        let address = allocate(&context, 4, Kind::Internal, "cuGraphConditionalHandleCreate")?;
        let condition = Arc::new(Condition { address, default: (flags == 1).then_some(value) });
        let mut conditions = lock(&CONDITIONS);
        conditions.retain(|_, condition| condition.strong_count() > 0);
        conditions.insert(address, Arc::downgrade(&condition));
        drop(conditions);
        lock(&graph.conditions).push(condition);
        result.write(address)
    }
}
