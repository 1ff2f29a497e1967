//! The state of the process as a whole.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this is a child that was forked after the driver was used. The parent's queue threads do not exist in it.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Makes later children of this process detect that they are forked.
pub fn watch_forks() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the registered function only stores one word.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
