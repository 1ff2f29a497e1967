//! Factors of products as the program names them: transposed or not, of which triangle, of which type.

use mathlib::Error;
use rayon::prelude::*;

use crate::memory::{Matrix, Reached};
use crate::number::{Kind, Scalar, factor, to_tf32};
use crate::product::{Factor, Product, product};

/// `cublasOperation_t`: what happens to a matrix before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Rows become columns.
    pub transposed: bool,
    /// Elements are conjugated.
    pub conjugated: bool,
}

impl Operation {
    /// As it is.
    pub const NONE: Operation = Operation { transposed: false, conjugated: false };

    /// The operation with this number, if there is one.
    pub fn of(number: u32) -> Option<Operation> {
        (number <= 3).then_some(Operation { transposed: matches!(number, 1 | 2), conjugated: number >= 2 })
    }

    /// The rows and columns that a matrix has in memory, when these are what it gives.
    pub fn stored(self, [rows, columns]: [usize; 2]) -> [usize; 2] {
        if self.transposed { [columns, rows] } else { [rows, columns] }
    }

    /// An element, conjugated if it is to be.
    pub fn element<T: Scalar>(self, value: T) -> T {
        value.conjugate_if(self.conjugated)
    }
}

/// Sums of fewer elements are done by one thread.
pub const FEW: usize = 1 << 15;

/// Calls `work` for each number, on all threads if there is much to do.
pub fn each(count: usize, elements: usize, work: impl Fn(usize) + Send + Sync) {
    if elements < FEW || count < 2 {
        (0..count).for_each(work)
    } else {
        (0..count).into_par_iter().for_each(work)
    }
}

/// The numbers of a list, on all threads if there is much to do.
pub fn list<T: Send>(count: usize, elements: usize, work: impl Fn(usize) -> T + Send + Sync) -> Vec<T> {
    if elements < FEW || count < 2 {
        (0..count).map(work).collect()
    } else {
        (0..count).into_par_iter().map(work).collect()
    }
}

/// Values by columns without gaps.
pub struct Dense<T> {
    /// The values.
    pub values: Vec<T>,
    /// The rows.
    pub rows: usize,
}

impl<T: Scalar> Dense<T> {
    /// So many rows and columns, from a function.
    pub fn new(rows: usize, columns: usize, at: impl Fn(usize, usize) -> T + Send + Sync) -> Dense<T> {
        let columns = list(columns, rows * columns, |j| (0..rows).map(|i| at(i, j)).collect::<Vec<T>>());
        Dense { values: columns.concat(), rows }
    }

    /// An element.
    pub fn at(&self, row: usize, column: usize) -> T {
        self.values[row + column * self.rows]
    }

    /// A part of it as a factor: where it begins, and whether it is transposed.
    pub fn part(&self, row: usize, column: usize, operation: Operation) -> Factor<'_, T::Real> {
        let strides = if operation.transposed { [self.rows, 1] } else { [1, self.rows] };
        let start = self.values.as_ptr().wrapping_add(row + column * self.rows);
        // SAFETY: the values are there while the factor lives. A product uses those of this matrix, as its callers see to.
        unsafe { factor(start, strides, operation.conjugated) }
    }
}

/// What a product is computed with.
#[derive(Clone, Copy)]
pub struct Source {
    /// The matrix in memory.
    pub matrix: Matrix,
    /// What happens to it.
    pub operation: Operation,
}

/// The product of two matrices of the program.
///
/// # Errors
/// If their memory has gone.
pub fn multiply<T: Scalar>(
    who: &str,
    shape: [usize; 3],
    a: Source,
    b: Source,
    tf32: bool,
) -> Result<Product<T::Real>, Error> {
    let (left, right) = (Held::<T>::new(who, a.matrix, tf32)?, Held::<T>::new(who, b.matrix, tf32)?);
    Ok(product(shape, left.factor(a.operation), right.factor(b.operation)))
}

/// A matrix in place, or converted to the type that the function computes with.
pub struct Held<T> {
    reached: Reached,
    converted: Option<Vec<T>>,
}

impl<T: Scalar> Held<T> {
    /// The matrix, when the work runs; with `tf32`, rounded as tensor cores do.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn new(who: &str, matrix: Matrix, tf32: bool) -> Result<Held<T>, Error> {
        let reached = matrix.reach(who)?;
        let rounds = tf32 && matches!(T::KIND, Kind::R32 | Kind::C32);
        let converted = (rounds || matrix.kind != T::KIND).then(|| {
            let mut values: Vec<T> = reached.load();
            if rounds {
                for value in &mut values {
                    let [re, im] = value.wide().map(|part| f64::from(to_tf32(part as f32)));
                    *value = T::of(re, im);
                }
            }
            values
        });
        Ok(Held { reached, converted })
    }

    /// It as a factor of a product.
    pub fn factor(&self, operation: Operation) -> Factor<'_, T::Real> {
        let (start, ld) = match &self.converted {
            Some(values) => (values.as_ptr(), self.reached.of.rows),
            None => (self.reached.start::<T>().cast_const(), self.reached.of.ld),
        };
        let strides = if operation.transposed { [ld, 1] } else { [1, ld] };
        // SAFETY: the matrix is there while this lives.
        unsafe { factor(start, strides, operation.conjugated) }
    }
}

/// Which elements of a result are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// All.
    Full,
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

impl Region {
    /// The triangle that `cublasFillMode_t` names.
    pub fn triangle(upper: bool) -> Region {
        if upper { Region::Upper } else { Region::Lower }
    }

    /// The rows of a column that it has.
    pub fn rows(self, rows: usize, column: usize) -> std::ops::Range<usize> {
        match self {
            Region::Full => 0..rows,
            Region::Lower => column.min(rows)..rows,
            Region::Upper => 0..(column + 1).min(rows),
        }
    }
}

/// Writes `value(i, j) + beta C(i, j)` to a region of C. C is not read if beta is 0, and only scaled without values.
pub fn accumulate<T: Scalar>(
    into: &Reached,
    region: Region,
    beta: T,
    value: Option<&(dyn Fn(usize, usize) -> T + Sync)>,
    finish: impl Fn(usize, usize, T) -> T + Send + Sync,
) {
    let Matrix { rows, columns, .. } = into.of;
    each(columns, rows * columns, |j| {
        let range = region.rows(rows, j);
        for i in range.clone() {
            let old = || beta * into.read::<T>(i, j);
            let new = match (value, beta.is_zero()) {
                (Some(value), true) => value(i, j),
                (Some(value), false) => value(i, j) + old(),
                (None, true) => T::default(),
                (None, false) => old(),
            };
            into.write(i, j, finish(i, j, new));
        }
        into.wrote_rows(range, j);
    });
}

/// Writes a whole matrix.
///
/// # Errors
/// If its memory has gone.
pub fn store<T: Scalar>(who: &str, matrix: Matrix, values: &Dense<T>) -> Result<(), Error> {
    let into = matrix.reach(who)?;
    accumulate(&into, Region::Full, T::default(), Some(&|i, j| values.at(i, j)), |_, _, new| new);
    Ok(())
}
