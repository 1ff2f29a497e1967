//! 128-bit fixed point. "Qn" is an unsigned number with n bits after the binary point.

use crate::round::Exact;

/// The high half of a product: Qm times Qn is Q(m + n - 128).
pub(super) const fn mul_high(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let middle = a1 * b0 + ((a0 * b0) >> 64);
    let middle_low = a0 * b1 + (middle & LOW);
    a1 * b1 + (middle >> 64) + (middle_low >> 64)
}

/// `numerator / denominator` in Q128. The numerator must be smaller than the denominator, and the denominator less
/// than 2^64.
pub(super) const fn divide(numerator: u128, denominator: u128) -> u128 {
    let high = (numerator << 64) / denominator;
    let rest = (numerator << 64) % denominator;
    (high << 64) | ((rest << 64) / denominator)
}

/// A number split into its floor and a Q128 fraction; the integer part saturates.
pub(super) fn floor(x: Exact) -> (i32, u128) {
    let shift = x.exponent + 128;
    let bits = 128 - x.significand.leading_zeros() as i32;
    let (integer, fraction, inexact) = match shift {
        _ if bits + x.exponent > 30 => (i32::MAX, 0, false),
        128.. => ((x.significand << x.exponent) as i32, 0, false),
        1..128 => ((x.significand >> (128 - shift)) as i32, x.significand << shift, false),
        -127..=0 => (0, x.significand >> -shift, x.significand << (127 + shift) << 1 != 0),
        _ => (0, 0, true),
    };
    match (x.negative, fraction, inexact) {
        (false, ..) => (integer, fraction),
        (true, 0, false) => (-integer, 0),
        (true, _, false) => (-integer - 1, fraction.wrapping_neg()),
        (true, _, true) => (-integer - 1, !fraction),
    }
}

/// 1/0!, 1/1!, 1/2! ... in Q126.
pub(super) const INVERSE_FACTORIALS: [u128; 36] = {
    let mut table = [1 << 126; 36];
    let mut k = 1;
    while k < table.len() {
        table[k] = table[k - 1] / k as u128;
        k += 1;
    }
    table
};
