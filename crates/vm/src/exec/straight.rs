//! Operations of a basic block that run as native code together.
//!
//! Addresses that step evenly are checked before the code runs, for all lanes of the gang. If one is not allowed, the interpreter runs
//! the operations one by one, and reports what is wrong. The code checks others itself, and skips strips of lanes that may not access
//! them. Then the interpreter runs the operations of these lanes.
//!
//! Narrowest test: `ptxvm/tests/native`.

use jit::{Access, Frame, MOST_POINTERS, Pointer};
use machine::mask::{GANG_LANES, GROUP_LANES, Mask};
use machine::memory::HEAP_BASE;
use smallvec::SmallVec;

use super::addresses::{Even, Region};
use super::native::{KnownRegion, asked_region, compute};
use super::path::Path;
use super::request::Request;
use super::strips::{Strips, keep_frame, spare_frame};
use super::{Active, Gang, Step};
use crate::affine::{Affine, LaneRows};
use crate::code::{CompiledStraight, Op, Straight, Trace, Word};
use crate::shared::Shared;

/// The host's addresses of each pointer, and the bytes from the copy of one CTA to that of the next.
type Pointers = SmallVec<[(Affine, usize); MOST_POINTERS]>;

/// Finds the memory of an access, from the least and the greatest address on.
pub(super) type Find<'f> = dyn Fn(&Request, u64, u64) -> Option<Region> + 'f;

/// What [`call`] and [`find_region`] need.
pub(super) struct Context<'c> {
    pub calls: &'c [Op],
    /// Lanes of a strip.
    pub lanes: usize,
    /// The accesses of the code, and what finds memory for those that it checks itself.
    pub accesses: &'c [Access],
    pub find: &'c Find<'c>,
}

