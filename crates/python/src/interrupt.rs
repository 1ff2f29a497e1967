//! Ctrl-C while a kernel runs on the thread that Python's signals are for.
//!
//! Python's own handler of SIGINT notes the signal, and acts on it when the interpreter runs again: after the launch. So for the time of a
//! launch another one stands before it, which ends the launch and then calls Python's.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Ends the launch of the main thread, which runs one at a time.
static CANCEL: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// The same for the handler, which may not wait for anything.
static CANCEL_POINTER: AtomicPtr<AtomicBool> = AtomicPtr::new(std::ptr::null_mut());
/// The handler that stood there before.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// Our handler stands before Python's until this is dropped.
pub struct Watch {
    before: libc::sigaction,
}

impl Watch {
    /// Begins to watch, if this is the main thread and somebody handles the signal.
    pub fn begin() -> Option<Watch> {
        if !is_main_thread() {
            return None;
        }
        let mut before = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: the structure is there for the call to write.
        let known = unsafe { libc::sigaction(libc::SIGINT, std::ptr::null(), before.as_mut_ptr()) } == 0;
        // SAFETY: the call has written it.
        let before = known.then(|| unsafe { before.assume_init() })?;
        let handler = before.sa_sigaction;
        let is_plain = before.sa_flags & libc::SA_SIGINFO == 0;
        if !is_plain || handler == libc::SIG_DFL || handler == libc::SIG_IGN || handler == ours() {
            return None;
        }
        CANCEL.store(false, Ordering::Relaxed);
        CANCEL_POINTER.store(Arc::as_ptr(&CANCEL).cast_mut(), Ordering::Relaxed);
        BEFORE.store(handler, Ordering::SeqCst);
        let with_ours = libc::sigaction { sa_sigaction: ours(), ..before };
        // SAFETY: the handler does nothing that a handler may not do.
        let installed =
            unsafe { libc::sigaction(libc::SIGINT, &raw const with_ours, std::ptr::null_mut()) } == 0;
        installed.then_some(Watch { before })
    }

    /// Becomes true with the signal.
    pub fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&CANCEL)
    }

    /// Whether there was a signal.
    pub fn was_interrupted(&self) -> bool {
        CANCEL.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: this is the action that the call gave.
        unsafe { libc::sigaction(libc::SIGINT, &raw const self.before, std::ptr::null_mut()) };
    }
}

fn ours() -> usize {
    handle as extern "C" fn(c_int) as usize
}

extern "C" fn handle(signal: c_int) {
    // SAFETY: null, or the flag of a static, which is never dropped.
    if let Some(cancel) = unsafe { CANCEL_POINTER.load(Ordering::Relaxed).as_ref() } {
        cancel.store(true, Ordering::Relaxed);
    }
    let before = BEFORE.load(Ordering::SeqCst);
    if before != 0 {
        // SAFETY: it is a handler without SA_SIGINFO, which takes the signal's number.
        let before = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(before) };
        before(signal);
    }
}

#[cfg(target_os = "linux")]
fn is_main_thread() -> bool {
    // SAFETY: neither takes anything.
    unsafe { libc::gettid() == libc::getpid() }
}

#[cfg(not(target_os = "linux"))]
fn is_main_thread() -> bool {
    // SAFETY: it takes nothing.
    unsafe { libc::pthread_main_np() != 0 }
}
