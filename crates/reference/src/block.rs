//! A CTA: its threads, their shared state, and its barriers (PTX ISA, "bar, barrier").

use std::rc::Rc;

use check::module::{Instruction, Operand};
use diag::Span;
use isa::{Effect, Mod, Type};
use machine::{Fault, FaultKind, Launch, Place};

use crate::cluster::Cluster;
use crate::effect::effect;
use crate::function::Code;
use crate::grid::Grid;
use crate::lockstep::Turns;
use crate::thread::{Cpu, Flow, LOCAL_LIMIT, Thread, Wait};
use crate::{Step, WARP_LANES};

/// Barriers of a CTA.
const BARRIERS: usize = 16;
/// Instructions that a thread executes in one time slice.
const SLICE: u64 = 1000;

/// One barrier.
#[derive(Default)]
struct Barrier {
    /// Threads that have arrived.
    arrived: Vec<usize>,
    /// Number of threads that it waits for; `None`: all live threads.
    expected: Option<u32>,
    /// How many times it has completed.
    generation: u64,
    /// Predicates of the threads that have arrived at a reduction.
    predicates: Vec<bool>,
    /// Predicates of the completed generations.
    results: Vec<Vec<bool>>,
}

/// What the threads of a CTA share.
pub(crate) struct Cta<'l> {
    pub launch: &'l Launch,
    codes: &'l [Option<Code<'l>>],
    pub grid: &'l Grid,
    /// Linear index in the grid.
    pub index: u64,
    /// Its cluster, and its rank there.
    pub cluster: Rc<Cluster>,
    pub rank: u32,
    barriers: Vec<Barrier>,
    /// For each thread: whether it is live.
    alive: Vec<bool>,
    /// Number of live threads.
    alive_threads: usize,
    /// Counts events that a thread could wait for: writes, exits of threads, completed barriers.
    pub changes: u64,
    /// Instructions that the CTA had executed when the time slice began.
    pub steps: u64,
}

/// The result of a step of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Ended,
    /// Some thread ran. `polling`: all that ran only tested mbarrier objects without success.
    Running {
        polling: bool,
    },
    /// All live threads wait.
    Waiting,
}

pub(crate) struct Block<'l> {
    pub cta: Cta<'l>,
    pub threads: Vec<Thread<'l>>,
    /// By warp, for a launch that is debugged.
    pub turns: Vec<Turns>,
}

impl<'l> Cta<'l> {
    pub fn code(&self, function: usize) -> &'l Code<'l> {
        self.codes[function].as_ref().expect("only functions with a body are entered")
    }

    pub fn has_body(&self, function: usize) -> bool {
        self.codes[function].is_some()
    }

    pub fn fault(&self, kind: FaultKind, thread: usize, span: Span, note: &str) -> Box<Fault> {
        let notes = if note.is_empty() { Vec::new() } else { vec![(note.to_owned(), None)] };
        let module = self.launch.module();
        Box::new(Fault {
            kind,
            kernel: module.functions[self.launch.entry().index()].name.clone(),
            span,
            block: self.launch.ctaid(self.index),
            thread: self.launch.thread(thread),
            access: None,
            notes,
        })
    }

    // What blocks change outside themselves: a launch that may go back keeps what was there.

    pub fn read_global(&self, address: u64, data: &mut [u8]) -> Result<(), FaultKind> {
        match &self.grid.journal {
            Some(journal) if journal.is_freed(self.launch, address) => Err(FaultKind::UseAfterFree),
            _ => self.launch.read_global(address, data),
        }
    }

    pub fn write_global(&self, address: u64, data: &[u8]) -> Result<(), FaultKind> {
        if let Some(journal) = &self.grid.journal {
            if journal.is_freed(self.launch, address) {
                return Err(FaultKind::UseAfterFree);
            }
            journal.keep(self.launch, address, data.len() as u64);
        }
        self.launch.write_global(address, data)
    }

    pub fn allocate(&self, bytes: u64) -> Option<u64> {
        match &self.grid.journal {
            Some(journal) => journal.allocate(self.launch, bytes),
            None => self.launch.heap_allocate(bytes),
        }
    }

