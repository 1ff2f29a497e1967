//! Values that one operation of a block hands to another through memory, without a register between.

use ir::{OpKind, Slot, SlotKind, Touch};

use super::build::Builder;
use super::{Kind, Op, PureStore};

/// What the operations behind a place of a block do with the value that a slot has there.
#[derive(Clone, Copy, Default)]
struct Reads {
    /// Operations that read it.
    count: u32,
    /// The first of them.
    first: usize,
}

impl Builder<'_> {
    /// Marks loads whose value is read once, and joins pure operations with the store of their result. `source` are
    /// the operations that `ops` were made of.
    ///
    /// In a block with accesses that are ordered (`.volatile`, `.relaxed`, `.acquire`, atomics, fences) every load is
    /// done in its place.
    pub(super) fn fuse(&self, block: &ir::Block, source: &[ir::Op], ops: &mut Vec<Op>) {
        let mut reads = vec![Reads::default(); self.slots.len()];
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
                OpKind::Load { dst, bytes, .. } if !block.may_spin => {
                    if let [Some(slot)] = dst[..]
                        && self.slot(slot).width.bytes() == *bytes as usize
                        && is_dead_after_one_read(slot).is_some_and(|reader| reader <= writer)
                        && let Kind::Load(load) = &mut ops[i].kind
                    {
                        load.once = true;
                    }
                }
                OpKind::Pure { dst: [Some(result), None], .. }
                    if is_dead_after_one_read(*result) == Some(i + 1)
                        && self.stores(&source[i + 1], *result)
                        && matches!(&ops[i].kind, Kind::Pure(pure) if pure.lanes.is_some()) =>
                {
                    join(ops, i);
                }
                _ => {}
            }
            if !keeps_memory(&op.kind) {
                writer = i;
            }
            let guarded = op.guard.is_some();
            let mut touches = |slot: &mut Slot, touch: Touch, wanted: Touch| {
                let reads = &mut reads[slot.index()];
                match touch {
                    _ if touch != wanted => {}
                    Touch::Def if guarded => {}
                    Touch::Def => *reads = Reads::default(),
                    Touch::Use if reads.count > 0 && reads.first == i => {}
                    Touch::Use => *reads = Reads { count: reads.count + 1, first: i },
                }
            };
            let mut op = op.clone();
            op.visit(&mut |slot, touch| touches(slot, touch, Touch::Def));
            op.visit(&mut |slot, touch| touches(slot, touch, Touch::Use));
        }
    }

    /// The operation stores the whole of `result`, alone and always, at an address that is not it.
    fn stores(&self, op: &ir::Op, result: Slot) -> bool {
        let OpKind::Store { address, src, bytes } = &op.kind else { return false };
        op.guard.is_none()
            && src[..] == [result]
            && self.slot(result).width.bytes() == *bytes as usize
            && address.base != ir::Base::Slot(result)
    }
}

/// Makes one operation of a pure one and the store behind it.
fn join(ops: &mut Vec<Op>, index: usize) {
    let Op { kind: Kind::Store(store), span, .. } = ops.remove(index + 1) else { return };
    // Whatever faults is the store.
    ops[index].span = span;
    if let Kind::Pure(pure) = std::mem::replace(&mut ops[index].kind, Kind::Fence) {
        ops[index].kind = Kind::PureStore(Box::new(PureStore { pure: *pure, store: *store }));
    }
}

/// Nothing in memory changes.
fn keeps_memory(op: &OpKind) -> bool {
    op.computes() || matches!(op, OpKind::Load { .. } | OpKind::ReadClock { .. } | OpKind::ActiveMask { .. })
}
