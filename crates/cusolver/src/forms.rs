//! Tridiagonal and bidiagonal forms, and the unitary matrices that make them.

use linalg::{Dense, Matrix, Reflections, Scalar, adjoint, bidiagonalize, tridiagonalize};
use mathlib::Error;

use crate::call::{Call, answer, either, size};
use crate::declare::{Ptr, routines};
use crate::reflections::{multiply, unitary};
use crate::status::Status;

/// The same matrix with the order of rows and columns reversed, which makes an upper triangle a lower one.
fn reversed<T: Scalar>(of: &Dense<T>, columns: usize) -> Dense<T> {
    let rows = of.rows;
    Dense::new(rows, columns, |i, j| of.at(rows - 1 - i, columns - 1 - j))
}

/// `sytrd`, `hetrd`.
#[allow(clippy::too_many_arguments, reason = "the manual's")]
fn sytrd<T: Scalar>(
    call: Call,
    uplo: u32,
    n: i64,
    a: (Ptr, i64),
    [d, e, tau]: [Ptr; 3],
    info: Ptr,
) -> Result<(), Status> {
    let (is_upper, n) = (either(uplo)?, size(n)?);
    let a = call.matrix::<T>("A", a, [n, n])?;
    let rest = n.saturating_sub(1);
    let d = call.vector::<T::Real>("D", d, n)?;
    let e = call.vector::<T::Real>("E", e, rest)?;
    let tau = call.vector::<T>("TAU", tau, rest)?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let mut values = call.hermitian::<T>(a, is_upper)?;
        if is_upper {
            values = reversed(&values, n);
        }
        let form = tridiagonalize(&mut values, n);
        // The numbers of an upper triangle begin at the end.
        let place = |i: usize, count: usize| if is_upper { count - 1 - i } else { i };
        call.store(d, |i, _| T::Real::of(form.diagonal[place(i, n)], 0.0))?;
        call.store(e, |i, _| T::Real::of(form.beside[place(i, rest)], 0.0))?;
        call.store(tau, |i, _| form.factors[place(i, rest)])?;
        let result = |i: usize, j: usize| match i.abs_diff(j) {
            0 => T::of(form.diagonal[j], 0.0),
            1 => T::of(form.beside[j.min(i)], 0.0),
            _ => values.at(i, j),
        };
        let lower = Dense::new(n, n, result);
        // What is stored for an upper triangle is its adjoint.
        let lower = if is_upper { adjoint(&reversed(&lower, n), n) } else { lower };
        call.store_lower(a, is_upper, &lower)?;
        info.write(call, 0, 0)
    })
}

/// The reflections of `sytrd`, as those of a lower triangle.
fn of_tridiagonal<T: Scalar>(
    call: Call,
    a: Matrix,
    tau: Matrix,
    is_upper: bool,
) -> Result<Reflections<T>, Error> {
    let (mut values, mut factors) = (call.load::<T>(a)?, call.load::<T>(tau)?.values);
    if is_upper {
        values = reversed(&values, a.columns);
        factors.reverse();
    }
    Ok(Reflections::below(&values, 1, factors))
}

/// `orgtr`, `ungtr`.
fn orgtr<T: Scalar>(call: Call, uplo: u32, n: i64, a: (Ptr, i64), tau: Ptr, info: Ptr) -> Result<(), Status> {
    let (is_upper, n) = (either(uplo)?, size(n)?);
    let a = call.matrix::<T>("A", a, [n, n])?;
    let tau = call.vector::<T>("tau", tau, n.saturating_sub(1))?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let mut result = of_tridiagonal::<T>(call, a, tau, is_upper)?.form(n);
        if is_upper {
            result = reversed(&result, n);
        }
        call.store(a, |i, j| result.at(i, j))?;
        info.write(call, 0, 0)
    })
}

/// `ormtr`, `unmtr`.
fn ormtr<T: Scalar>(
    call: Call,
    [side, uplo, trans]: [u32; 3],
    [m, n]: [i64; 2],
    [a, c]: [(Ptr, i64); 2],
    tau: Ptr,
    info: Ptr,
) -> Result<(), Status> {
    let (is_right, is_upper, operation) = (either(side)?, either(uplo)?, unitary::<T>(trans)?);
    let (m, n) = (size(m)?, size(n)?);
    let order = if is_right { n } else { m };
    let a = call.matrix::<T>("A", a, [order, order])?;
    let tau = call.vector::<T>("tau", tau, order.saturating_sub(1))?;
    let c = call.matrix::<T>("C", c, [m, n])?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let product = of_tridiagonal::<T>(call, a, tau, is_upper)?;
        if !is_upper {
            multiply(call, &product, is_right, operation, c)?;
            return info.write(call, 0, 0);
        }
        let mut values = reversed(&call.load::<T>(c)?, n);
        if is_right {
            values = linalg::apply_right(&product, operation.transposed, &values, n);
        } else {
            product.apply(operation.transposed, &mut values, 0, n);
        }
        let values = reversed(&values, n);
        call.store(c, |i, j| values.at(i, j))?;
        info.write(call, 0, 0)
    })
}

