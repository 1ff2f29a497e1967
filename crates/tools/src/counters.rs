//! Counts the memory requests of a launch, by instruction: sectors, passes over shared memory, bytes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use diag::Span;
use isa::Space;
use machine::{AccessEvent, AccessKind, BlockAccess, Launch, LaunchObserver};

/// Lanes of a warp.
const WARP_LANES: u32 = 32;
/// Bytes of a sector of global memory, the unit in which a GPU transfers.
const SECTOR: u64 = 32;
/// Banks of shared memory, each of four bytes (CUDA C++ Programming Guide, "Shared Memory").
const BANKS: u64 = 32;
const BANK_BYTES: u64 = 4;

/// The requests of one instruction to one state space. A *request* is one execution by a warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestCounts {
    /// How many.
    pub requests: u64,
    /// Threads that took part.
    pub threads: u64,
    /// Bytes that these threads accessed.
    pub bytes: u64,
    /// Of global memory: different sectors of 32 bytes, summed over the requests.
    pub sectors: u64,
    /// Of global memory: the fewest sectors for as many different bytes.
    pub least_sectors: u64,
    /// Of shared memory: passes, in each of which a bank serves one word of four bytes.
    pub wavefronts: u64,
    /// Of shared memory: passes beyond the least number, which is one for each 128 bytes of threads in a row.
    pub conflicts: u64,
}

impl RequestCounts {
    /// Adds the counts of another instruction.
    pub fn add(&mut self, other: &RequestCounts) {
        self.requests += other.requests;
        self.threads += other.threads;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.least_sectors += other.least_sectors;
        self.wavefronts += other.wavefronts;
        self.conflicts += other.conflicts;
    }
}

/// An observer that counts memory requests.
#[derive(Debug, Default)]
pub struct Counters {
    counts: BTreeMap<(Span, Space, AccessKind), RequestCounts>,
    /// Addresses of the request at hand, kept for their memory.
    lanes: Vec<u64>,
}

impl Counters {
    /// No requests yet.
    pub fn shared() -> Arc<Mutex<Counters>> {
        Arc::default()
    }

    /// The counts by instruction, space, and kind of access, in the order of the source.
    pub fn counts(&self) -> impl Iterator<Item = (Span, Space, AccessKind, &RequestCounts)> {
        self.counts.iter().map(|(&(span, space, kind), counts)| (span, space, kind, counts))
    }

    /// Adds a request: the addresses of the lanes of a warp that take part, in ascending order, each of `bytes`.
    fn add(&mut self, span: Span, space: Space, kind: AccessKind, lanes: &[u64], bytes: u64) {
        let counts = self.counts.entry((span, space, kind)).or_default();
        counts.requests += 1;
        counts.threads += lanes.len() as u64;
        counts.bytes += bytes * lanes.len() as u64;
        match space {
            Space::Global => {
                let (sectors, least) = sectors(lanes, bytes);
                counts.sectors += sectors;
                counts.least_sectors += least;
            }
            Space::Shared => {
                let (wavefronts, least) = wavefronts(lanes, bytes);
                counts.wavefronts += wavefronts;
                counts.conflicts += wavefronts - least;
            }
            _ => {}
        }
    }
}

/// Different sectors that lanes access, and the fewest for as many different bytes.
fn sectors(lanes: &[u64], bytes: u64) -> (u64, u64) {
    let mut starts = lanes.to_vec();
    starts.sort_unstable();
    starts.dedup();
    let (mut sectors, mut next_sector, mut different, mut next_byte) = (0, 0, 0, 0);
    for start in starts {
        let end = start.saturating_add(bytes.max(1));
        different += end - next_byte.max(start).min(end);
        next_byte = next_byte.max(end);
        let (first, last) = (start / SECTOR, (end - 1) / SECTOR);
        let first = first.max(next_sector);
        if first <= last {
            sectors += last - first + 1;
            next_sector = last + 1;
        }
    }
    (sectors, different.div_ceil(SECTOR))
}

