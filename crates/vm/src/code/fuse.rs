//! Fusion: values that pass from one operation of a basic block to another through memory, without a register.
//!
//! A loaded value that only one operation reads stays in memory until that operation, unless the basic block has
//! ordered accesses. The terminator counts as a reader, and it reads registers only. A result that is only stored goes
//! to memory without a register of its own.
//!
//! Narrowest tests (`tests/run`): `block_end_reads`, `loads_kept_apart`, `store_over_sources`, `store_own_address`; for
//! results that handlers store themselves (`exec/inline_cache.rs`, `lanes/drive.rs`): `store_over_narrow_sources`.

use ir::{OpKind, Slot, SlotKind, Touch};

use super::build::{Builder, is_strong};
use super::chain::{self, Candidate};
use super::{Access, Kind, Link, Op, PureStore};

/// How the operations after a place in a basic block use the value that a slot has there.
#[derive(Clone, Copy, Default)]
struct Reads {
    /// Operations that read it.
    count: u32,
    /// The first reader.
    first: usize,
    /// The next operation that writes it.
    write: Option<usize>,
}

/// Takes the place of an operation while it is rewritten.
const PLACEHOLDER: Kind = Kind::Simple(ir::SimpleOp::Fence { semantics: ir::Semantics::WEAK });

impl Builder<'_> {
    /// Marks loads whose value is read once, joins pure operations with the store of their result, and forms chains.
    /// `ops` were built from `source`, and `accesses` are theirs. Returns the number of chains.
    ///
    /// In a basic block with ordered accesses (`.volatile`, `.relaxed`, `.acquire`, `atom`, fences) every load executes
    /// in its place.
    pub(super) fn fuse(
        &self,
        block: &ir::Block,
        source: &[ir::Op],
        ops: &mut Vec<Op>,
        accesses: &mut Vec<Box<[Access]>>,
    ) -> usize {
        let (mut candidates, mut joins, mut kept_loads) = (Vec::new(), Vec::new(), Vec::new());
        let mut reads = vec![Reads::default(); self.slots.len()];
        // The terminator is after the last operation. It reads registers, but never memory.
        let end = source.len();
        let mut terminator = block.terminator.clone();
        // In reverse order: its definitions come after its uses.
        for wanted in [Touch::Def, Touch::Use] {
            terminator.visit(&mut |slot, touch| note(&mut reads, end, false, *slot, touch, wanted));
        }
        // The next operation that writes memory.
        let mut writer = usize::MAX;
        for i in (0..source.len()).rev() {
            let op = &source[i];
            let is_dead_after_one_read = |slot: Slot| {
                let temporary = self.function.slots[slot.index()].kind == SlotKind::Temporary;
                (temporary && reads[slot.index()].count == 1).then(|| reads[slot.index()].first)
            };
            match &op.kind {
                _ if op.guard.is_some() => {}
                OpKind::Load(ir::Load { dst, bytes, .. }) if !block.may_spin => {
                    if let [Some(slot)] = dst[..]
                        && self.slot(slot).width.bytes() == *bytes as usize
                        && let Some(reader) = is_dead_after_one_read(slot)
                        && (reader < writer.min(end) || reader == writer && reads_first(&source[writer].kind))
                        && let Kind::Load(load) = &mut ops[i].kind
                    {
                        load.once = true;
                        kept_loads.push((i, reader));
                    }
                }
                OpKind::Pure { dst: [Some(result), None], .. } | OpKind::SelectPair { dst: result, .. }
                    if is_dead_after_one_read(*result) == Some(i + 1)
                        && source.get(i + 1).is_some_and(|next| self.stores(next, *result))
                        && matches!(&ops[i].kind, Kind::Pure(pure) if pure.lanes.is_some()) =>
                {
                    joins.push(i);
                }
                _ => {}
            }
            if let Some((factors, sum, result)) = Candidate::slots(op) {
                let write = |slot: Slot| reads[slot.index()].write.unwrap_or(usize::MAX);
                candidates.push(Candidate {
                    at: i,
                    factors,
                    sum,
                    result,
                    reader: is_dead_after_one_read(result),
                    next_writes: [factors[0], factors[1], sum, result].map(write),
                    memory_write: writer,
                });
            }
            if !keeps_memory(&op.kind) {
                writer = i;
            }
            let guarded = op.guard.is_some();
            let mut op = op.clone();
            for wanted in [Touch::Def, Touch::Use] {
                op.visit(&mut |slot, touch| note(&mut reads, i, guarded, *slot, touch, wanted));
            }
        }
        candidates.reverse();
        let chains = if block.may_spin { Vec::new() } else { chain::find(&candidates) };
        for place in &chains {
            link(&mut ops[place.at], place);
        }
        for (load, reader) in kept_loads {
            let Kind::Link(link) = &ops[reader].kind else { continue };
            let (index, [a, b]) = (link.index, [link.pure.src[0], link.pure.src[1]]);
            if let Kind::Load(load) = &mut ops[load].kind
                && a != b
            {
                load.chained =
                    [a, b].iter().position(|&factor| load.dst[0] == Some(factor)).map(|n| (index, n));
            }
        }
        // From the last to the first, so that the indices of earlier operations stay valid.
        joins.into_iter().for_each(|at| join(ops, accesses, at));
        chains.iter().map(|place| place.index.chain + 1).max().unwrap_or(0)
    }

    /// Whether the operation stores exactly `result`, unconditionally, at an address that does not depend on it.
    fn stores(&self, op: &ir::Op, result: Slot) -> bool {
        let OpKind::Store(ir::Store { address, src, bytes, semantics }) = &op.kind else { return false };
        op.guard.is_none()
            && !is_strong(address, *semantics)
            && src[..] == [result]
            && self.slot(result).width.bytes() == *bytes as usize
            && address.base != ir::Base::Slot(result)
    }
}

