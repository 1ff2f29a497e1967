//! How functions are declared: once, for the exported symbols and for the documentation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::status::Status;
use caller::log;

/// A function of the library.
pub struct Function {
    /// The exported symbol.
    pub symbol: &'static str,
    /// Whether it answers. Otherwise it returns `NVML_ERROR_NOT_SUPPORTED` for every device.
    pub supported: bool,
    /// What it tells, in one line.
    pub summary: &'static str,
}

/// Runs the body of a function. No panic of ours reaches the program.
pub(crate) fn call(name: &str, work: impl FnOnce() -> Result<(), Status>) -> Status {
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        log!(error, "{name}: ptxvm itself failed, which is a defect of it");
        Err(Status::UNKNOWN)
    });
    match result {
        Ok(()) => Status::SUCCESS,
        Err(status) => {
            log!(info, "{name}: {status:?}");
            status
        }
    }
}

/// The body of a function that no device supports.
pub(crate) fn unsupported(name: &str, told: &AtomicBool) -> Status {
    if !told.swap(true, Ordering::Relaxed) {
        log!(warn, "{name} is not supported");
    }
    Status::NOT_SUPPORTED
}

/// Declares functions: a summary line, the symbols that mean the same, arguments and body.
macro_rules! api {
    ($table:ident: $(
        #[doc = $summary:literal]
        $($symbol:ident)+ ($($arg:ident: $ty:ty),* $(,)?) $body:block
    )*) => {
        /// The functions of this file.
        pub(crate) static $table: &[&[$crate::api::Function]] = &[$(
            $crate::api::each!($summary, [$($symbol)+], ($($arg: $ty),*), $body),
        )*];
    };
}

/// The symbols of one entry of `api!`.
macro_rules! each {
    ($summary:literal, [$($symbol:ident)+], $args:tt, $body:block) => {
        &[$($crate::api::one!($summary, $symbol, $args, $body)),+]
    };
}

/// One exported symbol.
macro_rules! one {
    ($summary:literal, $symbol:ident, ($($arg:ident: $ty:ty),*), $body:block) => {{
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        extern "C" fn $symbol($($arg: $ty),*) -> $crate::status::Status {
            $crate::api::call(stringify!($symbol), || $body)
        }
        $crate::api::Function { symbol: stringify!($symbol), supported: true, summary: $summary }
    }};
}

/// Declares functions that no device supports. They ignore their arguments, which C's calling convention allows.
macro_rules! not_supported {
    ($table:ident: $($symbol:ident)*) => {
        /// The functions that no device supports.
        pub(crate) static $table: &[&[$crate::api::Function]] = &[&[$({
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            extern "C" fn $symbol() -> $crate::status::Status {
                static TOLD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
                $crate::api::unsupported(stringify!($symbol), &TOLD)
            }
            $crate::api::Function { symbol: stringify!($symbol), supported: false, summary: "" }
        }),*]];
    };
}

pub(crate) use {api, each, not_supported, one};