/// Passes over shared memory that a request takes, and the least number. Lanes go in groups whose elements have 128
/// bytes together; within a group each bank serves one word in a pass, to all lanes that want it.
fn wavefronts(lanes: &[u64], bytes: u64) -> (u64, u64) {
    let group = (BANKS * BANK_BYTES / bytes.clamp(BANK_BYTES, BANKS * BANK_BYTES)) as usize;
    let (mut passes, mut least) = (0, 0);
    for lanes in lanes.chunks(group) {
        let mut words: Vec<u64> = Vec::new();
        for &address in lanes {
            words.extend(address / BANK_BYTES..=(address + bytes.max(1) - 1) / BANK_BYTES);
        }
        words.sort_unstable();
        words.dedup();
        let mut of_bank = [0u64; BANKS as usize];
        words.iter().for_each(|word| of_bank[(word % BANKS) as usize] += 1);
        passes += of_bank.into_iter().max().unwrap_or(0);
        least += 1;
    }
    (passes, least)
}

impl LaunchObserver for Counters {
    fn begin(&mut self, _: &Launch) {
        self.counts.clear();
    }

    fn block_access(&mut self, access: &BlockAccess) -> ControlFlow<(), [u64; 16]> {
        let mut lanes = std::mem::take(&mut self.lanes);
        for (word, &members) in access.threads.iter().enumerate() {
            for half in 0..2 {
                let members = (members >> (WARP_LANES * half)) as u32;
                if members == 0 {
                    continue;
                }
                let first = 64 * word as u32 + WARP_LANES * half;
                lanes.clear();
                let present = (0..WARP_LANES).filter(|lane| members >> lane & 1 != 0);
                lanes.extend(present.map(|lane| access.addresses.of(first + lane)));
                self.add(access.span, access.space, access.kind, &lanes, access.bytes);
            }
        }
        self.lanes = lanes;
        ControlFlow::Continue([0; 16])
    }

    fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
        let warp =
            |lane: &machine::LaneAccess| (lane.block, lane.thread / WARP_LANES, lane.space, lane.bytes);
        let mut lanes = std::mem::take(&mut self.lanes);
        for of_warp in access.lanes.chunk_by(|a, b| warp(a) == warp(b)) {
            lanes.clear();
            lanes.extend(of_warp.iter().map(|lane| lane.address));
            self.add(access.span, of_warp[0].space, access.kind, &lanes, of_warp[0].bytes);
        }
        self.lanes = lanes;
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(of: impl Fn(u64) -> u64) -> Vec<u64> {
        (0..32).map(of).collect()
    }

    #[test]
    fn sectors_are_counted_once() {
        assert_eq!(sectors(&lanes(|lane| 4 * lane), 4), (4, 4));
        assert_eq!(sectors(&lanes(|lane| 4 + 4 * lane), 4), (5, 4));
        assert_eq!(sectors(&lanes(|lane| 32 * lane), 4), (32, 4));
        assert_eq!(sectors(&lanes(|_| 100), 4), (1, 1));
        assert_eq!(sectors(&lanes(|lane| 16 * lane), 16), (16, 16));
        assert_eq!(sectors(&lanes(|lane| 31 - lane), 1), (1, 1));
        assert_eq!(sectors(&[30], 4), (2, 1));
        // Two halves that overlap.
        assert_eq!(sectors(&[0, 8], 16), (1, 1));
    }

    #[test]
    fn banks_serve_one_word_a_pass() {
        assert_eq!(wavefronts(&lanes(|lane| 4 * lane), 4), (1, 1));
        assert_eq!(wavefronts(&lanes(|lane| 8 * lane), 4), (2, 1));
        assert_eq!(wavefronts(&lanes(|lane| 128 * lane), 4), (32, 1));
        assert_eq!(wavefronts(&lanes(|lane| 132 * lane), 4), (1, 1));
        assert_eq!(wavefronts(&lanes(|_| 4), 4), (1, 1));
        assert_eq!(wavefronts(&lanes(|lane| lane), 1), (1, 1));
        assert_eq!(wavefronts(&lanes(|lane| 8 * lane), 8), (2, 2));
        assert_eq!(wavefronts(&lanes(|lane| 16 * lane), 16), (4, 4));
        // Rows of a matrix that is 128 bytes wide.
        assert_eq!(wavefronts(&lanes(|lane| 128 * lane), 16), (32, 4));
    }
}
