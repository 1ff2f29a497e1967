//! Block coarsening: native code takes the threads of many blocks in one go, without a gang.
//!
//! In a kernel such as `y[i] = a * x[i] + y[i]`, everything but one section of straight-line native code steps evenly through the
//! whole grid. A gang computes that again for each 1024 threads, and this takes longer than the section. Here it is computed
//! once for up to [`MOST_LANES`] threads, in affine form. The basic blocks are followed as far as all threads take the same way,
//! or all blocks alike: some of their threads end, and the others go on.
//!
//! Sections run one after the other, each for all blocks. So every block has shared memory, and a barrier has nothing to do. What one
//! section computes for a later one is in an array ([`Arrays`]).
//!
//! Nothing is written before all is known: the sections of the whole way, and the memory of all their pointers. If something
//! does not fit, the blocks run in gangs as if nothing had been tried. So faults are found there. Addresses that depend on data are
//! known only to native code, which skips threads that may not access them. Then all go on in gangs behind that section (`resume.rs`).
//!
//! Narrowest test: `ptxvm/tests/native`, `coarse`.

use std::ops::Range;
use std::sync::atomic::Ordering;

use ir::{Barrier, BlockId, SimpleOp};
use jit::Form;
use machine::NativeCode;
use machine::mask::{Mask, WARP_LANES};
use machine::memory::shared_base;

use super::addresses::Region;
use super::native::{KnownRegion, form, signed};
use super::region::{region_of_launch, region_of_shared};
use super::request::Request;
use super::straight::locate;
use crate::affine::{Affine, LaneRows, MOST_LANES};
use crate::bytes::AlignedBytes;
use crate::code::{
    Code, Function, Guard, Kind, OfBlocks, Op, Straight, StraightBlock, Terminator, Trace, affine,
};
use crate::cta_batch::{CtaBatch, CtaBatches, axis_along};
use crate::registers::SlotRef;
use crate::run::Run;
use crate::shared::BARRIERS;
use patterns::{Computed, Patterns};
use section::{Arrays, Section};

use resume::{Behind, OfLanes, Place};
pub(crate) use resume::{Rest, Stopped};
use solo::Solo;

mod evaluate;
mod patterns;
mod resume;
mod section;
mod solo;

/// Threads whose way has more basic blocks run in gangs; or so many through loops with native code of their own, which keeps values in
/// registers of the host.
const MOST_BLOCKS: usize = 256;
const MOST_WITH_LOOPS: usize = 64;
/// The most threads of blocks that share memory, and the most bytes of it: what the host's caches have room for.
const MOST_SHARING: usize = 1 << 14;
const MOST_SHARED: usize = 1 << 19;
/// After so many failures in a row, all blocks run in gangs.
const MOST_FAILURES: u32 = 8;

/// Runs ranges of blocks of one launch.
pub(crate) struct Coarse<'l> {
    launch: &'l Run<'l>,
    code: &'l Code,
    function: &'l Function,
    /// The basic blocks with sections, and those that begin traces.
    straight: Vec<&'l StraightBlock>,
    traces: Vec<&'l Trace>,
    /// How the threads of the range form rows.
    rows: LaneRows,
    /// The values of slots by index, if they are affine.
    values: Vec<Option<Affine>>,
    /// Predicates that depend on the thread's place in its block alone.
    patterns: Patterns,
    /// What operations have computed last.
    computed: Computed,
    /// The values that sections compute for later ones.
    arrays: Arrays,
    /// The shared memory of all blocks, from its first use on.
    shared: Option<AlignedBytes>,
    /// The threads of a block.
    all: Mask,
    /// Those that have not ended, how many these are, and the thread-instructions of those that ended at a branch.
    alive: Mask,
    alive_count: u64,
    ended: u64,
    /// What is to run.
    parts: Vec<Part<'l>>,
    /// The values of the slots of one thread, and the memory that each access of such threads has had.
    values_of_thread: Vec<u64>,
    places: Vec<Option<Region>>,
    /// Values and patterns that are the same on entry in every range with such rows.
    entry: Option<(LaneRows, Vec<Option<Affine>>, Patterns)>,
    /// The memory that each pointer of a section has had.
    regions: Vec<Option<KnownRegion>>,
    /// The most threads at once.
    most_lanes: usize,
    /// How many CTA batches are tried next, and failures since the last success. Where many do not fit, half of them may.
    most: u64,
    failures: u32,
}

