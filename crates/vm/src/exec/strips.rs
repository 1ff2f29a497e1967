//! How native code goes through the lanes of a gang: strip by strip. A strip is one or two groups of 16 lanes.

use std::cell::Cell;

use jit::Frame;
use machine::mask::GROUP_LANES;
use smallvec::SmallVec;

use super::Gang;
use crate::affine::{Affine, LaneRows};
use crate::registers::{SlotRef, Window};

thread_local! {
    /// A frame is large: a host thread keeps it between the calls of native code.
    static FRAME: Cell<Option<Box<Frame>>> = const { Cell::new(None) };
}

pub(super) fn spare_frame() -> Box<Frame> {
    FRAME.take().unwrap_or_default()
}

pub(super) fn keep_frame(frame: Box<Frame>) {
    FRAME.set(Some(frame));
}

/// How the strips of a gang follow each other. In a *run* of strips, every value that steps evenly advances by the same from
/// strip to strip.
struct Walk {
    /// Strips of a run.
    run: usize,
    /// Strips of whole runs, until the next value is not where the end of a run jumps to. Straight-line code leaps there.
    whole: usize,
    /// A run is a CTA. Otherwise it is a row of one, or all strips of the gang.
    by_block: bool,
    /// Lanes of a strip.
    lanes: usize,
}

impl Walk {
    fn new(rows: LaneRows, parts: usize, mut evens: impl Iterator<Item = Affine>) -> Walk {
        let lanes = parts * GROUP_LANES;
        let all = rows.lanes.div_ceil(lanes).max(1);
        let (in_row, in_block) = (rows.width() / lanes, rows.block_lanes() / lanes);
        let rows_fit = rows.has_whole_groups() && rows.width().is_multiple_of(lanes);
        let blocks_fit = rows.has_whole_groups() && rows.block_lanes().is_multiple_of(lanes);
        // Strips that are two rows follow each other evenly, too.
        let is_linear = |even: Affine| even.is_linear_in_block(even.step, rows);
        let alike = !rows_fit || evens.all(is_linear);
        match (rows.blocks(), alike) {
            (1, true) => Walk { run: all, whole: all, by_block: false, lanes },
            (_, true) if blocks_fit => Walk { run: in_block, whole: all, by_block: true, lanes },
            // Such values step evenly through the whole gang.
            (_, true) => Walk { run: all, whole: all, by_block: false, lanes },
            (_, false) => Walk { run: in_row, whole: in_block.max(1), by_block: false, lanes },
        }
    }

    /// What a value differs by from one strip of a run to the next, from the last strip of a run to the first of the next, and from
    /// the last one of whole runs to the next.
    fn steps(&self, even: &Affine, rows: LaneRows) -> [u64; 3] {
        [1, self.run, self.whole].map(|strip| {
            let at = |strip: usize| even.at(strip * self.lanes, rows);
            at(strip).wrapping_sub(at(strip - 1))
        })
    }

    /// The end of the strips that follow this one without a leap.
    fn end(&self, strip: usize) -> usize {
        // Most calls begin with the first strip, and a division takes long.
        if strip == 0 { self.whole } else { (strip / self.whole + 1) * self.whole }
    }

    /// The strips of the run of this one that are left, and the runs before a leap, of so many.
    fn left(&self, strip: usize, runs: usize) -> (usize, usize) {
        match strip {
            0 => (self.run, runs),
            _ => (self.run - strip % self.run, runs - strip / self.run % runs),
        }
    }
}

/// What native code reads and writes, and how strips follow each other.
pub(super) struct Strips<'c> {
    walk: Walk,
    rows: LaneRows,
    /// Groups of a strip.
    parts: usize,
    /// The elements of the first group, and the bytes from one group to the next.
    pub words: SmallVec<[(*mut u8, usize); 16]>,
    /// The values that step evenly, and their slots.
    pub evens: SmallVec<[Affine; 8]>,
    slots: &'c [SlotRef],
    /// For straight-line code.
    leaps: bool,
}

