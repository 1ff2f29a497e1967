//! Level 2: a general matrix and vectors. The matrix is a factor of a product with one column, so the result is that of `gemm`.

use linalg::{C32, C64, Held, Kind, Matrix, Operation, Scalar, Vector, factor, product};
use mathlib::Error;

use crate::call::{Call, Coefficient, leading, matrix_of, size};
use crate::declare::{Ptr, routines};
use crate::gemm::pointers;
use crate::operand::operation;
use crate::status::Status;

/// y = alpha sums + beta y.
///
/// # Errors
/// If the memory has gone.
pub fn update<T: Scalar>(call: Call, y: Vector, (alpha, beta): (T, T), sums: &[T]) -> Result<(), Error> {
    let old = if beta.is_zero() { Vec::new() } else { y.load::<T>(call.name)? };
    let new: Vec<T> = match old.is_empty() {
        true => sums.iter().map(|&sum| alpha * sum).collect(),
        false => sums.iter().zip(old).map(|(&sum, old)| alpha * sum + beta * old).collect(),
    };
    y.store(call.name, &new)
}

/// The factors `alpha` and `beta`.
#[derive(Clone, Copy)]
pub struct Factors<T> {
    alpha: Coefficient<T>,
    beta: Coefficient<T>,
}

impl<T: Scalar> Factors<T> {
    /// Those that the program passes.
    ///
    /// # Errors
    /// As for [`Call::scalar`].
    pub fn of(call: &Call, alpha: Ptr, beta: Ptr) -> Result<Factors<T>, Status> {
        Ok(Factors { alpha: call.scalar("alpha", alpha)?, beta: call.scalar("beta", beta)? })
    }

    /// The values, when the work runs.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn get(self, call: Call) -> Result<(T, T), Error> {
        Ok((self.alpha.get(call)?, self.beta.get(call)?))
    }
}

/// A step of a vector of level 2.
///
/// # Errors
/// If it is 0.
pub fn step(inc: i64) -> Result<i64, Status> {
    if inc == 0 { Err(Status::INVALID_VALUE) } else { Ok(inc) }
}

/// y = alpha op(A) x + beta y, for a general matrix, when the work runs.
fn gemv_now<T: Scalar>(
    call: Call,
    operation: Operation,
    scalars: (T, T),
    a: Matrix,
    x: Vector,
    y: Vector,
) -> Result<(), Error> {
    let [rows, columns] = operation.stored([a.rows, a.columns]);
    if scalars.0.is_zero() {
        return update(call, y, scalars, &vec![T::default(); y.count()]);
    }
    let (a, x) = (Held::<T>::new(call.name, a, false)?, x.load::<T>(call.name)?);
    // SAFETY: the values are there while the factor lives.
    let x = unsafe { factor(x.as_ptr(), [1, columns.max(1)], false) };
    let sums = product([rows, 1, columns], a.factor(operation), x);
    let sums: Vec<T> = (0..rows).map(|i| sums.at(i, 0)).collect();
    update(call, y, scalars, &sums)
}

/// The shape of a general matrix and its vectors.
#[derive(Clone, Copy)]
pub struct General {
    /// What happens to the matrix.
    pub operation: Operation,
    /// Its rows and columns in memory.
    pub sizes: [usize; 2],
    lda: usize,
    /// The steps of x and y.
    pub steps: [i64; 2],
    kinds: [Kind; 3],
}

impl General {
    /// The shape that arguments name.
    ///
    /// # Errors
    /// If they have no meaning.
    pub fn of<T: Scalar>(
        trans: u32,
        [m, n]: [i64; 2],
        lda: i64,
        [incx, incy]: [i64; 2],
    ) -> Result<General, Status> {
        let sizes = [size(m)?, size(n)?];
        let (lda, steps) = (leading(lda, sizes[0])?, [step(incx)?, step(incy)?]);
        Ok(General { operation: operation(trans)?, sizes, lda, steps, kinds: [T::KIND; 3] })
    }

    /// The elements of x and of y.
    pub fn lengths(&self) -> [usize; 2] {
        let [rows, columns] = self.operation.stored(self.sizes);
        [columns, rows]
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.sizes.contains(&0)
    }
}

