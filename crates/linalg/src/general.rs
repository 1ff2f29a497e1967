//! Eigenvalues and right eigenvectors of matrices without symmetry: Hessenberg's form, QR steps in double precision down to Schur's form, and
//! vectors by substitution. Real matrices stay real until all steps are done, so that values come in conjugated pairs.

use std::ops::Range;

use crate::chains::{add, columns, dot, largest, length, modulus, quotient};
use crate::number::{C64, Scalar};
use crate::operand::{Dense, list};
use crate::reflections::{Reflections, reflector};
use crate::spectrum::moderate;

/// Steps for one eigenvalue.
const STEPS: usize = 60;
/// After so many steps another shift is tried.
const UNUSUAL: usize = 10;

/// Eigenvalues, and right eigenvectors.
pub struct General {
    /// The values. Of a real matrix, of two that are conjugated the one with the positive imaginary part comes first, and the other
    /// behind it.
    pub values: Vec<C64>,
    /// The vectors, by columns, if they were asked for and all values are found. Their length is 1, and their largest element real.
    pub vectors: Option<Dense<C64>>,
    /// How many values have not been found: the first ones.
    pub failed: usize,
}

/// The eigenvalues, and vectors if asked for, of a matrix of order `n`.
pub fn general<T: Scalar>(a: &Dense<T>, n: usize, with_vectors: bool) -> General {
    match T::IS_COMPLEX {
        true => find(widened(a), n, with_vectors, complex_step),
        false => find(Dense::new(n, n, |i, j| a.at(i, j).wide()[0]), n, with_vectors, real_step),
    }
}

/// A QR step on a block of Hessenberg's form, which also changes the product of all transformations. With `true`, the shift is unusual.
type Step<T> = fn(&mut Dense<T>, &mut Option<Dense<T>>, Range<usize>, bool);

fn find<T: Scalar>(mut a: Dense<T>, n: usize, with_vectors: bool, step: Step<T>) -> General {
    if !largest(&a.values).is_finite() {
        return General { values: vec![C64::of(f64::NAN, f64::NAN); n], vectors: None, failed: n };
    }
    let scale = moderate(&mut a.values);
    let mut product = hessenberg(&mut a, n, with_vectors);
    let failed = converge(&mut a, &mut product, n, step);
    let mut form = widened(&a);
    let mut product = product.as_ref().map(widened);
    for k in 1..n {
        if !T::IS_COMPLEX && !form.at(k, k - 1).is_zero() {
            split(&mut form, &mut product, k - 1);
        }
    }
    let vectors = product.filter(|_| failed == 0).map(|product| vectors(&form, &product, n, T::IS_COMPLEX));
    let values = (0..n).map(|j| form.at(j, j)).map(|value| C64::of(value.re / scale, value.im / scale));
    General { values: values.collect(), vectors, failed }
}

/// The same numbers in double precision, complex.
fn widened<T: Scalar>(of: &Dense<T>) -> Dense<C64> {
    let values = of.values.iter().map(|value| value.wide()).map(|[re, im]| C64::of(re, im));
    Dense { values: values.collect(), rows: of.rows }
}

/// Replaces a matrix A by Hessenberg's form H: A = Q H Q^H. Returns Q, if it is asked for.
fn hessenberg<T: Scalar>(a: &mut Dense<T>, n: usize, with_product: bool) -> Option<Dense<T>> {
    let mut factors = Vec::new();
    for k in 0..n.saturating_sub(1) {
        let rest = n - k - 1;
        let below = &mut a.values[k * n + k + 1..(k + 1) * n];
        let tau = reflector(below);
        let mut v = below.to_vec();
        v[0] = T::ONE;
        factors.push(tau);
        columns(a, k + 1..n, rest * rest * 2, |_, column| {
            let column = &mut column[k + 1..];
            add(column, -(tau.conjugate() * dot(&v, column)), &v);
        });
        let mut sums = vec![T::default(); n];
        for (column, &v) in a.values[(k + 1) * n..].chunks(n).zip(&v) {
            add(&mut sums, v, column);
        }
        columns(a, k + 1..n, rest * n, |j, column| add(column, -(tau * v[j - k - 1].conjugate()), &sums));
    }
    let product = with_product.then(|| Reflections::below(a, 1, factors).form(n));
    for (j, column) in a.values.chunks_mut(n.max(1)).enumerate() {
        column.iter_mut().skip(j + 2).for_each(|value| *value = T::default());
    }
    product
}

/// Does steps until blocks on the diagonal have one element, or two of a real matrix. Returns where the block ends that has not come so far.
fn converge<T: Scalar>(h: &mut Dense<T>, product: &mut Option<Dense<T>>, n: usize, step: Step<T>) -> usize {
    let size = length(&h.values);
    let most = if T::IS_COMPLEX { 1 } else { 2 };
    let taxi = |h: &Dense<T>, i, j| -> f64 { h.at(i, j).taxi().into() };
    let is_small = |h: &Dense<T>, i: usize| {
        let neighbours = taxi(h, i - 1, i - 1) + taxi(h, i, i);
        taxi(h, i, i - 1) <= f64::EPSILON * neighbours.max(f64::EPSILON * size)
    };
    let (mut end, mut steps) = (n, 0);
    while end > 0 {
        let start = (1..end).rev().find(|&i| is_small(h, i)).unwrap_or(0);
        if start > 0 {
            set(h, start, start - 1, T::default());
        }
        if end - start <= most {
            (end, steps) = (start, 0);
            continue;
        }
        if steps == STEPS {
            break;
        }
        steps += 1;
        step(h, product, start..end, steps.is_multiple_of(UNUSUAL));
    }
    end
}

