//! The runtime's messages on stderr. `PTXVM_LOG` sets the level, as for the driver.

use std::io::Write;
use std::sync::OnceLock;

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Problems that make everything else fail, and defects of the runtime itself.
    Error,
    /// Requests of the program that are not fulfilled.
    Warn,
    /// Every call that fails.
    Info,
    /// Every call.
    Trace,
}

/// The level that the environment sets.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match std::env::var("PTXVM_LOG").as_deref() {
        Ok("trace") => Level::Trace,
        Ok("info") => Level::Info,
        Ok("warn") => Level::Warn,
        _ => Level::Error,
    })
}

/// Writes a line to stderr if the level includes it. If stderr is closed, the line is lost.
pub fn say(level_of_message: Level, message: std::fmt::Arguments<'_>) {
    if level() >= level_of_message {
        let _ = writeln!(std::io::stderr().lock(), "ptxvm: {message}");
    }
}

/// Prints a message if the level includes it.
macro_rules! log {
    (error, $($message:tt)*) => { $crate::log::say($crate::log::Level::Error, format_args!($($message)*)) };
    (warn, $($message:tt)*) => { $crate::log::say($crate::log::Level::Warn, format_args!($($message)*)) };
    (info, $($message:tt)*) => { $crate::log::say($crate::log::Level::Info, format_args!($($message)*)) };
    (trace, $($message:tt)*) => { $crate::log::say($crate::log::Level::Trace, format_args!($($message)*)) };
}
pub(crate) use log;
