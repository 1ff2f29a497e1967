//! Conversions and sorting of indices, and transposition (`csr2csc`).

use std::ffi::{c_int, c_uint};

use linalg::{Kind, Scalar};
use mathlib::{Error, api};

use crate::call::{Call, Indices, Width, either, holder, size, sizes, with_type};
use crate::descriptor::{Description, csr};
use crate::handle::{Place, Ptr};
use crate::pattern::{Pattern, Source};
use crate::sparse::kind_of;
use crate::status::Status;

/// Indices of 32 bits.
fn ints(call: Call, what: &str, pointer: Ptr, count: usize) -> Result<Indices, Status> {
    call.indices(what, pointer, Width::Int, count)
}

/// Indices of 32 bits that the program may leave out.
fn ints_if_given(call: Call, what: &str, pointer: Ptr, count: usize) -> Result<Option<Indices>, Status> {
    if pointer.is_null() { Ok(None) } else { ints(call, what, pointer, count).map(Some) }
}

/// Rows of entries, checked, as places from 0 on.
fn rows_of(call: Call, rows: Indices, base: i64, limit: usize) -> Result<Vec<usize>, Error> {
    let check = |(at, raw): (usize, i64)| {
        let row = usize::try_from(raw - base).ok().filter(|&row| row < limit);
        row.ok_or_else(|| {
            call.fault(&format!("row index {at} is {raw}, and there are {limit} rows from {base} on"))
        })
    };
    rows.load(call)?.into_iter().enumerate().map(check).collect()
}

/// Sorts entries by a key, and the places in the permutation with them. Equal keys keep their order.
fn sort(call: Call, arrays: [Option<Indices>; 3], first: usize) -> Result<(), Status> {
    call.submit(move || {
        let load = |indices: Option<Indices>| indices.map(|indices| indices.load(call)).transpose();
        let values = [load(arrays[0])?, load(arrays[1])?, load(arrays[2])?];
        let (Some(one), Some(two)) = (&values[first], &values[1 - first]) else { return Ok(()) };
        let mut order: Vec<usize> = (0..one.len()).collect();
        order.sort_by_key(|&at| (one[at], two[at]));
        for (indices, values) in arrays.into_iter().zip(&values) {
            if let (Some(indices), Some(values)) = (indices, values) {
                indices.store(call, order.iter().map(|&at| values[at]))?;
            }
        }
        Ok(())
    })
}

/// Sorts the indices of compressed lines, and the places in the permutation with them.
fn sort_lines(
    call: Call,
    lines: [usize; 2],
    nnz: usize,
    base: i64,
    pointers: [Ptr; 2],
    places: Ptr,
) -> Result<(), Status> {
    let [offsets, indices] = pointers;
    // No values are named, so none are looked at.
    let of = csr(lines, nnz, base, Kind::I8, [std::ptr::null_mut(), offsets, indices]);
    let source = Source::of_pattern(call, "A", of)?;
    let indices = ints(call, "the indices of A", indices, nnz)?;
    let places = ints_if_given(call, "P", places, nnz)?;
    call.submit(move || {
        let pattern = source.pattern(call)?;
        let mut order: Vec<usize> = (0..pattern.count()).collect();
        for line in 0..pattern.size[0] {
            order[pattern.row(line)].sort_by_key(|&at| pattern.columns[at]);
        }
        indices.store(call, order.iter().map(|&at| pattern.columns[at] as i64 + base))?;
        if let Some(places) = places {
            let old = places.load(call)?;
            places.store(call, order.iter().map(|&at| old[at]))?;
        }
        Ok(())
    })
}

