//! Messages on stderr. `PTXVM_LOG` sets the level, as for the driver.

use std::io::Write;

/// Writes a line to stderr if `PTXVM_LOG` is one of these levels. If stderr is closed, the line is lost.
pub fn say(levels: &[&str], message: std::fmt::Arguments<'_>) {
    if std::env::var("PTXVM_LOG").is_ok_and(|level| levels.contains(&&*level)) {
        tell(message);
    }
}

/// Writes a line to stderr at any level.
pub fn tell(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "ptxvm: {message}");
}