impl Gang<'_> {
    #[inline(never)]
    pub(super) fn straight(&mut self, straight: &Straight, active: &Active, shared: &mut Shared) -> Step {
        if !straight.plan.is_small
            && let Some(skipped) = self.run_straight(straight, active, shared)
        {
            if skipped.is_empty() {
                return Ok(());
            }
            let rest = self.part_of(active, skipped);
            return straight.ops.iter().try_for_each(|op| self.execute_op(op, &rest, shared));
        }
        straight.ops.iter().try_for_each(|op| self.execute_op(op, active, shared))
    }

    /// Some of the active lanes. The others keep their values.
    pub(super) fn part_of(&self, active: &Active, lanes: Mask) -> Active {
        let mut part = Active { alone: false, guarded: true, few: false, compacts: false, ..*active };
        part.set_mask(lanes, self.threads.lanes);
        part
    }

    /// Takes the lanes of a path through all basic blocks of a trace, but for those that may not access memory as they would. These
    /// stay at its first basic block, as another path. Returns false if nothing has run.
    #[inline(never)]
    pub(super) fn run_trace(
        &mut self,
        trace: &Trace,
        path: &mut Path,
        active: &mut Active,
        shared: &mut Shared,
    ) -> Step<bool> {
        trace.before.iter().try_for_each(|op| self.execute_op(op, active, shared))?;
        // Native code may give the predicates other values.
        let of_some = trace.some.iter().map(|(guard, cost)| {
            let holds = self.registers.predicate(active.window, guard.slot);
            (if guard.negated { !holds } else { holds }, cost)
        });
        let of_some: SmallVec<[_; 4]> = of_some.collect();
        let is_way = trace.is_way(|slot| self.registers.uniform(active.window, slot));
        let skipped = is_way.then(|| self.run_straight(&trace.section, active, shared)).flatten();
        let skipped = skipped.unwrap_or(active.mask);
        let went = skipped != active.mask;
        trace.note(went);
        if !went {
            return Ok(false);
        }
        if !skipped.is_empty() {
            self.split(path, skipped, path.block);
            self.find_needed(path);
            *active = self.part_of(active, path.mask);
        }
        let of_some = of_some.iter().map(|(lanes, cost)| *cost * u64::from((active.mask & *lanes).count()));
        self.steps.instructions += of_some.sum::<u64>() + trace.cost * active.count as u64;
        trace.after.iter().try_for_each(|op| self.execute_op(op, active, shared))?;
        active.guarded = false;
        Ok(true)
    }

    /// Returns the lanes that have been skipped. `None`: nothing has run.
    fn run_straight(&mut self, straight: &Straight, active: &Active, shared: &Shared) -> Option<Mask> {
        let window = active.window;
        if !straight.guards_hold(|slot| self.registers.uniform(window, slot)) {
            return None;
        }
        if straight.plan.whole_warps && !active.mask.is_whole_warps_of(Mask::ALL) {
            return None;
        }
        let code = straight.code(|slot| self.native_form(window, slot))?;
        let parts = code.native.parts();
        let rows = self.registers.rows();
        if rows.blocks() > 1 && !rows.block_lanes().is_multiple_of(parts * GROUP_LANES) {
            return None;
        }
        let mut pointers = Pointers::new();
        for (index, pointer) in straight.plan.pointers.iter().enumerate() {
            let affine = *self.registers.affine_if_known(window, straight.pointers[index])?;
            pointers.push(self.find_pointer(straight.first_region + index, pointer, affine, rows, shared)?);
        }

        self.registers.expand();
        let mut frame = spare_frame();
        let mut word = |word: &Word| match word.defined && active.all_lanes && !word.enters {
            true => (self.registers.overwrite(window, word.slot), usize::from(word.slot.group_bytes)),
            false => self.word(window, word.slot, word.defined),
        };
        let mut strips = Strips::of_straight(rows, parts, &code.evens);
        code.words.iter().for_each(|each| strips.words.push(word(each)));
        code.evens.iter().for_each(|&slot| strips.evens.push(self.form_of(window, slot)));
        strips.plan(&mut frame, pointers.iter().map(|&(affine, _)| affine));
        frame.lanes = active.mask.0;
        for (place, &(slot, _)) in frame.predicates.iter_mut().zip(&straight.predicates) {
            *place = self.registers.predicate(window, slot).0;
        }
        let skipped = if straight.plan.checked.is_empty() {
            walk(straight, code, &mut frame, active, (&strips, &pointers), (rows, &|_, _, _| None));
            Mask::EMPTY
        } else {
            let known = straight.first_region + pointers.len();
            let known = known..known + straight.plan.checked.len();
            let regions = straight.plan.checked.iter().zip(&self.caches.regions[known.clone()]);
            regions.for_each(|(&access, known)| frame.regions[access] = KnownRegion::of(*known));
            frame.skipped = Mask::EMPTY.0;
            let find = |request: &Request, least, greatest| self.region(shared, request, least, greatest);
            walk(straight, code, &mut frame, active, (&strips, &pointers), (rows, &find));
            let regions = straight.plan.checked.iter().zip(&mut self.caches.regions[known]);
            regions.for_each(|(&access, known)| *known = Some(KnownRegion::from(frame.regions[access])));
            Mask(frame.skipped)
        };
        for (&(slot, defined), &value) in straight.predicates.iter().zip(&frame.predicates) {
            if defined {
                self.registers.set_predicate(window, slot, Mask(value), active.mask);
            }
        }
        self.steps.instructions += std::mem::take(&mut frame.instructions);
        keep_frame(frame);
        Some(skipped)
    }

    /// See [`locate`].
    #[inline]
    fn find_pointer(
        &mut self,
        cache: usize,
        pointer: &Pointer,
        affine: Affine,
        rows: LaneRows,
        shared: &Shared,
    ) -> Option<(Affine, usize)> {
        let mut known = self.caches.regions[cache];
        let find = |request: &Request, least, greatest| self.region(shared, request, least, greatest);
        let found = locate(&mut known, pointer, affine, rows, find);
        self.caches.regions[cache] = known;
        found
    }
}

