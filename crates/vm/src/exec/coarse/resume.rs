//! How the threads of many blocks go on in gangs, when not all of them could do what native code does: one has stopped on a way of few
//! threads (`solo.rs`), or a section has skipped some that may not access memory as they would.
//!
//! Each gang gets the values that its lanes have, and goes on where they are. Where a section of a basic block has skipped lanes, the
//! interpreter takes these through its operations first. Where a trace has, they begin again with its first basic block.

use machine::mask::{GANG_LANES, Mask};
use smallvec::SmallVec;

use super::Coarse;
use super::patterns::Patterns;
use super::section::{Skipped, repeated};
use super::solo::{Known, Solo, Stuck};
use crate::affine::{Affine, LaneRows};
use crate::code::Op;
use crate::exec::path::Path;
use crate::exec::{Active, Gang, Step, Wait};
use crate::registers::{SlotRef, Window};
use crate::shared::Shared;

/// Where the threads of many blocks are. It is valid until other blocks run without a gang.
pub(crate) struct Stopped<'l> {
    rows: LaneRows,
    /// The slots whose values are known.
    live: Vec<(SlotRef, Known)>,
    /// The shared memory of all blocks, and bytes from that of one block to that of the next.
    shared: Option<(*const u8, usize)>,
    way: Way<'l>,
}

enum Way<'l> {
    /// Few threads of each block go alone. Slots are as they were before any did.
    Alone {
        threads: Mask,
        /// Where they begin, and where all others are.
        head: u32,
        join: u32,
        /// The thread that has stopped. Those before it are where all meet, and those behind it have not begun.
        stuck: Stuck,
    },
    /// All are behind a section, but for some that it has skipped. Slots are as they are behind it.
    Section {
        place: Place<'l>,
        /// The threads of a block that have not ended.
        alive: Mask,
        skipped: Skipped,
        /// What slots were in skipped threads.
        before: Vec<(SlotRef, Known)>,
    },
}

/// Threads of a block, and instructions of each.
pub(super) type OfLanes = SmallVec<[(Mask, u64); 2]>;

/// A section that checks addresses.
#[derive(Clone, Copy)]
pub(super) enum Place<'l> {
    /// In a basic block: its operations, and those behind it.
    Block { index: u32, ops: &'l [Op], rest: &'l [Op] },
    /// That of a trace, with its first and last basic block.
    Trace { head: u32, last: u32 },
}

/// What gangs need that go on behind a section.
pub(super) struct Behind<'l> {
    place: Place<'l>,
    /// Thread-instructions of a block that do not depend on which threads are skipped, and the others.
    pub cost: u64,
    pub of_lanes: OfLanes,
    /// What slots were before a trace that have other values behind it.
    pub before: Vec<(SlotRef, Known)>,
    alive: Mask,
    values: Vec<Option<Affine>>,
    patterns: Patterns,
    arrays: Vec<(u32, *const u8)>,
}

/// How a gang begins that goes on behind a section.
pub(crate) struct Rest<'l> {
    place: Place<'l>,
    ended: Mask,
    skipped: Mask,
}

impl Behind<'_> {
    /// As [`Coarse::known`], behind the section.
    fn known(&self, slot: SlotRef) -> Option<Known> {
        let affine = self.values[slot.index as usize].map(Known::Affine);
        let pattern = || self.patterns.get(slot).map(Known::Pattern);
        let array = || self.arrays.iter().find(|(index, _)| *index == slot.index);
        affine.or_else(pattern).or_else(|| array().map(|&(_, array)| Known::Array(array)))
    }

    /// The thread-instructions of threads that the section has not skipped. `all`: the threads of a block.
    pub fn count(&self, skipped: &Skipped, rows: LaneRows, all: Mask) -> u64 {
        let of_block = rows.block_lanes();
        let count = |lanes: Mask| {
            let left_out = skipped.iter().map(|(_, skipped)| (repeated(lanes, of_block) & *skipped).count());
            u64::from((lanes & all).count()) * rows.blocks() as u64 - u64::from(left_out.sum::<u32>())
        };
        self.of_lanes.iter().map(|&(lanes, cost)| cost * count(lanes)).sum()
    }
}

