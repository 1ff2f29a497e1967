//! Factors of matrices, column by column, in the order of LAPACK's unblocked routines.

use crate::memory::Reached;
use crate::number::Scalar;
use crate::operand::{Dense, Operation};
use crate::triangle::{Named, Triangle};

/// Replaces a matrix by its factors L and U, with rows exchanged if there is a place for the pivots (from 1). Returns the first column
/// whose pivot is zero, from 1, or 0.
pub fn lu<T: Scalar>(a: &mut Dense<T>, n: usize, mut pivots: Option<&mut Vec<i32>>) -> i32 {
    let mut info = 0;
    for k in 0..n {
        if let Some(pivots) = &mut pivots {
            let mut best = k;
            for i in k + 1..n {
                if a.at(i, k).taxi() > a.at(best, k).taxi() {
                    best = i;
                }
            }
            pivots.push(best as i32 + 1);
            if best != k {
                (0..n).for_each(|j| a.values.swap(k + j * n, best + j * n));
            }
        }
        let pivot = a.at(k, k);
        if pivot.is_zero() {
            if info == 0 {
                info = k as i32 + 1;
            }
            continue;
        }
        for i in k + 1..n {
            a.values[i + k * n] = a.at(i, k) / pivot;
        }
        for j in k + 1..n {
            let by = a.at(k, j);
            for i in k + 1..n {
                a.values[i + j * n] = a.at(i, j) - a.at(i, k) * by;
            }
        }
    }
    info
}

/// Exchanges rows as pivots say, forwards or backwards.
pub fn exchange<T: Scalar>(b: &mut Dense<T>, columns: usize, pivots: &[i32], backwards: bool) {
    let rows = b.rows;
    let steps: Vec<(usize, usize)> = pivots
        .iter()
        .enumerate()
        .map(|(k, &pivot)| (k, (pivot as usize).clamp(1, rows.max(1)) - 1))
        .collect();
    let mut exchange = |&(k, other): &(usize, usize)| {
        if other != k {
            (0..columns).for_each(|j| b.values.swap(k + j * rows, other + j * rows));
        }
    };
    match backwards {
        true => steps.iter().rev().for_each(&mut exchange),
        false => steps.iter().for_each(&mut exchange),
    }
}

/// Solves a system with the factors of a matrix.
pub fn solve<T: Scalar>(
    factors: &Reached,
    pivots: &[i32],
    operation: Operation,
    b: &mut Dense<T>,
    columns: usize,
) {
    let named = |is_upper| Named { matrix: factors.of, is_upper, operation, is_unit: !is_upper };
    let (lower, upper) = (named(false), named(true));
    let solve = |named: Named, b: &mut Dense<T>| Triangle::<T>::of(factors, named, false).solve(b, columns);
    if operation.transposed {
        solve(upper, b);
        solve(lower, b);
        exchange(b, columns, pivots, true);
    } else {
        exchange(b, columns, pivots, false);
        solve(lower, b);
        solve(upper, b);
    }
}

/// The diagonal element of a triangle that is zero, from 1, or 0.
pub fn singular<T: Scalar>(values: &Dense<T>, n: usize) -> i32 {
    (0..n).find(|&i| values.at(i, i).is_zero()).map_or(0, |i| i as i32 + 1)
}

/// The unit matrix.
pub fn unit<T: Scalar>(n: usize) -> Dense<T> {
    Dense::new(n, n, |i, j| if i == j { T::ONE } else { T::default() })
}

/// Replaces a matrix by R and the vectors of the reflections that make Q, and returns their factors (LAPACK's `geqr2`).
pub fn qr<T: Scalar>(a: &mut Dense<T>, m: usize, n: usize) -> Vec<T> {
    let mut factors = Vec::new();
    for k in 0..m.min(n) {
        let head = a.at(k, k);
        let wide = |value: T| value.wide().map(|part| part * part).iter().sum::<f64>();
        let below: f64 = (k + 1..m).map(|i| wide(a.at(i, k))).sum();
        let [re, im] = head.wide();
        if below == 0.0 && im == 0.0 {
            factors.push(T::default());
            continue;
        }
        let beta = -(below + wide(head)).sqrt().copysign(re);
        let tau = T::of((beta - re) / beta, -im / beta);
        let scale = T::ONE / (head - T::of(beta, 0.0));
        for i in k + 1..m {
            a.values[i + k * m] = a.at(i, k) * scale;
        }
        a.values[k + k * m] = T::of(beta, 0.0);
        for j in k + 1..n {
            reflect(a, m, k, tau.conjugate(), j, None);
        }
        factors.push(tau);
    }
    factors
}

/// Applies a reflection, whose vector is below the diagonal of a column, to a column of the same matrix or of another.
pub fn reflect<T: Scalar>(
    a: &mut Dense<T>,
    m: usize,
    k: usize,
    by: T,
    column: usize,
    other: Option<&mut Dense<T>>,
) {
    let vector: Vec<T> = std::iter::once(T::ONE).chain((k + 1..m).map(|i| a.at(i, k))).collect();
    let into = match other {
        Some(other) => other,
        None => a,
    };
    let start = k + column * into.rows;
    let values = &mut into.values[start..start + vector.len()];
    let sum = vector.iter().zip(values.iter()).fold(T::default(), |sum, (v, &x)| sum + v.conjugate() * x);
    let step = by * sum;
    for (value, &v) in values.iter_mut().zip(&vector) {
        *value = *value - v * step;
    }
}
