//! A launch: runs its CTAs in ascending order.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use machine::{Launch, LaunchError, LaunchReport};

use crate::block::{Block, Progress};
use crate::cluster::Cluster;
use crate::function::Code;

/// Rounds in which all threads test mbarrier objects without success and nothing changes, before that counts as a
/// deadlock. Also the number of rounds that the CTAs in flight get before another CTA may start.
const PATIENCE: u32 = 64;

/// The barrier of the grid (CUDA C++ Programming Guide, "Grid Synchronization").
#[derive(Default)]
pub(crate) struct Grid {
    threads: u64,
    /// Whether all CTAs can be in flight at the same time.
    pub all_resident: bool,
    arrived: Cell<u64>,
    generation: Cell<u64>,
}

impl Grid {
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

/// Runs all CTAs of a launch.
///
/// # Errors
/// If a thread faults, or a limit of the configuration is reached.
pub fn run(launch: &Launch) -> Result<LaunchReport, LaunchError> {
    let observer = launch.config().observer.as_ref();
    observer.inspect(|observer| observer.notify(|observer| observer.begin(launch)));
    let result = run_blocks(launch);
    observer.inspect(|observer| observer.notify(|observer| observer.end(launch)));
    result
}

fn run_blocks(launch: &Launch) -> Result<LaunchReport, LaunchError> {
    let module = launch.module();
    let codes: Vec<_> = module.functions.iter().map(|function| Code::of(module, function)).collect();
    let config = launch.config();
    let blocks = config.grid_blocks();
    let threads = blocks.saturating_mul(config.block_threads());
    let room = config.resident_blocks();
    let grid = Grid { threads, all_resident: blocks <= room as u64, ..Grid::default() };
    let range = config.block_range();
    let blocks_of_cluster = launch.cluster_blocks();
    let (mut flight, mut started): (Vec<Block>, u64) = (Vec::new(), range.start);
    let (mut ended_steps, mut last_changes) = (0u64, 0u64);
    // Rounds since a CTA started or ended, and rounds in which nothing changed.
    let (mut rounds, mut in_vain) = (0, 0);
    let mut blocked = false;
    let fault = LaunchError::Fault;
    loop {
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
                flight.push(Block::new(launch, &codes, &grid, place, index).map_err(fault)?);
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
        while let Some(block) = flight.get_mut(index) {
            match block.step().map_err(fault)? {
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
                Progress::Waiting => return Err(fault(block.deadlock())),
            }
            index += 1;
        }
        let is_idle = |block: &Block| {
            let mut all = flight.iter().zip(&idle);
            all.all(|(other, &idle)| idle || !Rc::ptr_eq(&other.cta.cluster, &block.cta.cluster))
        };
        if let Some(first) = flight.iter().position(|block| block.waits_for_cluster() && is_idle(block)) {
            return Err(fault(flight[first].deadlock()));
        }
        let steps = ended_steps + flight.iter().map(Block::steps).sum::<u64>();
        if let Some(limit) = config.max_steps
            && steps > limit
        {
            return Err(LaunchError::StepLimit { limit, place: flight.iter_mut().find_map(Block::place) });
        }
        if config.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(LaunchError::Cancelled { place: flight.iter_mut().find_map(Block::place) });
        }
        let changes = flight.iter().map(|block| block.cta.changes).sum::<u64>() + ended_steps;
        in_vain = if blocked && changes == last_changes { in_vain + 1 } else { 0 };
        last_changes = changes;
        if in_vain > PATIENCE && !can_start {
            let first = flight.iter().position(|block| !block.waits_for_grid()).unwrap_or(0);
            return Err(fault(flight[first].deadlock()));
        }
    }
}
