//! Sums of sparse matrices (`csrgeam2`), and what counts and drops entries: `nnz`, `nnz_compress`, `csr2csr_compress`.

use std::ffi::{c_int, c_uint};

use linalg::{Kind, Operation, Scalar};
use mathlib::{Error, api};

use crate::call::{Call, Indices, Width, either, size, sizes};
use crate::declare::families;
use crate::dense::DnMat;
use crate::descriptor::{Description, counted, csr};
use crate::handle::{Place, Ptr};
use crate::multiply::combine;
use crate::pattern::{Matrix, Pattern, Source};
use crate::status::Status;

/// The sum of two patterns, whose rows are in the order of columns. Places count through the entries of A, and then those of B.
fn union(a: &Pattern, b: &Pattern) -> (Pattern, Vec<Vec<usize>>) {
    let mut sum = Pattern::of_size(a.size);
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for row in 0..a.size[0] {
        let of_b = b.row(row).map(|entry| (b.columns[entry], a.count() + entry));
        let mut terms: Vec<_> = a.row(row).map(|entry| (a.columns[entry], entry)).chain(of_b).collect();
        terms.sort_by_key(|&(column, _)| column);
        for (column, entry) in terms {
            let begin = sum.offsets[row];
            if sum.columns.len() > begin && sum.columns.last() == Some(&column) {
                if let Some(part) = parts.last_mut() {
                    part.push(entry);
                }
            } else {
                sum.columns.push(column);
                parts.push(vec![entry]);
            }
        }
        sum.offsets.push(sum.columns.len());
    }
    (sum, parts)
}

/// A matrix by compressed rows, as these functions name it.
#[derive(Clone, Copy)]
struct Named {
    of: Ptr,
    nnz: c_int,
    arrays: [Ptr; 3],
}

impl Named {
    /// Its source, with values or without.
    fn source(
        self,
        call: Call,
        what: &'static str,
        size_of: [usize; 2],
        kind: Option<Kind>,
    ) -> Result<Source, Status> {
        let base = Description::of(self.of)?.base;
        let new = if kind.is_some() { Source::whole } else { Source::of_pattern };
        new(call, what, csr(size_of, size(self.nnz)?, base, kind.unwrap_or(Kind::R32), self.arrays))
    }
}

/// C = alpha A + beta B, where the offsets of C are known.
fn add<T: Scalar>(
    call: Call,
    size_of: [c_int; 2],
    scalars: [Ptr; 2],
    [a, b]: [Named; 2],
    of_c: Ptr,
    c: [Ptr; 3],
) -> Result<(), Status> {
    let shape = sizes(size_of)?;
    let alpha = call.scalar::<T>("alpha", scalars[0], T::KIND)?;
    let beta = call.scalar::<T>("beta", scalars[1], T::KIND)?;
    let (a, b) = (a.source(call, "A", shape, Some(T::KIND))?, b.source(call, "B", shape, Some(T::KIND))?);
    let c = csr(shape, 0, Description::of(of_c)?.base, T::KIND, c);
    call.submit(move || {
        let factors = [alpha.get(call)?, beta.get(call)?];
        let a: Matrix<T> = a.matrix(call, Operation::NONE)?;
        let b: Matrix<T> = b.matrix(call, Operation::NONE)?;
        let (sum, parts) = union(&a.pattern, &b.pattern);
        let c = counted(call, "C", c)?;
        if c.values.count != sum.count() {
            let message =
                format!("C has {} entries by its offsets, and A + B has {}", c.values.count, sum.count());
            return Err(call.fault(&message));
        }
        c.write_pattern(call, &sum)?;
        let term = |&entry: &usize| match entry.checked_sub(a.values.len()) {
            None => combine([factors[0], T::default()], a.values[entry], T::default),
            Some(entry) => combine([factors[1], T::default()], b.values[entry], T::default),
        };
        let values: Vec<T> = parts
            .iter()
            .map(|part| part.iter().map(term).reduce(|sum, term| sum + term).unwrap_or_default())
            .collect();
        c.values.store(call, 0, &values)
    })
}

