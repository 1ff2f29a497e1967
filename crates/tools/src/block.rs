//! The order between threads of a block: barriers, warps, copies, and what a thread learns from others.

mod objects;

use std::collections::HashMap;
use std::sync::Arc;

use crate::clock::{Clock, Epoch, OBJECTS, Stamp};
use objects::{CopyOrder, ObjectOrder, next_number};

/// Threads of a warp.
pub(crate) const WARP: u32 = 32;

/// A set of threads of a block.
pub(crate) type Threads = [u64; 16];

/// The indices of a set, ascending.
pub(crate) fn members(set: &Threads) -> impl Iterator<Item = u32> + '_ {
    set.iter().enumerate().flat_map(|(word, &bits)| {
        let mut bits = bits;
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(word as u32 * 64 + bit)
        })
    })
}

pub(crate) fn insert(set: &mut Threads, thread: u32) {
    set[thread as usize / 64 % 16] |= 1 << (thread % 64);
}

/// The set of some threads, given in ascending order.
pub(crate) fn set_of(threads: &[u32]) -> Threads {
    let mut set = [0; 16];
    match threads {
        [first, .., last] if (last - first) as usize == threads.len() - 1 => set = range(*first, last + 1),
        _ => threads.iter().for_each(|&thread| insert(&mut set, thread)),
    }
    set
}

/// The threads from `first` to `end`, exclusive.
pub(crate) fn range(first: u32, end: u32) -> Threads {
    std::array::from_fn(|word| {
        let start = 64 * word as u32;
        let up_to = |end: u32| u64::MAX.checked_shr(64 - end.saturating_sub(start).min(64)).unwrap_or(0);
        up_to(end) & !up_to(first)
    })
}

/// The threads of some lanes of a warp, ascending.
fn lanes_of(warp: u32, lanes: u32) -> impl Iterator<Item = u32> {
    (0..WARP).filter(move |lane| lanes >> lane & 1 != 0).map(move |lane| warp * WARP + lane)
}

/// Adds the threads of another set.
pub(crate) fn join(set: &mut Threads, other: &Threads) {
    set.iter_mut().zip(other).for_each(|(set, other)| *set |= other);
}

pub(crate) fn contains(set: &Threads, thread: u32) -> bool {
    set[thread as usize / 64 % 16] >> (thread % 64) & 1 != 0
}

/// A running block: the clocks of its threads.
///
/// Threads share most of what they know. All threads know what happened before the last barrier of the block (`floor`). The lanes of
/// a warp know what happened in it before its last `bar.warp.sync`. What a thread learned besides is in a clock of its own.
pub(crate) struct BlockOrder {
    /// Linear index in the grid.
    pub index: u32,
    pub threads: u32,
    /// What any thread of the block did before this epoch happens before what all of them do now.
    floor: Epoch,
    /// The largest epoch of any thread.
    newest: Epoch,
    /// The epoch of each thread; the floor counts if it is larger.
    epochs: Vec<Epoch>,
    /// The floor within each warp.
    warp_floors: Vec<Epoch>,
    /// What all threads know of other blocks and of mbarrier objects.
    common: Arc<Clock>,
    /// What each thread knows besides, and the threads that know anything besides.
    extra: Vec<Option<Arc<Clock>>>,
    with_extra: Vec<u32>,
    /// What is over when the block ends, although nothing orders it with its threads: accesses before relaxed arrivals at the cluster
    /// barrier.
    pub passed: Clock,
    /// Threads that have ended.
    pub exited: Threads,
    pub exited_count: u32,
    barriers: HashMap<u64, BarrierOrder>,
    objects: HashMap<u64, ObjectOrder>,
    copies: HashMap<u32, CopyOrder>,
    /// By thread: the clock index of its `tcgen05` work, and the number of its commits.
    commits: HashMap<u32, (u16, Epoch)>,
    /// By thread: the clock index of its uses of mbarrier objects before its warp met in a collective operation.
    uses: HashMap<u16, u16>,
    /// The number of clock indices in use beyond those of threads.
    numbers: u16,
}

/// The threads that have arrived at a barrier in its current phase.
#[derive(Default)]
struct BarrierOrder {
    arrived: Threads,
    waiting: Threads,
    /// The barrier waits for a given number of threads instead of the whole block: ended threads do not count.
    counted: bool,
    /// What the threads know that arrived without waiting.
    clock: Clock,
    /// Threads that wait for the phase in which they arrived earlier, and the clock that they acquire when it is over.
    late: Threads,
    over: Option<Arc<Clock>>,
}

