//! racecheck: conflicting accesses that nothing orders (PTX ISA 8.7, "Data races"; 8.8, "Causality order").
//!
//! Two accesses are ordered if synchronization orders them; the time at which they ran does not matter. Every schedule therefore
//! gives the same races, as long as the threads take the same paths.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use isa::Space;
use machine::{AccessEvent, AccessKind, AsyncStep, Completion, CopyGroup, LaneAccess};

use crate::block::BlockOrder;
use crate::clock::Stamp;
use crate::cluster::ClusterOrder;
use crate::lifetime::Lifetimes;
use crate::meeting::{Race, found};
use crate::now::Now;
use crate::place::{Extents, Place};
use crate::proxies::Proxies;
use crate::release::{NearMiss, Patterns, Variable};
use crate::segment::Segment;
use crate::shadow::{ROW_BYTES, Record, Shadow};
use crate::waits::{Waits, Work};

/// A running block.
pub(crate) struct RunningBlock {
    pub order: BlockOrder,
    pub shared: Shadow,
    /// The accesses to shared memory since the last barrier of all threads, unless they are in `shared`.
    pub segment: Segment,
    pub variables: HashMap<u64, Variable>,
    pub patterns: HashMap<u32, Patterns>,
    pub misses: Vec<NearMiss>,
    /// By thread: copies, and reads of `tcgen05`, whose mbarrier object is not known yet.
    unnamed: Vec<(LaneAccess, u32)>,
}

impl RunningBlock {
    fn new(threads: u32) -> RunningBlock {
        RunningBlock {
            order: BlockOrder::new(threads),
            shared: Shadow::default(),
            segment: Segment::default(),
            variables: HashMap::new(),
            patterns: HashMap::new(),
            misses: Vec::new(),
            unnamed: Vec::new(),
        }
    }

    /// Starts another block in this object; `apart`: accesses to its shared memory go to the shadow one by one.
    fn restart(&mut self, index: u32, apart: bool, only_copies: bool) {
        self.order.restart(index);
        self.shared.clear();
        self.segment.begin_block(apart, only_copies);
        self.variables.clear();
        self.patterns.clear();
        self.misses.clear();
        self.unnamed.clear();
    }
}

/// Size of the cache of places.
const RECENT_PLACES: usize = 256;

/// The accesses of a launch, and what orders them.
#[derive(Default)]
pub(crate) struct Races {
    pub extents: Extents,
    pub threads: u32,
    /// The system reserves this many bytes at the start of shared memory.
    pub reserved_shared: u64,
    /// The lanes of a warp run in lockstep: targets before sm_70.
    pub lock_step: bool,
    pub places: Vec<Place>,
    known_places: HashMap<Place, u32>,
    /// A direct-mapped cache of places, indexed by the low bits of the end of their spans.
    recent_places: Vec<Option<(Place, u32)>>,
    pub blocks: BTreeMap<u32, Box<RunningBlock>>,
    /// Clusters of several blocks, by the index of their first block.
    clusters: HashMap<u32, ClusterOrder>,
    pub global: Shadow,
    pub variables: HashMap<u64, Variable>,
    /// The number of threads that have arrived at the grid barrier, and of threads that have ended.
    at_grid_barrier: u64,
    exited: u64,
    /// Instructions whose asynchronous work signals an mbarrier object.
    pub signals: HashSet<u32>,
    /// Atomic operations that return nothing.
    pub reductions: HashSet<u32>,
    /// The kernel reads through the async proxy: writes stay relevant even after a barrier has ordered them.
    pub has_async_reads: bool,
    /// Only conflicts of threads with their own copies matter: synccheck without racecheck.
    pub only_copies: bool,
    pub waits: Waits,
    pub proxies: Proxies,
    pub lifetimes: Lifetimes,
    /// Ended blocks, for reuse.
    spare_blocks: Vec<RunningBlock>,
    /// A buffer for the addresses of an access.
    pub sorted: Vec<u64>,
    pub found: Vec<Race>,
}

impl Races {
    pub fn new(extents: Extents, threads: u32, lock_step: bool) -> Races {
        Races { extents, threads, lock_step, ..Races::default() }
    }

    pub fn index(&self, ctaid: [u32; 3]) -> u32 {
        self.extents.index(ctaid)
    }

    /// `%ctaid` of a block.
    pub fn ctaid(&self, index: u32) -> [u32; 3] {
        self.extents.ctaid(index)
    }

