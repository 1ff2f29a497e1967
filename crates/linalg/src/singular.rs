//! Singular values and vectors: Golub and Kahan's bidiagonal form, then the steps of Demmel and Kahan ("Accurate singular values of
//! bidiagonal matrices", 1990; LAPACK's `bdsqr`) in double precision.

use crate::chains::{add, adjoint, columns, dot, larger, modulus};
use crate::number::Scalar;
use crate::operand::Dense;
use crate::reflections::{Reflections, orthogonalize, reflector};
use crate::rotations::Rotated;
use crate::spectrum::moderate;

/// Columns whose multiples are added by one thread, so that the order of sums does not depend on their number.
const GROUP: usize = 64;
const EPSILON: f64 = f64::EPSILON * 0.5;
/// What is smaller than its neighbours by this factor counts as zero.
const TOLERANCE: f64 = 100.0 * EPSILON;

/// A real upper bidiagonal matrix B with A = Q B P^H.
pub struct Bidiagonal<T> {
    /// The diagonal.
    pub diagonal: Vec<f64>,
    /// What is above it.
    pub above: Vec<f64>,
    /// The factors of the reflections whose product is Q.
    pub left: Vec<T>,
    /// The factors of the reflections whose product is P.
    pub right: Vec<T>,
}

/// Replaces a matrix of `n` columns, at most as many as rows, by its bidiagonal form: below the diagonal are the vectors whose reflections
/// make Q, and right of the value above it, conjugated, those that make P (LAPACK's `gebrd`).
pub fn bidiagonalize<T: Scalar>(a: &mut Dense<T>, n: usize) -> Bidiagonal<T> {
    let m = a.rows;
    let mut result =
        Bidiagonal { diagonal: Vec::new(), above: Vec::new(), left: Vec::new(), right: Vec::new() };
    // A product `y u^H` that is to be subtracted from all columns from the next one on: rows below `k`.
    let (mut y, mut u): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
    for k in 0..n {
        let reduce = |column: &mut [T], j: usize, y: &[T], u: &[T]| {
            if !y.is_empty() {
                add(&mut column[m - y.len()..], -u[j - (n - u.len())].conjugate(), y);
            }
        };
        let column = &mut a.values[k * m..(k + 1) * m];
        reduce(column, k, &y, &u);
        let tau = reflector(&mut column[k..]);
        result.diagonal.push(column[k].re().into());
        result.left.push(tau);
        let mut v = column[k..].to_vec();
        v[0] = T::ONE;
        let work = (n - k) * (m - k) * 3;
        columns(a, k + 1..n, work, |j, column| {
            reduce(column, j, &y, &u);
            let by = tau.conjugate() * dot(&v, &column[k..]);
            add(&mut column[k..], -by, &v);
        });
        if k + 1 == n {
            break;
        }
        let mut row: Vec<T> = (k + 1..n).map(|j| a.at(k, j).conjugate()).collect();
        let tau = reflector(&mut row);
        result.above.push(row[0].re().into());
        result.right.push(tau);
        (k + 1..n).for_each(|j| a.values[k + j * m] = row[j - k - 1].conjugate());
        row[0] = T::ONE;
        let rest = m - k - 1;
        let groups = crate::operand::list(row.len().div_ceil(GROUP), work, |group| {
            let mut sums = vec![T::default(); rest];
            for (i, &by) in row.iter().enumerate().skip(group * GROUP).take(GROUP) {
                add(&mut sums, by, &a.values[(k + 1 + i) * m + k + 1..][..rest]);
            }
            sums
        });
        y = vec![T::default(); rest];
        groups.iter().for_each(|sums| add(&mut y, tau, sums));
        u = row;
    }
    result
}

/// Sine and cosine of the rotation that makes (f, g) a multiple of (1, 0), and the multiple.
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    if g == 0.0 {
        return (1.0, 0.0, f);
    }
    if f == 0.0 {
        return (0.0, 1.0, g);
    }
    let r = modulus(f, g);
    (f / r, g / r, r)
}

/// The smaller singular value of the matrix with rows (f, g) and (0, h).
fn smaller(f: f64, g: f64, h: f64) -> f64 {
    let (f, g, h) = (f.abs(), g.abs(), h.abs());
    let (least, most) = (f.min(h), f.max(h));
    if least == 0.0 {
        return 0.0;
    }
    let (sum, difference) = (1.0 + least / most, (most - least) / most);
    if g < most {
        let square = (g / most) * (g / most);
        let c = 2.0 / ((sum * sum + square).sqrt() + (difference * difference + square).sqrt());
        return least * c;
    }
    let ratio = most / g;
    if ratio == 0.0 {
        return (least * most) / g;
    }
    let (a, b) = (sum * ratio, difference * ratio);
    let c = 1.0 / ((1.0 + a * a).sqrt() + (1.0 + b * b).sqrt());
    2.0 * (least * c * ratio)
}

