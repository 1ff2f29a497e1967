//! Chains: `fma`s of a basic block. Each adds to the sum of the previous one, and the partial sums have no other reader.
//!
//! A chain executes at the place of its last link. Its factors stay where they are until then: loaded values in memory,
//! because memory does not change in between, and registers that keep their values. Links that must execute earlier are
//! found at run time ([`crate::exec`]).
//!
//! The sum stays in host registers (`lanes/chain.rs`). A factor in memory may also be rows of elements, or a single
//! value for a whole row.
//!
//! Narrowest tests: `tests/run`: `fma_chain`, `fma_chain_broken`; `lanes`: `tests/handlers/chain.rs`.

use ir::{Op, OpKind, Slot};
use isa::{Mod, Opcode, Type};

use super::LinkIndex;

/// An `fma` that could be a link of a chain.
pub(super) struct Candidate {
    /// Index of the operation in its block.
    pub at: usize,
    pub factors: [Slot; 2],
    pub sum: Slot,
    pub result: Slot,
    /// The operation that reads the result, if there is exactly one.
    pub reader: Option<usize>,
    /// The next operations that write the factors, the sum and the result.
    pub next_writes: [usize; 4],
    /// The next operation that writes memory.
    pub memory_write: usize,
}

impl Candidate {
    /// The factors, the addend and the result of an operation that could be a link.
    pub fn slots(op: &Op) -> Option<([Slot; 2], Slot, Slot)> {
        let OpKind::Pure { form, picks, dst: [Some(result), None], src, .. } = &op.kind else { return None };
        let plain = form.opcode == Opcode::Fma && picks.types() == [Type::F32] && picks.mods() == [Mod::Rn];
        let [a, b, c] = src[..] else { return None };
        (plain && op.guard.is_none()).then_some(([a, b], c, *result))
    }
}

/// The position of an operation in a chain.
#[derive(Clone, Copy)]
pub(super) struct ChainPosition {
    pub at: usize,
    pub index: LinkIndex,
    /// Whether its factors and its addend keep their registers until the chain ends.
    pub stable: [bool; 3],
    pub last: bool,
}

/// The most links of a chain.
const LINKS: usize = 64;

/// The chains among a basic block's candidates, which are in ascending order.
pub(super) fn find(candidates: &[Candidate]) -> Vec<ChainPosition> {
    let index_of = |at: usize| candidates.binary_search_by_key(&at, |candidate| candidate.at).ok();
    let mut taken = vec![false; candidates.len()];
    let mut places = Vec::new();
    let mut chains = 0;
    for start in 0..candidates.len() {
        if taken[start] {
            continue;
        }
        let mut links = vec![start];
        let mut last = start;
        while links.len() < LINKS
            && let Some(reader) = candidates[last].reader
            && reader <= candidates[start].memory_write
            && let Some(next) = index_of(reader)
            && candidates[next].sum == candidates[last].result
            && !candidates[next].factors.contains(&candidates[last].result)
        {
            links.push(next);
            last = next;
        }
        if links.len() == 1 {
            continue;
        }
        for (i, &link) in links.iter().enumerate() {
            taken[link] = true;
            let candidate = &candidates[link];
            let index = LinkIndex { chain: chains, link: i };
            let stable = std::array::from_fn(|operand| keeps(candidates, &links, candidate, operand));
            places.push(ChainPosition { at: candidate.at, index, stable, last: link == last });
        }
        chains += 1;
    }
    places
}

/// Whether an operand's register keeps its value from a link to the end of its chain. Links of the chain may define it,
/// since they need no register before the end.
fn keeps(candidates: &[Candidate], links: &[usize], link: &Candidate, operand: usize) -> bool {
    let slot = [link.factors[0], link.factors[1], link.sum][operand];
    let end = links.last().map_or(0, |&last| candidates[last].at);
    let mut write = if link.result == slot { link.next_writes[3] } else { link.next_writes[operand] };
    while write < end {
        match links.binary_search_by_key(&write, |&link| candidates[link].at) {
            Ok(writer) => write = candidates[links[writer]].next_writes[3],
            Err(_) => return false,
        }
    }
    true
}
