//! Which elements of a matrix are stored, and where, whatever its format: rows that name the columns of their entries and the places of
//! the values. Offsets and indices come from the program's memory, so all are checked.

use linalg::{Operation, Scalar};
use mathlib::Error;
use rayon::prelude::*;

use crate::call::{Array, Call, Done, Indices, Width};
use crate::sparse::{Format, SpMat};
use crate::status::Status;

/// Work on fewer numbers is done by one thread.
const FEW: usize = 1 << 14;

/// Rows take memory of the host. A matrix may have as many without entries, unless the program has allocated their offsets.
const ROWS: usize = 1 << 26;

/// A sparse matrix whose arrays are allocated.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    what: &'static str,
    of: SpMat,
    first: Option<Indices>,
    second: Indices,
    /// Its values.
    pub values: Array,
}

/// The entries of a matrix by rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// The rows and columns of the matrix.
    pub size: [usize; 2],
    /// Where the entries of each row begin, and the end of the last.
    pub offsets: Vec<usize>,
    /// The columns of the entries.
    pub columns: Vec<usize>,
    /// The places of their values.
    pub places: Vec<usize>,
}

/// A sparse matrix of numbers.
#[derive(Clone, Debug, Default)]
pub struct Matrix<T> {
    /// Its entries.
    pub pattern: Pattern,
    /// Their values, in the order of the pattern.
    pub values: Vec<T>,
}

impl Source {
    /// The matrix that a descriptor names.
    ///
    /// # Errors
    /// If its arrays are not allocated.
    pub fn whole(call: Call, what: &'static str, of: SpMat) -> Result<Source, Status> {
        Source::new(call, what, of, 0)
    }

    /// A matrix whose values do not matter: it has none.
    ///
    /// # Errors
    /// If its other arrays are not allocated.
    pub fn of_pattern(call: Call, what: &'static str, of: SpMat) -> Result<Source, Status> {
        Source::with_values(call, what, of, 0, 0)
    }

    /// The matrix of a batch that a descriptor names.
    ///
    /// # Errors
    /// If its arrays are not allocated.
    pub fn new(call: Call, what: &'static str, of: SpMat, of_batch: usize) -> Result<Source, Status> {
        Source::with_values(call, what, of, of_batch, of.stored())
    }

