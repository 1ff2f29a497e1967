//! The slots that operations read and write.

use ir::Slot;

use super::{Bits, Float, Operation};

impl Operation {
    /// The slots that the operation reads.
    pub fn uses(&self) -> Vec<Slot> {
        match self {
            Operation::Float { op: Float::Fma, src, .. }
            | Operation::Mixed { op: Float::Fma, src, .. }
            | Operation::Bits { op: Bits::Mad, src, .. } => src.to_vec(),
            Operation::Float { op: Float::Rcp | Float::Sqrt, src, .. } => src[..1].to_vec(),
            Operation::Float { src, .. } | Operation::Mixed { src, .. } => src[..2].to_vec(),
            Operation::Bits { op, src, .. } => src[..if op.is_unary() { 1 } else { 2 }].to_vec(),
            Operation::MulWide { src, addend, .. } => src.iter().copied().chain(*addend).collect(),
            Operation::Funnel { high, low, .. } => vec![*high, *low],
            Operation::Compare { src, with, .. } => src.iter().copied().chain(with.map(|(_, c)| c)).collect(),
            Operation::Select { src: [a, b], pred, .. } => vec![*a, *b, *pred],
            Operation::CompareHalves { src, .. }
            | Operation::Half { src, .. }
            | Operation::Pack { src, .. } => src.to_vec(),
            Operation::ToHalf { src, low, .. } => [*src].into_iter().chain(*low).collect(),
            Operation::SelectHalves { src, preds, .. } => [*src, *preds].concat(),
            Operation::Logic { src, .. } => src.to_vec(),
            Operation::Pass { src, .. }
            | Operation::Offset { src, .. }
            | Operation::ToInteger { src, .. }
            | Operation::Convert { src, .. }
            | Operation::Widen { src, .. }
            | Operation::Shuffle { src, .. }
            | Operation::Field { src, .. }
            | Operation::Resize { src, .. }
            | Operation::Unpack { src, .. }
            | Operation::FromHalf { src, .. }
            | Operation::Integral { src, .. }
            | Operation::Narrow { src, .. } => vec![*src],
            Operation::Call { src, .. } | Operation::Product { src, .. } => src.clone(),
            Operation::Count { lanes, .. } => vec![lanes.slot],
            Operation::Load { access, guard, .. } => {
                access.uses().chain(guard.map(|guard| guard.slot)).collect()
            }
            Operation::Store { access, src, guard } => {
                access.uses().chain(src.iter().copied()).chain(guard.map(|guard| guard.slot)).collect()
            }
            Operation::Atomic { access, src, guard, .. } => {
                access.uses().chain([*src]).chain(guard.map(|guard| guard.slot)).collect()
            }
        }
    }

    /// Lets the operation read other slots, but for the base of [`Access::within`].
    pub fn rename_uses(&mut self, to: impl Fn(Slot) -> Slot) {
        let all = |slots: &mut [Slot]| slots.iter_mut().for_each(|slot| *slot = to(*slot));
        match self {
            Operation::Float { src, .. } | Operation::Mixed { src, .. } | Operation::Bits { src, .. } => {
                all(src)
            }
            Operation::MulWide { src, addend, .. } => {
                all(src);
                all(addend.as_mut_slice());
            }
            Operation::Funnel { high, low, .. } => (*high, *low) = (to(*high), to(*low)),
            Operation::Compare { src, with, .. } => {
                all(src);
                with.iter_mut().for_each(|(_, slot)| *slot = to(*slot));
            }
            Operation::Select { src, pred, .. } => {
                all(src);
                *pred = to(*pred);
            }
            Operation::Logic { src, .. }
            | Operation::CompareHalves { src, .. }
            | Operation::Half { src, .. }
            | Operation::Pack { src, .. } => all(src),
            Operation::ToHalf { src, low, .. } => {
                *src = to(*src);
                all(low.as_mut_slice());
            }
            Operation::SelectHalves { src, preds, .. } => {
                all(src);
                all(preds);
            }
            Operation::Pass { src, .. }
            | Operation::Offset { src, .. }
            | Operation::ToInteger { src, .. }
            | Operation::Convert { src, .. }
            | Operation::Widen { src, .. }
            | Operation::Shuffle { src, .. }
            | Operation::Field { src, .. }
            | Operation::Resize { src, .. }
            | Operation::Unpack { src, .. }
            | Operation::FromHalf { src, .. }
            | Operation::Integral { src, .. }
            | Operation::Narrow { src, .. } => *src = to(*src),
            Operation::Call { src, .. } | Operation::Product { src, .. } => all(src),
            Operation::Count { lanes, .. } => lanes.slot = to(lanes.slot),
            Operation::Load { access, guard, .. } => {
                access.base = to(access.base);
                guard.iter_mut().for_each(|guard| guard.slot = to(guard.slot));
            }
            Operation::Store { access, src, guard } => {
                access.base = to(access.base);
                all(src);
                guard.iter_mut().for_each(|guard| guard.slot = to(guard.slot));
            }
            Operation::Atomic { access, src, guard, .. } => {
                access.base = to(access.base);
                *src = to(*src);
                guard.iter_mut().for_each(|guard| guard.slot = to(guard.slot));
            }
        }
    }