/// A part of the way of all threads.
#[expect(clippy::large_enum_variant, reason = "there are few, and they live on the heap")]
enum Part<'l> {
    /// And where gangs go on if it skips threads.
    Section(Section<'l>, Option<Box<Behind<'l>>>),
    Solo(Solo<'l>),
}

/// Blocks that have run.
pub(crate) struct Done<'l> {
    pub blocks: u64,
    /// Thread-instructions.
    pub instructions: u64,
    /// They have not come to their end.
    pub stopped: Option<Stopped<'l>>,
}

/// The most threads that may run at once.
pub(crate) fn most_lanes(launch: &Run) -> usize {
    let of_block = launch.config().block_threads() as usize;
    match launch.shared().allocated() as usize {
        0 => MOST_LANES,
        bytes => (MOST_SHARED / bytes * of_block).min(MOST_SHARING),
    }
}

impl<'l> Coarse<'l> {
    /// `None`: no blocks of this launch can run so.
    pub fn new(launch: &'l Run<'l>, code: &'l Code) -> Option<Coarse<'l>> {
        let function = code.functions.get(launch.entry().0 as usize)?.as_ref()?;
        let native = launch.native_code != NativeCode::Never;
        let whole_warps = launch.config().block_threads().is_multiple_of(WARP_LANES as u64);
        let straight: Vec<_> = function.blocks.iter().filter_map(|block| block.straight.as_deref()).collect();
        let traces: Vec<_> = function.blocks.iter().filter_map(|block| block.trace.as_deref()).collect();
        let has_code = |apart: &OfBlocks| apart.ops.is_some() || apart.trace.is_some();
        let mut apart = function.blocks.iter().filter_map(|block| block.of_blocks.as_deref());
        let none = straight.is_empty() && traces.is_empty() && !apart.any(has_code);
        if !native
            || !whole_warps
            || code.is_too_long.load(Ordering::Relaxed)
            || launch.cluster_blocks() > 1
            || none
        {
            return None;
        }
        Some(Coarse {
            launch,
            code,
            function,
            straight,
            traces,
            rows: LaneRows::of([0; 3], 0, 1),
            values: Vec::new(),
            patterns: Patterns::default(),
            computed: Computed::default(),
            arrays: Arrays::default(),
            shared: None,
            all: Mask::first(launch.config().block_threads() as usize),
            alive: Mask::EMPTY,
            alive_count: 0,
            ended: 0,
            parts: Vec::new(),
            values_of_thread: Vec::new(),
            places: Vec::new(),
            entry: None,
            regions: vec![None; code.native_accesses],
            most_lanes: most_lanes(launch),
            most: u64::MAX,
            failures: 0,
        })
    }

    /// Runs the first of these CTA batches to their end, as many as fit, and takes them out of the range. `None`: nothing has run.
    pub fn run(&mut self, batches: &CtaBatches, range: &mut Range<u64>) -> Option<Done<'l>> {
        let when = self.launch.native_code;
        let is_hot = self.code.note_gang(when)
            || self.straight.iter().any(|block| block.is_hot(when))
            || self.traces.iter().any(|trace| trace.is_hot(when));
        if !is_hot {
            return None;
        }
        while !range.is_empty() && !self.gives_up() {
            let count = self.most.min(range.end - range.start);
            let some = range.start..range.start + count;
            if let Some(done) = batches.joined(&some).and_then(|blocks| self.run_blocks(blocks)) {
                range.start = some.end;
                let went = done.stopped.is_none();
                (self.most, self.failures) =
                    if went { (2 * count, 0) } else { (count, self.failures.saturating_add(1)) };
                self.code.coarsens.store(went, Ordering::Relaxed);
                return Some(done);
            }
            (self.most, self.failures) = ((count / 2).max(1), self.failures.saturating_add(1));
            self.code.coarsens.store(false, Ordering::Relaxed);
            if count == 1 {
                break;
            }
        }
        None
    }

