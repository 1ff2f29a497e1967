//! The report: what the process did, as JSON. It is written when the process ends, to the file that `PTXVM_REPORT` names (`%p` in the
//! name is the process number). `ptxvm exec` requests it.
//!
//! It has launches, calls, times and faults. For a process that ends without running exit handlers, `live.rs` keeps the same data.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use ptxvm::process_report::MOST;
use ptxvm::{Color, Error, FindingKind, Located, Severity};
use serde_json::{Value, json};

use crate::config::Config;
use crate::live::{Live, Pair};
use crate::lock;
use crate::log::log;

/// The report's entry of a kernel.
#[derive(Default)]
struct Kernel {
    /// The number of kernels that were launched before its first launch.
    number: usize,
    launches: u64,
    time: Duration,
}

/// What the report has so far.
#[derive(Default)]
struct Known {
    kernels: BTreeMap<String, Kernel>,
    faults: Vec<Value>,
    findings: Vec<Value>,
    /// The number of faults, and of tool findings that are errors.
    errors: u64,
    unsupported: Vec<String>,
    /// Why modules were not loaded.
    refused: Vec<String>,
}

/// The number of calls of the program so far, and their total time.
static CALLS: AtomicU64 = AtomicU64::new(0);
static CALL_NANOSECONDS: AtomicU64 = AtomicU64::new(0);

/// A call of a driver function. Its end is recorded if a report is wanted.
pub struct Call(Option<Instant>);

impl Call {
    /// Starts a call.
    pub fn begin() -> Call {
        Call(path().map(|_| Instant::now()))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(start) = self.0 {
            let time = start.elapsed();
            CALLS.fetch_add(1, Ordering::Relaxed);
            CALL_NANOSECONDS.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            live(|live| live.count(Pair::Calls, time));
        }
    }
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

fn known() -> MutexGuard<'static, Option<Known>> {
    lock(&KNOWN)
}

/// The data that remains if the process does not write the report.
static LIVE: OnceLock<Live> = OnceLock::new();

fn live(notify: impl FnOnce(&Live)) {
    if let Some(live) = LIVE.get() {
        notify(live);
    }
}

/// Calls `change` with what the live report says of a device, by its number in the machine: bytes of memory in use, and contexts.
pub fn uses(number: u32, change: impl Fn(&[AtomicU64; 2])) {
    live(|live| live.uses(number).into_iter().for_each(change));
}

/// The path of the report, if one is wanted.
fn path() -> Option<&'static str> {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let path = std::env::var("PTXVM_REPORT").ok().filter(|path| !path.is_empty())?;
        Some(path.replace("%p", &std::process::id().to_string()))
    });
    path.as_deref()
}

/// Makes the process write the report when it ends.
pub fn begin() {
    extern "C" fn at_exit() {
        // A panic must not unwind into C.
        let ended = machine::caught(|| {
            crate::leak::report(None);
            crate::initialized::end();
            write();
        });
        if let Err(message) = ended {
            log!(error, "ptxvm itself failed, which is a defect of it: the report is lost: {message}");
        }
    }
    static BEGUN: std::sync::Once = std::sync::Once::new();
    BEGUN.call_once(|| {
        if let Some(path) = path() {
            *known() = Some(Known::default());
            match Live::begin(path) {
                Ok(live) => {
                    live.send(&of_process());
                    let _ = LIVE.set(live);
                }
                Err(error) => log!(error, "cannot write the report `{path}`: {error}"),
            }
        }
        if path().is_some() || crate::leak::is_wanted() || crate::initialized::tracks_unused() {
            // SAFETY: it registers a function that exists as long as this library.
            unsafe { libc::atexit(at_exit) };
        }
    });
}

fn write() {
    // A forked child has its parent's data, which the parent reports.
    if crate::process::is_forked() {
        return;
    }
    let (Some(path), Some(known)) = (path(), known().take()) else { return };
    match std::fs::write(path, format!("{}\n", render(&known))) {
        Ok(()) => live(Live::end),
        Err(error) => log!(error, "cannot write the report `{path}`: {error}"),
    }
}

/// The process and its device.
fn of_process() -> Value {
    let config = Config::get();
    json!({ "process": std::process::id(), "device": config.name, "capability": config.chip.capability })
}

