//! The block-vectorised interpreter.
//!
//! A [`Gang`] holds threads of a block, or of several blocks, and runs each instruction for all of them before the next.
//! Threads that took different ways are different [`Path`]s: a place and a set of lanes. The gang runs the path
//! that stands deepest in calls and lowest in layout order, so that others meet it where their ways join
//! (see [`ir::Function::blocks`]).
//!
//! A gang has up to 1024 lanes. An operation under a partial mask writes all lanes of a slot, unless the slot is live where another path
//! waits; only then are its results merged. So one handler serves full and partial masks.
//!
//! A path gives its turn to the others of its gang on a backward branch when its budget is used up, and at once if the loop may wait for
//! another thread: if it has atomics, fences or volatile loads. Gangs of a block and blocks of a grid (`grid.rs`) take turns in the same
//! way, so spin locks make progress between lanes, gangs and blocks. Each further block in flight needs registers and memory of the host,
//! which costs more than many turns. So a gang whose loop may wait gives its turn away after 32 turns of the loop, and only after 1024 if
//! all that the loop has is `red`, which tells it nothing.
//!
//! Narrowest tests (`tests/run`): partial masks `second_result_waits`, `loop_divergent`, `call_waits`; lanes of the last guard
//! `predication`, `guard_in_calls`; turns `blocks_wait_weakly`, `spin_lock`.

mod access;
mod active;
mod addresses;
mod atomic;
mod atomic_wide;
mod builtin;
mod chain;
mod control;
mod convergence;
mod copy;
mod frame;
mod inline_cache;
mod local;
mod matrix;
mod mbarrier;
mod moves;
mod notify;
mod observe;
mod path;
mod print;
mod pure;
mod resolve;
mod stack;
mod strong;
mod tensor;
mod texture;
mod transfer;
mod warp;
mod watch;
mod windows;

use diag::Span;
use isa::Opcode;

use crate::affine::LaneRows;
use crate::code::{Block, Code, Function, Guard, Kind, Op, Terminator};
use crate::cta::Shared;
use crate::cta_batch::{CtaBatch, axis_along};
use crate::fault::{Access, Fault, FaultKind};
use crate::grid::Launch;
use crate::launch::Place;
use crate::limits::Stop;
use crate::mask::{GROUP_LANES, Mask};
use crate::memory::{LocalMemory, shared_base};
use crate::registers::{Registers, SlotRef};
use active::{Active, Everyone};
use copy::Copies;
use frame::Frames;
use inline_cache::{AccessCache, PureCache};
pub(crate) use mbarrier::Waiting;
pub(crate) use observe::{Observer, Recorder};
use path::Path;
pub(crate) use path::Wait;
pub(crate) use watch::Watcher;

/// Result of running something that may fault.
pub(crate) type Step<T = ()> = Result<T, Box<Fault>>;

/// What a gang's turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// All its threads have ended.
    Done,
    /// All its threads wait.
    Blocked,
    /// The launch ends: [`Gang::stopped`].
    Stopped,
    /// Its budget is used up.
    OutOfBudget {
        /// By a loop that may wait for another thread.
        spinning: bool,
    },
}

/// Extra budget that a turn of a loop costs when it may wait for another thread: 32 such turns use a budget up.
pub(crate) const SPIN_COST: i64 = BUDGET / 32;
/// The same if it learns of others by weak loads at most: 1024 turns. Whoever gives his turn away has other blocks start, which need
/// registers and memory of their own.
pub(crate) const REDUCTION_COST: i64 = BUDGET / 1024;
/// Blocks that a gang runs before it gives its turn away.
pub(crate) const BUDGET: i64 = 1 << 16;

