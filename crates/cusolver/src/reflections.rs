//! Factors QR, and the products of reflections.

use linalg::{Matrix, Operation, Reflections, Scalar, apply_right, orthogonalize};

use crate::call::{Call, Done, answer, answer_bytes, either, is_kind, operation, size};
use crate::declare::{Ptr, generic, routines, with_type};
use crate::status::Status;

/// `geqrf`.
fn geqrf<T: Scalar>(call: Call, [m, n]: [i64; 2], a: (Ptr, i64), tau: Ptr, info: Ptr) -> Result<(), Status> {
    let (m, n) = (size(m)?, size(n)?);
    let a = call.matrix::<T>("A", a, [m, n])?;
    let tau = call.vector::<T>("TAU", tau, m.min(n))?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let mut values = call.load::<T>(a)?;
        let factors = orthogonalize(&mut values, n);
        call.store(a, |i, j| values.at(i, j))?;
        call.store(tau, |i, _| factors[i])?;
        info.write(call, 0, 0)
    })
}

/// The reflections of `geqrf`, when the work runs.
pub fn reflections<T: Scalar>(call: Call, a: Matrix, tau: Matrix) -> Result<Reflections<T>, mathlib::Error> {
    Ok(Reflections::below(&call.load::<T>(a)?, 0, call.load::<T>(tau)?.values))
}

/// `orgqr`, `ungqr`.
fn orgqr<T: Scalar>(
    call: Call,
    [m, n, k]: [i64; 3],
    a: (Ptr, i64),
    tau: Ptr,
    info: Ptr,
) -> Result<(), Status> {
    let (m, n, k) = (size(m)?, size(n)?, size(k)?);
    if n > m || k > n {
        return Err(Status::INVALID_VALUE);
    }
    let a = call.matrix::<T>("A", a, [m, n])?;
    let tau = call.vector::<T>("tau", tau, k)?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let result = reflections::<T>(call, a, tau)?.form(n);
        call.store(a, |i, j| result.at(i, j))?;
        info.write(call, 0, 0)
    })
}

/// Multiplies a matrix from a side with a product of reflections or its adjoint.
pub fn multiply<T: Scalar>(
    call: Call,
    by: &Reflections<T>,
    is_right: bool,
    operation: Operation,
    c: Matrix,
) -> Done {
    let mut values = call.load::<T>(c)?;
    if is_right {
        values = apply_right(by, operation.transposed, &values, c.columns);
    } else {
        by.apply(operation.transposed, &mut values, 0, c.columns);
    }
    call.store(c, |i, j| values.at(i, j))
}

/// An operation on a unitary matrix: of a complex one only the adjoint, not the transposed matrix.
///
/// # Errors
/// If it is another.
pub fn unitary<T: Scalar>(trans: u32) -> Result<Operation, Status> {
    match operation(trans)? {
        Operation { transposed: true, conjugated: false } if T::IS_COMPLEX => Err(Status::INVALID_VALUE),
        operation => Ok(operation),
    }
}

/// `ormqr`, `unmqr`.
fn ormqr<T: Scalar>(
    call: Call,
    [side, trans]: [u32; 2],
    [m, n, k]: [i64; 3],
    [a, c]: [(Ptr, i64); 2],
    tau: Ptr,
    info: Ptr,
) -> Result<(), Status> {
    let (is_right, operation) = (either(side)?, unitary::<T>(trans)?);
    let (m, n, k) = (size(m)?, size(n)?, size(k)?);
    let order = if is_right { n } else { m };
    if k > order {
        return Err(Status::INVALID_VALUE);
    }
    let a = call.matrix::<T>("A", a, [order, k])?;
    let tau = call.vector::<T>("tau", tau, k)?;
    let c = call.matrix::<T>("C", c, [m, n])?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        multiply(call, &reflections::<T>(call, a, tau)?, is_right, operation, c)?;
        info.write(call, 0, 0)
    })
}

/// `larft`: the triangular factor of a product of reflections. Only that of `geqrf`: forward, by columns.
fn larft<T: Scalar>(call: Call, [n, k]: [i64; 2], [v, t]: [(Ptr, i64); 2], tau: Ptr) -> Result<(), Status> {
    let (n, k) = (size(n)?, size(k)?);
    if k > n {
        return Err(Status::INVALID_VALUE);
    }
    let v = call.matrix::<T>("V", v, [n, k])?;
    let tau = call.vector::<T>("tau", tau, k)?;
    let t = call.matrix::<T>("T", t, [k, k])?;
    call.submit(move || {
        let triangle = reflections::<T>(call, v, tau)?.triangle(0, k);
        call.store_lower(t, true, &linalg::adjoint(&triangle, k))
    })
}

