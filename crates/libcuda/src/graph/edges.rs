//! Edges of graphs.

use std::sync::Arc;

use cudarc::driver::sys::{CUgraph, CUgraphEdgeData, CUgraphNode};

use super::{Node, graph, lock, node, nodes_at};
use crate::api::api;
use crate::handles::handle_of;
use crate::pointers::{In, InOut, Out};
use crate::{INVALID, Status};

/// Writes as many nodes as the program has room for, and nulls if it has room for more. Returns how many it wrote: without places, how
/// many there are.
fn fill(nodes: &[Arc<Node>], places: Out<CUgraphNode>, capacity: usize) -> Result<usize, Status> {
    if places.is_null() {
        return Ok(nodes.len());
    }
    for i in 0..capacity {
        places.write_at(i, nodes.get(i).map_or(std::ptr::null_mut(), handle_of))?;
    }
    Ok(nodes.len().min(capacity))
}

/// Returns a list: its length, and as many entries as the program has room for.
fn hand_out(nodes: &[Arc<Node>], places: Out<CUgraphNode>, count: InOut<usize>) -> Result<(), Status> {
    count.write(fill(nodes, places, count.read()?)?)
}

fn edges(
    of: CUgraph,
    from: Out<CUgraphNode>,
    to: Out<CUgraphNode>,
    count: InOut<usize>,
) -> Result<(), Status> {
    let (starts, ends): (Vec<_>, Vec<_>) = graph(of)?.edges().into_iter().unzip();
    if from.is_null() != to.is_null() {
        return Err(INVALID);
    }
    let capacity = count.read()?;
    fill(&starts, from, capacity)?;
    count.write(fill(&ends, to, capacity)?)
}

/// Writes the data of edges that were handed out: zeros.
fn no_data(data: Out<CUgraphEdgeData>, nodes: Out<CUgraphNode>, count: InOut<usize>) -> Result<(), Status> {
    const NONE: CUgraphEdgeData = CUgraphEdgeData { from_port: 0, to_port: 0, type_: 0, reserved: [0; 5] };
    if data.is_null() || nodes.is_null() {
        return Ok(());
    }
    (0..count.read()?).try_for_each(|i| data.write_at(i, NONE))
}

fn connect(
    of: CUgraph,
    from: In<CUgraphNode>,
    to: In<CUgraphNode>,
    count: usize,
    join: bool,
) -> Result<(), Status> {
    let graph = graph(of)?;
    let (from, to) = (nodes_at(from, count)?, nodes_at(to, count)?);
    let mut content = lock(&graph.content);
    let is_here = |node: &Arc<Node>| content.nodes.iter().any(|other| Arc::ptr_eq(other, node));
    if !from.iter().chain(&to).all(is_here) {
        return Err(INVALID);
    }
    for (from, to) in from.iter().zip(&to) {
        let edge = (from.id, to.id);
        let changed =
            if join { from.id != to.id && content.edges.insert(edge) } else { content.edges.remove(&edge) };
        if !changed {
            return Err(INVALID);
        }
    }
    Ok(())
}

/// The predecessors or successors of a node.
fn neighbours(handle: CUgraphNode, before: bool) -> Result<Vec<Arc<Node>>, Status> {
    let node = node(handle)?;
    let edges = node.graph()?.edges();
    Ok(match before {
        true => edges.into_iter().filter(|(_, to)| to.id == node.id).map(|(from, _)| from).collect(),
        false => edges.into_iter().filter(|(from, _)| from.id == node.id).map(|(_, to)| to).collect(),
    })
}

api! { API:
    /// The nodes of a graph.
    cuGraphGetNodes 10000 "cuGraphGetNodes" (of: CUgraph, nodes: Out<CUgraphNode>, count: InOut<usize>) {
        hand_out(&graph(of)?.nodes(), nodes, count)
    }
    /// The nodes of a graph that depend on none.
    cuGraphGetRootNodes 10000 "cuGraphGetRootNodes" (of: CUgraph, nodes: Out<CUgraphNode>, count: InOut<usize>) {
        let graph = graph(of)?;
        let edges = graph.edges();
        let mut roots = graph.nodes();
        roots.retain(|node| edges.iter().all(|(_, to)| to.id != node.id));
        hand_out(&roots, nodes, count)
    }
    /// The edges of a graph.
    cuGraphGetEdges 10000 "cuGraphGetEdges" (of: CUgraph, from: Out<CUgraphNode>, to: Out<CUgraphNode>, count: InOut<usize>) {
        edges(of, from, to, count)
    }
    /// The edges of a graph, with their data, which are zeros.
    cuGraphGetEdges 12030 "cuGraphGetEdges_v2" (of: CUgraph, from: Out<CUgraphNode>, to: Out<CUgraphNode>, data: Out<CUgraphEdgeData>, count: InOut<usize>) {
        edges(of, from, to, count)?;
        no_data(data, from, count)
    }
    /// The nodes that a node depends on.
    cuGraphNodeGetDependencies 10000 "cuGraphNodeGetDependencies" (of: CUgraphNode, nodes: Out<CUgraphNode>, count: InOut<usize>) {
        hand_out(&neighbours(of, true)?, nodes, count)
    }
    /// The nodes that a node depends on, with the data of the edges, which are zeros.
    cuGraphNodeGetDependencies 12030 "cuGraphNodeGetDependencies_v2" (of: CUgraphNode, nodes: Out<CUgraphNode>, data: Out<CUgraphEdgeData>, count: InOut<usize>) {
        hand_out(&neighbours(of, true)?, nodes, count)?;
        no_data(data, nodes, count)
    }
    /// The nodes that depend on a node.
    cuGraphNodeGetDependentNodes 10000 "cuGraphNodeGetDependentNodes" (of: CUgraphNode, nodes: Out<CUgraphNode>, count: InOut<usize>) {
        hand_out(&neighbours(of, false)?, nodes, count)
    }
    /// The nodes that depend on a node, with the data of the edges, which are zeros.
    cuGraphNodeGetDependentNodes 12030 "cuGraphNodeGetDependentNodes_v2" (of: CUgraphNode, nodes: Out<CUgraphNode>, data: Out<CUgraphEdgeData>, count: InOut<usize>) {
        hand_out(&neighbours(of, false)?, nodes, count)?;
        no_data(data, nodes, count)
    }
    /// Adds edges.
    cuGraphAddDependencies 10000 "cuGraphAddDependencies" (of: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) {
        connect(of, from, to, count, true)
    }
    /// Adds edges.
    cuGraphAddDependencies 12030 "cuGraphAddDependencies_v2" (of: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, _data: *const CUgraphEdgeData, count: usize) {
        connect(of, from, to, count, true)
    }
    /// Removes edges.
    cuGraphRemoveDependencies 10000 "cuGraphRemoveDependencies" (of: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, count: usize) {
        connect(of, from, to, count, false)
    }
    /// Removes edges.
    cuGraphRemoveDependencies 12030 "cuGraphRemoveDependencies_v2" (of: CUgraph, from: In<CUgraphNode>, to: In<CUgraphNode>, _data: *const CUgraphEdgeData, count: usize) {
        connect(of, from, to, count, false)
    }
}