fn set<T>(of: &mut Dense<T>, row: usize, column: usize, value: T) {
    let rows = of.rows;
    of.values[row + column * rows] = value;
}

/// A step with two shifts at once (Francis).
fn real_step(h: &mut Dense<f64>, product: &mut Option<Dense<f64>>, at: Range<usize>, is_unusual: bool) {
    let (n, first, last) = (h.rows, at.start, at.end - 1);
    let (x, y, across) = match is_unusual {
        true => {
            let size = h.at(last, last - 1).abs() + h.at(last - 1, last - 2).abs();
            let shift = 0.75 * size + h.at(last, last);
            (shift, shift, -0.4375 * size * size)
        }
        false => {
            let across = h.at(last, last - 1) * h.at(last - 1, last);
            (h.at(last, last), h.at(last - 1, last - 1), across)
        }
    };
    // The first column of the product of both shifted matrices.
    let corner = h.at(first, first);
    let (x, y) = (x - corner, y - corner);
    let mut v = [
        (x * y - across) / h.at(first + 1, first) + h.at(first, first + 1),
        h.at(first + 1, first + 1) - corner - x - y,
        h.at(first + 2, first + 1),
    ];
    for k in first..last {
        let count = 3.min(last - k + 1);
        if k > first {
            v[..count].copy_from_slice(&h.values[(k - 1) * n + k..][..count]);
        }
        let v = &mut v[..count];
        let tau = reflector(v);
        let head = std::mem::replace(&mut v[0], 1.0);
        if k > first {
            let column = &mut h.values[(k - 1) * n + k..][..count];
            column.fill(0.0);
            column[0] = head;
        }
        for column in h.values.chunks_mut(n).skip(k) {
            let column = &mut column[k..k + count];
            let sum = column.iter().zip(&*v).fold(0.0, |sum, (value, v)| sum + value * v);
            column.iter_mut().zip(&*v).for_each(|(value, v)| *value -= tau * sum * v);
        }
        reflect_columns(h, k, v, tau, (k + 4).min(last + 1));
        if let Some(product) = product {
            reflect_columns(product, k, v, tau, n);
        }
    }
}

/// Multiplies columns from `k` on with a reflection from the right, in the first rows.
fn reflect_columns(of: &mut Dense<f64>, k: usize, v: &[f64], tau: f64, rows: usize) {
    let n = of.rows;
    for i in 0..rows {
        let sum = v.iter().enumerate().fold(0.0, |sum, (j, v)| sum + of.values[i + (k + j) * n] * v);
        for (j, v) in v.iter().enumerate() {
            of.values[i + (k + j) * n] -= tau * sum * v;
        }
    }
}

/// A step with the shift that is nearest to the last element (Wilkinson).
fn complex_step(h: &mut Dense<C64>, product: &mut Option<Dense<C64>>, at: Range<usize>, is_unusual: bool) {
    let (n, first, last) = (h.rows, at.start, at.end - 1);
    let shift = match is_unusual {
        true => {
            let beside = h.at(last, last - 1);
            h.at(last, last) + C64::of(0.75 * modulus(beside.re, beside.im), 0.0)
        }
        false => pair(h, last - 1)[1],
    };
    let (mut x, mut y) = (h.at(first, first) - shift, h.at(first + 1, first));
    for k in first..last {
        let turn = Turn::of(x, y);
        turn.rows(h, k, k.saturating_sub(1).max(first));
        if k > first {
            set(h, k + 1, k - 1, C64::default());
        }
        turn.columns(h, k, (k + 3).min(last + 1));
        if let Some(product) = product {
            turn.columns(product, k, n);
        }
        if k + 1 < last {
            (x, y) = (h.at(k + 1, k), h.at(k + 2, k));
        }
    }
}

/// A rotation of two rows or columns, which are neighbours.
struct Turn {
    c: f64,
    s: C64,
}

impl Turn {
    /// The one that makes the second number zero.
    fn of(x: C64, y: C64) -> Turn {
        let (a, b) = (modulus(x.re, x.im), modulus(y.re, y.im));
        let size = modulus(a, b);
        if size == 0.0 {
            return Turn { c: 1.0, s: C64::default() };
        }
        let unit = if a == 0.0 { C64::ONE } else { C64::of(x.re / a, x.im / a) };
        Turn { c: a / size, s: unit * C64::of(y.re / size, -y.im / size) }
    }

