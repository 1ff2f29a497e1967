//! Streams and events: work done in order, concurrently with the thread that enqueues it.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
#[cfg(not(target_family = "wasm"))]
use std::time::Instant;

use machine::LaunchReport;

use crate::{Error, Launch};

/// A queue of work. A thread of the stream does each piece when the one before has ended. Different streams work
/// concurrently.
///
/// When a piece fails, the pieces behind it are skipped ([`Error::NotRun`]) until [`Stream::synchronize`] has
/// returned the failure. A dropped stream still finishes its work. Without threads (WebAssembly) all work is done at
/// once, when it is enqueued.
pub struct Stream {
    queue: Arc<Queue>,
}

/// A piece of work. It gets the failure of an earlier piece, if there was one, and returns its own.
type Work = Box<dyn FnOnce(Option<Error>) -> Option<Error> + Send>;

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// Notified when work is added, and when the queue becomes idle.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    /// A piece of work is running.
    busy: bool,
    /// A thread exists that does the work or waits for more.
    thread: bool,
    /// The first failure that `synchronize` has not returned yet.
    error: Option<Error>,
}

impl State {
    fn is_working(&self) -> bool {
        self.busy || !self.work.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic happens under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    pub(crate) fn new() -> Stream {
        Stream { queue: Arc::default() }
    }

    /// Launches a kernel when everything before has ended.
    pub fn launch(&self, launch: Launch) -> Pending<LaunchReport> {
        self.enqueue(move || launch.run())
    }

    /// Does other work when everything before has ended: copies an array, say, or signals somebody.
    ///
    /// ```
    /// # let device = ptxvm::Device::new();
    /// # let stream = device.stream();
    /// let array = device.array(&[1u32, 2, 3])?;
    /// let elements = stream.enqueue(move || array.read());
    /// assert_eq!(elements.wait()?, [1, 2, 3]);
    /// # Ok::<(), ptxvm::Error>(())
    /// ```
    pub fn enqueue<T, F>(&self, work: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, Error> + Send + 'static,
    {
        let (sender, receiver) = sync_channel(1);
        self.push(Box::new(move |earlier| match earlier {
            Some(error) => {
                send(&sender, Err(Error::NotRun { cause: Box::new(error) }));
                None
            }
            None => {
                let result = machine::caught(work).unwrap_or_else(|message| Err(panicked(&message)));
                let error = result.as_ref().err().cloned();
                send(&sender, result);
                error
            }
        }));
        Pending { receiver }
    }

    /// An event that happens when everything before has ended, also if it failed.
    pub fn record(&self) -> Event {
        let event = Event::default();
        let recorded = event.clone();
        self.push(Box::new(move |_| {
            recorded.happen();
            None
        }));
        event
    }

    /// Delays all later work of this stream until an event has happened.
    pub fn wait(&self, event: &Event) {
        let event = event.clone();
        self.push(Box::new(move |_| {
            event.wait();
            None
        }));
    }

    /// Waits until everything is done.
    ///
    /// # Errors
    /// The first failure since the last call. Work that is enqueued afterwards is done again.
    pub fn synchronize(&self) -> Result<(), Error> {
        let mut state = lock(&self.queue.state);
        while state.is_working() {
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.error.take().map_or(Ok(()), Err)
    }

    /// Whether everything is done.
    pub fn is_idle(&self) -> bool {
        !lock(&self.queue.state).is_working()
    }

    fn push(&self, work: Work) {
        let mut state = lock(&self.queue.state);
        state.work.push_back(work);
        let has_thread = std::mem::replace(&mut state.thread, true);
        drop(state);
        if has_thread {
            self.queue.changed.notify_all();
        } else {
            self.queue.start();
        }
    }
}

/// The error of work of a stream that panicked with this message.
fn panicked(message: &str) -> Error {
    Error::Panicked(format!("the work of the stream panicked: {message}"))
}

/// Sends a result to the receiver, which may be gone.
fn send<T>(sender: &SyncSender<T>, result: T) {
    let _ = sender.try_send(result);
}

/// An idle thread of a stream waits this long for more work, then ends.
#[cfg(not(target_family = "wasm"))]
const PATIENCE: Duration = Duration::from_millis(100);

impl Queue {
    #[cfg(not(target_family = "wasm"))]
    fn start(self: &Arc<Queue>) {
        let queue = Arc::clone(self);
        let thread = std::thread::Builder::new().name("ptxvm stream".to_owned());
        if thread.spawn(move || queue.run(PATIENCE)).is_err() {
            // The host cannot start another thread: the caller does the work.
            self.run(Duration::ZERO);
        }
    }

    #[cfg(target_family = "wasm")]
    fn start(self: &Arc<Queue>) {
        self.run(Duration::ZERO);
    }

    /// Does the queued work, and work that arrives within `patience`.
    fn run(&self, patience: Duration) {
        let mut state = lock(&self.state);
        loop {
            while let Some(work) = state.work.pop_front() {
                state.busy = true;
                let earlier = state.error.clone();
                drop(state);
                let error =
                    machine::caught(|| work(earlier)).unwrap_or_else(|message| Some(panicked(&message)));
                state = lock(&self.state);
                state.error = state.error.take().or(error);
                state.busy = false;
            }
            self.changed.notify_all();
            if !patience.is_zero() {
                state = self.changed.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.work.is_empty() {
                state.thread = false;
                return;
            }
        }
    }
}

/// The result of work in a stream.
#[must_use = "`Stream::synchronize` reports a failure, too"]
pub struct Pending<T> {
    receiver: Receiver<Result<T, Error>>,
}

impl<T> Pending<T> {
    /// Waits for it.
    ///
    /// # Errors
    /// The errors of the work; [`Error::Panicked`] if it panicked; [`Error::NotRun`] if earlier work of its stream
    /// failed.
    pub fn wait(self) -> Result<T, Error> {
        self.receiver.recv().unwrap_or_else(|_| Err(panicked("its result was lost")))
    }
}

/// A point in the work of a stream. Cheap to clone; clones are the same event.
#[derive(Clone, Default)]
pub struct Event(Arc<(Mutex<Option<Moment>>, Condvar)>);

/// The time at which an event happened.
#[cfg(not(target_family = "wasm"))]
type Moment = Instant;
#[cfg(target_family = "wasm")]
type Moment = ();

impl Event {
    fn happen(&self) {
        #[cfg(not(target_family = "wasm"))]
        let now = Instant::now();
        #[cfg(target_family = "wasm")]
        let now = ();
        *lock(&self.0.0) = Some(now);
        self.0.1.notify_all();
    }

    /// Whether it has happened.
    pub fn has_happened(&self) -> bool {
        lock(&self.0.0).is_some()
    }

    /// Waits until it has happened.
    pub fn wait(&self) {
        let mut moment = lock(&self.0.0);
        while moment.is_none() {
            moment = self.0.1.wait(moment).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The time from an earlier event to this one; `None` if one of them has not happened, or there is no clock.
    pub fn since(&self, earlier: &Event) -> Option<Duration> {
        #[cfg(not(target_family = "wasm"))]
        {
            let (end, start) = ((*lock(&self.0.0))?, (*lock(&earlier.0.0))?);
            Some(end.saturating_duration_since(start))
        }
        #[cfg(target_family = "wasm")]
        {
            let _ = earlier;
            None
        }
    }
}