/// The host's addresses of a pointer, and the bytes from the copy of one CTA to that of the next. `known`: the memory that the
/// pointer has had before.
#[inline]
pub(super) fn locate(
    known: &mut Option<KnownRegion>,
    pointer: &Pointer,
    affine: Affine,
    rows: LaneRows,
    find: impl FnOnce(&Request, u64, u64) -> Option<Region>,
) -> Option<(Affine, usize)> {
    let even = Even::new(affine, 0, pointer.narrow, rows)?;
    let start = even.bounds.0.checked_add_signed(pointer.least)?;
    let end = even.bounds.1.checked_add_signed(pointer.end)?;
    if even.affine.base & (pointer.align - 1) != 0 || pointer.narrow && end > 1 << 32 {
        return None;
    }
    let holds = |known: &KnownRegion| known.holds(start, end);
    if !known.as_ref().is_some_and(holds) {
        let &Pointer { space, write, span, .. } = pointer;
        let region = find(&Request { space, bytes: 1, write, span }, start, end - 1)?;
        if region.base >= HEAP_BASE || region.passing {
            return None;
        }
        *known = Some(KnownRegion::new(region, 1)?);
    }
    let known = known.filter(holds)?;
    let base = known.address(even.affine.base) as u64;
    Some((Affine { base, ..even.affine }, known.stride()))
}

/// How many bytes ahead the host fetches what blocks behind will access: at least those of a gang, if lanes access consecutive
/// elements.
pub(super) fn fetched_ahead(affine: &Affine) -> i64 {
    let (step, stride) = (affine.step as i64, affine.block_stride as i64);
    let least = step.wrapping_mul(GANG_LANES as i64);
    if !(1..=least.max(1 << 20)).contains(&stride) || least <= 0 {
        return least;
    }
    (least as u64).next_multiple_of(stride as u64) as i64
}

/// Takes the lanes through the code.
fn walk(
    straight: &Straight,
    code: &CompiledStraight,
    frame: &mut Frame,
    active: &Active,
    (strips, pointers): (&Strips, &Pointers),
    (rows, find): (LaneRows, &Find),
) {
    let parts = code.native.parts();
    for (index, (affine, stride)) in pointers.iter().enumerate() {
        strips.set_pointer(frame, index, affine, *stride as u64);
        frame.ahead[index] = fetched_ahead(affine);
    }
    let accesses = straight.plan.accesses();
    let mut context = Context { calls: &straight.calls, lanes: parts * GROUP_LANES, accesses, find };
    (frame.call, frame.find_region) = (call, find_region);
    frame.context = (&raw mut context).cast();
    let (first, end) = active.groups;
    let (mut next, end) = (first / parts, end.div_ceil(parts));
    while next < end {
        let block = strips.block(next);
        for (place, (affine, stride)) in frame.pointers.iter_mut().zip(pointers) {
            *place = affine.at(strips.first_lane(next), rows).wrapping_add((block * stride) as u64);
        }
        next = strips.begin(frame, next, end);
        // SAFETY: the code was made for the machine's vectors. The words are arrays with room for the elements of all groups;
        // those that the code writes are the gang's own. Pointers are into memory of the launch, which lives as long as the
        // gang, and have been checked for all lanes.
        unsafe { code.native.run(frame) }
    }
}

/// Finds the memory of an access that the code checks.
pub(super) extern "C" fn find_region(frame: *mut Frame, access: usize) -> bool {
    // SAFETY: as in `call`.
    let (frame, context) = unsafe {
        let frame = &mut *frame;
        let context = &*frame.context.cast::<Context>();
        (frame, context)
    };
    let Some(region) = asked_region(frame, &context.accesses[access], context.find) else { return false };
    frame.regions[access] = region;
    true
}

/// Computes an operation for the lanes of all groups of a strip.
pub(super) extern "C" fn call(frame: *mut Frame, index: usize) {
    // SAFETY: `walk` calls the code with a frame and a context that live until it returns, and uses neither meanwhile.
    let (frame, context) = unsafe {
        let frame = &mut *frame;
        let context = &*frame.context.cast::<Context>();
        (frame, context)
    };
    compute(frame, &context.calls[index], context.lanes);
}
