//! Singular values and vectors.

use std::sync::{Arc, Mutex, PoisonError};

use caller::Out;
use linalg::{Dense, Matrix, Scalar, Singular, Vectors, singular_values};

use crate::call::{
    ADJOINT, Call, Done, Integers, answer, answer_bytes, either, for_each, is_kind, real_kind, size,
};
use crate::declare::{Ptr, generic, routines, with_type};
use crate::handle::{Cusolver, Options};
use crate::status::Status;

/// How far values and vectors are from a matrix: the Frobenius norm of `U S V^H - A`.
fn residual<T: Scalar>(a: &Dense<T>, n: usize, found: &Singular<T>, rank: usize) -> f64 {
    let (Some(left), Some(right)) = (&found.left, &found.right) else { return 0.0 };
    let scaled = Dense::new(a.rows, rank, |i, j| T::of(found.values[j], 0.0) * left.at(i, j));
    let (left, right) = (scaled.part(0, 0, linalg::Operation::NONE), right.part(0, 0, ADJOINT));
    let mut product = linalg::dense::<T>(linalg::product([a.rows, n, rank], left, right));
    product.values.iter_mut().zip(&a.values).for_each(|(value, &a)| *value = *value - a);
    linalg::length(&product.values)
}

/// What becomes of the vectors of a side, by the letter of LAPACK.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letter {
    All,
    Few,
    Overwrite,
    None,
}

