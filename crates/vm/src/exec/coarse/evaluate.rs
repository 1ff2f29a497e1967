//! Operations on values that step evenly through the grid, and on predicates that are the same in every block.

use ir::{SimpleOp, Width};
use machine::mask::Mask;
use machine::memory::shared_base;
use smallvec::SmallVec;

use super::Coarse;
use super::patterns::Source;
use crate::affine::Affine;
use crate::code::{Base, Guard, Kind, Linear, MAX_SOURCES, Op, Pure};
use crate::exec::moves::param;
use crate::registers::SlotRef;

impl Coarse<'_> {
    pub(super) fn value(&self, slot: SlotRef) -> Option<&Affine> {
        self.values[slot.index as usize].as_ref()
    }

    pub(super) fn uniform(&self, slot: SlotRef) -> Option<u64> {
        self.value(slot).filter(|value| value.is_uniform()).map(|value| value.base)
    }

    /// The threads of a block for which a guard holds: the same in each block. Threads that have ended may be among them.
    pub(super) fn lanes_of(&self, guard: Guard) -> Option<Mask> {
        let lanes = match self.uniform(guard.slot) {
            Some(0) => Mask::EMPTY,
            Some(_) => Mask::ALL,
            None => self.patterns.get(guard.slot)?,
        };
        Some(if guard.negated { !lanes } else { lanes })
    }

    pub(super) fn set(&mut self, slot: SlotRef, value: Option<Affine>) {
        self.patterns.remove(slot);
        self.arrays.remove(slot);
        self.values[slot.index as usize] = value.map(|value| value.map(|part| slot.width.truncate(part)));
    }

    fn set_pattern(&mut self, slot: SlotRef, lanes: Mask) {
        self.set(slot, None);
        self.patterns.set(slot, lanes);
    }

    /// Executes an operation on affine forms. `None`: it may do more than define registers.
    pub(super) fn execute(&mut self, op: &Op) -> Option<()> {
        if let Some(guard) = op.guard
            && (self.uniform(guard.slot)? != 0) == guard.negated
        {
            return Some(());
        }
        let (dst, value) = match op.kind {
            Kind::Pure(ref pure) => {
                let results = self.results(pure);
                let is_unknown = |(dst, result): (&Option<SlotRef>, &Option<Affine>)| {
                    dst.is_some_and(|dst| dst.width == Width::Pred) && result.is_none()
                };
                let patterns = match pure.dst.iter().zip(&results).any(is_unknown) {
                    true => self.pattern(pure),
                    false => [None; 2],
                };
                for (index, dst) in pure.dst.iter().enumerate() {
                    match (*dst, patterns[index]) {
                        (Some(dst), Some(lanes)) if results[index].is_none() => self.set_pattern(dst, lanes),
                        (Some(dst), _) => self.set(dst, results[index]),
                        (None, _) => {}
                    }
                }
                return Some(());
            }
            Kind::Param { dst, offset, bytes, signed } => {
                (dst, Some(Affine::uniform(param(self.launch, offset, bytes, signed))))
            }
            Kind::AddressOf { dst, base: Base::Zero, offset } => (dst, Some(Affine::uniform(offset))),
            Kind::AddressOf { dst, base: Base::Shared, offset } => {
                (dst, Some(Affine::uniform(offset.wrapping_add(shared_base(0)))))
            }
            Kind::Simple(SimpleOp::Copy { dst, src }) if let Some(lanes) = self.patterns.get(src) => {
                self.set_pattern(dst, lanes);
                return Some(());
            }
            Kind::Simple(SimpleOp::Not { dst, src }) if let Some(lanes) = self.patterns.get(src) => {
                self.set_pattern(dst, !lanes);
                return Some(());
            }
            // What a section has computed in a temporary, which nothing else reads.
            Kind::Simple(SimpleOp::Copy { dst, src })
                if src.index >= self.function.temporaries && self.arrays.of(src).is_some() =>
            {
                self.set(dst, None);
                self.arrays.give(src, dst);
                return Some(());
            }
            Kind::Simple(SimpleOp::Copy { dst, src }) => (dst, self.value(src).copied()),
            Kind::Simple(SimpleOp::Not { dst, src }) => {
                (dst, self.uniform(src).map(|value| Affine::uniform(value ^ 1)))
            }
            Kind::Simple(SimpleOp::Resize { dst, src, bits, signed }) => {
                let resize = Linear::of_resize(bits, signed);
                (dst, self.value(src).and_then(|value| resize.apply([value; 3], dst.width, self.rows)))
            }
            Kind::Simple(SimpleOp::Offset { dst, src, addend }) => {
                (dst, self.value(src).map(|value| value.plus(&Affine::uniform(addend as u64))))
            }
            _ => return None,
        };
        self.set(dst, value);
        Some(())
    }

    /// What a pure operation computes.
    fn results(&self, op: &Pure) -> [Option<Affine>; 2] {
        if let [Some(dst), None] = op.dst
            && let [Some(a), Some(b), Some(c)] = op.linear_src.map(|slot| self.value(slot))
            && let Some(result) = op.linear.apply([a, b, c], dst.width, self.rows)
        {
            return [Some(result), None];
        }
        let mut values = [0; MAX_SOURCES];
        for (value, &slot) in values.iter_mut().zip(op.src()) {
            let Some(uniform) = self.uniform(slot) else { return [None; 2] };
            *value = uniform;
        }
        (op.sem)(&op.picks, &values[..op.sources]).map(|result| Some(Affine::uniform(result)))
    }

    /// A predicate that depends on the thread's place in its block alone.
    fn pattern(&mut self, op: &Pure) -> [Option<Mask>; 2] {
        if op.slow_sem {
            return [None; 2];
        }
        let mut sources: SmallVec<[Source; 3]> = SmallVec::new();
        for &slot in op.src() {
            let affine = self.value(slot).filter(|value| value.block_stride == 0);
            let pattern = || self.patterns.get(slot).map(Source::Pattern);
            let Some(source) = affine.copied().map(Source::Affine).or_else(pattern) else { return [None; 2] };
            sources.push(source);
        }
        self.computed.of(op, sources, self.rows)
    }
}
