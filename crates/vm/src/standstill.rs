//! Nobody can go on: how a launch finds out.
//!
//! Threads that poll an mbarrier object wait for others of their block, but what they do next may hang on memory that any block
//! writes. So a block whose threads have all tried in vain for long is only *stuck*: others may still help it. When all blocks in
//! flight on all host threads are stuck, and none can be started, every block gets some more turns, in which it would
//! see what the others wrote last. If that changes nothing, either, nobody will.
//!
//! Narrowest tests (`tests/run`): `mbarrier_other_block`, `mbarrier_deadlock`; unit tests below.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often every block gets a turn after all are stuck. A block that sees something then may write what the next one waits
/// for without going on to be stuck no more.
const PASSES: u32 = 64;

/// The host threads that run blocks of a launch, and which of them can go on.
#[derive(Default)]
pub(crate) struct Standstill {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Host threads that run blocks.
    runners: usize,
    /// Those whose blocks are all stuck, and how many of them have given all a turn since the last of them came here.
    stuck: usize,
    passed: usize,
    /// Passes that all of them have made.
    passes: u32,
    /// Changes with the beginning of every pass.
    epoch: u64,
}

impl State {
    /// Begins the first pass.
    fn restart(&mut self) {
        self.passes = 0;
        self.next_pass();
    }

    fn next_pass(&mut self) {
        self.passed = 0;
        self.epoch += 1;
    }
}

/// What one host thread knows.
#[derive(Default)]
pub(crate) struct Share {
    stuck: bool,
    epoch: u64,
    /// Turns that are missing in the pass.
    missing: usize,
}

impl Standstill {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A host thread begins to run blocks.
    pub fn begin(&self) {
        let mut state = self.lock();
        state.runners += 1;
        state.restart();
    }

    /// A host thread runs no more blocks.
    pub fn leave(&self, share: &mut Share) {
        self.go_on(share);
        let mut state = self.lock();
        state.runners -= 1;
        state.restart();
    }

    /// One of a host thread's blocks can go on, or there is one to start.
    #[inline]
    pub fn go_on(&self, share: &mut Share) {
        if std::mem::take(&mut share.stuck) {
            let mut state = self.lock();
            state.stuck -= 1;
            state.restart();
        }
    }

    /// All of a host thread's `blocks` blocks are stuck, and one has had a turn. True if nobody can go on any more.
    pub fn is_complete(&self, share: &mut Share, blocks: usize) -> bool {
        let mut state = self.lock();
        if !std::mem::replace(&mut share.stuck, true) {
            state.stuck += 1;
            state.restart();
        }
        if state.stuck < state.runners {
            return false;
        }
        if share.epoch != state.epoch {
            (share.epoch, share.missing) = (state.epoch, blocks);
            return false;
        }
        if share.missing == 0 {
            return false;
        }
        share.missing -= 1;
        if share.missing == 0 {
            state.passed += 1;
            if state.passed == state.runners {
                state.passes += 1;
                state.next_pass();
            }
        }
        state.passes >= PASSES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gives_up_while_another_can_go_on() {
        let standstill = Standstill::default();
        let (mut a, mut b) = (Share::default(), Share::default());
        standstill.begin();
        standstill.begin();
        assert!((0..10_000).all(|_| !standstill.is_complete(&mut a, 3)));
        // The other one is stuck for a while, and goes on.
        assert!((0..100).all(|_| !standstill.is_complete(&mut b, 2) && !standstill.is_complete(&mut a, 3)));
        standstill.go_on(&mut b);
        assert!((0..10_000).all(|_| !standstill.is_complete(&mut a, 3)));
        // It has nothing more to do.
        standstill.leave(&mut b);
        assert!((0..10_000).any(|_| standstill.is_complete(&mut a, 3)));
    }

    #[test]
    fn all_must_have_had_their_turns() {
        let standstill = Standstill::default();
        let (mut a, mut b) = (Share::default(), Share::default());
        standstill.begin();
        standstill.begin();
        assert!(!standstill.is_complete(&mut b, 1));
        assert!((0..10_000).all(|_| !standstill.is_complete(&mut a, 1)));
        assert!((0..10_000).any(|_| standstill.is_complete(&mut b, 1) || standstill.is_complete(&mut a, 1)));
    }
}