impl<'l> Coarse<'l> {
    /// What gangs need that go on behind a section, now that all values are as they are there. `cost`: as in [`Behind`], but for
    /// threads that have ended.
    pub(super) fn behind(&self, place: Place<'l>, cost: u64) -> Behind<'l> {
        Behind {
            place,
            cost: cost + self.ended,
            of_lanes: OfLanes::new(),
            before: Vec::new(),
            alive: self.alive,
            values: self.values.clone(),
            patterns: self.patterns.clone(),
            arrays: self.arrays.now().collect(),
        }
    }

    /// Where the threads are if a section has skipped some.
    pub(super) fn stop_behind(&self, behind: &Behind<'l>, skipped: Skipped) -> Stopped<'l> {
        let known = |slot: &SlotRef| Some((*slot, behind.known(*slot)?));
        let live = self.function.all.iter().filter_map(known).collect();
        let (place, alive, before) = (behind.place, behind.alive, behind.before.clone());
        let way = Way::Section { place, alive, skipped, before };
        Stopped { rows: self.rows, live, shared: self.shared_of_all(), way }
    }

    /// Where the threads are if one has stopped on its way.
    pub(super) fn stop_alone(&self, solo: &Solo, stuck: Stuck) -> Stopped<'l> {
        let (threads, head, join) = (solo.threads, solo.way.head, solo.way.join);
        let way = Way::Alone { threads, head, join, stuck };
        Stopped { rows: self.rows, live: solo.live.clone(), shared: self.shared_of_all(), way }
    }

    fn shared_of_all(&self) -> Option<(*const u8, usize)> {
        let memory = self.shared.as_ref()?;
        Some((memory.as_ptr().cast_const(), self.shared_bytes()))
    }
}

impl<'l> Gang<'l> {
    /// Goes on with blocks that have stopped, of which those of this gang begin with number `first`. The gang has just been started.
    pub fn resume(&mut self, stopped: &Stopped<'l>, first: usize, shared: &mut Shared) {
        let [path] = self.scheduler.paths[..] else { return };
        let window = self.frames[path.frame].window;
        let (rows, lanes) = (stopped.rows, path.mask.count() as usize);
        let of_block = rows.block_lanes();
        for &(slot, known) in &stopped.live {
            match known {
                Known::Affine(affine) => {
                    let before = affine.block_stride.wrapping_mul(first as u64);
                    let affine = Affine { base: affine.base.wrapping_add(before), ..affine };
                    self.registers.set_affine(window, slot, affine);
                }
                Known::Pattern(holds) => {
                    self.registers.set_predicate(window, slot, repeated(holds, of_block), Mask::ALL);
                }
                Known::Array(array) => {
                    let (from, bytes) = (first * of_block * slot.width.bytes(), lanes * slot.width.bytes());
                    let to = self.registers.overwrite(window, slot);
                    // SAFETY: one array has an element for each thread of all blocks, and the other one for each lane.
                    unsafe { std::ptr::copy_nonoverlapping(array.add(from), to, bytes) }
                }
            }
        }
        if let Some((memory, stride)) = stopped.shared {
            let bytes = stride * (lanes / of_block);
            debug_assert!(bytes <= shared.memory.len());
            // SAFETY: both have memory for so many blocks.
            unsafe {
                std::ptr::copy_nonoverlapping(memory.add(first * stride), shared.memory.as_ptr(), bytes)
            }
        }
        match &stopped.way {
            Way::Alone { threads, head, join, stuck } => {
                let alone = repeated(*threads, of_block) & path.mask;
                let Stuck { block, thread, at, ref values } = *stuck;
                let at_lane = (block * of_block + thread) as i64 - (first * of_block) as i64;
                // The lanes that have not begun, the one that has stopped, and those that wait for them.
                let begun = Mask::first(at_lane.clamp(0, GANG_LANES as i64) as usize);
                let stuck = match usize::try_from(at_lane) {
                    Ok(lane) if lane < lanes => Mask::single(lane),
                    _ => Mask::EMPTY,
                };
                for lane in stuck {
                    values.iter().for_each(|&(slot, value)| self.set_in(window, slot, lane, value));
                }
                let waiting = alone.without(begun).without(stuck);
                let others = path.mask.without(waiting).without(stuck);
                self.part(path, &[(waiting, *head), (stuck, at), (others, *join)]);
            }
            Way::Section { place, alive, skipped, before } => {
                let skipped =
                    (0..lanes).filter(|lane| is_skipped(skipped, of_block, first * of_block + lane));
                let skipped: Mask = skipped.fold(Mask::EMPTY, |all, lane| all | Mask::single(lane));
                for lane in skipped {
                    for &(slot, known) in before {
                        let value = known.at(slot, first + lane / of_block, lane % of_block, rows);
                        self.set_in(window, slot, lane, value);
                    }
                }
                let ended = path.mask.without(repeated(*alive, of_block));
                self.rest = Some(Box::new(Rest { place: *place, ended, skipped }));
            }
        }
    }

