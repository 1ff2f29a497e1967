//! What the threads of a block, or of the blocks of a CTA batch, share: memory and barriers.
//!
//! A barrier counts arrivals by warp. A warp whose live lanes have all arrived counts as 32 threads, and a barrier does
//! not wait for ended threads. Each thread provides the barrier and its number of threads itself. A barrier with a
//! number of threads completes at exactly that number and then starts again, so it has a basic block of its own: a path
//! that brings more lanes is split there (`exec/control.rs`, `divide_at_barrier`), and the other lanes execute the
//! barrier once more.
//!
//! Narrowest tests (`tests/run`): `barrier_by_register`, `barrier_partial`, `barrier_count`.

use std::rc::Rc;

use machine::Fault;
use machine::mask::{Mask, WARP_LANES};
use machine::memory::{shared_base, shared_rank};
use sem::tensor_memory::Misuse;

use crate::bytes::AlignedBytes;
use crate::members::{Member, Members};
use crate::run::Run;
use crate::tensor_memory::TensorMemoryOf;

/// Barriers of a block (PTX ISA, "bar, barrier").
pub(crate) const BARRIERS: usize = 16;
/// The barrier of the cluster (PTX ISA, "barrier.cluster").
pub(crate) const CLUSTER_BARRIER: usize = BARRIERS;

/// Detects a CTA whose threads all wait at mbarrier objects in vain.
#[derive(Default)]
pub(crate) struct Waiting {
    /// For each warp, the lanes that have tested in this round. A round is over when every thread has tested in vain
    /// or waits at a barrier.
    pub lanes: Vec<u32>,
    /// Complete rounds since an object last changed.
    pub rounds: u32,
    /// The fault to report if no other CTA helps: all threads of the CTA have tested in vain for long.
    pub blocked: Option<Box<Fault>>,
}

impl Waiting {
    /// Must be called when an object has changed or a thread has made progress.
    pub fn reset(&mut self) {
        self.lanes.clear();
        self.rounds = 0;
        self.blocked = None;
    }
}

/// One barrier.
#[derive(Default)]
pub(crate) struct Barrier {
    /// Lanes that have arrived, for each warp.
    arrived: Vec<u32>,
    /// The number of threads that it waits for. `None`: all threads of the block.
    expected: Option<u32>,
    /// How often it has completed.
    pub generation: u32,
    /// The current reduction: threads whose predicate is true, and threads that take part.
    tally: (u32, u32),
    /// Results of completed reductions, with their generations.
    results: Vec<(u32, (u32, u32))>,
}

/// A barrier without arrivals.
static IDLE: Barrier =
    Barrier { arrived: Vec::new(), expected: None, generation: 0, tally: (0, 0), results: Vec::new() };

impl Barrier {
    /// The result of the reduction that completed a generation: threads whose predicate is true, and threads that took
    /// part.
    pub fn result(&self, generation: u32) -> Option<(u32, u32)> {
        self.results.iter().rev().find(|result| result.0 == generation).map(|result| result.1)
    }

    /// The lanes of a warp that wait here.
    pub fn waiting(&self, warp: usize) -> u32 {
        self.arrived.get(warp).copied().unwrap_or(0)
    }

    /// Resets it to its state at the start of a block. Keeps its memory.
    pub fn reset(&mut self) {
        self.arrived.clear();
        self.expected = None;
        self.generation = 0;
        self.tally = (0, 0);
        self.results.clear();
    }
}

/// The barriers of one block.
#[derive(Default)]
struct Barriers {
    /// Empty before the first arrival at any barrier.
    list: Vec<Barrier>,
    /// One bit for each barrier: whether a thread has arrived there.
    used: u32,
}

