//! How the runtime's functions are declared: once, for the symbols that both libraries export and for the documentation.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{self, Error};
use caller::log;

/// A function of the runtime.
pub struct Function {
    /// Its path in this crate. The libraries export a jump to it.
    pub module: &'static str,
    /// Its name in this crate.
    pub name: &'static str,
    /// The major versions that have it, each with its exported symbol.
    pub symbols: &'static [(u32, &'static str)],
    /// Whether it does what the manual says. Otherwise it returns `cudaErrorNotSupported`.
    pub supported: bool,
    /// What it does, in one line.
    pub summary: &'static str,
}

/// Which default stream a null handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// The stream that waits for all blocking streams, as they wait for it.
    Legacy,
    /// A stream per thread: functions whose symbol ends in `_ptsz` or `_ptds`.
    PerThread,
}

/// The handle of a thread's default stream (`cudaStreamPerThread`).
const PER_THREAD: usize = 2;

impl Default {
    /// The stream that a handle names.
    pub fn of(self, stream: crate::Handle) -> crate::Handle {
        match self {
            Default::PerThread if stream.is_null() => std::ptr::without_provenance_mut(PER_THREAD),
            _ => stream,
        }
    }
}

/// Runs the body of an API function. No panic of ours reaches the program; a failure becomes the thread's last error.
pub(crate) fn call(name: &'static str, work: impl FnOnce() -> Result<(), Error>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        log!(error, "{name}: ptxvm itself failed, which is a defect of it");
        Err(Error::UNKNOWN)
    });
    match result {
        Ok(()) => {
            log!(trace, "{name}");
            0
        }
        Err(error) => {
            log!(info, "{name}: {}", error.name());
            error::remember(error);
            error.0 as c_int
        }
    }
}

/// The body of an unsupported function.
pub(crate) fn unsupported(name: &str, told: &AtomicBool) -> c_int {
    if !told.swap(true, Ordering::Relaxed) {
        log!(warn, "{name} is not supported");
    }
    error::remember(Error::NOT_SUPPORTED);
    Error::NOT_SUPPORTED.0 as c_int
}

/// Declares functions, each with a summary line. After a `/` comes the variant with per-thread default streams; `$default` is bound to the
/// default stream of the called variant. Brackets list the major versions that have the function (without brackets: both), and `as` gives
/// its symbol there. `=>` instead of a body names a function of the driver and its arguments: it is called in the current context, which
/// is made first if there is none. Functions that return no error are declared with `fn`.
macro_rules! api {
    ($table:ident: $($rest:tt)*) => {
        $crate::api::declare! { $table [] $($rest)* }
    };
}

/// Takes the functions of `api!` one by one, and collects their table entries.
macro_rules! declare {
    ($table:ident [$($entry:expr;)*]) => {
        /// The functions of this file.
        pub(crate) static $table: &[$crate::api::Function] = &[$($entry,)*];
    };
    ($table:ident [$($entry:expr;)*]
        #[doc = $summary:literal]
        fn $name:ident ($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $body:block
        $($rest:tt)*
    ) => {
        #[doc = $summary]
        ///
        /// # Safety
        /// As in the manual.
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $result)? {
            // SAFETY: the caller's promise.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
        $crate::api::declare! { $table [$($entry;)* $crate::api::entry!($summary, $name, []);] $($rest)* }
    };
    ($table:ident [$($entry:expr;)*]
        #[doc = $summary:literal]
        $name:ident $(/ $per_thread:ident)? $([$($versions:tt)*])? ($($args:tt)*) $(|$default:ident|)?
        => $driver:ident($($argument:expr),*);
        $($rest:tt)*
    ) => {
        $crate::api::declare! { $table [$($entry;)*]
            #[doc = $summary]
            $name $(/ $per_thread)? $([$($versions)*])? ($($args)*) $(|$default|)? {
                $crate::context::enter()?;
                $crate::driver::cu!($driver($($argument),*))
            }
            $($rest)*
        }
    };
    ($table:ident [$($entry:expr;)*]
        #[doc = $summary:literal]
        $name:ident $([$($major:literal $(as $symbol:ident)?),*])? ($($arg:ident: $ty:ty),* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $crate::api::function!($summary, $name, ($($arg: $ty),*), $body);
        $crate::api::declare! { $table
            [$($entry;)* $crate::api::entry!($summary, $name, [$($($major $($symbol)?,)*)?]);] $($rest)*
        }
    };
    ($table:ident [$($entry:expr;)*]
        #[doc = $summary:literal]
        $name:ident / $per_thread:ident $([$($major:literal $(as $symbol:ident / $other:ident)?),*])?
        ($($arg:ident: $ty:ty),* $(,)?) |$default:ident| $body:block
        $($rest:tt)*
    ) => {
        $crate::api::function!($summary, $name, ($($arg: $ty),*), { let $default = $crate::api::Default::Legacy; $body });
        $crate::api::function!($summary, $per_thread, ($($arg: $ty),*), { let $default = $crate::api::Default::PerThread; $body });
        $crate::api::declare! { $table [
            $($entry;)*
            $crate::api::entry!($summary, $name, [$($($major $($symbol)?,)*)?]);
            $crate::api::entry!($summary, $per_thread, [$($($major $($other)?,)*)?]);
        ] $($rest)* }
    };
}

/// A function that returns an error, or 0.
macro_rules! function {
    ($summary:literal, $name:ident, ($($arg:ident: $ty:ty),*), $body:block) => {
        #[doc = $summary]
        ///
        /// # Safety
        /// As in the manual.
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> std::ffi::c_int {
            $crate::api::call(stringify!($name), || {
                // SAFETY: the caller meets the manual's requirements for this function, and the body uses its pointers accordingly.
                #[allow(unused_unsafe)]
                unsafe { $body }
            })
        }
    };
}

/// The table entry of a function.
macro_rules! entry {
    ($summary:literal, $name:ident, [$($major:literal $($symbol:ident)?,)*]) => {
        $crate::api::Function {
            module: module_path!(),
            name: stringify!($name),
            symbols: $crate::api::symbols!($name [$($major $($symbol)?,)*]),
            supported: true,
            summary: $summary,
        }
    };
}

/// The versions that have a function, each with its symbol.
macro_rules! symbols {
    ($name:ident []) => { &[(12, stringify!($name)), (13, stringify!($name))] };
    ($name:ident [$($major:literal $($symbol:ident)?,)*]) => {
        &[$(($major, $crate::api::symbol!($name $($symbol)?)),)*]
    };
}

macro_rules! symbol {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $symbol:ident) => {
        stringify!($symbol)
    };
}

/// Declares functions that only report that they are not supported. They ignore their arguments, which C's calling convention allows.
macro_rules! not_supported {
    ($table:ident: $($name:ident $([$($major:literal),*])?)*) => {
        $(
            /// Not supported.
            ///
            /// # Safety
            /// None is needed.
            #[allow(non_snake_case)]
            pub unsafe extern "C" fn $name() -> std::ffi::c_int {
                static TOLD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
                $crate::api::unsupported(stringify!($name), &TOLD)
            }
        )*
        /// The functions that are not supported.
        pub(crate) static $table: &[$crate::api::Function] = &[$($crate::api::Function {
            supported: false,
            ..$crate::api::entry!("", $name, [$($($major,)*)?])
        },)*];
    };
}

pub(crate) use {api, declare, entry, function, not_supported, symbol, symbols};

/// All functions.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    crate::TABLES.iter().flat_map(|table| table.iter())
}
