//! Moves operations whose results are the same in every CTA of a launch to the kernel's prologue.
//!
//! Parameters, `%tid`, `%ntid` and values computed from them alone do not depend on `%ctaid`. Kernels begin with such
//! operations, and compilers scatter more of them through the code. An engine that runs many CTAs with one register
//! file executes the prologue only once. What compilers compute several times, such as the address of a variable in every basic
//! block, is there once.

use std::collections::HashMap;

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
    let mut alike = Alike::default();
    let mut ops = Vec::with_capacity(function.ops.len());
    let mut rest = std::mem::take(&mut function.ops).into_iter();
    for block in &mut function.blocks {
        let start = ops.len() as u32;
        for mut op in rest.by_ref().take(block.ops.len()) {
            op.visit(&mut |slot, _| *slot = alike.now(*slot));
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
            function.prologue.extend(alike.add(op));
        }
        block.ops = start..ops.len() as u32;
    }
    function.ops = ops;
    // Reads may stand before what they read.
    let mut rename = |slot: &mut Slot, _: Touch| *slot = alike.now(*slot);
    function.ops.iter_mut().for_each(|op| op.visit(&mut rename));
    function.blocks.iter_mut().for_each(|block| block.terminator.visit(&mut rename));
}

/// An operation is compared with so many others that have its sources, those of addresses none.
const MOST_ALIKE: usize = 64;

/// Operations that compute the same.
#[derive(Default)]
struct Alike {
    /// By the sources: what an operation does, without its results, and these.
    known: HashMap<Vec<Slot>, Vec<(OpKind, Vec<Slot>)>>,
    /// The slots that have the values of others.
    renamed: HashMap<Slot, Slot>,
}

impl Alike {
    fn now(&self, slot: Slot) -> Slot {
        self.renamed.get(&slot).copied().unwrap_or(slot)
    }

    /// The operation, unless another one computes the same.
    fn add(&mut self, op: Op) -> Option<Op> {
        let (mut sources, mut results, mut plain) = (Vec::new(), Vec::new(), op.clone());
        plain.visit(&mut |slot, touch| match touch {
            Touch::Use => sources.push(*slot),
            Touch::Def => results.push(std::mem::replace(slot, Slot(u32::MAX))),
        });
        let known = self.known.entry(sources).or_default();
        let mut last = known.iter().rev().take(MOST_ALIKE);
        if let Some((_, others)) = last.find(|(kind, _)| *kind == plain.kind) {
            self.renamed.extend(results.into_iter().zip(others.iter().copied()));
            return None;
        }
        known.push((plain.kind, results));
        Some(op)
    }
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