    /// Rotates rows `k` and `k + 1`, in the columns from `first` on.
    fn rows(&self, of: &mut Dense<C64>, k: usize, first: usize) {
        let n = of.rows;
        for column in of.values.chunks_mut(n).skip(first) {
            let (x, y) = (column[k], column[k + 1]);
            column[k] = x * self.c + self.s * y;
            column[k + 1] = y * self.c - self.s.conj() * x;
        }
    }

    /// Multiplies columns `k` and `k + 1` with the inverse, in the first rows.
    fn columns(&self, of: &mut Dense<C64>, k: usize, rows: usize) {
        let n = of.rows;
        let (left, right) = of.values[k * n..].split_at_mut(n);
        for (x, y) in left[..rows].iter_mut().zip(&mut right[..rows]) {
            let (a, b) = (*x, *y);
            *x = a * self.c + self.s.conj() * b;
            *y = b * self.c - self.s * a;
        }
    }
}

/// The square root whose real part is not negative.
fn root(of: C64) -> C64 {
    let large = ((of.re.abs() + modulus(of.re, of.im)) / 2.0).sqrt();
    if large == 0.0 {
        return C64::default();
    }
    let small = of.im / (2.0 * large);
    if of.re >= 0.0 { C64::of(large, small) } else { C64::of(small.abs(), large.copysign(of.im)) }
}

/// The eigenvalues of the block of two rows that begins at `k`; the second is the one nearer to the last element. Where the block is real
/// and they are not, they are conjugated, and the first has the positive imaginary part.
fn pair(h: &Dense<C64>, k: usize) -> [C64; 2] {
    let (a, d) = (h.at(k, k), h.at(k + 1, k + 1));
    let across = h.at(k, k + 1) * h.at(k + 1, k);
    let half = (a - d) * 0.5;
    let square = half * half + across;
    if [a.im, d.im, across.im] == [0.0; 3] && square.re < 0.0 {
        let (re, im) = (d.re + half.re, (-square.re).sqrt());
        return [C64::of(re, im), C64::of(re, -im)];
    }
    let root = root(square);
    let is_against = half.re * root.re + half.im * root.im < 0.0;
    let sum = if is_against { half - root } else { half + root };
    let near = if sum.is_zero() { d } else { d - quotient(across, sum) };
    [d + sum, near]
}

/// Makes the block of two rows that begins at `k` triangular. What a real matrix had there that is real stays real.
fn split(form: &mut Dense<C64>, product: &mut Option<Dense<C64>>, k: usize) {
    let n = form.rows;
    let block = Dense { values: [0, 1].map(|j| [0, 1].map(|i| form.at(k + i, k + j))).concat(), rows: 2 };
    let [first, second] = pair(&block, 0);
    let turn = Turn::of(first - block.at(1, 1), block.at(1, 0));
    turn.rows(form, k, k);
    turn.columns(form, k, k + 2);
    if let Some(product) = product {
        turn.columns(product, k, n);
    }
    set(form, k, k, first);
    set(form, k + 1, k + 1, second);
    set(form, k + 1, k, C64::default());
}

/// The eigenvectors of a matrix `Q T Q^H` with a triangular T.
fn vectors(form: &Dense<C64>, product: &Dense<C64>, n: usize, is_complex: bool) -> Dense<C64> {
    let least = f64::EPSILON * length(&form.values).max(f64::MIN_POSITIVE / f64::EPSILON);
    let vector = |j: usize| {
        let value = form.at(j, j);
        let mut x: Vec<C64> = (0..j).map(|i| -form.at(i, j)).collect();
        x.push(C64::ONE);
        for i in (0..j).rev() {
            let mut by = form.at(i, i) - value;
            if modulus(by.re, by.im) < least {
                by = C64::of(least, 0.0);
            }
            x[i] = quotient(x[i], by);
            if x[i].taxi() > 1e100 {
                x.iter_mut().for_each(|x| *x *= 1e-100);
            }
            let (above, from) = x.split_at_mut(i);
            add(above, -from[0], &form.values[i * n..][..i]);
        }
        let mut sums = vec![C64::default(); n];
        for (column, &x) in product.values.chunks(n).zip(&x) {
            add(&mut sums, x, column);
        }
        let size = length(&sums);
        sums.iter_mut().for_each(|x| *x = C64::of(x.re / size, x.im / size));
        let square = |x: &C64| x.re * x.re + x.im * x.im;
        let largest = (0..n).fold(0, |most, i| if square(&sums[i]) > square(&sums[most]) { i } else { most });
        let unit = sums[largest].conj() * (1.0 / square(&sums[largest]).sqrt());
        sums.iter_mut().for_each(|x| *x *= unit);
        sums[largest].im = 0.0;
        if !is_complex && value.im == 0.0 {
            sums.iter_mut().for_each(|x| x.im = 0.0);
        }
        sums
    };
    let is_second = |j: usize| !is_complex && form.at(j, j).im < 0.0;
    let found = list(n, n * n * n, |j| if is_second(j) { Vec::new() } else { vector(j) });
    let conjugated = |j: usize| found[j - 1].iter().map(|x| x.conj()).collect();
    let all = (0..n).map(|j| if is_second(j) { conjugated(j) } else { found[j].clone() });
    Dense { values: all.collect::<Vec<Vec<C64>>>().concat(), rows: n }
}