    /// Whether clusters have several blocks.
    pub fn has_clusters(&self) -> bool {
        self.extents.cluster != [1; 3]
    }

    /// The blocks of a block's cluster.
    pub fn cluster(&self, ctaid: [u32; 3]) -> Vec<[u32; 3]> {
        let first = self.ctaid(self.extents.cluster_of(ctaid));
        let [nx, ny, nz] = self.extents.cluster;
        let places = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
        places.map(|place| std::array::from_fn(|axis| first[axis] + place[axis])).collect()
    }

    /// Whether two blocks are in the same cluster.
    pub fn same_cluster(&self, one: [u32; 3], other: [u32; 3]) -> bool {
        self.extents.cluster_of(one) == self.extents.cluster_of(other)
    }

    /// An address as kernels see it: in shared memory, with the rank of the owning block.
    pub fn shared_address(&self, space: Space, owner: [u32; 3], address: u64) -> u64 {
        let place = self.cluster(owner).iter().position(|&block| block == owner);
        let rank = place.filter(|_| space == Space::Shared).unwrap_or(0);
        machine::shared_base(rank as u32) + address
    }

    /// Threads arrive at their cluster barrier; `relaxed`: without a release.
    pub fn arrive_at_cluster(&mut self, ctaid: [u32; 3], threads: &[u32], relaxed: bool) {
        let mut cluster = self.clusters.remove(&self.extents.cluster_of(ctaid)).unwrap_or_default();
        cluster.arrive(&mut self.block(ctaid).order, threads, relaxed);
        self.clusters.insert(self.extents.cluster_of(ctaid), cluster);
    }

    /// Threads wait at their cluster barrier.
    pub fn wait_for_cluster(&mut self, ctaid: [u32; 3], threads: &[u32]) {
        let mut cluster = self.clusters.remove(&self.extents.cluster_of(ctaid)).unwrap_or_default();
        cluster.wait(&mut self.block(ctaid).order, threads);
        self.clusters.insert(self.extents.cluster_of(ctaid), cluster);
    }

    /// A cluster barrier is complete.
    pub fn complete_cluster(&mut self, ctaid: [u32; 3]) {
        let Some(cluster) = self.clusters.get_mut(&self.extents.cluster_of(ctaid)) else { return };
        let (late, clock, passed) = cluster.complete();
        for (block, threads) in late {
            let ctaid = self.ctaid(block);
            let order = &mut self.block(ctaid).order;
            order.acquire_all(&threads, &clock);
            order.passed.join(&passed);
        }
    }

    /// A thread arrives at an mbarrier object of a block in its cluster.
    pub fn arrive_object(&mut self, ctaid: [u32; 3], thread: u32, owner: [u32; 3], object: u64) {
        self.settle(ctaid, false);
        let mut arrivals = std::mem::take(self.block(owner).order.arrivals(object));
        self.block(ctaid).order.release(thread, &mut arrivals);
        *self.block(owner).order.arrivals(object) = arrivals;
    }

    /// A thread has seen that a phase of an mbarrier object is over, and `later` more phases after it.
    pub fn wait_object(&mut self, ctaid: [u32; 3], thread: u32, owner: [u32; 3], object: u64, later: u32) {
        let over = self.block(owner).order.object_over(object, later);
        self.block(ctaid).order.acquire(thread, &over);
    }

    /// The state of a running block, created at its first event.
    pub fn block(&mut self, ctaid: [u32; 3]) -> &mut RunningBlock {
        let (index, threads, for_good) = (self.index(ctaid), self.threads, self.has_clusters());
        let only_copies = self.only_copies;
        self.blocks.entry(index).or_insert_with(|| {
            let spare = self.spare_blocks.pop();
            let mut block = spare.unwrap_or_else(|| RunningBlock::new(threads));
            block.restart(index, for_good, only_copies);
            Box::new(block)
        })
    }

    pub fn place(&mut self, place: Place) -> u32 {
        let recent = place.span.end as usize % RECENT_PLACES;
        if let Some(Some((known, number))) = self.recent_places.get(recent)
            && *known == place
        {
            return *number;
        }
        let next = self.places.len() as u32;
        let number = *self.known_places.entry(place).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        self.recent_places.resize(RECENT_PLACES, None);
        self.recent_places[recent] = Some((place, number));
        number
    }

