//! What can stop a launch from outside: its limit of thread-instructions, and cancellation by the caller.
//!
//! A gang checks for cancellation every 64 basic blocks. With a limit of thread-instructions it checks before every
//! basic block, so that the limit is exact to the basic block and the place is known. With `--schedule` it does so as
//! well, because budgets are small.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use machine::{LaunchConfig, LaunchError, Place};

/// Basic blocks that a gang executes between two checks. A power of two.
const INTERVAL: i64 = 1 << 6;

/// Extra budget that one iteration of a loop costs if the loop may wait for another thread: 32 iterations use up a
/// budget.
pub(crate) const SPIN_COST: i64 = BUDGET / 32;
/// The same for a loop that observes other threads at most by weak loads: 1024 iterations use up a budget. A gang
/// that yields lets further CTAs start, which need registers and memory of their own.
pub(crate) const REDUCTION_COST: i64 = BUDGET / 1024;
/// Basic blocks that a gang runs before it yields.
pub(crate) const BUDGET: i64 = 1 << 16;

/// Why a launch stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    StepLimit(u64),
    Cancelled,
}

impl Stop {
    /// The error of the launch. `place` is the position of a thread.
    pub fn error(self, place: Option<Place>) -> LaunchError {
        match self {
            Stop::StepLimit(limit) => LaunchError::StepLimit { limit, place },
            Stop::Cancelled => LaunchError::Cancelled { place },
        }
    }
}

/// The limits of a launch and their use so far.
pub(crate) struct Limits {
    /// Thread-instructions that have been reported as executed.
    steps: AtomicU64,
    max_steps: Option<u64>,
    cancel: Option<Arc<AtomicBool>>,
}

impl Limits {
    pub fn of(config: &LaunchConfig) -> Limits {
        Limits { steps: AtomicU64::new(0), max_steps: config.max_steps, cancel: config.cancel.clone() }
    }

    /// Whether there is a limit of thread-instructions, so that they must be counted.
    pub fn count_steps(&self) -> bool {
        self.max_steps.is_some()
    }

    /// A gang checks the limits when these bits of its budget, which decreases by one for each basic block, are zero. A
    /// limit is exact to the basic block, and a small budget may end before it reaches a multiple of the interval.
    pub fn look_mask(&self, small_budgets: bool) -> i64 {
        if self.count_steps() || small_budgets { 0 } else { INTERVAL - 1 }
    }

    /// Reports executed thread-instructions.
    pub fn report(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Resets the count after the execution has been undone.
    pub fn restart(&self) {
        self.steps.store(0, Ordering::Relaxed);
    }

    /// The reported thread-instructions.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Why the launch must stop before it executes `more` thread-instructions. `None` if it may go on.
    pub fn look(&self, more: u64) -> Option<Stop> {
        if self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Some(Stop::Cancelled);
        }
        let limit = self.max_steps?;
        (self.steps().saturating_add(more) > limit).then_some(Stop::StepLimit(limit))
    }
}
