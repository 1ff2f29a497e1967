//! Drops results that nothing reads: the old value of an atomic operation, the predicate of a shuffle, and leftovers
//! of other passes.
//!
//! PTX requires a destination register there, so compilers name one.
//!
//! Narrowest test (`tests/run`): `second_predicate`.

use crate::function::Function;
use crate::memory::MemoryOp;
use crate::op::{OpKind, Slot};
use crate::visit::Touch;
use crate::warp::WarpOp;

/// Drops operations whose only effect is a result that no later operation reads. Values must not share slots yet.
pub(crate) fn drop_operations(function: &mut Function) {
    // Values that another basic block reads count as live at the end of every basic block.
    let exposed = crate::liveness::upward_exposed(function);
    let mut crosses = vec![false; function.slots.len()];
    exposed.iter().flatten().for_each(|&value| crosses[value as usize] = true);
    function.params.iter().chain(&function.returns).flatten().for_each(|slot| crosses[slot.index()] = true);
    // The basic block in which a later operation than the current one reads the value.
    let mut read = vec![usize::MAX; function.slots.len()];
    let mut dead = vec![false; function.ops.len()];
    for (number, block) in function.blocks.iter_mut().enumerate() {
        block.terminator.visit(&mut |slot, touch| {
            if touch == Touch::Use {
                read[slot.index()] = number;
            }
        });
        for index in block.ops.clone().rev() {
            let op = &mut function.ops[index as usize];
            let mut needed = !op.kind.computes();
            op.visit(&mut |slot, touch| {
                needed |= touch == Touch::Def && (crosses[slot.index()] || read[slot.index()] == number);
            });
            dead[index as usize] = !needed;
            let always = op.guard.is_none();
            op.visit(&mut |slot, touch| {
                if touch == Touch::Def && always {
                    read[slot.index()] = usize::MAX;
                }
            });
            op.visit(&mut |slot, touch| {
                if touch == Touch::Use && needed {
                    read[slot.index()] = number;
                }
            });
        }
    }
    let mut dead = dead.into_iter();
    let mut ops = Vec::with_capacity(function.ops.len());
    let mut rest = std::mem::take(&mut function.ops).into_iter();
    for block in &mut function.blocks {
        let start = ops.len() as u32;
        let kept = rest.by_ref().take(block.ops.len()).filter(|_| !dead.next().unwrap_or(false));
        ops.extend(kept);
        block.ops = start..ops.len() as u32;
    }
    function.ops = ops;
}

/// Drops unused destinations. Values must not share slots yet.
pub(crate) fn drop(function: &mut Function) {
    let mut read = vec![false; function.slots.len()];
    let mut note = |slot: &mut Slot, touch: Touch| read[slot.index()] |= touch == Touch::Use;
    function.ops.iter_mut().for_each(|op| op.visit(&mut note));
    function.blocks.iter_mut().for_each(|block| block.terminator.visit(&mut note));
    // Callers read these.
    function.returns.iter().flatten().for_each(|slot| read[slot.index()] = true);
    for op in &mut function.ops {
        let destination = match &mut op.kind {
            OpKind::Memory(op) => match &mut **op {
                MemoryOp::Atomic(atomic) => &mut atomic.dst,
                _ => continue,
            },
            OpKind::Warp { op: WarpOp::Shuffle { pred, .. }, .. } => pred,
            OpKind::Pure { dst: [_, second], .. } => second,
            _ => continue,
        };
        *destination = destination.filter(|slot| read[slot.index()]);
    }
}