/// `gebrd`: at least as many rows as columns.
fn gebrd<T: Scalar>(
    call: Call,
    [m, n]: [i64; 2],
    a: (Ptr, i64),
    [d, e, tauq, taup]: [Ptr; 4],
    info: Ptr,
) -> Result<(), Status> {
    let (m, n) = (size(m)?, size(n)?);
    if m < n {
        return Err(Status::INVALID_VALUE);
    }
    let a = call.matrix::<T>("A", a, [m, n])?;
    let d = call.vector::<T::Real>("D", d, n)?;
    let e = call.vector::<T::Real>("E", e, n.saturating_sub(1))?;
    let [tauq, taup] = [call.vector::<T>("TAUQ", tauq, n)?, call.vector::<T>("TAUP", taup, n)?];
    let info = call.info(info, 1)?;
    call.submit(move || {
        let mut values = call.load::<T>(a)?;
        let form = bidiagonalize(&mut values, n);
        call.store(a, |i, j| values.at(i, j))?;
        call.store(d, |i, _| T::Real::of(form.diagonal[i], 0.0))?;
        call.store(e, |i, _| T::Real::of(form.above[i], 0.0))?;
        call.store(tauq, |i, _| form.left[i])?;
        // The last one of P is none.
        call.store(taup, |i, _| form.right.get(i).copied().unwrap_or_default())?;
        info.write(call, 0, 0)
    })
}

/// `orgbr`, `ungbr`: the first columns of Q, or the first rows of P^H, of the form of a matrix whose other size was `k`.
fn orgbr<T: Scalar>(
    call: Call,
    side: u32,
    [m, n, k]: [i64; 3],
    a: (Ptr, i64),
    tau: Ptr,
    info: Ptr,
) -> Result<(), Status> {
    let (is_right, m, n, k) = (either(side)?, size(m)?, size(n)?, size(k)?);
    // As LAPACK has it: sizes that the form can have had.
    let (long, short) = if is_right { (n, m) } else { (m, n) };
    if short > long || short < long.min(k) {
        return Err(Status::INVALID_VALUE);
    }
    let a = call.matrix::<T>("A", a, [m, n])?;
    let tau = call.vector::<T>("tau", tau, long.min(k))?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let mut values = call.load::<T>(a)?;
        if is_right {
            values = adjoint(&values, n);
        }
        let mut factors = call.load::<T>(tau)?.values;
        // A form that was not longer has its ones beside the diagonal.
        let shift = usize::from(if is_right { k >= long } else { k > long });
        factors.truncate(long.min(k).min(long.saturating_sub(shift)));
        let result = Reflections::below(&values, shift, factors).form(short);
        call.store(a, |i, j| if is_right { result.at(j, i).conjugate() } else { result.at(i, j) })?;
        info.write(call, 0, 0)
    })
}

routines! { API, "cusolverDn":
    /// How long the workspace of `sytrd` or `hetrd` must be.
    "sytrd_bufferSize" "hetrd_bufferSize" (_uplo: u32, n: i32, _a: Ptr, _lda: i32, _d: Ptr, _e: Ptr, _tau: Ptr, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// The tridiagonal form of a Hermitian matrix.
    "sytrd" "hetrd" (uplo: u32, n: i32, a: Ptr, lda: i32, d: Ptr, e: Ptr, tau: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        sytrd::<T>(call, uplo, n.into(), (a, lda.into()), [d, e, tau], info)
    }
    /// How long the workspace of `orgtr` or `ungtr` must be.
    "orgtr_bufferSize" "ungtr_bufferSize" (_uplo: u32, n: i32, _a: Ptr, _lda: i32, _tau: Ptr, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// The unitary matrix that makes a tridiagonal form.
    "orgtr" "ungtr" (uplo: u32, n: i32, a: Ptr, lda: i32, tau: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        orgtr::<T>(call, uplo, n.into(), (a, lda.into()), tau, info)
    }
    /// How long the workspace of `ormtr` or `unmtr` must be.
    "ormtr_bufferSize" "unmtr_bufferSize" (_side: u32, _uplo: u32, _trans: u32, m: i32, n: i32, _a: Ptr, _lda: i32, _tau: Ptr, _c: Ptr, _ldc: i32, result: Ptr) |_call| {
        answer(result, i64::from(m.max(n)))
    }
    /// op(Q) C or C op(Q), in place of C, with the matrix that makes a tridiagonal form.
    "ormtr" "unmtr" (side: u32, uplo: u32, trans: u32, m: i32, n: i32, a: Ptr, lda: i32, tau: Ptr, c: Ptr, ldc: i32, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, i64::from(m.max(n)))?;
        ormtr::<T>(call, [side, uplo, trans], [m.into(), n.into()], [(a, lda.into()), (c, ldc.into())], tau, info)
    }
    /// How long the workspace of `gebrd` must be.
    "gebrd_bufferSize" "gebrd_bufferSize" (_m: i32, n: i32, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// The bidiagonal form of a matrix with at least as many rows as columns.
    "gebrd" "gebrd" (m: i32, n: i32, a: Ptr, lda: i32, d: Ptr, e: Ptr, tauq: Ptr, taup: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        gebrd::<T>(call, [m.into(), n.into()], (a, lda.into()), [d, e, tauq, taup], info)
    }
    /// How long the workspace of `orgbr` or `ungbr` must be.
    "orgbr_bufferSize" "ungbr_bufferSize" (_side: u32, m: i32, n: i32, _k: i32, _a: Ptr, _lda: i32, _tau: Ptr, result: Ptr) |_call| {
        answer(result, i64::from(m.min(n)))
    }
    /// Columns of Q or rows of P^H, which make a bidiagonal form.
    "orgbr" "ungbr" (side: u32, m: i32, n: i32, k: i32, a: Ptr, lda: i32, tau: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, i64::from(m.min(n)))?;
        orgbr::<T>(call, side, [m.into(), n.into(), k.into()], (a, lda.into()), tau, info)
    }
}
