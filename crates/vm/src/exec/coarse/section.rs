//! Sections of straight-line native code for the threads of many blocks.

use std::collections::HashMap;

use jit::Frame;
use machine::mask::{GANG_LANES, GROUP_LANES, Mask};
use smallvec::SmallVec;

use crate::affine::{Affine, LaneRows};
use crate::bytes::{AlignedBytes, store};
use crate::code::{CompiledStraight, Straight, Word};
use crate::exec::region::region_of_launch;
use crate::exec::straight::{Context, call, fetched_ahead, find_region};
use crate::exec::strips::{Strips, keep_frame, spare_frame};
use crate::registers::SlotRef;
use crate::run::Run;

/// A section on the way of the threads.
pub(super) struct Section<'l> {
    straight: &'l Straight,
    code: &'l CompiledStraight,
    /// The threads of all blocks.
    rows: LaneRows,
    /// The threads of a block that are there.
    alive: Mask,
    /// The host's addresses for each pointer.
    pub pointers: SmallVec<[Affine; 4]>,
    /// The values of each even.
    pub evens: SmallVec<[Affine; 2]>,
    /// The threads of a block for which each predicate holds.
    pub predicates: Vec<Mask>,
    pub words: Vec<Elements>,
}

/// The threads that a section has skipped: of so many blocks at once, from this one on.
pub(super) type Skipped = Vec<(usize, Mask)>;

/// The elements of a word: one for each thread.
pub(super) struct Elements {
    array: *mut u8,
    slot: SlotRef,
    /// What all of them are before the section.
    fill: Option<u64>,
    /// Those of one group stand for all.
    is_group: bool,
}

/// The arrays of values that sections compute for later ones.
#[derive(Default)]
pub(super) struct Arrays {
    /// By slot.
    arrays: HashMap<u32, AlignedBytes>,
    /// Those that have the slot's value.
    now: SmallVec<[u32; 8]>,
    lanes: usize,
    /// How many sections of these threads have asked for.
    taken: usize,
}

/// The most elements of all arrays: what the host's caches have room for.
const MOST_ELEMENTS: usize = 1 << 20;

impl Arrays {
    /// None has a value. There are so many threads.
    pub fn clear(&mut self, lanes: usize) {
        self.now.clear();
        (self.lanes, self.taken) = (lanes, 0);
    }

    /// The slot has another value.
    pub fn remove(&mut self, slot: SlotRef) {
        self.now.retain(|index| *index != slot.index);
    }

    /// The array that has the slot's value, if one does.
    pub fn of(&self, slot: SlotRef) -> Option<*const u8> {
        let array = self.arrays.get(&slot.index).filter(|_| self.now.contains(&slot.index));
        array.map(|array| array.as_ptr().cast_const())
    }

    /// The slots whose values arrays have.
    pub fn now(&self) -> impl Iterator<Item = (u32, *const u8)> {
        self.now.iter().filter_map(|index| Some((*index, self.arrays.get(index)?.as_ptr().cast_const())))
    }

    /// Gives the array of one slot to another one, which has its value from now on. Those that already point to it find it as before.
    pub fn give(&mut self, from: SlotRef, to: SlotRef) {
        let (mine, other) = (self.arrays.remove(&from.index), self.arrays.remove(&to.index));
        self.arrays.extend(mine.map(|array| (to.index, array)));
        self.arrays.extend(other.map(|array| (from.index, array)));
        self.now.retain(|index| *index != from.index);
        self.now.push(to.index);
    }

    /// There is room for so many more arrays.
    pub fn have_room(&self, more: usize) -> bool {
        (self.taken + more) * self.lanes <= MOST_ELEMENTS
    }

    /// A word of a section has elements: the array's, or one value, which is the same in all threads.
    pub fn has(&self, word: &Word, value: Option<u64>) -> bool {
        !word.enters || value.is_some() || self.now.contains(&word.slot.index)
    }

    /// The elements of a word of a section. `value`: as for `has`.
    pub fn word(&mut self, word: &Word, value: Option<u64>) -> Elements {
        let slot = word.slot;
        let is_there = self.now.contains(&slot.index);
        let bytes = self.lanes * slot.width.bytes();
        let array = self.arrays.entry(slot.index).or_insert_with(|| AlignedBytes::zeroed(bytes));
        // The first section of a range that has the slot: no other one points to the array.
        if array.len() < bytes {
            *array = AlignedBytes::zeroed(bytes);
        }
        let fill = value.filter(|_| !is_there && word.enters);
        if !is_there && word.defined {
            self.now.push(slot.index);
            self.taken += 1;
        }
        Elements { array: array.as_ptr(), slot, fill, is_group: fill.is_some() && !word.defined }
    }
}

