//! Pure operations. They run on affine forms if the sources allow it, else by a vector handler, else lane by lane.
//!
//! If all sources are uniform, the operation runs once for all lanes; slow floating-point operations run in one lane
//! of the handler. Narrowest test (`tests/run`): `uniform_numbers`.

use std::mem::MaybeUninit;

use diag::Span;
use lanes::{LaneArgs, LaneFn};
use machine::mask::{GROUP_LANES, Mask};
use smallvec::SmallVec;

use super::{Active, Gang, Step};
use crate::affine::Affine;
use crate::bytes::{load, store};
use crate::code::{Linear, MAX_SOURCES, Pure, PureStore};
use crate::registers::SlotRef;
use crate::shared::Shared;

impl Gang<'_> {
    #[inline]
    pub(super) fn pure(&mut self, op: &Pure, active: &Active) {
        if op.linear != Linear::No && self.pure_linear(op, active) {
            return;
        }
        if active.compacts
            && let Some(handler) = op.lanes
        {
            return self.pure_compacted(op, handler, active);
        }
        if !self.pure_planned(op, active) {
            self.pure_uncached(op, active);
        }
    }

    /// Runs the operation in the compacted lanes.
    #[inline(never)]
    fn pure_compacted(&mut self, op: &Pure, handler: LaneFn, active: &Active) {
        if self.all_affine(op, active) && self.pure_scalar(op, active) {
            return;
        }
        let (window, groups) = (active.window, self.registers.compact(active.window, &active.mask));
        let mut args = LaneArgs {
            dst: op
                .dst
                .map(|slot| slot.map_or(std::ptr::null_mut(), |slot| self.registers.compacted_target(slot))),
            src: [std::ptr::null(); LaneArgs::SOURCES],
            step: [0; LaneArgs::SOURCES],
            lanes: groups * GROUP_LANES,
        };
        for (i, &slot) in op.src().iter().enumerate() {
            let source = self.registers.compacted_source(window, slot);
            (args.src[i], args.step[i]) = (source.array, source.step);
        }
        // SAFETY: every operand has `groups` groups of the width that the form requires, or one group that stands for
        // all. Compacted arrays are identical or do not overlap. The handler was looked up for this host.
        unsafe { handler.call(&args) }
        for slot in op.dst.into_iter().flatten() {
            let whole = self.whole(active, slot);
            self.registers.set_compacted(window, slot, whole);
        }
    }

    /// Computes the operation on affine forms. Returns false if a source has no affine form, if the result would have
    /// none, or if another path needs the destination's inactive lanes.
    #[inline(never)]
    fn pure_linear(&mut self, op: &Pure, active: &Active) -> bool {
        let [Some(dst), None] = op.dst else { return false };
        let registers = &mut self.registers;
        let [a, b, c] = op.linear_src;
        let affine = |slot| registers.affine_if_known(active.window, slot);
        let (Some(a), Some(b)) = (affine(a), affine(b)) else { return false };
        // Half of all linear operations are additions, which have no third source.
        let result = match op.linear {
            Linear::Add => Some(a.plus(b)),
            _ => affine(c).and_then(|c| op.linear.apply([a, b, c], dst.width, registers.rows())),
        };
        let Some(result) = result else { return false };
        // An affine result covers all lanes. A merge under the mask would need the arrays anyway.
        let whole = active.alone || self.whole(active, dst);
        if whole {
            self.registers.set_affine(active.window, dst, result);
        }
        whole
    }

    #[inline(never)]
    fn pure_uncached(&mut self, op: &Pure, active: &Active) {
        if self.all_affine(op, active) && self.pure_scalar(op, active) {
            return;
        }
        let Some(handler) = op.lanes else { return self.pure_lanes(op, active) };
        let mut args = self.lane_args(op, active);
        let first = active.groups.0;
        // Read the forms before the destinations change theirs: a destination may be a source.
        let forms = self.forms(op, active);
        // Results that must not change inactive lanes go to scratch arrays first.
        let mut merged = [None; 2];
        for which in [0, 1] {
            let Some(slot) = op.dst[which] else { continue };
            let array = if self.whole(active, slot) {
                self.registers.overwrite(active.window, slot)
            } else {
                merged[which] = Some(slot);
                self.registers.scratch(which)
            };
            // SAFETY: the groups lie within the slot's array, and within scratch arrays, which have room for the
            // widest slots.
            args.dst[which] = unsafe { array.add(group_offset(slot, first)) };
        }
        // SAFETY: `lane_args` made the sources. Destinations are arrays of the widths that the form requires (the
        // lowering made them so) with room for `lanes` lanes. A destination is a source's array or does not overlap
        // it. The handler was looked up for this host.
        unsafe { handler.call(&args) }
        if merged == [None; 2] {
            self.plan_pure(op, active, args, forms);
            return;
        }
        for which in [0, 1] {
            if let Some(slot) = merged[which] {
                self.registers.merge(active.window, slot, which, active.mask);
            }
        }
    }

    /// Whether all sources have affine forms.
    #[inline]
    pub(super) fn all_affine(&self, op: &Pure, active: &Active) -> bool {
        op.src().iter().all(|&slot| self.registers.has_affine(active.window, slot))
    }

    /// The arguments for a vector handler, with sources but without destinations.
    #[inline]
    fn lane_args(&mut self, op: &Pure, active: &Active) -> LaneArgs {
        let (first, end) = active.groups;
        let mut args = LaneArgs {
            dst: [std::ptr::null_mut(); 2],
            src: [std::ptr::null(); LaneArgs::SOURCES],
            step: [0; LaneArgs::SOURCES],
            lanes: (end - first) * GROUP_LANES,
        };
        for (i, &slot) in op.src().iter().enumerate() {
            let mut source = self.registers.source(active.window, slot);
            if op.in_place[i] && source.step == 0 {
                // The first result would overwrite the one group that stands for all.
                self.registers.read(active.window, slot);
                source = self.registers.source(active.window, slot);
            }
            args.src[i] = source.at_group(first);
            args.step[i] = source.step;
        }
        args
    }

    /// Computes the operation once for all lanes, if its sources are uniform. All sources must have affine forms.
    fn pure_scalar(&mut self, op: &Pure, active: &Active) -> bool {
        // An affine result covers all lanes. A merge under the mask would need the arrays anyway.
        if !active.alone && op.dst.iter().flatten().any(|&slot| !self.whole(active, slot)) {
            return false;
        }
        let affine = |i: usize| self.registers.known_affine(active.window, op.src[i]);
        if !(0..op.sources).all(|i| affine(i).is_uniform()) {
            return false;
        }
        let values: [u64; MAX_SOURCES] =
            std::array::from_fn(|i| if i < op.sources { affine(i).base } else { 0 });
        let results = match op.lanes.filter(|_| op.slow_sem) {
            Some(handler) => one_lane(op, handler, &values),
            None => (op.sem)(&op.picks, &values[..op.sources]),
        };
        for (slot, value) in op.dst.iter().zip(results) {
            if let Some(slot) = slot {
                self.registers.set_affine(active.window, *slot, Affine::uniform(value));
            }
        }
        true
    }

    /// A pure operation and the store of its result. If the active lanes store contiguously, the result goes directly
    /// to memory and no register is written.
    #[inline(never)]
    pub(super) fn pure_store(
        &mut self,
        op: &PureStore,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        let pure = &op.pure;
        if active.compacts {
            self.pure(pure, active);
            return self.store(&op.store, active, shared, span);
        }
        let cached = self.plan_fits(pure, active);
        if (cached || !self.all_affine(pure, active))
            && let (Some(_), [Some(result), _]) = (pure.lanes, pure.dst)
            && let Some(target) = self.store_target(&op.store, active, shared, span)
            && (cached || self.plan_store(pure, active, result))
        {
            // SAFETY: the target has room for the lanes of the active groups.
            unsafe { self.pure_planned_store(pure, active, target, result.group_bytes.into()) }
            return Ok(());
        }
        self.pure(pure, active);
        self.store(&op.store, active, shared, span)
    }

    /// Fills the inline cache of a pure operation that has not run yet. Returns false if it cannot be cached.
    fn plan_store(&mut self, pure: &Pure, active: &Active, result: SlotRef) -> bool {
        let mut args = self.lane_args(pure, active);
        let forms = self.forms(pure, active);
        let array = self.registers.array(active.window, result);
        args.dst[0] = array.wrapping_add(group_offset(result, active.groups.0));
        self.plan_pure(pure, active, args, forms)
    }

    /// Runs the operation by `sem`, lane by lane.
    #[inline(never)]
    fn pure_lanes(&mut self, op: &Pure, active: &Active) {
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
        active: &Active,
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

/// Computes one result by a vector handler, in the first lane of a group.
fn one_lane(op: &Pure, handler: LaneFn, values: &[u64; MAX_SOURCES]) -> [u64; 2] {
    type Group = [u64; GROUP_LANES];
    let mut sources = [const { MaybeUninit::<Group>::uninit() }; MAX_SOURCES];
    let mut results = [[0u64; GROUP_LANES]; 2];
    let mut args = LaneArgs {
        dst: results.each_mut().map(|result| result.as_mut_ptr().cast()),
        src: [std::ptr::null(); LaneArgs::SOURCES],
        step: [0; LaneArgs::SOURCES],
        lanes: GROUP_LANES,
    };
    for (i, (source, &value)) in sources.iter_mut().zip(values).enumerate().take(op.sources) {
        // On a little-endian host, the first element holds the first lane for every width. The other lanes' values do
        // not matter.
        let group = source.write([0; GROUP_LANES]);
        group[0] = value;
        args.src[i] = group.as_ptr().cast();
    }
    // SAFETY: every operand has a group of lanes of any width; the handler was looked up for this host.
    unsafe { handler.call(&args) }
    std::array::from_fn(|i| op.dst[i].map_or(0, |slot| slot.width.truncate(results[i][0])))
}

/// Byte offset of a group in a slot's array.
#[inline]
pub(super) fn group_offset(slot: SlotRef, group: usize) -> usize {
    group * usize::from(slot.group_bytes)
}
