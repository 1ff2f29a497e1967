//! What cuBLAS has beyond the BLAS: sums of matrices, products with diagonal ones, packed triangles.

use crate::call::{Call, Coefficient, leading, size};
use crate::declare::{Ptr, routines};
use crate::operand::{either, operation};
use crate::status::Status;
use linalg::{C32, C64, Matrix, Operation, Reached, Region, Scalar, accumulate, each};

/// C = alpha op(A) + beta op(B).
fn geam<T: Scalar>(
    call: Call,
    [transa, transb]: [u32; 2],
    [m, n]: [i64; 2],
    [alpha, beta]: [Ptr; 2],
    [a, b, c]: [(Ptr, i64); 3],
) -> Result<(), Status> {
    let operations = [operation(transa)?, operation(transb)?];
    let shape = [size(m)?, size(n)?];
    leading(c.1, shape[0])?;
    let (alpha, beta) = (call.scalar::<T>("alpha", alpha)?, call.scalar::<T>("beta", beta)?);
    let is_read = |scalar| !matches!(scalar, Coefficient::Known(value) if T::is_zero(value));
    let stored = [operations[0].stored(shape), operations[1].stored(shape)];
    if is_read(alpha) {
        leading(a.1, stored[0][0])?;
    }
    if is_read(beta) {
        leading(b.1, stored[1][0])?;
    }
    // In place, a matrix must stay where it is.
    let overlaps =
        |(x, ldx): (Ptr, i64), operation: Operation| x == c.0 && (operation.transposed || ldx != c.1);
    if is_read(alpha) && overlaps(a, operations[0]) || is_read(beta) && overlaps(b, operations[1]) {
        return Err(Status::INVALID_VALUE);
    }
    if shape.contains(&0) {
        return Ok(());
    }
    let one = |name: &str, (x, ldx): (Ptr, i64), is_read: bool, stored: [usize; 2]| match is_read {
        true => call.matrix(name, T::KIND, x, stored, ldx).map(Some),
        false => Ok(None),
    };
    let a = one("A", a, is_read(alpha), stored[0])?;
    let b = one("B", b, is_read(beta), stored[1])?;
    let c = call.matrix("C", T::KIND, c.0, shape, c.1)?;
    call.submit(move || {
        let (alpha, beta) = (alpha.get(call)?, beta.get(call)?);
        let reach = |matrix: Option<Matrix>, scalar: T| match matrix {
            Some(matrix) if !scalar.is_zero() => matrix.reach(call.name).map(Some),
            _ => Ok(None),
        };
        let (a, b, into) = (reach(a, alpha)?, reach(b, beta)?, c.reach(call.name)?);
        let element = |from: &Reached, operation: Operation, i: usize, j: usize| {
            let (row, column) = if operation.transposed { (j, i) } else { (i, j) };
            operation.element(from.read::<T>(row, column))
        };
        let value = |i, j| {
            let first = a.as_ref().map(|a| alpha * element(a, operations[0], i, j));
            let second = b.as_ref().map(|b| beta * element(b, operations[1], i, j));
            match (first, second) {
                (Some(first), Some(second)) => first + second,
                (first, second) => first.or(second).unwrap_or_default(),
            }
        };
        accumulate(&into, Region::Full, T::default(), Some(&value), |_, _, new| new);
        Ok(())
    })
}

/// C = A diag(x) or diag(x) A.
fn dgmm<T: Scalar>(
    call: Call,
    side: u32,
    [m, n]: [i64; 2],
    a: (Ptr, i64),
    x: (Ptr, i64),
    c: (Ptr, i64),
) -> Result<(), Status> {
    let is_right = either(side)?;
    let shape = [size(m)?, size(n)?];
    leading(a.1, shape[0])?;
    leading(c.1, shape[0])?;
    if shape.contains(&0) {
        return Ok(());
    }
    let a = call.matrix("A", T::KIND, a.0, shape, a.1)?;
    let x = call.vector("x", T::KIND, x.0, if is_right { shape[1] } else { shape[0] }, x.1)?;
    let c = call.matrix("C", T::KIND, c.0, shape, c.1)?;
    call.submit(move || {
        let (from, x, into) = (a.reach(call.name)?, x.load::<T>(call.name)?, c.reach(call.name)?);
        let value = |i, j| from.read::<T>(i, j) * x[if is_right { j } else { i }];
        accumulate(&into, Region::Full, T::default(), Some(&value), |_, _, new| new);
        Ok(())
    })
}

/// Copies a triangle between its packed form and a matrix.
fn repack<T: Scalar>(
    call: Call,
    into_packed: bool,
    uplo: u32,
    n: i64,
    packed: Ptr,
    a: (Ptr, i64),
) -> Result<(), Status> {
    let (is_upper, n) = (either(uplo)?, size(n)?);
    leading(a.1, n)?;
    if n == 0 {
        return Ok(());
    }
    let packed = call.packed("AP", T::KIND, packed, n)?;
    let a = call.matrix("A", T::KIND, a.0, [n, n], a.1)?;
    call.submit(move || {
        let (packed, full) = (packed.reach(call.name)?, a.reach(call.name)?);
        let region = Region::triangle(is_upper);
        each(n, n * n, |j| {
            for i in region.rows(n, j) {
                let index = if is_upper { i + j * (j + 1) / 2 } else { i + (2 * n - j - 1) * j / 2 };
                match into_packed {
                    true => packed.write::<T>(index, 0, full.read(i, j)),
                    false => full.write::<T>(i, j, packed.read(index, 0)),
                }
            }
            if !into_packed {
                full.wrote_rows(region.rows(n, j), j);
            }
        });
        if into_packed {
            packed.wrote();
        }
        Ok(())
    })
}

routines! { API:
    /// C = alpha op(A) + beta op(B).
    "geam" ["S" f32, "D" f64, "C" C32, "Z" C64] (transa: u32, transb: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, beta: Ptr, b: Ptr, ldb: Int, c: Ptr, ldc: Int) |call| {
        geam::<T>(call, [transa, transb], [m, n], [alpha, beta], [(a, lda), (b, ldb), (c, ldc)])
    }
    /// C = A diag(x) or diag(x) A.
    "dgmm" ["S" f32, "D" f64, "C" C32, "Z" C64] (side: u32, m: Int, n: Int, a: Ptr, lda: Int, x: Ptr, incx: Int, c: Ptr, ldc: Int) |call| {
        dgmm::<T>(call, side, [m, n], (a, lda), (x, incx), (c, ldc))
    }
    /// A triangle of a matrix from its packed form.
    "tpttr" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (uplo: u32, n: Int, ap: Ptr, a: Ptr, lda: Int) |call| {
        repack::<T>(call, false, uplo, n, ap, (a, lda))
    }
    /// The packed form of a triangle of a matrix.
    "trttp" ["S" f32, "D" f64, "C" C32, "Z" C64; narrow] (uplo: u32, n: Int, a: Ptr, lda: Int, ap: Ptr) |call| {
        repack::<T>(call, true, uplo, n, ap, (a, lda))
    }
}