/// y = alpha op(A) x + beta y, for matrices and vectors at strides.
fn gemv<T: Scalar>(
    call: Call,
    general: General,
    [alpha, beta]: [Ptr; 2],
    [a, x, y]: [Ptr; 3],
    strides: [i64; 3],
    count: usize,
) -> Result<(), Status> {
    if general.is_empty() || count == 0 {
        return Ok(());
    }
    let factors = Factors::<T>::of(&call, alpha, beta)?;
    let [of_x, of_y] = general.lengths();
    let kinds = general.kinds;
    let jobs = (0..count as i64).map(|i| {
        let at = |pointer: Ptr, which: usize| {
            pointer
                .wrapping_byte_offset((i * strides[which]).wrapping_mul(kinds[which].bytes() as i64) as isize)
        };
        Ok((
            call.matrix("A", kinds[0], at(a, 0), general.sizes, general.lda as i64)?,
            call.vector("x", kinds[1], at(x, 1), of_x, general.steps[0])?,
            call.vector("y", kinds[2], at(y, 2), of_y, general.steps[1])?,
        ))
    });
    let jobs: Vec<(Matrix, Vector, Vector)> = jobs.collect::<Result<_, Status>>()?;
    call.submit(move || {
        let scalars = factors.get(call)?;
        jobs.iter().try_for_each(|&(a, x, y)| gemv_now(call, general.operation, scalars, a, x, y))
    })
}

/// The same, for those that pointers in device memory name.
fn gemv_batched<T: Scalar>(
    call: Call,
    general: General,
    [alpha, beta]: [Ptr; 2],
    [a, x, y]: [Ptr; 3],
    count: usize,
) -> Result<(), Status> {
    if general.is_empty() || count == 0 {
        return Ok(());
    }
    let factors = Factors::<T>::of(&call, alpha, beta)?;
    let lists = [
        pointers(call, "the pointers of A", a, count)?,
        pointers(call, "the pointers of x", x, count)?,
        pointers(call, "the pointers of y", y, count)?,
    ];
    let [of_x, of_y] = general.lengths();
    call.submit(move || {
        let scalars = factors.get(call)?;
        let read = |i: usize| -> Result<Vec<u64>, Error> { Ok(lists[i].reach(call.name)?.read()) };
        let (a, x, y) = (read(0)?, read(1)?, read(2)?);
        let at = |address: u64| std::ptr::with_exposed_provenance_mut(address as usize);
        let gone = |_| Error::ILLEGAL_ADDRESS;
        for i in 0..count {
            let a = matrix_of(call, "A", general.kinds[0], at(a[i]), general.sizes, general.lda)?;
            let x = call.vector("x", general.kinds[1], at(x[i]), of_x, general.steps[0]).map_err(gone)?;
            let y = call.vector("y", general.kinds[2], at(y[i]), of_y, general.steps[1]).map_err(gone)?;
            gemv_now(call, general.operation, scalars, a, x, y)?;
        }
        Ok(())
    })
}

/// Types of matrix, x and y: halves or brain floats and singles, for functions whose names say so.
fn of_halves(general: General, x: Kind, y: Kind) -> General {
    General { kinds: [x, x, y], ..general }
}