impl<'l> Section<'l> {
    pub fn new(
        straight: &'l Straight,
        code: &'l CompiledStraight,
        rows: LaneRows,
        alive: Mask,
    ) -> Section<'l> {
        let (pointers, evens) = (SmallVec::new(), SmallVec::new());
        let (predicates, words) = (Vec::new(), Vec::new());
        Section { straight, code, rows, alive, pointers, evens, predicates, words }
    }

    /// The code checks addresses itself.
    pub fn checks(&self) -> bool {
        !self.straight.plan.checked.is_empty()
    }

    /// Takes all threads through the code. Returns the thread-instructions that the code counts, and the threads that it skips.
    pub fn run(&self, launch: &Run) -> (u64, Skipped) {
        let parts = self.code.native.parts();
        let (of_block, blocks) = (self.rows.block_lanes(), self.rows.blocks());
        // Masks have the lanes of a gang. Where whole blocks fill them, and none notes what is skipped, they repeat for all blocks.
        let at_once = match GANG_LANES.is_multiple_of(of_block) && !self.checks() {
            true => blocks,
            false => GANG_LANES / of_block,
        };
        let rows = self.rows.of_blocks(at_once.min(blocks));
        for word in &self.words {
            word.fill(self.rows.lanes);
        }
        let mut context = Context {
            accesses: self.straight.plan.accesses(),
            find: &|request, least, greatest| region_of_launch(launch, request, least, greatest),
            calls: &self.straight.calls,
            lanes: parts * GROUP_LANES,
        };
        let mut frame = spare_frame();
        (frame.call, frame.find_region) = (call, find_region);
        frame.context = (&raw mut context).cast();
        for &access in &self.straight.plan.checked {
            frame.regions[access] = jit::Region::NONE;
        }
        let mut skipped = Skipped::new();
        frame.lanes = repeated(self.alive, of_block).0;
        for (place, &lanes) in frame.predicates.iter_mut().zip(&self.predicates) {
            *place = repeated(lanes, of_block).0;
        }
        let mut strips = Strips::of_straight(rows, parts, &self.code.evens);
        strips.evens.extend_from_slice(&self.evens);
        strips.words = self.words.iter().map(|word| (word.array, word.step())).collect();
        strips.plan(&mut frame, self.pointers.iter().copied());
        for (index, pointer) in self.pointers.iter().enumerate() {
            strips.set_pointer(&mut frame, index, pointer, 0);
            frame.ahead[index] = fetched_ahead(pointer);
        }
        for first in (0..blocks).step_by(at_once) {
            let lanes = of_block * (blocks - first).min(at_once);
            let at =
                |affine: &Affine| affine.base.wrapping_add(affine.block_stride.wrapping_mul(first as u64));
            for (now, even) in strips.evens.iter_mut().zip(&self.evens) {
                now.base = at(even);
            }
            for (now, word) in strips.words.iter_mut().zip(&self.words) {
                now.0 = word.array.wrapping_add(first * of_block / GROUP_LANES * word.step());
            }
            let (mut next, end) = (0, lanes / (parts * GROUP_LANES));
            frame.skipped = Mask::EMPTY.0;
            while next < end {
                let lane = strips.first_lane(next);
                for (place, pointer) in frame.pointers.iter_mut().zip(&self.pointers) {
                    *place = match lane {
                        0 => at(pointer),
                        _ => Affine { base: at(pointer), ..*pointer }.at(lane, rows),
                    };
                }
                next = strips.begin(&mut frame, next, end);
                self.call(&mut frame);
            }
            if frame.skipped != Mask::EMPTY.0 {
                skipped.push((first, Mask(frame.skipped)));
            }
        }
        let counted = std::mem::take(&mut frame.instructions);
        keep_frame(frame);
        (counted, skipped)
    }

    fn call(&self, frame: &mut Frame) {
        // SAFETY: the code was made for the machine's vectors. Its words are arrays with an element for each thread. Its pointers
        // are into memory of the launch, which lives as long as that, or into shared memory of the blocks, and have been checked for
        // all threads.
        unsafe { self.code.native.run(frame) }
    }
}

impl Elements {
    /// Bytes from one group to the next.
    fn step(&self) -> usize {
        if self.is_group { 0 } else { GROUP_LANES * self.slot.width.bytes() }
    }

    fn fill(&self, lanes: usize) {
        let Some(value) = self.fill else { return };
        for lane in 0..if self.is_group { GROUP_LANES } else { lanes } {
            // SAFETY: the array has so many elements, and is aligned to them.
            unsafe { store(self.array, self.slot.width, lane, value) }
        }
    }
}

/// The lanes of a block, in each block.
pub(super) fn repeated(lanes: Mask, of_block: usize) -> Mask {
    if lanes == Mask::ALL {
        return lanes;
    }
    let mut all = Mask::EMPTY;
    for group in 0..GANG_LANES / GROUP_LANES {
        all.set_group(group, lanes.group(group % (of_block / GROUP_LANES)));
    }
    all
}
