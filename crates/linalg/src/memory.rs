//! Vectors and matrices in device memory. They are checked when the program calls, and reached when the work runs in a stream.

use std::ffi::c_void;

use mathlib::{Error, Memory, OutOfBounds, Range};

use crate::number::{self, Kind, Scalar};

/// Numbers of a kind in device memory.
#[derive(Clone, Copy)]
pub struct Vector {
    range: Range,
    kind: Kind,
    count: usize,
    step: i64,
}

/// A matrix in device memory, by columns.
#[derive(Clone, Copy)]
pub struct Matrix {
    range: Range,
    /// The kind of its elements.
    pub kind: Kind,
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// From one column to the next, in elements.
    pub ld: usize,
}

/// A matrix that the host can reach.
pub struct Reached {
    memory: Memory,
    /// The matrix.
    pub of: Matrix,
}

/// Elements of a kind at a pointer. `what` names them in the error, and `shape` says why there are so many.
///
/// # Errors
/// If they are not allocated.
pub fn range(
    pointer: *mut c_void,
    kind: Kind,
    count: usize,
    what: &str,
    shape: &dyn Fn() -> String,
) -> Result<Range, OutOfBounds> {
    let (parts, bytes) = kind.parts();
    let count = count.saturating_mul(parts);
    match bytes {
        1 => Range::of::<u8>(pointer.cast(), count, what, shape),
        2 => Range::of::<u16>(pointer.cast(), count, what, shape),
        4 => Range::of::<u32>(pointer.cast(), count, what, shape),
        _ => Range::of::<u64>(pointer.cast(), count, what, shape),
    }
}

/// How many elements a matrix spans.
fn extent(rows: usize, columns: usize, ld: usize) -> usize {
    match rows.min(columns) {
        0 => 0,
        _ => (columns - 1).saturating_mul(ld).saturating_add(rows),
    }
}

impl Vector {
    /// A vector at a pointer. A negative step begins at its end.
    ///
    /// # Errors
    /// If it is not allocated.
    pub fn at(
        what: &str,
        kind: Kind,
        pointer: *mut c_void,
        count: usize,
        step: i64,
    ) -> Result<Vector, OutOfBounds> {
        let span = match count {
            0 => 0,
            _ => (count - 1).saturating_mul(step.unsigned_abs() as usize).saturating_add(1),
        };
        let range = range(pointer, kind, span, what, &|| format!("{count} elements, inc {step}"))?;
        Ok(Vector { range, kind, count, step })
    }

    /// How many elements it has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The place of an element, in elements.
    fn place(&self, index: usize) -> isize {
        let first = if self.step < 0 { (self.count as i64 - 1) * -self.step } else { 0 };
        (first + index as i64 * self.step) as isize
    }

    /// Its values.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn load<T: Scalar>(&self, who: &str) -> Result<Vec<T>, Error> {
        let memory = self.range.reach(who)?;
        let start: *mut u8 = memory.pointer();
        // SAFETY: the range has these elements.
        Ok((0..self.count).map(|i| unsafe { number::read(self.kind, start, self.place(i)) }).collect())
    }

    /// Writes values, as many as it has. With a step of 0, the last one stays.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn store<T: Scalar>(&self, who: &str, values: &[T]) -> Result<(), Error> {
        let memory = self.range.reach(who)?;
        let start: *mut u8 = memory.pointer();
        let bytes = self.kind.bytes();
        for (i, &value) in values.iter().enumerate() {
            // SAFETY: the range has these elements.
            unsafe { number::write(self.kind, start, self.place(i), value) };
        }
        if self.step.unsigned_abs() <= 1 {
            memory.wrote::<u8>(0, memory.count::<u8>());
        } else {
            (0..values.len()).for_each(|i| memory.wrote::<u8>(self.place(i) as usize * bytes, bytes));
        }
        Ok(())
    }
}

impl Matrix {
    /// A matrix at a pointer.
    ///
    /// # Errors
    /// If it is not allocated.
    pub fn at(
        what: &str,
        kind: Kind,
        pointer: *mut c_void,
        [rows, columns]: [usize; 2],
        ld: usize,
    ) -> Result<Matrix, OutOfBounds> {
        let shape = || format!("{columns} columns of {rows} elements of {} bytes, ld {ld}", kind.bytes());
        let range = range(pointer, kind, extent(rows, columns, ld), what, &shape)?;
        Ok(Matrix { range, kind, rows, columns, ld })
    }

    /// The triangle of a matrix of such an order, packed: one column of all its elements.
    ///
    /// # Errors
    /// If it is not allocated.
    pub fn packed(what: &str, kind: Kind, pointer: *mut c_void, order: usize) -> Result<Matrix, OutOfBounds> {
        let count = order.saturating_mul(order + 1) / 2;
        let range = range(pointer, kind, count, what, &|| format!("packed, order {order}"))?;
        Ok(Matrix { range, kind, rows: count, columns: 1, ld: count.max(1) })
    }

    /// Its first rows, at most those that it has.
    pub fn top(self, rows: usize) -> Matrix {
        Matrix { rows: rows.min(self.rows), ..self }
    }

    /// Its first columns, at most those that it has.
    pub fn left(self, columns: usize) -> Matrix {
        Matrix { columns: columns.min(self.columns), ..self }
    }

    /// The matrix, when the work runs.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn reach(self, who: &str) -> Result<Reached, Error> {
        Ok(Reached { memory: self.range.reach(who)?, of: self })
    }
}

impl Reached {
    /// Its first element.
    pub fn start<T>(&self) -> *mut T {
        self.memory.pointer::<u8>().cast()
    }

    /// Reads an element.
    pub fn read<T: Scalar>(&self, row: usize, column: usize) -> T {
        debug_assert!(row < self.of.rows && column < self.of.columns, "an element beyond the matrix");
        // SAFETY: the range has this element.
        unsafe { number::read(self.of.kind, self.start(), (row + column * self.of.ld) as isize) }
    }

    /// Writes an element. [`Reached::wrote`] tells the driver.
    pub fn write<T: Scalar>(&self, row: usize, column: usize, value: T) {
        debug_assert!(row < self.of.rows && column < self.of.columns, "an element beyond the matrix");
        // SAFETY: the range has this element.
        unsafe { number::write(self.of.kind, self.start(), (row + column * self.of.ld) as isize, value) }
    }

    /// Its values, by columns without gaps.
    pub fn load<T: Scalar>(&self) -> Vec<T> {
        let Matrix { rows, columns, .. } = self.of;
        (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| self.read(i, j)).collect()
    }

    /// Tells the driver that rows of a column have been written.
    pub fn wrote_rows(&self, rows: std::ops::Range<usize>, column: usize) {
        let bytes = self.of.kind.bytes();
        self.memory.wrote::<u8>((rows.start + column * self.of.ld) * bytes, rows.len() * bytes);
    }

    /// Tells the driver that all elements have been written.
    pub fn wrote(&self) {
        match self.of.ld == self.of.rows {
            true => self.memory.wrote::<u8>(0, self.memory.count::<u8>()),
            false => (0..self.of.columns).for_each(|column| self.wrote_rows(0..self.of.rows, column)),
        }
    }
}