    /// The slot that an operation with one result writes. `None`: it may have more than one, or none.
    fn result(&mut self) -> Option<&mut Slot> {
        match self {
            Operation::Compare { .. }
            | Operation::CompareHalves { .. }
            | Operation::Store { .. }
            | Operation::Unpack { .. }
            | Operation::Product { .. }
            | Operation::Count { .. }
            | Operation::Shuffle { .. } => None,
            Operation::Load { dst, .. } => match &mut dst[..] {
                [Some(dst)] => Some(dst),
                _ => None,
            },
            Operation::Atomic { dst, .. } => dst.as_mut(),
            Operation::Float { dst, .. }
            | Operation::Bits { dst, .. }
            | Operation::Offset { dst, .. }
            | Operation::ToInteger { dst, .. }
            | Operation::Call { dst, .. }
            | Operation::Convert { dst, .. }
            | Operation::MulWide { dst, .. }
            | Operation::Funnel { dst, .. }
            | Operation::Field { dst, .. }
            | Operation::Widen { dst, .. }
            | Operation::Narrow { dst, .. }
            | Operation::Resize { dst, .. }
            | Operation::Pack { dst, .. }
            | Operation::FromHalf { dst, .. }
            | Operation::ToHalf { dst, .. }
            | Operation::Half { dst, .. }
            | Operation::Mixed { dst, .. }
            | Operation::Integral { dst, .. }
            | Operation::Select { dst, .. }
            | Operation::SelectHalves { dst, .. }
            | Operation::Logic { dst, .. }
            | Operation::Pass { dst, .. } => Some(dst),
        }
    }

    /// Lets an operation with one result write another slot. `None`: it may have more than one, or none.
    pub fn rename_def(&mut self, to: Slot) -> Option<()> {
        *self.result()? = to;
        Some(())
    }

    /// Lets the operation write other slots.
    pub fn rename_defs(&mut self, to: impl Fn(Slot) -> Slot) {
        match self {
            Operation::Compare { dst, .. }
            | Operation::CompareHalves { dst, .. }
            | Operation::Unpack { dst, .. } => dst.iter_mut().flatten().for_each(|slot| *slot = to(*slot)),
            Operation::Load { dst, .. } => dst.iter_mut().flatten().for_each(|slot| *slot = to(*slot)),
            Operation::Product { dst, .. } => dst.iter_mut().for_each(|slot| *slot = to(*slot)),
            Operation::Shuffle { dst, pred, .. } => {
                [dst, pred].into_iter().flatten().for_each(|slot| *slot = to(*slot));
            }
            other => other.result().into_iter().for_each(|slot| *slot = to(*slot)),
        }
    }

    /// The slots that the operation writes.
    pub fn defs(&self) -> Vec<Slot> {
        match self {
            Operation::Compare { dst, .. }
            | Operation::CompareHalves { dst, .. }
            | Operation::Unpack { dst, .. } => dst.iter().flatten().copied().collect(),
            Operation::Load { dst, .. } => dst.iter().flatten().copied().collect(),
            Operation::Product { dst, .. } => dst.clone(),
            Operation::Shuffle { dst, pred, .. } => [*dst, *pred].into_iter().flatten().collect(),
            other => other.clone().result().map(|dst| *dst).into_iter().collect(),
        }
    }
}
