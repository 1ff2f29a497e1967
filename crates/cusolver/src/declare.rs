//! How functions on matrices are declared: once, for the four types of numbers and for the documentation.

use std::ffi::c_void;

/// A pointer or a handle of the program.
pub type Ptr = *mut c_void;

/// Declares functions: a summary, the rest of the name for real and for complex numbers, and arguments behind the handle. Each is exported
/// as `cusolverDn` (or what stands before the names) with `S`, `D`, `C` and `Z`. The body knows the call, the type of numbers
/// as `T` and that of their parts as `Real`.
macro_rules! routines {
    ($table:ident, $prefix:literal: $(
        #[doc = $summary:literal]
        $real:literal $complex:literal ($($arg:ident: $of:ident),* $(,)?) |$call:ident| $body:block
    )*) => {
        /// The functions of this file.
        pub(crate) static $table: &[&[mathlib::Function]] = &[$(&[
            $crate::declare::routine!($summary, $prefix, "S", $real, f32, ($($arg: $of),*), $call, $body),
            $crate::declare::routine!($summary, $prefix, "D", $real, f64, ($($arg: $of),*), $call, $body),
            $crate::declare::routine!($summary, $prefix, "C", $complex, linalg::C32, ($($arg: $of),*), $call, $body),
            $crate::declare::routine!($summary, $prefix, "Z", $complex, linalg::C64, ($($arg: $of),*), $call, $body),
        ]),*];
    };
}

/// One exported symbol.
macro_rules! routine {
    ($summary:literal, $prefix:literal, $letter:literal, $rest:literal, $ty:ty, ($($arg:ident: $of:ident),*),
        $call:ident, $body:block) => {{
        #[allow(dead_code)]
        type T = $ty;
        #[allow(dead_code)]
        type Real = <T as linalg::Scalar>::Real;
        #[allow(clippy::too_many_arguments, reason = "the manual's")]
        #[unsafe(export_name = concat!($prefix, $letter, $rest))]
        extern "C" fn function(handle: $crate::declare::Ptr, $($arg: $of),*) -> $crate::status::Status {
            const NAME: &str = concat!($prefix, $letter, $rest);
            mathlib::api::call(NAME, || {
                let $call = $crate::call::Call::begin(NAME, handle)?;
                $body
            })
        }
        mathlib::Function { symbol: concat!($prefix, $letter, $rest), supported: true, summary: $summary }
    }};
}

/// Declares functions that take the types of numbers as arguments: a summary, the name, and arguments behind the handle.
macro_rules! generic {
    ($table:ident: $(
        #[doc = $summary:literal]
        $($symbol:ident)+ ($($arg:ident: $of:ident),* $(,)?) |$call:ident| $body:block
    )*) => {
        mathlib::api! { $table: $crate::status::Status, name; $(
            #[doc = $summary]
            $($symbol)+ (handle: $crate::declare::Ptr, $($arg: $of),*) {
                let $call = $crate::call::Call::begin(name, handle)?;
                $body
            }
        )* }
    };
}

/// Runs code with the type of numbers that a `cudaDataType` names as `T`.
macro_rules! with_type {
    ($kind:expr, $ty:ident => $work:expr) => {
        match linalg::Kind::of($kind) {
            Some(linalg::Kind::R32) => {
                type $ty = f32;
                $work
            }
            Some(linalg::Kind::R64) => {
                type $ty = f64;
                $work
            }
            Some(linalg::Kind::C32) => {
                type $ty = linalg::C32;
                $work
            }
            Some(linalg::Kind::C64) => {
                type $ty = linalg::C64;
                $work
            }
            _ => Err($crate::status::Status::INVALID_VALUE),
        }
    };
}

pub(crate) use {generic, routine, routines, with_type};
