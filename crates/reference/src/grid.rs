//! A launch: runs its CTAs in ascending order. How a CTA takes its steps, a [`Stepper`] says.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use machine::{Fault, Launch, LaunchError, LaunchReport};

use crate::block::{Block, Progress};
use crate::cluster::Cluster;
use crate::function::Code;
use crate::journal::{Checkpoint, Journal};

/// Rounds in which all threads test mbarrier objects without success and nothing changes, before that counts as a
/// deadlock. Also the number of rounds that the CTAs in flight get before another CTA may start.
const PATIENCE: u32 = 64;

/// What the CTAs of a grid share: its barrier (CUDA C++ Programming Guide, "Grid Synchronization").
pub(crate) struct Grid {
    threads: u64,
    /// Whether all CTAs can be in flight at the same time.
    pub all_resident: bool,
    arrived: Cell<u64>,
    generation: Cell<u64>,
    /// For a launch that may go back.
    pub journal: Option<Journal>,
}

impl Grid {
    pub fn new(launch: &Launch, journal: Option<Journal>) -> Grid {
        let config = launch.config();
        let blocks = config.grid_blocks();
        Grid {
            threads: blocks.saturating_mul(config.block_threads()),
            all_resident: blocks <= config.resident_blocks() as u64,
            arrived: Cell::new(0),
            generation: Cell::new(0),
            journal,
        }
    }

    /// Counts a turn of a launch that may go back; returns its time.
    pub fn tick(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.time.replace(journal.time.get() + 1))
    }

    /// Records that a thread arrives; returns the generation whose end it waits for.
    pub fn arrive(&self) -> u64 {
        let generation = self.generation.get();
        self.arrived.set(self.arrived.get() + 1);
        if self.arrived.get() == self.threads {
            self.arrived.set(0);
            self.generation.set(generation + 1);
        }
        generation
    }

    pub fn is_over(&self, generation: u64) -> bool {
        self.generation.get() != generation
    }
}

