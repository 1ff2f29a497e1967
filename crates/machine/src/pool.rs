//! The host threads that run blocks: the calling thread, and the threads of a pool that all launches of the process share.
//!
//! A forked child makes its own pool, since the threads of its parent's pool do not exist there. If the host has no
//! more threads, launches use fewer, down to one.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::panics::caught;

/// The pool of a process.
struct Pool {
    /// The process id. A forked child inherits its parent's pool without its threads, and would wait for them forever.
    process: u32,
    /// `None` if the host had no threads for it.
    threads: Option<ThreadPool>,
}

/// The latest pool. A pool is never freed, since a launch may be using it.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(null_mut());

/// The default number of host threads of a launch: `RAYON_NUM_THREADS`, or one for each core. On a thread of another
/// rayon pool, the size of that pool.
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

/// The pool of this process, created on first use.
fn pool() -> Option<&'static ThreadPool> {
    // wasm32-unknown-unknown has no processes.
    let process = if cfg!(unix) { std::process::id() } else { 0 };
    let last = POOL.load(Ordering::Acquire);
    // SAFETY: null, or a pool, which is never freed.
    if let Some(pool) = unsafe { last.as_ref() }.filter(|pool| pool.process == process) {
        return pool.threads.as_ref();
    }
    // No lock: a lock that some thread holds during a fork stays locked in the child forever.
    let threads = ThreadPoolBuilder::new().num_threads(host_threads()).build().ok();
    let made = Box::into_raw(Box::new(Pool { process, threads }));
    let pool = match POOL.compare_exchange(last, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(others) => {
            // Another thread has made a pool at the same time.
            // SAFETY: `made` is the box from above, which no other thread has seen.
            drop(unsafe { Box::from_raw(made) });
            others
        }
    };
    // SAFETY: a pool, which is never freed.
    unsafe { &*pool }.threads.as_ref()
}

/// Runs `own` on this thread and `share` on `others` other threads, or on fewer if the host has no more.
pub fn beside(others: usize, share: impl Fn() + Sync, own: impl FnOnce()) {
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

/// Runs `share` on the default number of host threads, including this one. Returns when all have finished.
///
/// # Errors
/// The message of a panic, if one of them panicked.
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

    // QEMU, which runs the tests for other processors, cannot start a thread in a forked child of a multithreaded program.
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
        // SAFETY: the child does nothing that waits for threads of the parent, and exits without the test's cleanup.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above. The alarm keeps the child from waiting forever.
            unsafe {
                libc::alarm(20);
                libc::_exit(if count() == threads { 0 } else { 1 });
            }
        }
        let mut status = 1;
        // SAFETY: `status` is valid for the write.
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
