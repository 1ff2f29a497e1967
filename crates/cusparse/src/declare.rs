//! How functions are declared that exist for several types of numbers.

/// Declares functions: a summary, the name behind `cusparseS`, `D`, `C` and `Z`, and the arguments behind the handle. The body knows the
/// call, and the type of numbers as `T`.
macro_rules! families {
    ($table:ident: $(
        #[doc = $summary:literal]
        $rest:literal $args:tt |$call:ident| $body:block
    )*) => {
        /// The functions of this file that exist for several types of numbers.
        pub(crate) static $table: &[&[mathlib::Function]] = &[$(
            &[
                $crate::declare::function!($summary, "S", $rest, f32, $args, $call, $body),
                $crate::declare::function!($summary, "D", $rest, f64, $args, $call, $body),
                $crate::declare::function!($summary, "C", $rest, linalg::C32, $args, $call, $body),
                $crate::declare::function!($summary, "Z", $rest, linalg::C64, $args, $call, $body),
            ],
        )*];
    };
}

/// One exported symbol.
macro_rules! function {
    ($summary:literal, $letter:literal, $rest:literal, $ty:ty, ($($arg:ident: $of:ty),* $(,)?), $call:ident, $body:block) => {{
        #[allow(dead_code)]
        type T = $ty;
        #[unsafe(export_name = concat!("cusparse", $letter, $rest))]
        extern "C" fn function(handle: $crate::handle::Ptr, $($arg: $of),*) -> $crate::status::Status {
            const NAME: &str = concat!("cusparse", $letter, $rest);
            mathlib::api::call(NAME, || {
                #[allow(unused_variables)]
                let $call = $crate::call::Call::begin(NAME, handle)?;
                $body
            })
        }
        mathlib::Function { symbol: concat!("cusparse", $letter, $rest), supported: true, summary: $summary }
    }};
}

pub(crate) use {families, function};
