//! What the process did, as JSON, written when it ends to the file that `PTXVM_REPORT` names (`%p` in the name is the number of the process):
//! `ptxvm exec` asks for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::config::Config;
use crate::log::log;

/// What the report says of a kernel.
#[derive(Default)]
struct Kernel {
    launches: u64,
    time: Duration,
}

/// What is known so far.
#[derive(Default)]
struct Known {
    kernels: BTreeMap<String, Kernel>,
    faults: Vec<(String, String)>,
    /// Faults, and what tools found and call an error.
    errors: u64,
    unsupported: Vec<String>,
}

/// The calls of the program so far, and how long they took together.
static CALLS: AtomicU64 = AtomicU64::new(0);
static CALL_NANOSECONDS: AtomicU64 = AtomicU64::new(0);

/// A call of a function of the driver, whose end is noted if a report is wanted.
pub struct Call(Option<Instant>);

impl Call {
    /// It begins.
    pub fn begin() -> Call {
        Call(path().map(|_| Instant::now()))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(start) = self.0 {
            let time = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            CALLS.fetch_add(1, Ordering::Relaxed);
            CALL_NANOSECONDS.fetch_add(time, Ordering::Relaxed);
        }
    }
}

/// More faults are counted, and not kept.
const MOST_FAULTS: usize = 100;

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn known() -> MutexGuard<'static, Option<Known>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the report goes, if one is wanted.
fn path() -> Option<&'static str> {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    let path = PATH.get_or_init(|| std::env::var("PTXVM_REPORT").ok().filter(|path| !path.is_empty()));
    path.as_deref()
}

/// Sees to it that the report is written when the process ends.
pub fn begin() {
    extern "C" fn at_exit() {
        // A panic must not leave a function of C.
        let told = vm::caught(|| {
            crate::leak::tell(None);
            crate::initialized::end();
            write();
        });
        if let Err(message) = told {
            log!(error, "ptxvm itself failed, which is a defect of it: the report is lost: {message}");
        }
    }
    if path().is_some() {
        *known() = Some(Known::default());
    }
    if path().is_some() || crate::leak::is_wanted() || crate::initialized::tracks_unused() {
        // SAFETY: it registers a function, which stays as long as this library does.
        unsafe { libc::atexit(at_exit) };
    }
}

fn write() {
    let (Some(path), Some(known)) = (path(), known().take()) else { return };
    // A child that was forked knows what its parent did, which the parent tells.
    if crate::process::is_forked() {
        return;
    }
    let path = path.replace("%p", &std::process::id().to_string());
    if let Err(error) = std::fs::write(&path, format!("{}\n", render(&known))) {
        log!(error, "cannot write the report `{path}`: {error}");
    }
}

fn render(known: &Known) -> Value {
    let kernels = known.kernels.iter().map(|(name, kernel)| {
        json!({ "name": name, "launches": kernel.launches, "seconds": kernel.time.as_secs_f64() })
    });
    let faults = known.faults.iter().map(|(kernel, message)| json!({ "kernel": kernel, "message": message }));
    json!({
        "process": std::process::id(),
        "device": Config::get().name,
        "capability": Config::get().chip.capability,
        "calls": CALLS.load(Ordering::Relaxed),
        "call_seconds": Duration::from_nanos(CALL_NANOSECONDS.load(Ordering::Relaxed)).as_secs_f64(),
        "kernels": kernels.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
        "errors": known.errors,
        "not_supported": known.unsupported,
        "profiles": crate::profile::render(),
    })
}

/// Notes a launch that began at `start` and has ended.
pub fn launched(kernel: &str, start: Instant) {
    if path().is_some()
        && let Some(known) = known().as_mut()
    {
        let noted = match known.kernels.get_mut(kernel) {
            Some(noted) => noted,
            None => known.kernels.entry(kernel.to_owned()).or_default(),
        };
        noted.launches += 1;
        noted.time += start.elapsed();
    }
}

/// Notes what went wrong in a launch.
pub fn failed(kernel: &str, message: &str) {
    count_error();
    warned(kernel, message);
}

/// Notes that something is wrong.
pub fn count_error() {
    if let Some(known) = known().as_mut() {
        known.errors += 1;
    }
}

/// Notes what may be wrong in a launch.
pub fn warned(kernel: &str, message: &str) {
    if let Some(known) = known().as_mut()
        && known.faults.len() < MOST_FAULTS
    {
        known.faults.push((kernel.to_owned(), message.to_owned()));
    }
}

/// Notes that the program called a function that is not supported.
pub fn missed(function: &str) {
    if let Some(known) = known().as_mut() {
        known.unsupported.push(function.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_launches_by_kernel() {
        let mut known = Known::default();
        known.kernels.insert("f".to_owned(), Kernel { launches: 3, time: Duration::from_millis(1500) });
        known.faults.push(("f".to_owned(), "out of bounds".to_owned()));
        known.unsupported.push("cuNothing".to_owned());
        let report = render(&known);
        assert_eq!(report["kernels"], json!([{ "name": "f", "launches": 3, "seconds": 1.5 }]));
        assert_eq!(report["faults"], json!([{ "kernel": "f", "message": "out of bounds" }]));
        assert_eq!(report["not_supported"], json!(["cuNothing"]));
        assert_eq!(report["process"], std::process::id());
    }
}
