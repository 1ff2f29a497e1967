//! Where a launch's time goes: what each instruction of the source did.

use std::collections::BTreeMap;

use diag::Span;

/// What one instruction did in a launch.
///
/// A *warp* is 32 threads of a block with consecutive numbers. Counts do not depend on the machine, the number of host
/// threads or how the interpreter runs an operation; `seconds` does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// How often a warp came to it, with at least one thread.
    pub executions: u64,
    /// How often a thread came to it. The sum over all instructions is [`crate::LaunchReport::thread_instructions`].
    pub threads: u64,
    /// Those of `threads` for which its guard (`@p`) did not hold. None where the guard decides about a branch, a barrier
    /// or a warp-level operation.
    pub guarded_off: u64,
    /// How often threads of a warp left it, a branch, for different places.
    pub diverged: u64,
    /// Accesses to memory by warps, after how the addresses of their active threads lie.
    pub accesses: Accesses,
    /// Time of the host spent in it, summed over host threads. What the interpreter does at once for several instructions
    /// (a load in the operation that reads its value, a result that is only stored) counts for the last of them.
    pub seconds: f64,
}

/// Accesses of warps to memory, by kind. The halves of a warp are looked at on their own: rows of blocks often have 16
/// threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// The elements of a half lie one after the other, in the order of the threads.
    pub vector: u64,
    /// All threads of a half access the same address; so does a single thread.
    pub broadcast: u64,
    /// Any other pattern.
    pub gather: u64,
}

impl Counts {
    /// Threads of an execution on average, of 32, without those whose guard did not hold; 0 if there was none.
    pub fn active_lanes(&self) -> f64 {
        if self.executions == 0 {
            0.0
        } else {
            (self.threads - self.guarded_off) as f64 / self.executions as f64
        }
    }

    /// Adds what another instruction, or the same one elsewhere, did.
    pub fn add(&mut self, other: &Counts) {
        self.executions += other.executions;
        self.threads += other.threads;
        self.guarded_off += other.guarded_off;
        self.diverged += other.diverged;
        self.accesses.vector += other.accesses.vector;
        self.accesses.broadcast += other.accesses.broadcast;
        self.accesses.gather += other.accesses.gather;
        self.seconds += other.seconds;
    }
}

/// What the instructions of a launch did, by their place in the source. Instructions that were never reached have zeros.
///
/// Give one to [`crate::LaunchConfig::profile`]; it is filled when the launch ends, however it does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The instructions of all functions that the module defines.
    pub instructions: BTreeMap<Span, Counts>,
}

impl Profile {
    /// Adds to what an instruction did.
    pub(crate) fn add(&mut self, span: Span, counts: &Counts) {
        self.instructions.entry(span).or_default().add(counts);
    }
}
