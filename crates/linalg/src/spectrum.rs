//! Eigenvalues and eigenvectors of Hermitian matrices: Householder's tridiagonal form, then implicit QL steps in double precision.

use crate::chains::{add, columns, dot, largest, modulus, unit_of};
use crate::number::Scalar;
use crate::operand::Dense;
use crate::reflections::{Reflections, reflector};
use crate::rotations::Rotated;

/// Steps for one eigenvalue.
const STEPS: usize = 60;

/// A real tridiagonal matrix T with A = Q T Q^H.
pub struct Tridiagonal<T> {
    /// The diagonal.
    pub diagonal: Vec<f64>,
    /// What is beside it.
    pub beside: Vec<f64>,
    /// The factors of the reflections whose product is Q.
    pub factors: Vec<T>,
}

/// Replaces a Hermitian matrix of order `n`, both triangles of which are there, by its tridiagonal form: below the diagonal are the
/// vectors of reflections, the ones in the first row below it (LAPACK's `sytrd` of a lower triangle).
pub fn tridiagonalize<T: Scalar>(a: &mut Dense<T>, n: usize) -> Tridiagonal<T> {
    let mut result = Tridiagonal { diagonal: Vec::new(), beside: Vec::new(), factors: Vec::new() };
    // A product `v w^H + w v^H` that is to be subtracted from all columns from the next one on: rows from `n - v.len()` on.
    let (mut v, mut w): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
    let reduce = |column: &mut [T], j: usize, v: &[T], w: &[T]| {
        let first = n - v.len();
        if !v.is_empty() {
            let (by_v, by_w) = (v[j - first].conjugate(), w[j - first].conjugate());
            for ((value, &v), &w) in column[first..].iter_mut().zip(v).zip(w) {
                *value = *value - (v * by_w + w * by_v);
            }
        }
    };
    for k in 0..n {
        let column = &mut a.values[k * n..(k + 1) * n];
        reduce(column, k, &v, &w);
        result.diagonal.push(column[k].re().into());
        if k + 1 == n {
            break;
        }
        let tau = reflector(&mut column[k + 1..]);
        result.beside.push(column[k + 1].re().into());
        result.factors.push(tau);
        let mut vector = column[k + 1..].to_vec();
        vector[0] = T::ONE;
        let rest = n - k - 1;
        // One pass over the rest: the earlier product is subtracted, and A v computed.
        let sums = columns(a, k + 1..n, rest * rest * 2, |j, column| {
            reduce(column, j, &v, &w);
            dot(&column[k + 1..], &vector)
        });
        let mut x: Vec<T> = sums.into_iter().map(|sum| tau * sum).collect();
        let half = T::of(0.5, 0.0) * tau * dot(&x, &vector);
        add(&mut x, -half, &vector);
        (v, w) = (vector, x);
    }
    result
}

/// Replaces the diagonal of a real tridiagonal matrix by its eigenvalues, in no order, and calls `rotate` for the rotations of columns
/// that make the eigenvectors. Returns how many numbers beside the diagonal have not become zero in the steps allowed.
pub fn diagonalize(d: &mut [f64], beside: &[f64], mut rotate: impl FnMut(usize, f64, f64)) -> usize {
    let n = d.len();
    // One number more makes the steps regular.
    let mut e = beside.to_vec();
    e.resize(n, 0.0);
    let is_small = |d: &[f64], e: &[f64], m: usize| {
        let neighbours = d[m].abs() + d[m + 1].abs();
        e[m].abs() <= f64::EPSILON * 0.5 * neighbours || e[m].abs() < f64::MIN_POSITIVE
    };
    for l in 0..n {
        let mut steps = 0;
        loop {
            let m = (l..n - 1).find(|&m| is_small(d, &e, m)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            if steps == STEPS {
                return (0..n - 1).filter(|&m| !is_small(d, &e, m)).count();
            }
            steps += 1;
            let shift = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut g = d[m] - d[l] + e[l] / (shift + modulus(shift, 1.0).copysign(shift));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut is_split = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = modulus(f, g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    is_split = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                let h = d[i + 1] - p;
                let t = (d[i] - h) * s + 2.0 * c * b;
                p = s * t;
                d[i + 1] = h + p;
                g = c * t - b;
                rotate(i, c, -s);
            }
            e[m] = 0.0;
            if !is_split {
                d[l] -= p;
                e[l] = g;
            }
        }
    }
    0
}

/// Eigenvalues in ascending order, and eigenvectors.
pub struct Spectrum<T> {
    /// The values.
    pub values: Vec<f64>,
    /// The vectors, by columns, if they were asked for.
    pub vectors: Option<Dense<T>>,
    /// How many values have not been found: 0.
    pub failed: usize,
}

/// The eigenvalues, and vectors if asked for, of a Hermitian matrix of order `n`, both triangles of which are there.
pub fn eigen<T: Scalar>(a: &mut Dense<T>, n: usize, with_vectors: bool) -> Spectrum<T> {
    let scale = moderate(&mut a.values);
    let form = tridiagonalize(a, n);
    let mut values = form.diagonal;
    let mut rotated = with_vectors.then(|| {
        let product = Reflections::below(a, 1, form.factors).form(n);
        Rotated::new(&product, n)
    });
    let failed = diagonalize(&mut values, &form.beside, |column, c, s| {
        if let Some(rotated) = &mut rotated {
            rotated.rotate(column, c, s);
        }
    });
    let mut order: Vec<(usize, bool)> = (0..n).map(|j| (j, false)).collect();
    order.sort_by(|a, b| values[a.0].total_cmp(&values[b.0]));
    let vectors = rotated.map(|rotated| rotated.take(&order));
    let values = order.iter().map(|&(j, _)| values[j] / scale).collect();
    Spectrum { values, vectors, failed }
}

/// Multiplies numbers with a power of two, if their squares would be too large or too small for the type. Returns it.
pub(crate) fn moderate<T: Scalar>(values: &mut [T]) -> f64 {
    let most = largest(values);
    let is_single = size_of::<T::Real>() == size_of::<f32>();
    let limits = if is_single { 1e-10..1e10 } else { 1e-100..1e100 };
    let scale = if limits.contains(&most) { 1.0 } else { unit_of(most) };
    if scale != 1.0 {
        values.iter_mut().for_each(|value| {
            let [re, im] = value.wide();
            *value = T::of(re * scale, im * scale);
        });
    }
    scale
}