/// What a thread knows when it executes a fence. A later write releases it.
#[derive(Clone)]
pub(crate) struct Mark {
    bound: Epoch,
    floor: Epoch,
    warp_floor: Epoch,
    common: Arc<Clock>,
    extra: Option<Arc<Clock>>,
}

impl Mark {
    /// Whether what happened at a stamp happens before the fence. `by`: the block and thread that executed the fence.
    pub fn knows(&self, &(block, by): &(u32, u16), stamp: Stamp) -> bool {
        let is_own = stamp.block == block && stamp.thread < OBJECTS;
        let bound = match () {
            () if stamp.thread == by => self.bound,
            () if u32::from(stamp.thread) / WARP == u32::from(by) / WARP => self.warp_floor.max(self.floor),
            () => self.floor,
        };
        is_own && stamp.epoch < bound
            || self.common.knows(stamp)
            || self.extra.as_ref().is_some_and(|extra| extra.knows(stamp))
    }
}

impl BlockOrder {
    pub fn new(threads: u32) -> BlockOrder {
        let count = threads as usize;
        BlockOrder {
            index: 0,
            threads,
            floor: 0,
            newest: 0,
            epochs: vec![0; count],
            warp_floors: vec![0; count.div_ceil(WARP as usize)],
            common: Arc::default(),
            extra: vec![None; count],
            with_extra: Vec::new(),
            passed: Clock::default(),
            exited: [0; 16],
            exited_count: 0,
            barriers: HashMap::new(),
            objects: HashMap::new(),
            commits: HashMap::new(),
            uses: HashMap::new(),
            numbers: 0,
            copies: HashMap::new(),
        }
    }

    /// Starts another block in this object.
    pub fn restart(&mut self, index: u32) {
        self.index = index;
        (self.floor, self.newest) = (0, 0);
        self.epochs.fill(0);
        self.warp_floors.fill(0);
        if !self.common.is_empty() {
            self.common = Arc::default();
        }
        for thread in self.with_extra.drain(..) {
            self.extra[thread as usize] = None;
        }
        self.passed = Clock::default();
        (self.exited, self.exited_count) = ([0; 16], 0);
        self.barriers.clear();
        self.objects.clear();
        self.commits.clear();
        self.uses.clear();
        self.numbers = 0;
        self.copies.clear();
    }

    /// The epoch of a thread.
    pub fn epoch(&self, thread: u32) -> Epoch {
        self.epochs[thread as usize].max(self.floor)
    }

    /// What any thread of the block did before this epoch happens before what all of them do now.
    pub fn floor(&self) -> Epoch {
        self.floor
    }

    /// Whether all threads have the same epoch and know nothing of other blocks or objects.
    pub fn is_even_alone(&self) -> bool {
        self.newest == self.floor && self.is_alone()
    }

    /// Whether its threads know nothing of other blocks or objects.
    pub fn is_alone(&self) -> bool {
        self.with_extra.is_empty() && self.common.is_empty()
    }

    /// The epoch of `count` threads from `first` on, if they share one.
    pub fn epoch_of(&self, first: u32, count: u32) -> Option<Epoch> {
        if self.newest == self.floor {
            return Some(self.floor);
        }
        let epoch = self.epoch(first);
        (first..first + count).all(|thread| self.epoch(thread) == epoch).then_some(epoch)
    }

    /// A copy of what the threads know of each other now, without barriers, objects and copies.
    pub fn snapshot(&self) -> BlockOrder {
        BlockOrder {
            floor: self.floor,
            newest: self.newest,
            epochs: self.epochs.clone(),
            warp_floors: self.warp_floors.clone(),
            common: Arc::clone(&self.common),
            extra: self.extra.clone(),
            with_extra: self.with_extra.clone(),
            index: self.index,
            exited: self.exited,
            exited_count: self.exited_count,
            ..BlockOrder::new(self.threads)
        }
    }

    /// Whether every thread of the block waits at the barrier or has ended.
    pub fn is_complete_for_all(&self, barrier: u64) -> bool {
        self.barriers.get(&barrier).is_some_and(|order| self.waiting_or_ended(order) == self.threads)
    }

    fn waiting_or_ended(&self, order: &BarrierOrder) -> u32 {
        let exited = if order.counted { [0; 16] } else { self.exited };
        order.waiting.iter().zip(&exited).map(|(waits, exited)| (waits | exited).count_ones()).sum()
    }