/// The state that the threads of a block share, for all blocks of a CTA batch.
pub(crate) struct Shared {
    /// Static and dynamic shared memory, block after block, with the gaps between variables.
    pub memory: AlignedBytes,
    /// Bytes of shared memory of one block.
    pub memory_bytes: u64,
    /// Distance in bytes between the shared memory of consecutive blocks. 0 if there is only one block.
    pub stride: usize,
    /// The barriers of each block.
    barriers: Vec<Barriers>,
    /// Whether a thread has arrived at some barrier.
    barriers_used: bool,
    /// Warps of a block.
    warps: usize,
    /// The threads that wait at mbarrier objects.
    pub waiting: Waiting,
    /// Lanes that have not ended, for each warp of all blocks.
    pub alive: Vec<u32>,
    /// Rank of the block in its cluster.
    rank: u32,
    /// The first address of its shared memory in the `.shared::cluster` window.
    pub base: u64,
    /// Its tensor memory.
    pub tensor_memory: TensorMemoryOf,
    /// The cluster, if it has several blocks.
    pub cluster: Option<Rc<Members>>,
    /// The value of [`Members::changes`] that the block last took into account.
    seen: u64,
}

impl Shared {
    pub fn new(launch: &Run, blocks: usize, rank: u32) -> Shared {
        // The stride keeps the shared memory of every block aligned.
        let bytes = launch.shared().allocated();
        let stride = if blocks > 1 { bytes as usize } else { 0 };
        Shared {
            memory: AlignedBytes::zeroed(stride * (blocks - 1) + bytes as usize),
            memory_bytes: bytes,
            stride,
            barriers: (0..blocks).map(|_| Barriers::default()).collect(),
            barriers_used: false,
            warps: launch.config().block_threads().div_ceil(WARP_LANES as u64) as usize,
            waiting: Waiting::default(),
            alive: Vec::new(),
            rank,
            base: shared_base(rank),
            tensor_memory: TensorMemoryOf::default(),
            cluster: None,
            seen: 0,
        }
    }

    /// What the other blocks of its cluster may know of it.
    pub fn member(&self) -> Member {
        Member::new(self.memory.as_ptr(), self.memory_bytes as usize, Rc::clone(&self.tensor_memory))
    }

    /// Makes the block a member of a cluster of several blocks.
    pub fn join(&mut self, cluster: Rc<Members>) {
        self.cluster = Some(cluster);
    }

    /// The shared memory that contains an address of `.shared::cluster`: its start on the host, its first address in
    /// the window, and whether it is the block's own. `None` if no live block has it.
    #[inline]
    pub fn memory_at(&self, address: u64) -> Option<(*mut u8, u64, bool)> {
        let (rank, inner) = shared_rank(address);
        if rank == self.rank {
            return Some((self.memory.as_ptr(), self.base, true));
        }
        let memory = self.cluster.as_ref()?.memory(rank)?;
        Some((memory, address - inner, false))
    }

    /// For `tcgen05` with `.cta_group::2`: the ranks and tensor memory of both blocks of the pair.
    pub fn pair(&self) -> Result<[(u32, TensorMemoryOf); 2], Misuse> {
        let cluster = self.cluster.as_ref().ok_or(Misuse::Pair)?;
        let of = |rank| Ok((rank, cluster.tensor_memory(rank)?));
        Ok([of(self.rank & !1)?, of(self.rank | 1)?])
    }