/// Notes a wanted kind of access to a slot by operation `i`, which is before all operations noted so far.
fn note(reads: &mut [Reads], i: usize, guarded: bool, slot: Slot, touch: Touch, wanted: Touch) {
    let reads = &mut reads[slot.index()];
    match touch {
        _ if touch != wanted => {}
        Touch::Def if guarded => reads.write = Some(i),
        Touch::Def => *reads = Reads { write: Some(i), ..Reads::default() },
        Touch::Use if reads.count > 0 && reads.first == i => {}
        Touch::Use => *reads = Reads { count: reads.count + 1, first: i, ..*reads },
    }
}

/// Whether the operation writes memory only after it has read its registers in all lanes.
fn reads_first(op: &OpKind) -> bool {
    matches!(op, OpKind::Store(_))
}

/// Turns an operation into a link of a chain.
fn link(op: &mut Op, place: &chain::ChainPosition) {
    if let Kind::Pure(pure) = std::mem::replace(&mut op.kind, PLACEHOLDER) {
        let chain::ChainPosition { index, stable, last, .. } = *place;
        op.kind = Kind::Link(Box::new(Link { pure: *pure, index, stable, last }));
    }
}

/// Joins a pure operation and the store after it.
fn join(ops: &mut Vec<Op>, accesses: &mut Vec<Box<[Access]>>, index: usize) {
    if !matches!(ops[index].kind, Kind::Pure(_)) {
        return;
    }
    let Op { kind: Kind::Store(store), span, .. } = ops.remove(index + 1) else { return };
    // Only the store accesses memory and can fault.
    accesses.remove(index);
    ops[index].span = span;
    if let Kind::Pure(pure) = std::mem::replace(&mut ops[index].kind, PLACEHOLDER) {
        ops[index].kind = Kind::PureStore(Box::new(PureStore { pure: *pure, store: *store }));
    }
}

/// Whether memory stays unchanged and accesses may be moved across the operation.
fn keeps_memory(op: &OpKind) -> bool {
    op.computes() || !ir::orders_memory(op) && !ir::accesses(op).iter().any(|access| access.kind.writes())
}
