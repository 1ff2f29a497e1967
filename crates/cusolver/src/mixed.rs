//! Systems of equations and least squares of mixed precision: here in the precision of the matrix, so nothing is refined.

use caller::Out;
use linalg::{Dense, Reflections, Scalar, Triangle, eliminate, exchange, orthogonalize};

use crate::call::{Call, answer_bytes, size};
use crate::declare::{Ptr, generic};
use crate::handle::Cusolver;
use crate::status::Status;

/// The element of the diagonal that is zero, from 1, or 0.
fn zero<T: Scalar>(a: &Dense<T>, n: usize) -> i64 {
    (0..n).find(|&i| a.at(i, i).is_zero()).map_or(0, |i| i as i64 + 1)
}

/// Solves with an upper triangle, for columns of which the first rows are taken.
fn back<T: Scalar>(r: &Dense<T>, n: usize, b: &Dense<T>, columns: usize) -> Dense<T> {
    let mut x = Dense::new(n, columns, |i, j| b.at(i, j));
    Triangle::new(n, [false, false], |i, j| r.at(i, j)).solve(&mut x, columns);
    x
}

/// The solution of A X = B, the exchanged rows, and the first pivot that is zero, from 1, or 0.
pub fn solution<T: Scalar>(mut a: Dense<T>, mut b: Dense<T>, columns: usize) -> (Dense<T>, Vec<usize>, i64) {
    let n = a.rows;
    let (pivots, failed) = eliminate(&mut a, n, true);
    let steps: Vec<i32> = pivots.iter().map(|&pivot| pivot as i32).collect();
    exchange(&mut b, columns, &steps, false);
    Triangle::new(n, [true, true], |i, j| a.at(i, j)).solve(&mut b, columns);
    let x = if failed == 0 { back(&a, n, &b, columns) } else { b };
    (x, pivots, failed as i64)
}

/// The least squares of A X = B with at least as many rows as columns, R's diagonal, and its first zero, from 1, or 0.
pub fn least_squares<T: Scalar>(
    mut a: Dense<T>,
    n: usize,
    mut b: Dense<T>,
    columns: usize,
) -> (Dense<T>, Vec<T>, i64) {
    let factors = orthogonalize(&mut a, n);
    Reflections::below(&a, 0, factors).apply(true, &mut b, 0, columns);
    let failed = zero(&a, n);
    let x = if failed == 0 { back(&a, n, &b, columns) } else { Dense::new(n, columns, |i, j| b.at(i, j)) };
    (x, (0..n).map(|i| a.at(i, i)).collect(), failed)
}

/// Tells the program, in memory of the host, that there were no iterations.
fn no_iterations(iterations: Ptr) -> Result<(), Status> {
    // SAFETY: the program promises an integer in memory of the host.
    unsafe { Out::<i32, Cusolver>::new(iterations.cast()) }.write(0)
}

/// `gesv`. A and B stay.
fn gesv<T: Scalar>(
    call: Call,
    [n, columns]: [i32; 2],
    places: [(Ptr, i32); 3],
    pivots: Ptr,
    (work, bytes): (Ptr, usize),
    [iterations, info]: [Ptr; 2],
) -> Result<(), Status> {
    call.workspace_bytes::<T>(work, bytes, n.into())?;
    let (n, columns) = (size(n.into())?, size(columns.into())?);
    let [a, b, x] = places.map(|(place, ld)| (place, i64::from(ld)));
    let a = call.matrix::<T>("A", a, [n, n])?;
    let b = call.matrix::<T>("B", b, [n, columns])?;
    let x = call.matrix::<T>("X", x, [n, columns])?;
    let pivots = call.integers("dipiv", pivots, n, false)?;
    let info = call.info(info, 1)?;
    no_iterations(iterations)?;
    call.submit(move || {
        let (found, chosen, failed) = solution(call.load::<T>(a)?, call.load::<T>(b)?, columns);
        if failed == 0 {
            call.store(x, |i, j| found.at(i, j))?;
        }
        pivots.write_all(call, chosen.into_iter().map(|pivot| pivot as i64))?;
        info.write(call, 0, failed)
    })
}

/// `gels`: at least as many rows as columns. A and B stay.
fn gels<T: Scalar>(
    call: Call,
    [m, n, columns]: [i32; 3],
    places: [(Ptr, i32); 3],
    (work, bytes): (Ptr, usize),
    [iterations, info]: [Ptr; 2],
) -> Result<(), Status> {
    call.workspace_bytes::<T>(work, bytes, n.into())?;
    let (m, n, columns) = (size(m.into())?, size(n.into())?, size(columns.into())?);
    if m < n {
        return Err(Status::NOT_SUPPORTED);
    }
    let [a, b, x] = places.map(|(place, ld)| (place, i64::from(ld)));
    let a = call.matrix::<T>("A", a, [m, n])?;
    let b = call.matrix::<T>("B", b, [m, columns])?;
    let x = call.matrix::<T>("X", x, [n, columns])?;
    let info = call.info(info, 1)?;
    no_iterations(iterations)?;
    call.submit(move || {
        let (found, _, failed) = least_squares(call.load::<T>(a)?, n, call.load::<T>(b)?, columns);
        if failed == 0 {
            call.store(x, |i, j| found.at(i, j))?;
        }
        info.write(call, 0, failed)
    })
}

