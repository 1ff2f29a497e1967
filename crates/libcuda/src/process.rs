//! What belongs to the process as a whole.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// This is a child that was forked after the driver was used: the threads that do its work stayed with the parent.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// From now on a child of this process knows that it is one.
pub fn watch_forks() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: what it calls stores one word.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
