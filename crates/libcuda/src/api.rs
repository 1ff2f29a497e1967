//! How the driver's functions are declared: once, for the exported symbol, for `cuGetProcAddress` and for the documentation.
//!
//! `cuGetProcAddress` (`proc.rs`) and docs/libcuda.md (`tests/page.rs`) use these declarations; `unsupported.rs` lists the functions that
//! only fail. Types are those of cudarc, except that an enumeration from a program is read as a number, because it may have any value,
//! and that pointers to results, values, arrays of them and strings are `Out`, `InOut`, `In` and `Text` (`pointers.rs`), which check for
//! null and need no `unsafe`, also within structures. So bodies are safe code. An operation that needs another promise of the program has
//! its own `unsafe` block, which names it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Status;
use crate::log::log;

/// A function of the driver API, in one of its versions.
pub struct Function {
    /// The name in the manual, without a version: the argument of `cuGetProcAddress`.
    pub name: &'static str,
    /// The CUDA version that introduced this version of the function: 11020 is 11.2.
    pub since: i32,
    /// The exported symbol.
    pub symbol: &'static str,
    /// Whether it is the variant with per-thread default streams (`_ptsz`, `_ptds`).
    pub per_thread: bool,
    /// Whether it does what the manual says. Otherwise it returns `CUDA_ERROR_NOT_SUPPORTED`.
    pub supported: bool,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The address of its code.
    pub address: Address,
}

/// The address of a function.
pub struct Address(pub *const ());

// SAFETY: code is never written.
unsafe impl Sync for Address {}

/// Runs the body of an API function. No panic of ours reaches the program, and after a fork nothing runs.
pub(crate) fn call(name: &'static str, work: impl FnOnce() -> Result<(), Status>) -> Status {
    if crate::process::is_forked() {
        log!(warn_once, "this process was forked after the driver was used: start a new one instead");
        return Status::CUDA_ERROR_NOT_INITIALIZED;
    }
    let _noted = crate::report::Call::begin();
    let result = machine::caught(work).unwrap_or_else(|message| {
        let message = format!("{name}: ptxvm itself failed, which is a defect of it: {message}");
        log!(error, "{message}");
        crate::report::failed(name, &message);
        Err(Status::CUDA_ERROR_UNKNOWN)
    });
    match result {
        Ok(()) => {
            log!(trace, "{name}");
            Status::CUDA_SUCCESS
        }
        Err(status) => {
            log!(info, "{name}: {status:?}");
            status
        }
    }
}

/// The body of an unsupported function.
pub(crate) fn unsupported(name: &str, reported: &AtomicBool) -> Status {
    if !reported.swap(true, Ordering::Relaxed) {
        log!(warn, "{name} is not supported");
        crate::report::missed(name);
    }
    Status::CUDA_ERROR_NOT_SUPPORTED
}

/// Declares functions. Each has a summary line, its name, and for each version that does the same the CUDA version that introduced it, and
/// its symbol. After a `/` comes the symbol of the variant with per-thread default streams; `$stream` is bound to the default stream of the
/// called variant.
macro_rules! api {
    ($table:ident: $(
        #[doc = $summary:literal]
        $name:ident $($since:literal $symbol:literal $(/ $per_thread_since:literal $per_thread:literal)?),+
        ($($args:tt)*) $(|$stream:ident|)? $body:block
    )*) => {
        /// The functions of this file.
        pub(crate) static $table: &[&[$crate::api::Function]] = &[$($crate::api::versions!(
            $summary, $name, [$($since $symbol $(/ $per_thread_since $per_thread)?),+], ($($args)*), ($($stream)?), $body
        ),)*];
    };
}

/// The versions of one function of `api!`, in both variants if they have two.
macro_rules! versions {
    ($summary:literal, $name:ident, [$($since:literal $symbol:literal $(/ $per_thread_since:literal $per_thread:literal)?),+],
     $args:tt, $stream:tt, $body:block) => {
        &[$(
            $crate::api::variant!($summary, $name, $since, $symbol, false, $args, $stream, Legacy, $body),
            $($crate::api::variant!(
                $summary, $name, $per_thread_since, $per_thread, true, $args, $stream, PerThread, $body
            ),)?
        )+]
    };
}

/// One exported symbol.
macro_rules! variant {
    ($summary:literal, $name:ident, $since:literal, $symbol:literal, $is_per_thread:literal,
     ($($arg:ident: $ty:ty),* $(,)?), ($($stream:ident)?), $default:ident, $body:block) => {{
        #[unsafe(export_name = $symbol)]
        unsafe extern "C" fn exported($($arg: $ty),*) -> $crate::Status {
            $crate::api::call(stringify!($name), || {
                $(let $stream = $crate::stream::Default::$default;)?
                $body
            })
        }
        $crate::api::Function {
            name: stringify!($name),
            since: $since,
            symbol: $symbol,
            per_thread: $is_per_thread,
            supported: true,
            summary: $summary,
            address: $crate::api::Address(exported as *const ()),
        }
    }};
}

/// Declares functions that only report that they are not supported.
macro_rules! not_supported {
    ($table:ident: $($name:ident $since:literal $symbol:literal $(/ $per_thread_since:literal $per_thread:literal)?)*) => {
        /// The functions that are not supported.
        pub(crate) static $table: &[&[$crate::api::Function]] = &[$(&[
            $crate::api::stub!($name, $since, $symbol, false),
            $($crate::api::stub!($name, $per_thread_since, $per_thread, true),)?
        ],)*];
    };
}

/// One symbol of `not_supported!`. It ignores its arguments, which C's calling convention allows.
macro_rules! stub {
    ($name:ident, $since:literal, $symbol:literal, $is_per_thread:literal) => {{
        #[unsafe(export_name = $symbol)]
        unsafe extern "C" fn exported() -> $crate::Status {
            static TOLD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
            $crate::api::unsupported($symbol, &TOLD)
        }
        $crate::api::Function {
            name: stringify!($name),
            since: $since,
            symbol: $symbol,
            per_thread: $is_per_thread,
            supported: false,
            summary: "",
            address: $crate::api::Address(exported as *const ()),
        }
    }};
}

pub(crate) use {api, not_supported, stub, variant, versions};

/// All functions, one table per file.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    let tables = crate::TABLES.iter().chain(crate::graph::API);
    tables.flat_map(|table| table.iter()).flat_map(|variants| variants.iter())
}
