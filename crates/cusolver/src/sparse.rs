//! Systems of equations with sparse matrices, by the elimination of a dense one: so their order is bounded.

use std::sync::{Arc, Mutex, PoisonError};

use caller::{In, Out};
use linalg::{Dense, Scalar, Triangle, cholesky};

use crate::call::{ADJOINT, Call, size};
use crate::declare::{Ptr, routines};
use crate::handle::Cusolver;
use crate::mixed::{least_squares, solution};
use crate::status::Status;

/// The largest order: its dense matrix has at most 1 GiB.
const MOST: usize = 8192;

/// How a system is solved.
#[derive(Clone, Copy)]
enum Method {
    Reflections,
    Cholesky,
    Elimination,
}

/// A system in compressed rows.
struct System<T> {
    values: Vec<T>,
    /// Where the rows begin, counted from the first of these.
    rows: Vec<i64>,
    columns: Vec<i64>,
    right: Vec<T>,
}

/// The dense matrix. `None` if the indices are none.
fn whole<T: Scalar>(n: usize, system: &System<T>) -> Option<Dense<T>> {
    let base = system.rows.first().copied().unwrap_or(0);
    let mut result = Dense { values: vec![T::default(); n * n], rows: n };
    for row in 0..n {
        let place = |at: usize| usize::try_from(system.rows.get(at)? - base).ok();
        let part = place(row)?..place(row + 1)?;
        for (&value, &column) in system.values.get(part.clone())?.iter().zip(system.columns.get(part)?) {
            let column = usize::try_from(column - base).ok().filter(|&column| column < n)?;
            result.values[row + column * n] = result.values[row + column * n] + value;
        }
    }
    Some(result)
}

/// The solution, and the first pivot that is not larger than the tolerance, or -1.
fn solve<T: Scalar>(n: usize, system: System<T>, method: Method, tolerance: f64) -> Option<(Vec<T>, i32)> {
    let mut a = whole(n, &system)?;
    let b = Dense { values: system.right, rows: n };
    let small = |pivots: Vec<T>| {
        let found = pivots
            .iter()
            .map(|pivot| pivot.magnitude().into())
            .position(|size: f64| size <= tolerance || size.is_nan());
        found.map_or(-1, |i| i as i32)
    };
    Some(match method {
        Method::Reflections => {
            let (x, pivots, _) = least_squares(a, n, b, 1);
            (x.values, small(pivots))
        }
        Method::Elimination => {
            let (x, _, failed) = solution(a, b, 1);
            (x.values, failed as i32 - 1)
        }
        Method::Cholesky => {
            let failed = cholesky(&mut a, n);
            let mut x = b;
            if failed == 0 {
                Triangle::new(n, [true, false], |i, j| a.at(i, j)).solve(&mut x, 1);
                let adjoint = Triangle::new(n, [false, false], |i, j| ADJOINT.element(a.at(j, i)));
                adjoint.solve(&mut x, 1);
            }
            (x.values, failed as i32 - 1)
        }
    })
}

/// The arguments that both kinds of memory have.
struct Arguments {
    n: i32,
    count: i32,
    values: Ptr,
    rows: Ptr,
    columns: Ptr,
    right: Ptr,
    result: Ptr,
    tolerance: f64,
    singularity: Ptr,
}

impl Arguments {
    fn sizes(&self) -> Result<[usize; 2], Status> {
        let [n, count] = [size(self.n.into())?, size(self.count.into())?];
        if n > MOST { Err(Status::ALLOC_FAILED) } else { Ok([n, count]) }
    }

    /// Tells the program, in memory of the host, which pivot failed.
    fn tell(&self, singularity: i32) -> Result<(), Status> {
        // SAFETY: the program promises an integer in memory of the host.
        unsafe { Out::<i32, Cusolver>::new(self.singularity.cast()) }.write(singularity)
    }

    /// A system in memory of the device. It waits for the solution, because the program is told at once which pivot failed.
    fn on_device<T: Scalar>(self, call: Call, method: Method) -> Result<(), Status> {
        let [n, count] = self.sizes()?;
        let values = call.vector::<T>("csrVal", self.values, count)?;
        let rows = call.integers("csrRowPtr", self.rows, n + 1, false)?;
        let columns = call.integers("csrColInd", self.columns, count, false)?;
        let right = call.vector::<T>("b", self.right, n)?;
        let result = call.vector::<T>("x", self.result, n)?;
        let (told, tolerance) = (Arc::new(Mutex::new(None)), self.tolerance);
        let into = Arc::clone(&told);
        call.submit_and_wait(move || {
            let system = System {
                values: call.load::<T>(values)?.values,
                rows: rows.read(call)?,
                columns: columns.read(call)?,
                right: call.load::<T>(right)?.values,
            };
            let Some((x, singularity)) = solve(n, system, method, tolerance) else { return Ok(()) };
            *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(singularity);
            call.store(result, |i, _| x[i])
        })?;
        let singularity = *told.lock().unwrap_or_else(PoisonError::into_inner);
        self.tell(singularity.ok_or(Status::INVALID_VALUE)?)
    }