    fn set_in(&mut self, window: Window, slot: SlotRef, lane: usize, value: u64) {
        match slot.width {
            ir::Width::Pred => {
                let value = if value != 0 { Mask::ALL } else { Mask::EMPTY };
                self.registers.set_predicate(window, slot, value, Mask::single(lane));
            }
            _ => self.registers.set(window, slot, lane, value),
        }
    }

    /// Lets lanes of the only path be paths of their own, at these basic blocks.
    fn part(&mut self, path: Path, places: &[(Mask, u32)]) {
        self.scheduler.paths.clear();
        let mut places = places.iter().filter(|(lanes, _)| !lanes.is_empty()).peekable();
        while let Some(&(mask, block)) = places.next() {
            if places.peek().is_some() {
                self.frames.retain(path.frame);
            }
            self.put(&Path { mask, frame: path.frame, block, wait: Wait::Ready, yields: 0 });
        }
    }

    /// Goes on behind a section with the lanes of the only path. They may be other paths then.
    pub fn go_on(&mut self, rest: &Rest<'l>, path: &mut Path, shared: &mut Shared) -> Step {
        self.scheduler.paths.clear();
        let Some(function) = self.function(self.frames[path.frame].function) else { return Ok(()) };
        if !rest.ended.is_empty() {
            self.frames.retain(path.frame);
            self.end(&mut Path { mask: rest.ended, ..*path }, shared);
            path.mask = path.mask.without(rest.ended);
        }
        let skipped = rest.skipped & path.mask;
        let (index, ops, behind) = match rest.place {
            Place::Block { index, ops, rest } => (index, ops, rest),
            Place::Trace { head, last } => {
                if skipped == path.mask {
                    path.block = head;
                    return Ok(());
                }
                if !skipped.is_empty() {
                    self.split(path, skipped, head);
                }
                (last, &[][..], &[][..])
            }
        };
        path.block = index;
        self.find_needed(path);
        let mut active = Active::new(self.frames[path.frame].window, path.frame);
        active.set_path(path.mask, self.threads.lanes);
        active.alone = self.scheduler.needed.is_empty();
        if !ops.is_empty() && !skipped.is_empty() {
            let part = self.part_of(&active, skipped);
            ops.iter().try_for_each(|op| self.execute_op(op, &part, shared))?;
        }
        behind.iter().try_for_each(|op| self.execute_op(op, &active, shared))?;
        self.terminate(path, &function.blocks[index as usize], &active, shared).map(drop)
    }
}

/// Whether a section has skipped a thread, counted over all blocks.
fn is_skipped(skipped: &Skipped, of_block: usize, thread: usize) -> bool {
    let at_once = GANG_LANES / of_block * of_block;
    let mut frames = skipped.iter().map(|&(block, lanes)| (block * of_block, lanes));
    frames.any(|(first, lanes)| (first..first + at_once).contains(&thread) && lanes.contains(thread - first))
}