/// The functions for a type of matrices: the second letter of a name is the type in which a GPU makes the factors.
macro_rules! family {
    ($table:ident, $ty:ty: $($gesv:ident)+, $($gesv_size:ident)+, $($gels:ident)+, $($gels_size:ident)+) => {
        generic! { $table:
            /// Solves A X = B, in the precision of the matrix.
            $($gesv)+ (n: i32, nrhs: i32, a: Ptr, lda: i32, pivots: Ptr, b: Ptr, ldb: i32, x: Ptr, ldx: i32, work: Ptr, bytes: usize, iterations: Ptr, info: Ptr) |call| {
                gesv::<$ty>(call, [n, nrhs], [(a, lda), (b, ldb), (x, ldx)], pivots, (work, bytes), [iterations, info])
            }
            /// How long the workspace of `gesv` must be.
            $($gesv_size)+ (n: i32, _nrhs: i32, _a: Ptr, _lda: i32, _pivots: Ptr, _b: Ptr, _ldb: i32, _x: Ptr, _ldx: i32, _work: Ptr, result: Ptr) |_call| {
                answer_bytes::<$ty>(result, std::ptr::null_mut(), n.into())
            }
            /// Least squares of A X = B with at least as many rows as columns, in the precision of the matrix.
            $($gels)+ (m: i32, n: i32, nrhs: i32, a: Ptr, lda: i32, b: Ptr, ldb: i32, x: Ptr, ldx: i32, work: Ptr, bytes: usize, iterations: Ptr, info: Ptr) |call| {
                gels::<$ty>(call, [m, n, nrhs], [(a, lda), (b, ldb), (x, ldx)], (work, bytes), [iterations, info])
            }
            /// How long the workspace of `gels` must be.
            $($gels_size)+ (_m: i32, n: i32, _nrhs: i32, _a: Ptr, _lda: i32, _b: Ptr, _ldb: i32, _x: Ptr, _ldx: i32, _work: Ptr, result: Ptr) |_call| {
                answer_bytes::<$ty>(result, std::ptr::null_mut(), n.into())
            }
        }
    };
}

family! { SINGLE, f32:
    cusolverDnSSgesv cusolverDnSHgesv cusolverDnSBgesv cusolverDnSXgesv,
    cusolverDnSSgesv_bufferSize cusolverDnSHgesv_bufferSize cusolverDnSBgesv_bufferSize cusolverDnSXgesv_bufferSize,
    cusolverDnSSgels cusolverDnSHgels cusolverDnSBgels cusolverDnSXgels,
    cusolverDnSSgels_bufferSize cusolverDnSHgels_bufferSize cusolverDnSBgels_bufferSize cusolverDnSXgels_bufferSize
}

family! { DOUBLE, f64:
    cusolverDnDDgesv cusolverDnDSgesv cusolverDnDHgesv cusolverDnDBgesv cusolverDnDXgesv,
    cusolverDnDDgesv_bufferSize cusolverDnDSgesv_bufferSize cusolverDnDHgesv_bufferSize cusolverDnDBgesv_bufferSize cusolverDnDXgesv_bufferSize,
    cusolverDnDDgels cusolverDnDSgels cusolverDnDHgels cusolverDnDBgels cusolverDnDXgels,
    cusolverDnDDgels_bufferSize cusolverDnDSgels_bufferSize cusolverDnDHgels_bufferSize cusolverDnDBgels_bufferSize cusolverDnDXgels_bufferSize
}

family! { COMPLEX, linalg::C32:
    cusolverDnCCgesv cusolverDnCKgesv cusolverDnCEgesv cusolverDnCYgesv,
    cusolverDnCCgesv_bufferSize cusolverDnCKgesv_bufferSize cusolverDnCEgesv_bufferSize cusolverDnCYgesv_bufferSize,
    cusolverDnCCgels cusolverDnCKgels cusolverDnCEgels cusolverDnCYgels,
    cusolverDnCCgels_bufferSize cusolverDnCKgels_bufferSize cusolverDnCEgels_bufferSize cusolverDnCYgels_bufferSize
}

family! { DOUBLE_COMPLEX, linalg::C64:
    cusolverDnZZgesv cusolverDnZCgesv cusolverDnZKgesv cusolverDnZEgesv cusolverDnZYgesv,
    cusolverDnZZgesv_bufferSize cusolverDnZCgesv_bufferSize cusolverDnZKgesv_bufferSize cusolverDnZEgesv_bufferSize cusolverDnZYgesv_bufferSize,
    cusolverDnZZgels cusolverDnZCgels cusolverDnZKgels cusolverDnZEgels cusolverDnZYgels,
    cusolverDnZZgels_bufferSize cusolverDnZCgels_bufferSize cusolverDnZKgels_bufferSize cusolverDnZEgels_bufferSize cusolverDnZYgels_bufferSize
}
