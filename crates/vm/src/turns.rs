//! Host threads that update global memory atomically for many lanes take turns, where that is faster.
//!
//! The host moves the cache line of an element to the host thread that updates it. Where several of them update the same few elements, lines
//! move with nearly each update, which takes longer than all else. If one thread waits until another has updated the elements of a whole
//! gang, each line moves once. Elsewhere waiting only costs time. So both are measured, waiting included.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The fewest lanes whose updates are measured.
const LEAST_LANES: usize = 128;
/// How many calls there are to one that does what took longer.
const EXPLORED: u32 = 64;

/// What host threads of a launch share.
#[derive(Default)]
pub(crate) struct Turns {
    turn: Mutex<()>,
    calls: AtomicU32,
    /// Picoseconds for each lane, on average, without turns and with them. 0: not measured.
    paces: [AtomicU32; 2],
}

impl Turns {
    /// Updates elements for so many lanes, perhaps after others. `threads`: host threads of the launch.
    pub fn take<R>(&self, lanes: usize, threads: usize, update: impl FnOnce() -> R) -> R {
        if lanes < LEAST_LANES || threads < 2 {
            return update();
        }
        let waits = self.waits();
        let start = Instant::now();
        let turn = waits.then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        let result = update();
        drop(turn);
        self.note(waits, lanes, start.elapsed());
        result
    }

    /// Whether the next call waits for its turn.
    fn waits(&self) -> bool {
        let [without, with] = [0, 1].map(|index| self.paces[index].load(Ordering::Relaxed));
        let explores = self.calls.fetch_add(1, Ordering::Relaxed) % EXPLORED == EXPLORED - 1;
        (with < without) != explores
    }

    /// A call took so long.
    fn note(&self, waits: bool, lanes: usize, time: Duration) {
        let pace = &self.paces[usize::from(waits)];
        let now = (time.as_nanos() * 1000 / lanes as u128).clamp(1, u32::MAX.into()) as u64;
        let old = u64::from(pace.load(Ordering::Relaxed));
        // The host may have given the processor to another program meanwhile.
        let new = if old == 0 { now } else { (7 * old + now.min(4 * old)) / 8 };
        pace.store(new.min(u32::MAX.into()) as u32, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_is_taken_and_the_other_one_tried() {
        let turns = Turns::default();
        let time = |waits: bool, fast: bool| Duration::from_micros(if waits == fast { 10 } else { 50 });
        for fast in [true, false] {
            let mut waited = 0;
            for call in 0..1000 {
                let waits = turns.waits();
                turns.note(waits, 1000, time(waits, fast));
                waited += u32::from(call >= 500 && waits == fast);
            }
            assert!((480..500).contains(&waited), "{waited} of 500");
        }
    }

    #[test]
    fn one_thread_does_not_wait() {
        let turns = Turns::default();
        (0..100).for_each(|_| turns.take(1024, 1, || ()));
        (0..100).for_each(|_| turns.take(LEAST_LANES - 1, 8, || ()));
        assert_eq!(turns.calls.into_inner(), 0);
    }
}