routines! { API:
    /// y = alpha op(A) x + beta y.
    "gemv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int) |call| {
        let general = General::of::<T>(trans, [m, n], lda, [incx, incy])?;
        gemv::<T>(call, general, [alpha, beta], [a, x, y], [0; 3], 1)
    }
    /// y = alpha op(A) x + beta y, for matrices and vectors at strides.
    "gemvStridedBatched" ["S" f32, "D" f64, "C" C32, "Z" C64] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, stridea: i64, x: Ptr, incx: Int, stridex: i64, beta: Ptr, y: Ptr, incy: Int, stridey: i64, count: Int) |call| {
        let general = General::of::<T>(trans, [m, n], lda, [incx, incy])?;
        gemv::<T>(call, general, [alpha, beta], [a, x, y], [stridea, stridex, stridey], size(count)?)
    }
    /// y = alpha op(A) x + beta y at strides, for halves and a result of halves, with sums of singles.
    "gemvStridedBatched" ["HSH" f32] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, stridea: i64, x: Ptr, incx: Int, stridex: i64, beta: Ptr, y: Ptr, incy: Int, stridey: i64, count: Int) |call| {
        let general = of_halves(General::of::<T>(trans, [m, n], lda, [incx, incy])?, Kind::R16, Kind::R16);
        gemv::<T>(call, general, [alpha, beta], [a, x, y], [stridea, stridex, stridey], size(count)?)
    }
    /// y = alpha op(A) x + beta y at strides, for halves and a result of singles.
    "gemvStridedBatched" ["HSS" f32] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, stridea: i64, x: Ptr, incx: Int, stridex: i64, beta: Ptr, y: Ptr, incy: Int, stridey: i64, count: Int) |call| {
        let general = of_halves(General::of::<T>(trans, [m, n], lda, [incx, incy])?, Kind::R16, Kind::R32);
        gemv::<T>(call, general, [alpha, beta], [a, x, y], [stridea, stridex, stridey], size(count)?)
    }
    /// y = alpha op(A) x + beta y at strides, for brain floats and a result of them, with sums of singles.
    "gemvStridedBatched" ["TST" f32] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, stridea: i64, x: Ptr, incx: Int, stridex: i64, beta: Ptr, y: Ptr, incy: Int, stridey: i64, count: Int) |call| {
        let general = of_halves(General::of::<T>(trans, [m, n], lda, [incx, incy])?, Kind::B16, Kind::B16);
        gemv::<T>(call, general, [alpha, beta], [a, x, y], [stridea, stridex, stridey], size(count)?)
    }
    /// y = alpha op(A) x + beta y at strides, for brain floats and a result of singles.
    "gemvStridedBatched" ["TSS" f32] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, stridea: i64, x: Ptr, incx: Int, stridex: i64, beta: Ptr, y: Ptr, incy: Int, stridey: i64, count: Int) |call| {
        let general = of_halves(General::of::<T>(trans, [m, n], lda, [incx, incy])?, Kind::B16, Kind::R32);
        gemv::<T>(call, general, [alpha, beta], [a, x, y], [stridea, stridex, stridey], size(count)?)
    }
    /// y = alpha op(A) x + beta y, for matrices and vectors that pointers in device memory name.
    "gemvBatched" ["S" f32, "D" f64, "C" C32, "Z" C64] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int, count: Int) |call| {
        let general = General::of::<T>(trans, [m, n], lda, [incx, incy])?;
        gemv_batched::<T>(call, general, [alpha, beta], [a, x, y], size(count)?)
    }
    /// y = alpha op(A) x + beta y that pointers name, for halves and a result of halves, with sums of singles.
    "gemvBatched" ["HSH" f32] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int, count: Int) |call| {
        let general = of_halves(General::of::<T>(trans, [m, n], lda, [incx, incy])?, Kind::R16, Kind::R16);
        gemv_batched::<T>(call, general, [alpha, beta], [a, x, y], size(count)?)
    }
    /// y = alpha op(A) x + beta y that pointers name, for halves and a result of singles.
    "gemvBatched" ["HSS" f32] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int, count: Int) |call| {
        let general = of_halves(General::of::<T>(trans, [m, n], lda, [incx, incy])?, Kind::R16, Kind::R32);
        gemv_batched::<T>(call, general, [alpha, beta], [a, x, y], size(count)?)
    }
    /// y = alpha op(A) x + beta y that pointers name, for brain floats and a result of them, with sums of singles.
    "gemvBatched" ["TST" f32] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int, count: Int) |call| {
        let general = of_halves(General::of::<T>(trans, [m, n], lda, [incx, incy])?, Kind::B16, Kind::B16);
        gemv_batched::<T>(call, general, [alpha, beta], [a, x, y], size(count)?)
    }
    /// y = alpha op(A) x + beta y that pointers name, for brain floats and a result of singles.
    "gemvBatched" ["TSS" f32] (trans: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int, count: Int) |call| {
        let general = of_halves(General::of::<T>(trans, [m, n], lda, [incx, incy])?, Kind::B16, Kind::R32);
        gemv_batched::<T>(call, general, [alpha, beta], [a, x, y], size(count)?)
    }
}
