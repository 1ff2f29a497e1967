//! The approximate transcendental functions, rounded to nearest.
//!
//! PTX ISA, "Floating Point Instructions": ex2, lg2, sin, cos, tanh `.approx`. GPUs differ from each other within the
//! manual's error bounds; these functions return the exact value rounded to nearest, which is within all of them. That of
//! `.f32` angles is the value of the number of turns that the code of ptxas computes first.
//!
//! Each is computed in 128-bit fixed point with truncation, and a relative error below 2^-80 for formats of at most
//! 24 bits of precision. This determines the rounding: apart from the exact cases, which are handled separately, no
//! value of these functions is that close to a rounding boundary of such a format. (`.f64` results, which only
//! lenient forms have, are correctly rounded except for at most about one argument in 2^12.)

mod exp;
mod fixed;
mod log;
mod trig;

use crate::format::Format;
use crate::round::{Exact, Mode, Value, pack, unpack};

pub use exp::{ex2, tanh};
pub use log::lg2;
pub use trig::{TURN, TWO_OVER_PI, cos, cos_cycles, sin, sin_cycles};

/// Unpacks, applies a function to a nonzero number, and packs. `special` has the results for zero and infinity; NaN
/// is propagated.
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

/// A number just below or above `significand * 2^exponent` in magnitude, closer to it than any rounding boundary. The
/// significand must have at most 64 bits.
fn next_to(x: Exact, below: bool) -> Value {
    let significand = if below { (x.significand << 60) - 1 } else { (x.significand << 60) + 1 };
    Value::Finite(Exact { significand, exponent: x.exponent - 60, ..x })
}

/// 1.0
const ONE: Exact = Exact { negative: false, significand: 1, exponent: 0 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::F32;

    /// How many bits below the 25th, which decides rounding to nearest, are all equal: the computation must get this
    /// many right. Exact cases have at most one bit set, including the sticky one.
    fn bits_needed(value: Value) -> u32 {
        let Value::Finite(Exact { significand, .. }) = value else { return 0 };
        let significand = significand & !1;
        let below = significand << significand.leading_zeros() << 25;
        below.leading_zeros().max((!below).leading_zeros())
    }

    /// Tests the claim of this module's head on random numbers of all sizes (`SEM_TEST_RANDOM` is their number). Over
    /// all 2^32 numbers, about 32 bits are expected; 55 would be 80 below the leading one.
    #[test]
    fn no_value_is_near_a_rounding_boundary() {
        let count = std::env::var("SEM_TEST_RANDOM").ok().and_then(|s| s.parse().ok()).unwrap_or(100_000u64);
        for i in 0..count {
            let bits = (i as u32).wrapping_mul(0x9e37_79b9) as u64;
            let Value::Finite(x) = unpack(&F32, true, bits) else { continue };
            // Outside of this range, results are exact, overflow or underflow, or are next to the argument or 1.
            if x.significand == 0 || x.leading_exponent() < -24 {
                continue;
            }
            let mut functions: Vec<(&str, Value)> = vec![("sin", trig::sine(x)), ("cos", trig::cosine(x))];
            if x.leading_exponent() < 3 {
                functions.push(("tanh", exp::hyperbolic_tangent(x)));
            }
            let is_integer = x.significand << (x.exponent + 104).clamp(0, 104) << 24 == 0;
            if x.leading_exponent() < 7 && !is_integer {
                functions.push(("ex2", exp::exp2(x)));
            }
            if !x.negative && !x.significand.is_power_of_two() {
                functions.push(("lg2", log::log2(x)));
            }
            for (name, value) in functions {
                let needed = bits_needed(value);
                assert!(needed < 55, "{name} of {bits:#x} needs {needed} bits: {value:x?}");
            }
        }
    }
}
