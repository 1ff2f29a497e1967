//! `PTXVM_DEBUG=socket`: a debugger in another process leads the launches that the filter admits, one at a time
//! (`ptxvm exec --debug`).

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use debugger::remote::{Remote, VARIABLE};
use ptxvm::{Error, Launch, LaunchFilter, LaunchReport};

use crate::lock;
use crate::log::log;

/// A debugger, and which launches it leads.
struct Debugger {
    path: OsString,
    filter: LaunchFilter,
    /// Connected with the first of them.
    remote: Mutex<Option<Remote>>,
}

fn debugger() -> Option<&'static Debugger> {
    static DEBUGGER: OnceLock<Option<Debugger>> = OnceLock::new();
    let made = DEBUGGER.get_or_init(|| {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        Some(Debugger { path, filter: crate::tool::launch_filter(), remote: Mutex::default() })
    });
    made.as_ref()
}

/// Runs a launch, under the debugger if there is one that wants it.
///
/// # Errors
/// As [`Launch::run`].
pub fn run(kernel: &str, launch: Launch) -> Result<LaunchReport, Error> {
    let Some(debugger) = debugger().filter(|debugger| debugger.filter.admits(kernel)) else {
        return launch.run();
    };
    let mut remote = lock(&debugger.remote);
    if remote.is_none() {
        match Remote::connect(Path::new(&debugger.path)) {
            Ok(connected) => *remote = Some(connected),
            Err(error) => log!(error, "{VARIABLE}: no debugger at `{}`: {error}", debugger.path.display()),
        }
    }
    match &mut *remote {
        Some(remote) => remote.run(launch),
        None => launch.run(),
    }
}
