//! Eigenvalues and right eigenvectors of matrices without symmetry.

use linalg::{C32, C64, Kind, Matrix, Scalar, general};

use crate::call::{Call, Integers, answer_bytes, either, is_kind, size};
use crate::declare::{Ptr, generic, with_type};
use crate::status::Status;

/// Where the results of a matrix go.
struct Job {
    a: Matrix,
    w: Matrix,
    vectors: Option<Matrix>,
    info: Integers,
}

/// The kind of complex numbers with parts of a type.
fn complex_kind<T: Scalar>() -> Kind {
    if size_of::<T::Real>() == size_of::<f32>() { Kind::C32 } else { Kind::C64 }
}

/// Whether eigenvalues are complex numbers. Those of a real matrix may also be real parts, and imaginary ones behind them.
fn is_complex<T: Scalar>(wtype: u32) -> Result<bool, Status> {
    match Kind::of(wtype) {
        Some(kind) if kind == complex_kind::<T>() => Ok(true),
        Some(kind) if kind == T::KIND => Ok(false),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Left vectors are not to be had from NVIDIA's library either.
fn modes([left, right]: [u32; 2]) -> Result<bool, Status> {
    if either(left)? { Err(Status::INVALID_VALUE) } else { either(right) }
}

impl Job {
    fn queue<T: Scalar>(self, call: Call) -> Result<(), Status> {
        let Job { a, w, vectors, info } = self;
        call.submit(move || {
            let n = a.columns;
            let found = general(&call.load::<T>(a)?, n, vectors.is_some());
            let part = |i: usize| found.values[i % n].wide()[i / n];
            match w.kind {
                Kind::C32 => call.store(w, |i, _| C32::of(found.values[i].re, found.values[i].im))?,
                Kind::C64 => call.store(w, |i, _| found.values[i])?,
                _ => call.store(w, |i, _| T::of(part(i), 0.0))?,
            }
            if let (Some(into), Some(from)) = (vectors, &found.vectors) {
                // Of two real columns for a pair, the second has the imaginary parts of the first vector.
                let value = |i, j| {
                    let C64 { re, im } = from.at(i, j);
                    let is_second = !T::IS_COMPLEX && found.values[j].im < 0.0;
                    if is_second { T::of(-im, 0.0) } else { T::of(re, im) }
                };
                call.store(into, value)?;
            }
            info.write(call, 0, found.failed as i64)
        })
    }
}

generic! { API:
    /// How long the workspaces of `cusolverDnXgeev` must be.
    cusolverDnXgeev_bufferSize (_params: Ptr, jobvl: u32, jobvr: u32, n: i64, atype: u32, _a: Ptr, _lda: i64, wtype: u32, _w: Ptr, _vltype: u32, _vl: Ptr, _ldvl: i64, _vrtype: u32, _vr: Ptr, _ldvr: i64, _compute: u32, device: Ptr, host: Ptr) |_call| {
        modes([jobvl, jobvr])?;
        with_type!(atype, T => {
            is_complex::<T>(wtype)?;
            answer_bytes::<T>(device, host, n)
        })
    }
    /// Eigenvalues, and right eigenvectors, of a matrix without symmetry, for the type that the arguments name.
    cusolverDnXgeev (_params: Ptr, jobvl: u32, jobvr: u32, n: i64, atype: u32, a: Ptr, lda: i64, wtype: u32, w: Ptr, _vltype: u32, _vl: Ptr, _ldvl: i64, vrtype: u32, vr: Ptr, ldvr: i64, _compute: u32, work: Ptr, bytes: usize, _host: Ptr, _host_bytes: usize, info: Ptr) |call| {
        let with_vectors = modes([jobvl, jobvr])?;
        with_type!(atype, T => {
            call.workspace_bytes::<T>(work, bytes, n)?;
            let n = size(n)?;
            let w = match (is_complex::<T>(wtype)?, complex_kind::<T>()) {
                (false, _) => call.vector::<T>("W", w, 2 * n)?,
                (true, Kind::C32) => call.vector::<C32>("W", w, n)?,
                (true, _) => call.vector::<C64>("W", w, n)?,
            };
            let vectors = match with_vectors {
                true => {
                    is_kind::<T>(vrtype)?;
                    Some(call.matrix::<T>("VR", (vr, ldvr), [n, n])?)
                }
                false => None,
            };
            let a = call.matrix::<T>("A", (a, lda), [n, n])?;
            Job { a, w, vectors, info: call.info(info, 1)? }.queue::<T>(call)
        })
    }
}