    /// Whether what happened at a stamp happens before what the thread does now.
    pub fn knows(&self, thread: u32, stamp: Stamp) -> bool {
        if stamp.block == self.index && stamp.thread < OBJECTS {
            if stamp.epoch < self.floor || u32::from(stamp.thread) == thread {
                return true;
            }
            let warp = thread / WARP;
            if u32::from(stamp.thread) / WARP == warp && stamp.epoch < self.warp_floors[warp as usize] {
                return true;
            }
        }
        self.common.knows(stamp)
            || self.extra[thread as usize].as_ref().is_some_and(|extra| extra.knows(stamp))
    }

    /// Whether a thread knows that another block has started.
    pub fn knows_block(&self, thread: u32, other: u32) -> bool {
        self.common.has(other) || self.extra[thread as usize].as_ref().is_some_and(|extra| extra.has(other))
    }

    /// Whether what a thread of another block did at a stamp is over when the last thread of this block ends.
    pub fn is_known_to_any(&self, stamp: Stamp) -> bool {
        let mut extras = self.with_extra.iter().filter_map(|&thread| self.extra[thread as usize].as_ref());
        self.common.knows(stamp) || self.passed.knows(stamp) || extras.any(|extra| extra.knows(stamp))
    }

    /// Ends the thread's epoch, so that a release of earlier knowledge does not cover what the thread does from now on.
    fn advance(&mut self, thread: u32) -> Epoch {
        let next = self.epoch(thread) + 1;
        self.epochs[thread as usize] = next;
        self.newest = self.newest.max(next);
        next
    }

    /// What a thread knows now, including its own accesses.
    pub fn mark(&mut self, thread: u32) -> Mark {
        Mark {
            bound: self.advance(thread),
            floor: self.floor,
            warp_floor: self.warp_floors[(thread / WARP) as usize],
            common: Arc::clone(&self.common),
            extra: self.extra[thread as usize].clone(),
        }
    }

    /// Adds a mark of a thread to a clock.
    pub fn notify(&self, thread: u32, mark: &Mark, clock: &mut Clock) {
        clock.join(&mark.common);
        if let Some(extra) = &mark.extra {
            clock.join(extra);
        }
        clock.raise_floor(self.index, mark.floor);
        if mark.warp_floor > mark.floor {
            let first = thread / WARP * WARP;
            let lanes = first..(first + WARP).min(self.threads);
            lanes.for_each(|lane| clock.raise(self.index, lane as u16, mark.warp_floor));
        }
        clock.raise(self.index, thread as u16, mark.bound);
    }

    /// Adds what a thread knows now to a clock.
    pub fn release(&mut self, thread: u32, clock: &mut Clock) {
        let mark = self.mark(thread);
        self.notify(thread, &mark, clock);
    }

    /// A thread acquires a clock.
    pub fn acquire(&mut self, thread: u32, clock: &Arc<Clock>) {
        match &mut self.extra[thread as usize] {
            Some(extra) if Arc::ptr_eq(extra, clock) => {}
            Some(extra) => Arc::make_mut(extra).join(clock),
            none => {
                *none = Some(Arc::clone(clock));
                self.with_extra.push(thread);
            }
        }
    }

    /// Several threads acquire a clock.
    pub fn acquire_all(&mut self, threads: &Threads, clock: &Arc<Clock>) {
        // Threads that shared a clock share the joined one.
        let mut known: Vec<(Arc<Clock>, Arc<Clock>)> = Vec::new();
        for thread in members(threads) {
            let Some(before) = self.extra[thread as usize].clone() else {
                self.acquire(thread, clock);
                continue;
            };
            let after = match known.iter().find(|(old, _)| Arc::ptr_eq(old, &before)) {
                Some((_, after)) => Arc::clone(after),
                None => {
                    let mut after = Clock::clone(&before);
                    after.join(clock);
                    let after = Arc::new(after);
                    known.push((before, Arc::clone(&after)));
                    after
                }
            };
            self.extra[thread as usize] = Some(after);
        }
    }

