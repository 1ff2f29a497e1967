//! Level 2: symmetric, Hermitian, triangular and banded matrices and vectors, and updates of matrices by vectors. Sums are in ascending
//! order of the columns, and for systems of equations in the order of the solution. General matrices are in `gemv.rs`.

use std::ops::Range;

use crate::call::{Call, Coefficient, leading, size};
use crate::declare::{Ptr, routines};
use crate::gemv::{Factors, General, step, update};
use crate::operand::{either, plain};
use crate::status::Status;
use linalg::{C32, C64, Kind, Matrix, Operation, Reached, Region, Scalar, each, list};

/// How a square matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// By columns.
    Full,
    /// So many diagonals beside the main one, in rows of memory.
    Band(usize),
    /// The columns of a triangle one behind the other.
    Packed,
}

/// A triangle of a matrix in memory.
#[derive(Clone, Copy)]
struct Half {
    matrix: Matrix,
    storage: Storage,
    order: usize,
    is_upper: bool,
}

impl Half {
    /// The triangle that arguments name.
    fn of(
        call: &Call,
        kind: Kind,
        uplo: u32,
        order: usize,
        storage: Storage,
        (a, lda): (Ptr, i64),
    ) -> Result<Half, Status> {
        let is_upper = either(uplo)?;
        let matrix = match storage {
            Storage::Full => call.matrix("A", kind, a, [order, order], lda)?,
            Storage::Band(k) => call.matrix("A", kind, a, [k + 1, order], lda)?,
            Storage::Packed => call.packed("AP", kind, a, order)?,
        };
        Ok(Half { matrix, storage, order, is_upper })
    }

    /// The row and column of memory where an element of the triangle is.
    fn place(&self, row: usize, column: usize) -> (usize, usize) {
        match (self.storage, self.is_upper) {
            (Storage::Full, _) => (row, column),
            (Storage::Band(k), true) => (k + row - column, column),
            (Storage::Band(_), false) => (row - column, column),
            (Storage::Packed, true) => (row + column * (column + 1) / 2, 0),
            (Storage::Packed, false) => (row + (2 * self.order - column - 1) * column / 2, 0),
        }
    }

    /// The columns of a row that may be other than zero, of the whole matrix.
    fn band(&self, row: usize) -> Range<usize> {
        match self.storage {
            Storage::Band(k) => row.saturating_sub(k)..(row + k + 1).min(self.order),
            _ => 0..self.order,
        }
    }

    /// The columns of a row of the triangle with this operation.
    fn columns(&self, row: usize, operation: Operation) -> Range<usize> {
        let band = self.band(row);
        if self.is_upper == operation.transposed { band.start..row + 1 } else { row..band.end }
    }
}

/// The sum of the products of a row of a matrix and a vector, in ascending order.
fn row<T: Scalar>(columns: Range<usize>, at: impl Fn(usize) -> T, x: &[T]) -> T {
    columns.fold(T::default(), |sum, j| sum + at(j) * x[j])
}

/// y = alpha op(A) x + beta y, for a band of a general matrix.
fn gbmv<T: Scalar>(
    call: Call,
    general: General,
    [kl, ku]: [i64; 2],
    [alpha, beta]: [Ptr; 2],
    [a, x, y]: [Ptr; 3],
    lda: i64,
) -> Result<(), Status> {
    let (kl, ku) = (size(kl)?, size(ku)?);
    let [m, n] = general.sizes;
    leading(lda, kl + ku + 1)?;
    if general.is_empty() {
        return Ok(());
    }
    let factors = Factors::<T>::of(&call, alpha, beta)?;
    let [of_x, of_y] = general.lengths();
    let a = call.matrix("A", T::KIND, a, [kl + ku + 1, n], lda)?;
    let x = call.vector("x", T::KIND, x, of_x, general.steps[0])?;
    let y = call.vector("y", T::KIND, y, of_y, general.steps[1])?;
    let operation = general.operation;
    call.submit(move || {
        let scalars = factors.get(call)?;
        if scalars.0.is_zero() {
            return update(call, y, scalars, &vec![T::default(); of_y]);
        }
        let (from, x) = (a.reach(call.name)?, x.load::<T>(call.name)?);
        let sums = list(of_y, of_y * (kl + ku + 1), |i| {
            let (before, after, end) = if operation.transposed { (ku, kl, m) } else { (kl, ku, n) };
            let columns = i.saturating_sub(before)..(i + after + 1).min(end);
            let at = |j: usize| {
                let (row, column) = if operation.transposed { (j, i) } else { (i, j) };
                operation.element(from.read(ku + row - column, column))
            };
            row(columns.start..columns.end.max(columns.start), at, &x)
        });
        update(call, y, scalars, &sums)
    })
}