/// Which entries stay: those whose magnitude is above a bound.
fn stays<T: Scalar>(value: T, bound: T) -> bool {
    value.magnitude() > bound.re()
}

/// Counts per line, with what counts them. The total goes to the place that the pointer mode says.
fn count(
    call: Call,
    counts: Indices,
    total: Ptr,
    work: impl Fn() -> Result<Vec<i64>, Error> + Send + Sync + 'static,
) -> Result<(), Status> {
    call.deliver::<f64>(total, Kind::I32, move || {
        let lines = work()?;
        counts.store(call, lines.iter().copied())?;
        Ok(lines.iter().sum::<i64>() as f64)
    })
}

families! { FAMILIES:
    /// Counts the elements that are not zero in each row (direction 0) or column (1) of a dense matrix by columns, and all.
    "nnz" (direction: c_uint, m: c_int, n: c_int, of: Ptr, a: Ptr, lda: c_int, counts: Ptr, total: Ptr) |call| {
        Description::of(of)?;
        let (by_columns, shape) = (either(direction)?, [size(m)?, size(n)?]);
        let a = DnMat::by_columns(shape, lda, a, T::KIND)?.block(call, "A", 0)?;
        let lines = if by_columns { shape[1] } else { shape[0] };
        let counts = call.indices("the counts", counts, Width::Int, lines)?;
        let op = Operation { transposed: by_columns, conjugated: false };
        count(call, counts, total, move || {
            let values = a.load::<T>(call, op)?;
            let length = values.len() / lines.max(1);
            let of_line = |line: usize| values[line * length..][..length].iter().filter(|value| !value.is_zero()).count();
            Ok((0..lines).map(|line| of_line(line) as i64).collect())
        })
    }

    /// Counts the entries whose magnitude is above a bound, in each row and all.
    "nnz_compress" (m: c_int, of: Ptr, values: Ptr, offsets: Ptr, counts: Ptr, total: Ptr, bound: T) |call| {
        let (m, base) = (size(m)?, Description::of(of)?.base);
        let counts = call.indices("the counts", counts, Width::Int, m)?;
        let offsets = call.indices("the offsets of A", offsets, Width::Int, m + 1)?;
        if bound.re() < <T as Scalar>::Real::default() {
            return Err(Status::INVALID_VALUE);
        }
        let values = crate::sparse::Address::of(values);
        count(call, counts, total, move || {
            let offsets = offsets.load(call)?;
            let count = usize::try_from(offsets[m] - base).unwrap_or(usize::MAX);
            let array = call.array("the values of A", values.pointer(), T::KIND, count, || format!("{count} values"));
            let values = array.map_err(crate::descriptor::gone)?.load::<T>(call)?;
            let row = |row: usize| {
                let [begin, end] = [offsets[row] - base, offsets[row + 1] - base].map(|offset| offset as usize);
                let entries = values.get(begin..end).ok_or_else(|| call.fault("the offsets of A do not ascend"))?;
                Ok(entries.iter().filter(|&&value| stays(value, bound)).count() as i64)
            };
            (0..m).map(row).collect()
        })
    }

    /// Leaves out the entries whose magnitude is not above a bound. The rest are counted for each row.
    "csr2csr_compress" (
        m: c_int, n: c_int, of: Ptr, values: Ptr, columns: Ptr, offsets: Ptr, nnz: c_int, counts: Ptr, to_values: Ptr,
        to_columns: Ptr, to_offsets: Ptr, bound: T,
    ) |call| {
        let shape = sizes([m, n])?;
        let a = Named { of, nnz, arrays: [values, offsets, columns] }.source(call, "A", shape, Some(T::KIND))?;
        let base = Description::of(of)?.base;
        let counts = call.indices("the counts", counts, Width::Int, shape[0])?;
        let offsets = call.indices("the offsets of C", to_offsets, Width::Int, shape[0] + 1)?;
        let c = csr(shape, 0, base, T::KIND, [to_values, to_offsets, to_columns]);
        if bound.re() < <T as Scalar>::Real::default() {
            return Err(Status::INVALID_VALUE);
        }
        call.submit(move || {
            let a: Matrix<T> = a.matrix(call, Operation::NONE)?;
            let mut kept = Pattern::of_size(shape);
            let mut values = Vec::new();
            for row in 0..shape[0] {
                for (column, value) in a.row(row).filter(|&(_, value)| stays(value, bound)) {
                    kept.columns.push(column);
                    values.push(value);
                }
                kept.offsets.push(values.len());
            }
            let lengths: Vec<i64> = (0..shape[0]).map(|row| kept.row(row).len() as i64).collect();
            if counts.load(call)? != lengths {
                return Err(call.fault("the counts of the rows are not those of the entries that stay"));
            }
            offsets.store(call, kept.offsets.iter().map(|&offset| offset as i64 + base))?;
            let c = counted(call, "C", c)?;
            c.write_pattern(call, &kept)?;
            c.values.store(call, 0, &values)
        })
    }

    /// The device memory that `csrgeam2` needs: none.
    "csrgeam2_bufferSizeExt" (
        m: c_int, n: c_int, _alpha: Ptr, of_a: Ptr, nnz_a: c_int, _values_a: Ptr, _offsets_a: Ptr, _columns_a: Ptr,
        _beta: Ptr, of_b: Ptr, nnz_b: c_int, _values_b: Ptr, _offsets_b: Ptr, _columns_b: Ptr, of_c: Ptr,
        _values_c: Ptr, _offsets_c: Ptr, _columns_c: Ptr, bytes: Place<'_, usize>,
    ) |call| {
        sizes([m, n, nnz_a, nnz_b])?;
        [of_a, of_b, of_c].into_iter().try_for_each(|of| Description::of(of).map(drop))?;
        bytes.write(0)
    }

    /// C = alpha A + beta B, for sparse matrices, where `cusparseXcsrgeam2Nnz` has written the offsets of C.
    "csrgeam2" (
        m: c_int, n: c_int, alpha: Ptr, of_a: Ptr, nnz_a: c_int, values_a: Ptr, offsets_a: Ptr, columns_a: Ptr,
        beta: Ptr, of_b: Ptr, nnz_b: c_int, values_b: Ptr, offsets_b: Ptr, columns_b: Ptr, of_c: Ptr,
        values_c: Ptr, offsets_c: Ptr, columns_c: Ptr, _buffer: Ptr,
    ) |call| {
        let a = Named { of: of_a, nnz: nnz_a, arrays: [values_a, offsets_a, columns_a] };
        let b = Named { of: of_b, nnz: nnz_b, arrays: [values_b, offsets_b, columns_b] };
        add::<T>(call, [m, n], [alpha, beta], [a, b], of_c, [values_c, offsets_c, columns_c])
    }
}