    pub fn free(&self, address: u64) -> Result<(), FaultKind> {
        match &self.grid.journal {
            Some(journal) => journal.free(address),
            None => self.launch.heap_free(address),
        }
    }

    pub fn print(&self, text: &[u8]) {
        match &self.grid.journal {
            Some(journal) => journal.print(self.launch, text),
            None => self.launch.config().output.write(text),
        }
    }

    /// The live lanes of a warp.
    pub fn alive(&self, warp: usize) -> u32 {
        let lanes = self.alive.iter().skip(warp * WARP_LANES).take(WARP_LANES);
        lanes.enumerate().fold(0, |mask, (lane, &alive)| mask | u32::from(alive) << lane)
    }

    /// Records that a thread has ended: barriers no longer wait for it.
    pub fn end(&mut self, thread: usize) {
        self.alive[thread] = false;
        self.alive_threads -= 1;
        self.cluster.end(self.rank, thread);
        self.changes += 1;
        (0..self.barriers.len()).for_each(|index| self.complete(index));
    }

    /// Completes a barrier if all threads that it waits for have arrived.
    fn complete(&mut self, index: usize) {
        let barrier = &self.barriers[index];
        // A cheap necessary condition. With a thread count, one arrival may be enough, because a partial warp counts
        // as 32.
        let least = barrier.expected.map_or(self.alive_threads, |_| 1);
        if barrier.arrived.is_empty() || barrier.arrived.len() < least {
            return;
        }
        let done = (0..self.alive.len().div_ceil(WARP_LANES)).map(|warp| {
            let arrived = barrier.arrived.iter().filter(|&&thread| thread / WARP_LANES == warp);
            let arrived = arrived.fold(0u32, |mask, thread| mask | 1 << (thread % WARP_LANES));
            (arrived, self.alive(warp) & !arrived == 0)
        });
        let complete = match barrier.expected {
            None => done.into_iter().all(|(_, whole)| whole),
            // Barriers count whole warps: a warp counts as 32 if all its live threads have arrived.
            Some(expected) => {
                let count = |(arrived, whole): (u32, bool)| match arrived {
                    0 => 0,
                    _ if whole => WARP_LANES as u32,
                    lanes => lanes.count_ones(),
                };
                done.map(count).sum::<u32>() >= expected
            }
        };
        if complete {
            let barrier = &mut self.barriers[index];
            barrier.results.push(std::mem::take(&mut barrier.predicates));
            barrier.arrived.clear();
            barrier.expected = None;
            barrier.generation += 1;
            self.changes += 1;
        }
    }
}

/// The operands of a barrier: `{d,} a{, b}{, {!}p}`.
struct Operands<'i> {
    barrier: Option<&'i Operand>,
    threads: Option<&'i Operand>,
    /// The operation and the predicate.
    reduction: Option<(Mod, &'i Operand)>,
}

impl Operands<'_> {
    fn of(i: &Instruction) -> Operands<'_> {
        let reduction = i.picks.mods().iter().find(|m| matches!(m, Mod::Popc | Mod::And | Mod::Or));
        match (reduction, &i.operands[..]) {
            (Some(&op), [_, middle @ .., predicate]) => {
                Operands { barrier: middle.first(), threads: middle.get(1), reduction: Some((op, predicate)) }
            }
            (_, all) => Operands { barrier: all.first(), threads: all.get(1), reduction: None },
        }
    }
}

impl Cpu<'_, '_> {
    /// `bar`, `barrier`
    pub fn barrier(&mut self, i: &Instruction) -> Step<Flow> {
        let operands = Operands::of(i);
        let index = operands.barrier.map_or(0, |operand| self.value(operand, Type::U32)) as usize;
        let expected = operands.threads.map(|operand| self.value(operand, Type::U32) as u32);
        let predicate = operands.reduction.map(|(_, operand)| self.value(operand, Type::Pred) != 0);
        if index >= BARRIERS {
            let note = format!("there is no barrier {index}: a block has {BARRIERS}");
            return Err(self.fault(FaultKind::Barrier, &note));
        }
        let thread = self.thread.index;
        let barrier = &mut self.cta.barriers[index];
        let generation = barrier.generation;
        barrier.arrived.push(thread);
        barrier.expected = expected.or(barrier.expected);
        barrier.predicates.extend(predicate);
        self.cta.complete(index);
        self.cta.changes += 1;
        if i.picks.has(Mod::Arrive) {
            return Ok(Flow::Next);
        }
        Ok(Flow::Wait(Wait::Barrier { index, generation }))
    }