/// y = alpha A x + beta y, for a symmetric or Hermitian matrix.
fn symmetric<T: Scalar>(
    call: Call,
    is_hermitian: bool,
    (uplo, n, storage): (u32, i64, Storage),
    [alpha, beta]: [Ptr; 2],
    a: (Ptr, i64),
    [x, y]: [(Ptr, i64); 2],
) -> Result<(), Status> {
    let n = size(n)?;
    let half = Half::of(&call, T::KIND, uplo, n, storage, a)?;
    let (incx, incy) = (step(x.1)?, step(y.1)?);
    if n == 0 {
        return Ok(());
    }
    let factors = Factors::<T>::of(&call, alpha, beta)?;
    let (x, y) = (call.vector("x", T::KIND, x.0, n, incx)?, call.vector("y", T::KIND, y.0, n, incy)?);
    call.submit(move || {
        let scalars = factors.get(call)?;
        if scalars.0.is_zero() {
            return update(call, y, scalars, &vec![T::default(); n]);
        }
        let (from, x) = (half.matrix.reach(call.name)?, x.load::<T>(call.name)?);
        let sums = list(n, n * half.band(n / 2).len(), |i| {
            let at = |j: usize| {
                let is_there = if half.is_upper { i <= j } else { j <= i };
                let (row, column) = if is_there { half.place(i, j) } else { half.place(j, i) };
                let value: T = from.read(row, column);
                match is_hermitian {
                    true if i == j => T::real(value.re()),
                    true => value.conjugate_if(!is_there),
                    false => value,
                }
            };
            row(half.band(i), at, &x)
        });
        update(call, y, scalars, &sums)
    })
}

/// x = op(A) x, or the solution of op(A) y = x, for a triangular matrix.
fn triangular<T: Scalar>(
    call: Call,
    is_solved: bool,
    [uplo, trans, diag]: [u32; 3],
    (n, storage): (i64, Storage),
    a: (Ptr, i64),
    (x, incx): (Ptr, i64),
) -> Result<(), Status> {
    let n = size(n)?;
    let half = Half::of(&call, T::KIND, uplo, n, storage, a)?;
    let (operation, is_unit) = (plain(trans)?, either(diag)?);
    let x = call.vector("x", T::KIND, x, n, step(incx)?)?;
    if n == 0 {
        return Ok(());
    }
    call.submit(move || {
        let (from, mut values) = (half.matrix.reach(call.name)?, x.load::<T>(call.name)?);
        let at = |i: usize, j: usize| {
            if i == j && is_unit {
                return T::ONE;
            }
            let (row, column) = if operation.transposed { (j, i) } else { (i, j) };
            let (row, column) = half.place(row, column);
            operation.element(from.read::<T>(row, column))
        };
        if is_solved {
            let is_lower = half.is_upper == operation.transposed;
            for turn in 0..n {
                let i = if is_lower { turn } else { n - 1 - turn };
                let columns = half.columns(i, operation).filter(|&j| j != i);
                let sum = columns.fold(values[i], |sum, j| sum - at(i, j) * values[j]);
                values[i] = if is_unit { sum } else { sum / at(i, i) };
            }
            return x.store(call.name, &values);
        }
        let sums =
            list(n, n * half.band(n / 2).len(), |i| row(half.columns(i, operation), |j| at(i, j), &values));
        x.store(call.name, &sums)
    })
}

/// How a matrix is updated by vectors.
#[derive(Clone, Copy)]
struct Update {
    is_hermitian: bool,
    /// Whether the same with x and y exchanged is added.
    is_twice: bool,
}

