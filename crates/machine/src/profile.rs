//! The profile of a launch: counts and time for each instruction of the source.

use std::collections::BTreeMap;

use diag::Span;

/// The counts of one instruction in a launch.
///
/// A *warp* is 32 threads of a block with consecutive numbers. Counts do not depend on the machine, the number of host
/// threads or how the interpreter runs an operation; `seconds` does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// How often a warp reached it with at least one thread.
    pub executions: u64,
    /// How often a thread reached it. The sum over all instructions is [`crate::LaunchReport::thread_instructions`].
    pub threads: u64,
    /// Those of `threads` whose guard (`@p`) was false. Always 0 if the guard belongs to a branch, a barrier or a
    /// warp-level operation.
    pub guarded_off: u64,
    /// How often a branch sent threads of one warp to different targets.
    pub diverged: u64,
    /// Memory accesses of warps, classified by the addresses of their active threads.
    pub accesses: Accesses,
    /// Time of the host in seconds, summed over host threads. If the interpreter executes several instructions at once (a load in
    /// the operation that reads its value, a result that is only stored), the time counts for the last of them.
    pub seconds: f64,
}

/// Memory accesses of warps, by kind. Each half of a warp counts separately, because rows of blocks often have 16 threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// The elements of a half are consecutive, in the order of the threads.
    pub vector: u64,
    /// All threads of a half access the same address, or only one thread is active.
    pub broadcast: u64,
    /// Any other pattern.
    pub gather: u64,
}

impl Counts {
    /// Average number of threads of an execution, of 32, without those whose guard was false. 0 if there was no execution.
    pub fn active_lanes(&self) -> f64 {
        if self.executions == 0 {
            0.0
        } else {
            (self.threads - self.guarded_off) as f64 / self.executions as f64
        }
    }

    /// Adds the counts of another instruction, or of the same one elsewhere.
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

/// The counts of a launch's instructions, by their place in the source. Instructions that were never reached have zeros.
///
/// Pass one to [`crate::LaunchConfig::profile`]. It is filled when the launch ends, with or without a fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The instructions of all functions that the module defines.
    pub instructions: BTreeMap<Span, Counts>,
}

impl Profile {
    /// Adds to the counts of an instruction.
    pub fn add(&mut self, span: Span, counts: &Counts) {
        self.instructions.entry(span).or_default().add(counts);
    }
}