/// Threads of a block, or all threads of several blocks, with their registers and private memory.
pub(crate) struct Gang<'l> {
    launch: &'l Launch,
    code: &'l Code,
    registers: Registers,
    local: LocalMemory,
    frames: Frames,
    /// Paths other than the one that runs.
    paths: Vec<Path>,
    /// Lanes that have not ended.
    pub alive: Mask,
    /// It has all threads of its blocks.
    whole_blocks: bool,
    /// Linear index in the block of lane 0.
    pub first_thread: u32,
    /// Number of lanes that computations cover: the threads, rounded up to whole groups.
    lanes: usize,
    everyone: Everyone,
    /// The lanes of each block.
    block_masks: Vec<Mask>,
    /// Its blocks, or the one that it has a part of.
    batch: CtaBatch,
    /// `%ctaid` of the first and of the last block.
    ctaids: [[u32; 3]; 2],
    /// The axis along which `%ctaid` steps by one from block to block; none where blocks follow each other over the ends of rows.
    along: Option<usize>,
    /// Where the block's shared memory begins among the addresses of `.shared::cluster`.
    shared_base: u64,
    /// Slots of the running path's window that other paths need, a bit each. Empty when nobody waits.
    needed: Vec<u64>,
    /// Other paths have changed since these were found.
    needed_changed: bool,
    /// Window 0 holds already what is the same in all blocks.
    prepared: bool,
    /// By [`crate::code::Address::place`].
    access_caches: Vec<AccessCache>,
    /// By [`crate::code::Pure::inline cache`].
    pure_caches: Vec<PureCache>,
    /// By [`crate::code::Link::chain`].
    chains: Vec<chain::Chain>,
    /// Thread-instructions executed, and those of them that have been reported.
    pub instructions: u64,
    /// Nanoseconds that warps slept, which the clock of cycles counts as well.
    slept: u64,
    reported: u64,
    /// It looks whether it may go on where the budget has none of these bits.
    look_mask: i64,
    /// Why and where it stopped.
    pub stopped: Option<(Stop, Place)>,
    /// Asynchronous copies that nobody has waited for.
    copies: Copies,
    /// The lanes of the guard that has last held for some.
    guarded: Option<Box<Active>>,
    /// Room for the operands of atomic operations.
    operands: Option<Box<atomic::Operands>>,
    /// Room for the matrices of a product.
    matrices: Option<Box<matrix::Matrices>>,
    /// Bytes that each lane has taken by `alloca`; empty if none has.
    stacks: Vec<u32>,
    /// Its blocks have started, and nothing has run.
    begins: bool,
    printed: print::Printed,
    put_off: Option<print::PutOff>,
}

