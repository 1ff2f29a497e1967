//! The interpreter executes each instruction for a whole gang of threads before it starts the next one.
//!
//! A [`Gang`] holds threads of one CTA, or all threads of several CTAs. Threads that diverged belong to different
//! [`Path`]s. A path is a position in the program and a set of lanes. The gang runs the path with the deepest call;
//! among paths of equal depth it runs the one at the lowest basic block in layout order. Diverged lanes therefore
//! meet again where their control flow joins (see [`ir::Function::blocks`]).
//!
//! A gang has up to 1024 lanes. An operation under a partial mask may write all lanes of its destination slot, unless
//! the slot is live-in to another path or a guard is false for some lanes of the path. Only in these two cases does
//! the gang merge results under the mask. So one handler serves full and partial masks.
//!
//! A path yields to the other paths of its gang on a backward branch once its budget is used up. If the loop may wait
//! for another thread (it contains atomics, fences or volatile loads), the path yields on every backward branch.
//! Gangs of a CTA and CTAs of a grid (`grid.rs`) take turns in the same way, so spin locks make progress between
//! lanes, gangs and CTAs. Each further CTA in flight needs host memory for its registers, which costs more than many
//! iterations of a loop. So a gang in a loop that may wait yields only after 32 iterations. It yields after 1024
//! iterations if `red` is the only such operation of the loop, because `red` returns no value.
//!
//! Narrowest tests (`tests/run`): partial masks `second_result_waits`, `loop_divergent`, `call_waits`; reuse of the
//! lanes of the last guard `predication`, `guard_in_calls`; time slices `blocks_wait_weakly`, `spin_lock`.

mod access;
mod active;
mod addresses;
mod atomic;
mod atomic_wide;
mod builtin;
mod chain;
mod coarse;
mod control;
mod convergence;
mod copy;
mod execute;
mod frame;
mod inline_cache;
mod local;
mod matrix;
mod mbarrier;
mod moves;
mod native;
mod notify;
mod observe;
mod path;
mod pending;
mod print;
mod pure;
mod region;
mod request;
mod resolve;
mod scratch;
mod stack;
mod straight;
mod strips;
mod strong;
mod tensor;
mod texture;
mod threads;
mod transfer;
mod update;
mod warp;
mod watch;
mod watch_values;
mod windows;

use diag::Span;
use machine::mask::Mask;
use machine::{Access, Fault, FaultKind, Place};

use crate::affine::LaneRows;
use crate::code::{Block, Code, Function, Lap, Terminator, Visit};
use crate::cta_batch::CtaBatch;
use crate::limits::{REDUCTION_COST, Stop};
use crate::local_memory::LocalMemory;
use crate::registers::{Registers, SlotRef};
use crate::run::Run;
use crate::shared::Shared;
use active::Active;
use coarse::Rest;
pub(crate) use coarse::{Coarse, Stopped, most_lanes};
use frame::Frames;
use inline_cache::Caches;
use native::Ran;
pub(crate) use observe::{Observer, Recorder};
pub(crate) use path::Wait;
use path::{Path, Scheduler};
use pending::Copies;
use scratch::Scratch;
use threads::Threads;
pub(crate) use watch::Watcher;

/// Result of running something that may fault.
pub(crate) type Step<T = ()> = Result<T, Box<Fault>>;

/// How a gang runs an operation on memory.
trait Execute {
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step;
}

/// How a gang's time slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceEnd {
    /// All threads of the gang have ended.
    Done,
    /// All remaining threads wait.
    Blocked,
    /// The launch must end; [`Steps::stopped`] says why.
    Stopped,
    /// The budget is used up.
    OutOfBudget {
        /// A loop that may wait for another thread used it up.
        spinning: bool,
    },
}

/// What a gang has executed, and when it looks whether it must stop.
#[derive(Default)]
pub(crate) struct Steps {
    /// Thread-instructions executed. `reported` is how many of them [`Gang::take_instructions`] has returned.
    pub instructions: u64,
    reported: u64,
    /// Nanoseconds that warps slept. The cycle clock counts them, too.
    slept: u64,
    /// The gang checks the launch's limits whenever `budget & look_mask == 0`.
    look_mask: i64,
    /// Why and where the gang stopped.
    pub stopped: Option<(Stop, Place)>,
}

