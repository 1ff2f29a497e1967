//! The report of a process that may end at any moment, by `_exit`, `abort` or a signal. A file beside the report holds all data so far;
//! it is removed when the report is written. `ptxvm exec` reads it (crates/command/src/exec/live.rs).
//!
//! The file begins with pairs of numbers (a count, and nanoseconds) in memory that the process shares with it: for all calls, for
//! errors, and for each kernel; between them, what is used of each device (`in_use.rs`). Lines of JSON follow, one object per event that
//! happens once. A kernel gets a line at its first launch; the pairs of kernels are in the order of these lines.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ptxvm::process_report::{CALLS, ERRORS, FIRST_DEVICE, FIRST_KERNEL, PAIRS};
use serde_json::Value;

/// What a pair counts.
#[derive(Clone, Copy)]
pub enum Pair {
    /// Calls of the driver.
    Calls,
    /// Faults, and tool findings that are errors.
    Errors,
    /// Launches of a kernel, by the order of first launches.
    Kernel(usize),
}

/// The file.
pub struct Live {
    path: PathBuf,
    file: File,
    pairs: &'static [[AtomicU64; 2]],
}

impl Live {
    /// Creates the file for the report at `path`.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn begin(path: &str) -> std::io::Result<Live> {
        let bytes = PAIRS * size_of::<[AtomicU64; 2]>();
        // A process may run another program later (`exec`), which uses another file.
        let mut number = 0;
        let (path, file) = loop {
            let path = PathBuf::from(format!("{path}.{number}.live"));
            match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                opened => break (path, opened?),
            }
        };
        // The lock ends with the process: so others know that it runs (crates/devices). Nobody else keeps it for long.
        let _ = file.lock();
        // Touching a page without space in the file would end the process, so the space is allocated now.
        // SAFETY: the descriptor is the file's.
        let mut error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let mut memory = libc::MAP_FAILED;
        if error == 0 {
            // SAFETY: it maps new pages of a file that is never truncated.
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
        // SAFETY: the pages have this size, hold zeros and stay mapped; this process accesses them only by these atomics.
        let pairs = unsafe { std::slice::from_raw_parts(memory.cast::<[AtomicU64; 2]>(), PAIRS) };
        Ok(Live { path, file, pairs })
    }

    /// Adds one to a count.
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

    /// What is used of the device with this number in the machine: bytes of memory, and contexts.
    pub fn uses(&self, number: u32) -> Option<&[AtomicU64; 2]> {
        self.pairs.get(FIRST_DEVICE + number as usize)
    }

    /// Adds a line. If that fails, the data is still in the report, if the process writes it.
    pub fn send(&self, what: &Value) {
        // One call, so that no other thread's line comes in between.
        let _ = (&self.file).write_all(format!("{what}\n").as_bytes());
    }

    /// Removes the file: the report has been written.
    pub fn end(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
