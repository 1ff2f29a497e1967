//! Ctrl-C and `ptxvm.stop()`, which end the launches of all threads.
//!
//! Python's handler of SIGINT only records the signal. The main thread acts on it when it next runs Python code,
//! which is after its launch; launches of other threads are never notified. Therefore another handler replaces
//! Python's while launches run: it ends them, then calls Python's.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The launches of this process.
struct Running {
    count: usize,
    /// The flag that running launches poll. After a stop, later launches get a new one.
    stop: Option<Arc<AtomicBool>>,
    /// The action of SIGINT that ours replaced.
    before: Option<libc::sigaction>,
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
        let Some(now) = swap_action(None) else { return };
        let handler = now.sa_sigaction;
        let is_plain = now.sa_flags & libc::SA_SIGINFO == 0;
        if !is_plain || handler == libc::SIG_DFL || handler == libc::SIG_IGN || handler == ours() {
            return;
        }
        BEFORE.store(handler, Ordering::SeqCst);
        self.before = Some(now);
        swap_action(Some(&libc::sigaction { sa_sigaction: ours(), ..now }));
    }

    /// Restores the replaced handler, unless somebody has meanwhile replaced ours.
    fn step_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        if let Some(other) = swap_action(Some(&before)).filter(|now| now.sa_sigaction != ours()) {
            swap_action(Some(&other));
        }
    }
}

/// Sets the action of SIGINT, if one is given, and returns the previous one.
fn swap_action(new: Option<&libc::sigaction>) -> Option<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: `new` is null or an action with an async-signal-safe handler; the call writes to `before`.
    let done = unsafe { libc::sigaction(libc::SIGINT, new.map_or(null(), |new| new), before.as_mut_ptr()) };
    // SAFETY: the call has written it.
    (done == 0).then(|| unsafe { before.assume_init() })
}

fn ours() -> usize {
    handle as extern "C" fn(c_int) as usize
}

extern "C" fn handle(signal: c_int) {
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
