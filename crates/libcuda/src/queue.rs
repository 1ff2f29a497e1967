//! Queues: operations that run in order, on a thread of their own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::lock;
use crate::log::log;

/// A piece of work.
pub type Work = Box<dyn FnOnce() + Send>;

/// A queue of work. It has a thread, but a thread that waits for the queue runs work itself instead of sleeping. A launch that is
/// waited for at once then does not depend on another thread waking up.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    /// Signals that work is done or has been added.
    changed: Condvar,
    /// The number of completed pieces of work.
    done: AtomicU64,
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    /// The number of submitted pieces of work.
    submitted: u64,
    /// Whether some thread runs a piece now.
    busy: bool,
    /// Whether the queue has a thread.
    thread: bool,
    /// Whether that thread sleeps.
    asleep: bool,
}

/// How long an idle thread waits for more work before it ends.
const PATIENCE: Duration = Duration::from_millis(200);

/// A point in a queue: it is past when everything submitted before it is done.
#[derive(Clone)]
pub struct Point {
    queue: Arc<Queue>,
    number: u64,
}

impl Point {
    /// Whether everything before the point is done.
    pub fn is_past(&self) -> bool {
        let is_past = || self.queue.done.load(Ordering::Acquire) >= self.number;
        is_past() || {
            self.queue.see_to_it();
            is_past()
        }
    }

    /// Waits until everything before the point is done.
    pub fn wait(&self) {
        self.queue.wait_for(self.number);
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Work runs without holding the lock.
        lock(&self.state)
    }

    /// Adds a piece of work.
    pub fn push(self: &Arc<Queue>, work: Work) {
        let mut state = self.lock();
        state.work.push_back(work);
        state.submitted += 1;
        let has_thread = std::mem::replace(&mut state.thread, true);
        let asleep = std::mem::replace(&mut state.asleep, false);
        drop(state);
        if !has_thread {
            // If the host has no more threads, threads that wait or poll do the work.
            let _ = self.start();
        } else if asleep {
            self.changed.notify_all();
        }
    }

    /// Starts the thread whose existence [`State::thread`] claims. If the host has no more threads, clears the flag and returns false.
    fn start(self: &Arc<Queue>) -> bool {
        let queue = Arc::clone(self);
        let thread = std::thread::Builder::new().name("ptxvm stream".to_owned());
        let started = thread.spawn(move || queue.run()).is_ok();
        if !started {
            self.lock().thread = false;
        }
        started
    }

    /// Ensures progress for a caller that polls: starts a thread, or else runs one piece of work.
    fn see_to_it(self: &Arc<Queue>) {
        let mut state = self.lock();
        if state.thread || state.busy || state.work.is_empty() {
            return;
        }
        state.thread = true;
        drop(state);
        if !self.start() {
            let state = self.lock();
            if !state.busy {
                drop(self.step(state));
            }
        }
    }

    /// Adds a piece of work and waits until it is done.
    pub fn push_and_wait(self: &Arc<Queue>, work: Work) {
        let number = {
            let mut state = self.lock();
            state.work.push_back(work);
            state.submitted += 1;
            state.submitted
        };
        self.wait_for(number);
    }

    /// The point after everything submitted so far.
    pub fn now(self: &Arc<Queue>) -> Point {
        Point { queue: Arc::clone(self), number: self.lock().submitted }
    }

    /// Whether all work is done.
    pub fn is_idle(self: &Arc<Queue>) -> bool {
        self.see_to_it();
        let state = self.lock();
        !state.busy && state.work.is_empty()
    }

    /// Runs one piece of work.
    fn step<'q>(&'q self, mut state: MutexGuard<'q, State>) -> MutexGuard<'q, State> {
        let Some(work) = state.work.pop_front() else { return state };
        state.busy = true;
        drop(state);
        if let Err(message) = machine::caught(work) {
            // Operations report their own failures, including panics.
            log!(error, "ptxvm itself failed, which is a defect of it: {message}");
        }
        let mut state = self.lock();
        state.busy = false;
        self.done.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
        state
    }

    fn wait_for(&self, number: u64) {
        if self.done.load(Ordering::Acquire) >= number {
            return;
        }
        let mut state = self.lock();
        while self.done.load(Ordering::Acquire) < number {
            state = match state.busy {
                true => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                false => self.step(state),
            };
        }
    }

    /// Runs all work until none has arrived for some time.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            if state.busy {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else if !state.work.is_empty() {
                state = self.step(state);
            } else {
                state.asleep = true;
                let (woken, time) =
                    self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
                state = woken;
                state.asleep = false;
                if time.timed_out() && state.work.is_empty() && !state.busy {
                    state.thread = false;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_in_order_whoever_does_it() {
        let queue = Arc::new(Queue::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = |i: u32| -> Work {
            let seen = Arc::clone(&seen);
            Box::new(move || seen.lock().unwrap().push(i))
        };
        for i in 0..1000 {
            match i % 7 {
                0 => queue.push_and_wait(note(i)),
                3 => {
                    queue.push(note(i));
                    let point = queue.now();
                    point.wait();
                    assert!(point.is_past());
                }
                _ => queue.push(note(i)),
            }
        }
        queue.now().wait();
        assert!(queue.is_idle());
        assert_eq!(*seen.lock().unwrap(), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn queues_wait_for_each_other() {
        let (first, second) = (Arc::new(Queue::default()), Arc::new(Queue::default()));
        let value = Arc::new(AtomicU64::new(0));
        let (slow, after) = (Arc::clone(&value), Arc::clone(&value));
        first.push(Box::new(move || {
            std::thread::sleep(Duration::from_millis(20));
            slow.store(1, Ordering::Relaxed);
        }));
        let point = first.now();
        second.push(Box::new(move || point.wait()));
        second.push(Box::new(move || after.store(after.load(Ordering::Relaxed) * 10 + 2, Ordering::Relaxed)));
        second.now().wait();
        assert_eq!(value.load(Ordering::Relaxed), 12);
    }

    #[test]
    fn what_panics_ends_nothing_but_itself() {
        let queue = Arc::new(Queue::default());
        queue.push(Box::new(|| panic!("this is part of the test")));
        queue.push_and_wait(Box::new(|| ()));
        assert!(queue.is_idle());
    }
}
