//! Messages on stderr: `PTXVM_LOG=error|warn|info|trace`; only faults if it is not set.

use std::io::Write;
use std::sync::OnceLock;

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Reports of faults, what makes everything else fail, and defects of the library itself.
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
    *LEVEL.get_or_init(|| {
        let wanted = std::env::var("PTXVM_LOG").ok();
        wanted.and_then(|name| Level::of(&name)).unwrap_or(Level::Error)
    })
}

impl Level {
    /// The level with this name.
    pub fn of(name: &str) -> Option<Level> {
        Some(match name {
            "trace" => Level::Trace,
            "info" => Level::Info,
            "warn" => Level::Warn,
            "error" => Level::Error,
            _ => return None,
        })
    }
}

/// Writes a line to stderr. If stderr is closed, the line is lost.
pub fn say(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "ptxvm: {message}");
}

/// Prints a message if the level includes it.
#[macro_export]
macro_rules! log {
    (error, $($message:tt)*) => { $crate::log::say(format_args!($($message)*)) };
    (warn, $($message:tt)*) => { $crate::log!(@ Warn, $($message)*) };
    (info, $($message:tt)*) => { $crate::log!(@ Info, $($message)*) };
    (trace, $($message:tt)*) => { $crate::log!(@ Trace, $($message)*) };
    (warn_once, $($message:tt)*) => {{
        static TOLD: std::sync::Once = std::sync::Once::new();
        TOLD.call_once(|| $crate::log!(warn, $($message)*));
    }};
    (error_once, $($message:tt)*) => {{
        static TOLD: std::sync::Once = std::sync::Once::new();
        TOLD.call_once(|| $crate::log!(error, $($message)*));
    }};
    (@ $level:ident, $($message:tt)*) => {
        if $crate::log::level() >= $crate::log::Level::$level {
            $crate::log::say(format_args!($($message)*));
        }
    };
}
pub use crate::log;
