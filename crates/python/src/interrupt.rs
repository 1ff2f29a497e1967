//! Ctrl-C and `ptxvm.stop()`, which end the launches of all threads.
//!
//! Python's own handler of SIGINT notes the signal, and its main thread acts on it when the interpreter runs there again: after the launch, if it
//! is its own; and nobody tells those of other threads. So as long as there are launches another handler stands before it, which ends them and then
//! calls Python's.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The launches of this process.
struct Running {
    count: usize,
    /// What they look at. Those who stop them leave another one for launches to come.
    stop: Option<Arc<AtomicBool>>,
    /// The action that ours took the place of.
    before: Option<libc::sigaction>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { count: 0, stop: None, before: None });
/// What the handler sets: it may not wait for a lock.
static STOP: AtomicPtr<AtomicBool> = AtomicPtr::new(null_mut());
/// The handler that stood there before.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A launch that is to be stopped with the others, until this is dropped.
pub struct Watch {
    stop: Arc<AtomicBool>,
}

impl Watch {
    /// Begins to watch.
    pub fn begin() -> Watch {
        let mut running = running();
        let stop = running.flag();
        running.count += 1;
        running.step_before();
        Watch { stop }
    }

    /// Becomes true when the launch is to end.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether it is to end.
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

/// Ends the launches that run now.
pub fn stop() {
    if let Some(stop) = running().stop.take() {
        stop.store(true, Ordering::Relaxed);
    }
}

impl Running {
    /// The flag of launches that begin now.
    fn flag(&mut self) -> Arc<AtomicBool> {
        if let Some(stop) = self.stop.as_ref().filter(|stop| !stop.load(Ordering::Relaxed)) {
            return Arc::clone(stop);
        }
        let stop = Arc::new(AtomicBool::new(false));
        // The handler could have taken it up at any time, so none is ever freed: a few bytes for each time that launches are stopped.
        STOP.store(Arc::into_raw(Arc::clone(&stop)).cast_mut(), Ordering::Release);
        self.stop = Some(Arc::clone(&stop));
        stop
    }

    /// Puts our handler before one that is there, unless it stands there already. Where there is none the signal means what it means without us.
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

    /// Puts the handler back, unless somebody has taken ours away meanwhile.
    fn step_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        if let Some(other) = swap_action(Some(&before)).filter(|now| now.sa_sigaction != ours()) {
            swap_action(Some(&other));
        }
    }
}

/// The action of SIGINT, which this one takes the place of.
fn swap_action(new: Option<&libc::sigaction>) -> Option<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: `new` is null or an action whose handler does nothing that a handler may not do; `before` is there for the call to write.
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
        // SAFETY: it is a handler without SA_SIGINFO, which takes the signal's number.
        let before = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(before) };
        before(signal);
    }
}
