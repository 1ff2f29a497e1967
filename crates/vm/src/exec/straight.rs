//! Operations of a basic block that run as native code together.
//!
//! All addresses are checked before the code runs, for all lanes of the gang. If one is not allowed, or is not known to step
//! evenly, the interpreter runs the operations one by one, and reports what is wrong.
//!
//! Narrowest test: `ptxvm/tests/native.rs`.

use jit::{Frame, MOST_POINTERS, Pointer};
use machine::mask::{GROUP_LANES, Mask};
use machine::memory::HEAP_BASE;
use smallvec::SmallVec;

use super::addresses::Even;
use super::native::{KnownRegion, Walk, compute, keep_frame, spare_frame};
use super::request::Request;
use super::{Active, Gang, Step};
use crate::affine::{Affine, LaneRows};
use crate::code::{CompiledStraight, Straight};
use crate::shared::Shared;

/// What the code reads and writes, for all lanes of the gang.
struct Operands {
    /// The first group, and the bytes from one group to the next.
    words: SmallVec<[(*mut u8, usize); 16]>,
    evens: SmallVec<[Affine; 8]>,
    /// The host's addresses, and the bytes from the copy of one CTA to that of the next.
    pointers: SmallVec<[(Affine, usize); MOST_POINTERS]>,
}