    /// The same, with so many values.
    fn with_values(
        call: Call,
        what: &'static str,
        of: SpMat,
        of_batch: usize,
        stored: usize,
    ) -> Result<Source, Status> {
        if of.format != Format::Csr && of.size[0] > ROWS.saturating_add(of.stored()) {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        let offsets = |lines: usize| lines.saturating_add(1);
        let [rows, columns] = of.size;
        let (first, second) = match of.format {
            Format::Csr => (Some(("offsets", offsets(rows))), ("columns", of.nnz)),
            Format::Csc => (Some(("offsets", offsets(columns))), ("rows", of.nnz)),
            Format::Coo => (Some(("rows", of.nnz)), ("columns", of.nnz)),
            Format::Bsr => (Some(("offsets", offsets(rows / of.shape[0]))), ("columns", of.nnz)),
            Format::BlockedEll => {
                (None, ("columns", (rows / of.shape[0]).saturating_mul(of.shape[1] / of.shape[0])))
            }
            Format::SlicedEll => {
                (Some(("offsets", offsets(rows.div_ceil(of.shape[0])))), ("columns", of.shape[1]))
            }
        };
        let at = |which: usize, bytes: usize| {
            let by = of.strides[which].wrapping_mul(of_batch as i64).wrapping_mul(bytes as i64);
            of.pointers[which].pointer().wrapping_byte_offset(by as isize)
        };
        let [one, two] = of.widths;
        let named = |which: usize, width: Width, (array, count): (&str, usize)| {
            call.indices(&format!("the {array} of {what}"), at(which, width.bytes()), width, count)
        };
        let shape = || format!("{stored} values of a matrix of {rows} x {columns}");
        let values =
            call.array(&format!("the values of {what}"), at(2, of.kind.bytes()), of.kind, stored, shape)?;
        Ok(Source {
            what,
            of,
            first: first.map(|first| named(0, one, first)).transpose()?,
            second: named(1, two, second)?,
            values,
        })
    }

    /// Refuses what an array of the program says.
    fn wrong(&self, call: Call, message: &str) -> Error {
        call.fault(&format!("{}: {message}", self.what))
    }

    /// Checks offsets: where the entries of each line begin among `count`.
    fn offsets(&self, call: Call, count: usize) -> Result<Vec<usize>, Error> {
        let raw = self.first.ok_or(Error::INVALID_VALUE)?.load(call)?;
        let mut last = 0;
        let mut offsets = Vec::with_capacity(raw.len());
        for (line, &raw) in raw.iter().enumerate() {
            let offset = usize::try_from(raw.wrapping_sub(self.of.base)).unwrap_or(usize::MAX);
            if offset < last || offset > count || line == 0 && offset != 0 {
                let base = self.of.base;
                return Err(self.wrong(
                    call,
                    &format!("offset {line} is {raw}: offsets begin at {base}, ascend, and are at most {count} above"),
                ));
            }
            last = offset;
            offsets.push(offset);
        }
        Ok(offsets)
    }

    /// Checks an index of an array, one of so many `things`.
    fn index(&self, call: Call, at: usize, raw: i64, limit: usize, things: &str) -> Result<usize, Error> {
        let index = raw.wrapping_sub(self.of.base);
        usize::try_from(index).ok().filter(|&index| index < limit).ok_or_else(|| {
            let base = self.of.base;
            self.wrong(call, &format!("index {at} is {raw}, and there are {limit} {things} from {base} on"))
        })
    }

    /// Checks all indices of an array.
    fn checked(
        &self,
        call: Call,
        indices: Indices,
        count: usize,
        limit: usize,
        things: &str,
    ) -> Result<Vec<usize>, Error> {
        let raw = indices.load(call)?;
        let checked = raw.into_iter().take(count).enumerate();
        checked.map(|(at, raw)| self.index(call, at, raw, limit, things)).collect()
    }

    /// The entries of the matrix, in each row in the order in which they are stored.
    ///
    /// # Errors
    /// If an offset or an index is wrong, or memory has gone.
    pub fn pattern(&self, call: Call) -> Result<Pattern, Error> {
        let size = self.of.size;
        let [rows, columns] = size;
        Ok(match self.of.format {
            Format::Csr => self.compressed(call, size, "columns")?,
            Format::Csc => self.compressed(call, [columns, rows], "rows")?.transposed(),
            Format::Coo => {
                let first = self.first.ok_or(Error::INVALID_VALUE)?;
                let of_rows = self.checked(call, first, self.of.nnz, rows, "rows")?;
                let of_columns = self.checked(call, self.second, self.of.nnz, columns, "columns")?;
                Pattern::of_entries(size, &of_rows, &of_columns)
            }
            Format::Bsr => {
                let [down, across] = self.of.shape;
                let blocks = self.compressed(call, [rows / down, columns / across], "columns of blocks")?;
                blocks.expanded(self.of.shape, self.of.by_rows)
            }
            Format::BlockedEll => self.blocked(call)?,
            Format::SlicedEll => self.sliced(call)?,
        })
    }

    /// Compressed lines.
    fn compressed(&self, call: Call, size: [usize; 2], things: &str) -> Result<Pattern, Error> {
        let offsets = self.offsets(call, self.of.nnz)?;
        let count = offsets.last().copied().unwrap_or(0);
        let columns = self.checked(call, self.second, count, size[1], things)?;
        Ok(Pattern { size, offsets, columns, places: (0..count).collect() })
    }

    /// Rows of blocks with as many blocks each. An index below the base is a block that is not there.
    fn blocked(&self, call: Call) -> Result<Pattern, Error> {
        let ([rows, columns], [block, width]) = (self.of.size, self.of.shape);
        let raw = self.second.load(call)?;
        let mut pattern = Pattern::of_size([rows, columns]);
        for row in 0..rows {
            let line = row / block * (width / block);
            for (at, &index) in raw[line..line + width / block].iter().enumerate() {
                if index < self.of.base {
                    continue;
                }
                let index = self.index(call, line + at, index, columns / block, "columns of blocks")?;
                let place = row * width + at * block;
                pattern.columns.extend(index * block..(index + 1) * block);
                pattern.places.extend(place..place + block);
            }
            pattern.offsets.push(pattern.columns.len());
        }
        Ok(pattern)
    }

    /// Slices, whose entries lie by columns. An index below the base is an entry that is not there.
    fn sliced(&self, call: Call) -> Result<Pattern, Error> {
        let ([rows, columns], [slice, stored]) = (self.of.size, self.of.shape);
        let (offsets, raw) = (self.offsets(call, stored)?, self.second.load(call)?);
        let mut pattern = Pattern::of_size([rows, columns]);
        for row in 0..rows {
            let (begin, end) = (offsets[row / slice], offsets[row / slice + 1]);
            for place in (begin + row % slice..end).step_by(slice) {
                if raw[place] >= self.of.base {
                    pattern.columns.push(self.index(call, place, raw[place], columns, "columns")?);
                    pattern.places.push(place);
                }
            }
            pattern.offsets.push(pattern.columns.len());
        }
        Ok(pattern)
    }

    /// What an operation makes of the matrix, when the work runs.
    ///
    /// # Errors
    /// As for [`Source::pattern`].
    pub fn matrix<T: Scalar>(&self, call: Call, operation: Operation) -> Result<Matrix<T>, Error> {
        let mut pattern = self.pattern(call)?;
        if operation.transposed {
            pattern = pattern.transposed();
        }
        let values = self.values.reach(call)?;
        let values = pattern.places.iter().map(|&place| operation.element(values.get::<T>(place))).collect();
        Ok(Matrix { pattern, values })
    }

    /// Writes the offsets and indices of a matrix by compressed lines, by entries or by blocks.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn write_pattern(&self, call: Call, pattern: &Pattern) -> Done {
        let based = |&index: &usize| index as i64 + self.of.base;
        if let Some(first) = self.first {
            match self.of.format {
                Format::Coo => first.store(call, pattern.rows().iter().map(based))?,
                _ => first.store(call, pattern.offsets.iter().map(based))?,
            }
        }
        self.write_columns(call, pattern)
    }

