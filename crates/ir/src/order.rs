//! The layout order of basic blocks.
//!
//! The order is a weak topological order (Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993):
//! strongly connected components are in topological order. Within a component, the header comes first, and the rest
//! is ordered recursively without the edges back to the header. So a join comes after both arms of a branch, and a
//! loop's exit after its whole body. Hence lanes reconverge as early as possible if the lowest basic block always
//! runs first.

/// Orders the nodes that are reachable from node 0. `successors[n]` lists the successors of `n`.
pub(crate) fn weak_topological_order(successors: &[Vec<u32>]) -> Vec<u32> {
    let reachable = reachable(successors);
    let mut order = Vec::with_capacity(successors.len());
    // A stack of components still to be ordered. A header is pushed with the rest of its component.
    let mut work = vec![Part::Component { nodes: reachable, entry: 0 }];
    let mut scratch = Scratch::new(successors.len());
    while let Some(part) = work.pop() {
        match part {
            Part::Node(node) => order.push(node),
            Part::Component { nodes, entry } => {
                let components = scratch.components(successors, &nodes, entry);
                // Tarjan's algorithm finds the last component first, so pushing them in that order pops the first one
                // first.
                for component in components {
                    if component.len() == 1 {
                        work.push(Part::Node(component[0]));
                        continue;
                    }
                    let header = scratch.header(successors, &component, &nodes, entry);
                    let rest: Vec<u32> = component.into_iter().filter(|&n| n != header).collect();
                    work.push(Part::Component { nodes: rest, entry: header });
                    work.push(Part::Node(header));
                }
            }
        }
    }
    order
}

enum Part {
    Node(u32),
    /// Nodes to be ordered, and the node that leads into them (outside the component, except at the start).
    Component {
        nodes: Vec<u32>,
        entry: u32,
    },
}

fn reachable(successors: &[Vec<u32>]) -> Vec<u32> {
    let mut seen = vec![false; successors.len()];
    let mut stack = vec![0];
    let mut nodes = Vec::new();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            nodes.push(node);
            stack.extend(&successors[node as usize]);
        }
    }
    nodes.sort_unstable();
    nodes
}

const UNSEEN: u32 = u32::MAX;

struct Scratch {
    /// The generation in which a node was last a member of the current component.
    member: Vec<u32>,
    generation: u32,
    index: Vec<u32>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
}

impl Scratch {
    fn new(len: usize) -> Scratch {
        Scratch {
            member: vec![0; len],
            generation: 0,
            index: vec![UNSEEN; len],
            low: vec![0; len],
            on_stack: vec![false; len],
        }
    }

    /// Strongly connected components of the graph restricted to `nodes` (ascending), last in topological order first.
    fn components(&mut self, successors: &[Vec<u32>], nodes: &[u32], entry: u32) -> Vec<Vec<u32>> {
        self.generation += 1;
        for &node in nodes {
            self.member[node as usize] = self.generation;
            self.index[node as usize] = UNSEEN;
        }
        let mut components = Vec::new();
        let mut next_index = 0;
        let mut stack = Vec::new();
        // Start with the entry's successors, so that unrelated parts keep their source order.
        let mut roots: Vec<u32> = Vec::with_capacity(nodes.len());
        roots.extend(successors[entry as usize].iter().rev().copied());
        roots.extend(nodes.iter().rev().copied());
        if self.member[entry as usize] == self.generation {
            roots.insert(0, entry);
        }
        for root in roots {
            if self.member[root as usize] != self.generation || self.index[root as usize] != UNSEEN {
                continue;
            }
            // An explicit stack of (node, next successor) instead of recursion: graphs may be arbitrarily deep.
            let mut calls = vec![(root, 0)];
            while let Some((node, next)) = calls.last_mut() {
                let n = *node as usize;
                if *next == 0 {
                    self.index[n] = next_index;
                    self.low[n] = next_index;
                    next_index += 1;
                    stack.push(*node);
                    self.on_stack[n] = true;
                }
                // Later successors first: the last node visited is laid out first.
                let count = successors[n].len();
                if *next < count {
                    let successor = successors[n][count - 1 - *next];
                    *next += 1;
                    let s = successor as usize;
                    if self.member[s] != self.generation {
                        // Not part of this component.
                    } else if self.index[s] == UNSEEN {
                        calls.push((successor, 0));
                    } else if self.on_stack[s] {
                        self.low[n] = self.low[n].min(self.index[s]);
                    }
                    continue;
                }
                let node = *node;
                calls.pop();
                if let Some((parent, _)) = calls.last() {
                    let p = *parent as usize;
                    self.low[p] = self.low[p].min(self.low[n]);
                }
                if self.low[n] == self.index[n] {
                    let mut component = Vec::new();
                    while let Some(member) = stack.pop() {
                        self.on_stack[member as usize] = false;
                        component.push(member);
                        if member == node {
                            break;
                        }
                    }
                    component.sort_unstable();
                    components.push(component);
                }
            }
        }
        components
    }

