//! Pure operations: in scalar form where the sources allow it, else by a vector handler, else lane by lane.

use smallvec::SmallVec;

use super::{Active, Chunk};
use crate::code::{Linear, MAX_SOURCES, Pure};
use crate::mask::{GROUP_LANES, Mask};
use crate::registers::{Scalar, SlotRef, load, store};
use lanes::LaneArgs;

impl Chunk<'_> {
    #[inline(never)]
    pub(super) fn pure(&mut self, op: &Pure, active: Active) {
        let window = active.window;
        if op.src().iter().all(|&slot| self.registers.has_scalar(window, slot))
            && self.pure_scalar(op, &active)
        {
            return;
        }
        let Some(handler) = op.lanes else { return self.pure_lanes(op, active) };
        let first = active.groups.0;
        let mut args = LaneArgs {
            dst: [std::ptr::null_mut(); 2],
            src: [std::ptr::null(); 4],
            lanes: (active.groups.1 - first) * GROUP_LANES,
        };
        for (i, &slot) in op.src().iter().enumerate().take(4) {
            // SAFETY: the groups lie within the slot's array.
            args.src[i] = unsafe { self.registers.read(window, slot).add(group_offset(slot, first)) };
        }
        // Results that must leave other lanes alone go to scratch arrays first.
        let mut merged = [None; 2];
        for which in [0, 1] {
            let Some(slot) = op.dst[which] else { continue };
            let array = if self.whole(&active, slot) {
                self.registers.overwrite(window, slot)
            } else {
                merged[which] = Some(slot);
                self.registers.scratch(which)
            };
            // SAFETY: the groups lie within the slot's array, and within scratch arrays, which have room for the
            // widest slots.
            args.dst[which] = unsafe { array.add(group_offset(slot, first)) };
        }
        // SAFETY: sources and destinations are arrays of the widths of the form's operands (the lowering made them so)
        // with room for `lanes` lanes; a destination is a source's array or another; the handler was looked up for
        // this host.
        unsafe { handler(&args) }
        for which in [0, 1] {
            if let Some(slot) = merged[which] {
                self.registers.merge(window, slot, which, active.mask);
            }
        }
    }

    /// Computes the operation once for all lanes: all sources have scalar forms, and are uniform or step evenly in a
    /// way that the operation keeps.
    fn pure_scalar(&mut self, op: &Pure, active: &Active) -> bool {
        // Only where the result may spill over into all lanes: merging would need the arrays anyway.
        if op.dst.iter().flatten().any(|&slot| !self.whole(active, slot)) {
            return false;
        }
        let scalars: [Scalar; MAX_SOURCES] = std::array::from_fn(|i| match i < op.sources {
            true => self.registers.known_scalar(active.window, op.src[i]),
            false => Scalar::uniform(0),
        });
        let scalars = &scalars[..op.sources];
        if op.linear != Linear::No
            && let [Some(slot), None] = op.dst
            && let Some(result) = op.linear.apply(scalars, slot.width, self.lanes)
        {
            self.registers.set_scalar(active.window, slot, result);
            return true;
        }
        if !scalars.iter().all(|s| s.is_uniform()) {
            return false;
        }
        let values: [u64; MAX_SOURCES] = std::array::from_fn(|i| scalars.get(i).map_or(0, |s| s.base));
        let results = (op.sem)(&op.picks, &values[..op.sources]);
        for (slot, value) in op.dst.iter().zip(results) {
            if let Some(slot) = slot {
                self.registers.set_scalar(active.window, *slot, Scalar::uniform(value));
            }
        }
        true
    }

    /// The operation by `sem`, one lane after the other.
    #[inline(never)]
    fn pure_lanes(&mut self, op: &Pure, active: Active) {
        let src: SmallVec<[(*const u8, SlotRef); 5]> =
            op.src().iter().map(|&slot| (self.registers.read(active.window, slot), slot)).collect();
        let dst = op.dst.map(|d| d.map(|slot| (self.registers.update(active.window, slot), slot)));
        let mut values: SmallVec<[u64; 5]> = SmallVec::from_elem(0, src.len());
        for lane in active.mask {
            for (value, (array, slot)) in values.iter_mut().zip(&src) {
                // SAFETY: arrays have an element for every lane.
                *value = unsafe { load(*array, slot.width, lane) };
            }
            let results = (op.sem)(&op.picks, &values);
            for (place, result) in dst.iter().zip(results) {
                if let Some((array, slot)) = place {
                    // SAFETY: arrays have an element for every lane.
                    unsafe { store(*array, slot.width, lane, result) }
                }
            }
        }
    }

    /// Writes `f(lane)` to the active lanes of a slot.
    pub(super) fn write_lanes(
        &mut self,
        dst: SlotRef,
        active: Active,
        mut f: impl FnMut(&Self, usize) -> u64,
    ) {
        if active.mask.is_empty() {
            return;
        }
        let array = self.registers.scratch(0);
        for lane in active.mask {
            let value = f(self, lane);
            // SAFETY: scratch arrays have an element of any width for every lane.
            unsafe { store(array, dst.width, lane, value) }
        }
        if dst.width == ir::Width::Pred {
            // SAFETY: a predicate's array is a mask.
            let value = unsafe { *array.cast::<Mask>() };
            self.registers.set_predicate(active.window, dst, value, active.mask);
        } else {
            self.registers.merge(active.window, dst, 0, active.mask);
        }
    }
}

/// Byte offset of a group in a slot's array.
#[inline]
pub(super) fn group_offset(slot: SlotRef, group: usize) -> usize {
    group * usize::from(slot.group_bytes)
}
