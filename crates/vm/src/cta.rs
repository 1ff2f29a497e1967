//! A block (CTA), or the blocks of a CTA batch: gangs, and what they share (`shared.rs`).
//!
//! If no thread can run, the block has deadlocked, and the fault lists where the threads wait.
//!
//! Narrowest test (`tests/run`): `barrier_deadlock`.

use diag::Span;
use machine::{Fault, FaultKind, Place};
use sem::tensor_memory::Misuse;

use crate::affine::LaneRows;
use crate::code::Code;
use crate::cta_batch::CtaBatch;
use crate::exec::{Gang, Observer, SliceEnd, Step, Stopped, Wait};
use crate::limits::BUDGET;
use crate::limits::Stop;
use crate::run::Run;
use crate::shared::{CLUSTER_BARRIER, Shared};

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

    /// As [`Cluster::resume`](crate::cluster::Cluster::resume). All threads are in one gang.
    pub fn resume(&mut self, stopped: &Stopped<'l>, first: usize) {
        debug_assert_eq!(self.gangs.len(), 1);
        self.gangs.iter_mut().for_each(|gang| gang.resume(stopped, first, &mut self.shared));
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
            let mut budget = if self.launch.shuffled { 1 + (self.next_random() % 8) as i64 } else { BUDGET };
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
