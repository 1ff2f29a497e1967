//! Many small systems of equations at a time: triangular ones, factors LU and QR, inverses, least squares. Eliminations go column by
//! column, in the order of LAPACK's unblocked routines, so the order of sums is fixed.

use std::sync::{Mutex, PoisonError};

use caller::Out;
use linalg::{
    C32, C64, Dense, Matrix, Named, Operation, Scalar, Triangle, each, lu, qr, reflect, singular, solve,
    store, unit,
};
use mathlib::{Error, Range};

use crate::call::{Call, leading, matrix_of, size};
use crate::declare::{Ptr, routines};
use crate::gemm::pointers;
use crate::handle::Cublas;
use crate::operand::{either, plain};
use crate::status::Status;

/// The shape of the matrices of a batch, and where their pointers are.
#[derive(Clone, Copy)]
struct Batch {
    what: &'static str,
    places: Range,
    shape: [usize; 2],
    ld: usize,
}

impl Batch {
    fn of(
        call: &Call,
        what: &'static str,
        pointer: Ptr,
        shape: [usize; 2],
        ld: i64,
        count: usize,
    ) -> Result<Batch, Status> {
        let places = pointers(*call, what, pointer, count)?;
        Ok(Batch { what, places, shape, ld: leading(ld, shape[0])? })
    }

    /// The matrices, when the work runs.
    fn matrices<T: Scalar>(&self, call: Call) -> Result<Vec<Matrix>, Error> {
        let places: Vec<u64> = self.places.reach(call.name)?.read();
        let matrix = |(i, address): (usize, u64)| {
            let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
            matrix_of(call, &format!("{} {i}", self.what), T::KIND, pointer, self.shape, self.ld)
        };
        places.into_iter().enumerate().map(matrix).collect()
    }
}

/// Integers in device memory, or none: a null pointer.
fn integers(call: &Call, what: &str, place: Ptr, count: usize) -> Result<Option<Range>, Status> {
    if place.is_null() {
        return Ok(None);
    }
    let range = Range::of::<i32>(place.cast(), count, what, || format!("{count} integers"));
    range.map(Some).map_err(|error| {
        mathlib::driver::failed(call.name, &error.to_string());
        Status::INVALID_VALUE
    })
}

