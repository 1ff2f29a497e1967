//! Addends for which a sum is hard to round.

use super::exact::leading;
use super::half::Meaning;

/// The number of kinds of addends that [`hard`] generates.
pub const KINDS: usize = 16;

const SIGN: u32 = 0x8000_0000;

/// A hash in which every bit of `x` affects the result (splitmix64).
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The encoding of the magnitude 2^exponent * 1.fraction in binary32, truncated if it is subnormal, and with the
/// largest exponent if it is larger.
fn float(exponent: i32, fraction: u32) -> u32 {
    let significand = 1 << 23 | fraction & 0x7f_ffff;
    match exponent.min(127) + 126 {
        field @ 0.. => ((field as u32) << 23) + significand,
        field @ -24..0 => significand >> -field,
        _ => 0,
    }
}

/// An addend c for which x + c is hard to round. `kind` (below [`KINDS`]) selects the difficulty; `noise` determines
/// the rest.
pub fn hard(x: Meaning, kind: usize, noise: u64) -> u32 {
    let random = (noise >> 32) as u32;
    let sign = noise as u32 & SIGN;
    let few = (noise & 0xff) as i32;
    // NaN, infinity and zero are treated as some number.
    let (negative, significand, exponent) = match x {
        Meaning::Number { negative, significand, exponent } if significand != 0 => {
            (negative, significand, exponent)
        }
        _ => (noise & 0x100 != 0, 1 + (random >> 21), few - 149),
    };
    let top = leading(significand, exponent);
    let lowest = exponent + significand.trailing_zeros() as i32;
    // The exponent of half a unit in the last place of a sum as large as x.
    let half = top - 24;
    let opposite = if negative { 0 } else { SIGN };
    match kind {
        // The lowest bit of x is half a unit of c: a tie.
        0 => sign | float(lowest + 24, random),
        // x is a little more than half a unit of c; between a quarter and a half; far less.
        1 => sign | float(top + 24, random),
        2 => sign | float(top + 25, random),
        3 => sign | float(top + 26 + few % 64, random),
        // c is half a unit of x; a little more; a little less.
        4 => sign | float(half, 0),
        5 => sign | float(half, 1 << (few % 23)),
        6 => sign | (float(half, 0).saturating_sub(1 << (few % 8))),
        // c is far less than a unit in the last place of x.
        7 => sign | float(half - 1 - few % 64, random),
        // c is an odd number of half units of x: a tie, or one lowest bit beside it.
        8 | 9 => {
            let above = few % 23;
            let bit = 1 << (23 - above);
            let c = float(half + above, random & !(2 * bit - 1) | bit);
            sign | if kind == 8 { c } else { c.wrapping_add(1).wrapping_sub(random & 2) & !SIGN }
        }
        // Cancellation: of everything, of all but a few low bits, of many bits.
        10 => opposite | exact(significand, exponent),
        11 => {
            opposite | exact(significand, exponent).wrapping_add((noise & 7) as u32).wrapping_sub(3) & !SIGN
        }
        12 => opposite | exact(significand, exponent) ^ random & ((1 << (few % 24)) - 1),
        // Subnormal numbers and those near the smallest normal one.
        13 if noise & 1 == 0 => sign | random & 0x7f_ffff,
        13 => sign | (0x0080_0000 + (random & 7)).wrapping_sub(4),
        // Zeros, the smallest and largest numbers, infinities, NaNs.
        14 => {
            const SPECIAL: [u32; 8] =
                [0, 0, 1, 0x7f7f_ffff, 0x7f00_0000, 0x7f80_0000, 0x7f80_0001, 0x7fc0_0000];
            sign | SPECIAL[(noise & 7) as usize]
        }
        // Anything.
        _ => random,
    }
}

/// The encoding of the magnitude `significand * 2^exponent`, truncated to 24 bits and clamped to the range.
fn exact(significand: u32, exponent: i32) -> u32 {
    float(leading(significand, exponent), significand << significand.leading_zeros() >> 8)
}