    pub fn access(&mut self, event: &AccessEvent) {
        let mut start = 0;
        while start < event.lanes.len() {
            let ctaid = event.lanes[start].block;
            let count = event.lanes[start..].iter().take_while(|lane| lane.block == ctaid).count();
            let lanes = start..start + count;
            start += count;
            let index = self.index(ctaid);
            self.block(ctaid);
            if self.note_copies(ctaid, event, lanes.clone())
                || self.touches_no_copy(ctaid, event, lanes.clone())
            {
                continue;
            }
            let is_shared = event.lanes[lanes.clone()].iter().any(|lane| lane.space == Space::Shared);
            if is_shared && self.only_copies {
                self.settle(ctaid, true);
            } else if is_shared || event.semantics.is_strong() {
                self.settle(ctaid, is_shared && event.completion != Completion::AtOnce);
            }
            let Some(mut block) = self.blocks.remove(&index) else { continue };
            let plain = event.completion == Completion::AtOnce && !event.semantics.is_strong();
            let mut at = lanes.start;
            while at < lanes.end {
                let LaneAccess { space, bytes, owner, .. } = event.lanes[at];
                let same =
                    |lane: &&LaneAccess| lane.space == space && lane.bytes == bytes && lane.owner == owner;
                let run = at..at + event.lanes[at..lanes.end].iter().take_while(same).count();
                at = run.end;
                if !matches!(space, Space::Shared | Space::Global) || bytes == 0 {
                    continue;
                }
                let (span, kind, semantics) = (event.span, event.kind, event.semantics);
                let work = Work::of(event.completion, kind);
                let signal = kind == AccessKind::Mbarrier && self.signals.contains(&span.start);
                let reduction = self.reductions.contains(&span.start);
                let place =
                    self.place(Place { span, kind, semantics, space, bytes, work, signal, reduction });
                if space == Space::Shared && owner != ctaid {
                    let (owner, at_once) = (self.index(owner), event.completion == Completion::AtOnce);
                    self.lifetimes.visit(&block.order, owner, &event.lanes[run.clone()], place, at_once);
                }
                if plain || work == Some(Work::Copy) {
                    self.note_all(&mut block, event, run, place);
                } else {
                    run.for_each(|at| self.note_ordered(&mut block, event, at, place));
                }
            }
            self.blocks.insert(index, block);
        }
    }

    /// Records copies of a block's threads to its shared memory (`cp.async`). Returns false if they may race.
    fn note_copies(&mut self, ctaid: [u32; 3], event: &AccessEvent, lanes: Range<usize>) -> bool {
        let lanes = &event.lanes[lanes];
        let (span, kind, semantics) = (event.span, event.kind, event.semantics);
        let is_to_shared = |lane: &LaneAccess| lane.space == Space::Shared && lane.bytes == lanes[0].bytes;
        if event.completion != Completion::Group
            || kind != AccessKind::CopyWrite
            || self.has_async_reads
            || !lanes.iter().all(is_to_shared)
        {
            return false;
        }
        let (bytes, work) = (lanes[0].bytes, Some(Work::Copy));
        let place = self.place(Place {
            span,
            kind,
            semantics,
            space: Space::Shared,
            bytes,
            work,
            signal: false,
            reduction: false,
        });
        let RunningBlock { order, segment, .. } = self.block(ctaid);
        segment.copy(lanes, place, |thread| order.group_of(thread))
    }

    /// For synccheck alone: whether the accesses touch nothing that pending copies access.
    fn touches_no_copy(&mut self, ctaid: [u32; 3], event: &AccessEvent, lanes: Range<usize>) -> bool {
        if !self.only_copies || event.completion != Completion::AtOnce {
            return false;
        }
        self.block(ctaid);
        let segment = self.blocks.get(&self.index(ctaid)).map(|block| &block.segment);
        event.lanes[lanes].iter().all(|lane| match lane.space {
            Space::Shared => segment
                .is_none_or(|segment| !segment.is_apart() && !segment.is_pending(lane.address, lane.bytes)),
            Space::Global => !event.kind.writes() || self.global.is_untouched(lane.address, lane.bytes),
            _ => true,
        })
    }

    /// Threads commit copies, or have waited for some.
    pub fn copy_group(&mut self, ctaid: [u32; 3], threads: &[u32], group: CopyGroup) {
        let RunningBlock { order, segment, .. } = self.block(ctaid);
        threads.iter().for_each(|&thread| order.commit_or_wait(thread, group));
        if group != CopyGroup::Commit
            && !segment.wait_for_copies(threads, |thread| order.first_pending(thread))
        {
            self.settle(ctaid, true);
        }
    }

