//! Watches some bytes of global memory: who writes them, where, and what.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use diag::Span;
use isa::Space;
use machine::{AccessEvent, AccessKind, BlockAccess, LaneAccess, Launch, LaunchObserver, Values};

/// A write to a watched range.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchedWrite {
    /// Index of the range.
    pub range: usize,
    /// The instruction, in the PTX source.
    pub span: Span,
    /// How it writes.
    pub kind: AccessKind,
    /// `%ctaid` of the thread's block.
    pub block: [u32; 3],
    /// Linear index of the thread in its block.
    pub thread: u32,
    /// The range's bytes before the write, little-endian. `None` if other threads wrote in the same step, or if the
    /// range has more than 16 bytes.
    pub before: Option<u128>,
    /// The range's bytes after the write. `None` in the same cases.
    pub after: Option<u128>,
}

/// An observer that records all writes to some ranges of global memory.
///
/// The interpreter reports an access before it happens, so that the bytes after a reduction or an asynchronous copy
/// are those that the next write finds there, or those that [`WriteWatch::finish`] is given.
#[derive(Debug, Default)]
pub struct WriteWatch {
    ranges: Vec<Range<u64>>,
    writes: Vec<WatchedWrite>,
    /// The number of all writes of each range, and how many are kept.
    counts: Vec<u64>,
    kept: usize,
}

impl WriteWatch {
    /// Watches these addresses. Of each range the last `kept` writes are recorded.
    pub fn shared(ranges: Vec<Range<u64>>, kept: usize) -> Arc<Mutex<WriteWatch>> {
        let counts = vec![0; ranges.len()];
        Arc::new(Mutex::new(WriteWatch { ranges, writes: Vec::new(), counts, kept: kept.max(1) }))
    }

    /// The launch has ended: `read` returns what the ranges hold now.
    pub fn finish(&mut self, read: impl Fn(&Range<u64>) -> Option<u128>) {
        for range in 0..self.ranges.len() {
            let now = read(&self.ranges[range]);
            self.complete(range, now);
        }
    }

    /// The recorded writes, in the order in which they happened.
    pub fn writes(&self) -> &[WatchedWrite] {
        &self.writes
    }

    /// The number of ranges.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// The number of all writes to a range.
    pub fn count(&self, range: usize) -> u64 {
        self.counts[range]
    }

    /// A range holds these bytes now: the last write left them there.
    fn complete(&mut self, range: usize, now: Option<u128>) {
        if let Some(last) = self.writes.iter_mut().rfind(|write| write.range == range) {
            last.after = last.after.or(now);
        }
    }

    fn touches(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes);
        self.ranges.iter().any(|range| range.start < end && address < range.end)
    }

    fn record(&mut self, access: &AccessEvent, lane: &LaneAccess, values: Values, is_first: &mut [bool]) {
        let end = lane.address.saturating_add(lane.bytes);
        for (range, is_first) in is_first.iter_mut().enumerate() {
            let watched = self.ranges[range].clone();
            if watched.start >= end || lane.address >= watched.end {
                continue;
            }
            let bytes = watched.end - watched.start;
            let part = LaneAccess { address: watched.start, bytes, ..*lane };
            // What an earlier lane of the same step leaves is not in memory yet.
            let before = std::mem::take(is_first).then(|| values.memory(&part)).flatten();
            if before.is_some() {
                self.complete(range, before);
            }
            let is_inside = lane.address <= watched.start && watched.end <= end;
            let after = values.stored(lane).filter(|_| is_inside && bytes <= 16).map(|stored| {
                let bits = stored >> (8 * (watched.start - lane.address));
                if bytes < 16 { bits & ((1 << (8 * bytes)) - 1) } else { bits }
            });
            self.counts[range] += 1;
            if self.counts[range] > self.kept as u64
                && let Some(oldest) = self.writes.iter().position(|write| write.range == range)
            {
                self.writes.remove(oldest);
            }
            let (block, thread) = (lane.block, lane.thread);
            let (span, kind) = (access.span, access.kind);
            self.writes.push(WatchedWrite { range, span, kind, block, thread, before, after });
        }
    }
}

impl LaunchObserver for WriteWatch {
    fn begin(&mut self, _: &Launch) {
        self.writes.clear();
        self.counts.fill(0);
    }

    fn wants_block_access(&self, kind: AccessKind, space: Space) -> bool {
        kind.writes() && matches!(space, Space::Global | Space::Generic)
    }

    fn block_access(&mut self, access: &BlockAccess) -> ControlFlow<(), [u64; 16]> {
        let mut threads = [0; 16];
        if access.space == Space::Global && !access.parts(|at, bytes| !self.touches(at, bytes)) {
            for (word, members) in access.threads.iter().enumerate() {
                for bit in (0..64).filter(|bit| members >> bit & 1 != 0) {
                    let thread = 64 * word as u32 + bit;
                    if self.touches(access.addresses.of(thread), access.bytes) {
                        threads[word] |= 1 << bit;
                    }
                }
            }
        }
        ControlFlow::Continue(threads)
    }

    fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
        if access.kind.writes() {
            let mut is_first = vec![true; self.ranges.len()];
            for lane in access.lanes.iter().filter(|lane| lane.space == Space::Global) {
                self.record(access, lane, access.values, &mut is_first);
            }
        }
        ControlFlow::Continue(())
    }

    fn wants_one_thread(&self) -> bool {
        true
    }
}
