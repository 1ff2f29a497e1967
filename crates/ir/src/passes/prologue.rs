//! Moves operations whose results are the same in every CTA of a launch to the kernel's prologue.
//!
//! Parameters, `%tid`, `%ntid` and values computed from them alone do not depend on `%ctaid`. Kernels begin with such
//! operations, and compilers scatter more of them through the code. An engine that runs many CTAs with one register
//! file executes the prologue only once.

use check::module::Param;
use isa::SpecialValue;

use crate::function::Function;
use crate::memory::Load;
use crate::op::{Base, Op, OpKind, Slot, SlotKind};
use crate::visit::Touch;

/// Moves the launch-invariant operations of a kernel to [`Function::prologue`]. Values must not share slots yet.
///
/// Only values with one definition are moved; after that they are valid everywhere. A read that no path from the
/// definition reaches is undefined in PTX: it would see the register's previous contents, and now sees the hoisted
/// value.
pub(crate) fn hoist(function: &mut Function, params: &[Param]) {
    let mut definitions = vec![0u32; function.slots.len()];
    let mut count = |slot: &mut Slot, touch: Touch| {
        if touch == Touch::Def {
            definitions[slot.index()] += 1;
        }
    };
    function.ops.iter_mut().for_each(|op| op.visit(&mut count));
    function.blocks.iter_mut().for_each(|block| block.terminator.visit(&mut count));

    let mut invariant: Vec<bool> = function
        .slots
        .iter()
        .map(|info| match info.kind {
            SlotKind::Constant(_) => true,
            SlotKind::Special(special) => is_invariant(special.value()),
            _ => false,
        })
        .collect();
    let mut ops = Vec::with_capacity(function.ops.len());
    let mut rest = std::mem::take(&mut function.ops).into_iter();
    for block in &mut function.blocks {
        let start = ops.len() as u32;
        for mut op in rest.by_ref().take(block.ops.len()) {
            let mut moves = op.guard.is_none() && can_move(&op, params);
            op.visit(&mut |slot, touch| {
                moves &= match touch {
                    Touch::Use => invariant[slot.index()],
                    Touch::Def => definitions[slot.index()] == 1,
                };
            });
            if !moves {
                ops.push(op);
                continue;
            }
            op.visit(&mut |slot, touch| {
                if touch == Touch::Def {
                    invariant[slot.index()] = true;
                    function.slots[slot.index()].kind = SlotKind::Invariant;
                }
            });
            function.prologue.push(op);
        }
        block.ops = start..ops.len() as u32;
    }
    function.ops = ops;
}

/// Whether a special register holds the same value in every CTA.
fn is_invariant(value: SpecialValue) -> bool {
    use SpecialValue::{Laneid, Nctaid, Ntid, Nwarpid, Tid, Warpid};
    use SpecialValue::{LanemaskEq, LanemaskGe, LanemaskGt, LanemaskLe, LanemaskLt};
    matches!(value, Tid(_) | Ntid(_) | Nctaid(_) | Laneid | Warpid | Nwarpid)
        || matches!(value, LanemaskEq | LanemaskLe | LanemaskLt | LanemaskGe | LanemaskGt)
}

/// Whether an operation computes a value from its sources alone and cannot fault.
fn can_move(op: &Op, params: &[Param]) -> bool {
    match &op.kind {
        OpKind::Pure { form, .. } => !form.carry.reads && !form.carry.writes,
        OpKind::AddressOf { base, .. } => {
            matches!(base, Base::Variable(_) | Base::KernelParam(_) | Base::Function(_) | Base::Zero)
        }
        OpKind::Load(Load { address, dst, bytes, .. }) => {
            let Base::KernelParam(index) = address.base else { return false };
            let size = u64::from(*bytes);
            let inside = |param: &Param, offset: u64| {
                let end = offset.checked_add(size);
                offset.is_multiple_of(size)
                    && size <= param.align
                    && end.is_some_and(|end| end <= param.bytes)
            };
            let offset = u64::try_from(address.offset).ok();
            dst.len() == 1
                && params.get(index as usize).zip(offset).is_some_and(|(param, offset)| inside(param, offset))
        }
        kind => kind.computes(),
    }
}
