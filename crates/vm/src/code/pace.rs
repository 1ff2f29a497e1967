//! Whether a loop runs faster as native code or interpreted: measured, since it depends on the data.
//!
//! The interpreter takes up to 1024 lanes through each iteration, and native code 32 lanes through all iterations. So the
//! interpreter is faster where the lanes do the same and wait for memory, and native code where lanes diverge, gather, or
//! compute for long. The results are the same.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many iterations of a loop gangs interpret before it is compiled. Compiling takes about as long as interpreting
/// these.
const HOT: u32 = 64;
/// How long native code runs until it is compared with the interpreter.
const TRIAL: u64 = 20_000;
/// After so many more iterations both are measured again: the data may be others.
const AGAIN: u32 = 1 << 14;

/// Thread-instructions, and the nanoseconds that they took.
#[derive(Default)]
struct Pace {
    instructions: AtomicU64,
    time: AtomicU64,
}

impl Pace {
    fn note(&self, time: Duration, instructions: u64) {
        self.instructions.fetch_add(instructions, Ordering::Relaxed);
        self.time.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    fn reset(&self) {
        self.instructions.store(0, Ordering::Relaxed);
        self.time.store(0, Ordering::Relaxed);
    }

    /// Nanoseconds of an instruction.
    fn cost(&self) -> f64 {
        self.time.load(Ordering::Relaxed) as f64 / self.instructions.load(Ordering::Relaxed).max(1) as f64
    }
}

/// What a loop is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Be interpreted, and measured.
    Measure,
    /// Be interpreted.
    Interpret,
    /// Run as native code.
    Native,
}

/// The paces of a loop.
#[derive(Default)]
pub(crate) struct Paces {
    visits: AtomicU32,
    interpreted: Pace,
    native: Pace,
    /// How often native code has run.
    runs: AtomicU32,
    /// Native code has been slower.
    is_slow: AtomicBool,
}

impl Paces {
    /// What a gang at the start of the loop is to do.
    #[inline]
    pub fn turn(&self) -> Turn {
        let visits = self.visits.load(Ordering::Relaxed);
        if visits < HOT {
            self.visits.store(visits + 1, Ordering::Relaxed);
            return Turn::Measure;
        }
        if !self.is_slow.load(Ordering::Relaxed) {
            return Turn::Native;
        }
        if visits < HOT + AGAIN {
            self.visits.store(visits + 1, Ordering::Relaxed);
            return Turn::Interpret;
        }
        self.forget();
        Turn::Measure
    }

    /// Both are measured again.
    fn forget(&self) {
        self.visits.store(0, Ordering::Relaxed);
        self.interpreted.reset();
        self.native.reset();
        self.is_slow.store(false, Ordering::Relaxed);
    }

    /// Notes what native code has executed.
    pub fn note_native(&self, time: Duration, instructions: u64) {
        self.native.note(time, instructions);
        let is_over = self.native.time.load(Ordering::Relaxed) >= TRIAL;
        // The first measurements find memory that the host has not seen yet.
        let runs = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        if matches!(runs, 4 | 64) || runs.is_multiple_of(1 << 14) {
            return self.forget();
        }
        self.is_slow.store(is_over && self.native.cost() > self.interpreted.cost(), Ordering::Relaxed);
    }
}

/// The measurement of an interpreted loop: what its last visit began with.
#[derive(Clone, Copy)]
pub(crate) struct Lap {
    loop_of: *const Paces,
    start: Instant,
    instructions: u64,
}

impl Lap {
    /// Ends the lap before this visit of a loop, if that was of the same loop, and begins the next one.
    pub fn next(last: &mut Option<Lap>, paces: &Paces, instructions: u64) {
        let now = Instant::now();
        if let Some(last) = last
            && std::ptr::eq(last.loop_of, paces)
        {
            paces.interpreted.note(now - last.start, instructions - last.instructions);
        }
        *last = Some(Lap { loop_of: paces, start: now, instructions });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_one_runs() {
        for (native, expected) in [(500, Turn::Native), (2000, Turn::Interpret)] {
            let paces = Paces::default();
            let mut lap = None;
            for visit in 0..HOT {
                assert_eq!(paces.turn(), Turn::Measure);
                Lap::next(&mut lap, &paces, visit.into());
            }
            assert_eq!(paces.interpreted.instructions.load(Ordering::Relaxed), u64::from(HOT) - 1);
            paces.interpreted.reset();
            paces.interpreted.note(Duration::from_micros(1000), 1000);
            assert_eq!(paces.turn(), Turn::Native);
            paces.note_native(Duration::from_micros(native), 1000);
            assert_eq!(paces.turn(), expected);
            // Both are measured again some time later.
            if expected == Turn::Native {
                (1..4).for_each(|_| paces.note_native(Duration::from_micros(native), 1000));
                assert_eq!(paces.turn(), Turn::Measure);
            } else {
                assert!((0..=AGAIN).any(|_| paces.turn() == Turn::Measure));
            }
        }
    }
}