    /// A system in memory of the host.
    fn on_host<T: Scalar>(self, method: Method) -> Result<(), Status> {
        let [n, count] = self.sizes()?;
        // SAFETY: the program promises arrays of these lengths in memory of the host.
        let (values, right, rows, columns) = unsafe {
            (
                In::<T, Cusolver>::new(self.values.cast_const().cast()).read_all(count)?,
                In::<T, Cusolver>::new(self.right.cast_const().cast()).read_all(n)?,
                In::<i32, Cusolver>::new(self.rows.cast_const().cast()).read_all(n + 1)?,
                In::<i32, Cusolver>::new(self.columns.cast_const().cast()).read_all(count)?,
            )
        };
        let wide = |integers: Vec<i32>| integers.into_iter().map(i64::from).collect();
        let system = System { values, rows: wide(rows), columns: wide(columns), right };
        let (x, singularity) = solve(n, system, method, self.tolerance).ok_or(Status::INVALID_VALUE)?;
        for (i, value) in x.into_iter().enumerate() {
            // SAFETY: the program promises room for as many in memory of the host.
            unsafe { Out::<T, Cusolver>::new(self.result.cast::<T>().wrapping_add(i)) }.write(value)?;
        }
        self.tell(singularity)
    }
}

routines! { API, "cusolverSp":
    /// Solves A x = b with a sparse matrix of order 8192 at most, by reflections of the dense one.
    "csrlsvqr" "csrlsvqr" (n: i32, count: i32, _descr: Ptr, values: Ptr, rows: Ptr, columns: Ptr, right: Ptr, tolerance: Real, _reorder: i32, result: Ptr, singularity: Ptr) |call| {
        let tolerance = T::real(tolerance).wide()[0];
        Arguments { n, count, values, rows, columns, right, result, tolerance, singularity }.on_device::<T>(call, Method::Reflections)
    }
    /// The same for a positive definite matrix, by Cholesky's factors.
    "csrlsvchol" "csrlsvchol" (n: i32, count: i32, _descr: Ptr, values: Ptr, rows: Ptr, columns: Ptr, right: Ptr, tolerance: Real, _reorder: i32, result: Ptr, singularity: Ptr) |call| {
        let tolerance = T::real(tolerance).wide()[0];
        Arguments { n, count, values, rows, columns, right, result, tolerance, singularity }.on_device::<T>(call, Method::Cholesky)
    }
    /// Solves A x = b in memory of the host, by reflections.
    "csrlsvqrHost" "csrlsvqrHost" (n: i32, count: i32, _descr: Ptr, values: Ptr, rows: Ptr, columns: Ptr, right: Ptr, tolerance: Real, _reorder: i32, result: Ptr, singularity: Ptr) |_call| {
        let tolerance = T::real(tolerance).wide()[0];
        Arguments { n, count, values, rows, columns, right, result, tolerance, singularity }.on_host::<T>(Method::Reflections)
    }
    /// Solves A x = b in memory of the host, by Cholesky's factors.
    "csrlsvcholHost" "csrlsvcholHost" (n: i32, count: i32, _descr: Ptr, values: Ptr, rows: Ptr, columns: Ptr, right: Ptr, tolerance: Real, _reorder: i32, result: Ptr, singularity: Ptr) |_call| {
        let tolerance = T::real(tolerance).wide()[0];
        Arguments { n, count, values, rows, columns, right, result, tolerance, singularity }.on_host::<T>(Method::Cholesky)
    }
    /// Solves A x = b in memory of the host, by factors LU.
    "csrlsvluHost" "csrlsvluHost" (n: i32, count: i32, _descr: Ptr, values: Ptr, rows: Ptr, columns: Ptr, right: Ptr, tolerance: Real, _reorder: i32, result: Ptr, singularity: Ptr) |_call| {
        let tolerance = T::real(tolerance).wide()[0];
        Arguments { n, count, values, rows, columns, right, result, tolerance, singularity }.on_host::<T>(Method::Elimination)
    }
}
