//! The barrier of a whole grid, which cooperative groups use (CUDA C++ Programming Guide, "Grid Synchronization").

use std::sync::atomic::{AtomicU64, Ordering};

use machine::LaunchConfig;

/// Counts the threads of a grid that have arrived and those that have ended.
pub(crate) struct GridBarrier {
    /// The kernel can wait at it.
    used: bool,
    threads: u64,
    /// Whether all blocks can be in flight at the same time.
    pub all_resident: bool,
    arrived: AtomicU64,
    ended: AtomicU64,
    generation: AtomicU64,
}

impl GridBarrier {
    /// The barrier of a launch. `used`: the kernel can wait at it.
    pub fn of(used: bool, config: &LaunchConfig) -> GridBarrier {
        let resident = (config.host_threads() as u64).saturating_mul(config.resident_blocks() as u64);
        GridBarrier {
            used,
            threads: config.grid_blocks().saturating_mul(config.block_threads()),
            all_resident: config.grid_blocks() <= resident,
            arrived: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        }
    }

    /// Some threads arrive. Returns the generation for whose completion they wait.
    pub fn arrive(&self, threads: u32) -> u64 {
        let generation = self.generation.load(Ordering::SeqCst);
        let arrived = self.arrived.fetch_add(threads.into(), Ordering::SeqCst) + u64::from(threads);
        if arrived == self.threads {
            self.arrived.store(0, Ordering::SeqCst);
            self.generation.store(generation + 1, Ordering::SeqCst);
        }
        generation
    }

    /// Some threads have ended. `threads` computes their number.
    pub fn end(&self, threads: impl FnOnce() -> u32) {
        if self.used {
            self.ended.fetch_add(threads().into(), Ordering::SeqCst);
        }
    }

    /// Whether a generation is complete.
    pub fn is_over(&self, generation: u64) -> bool {
        self.generation.load(Ordering::SeqCst) != generation
    }

    /// Whether all threads that have not ended wait here for threads that have ended.
    pub fn is_deadlocked(&self) -> bool {
        let ended = self.ended.load(Ordering::SeqCst);
        ended > 0 && self.arrived.load(Ordering::SeqCst) + ended == self.threads
    }
}
