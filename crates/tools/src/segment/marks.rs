//! The marks of words: who has accessed a word, and whether another access could race with that.

use crate::block::WARP;

/// How a word is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Read,
    Write,
    /// By atomic operations, which do not race with each other.
    Atomic,
}

impl How {
    /// Marks a word as accessed by a thread. Returns true if the access could race with what the marks record.
    #[inline(always)]
    pub(super) fn races(self, now: u32, own: u32, write: &mut u32, other: &mut u32) -> bool {
        let is_written = *write >= now && *write != own;
        match self {
            How::Read => {
                let races = is_written || *other == now + ATOMIC;
                *other = if *other < now || *other == own { own } else { now + SEVERAL };
                races
            }
            How::Write => {
                *write = own;
                is_written || *other >= now && *other != own
            }
            How::Atomic => {
                let races = is_written || *other >= now && *other != now + ATOMIC;
                *other = now + ATOMIC;
                races
            }
        }
    }

    /// The same, if warps have met since the segment began.
    pub(super) fn races_since(
        self,
        met: &Met,
        now: u32,
        thread: u32,
        write: &mut u32,
        other: &mut u32,
    ) -> bool {
        let own = now + thread;
        let is_written = met.is_apart(*write, thread);
        match self {
            How::Read => {
                let races = is_written || *other >= met.first && *other % MARKS == ATOMIC;
                *other = match () {
                    () if !met.is_apart(*other, thread) => own,
                    () if warp_of(*other) == Some(thread / WARP) => now + SEVERAL_OF_WARP + thread / WARP,
                    () => now + SEVERAL,
                };
                races
            }
            How::Write => {
                *write = own;
                is_written || met.is_apart(*other, thread)
            }
            How::Atomic => {
                let races = is_written || *other >= met.first && *other % MARKS != ATOMIC;
                *other = now + ATOMIC;
                races
            }
        }
    }
}

/// When the warps of a block last met in a segment.
pub(super) struct Met {
    /// Marks from this number on are of this segment.
    pub first: u32,
    /// By warp: marks of its lanes below this number are of accesses that happen before what all its lanes do now.
    pub warps: [u32; 32],
}

impl Met {
    /// Whether a mark is of this segment, and of an access that may not happen before what the thread does now.
    fn is_apart(&self, mark: u32, thread: u32) -> bool {
        let warp = thread / WARP;
        mark >= self.first
            && mark % MARKS != thread
            && !(warp_of(mark) == Some(warp) && mark < self.warps[warp as usize % 32])
    }
}

/// The warp that a mark belongs to, if all its threads are of one warp.
fn warp_of(mark: u32) -> Option<u32> {
    match mark % MARKS {
        thread if thread < SEVERAL => Some(thread / WARP),
        several if several >= SEVERAL_OF_WARP => Some(several - SEVERAL_OF_WARP),
        _ => None,
    }
}

/// A mark is the number of a segment (or of its part between two meetings of warps) plus the index of a thread, or plus one of these.
pub(super) const SEVERAL: u32 = 1024;
pub(super) const ATOMIC: u32 = 1025;
/// From here on: several lanes of one warp.
const SEVERAL_OF_WARP: u32 = 1026;
pub(super) const MARKS: u32 = 2048;