impl Gang<'_> {
    #[inline(never)]
    pub(super) fn straight(&mut self, straight: &Straight, active: &Active, shared: &mut Shared) -> Step {
        if self.run_straight(straight, active, shared).is_some() {
            return Ok(());
        }
        straight.ops.iter().try_for_each(|op| self.execute(op, active, shared))
    }

    /// `None`: nothing has run.
    fn run_straight(&mut self, straight: &Straight, active: &Active, shared: &Shared) -> Option<()> {
        let window = active.window;
        let code = straight.code(|slot| self.native_form(window, slot))?;
        let parts = code.native.parts();
        let rows = self.registers.rows();
        if rows.blocks() > 1 && !rows.block_lanes().is_multiple_of(parts * GROUP_LANES) {
            return None;
        }
        let mut pointers = SmallVec::new();
        for (index, pointer) in straight.plan.pointers.iter().enumerate() {
            let affine = *self.registers.affine_if_known(window, straight.pointers[index])?;
            pointers.push(self.find_pointer(straight.first_region + index, pointer, affine, rows, shared)?);
        }

        self.registers.expand();
        let mut frame = spare_frame();
        let words = code
            .words
            .iter()
            .map(|word| match word.defined {
                true if active.all_lanes && !word.enters => {
                    (self.registers.overwrite(window, word.slot), usize::from(word.slot.group_bytes))
                }
                true => (self.registers.update(window, word.slot), usize::from(word.slot.group_bytes)),
                false => {
                    let source = self.registers.source(window, word.slot);
                    (source.array.cast_mut(), source.step)
                }
            })
            .collect();
        let evens = code
            .evens
            .iter()
            .map(|&slot| self.registers.affine(window, slot).unwrap_or(Affine::uniform(0)))
            .collect();
        frame.lanes = active.mask.0;
        for (place, &(slot, _)) in frame.predicates.iter_mut().zip(&straight.predicates) {
            *place = self.registers.predicate(window, slot).0;
        }
        self.walk(straight, code, &mut frame, active, &Operands { words, evens, pointers }, rows);
        for (&(slot, defined), &value) in straight.predicates.iter().zip(&frame.predicates) {
            if defined {
                self.registers.set_predicate(window, slot, Mask(value), active.mask);
            }
        }
        keep_frame(frame);
        Some(())
    }

    /// The host's addresses of a pointer, and the bytes from the copy of one CTA to that of the next.
    #[inline]
    fn find_pointer(
        &mut self,
        cache: usize,
        pointer: &Pointer,
        affine: Affine,
        rows: LaneRows,
        shared: &Shared,
    ) -> Option<(Affine, usize)> {
        let even = Even::new(affine, 0, pointer.narrow, rows)?;
        let start = even.bounds.0.checked_add_signed(pointer.least)?;
        let end = even.bounds.1.checked_add_signed(pointer.end)?;
        if even.affine.base & (pointer.align - 1) != 0 || pointer.narrow && end > 1 << 32 {
            return None;
        }
        let holds = |known: &KnownRegion| known.holds(start, end);
        let known = match self.caches.regions[cache].filter(holds) {
            Some(known) => known,
            None => {
                let &Pointer { space, write, span, .. } = pointer;
                let request = Request { space, bytes: 1, write, span };
                let region = self.region(shared, &request, start, end - 1)?;
                if region.base >= HEAP_BASE || region.passing {
                    return None;
                }
                let known = KnownRegion::new(region, 1)?;
                self.caches.regions[cache] = Some(known);
                known.holds(start, end).then_some(known)?
            }
        };
        let base = known.address(even.affine.base) as u64;
        Some((Affine { base, ..even.affine }, known.stride()))
    }

    /// Takes the lanes through the code.
    fn walk(
        &mut self,
        straight: &Straight,
        code: &CompiledStraight,
        frame: &mut Frame,
        active: &Active,
        Operands { words, evens, pointers }: &Operands,
        rows: LaneRows,
    ) {
        let parts = code.native.parts();
        for (place, &(_, step)) in frame.word_steps.iter_mut().zip(words) {
            *place = step * parts;
        }
        let walk = Walk::new(rows, parts, evens.iter().chain(pointers.iter().map(|(affine, _)| affine)));
        for (index, even) in evens.iter().enumerate() {
            (frame.advance.evens[index], frame.jump.evens[index]) = walk.steps(even, rows);
        }
        for (index, (affine, stride)) in pointers.iter().enumerate() {
            let (advance, jump) = walk.steps(affine, rows);
            let stride = if walk.by_block { *stride as u64 } else { 0 };
            (frame.advance.pointers[index], frame.jump.pointers[index]) =
                (advance, jump.wrapping_add(stride));
        }
        frame.run = walk.run as u64;
        frame.call = call;
        frame.context = std::ptr::from_ref(straight).cast_mut().cast();
        let (first, end) = active.groups;
        let (first, end) = (first / parts, end.div_ceil(parts));
        // The second group of the last strip may be missing: then the first one stands for it.
        let is_half =
            |strip: usize| (strip + 1) * parts * GROUP_LANES > rows.lanes.next_multiple_of(GROUP_LANES);
        let mut next = first;
        while next < end {
            let group = next * parts;
            let stop = walk.end(next).min(if is_half(end - 1) && next < end - 1 { end - 1 } else { end });
            let second = if is_half(next) { group } else { group + 1 };
            for (places, &(array, step)) in frame.words.iter_mut().zip(words) {
                *places = [group, second].map(|group| array.wrapping_add(group * step));
            }
            for (index, (affine, slot)) in evens.iter().zip(&code.evens).enumerate() {
                let base = slot.width.truncate(affine.at(group * GROUP_LANES, rows));
                (frame.bases[index], frame.entered[index]) = (base, base);
            }
            let block = rows.block_of(group * GROUP_LANES);
            for (place, (affine, stride)) in frame.pointers.iter_mut().zip(pointers) {
                *place = affine.at(group * GROUP_LANES, rows).wrapping_add((block * stride) as u64);
            }
            (frame.strip, frame.end) = (next as u64, stop as u64);
            frame.left_in_run = (walk.run - next % walk.run) as u64;
            // SAFETY: the code was made for the machine's vectors. The words are arrays with room for the elements of all
            // groups; those that the code writes are the gang's own. Pointers are into memory of the launch, which lives as long
            // as the gang, and have been checked for all lanes.
            unsafe { code.native.run(frame) }
            next = stop;
        }
    }
}

/// Computes an operation for the lanes of all groups of a strip.
extern "C" fn call(frame: *mut Frame, index: usize) {
    // SAFETY: `walk` calls the code with a frame and a context that live until it returns, and uses neither meanwhile.
    let (frame, straight) = unsafe {
        let frame = &mut *frame;
        let straight = &*frame.context.cast::<Straight>().cast_const();
        (frame, straight)
    };
    compute(frame, &straight.calls[index], 2 * GROUP_LANES);
}
