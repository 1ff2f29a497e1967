//! Encodings to exact values and back: unpack, round, pack.
//!
//! Every floating-point operation of this crate is `pack(operation(unpack(a), unpack(b)))`, where the operation
//! is exact integer arithmetic. Nothing here uses the host's floating point.

use crate::format::{F64, Format, Specials};
use isa::Rounding;

/// A finite number: `significand * 2^exponent`, negated if `negative`. Zero has significand 0 and a sign.
///
/// A significand that is too long may have its lost bits or-ed into its lowest bit (a sticky bit). If enough bits lie
/// above it, every rounding gives the same result as for the exact number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The sign.
    pub negative: bool,
    /// The significand, anywhere in the 128 bits.
    pub significand: u128,
    /// The exponent of the significand's lowest bit.
    pub exponent: i32,
}

/// The value that an encoding represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number: the quiet `.f64` encoding with its sign and payload, left-aligned. Arithmetic in every other
    /// format makes that format's own NaN; see [`INVALID`] for `.f64`.
    Nan(u64),
    /// Infinity.
    Infinite {
        /// The sign.
        negative: bool,
    },
    /// A number, zero included.
    Finite(Exact),
}

/// The NaN of an invalid operation (infinity - infinity, 0 * infinity, sqrt(-1)) in `.f64`.
///
/// An H100 makes it. It is the value that CUDA's headers define as the double NaN.
pub const INVALID: Value = Value::Nan(F64.nan);

/// How a result is converted to its format: the modifiers `.rnd`, `.ftz`, `.sat`, `.relu`, `.satfinite`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Direction of rounding.
    pub rounding: Rounding,
    /// `.ftz`: subnormal inputs and results become zero of the same sign.
    pub ftz: bool,
    /// What happens to the rounded result.
    pub clamp: Clamp,
}

/// What happens to a rounded result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clamp {
    /// Nothing.
    None,
    /// `.sat`: to [0.0, 1.0]; NaN and -0.0 become +0.0.
    Saturate,
    /// `.relu`: negative results become +0.0; NaN becomes the canonical NaN.
    Relu,
    /// `.satfinite`: magnitudes that are too large become the largest finite number.
    Finite,
    /// `.relu.satfinite`
    ReluFinite,
}

impl Mode {
    /// Round to nearest even, subnormals kept, nothing clamped.
    pub const NEAREST: Mode = Mode::rounding(Rounding::NearestEven);

    /// The given rounding, subnormals kept, nothing clamped.
    pub const fn rounding(rounding: Rounding) -> Mode {
        Mode { rounding, ftz: false, clamp: Clamp::None }
    }
}

impl Value {
    /// Zero with a sign.
    pub const fn zero(negative: bool) -> Value {
        Value::Finite(Exact { negative, significand: 0, exponent: 0 })
    }

    /// The integer `magnitude`, negated if `negative`.
    pub const fn integer(negative: bool, magnitude: u64) -> Value {
        Value::Finite(Exact { negative, significand: magnitude as u128, exponent: 0 })
    }

    /// The value with its sign inverted.
    pub const fn negated(self) -> Value {
        match self {
            Value::Nan(payload) => Value::Nan(payload),
            Value::Infinite { negative } => Value::Infinite { negative: !negative },
            Value::Finite(x) => Value::Finite(Exact { negative: !x.negative, ..x }),
        }
    }
}

impl Exact {
    /// The same number with its highest set bit at bit 125, which leaves room for one carry and a sign. Zero is
    /// unchanged. Exact for significands below 2^126.
    pub(crate) const fn normalized(self) -> Exact {
        if self.significand == 0 {
            return self;
        }
        let shift = self.significand.leading_zeros() as i32 - 2;
        Exact { significand: self.significand << shift, exponent: self.exponent - shift, ..self }
    }

    /// The number with a larger exponent: shifts the significand right and ors the lost bits into its lowest bit.
    pub(crate) const fn shift_right(self, distance: u32) -> Exact {
        let significand = shift_right_jam(self.significand, distance);
        Exact { significand, exponent: self.exponent + distance as i32, ..self }
    }

    /// The exponent of the leading bit: the number is 1.xxx * 2^e. The number must not be zero.
    pub(crate) const fn leading_exponent(self) -> i32 {
        self.exponent + 127 - self.significand.leading_zeros() as i32
    }
}

/// `x >> distance` with the lost bits or-ed into the lowest bit.
const fn shift_right_jam(x: u128, distance: u32) -> u128 {
    match distance {
        0 => x,
        1..128 => x >> distance | (x << (128 - distance) != 0) as u128,
        _ => (x != 0) as u128,
    }
}