impl<'c> Strips<'c> {
    /// Nothing yet. They stay where they are made: it takes long to move them. `slots`: those of the values that step evenly.
    #[inline(always)]
    pub fn new(rows: LaneRows, parts: usize, slots: &'c [SlotRef]) -> Strips<'c> {
        let walk = Walk { run: 0, whole: 0, by_block: false, lanes: 0 };
        Strips { walk, rows, parts, words: SmallVec::new(), evens: SmallVec::new(), slots, leaps: false }
    }

    /// For straight-line code.
    #[inline(always)]
    pub fn of_straight(rows: LaneRows, parts: usize, slots: &'c [SlotRef]) -> Strips<'c> {
        Strips { leaps: true, ..Strips::new(rows, parts, slots) }
    }

    /// Decides how strips follow each other, once all values are there. `others`: what steps evenly besides.
    pub fn plan(&mut self, frame: &mut Frame, others: impl Iterator<Item = Affine>) {
        self.walk = Walk::new(self.rows, self.parts, self.evens.iter().copied().chain(others));
        for (place, &(_, step)) in frame.word_steps.iter_mut().zip(&self.words) {
            *place = step * self.parts;
        }
        for (index, even) in self.evens.iter().enumerate() {
            let steps = self.walk.steps(even, self.rows);
            [frame.advance.evens[index], frame.jump.evens[index], frame.leap.evens[index]] = steps;
        }
        frame.run = self.walk.run as u64;
        frame.runs = (self.walk.whole / self.walk.run) as u64;
    }

    /// Tells the frame of straight-line code what a pointer differs by. `stride`: and from one CTA to the next besides.
    pub fn set_pointer(&self, frame: &mut Frame, index: usize, pointer: &Affine, stride: u64) {
        let [advance, jump, leap] = self.walk.steps(pointer, self.rows);
        let (of_jump, of_leap) = if self.walk.by_block { (stride, 0) } else { (0, stride) };
        frame.advance.pointers[index] = advance;
        frame.jump.pointers[index] = jump.wrapping_add(of_jump);
        frame.leap.pointers[index] = leap.wrapping_add(of_leap);
    }

    /// A run of strips is a CTA.
    pub fn by_block(&self) -> bool {
        self.walk.by_block
    }

    /// The number of lanes in the strips before this one.
    pub fn first_lane(&self, strip: usize) -> usize {
        strip * self.walk.lanes
    }

    /// The CTA of a strip's first lane.
    pub fn block(&self, strip: usize) -> usize {
        self.rows.block_of(self.first_lane(strip))
    }

    /// Lets a call begin with strip `next`, of those up to `end`. It ends at the returned one.
    pub fn begin(&self, frame: &mut Frame, next: usize, end: usize) -> usize {
        // The second group of the last strip may be missing: then the first one stands for it.
        let is_half =
            |strip: usize| self.first_lane(strip + 1) > self.rows.lanes.next_multiple_of(GROUP_LANES);
        let last = if is_half(end - 1) && next < end - 1 { end - 1 } else { end };
        let stop = if self.leaps { last } else { self.walk.end(next).min(last) };
        let group = next * self.parts;
        let second = if is_half(next) { group } else { group + 1 };
        for (places, &(array, step)) in frame.words.iter_mut().zip(&self.words) {
            *places = [group, second].map(|group| array.wrapping_add(group * step));
        }
        for (index, (affine, slot)) in self.evens.iter().zip(self.slots).enumerate() {
            let first = if next == 0 { affine.base } else { affine.at(self.first_lane(next), self.rows) };
            let base = slot.width.truncate(first);
            (frame.bases[index], frame.entered[index]) = (base, base);
        }
        (frame.strip, frame.end) = (next as u64, stop as u64);
        let (left_in_run, left_runs) = self.walk.left(next, frame.runs as usize);
        (frame.left_in_run, frame.left_runs) = (left_in_run as u64, left_runs as u64);
        stop
    }
}

impl Gang<'_> {
    /// The elements of a slot for native code that reads them, or writes some of them (`defined`).
    pub(super) fn word(&mut self, window: Window, slot: SlotRef, defined: bool) -> (*mut u8, usize) {
        if defined {
            return (self.registers.update(window, slot), usize::from(slot.group_bytes));
        }
        let source = self.registers.source(window, slot);
        (source.array.cast_mut(), source.step)
    }

    /// The affine form of a slot. One that native code writes may have none.
    pub(super) fn form_of(&self, window: Window, slot: SlotRef) -> Affine {
        self.registers.affine(window, slot).unwrap_or(Affine::uniform(0))
    }
}
