//! `PTXVM_TOOL=initcheck`: which bytes of device memory the program, or a kernel, has written.
//!
//! All launches of the process share this state. The host's accesses to memory that has one address for host and device cannot be
//! observed: a page of such memory (`host_pages.rs`) counts as written once it has been touched.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use ptxvm::{FindingKind, GlobalMemory, Tool, is_padding};

use crate::copy::Place;
use crate::lock;
use crate::log::log;
use crate::memory::Kind;

static MEMORY: LazyLock<Arc<Mutex<GlobalMemory>>> = LazyLock::new(Arc::default);

/// The names of allocations, by address.
static NAMES: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());

/// Whether the environment enables initcheck.
pub fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| crate::tool::tools().has(Tool::Initcheck))
}

/// The state of device memory, for the checkers of launches.
pub fn memory() -> Arc<Mutex<GlobalMemory>> {
    Arc::clone(&MEMORY)
}

/// Applies `f` to the state, if initcheck is on.
fn with(f: impl FnOnce(&mut GlobalMemory)) {
    if is_wanted() {
        f(&mut lock(&MEMORY));
    }
}

/// New memory has been allocated.
pub fn allocated(base: u64, bytes: u64, kind: Kind) {
    let is_new = match kind {
        Kind::Device | Kind::Pool | Kind::Mapped => true,
        Kind::Managed | Kind::Host(_) => crate::host_pages::is_watched(base),
        _ => false,
    };
    if is_new {
        with(|memory| memory.allocate(base, bytes));
    }
}

/// Marks the pages that the host has touched as written. Must be called before the state is queried.
pub fn look_at_host() {
    with(|memory| {
        crate::host_pages::each_touched(|start, bytes| memory.write(start, bytes));
    });
}

/// An allocation has a name.
pub fn named(base: u64, name: &str) {
    if is_wanted() {
        lock(&NAMES).insert(base, name.to_owned());
    }
}

/// Memory is freed.
pub fn freed(base: u64) {
    report_unused(base);
    with(|memory| memory.free(base));
}

/// `PTXVM_TRACK_UNUSED_MEMORY=1`: reports allocations with unwritten bytes when they are freed, or when the process ends.
pub fn tracks_unused() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    let asks = || std::env::var("PTXVM_TRACK_UNUSED_MEMORY").is_ok_and(|value| !matches!(&*value, "" | "0"));
    is_wanted() && *WANTED.get_or_init(asks)
}

/// Reports the unwritten bytes of an allocation, if requested: compute-sanitizer's `--track-unused-memory`.
fn report_unused(base: u64) {
    if !tracks_unused()
        || crate::process::is_forked()
        || crate::tool::suppressions().has_kind(FindingKind::UnusedMemory)
    {
        return;
    }
    look_at_host();
    let Some((count, first)) = lock(&MEMORY).never_written(base) else { return };
    let (names, offset) = (lock(&NAMES), first - base);
    // An allocation of a kernel has no name.
    let Some(name) = names.get(&base) else { return };
    let code = FindingKind::UnusedMemory.code();
    let message = format!(
        "warning[{code}]: nobody has written {count} bytes of {name}: the first is {offset} bytes into it"
    );
    log!(error, "{message}");
    crate::report::found_by_host(FindingKind::UnusedMemory, &message);
}

/// The process ends: reports the allocations that have not been freed, too.
pub fn end() {
    if tracks_unused() {
        let bases: Vec<u64> = lock(&MEMORY).bases().collect();
        bases.into_iter().for_each(report_unused);
    }
}

/// The program writes to memory.
pub fn written(address: u64, bytes: u64) {
    with(|memory| memory.write(address, bytes));
}

/// Bytes are about to be copied, for a call from `by`.
pub fn copied(
    (to, to_offset): (&Place, u64),
    (from, from_offset): (&Place, u64),
    bytes: u64,
    by: Option<&str>,
) {
    if !is_wanted() {
        return;
    }
    match (to, from) {
        (Place::Device(to), Place::Device(from)) => {
            with(|memory| memory.copy(from + from_offset, to + to_offset, bytes));
        }
        (Place::Device(to), Place::Host(from)) => {
            look_at_host();
            with(|memory| memory.copy(from + from_offset, to + to_offset, bytes));
        }
        (Place::Device(to), Place::Bytes(_)) => written(to + to_offset, bytes),
        (Place::Host(_), Place::Device(from)) => delivered(from + from_offset, bytes, by),
        _ => {}
    }
}

/// At most this many runs of unwritten bytes are examined: in an array of structures, each element may have padding.
const MOST_RUNS: usize = 100_000;

/// The host receives bytes of the device. Reports unwritten ones once per call site, except for what looks like padding.
fn delivered(from: u64, bytes: u64, by: Option<&str>) {
    static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let end = from + bytes;
    let (mut first, mut count, mut at) = (None, 0, from);
    for _ in 0..MOST_RUNS {
        let Some((start, next)) = lock(&MEMORY).next_unwritten(at, end) else { break };
        if !is_padding(start, next, start > from) {
            count += next - start;
            first = first.or(Some(start));
        }
        at = next;
    }
    let Some(first) =
        first.filter(|_| !crate::tool::suppressions().has_kind(FindingKind::UninitializedMemcpy))
    else {
        return;
    };
    let allocation = crate::driver::driver().ok().and_then(|driver| driver.allocations.find(first));
    let place = allocation.map_or_else(String::new, |allocation| {
        let names = lock(&NAMES);
        let name = names.get(&allocation.base).map_or("an allocation", String::as_str);
        let offset = first - allocation.base;
        format!(" is {offset} bytes into {name}, {} bytes at {:#x}", allocation.bytes, allocation.base)
    });
    let by = by.map_or_else(String::new, |by| format!(", called by {by},"));
    let code = FindingKind::UninitializedMemcpy.code();
    let message = format!(
        "error[{code}]: a copy to the host of {bytes} bytes{by} has {count} that nobody wrote: the first{place}"
    );
    let key = if by.is_empty() { message.clone() } else { by };
    if lock(&TOLD).get_or_insert_default().insert(key) {
        log!(error, "{message}");
        crate::report::found_by_host(FindingKind::UninitializedMemcpy, &message);
    }
}