    /// How many CTA batches a host thread should take: its part, or more if they take hardly any time. Large ranges of them are likely
    /// to run at once; where they do not, other host threads should have a part of them. `None`: they are not.
    pub fn share(&self, part: u64, most: u64) -> Option<u64> {
        let of_range = || (self.most_lanes / self.code.lanes).max(1) as u64;
        let most = if self.code.waits.load(Ordering::Relaxed) { most.min(of_range()) } else { most };
        let short = self.code.short_range.load(Ordering::Relaxed);
        self.code.coarsens.load(Ordering::Relaxed).then_some(part.max(short).min(most))
    }

    /// It has failed too often.
    pub fn gives_up(&self) -> bool {
        self.failures >= MOST_FAILURES
    }

    fn run_blocks(&mut self, blocks: CtaBatch) -> Option<Done<'l>> {
        let config = self.launch.config();
        let lanes = config.block_threads() as usize * blocks.blocks;
        if lanes > self.most_lanes {
            return None;
        }
        let first = self.launch.ctaid(blocks.first);
        let along = axis_along(config.grid, first, blocks)?;
        let mut last = first;
        last[along] += blocks.blocks as u32 - 1;
        self.enter(LaneRows::of(config.block, lanes, blocks.blocks), ([first, last], Some(along)))?;
        let cost = self.follow()?;
        if let Some(shared) = &self.shared {
            // As in a gang: reads of uninitialised memory return the same value in every run.
            // SAFETY: the memory is this thread's own, and no reference points to it.
            unsafe { shared.as_ptr().write_bytes(0, self.shared_bytes() * blocks.blocks) }
        }
        let (mut counted, mut stopped) = (0, None);
        let (count, mut cost) = (blocks.blocks as u64, cost);
        let parts = std::mem::take(&mut self.parts);
        for part in &parts {
            match part {
                Part::Section(section, behind) => {
                    let (instructions, skipped) = section.run(self.launch);
                    counted += instructions;
                    if let Some(behind) = behind.as_deref().filter(|_| !skipped.is_empty()) {
                        counted += behind.count(&skipped, self.rows, self.all);
                        cost = behind.cost;
                        stopped = Some(self.stop_behind(behind, skipped));
                        break;
                    }
                }
                Part::Solo(solo) => {
                    let (instructions, stuck) = self.run_solo(solo);
                    counted += instructions;
                    if let Some(stuck) = stuck {
                        stopped = Some(self.stop_alone(solo, stuck));
                        cost = solo.cost;
                        break;
                    }
                }
            }
        }
        self.parts = parts;
        Some(Done { blocks: count, instructions: cost * count + counted, stopped })
    }

    /// Bytes of shared memory of a block.
    fn shared_bytes(&self) -> usize {
        self.launch.shared().allocated() as usize
    }

    /// Sets the slots that have a value on entry.
    fn enter(&mut self, rows: LaneRows, ctaids: ([[u32; 3]; 2], Option<usize>)) -> Option<()> {
        let (function, launch) = (self.function, self.launch);
        let special = |special| affine(special, launch, ctaids, 0, rows);
        self.rows = rows;
        (self.alive, self.alive_count, self.ended) = (Mask::ALL, rows.block_lanes() as u64, 0);
        self.parts.clear();
        self.arrays.clear(rows.lanes);
        match &self.entry {
            Some((known, values, patterns)) if *known == rows => {
                self.values.clone_from(values);
                self.patterns.clone_from(patterns);
            }
            _ => {
                self.patterns = Patterns::default();
                self.values.clear();
                self.values.resize(function.slots as usize, None);
                for &(slot, value) in &function.constants {
                    self.set(slot, Some(Affine::uniform(value)));
                }
                for &(slot, register) in &function.specials {
                    self.set(slot, special(register));
                }
                for op in &function.prologue {
                    self.execute(op)?;
                }
                self.entry = Some((rows, self.values.clone(), self.patterns.clone()));
            }
        }
        for &(slot, register) in &function.block_specials {
            self.set(slot, special(register));
        }
        for &index in &function.zeros {
            self.values[index as usize] = Some(Affine::uniform(0));
        }
        Some(())
    }

    /// Follows the way of the threads to its end, and finds its sections. Returns the thread-instructions of a block.
    fn follow(&mut self) -> Option<u64> {
        let (mut cost, mut index) = (0, 0);
        let mut most = MOST_BLOCKS;
        for count in 0.. {
            let mut block = &self.function.blocks[index as usize];
            if block.native.is_some() {
                most = MOST_WITH_LOOPS;
            }
            if count >= most {
                break;
            }
            let alive = self.alive_count;
            let trace = match &block.of_blocks {
                Some(apart) => apart.trace.as_ref(),
                None => block.trace.as_deref(),
            };
            if let Some(trace) = trace
                && let Some((part, of_trace)) = self.trace(trace, index, cost)
            {
                self.parts.push(part);
                cost += of_trace;
                block = &self.function.blocks[trace.last as usize];
            } else {
                let ops = match (&block.of_blocks, &block.straight) {
                    (Some(apart), _) => apart.ops.as_ref().unwrap_or(&block.ops),
                    (None, Some(straight)) if straight.is_ready(self.launch.native_code) => &straight.ops,
                    (None, Some(_)) => return None,
                    (None, None) => &block.ops,
                };
                for (at, op) in ops.iter().enumerate() {
                    match &op.kind {
                        Kind::Straight(straight) => {
                            let section = self.section(straight)?;
                            let place = Place::Block { index, ops: &straight.ops, rest: &ops[at + 1..] };
                            let behind = || Box::new(self.behind(place, cost + block.cost * alive));
                            let behind = section.checks().then(behind);
                            self.parts.push(Part::Section(section, behind));
                        }
                        _ => self.execute(op)?,
                    }
                }
                cost += block.cost * alive;
            }
            index = match block.terminator {
                Terminator::Jump(next) => next.0,
                Terminator::Branch { pred, negated, taken, otherwise } => {
                    let lanes = self.lanes_of(Guard { slot: pred, negated })?;
                    match self.branch(lanes, taken, otherwise) {
                        Some(next) => next.0,
                        None => self.part(block, lanes, [otherwise, taken], cost)?,
                    }
                }
                Terminator::Barrier(ref barrier) if self.meet(barrier) => barrier.next.0,
                Terminator::Return | Terminator::Exit => return Some(cost + self.ended),
                _ => return None,
            };
        }
        // Nor would the way of fewer blocks be shorter.
        self.code.is_too_long.store(true, Ordering::Relaxed);
        self.failures = MOST_FAILURES;
        None
    }

    /// How many threads of a block these are.
    fn count(&self, lanes: Mask) -> u32 {
        (lanes & self.all).count()
    }

    /// All threads that have not ended meet at the barrier, and go on.
    fn meet(&self, barrier: &Barrier<SlotRef>) -> bool {
        let waits_for_all = barrier.threads.is_none() && !barrier.arrive && barrier.reduction.is_none();
        waits_for_all && self.uniform(barrier.barrier).is_some_and(|number| number < BARRIERS as u64)
    }

    /// Where the threads go on, of which these take the branch. If only some do, they or the others must end there.
    fn branch(&mut self, lanes: Mask, taken: BlockId, otherwise: BlockId) -> Option<BlockId> {
        let all = self.alive & self.all;
        let (lanes, others) = (all & lanes, all & !lanes);
        let ends = |to: BlockId| {
            let block = &self.function.blocks[to.index()];
            let is_empty = block.ops.is_empty() && block.straight.is_none() && block.cost <= 1;
            is_empty && matches!(block.terminator, Terminator::Return | Terminator::Exit)
        };
        let (next, ended) = match () {
            () if others.is_empty() => (taken, None),
            () if lanes.is_empty() => (otherwise, None),
            () if ends(taken) => (otherwise, Some((lanes, taken))),
            () if ends(otherwise) => (taken, Some((others, otherwise))),
            () => return None,
        };
        if let Some((lanes, to)) = ended {
            self.ended += u64::from(self.count(lanes)) * self.function.blocks[to.index()].cost;
            self.alive &= !lanes;
            self.alive_count = u64::from(self.count(self.alive));
        }
        Some(next)
    }

    /// What native code computes of a trace, if all threads go its way, and the thread-instructions of a block. `cost`: those before.
    fn trace(&mut self, trace: &'l Trace, head: u32, cost: u64) -> Option<(Part<'l>, u64)> {
        trace.before.iter().try_for_each(|op| self.execute(op))?;
        if !trace.is_way(|slot| self.uniform(slot)) {
            return None;
        }
        let mut of_lanes: OfLanes = [(self.alive, trace.cost)].into_iter().collect();
        for &(guard, cost) in &trace.some {
            of_lanes.push((self.alive & self.lanes_of(guard)?, cost));
        }
        let of_block = of_lanes.iter().map(|&(lanes, cost)| cost * u64::from(self.count(lanes))).sum();
        let section = self.section(&trace.section)?;
        let copied = |op: &Op| match op.kind {
            Kind::Simple(SimpleOp::Copy { dst, .. }) if section.checks() => Some((dst, self.known(dst)?)),
            _ => None,
        };
        let before = trace.after.iter().filter_map(copied).collect();
        trace.after.iter().try_for_each(|op| self.execute(op))?;
        let behind = section.checks().then(|| {
            let mut behind = Box::new(self.behind(Place::Trace { head, last: trace.last }, cost));
            (behind.of_lanes, behind.before) = (of_lanes, before);
            behind
        });
        Some((Part::Section(section, behind), of_block))
    }

    /// A section whose operands are memory, values that step evenly, and those of earlier sections.
    fn section(&mut self, straight: &'l Straight) -> Option<Section<'l>> {
        if !straight.guards_hold(|slot| self.uniform(slot)) {
            return None;
        }
        if straight.plan.whole_warps && !self.alive.is_whole_warps_of(Mask::ALL) {
            return None;
        }
        // Gangs that go on behind the section have all threads of a block.
        if !straight.plan.checked.is_empty() && self.code.lanes < self.rows.block_lanes() {
            return None;
        }
        let code = straight.code(|slot| self.form(slot))?;
        let mut section = Section::new(straight, code, self.rows, self.alive);
        for &slot in &code.evens {
            section.evens.push(signed(*self.value(slot)?, slot));
        }
        for &(slot, defined) in &straight.predicates {
            if defined {
                return None;
            }
            section.predicates.push(self.lanes_of(Guard { slot, negated: false })?);
        }
        for (index, pointer) in straight.plan.pointers.iter().enumerate() {
            let affine = *self.value(straight.pointers[index])?;
            let mut known = self.regions[straight.first_region + index];
            let rows = self.rows;
            let find = |request: &Request, least, greatest| self.region(request, least, greatest);
            let (place, stride) = locate(&mut known, pointer, affine, rows, find)?;
            self.regions[straight.first_region + index] = known;
            let block_stride = place.block_stride.wrapping_add(stride as u64);
            section.pointers.push(Affine { block_stride, ..place });
        }
        if !self.arrays.have_room(code.words.len()) {
            self.most_lanes = self.rows.lanes / 2;
            return None;
        }
        if !code.words.iter().all(|word| self.arrays.has(word, self.uniform(word.slot))) {
            return None;
        }
        // Nothing fails behind this: slots have what the section computes.
        for word in &code.words {
            section.words.push(self.arrays.word(word, self.uniform(word.slot)));
            if word.defined {
                self.values[word.slot.index as usize] = None;
            }
        }
        Some(section)
    }

    /// The memory of an access.
    fn region(&mut self, request: &Request, least: u64, greatest: u64) -> Option<Region> {
        if let Some(region) = region_of_launch(self.launch, request, least, greatest) {
            return Some(region);
        }
        let stride = self.shared_bytes();
        if stride == 0 {
            return None;
        }
        let most = most_lanes(self.launch) / self.rows.block_lanes();
        let shared = self.shared.get_or_insert_with(|| AlignedBytes::zeroed(stride * most));
        let memory = (shared.as_ptr(), shared_base(0));
        let region = region_of_shared(self.launch, memory, request, least, greatest)?;
        Some(Region { stride, ..region })
    }

    /// How a slot steps, as native code must know it.
    fn form(&self, slot: SlotRef) -> Option<Form> {
        form(signed(*self.value(slot)?, slot), self.rows)
    }
}
