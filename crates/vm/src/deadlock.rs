//! Deadlock: how a launch detects that no block can make progress any more.
//!
//! Threads that poll an mbarrier object wait for other threads of their block, but the next step of those may depend on
//! memory that any block writes. So a block whose threads have all polled in vain for long is only *blocked*: another
//! block may still help it. When all blocks in flight on all host threads are blocked, and none can start, every block
//! gets some more time slices, in which it would see the latest writes of the others. If none makes progress in them,
//! the launch has a deadlock.
//!
//! Narrowest tests (`tests/run`): `mbarrier_other_block`, `mbarrier_deadlock`; unit tests below.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many time slices every block gets after all are blocked. In such a time slice a block may write what the next
/// block waits for, and still be blocked itself.
const PASSES: u32 = 64;

/// The host threads that run blocks of a launch, and whether they can make progress.
#[derive(Default)]
pub(crate) struct Deadlock {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Host threads that run blocks.
    runners: usize,
    /// Host threads whose blocks are all blocked. `passed`: those that have completed the current pass, which gives each
    /// of their blocks a time slice.
    blocked: usize,
    passed: usize,
    /// Passes that all host threads have completed.
    passes: u32,
    /// Changes at the start of every pass.
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

/// The state of one host thread.
#[derive(Default)]
pub(crate) struct Share {
    blocked: bool,
    epoch: u64,
    /// Time slices that its blocks still need in the current pass.
    missing: usize,
}

impl Deadlock {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A host thread begins to run blocks.
    pub fn begin(&self) {
        let mut state = self.lock();
        state.runners += 1;
        state.restart();
    }

    /// A host thread has no more blocks to run.
    pub fn leave(&self, share: &mut Share) {
        self.go_on(share);
        let mut state = self.lock();
        state.runners -= 1;
        state.restart();
    }

    /// One of a host thread's blocks can make progress, or another block can start.
    #[inline]
    pub fn go_on(&self, share: &mut Share) {
        if std::mem::take(&mut share.blocked) {
            let mut state = self.lock();
            state.blocked -= 1;
            state.restart();
        }
    }

    /// All `blocks` blocks of a host thread are blocked, and one of them has had a time slice. Returns true if that
    /// is a deadlock.
    pub fn is_complete(&self, share: &mut Share, blocks: usize) -> bool {
        let mut state = self.lock();
        if !std::mem::replace(&mut share.blocked, true) {
            state.blocked += 1;
            state.restart();
        }
        if state.blocked < state.runners {
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
        let deadlock = Deadlock::default();
        let (mut a, mut b) = (Share::default(), Share::default());
        deadlock.begin();
        deadlock.begin();
        assert!((0..10_000).all(|_| !deadlock.is_complete(&mut a, 3)));
        // The other host thread is blocked for a while, then makes progress.
        assert!((0..100).all(|_| !deadlock.is_complete(&mut b, 2) && !deadlock.is_complete(&mut a, 3)));
        deadlock.go_on(&mut b);
        assert!((0..10_000).all(|_| !deadlock.is_complete(&mut a, 3)));
        // It has no more work.
        deadlock.leave(&mut b);
        assert!((0..10_000).any(|_| deadlock.is_complete(&mut a, 3)));
    }

    #[test]
    fn all_must_have_had_their_turns() {
        let deadlock = Deadlock::default();
        let (mut a, mut b) = (Share::default(), Share::default());
        deadlock.begin();
        deadlock.begin();
        assert!(!deadlock.is_complete(&mut b, 1));
        assert!((0..10_000).all(|_| !deadlock.is_complete(&mut a, 1)));
        assert!((0..10_000).any(|_| deadlock.is_complete(&mut b, 1) || deadlock.is_complete(&mut a, 1)));
    }
}