/// The singular values of the matrix with rows (f, g) and (0, h), the larger first and with their signs; cosine and sine of the right
/// rotation, and of the left one (LAPACK's `lasv2`).
fn two(f: f64, g: f64, h: f64) -> ([f64; 2], [f64; 2], [f64; 2]) {
    let is_swapped = h.abs() > f.abs();
    let (ft, ht) = if is_swapped { (h, f) } else { (f, h) };
    let (fa, ha, ga) = (ft.abs(), ht.abs(), g.abs());
    // Which of f, g and h is the largest.
    let mut largest = if is_swapped { 2 } else { 0 };
    let (mut least, mut most, left, right);
    if ga == 0.0 {
        (least, most, left, right) = (ha, fa, [1.0, 0.0], [1.0, 0.0]);
    } else if ga > fa && fa / ga < EPSILON {
        largest = 1;
        most = ga;
        least = if ha > 1.0 { fa / (ga / ha) } else { fa / ga * ha };
        (left, right) = ([1.0, ht / g], [ft / g, 1.0]);
    } else {
        if ga > fa {
            largest = 1;
        }
        let d = fa - ha;
        let l = if d == fa { 1.0 } else { d / fa };
        let (m, t) = (g / ft, 2.0 - l);
        let (mm, tt) = (m * m, t * t);
        let s = (tt + mm).sqrt();
        let r = if l == 0.0 { m.abs() } else { (l * l + mm).sqrt() };
        let a = 0.5 * (s + r);
        (least, most) = (ha / a, fa * a);
        let t = match (mm == 0.0, l == 0.0) {
            (true, true) => 2f64.copysign(ft) * 1f64.copysign(g),
            (true, false) => g / d.copysign(ft) + m / t,
            _ => (m / (s + t) + m / (r + l)) * (1.0 + a),
        };
        let l = (t * t + 4.0).sqrt();
        right = [2.0 / l, t / l];
        left = [(right[0] + right[1] * m) / a, ht / ft * right[1] / a];
    }
    let (left, right) = if is_swapped { ([right[1], right[0]], [left[1], left[0]]) } else { (left, right) };
    let sign = |x: f64| 1f64.copysign(x);
    let of_most = match largest {
        0 => sign(right[0]) * sign(left[0]) * sign(f),
        1 => sign(right[1]) * sign(left[0]) * sign(g),
        _ => sign(right[1]) * sign(left[1]) * sign(h),
    };
    most = most.copysign(of_most);
    least = least.copysign(of_most * sign(f) * sign(h));
    ([most, least], right, left)
}