    /// Writes the indices of its entries alone.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn write_columns(&self, call: Call, pattern: &Pattern) -> Done {
        self.second.store(call, pattern.columns.iter().map(|&index| index as i64 + self.of.base))
    }
}

impl Pattern {
    /// One whose rows are still to be added.
    pub fn of_size(size: [usize; 2]) -> Pattern {
        Pattern { size, offsets: vec![0], columns: Vec::new(), places: Vec::new() }
    }

    /// Entries in any order, which are below the size. Those of a row keep their order.
    pub fn of_entries(size: [usize; 2], rows: &[usize], columns: &[usize]) -> Pattern {
        let mut offsets = vec![0; size[0] + 1];
        rows.iter().for_each(|&row| offsets[row + 1] += 1);
        for row in 0..size[0] {
            offsets[row + 1] += offsets[row];
        }
        let mut next = offsets.clone();
        let mut pattern =
            Pattern { size, offsets, columns: vec![0; rows.len()], places: vec![0; rows.len()] };
        for (place, (&row, &column)) in rows.iter().zip(columns).enumerate() {
            let at = next[row];
            next[row] += 1;
            (pattern.columns[at], pattern.places[at]) = (column, place);
        }
        pattern
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// The entries of a row, as places in the pattern.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row]..self.offsets[row + 1]
    }

    /// The row of each entry.
    pub fn rows(&self) -> Vec<usize> {
        (0..self.size[0]).flat_map(|row| self.row(row).map(move |_| row)).collect()
    }

    /// Rows become columns. The entries of a row are in the order of their columns.
    pub fn transposed(&self) -> Pattern {
        let [rows, columns] = self.size;
        let mut pattern = Pattern::of_entries([columns, rows], &self.columns, &self.rows());
        pattern.places.iter_mut().for_each(|place| *place = self.places[*place]);
        pattern
    }

    /// The elements of blocks of `down` rows and `across` columns.
    pub fn expanded(&self, [down, across]: [usize; 2], by_rows: bool) -> Pattern {
        let mut pattern = Pattern::of_size([self.size[0] * down, self.size[1] * across]);
        for row in 0..pattern.size[0] {
            let within = row % down;
            for entry in self.row(row / down) {
                let (column, place) = (self.columns[entry] * across, self.places[entry] * down * across);
                pattern.columns.extend(column..column + across);
                pattern.places.extend((0..across).map(|at| match by_rows {
                    true => place + within * across + at,
                    false => place + at * down + within,
                }));
            }
            pattern.offsets.push(pattern.columns.len());
        }
        pattern
    }
}

impl<T: Scalar> Matrix<T> {
    /// The columns and values of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, T)> {
        let entries = self.pattern.row(row);
        self.pattern.columns[entries.clone()].iter().copied().zip(self.values[entries].iter().copied())
    }

    /// The product with a dense matrix that has so many columns and lies by rows. Sums are in the order of each row's entries.
    pub fn times(&self, x: &[T], columns: usize) -> Vec<T> {
        let mut sums = vec![T::default(); self.pattern.size[0] * columns];
        let work = |(row, sums): (usize, &mut [T])| {
            for (at, value) in self.row(row) {
                for (sum, &x) in sums.iter_mut().zip(&x[at * columns..]) {
                    *sum = *sum + value * x;
                }
            }
        };
        if columns > 0 {
            by_rows(&mut sums, columns, self.pattern.count() * columns, work);
        }
        sums
    }
}

/// Calls a function for rows of so many values, on all threads if there is much to do.
pub fn by_rows<T: Send>(
    values: &mut [T],
    columns: usize,
    cost: usize,
    work: impl Fn((usize, &mut [T])) + Send + Sync,
) {
    match cost < FEW {
        true => values.chunks_exact_mut(columns).enumerate().for_each(work),
        false => values.par_chunks_exact_mut(columns).enumerate().for_each(work),
    }
}

/// The numbers of a list, on all threads if there is much to do.
pub fn list<R: Send>(count: usize, cost: usize, work: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
    match cost < FEW {
        true => (0..count).map(work).collect(),
        false => (0..count).into_par_iter().map(work).collect(),
    }
}