    /// Its rank in its cluster.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Whether an address of `.shared::cluster` is in the memory of a block of the cluster that has ended.
    pub fn has_ended(&self, address: u64) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.has_ended(shared_rank(address).0))
    }

    /// Takes over the changes that other blocks of the cluster have made.
    pub fn follow_cluster(&mut self) {
        let Some(cluster) = &self.cluster else { return };
        if std::mem::replace(&mut self.seen, cluster.changes()) != cluster.changes() {
            self.waiting.reset();
        }
        let generation = cluster.generation();
        if let Some(barrier) = self.barriers[0].list.get_mut(CLUSTER_BARRIER)
            && barrier.generation != generation
        {
            barrier.generation = generation;
            barrier.arrived.fill(0);
        }
    }

    /// Reports to the cluster whether all threads have arrived at its barrier, and whether all have ended.
    fn report_to_cluster(&mut self) {
        let Some(cluster) = &self.cluster else { return };
        let barrier = self.barrier(0, CLUSTER_BARRIER);
        let arrived = self.alive.iter().enumerate().all(|(warp, alive)| alive & !barrier.waiting(warp) == 0);
        cluster.report(self.rank, arrived, self.alive.iter().all(|&alive| alive == 0));
        self.follow_cluster();
    }

    /// Notes a change that threads of the block or of its cluster may wait for.
    pub fn note_change(&mut self) {
        self.waiting.reset();
        if let Some(cluster) = &self.cluster {
            cluster.note_change();
            self.seen = cluster.changes();
        }
    }

    /// Resets it to the state at the start of `blocks` blocks of `threads` threads.
    pub fn reset(&mut self, blocks: usize, threads: usize) {
        if self.memory_bytes > 0 {
            // Zeroed, so that reads of uninitialised memory return the same value in every run.
            // SAFETY: the blocks own these bytes, none of their threads runs yet, and no reference points to them.
            unsafe { std::ptr::write_bytes(self.memory.as_ptr(), 0, self.memory.len()) }
        }
        if std::mem::take(&mut self.barriers_used) {
            for barriers in &mut self.barriers {
                bits(std::mem::take(&mut barriers.used)).for_each(|index| barriers.list[index].reset());
            }
        }
        self.waiting.reset();
        self.tensor_memory.borrow_mut().reset();
        self.seen = self.cluster.as_ref().map_or(0, |cluster| cluster.changes());
        self.alive.clear();
        self.alive.resize(blocks * self.warps, !0);
        if !threads.is_multiple_of(WARP_LANES) {
            let last = self.alive.iter_mut().skip(self.warps - 1).step_by(self.warps);
            last.for_each(|warp| *warp = (1 << (threads % WARP_LANES)) - 1);
        }
    }

    /// Whether a host address is in the shared memory of these blocks or of another block of their cluster.
    pub fn has(&self, place: *const u8) -> bool {
        let start = self.memory.as_ptr() as usize;
        (start..start + self.memory.len()).contains(&(place as usize))
            || self.cluster.as_ref().is_some_and(|cluster| cluster.has(place))
    }

    /// The host addresses of the first block's memory.
    pub fn memory_of_first(&self) -> std::ops::Range<usize> {
        let start = self.memory.as_ptr() as usize;
        start..start + self.memory_bytes as usize
    }

    /// How often each barrier has completed: the barriers of one block, with the cluster's as the last, then those of
    /// the next block.
    pub fn generations(&self) -> impl Iterator<Item = u32> + '_ {
        let blocks = 0..self.barriers.len();
        blocks.flat_map(move |block| {
            (0..=CLUSTER_BARRIER).map(move |index| self.barrier(block, index).generation)
        })
    }

    /// No thread has arrived at any barrier yet.
    pub fn no_barrier_used(&self) -> bool {
        !self.barriers_used
    }

    /// A barrier of a block.
    pub fn barrier(&self, block: usize, index: usize) -> &Barrier {
        self.barriers[block].list.get(index).unwrap_or(&IDLE)
    }

    /// The lanes of a warp that wait at some barrier.
    pub fn at_barriers(&self, warp: usize) -> u32 {
        let barriers = self.barriers[warp / self.warps].list.iter();
        barriers.fold(0, |lanes, barrier| lanes | barrier.waiting(warp % self.warps))
    }

    /// Lanes of `warp` arrive at a barrier of its block. `predicates`: the lanes whose reduction predicate is true.
    pub fn arrive(
        &mut self,
        index: usize,
        warp: usize,
        lanes: u32,
        expected: Option<u32>,
        predicates: Option<u32>,
    ) {
        let barriers = &mut self.barriers[warp / self.warps];
        barriers.used |= 1 << index;
        self.barriers_used = true;
        barriers.list.resize_with(BARRIERS + 1, Barrier::default);
        let barrier = &mut barriers.list[index];
        barrier.arrived.resize(self.warps, 0);
        barrier.arrived[warp % self.warps] |= lanes;
        barrier.expected = expected.or(barrier.expected);
        if let Some(predicates) = predicates {
            barrier.tally.0 += (predicates & lanes).count_ones();
            barrier.tally.1 += lanes.count_ones();
        }
    }

    /// How many of these warps, which arrive one after the other, it takes to complete a barrier of their block that
    /// waits for `expected` threads. The barrier then starts again, and the other warps arrive at its next generation.
    pub fn until_complete(
        &self,
        index: usize,
        expected: u32,
        warps: impl Iterator<Item = (usize, u32)>,
    ) -> usize {
        let mut counts: Option<u32> = None;
        let mut taken = 0;
        for (warp, lanes) in warps {
            let barrier = self.barrier(warp / self.warps, index);
            let alive = |in_block: usize| self.alive[warp / self.warps * self.warps + in_block];
            let count = counts.get_or_insert_with(|| {
                let arrived = barrier.arrived.iter().enumerate();
                arrived.map(|(in_block, &arrived)| arrival_count(arrived, alive(in_block))).sum()
            });
            let (in_block, before) = (warp % self.warps, barrier.waiting(warp % self.warps));
            *count += arrival_count(before | lanes, alive(in_block)) - arrival_count(before, alive(in_block));
            taken += 1;
            if *count >= expected {
                break;
            }
        }
        taken
    }

    /// Completes a barrier of a block if all expected threads have arrived.
    pub fn complete(&mut self, block: usize, index: usize) {
        if index == CLUSTER_BARRIER && self.cluster.is_some() {
            return self.report_to_cluster();
        }
        let Some(barrier) = self.barriers[block].list.get_mut(index) else { return };
        if barrier.arrived.iter().all(|&lanes| lanes == 0) {
            return;
        }
        let warps = barrier.arrived.iter().zip(&self.alive[block * self.warps..]);
        let done = match barrier.expected {
            None => warps.clone().all(|(&arrived, &alive)| alive & !arrived == 0),
            Some(expected) => {
                warps.map(|(&arrived, &alive)| arrival_count(arrived, alive)).sum::<u32>() >= expected
            }
        };
        if done {
            if barrier.tally.1 > 0 {
                barrier.results.push((barrier.generation, barrier.tally));
            }
            self.waiting.reset();
            barrier.generation += 1;
            barrier.arrived.fill(0);
            barrier.expected = None;
            barrier.tally = (0, 0);
        }
    }

    /// Ends lanes of the warps from `first` on. Barriers no longer wait for them.
    pub fn end(&mut self, first: usize, lanes: Mask) {
        // Each word of the mask holds two warps.
        let (pairs, rest) = self.alive[first..].as_chunks_mut::<2>();
        let split = |word: u64| [word as u32, (word >> 32) as u32];
        for (pair, word) in pairs.iter_mut().zip(lanes.0) {
            let [low, high] = split(word);
            *pair = [pair[0] & !low, pair[1] & !high];
        }
        if let [warp] = rest {
            *warp &= !lanes.warp(2 * pairs.len());
        }
        self.complete_all();
    }

    /// Like [`Shared::end`], for blocks whose warps differ from those of the gang. Each warp comes with its ending
    /// lanes.
    pub fn end_warps(&mut self, warps: impl Iterator<Item = (usize, u32)>) {
        warps.for_each(|(warp, lanes)| self.alive[warp] &= !lanes);
        self.complete_all();
    }

    /// Completes the barriers that no longer wait for any thread.
    fn complete_all(&mut self) {
        self.report_to_cluster();
        if self.no_barrier_used() {
            return;
        }
        for block in 0..self.barriers.len() {
            for index in bits(self.barriers[block].used) {
                self.complete(block, index);
            }
        }
    }
}

/// How many threads a barrier counts for a warp. Once all live lanes have arrived, missing and ended lanes count, too.
fn arrival_count(arrived: u32, alive: u32) -> u32 {
    match arrived {
        0 => 0,
        _ if alive & !arrived == 0 => WARP_LANES as u32,
        _ => arrived.count_ones(),
    }
}

/// The indices of the bits that are set.
fn bits(mut word: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(index)
    })
}