fn render(known: &Known) -> Value {
    let kernels = known.kernels.iter().map(|(name, kernel)| {
        json!({ "name": name, "launches": kernel.launches, "seconds": kernel.time.as_secs_f64() })
    });
    let mut report = of_process();
    for (name, value) in [
        ("calls", CALLS.load(Ordering::Relaxed).into()),
        ("call_seconds", Duration::from_nanos(CALL_NANOSECONDS.load(Ordering::Relaxed)).as_secs_f64().into()),
        ("kernels", kernels.collect()),
        ("faults", known.faults.as_slice().into()),
        ("findings", known.findings.as_slice().into()),
        ("errors", known.errors.into()),
        ("not_supported", known.unsupported.as_slice().into()),
        ("not_loaded", known.refused.as_slice().into()),
        ("profiles", crate::profile::render()),
    ] {
        report[name] = value;
    }
    report
}

/// Records a launch that began at `start` and has ended.
pub fn launched(kernel: &str, start: Instant) {
    if path().is_some()
        && let Some(known) = known().as_mut()
    {
        let time = start.elapsed();
        let number = known.kernels.len();
        let noted = match known.kernels.get_mut(kernel) {
            Some(noted) => noted,
            None => {
                live(|live| live.send(&json!({ "kernel": kernel })));
                known.kernels.entry(kernel.to_owned()).or_insert(Kernel { number, ..Kernel::default() })
            }
        };
        noted.launches += 1;
        noted.time += time;
        live(|live| live.count(Pair::Kernel(noted.number), time));
    }
}

/// Adds an entry to a list of the report, and to the live file.
fn add<T: Clone + Into<Value>>(list: impl FnOnce(&mut Known) -> &mut Vec<T>, name: &str, what: T) {
    if let Some(known) = known().as_mut() {
        let list = list(known);
        if list.len() < MOST {
            live(|live| live.send(&json!({ name: what.clone().into() })));
            list.push(what);
        }
    }
}

/// Records a failure below a call or a launch.
pub fn failed(what: &str, message: &str) {
    count_error();
    add(|known| &mut known.faults, "fault", json!({ "kernel": what, "message": message }));
}

/// Records a fault in a launch, with the message that was printed.
pub fn faulted(kernel: &str, error: &Error, message: &str) {
    let mut noted = json!({ "kernel": kernel, "message": message });
    let source = match error {
        Error::Fault { source, fault } => {
            noted["fault"] = ptxvm::json::fault(source, fault);
            Some(source)
        }
        Error::Bad { source, .. } | Error::Undefined { source, .. } | Error::Unsupported { source, .. } => {
            Some(source)
        }
        _ => None,
    };
    if let Some((source, first)) = source.zip(error.diagnostics().first()) {
        let position = source.position(first.span.start);
        noted["code"] = first.code.name().into();
        noted["file"] = source.name().into();
        noted["line"] = position.line.into();
        noted["column"] = position.column.into();
    }
    count_error();
    add(|known| &mut known.faults, "fault", noted);
}

/// Records what a tool has found in a launch.
pub fn found(found: &Located) {
    if found.finding.kind.severity() == Severity::Error {
        count_error();
    }
    let mut noted = ptxvm::json::finding(found);
    noted["rendered"] = found.render(Color::Never).trim_end().into();
    add(|known| &mut known.findings, "finding", noted);
}

/// Records what a tool has found outside of launches, with its message.
pub fn found_by_host(kind: FindingKind, message: &str) {
    let severity = kind.severity();
    if severity == Severity::Error {
        count_error();
    }
    let noted = json!({
        "tool": kind.tool().name(), "code": kind.code(), "severity": severity.name(), "kernel": null,
        "message": message, "rendered": message,
    });
    add(|known| &mut known.findings, "finding", noted);
}

/// Counts an error.
fn count_error() {
    if let Some(known) = known().as_mut() {
        known.errors += 1;
        live(|live| live.count(Pair::Errors, Duration::ZERO));
    }
}

/// Records that the program called an unsupported function.
pub fn missed(function: &str) {
    add(|known| &mut known.unsupported, "not_supported", function.to_owned());
}

/// Records why a module was not loaded.
pub fn refused(message: &str) {
    add(|known| &mut known.refused, "not_loaded", message.trim_end().to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_launches_by_kernel() {
        let mut known = Known::default();
        known
            .kernels
            .insert("f".to_owned(), Kernel { number: 0, launches: 3, time: Duration::from_millis(1500) });
        known.faults.push(json!({ "kernel": "f", "message": "out of bounds" }));
        known.unsupported.push("cuNothing".to_owned());
        let report = render(&known);
        assert_eq!(report["kernels"], json!([{ "name": "f", "launches": 3, "seconds": 1.5 }]));
        assert_eq!(report["faults"], json!([{ "kernel": "f", "message": "out of bounds" }]));
        assert_eq!(report["not_supported"], json!(["cuNothing"]));
        assert_eq!(report["process"], std::process::id());
    }
}