/// Tells the driver what of a triangle has been written.
fn tell(half: Half, into: &Reached) {
    match half.storage {
        Storage::Packed => into.wrote(),
        _ => {
            let region = Region::triangle(half.is_upper);
            (0..half.order).for_each(|j| into.wrote_rows(region.rows(half.order, j), j));
        }
    }
}

/// A triangle of A = alpha x x^T + A, or of A = alpha (x y^T + y x^T) + A; of Hermitian ones with ^H.
fn rank<T: Scalar>(
    call: Call,
    how: Update,
    (uplo, n, storage): (u32, i64, Storage),
    alpha: Coefficient<T>,
    [x, y]: [(Ptr, i64); 2],
    a: (Ptr, i64),
) -> Result<(), Status> {
    let n = size(n)?;
    let half = Half::of(&call, T::KIND, uplo, n, storage, a)?;
    let (x, y) =
        (call.vector("x", T::KIND, x.0, n, step(x.1)?)?, call.vector("y", T::KIND, y.0, n, step(y.1)?)?);
    if n == 0 {
        return Ok(());
    }
    call.submit(move || {
        let alpha = alpha.get(call)?;
        if alpha.is_zero() {
            return Ok(());
        }
        let (x, y, into) = (x.load::<T>(call.name)?, y.load::<T>(call.name)?, half.matrix.reach(call.name)?);
        let is_conjugated = how.is_hermitian;
        each(n, n * n, |j| {
            for i in Region::triangle(half.is_upper).rows(n, j) {
                let (row, column) = half.place(i, j);
                let mut term = alpha * x[i] * y[j].conjugate_if(is_conjugated);
                if how.is_twice {
                    term = term + alpha.conjugate_if(is_conjugated) * y[i] * x[j].conjugate_if(is_conjugated);
                }
                let new = into.read::<T>(row, column) + term;
                let new = if is_conjugated && i == j { T::real(new.re()) } else { new };
                into.write(row, column, new);
            }
        });
        tell(half, &into);
        Ok(())
    })
}

/// A = alpha x y^T + A, or with y^H.
fn ger<T: Scalar>(
    call: Call,
    is_conjugated: bool,
    [m, n]: [i64; 2],
    alpha: Ptr,
    [x, y]: [(Ptr, i64); 2],
    a: (Ptr, i64),
) -> Result<(), Status> {
    let (m, n) = (size(m)?, size(n)?);
    leading(a.1, m)?;
    let (incx, incy) = (step(x.1)?, step(y.1)?);
    if m == 0 || n == 0 {
        return Ok(());
    }
    let alpha = call.scalar::<T>("alpha", alpha)?;
    let (x, y) = (call.vector("x", T::KIND, x.0, m, incx)?, call.vector("y", T::KIND, y.0, n, incy)?);
    let a = call.matrix("A", T::KIND, a.0, [m, n], a.1)?;
    call.submit(move || {
        let alpha = alpha.get(call)?;
        if alpha.is_zero() {
            return Ok(());
        }
        let (x, y, into) = (x.load::<T>(call.name)?, y.load::<T>(call.name)?, a.reach(call.name)?);
        each(n, m * n, |j| {
            let by = alpha * y[j].conjugate_if(is_conjugated);
            (0..m).for_each(|i| into.write(i, j, into.read::<T>(i, j) + x[i] * by));
        });
        into.wrote();
        Ok(())
    })
}

/// A real factor of a complex function.
fn real<T: Scalar>(call: &Call, alpha: Ptr) -> Result<Coefficient<T>, Status> {
    call.scalar_of("alpha", alpha, T::Real::KIND)
}

const FULL: Storage = Storage::Full;
const PACKED: Storage = Storage::Packed;

/// The diagonals beside the main one.
fn band(k: i64) -> Result<Storage, Status> {
    Ok(Storage::Band(size(k)?))
}

const ONCE: Update = Update { is_hermitian: false, is_twice: false };
const TWICE: Update = Update { is_hermitian: false, is_twice: true };
const HERMITIAN: Update = Update { is_hermitian: true, is_twice: false };
const HERMITIAN_TWICE: Update = Update { is_hermitian: true, is_twice: true };

