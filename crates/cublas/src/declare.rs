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
/// Each is exported twice: with `int` for `Int`, and as `NAME_64` with `int64_t`, unless `narrow` says
/// that there is no such function. The body knows the call, and the types as `T` and `Int`.
macro_rules! routines {
    ($table:ident: $(
        #[doc = $summary:literal]
        $rest:literal [$($letter:literal $ty:ty),* $(; $narrow:ident)?] $args:tt |$call:ident| $body:block
    )*) => {
        /// The functions of this file.
        pub(crate) static $table: &[&[mathlib::Function]] = &[$(
            $crate::declare::family!($summary, $rest, [$($letter $ty),* $(; $narrow)?], $args, $call, $body),
        )*];
    };
}

/// The functions of one entry of `routines!`.
macro_rules! family {
    ($summary:literal, $rest:literal, [$($letter:literal $ty:ty),*; narrow], $args:tt, $call:ident, $body:block) => {
        &[$($crate::declare::symbol!($summary, $letter, $rest, "", i32, $ty, $args, $call, $body)),*]
    };
    ($summary:literal, $rest:literal, [$($letter:literal $ty:ty),*], $args:tt, $call:ident, $body:block) => {
        &[$(
            $crate::declare::symbol!($summary, $letter, $rest, "", i32, $ty, $args, $call, $body),
            $crate::declare::symbol!($summary, $letter, $rest, "_64", i64, $ty, $args, $call, $body),
        )*]
    };
}

/// One exported symbol.
macro_rules! symbol {
    ($summary:literal, $letter:literal, $rest:literal, $width:literal, $int:ty, $ty:ty,
        ($($arg:ident: $of:ident),* $(,)?), $call:ident, $body:block) => {{
        #[allow(dead_code)]
        type Int = $int;
        #[allow(dead_code)]
        type T = $ty;
        #[unsafe(export_name = concat!("cublas", $letter, $rest, $width))]
        extern "C" fn function(handle: $crate::declare::Ptr, $($arg: $of),*) -> $crate::status::Status {
            const NAME: &str = concat!("cublas", $letter, $rest, $width);
            mathlib::api::call(NAME, || {
                let $call = $crate::call::Call::begin(NAME, handle)?;
                $(let $arg = $crate::declare::Widen::widen($arg);)*
                $body
            })
        }
        mathlib::Function {
            symbol: concat!("cublas", $letter, $rest, $width),
            supported: true,
            summary: $summary,
        }
    }};
}

pub(crate) use {family, routines, symbol};
