//! Tables of the binary64 functions, computed in fixed point at compile time. "Qn" is a fixed-point number with n
//! bits after the binary point.

use sem::approx::TWO_OVER_PI;

/// Entries of a table; vector permutations look them up.
const SIZE: usize = 16;

/// 16 numbers, each as the sum of two. The second is at most half a unit in the last place of the first.
pub(super) struct Pairs {
    pub(super) high: [f64; SIZE],
    pub(super) low: [f64; SIZE],
}

impl Pairs {
    /// The pairs of numbers in Q126. The first parts have `bits` bits.
    const fn of(numbers: [i128; SIZE], bits: u32) -> Pairs {
        let mut pairs = Pairs { high: [0.0; SIZE], low: [0.0; SIZE] };
        let mut j = 0;
        while j < SIZE {
            (pairs.high[j], pairs.low[j]) = pair(numbers[j], bits);
            j += 1;
        }
        pairs
    }
}

/// A number in Q126 as the sum of two numbers, the first of which has `bits` bits.
const fn pair(number: i128, bits: u32) -> (f64, f64) {
    let length = 128 - number.unsigned_abs().leading_zeros();
    let spare = length.saturating_sub(bits);
    let high = if spare == 0 { number } else { (number + (1 << (spare - 1))) >> spare << spare };
    (high as f64 * power(-126), (number - high) as f64 * power(-126))
}

/// 2^n, for exponents of normal numbers.
const fn power(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// The high half of a product: Qm times Qn is Q(m + n - 128).
const fn mul_high(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let middle = a1 * b0 + ((a0 * b0) >> 64);
    let middle_low = a0 * b1 + (middle & LOW);
    a1 * b1 + (middle >> 64) + (middle_low >> 64)
}

/// 1.0 in Q126.
const ONE: u128 = 1 << 126;

/// The terms x^from, x^(from + stride) and so on of the series of e^x, for x below 1; with `alternate` every second
/// one is negated. x and the sum are in Q126.
const fn exponential(x: u128, from: usize, stride: usize, alternate: bool) -> i128 {
    let (mut sum, mut term, mut n, mut count) = (0i128, ONE, 0, 0);
    while term != 0 {
        if n >= from && (n - from).is_multiple_of(stride) {
            sum += if alternate && count % 2 == 1 { -(term as i128) } else { term as i128 };
            count += 1;
        }
        n += 1;
        term = (mul_high(term, x) << 2) / n as u128;
    }
    sum
}

/// ln 2 in Q126.
const LN_2_Q126: u128 = 0xb172_17f7_d1cf_79ab_c9e3_b398_03f2_f6af >> 2;
/// 1 / ln 2 in Q126.
const LOG2_E_Q126: u128 = 0xb8aa_3b29_5c17_f0bb_be87_fed0_691d_3e88 >> 1;
/// pi/2 in Q126.
const PI_2_Q126: u128 = 0xc90f_daa2_2168_c234_c4c6_628b_80dc_1cd1 >> 1;

/// ln 2.
pub(super) const LN_2: (f64, f64) = pair(LN_2_Q126 as i128, 53);
/// 1 / ln 2.
pub(super) const LOG2_E: (f64, f64) = pair(LOG2_E_Q126 as i128, 53);
/// pi/2.
pub(super) const PI_2: (f64, f64) = pair(PI_2_Q126 as i128, 53);
/// pi/2 minus [`PI_2`].
pub(super) const PI_2_REST: f64 = f64::from_bits(0xb91f_1976_b7ed_8fbc);

/// 2^(j/16).
pub(super) static POWERS: Pairs = Pairs::of(
    {
        let mut powers = [0; SIZE];
        let mut j = 0;
        while j < SIZE {
            powers[j] = exponential(LN_2_Q126 / SIZE as u128 * j as u128, 0, 1, false);
            j += 1;
        }
        powers
    },
    53,
);

/// Multiples of 1/64 near 1 / (1 + j/16), so that the product of a number near 1 + j/16 and its factor is near 1: the
/// product minus 1 is below 2^-5, or below 2^-4 if the factor is even.
const FACTORS: [i32; SIZE] = [64, 60, 57, 54, 51, 49, 46, 44, 43, 41, 39, 38, 37, 35, 34, 33];

/// The factors as numbers.
pub(super) static INVERSES: [f64; SIZE] = {
    let mut inverses = [0.0; SIZE];
    let mut j = 0;
    while j < SIZE {
        inverses[j] = FACTORS[j] as f64 / 64.0;
        j += 1;
    }
    inverses
};

/// Minus the base-2 logarithms of [`INVERSES`]. The sum of an exponent and a first part is exact.
pub(super) static LOGARITHMS: Pairs = Pairs::of(
    {
        let mut logarithms = [0; SIZE];
        let mut j = 0;
        while j < SIZE {
            // -log2 c = 2 / ln 2 atanh z with z = (1 - c) / (1 + c), which is below 1/3; in Q120.
            let factor = FACTORS[j] as u128;
            let z = ((64 - factor) << 120) / (64 + factor);
            let (mut sum, mut power, mut n) = (0, z, 1);
            while power != 0 {
                sum += power / n;
                power = mul_high(mul_high(power, z) << 8, z) << 8;
                n += 2;
            }
            logarithms[j] = (mul_high(sum, LOG2_E_Q126) << 9) as i128;
            j += 1;
        }
        logarithms
    },
    40,
);

/// sin j/16.
pub(super) static SINES: Pairs = circular(1);

/// cos j/16.
pub(super) static COSINES: Pairs = circular(0);

const fn circular(from: usize) -> Pairs {
    let mut values = [0; SIZE];
    let mut j = 0;
    while j < SIZE {
        values[j] = exponential(ONE / SIZE as u128 * j as u128, from, 2, true);
        j += 1;
    }
    Pairs::of(values, 53)
}

/// The least exponent of the numbers that [`TURNS`] supports; the greatest is 1023.
pub(super) const FIRST: i32 = -27;

/// Number of exponents that share an entry of [`TURNS`].
pub(super) const SHARED: i32 = 66;

/// 2/pi times 2^(FIRST + SHARED j), modulo 2^54 and with 2^54 added, in pieces of 53 bits. The last bits of the
/// pieces have the values 4, 2^-51, 2^-104 and 2^-157 (Payne and Hanek, "Radian reduction for trigonometric
/// functions", 1983). Factors are multiples of 2^-52, so the added 2^54 changes nothing modulo 4; but it makes the
/// unit in the last place of products with the first piece at least 4.
pub(super) static TURNS: [[f64; SIZE]; 4] = {
    let mut turns = [[0.0; SIZE]; 4];
    let mut j = 0;
    while j < SIZE {
        let mut piece = 0;
        while piece < turns.len() {
            let first = 54 - 53 * piece as i32;
            let mut word = 0u64;
            let mut weight = first;
            while weight > first - 53 {
                // Bit 0 of 2/pi has the value 1/2.
                let at = FIRST + SHARED * j as i32 - weight - 1;
                let inside = at >= 0 && at < 64 * TWO_OVER_PI.len() as i32;
                let bit = if inside { TWO_OVER_PI[at as usize / 64] >> (63 - at % 64) & 1 } else { 0 };
                word = word << 1 | if weight == 54 { 1 } else { bit };
                weight -= 1;
            }
            turns[piece][j] = word as f64 * power(first - 52);
            piece += 1;
        }
        j += 1;
    }
    turns
};