    /// The node of `component` that is entered from `entry` or from the other `nodes`. If there are several (an
    /// irreducible loop), the first in source order.
    fn header(&self, successors: &[Vec<u32>], component: &[u32], nodes: &[u32], entry: u32) -> u32 {
        let inside = |n: u32| component.binary_search(&n).is_ok();
        nodes
            .iter()
            .copied()
            .filter(|&n| !inside(n))
            .chain((!inside(entry)).then_some(entry))
            .flat_map(|n| successors[n as usize].iter().copied())
            .filter(|&s| inside(s))
            .min()
            .unwrap_or(component[0])
    }
}

#[cfg(test)]
mod tests {
    use super::weak_topological_order as order;

    #[test]
    fn a_join_comes_after_both_arms() {
        assert_eq!(order(&[vec![1, 2], vec![3], vec![3], vec![]]), [0, 1, 2, 3]);
        // The join is between the arms in the source.
        assert_eq!(order(&[vec![1, 3], vec![2], vec![], vec![2]]), [0, 1, 3, 2]);
    }

    #[test]
    fn a_loop_exit_comes_after_the_whole_body() {
        // 1 is the header, 2 the exit (written first), 3 and 4 the body.
        assert_eq!(order(&[vec![1], vec![2, 3], vec![], vec![4], vec![1]]), [0, 1, 3, 4, 2]);
        // Exit from the middle of a nested loop: inner {2,3}, outer {1,2,3,4}.
        let nested = [vec![1], vec![2], vec![3, 4], vec![2, 5], vec![1, 5], vec![]];
        let got = order(&nested);
        let at = |n: u32| got.iter().position(|&x| x == n).unwrap();
        assert!(at(3) < at(4) && at(4) < at(5) && at(1) < at(2));
    }

    #[test]
    fn a_node_that_leads_back_to_two_headers_is_in_both_loops() {
        // Loops {2,3} and {1,2,3}; 3 leads to both headers, and 1 to the exit 4, which is written first.
        assert_eq!(order(&[vec![1], vec![4, 2], vec![3], vec![2, 1], vec![]]), [0, 1, 2, 3, 4]);
        assert_eq!(order(&[vec![1], vec![4, 2], vec![3], vec![1, 2], vec![]]), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn unreachable_blocks_are_dropped_and_deep_graphs_do_not_overflow() {
        assert_eq!(order(&[vec![], vec![0]]), [0]);
        let deep: Vec<Vec<u32>> =
            (0..200_000).map(|n| if n + 1 < 200_000 { vec![n + 1] } else { vec![] }).collect();
        assert_eq!(order(&deep).len(), 200_000);
        // One loop around all of it.
        let mut round = deep;
        round[199_999].push(0);
        assert_eq!(order(&round), (0..200_000).collect::<Vec<_>>());
    }

    #[test]
    fn an_irreducible_loop_is_ordered_once() {
        let mut got = order(&[vec![1, 2], vec![2, 3], vec![1], vec![]]);
        assert_eq!(got[0], 0);
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3]);
    }
}
