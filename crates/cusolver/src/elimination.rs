//! Factors LU, and what is solved with them.

use linalg::{Matrix, Scalar, eliminate, exchange};

use crate::call::{Call, answer, answer_bytes, is_kind, leading, operation, size};
use crate::declare::{Ptr, generic, routines, with_type};
use crate::status::Status;

/// `getrf`. Without pivots no rows are exchanged.
fn getrf<T: Scalar>(
    call: Call,
    [m, n]: [i64; 2],
    a: (Ptr, i64),
    (pivots, is_wide): (Ptr, bool),
    info: Ptr,
) -> Result<(), Status> {
    let (m, n) = (size(m)?, size(n)?);
    let a = call.matrix::<T>("A", a, [m, n])?;
    let pivots = call.integers("devIpiv", pivots, m.min(n), is_wide)?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let mut values = call.load::<T>(a)?;
        let (chosen, failed) = eliminate(&mut values, n, pivots.is_there());
        call.store(a, |i, j| values.at(i, j))?;
        pivots.write_all(call, chosen.into_iter().map(|pivot| pivot as i64))?;
        info.write(call, 0, failed as i64)
    })
}

/// `getrs`.
fn getrs<T: Scalar>(
    call: Call,
    trans: u32,
    [n, columns]: [i64; 2],
    [a, b]: [(Ptr, i64); 2],
    (pivots, is_wide): (Ptr, bool),
    info: Ptr,
) -> Result<(), Status> {
    let (operation, n, columns) = (operation(trans)?, size(n)?, size(columns)?);
    let a = call.matrix::<T>("A", a, [n, n])?;
    let b = call.matrix::<T>("B", b, [n, columns])?;
    let pivots = call.integers("devIpiv", pivots, n, is_wide)?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let mut values = call.load::<T>(b)?;
        let chosen: Vec<i32> = pivots.read(call)?.into_iter().map(|pivot| pivot as i32).collect();
        linalg::solve(&a.reach(call.name)?, &chosen, operation, &mut values, columns);
        call.store(b, |i, j| values.at(i, j))?;
        info.write(call, 0, 0)
    })
}

/// `laswp`: exchanges rows as pivots from `first` to `last` say, counted from 1; backwards if the step is negative.
fn laswp<T: Scalar>(
    call: Call,
    n: i64,
    a: (Ptr, i64),
    [first, last]: [i64; 2],
    pivots: Ptr,
    step: i64,
) -> Result<(), Status> {
    let (n, first, last) = (size(n)?, size(first)?, size(last)?);
    if first == 0 || last < first || !matches!(step, 1 | -1) {
        return Err(Status::INVALID_VALUE);
    }
    // How many rows there are follows from the pivots, so the matrix is checked when the work runs.
    let (address, ld) = (a.0.expose_provenance(), leading(a.1, 1)?);
    let pivots = call.integers("devIpiv", pivots, last, false)?;
    call.submit(move || {
        let chosen = pivots.read(call)?;
        let chosen = |k: usize| if k < first { k as i32 } else { chosen[k - 1] as i32 };
        let steps: Vec<i32> = (1..=last).map(chosen).collect();
        let most = steps.iter().fold(last, |most, &pivot| most.max(pivot.max(0) as usize));
        let (pointer, shape) = (std::ptr::with_exposed_provenance_mut(address), [most.min(ld), n]);
        let a = Matrix::at("A", T::KIND, pointer, shape, ld).map_err(|error| call.broken(&error))?;
        let mut values = call.load::<T>(a)?;
        exchange(&mut values, n, &steps, step < 0);
        call.store(a, |i, j| values.at(i, j))
    })
}

routines! { API, "cusolverDn":
    /// How long the workspace of `getrf` must be.
    "getrf_bufferSize" "getrf_bufferSize" (m: i32, n: i32, _a: Ptr, _lda: i32, result: Ptr) |_call| {
        answer(result, i64::from(m.min(n)))
    }
    /// Factors P L U; without a place for pivots, no rows are exchanged.
    "getrf" "getrf" (m: i32, n: i32, a: Ptr, lda: i32, work: Ptr, pivots: Ptr, info: Ptr) |call| {
        call.workspace::<T>(work, m.min(n).max(1), i64::from(m.min(n)))?;
        getrf::<T>(call, [m.into(), n.into()], (a, lda.into()), (pivots, false), info)
    }
    /// Solves op(A) X = B with factors LU; X replaces B.
    "getrs" "getrs" (trans: u32, n: i32, nrhs: i32, a: Ptr, lda: i32, pivots: Ptr, b: Ptr, ldb: i32, info: Ptr) |call| {
        getrs::<T>(call, trans, [n.into(), nrhs.into()], [(a, lda.into()), (b, ldb.into())], (pivots, false), info)
    }
    /// Exchanges rows as pivots say.
    "laswp" "laswp" (n: i32, a: Ptr, lda: i32, k1: i32, k2: i32, pivots: Ptr, incx: i32) |call| {
        laswp::<T>(call, n.into(), (a, lda.into()), [k1.into(), k2.into()], pivots, incx.into())
    }
}

generic! { GENERIC:
    /// How long the workspaces of `cusolverDnXgetrf` must be.
    cusolverDnXgetrf_bufferSize (_params: Ptr, m: i64, n: i64, atype: u32, _a: Ptr, _lda: i64, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, m.min(n)))
    }
    /// Factors P L U, for the type that the arguments name, with pivots of 64 bits.
    cusolverDnXgetrf (_params: Ptr, m: i64, n: i64, atype: u32, a: Ptr, lda: i64, pivots: Ptr, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            call.workspace_bytes::<T>(work, bytes, m.min(n))?;
            getrf::<T>(call, [m, n], (a, lda), (pivots, true), info)
        })
    }
    /// How long the workspace of `cusolverDnGetrf` must be.
    cusolverDnGetrf_bufferSize (_params: Ptr, m: i64, n: i64, atype: u32, _a: Ptr, _lda: i64, _compute: u32, device: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, std::ptr::null_mut(), m.min(n)))
    }
    /// The same as `cusolverDnXgetrf`, with one workspace.
    cusolverDnGetrf (_params: Ptr, m: i64, n: i64, atype: u32, a: Ptr, lda: i64, pivots: Ptr, _compute: u32, work: Ptr, bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            call.workspace_bytes::<T>(work, bytes, m.min(n))?;
            getrf::<T>(call, [m, n], (a, lda), (pivots, true), info)
        })
    }
    /// Solves op(A) X = B with factors LU, for the type that the arguments name; X replaces B.
    cusolverDnXgetrs cusolverDnGetrs (_params: Ptr, trans: u32, n: i64, nrhs: i64, atype: u32, a: Ptr, lda: i64, pivots: Ptr, btype: u32, b: Ptr, ldb: i64, info: Ptr) |call| {
        with_type!(atype, T => {
            is_kind::<T>(btype)?;
            getrs::<T>(call, trans, [n, nrhs], [(a, lda), (b, ldb)], (pivots, true), info)
        })
    }
}
