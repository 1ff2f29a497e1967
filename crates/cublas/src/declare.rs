//! How functions on matrices are declared: once, for the types of numbers, for both widths of integers, for the documentation.

use std::ffi::c_void;

/// A pointer or a handle of the program.
pub type Ptr = *mut c_void;

/// Makes arguments of both widths of integers the same.
pub trait Widen {
    /// The type that the library uses.
    type To;
    /// The value.
    fn widen(self) -> Self::To;
}

macro_rules! widen {
    ($($from:ty => $to:ty),*) => { $(
        impl Widen for $from {
            type To = $to;
            fn widen(self) -> $to {
                self.into()
            }
        }
    )* };
}
widen!(i32 => i64, i64 => i64, u32 => u32, Ptr => Ptr, usize => usize);

/// Declares functions: a summary, the rest of the name, for each type of numbers how the name begins, and arguments behind the handle.
/// Each is exported twice: with `int` for `Int`, and as `NAME_64` with `int64_t`, unless `narrow` says that there is no such function.
/// The body, which both share, knows the call, and the type of numbers as `T`; `Int` is `i64` there.
macro_rules! routines {
    ($table:ident: $(
        #[doc = $summary:literal]
        $rest:literal [$($letter:literal $ty:ty),* $(; $narrow:ident)?] $args:tt |$call:ident| $body:block
    )*) => {
        /// The functions of this file.
        pub(crate) static $table: &[&[&[mathlib::Function]]] = &[$(
            $crate::declare::family!($summary, $rest, [$($letter $ty),* $(; $narrow)?], $args, $call, $body),
        )*];
    };
}

/// The functions of one entry of `routines!`.
macro_rules! family {
    ($summary:literal, $rest:literal, [$($letter:literal $ty:ty),* $(; $narrow:ident)?], $args:tt, $call:ident, $body:block) => {
        $crate::declare::family!(@ $summary, $rest, [$($letter $ty),*], [$($narrow)?], $args, $call, $body)
    };
    (@ $summary:literal, $rest:literal, [$($letter:literal $ty:ty),*], $narrow:tt, $args:tt, $call:ident, $body:block) => {
        &[$($crate::declare::pair!($summary, $letter, $rest, $narrow, $ty, $args, $call, $body)),*]
    };
}

/// The symbols of one type of numbers.
macro_rules! pair {
    ($summary:literal, $letter:literal, $rest:literal, $narrow:tt, $ty:ty,
        ($($arg:ident: $of:ident),* $(,)?), $call:ident, $body:block) => {{
        #[allow(dead_code)]
        type T = $ty;
        #[allow(dead_code)]
        type Int = i64;
        #[allow(clippy::too_many_arguments, reason = "the manual's")]
        fn work($call: $crate::call::Call, $($arg: $of),*) -> Result<(), $crate::status::Status> $body
        $crate::declare::symbols!($summary, $letter, $rest, $narrow, work, ($($arg: $of),*))
    }};
}

/// Both symbols, or the one.
macro_rules! symbols {
    ($summary:literal, $letter:literal, $rest:literal, [narrow], $work:ident, $args:tt) => {
        &[$crate::declare::symbol!($summary, $letter, $rest, "", i32, false, $work, $args)]
    };
    ($summary:literal, $letter:literal, $rest:literal, [], $work:ident, $args:tt) => {
        &[
            $crate::declare::symbol!($summary, $letter, $rest, "", i32, false, $work, $args),
            $crate::declare::symbol!($summary, $letter, $rest, "_64", i64, true, $work, $args),
        ]
    };
}

/// One exported symbol.
macro_rules! symbol {
    ($summary:literal, $letter:literal, $rest:literal, $width:literal, $int:ty, $is_wide:literal, $work:ident,
        ($($arg:ident: $of:ident),*)) => {{
        #[allow(dead_code)]
        type Int = $int;
        #[unsafe(export_name = concat!("cublas", $letter, $rest, $width))]
        extern "C" fn function(handle: $crate::declare::Ptr, $($arg: $of),*) -> $crate::status::Status {
            const NAME: &str = concat!("cublas", $letter, $rest, $width);
            mathlib::api::call(NAME, || {
                let call = $crate::call::Call::begin(NAME, handle, $is_wide)?;
                $work(call, $($crate::declare::Widen::widen($arg)),*)
            })
        }
        mathlib::Function {
            symbol: concat!("cublas", $letter, $rest, $width),
            supported: true,
            summary: $summary,
        }
    }};
}

pub(crate) use {family, pair, routines, symbol, symbols};
