//! Eigenvalues and eigenvectors of Hermitian matrices, and of pairs of which the second one is positive definite.

use std::sync::{Arc, Mutex, PoisonError};

use caller::{In, Out};
use linalg::{Dense, Matrix, Scalar, Spectrum, Triangle, adjoint, cholesky, eigen};
use mathlib::Error;

use crate::call::{Call, Integers, answer, answer_bytes, either, for_each, is_kind, real_kind, size};
use crate::declare::{Ptr, generic, routines, with_type};
use crate::handle::{Cusolver, Options};
use crate::status::Status;

/// Which eigenvalues are wanted.
#[derive(Clone, Copy)]
enum Range {
    All,
    /// From this one to that one, counted from 0, without the last.
    Numbers(usize, usize),
    /// Those above the first and up to the second number.
    Values(f64, f64),
}

impl Range {
    /// The range that `cusolverEigRange_t` and the arguments name.
    fn of(range: u32, [low, high]: [f64; 2], [first, last]: [i64; 2], n: usize) -> Result<Range, Status> {
        match range {
            1001 => Ok(Range::All),
            1002 if n == 0 => Ok(Range::All),
            1002 => {
                let (first, last) = (size(first)?, size(last)?);
                if first < 1 || first > last || last > n {
                    return Err(Status::INVALID_VALUE);
                }
                Ok(Range::Numbers(first - 1, last))
            }
            1003 if low < high => Ok(Range::Values(low, high)),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// The numbers of the values, which ascend.
    fn of_values(self, values: &[f64]) -> std::ops::Range<usize> {
        match self {
            Range::All => 0..values.len(),
            Range::Numbers(first, last) => first..last,
            Range::Values(low, high) => {
                let start = values.iter().take_while(|&&value| value <= low).count();
                let count = values.iter().skip(start).take_while(|&&value| value <= high).count();
                start..start + count
            }
        }
    }
}

/// Where the results of a matrix go.
#[derive(Clone, Copy)]
struct Job {
    with_vectors: bool,
    is_upper: bool,
    a: Matrix,
    w: Matrix,
    info: Integers,
}

impl Job {
    #[allow(clippy::too_many_arguments, reason = "the manual's")]
    fn of<T: Scalar>(
        call: Call,
        [jobz, uplo]: [u32; 2],
        n: usize,
        a: (Ptr, i64),
        w: Ptr,
        info: Ptr,
    ) -> Result<Job, Status> {
        Ok(Job {
            with_vectors: either(jobz)?,
            is_upper: either(uplo)?,
            a: call.matrix::<T>("A", a, [n, n])?,
            w: call.vector::<T::Real>("W", w, n)?,
            info: call.info(info, 1)?,
        })
    }

    /// Writes values and vectors of a range. Returns how many there are.
    fn store<T: Scalar>(&self, call: Call, found: &Spectrum<T>, range: Range) -> Result<usize, Error> {
        let which = range.of_values(&found.values);
        let w = self.w.top(which.len());
        call.store(w, |i, _| T::Real::of(found.values[which.start + i], 0.0))?;
        if let Some(vectors) = &found.vectors {
            call.store(self.a.left(which.len()), |i, j| vectors.at(i, which.start + j))?;
        }
        self.info.write(call, 0, found.failed as i64)?;
        Ok(which.len())
    }
}

/// How far vectors and values are from a matrix: the Frobenius norm of `V W V^H - A`.
fn residual<T: Scalar>(a: &Dense<T>, found: &Spectrum<T>) -> f64 {
    let Some(vectors) = &found.vectors else { return 0.0 };
    let n = a.rows;
    let scaled = Dense::new(n, n, |i, j| T::of(found.values[j], 0.0) * vectors.at(i, j));
    let (left, right) =
        (scaled.part(0, 0, linalg::Operation::NONE), vectors.part(0, 0, crate::call::ADJOINT));
    let mut product = linalg::dense::<T>(linalg::product([n, n, n], left, right));
    product.values.iter_mut().zip(&a.values).for_each(|(value, &a)| *value = *value - a);
    linalg::length(&product.values)
}

/// `syevd`, `syevj` and the like.
fn syev<T: Scalar>(call: Call, job: Job, options: Option<Arc<Options>>) -> Result<(), Status> {
    call.submit(move || {
        let mut values = call.hermitian::<T>(job.a, job.is_upper)?;
        let n = values.rows;
        let before = options.as_ref().map(|_| Dense { values: values.values.clone(), rows: n });
        let found = eigen(&mut values, n, job.with_vectors);
        if let (Some(options), Some(before)) = (&options, before) {
            let mut options = options.get();
            (options.executed, options.residual) = (1, residual(&before, &found));
        }
        job.store(call, &found, Range::All).map(|_| ())
    })
}

/// `syevjBatched`: matrices one behind the other.
fn batched<T: Scalar>(
    call: Call,
    [jobz, uplo]: [u32; 2],
    n: i64,
    a: (Ptr, i64),
    w: Ptr,
    info: Ptr,
    count: i64,
) -> Result<(), Status> {
    let (with_vectors, is_upper, n, count) = (either(jobz)?, either(uplo)?, size(n)?, size(count)?);
    let ld = crate::call::leading(a.1, n)?;
    let all = call.matrix::<T>("A", a, [n, n.saturating_mul(count)])?;
    let w = call.vector::<T::Real>("W", w, n.saturating_mul(count))?;
    let info = call.info(info, count)?;
    if n == 0 || count == 0 {
        return call.submit(move || info.write_all(call, vec![0; count]));
    }
    call.submit(move || {
        let (all, w) = (all.reach(call.name)?, w.reach(call.name)?);
        for_each(count, n * n * n, |member| {
            let at = |i, j| {
                let read = |i: usize, j: usize| all.read::<T>(i, member * n + j);
                match (i == j, (i < j) == is_upper) {
                    (true, _) => T::real(read(i, j).re()),
                    (_, true) => read(i, j),
                    (_, false) => read(j, i).conjugate(),
                }
            };
            let found = eigen(&mut Dense::new(n, n, at), n, with_vectors);
            for (i, &value) in found.values.iter().enumerate() {
                w.write(member * n + i, 0, T::Real::of(value, 0.0));
            }
            w.wrote_rows(member * n..(member + 1) * n, 0);
            if let Some(vectors) = &found.vectors {
                for j in 0..n {
                    (0..n).for_each(|i| all.write(i, member * n + j, vectors.at(i, j)));
                    all.wrote_rows(0..n, member * n + j);
                }
            }
            debug_assert!(ld >= n, "columns that overlap");
            info.write(call, member, found.failed as i64)
        })
    })
}

/// A place of the host for the number of eigenvalues found, of 32 or 64 bits.
#[derive(Clone, Copy)]
struct Found(Ptr, bool);

impl Found {
    fn write(self, count: usize) -> Result<(), Status> {
        // SAFETY: the program promises an integer in memory of the host.
        unsafe {
            match self.1 {
                true => Out::<i64, Cusolver>::new(self.0.cast()).write(count as i64),
                false => Out::<i32, Cusolver>::new(self.0.cast()).write(count as i32),
            }
        }
    }
}

/// Queues work that finds eigenvalues of a range, and says how many. Only for a range of numbers it must have ended for that.
fn ranged(
    call: Call,
    range: Range,
    n: usize,
    found: Found,
    work: impl Fn() -> Result<usize, Error> + Send + Sync + 'static,
) -> Result<(), Status> {
    match range {
        Range::All => found.write(n)?,
        Range::Numbers(first, last) => found.write(last - first)?,
        Range::Values(..) => {
            let count = Arc::new(Mutex::new(0));
            let into = Arc::clone(&count);
            call.submit_and_wait(move || {
                *into.lock().unwrap_or_else(PoisonError::into_inner) = work()?;
                Ok(())
            })?;
            let count = *count.lock().unwrap_or_else(PoisonError::into_inner);
            return found.write(count);
        }
    }
    call.submit(move || work().map(|_| ()))
}

/// `syevdx`.
fn syevdx<T: Scalar>(call: Call, job: Job, range: Range, found: Found) -> Result<(), Status> {
    ranged(call, range, job.a.columns, found, move || {
        let mut values = call.hermitian::<T>(job.a, job.is_upper)?;
        let n = values.rows;
        let spectrum = eigen(&mut values, n, job.with_vectors);
        job.store(call, &spectrum, range)
    })
}

/// Eigenvalues and vectors of a pair, and B's factor. `Err` has the first leading minor of B that is not positive definite.
fn pair<T: Scalar>(
    a: &Dense<T>,
    factor: &mut Dense<T>,
    itype: u32,
    with_vectors: bool,
) -> Result<Spectrum<T>, usize> {
    let n = a.rows;
    match cholesky(factor, n) {
        0 => {}
        failed => return Err(failed),
    }
    let l = Triangle::new(n, [true, false], |i, j| factor.at(i, j));
    let l_adjoint = || Triangle::new(n, [false, false], |i, j| factor.at(j, i).conjugate());
    let whole = Dense { values: a.values.clone(), rows: n };
    let twice = |step: &dyn Fn(Dense<T>) -> Dense<T>| step(adjoint(&step(whole), n));
    // Both sides, one after the other: L^-1 A L^-H, or L^H A L.
    let reduced = if itype == 1 {
        twice(&|mut x| {
            l.solve(&mut x, n);
            x
        })
    } else {
        let upper = l_adjoint();
        twice(&|x| upper.times(&x, n))
    };
    let half = T::of(0.5, 0.0);
    let mut even = Dense::new(n, n, |i, j| (reduced.at(i, j) + reduced.at(j, i).conjugate()) * half);
    let mut found = eigen(&mut even, n, with_vectors);
    if let Some(vectors) = &mut found.vectors {
        match itype {
            3 => *vectors = l.times(vectors, n),
            _ => l_adjoint().solve(vectors, n),
        }
    }
    Ok(found)
}

/// `sygvd`, `sygvj` and `sygvdx`.
fn sygv<T: Scalar>(
    call: Call,
    itype: u32,
    job: Job,
    b: (Ptr, i64),
    chosen: (Range, Option<Found>),
    options: Option<Arc<Options>>,
) -> Result<(), Status> {
    if !(1..=3).contains(&itype) {
        return Err(Status::INVALID_VALUE);
    }
    let n = job.a.columns;
    let b = call.matrix::<T>("B", b, [n, n])?;
    let (range, found) = chosen;
    let work = move || {
        let a = call.hermitian::<T>(job.a, job.is_upper)?;
        let mut factor = call.lower::<T>(b, job.is_upper)?;
        let result = pair(&a, &mut factor, itype, job.with_vectors);
        call.store_lower(b, job.is_upper, &factor)?;
        if let Some(options) = &options {
            let mut options = options.get();
            (options.executed, options.residual) = (1, 0.0);
        }
        match result {
            Ok(found) => job.store(call, &found, range),
            Err(failed) => job.info.write(call, 0, (n + failed) as i64).map(|()| 0),
        }
    };
    match found {
        Some(found) => ranged(call, range, n, found, work),
        None => call.submit(move || work().map(|_| ())),
    }
}

/// A bound that the program passes by pointer, for a range of values.
fn bound<T: Scalar>(range: u32, pointer: Ptr) -> Result<f64, Status> {
    if range != 1003 {
        return Ok(0.0);
    }
    // SAFETY: the program promises a number of the type of the eigenvalues, in memory of the host.
    Ok(unsafe { In::<T::Real, Cusolver>::new(pointer.cast_const().cast()) }.read()?.into())
}

routines! { API, "cusolverDn":
    /// How long the workspace of `syevd` or `heevd` must be.
    "syevd_bufferSize" "heevd_bufferSize" (_jobz: u32, _uplo: u32, n: i32, _a: Ptr, _lda: i32, _w: Ptr, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// Eigenvalues in ascending order, and eigenvectors, of a Hermitian matrix.
    "syevd" "heevd" (jobz: u32, uplo: u32, n: i32, a: Ptr, lda: i32, w: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        syev::<T>(call, Job::of::<T>(call, [jobz, uplo], size(n.into())?, (a, lda.into()), w, info)?, None)
    }
    /// How long the workspace of `syevdx` or `heevdx` must be.
    "syevdx_bufferSize" "heevdx_bufferSize" (_jobz: u32, _range: u32, _uplo: u32, n: i32, _a: Ptr, _lda: i32, _vl: Real, _vu: Real, _il: i32, _iu: i32, _meig: Ptr, _w: Ptr, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// The same, of a range.
    "syevdx" "heevdx" (jobz: u32, range: u32, uplo: u32, n: i32, a: Ptr, lda: i32, vl: Real, vu: Real, il: i32, iu: i32, meig: Ptr, w: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        let n = size(n.into())?;
        let range = Range::of(range, [T::real(vl).wide()[0], T::real(vu).wide()[0]], [il.into(), iu.into()], n)?;
        syevdx::<T>(call, Job::of::<T>(call, [jobz, uplo], n, (a, lda.into()), w, info)?, range, Found(meig, false))
    }
    /// How long the workspace of `syevj` or `heevj` must be.
    "syevj_bufferSize" "heevj_bufferSize" (_jobz: u32, _uplo: u32, n: i32, _a: Ptr, _lda: i32, _w: Ptr, result: Ptr, _params: Ptr) |_call| {
        answer(result, n.into())
    }
    /// The same as `syevd` or `heevd`: it is not Jacobi's method here.
    "syevj" "heevj" (jobz: u32, uplo: u32, n: i32, a: Ptr, lda: i32, w: Ptr, work: Ptr, lwork: i32, info: Ptr, params: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        let options = Options::of(params)?;
        syev::<T>(call, Job::of::<T>(call, [jobz, uplo], size(n.into())?, (a, lda.into()), w, info)?, Some(options))
    }
    /// How long the workspace of `syevjBatched` or `heevjBatched` must be.
    "syevjBatched_bufferSize" "heevjBatched_bufferSize" (_jobz: u32, _uplo: u32, n: i32, _a: Ptr, _lda: i32, _w: Ptr, result: Ptr, _params: Ptr, _count: i32) |_call| {
        answer(result, n.into())
    }
    /// Eigenvalues and eigenvectors of many Hermitian matrices, one behind the other.
    "syevjBatched" "heevjBatched" (jobz: u32, uplo: u32, n: i32, a: Ptr, lda: i32, w: Ptr, work: Ptr, lwork: i32, infos: Ptr, params: Ptr, count: i32) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        Options::of(params)?;
        batched::<T>(call, [jobz, uplo], n.into(), (a, lda.into()), w, infos, count.into())
    }
    /// How long the workspace of `sygvd` or `hegvd` must be.
    "sygvd_bufferSize" "hegvd_bufferSize" (_itype: u32, _jobz: u32, _uplo: u32, n: i32, _a: Ptr, _lda: i32, _b: Ptr, _ldb: i32, _w: Ptr, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// Eigenvalues and eigenvectors of a Hermitian matrix and a positive definite one.
    "sygvd" "hegvd" (itype: u32, jobz: u32, uplo: u32, n: i32, a: Ptr, lda: i32, b: Ptr, ldb: i32, w: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        let job = Job::of::<T>(call, [jobz, uplo], size(n.into())?, (a, lda.into()), w, info)?;
        sygv::<T>(call, itype, job, (b, ldb.into()), (Range::All, None), None)
    }
    /// How long the workspace of `sygvdx` or `hegvdx` must be.
    "sygvdx_bufferSize" "hegvdx_bufferSize" (_itype: u32, _jobz: u32, _range: u32, _uplo: u32, n: i32, _a: Ptr, _lda: i32, _b: Ptr, _ldb: i32, _vl: Real, _vu: Real, _il: i32, _iu: i32, _meig: Ptr, _w: Ptr, result: Ptr) |_call| {
        answer(result, n.into())
    }
    /// The same, of a range.
    "sygvdx" "hegvdx" (itype: u32, jobz: u32, range: u32, uplo: u32, n: i32, a: Ptr, lda: i32, b: Ptr, ldb: i32, vl: Real, vu: Real, il: i32, iu: i32, meig: Ptr, w: Ptr, work: Ptr, lwork: i32, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        let n = size(n.into())?;
        let range = Range::of(range, [T::real(vl).wide()[0], T::real(vu).wide()[0]], [il.into(), iu.into()], n)?;
        let job = Job::of::<T>(call, [jobz, uplo], n, (a, lda.into()), w, info)?;
        sygv::<T>(call, itype, job, (b, ldb.into()), (range, Some(Found(meig, false))), None)
    }
    /// How long the workspace of `sygvj` or `hegvj` must be.
    "sygvj_bufferSize" "hegvj_bufferSize" (_itype: u32, _jobz: u32, _uplo: u32, n: i32, _a: Ptr, _lda: i32, _b: Ptr, _ldb: i32, _w: Ptr, result: Ptr, _params: Ptr) |_call| {
        answer(result, n.into())
    }
    /// The same as `sygvd` or `hegvd`.
    "sygvj" "hegvj" (itype: u32, jobz: u32, uplo: u32, n: i32, a: Ptr, lda: i32, b: Ptr, ldb: i32, w: Ptr, work: Ptr, lwork: i32, info: Ptr, params: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        let options = Options::of(params)?;
        let job = Job::of::<T>(call, [jobz, uplo], size(n.into())?, (a, lda.into()), w, info)?;
        sygv::<T>(call, itype, job, (b, ldb.into()), (Range::All, None), Some(options))
    }
}

generic! { GENERIC:
    /// How long the workspaces of `cusolverDnXsyevd` must be.
    cusolverDnXsyevd_bufferSize (_params: Ptr, _jobz: u32, _uplo: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, _wtype: u32, _w: Ptr, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// Eigenvalues and eigenvectors, for the type that the arguments name.
    cusolverDnXsyevd (_params: Ptr, jobz: u32, uplo: u32, n: i64, atype: u32, a: Ptr, lda: i64, wtype: u32, w: Ptr, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            real_kind::<T>(wtype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            syev::<T>(call, Job::of::<T>(call, [jobz, uplo], size(n)?, (a, lda), w, info)?, None)
        })
    }
    /// How long the workspace of `cusolverDnSyevd` must be.
    cusolverDnSyevd_bufferSize (_params: Ptr, _jobz: u32, _uplo: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, _wtype: u32, _w: Ptr, _compute: u32, device: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, std::ptr::null_mut(), n))
    }
    /// The same as `cusolverDnXsyevd`, with one workspace.
    cusolverDnSyevd (_params: Ptr, jobz: u32, uplo: u32, n: i64, atype: u32, a: Ptr, lda: i64, wtype: u32, w: Ptr, _compute: u32, work: Ptr, bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            real_kind::<T>(wtype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            syev::<T>(call, Job::of::<T>(call, [jobz, uplo], size(n)?, (a, lda), w, info)?, None)
        })
    }
    /// How long the workspaces of `cusolverDnXsyevdx` must be.
    cusolverDnXsyevdx_bufferSize (_params: Ptr, _jobz: u32, _range: u32, _uplo: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, _vl: Ptr, _vu: Ptr, _il: i64, _iu: i64, _meig: Ptr, _wtype: u32, _w: Ptr, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// Eigenvalues and eigenvectors of a range, for the type that the arguments name.
    cusolverDnXsyevdx (_params: Ptr, jobz: u32, range: u32, uplo: u32, n: i64, atype: u32, a: Ptr, lda: i64, vl: Ptr, vu: Ptr, il: i64, iu: i64, meig: Ptr, wtype: u32, w: Ptr, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            real_kind::<T>(wtype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            let n = size(n)?;
            let range = Range::of(range, [bound::<T>(range, vl)?, bound::<T>(range, vu)?], [il, iu], n)?;
            syevdx::<T>(call, Job::of::<T>(call, [jobz, uplo], n, (a, lda), w, info)?, range, Found(meig, true))
        })
    }
    /// How long the workspaces of `cusolverDnXsyevBatched` must be.
    cusolverDnXsyevBatched_bufferSize (_params: Ptr, _jobz: u32, _uplo: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, _wtype: u32, _w: Ptr, _compute: u32, device: Ptr, host: Ptr, _count: i64) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// Eigenvalues and eigenvectors of many matrices, one behind the other, for the type that the arguments name.
    cusolverDnXsyevBatched (_params: Ptr, jobz: u32, uplo: u32, n: i64, atype: u32, a: Ptr, lda: i64, wtype: u32, w: Ptr, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, infos: Ptr, count: i64) |call| {
        with_type!(atype, T => {
            real_kind::<T>(wtype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            batched::<T>(call, [jobz, uplo], n, (a, lda), w, infos, count)
        })
    }
    /// How long the workspaces of `cusolverDnXsygvd` must be.
    cusolverDnXsygvd_bufferSize (_params: Ptr, _itype: u32, _jobz: u32, _uplo: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, _btype: u32, _b: Ptr, _ldb: i64, _wtype: u32, _w: Ptr, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// Eigenvalues and eigenvectors of a pair, for the type that the arguments name.
    cusolverDnXsygvd (_params: Ptr, itype: u32, jobz: u32, uplo: u32, n: i64, atype: u32, a: Ptr, lda: i64, btype: u32, b: Ptr, ldb: i64, wtype: u32, w: Ptr, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            is_kind::<T>(btype)?;
            real_kind::<T>(wtype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            let job = Job::of::<T>(call, [jobz, uplo], size(n)?, (a, lda), w, info)?;
            sygv::<T>(call, itype, job, (b, ldb), (Range::All, None), None)
        })
    }
    /// How long the workspaces of `cusolverDnXsygvdx` must be.
    cusolverDnXsygvdx_bufferSize (_params: Ptr, _itype: u32, _jobz: u32, _range: u32, _uplo: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, _btype: u32, _b: Ptr, _ldb: i64, _vl: Ptr, _vu: Ptr, _il: i64, _iu: i64, _meig: Ptr, _wtype: u32, _w: Ptr, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// The same, of a range.
    cusolverDnXsygvdx (_params: Ptr, itype: u32, jobz: u32, range: u32, uplo: u32, n: i64, atype: u32, a: Ptr, lda: i64, btype: u32, b: Ptr, ldb: i64, vl: Ptr, vu: Ptr, il: i64, iu: i64, meig: Ptr, wtype: u32, w: Ptr, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            is_kind::<T>(btype)?;
            real_kind::<T>(wtype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            let n = size(n)?;
            let range = Range::of(range, [bound::<T>(range, vl)?, bound::<T>(range, vu)?], [il, iu], n)?;
            let job = Job::of::<T>(call, [jobz, uplo], n, (a, lda), w, info)?;
            sygv::<T>(call, itype, job, (b, ldb), (range, Some(Found(meig, true))), None)
        })
    }
}
