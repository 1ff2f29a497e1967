//! The threads of the host that run blocks: this one, and those of a pool that all launches of the process share.
//!
//! A child that was forked makes a pool of its own, since its parent's has no threads there. Where the host has no more threads, launches
//! use fewer, down to one.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::panics::caught;

/// The pool of a process.
struct Pool {
    /// The process. A child that was forked has its parent's pool without its threads, and waits for them for ever.
    process: u32,
    /// `None` where the host had no threads for it.
    threads: Option<ThreadPool>,
}

/// The pool that was made last. None is ever freed: a launch could be using it.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(null_mut());

/// How many threads of the host launches use, unless told otherwise: `RAYON_NUM_THREADS`, or one for each core. On a thread of somebody's
/// pool, as many as that has.
pub(crate) fn host_threads() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    if rayon::current_thread_index().is_some() {
        return rayon::current_num_threads();
    }
    *COUNT.get_or_init(|| {
        let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
        let cores = || std::thread::available_parallelism().map_or(1, Into::into);
        wanted.filter(|&wanted| wanted > 0).unwrap_or_else(cores)
    })
}

/// The pool of this process, made when it is first asked for.
fn pool() -> Option<&'static ThreadPool> {
    // wasm32-unknown-unknown has no processes.
    let process = if cfg!(unix) { std::process::id() } else { 0 };
    let last = POOL.load(Ordering::Acquire);
    // SAFETY: null, or a pool, which is never freed.
    if let Some(pool) = unsafe { last.as_ref() }.filter(|pool| pool.process == process) {
        return pool.threads.as_ref();
    }
    // No lock: who holds one when a process forks holds it in the child for ever.
    let threads = ThreadPoolBuilder::new().num_threads(host_threads()).build().ok();
    let made = Box::into_raw(Box::new(Pool { process, threads }));
    let pool = match POOL.compare_exchange(last, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(others) => {
            // Somebody else has made one at the same time.
            // SAFETY: it is the box from above, which nobody else has.
            drop(unsafe { Box::from_raw(made) });
            others
        }
    };
    // SAFETY: a pool, which is never freed.
    unsafe { &*pool }.threads.as_ref()
}

/// Does `own` on this thread, and `share` on so many others beside it, or on fewer if the host has no more.
pub(crate) fn beside(others: usize, share: impl Fn() + Sync, own: impl FnOnce()) {
    if others == 0 {
        return own();
    }
    if rayon::current_thread_index().is_some() && others < rayon::current_num_threads() {
        return rayon::in_place_scope(|scope| {
            (0..others).for_each(|_| scope.spawn(|_| share()));
            own();
        });
    }
    match pool().filter(|pool| others < pool.current_num_threads()) {
        Some(pool) => pool.in_place_scope(|scope| {
            (0..others).for_each(|_| scope.spawn(|_| share()));
            own();
        }),
        None => std::thread::scope(|scope| {
            let share = &share;
            let start = || std::thread::Builder::new().spawn_scoped(scope, share).is_ok();
            let _ = (0..others).all(|_| start());
            own();
        }),
    }
}

/// Does `share` on as many threads of the host as launches use, this one among them; returns when all have done it.
///
/// # Errors
/// What one of them said that panicked.
pub fn on_host_threads(share: impl Fn() + Sync) -> Result<(), String> {
    let said = Mutex::new(Ok(()));
    let share = || {
        if let Err(message) = caught(&share) {
            *said.lock().unwrap_or_else(PoisonError::into_inner) = Err(message);
        }
    };
    beside(host_threads() - 1, share, share);
    said.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn all_threads_do_their_share() {
        for others in [0, 1, 3, 100] {
            let (done, own) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let count = |of: &AtomicUsize| {
                of.fetch_add(1, Ordering::Relaxed);
            };
            beside(others, || count(&done), || count(&own));
            assert_eq!((done.into_inner(), own.into_inner()), (others, 1));
        }
    }

    // QEMU, under which other processors are tried, cannot begin a thread in a child of a program with threads.
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
    #[test]
    fn a_forked_child_makes_a_pool_of_its_own() {
        let count = || {
            let done = AtomicUsize::new(0);
            let add = || {
                done.fetch_add(1, Ordering::Relaxed);
            };
            beside(pool().map_or(0, |pool| pool.current_num_threads() - 1), add, add);
            done.into_inner()
        };
        let threads = count();
        // SAFETY: the child does nothing that waits for threads of the parent, and ends without what the test's end would do.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above. It must not wait for ever.
            unsafe {
                libc::alarm(20);
                libc::_exit(if count() == threads { 0 } else { 1 });
            }
        }
        let mut status = 1;
        // SAFETY: the place is good.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "14: it waited for ever; 256: it had other threads");
        assert_eq!(count(), threads);
    }

    #[test]
    fn a_panic_on_one_of_them_is_told() {
        let first = AtomicUsize::new(0);
        let share = || assert!(first.fetch_add(1, Ordering::Relaxed) != 0, "this is part of the test");
        assert_eq!(on_host_threads(share), Err("this is part of the test".to_owned()));
        assert_eq!(on_host_threads(|| ()), Ok(()));
    }
}
