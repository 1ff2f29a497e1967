//! Cholesky's factors, what is solved and inverted with them, and triangular matrices.

use linalg::{Dense, Matrix, Named, Operation, Scalar, Triangle, cholesky, unit};

use crate::call::{ADJOINT, Call, Integers, answer, answer_bytes, either, for_each, is_kind, leading, size};
use crate::declare::{Ptr, generic, routines, with_type};
use crate::status::Status;

/// Factors of a matrix in place.
fn factor<T: Scalar>(call: Call, a: Matrix, is_upper: bool, info: Integers, i: usize) -> crate::call::Done {
    let n = a.columns;
    let mut values = call.lower::<T>(a, is_upper)?;
    let failed = cholesky(&mut values, n);
    call.store_lower(a, is_upper, &values)?;
    info.write(call, i, failed as i64)
}

/// `potrf`.
fn potrf<T: Scalar>(call: Call, uplo: u32, n: i64, a: (Ptr, i64), info: Ptr) -> Result<(), Status> {
    let (is_upper, n) = (either(uplo)?, size(n)?);
    let a = call.matrix::<T>("A", a, [n, n])?;
    let info = call.info(info, 1)?;
    call.submit(move || factor::<T>(call, a, is_upper, info, 0))
}

/// Solves with Cholesky's factors of a matrix.
fn solve<T: Scalar>(
    call: Call,
    a: Matrix,
    is_upper: bool,
    b: &mut Dense<T>,
    columns: usize,
) -> crate::call::Done {
    let factors = a.reach(call.name)?;
    // L and then its adjoint, or the adjoint of U and then U.
    for is_adjoint in [is_upper, !is_upper] {
        let operation = if is_adjoint { ADJOINT } else { Operation::NONE };
        let named = Named { matrix: a, is_upper, operation, is_unit: false };
        Triangle::<T>::of(&factors, named, false).solve(b, columns);
    }
    Ok(())
}

/// `potrs`.
fn potrs<T: Scalar>(
    call: Call,
    uplo: u32,
    [n, columns]: [i64; 2],
    [a, b]: [(Ptr, i64); 2],
    info: Ptr,
) -> Result<(), Status> {
    let (is_upper, n, columns) = (either(uplo)?, size(n)?, size(columns)?);
    let a = call.matrix::<T>("A", a, [n, n])?;
    let b = call.matrix::<T>("B", b, [n, columns])?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let mut values = call.load::<T>(b)?;
        solve(call, a, is_upper, &mut values, columns)?;
        call.store(b, |i, j| values.at(i, j))?;
        info.write(call, 0, 0)
    })
}

/// The diagonal element of a triangle that is zero, from 1, or 0.
fn zero<T: Scalar>(a: &Dense<T>) -> i64 {
    (0..a.rows).find(|&i| a.at(i, i).is_zero()).map_or(0, |i| i as i64 + 1)
}

/// `potri`.
fn potri<T: Scalar>(call: Call, uplo: u32, n: i64, a: (Ptr, i64), info: Ptr) -> Result<(), Status> {
    let (is_upper, n) = (either(uplo)?, size(n)?);
    let a = call.matrix::<T>("A", a, [n, n])?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let failed = zero(&call.lower::<T>(a, is_upper)?);
        if failed == 0 {
            let mut inverse = unit::<T>(n);
            solve(call, a, is_upper, &mut inverse, n)?;
            let inverse = Dense::new(n, n, |i, j| inverse.at(i.max(j), i.min(j)).conjugate_if(i < j));
            call.store_lower(a, is_upper, &inverse)?;
        }
        info.write(call, 0, failed)
    })
}