/// How the CTAs of a launch take their steps.
pub(crate) trait Stepper<'l> {
    /// Why the launch ends early.
    type Halt: From<LaunchError>;

    /// One of the CTAs in flight takes a step.
    fn step(&mut self, flight: &mut [Block<'l>], index: usize) -> Result<Progress, Self::Halt>;

    /// A thread of one of the CTAs in flight has faulted, or the CTA is deadlocked.
    fn fault(&mut self, flight: &mut [Block<'l>], index: usize, fault: Box<Fault>) -> Self::Halt;
}

/// Every thread gets a time slice.
struct Slices;

impl<'l> Stepper<'l> for Slices {
    type Halt = LaunchError;

    fn step(&mut self, flight: &mut [Block<'l>], index: usize) -> Result<Progress, LaunchError> {
        flight[index].step().map_err(LaunchError::Fault)
    }

    fn fault(&mut self, _: &mut [Block<'l>], _: usize, fault: Box<Fault>) -> LaunchError {
        LaunchError::Fault(fault)
    }
}

/// Runs all CTAs of a launch.
///
/// # Errors
/// If a thread faults, or a limit of the configuration is reached.
pub fn run(launch: &Launch) -> Result<LaunchReport, LaunchError> {
    observed(launch, || {
        run_blocks(launch, &codes(launch), &Grid::new(launch, None), Checkpoint::default(), &mut Slices)
    })
}

/// Tells the launch's observer when the launch begins and ends.
pub(crate) fn observed<T>(launch: &Launch, run: impl FnOnce() -> T) -> T {
    let observer = launch.config().observer.as_ref();
    observer.inspect(|observer| observer.notify(|observer| observer.begin(launch)));
    let result = run();
    observer.inspect(|observer| observer.notify(|observer| observer.end(launch)));
    result
}

/// The functions of the launch's module; `None` for one without a body.
pub(crate) fn codes(launch: &Launch) -> Vec<Option<Code<'_>>> {
    let module = launch.module();
    module.functions.iter().map(|function| Code::of(module, function)).collect()
}

/// Runs the CTAs that have not started at the checkpoint.
pub(crate) fn run_blocks<'l, S: Stepper<'l>>(
    launch: &'l Launch,
    codes: &'l [Option<Code<'l>>],
    grid: &'l Grid,
    from: Checkpoint,
    stepper: &mut S,
) -> Result<LaunchReport, S::Halt> {
    let config = launch.config();
    let room = config.resident_blocks();
    grid.arrived.set(from.barrier.0);
    grid.generation.set(from.barrier.1);
    let range = config.block_range();
    let blocks_of_cluster = launch.cluster_blocks();
    let (mut flight, mut started): (Vec<Block>, u64) = (Vec::new(), range.start + from.started);
    let (mut ended_steps, mut last_changes) = (from.steps, 0u64);
    // Rounds since a CTA started or ended, and rounds in which nothing changed.
    let (mut rounds, mut in_vain) = (0, 0);
    let mut blocked = false;
    loop {
        let is_between = flight.is_empty() && started < range.end;
        if let Some(journal) = grid.journal.as_ref().filter(|_| is_between) {
            let barrier = (grid.arrived.get(), grid.generation.get());
            journal.check(launch, started - range.start, ended_steps, barrier);
        }
        // A CTA that takes long may wait for one that has not started. The CTAs of a cooperative launch start
        // together.
        while started < range.end
            && flight.len() < room
            && (config.cooperative || flight.is_empty() || blocked || rounds > PATIENCE)
        {
            let cluster = Rc::new(Cluster::new(launch));
            for rank in 0..blocks_of_cluster {
                let index = match blocks_of_cluster {
                    1 => started,
                    blocks => launch.block_of_cluster(started / u64::from(blocks), rank),
                };
                let place = (Rc::clone(&cluster), rank);
                let block = Block::new(launch, codes, grid, place, index);
                flight.push(block.map_err(|fault| stepper.fault(&mut [], 0, fault))?);
            }
            started += u64::from(blocks_of_cluster);
            (blocked, rounds) = (false, 0);
        }
        let can_start = started < range.end && flight.len() < room;
        if flight.is_empty() {
            config.output.flush();
            let seconds = launch.nanoseconds() as f64 * 1e-9;
            return Ok(LaunchReport::new(ended_steps, seconds));
        }
        blocked = true;
        rounds += 1;
        let mut index = 0;
        // For each CTA in flight: whether it waits for others of its cluster.
        let mut idle = Vec::new();
        while index < flight.len() {
            let progress = stepper.step(&mut flight, index)?;
            let block = &mut flight[index];
            match progress {
                Progress::Ended => {
                    ended_steps += flight.remove(index).steps();
                    config.report_ended(1);
                    (blocked, rounds) = (false, 0);
                    continue;
                }
                Progress::Running { polling } => {
                    blocked &= polling;
                    idle.push(false);
                }
                Progress::Waiting if block.waits_for_grid() => idle.push(false),
                Progress::Waiting if block.waits_for_cluster() => idle.push(true),
                Progress::Waiting => {
                    let fault = block.deadlock();
                    return Err(stepper.fault(&mut flight, index, fault));
                }
            }
            index += 1;
        }
        let is_idle = |block: &Block| {
            let mut all = flight.iter().zip(&idle);
            all.all(|(other, &idle)| idle || !Rc::ptr_eq(&other.cta.cluster, &block.cta.cluster))
        };
        if let Some(first) = flight.iter().position(|block| block.waits_for_cluster() && is_idle(block)) {
            let fault = flight[first].deadlock();
            return Err(stepper.fault(&mut flight, first, fault));
        }
        let steps = ended_steps + flight.iter().map(Block::steps).sum::<u64>();
        if let Some(limit) = config.max_steps
            && steps > limit
        {
            let place = flight.iter_mut().find_map(Block::place);
            return Err(LaunchError::StepLimit { limit, place }.into());
        }
        if config.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(LaunchError::Cancelled { place: flight.iter_mut().find_map(Block::place) }.into());
        }
        let changes = flight.iter().map(|block| block.cta.changes).sum::<u64>() + ended_steps;
        in_vain = if blocked && changes == last_changes { in_vain + 1 } else { 0 };
        last_changes = changes;
        if in_vain > PATIENCE && !can_start {
            let first = flight.iter().position(|block| !block.waits_for_grid()).unwrap_or(0);
            let fault = flight[first].deadlock();
            return Err(stepper.fault(&mut flight, first, fault));
        }
    }
}
