//! Second results that nobody reads: the old value of an atomic operation, the predicate of a shuffle.
//!
//! PTX wants a register there, and compilers name one.

use crate::op::{Function, OpKind, Slot, WarpOp};
use crate::visit::Touch;

/// Drops these destinations. Values must not share slots yet.
pub(crate) fn drop(function: &mut Function) {
    let mut read = vec![false; function.slots.len()];
    let mut note = |slot: &mut Slot, touch: Touch| read[slot.index()] |= touch == Touch::Use;
    function.ops.iter_mut().for_each(|op| op.visit(&mut note));
    function.blocks.iter_mut().for_each(|block| block.terminator.visit(&mut note));
    // Callers read these.
    function.returns.iter().flatten().for_each(|slot| read[slot.index()] = true);
    for op in &mut function.ops {
        let destination = match &mut op.kind {
            OpKind::Atomic { dst, .. } => dst,
            OpKind::Warp { op: WarpOp::Shuffle { pred, .. }, .. } => pred,
            OpKind::Pure { dst: [_, second], .. } => second,
            _ => continue,
        };
        *destination = destination.filter(|slot| read[slot.index()]);
    }
}