/// `lauum`.
fn lauum<T: Scalar>(call: Call, uplo: u32, n: i64, a: (Ptr, i64), info: Ptr) -> Result<(), Status> {
    let (is_upper, n) = (either(uplo)?, size(n)?);
    let a = call.matrix::<T>("A", a, [n, n])?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        // Both L^H L and U U^H are a product of an upper triangle with its adjoint.
        let lower = call.lower::<T>(a, is_upper)?;
        let upper = Triangle::new(n, [false, false], |i, j| lower.at(j, i).conjugate());
        let product = upper.times(&lower, n);
        call.store_lower(a, is_upper, &product)?;
        info.write(call, 0, 0)
    })
}

/// `trtri`.
fn trtri<T: Scalar>(
    call: Call,
    [uplo, diag]: [u32; 2],
    n: i64,
    a: (Ptr, i64),
    info: Ptr,
) -> Result<(), Status> {
    let (is_upper, is_unit, n) = (either(uplo)?, either(diag)?, size(n)?);
    let a = call.matrix::<T>("A", a, [n, n])?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let lower = call.lower::<T>(a, is_upper)?;
        let failed = if is_unit { 0 } else { zero(&lower) };
        if failed == 0 {
            let mut inverse = unit::<T>(n);
            Triangle::new(n, [true, is_unit], |i, j| lower.at(i, j)).solve(&mut inverse, n);
            if is_unit {
                // The diagonal in memory stays.
                (0..n).for_each(|i| inverse.values[i + i * n] = lower.at(i, i));
            }
            call.store_lower(a, is_upper, &inverse)?;
        }
        info.write(call, 0, failed)
    })
}

/// `potrfBatched`.
fn potrf_batched<T: Scalar>(
    call: Call,
    uplo: u32,
    n: i64,
    a: (Ptr, i64),
    info: Ptr,
    count: i64,
) -> Result<(), Status> {
    let (is_upper, n, count) = (either(uplo)?, size(n)?, size(count)?);
    let ld = leading(a.1, n)?;
    let places = call.pointers("the pointers of A", a.0, count)?;
    let info = call.info(info, count)?;
    call.submit(move || {
        for_each(count, n * n * n, |i| {
            let a = call.member::<T>("A", (places, i), [n, n], ld)?;
            factor::<T>(call, a, is_upper, info, i)
        })
    })
}

/// `potrsBatched`.
fn potrs_batched<T: Scalar>(
    call: Call,
    uplo: u32,
    [n, columns]: [i64; 2],
    [a, b]: [(Ptr, i64); 2],
    info: Ptr,
    count: i64,
) -> Result<(), Status> {
    let (is_upper, n, columns, count) = (either(uplo)?, size(n)?, size(columns)?, size(count)?);
    let lds = [leading(a.1, n)?, leading(b.1, n)?];
    let a = call.pointers("the pointers of A", a.0, count)?;
    let b = call.pointers("the pointers of B", b.0, count)?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        for_each(count, n * n * columns, |i| {
            let a = call.member::<T>("A", (a, i), [n, n], lds[0])?;
            let b = call.member::<T>("B", (b, i), [n, columns], lds[1])?;
            let mut values = call.load::<T>(b)?;
            solve(call, a, is_upper, &mut values, columns)?;
            call.store(b, |i, j| values.at(i, j))
        })?;
        info.write(call, 0, 0)
    })
}