/// Threads of one CTA, or all threads of several CTAs, with their registers and private memory.
pub(crate) struct Gang<'l> {
    launch: &'l Run<'l>,
    code: &'l Code,
    registers: Registers,
    local: LocalMemory,
    frames: Frames,
    scheduler: Scheduler,
    /// Lanes that have not ended.
    pub alive: Mask,
    pub threads: Threads,
    caches: Caches,
    scratch: Scratch,
    pub steps: Steps,
    /// Window 0 already holds the values that are the same in all CTAs.
    prepared: bool,
    /// Asynchronous copies that no thread has waited for yet.
    copies: Copies,
    /// Bytes that each lane has allocated with `alloca`; empty if no lane has.
    stacks: Vec<u32>,
    /// The CTAs have started and no instruction has run yet.
    begins: bool,
    /// What runs first, if the threads have come to a section without a gang.
    rest: Option<Box<Rest<'l>>>,
    printed: print::Printed,
    put_off: Option<print::PutOff>,
    /// The measurement of a loop that may run as native code.
    lap: Option<Lap>,
}

impl<'l> Gang<'l> {
    /// A gang of `threads` threads from CTAs with cluster rank `rank`. A later CTA batch may be smaller and leave
    /// lanes unused.
    pub fn new(
        launch: &'l Run<'l>,
        code: &'l Code,
        rows: LaneRows,
        rank: u32,
        first_thread: u32,
        threads: usize,
    ) -> Gang<'l> {
        let threads = Threads::new(launch, rows, rank, first_thread, threads);
        Gang {
            launch,
            code,
            registers: Registers::new(rows, launch.path),
            local: LocalMemory::new(threads.lanes),
            frames: Frames::default(),
            scheduler: Scheduler::default(),
            alive: Mask::EMPTY,
            threads,
            caches: Caches::new(code),
            scratch: Scratch::default(),
            steps: Steps { look_mask: launch.limits.look_mask(launch.shuffled), ..Steps::default() },
            prepared: false,
            copies: Copies::default(),
            stacks: Vec::new(),
            begins: false,
            rest: None,
            printed: print::Printed::default(),
            put_off: None,
            lap: None,
        }
    }

    fn function(&self, index: u32) -> Option<&'l Function> {
        self.code.functions.get(index as usize)?.as_ref()
    }

    /// Starts a CTA batch (or this gang's part of one CTA) with all threads at the kernel's entry.
    pub fn start(&mut self, batch: CtaBatch, shared: &mut Shared) -> Step {
        self.threads.start(self.launch, self.registers.rows(), batch);
        self.alive = self.threads.everyone.mask;
        self.begins = true;
        self.begin_printing();
        self.scheduler.paths.clear();
        self.copies.clear();
        self.stacks.clear();
        self.local.reset();
        self.frames.clear();
        let frame = self.enter_kernel(shared)?;
        self.scheduler.paths.push(Path { mask: self.alive, frame, block: 0, wait: Wait::Ready, yields: 0 });
        Ok(())
    }

    /// Runs until all threads have ended or wait, or until about `budget` basic blocks have run.
    pub fn run_slice(
        &mut self,
        shared: &mut Shared,
        budget: &mut i64,
        observer: &mut impl Observer,
    ) -> Step<SliceEnd> {
        let mut spinning = false;
        if std::mem::take(&mut self.begins)
            && let [path] = self.scheduler.paths[..]
        {
            observer.start(self, path.frame, path.mask);
        }
        if let Some(rest) = self.rest.take()
            && let [mut path] = self.scheduler.paths[..]
        {
            let result = self.go_on(&rest, &mut path, shared);
            self.registers.expand();
            result.or_else(|fault| self.end_blocks(fault, &mut path))?;
            if !path.mask.is_empty() {
                self.put(&path);
            }
        }
        // A `Path` is large: `pick` fills this one in place.
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
            if self.steps.stopped.is_some() {
                return Ok(SliceEnd::Stopped);
            }
            if *budget <= 0 {
                self.print_ended();
                self.report_put_off(spinning)?;
                return Ok(SliceEnd::OutOfBudget { spinning });
            }
        }
        self.print_ended();
        self.report_put_off(false)?;
        Ok(if self.alive.is_empty() { SliceEnd::Done } else { SliceEnd::Blocked })
    }

    /// Whether a write to `slot` may change lanes that are not active: no other path reads the slot and no guard
    /// protects them.
    #[inline]
    fn whole(&self, active: &Active, slot: SlotRef) -> bool {
        if active.alone {
            return true;
        }
        if active.guarded {
            return false;
        }
        match self.scheduler.needed.get(slot.index as usize / 64) {
            Some(word) => word >> (slot.index % 64) & 1 == 0,
            None => true,
        }
    }

    /// Runs a path until it ends, waits, meets other paths, or yields. Returns true if it yielded.
    fn run_path<O: Observer>(
        &mut self,
        path: &mut Path,
        shared: &mut Shared,
        budget: &mut i64,
        spinning: &mut bool,
        observer: &mut O,
    ) -> Step<bool> {
        let mut slice_cost = 0;
        // Calls and returns end this function, so the frame is constant here.
        let frame = &self.frames[path.frame];
        let (index, window) = (frame.function, frame.window);
        let Some(function) = self.function(index) else { return Ok(false) };
        let mut active = Active::new(window, path.frame);
        // `path.mask` may differ from `active.mask`.
        let mut changed = true;
        loop {
            let mut block = &function.blocks[path.block as usize];
            if *budget & self.steps.look_mask == 0 && self.look(path, block) {
                return Ok(false);
            }
            let (mut ops, mut straight) = (&block.ops[..], block.straight.as_deref());
            let mut trace = block.trace.as_deref();
            if let Some(native) = &block.native
                && !O::WATCHES
                && self.runs_native(native, path.mask)
                && let Some(code) = native.code(|slot| self.native_form(window, slot))
            {
                changed = true;
                *budget -= 1;
                match self.run_native(path, native, code, window, shared) {
                    Ran::Left(rest) => {
                        (block, ops) = (&function.blocks[path.block as usize], rest);
                        (straight, trace) = (None, None);
                    }
                    Ran::OutOfFuel => {
                        *budget = 0;
                        return Ok(!self.scheduler.paths.is_empty());
                    }
                    Ran::Through if self.should_stop(path, path.block) => return Ok(false),
                    Ran::Through => continue,
                }
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
            // An empty basic block that only jumps needs no active lanes.
            let passes =
                !O::WATCHES && block.ops.is_empty() && matches!(block.terminator, Terminator::Jump(_));
            debug_assert!(!passes || trace.is_none(), "a trace begins with a basic block that only jumps");
            if !passes && std::mem::take(&mut changed) && active.mask != path.mask {
                self.registers.expand();
                if path.mask == self.threads.everyone.mask {
                    active.set_everyone(&self.threads.everyone);
                } else {
                    active.set_path(path.mask, self.threads.lanes);
                }
            }
            let writes = !block.ops.is_empty() || trace.is_some();
            if self.scheduler.needed_changed && writes {
                self.find_needed(path);
            }
            active.alone = self.scheduler.needed.is_empty();
            active.expect(block.ops.len());
            straight = straight.filter(|_| !O::WATCHES && !active.few);
            let mut cost = block.cost;
            if let Some(trace) = trace
                && !O::WATCHES
                && self.passes(path, trace.last)
                && trace.is_tried(self.launch.native_code)
                && self.run_trace(trace, path, &mut active, shared)?
            {
                path.block = trace.last;
                slice_cost = slice_cost.max(trace.slice_cost);
                (block, ops, straight, cost) = (&function.blocks[trace.last as usize], &[], None, 0);
            }
            let mut measured = None;
            if let Some(straight) = straight {
                let visit;
                (visit, measured) = straight.visit(self.launch.native_code);
                if visit == Visit::Native {
                    ops = &straight.ops;
                }
            }
            observer.enter(index, path.block, active.mask);
            for (index, op) in ops.iter().enumerate() {
                observer.before(self, shared, block, index, &active)?;
                self.execute_op(op, &active, shared).inspect_err(|_| observer.fault())?;
                observer.after();
            }
            if let Some((straight, measured)) = straight.zip(measured) {
                straight.note(&measured, active.count);
            }
            let count = if changed { path.mask.count() as usize } else { active.count };
            self.steps.instructions += cost * count as u64;
            *budget -= 1;
            slice_cost = slice_cost.max(block.slice_cost);

            let from = path.block;
            observer.before_end(self, shared, block, &active)?;
            let goes_on = match block.terminator {
                Terminator::Jump(next) => {
                    path.block = next.0;
                    true
                }
                Terminator::Branch { pred, negated, taken, otherwise }
                    if let Some(value) = self.registers.uniform(window, pred) =>
                {
                    path.block = if (value != 0) == negated { otherwise.0 } else { taken.0 };
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
            if O::GIVES_WAY && block.slice_cost > REDUCTION_COST && self.launch.config().cooperative {
                // Waiters at a grid barrier must see it complete before the last arriving thread continues. Otherwise
                // the observer would always see the waiters' next accesses ordered after that thread's.
                (*budget, *spinning) = (0, true);
                return Ok(path.block <= from && !self.scheduler.paths.is_empty());
            }
            if path.block <= from {
                // A backward branch.
                if slice_cost > 0 {
                    *budget -= std::mem::take(&mut slice_cost);
                    *spinning = true;
                    if !self.scheduler.paths.is_empty() {
                        return Ok(true);
                    }
                }
                if *budget <= 0 {
                    return Ok(!self.scheduler.paths.is_empty());
                }
            } else if self.launch.shuffled && *budget <= 0 {
                return Ok(false);
            }
            if !self.scheduler.paths.is_empty() && self.should_stop(path, path.block) {
                return Ok(false);
            }
        }
    }

    /// Whether a path may go on to a later basic block `last` as if there were one only: nothing has to be looked at between, and
    /// it meets no other path.
    fn passes(&self, path: &Path, last: u32) -> bool {
        let launch = self.launch;
        let is_behind = |other: &Path| match other.wait {
            Wait::Ready | Wait::Warp => other.frame == path.frame && other.block > last,
            Wait::Barrier { .. } | Wait::Grid { .. } => true,
        };
        !launch.shuffled && !launch.limits.count_steps() && self.scheduler.paths.iter().all(is_behind)
    }

    /// Checks whether a path may execute a basic block. If not, records why the launch ends and returns true.
    #[cold]
    #[inline(never)]
    fn look(&mut self, path: &Path, block: &Block) -> bool {
        let limits = &self.launch.limits;
        let mut more = 0;
        if limits.count_steps() {
            limits.report(self.take_instructions());
            more = block.cost * u64::from(path.mask.count());
        }
        self.steps.stopped = limits.look(more).and_then(|stop| Some((stop, self.place_of_path(path)?)));
        self.steps.stopped.is_some()
    }

    /// Thread-instructions executed since the last call.
    pub fn take_instructions(&mut self) -> u64 {
        let new = self.steps.instructions - self.steps.reported;
        self.steps.reported = self.steps.instructions;
        new
    }

    /// A fault attributed to the lowest lane of `mask`.
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

    /// `%ctaid` of a lane's CTA.
    pub fn block_of(&self, lane: usize) -> [u32; 3] {
        self.ctaid_of(self.registers.rows().block_of(lane))
    }

    /// `%ctaid` of the gang's CTA number `block`.
    fn ctaid_of(&self, block: usize) -> [u32; 3] {
        self.threads.ctaid_of(self.launch, block)
    }

    /// Linear index of a lane's thread in its CTA.
    pub fn thread_of(&self, lane: usize) -> usize {
        let rows = self.registers.rows();
        if rows.blocks() > 1 { lane % rows.block_lanes() } else { self.threads.first_thread as usize + lane }
    }

    /// The CTAs of the gang that have lanes in a mask, each with these lanes.
    fn parts(&self, mask: Mask) -> impl Iterator<Item = (usize, Mask)> + use<'_> {
        let parts = self.threads.block_masks.iter().map(move |&block| mask & block).enumerate();
        parts.filter(|(_, part)| !part.is_empty())
    }

    /// The paths of this gang and where they wait, for the report of a deadlock.
    pub fn waiting(&self) -> Vec<(Path, Span)> {
        self.scheduler.paths.iter().filter_map(|p| self.span(p).map(|s| (*p, s))).collect()
    }

    /// The instruction at which a path waits, or which it executes next.
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

    /// The position of the lowest thread of a path.
    fn place_of_path(&self, path: &Path) -> Option<Place> {
        let lane = path.mask.lowest().unwrap_or(0);
        let thread = self.launch.thread(self.thread_of(lane));
        Some(Place { span: self.span(path)?, block: self.block_of(lane), thread })
    }

    /// The position of some thread, if any is left.
    pub fn any_place(&self) -> Option<Place> {
        self.place_of_path(self.scheduler.paths.first()?)
    }
}