/// Which side a rotation is for: that of the left or of the right singular vectors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Replaces the diagonal of an upper bidiagonal matrix by its singular values, in no order and with signs, and calls `rotate` for the
/// rotations of columns that make the singular vectors. Returns how many values above the diagonal have not become zero.
fn diagonalize(d: &mut [f64], e: &mut [f64], mut rotate: impl FnMut(Side, usize, f64, f64)) -> usize {
    use Side::{Left, Right};
    let n = d.len();
    if n < 2 {
        return 0;
    }
    let mut low = d[0].abs();
    let mut least = low;
    for i in 1..n {
        low = d[i].abs() * (low / (low + e[i - 1].abs()));
        least = least.min(low);
        if least == 0.0 {
            break;
        }
    }
    let nothing = (TOLERANCE * least / (n as f64).sqrt()).max(6.0 * (n * n) as f64 * f64::MIN_POSITIVE);
    let most_steps = 6 * n * n;
    let (mut steps, mut m) = (0, n - 1);
    let (mut old_first, mut old_last, mut downwards) = (usize::MAX, usize::MAX, true);
    'next: while m > 0 {
        if steps > most_steps || d[m].is_nan() {
            return e.iter().filter(|value| **value != 0.0).count().max(1);
        }
        if d[m].abs() <= nothing {
            d[m] = 0.0;
        }
        let mut most = d[m].abs();
        let mut first = 0;
        for l in (0..m).rev() {
            if d[l].abs() <= nothing {
                d[l] = 0.0;
            }
            if e[l].abs() <= nothing {
                e[l] = 0.0;
                first = l + 1;
                break;
            }
            most = larger(larger(most, d[l].abs()), e[l].abs());
        }
        if first == m {
            m -= 1;
            continue;
        }
        if first + 1 == m {
            let (values, right, left) = two(d[m - 1], e[m - 1], d[m]);
            [d[m - 1], d[m]] = values;
            e[m - 1] = 0.0;
            rotate(Right, m - 1, right[0], right[1]);
            rotate(Left, m - 1, left[0], left[1]);
            m = m.saturating_sub(2);
            continue;
        }
        // A block that is new is chased from its larger end.
        if old_last == usize::MAX || first > old_last || m < old_first {
            downwards = d[first].abs() >= d[m].abs();
        }
        let mut least;
        if downwards {
            if e[m - 1].abs() <= TOLERANCE * d[m].abs() {
                e[m - 1] = 0.0;
                continue;
            }
            let mut low = d[first].abs();
            least = low;
            for l in first..m {
                if e[l].abs() <= TOLERANCE * low {
                    e[l] = 0.0;
                    continue 'next;
                }
                low = d[l + 1].abs() * (low / (low + e[l].abs()));
                least = least.min(low);
            }
        } else {
            if e[first].abs() <= TOLERANCE * d[first].abs() {
                e[first] = 0.0;
                continue;
            }
            let mut low = d[m].abs();
            least = low;
            for l in (first..m).rev() {
                if e[l].abs() <= TOLERANCE * low {
                    e[l] = 0.0;
                    continue 'next;
                }
                low = d[l].abs() * (low / (low + e[l].abs()));
                least = least.min(low);
            }
        }
        (old_first, old_last) = (first, m);
        let mut shift = 0.0;
        if n as f64 * TOLERANCE * (least / most) > EPSILON.max(0.01 * TOLERANCE) {
            let end = if downwards {
                shift = smaller(d[m - 1], e[m - 1], d[m]);
                d[first].abs()
            } else {
                shift = smaller(d[first], e[first], d[first + 1]);
                d[m].abs()
            };
            if end > 0.0 && (shift / end) * (shift / end) < EPSILON {
                shift = 0.0;
            }
        }
        steps += m - first;
        if shift == 0.0 && downwards {
            let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
            for i in first..m {
                let (cosine, s, r) = rotation(d[i] * c, e[i]);
                if i > first {
                    e[i - 1] = old_s * r;
                }
                c = cosine;
                (old_c, old_s, d[i]) = rotation(old_c * r, d[i + 1] * s);
                rotate(Right, i, c, s);
                rotate(Left, i, old_c, old_s);
            }
            let h = d[m] * c;
            d[m] = h * old_c;
            e[m - 1] = h * old_s;
        } else if shift == 0.0 {
            let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
            for i in (first + 1..=m).rev() {
                let (cosine, s, r) = rotation(d[i] * c, e[i - 1]);
                if i < m {
                    e[i] = old_s * r;
                }
                c = cosine;
                (old_c, old_s, d[i]) = rotation(old_c * r, d[i - 1] * s);
                rotate(Right, i - 1, old_c, -old_s);
                rotate(Left, i - 1, c, -s);
            }
            let h = d[first] * c;
            d[first] = h * old_c;
            e[first] = h * old_s;
        } else if downwards {
            let mut f = (d[first].abs() - shift) * (1f64.copysign(d[first]) + shift / d[first]);
            let mut g = e[first];
            for i in first..m {
                let (c, s, r) = rotation(f, g);
                if i > first {
                    e[i - 1] = r;
                }
                f = c * d[i] + s * e[i];
                e[i] = c * e[i] - s * d[i];
                g = s * d[i + 1];
                d[i + 1] *= c;
                rotate(Right, i, c, s);
                let (c, s, r) = rotation(f, g);
                d[i] = r;
                f = c * e[i] + s * d[i + 1];
                d[i + 1] = c * d[i + 1] - s * e[i];
                if i + 1 < m {
                    g = s * e[i + 1];
                    e[i + 1] *= c;
                }
                rotate(Left, i, c, s);
            }
            e[m - 1] = f;
        } else {
            let mut f = (d[m].abs() - shift) * (1f64.copysign(d[m]) + shift / d[m]);
            let mut g = e[m - 1];
            for i in (first + 1..=m).rev() {
                let (c, s, r) = rotation(f, g);
                if i < m {
                    e[i] = r;
                }
                f = c * d[i] + s * e[i - 1];
                e[i - 1] = c * e[i - 1] - s * d[i];
                g = s * d[i - 1];
                d[i - 1] *= c;
                rotate(Left, i - 1, c, -s);
                let (c, s, r) = rotation(f, g);
                d[i] = r;
                f = c * e[i - 1] + s * d[i - 1];
                d[i - 1] = c * d[i - 1] - s * e[i - 1];
                if i > first + 1 {
                    g = s * e[i - 2];
                    e[i - 2] *= c;
                }
                rotate(Right, i - 1, c, -s);
            }
            e[first] = f;
        }
        let end = if downwards { &mut e[m - 1] } else { &mut e[first] };
        if end.abs() <= nothing {
            *end = 0.0;
        }
    }
    d.iter().filter(|value| value.is_nan()).count()
}

