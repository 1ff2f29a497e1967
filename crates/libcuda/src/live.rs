//! The report of a process that may end at any moment, by `_exit`, `abort` or a signal: beside the report lies a file that has all of it so far, and goes
//! when the report is written. `ptxvm exec` reads it (crates/command/src/exec/live.rs).
//!
//! It begins with pairs of numbers, how often and how many nanoseconds, in memory that the process shares with the file: of all calls, of errors, and of each
//! kernel. Then come lines of JSON, an object each: what is told once. A kernel is one when it is first launched, so the pairs are in the order of these lines.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ptxvm::process_report::{CALLS, ERRORS, FIRST_KERNEL, PAIRS};
use serde_json::Value;

/// What a pair counts.
#[derive(Clone, Copy)]
pub enum Pair {
    /// Calls of the driver.
    Calls,
    /// Faults, and what tools found and call an error.
    Errors,
    /// Launches of the kernel that was the so-manieth to be launched first.
    Kernel(usize),
}

/// The file.
pub struct Live {
    path: PathBuf,
    file: File,
    pairs: &'static [[AtomicU64; 2]],
}

impl Live {
    /// A file for the report that goes to `path`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn begin(path: &str) -> std::io::Result<Live> {
        let bytes = PAIRS * size_of::<[AtomicU64; 2]>();
        // A process may be another program later, which begins anew.
        let mut number = 0;
        let (path, file) = loop {
            let path = PathBuf::from(format!("{path}.{number}.live"));
            match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                opened => break (path, opened?),
            }
        };
        // Pages that have no room in the file end the process when they are touched. So they have it now.
        // SAFETY: the descriptor is the file's.
        let mut error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let mut memory = libc::MAP_FAILED;
        if error == 0 {
            // SAFETY: it maps new pages, of a file that nobody makes shorter.
            memory = unsafe {
                libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
            };
            if memory == libc::MAP_FAILED {
                error = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOMEM);
            }
        }
        if error != 0 {
            let _ = std::fs::remove_file(&path);
            return Err(std::io::Error::from_raw_os_error(error));
        }
        // SAFETY: the pages are of this size, hold zeros, and stay for good; nobody touches them in this process but by these atomics.
        let pairs = unsafe { std::slice::from_raw_parts(memory.cast::<[AtomicU64; 2]>(), PAIRS) };
        Ok(Live { path, file, pairs })
    }

    /// Counts one more.
    pub fn count(&self, pair: Pair, time: Duration) {
        let index = match pair {
            Pair::Calls => CALLS,
            Pair::Errors => ERRORS,
            Pair::Kernel(number) => (FIRST_KERNEL + number).min(PAIRS - 1),
        };
        let [count, nanoseconds] = &self.pairs[index];
        count.fetch_add(1, Ordering::Relaxed);
        nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Adds a line. What cannot be written is in the report all the same, if the process comes to write it.
    pub fn tell(&self, what: &Value) {
        // At once, so that no other thread's line is between.
        let _ = (&self.file).write_all(format!("{what}\n").as_bytes());
    }

    /// The report is written.
    pub fn end(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
