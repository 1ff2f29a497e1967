//! The paths of a gang: lanes at the same position, which path runs next, and which slots the other paths need.
//!
//! Ready paths at the same position merge. The slots that other paths need are computed only when an operation runs,
//! not for basic blocks that only jump.
//!
//! Narrowest tests: `tests/run`: `divergence_nested`, `call_waits`, `barrier_guarded`, `barrier_and_others`; unit
//! tests of `affine.rs` (the CTA of a lane).

use machine::mask::Mask;

use super::Gang;
use crate::shared::Shared;

/// Why a path does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It does not wait: it can run.
    Ready,
    /// At barrier `index` of CTA `block` of the gang, until its generation differs from `generation`.
    Barrier {
        block: u8,
        index: u8,
        generation: u32,
        /// The basic block that ends with the barrier; it says where a reduction's result goes.
        from: u32,
    },
    /// At the start of a basic block whose warp-level operation needs more lanes.
    Warp,
    /// At the grid barrier, until this generation is complete.
    Grid { generation: u64 },
}

/// Lanes at the same position in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub mask: Mask,
    /// Index into [`Frames`](super::frame::Frames).
    pub frame: u32,
    /// The next basic block of the frame's function.
    pub block: u32,
    pub wait: Wait,
    /// How often the path has yielded.
    pub yields: u32,
}

/// The paths of a gang that do not run.
#[derive(Default)]
pub(crate) struct Scheduler {
    pub paths: Vec<Path>,
    /// Bitset of the slots in the running path's window that other paths still read. Empty if no other path waits.
    pub needed: Vec<u64>,
    /// Other paths have changed since `needed` was computed.
    pub needed_changed: bool,
}

impl Gang<'_> {
    /// Adds a path to the others. If it is ready, it merges with a ready path at the same position. Lanes that wait
    /// at a guarded barrier stay apart: their position is where the lanes whose guard is false continue.
    pub(super) fn put(&mut self, path: &Path) {
        let is_twin = |p: &&mut Path| {
            p.frame == path.frame && p.block == path.block && p.yields == path.yields && p.wait == Wait::Ready
        };
        match self.scheduler.paths.iter_mut().find(is_twin) {
            Some(twin) if path.wait == Wait::Ready => {
                twin.mask |= path.mask;
                self.frames.release(path.frame);
            }
            _ => self.scheduler.paths.push(*path),
        }
    }

    /// Takes the path that runs next, merged with all others at the same position; false if all wait.
    pub(super) fn pick(&mut self, shared: &Shared, path: &mut Path) -> bool {
        if let [only] = &self.scheduler.paths[..]
            && only.wait == Wait::Ready
        {
            *path = *only;
            self.scheduler.paths.clear();
            self.scheduler.needed.clear();
            self.scheduler.needed_changed = false;
            return true;
        }
        self.wake(shared);
        // The path with the least rank runs first: fewest yields, then the deepest call, then the lowest basic block.
        // Diverged lanes mean many paths, in an order that the host's branch predictor cannot foresee, and this loop
        // runs for each of them. So it computes the minimum without branches.
        let (mut best, mut least, mut depth_of) = (usize::MAX, u128::MAX, (u32::MAX, 0));
        for (i, p) in self.scheduler.paths.iter().enumerate() {
            if !matches!(p.wait, Wait::Ready) {
                continue;
            }
            if depth_of.0 != p.frame {
                depth_of = (p.frame, self.frames[p.frame].depth);
            }
            let rank = u128::from(p.yields) << 64 | u128::from(!depth_of.1) << 32 | u128::from(p.block);
            (best, least) = if rank < least { (i, rank) } else { (best, least) };
        }
        if best == usize::MAX {
            return false;
        }
        *path = self.scheduler.paths[best];
        self.remove_path(best);
        let mut i = 0;
        while i < self.scheduler.paths.len() {
            let other = &self.scheduler.paths[i];
            let waits = matches!(other.wait, Wait::Barrier { .. } | Wait::Grid { .. });
            if other.frame == path.frame && other.block == path.block && !waits {
                path.mask |= other.mask;
                path.yields = path.yields.min(other.yields);
                self.frames.release(path.frame);
                self.remove_path(i);
            } else {
                i += 1;
            }
        }
        self.scheduler.needed_changed = true;
        true
    }

    /// Removes a path; the last path takes its index.
    fn remove_path(&mut self, index: usize) {
        // Not `swap_remove`, which calls a function to move the path.
        if let Some(last) = self.scheduler.paths.last().copied() {
            self.scheduler.paths[index] = last;
            self.scheduler.paths.truncate(self.scheduler.paths.len() - 1);
        }
    }

    /// Makes paths whose barrier is complete ready, and writes the results of its reduction for them.
    fn wake(&mut self, shared: &Shared) {
        for i in 0..self.scheduler.paths.len() {
            if let Wait::Barrier { block, index, generation, .. } = self.scheduler.paths[i].wait
                && shared.barrier(block.into(), index.into()).generation != generation
            {
                let path = self.scheduler.paths[i];
                self.scheduler.paths[i].wait = Wait::Ready;
                self.finish_reduction(shared, &path);
            }
            if let Wait::Grid { generation } = self.scheduler.paths[i].wait
                && self.launch.grid_barrier.is_over(generation)
            {
                self.scheduler.paths[i].wait = Wait::Ready;
            }
        }
    }

    /// Finds the slots of the running path's window that other paths will read.
    pub(super) fn find_needed(&mut self, path: &Path) {
        self.scheduler.needed.clear();
        self.scheduler.needed_changed = false;
        if self.frames.is_own(path.frame) {
            return;
        }
        let depth = self.frames[path.frame].depth;
        let Some(function) = self.function(self.frames[path.frame].function) else { return };
        for other in &self.scheduler.paths {
            // Another path needs the live-in slots at its position, and its callers need the live-in slots where it
            // will return.
            let (mut frame, mut block) = (other.frame, other.block);
            loop {
                if frame == path.frame {
                    let live = &function.blocks[block as usize].live_in;
                    self.scheduler.needed.resize(live.len().max(self.scheduler.needed.len()), 0);
                    for (word, live) in self.scheduler.needed.iter_mut().zip(live) {
                        *word |= live;
                    }
                    // Its callers are also the running path's callers.
                    break;
                }
                let f = &self.frames[frame];
                match f.parent {
                    // Only a deeper frame can have been called from the running path's frame.
                    Some(parent) if f.depth > depth => (frame, block) = (parent, f.return_block),
                    _ => break,
                }
            }
        }
    }

    /// Whether another path should run before this one continues at `block`.
    pub(super) fn should_stop(&self, path: &Path, block: u32) -> bool {
        let depth = self.frames[path.frame].depth;
        self.scheduler.paths.iter().any(|p| match p.wait {
            Wait::Ready => {
                let d = if p.frame == path.frame { depth } else { self.frames[p.frame].depth };
                let meets = p.frame == path.frame && p.block == block;
                meets || p.yields <= path.yields && (d > depth || d == depth && p.block < block)
            }
            Wait::Warp => p.frame == path.frame && p.block == block,
            Wait::Barrier { .. } | Wait::Grid { .. } => false,
        })
    }
}