    /// All threads of the block have met.
    fn synchronize(&mut self) {
        self.newest += 1;
        self.floor = self.newest;
        let learned = std::mem::take(&mut self.with_extra);
        let mut last: Option<Arc<Clock>> = None;
        for thread in learned {
            let Some(extra) = self.extra[thread as usize].take() else { continue };
            if !last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &extra)) {
                Arc::make_mut(&mut self.common).join_foreign(&extra, self.index);
            }
            last = Some(extra);
        }
    }

    /// Whether these are all lanes of a warp that have not ended.
    pub fn is_whole_warp(&self, warp: u32, lanes: u32) -> bool {
        let first = warp * WARP;
        let there = (0..WARP.min(self.threads - first)).filter(|lane| !contains(&self.exited, first + lane));
        there.fold(0u32, |all, lane| all | 1 << lane) & !lanes == 0
    }

    /// Lanes of a warp have met at `bar.warp.sync`.
    pub fn synchronize_lanes(&mut self, warp: u32, lanes: u32) {
        if self.is_whole_warp(warp, lanes) {
            return self.synchronize_warp(warp, lanes);
        }
        let threads: Vec<u32> = lanes_of(warp, lanes).collect();
        let mut clock = Clock::default();
        threads.iter().for_each(|&thread| self.release(thread, &mut clock));
        self.acquire_all(&set_of(&threads), &Arc::new(clock));
    }

    /// All lanes of a warp have met.
    pub fn synchronize_warp(&mut self, warp: u32, lanes: u32) {
        let newest = lanes_of(warp, lanes).map(|thread| self.epoch(thread)).max().unwrap_or(0) + 1;
        lanes_of(warp, lanes).for_each(|thread| self.epochs[thread as usize] = newest);
        self.newest = self.newest.max(newest);
        self.warp_floors[warp as usize] = newest;
        let mut clock = Clock::default();
        for extra in lanes_of(warp, lanes).filter_map(|thread| self.extra[thread as usize].as_ref()) {
            clock.join(extra);
        }
        if !clock.is_empty() {
            let mut set = [0; 16];
            lanes_of(warp, lanes).for_each(|thread| insert(&mut set, thread));
            self.acquire_all(&set, &Arc::new(clock));
        }
    }

    /// Lanes of a warp have met in an operation that orders no memory accesses (`match.sync`): each knows only that the others have
    /// finished their earlier operations on mbarrier objects.
    pub fn meet_in_collective(&mut self, warp: u32, lanes: u32) {
        let (block, mut clock) = (self.index, Clock::default());
        for thread in lanes_of(warp, lanes) {
            let bound = self.advance(thread);
            let numbers = &mut self.numbers;
            let number = *self.uses.entry(thread as u16).or_insert_with(|| next_number(numbers));
            clock.raise(block, number, bound);
        }
        let threads: Vec<u32> = lanes_of(warp, lanes).collect();
        self.acquire_all(&set_of(&threads), &Arc::new(clock));
    }

    /// Whether an operation on an mbarrier object by a thread of this block, at a stamp, is over before what `thread` does now.
    pub fn knows_use(&self, thread: u32, stamp: Stamp) -> bool {
        stamp.block == self.index
            && self
                .uses
                .get(&stamp.thread)
                .is_some_and(|&number| self.knows(thread, Stamp { thread: number, ..stamp }))
    }

    /// Threads arrive at a barrier.
    pub fn arrive(&mut self, barrier: u64, threads: &[u32], waits: bool, counted: bool) {
        let mut order = self.barriers.remove(&barrier).unwrap_or_default();
        order.counted |= counted;
        let set = set_of(threads);
        join(&mut order.arrived, &set);
        if waits {
            join(&mut order.waiting, &set);
        } else {
            threads.iter().for_each(|&thread| self.release(thread, &mut order.clock));
        }
        self.barriers.insert(barrier, order);
    }

    /// A barrier is complete. Returns the threads that arrived.
    pub fn complete(&mut self, barrier: u64) -> Threads {
        let mut order = self.barriers.remove(&barrier).unwrap_or_default();
        let (arrived, waiting) = (order.arrived, order.waiting);
        if self.waiting_or_ended(&order) == self.threads {
            self.synchronize();
            return arrived;
        }
        let mut clock = std::mem::take(&mut order.clock);
        members(&waiting).for_each(|thread| self.release(thread, &mut clock));
        let clock = Arc::new(clock);
        self.acquire_all(&waiting, &clock);
        self.acquire_all(&order.late, &clock);
        // Threads that arrived without waiting may wait later.
        if waiting != arrived {
            let over = BarrierOrder { over: Some(clock), ..BarrierOrder::default() };
            self.barriers.insert(barrier, over);
        }
        arrived
    }

    /// Threads wait for the phase of a barrier in which they arrived earlier.
    pub fn wait(&mut self, barrier: u64, threads: &[u32]) {
        let set = set_of(threads);
        let order = self.barriers.entry(barrier).or_default();
        if order.arrived.iter().zip(&set).any(|(arrived, set)| arrived & set != 0) {
            order.late.iter_mut().zip(&set).for_each(|(late, set)| *late |= set);
        } else if let Some(over) = order.over.clone() {
            self.acquire_all(&set, &over);
        }
    }

    pub fn exit(&mut self, threads: &[u32]) {
        join(&mut self.exited, &set_of(threads));
        self.exited_count = self.exited.iter().map(|word| word.count_ones()).sum();
    }
}