    /// Records a run of accesses that order nothing.
    fn note_all(&mut self, block: &mut RunningBlock, event: &AccessEvent, run: Range<usize>, place: u32) {
        let Some(first) = event.lanes.get(run.start) else { return };
        let mut other = self.take_owner(block, first);
        let RunningBlock { order, shared, misses, .. } = block;
        let shadow = match &mut other {
            Some((_, other)) => &mut other.shared,
            None if first.space == Space::Shared => shared,
            None => &mut self.global,
        };
        let mut now =
            Now::new(order, &self.places, self.extents, self.lock_step, place, (&self.waits, &self.proxies));
        let is_copy = self.places[place as usize].work.is_some();
        let Range { start: mut next, end } = run;
        while next < end {
            let (at, lane) = (next, &event.lanes[next]);
            next += 1;
            now.thread = lane.thread;
            if !is_copy && order.is_even_alone() && is_row(&event.lanes[at..end]) {
                let stamp = Stamp { block: order.index, thread: lane.thread as u16, epoch: order.floor() };
                if shadow.access_row(lane.address, Record::new(stamp, place, false), lane.bytes, &mut now) {
                    next = at + (ROW_BYTES / lane.bytes) as usize;
                    continue;
                }
            }
            let epoch = if is_copy { order.group_of(lane.thread) } else { order.epoch(lane.thread) };
            let stamp = Stamp { block: order.index, thread: lane.thread as u16, epoch };
            shadow.access(lane.address, lane.bytes, Record::new(stamp, place, is_copy), &mut now);
            if !now.races.is_empty() {
                let races = std::mem::take(&mut now.races);
                let found = races
                    .into_iter()
                    .map(|race| found(race, lane, place, misses, Some((event, at)), self.extents));
                self.found.extend(found);
            }
        }
        self.blocks.extend(other);
    }

    /// Takes the block out of `self` whose shared memory a thread of another block accesses, if so. The caller puts it back.
    pub fn take_owner(
        &mut self,
        block: &RunningBlock,
        lane: &LaneAccess,
    ) -> Option<(u32, Box<RunningBlock>)> {
        let owner = self.index(lane.owner);
        if lane.space != Space::Shared || owner == block.order.index {
            return None;
        }
        self.block(lane.owner);
        self.blocks.remove_entry(&owner)
    }

    /// Records an access that may order others, or that completes later.
    fn note_ordered(&mut self, block: &mut RunningBlock, event: &AccessEvent, at: usize, place: u32) {
        let lane = &event.lanes[at];
        let (own, thread, work) = (block.order.index, lane.thread, self.places[place as usize].work);
        let epoch = match work {
            Some(Work::Object | Work::Tensor) => return block.unnamed.push((*lane, place)),
            Some(Work::Copy) => block.order.group_of(thread),
            Some(work) => self.waits.group(work, own, thread),
            None => block.order.epoch(thread),
        };
        let stamp = Stamp { block: own, thread: thread as u16, epoch };
        self.note(block, lane, Record::new(stamp, place, work.is_some()), Some((event, at)));
        if event.semantics.is_strong()
            && !matches!(event.kind, AccessKind::Mbarrier | AccessKind::MbarrierTest)
        {
            self.answer(block, lane, place);
        }
    }

    /// Records a thread's access, and the races that it causes.
    pub fn note(
        &mut self,
        block: &mut RunningBlock,
        lane: &LaneAccess,
        record: Record,
        event: Option<(&AccessEvent, usize)>,
    ) {
        let mut other = self.take_owner(block, lane);
        let RunningBlock { order, shared, misses, .. } = block;
        let mut now = Now::new(
            order,
            &self.places,
            self.extents,
            self.lock_step,
            record.place,
            (&self.waits, &self.proxies),
        );
        now.thread = lane.thread;
        let shadow = match &mut other {
            Some((_, other)) => &mut other.shared,
            None if lane.space == Space::Shared => shared,
            None => &mut self.global,
        };
        shadow.access(lane.address, lane.bytes, record, &mut now);
        let races = std::mem::take(&mut now.races);
        let place = record.place;
        let extents = self.extents;
        self.found.extend(races.into_iter().map(|race| found(race, lane, place, misses, event, extents)));
        self.blocks.extend(other);
    }

