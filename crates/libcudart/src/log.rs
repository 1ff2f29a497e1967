//! What the runtime tells on stderr. `PTXVM_LOG` says how much, as for the driver.

use std::io::Write;
use std::sync::OnceLock;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What stands in the way of everything else, and defects of the runtime itself.
    Error,
    /// What the program asked for and does not get.
    Warn,
    /// Every call that fails.
    Info,
    /// Every call.
    Trace,
}

/// The level that was asked for.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match std::env::var("PTXVM_LOG").as_deref() {
        Ok("trace") => Level::Trace,
        Ok("info") => Level::Info,
        Ok("warn") => Level::Warn,
        _ => Level::Error,
    })
}

/// Writes a line to stderr; where that is closed there is nobody to tell.
pub fn say(level_of_message: Level, message: std::fmt::Arguments<'_>) {
    if level() >= level_of_message {
        let _ = writeln!(std::io::stderr().lock(), "ptxvm: {message}");
    }
}

/// Tells something if the level asks for it.
macro_rules! log {
    (error, $($message:tt)*) => { $crate::log::say($crate::log::Level::Error, format_args!($($message)*)) };
    (warn, $($message:tt)*) => { $crate::log::say($crate::log::Level::Warn, format_args!($($message)*)) };
    (info, $($message:tt)*) => { $crate::log::say($crate::log::Level::Info, format_args!($($message)*)) };
    (trace, $($message:tt)*) => { $crate::log::say($crate::log::Level::Trace, format_args!($($message)*)) };
}
pub(crate) use log;
