//! What ends a launch from outside: its limit of thread-instructions, and whoever launched it.
//!
//! A gang looks every 64 blocks of code whether its launch was cancelled. With a limit of thread-instructions it looks before every block,
//! so that the limit is kept and the place is known; so it does with `--schedule`, whose budgets are small.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::launch::{LaunchConfig, LaunchError, Place};

/// Blocks of code that a gang executes before it looks whether it may go on; a power of two.
const INTERVAL: i64 = 1 << 6;

/// Why a launch stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    StepLimit(u64),
    Cancelled,
}

impl Stop {
    /// The error of the launch; `place` is where a thread stood.
    pub fn error(self, place: Option<Place>) -> LaunchError {
        match self {
            Stop::StepLimit(limit) => LaunchError::StepLimit { limit, place },
            Stop::Cancelled => LaunchError::Cancelled { place },
        }
    }
}

/// The limits of a launch, and what has been used of them.
pub(crate) struct Limits {
    /// Thread-instructions executed, as far as they have been reported.
    steps: AtomicU64,
    max_steps: Option<u64>,
    cancel: Option<Arc<AtomicBool>>,
}

impl Limits {
    pub fn of(config: &LaunchConfig) -> Limits {
        Limits { steps: AtomicU64::new(0), max_steps: config.max_steps, cancel: config.cancel.clone() }
    }

    /// Thread-instructions are counted, and must not become more than a limit.
    pub fn count_steps(&self) -> bool {
        self.max_steps.is_some()
    }

    /// The bits of a budget, which goes down by one for each block of code, that are zero where a gang looks. A limit is
    /// kept to the block of code, and small budgets may end before any that is round.
    pub fn look_mask(&self, small_budgets: bool) -> i64 {
        if self.count_steps() || small_budgets { 0 } else { INTERVAL - 1 }
    }

    /// So many thread-instructions have been executed.
    pub fn report(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// What has been executed was undone.
    pub fn restart(&self) {
        self.steps.store(0, Ordering::Relaxed);
    }

    /// Those that have been reported.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Why so many thread-instructions more must not be executed, if they must not.
    pub fn look(&self, more: u64) -> Option<Stop> {
        if self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Some(Stop::Cancelled);
        }
        let limit = self.max_steps?;
        (self.steps().saturating_add(more) > limit).then_some(Stop::StepLimit(limit))
    }
}
