//! `PTXVM_TOOL=leakcheck`: reports driver memory that the program has not freed when its context or the process ends.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use ptxvm::{FindingKind, Tool, Tools};

use crate::lock;
use crate::log::log;
use crate::memory::Kind;

/// The call that made each allocation, by address.
static ORIGINS: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());

/// Whether the environment enables leakcheck.
pub fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    // `tool.rs` reports an invalid value of the variable.
    *WANTED.get_or_init(|| Tools::from_environment().is_ok_and(|tools| tools.has(Tool::Leakcheck)))
}

/// Records the origin of an allocation.
pub fn note(address: u64, origin: impl FnOnce() -> String) {
    if is_wanted() {
        lock(&ORIGINS).insert(address, origin());
    }
}

/// Reports all live allocations of a context, or of all contexts. The allocations of one call site are one finding.
pub fn report(context: Option<u64>) {
    let Ok(driver) = crate::driver::driver() else { return };
    if !is_wanted()
        || crate::process::is_forked()
        || crate::tool::suppressions().has_kind(FindingKind::DriverLeak)
    {
        return;
    }
    let origins = lock(&ORIGINS);
    let mut places: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for allocation in driver.allocations.live() {
        let asked_for = matches!(allocation.kind, Kind::Device | Kind::Pool | Kind::Managed | Kind::Host(_));
        if asked_for && context.is_none_or(|context| context == allocation.context) {
            let origin = origins.get(&allocation.base).map_or("", String::as_str);
            let (count, bytes) = places.entry(origin).or_default();
            (*count, *bytes) = (*count + 1, *bytes + allocation.bytes);
        }
    }
    for (origin, (count, bytes)) in places {
        let code = FindingKind::DriverLeak.code();
        let what = if count == 1 { "an allocation" } else { "allocations" };
        let many = if count == 1 { String::new() } else { format!("{count} ") };
        let message = format!("error[{code}]: {many}{what} of {bytes} bytes, never given back: {origin}");
        log!(error, "{message}");
        crate::report::found_by_host(FindingKind::DriverLeak, &message);
    }
}
