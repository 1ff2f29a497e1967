//! Ctrl-C and `ptxvm.stop()`, which end the launches of all threads.
//!
//! Python's handler of SIGINT only records the signal. The main thread acts on it when it next runs Python code,
//! which is after its launch; launches of other threads are never notified. Therefore another handler replaces
//! Python's while launches run: it ends them, then calls Python's.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The launches of this process.
struct Running {
    count: usize,
    /// The flag that running launches poll. After a stop, later launches get a new one.
    stop: Option<Arc<AtomicBool>>,
    /// The action of SIGINT that ours replaced.
    before: Option<Action>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { count: 0, stop: None, before: None });
/// The flag that the handler sets. It is atomic because a handler must not wait for a lock.
static STOP: AtomicPtr<AtomicBool> = AtomicPtr::new(null_mut());
/// The handler that ours replaced.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A launch that is stopped together with the others, until this is dropped.
pub struct Watch {
    stop: Arc<AtomicBool>,
}

impl Watch {
    /// Registers a launch.
    pub fn begin() -> Watch {
        let mut running = running();
        let stop = running.flag();
        running.count += 1;
        running.step_before();
        Watch { stop }
    }

    /// The flag that becomes true when the launch should end.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether the launch should end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut running = running();
        running.count -= 1;
        if running.count == 0 {
            running.step_back();
        }
    }
}

/// Ends all running launches.
pub fn stop() {
    if let Some(stop) = running().stop.take() {
        stop.store(true, Ordering::Relaxed);
    }
}

impl Running {
    /// The flag for launches that begin now.
    fn flag(&mut self) -> Arc<AtomicBool> {
        if let Some(stop) = self.stop.as_ref().filter(|stop| !stop.load(Ordering::Relaxed)) {
            return Arc::clone(stop);
        }
        let stop = Arc::new(AtomicBool::new(false));
        // The handler may hold the pointer at any time, so flags are never freed: a few bytes for each stop.
        STOP.store(Arc::into_raw(Arc::clone(&stop)).cast_mut(), Ordering::Release);
        self.stop = Some(Arc::clone(&stop));
        stop
    }

    /// Installs our handler in place of an existing one, unless it is installed already. If there is no handler, the
    /// signal keeps its default effect.
    fn step_before(&mut self) {
        let Some(now) = Action::current() else { return };
        let Some(handler) = now.handler().filter(|&handler| handler != ours()) else { return };
        BEFORE.store(handler, Ordering::SeqCst);
        now.with_handler(ours()).install();
        self.before = Some(now);
    }

    /// Restores the replaced handler, unless somebody has meanwhile replaced ours.
    fn step_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        if Action::current().is_some_and(|now| now.handler() == Some(ours())) {
            before.install();
        }
    }
}

/// What SIGINT does.
#[cfg(unix)]
struct Action(libc::sigaction);

#[cfg(unix)]
impl Action {
    /// What it does now.
    fn current() -> Option<Action> {
        let mut now = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: the call changes nothing, and writes to `now`.
        let done = unsafe { libc::sigaction(libc::SIGINT, std::ptr::null(), now.as_mut_ptr()) };
        // SAFETY: the call has written it.
        (done == 0).then(|| Action(unsafe { now.assume_init() }))
    }

    /// The handler, if there is one that takes only the number of the signal.
    fn handler(&self) -> Option<usize> {
        let handler = self.0.sa_sigaction;
        let is_plain = self.0.sa_flags & libc::SA_SIGINFO == 0;
        (is_plain && handler != libc::SIG_DFL && handler != libc::SIG_IGN).then_some(handler)
    }

    /// The same action with another handler.
    fn with_handler(&self, handler: usize) -> Action {
        Action(libc::sigaction { sa_sigaction: handler, ..self.0 })
    }

    fn install(&self) {
        // SAFETY: the action has an async-signal-safe handler, ours or the one that was installed.
        unsafe { libc::sigaction(libc::SIGINT, &self.0, null_mut()) };
    }
}

/// What SIGINT does: the address of its handler.
#[cfg(windows)]
struct Action(usize);

#[cfg(windows)]
impl Action {
    /// What it does now.
    fn current() -> Option<Action> {
        // SAFETY: SIG_GET changes nothing.
        let now = unsafe { libc::signal(libc::SIGINT, libc::SIG_GET) };
        (now != libc::SIG_ERR as usize).then_some(Action(now))
    }

    /// The handler, if there is one.
    fn handler(&self) -> Option<usize> {
        (self.0 != libc::SIG_DFL && self.0 != libc::SIG_IGN).then_some(self.0)
    }

    /// Another handler.
    fn with_handler(&self, handler: usize) -> Action {
        Action(handler)
    }

    fn install(&self) {
        // SAFETY: it is the address of a handler, ours or the one that was installed.
        unsafe { libc::signal(libc::SIGINT, self.0) };
    }
}

fn ours() -> usize {
    handle as extern "C" fn(c_int) as usize
}

extern "C" fn handle(signal: c_int) {
    // Windows removes a handler before it calls it.
    #[cfg(windows)]
    Action(ours()).install();
    // SAFETY: null, or a flag that is never freed.
    if let Some(stop) = unsafe { STOP.load(Ordering::Acquire).as_ref() } {
        stop.store(true, Ordering::Relaxed);
    }
    let before = BEFORE.load(Ordering::SeqCst);
    if before != 0 {
        // SAFETY: it is a handler without SA_SIGINFO, so its only parameter is the signal number.
        let before = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(before) };
        before(signal);
    }
}
