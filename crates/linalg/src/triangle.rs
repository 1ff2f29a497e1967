//! Triangular matrices: products with them, and systems of equations. Blocks of the diagonal are done here, and the rest is products.

use mathlib::Error;

use crate::memory::{Matrix, Reached};
use crate::number::Scalar;
use crate::operand::{Dense, Operation, list};
use crate::product::product;

/// Rows of a block of the diagonal.
const BLOCK: usize = 64;

/// A triangular matrix, with zeros in the other triangle.
pub struct Triangle<T> {
    values: Dense<T>,
    order: usize,
    is_lower: bool,
    is_unit: bool,
}

/// The triangle that the program names, and what happens to it.
#[derive(Clone, Copy)]
pub struct Named {
    /// The matrix in memory, or its packed or banded form.
    pub matrix: Matrix,
    /// Whether it is on and above the diagonal, in memory.
    pub is_upper: bool,
    /// What happens to it.
    pub operation: Operation,
    /// Whether the diagonal is 1 and not read.
    pub is_unit: bool,
}

impl<T: Scalar> Triangle<T> {
    /// The triangle, when the work runs, transposed once more if asked for.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn load(who: &str, named: Named, again: bool) -> Result<Triangle<T>, Error> {
        let reached = named.matrix.reach(who)?;
        Ok(Triangle::of(&reached, named, again))
    }

    /// The same of a matrix that is reached.
    pub fn of(reached: &Reached, named: Named, again: bool) -> Triangle<T> {
        let Named { is_upper, operation, is_unit, .. } = named;
        let order = reached.of.rows.min(reached.of.columns);
        let is_turned = operation.transposed != again;
        let is_lower = is_upper == is_turned;
        let values = Dense::new(order, order, |i, j| {
            let is_there = if is_lower { j <= i } else { i <= j };
            match i == j {
                true if is_unit => T::ONE,
                _ if !is_there => T::default(),
                _ => {
                    let (row, column) = if is_turned { (j, i) } else { (i, j) };
                    operation.element(reached.read(row, column))
                }
            }
        });
        Triangle { values, order, is_lower, is_unit }
    }

    /// A triangle of such an order from a function, which is called for its elements only, and not for those of a diagonal of ones.
    pub fn new(
        order: usize,
        [is_lower, is_unit]: [bool; 2],
        at: impl Fn(usize, usize) -> T + Send + Sync,
    ) -> Triangle<T> {
        let values = Dense::new(order, order, |i, j| match (i == j, (i > j) == is_lower) {
            (true, _) if is_unit => T::ONE,
            (true, _) | (_, true) => at(i, j),
            _ => T::default(),
        });
        Triangle { values, order, is_lower, is_unit }
    }

    /// The columns of a row that are not zero, within these.
    fn columns(&self, row: usize, within: std::ops::Range<usize>) -> std::ops::Range<usize> {
        if self.is_lower { within.start..row + 1 } else { row..within.end }
    }

    /// What of the rows of a block lies beside it.
    fn beside(&self, block: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        if self.is_lower { 0..block.start } else { block.end..self.order }
    }

    fn blocks(&self) -> Vec<std::ops::Range<usize>> {
        (0..self.order).step_by(BLOCK).map(|start| start..(start + BLOCK).min(self.order)).collect()
    }

    /// The product with a matrix of so many columns: the block of the diagonal in ascending order, then what lies beside it.
    pub fn times(&self, of: &Dense<T>, columns: usize) -> Dense<T> {
        let mut result = Dense { values: vec![T::default(); self.order * columns], rows: self.order };
        for block in self.blocks() {
            let beside = self.beside(&block);
            let left = self.values.part(block.start, beside.start, Operation::NONE);
            let right = of.part(beside.start, 0, Operation::NONE);
            let sums = product([block.len(), columns, beside.len()], left, right);
            let new = list(columns, block.len() * block.len() * columns, |c| {
                let rows = block.clone().map(|i| {
                    let terms = self.columns(i, block.clone()).map(|j| self.values.at(i, j) * of.at(j, c));
                    let sum = terms.fold(T::default(), |sum, term| sum + term);
                    sum + sums.at::<T>(i - block.start, c)
                });
                rows.collect::<Vec<T>>()
            });
            result.set(block.start, &new);
        }
        result
    }

    /// Solves the system for a matrix of so many columns, in place.
    pub fn solve(&self, x: &mut Dense<T>, columns: usize) {
        let mut blocks = self.blocks();
        if !self.is_lower {
            blocks.reverse();
        }
        for block in blocks {
            let beside = self.beside(&block);
            let left = self.values.part(block.start, beside.start, Operation::NONE);
            let right = x.part(beside.start, 0, Operation::NONE);
            let sums = product([block.len(), columns, beside.len()], left, right);
            let new = list(columns, block.len() * block.len() * columns, |c| {
                let mut solved: Vec<T> = block.clone().map(|i| x.at(i, c)).collect();
                let rows: Vec<usize> = match self.is_lower {
                    true => block.clone().collect(),
                    false => block.clone().rev().collect(),
                };
                for i in rows {
                    let mut sum = solved[i - block.start] - sums.at::<T>(i - block.start, c);
                    for j in self.columns(i, block.clone()).filter(|&j| j != i) {
                        sum = sum - self.values.at(i, j) * solved[j - block.start];
                    }
                    solved[i - block.start] = if self.is_unit { sum } else { sum / self.values.at(i, i) };
                }
                solved
            });
            x.set(block.start, &new);
        }
    }
}

impl<T: Scalar> Dense<T> {
    /// Replaces rows, from one on, of all columns.
    pub fn set(&mut self, first: usize, columns: &[Vec<T>]) {
        for (c, column) in columns.iter().enumerate() {
            let start = first + c * self.rows;
            self.values[start..start + column.len()].copy_from_slice(column);
        }
    }

    /// The values of a matrix, transposed if asked for.
    pub fn load(from: &Reached, transposed: bool) -> Dense<T> {
        let Matrix { rows, columns, .. } = from.of;
        match transposed {
            true => Dense::new(columns, rows, |i, j| from.read(j, i)),
            false => Dense::new(rows, columns, |i, j| from.read(i, j)),
        }
    }
}