    /// `barrier.cluster`: arrive and wait are separate instructions.
    pub fn cluster_barrier(&mut self, arrive: bool) -> Flow {
        let thread = self.thread.index;
        let (cluster, rank) = (&self.cta.cluster, self.cta.rank);
        if arrive {
            cluster.arrive(rank, thread);
            self.cta.changes += 1;
            return Flow::Next;
        }
        match cluster.has_arrived(rank, thread) {
            true => Flow::Wait(Wait::Cluster { generation: cluster.generation() }),
            false => Flow::Next,
        }
    }

    /// Continues after a completed barrier, with the result of its reduction.
    fn pass_barrier(&mut self, index: usize, generation: u64) {
        if let Some(i) = self.instruction()
            && let Some((operation, _)) = Operands::of(i).reduction
        {
            let predicates = &self.cta.barriers[index].results[generation as usize];
            let (value, ty) = match operation {
                Mod::Popc => (predicates.iter().filter(|&&p| p).count() as u128, Type::U32),
                Mod::And => (predicates.iter().all(|&p| p).into(), Type::Pred),
                _ => (predicates.iter().any(|&p| p).into(), Type::Pred),
            };
            self.set_operand(i.operands.first(), value, ty);
        }
        self.thread.wake();
    }
}

impl<'l> Block<'l> {
    /// A CTA whose threads are at the kernel's entry.
    pub fn new(
        launch: &'l Launch,
        codes: &'l [Option<Code<'l>>],
        grid: &'l Grid,
        (cluster, rank): (Rc<Cluster>, u32),
        index: u64,
    ) -> Step<Block<'l>> {
        let count = launch.config().block_threads() as usize;
        let entry = launch.entry().index();
        let cta = Cta {
            launch,
            codes,
            grid,
            index,
            cluster,
            rank,
            barriers: (0..BARRIERS).map(|_| Barrier::default()).collect(),
            alive: vec![true; count],
            alive_threads: count,
            changes: 0,
            steps: 0,
        };
        let code = cta.code(entry);
        if code.bytes > LOCAL_LIMIT {
            let note = format!("a thread's local memory is {LOCAL_LIMIT} bytes, {} are needed", code.bytes);
            return Err(cta.fault(FaultKind::StackOverflow, 0, code.function.span, &note));
        }
        let block = launch.ctaid(index);
        let is_traced = |thread: usize| {
            let observer = launch.config().observer.as_ref();
            observer.is_some_and(|observer| observer.notify(|o| o.wants_instructions(block, thread as u32)))
        };
        let thread = |index| Thread::new(index, entry, code, is_traced(index));
        let threads = (0..count).map(thread).collect();
        let turns = (0..count.div_ceil(WARP_LANES)).map(|_| Turns::default()).collect();
        Ok(Block { cta, threads, turns })
    }

    /// Instructions that the CTA has executed.
    pub fn steps(&self) -> u64 {
        self.threads.iter().map(|thread| thread.steps).sum()
    }

    pub fn cpu(&mut self, thread: usize) -> Cpu<'_, 'l> {
        Cpu { thread: &mut self.threads[thread], cta: &mut self.cta }
    }

    /// Gives every thread a time slice, then resumes the threads that waited for one another.
    pub fn step(&mut self) -> Step<Progress> {
        let (mut ran, mut polling) = (false, true);
        self.cta.steps = self.steps();
        for thread in 0..self.threads.len() {
            if self.threads[thread].wait == Wait::Slice {
                self.threads[thread].wake();
            }
            if self.threads[thread].wait == Wait::Nothing {
                self.cpu(thread).run_slice(SLICE)?;
                ran = true;
                polling &= self.threads[thread].wait == Wait::Slice;
            }
        }
        let woken = self.wake();
        let together = self.warps()?;
        if self.threads.iter().all(|thread| thread.wait == Wait::Ended) {
            return self.cta.check_tensor_memory().map(|()| Progress::Ended);
        }
        match ran || woken || together {
            true => Ok(Progress::Running { polling: polling && !woken && !together }),
            false => Ok(Progress::Waiting),
        }
    }

    /// Wakes the threads whose barrier has completed.
    pub fn wake(&mut self) -> bool {
        let mut woken = false;
        for thread in 0..self.threads.len() {
            match self.threads[thread].wait {
                Wait::Barrier { index, generation } if self.cta.barriers[index].generation != generation => {
                    self.cpu(thread).pass_barrier(index, generation);
                    woken = true;
                }
                Wait::Cluster { generation } if self.cta.cluster.generation() != generation => {
                    self.threads[thread].wake();
                    woken = true;
                }
                Wait::Grid { generation } if self.cta.grid.is_over(generation) => {
                    self.threads[thread].wake();
                    woken = true;
                }
                _ => {}
            }
        }
        woken
    }

    /// Whether some thread waits for other CTAs of the cluster.
    pub fn waits_for_cluster(&self) -> bool {
        self.cta.launch.cluster_blocks() > 1
            && self
                .threads
                .iter()
                .any(|thread| thread.wait == Wait::Cluster { generation: self.cta.cluster.generation() })
    }

    /// Whether all live threads wait at the grid's barrier.
    pub fn waits_for_grid(&self) -> bool {
        let mut waits = self.threads.iter().map(|thread| thread.wait).filter(|&wait| wait != Wait::Ended);
        waits.all(|wait| matches!(wait, Wait::Grid { .. }))
    }

    /// The position of the lowest live thread.
    pub fn place(&mut self) -> Option<Place> {
        let thread = self.threads.iter().position(|thread| thread.wait != Wait::Ended)?;
        let span = self.cpu(thread).next_instruction().map_or(Span::default(), |i| i.span);
        let launch = self.cta.launch;
        Some(Place { span, block: launch.ctaid(self.cta.index), thread: launch.thread(thread) })
    }

    /// Whether a thread is at an allocation of tensor memory.
    fn waits_for_columns(&mut self, thread: usize) -> bool {
        self.cpu(thread).instruction().and_then(effect) == Some(Effect::TensorAlloc)
    }

    /// The fault for a deadlock: nothing can wake the waiting threads.
    pub fn deadlock(&mut self) -> Box<Fault> {
        let mut places: Vec<(String, Span, u32)> = Vec::new();
        let mut first: Option<(FaultKind, usize, Span)> = None;
        for thread in 0..self.threads.len() {
            let wait = self.threads[thread].wait;
            let what = match wait {
                Wait::Ended => continue,
                Wait::Cluster { .. } => "at the barrier of the cluster".to_owned(),
                Wait::Barrier { index, .. } => format!("at barrier {index}"),
                Wait::Grid { .. } => "for the other threads of the grid".to_owned(),
                Wait::Warp if self.waits_for_columns(thread) => "for columns of tensor memory".to_owned(),
                Wait::Warp => "for the other threads of a member mask".to_owned(),
                Wait::Slice | Wait::Nothing => "at an mbarrier object".to_owned(),
            };
            let span = self.cpu(thread).instruction().map_or(Span::default(), |i| i.span);
            let missing = wait == Wait::Warp && !self.waits_for_columns(thread);
            if first.is_none_or(|(kind, ..)| missing && kind == FaultKind::Deadlock) {
                let kind = if missing { FaultKind::MissingWarpLanes } else { FaultKind::Deadlock };
                first = Some((kind, thread, span));
            }
            match places.iter_mut().find(|(w, s, _)| *w == what && *s == span) {
                Some((.., count)) => *count += 1,
                None => places.push((what, span, 1)),
            }
        }
        let (kind, thread, span) = first.unwrap_or((FaultKind::Deadlock, 0, Span::default()));
        let polls = self.threads.iter().any(|thread| thread.wait == Wait::Slice);
        let note = if polls {
            "every thread of the block waits, and no mbarrier object changes any more"
        } else {
            ""
        };
        let mut fault = self.cta.fault(kind, thread, span, note);
        for (what, span, count) in places {
            let threads = if count == 1 { "thread waits" } else { "threads wait" };
            fault.notes.push((format!("{count} {threads} {what} here"), Some(span)));
        }
        fault
    }
}
