//! The approximate transcendental functions, rounded to nearest.
//!
//! PTX ISA, "Floating Point Instructions": ex2, lg2, sin, cos, tanh `.approx`. GPUs differ from each other within the
//! manual's error bounds; these functions return the exact value rounded to nearest, which lies within all of them.
//!
//! Each is computed in 128-bit fixed point, truncating, with an error below 2^-80 of the result for formats of at
//! most 24 bits of precision. That decides the rounding: except for the exact cases, which are told apart, no value
//! of these functions comes so close to a rounding boundary of such a format. (`.f64`, which only lenient forms
//! use, is rounded right but for arguments that are unlucky to one in 2^12 or rarer.)

mod exp;
mod fixed;
mod log;
mod trig;

use crate::format::Format;
use crate::round::{Exact, Mode, Value, pack, unpack};

pub use exp::{ex2, tanh};
pub use log::lg2;
pub use trig::{cos, sin};

/// Unpacks, applies a function to a number other than zero, and packs. `special` gives the results for zero,
/// infinity; NaN passes.
fn evaluate(
    f: &Format,
    mode: Mode,
    a: u64,
    zero: impl Fn(bool) -> Value,
    infinite: impl Fn(bool) -> Value,
    finite: impl Fn(Exact) -> Value,
) -> u64 {
    pack(
        f,
        mode,
        match unpack(f, mode.ftz, a) {
            Value::Nan(payload) => Value::Nan(payload),
            Value::Infinite { negative } => infinite(negative),
            Value::Finite(x) if x.significand == 0 => zero(x.negative),
            Value::Finite(x) => finite(x),
        },
    )
}

/// A number just below (in magnitude) or just above `significand * 2^exponent`, nearer to it than to anything that
/// rounding looks at. The significand must have at most 64 bits.
fn next_to(x: Exact, below: bool) -> Value {
    let significand = if below { (x.significand << 60) - 1 } else { (x.significand << 60) + 1 };
    Value::Finite(Exact { significand, exponent: x.exponent - 60, ..x })
}

/// 1.0
const ONE: Exact = Exact { negative: false, significand: 1, exponent: 0 };
