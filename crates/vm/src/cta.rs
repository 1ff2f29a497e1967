//! A block (CTA), or the blocks of a CTA batch: gangs, shared memory, barriers.
//!
//! A barrier counts arrivals by warp. A warp whose live lanes have all arrived counts as 32 threads, and a barrier does
//! not wait for ended threads. Each thread provides the barrier and its number of threads itself. A barrier with a
//! number of threads completes at exactly that number and then starts again, so it has a basic block of its own: a path
//! that brings more lanes is split there (`exec/control.rs`, `divide_at_barrier`), and the other lanes execute the
//! barrier once more. If no thread can run, the block has deadlocked, and the fault lists where the threads wait.
//!
//! Narrowest tests (`tests/run`): `barrier_by_register`, `barrier_deadlock`, `barrier_partial`, `barrier_count`.

use std::rc::Rc;

use diag::Span;
use machine::mask::{Mask, WARP_LANES};
use machine::memory::{shared_base, shared_rank};
use machine::{Fault, FaultKind, Place};
use sem::tensor_memory::Misuse;

use crate::affine::LaneRows;
use crate::bytes::AlignedBytes;
use crate::cluster::Members;
use crate::code::Code;
use crate::cta_batch::CtaBatch;
use crate::exec::{Gang, Observer, SliceEnd, Step, Wait, Waiting};
use crate::grid::Run;
use crate::limits::Stop;
use crate::tensor_memory::TensorMemoryOf;

/// Barriers of a block (PTX ISA, "bar, barrier").
pub(crate) const BARRIERS: usize = 16;
/// The barrier of the cluster (PTX ISA, "barrier.cluster").
pub(crate) const CLUSTER_BARRIER: usize = BARRIERS;

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
    fn reset(&mut self) {
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
    cluster: Option<Rc<Members>>,
    /// The value of [`Members::changes`] that the block last took into account.
    seen: u64,
}

