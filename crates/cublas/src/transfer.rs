//! Copies of vectors and matrices between host and device.

use mathlib::{Stream, api, copy, driver, synchronize};

use crate::declare::Ptr;
use crate::status::Status;

/// Elements at steps on one side.
#[derive(Clone, Copy)]
struct Side {
    at: Ptr,
    step: i64,
}

/// Copies elements, or columns of a matrix: `columns` of `bytes` bytes each, at steps of bytes.
fn transfer(stream: Option<Stream>, columns: i64, bytes: i64, from: Side, to: Side) -> Result<(), Status> {
    driver::enter(None).map_err(|_| Status::NOT_INITIALIZED)?;
    if columns <= 0 || bytes <= 0 {
        return Ok(());
    }
    let is_whole = from.step == bytes && to.step == bytes;
    let (columns, bytes) = if is_whole { (1, columns.saturating_mul(bytes)) } else { (columns, bytes) };
    let used = stream.unwrap_or_default();
    for i in 0..columns {
        let at = |side: Side| {
            side.at.wrapping_byte_offset(i.wrapping_mul(side.step) as isize).expose_provenance() as u64
        };
        // SAFETY: the program promises that its memory stays until the stream has done the copy.
        unsafe { copy(used, at(to), at(from), bytes as usize) }.map_err(|_| Status::MAPPING_ERROR)?;
    }
    if stream.is_none() {
        synchronize(used)?;
    }
    Ok(())
}

/// Copies a vector.
fn vector(
    stream: Option<Stream>,
    [n, bytes]: [i64; 2],
    (x, incx): (Ptr, i64),
    (y, incy): (Ptr, i64),
) -> Result<(), Status> {
    if n < 0 || bytes <= 0 || incx <= 0 || incy <= 0 {
        return Err(Status::INVALID_VALUE);
    }
    let side = |at, inc: i64| Side { at, step: inc.saturating_mul(bytes) };
    transfer(stream, n, bytes, side(x, incx), side(y, incy))
}

/// Copies a matrix.
fn matrix(
    stream: Option<Stream>,
    [rows, columns, bytes]: [i64; 3],
    (a, lda): (Ptr, i64),
    (b, ldb): (Ptr, i64),
) -> Result<(), Status> {
    if rows < 0 || columns < 0 || bytes <= 0 || lda < rows.max(1) || ldb < rows.max(1) {
        return Err(Status::INVALID_VALUE);
    }
    let side = |at, ld: i64| Side { at, step: ld.saturating_mul(bytes) };
    transfer(stream, columns, rows.saturating_mul(bytes), side(a, lda), side(b, ldb))
}

api! { API: Status, name;
    /// Copies a vector to the device, or from it.
    cublasSetVector cublasGetVector (n: i32, bytes: i32, x: Ptr, incx: i32, y: Ptr, incy: i32) {
        vector(None, [n.into(), bytes.into()], (x, incx.into()), (y, incy.into()))
    }
    /// Copies a vector to the device, or from it.
    cublasSetVector_64 cublasGetVector_64 (n: i64, bytes: i64, x: Ptr, incx: i64, y: Ptr, incy: i64) {
        vector(None, [n, bytes], (x, incx), (y, incy))
    }
    /// Copies a vector to the device, or from it, in a stream.
    cublasSetVectorAsync cublasGetVectorAsync (n: i32, bytes: i32, x: Ptr, incx: i32, y: Ptr, incy: i32, stream: Ptr) {
        vector(Some(Stream::of(stream)), [n.into(), bytes.into()], (x, incx.into()), (y, incy.into()))
    }
    /// Copies a vector to the device, or from it, in a stream.
    cublasSetVectorAsync_64 cublasGetVectorAsync_64 (n: i64, bytes: i64, x: Ptr, incx: i64, y: Ptr, incy: i64, stream: Ptr) {
        vector(Some(Stream::of(stream)), [n, bytes], (x, incx), (y, incy))
    }
    /// Copies a matrix to the device, or from it.
    cublasSetMatrix cublasGetMatrix (rows: i32, columns: i32, bytes: i32, a: Ptr, lda: i32, b: Ptr, ldb: i32) {
        matrix(None, [rows.into(), columns.into(), bytes.into()], (a, lda.into()), (b, ldb.into()))
    }
    /// Copies a matrix to the device, or from it.
    cublasSetMatrix_64 cublasGetMatrix_64 (rows: i64, columns: i64, bytes: i64, a: Ptr, lda: i64, b: Ptr, ldb: i64) {
        matrix(None, [rows, columns, bytes], (a, lda), (b, ldb))
    }
    /// Copies a matrix to the device, or from it, in a stream.
    cublasSetMatrixAsync cublasGetMatrixAsync (rows: i32, columns: i32, bytes: i32, a: Ptr, lda: i32, b: Ptr, ldb: i32, stream: Ptr) {
        matrix(Some(Stream::of(stream)), [rows.into(), columns.into(), bytes.into()], (a, lda.into()), (b, ldb.into()))
    }
    /// Copies a matrix to the device, or from it, in a stream.
    cublasSetMatrixAsync_64 cublasGetMatrixAsync_64 (rows: i64, columns: i64, bytes: i64, a: Ptr, lda: i64, b: Ptr, ldb: i64, stream: Ptr) {
        matrix(Some(Stream::of(stream)), [rows, columns, bytes], (a, lda), (b, ldb))
    }
}
