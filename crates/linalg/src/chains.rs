//! Sums and updates along vectors, and how work on columns is shared among threads. Sums are eight chains, of the elements whose index
//! has the same rest, added pairwise; so they have the same bits on every machine.

use rayon::prelude::*;

use crate::number::Scalar;
use crate::operand::{Dense, FEW};
use crate::product::Product;

/// The chains of a sum.
const CHAINS: usize = 8;

/// The sum of the products of two vectors, the first of them conjugated.
pub fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
    let mut sums = [T::default(); CHAINS];
    let (xs, ys) = (x.chunks_exact(CHAINS), y.chunks_exact(CHAINS));
    let (x_rest, y_rest) = (xs.remainder(), ys.remainder());
    for (x, y) in xs.zip(ys) {
        for ((sum, x), &y) in sums.iter_mut().zip(x).zip(y) {
            *sum = *sum + x.conjugate() * y;
        }
    }
    for ((sum, x), &y) in sums.iter_mut().zip(x_rest).zip(y_rest) {
        *sum = *sum + x.conjugate() * y;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// Adds a multiple of a vector.
pub fn add<T: Scalar>(to: &mut [T], by: T, of: &[T]) {
    for (to, &of) in to.iter_mut().zip(of) {
        *to = *to + of * by;
    }
}

/// The length of a vector, without overflow.
pub fn length<T: Scalar>(x: &[T]) -> f64 {
    let most = x.iter().map(|value| value.taxi().into()).fold(0.0, larger);
    let scale = scale_of(most);
    let mut sums = [0.0; CHAINS];
    for x in x.chunks(CHAINS) {
        for (sum, value) in sums.iter_mut().zip(x) {
            let [re, im] = value.wide().map(|part| part * scale);
            *sum += re * re + im * im;
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    (((a + b) + (c + d)) + ((e + f) + (g + h))).sqrt() / scale
}

/// The larger number, or NaN if there is one.
pub fn larger(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}

/// A power of two by which numbers of this size can be multiplied, so that their squares are neither too large nor too small. It is 1 if
/// they need none.
pub fn scale_of(size: f64) -> f64 {
    if (1e-100..1e100).contains(&size) { 1.0 } else { unit_of(size) }
}

/// A power of two that makes a number of this size about 1; 1 if the size is zero or not finite.
pub fn unit_of(size: f64) -> f64 {
    if !(size > 0.0 && size.is_finite()) {
        return 1.0;
    }
    // The exponent's bits alone, and within what has an inverse.
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).clamp(-1000, 1000);
    f64::from_bits(((1023 - exponent) as u64) << 52)
}

/// The length of two numbers, without overflow and without a library of C, whose results differ among machines.
pub fn modulus(a: f64, b: f64) -> f64 {
    let scale = scale_of(larger(a.abs(), b.abs()));
    let (a, b) = (a * scale, b * scale);
    (a * a + b * b).sqrt() / scale
}

/// The quotient of two numbers, without overflow in between.
pub fn quotient<T: Scalar>(a: T, b: T) -> T {
    if !T::IS_COMPLEX {
        return a / b;
    }
    let ([a, b], [c, d]) = (a.wide(), b.wide());
    if c.abs() >= d.abs() {
        let (ratio, rest) = (d / c, c + d * (d / c));
        T::of((a + b * ratio) / rest, (b - a * ratio) / rest)
    } else {
        let (ratio, rest) = (c / d, d + c * (c / d));
        T::of((a * ratio + b) / rest, (b * ratio - a) / rest)
    }
}

/// The conjugated and transposed matrix of so many columns.
pub fn adjoint<T: Scalar>(of: &Dense<T>, columns: usize) -> Dense<T> {
    Dense::new(columns, of.rows, |i, j| of.at(j, i).conjugate())
}

/// Calls `work` for the columns of a range, with their numbers, on all threads if there is much to do.
pub fn columns<T: Scalar, R: Send>(
    of: &mut Dense<T>,
    range: std::ops::Range<usize>,
    elements: usize,
    work: impl Fn(usize, &mut [T]) -> R + Send + Sync,
) -> Vec<R> {
    let rows = of.rows.max(1);
    let first = range.start;
    if range.is_empty() {
        return Vec::new();
    }
    let part = &mut of.values[first * rows..range.end * rows];
    let count = range.len();
    if elements < FEW || count < 2 {
        part.chunks_mut(rows).enumerate().map(|(i, column)| work(first + i, column)).collect()
    } else {
        // Parts long enough that threads do not wait for each other.
        let least = (FEW / 2 / (elements / count).max(1)).max(1);
        let each = part.par_chunks_mut(rows).with_min_len(least).enumerate();
        each.map(|(i, column)| work(first + i, column)).collect()
    }
}

/// Subtracts a product from the part of a matrix that begins at an element.
pub fn subtract<T: Scalar>(from: &mut Dense<T>, row: usize, column: usize, product: &Product<T::Real>) {
    let rows = product.rows;
    if rows == 0 {
        return;
    }
    let count = product.re.len() / rows;
    columns(from, column..column + count, product.re.len(), |j, values| {
        let start = (j - column) * rows;
        let values = &mut values[row..row + rows];
        if T::IS_COMPLEX {
            let parts = product.re[start..][..rows].iter().zip(&product.im[start..][..rows]);
            values
                .iter_mut()
                .zip(parts)
                .for_each(|(value, (&re, &im))| *value = *value - T::from_parts(re, im));
        } else {
            let parts = &product.re[start..][..rows];
            values.iter_mut().zip(parts).for_each(|(value, &re)| *value = *value - T::real(re));
        }
    });
}

/// A product as a matrix.
pub fn dense<T: Scalar>(product: Product<T::Real>) -> Dense<T> {
    let rows = product.rows;
    let values = match T::IS_COMPLEX {
        true => product.re.iter().zip(&product.im).map(|(&re, &im)| T::from_parts(re, im)).collect(),
        false => product.re.iter().map(|&re| T::real(re)).collect(),
    };
    Dense { values, rows }
}

/// The largest part of any of the numbers, or NaN.
pub fn largest<T: Scalar>(values: &[T]) -> f64 {
    values.iter().flat_map(|value| value.wide()).map(f64::abs).fold(0.0, larger)
}