impl Shared {
    fn new(launch: &Run, blocks: usize, rank: u32) -> Shared {
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
    fn follow_cluster(&mut self) {
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
    fn reset(&mut self, blocks: usize, threads: usize) {
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

/// The result of a step of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Finished,
    /// The launch must end, at the place of some thread.
    Stopped(Stop, Place),
    /// Work is left. `spinning`: only threads that wait for others ran. `blocked`: they have waited for so long that only
    /// another block could help.
    Running {
        spinning: bool,
        blocked: bool,
        /// All remaining threads wait, some of them for other blocks of the cluster.
        waiting: bool,
    },
}

/// A block or CTA batch in flight. Reused for the next one.
pub(crate) struct Cta<'l> {
    launch: &'l Run<'l>,
    pub shared: Shared,
    gangs: Vec<Gang<'l>>,
    /// The order in which gangs get their time slices.
    order: Vec<usize>,
    random: u64,
}

impl<'l> Cta<'l> {
    /// For blocks with this cluster rank. `rows` describes how their lanes form rows of a gang.
    pub fn new(launch: &'l Run<'l>, code: &'l Code, rows: LaneRows, rank: u32) -> Cta<'l> {
        let threads = launch.config().block_threads() as usize * rows.blocks();
        let gangs: Vec<_> = (0..threads)
            .step_by(code.lanes)
            .map(|first| Gang::new(launch, code, rows, rank, first as u32, code.lanes.min(threads - first)))
            .collect();
        let shared = Shared::new(launch, rows.blocks(), rank);
        let order = (0..gangs.len()).collect();
        Cta { launch, shared, gangs, order, random: 0 }
    }

    /// Starts the blocks of a CTA batch.
    pub fn start(&mut self, batch: CtaBatch) -> Step {
        self.shared.reset(batch.blocks, self.launch.config().block_threads() as usize);
        self.random =
            self.launch.config().schedule.unwrap_or(0) ^ batch.first.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.gangs.iter_mut().try_for_each(|gang| gang.start(batch, &mut self.shared))
    }

    /// Gives every gang a time slice.
    pub fn step(&mut self, observer: &mut impl Observer) -> Step<Progress> {
        let result = self.give_turns(observer);
        if let Err(fault) = &result {
            self.gangs.iter_mut().for_each(|gang| gang.print_until(fault));
        }
        result
    }

    fn give_turns(&mut self, observer: &mut impl Observer) -> Step<Progress> {
        self.shared.follow_cluster();
        if self.launch.shuffled {
            for i in (1..self.order.len()).rev() {
                let j = self.next_random() as usize % (i + 1);
                self.order.swap(i, j);
            }
        }
        let (mut done, mut spinning, mut running) = (0, true, false);
        for i in 0..self.order.len() {
            let index = self.order[i];
            let mut budget =
                if self.launch.shuffled { 1 + (self.next_random() % 8) as i64 } else { crate::exec::BUDGET };
            match self.gangs[index].run_slice(&mut self.shared, &mut budget, observer)? {
                SliceEnd::Done => done += 1,
                SliceEnd::Blocked => {}
                SliceEnd::Stopped => {
                    if let Some((stop, place)) = self.gangs[index].steps.stopped {
                        return Ok(Progress::Stopped(stop, place));
                    }
                }
                SliceEnd::OutOfBudget { spinning: spins } => {
                    running = true;
                    spinning &= spins;
                }
            }
        }
        if done == self.gangs.len() {
            return self.check_tensor_memory().map(|()| Progress::Finished);
        }
        let waits_for_grid = !running && self.waits_for_grid();
        if !running && !waits_for_grid && !self.can_go_on() {
            return match self.waits_for_cluster() {
                true => Ok(Progress::Running { spinning: true, blocked: true, waiting: true }),
                false => Err(self.deadlock()),
            };
        }
        let blocked = waits_for_grid || self.shared.waiting.blocked.is_some();
        Ok(Progress::Running { spinning: running && spinning || waits_for_grid, blocked, waiting: false })
    }

    /// Faults unless all columns of tensor memory have been deallocated.
    fn check_tensor_memory(&self) -> Step {
        let memory = self.shared.tensor_memory.borrow();
        if memory.allocations.is_empty() {
            return Ok(());
        }
        Err(Box::new(Fault {
            kind: FaultKind::TensorMemory,
            kernel: self.launch.kernel_name().to_owned(),
            span: memory.span,
            block: self.gangs.first().map_or([0; 3], |gang| gang.block_of(0)),
            thread: [0; 3],
            access: None,
            notes: vec![(Misuse::Leak.to_string(), None)],
        }))
    }

    /// Whether some path can run, because a barrier completed after its gang's time slice.
    fn can_go_on(&self) -> bool {
        self.gangs.iter().flat_map(Gang::waiting).any(|(path, _)| match path.wait {
            Wait::Ready => true,
            Wait::Barrier { block, index, generation, .. } => {
                self.shared.barrier(block.into(), index.into()).generation != generation
            }
            Wait::Grid { generation } => self.launch.grid_barrier.is_over(generation),
            Wait::Warp => false,
        })
    }

    /// Whether all remaining threads wait at the barrier of the grid and other threads may still arrive.
    fn waits_for_grid(&self) -> bool {
        let mut paths = self.gangs.iter().flat_map(Gang::waiting).peekable();
        paths.peek().is_some()
            && paths.all(|(path, _)| matches!(path.wait, Wait::Grid { .. }))
            && !self.launch.grid_barrier.is_deadlocked()
    }

    /// Whether some threads wait for other blocks of the cluster.
    fn waits_for_cluster(&self) -> bool {
        let at_barrier =
            |wait: Wait| matches!(wait, Wait::Barrier { index, .. } if usize::from(index) == CLUSTER_BARRIER);
        self.shared.cluster.is_some()
            && self.gangs.iter().flat_map(Gang::waiting).any(|(path, _)| at_barrier(path.wait))
    }

    /// The fault of a block that is in a deadlock.
    pub fn deadlock_fault(&mut self) -> Box<Fault> {
        self.shared.waiting.blocked.take().unwrap_or_else(|| self.deadlock())
    }

    fn deadlock(&self) -> Box<Fault> {
        let mut kind = FaultKind::Deadlock;
        let mut first: Option<([u32; 3], usize, Span)> = None;
        let mut places: Vec<(String, Span, u32)> = Vec::new();
        for gang in &self.gangs {
            for (path, span) in gang.waiting() {
                let what = match path.wait {
                    Wait::Barrier { index, .. } if usize::from(index) == CLUSTER_BARRIER => {
                        "at the barrier of the cluster".to_owned()
                    }
                    Wait::Barrier { index, .. } => format!("at barrier {index}"),
                    Wait::Grid { .. } => "for the other threads of the grid".to_owned(),
                    _ => "for the other threads of a member mask".to_owned(),
                };
                if path.wait == Wait::Warp {
                    kind = FaultKind::MissingWarpLanes;
                }
                let lane = path.mask.lowest().unwrap_or(0);
                if path.wait == Wait::Warp || first.is_none() {
                    first = Some((gang.block_of(lane), gang.thread_of(lane), span));
                }
                match places.iter_mut().find(|(w, s, _)| *w == what && *s == span) {
                    Some((_, _, count)) => *count += path.mask.count(),
                    None => places.push((what, span, path.mask.count())),
                }
            }
        }
        let (block, thread, span) = first.unwrap_or(([0; 3], 0, Span::default()));
        let notes = places
            .into_iter()
            .map(|(what, span, count)| {
                let threads = if count == 1 { "thread waits" } else { "threads wait" };
                (format!("{count} {threads} {what} here"), Some(span))
            })
            .collect();
        Box::new(Fault {
            kind,
            kernel: self.launch.kernel_name().to_owned(),
            span,
            block,
            thread: self.launch.thread(thread),
            access: None,
            notes,
        })
    }

    /// Thread-instructions executed since the last call.
    pub fn take_instructions(&mut self) -> u64 {
        self.gangs.iter_mut().map(Gang::take_instructions).sum()
    }

    /// The place of some remaining thread.
    pub fn place(&self) -> Option<Place> {
        self.gangs.iter().find_map(Gang::any_place)
    }

    fn next_random(&mut self) -> u64 {
        next_random(&mut self.random)
    }
}

/// The next random number: SplitMix64.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