api! { API: Status, name;
    /// The offsets of the sum of two sparse matrices, and how many entries it has.
    cusparseXcsrgeam2Nnz(
        handle: Ptr, m: c_int, n: c_int, of_a: Ptr, nnz_a: c_int, offsets_a: Ptr, columns_a: Ptr, of_b: Ptr,
        nnz_b: c_int, offsets_b: Ptr, columns_b: Ptr, of_c: Ptr, offsets_c: Ptr, total: Ptr, _buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let shape = sizes([m, n])?;
        let none = std::ptr::null_mut();
        let a = Named { of: of_a, nnz: nnz_a, arrays: [none, offsets_a, columns_a] }.source(call, "A", shape, None)?;
        let b = Named { of: of_b, nnz: nnz_b, arrays: [none, offsets_b, columns_b] }.source(call, "B", shape, None)?;
        let base = Description::of(of_c)?.base;
        let offsets = call.indices("the offsets of C", offsets_c, Width::Int, shape[0] + 1)?;
        call.deliver::<f64>(total, Kind::I32, move || {
            let (sum, _) = union(&a.pattern(call)?, &b.pattern(call)?);
            offsets.store(call, sum.offsets.iter().map(|&offset| offset as i64 + base))?;
            Ok(sum.count() as f64)
        })
    }
}
