//! Pure operations: in affine form where the sources allow it, else by a vector handler, else lane by lane.
//!
//! Uniform sources are computed once for all lanes, floating point by one lane of the handler. Narrowest test (`tests/run`):
//! `uniform_numbers`.

use std::mem::MaybeUninit;

use diag::Span;
use smallvec::SmallVec;

use super::{Active, Gang, Step};
use crate::affine::Affine;
use crate::bytes::{load, store};
use crate::code::{Linear, MAX_SOURCES, Pure, PureStore};
use crate::cta::Shared;
use crate::mask::{GROUP_LANES, Mask};
use crate::registers::SlotRef;
use lanes::{LaneArgs, LaneFn};

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

    /// The operation in the compacted lanes.
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
        // SAFETY: every operand has so many groups of the widths of the form's operands, or one that stands for all; compacted forms
        // are each other's or do not overlap; the handler was looked up for this host.
        unsafe { handler.call(&args) }
        for slot in op.dst.into_iter().flatten() {
            let whole = self.whole(active, slot);
            self.registers.set_compacted(window, slot, whole);
        }
    }

    /// Computes the operation on affine forms, if its sources have them and step in a way that the operation keeps.
    #[inline(never)]
    fn pure_linear(&mut self, op: &Pure, active: &Active) -> bool {
        let [Some(dst), None] = op.dst else { return false };
        let registers = &mut self.registers;
        let [a, b, c] = op.linear_src;
        let affine = |slot| registers.affine_if_known(active.window, slot);
        let (Some(a), Some(b)) = (affine(a), affine(b)) else { return false };
        // Half of all: no need to look at more.
        let result = match op.linear {
            Linear::Add => Some(a.plus(b)),
            _ => affine(c).and_then(|c| op.linear.apply([a, b, c], dst.width, registers.rows())),
        };
        let Some(result) = result else { return false };
        // Only where the result may spill over into all lanes: merging would need the arrays anyway.
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
        // Before the destinations get their new forms: one may be a source.
        let forms = self.forms(op, active);
        // Results that must leave other lanes alone go to scratch arrays first.
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
        // SAFETY: `lane_args` made the sources, and destinations are arrays of the widths of the form's operands (the
        // lowering made them so) with room for `lanes` lanes; a destination is a source's array or another; the
        // handler was looked up for this host.
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

    /// All sources have affine forms.
    #[inline]
    pub(super) fn all_affine(&self, op: &Pure, active: &Active) -> bool {
        op.src().iter().all(|&slot| self.registers.has_scalar(active.window, slot))
    }

    /// The sources of an operation for a vector handler; no destinations yet.
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
                // One group that stands for all would be overwritten by the first result.
                self.registers.read(active.window, slot);
                source = self.registers.source(active.window, slot);
            }
            args.src[i] = source.at_group(first);
            args.step[i] = source.step;
        }
        args
    }

    /// Computes the operation once for all lanes, if its sources, which have affine forms, are uniform.
    fn pure_scalar(&mut self, op: &Pure, active: &Active) -> bool {
        // Only where the result may spill over into all lanes: merging would need the arrays anyway.
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

    /// A pure operation and the store of its result, which needs no register where all lanes of some groups store one
    /// after the other.
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

    /// Plans a pure operation that has not run yet. False if there is no inline cache of it.
    fn plan_store(&mut self, pure: &Pure, active: &Active, result: SlotRef) -> bool {
        let mut args = self.lane_args(pure, active);
        let forms = self.forms(pure, active);
        let array = self.registers.array(active.window, result);
        args.dst[0] = array.wrapping_add(group_offset(result, active.groups.0));
        self.plan_pure(pure, active, args, forms)
    }

    /// The operation by `sem`, one lane after the other.
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

/// The results of one lane by a vector handler: the first of a group.
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
        // Little-endian: the first lane of any width. What the others have does not matter.
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