impl Letter {
    fn of(letter: i8) -> Result<Letter, Status> {
        match letter as u8 {
            b'A' => Ok(Letter::All),
            b'S' => Ok(Letter::Few),
            b'O' => Ok(Letter::Overwrite),
            b'N' => Ok(Letter::None),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    fn vectors(self) -> Vectors {
        match self {
            Letter::All => Vectors::All,
            Letter::Few | Letter::Overwrite => Vectors::Few,
            Letter::None => Vectors::None,
        }
    }
}

/// `gesvd`: at least as many rows as columns; V is adjoint.
#[allow(clippy::too_many_arguments, reason = "the manual's")]
fn gesvd<T: Scalar>(
    call: Call,
    jobs: [i8; 2],
    [m, n]: [i64; 2],
    a: (Ptr, i64),
    s: Ptr,
    [u, vt]: [(Ptr, i64); 2],
    info: Ptr,
) -> Result<(), Status> {
    let [of_u, of_v] = [Letter::of(jobs[0])?, Letter::of(jobs[1])?];
    let (m, n) = (size(m)?, size(n)?);
    if m < n || (of_u, of_v) == (Letter::Overwrite, Letter::Overwrite) {
        return Err(Status::INVALID_VALUE);
    }
    let a = call.matrix::<T>("A", a, [m, n])?;
    let s = call.vector::<T::Real>("S", s, n)?;
    let place = |what, letter: Letter, place, shape| match letter {
        Letter::All | Letter::Few => call.matrix::<T>(what, place, shape).map(Some),
        Letter::Overwrite => Ok(Some(a)),
        Letter::None => Ok(None),
    };
    let u = place("U", of_u, u, [m, if of_u == Letter::All { m } else { n }])?;
    let vt = place("VT", of_v, vt, [n, n])?;
    let info = call.info(info, 1)?;
    call.submit(move || {
        let found = singular_values(call.load::<T>(a)?, n, of_u.vectors(), of_v.vectors());
        call.store(s, |i, _| T::Real::of(found.values[i], 0.0))?;
        if let (Some(place), Some(left)) = (u, &found.left) {
            call.store(place, |i, j| left.at(i, j))?;
        }
        if let (Some(place), Some(right)) = (vt, &found.right) {
            call.store(place.top(n), |i, j| right.at(j, i).conjugate())?;
        }
        info.write(call, 0, found.failed as i64)
    })
}

/// Where the results of a matrix go; V is not adjoint.
#[derive(Clone, Copy)]
struct Job {
    vectors: Vectors,
    a: Matrix,
    s: Matrix,
    places: Option<[Matrix; 2]>,
    info: Integers,
}

impl Job {
    /// The arguments of `gesvdj`.
    #[allow(clippy::too_many_arguments, reason = "the manual's")]
    fn of<T: Scalar>(
        call: Call,
        (jobz, econ): (u32, i32),
        [m, n]: [i64; 2],
        a: (Ptr, i64),
        s: Ptr,
        [u, v]: [(Ptr, i64); 2],
        info: Ptr,
    ) -> Result<Job, Status> {
        let (with_vectors, m, n) = (either(jobz)?, size(m)?, size(n)?);
        let least = m.min(n);
        let count = |all: usize| if econ != 0 { least } else { all };
        let vectors = match (with_vectors, econ) {
            (false, _) => Vectors::None,
            (true, 0) => Vectors::All,
            (true, _) => Vectors::Few,
        };
        Ok(Job {
            vectors,
            a: call.matrix::<T>("A", a, [m, n])?,
            s: call.vector::<T::Real>("S", s, least)?,
            places: match with_vectors {
                true => {
                    Some([call.matrix::<T>("U", u, [m, count(m)])?, call.matrix::<T>("V", v, [n, count(n)])?])
                }
                false => None,
            },
            info: call.info(info, 1)?,
        })
    }

    /// Queues the work.
    fn submit<T: Scalar>(self, call: Call, options: Option<Arc<Options>>) -> Result<(), Status> {
        call.submit(move || {
            let values = call.load::<T>(self.a)?;
            let n = self.a.columns;
            let before = options.as_ref().map(|_| Dense { values: values.values.clone(), rows: values.rows });
            let found = singular_values(values, n, self.vectors, self.vectors);
            if let (Some(options), Some(before)) = (&options, before) {
                let mut options = options.get();
                (options.executed, options.residual) = (1, residual(&before, n, &found, found.values.len()));
            }
            self.store(call, &found, 0)
        })
    }

    /// Writes the results, and how it ended to a member of the information.
    fn store<T: Scalar>(&self, call: Call, found: &Singular<T>, member: usize) -> Done {
        call.store(self.s, |i, _| T::Real::of(found.values[i], 0.0))?;
        if let (Some([u, v]), Some(left), Some(right)) = (self.places, &found.left, &found.right) {
            call.store(u, |i, j| left.at(i, j))?;
            call.store(v, |i, j| right.at(i, j))?;
        }
        self.info.write(call, member, found.failed as i64)
    }
}

/// Matrices at strides, in elements.
#[derive(Clone, Copy)]
struct Strided {
    pointer: Ptr,
    ld: i64,
    stride: i64,
}

impl Strided {
    /// All of them, checked.
    fn all<T: Scalar>(
        self,
        call: Call,
        what: &str,
        shape: [usize; 2],
        count: usize,
    ) -> Result<Vec<Matrix>, Status> {
        let stride = size(self.stride)?;
        let one = |i: usize| {
            let pointer = self.pointer.cast::<T>().wrapping_add(stride.saturating_mul(i)).cast();
            call.matrix::<T>(&format!("{what} {i}"), (pointer, self.ld), shape)
        };
        (0..count).map(one).collect()
    }
}

/// Many matrices at strides: `rank` singular values and vectors of each.
#[allow(clippy::too_many_arguments, reason = "the manual's")]
fn strided<T: Scalar>(
    call: Call,
    vectors: Vectors,
    [m, n, rank]: [usize; 3],
    a: Strided,
    s: Strided,
    [u, v]: [Strided; 2],
    info: Ptr,
    count: usize,
    residuals: Ptr,
) -> Result<(), Status> {
    let a = a.all::<T>(call, "A", [m, n], count)?;
    let s = s.all::<T::Real>(call, "S", [rank, 1], count)?;
    let columns = |all: usize| if vectors == Vectors::All { all } else { rank };
    let places = match vectors {
        Vectors::None => None,
        _ => Some([
            u.all::<T>(call, "U", [m, columns(m)], count)?,
            v.all::<T>(call, "V", [n, columns(n)], count)?,
        ]),
    };
    let info = call.info(info, count)?;
    let norms = Arc::new(Mutex::new(vec![0.0; count]));
    let (into, measures) = (Arc::clone(&norms), !residuals.is_null());
    let work = move || {
        for_each(count, m * n * n.min(m), |i| {
            let values = call.load::<T>(a[i])?;
            let before = measures.then(|| Dense { values: values.values.clone(), rows: m });
            let found = singular_values(values, n, vectors, vectors);
            if let Some(before) = before {
                into.lock().unwrap_or_else(PoisonError::into_inner)[i] = residual(&before, n, &found, rank);
            }
            let places = places.as_ref().map(|[u, v]| [u[i], v[i]]);
            Job { vectors, a: a[i], s: s[i], places, info }.store(call, &found, i)
        })
    };
    if !measures {
        return call.submit(work);
    }
    call.submit_and_wait(work)?;
    let norms = norms.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the program promises a place in memory of the host for a number of each matrix.
    norms.iter().enumerate().try_for_each(|(i, &norm)| unsafe {
        Out::<f64, Cusolver>::new(residuals.cast::<f64>().wrapping_add(i)).write(norm)
    })
}

/// `gesvdjBatched`: matrices one behind the other, of at most 32 rows and columns.
#[allow(clippy::too_many_arguments, reason = "the manual's")]
fn gesvdj_batched<T: Scalar>(
    call: Call,
    jobz: u32,
    [m, n]: [i32; 2],
    a: (Ptr, i32),
    s: Ptr,
    [u, v]: [(Ptr, i32); 2],
    info: Ptr,
    count: i32,
) -> Result<(), Status> {
    let vectors = if either(jobz)? { Vectors::All } else { Vectors::None };
    if m > 32 || n > 32 {
        return Err(Status::INVALID_VALUE);
    }
    let behind = |(pointer, ld): (Ptr, i32), columns: i32| Strided {
        pointer,
        ld: ld.into(),
        stride: i64::from(ld) * i64::from(columns),
    };
    let least = m.min(n);
    let s = Strided { pointer: s, ld: least.max(1).into(), stride: least.into() };
    let shape = [size(m.into())?, size(n.into())?, size(least.into())?];
    let places = [behind(u, m), behind(v, n)];
    strided::<T>(
        call,
        vectors,
        shape,
        behind(a, n),
        s,
        places,
        info,
        size(count.into())?,
        std::ptr::null_mut(),
    )
}

/// `gesvdaStridedBatched`: the first `rank` values and vectors.
#[allow(clippy::too_many_arguments, reason = "the manual's")]
fn gesvda<T: Scalar>(
    call: Call,
    jobz: u32,
    [rank, m, n]: [i32; 3],
    a: Strided,
    s: Strided,
    places: [Strided; 2],
    info: Ptr,
    count: i32,
    residuals: Ptr,
) -> Result<(), Status> {
    let vectors = if either(jobz)? { Vectors::Few } else { Vectors::None };
    let shape = [size(m.into())?, size(n.into())?, size(rank.into())?];
    if shape[2] > shape[0].min(shape[1]) {
        return Err(Status::INVALID_VALUE);
    }
    let residuals = if vectors == Vectors::None { std::ptr::null_mut() } else { residuals };
    strided::<T>(call, vectors, shape, a, s, places, info, size(count.into())?, residuals)
}

/// `gesvdr`: the first values and vectors. They are those of the exact decomposition, not of random samples.
#[allow(clippy::too_many_arguments, reason = "the manual's")]
fn gesvdr<T: Scalar>(
    call: Call,
    jobs: [i8; 2],
    [m, n, k]: [i64; 3],
    a: (Ptr, i64),
    s: Ptr,
    [u, v]: [(Ptr, i64); 2],
    info: Ptr,
) -> Result<(), Status> {
    let letters = [Letter::of(jobs[0])?, Letter::of(jobs[1])?];
    if letters.iter().any(|letter| matches!(letter, Letter::All | Letter::Overwrite)) {
        return Err(Status::INVALID_VALUE);
    }
    let (m, n, k) = (size(m)?, size(n)?, size(k)?);
    if k > m.min(n) {
        return Err(Status::INVALID_VALUE);
    }
    let a = call.matrix::<T>("A", a, [m, n])?;
    let s = call.vector::<T::Real>("S", s, k)?;
    let wanted = letters.map(|letter| letter == Letter::Few);
    let u = if wanted[0] { Some(call.matrix::<T>("U", u, [m, k])?) } else { None };
    let v = if wanted[1] { Some(call.matrix::<T>("V", v, [n, k])?) } else { None };
    let info = call.info(info, 1)?;
    call.submit(move || {
        let found = singular_values(call.load::<T>(a)?, n, letters[0].vectors(), letters[1].vectors());
        call.store(s, |i, _| T::Real::of(found.values[i], 0.0))?;
        for (place, vectors) in [(u, &found.left), (v, &found.right)] {
            if let (Some(place), Some(vectors)) = (place, vectors) {
                call.store(place, |i, j| vectors.at(i, j))?;
            }
        }
        info.write(call, 0, found.failed as i64)
    })
}

routines! { API, "cusolverDn":
    /// How long the workspace of `gesvd` must be.
    "gesvd_bufferSize" "gesvd_bufferSize" (m: i32, n: i32, result: Ptr) |_call| {
        if m < n {
            return Err(Status::INVALID_VALUE);
        }
        answer(result, n.into())
    }
    /// Singular values in descending order, U and V^H, of a matrix with at least as many rows as columns.
    "gesvd" "gesvd" (jobu: i8, jobvt: i8, m: i32, n: i32, a: Ptr, lda: i32, s: Ptr, u: Ptr, ldu: i32, vt: Ptr, ldvt: i32, work: Ptr, lwork: i32, _rwork: Ptr, info: Ptr) |call| {
        call.workspace::<T>(work, lwork, n.into())?;
        gesvd::<T>(call, [jobu, jobvt], [m.into(), n.into()], (a, lda.into()), s, [(u, ldu.into()), (vt, ldvt.into())], info)
    }
    /// How long the workspace of `gesvdj` must be.
    "gesvdj_bufferSize" "gesvdj_bufferSize" (_jobz: u32, _econ: i32, m: i32, n: i32, _a: Ptr, _lda: i32, _s: Ptr, _u: Ptr, _ldu: i32, _v: Ptr, _ldv: i32, result: Ptr, _params: Ptr) |_call| {
        answer(result, i64::from(m.min(n)))
    }
    /// Singular values in descending order, U and V (not V^H): it is not Jacobi's method here.
    "gesvdj" "gesvdj" (jobz: u32, econ: i32, m: i32, n: i32, a: Ptr, lda: i32, s: Ptr, u: Ptr, ldu: i32, v: Ptr, ldv: i32, work: Ptr, lwork: i32, info: Ptr, params: Ptr) |call| {
        call.workspace::<T>(work, lwork, i64::from(m.min(n)))?;
        let options = Options::of(params)?;
        let places = [(u, ldu.into()), (v, ldv.into())];
        Job::of::<T>(call, (jobz, econ), [m.into(), n.into()], (a, lda.into()), s, places, info)?.submit::<T>(call, Some(options))
    }
    /// How long the workspace of `gesvdjBatched` must be.
    "gesvdjBatched_bufferSize" "gesvdjBatched_bufferSize" (_jobz: u32, m: i32, n: i32, _a: Ptr, _lda: i32, _s: Ptr, _u: Ptr, _ldu: i32, _v: Ptr, _ldv: i32, result: Ptr, _params: Ptr, _count: i32) |_call| {
        answer(result, i64::from(m.min(n)))
    }
    /// Singular values, U and V of many matrices of at most 32 rows and columns, one behind the other.
    "gesvdjBatched" "gesvdjBatched" (jobz: u32, m: i32, n: i32, a: Ptr, lda: i32, s: Ptr, u: Ptr, ldu: i32, v: Ptr, ldv: i32, work: Ptr, lwork: i32, infos: Ptr, params: Ptr, count: i32) |call| {
        call.workspace::<T>(work, lwork, i64::from(m.min(n)))?;
        Options::of(params)?;
        gesvdj_batched::<T>(call, jobz, [m, n], (a, lda), s, [(u, ldu), (v, ldv)], infos, count)
    }
    /// How long the workspace of `gesvdaStridedBatched` must be.
    "gesvdaStridedBatched_bufferSize" "gesvdaStridedBatched_bufferSize" (_jobz: u32, _rank: i32, m: i32, n: i32, _a: Ptr, _lda: i32, _stride_a: i64, _s: Ptr, _stride_s: i64, _u: Ptr, _ldu: i32, _stride_u: i64, _v: Ptr, _ldv: i32, _stride_v: i64, result: Ptr, _count: i32) |_call| {
        answer(result, i64::from(m.min(n)))
    }
    /// The largest singular values, and their vectors, of many matrices at strides. They are not approximations here.
    "gesvdaStridedBatched" "gesvdaStridedBatched" (jobz: u32, rank: i32, m: i32, n: i32, a: Ptr, lda: i32, stride_a: i64, s: Ptr, stride_s: i64, u: Ptr, ldu: i32, stride_u: i64, v: Ptr, ldv: i32, stride_v: i64, work: Ptr, lwork: i32, infos: Ptr, residuals: Ptr, count: i32) |call| {
        call.workspace::<T>(work, lwork, i64::from(m.min(n)))?;
        let at = |pointer, ld: i32, stride| Strided { pointer, ld: ld.into(), stride };
        let places = [at(u, ldu, stride_u), at(v, ldv, stride_v)];
        gesvda::<T>(call, jobz, [rank, m, n], at(a, lda, stride_a), at(s, rank.max(1), stride_s), places, infos, count, residuals)
    }
}

generic! { GENERIC:
    /// How long the workspaces of `cusolverDnXgesvd` must be.
    cusolverDnXgesvd_bufferSize (_params: Ptr, _jobu: i8, _jobvt: i8, m: i64, n: i64, atype: u32, _a: Ptr, _lda: i64, _stype: u32, _s: Ptr, _utype: u32, _u: Ptr, _ldu: i64, _vtype: u32, _vt: Ptr, _ldvt: i64, _compute: u32, device: Ptr, host: Ptr) |_call| {
        if m < n {
            return Err(Status::INVALID_VALUE);
        }
        with_type!(atype, T => answer_bytes::<T>(device, host, n))
    }
    /// Singular values, U and V^H, for the type that the arguments name.
    cusolverDnXgesvd (_params: Ptr, jobu: i8, jobvt: i8, m: i64, n: i64, atype: u32, a: Ptr, lda: i64, stype: u32, s: Ptr, utype: u32, u: Ptr, ldu: i64, vtype: u32, vt: Ptr, ldvt: i64, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            real_kind::<T>(stype)?;
            is_kind::<T>(utype)?;
            is_kind::<T>(vtype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            gesvd::<T>(call, [jobu, jobvt], [m, n], (a, lda), s, [(u, ldu), (vt, ldvt)], info)
        })
    }
    /// How long the workspace of `cusolverDnGesvd` must be.
    cusolverDnGesvd_bufferSize (_params: Ptr, _jobu: i8, _jobvt: i8, m: i64, n: i64, atype: u32, _a: Ptr, _lda: i64, _stype: u32, _s: Ptr, _utype: u32, _u: Ptr, _ldu: i64, _vtype: u32, _vt: Ptr, _ldvt: i64, _compute: u32, device: Ptr) |_call| {
        if m < n {
            return Err(Status::INVALID_VALUE);
        }
        with_type!(atype, T => answer_bytes::<T>(device, std::ptr::null_mut(), n))
    }
    /// The same as `cusolverDnXgesvd`, with one workspace.
    cusolverDnGesvd (_params: Ptr, jobu: i8, jobvt: i8, m: i64, n: i64, atype: u32, a: Ptr, lda: i64, stype: u32, s: Ptr, utype: u32, u: Ptr, ldu: i64, vtype: u32, vt: Ptr, ldvt: i64, _compute: u32, work: Ptr, bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            real_kind::<T>(stype)?;
            is_kind::<T>(utype)?;
            is_kind::<T>(vtype)?;
            call.workspace_bytes::<T>(work, bytes, n)?;
            gesvd::<T>(call, [jobu, jobvt], [m, n], (a, lda), s, [(u, ldu), (vt, ldvt)], info)
        })
    }
    /// How long the workspaces of `cusolverDnXgesvdp` must be.
    cusolverDnXgesvdp_bufferSize (_params: Ptr, _jobz: u32, _econ: i32, m: i64, n: i64, atype: u32, _a: Ptr, _lda: i64, _stype: u32, _s: Ptr, _utype: u32, _u: Ptr, _ldu: i64, _vtype: u32, _v: Ptr, _ldv: i64, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, m.min(n)))
    }
    /// Singular values, U and V (not V^H): nothing is perturbed here, so the error that it tells is 0.
    cusolverDnXgesvdp (_params: Ptr, jobz: u32, econ: i32, m: i64, n: i64, atype: u32, a: Ptr, lda: i64, stype: u32, s: Ptr, utype: u32, u: Ptr, ldu: i64, vtype: u32, v: Ptr, ldv: i64, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr, error: Ptr) |call| {
        with_type!(atype, T => {
            real_kind::<T>(stype)?;
            is_kind::<T>(utype)?;
            is_kind::<T>(vtype)?;
            call.workspace_bytes::<T>(work, bytes, m.min(n))?;
            let places = [(u, ldu), (v, ldv)];
            Job::of::<T>(call, (jobz, econ), [m, n], (a, lda), s, places, info)?.submit::<T>(call, None)?;
            // SAFETY: the program promises a number in memory of the host, or passes none.
            let error = unsafe { Out::<f64, Cusolver>::new(error.cast()) };
            if error.is_null() { Ok(()) } else { error.write(0.0) }
        })
    }
    /// How long the workspaces of `cusolverDnXgesvdr` must be.
    cusolverDnXgesvdr_bufferSize (_params: Ptr, _jobu: i8, _jobv: i8, m: i64, n: i64, _k: i64, _p: i64, _niters: i64, atype: u32, _a: Ptr, _lda: i64, _stype: u32, _s: Ptr, _utype: u32, _u: Ptr, _ldu: i64, _vtype: u32, _v: Ptr, _ldv: i64, _compute: u32, device: Ptr, host: Ptr) |_call| {
        with_type!(atype, T => answer_bytes::<T>(device, host, m.min(n)))
    }
    /// The largest singular values, U and V: those of the exact decomposition, not of random samples.
    cusolverDnXgesvdr (_params: Ptr, jobu: i8, jobv: i8, m: i64, n: i64, k: i64, _p: i64, _niters: i64, atype: u32, a: Ptr, lda: i64, stype: u32, s: Ptr, utype: u32, u: Ptr, ldu: i64, vtype: u32, v: Ptr, ldv: i64, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        with_type!(atype, T => {
            real_kind::<T>(stype)?;
            is_kind::<T>(utype)?;
            is_kind::<T>(vtype)?;
            call.workspace_bytes::<T>(work, bytes, m.min(n))?;
            gesvdr::<T>(call, [jobu, jobv], [m, n, k], (a, lda), s, [(u, ldu), (v, ldv)], info)
        })
    }
}
