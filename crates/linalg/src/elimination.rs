//! Factors of large matrices by elimination: LU with exchanges of rows, Cholesky's. Blocks of columns are done one after the other,
//! and the rest is products.

use crate::chains::{add, columns, quotient, subtract};
use crate::number::Scalar;
use crate::operand::{Dense, Operation};
use crate::product::product;

/// Columns of a block.
const BLOCK: usize = 48;

/// The conjugated and transposed matrix.
const ADJOINT: Operation = Operation { transposed: true, conjugated: true };

/// Replaces the lower triangle of a Hermitian matrix of order `n` by its factor L, where A = L L^H. The other triangle is not read, and
/// what is there afterwards is of no use. Returns the order of the first leading minor that is not positive definite, or 0; the columns
/// behind it are then not factors.
pub fn cholesky<T: Scalar>(a: &mut Dense<T>, n: usize) -> usize {
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        let left = a.part(start, 0, Operation::NONE);
        let sums = product([n - start, end - start, start], left, a.part(start, 0, ADJOINT));
        subtract(a, start, start, &sums);
        for j in start..end {
            let (before, now) = a.values.split_at_mut(j * n);
            let column = &mut now[j..n];
            for l in start..j {
                let other = &before[l * n + j..][..n - j];
                add(column, -other[0].conjugate(), other);
            }
            let pivot: f64 = column[0].re().into();
            if pivot <= 0.0 || pivot.is_nan() {
                column[0] = T::of(pivot, 0.0);
                return j + 1;
            }
            let root = T::of(pivot.sqrt(), 0.0);
            column[0] = root;
            let divisor = root.re();
            for value in &mut column[1..] {
                *value = T::from_parts(value.re() / divisor, value.im() / divisor);
            }
        }
    }
    0
}

/// Replaces a matrix of so many columns by its factors L and U: A = P L U. Returns the rows with which each row was exchanged, from 1, and
/// the first column whose pivot is zero, from 1, or 0. Without `exchanges` the pivots are those of the diagonal.
pub fn eliminate<T: Scalar>(a: &mut Dense<T>, n: usize, exchanges: bool) -> (Vec<usize>, usize) {
    let m = a.rows;
    let least = m.min(n);
    let (mut pivots, mut info) = (Vec::with_capacity(least), 0);
    for start in (0..least).step_by(BLOCK) {
        let end = (start + BLOCK).min(least);
        for k in start..end {
            let column = &a.values[k * m..][..m];
            let mut best = k;
            if exchanges {
                let mut most = column[k].taxi();
                for (i, value) in column.iter().enumerate().skip(k + 1) {
                    let size = value.taxi();
                    if size > most {
                        (best, most) = (i, size);
                    }
                }
            }
            pivots.push(best + 1);
            if best != k {
                (start..end).for_each(|j| a.values.swap(k + j * m, best + j * m));
            }
            let pivot = a.at(k, k);
            if pivot.is_zero() {
                info = if info == 0 { k + 1 } else { info };
                continue;
            }
            let (done, rest) = a.values.split_at_mut((k + 1) * m);
            let column = &mut done[k * m + k + 1..];
            column.iter_mut().for_each(|value| *value = quotient(*value, pivot));
            for other in rest.chunks_mut(m).take(end - k - 1) {
                let by = -other[k];
                add(&mut other[k + 1..], by, column);
            }
        }
        // The exchanges in the columns of other blocks, and the rows of U.
        let chosen = &pivots[start..];
        let exchange = |values: &mut [T]| {
            for (k, &pivot) in chosen.iter().enumerate() {
                values.swap(start + k, pivot - 1);
            }
        };
        columns(a, 0..start, start * (end - start), |_, values| exchange(values));
        let width = end - start;
        let triangle = Dense::new(width, width, |i, j| a.at(start + i, start + j));
        columns(a, end..n, (n - end) * width * width, |_, values| {
            exchange(values);
            for k in 0..width {
                let by = -values[start + k];
                add(
                    &mut values[start + k + 1..end],
                    by,
                    &triangle.values[k * width + k + 1..(k + 1) * width],
                );
            }
        });
        let (left, right) = (a.part(end, start, Operation::NONE), a.part(start, end, Operation::NONE));
        let sums = product([m - end, n - end, width], left, right);
        subtract(a, end, end, &sums);
    }
    (pivots, info)
}
