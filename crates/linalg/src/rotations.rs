//! Rotations of neighbouring columns of a matrix, in the order in which they arise. The matrix is cut into bands of rows, so that
//! many rotations reach a band while it is in the cache, and threads share the bands.

use rayon::prelude::*;

use crate::number::Scalar;
use crate::operand::Dense;

/// Rows of a band, as real numbers.
const ROWS: usize = 32;
/// Rotations that are gathered.
const MANY: usize = 1 << 14;

/// A rotation: its first column, cosine and sine.
type Rotation = (usize, f64, f64);

/// A matrix whose columns are rotated.
pub struct Rotated<T: Scalar> {
    /// The parts of the rows of each band, by columns.
    bands: Vec<Vec<T::Real>>,
    rows: usize,
    columns: usize,
    waiting: Vec<Rotation>,
}

impl<T: Scalar> Rotated<T> {
    /// The parts of an element.
    const PARTS: usize = if T::IS_COMPLEX { 2 } else { 1 };

    /// A matrix of so many columns.
    pub fn new(of: &Dense<T>, columns: usize) -> Rotated<T> {
        let height = ROWS / Self::PARTS;
        let bands = (0..of.rows.div_ceil(height)).map(|band| {
            let mut parts = vec![T::Real::default(); ROWS * columns];
            for j in 0..columns {
                for i in 0..height.min(of.rows - band * height) {
                    let value = of.at(band * height + i, j);
                    parts[j * ROWS + i] = value.re();
                    if T::IS_COMPLEX {
                        parts[j * ROWS + height + i] = value.im();
                    }
                }
            }
            parts
        });
        Rotated { bands: bands.collect(), rows: of.rows, columns, waiting: Vec::new() }
    }

    /// Replaces columns `x` (with this number) and `y` (the next one) by `c x + s y` and `c y - s x`.
    pub fn rotate(&mut self, column: usize, c: f64, s: f64) {
        self.waiting.push((column, c, s));
        if self.waiting.len() >= MANY {
            self.flush();
        }
    }

    /// Does what has been gathered.
    fn flush(&mut self) {
        let rotations: Vec<(usize, T::Real, T::Real)> =
            self.waiting.drain(..).map(|(j, c, s)| (j, T::of(c, 0.0).re(), T::of(s, 0.0).re())).collect();
        let work = |parts: &mut Vec<T::Real>| {
            for &(j, c, s) in &rotations {
                let Some((x, y)) = parts[j * ROWS..(j + 2) * ROWS].split_at_mut_checked(ROWS) else {
                    continue;
                };
                for (x, y) in x.iter_mut().zip(y) {
                    (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
                }
            }
        };
        if rotations.len() * self.rows < crate::operand::FEW {
            self.bands.iter_mut().for_each(work);
        } else {
            self.bands.par_iter_mut().for_each(work);
        }
    }

    /// The matrix whose columns are those of the given numbers, each negated if asked for.
    pub fn take(mut self, order: &[(usize, bool)]) -> Dense<T> {
        self.flush();
        let height = ROWS / Self::PARTS;
        debug_assert!(order.iter().all(|&(j, _)| j < self.columns), "a column that is not there");
        Dense::new(self.rows, order.len(), |i, j| {
            let (column, negated) = order[j];
            let (parts, place) = (&self.bands[i / height], column * ROWS + i % height);
            let im = if T::IS_COMPLEX { parts[place + height] } else { T::Real::default() };
            let value = T::from_parts(parts[place], im);
            if negated { -value } else { value }
        })
    }
}
