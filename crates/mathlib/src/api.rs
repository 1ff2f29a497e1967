//! How functions are declared: once, for the exported symbols and for the documentation.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use caller::log;

/// What the functions of a library return, a number of C.
pub trait Status: Copy + Debug + 'static {
    /// All went well.
    const SUCCESS: Self;
    /// The library failed, by a defect of its own.
    const INTERNAL_ERROR: Self;
    /// The library does not have what the program asks for.
    const NOT_SUPPORTED: Self;
}

/// Implements [`Status`] for a library's type of that name, and makes its values of the driver's errors. The library says which it has if
/// there is no driver, no memory, a wrong value, and for all else.
#[macro_export]
macro_rules! status {
    ($status:ident: $no_driver:ident, $no_memory:ident, $wrong:ident, $failed:ident) => {
        impl $crate::Status for $status {
            const SUCCESS: Self = $status::SUCCESS;
            const INTERNAL_ERROR: Self = $status::INTERNAL_ERROR;
            const NOT_SUPPORTED: Self = $status::NOT_SUPPORTED;
        }

        impl From<$crate::Error> for $status {
            fn from(error: $crate::Error) -> Self {
                match error {
                    $crate::Error::NOT_INITIALIZED => $status::$no_driver,
                    $crate::Error::OUT_OF_MEMORY => $status::$no_memory,
                    $crate::Error::INVALID_VALUE => $status::$wrong,
                    _ => $status::$failed,
                }
            }
        }
    };
}

/// A function of a library.
pub struct Function {
    /// The exported symbol.
    pub symbol: &'static str,
    /// Whether it does what the manual says. Otherwise it returns the library's code for what is not supported.
    pub supported: bool,
    /// What it does, in one line.
    pub summary: &'static str,
}

/// Runs the body of a function. No panic of ours reaches the program.
pub fn call<S: Status>(name: &str, work: impl FnOnce() -> Result<(), S>) -> S {
    ended(name, catch_unwind(AssertUnwindSafe(work)).ok())
}

/// What the program gets for a result, or for a panic. It is not part of [`call`], which is compiled for each function.
#[inline(never)]
fn ended<S: Status>(name: &str, result: Option<Result<(), S>>) -> S {
    match result {
        Some(Ok(())) => {
            log!(trace, "{name}");
            S::SUCCESS
        }
        None => {
            log!(error, "{name}: ptxvm itself failed, which is a defect of it");
            S::INTERNAL_ERROR
        }
        Some(Err(status)) => {
            log!(info, "{name}: {status:?}");
            status
        }
    }
}

/// The body of a function that the library does not have: it says its name once.
pub fn refuse<S: Status>(name: &str, told: &AtomicBool) -> S {
    if !told.swap(true, Ordering::Relaxed) {
        log!(error, "{name} is not supported");
    }
    S::NOT_SUPPORTED
}

/// Declares functions that return a status: a summary line, the symbols that mean the same, arguments and body.
///
/// `api! { TABLE: Status; ... }` makes `TABLE: &[&[Function]]`. The body gives `Result<(), Status>`, where `Status` implements
/// [`Status`](crate::Status). The body knows the called symbol as `$name`: `api! { TABLE: Status, name; ... }`.
#[macro_export]
macro_rules! api {
    ($table:ident: $status:ty, $name:ident; $(
        #[doc = $summary:literal]
        $($symbol:ident)+ ($($arg:ident: $ty:ty),* $(,)?) $body:block
    )*) => {
        /// The functions of this file.
        pub(crate) static $table: &[&[$crate::Function]] = &[$(
            $crate::each!($status, $name, $summary, [$($symbol)+], ($($arg: $ty),*), $body),
        )*];
    };
}

/// The symbols of one entry of [`api!`].
#[doc(hidden)]
#[macro_export]
macro_rules! each {
    ($status:ty, $name:ident, $summary:literal, [$($symbol:ident)+], $args:tt, $body:block) => {
        &[$($crate::one!($status, $name, $summary, $symbol, $args, $body)),+]
    };
}

/// One exported symbol.
#[doc(hidden)]
#[macro_export]
macro_rules! one {
    ($status:ty, $name:ident, $summary:literal, $symbol:ident, ($($arg:ident: $ty:ty),*), $body:block) => {{
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        extern "C" fn $symbol($($arg: $ty),*) -> $status {
            #[allow(unused_variables)]
            let $name: &'static str = stringify!($symbol);
            $crate::api::call(stringify!($symbol), || $body)
        }
        $crate::Function { symbol: stringify!($symbol), supported: true, summary: $summary }
    }};
}

/// Declares functions that the library does not have: they return [`Status::NOT_SUPPORTED`](crate::Status::NOT_SUPPORTED) and say their
/// names once on stderr. They ignore their arguments, which C's calling convention allows.
#[macro_export]
macro_rules! refused {
    ($table:ident: $status:ty; $($symbol:ident)*) => {
        /// The functions that the library does not have.
        pub(crate) static $table: &[&[$crate::Function]] = &[&[$({
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            extern "C" fn $symbol() -> $status {
                static TOLD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
                $crate::api::refuse(stringify!($symbol), &TOLD)
            }
            $crate::Function { symbol: stringify!($symbol), supported: false, summary: "" }
        }),*]];
    };
}