impl<'l> Gang<'l> {
    /// A gang of so many threads of blocks of a rank in their cluster, or of fewer threads where there are fewer blocks.
    pub fn new(
        launch: &'l Launch,
        code: &'l Code,
        rows: LaneRows,
        rank: u32,
        first_thread: u32,
        threads: usize,
    ) -> Gang<'l> {
        let lanes = threads.next_multiple_of(GROUP_LANES);
        Gang {
            launch,
            code,
            registers: Registers::new(rows, launch.path),
            local: LocalMemory::new(lanes),
            frames: Frames::default(),
            paths: Vec::new(),
            alive: Mask::EMPTY,
            first_thread,
            lanes,
            whole_blocks: threads as u64 == launch.config.block_threads() * rows.blocks() as u64,
            everyone: Everyone::new(threads, lanes),
            block_masks: match rows.blocks() {
                1 => vec![Mask::ALL],
                blocks => {
                    let lanes = rows.block_lanes();
                    (0..blocks).map(|block| Mask::range(block * lanes, (block + 1) * lanes)).collect()
                }
            },
            batch: CtaBatch::default(),
            ctaids: [[0; 3]; 2],
            along: None,
            shared_base: shared_base(rank),
            needed: Vec::new(),
            needed_changed: false,
            prepared: false,
            access_caches: (0..code.accesses).map(|_| AccessCache::NONE).collect(),
            pure_caches: (0..code.pure_operations).map(|_| PureCache::NONE).collect(),
            chains: (0..code.chains).map(|_| chain::Chain::default()).collect(),
            instructions: 0,
            slept: 0,
            reported: 0,
            look_mask: launch.limits.look_mask(launch.shuffled),
            stopped: None,
            copies: Copies::default(),
            guarded: None,
            operands: None,
            matrices: None,
            stacks: Vec::new(),
            begins: false,
            printed: print::Printed::default(),
            put_off: None,
        }
    }

    fn function(&self, index: u32) -> Option<&'l Function> {
        self.code.functions.get(index as usize)?.as_ref()
    }

    /// Starts the blocks of a CTA batch, or part of one: all threads at the kernel's entry.
    pub fn start(&mut self, batch: CtaBatch, shared: &mut Shared) -> Step {
        self.batch = batch;
        self.ctaids = [self.launch.ctaid(batch.first); 2];
        self.along = axis_along(self.launch.config.grid, self.ctaids[0], batch);
        self.ctaids[1] = self.ctaid_of(batch.blocks - 1);
        let rows = self.registers.rows();
        if rows.blocks() > 1 && self.everyone.threads != batch.blocks * rows.block_lanes() {
            self.everyone = Everyone::new(batch.blocks * rows.block_lanes(), self.lanes);
        }
        self.alive = self.everyone.mask;
        self.begins = true;
        self.begin_printing();
        self.paths.clear();
        self.copies.clear();
        self.stacks.clear();
        self.local.reset();
        self.frames.clear();
        let frame = self.enter_kernel(shared)?;
        self.paths.push(Path { mask: self.alive, frame, block: 0, wait: Wait::Ready, yields: 0 });
        Ok(())
    }

    /// Runs until all threads have ended or wait, or about `budget` blocks have run.
    pub fn turn(
        &mut self,
        shared: &mut Shared,
        budget: &mut i64,
        observer: &mut impl Observer,
    ) -> Step<Turn> {
        let mut spinning = false;
        if std::mem::take(&mut self.begins)
            && let [path] = self.paths[..]
        {
            observer.start(self, path.frame, path.mask);
        }
        // Paths are large: it stays where it is.
        let mut path = Path { mask: Mask::EMPTY, frame: 0, block: 0, wait: Wait::Ready, yields: 0 };
        while self.pick(shared, &mut path) {
            let result = self.run_path(&mut path, shared, budget, &mut spinning, observer);
            self.registers.expand();
            let yielded = result.or_else(|fault| self.end_blocks(fault, &mut path).map(|()| false))?;
            if yielded {
                path.yields += 1;
            }
            if !path.mask.is_empty() {
                self.put(&path);
            }
            if self.stopped.is_some() {
                return Ok(Turn::Stopped);
            }
            if *budget <= 0 {
                self.print_ended();
                self.report_put_off(spinning)?;
                return Ok(Turn::OutOfBudget { spinning });
            }
        }
        self.print_ended();
        self.report_put_off(false)?;
        Ok(if self.alive.is_empty() { Turn::Done } else { Turn::Blocked })
    }

    /// Writes to `slot` may spill over into lanes that do not execute.
    #[inline]
    fn whole(&self, active: &Active, slot: SlotRef) -> bool {
        if active.alone {
            return true;
        }
        if active.guarded {
            return false;
        }
        match self.needed.get(slot.index as usize / 64) {
            Some(word) => word >> (slot.index % 64) & 1 == 0,
            None => true,
        }
    }

    /// Runs a path until it ends, waits, meets others, or gives its turn away (returns true then).
    fn run_path<O: Observer>(
        &mut self,
        path: &mut Path,
        shared: &mut Shared,
        budget: &mut i64,
        spinning: &mut bool,
        observer: &mut O,
    ) -> Step<bool> {
        let mut turn_cost = 0;
        // Calls and returns end the run of a path: its frame stays the same here.
        let frame = &self.frames[path.frame];
        let (index, window) = (frame.function, frame.window);
        let Some(function) = self.function(index) else { return Ok(false) };
        let mut active = Active::new(window, path.frame);
        // The path may have other lanes than `active`.
        let mut changed = true;
        loop {
            let block = &function.blocks[path.block as usize];
            if *budget & self.look_mask == 0 && self.look(path, block) {
                return Ok(false);
            }
            if block.warp {
                changed = true;
                if !self.gather_warps(path, block, window, shared, observer)? {
                    return Ok(false);
                }
            }
            if let Terminator::Barrier(barrier) = &block.terminator
                && barrier.threads.is_some()
            {
                changed = true;
                self.divide_at_barrier(path, barrier, shared);
            }
            // It does nothing but lead to another.
            let passes =
                !O::WATCHES && block.ops.is_empty() && matches!(block.terminator, Terminator::Jump(_));
            if !passes && std::mem::take(&mut changed) && active.mask != path.mask {
                self.registers.expand();
                if path.mask == self.everyone.mask {
                    active.set_everyone(&self.everyone);
                } else {
                    active.set_path(path.mask, self.lanes);
                }
            }
            if self.needed_changed && !block.ops.is_empty() {
                self.find_needed(path);
            }
            active.alone = self.needed.is_empty();
            active.expect(block.ops.len());
            observer.enter(index, path.block, active.mask);
            for (index, op) in block.ops.iter().enumerate() {
                observer.before(self, shared, block, index, &active)?;
                match op.guard {
                    None => self.execute(op, &active, shared).inspect_err(|_| observer.fault())?,
                    Some(guard) => {
                        self.execute_guarded(op, guard, &active, shared).inspect_err(|_| observer.fault())?;
                    }
                }
                observer.after();
            }
            let count = if changed { path.mask.count() as usize } else { active.count };
            self.instructions += block.cost * count as u64;
            *budget -= 1;
            turn_cost = turn_cost.max(block.turn_cost);

            let from = path.block;
            observer.before_end(self, shared, block, &active)?;
            let goes_on = match block.terminator {
                Terminator::Jump(next) => {
                    path.block = next;
                    true
                }
                Terminator::Branch { pred, negated, taken, otherwise }
                    if let Some(value) = self.registers.uniform(window, pred) =>
                {
                    path.block = if (value != 0) == negated { otherwise } else { taken };
                    true
                }
                _ => {
                    changed = true;
                    self.terminate(path, block, &active, shared)?
                }
            };
            observer.after_end(self, shared, block, &active)?;
            if !goes_on {
                return Ok(false);
            }
            if O::GIVES_WAY && block.turn_cost > REDUCTION_COST && self.launch.config.cooperative {
                // Those who wait at a barrier of the grid see it over before the last one to come goes on, or what they do next would
                // always be ordered behind that.
                (*budget, *spinning) = (0, true);
                return Ok(path.block <= from && !self.paths.is_empty());
            }
            if path.block <= from {
                // A turn of a loop.
                if turn_cost > 0 {
                    *budget -= std::mem::take(&mut turn_cost);
                    *spinning = true;
                    if !self.paths.is_empty() {
                        return Ok(true);
                    }
                }
                if *budget <= 0 {
                    return Ok(!self.paths.is_empty());
                }
            } else if self.launch.shuffled && *budget <= 0 {
                return Ok(false);
            }
            if !self.paths.is_empty() && self.should_stop(path, path.block) {
                return Ok(false);
            }
        }
    }

    /// Looks whether a path may execute a block. If not, the launch ends.
    #[cold]
    #[inline(never)]
    fn look(&mut self, path: &Path, block: &Block) -> bool {
        let limits = &self.launch.limits;
        let mut more = 0;
        if limits.count_steps() {
            limits.report(self.take_instructions());
            more = block.cost * u64::from(path.mask.count());
        }
        self.stopped = limits.look(more).and_then(|stop| Some((stop, self.place_of_path(path)?)));
        self.stopped.is_some()
    }

    /// Thread-instructions executed since the last call.
    pub fn take_instructions(&mut self) -> u64 {
        let new = self.instructions - self.reported;
        self.reported = self.instructions;
        new
    }

    #[inline(never)]
    fn execute_guarded(&mut self, op: &Op, guard: Guard, active: &Active, shared: &mut Shared) -> Step {
        let predicate = self.registers.predicate(active.window, guard.slot);
        let mask = active.mask & if guard.negated { !predicate } else { predicate };
        if mask.is_empty() {
            return Ok(());
        }
        if mask == active.mask {
            return self.execute(op, active, shared);
        }
        // In a loop they are often those of the last guard.
        let mut some =
            self.guarded.take().unwrap_or_else(|| Box::new(Active::new(active.window, active.frame)));
        if some.mask != mask || some.window != active.window {
            *some = Active { guarded: true, ..Active::new(active.window, active.frame) };
            some.set_mask(mask, self.lanes);
        }
        some.frame = active.frame;
        let done = self.execute(op, &some, shared);
        self.guarded = Some(some);
        done
    }

    #[inline(always)]
    fn execute(&mut self, op: &Op, active: &Active, shared: &mut Shared) -> Step {
        match &op.kind {
            Kind::Pure(pure) => self.pure(pure, active),
            Kind::Copy { dst, src } => self.copy(*dst, *src, active),
            Kind::Not { dst, src } => self.not(*dst, *src, active),
            Kind::Resize { dst, src, bits, signed } => self.resize(*dst, *src, *bits, *signed, active),
            Kind::Offset { dst, src, addend } => self.offset(*dst, *src, *addend, active),
            Kind::Param { dst, offset, bytes, signed } => {
                let (value, whole) = (self.param(*offset, *bytes, *signed), self.whole(active, *dst));
                self.registers.set_all(active.window, *dst, value, active.mask, whole);
            }
            Kind::AddressOf { dst, base, offset } => {
                let value = self.fixed_base(*base, active.frame).wrapping_add(*offset);
                let whole = self.whole(active, *dst);
                self.registers.set_all(active.window, *dst, value, active.mask, whole);
            }
            Kind::Pack { dst, src, bits } => self.pack(*dst, src, *bits, active),
            Kind::Unpack { dst, src, bits } => self.unpack(dst, *src, *bits, active),
            Kind::Load(load) => return self.load(load, active, shared, op.span),
            Kind::Store(store) => return self.store(store, active, shared, op.span),
            Kind::LoadStrong(load) => return self.load_strong(load, active, shared, op.span),
            Kind::StoreStrong(store) => return self.store_strong(store, active, shared, op.span),
            Kind::Link(link) => self.link(link, active),
            Kind::PureStore(both) => return self.pure_store(both, active, shared, op.span),
            Kind::Atomic(atomic) => return self.atomic(atomic, active, shared, op.span),
            Kind::AtomicWide(atomic) => return self.atomic_wide(atomic, active, shared, op.span),
            Kind::Stack { op: stack, dst, value } => {
                return self.stack(*stack, *dst, *value, active, op.span);
            }
            Kind::IsSpace { dst, src, space, own } => self.is_space(*dst, *src, *space, *own, active),
            Kind::MapShared { dst, src, rank, generic } => {
                self.map_shared(*dst, *src, *rank, *generic, active);
            }
            Kind::SharedObject { dst, src } => self.shared_object(*dst, *src, active),
            Kind::RankOf { dst, src, generic } => self.rank_of(*dst, *src, *generic, active),
            Kind::ReadClock { dst, clock } => self.read_clock(*dst, *clock, active),
            Kind::Sleep { duration } => self.sleep(*duration, active),
            Kind::ActiveMask { dst } => self.active_mask(*dst, active),
            Kind::Fence(semantics) => strong::execute_fence(semantics.order),
            Kind::CopyAsync(copy) => return self.copy_async(copy, active, shared, op.span),
            Kind::CopyBulk(copy) => return self.copy_bulk(copy, active, shared, op.span),
            Kind::CopyTensor(copy) => return self.copy_tensor(copy, active, shared, op.span),
            Kind::TensorMemory(op_of_thread) => {
                return self.tensor_memory(op_of_thread, active, shared, op.span);
            }
            Kind::TensorMapReplace(what) => {
                return self.tensor_map_replace(what, active, shared, op.span);
            }
            Kind::TensorMapCopy(places) => {
                return self.tensor_map_copy(places.each_ref(), active, shared, op.span);
            }
            Kind::TryCancel(request) => return self.try_cancel(request, active, shared, op.span),
            Kind::StoreBulk(store) => return self.store_bulk(store, active, shared, op.span),
            Kind::StoreAsync(store) => return self.store_async(store, active, shared, op.span),
            Kind::CopyGroup(group) => self.copy_group(*group, active.mask),
            Kind::AsyncStep(_) => {}
            Kind::Mbarrier(mbarrier) => return self.mbarrier(mbarrier, active, shared, op.span),
            Kind::Warp { op: warp, members } => return self.warp(warp, *members, active, shared, op.span),
            Kind::Texel(texel) => return self.texel(texel, active, op.span),
            Kind::Unsupported { opcode } => return Err(self.unsupported(*opcode, active, op.span)),
        }
        Ok(())
    }

    fn unsupported(&self, opcode: Opcode, active: &Active, span: Span) -> Box<Fault> {
        let note = format!("`{opcode}` is known and checked, but not executed yet");
        self.fault(FaultKind::Unsupported, span, active.mask, None, &note)
    }

    /// A fault of the lowest lane of `mask`.
    fn fault(
        &self,
        kind: FaultKind,
        span: Span,
        mask: Mask,
        access: Option<Access>,
        note: &str,
    ) -> Box<Fault> {
        let lane = mask.lowest().unwrap_or(0);
        let notes = if note.is_empty() { Vec::new() } else { vec![(note.to_owned(), None)] };
        Box::new(Fault {
            kind,
            kernel: self.launch.kernel_name().to_owned(),
            span,
            block: self.block_of(lane),
            thread: self.launch.thread(self.thread_of(lane)),
            access,
            notes,
        })
    }

    /// `%ctaid` of a lane's block.
    pub fn block_of(&self, lane: usize) -> [u32; 3] {
        self.ctaid_of(self.registers.rows().block_of(lane))
    }

    /// `%ctaid` of one of the gang's blocks.
    fn ctaid_of(&self, block: usize) -> [u32; 3] {
        // Divisions are slow.
        let Some(along) = self.along else { return self.launch.ctaid(self.batch.block(block)) };
        let mut ctaid = self.ctaids[0];
        ctaid[along] += block as u32;
        ctaid
    }

    /// A lane's linear index in its block.
    pub fn thread_of(&self, lane: usize) -> usize {
        let rows = self.registers.rows();
        if rows.blocks() > 1 { lane % rows.block_lanes() } else { self.first_thread as usize + lane }
    }

    /// The blocks of the gang that have lanes in a mask, and these lanes.
    fn parts(&self, mask: Mask) -> impl Iterator<Item = (usize, Mask)> + use<'_> {
        let parts = self.block_masks.iter().map(move |&block| mask & block).enumerate();
        parts.filter(|(_, part)| !part.is_empty())
    }

    /// Places where threads of this gang wait, for the report of a deadlock.
    pub fn waiting(&self) -> Vec<(Path, Span)> {
        self.paths.iter().filter_map(|p| self.span(p).map(|s| (*p, s))).collect()
    }

    /// The instruction that a path waits at, or executes next.
    fn span(&self, path: &Path) -> Option<Span> {
        let blocks = &self.function(self.frames[path.frame].function)?.blocks;
        Some(match path.wait {
            Wait::Barrier { from, .. } => blocks[from as usize].span,
            _ => {
                let block = &blocks[path.block as usize];
                block.ops.first().map_or(block.span, |op| op.span)
            }
        })
    }

    /// Where the lowest thread of a path stands.
    fn place_of_path(&self, path: &Path) -> Option<Place> {
        let lane = path.mask.lowest().unwrap_or(0);
        let thread = self.launch.thread(self.thread_of(lane));
        Some(Place { span: self.span(path)?, block: self.block_of(lane), thread })
    }

    /// Where some thread stands, if any is left.
    pub fn any_place(&self) -> Option<Place> {
        self.place_of_path(self.paths.first()?)
    }
}