/// The arguments of `csr2csc`, checked: sizes, entries, base and kind.
fn transposition(
    sizes: [c_int; 3],
    kind: c_uint,
    action: c_uint,
    base: c_uint,
    algorithm: c_uint,
) -> Result<([usize; 2], usize, i64, Kind), Status> {
    let [m, n, nnz] = sizes;
    let kind = kind_of(kind)?;
    either(action)?;
    if !matches!(algorithm, 1 | 2) {
        return Err(Status::INVALID_VALUE);
    }
    if kind == Kind::I32 {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok(([size(m)?, size(n)?], size(nnz)?, either(base)?.into(), kind))
}

/// Writes the transposed matrix.
fn transpose<T: Scalar>(call: Call, from: Source, to: Source, with_values: bool) -> Result<(), Status> {
    call.submit(move || {
        let pattern: Pattern = from.pattern(call)?.transposed();
        to.write_pattern(call, &pattern)?;
        if with_values {
            let old = from.values.load::<T>(call)?;
            let new: Vec<T> = pattern.places.iter().map(|&place| old[place]).collect();
            to.values.store(call, 0, &new)?;
        }
        Ok(())
    })
}

api! { API: Status, name;
    /// Writes 0, 1, 2, ....
    cusparseCreateIdentityPermutation(handle: Ptr, n: c_int, places: Ptr) {
        let call = Call::begin(name, handle)?;
        let places = ints(call, "p", places, size(n)?)?;
        call.submit(move || places.store(call, (0..places.count).map(|at| at as i64)))
    }

    /// The offsets of compressed rows, from the rows of entries.
    cusparseXcoo2csr(handle: Ptr, rows: Ptr, nnz: c_int, m: c_int, offsets: Ptr, base: c_uint) {
        let call = Call::begin(name, handle)?;
        let (m, base) = (size(m)?, i64::from(either(base)?));
        let rows = ints(call, "the rows", rows, size(nnz)?)?;
        let offsets = ints(call, "the offsets", offsets, m + 1)?;
        call.submit(move || {
            let rows = rows_of(call, rows, base, m)?;
            let pattern = Pattern::of_entries([m, 1], &rows, &vec![0; rows.len()]);
            offsets.store(call, pattern.offsets.iter().map(|&offset| offset as i64 + base))
        })
    }

    /// The rows of entries, from the offsets of compressed rows.
    cusparseXcsr2coo(handle: Ptr, offsets: Ptr, nnz: c_int, m: c_int, rows: Ptr, base: c_uint) {
        let call = Call::begin(name, handle)?;
        let (m, nnz, base) = (size(m)?, size(nnz)?, i64::from(either(base)?));
        let offsets = ints(call, "the offsets", offsets, m + 1)?;
        let rows = ints(call, "the rows", rows, nnz)?;
        call.submit(move || {
            let offsets = offsets.load(call)?;
            let good = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
            if !good || offsets[0] != base || offsets[m] - base != nnz as i64 {
                return Err(call.fault(&format!("the offsets do not ascend from {base} to {nnz} above")));
            }
            let all: Vec<i64> = (0..m)
                .flat_map(|row| (offsets[row]..offsets[row + 1]).map(move |_| row as i64 + base))
                .collect();
            rows.store(call, all.into_iter())
        })
    }

    /// The device memory that sorting entries needs: none.
    cusparseXcoosort_bufferSizeExt(
        handle: Ptr, m: c_int, n: c_int, nnz: c_int, _rows: Ptr, _columns: Ptr, bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        sizes([m, n, nnz])?;
        bytes.write(0)
    }

    /// Sorts entries by rows, and within rows by columns. P changes in the same way, if it is given.
    cusparseXcoosortByRow(handle: Ptr, m: c_int, n: c_int, nnz: c_int, rows: Ptr, columns: Ptr, places: Ptr, _buffer: Ptr) {
        let call = Call::begin(name, handle)?;
        let [_, _, nnz] = sizes([m, n, nnz])?;
        let (rows, columns) = (ints(call, "the rows", rows, nnz)?, ints(call, "the columns", columns, nnz)?);
        sort(call, [Some(rows), Some(columns), ints_if_given(call, "P", places, nnz)?], 0)
    }

    /// Sorts entries by columns, and within columns by rows. P changes in the same way, if it is given.
    cusparseXcoosortByColumn(handle: Ptr, m: c_int, n: c_int, nnz: c_int, rows: Ptr, columns: Ptr, places: Ptr, _buffer: Ptr) {
        let call = Call::begin(name, handle)?;
        let [_, _, nnz] = sizes([m, n, nnz])?;
        let (rows, columns) = (ints(call, "the rows", rows, nnz)?, ints(call, "the columns", columns, nnz)?);
        sort(call, [Some(rows), Some(columns), ints_if_given(call, "P", places, nnz)?], 1)
    }

    /// The device memory that sorting lines needs: none.
    cusparseXcsrsort_bufferSizeExt cusparseXcscsort_bufferSizeExt(
        handle: Ptr, m: c_int, n: c_int, nnz: c_int, _offsets: Ptr, _indices: Ptr, bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        sizes([m, n, nnz])?;
        bytes.write(0)
    }

    /// Sorts the columns of each row. P changes in the same way, if it is given.
    cusparseXcsrsort(handle: Ptr, m: c_int, n: c_int, nnz: c_int, of: Ptr, offsets: Ptr, indices: Ptr, places: Ptr, _buffer: Ptr) {
        let call = Call::begin(name, handle)?;
        let base = Description::of(of)?.base;
        sort_lines(call, [size(m)?, size(n)?], size(nnz)?, base, [offsets, indices], places)
    }

    /// Sorts the rows of each column. P changes in the same way, if it is given.
    cusparseXcscsort(handle: Ptr, m: c_int, n: c_int, nnz: c_int, of: Ptr, offsets: Ptr, indices: Ptr, places: Ptr, _buffer: Ptr) {
        let call = Call::begin(name, handle)?;
        let base = Description::of(of)?.base;
        sort_lines(call, [size(n)?, size(m)?], size(nnz)?, base, [offsets, indices], places)
    }

    /// The device memory that `cusparseCsr2cscEx2` needs: none.
    cusparseCsr2cscEx2_bufferSize(
        handle: Ptr, m: c_int, n: c_int, nnz: c_int, _values: Ptr, _offsets: Ptr, _columns: Ptr, _to_values: Ptr,
        _to_offsets: Ptr, _to_rows: Ptr, kind: c_uint, action: c_uint, base: c_uint, algorithm: c_uint,
        bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        transposition([m, n, nnz], kind, action, base, algorithm)?;
        bytes.write(0)
    }

    /// Compressed columns from compressed rows, which are the transposed matrix: with values (`action` 1) or without.
    cusparseCsr2cscEx2(
        handle: Ptr, m: c_int, n: c_int, nnz: c_int, values: Ptr, offsets: Ptr, columns: Ptr, to_values: Ptr,
        to_offsets: Ptr, to_rows: Ptr, kind: c_uint, action: c_uint, base: c_uint, algorithm: c_uint, _buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let (size, nnz, base, kind) = transposition([m, n, nnz], kind, action, base, algorithm)?;
        let new = if action == 1 { Source::whole } else { Source::of_pattern };
        let from = new(call, "A", csr(size, nnz, base, kind, [values, offsets, columns]))?;
        let to = new(call, "the result", csr([size[1], size[0]], nnz, base, kind, [to_values, to_offsets, to_rows]))?;
        with_type!(holder(kind), transpose(call, from, to, action == 1))
    }
}
