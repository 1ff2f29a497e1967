//! Products of Householder's reflections, `H(1) H(2) ... H(k)` with `H(i) = 1 - tau(i) v(i) v(i)^H`, as LAPACK's `geqrf` leaves them: the
//! first elements of `v(i)` are zero, the next one is one, and the others are below the diagonal of column `i`. They are applied
//! in blocks, as products of matrices.

use crate::chains::{add, adjoint, columns, dense, dot, length, modulus, quotient, scale_of, subtract};
use crate::number::{C64, Scalar};
use crate::operand::{Dense, Operation};
use crate::product::product;

/// Reflections of a block.
const BLOCK: usize = 32;

/// The conjugated and transposed matrix.
const ADJOINT: Operation = Operation { transposed: true, conjugated: true };

/// Replaces a vector by the reflection that makes it a multiple of the first unit vector: its first element becomes the (real) multiple,
/// the others those of `v`. Returns `tau`, so that `H^H` does it (LAPACK's `larfg`).
pub fn reflector<T: Scalar>(x: &mut [T]) -> T {
    let Some((head, below)) = x.split_first_mut() else { return T::default() };
    let size = length(below);
    let [re, im] = head.wide();
    if size == 0.0 && im == 0.0 {
        return T::default();
    }
    let beta = -modulus(modulus(re, im), size).copysign(re);
    let tau = T::of((beta - re) / beta, -im / beta);
    // In double precision, and scaled, because the numbers may be among the smallest.
    let scale = scale_of(beta.abs());
    let [c, d] = quotient(C64::ONE, C64::of((re - beta) * scale, im * scale)).wide();
    for value in below {
        let [a, b] = value.wide().map(|part| part * scale);
        *value = T::of(a * c - b * d, a * d + b * c);
    }
    *head = T::of(beta, 0.0);
    tau
}

/// A product of reflections.
pub struct Reflections<T> {
    /// The vectors, whole: with their zeros and ones.
    vectors: Dense<T>,
    factors: Vec<T>,
}

impl<T: Scalar> Reflections<T> {
    /// Those below the diagonal of a matrix, or further below: the one of `v(i)` is in row `i + shift`. There are as many as factors.
    pub fn below(a: &Dense<T>, shift: usize, factors: Vec<T>) -> Reflections<T> {
        let vectors = Dense::new(a.rows, factors.len(), |i, j| match i.cmp(&(j + shift)) {
            std::cmp::Ordering::Less => T::default(),
            std::cmp::Ordering::Equal => T::ONE,
            std::cmp::Ordering::Greater => a.at(i, j),
        });
        Reflections { vectors, factors }
    }

    /// Multiplies the columns of a matrix from `first` to `end` with the product from the left, or with its adjoint.
    pub fn apply(&self, is_adjoint: bool, to: &mut Dense<T>, first: usize, end: usize) {
        let count = self.factors.len();
        let blocks = count.div_ceil(BLOCK);
        for b in 0..blocks {
            let start = if is_adjoint { b } else { blocks - 1 - b } * BLOCK;
            self.apply_block(is_adjoint, start, to, first, end);
        }
    }

    /// The first columns of the product, as a matrix.
    pub fn form(&self, columns: usize) -> Dense<T> {
        let one = |i, j| if i == j { T::ONE } else { T::default() };
        let mut result = Dense::new(self.vectors.rows, columns, one);
        for start in (0..self.factors.len()).step_by(BLOCK).rev() {
            // Columns to the left are those of the unit matrix still.
            self.apply_block(false, start, &mut result, start.min(columns), columns);
        }
        result
    }

    /// Multiplies columns with the reflections of a block: `1 - V T V^H`, where T is triangular.
    fn apply_block(&self, is_adjoint: bool, start: usize, to: &mut Dense<T>, first: usize, end: usize) {
        let rows = self.vectors.rows;
        // Rows above the first one of the block are not changed.
        let top = start.min(rows);
        let width = BLOCK.min(self.factors.len() - start);
        if first >= end || top == rows {
            return;
        }
        let factor = self.triangle(start, width);
        let left = self.vectors.part(top, start, ADJOINT);
        let right = to.part(top, first, Operation::NONE);
        let count = end - first;
        let inner = dense::<T>(product([width, count, rows - top], left, right));
        let operation = if is_adjoint { ADJOINT } else { Operation::NONE };
        let left = factor.part(0, 0, operation);
        let inner = dense::<T>(product([width, count, width], left, inner.part(0, 0, Operation::NONE)));
        let left = self.vectors.part(top, start, Operation::NONE);
        let sums = product([rows - top, count, width], left, inner.part(0, 0, Operation::NONE));
        subtract(to, top, first, &sums);
    }

    /// The triangular factor of a block (LAPACK's `larft`).
    pub fn triangle(&self, start: usize, width: usize) -> Dense<T> {
        let rows = self.vectors.rows;
        let top = start.min(rows);
        let (left, right) =
            (self.vectors.part(top, start, ADJOINT), self.vectors.part(top, start, Operation::NONE));
        let among = dense::<T>(product([width, width, rows - top], left, right));
        let mut result = Dense { values: vec![T::default(); width * width], rows: width };
        for i in 0..width {
            let tau = self.factors[start + i];
            for row in 0..i {
                let sum = (row..i).fold(T::default(), |sum, l| sum + result.at(row, l) * among.at(l, i));
                result.values[row + i * width] = -(tau * sum);
            }
            result.values[i + i * width] = tau;
        }
        result
    }
}

/// Replaces a matrix of so many columns by R and the reflections whose product is Q: A = Q R. Returns their factors.
pub fn orthogonalize<T: Scalar>(a: &mut Dense<T>, n: usize) -> Vec<T> {
    let m = a.rows;
    let least = m.min(n);
    let mut factors = Vec::with_capacity(least);
    for start in (0..least).step_by(BLOCK) {
        let end = (start + BLOCK).min(least);
        for k in start..end {
            let (done, rest) = a.values.split_at_mut((k + 1) * m);
            let vector = &mut done[k * m + k..];
            let tau = reflector(vector);
            factors.push(tau);
            let beta = std::mem::replace(&mut vector[0], T::ONE);
            for other in rest.chunks_mut(m).take(end - k - 1) {
                let other = &mut other[k..];
                let by = tau.conjugate() * dot(vector, other);
                add(other, -by, vector);
            }
            vector[0] = beta;
        }
        if end < n {
            let width = end - start;
            let block = Dense::new(m - start, width, |i, j| a.at(start + i, start + j));
            let block = Reflections::below(&block, 0, factors[start..].to_vec());
            // The rows above belong to R already.
            let mut rest = Dense::new(m - start, n - end, |i, j| a.at(start + i, end + j));
            block.apply(true, &mut rest, 0, n - end);
            columns(a, end..n, (n - end) * m, |j, values| {
                values[start..].copy_from_slice(&rest.values[(j - end) * (m - start)..][..m - start]);
            });
        }
    }
    factors
}

/// A matrix multiplied from the right with a product of reflections, or with its adjoint.
pub fn apply_right<T: Scalar>(by: &Reflections<T>, is_adjoint: bool, to: &Dense<T>, n: usize) -> Dense<T> {
    let mut turned = adjoint(to, n);
    by.apply(!is_adjoint, &mut turned, 0, to.rows);
    adjoint(&turned, to.rows)
}