/// How many singular vectors of a side are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// None.
    None,
    /// As many as there are singular values.
    Few,
    /// A whole unitary matrix.
    All,
}

/// A = U S V^H.
pub struct Singular<T> {
    /// The singular values, in descending order.
    pub values: Vec<f64>,
    /// The left vectors, by columns, if they were asked for.
    pub left: Option<Dense<T>>,
    /// The right vectors, by columns, if they were asked for.
    pub right: Option<Dense<T>>,
    /// How many values have not been found: 0.
    pub failed: usize,
}

/// The singular values of a matrix of `n` columns, and the vectors that are asked for.
pub fn singular_values<T: Scalar>(mut a: Dense<T>, n: usize, left: Vectors, right: Vectors) -> Singular<T> {
    if a.rows < n {
        let rows = a.rows;
        let Singular { values, left, right, failed } = singular_values(adjoint(&a, n), rows, right, left);
        return Singular { values, left: right, right: left, failed };
    }
    let m = a.rows;
    let scale = moderate(&mut a.values);
    // Of a tall matrix, only R.
    let outer = (m >= n + n / 2 + 8).then(|| {
        let factors = orthogonalize(&mut a, n);
        let reflections = Reflections::below(&a, 0, factors);
        a = Dense::new(n, n, |i, j| if i <= j { a.at(i, j) } else { T::default() });
        reflections
    });
    let form = bidiagonalize(&mut a, n);
    let mut few = (left != Vectors::None).then(|| {
        // What is beyond the singular values is not rotated.
        let columns = if left == Vectors::All && outer.is_none() { m } else { n };
        Reflections::below(&a, 0, form.left).form(columns)
    });
    let mut rotated = few.as_ref().map(|matrix| Rotated::new(matrix, n));
    let mut turned = (right != Vectors::None).then(|| {
        // The vectors of P are in the rows.
        let rows = Dense::new(n, n, |i, j| a.at(j, i).conjugate());
        Rotated::new(&Reflections::below(&rows, 1, form.right).form(n), n)
    });
    let (mut d, mut e) = (form.diagonal, form.above);
    let failed = diagonalize(&mut d, &mut e, |side, column, c, s| {
        let to = if side == Side::Left { &mut rotated } else { &mut turned };
        if let Some(to) = to {
            to.rotate(column, c, s);
        }
    });
    let mut order: Vec<(usize, bool)> =
        d.iter().enumerate().map(|(j, d)| (j, d.is_sign_negative())).collect();
    order.sort_by(|a, b| d[b.0].abs().total_cmp(&d[a.0].abs()));
    let values = order.iter().map(|&(j, _)| d[j].abs() / scale).collect();
    let right = turned.map(|turned| turned.take(&order));
    order.iter_mut().for_each(|(_, negated)| *negated = false);
    let left = match (rotated, &mut few, outer) {
        (Some(rotated), Some(few), None) => {
            let first = rotated.take(&order);
            few.values[..first.values.len()].copy_from_slice(&first.values);
            Some(Dense { values: std::mem::take(&mut few.values), rows: m })
        }
        (Some(rotated), _, Some(outer)) => {
            let inner = rotated.take(&order);
            let count = if left == Vectors::All { m } else { n };
            let mut whole = Dense::new(m, count, |i, j| match (i < n && j < n, i == j) {
                (true, _) => inner.at(i, j),
                (false, true) => T::ONE,
                _ => T::default(),
            });
            outer.apply(false, &mut whole, 0, count);
            Some(whole)
        }
        _ => None,
    };
    Singular { values, left, right, failed }
}