    /// A thread's bulk copies to a block of its cluster signal an mbarrier object there. For `tcgen05.commit`, `work` says which
    /// operations signal it.
    pub fn name_work(&mut self, work: Work, ctaid: [u32; 3], thread: u32, owner: [u32; 3], object: u64) {
        let index = self.index(ctaid);
        let stamp = match work {
            // A commit covers everything that the thread has begun, even what it has committed to other objects.
            Work::Tensor => {
                let stamp = self.block(ctaid).order.commit_stamp(thread);
                let arrivals = self.block(owner).order.arrivals(object);
                arrivals.raise(stamp.block, stamp.thread, stamp.epoch + 1);
                stamp
            }
            _ => self.block(owner).order.object_stamp(object),
        };
        self.block(ctaid);
        let Some(mut block) = self.blocks.remove(&index) else { return };
        let is_named = |lane: &LaneAccess, place: u32| {
            let place = &self.places[place as usize];
            lane.thread == thread && place.work == Some(work) && (lane.owner == owner || !place.kind.writes())
        };
        let (named, rest) =
            std::mem::take(&mut block.unnamed).into_iter().partition(|(lane, place)| is_named(lane, *place));
        block.unnamed = rest;
        let named: Vec<(LaneAccess, u32)> = named;
        for (lane, place) in named {
            self.note(&mut block, &lane, Record::new(stamp, place, false), None);
        }
        self.blocks.insert(index, block);
    }

    /// Threads wait for asynchronous work, or commit it.
    pub fn step(&mut self, ctaid: [u32; 3], step: AsyncStep, threads: &[u32]) {
        self.settle(ctaid, false);
        let index = self.index(ctaid);
        self.block(ctaid);
        if let Some(block) = self.blocks.get(&index) {
            self.waits.step(&block.order, step, threads);
        }
    }

    /// Threads execute a fence between the generic proxy and the async proxy.
    pub fn fence_proxies(&mut self, ctaid: [u32; 3], threads: &[u32]) {
        self.settle(ctaid, false);
        let index = self.index(ctaid);
        self.block(ctaid);
        if let Some(block) = self.blocks.get_mut(&index) {
            self.proxies.fence(&mut block.order, threads);
        }
    }

    /// A thread arrives at the grid barrier. When all have arrived, no earlier access can race with a later one.
    pub fn arrive_at_grid_barrier(&mut self) {
        self.at_grid_barrier += 1;
        let all =
            self.extents.grid.iter().map(|&n| u64::from(n.max(1))).product::<u64>() * u64::from(self.threads);
        if self.at_grid_barrier + self.exited >= all {
            self.at_grid_barrier = 0;
            self.global = Shadow::default();
            self.waits.clear();
            for block in self.blocks.values_mut() {
                block.segment.begin();
                block.shared.clear();
            }
        }
    }

    /// Threads end. Returns true if the whole block has ended.
    pub fn exit(&mut self, ctaid: [u32; 3], threads: &[u32]) -> bool {
        self.exited += threads.len() as u64;
        let index = self.index(ctaid);
        if threads.len() == self.threads as usize && !self.blocks.contains_key(&index) {
            // The block has had no events.
            return true;
        }
        let block = self.block(ctaid);
        block.order.exit(threads);
        let over = block.order.exited_count >= block.order.threads;
        if over && let Some(block) = self.blocks.remove(&index) {
            self.lifetimes.end_block(index, &block.order);
            self.spare_blocks.push(*block);
            self.waits.end_block(index);
            self.proxies.end_block(index);
        }
        over
    }
}

/// Whether the first accesses cover a row, each element by the next thread.
fn is_row(lanes: &[LaneAccess]) -> bool {
    let Some(first) = lanes.first().filter(|lane| matches!(lane.bytes, 1 | 2 | 4 | 8 | 16)) else {
        return false;
    };
    let count = (ROW_BYTES / first.bytes) as usize;
    let Some(last) = lanes.get(count - 1) else { return false };
    first.address.is_multiple_of(ROW_BYTES)
        && last.address == first.address + ROW_BYTES - first.bytes
        && lanes[..count].iter().zip(0u32..).all(|(lane, i)| {
            lane.thread == first.thread + i && lane.address == first.address + first.bytes * u64::from(i)
        })
}
