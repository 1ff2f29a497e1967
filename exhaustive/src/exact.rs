//! Exact sums of two numbers, rounded to binary32 in every direction (IEEE 754, 4.3 and 6.3).

use super::half::{Meaning, decode};

/// The PTX roundings, in the order of the results here: to nearest even, toward zero, down, up.
pub const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];

/// The NaN that binary32 arithmetic returns.
pub const NAN: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;
const SIGN: u32 = 0x8000_0000;
const ONE: u32 = 0x3f80_0000;

/// The meaning of a binary32 encoding.
pub fn decode_f32(bits: u32) -> Meaning {
    decode(bits & !SIGN, bits & SIGN != 0, 23, 127)
}

/// The exact product. The significands must be below 2^16.
pub fn product(x: Meaning, y: Meaning) -> Meaning {
    match (x, y) {
        (Meaning::Nan, _) | (_, Meaning::Nan) => Meaning::Nan,
        (Meaning::Infinity { negative }, other) | (other, Meaning::Infinity { negative }) => match other {
            Meaning::Number { significand: 0, .. } => Meaning::Nan,
            Meaning::Number { negative: sign, .. } | Meaning::Infinity { negative: sign } => {
                Meaning::Infinity { negative: negative != sign }
            }
            Meaning::Nan => Meaning::Nan,
        },
        (
            Meaning::Number { negative: n, significand: s, exponent: e },
            Meaning::Number { negative: m, significand: t, exponent: f },
        ) => Meaning::Number { negative: n != m, significand: s * t, exponent: e + f },
    }
}

/// The sum in binary32, in each of [`ROUNDINGS`].
pub fn sum(x: Meaning, y: Meaning) -> [u32; 4] {
    match (x, y) {
        (Meaning::Nan, _) | (_, Meaning::Nan) => [NAN; 4],
        (Meaning::Infinity { negative: n }, Meaning::Infinity { negative: m }) if n != m => [NAN; 4],
        (Meaning::Infinity { negative }, _) | (_, Meaning::Infinity { negative }) => {
            [signed(negative, INFINITY); 4]
        }
        (
            Meaning::Number { negative: n, significand: s, exponent: e },
            Meaning::Number { negative: m, significand: t, exponent: f },
        ) => {
            let high_first = t == 0 || (s != 0 && leading(s, e) >= leading(t, f));
            let [high, low] = if high_first { [(n, s, e), (m, t, f)] } else { [(m, t, f), (n, s, e)] };
            sum_of_numbers(high, low)
        }
    }
}

/// `.sat`: to [0, 1]; NaN and -0 become +0.
pub fn saturate(bits: u32) -> u32 {
    if bits & SIGN != 0 || bits == NAN { 0 } else { bits.min(ONE) }
}

/// The exponent of the highest bit of `significand * 2^exponent`.
pub fn leading(significand: u32, exponent: i32) -> i32 {
    exponent + 31 - significand.leading_zeros() as i32
}

fn signed(negative: bool, magnitude: u32) -> u32 {
    if negative { SIGN | magnitude } else { magnitude }
}

/// The bit position of the larger number's highest bit. Above it is room for a carry and a sign. Below it are so many
/// bits that those lost of the smaller number are far below any bit that decides the rounding.
const TOP: i32 = 61;

/// A number: negative, significand, exponent.
type Number = (bool, u32, i32);

/// The sum of two numbers. The first is at least as large in magnitude (up to the lowest bits), or the second is
/// zero.
fn sum_of_numbers(high: Number, low: Number) -> [u32; 4] {
    let (negative, significand, exponent) = high;
    if significand == 0 {
        let agree = negative == low.0;
        return ZERO_SIGNS.map(|zero| signed(if agree { negative } else { zero }, 0));
    }
    let unit = leading(significand, exponent) - TOP;
    let high = i64::from(significand) << (exponent - unit);
    let low = (low.0 != negative, at_unit(low.1, low.2 - unit));
    let total = if low.0 { high - low.1 } else { high + low.1 };
    if total == 0 {
        return ZERO_SIGNS.map(|zero| signed(zero, 0));
    }
    round(negative != (total < 0), total.unsigned_abs(), unit)
}

/// 6.3: an exact sum of opposite numbers is -0 only when rounding down.
const ZERO_SIGNS: [bool; 4] = [false, false, true, false];

/// `significand * 2^distance`, with the bits below 1 or-ed into the lowest bit.
fn at_unit(significand: u32, distance: i32) -> i64 {
    let wide = i64::from(significand);
    match distance {
        0.. => wide << distance.min(TOP),
        -31..0 => wide >> -distance | i64::from(wide & ((1 << -distance) - 1) != 0),
        _ => i64::from(wide != 0),
    }
}

/// `significand * 2^exponent`, not zero, rounded to 24 bits, or fewer for subnormal numbers.
fn round(negative: bool, significand: u64, exponent: i32) -> [u32; 4] {
    let leading = exponent + 63 - significand.leading_zeros() as i32;
    let quantum = (leading - 23).max(-149);
    let (floor, rest, half) = match quantum - exponent {
        distance @ ..=0 => (significand << -distance, 0, 1),
        distance @ 1..=63 => {
            (significand >> distance, significand & ((1 << distance) - 1), 1 << (distance - 1))
        }
        // Less than half a quantum.
        _ => (0, 1, 2),
    };
    let inexact = rest != 0;
    let nearest = rest > half || (rest == half && floor % 2 == 1);
    // For each rounding: whether the magnitude is rounded up, and whether an overflow gives infinity.
    let directions =
        [(nearest, true), (false, false), (inexact && negative, negative), (inexact && !negative, !negative)];
    directions.map(|(up, infinite)| {
        // The leading bit of a normal significand adds one to the biased exponent, as does a carry out of it.
        let magnitude = ((quantum + 149) as u64) * (1 << 23) + floor + u64::from(up);
        let largest = u64::from(INFINITY) - 1;
        signed(negative, if magnitude <= largest { magnitude } else { largest + u64::from(infinite) } as u32)
    })
}
