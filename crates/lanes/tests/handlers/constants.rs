//! Constants of the functions of binary64, which stand in a file of their own.

// They are private to the handlers.
#[allow(dead_code)]
#[path = "../../src/approx64/tables.rs"]
mod tables;

use sem::approx::TWO_OVER_PI;
use tables::{PI_2, PI_2_REST};

/// A number times 2^170, which must be an integer; the least significant word first.
fn fixed(x: f64) -> [i128; 3] {
    let (significand, exponent) =
        (x.to_bits() & ((1 << 52) - 1) | 1 << 52, (x.to_bits() >> 52 & 0x7ff) as i32);
    let (word, bit) = ((exponent - 1075 + 170) / 64, (exponent - 1075 + 170) % 64);
    let shifted = u128::from(significand) << bit;
    let mut words = [0; 3];
    for (i, word) in words.iter_mut().skip(word as usize).take(2).enumerate() {
        *word = i128::from((shifted >> (64 * i)) as u64) * if x < 0.0 { -1 } else { 1 };
    }
    words
}

/// The three parts of pi/2 times 2/pi are 1, but for what the last one leaves out.
#[test]
fn parts_of_pi() {
    let parts = [PI_2.0, PI_2.1, PI_2_REST].map(fixed);
    // 2/pi times 2^192
    let inverse = [TWO_OVER_PI[2], TWO_OVER_PI[1], TWO_OVER_PI[0]];
    // The product times 2^362, from the lowest word on; 2^-155 of it is what may differ.
    let mut product = [0i128; 7];
    for part in parts {
        for (i, x) in part.into_iter().enumerate() {
            for (j, y) in inverse.into_iter().enumerate() {
                let bits = x.unsigned_abs() * u128::from(y);
                let (high, low) = ((bits >> 64) as i128 * x.signum(), i128::from(bits as u64) * x.signum());
                product[i + j] += low;
                product[i + j + 1] += high;
            }
        }
    }
    let mut carry = 0;
    for word in &mut product {
        let sum = *word + carry;
        (*word, carry) = (sum & i128::from(u64::MAX), sum >> 64);
    }
    // 2^362 is bit 42 of word 5. Just above or just below.
    let upper = (product[5] << 64 | product[4]) as u128;
    assert!(upper.abs_diff(1 << 106) <= 1, "{upper:#x}");
    let near = (product[3] as u64).min(!(product[3] as u64));
    assert!(near < 1 << 20, "{product:x?}");
}