/// Does the same for each member of a batch.
fn for_each(
    count: usize,
    elements: usize,
    work: impl Fn(usize) -> Result<(), Error> + Send + Sync,
) -> Result<(), Error> {
    let failed = Mutex::new(None);
    each(count, elements.saturating_mul(count), |i| {
        if let Err(error) = work(i) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// The pivots of a member of a batch; none if the program has none.
fn pivots_of(call: Call, pivots: Option<Range>, i: usize, n: usize) -> Result<Vec<i32>, Error> {
    match pivots {
        Some(range) => Ok(range.reach(call.name)?.read::<i32>().into_iter().skip(i * n).take(n).collect()),
        None => Ok(Vec::new()),
    }
}

/// Writes an integer of a member of a batch.
fn tell(call: Call, to: Option<Range>, i: usize, value: i32) -> Result<(), Error> {
    match to {
        Some(range) => {
            range.reach(call.name)?.write(i, value);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Factors of many matrices.
fn getrf<T: Scalar>(
    call: Call,
    n: i64,
    a: (Ptr, i64),
    pivots: Ptr,
    info: Ptr,
    count: i64,
) -> Result<(), Status> {
    let (n, count) = (size(n)?, size(count)?);
    leading(a.1, n)?;
    if n == 0 || count == 0 {
        return Ok(());
    }
    let a = Batch::of(&call, "A", a.0, [n, n], a.1, count)?;
    let pivots = integers(&call, "the pivots", pivots, n.saturating_mul(count))?;
    let info = integers(&call, "info", info, count)?.ok_or(Status::INVALID_VALUE)?;
    call.submit(move || {
        let matrices = a.matrices::<T>(call)?;
        for_each(count, n * n * n, |i| {
            let mut values = Dense::<T>::load(&matrices[i].reach(call.name)?, false);
            let mut chosen = Vec::new();
            let first = lu(&mut values, n, pivots.is_some().then_some(&mut chosen));
            store(call.name, matrices[i], &values)?;
            if let Some(range) = pivots {
                let memory = range.reach(call.name)?;
                chosen.iter().enumerate().for_each(|(k, &pivot)| memory.write(i * n + k, pivot));
            }
            tell(call, Some(info), i, first)
        })
    })
}

/// Solutions with the factors of many matrices.
fn getrs<T: Scalar>(
    call: Call,
    trans: u32,
    [n, columns]: [i64; 2],
    [a, b]: [(Ptr, i64); 2],
    pivots: Ptr,
    info: Ptr,
    count: i64,
) -> Result<(), Status> {
    let operation = plain(trans)?;
    let (n, columns, count) = (size(n)?, size(columns)?, size(count)?);
    leading(a.1, n)?;
    leading(b.1, n)?;
    no_mistake(info)?;
    if n == 0 || columns == 0 || count == 0 {
        return Ok(());
    }
    let a = Batch::of(&call, "A", a.0, [n, n], a.1, count)?;
    let b = Batch::of(&call, "B", b.0, [n, columns], b.1, count)?;
    let pivots = integers(&call, "the pivots", pivots, n.saturating_mul(count))?;
    call.submit(move || {
        let (a, b) = (a.matrices::<T>(call)?, b.matrices::<T>(call)?);
        for_each(count, n * n * columns, |i| {
            let mut values = Dense::<T>::load(&b[i].reach(call.name)?, false);
            solve(&a[i].reach(call.name)?, &pivots_of(call, pivots, i, n)?, operation, &mut values, columns);
            store(call.name, b[i], &values)
        })
    })
}

/// Says to the program, in memory of the host, that its arguments are right.
fn no_mistake(info: Ptr) -> Result<(), Status> {
    // SAFETY: the program promises an integer in memory of the host.
    unsafe { Out::<i32, Cublas>::new(info.cast()) }.write(0)
}

/// Inverses from the factors of many matrices.
fn getri<T: Scalar>(
    call: Call,
    n: i64,
    [a, c]: [(Ptr, i64); 2],
    pivots: Ptr,
    info: Ptr,
    count: i64,
) -> Result<(), Status> {
    let (n, count) = (size(n)?, size(count)?);
    leading(a.1, n)?;
    leading(c.1, n)?;
    if n == 0 || count == 0 {
        return Ok(());
    }
    let a = Batch::of(&call, "A", a.0, [n, n], a.1, count)?;
    let c = Batch::of(&call, "C", c.0, [n, n], c.1, count)?;
    let pivots = integers(&call, "the pivots", pivots, n.saturating_mul(count))?;
    let info = integers(&call, "info", info, count)?.ok_or(Status::INVALID_VALUE)?;
    call.submit(move || {
        let (a, c) = (a.matrices::<T>(call)?, c.matrices::<T>(call)?);
        for_each(count, n * n * n, |i| {
            let factors = a[i].reach(call.name)?;
            let first = singular(&Dense::<T>::load(&factors, false), n);
            if first == 0 {
                let mut values = unit::<T>(n);
                solve(&factors, &pivots_of(call, pivots, i, n)?, Operation::NONE, &mut values, n);
                store(call.name, c[i], &values)?;
            }
            tell(call, Some(info), i, first)
        })
    })
}

/// Inverses of many matrices of at most 32 rows.
fn matinv<T: Scalar>(
    call: Call,
    n: i64,
    [a, c]: [(Ptr, i64); 2],
    info: Ptr,
    count: i64,
) -> Result<(), Status> {
    let (n, count) = (size(n)?, size(count)?);
    leading(a.1, n)?;
    leading(c.1, n)?;
    if n > 32 {
        return Err(Status::INVALID_VALUE);
    }
    if n == 0 || count == 0 {
        return Ok(());
    }
    let a = Batch::of(&call, "A", a.0, [n, n], a.1, count)?;
    let c = Batch::of(&call, "Ainv", c.0, [n, n], c.1, count)?;
    let info = integers(&call, "info", info, count)?.ok_or(Status::INVALID_VALUE)?;
    call.submit(move || {
        let (a, c) = (a.matrices::<T>(call)?, c.matrices::<T>(call)?);
        for_each(count, n * n * n, |i| {
            let mut values = Dense::<T>::load(&a[i].reach(call.name)?, false);
            let mut pivots = Vec::new();
            let first = lu(&mut values, n, Some(&mut pivots));
            if first == 0 {
                let into = c[i];
                // The factors go where the inverse will be.
                store(call.name, into, &values)?;
                let mut inverse = unit::<T>(n);
                solve(&into.reach(call.name)?, &pivots, Operation::NONE, &mut inverse, n);
                store(call.name, into, &inverse)?;
            }
            tell(call, Some(info), i, first)
        })
    })
}

/// Factors QR of many matrices.
fn geqrf<T: Scalar>(
    call: Call,
    [m, n]: [i64; 2],
    a: (Ptr, i64),
    tau: Ptr,
    info: Ptr,
    count: i64,
) -> Result<(), Status> {
    let (m, n, count) = (size(m)?, size(n)?, size(count)?);
    leading(a.1, m)?;
    no_mistake(info)?;
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    let least = m.min(n);
    let a = Batch::of(&call, "A", a.0, [m, n], a.1, count)?;
    let tau = Batch::of(&call, "Tau", tau, [least, 1], least as i64, count)?;
    call.submit(move || {
        let (a, tau) = (a.matrices::<T>(call)?, tau.matrices::<T>(call)?);
        for_each(count, m * n * least, |i| {
            let mut values = Dense::<T>::load(&a[i].reach(call.name)?, false);
            let factors = qr(&mut values, m, n);
            store(call.name, a[i], &values)?;
            store(call.name, tau[i], &Dense { values: factors, rows: least })
        })
    })
}

/// Least squares of many overdetermined systems.
fn gels<T: Scalar>(
    call: Call,
    trans: u32,
    [m, n, columns]: [i64; 3],
    [a, c]: [(Ptr, i64); 2],
    [info, infos]: [Ptr; 2],
    count: i64,
) -> Result<(), Status> {
    let (m, n, columns, count) = (size(m)?, size(n)?, size(columns)?, size(count)?);
    leading(a.1, m)?;
    leading(c.1, m)?;
    // As the manual says, only these.
    if trans != 0 || m < n {
        return Err(Status::NOT_SUPPORTED);
    }
    no_mistake(info)?;
    if n == 0 || columns == 0 || count == 0 {
        return Ok(());
    }
    let a = Batch::of(&call, "A", a.0, [m, n], a.1, count)?;
    let c = Batch::of(&call, "C", c.0, [m, columns], c.1, count)?;
    let infos = integers(&call, "devInfoArray", infos, count)?;
    call.submit(move || {
        let (a, c) = (a.matrices::<T>(call)?, c.matrices::<T>(call)?);
        for_each(count, m * n * n, |i| {
            let mut values = Dense::<T>::load(&a[i].reach(call.name)?, false);
            let factors = qr(&mut values, m, n);
            store(call.name, a[i], &values)?;
            let first = singular(&values, n);
            if first == 0 {
                let mut right = Dense::<T>::load(&c[i].reach(call.name)?, false);
                for (k, factor) in factors.iter().enumerate() {
                    (0..columns)
                        .for_each(|j| reflect(&mut values, m, k, factor.conjugate(), j, Some(&mut right)));
                }
                let mut top = Dense::new(n, columns, |i, j| right.at(i, j));
                let square = a[i].top(n);
                let named =
                    Named { matrix: square, is_upper: true, operation: Operation::NONE, is_unit: false };
                Triangle::<T>::load(call.name, named, false)?.solve(&mut top, columns);
                for j in 0..columns {
                    (0..n).for_each(|i| right.values[i + j * m] = top.at(i, j));
                }
                store(call.name, c[i], &right)?;
            }
            tell(call, infos, i, first)
        })
    })
}

/// Many triangular systems.
fn trsm<T: Scalar>(
    call: Call,
    [side, uplo, trans, diag]: [u32; 4],
    [m, n]: [i64; 2],
    alpha: Ptr,
    [a, b]: [(Ptr, i64); 2],
    count: i64,
) -> Result<(), Status> {
    let (is_right, is_upper, operation) = (either(side)?, either(uplo)?, plain(trans)?);
    let is_unit = either(diag)?;
    let (m, n, count) = (size(m)?, size(n)?, size(count)?);
    let order = if is_right { n } else { m };
    leading(a.1, order)?;
    leading(b.1, m)?;
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    let alpha = call.scalar::<T>("alpha", alpha)?;
    let a = Batch::of(&call, "A", a.0, [order, order], a.1, count)?;
    let b = Batch::of(&call, "B", b.0, [m, n], b.1, count)?;
    call.submit(move || {
        let alpha = alpha.get(call)?;
        let b = b.matrices::<T>(call)?;
        let a = if alpha.is_zero() { Vec::new() } else { a.matrices::<T>(call)? };
        for_each(count, m * n * order, |i| {
            if alpha.is_zero() {
                return store(call.name, b[i], &Dense { values: vec![T::default(); m * n], rows: m });
            }
            let mut values = Dense::<T>::load(&b[i].reach(call.name)?, is_right);
            values.values.iter_mut().for_each(|value| *value = alpha * *value);
            let named = Named { matrix: a[i], is_upper, operation, is_unit };
            Triangle::<T>::load(call.name, named, is_right)?.solve(&mut values, if is_right { m } else { n });
            let result = if is_right { Dense::new(m, n, |i, j| values.at(j, i)) } else { values };
            store(call.name, b[i], &result)
        })
    })
}

routines! { API:
    /// Factors LU of many matrices, with pivots if there is a place for them.
    "getrfBatched" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (n: Int, a: Ptr, lda: Int, pivots: Ptr, info: Ptr, count: Int) |call| {
        getrf::<T>(call, n, (a, lda), pivots, info, count)
    }
    /// Solves op(A) X = B with the factors of many matrices; X replaces B.
    "getrsBatched" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (trans: u32, n: Int, nrhs: Int, a: Ptr, lda: Int, pivots: Ptr, b: Ptr, ldb: Int, info: Ptr, count: Int) |call| {
        getrs::<T>(call, trans, [n, nrhs], [(a, lda), (b, ldb)], pivots, info, count)
    }
    /// Inverses from the factors of many matrices.
    "getriBatched" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (n: Int, a: Ptr, lda: Int, pivots: Ptr, c: Ptr, ldc: Int, info: Ptr, count: Int) |call| {
        getri::<T>(call, n, [(a, lda), (c, ldc)], pivots, info, count)
    }
    /// Inverses of many matrices of at most 32 rows.
    "matinvBatched" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (n: Int, a: Ptr, lda: Int, c: Ptr, ldc: Int, info: Ptr, count: Int) |call| {
        matinv::<T>(call, n, [(a, lda), (c, ldc)], info, count)
    }
    /// Factors QR of many matrices, as reflections.
    "geqrfBatched" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (m: Int, n: Int, a: Ptr, lda: Int, tau: Ptr, info: Ptr, count: Int) |call| {
        geqrf::<T>(call, [m, n], (a, lda), tau, info, count)
    }
    /// Least squares of many systems with at least as many rows as columns, not transposed.
    "gelsBatched" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (trans: u32, m: Int, n: Int, nrhs: Int, a: Ptr, lda: Int, c: Ptr, ldc: Int, info: Ptr, infos: Ptr, count: Int) |call| {
        gels::<T>(call, trans, [m, n, nrhs], [(a, lda), (c, ldc)], [info, infos], count)
    }
    /// Solves op(A) X = alpha B or X op(A) = alpha B for many triangular A; X replaces B.
    "trsmBatched" ["S" f32, "D" f64, "C" C32, "Z" C64] (side: u32, uplo: u32, trans: u32, diag: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, count: Int) |call| {
        trsm::<T>(call, [side, uplo, trans, diag], [m, n], alpha, [(a, lda), (b, ldb)], count)
    }
}