/// The value of an encoding; with `ftz`, a subnormal becomes zero of the same sign.
pub fn unpack(format: &Format, ftz: bool, bits: u64) -> Value {
    let negative = bits & format.sign() != 0;
    let magnitude = (bits & format.magnitude_mask()) >> format.padding;
    let biased = (magnitude >> format.fraction_bits) as i32;
    if biased == (1 << format.exponent_bits) - 1 {
        match format.specials {
            Specials::NanOnly | Specials::InfinityAndNan if format.is_nan(bits) => {
                return Value::Nan(nan_payload(format, bits));
            }
            Specials::InfinityAndNan => return Value::Infinite { negative },
            Specials::NanOnly | Specials::None => {}
        }
    }
    let fraction = magnitude & ((1 << format.fraction_bits) - 1);
    let quantum = format.min_exponent() - format.fraction_bits as i32;
    Value::Finite(match biased {
        0 if ftz => Exact { negative, significand: 0, exponent: 0 },
        0 => Exact { negative, significand: fraction as u128, exponent: quantum },
        _ => {
            let significand = (fraction | 1 << format.fraction_bits) as u128;
            Exact { negative, significand, exponent: quantum + biased - 1 }
        }
    })
}

/// The quiet `.f64` NaN with the sign and the payload of this NaN.
fn nan_payload(format: &Format, bits: u64) -> u64 {
    let sign = if bits & format.sign() != 0 { F64.sign() } else { 0 };
    let fraction = bits >> format.padding & ((1 << format.fraction_bits) - 1);
    F64.quieted(sign | F64.infinity() | fraction << (F64.fraction_bits - format.fraction_bits))
}

/// The encoding of a value, rounded, flushed and clamped as `mode` says.
pub fn pack(format: &Format, mode: Mode, value: Value) -> u64 {
    let finite = matches!(mode.clamp, Clamp::Finite | Clamp::ReluFinite);
    let bits = match value {
        // "NaN payloads are supported for double-precision instructions" (PTX ISA, "Floating Point Instructions").
        Value::Nan(payload) if format.precision() == 53 => payload,
        Value::Nan(_) => format.nan,
        Value::Infinite { negative: false } if finite => format.max_finite(),
        Value::Infinite { negative: true } if finite => format.sign() | format.max_finite(),
        Value::Infinite { negative } => signed(format, negative, format.infinity()),
        Value::Finite(x) => signed(format, x.negative, round(format, mode, finite, x)),
    };
    clamp(format, mode.clamp, bits)
}

fn signed(format: &Format, negative: bool, magnitude: u64) -> u64 {
    if negative { format.sign() | magnitude } else { magnitude }
}

/// The magnitude of a finite number, rounded.
fn round(format: &Format, mode: Mode, finite: bool, x: Exact) -> u64 {
    if x.significand == 0 {
        return 0;
    }
    let leading = x.leading_exponent();
    // Without .ftz the exponent is bounded below, and smaller numbers lose precision. With .ftz the number is rounded
    // as if the exponent were unbounded, then flushed if it is still too small, as ptxas folds.
    let smallest = format.min_exponent();
    let exponent = if mode.ftz { leading } else { leading.max(smallest) };
    let quantum = exponent - format.fraction_bits as i32;
    let rounded = round_to_integer(x, quantum, mode.rounding) as i128;
    // The leading bit of the significand adds one to the biased exponent, and so does a carry out of rounding.
    let magnitude = ((exponent - smallest) as i128) * (1 << format.fraction_bits) + rounded;
    if magnitude > (format.max_finite() >> format.padding) as i128 {
        return if finite || overflows_to_finite(mode.rounding, x.negative) {
            format.max_finite()
        } else {
            format.infinity()
        };
    }
    if mode.ftz && magnitude < 1 << format.fraction_bits {
        return 0;
    }
    (magnitude as u64) << format.padding
}

/// IEEE 754, 7.4: under a directed rounding away from that infinity, an overflow gives the largest finite number.
fn overflows_to_finite(rounding: Rounding, negative: bool) -> bool {
    match rounding {
        Rounding::NearestEven | Rounding::NearestAway => false,
        Rounding::TowardZero => true,
        Rounding::TowardNegative => !negative,
        Rounding::TowardPositive => negative,
    }
}

/// The magnitude of `x / 2^quantum`, rounded to an integer. It must fit 128 bits.
pub(crate) fn round_to_integer(x: Exact, quantum: i32, rounding: Rounding) -> u128 {
    let distance = quantum - x.exponent;
    if distance <= 0 {
        return x.significand << -distance;
    }
    // Two more bits, the lower one sticky, distinguish below half, half and above half.
    let jammed =
        if distance == 1 { x.significand << 1 } else { shift_right_jam(x.significand, distance as u32 - 2) };
    let (floor, rest) = (jammed >> 2, jammed & 3);
    let up = match rounding {
        Rounding::NearestEven => rest + (floor & 1) > 2,
        Rounding::NearestAway => rest >= 2,
        Rounding::TowardZero => false,
        Rounding::TowardNegative => x.negative && rest != 0,
        Rounding::TowardPositive => !x.negative && rest != 0,
    };
    floor + up as u128
}

/// `.sat` and `.relu` on an encoding.
pub fn clamp(format: &Format, clamp: Clamp, bits: u64) -> u64 {
    let nan = format.is_nan(bits);
    let negative = bits & format.sign() != 0;
    match clamp {
        Clamp::None | Clamp::Finite => bits,
        Clamp::Saturate if nan || negative => 0,
        Clamp::Saturate => bits.min(format.one()),
        Clamp::Relu | Clamp::ReluFinite if nan => format.nan,
        Clamp::Relu | Clamp::ReluFinite if negative => 0,
        Clamp::Relu | Clamp::ReluFinite => bits,
    }
}