routines! { API, "cusolverDn":
    /// How long the workspace of `geqrf` must be.
    "geqrf_bufferSize" "geqrf_bufferSize" (_m: i32, n: i32, _a: Ptr, _lda: i32, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// Factors QR: R, and the reflections whose product is Q.
    "geqrf" "geqrf" (m: i32, n: i32, a: Ptr, lda: i32, tau: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        geqrf::<T>(call, [m.into(), n.into()], (a, lda.into()), tau, info)
    }
    /// How long the workspace of `orgqr` or `ungqr` must be.
    "orgqr_bufferSize" "ungqr_bufferSize" (_m: i32, n: i32, _k: i32, _a: Ptr, _lda: i32, _tau: Ptr, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// The first columns of Q.
    "orgqr" "ungqr" (m: i32, n: i32, k: i32, a: Ptr, lda: i32, tau: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        orgqr::<T>(call, [m.into(), n.into(), k.into()], (a, lda.into()), tau, info)
    }
    /// How long the workspace of `ormqr` or `unmqr` must be.
    "ormqr_bufferSize" "unmqr_bufferSize" (side: u32, _trans: u32, m: i32, n: i32, _k: i32, _a: Ptr, _lda: i32, _tau: Ptr, _c: Ptr, _ldc: i32, result: Ptr) |_call| {
        answer(result, if either(side)? { m } else { n }.into())
    }
    /// op(Q) C or C op(Q), in place of C.
    "ormqr" "unmqr" (side: u32, trans: u32, m: i32, n: i32, k: i32, a: Ptr, lda: i32, tau: Ptr, c: Ptr, ldc: i32, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, if either(side)? { m } else { n }.into())?;
        ormqr::<T>(call, [side, trans], [m.into(), n.into(), k.into()], [(a, lda.into()), (c, ldc.into())], tau, info)
    }
}

generic! { GENERIC:
    /// How long the workspaces of `cusolverDnXgeqrf` must be.
    cusolverDnXgeqrf_bufferSize (_params: Ptr, _m: i64, n: i64, atype: u32, _a: Ptr, _lda: i64, _tautype: u32, _tau: Ptr, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// Factors QR, for the type that the arguments name.
    cusolverDnXgeqrf (_params: Ptr, m: i64, n: i64, atype: u32, a: Ptr, lda: i64, tautype: u32, tau: Ptr, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            is_kind::<T>(tautype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            geqrf::<T>(call, [m, n], (a, lda), tau, info)
        })
    }
    /// How long the workspace of `cusolverDnGeqrf` must be.
    cusolverDnGeqrf_bufferSize (_params: Ptr, _m: i64, n: i64, atype: u32, _a: Ptr, _lda: i64, _tautype: u32, _tau: Ptr, _compute: u32, device: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, std::ptr::null_mut(), n))
    }
    /// The same as `cusolverDnXgeqrf`, with one workspace.
    cusolverDnGeqrf (_params: Ptr, m: i64, n: i64, atype: u32, a: Ptr, lda: i64, tautype: u32, tau: Ptr, _compute: u32, work: Ptr, bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            is_kind::<T>(tautype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            geqrf::<T>(call, [m, n], (a, lda), tau, info)
        })
    }
    /// How long the workspaces of `cusolverDnXlarft` must be.
    cusolverDnXlarft_bufferSize (_params: Ptr, _direct: u32, _storev: u32, _n: i64, k: i64, vtype: u32, _v: Ptr, _ldv: i64, _tautype: u32, _tau: Ptr, _ttype: u32, _t: Ptr, _ldt: i64, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(vtype, T => answer_bytes::<T>(device, host, k))
    }
    /// The triangular factor of a product of reflections, forward and by columns.
    cusolverDnXlarft (_params: Ptr, direct: u32, storev: u32, n: i64, k: i64, vtype: u32, v: Ptr, ldv: i64, tautype: u32, tau: Ptr, ttype: u32, t: Ptr, ldt: i64, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize) |call| {
        if [direct, storev] != [0, 0] {
            return Err(Status::NOT_SUPPORTED);
        }
        with_type!(vtype, T => {
            is_kind::<T>(tautype)?;
            is_kind::<T>(ttype)?;
            call.workspace_bytes::<T>(work, bytes, k)?;
            larft::<T>(call, [n, k], [(v, ldv), (t, ldt)], tau)
        })
    }
}