routines! { API, "cusolverDn":
    /// How long the workspace of `potrf` must be.
    "potrf_bufferSize" "potrf_bufferSize" (_uplo: u32, n: i32, _a: Ptr, _lda: i32, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// Factors L L^H or U^H U of a Hermitian positive definite matrix.
    "potrf" "potrf" (uplo: u32, n: i32, a: Ptr, lda: i32, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        potrf::<T>(call, uplo, n.into(), (a, lda.into()), info)
    }
    /// Solves A X = B with Cholesky's factors; X replaces B.
    "potrs" "potrs" (uplo: u32, n: i32, nrhs: i32, a: Ptr, lda: i32, b: Ptr, ldb: i32, info: Ptr) |call| {
        potrs::<T>(call, uplo, [n.into(), nrhs.into()], [(a, lda.into()), (b, ldb.into())], info)
    }
    /// Factors of many Hermitian positive definite matrices.
    "potrfBatched" "potrfBatched" (uplo: u32, n: i32, a: Ptr, lda: i32, infos: Ptr, count: i32) |call| {
        potrf_batched::<T>(call, uplo, n.into(), (a, lda.into()), infos, count.into())
    }
    /// Solves A X = B with the factors of many matrices; X replaces B.
    "potrsBatched" "potrsBatched" (uplo: u32, n: i32, nrhs: i32, a: Ptr, lda: i32, b: Ptr, ldb: i32, info: Ptr, count: i32) |call| {
        potrs_batched::<T>(call, uplo, [n.into(), nrhs.into()], [(a, lda.into()), (b, ldb.into())], info, count.into())
    }
    /// How long the workspace of `potri` must be.
    "potri_bufferSize" "potri_bufferSize" (_uplo: u32, n: i32, _a: Ptr, _lda: i32, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// A triangle of the inverse, from Cholesky's factors.
    "potri" "potri" (uplo: u32, n: i32, a: Ptr, lda: i32, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        potri::<T>(call, uplo, n.into(), (a, lda.into()), info)
    }
    /// How long the workspace of `lauum` must be.
    "lauum_bufferSize" "lauum_bufferSize" (_uplo: u32, n: i32, _a: Ptr, _lda: i32, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// A triangle of the product L^H L or U U^H, in place of L or U.
    "lauum" "lauum" (uplo: u32, n: i32, a: Ptr, lda: i32, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        lauum::<T>(call, uplo, n.into(), (a, lda.into()), info)
    }
}

generic! { GENERIC:
    /// How long the workspaces of `cusolverDnXpotrf` must be.
    cusolverDnXpotrf_bufferSize (_params: Ptr, _uplo: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// Factors L L^H or U^H U, for the type that the arguments name.
    cusolverDnXpotrf (_params: Ptr, uplo: u32, n: i64, atype: u32, a: Ptr, lda: i64, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            call.workspace_bytes::<T>(work, bytes, n)?;
            potrf::<T>(call, uplo, n, (a, lda), info)
        })
    }
    /// How long the workspace of `cusolverDnPotrf` must be.
    cusolverDnPotrf_bufferSize (_params: Ptr, _uplo: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, _compute: u32, device: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, std::ptr::null_mut(), n))
    }
    /// The same as `cusolverDnXpotrf`, with one workspace.
    cusolverDnPotrf (_params: Ptr, uplo: u32, n: i64, atype: u32, a: Ptr, lda: i64, _compute: u32, work: Ptr, bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            call.workspace_bytes::<T>(work, bytes, n)?;
            potrf::<T>(call, uplo, n, (a, lda), info)
        })
    }
    /// Solves A X = B with Cholesky's factors, for the type that the arguments name; X replaces B.
    cusolverDnXpotrs cusolverDnPotrs (_params: Ptr, uplo: u32, n: i64, nrhs: i64, atype: u32, a: Ptr, lda: i64, btype: u32, b: Ptr, ldb: i64, info: Ptr) |call| {
        with_type!(atype, T => {
            is_kind::<T>(btype)?;
            potrs::<T>(call, uplo, [n, nrhs], [(a, lda), (b, ldb)], info)
        })
    }
    /// How long the workspaces of `cusolverDnXtrtri` must be.
    cusolverDnXtrtri_bufferSize (_uplo: u32, _diag: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// The inverse of a triangular matrix, in place.
    cusolverDnXtrtri (uplo: u32, diag: u32, n: i64, atype: u32, a: Ptr, lda: i64, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            call.workspace_bytes::<T>(work, bytes, n)?;
            trtri::<T>(call, [uplo, diag], n, (a, lda), info)
        })
    }
}
