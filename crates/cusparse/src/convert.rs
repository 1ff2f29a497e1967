//! Sparse matrices from dense ones, and back.

use std::ffi::c_uint;

use linalg::{Operation, Scalar};
use mathlib::api;

use crate::call::{Call, holder, with_type};
use crate::dense::{Block, DnMat};
use crate::handle::{Place, Ptr};
use crate::pattern::{Pattern, Source};
use crate::sparse::{Format, SpMat};
use crate::status::Status;

/// The arguments of both conversions, checked.
fn pair(a: Ptr, b: Ptr, sparse: Ptr, algorithm: c_uint) -> Result<(DnMat, SpMat), Status> {
    let dense = DnMat::of(if sparse == a { b } else { a })?;
    let sparse = SpMat::of(sparse)?;
    if dense.size != sparse.size || algorithm != 0 {
        return Err(Status::INVALID_VALUE);
    }
    // Rows without elements take no memory of the program, and some of the host.
    if dense.size.contains(&0) && dense.size.iter().any(|&size| size > 1 << 26) {
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    if dense.kind != sparse.kind
        || sparse.format == Format::SlicedEll
        || dense.count != 1
        || sparse.count != 1
    {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok((dense, sparse))
}

/// B = A, for a sparse matrix A. Entries that a matrix has twice are added.
fn to_dense<T: Scalar>(call: Call, a: Source, b: Block) -> Result<(), Status> {
    call.submit(move || {
        let a = a.matrix::<T>(call, Operation::NONE)?;
        let [rows, columns] = a.pattern.size;
        let mut values = vec![T::default(); rows * columns];
        for row in 0..rows {
            a.row(row).for_each(|(column, value)| {
                let place = &mut values[row * columns + column];
                *place = *place + value;
            });
        }
        b.store(call, &values)
    })
}

/// The entries that are not zero of a dense matrix by rows, in the order of a format: its lines, from offsets to offsets.
fn found<T: Scalar>(
    values: &[T],
    [rows, columns]: [usize; 2],
    format: Format,
    [down, across]: [usize; 2],
) -> Pattern {
    let by_columns = format == Format::Csc;
    let size = if by_columns { [columns, rows] } else { [rows / down, columns / across] };
    let mut pattern = Pattern::of_size(size);
    for line in 0..size[0] {
        for at in 0..size[1] {
            let there = match (by_columns, format) {
                (true, _) => !values[at * columns + line].is_zero(),
                (_, Format::Bsr) => (0..down * across).any(|within| {
                    let (row, column) = (line * down + within / across, at * across + within % across);
                    !values[row * columns + column].is_zero()
                }),
                _ => !values[line * columns + at].is_zero(),
            };
            if there {
                pattern.columns.push(at);
            }
        }
        pattern.offsets.push(pattern.columns.len());
    }
    pattern
}

/// Counts the entries, and writes where they begin, if the matrix has offsets.
fn analyse<T: Scalar>(call: Call, a: Block, b: SpMat) -> Result<usize, Status> {
    let offsets = match b.format {
        Format::Csr | Format::Csc | Format::Bsr if !b.pointers[0].is_null() => {
            let lines = match b.format {
                Format::Csc => b.size[1],
                _ => b.size[0] / b.shape[0],
            };
            Some(call.indices("the offsets of B", b.pointers[0].pointer(), b.widths[0], lines + 1)?)
        }
        _ => None,
    };
    let shape = if b.format == Format::Bsr { b.shape } else { [1, 1] };
    call.wait(move || {
        let pattern = found(&a.load::<T>(call, Operation::NONE)?, b.size, b.format, shape);
        if let Some(offsets) = offsets {
            offsets.store(call, pattern.offsets.iter().map(|&offset| offset as i64 + b.base))?;
        }
        Ok(pattern.count())
    })
}

/// Writes the entries of a dense matrix into the arrays of a sparse one.
fn convert<T: Scalar>(call: Call, a: Block, b: SpMat) -> Result<(), Status> {
    let source = Source::new(call, "B", b, 0)?;
    let shape = if b.format == Format::Bsr { b.shape } else { [1, 1] };
    call.submit(move || {
        let values = a.load::<T>(call, Operation::NONE)?;
        let columns = b.size[1];
        if b.format != Format::BlockedEll {
            let found = found(&values, b.size, b.format, shape);
            if found.count() != b.nnz {
                let message = format!(
                    "A has {} entries that are not zero, and B has room for {}",
                    found.count(),
                    b.nnz
                );
                return Err(call.fault(&message));
            }
            source.write_pattern(call, &found)?;
        }
        let pattern = source.pattern(call)?;
        let rows = pattern.rows();
        let entries = rows.into_iter().zip(&pattern.columns).zip(&pattern.places);
        source
            .values
            .scatter(call, entries.map(|((row, &column), &place)| (place, values[row * columns + column])))
    })
}

api! { API: Status, name;
    /// The device memory that `cusparseSparseToDense` needs: none.
    cusparseSparseToDense_bufferSize(handle: Ptr, a: Ptr, b: Ptr, algorithm: c_uint, bytes: Place<'_, usize>) {
        Call::begin(name, handle)?;
        pair(a, b, a, algorithm)?;
        bytes.write(0)
    }

    /// Writes a sparse matrix as a dense one.
    cusparseSparseToDense(handle: Ptr, a: Ptr, b: Ptr, algorithm: c_uint, _buffer: Ptr) {
        let call = Call::begin(name, handle)?;
        let (dense, sparse) = pair(a, b, a, algorithm)?;
        let (a, b) = (Source::new(call, "A", sparse, 0)?, dense.block(call, "B", 0)?);
        if dense.size.contains(&0) {
            return Ok(());
        }
        with_type!(holder(dense.kind), to_dense(call, a, b))
    }

    /// The device memory that `cusparseDenseToSparse_analysis` needs: none.
    cusparseDenseToSparse_bufferSize(handle: Ptr, a: Ptr, b: Ptr, algorithm: c_uint, bytes: Place<'_, usize>) {
        Call::begin(name, handle)?;
        pair(a, b, b, algorithm)?;
        bytes.write(0)
    }

    /// Counts the entries of a dense matrix that are not zero, for the descriptor of the sparse one. It waits for the stream.
    cusparseDenseToSparse_analysis(handle: Ptr, a: Ptr, b: Ptr, algorithm: c_uint, _buffer: Ptr) {
        let call = Call::begin(name, handle)?;
        let (dense, sparse) = pair(a, b, b, algorithm)?;
        if sparse.format == Format::BlockedEll {
            return Ok(());
        }
        let block = dense.block(call, "A", 0)?;
        let nnz = with_type!(holder(dense.kind), analyse(call, block, sparse))?;
        SpMat::change(b, |matrix| {
            matrix.nnz = nnz;
            Ok(())
        })
    }

    /// Writes a dense matrix as a sparse one, whose arrays have room for its entries.
    cusparseDenseToSparse_convert(handle: Ptr, a: Ptr, b: Ptr, algorithm: c_uint, _buffer: Ptr) {
        let call = Call::begin(name, handle)?;
        let (dense, sparse) = pair(a, b, b, algorithm)?;
        let block = dense.block(call, "A", 0)?;
        with_type!(holder(dense.kind), convert(call, block, sparse))
    }
}
