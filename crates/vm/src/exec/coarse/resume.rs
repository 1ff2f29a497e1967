//! How the threads of many blocks go on in gangs, when one of them has stopped on a way of few threads (`solo.rs`).

use machine::mask::{GANG_LANES, Mask};

use super::section::repeated;
use super::solo::{Known, Solo, Stuck};
use crate::affine::{Affine, LaneRows};
use crate::exec::path::Path;
use crate::exec::{Gang, Wait};
use crate::registers::SlotRef;
use crate::shared::Shared;

/// Where the threads of many blocks are. It is valid until other blocks run without a gang.
pub(crate) struct Stopped {
    rows: LaneRows,
    /// The threads of a block that go alone, where they begin, and where all others are.
    alone: Mask,
    head: u32,
    join: u32,
    /// The thread that has stopped. Those before it are where all meet, and those behind it have not begun.
    stuck: Stuck,
    /// The slots as they were before any thread went alone.
    live: Vec<(SlotRef, Known)>,
    /// The shared memory of all blocks, and bytes from that of one block to that of the next.
    shared: Option<(*const u8, usize)>,
}

impl Stopped {
    pub(super) fn new(
        rows: LaneRows,
        solo: &Solo,
        stuck: Stuck,
        shared: Option<(*const u8, usize)>,
    ) -> Stopped {
        let (head, join) = (solo.way.head, solo.way.join);
        Stopped { rows, alone: solo.threads, head, join, stuck, live: solo.live.clone(), shared }
    }
}

impl Gang<'_> {
    /// Goes on with blocks that have stopped, of which those of this gang begin with number `first`. The gang has just been started.
    pub fn resume(&mut self, stopped: &Stopped, first: usize, shared: &mut Shared) {
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
        // The lanes that have not begun, the one that has stopped, and those that wait for them.
        let alone = repeated(stopped.alone, of_block) & path.mask;
        let Stuck { block, thread, at, ref values } = stopped.stuck;
        let at_lane = (block * of_block + thread) as i64 - (first * of_block) as i64;
        let begun = Mask::first(at_lane.clamp(0, GANG_LANES as i64) as usize);
        let stuck = match usize::try_from(at_lane) {
            Ok(lane) if lane < lanes => Mask::single(lane),
            _ => Mask::EMPTY,
        };
        for lane in stuck {
            for &(slot, value) in values {
                match slot.width {
                    ir::Width::Pred => {
                        let value = if value != 0 { Mask::ALL } else { Mask::EMPTY };
                        self.registers.set_predicate(window, slot, value, stuck);
                    }
                    _ => self.registers.set(window, slot, lane, value),
                }
            }
        }
        let waiting = alone.without(begun).without(stuck);
        let places =
            [(waiting, stopped.head), (stuck, at), (path.mask.without(waiting).without(stuck), stopped.join)];
        self.scheduler.paths.clear();
        let mut places = places.into_iter().filter(|(lanes, _)| !lanes.is_empty()).peekable();
        while let Some((mask, block)) = places.next() {
            if places.peek().is_some() {
                self.frames.retain(path.frame);
            }
            let path = Path { mask, frame: path.frame, block, wait: Wait::Ready, yields: 0 };
            self.put(&path);
        }
        self.scheduler.needed_changed = true;
    }
}
