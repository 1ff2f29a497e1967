//! Names of native code for `perf` (Linux, tools/perf/Documentation/jit-interface.txt): a line for each loop in the file
//! that `perf report` looks for.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, Mutex};

/// The environment variable that asks for the file.
const VARIABLE: &str = "PTXVM_PERF";

/// Adds code to the file, if there is one. A file that cannot be written is left alone: it changes no result.
pub(super) fn note(name: &str, code: &[u8]) {
    static FILE: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
        let asked = std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0");
        let path = || format!("/tmp/perf-{}.map", std::process::id());
        asked.then(|| OpenOptions::new().create_new(true).append(true).open(path()).ok())?.map(Mutex::new)
    });
    if let Some(file) = &*FILE
        && let Ok(mut file) = file.lock()
    {
        let _ = writeln!(file, "{:x} {:x} ptxvm {name}", code.as_ptr().addr(), code.len());
    }
}