routines! { API:
    /// y = alpha op(A) x + beta y, for a band of a general matrix.
    "gbmv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (trans: u32, m: Int, n: Int, kl: Int, ku: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int) |call| {
        // The rows of a band are not those of the matrix.
        let general = General::of::<T>(trans, [m, n], m.max(1), [incx, incy])?;
        gbmv::<T>(call, general, [kl, ku], [alpha, beta], [a, x, y], lda)
    }
    /// y = alpha A x + beta y, for symmetric A.
    "symv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int) |call| {
        symmetric::<T>(call, false, (uplo, n, FULL), [alpha, beta], (a, lda), [(x, incx), (y, incy)])
    }
    /// y = alpha A x + beta y, for Hermitian A.
    "hemv_v2" ["C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int) |call| {
        symmetric::<T>(call, true, (uplo, n, FULL), [alpha, beta], (a, lda), [(x, incx), (y, incy)])
    }
    /// y = alpha A x + beta y, for a band of a symmetric matrix.
    "sbmv_v2" ["S" f32, "D" f64] (uplo: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int) |call| {
        symmetric::<T>(call, false, (uplo, n, band(k)?), [alpha, beta], (a, lda), [(x, incx), (y, incy)])
    }
    /// y = alpha A x + beta y, for a band of a Hermitian matrix.
    "hbmv_v2" ["C" C32, "Z" C64] (uplo: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int) |call| {
        symmetric::<T>(call, true, (uplo, n, band(k)?), [alpha, beta], (a, lda), [(x, incx), (y, incy)])
    }
    /// y = alpha A x + beta y, for a packed symmetric matrix.
    "spmv_v2" ["S" f32, "D" f64] (uplo: u32, n: Int, alpha: Ptr, ap: Ptr, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int) |call| {
        symmetric::<T>(call, false, (uplo, n, PACKED), [alpha, beta], (ap, 1), [(x, incx), (y, incy)])
    }
    /// y = alpha A x + beta y, for a packed Hermitian matrix.
    "hpmv_v2" ["C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, ap: Ptr, x: Ptr, incx: Int, beta: Ptr, y: Ptr, incy: Int) |call| {
        symmetric::<T>(call, true, (uplo, n, PACKED), [alpha, beta], (ap, 1), [(x, incx), (y, incy)])
    }
    /// x = op(A) x, for triangular A.
    "trmv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, diag: u32, n: Int, a: Ptr, lda: Int, x: Ptr, incx: Int) |call| {
        triangular::<T>(call, false, [uplo, trans, diag], (n, FULL), (a, lda), (x, incx))
    }
    /// x = op(A) x, for a band of a triangular matrix.
    "tbmv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, diag: u32, n: Int, k: Int, a: Ptr, lda: Int, x: Ptr, incx: Int) |call| {
        triangular::<T>(call, false, [uplo, trans, diag], (n, band(k)?), (a, lda), (x, incx))
    }
    /// x = op(A) x, for a packed triangular matrix.
    "tpmv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, diag: u32, n: Int, ap: Ptr, x: Ptr, incx: Int) |call| {
        triangular::<T>(call, false, [uplo, trans, diag], (n, PACKED), (ap, 1), (x, incx))
    }
    /// Solves op(A) x = b, for triangular A; x replaces b.
    "trsv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, diag: u32, n: Int, a: Ptr, lda: Int, x: Ptr, incx: Int) |call| {
        triangular::<T>(call, true, [uplo, trans, diag], (n, FULL), (a, lda), (x, incx))
    }
    /// Solves op(A) x = b, for a band of a triangular matrix; x replaces b.
    "tbsv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, diag: u32, n: Int, k: Int, a: Ptr, lda: Int, x: Ptr, incx: Int) |call| {
        triangular::<T>(call, true, [uplo, trans, diag], (n, band(k)?), (a, lda), (x, incx))
    }
    /// Solves op(A) x = b, for a packed triangular matrix; x replaces b.
    "tpsv_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, diag: u32, n: Int, ap: Ptr, x: Ptr, incx: Int) |call| {
        triangular::<T>(call, true, [uplo, trans, diag], (n, PACKED), (ap, 1), (x, incx))
    }
    /// A = alpha x y^T + A.
    "ger_v2" ["S" f32, "D" f64] (m: Int, n: Int, alpha: Ptr, x: Ptr, incx: Int, y: Ptr, incy: Int, a: Ptr, lda: Int) |call| {
        ger::<T>(call, false, [m, n], alpha, [(x, incx), (y, incy)], (a, lda))
    }
    /// A = alpha x y^T + A.
    "geru_v2" ["C" C32, "Z" C64] (m: Int, n: Int, alpha: Ptr, x: Ptr, incx: Int, y: Ptr, incy: Int, a: Ptr, lda: Int) |call| {
        ger::<T>(call, false, [m, n], alpha, [(x, incx), (y, incy)], (a, lda))
    }
    /// A = alpha x y^H + A.
    "gerc_v2" ["C" C32, "Z" C64] (m: Int, n: Int, alpha: Ptr, x: Ptr, incx: Int, y: Ptr, incy: Int, a: Ptr, lda: Int) |call| {
        ger::<T>(call, true, [m, n], alpha, [(x, incx), (y, incy)], (a, lda))
    }
    /// A triangle of A = alpha x x^T + A.
    "syr_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, x: Ptr, incx: Int, a: Ptr, lda: Int) |call| {
        rank::<T>(call, ONCE, (uplo, n, FULL), call.scalar("alpha", alpha)?, [(x, incx), (x, incx)], (a, lda))
    }
    /// A triangle of A = alpha x x^H + A, with real alpha.
    "her_v2" ["C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, x: Ptr, incx: Int, a: Ptr, lda: Int) |call| {
        rank::<T>(call, HERMITIAN, (uplo, n, FULL), real(&call, alpha)?, [(x, incx), (x, incx)], (a, lda))
    }
    /// A packed triangle of A = alpha x x^T + A.
    "spr_v2" ["S" f32, "D" f64] (uplo: u32, n: Int, alpha: Ptr, x: Ptr, incx: Int, ap: Ptr) |call| {
        rank::<T>(call, ONCE, (uplo, n, PACKED), call.scalar("alpha", alpha)?, [(x, incx), (x, incx)], (ap, 1))
    }
    /// A packed triangle of A = alpha x x^H + A, with real alpha.
    "hpr_v2" ["C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, x: Ptr, incx: Int, ap: Ptr) |call| {
        rank::<T>(call, HERMITIAN, (uplo, n, PACKED), real(&call, alpha)?, [(x, incx), (x, incx)], (ap, 1))
    }
    /// A triangle of A = alpha (x y^T + y x^T) + A.
    "syr2_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, x: Ptr, incx: Int, y: Ptr, incy: Int, a: Ptr, lda: Int) |call| {
        rank::<T>(call, TWICE, (uplo, n, FULL), call.scalar("alpha", alpha)?, [(x, incx), (y, incy)], (a, lda))
    }
    /// A triangle of A = alpha x y^H + conj(alpha) y x^H + A.
    "her2_v2" ["C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, x: Ptr, incx: Int, y: Ptr, incy: Int, a: Ptr, lda: Int) |call| {
        rank::<T>(call, HERMITIAN_TWICE, (uplo, n, FULL), call.scalar("alpha", alpha)?, [(x, incx), (y, incy)], (a, lda))
    }
    /// A packed triangle of A = alpha (x y^T + y x^T) + A.
    "spr2_v2" ["S" f32, "D" f64] (uplo: u32, n: Int, alpha: Ptr, x: Ptr, incx: Int, y: Ptr, incy: Int, ap: Ptr) |call| {
        rank::<T>(call, TWICE, (uplo, n, PACKED), call.scalar("alpha", alpha)?, [(x, incx), (y, incy)], (ap, 1))
    }
    /// A packed triangle of A = alpha x y^H + conj(alpha) y x^H + A.
    "hpr2_v2" ["C" C32, "Z" C64] (uplo: u32, n: Int, alpha: Ptr, x: Ptr, incx: Int, y: Ptr, incy: Int, ap: Ptr) |call| {
        rank::<T>(call, HERMITIAN_TWICE, (uplo, n, PACKED), call.scalar("alpha", alpha)?, [(x, incx), (y, incy)], (ap, 1))
    }
}
