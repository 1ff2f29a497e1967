//! Level 3: symmetric, Hermitian and triangular matrices. A product is computed whole, also where only a triangle is written.

use crate::call::{Call, Coefficient, size};
use crate::declare::{Ptr, routines};
use crate::operand::{either, kind, plain};
use crate::status::Status;
use linalg::{
    C32, C64, Dense, Held, Kind, Matrix, Named, Operation, Region, Scalar, Triangle, accumulate, product,
};

/// A symmetric or Hermitian matrix, of which a triangle is in memory, whole.
fn whole<T: Scalar>(
    call: Call,
    matrix: Matrix,
    is_upper: bool,
    is_hermitian: bool,
) -> Result<Dense<T>, mathlib::Error> {
    let from = matrix.reach(call.name)?;
    Ok(Dense::new(matrix.rows, matrix.rows, |i, j| {
        let is_there = if is_upper { i <= j } else { j <= i };
        let value: T = if is_there { from.read(i, j) } else { from.read(j, i) };
        match is_hermitian {
            true if i == j => T::real(value.re()),
            true => value.conjugate_if(!is_there),
            false => value,
        }
    }))
}

/// Whether `f32` and `cuComplex` are rounded to TF32.
fn tf32(call: &Call) -> bool {
    call.math & 15 == 3
}

/// C = alpha A B + beta C, or alpha B A + beta C, where A is symmetric or Hermitian.
fn symmetric<T: Scalar>(
    call: Call,
    is_hermitian: bool,
    [side, uplo]: [u32; 2],
    [m, n]: [i64; 2],
    [alpha, beta]: [Ptr; 2],
    [a, b, c]: [(Ptr, i64); 3],
) -> Result<(), Status> {
    let (is_right, is_upper) = (either(side)?, either(uplo)?);
    let (m, n) = (size(m)?, size(n)?);
    let order = if is_right { n } else { m };
    crate::call::leading(a.1, order)?;
    crate::call::leading(b.1, m)?;
    crate::call::leading(c.1, m)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let (alpha, beta) = (call.scalar::<T>("alpha", alpha)?, call.scalar::<T>("beta", beta)?);
    let is_read = !is_zero(alpha);
    let shape = |rows, columns| if is_read { [rows, columns] } else { [0, 0] };
    let a = call.matrix("A", T::KIND, a.0, shape(order, order), a.1)?;
    let b = call.matrix("B", T::KIND, b.0, shape(m, n), b.1)?;
    let c = call.matrix("C", T::KIND, c.0, [m, n], c.1)?;
    call.submit(move || {
        let (alpha, beta) = (alpha.get(call)?, beta.get(call)?);
        let into = c.reach(call.name)?;
        if alpha.is_zero() {
            accumulate::<T>(&into, Region::Full, beta, None, |_, _, new| new);
            return Ok(());
        }
        let a = whole::<T>(call, a, is_upper, is_hermitian)?;
        let b = Held::<T>::new(call.name, b, false)?;
        let (a, b) = (a.part(0, 0, Operation::NONE), b.factor(Operation::NONE));
        let sums = if is_right { product([m, n, order], b, a) } else { product([m, n, order], a, b) };
        accumulate(&into, Region::Full, beta, Some(&|i, j| alpha * sums.at::<T>(i, j)), |_, _, new| new);
        Ok(())
    })
}

/// Whether a scalar is known to be zero.
fn is_zero<T: Scalar>(scalar: Coefficient<T>) -> bool {
    matches!(scalar, Coefficient::Known(value) if value.is_zero())
}

/// How a triangle of C is updated.
#[derive(Clone, Copy)]
struct Update {
    is_hermitian: bool,
    /// Whether the same with A and B exchanged is added.
    is_twice: bool,
    /// The types of A and C.
    kinds: [Kind; 2],
}

impl Update {
    fn of<T: Scalar>(is_hermitian: bool, is_twice: bool) -> Update {
        Update { is_hermitian, is_twice, kinds: [T::KIND; 2] }
    }
}

/// A triangle of C = alpha op(A) op(B)^T + beta C; of Hermitian ones with ^H. `alpha` and `beta` have been read.
fn rank<T: Scalar>(
    call: Call,
    update: Update,
    [uplo, trans]: [u32; 2],
    [n, k]: [i64; 2],
    (alpha, beta): (Coefficient<T>, Coefficient<T>),
    [a, b, c]: [(Ptr, i64); 3],
) -> Result<(), Status> {
    let region = Region::triangle(either(uplo)?);
    let is_turned = match trans {
        0 => false,
        1 if !update.is_hermitian => true,
        2 if update.is_hermitian || !T::IS_COMPLEX => true,
        _ => return Err(Status::INVALID_VALUE),
    };
    let (n, k) = (size(n)?, size(k)?);
    let stored = if is_turned { [k, n] } else { [n, k] };
    crate::call::leading(a.1, stored[0])?;
    crate::call::leading(b.1, stored[0])?;
    crate::call::leading(c.1, n)?;
    if n == 0 {
        return Ok(());
    }
    let shape = if is_zero(alpha) || k == 0 { [0, 0] } else { stored };
    let is_one = b.0 == a.0;
    let a = call.matrix("A", update.kinds[0], a.0, shape, a.1)?;
    let b = if is_one { a } else { call.matrix("B", update.kinds[0], b.0, shape, b.1)? };
    let c = call.matrix("C", update.kinds[1], c.0, [n, n], c.1)?;
    let conjugated = update.is_hermitian;
    let turned = Operation { transposed: true, conjugated };
    let (left, right) = if is_turned { (turned, Operation::NONE) } else { (Operation::NONE, turned) };
    call.submit(move || {
        let (alpha, beta) = (alpha.get(call)?, beta.get(call)?);
        let into = c.reach(call.name)?;
        let finish = |i: usize, j: usize, new: T| if conjugated && i == j { T::real(new.re()) } else { new };
        if alpha.is_zero() || k == 0 {
            accumulate::<T>(&into, region, beta, None, finish);
            return Ok(());
        }
        let (a, b) = (Held::<T>::new(call.name, a, tf32(&call))?, Held::<T>::new(call.name, b, tf32(&call))?);
        let sums = product([n, n, k], a.factor(left), b.factor(right));
        let value = |i, j| {
            let value = alpha * sums.at::<T>(i, j);
            match update.is_twice {
                true => value + alpha.conjugate_if(conjugated) * sums.at::<T>(j, i).conjugate_if(conjugated),
                false => value,
            }
        };
        accumulate(&into, region, beta, Some(&value), finish);
        Ok(())
    })
}

/// Scalars that are real for a complex function.
fn real<T: Scalar>(scalar: Coefficient<T::Real>) -> Coefficient<T> {
    match scalar {
        Coefficient::Known(value) => Coefficient::Known(T::real(value)),
        Coefficient::Device(range, kind) => Coefficient::Device(range, kind),
    }
}

/// Both scalars of a call.
fn scalars<T: Scalar>(
    call: &Call,
    alpha: Ptr,
    beta: Ptr,
) -> Result<(Coefficient<T>, Coefficient<T>), Status> {
    Ok((call.scalar("alpha", alpha)?, call.scalar("beta", beta)?))
}

/// The same, which are real.
fn reals<T: Scalar>(call: &Call, alpha: Ptr, beta: Ptr) -> Result<(Coefficient<T>, Coefficient<T>), Status> {
    let (alpha, beta) = scalars::<T::Real>(call, alpha, beta)?;
    Ok((real(alpha), real(beta)))
}

/// A function of a triangular matrix: where, which, how.
#[derive(Clone, Copy)]
struct Triangular {
    is_right: bool,
    is_solved: bool,
}

/// The types of matrices that `SyrkEx` and the like take.
fn of_mixed<T: Scalar>(a: u32, c: u32, is_hermitian: bool) -> Result<Update, Status> {
    let kinds = [kind(a)?, kind(c)?];
    match kinds {
        [Kind::C32 | Kind::I8, Kind::C32] if kinds[0] == T::KIND => {
            Ok(Update { is_hermitian, is_twice: false, kinds })
        }
        _ => Err(Status::NOT_SUPPORTED),
    }
}

/// C = alpha op(A) B, alpha B op(A), or X of op(A) X = alpha B, X op(A) = alpha B.
fn triangular<T: Scalar>(
    call: Call,
    how: Triangular,
    [uplo, trans, diag]: [u32; 3],
    [m, n]: [i64; 2],
    alpha: Ptr,
    [a, b, c]: [(Ptr, i64); 3],
) -> Result<(), Status> {
    let (is_upper, operation, is_unit) = (either(uplo)?, plain(trans)?, either(diag)?);
    let (m, n) = (size(m)?, size(n)?);
    let order = if how.is_right { n } else { m };
    crate::call::leading(a.1, order)?;
    crate::call::leading(b.1, m)?;
    crate::call::leading(c.1, m)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let alpha = call.scalar::<T>("alpha", alpha)?;
    let is_read = !is_zero(alpha);
    let shape = |rows, columns| if is_read { [rows, columns] } else { [0, 0] };
    let matrix = call.matrix("A", T::KIND, a.0, shape(order, order), a.1)?;
    let b = call.matrix("B", T::KIND, b.0, shape(m, n), b.1)?;
    let c = call.matrix(if how.is_solved { "B" } else { "C" }, T::KIND, c.0, [m, n], c.1)?;
    let named = Named { matrix, is_upper, operation, is_unit };
    call.submit(move || {
        let alpha = alpha.get(call)?;
        let into = c.reach(call.name)?;
        if alpha.is_zero() {
            accumulate::<T>(&into, Region::Full, T::default(), None, |_, _, new| new);
            return Ok(());
        }
        // From the right, everything is transposed.
        let triangle = Triangle::<T>::load(call.name, named, how.is_right)?;
        let mut of = Dense::<T>::load(&b.reach(call.name)?, how.is_right);
        let columns = if how.is_right { m } else { n };
        let result = if how.is_solved {
            of.values.iter_mut().for_each(|value| *value = alpha * *value);
            triangle.solve(&mut of, columns);
            of
        } else {
            let mut result = triangle.times(&of, columns);
            result.values.iter_mut().for_each(|value| *value = alpha * *value);
            result
        };
        let value = |i, j| if how.is_right { result.at(j, i) } else { result.at(i, j) };
        accumulate(&into, Region::Full, T::default(), Some(&value), |_, _, new| new);
        Ok(())
    })
}

routines! { API:
    /// C = alpha A B + beta C or alpha B A + beta C, for symmetric A.
    "symm_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (side: u32, uplo: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        symmetric::<T>(call, false, [side, uplo], [m, n], [alpha, beta], [(a, lda), (b, ldb), (c, ldc)])
    }
    /// C = alpha A B + beta C or alpha B A + beta C, for Hermitian A.
    "hemm_v2" ["C" C32, "Z" C64] (side: u32, uplo: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        symmetric::<T>(call, true, [side, uplo], [m, n], [alpha, beta], [(a, lda), (b, ldb), (c, ldc)])
    }
    /// A triangle of C = alpha op(A) op(A)^T + beta C.
    "syrk_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        rank::<T>(call, Update::of::<T>(false, false), [uplo, trans], [n, k], scalars(&call, alpha, beta)?, [(a, lda), (a, lda), (c, ldc)])
    }
    /// A triangle of C = alpha op(A) op(A)^H + beta C, with real factors.
    "herk_v2" ["C" C32, "Z" C64] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        rank::<T>(call, Update::of::<T>(true, false), [uplo, trans], [n, k], reals(&call, alpha, beta)?, [(a, lda), (a, lda), (c, ldc)])
    }
    /// A triangle of C = alpha (op(A) op(B)^T + op(B) op(A)^T) + beta C.
    "syr2k_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        rank::<T>(call, Update::of::<T>(false, true), [uplo, trans], [n, k], scalars(&call, alpha, beta)?, [(a, lda), (b, ldb), (c, ldc)])
    }
    /// A triangle of C = alpha op(A) op(B)^H + conj(alpha) op(B) op(A)^H + beta C, with real beta.
    "her2k_v2" ["C" C32, "Z" C64] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        let factors = (call.scalar("alpha", alpha)?, real(call.scalar("beta", beta)?));
        rank::<T>(call, Update::of::<T>(true, true), [uplo, trans], [n, k], factors, [(a, lda), (b, ldb), (c, ldc)])
    }
    /// A triangle of C = alpha op(A) op(B)^T + beta C, where the product is symmetric.
    "syrkx" ["S" f32, "D" f64, "C" C32, "Z" C64] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        rank::<T>(call, Update::of::<T>(false, false), [uplo, trans], [n, k], scalars(&call, alpha, beta)?, [(a, lda), (b, ldb), (c, ldc)])
    }
    /// A triangle of C = alpha op(A) op(B)^H + beta C, where the product is Hermitian; beta is real.
    "herkx" ["C" C32, "Z" C64] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        let factors = (call.scalar("alpha", alpha)?, real(call.scalar("beta", beta)?));
        rank::<T>(call, Update::of::<T>(true, false), [uplo, trans], [n, k], factors, [(a, lda), (b, ldb), (c, ldc)])
    }
    /// A triangle of C = alpha op(A) op(A)^T + beta C, for the types that the arguments name: `CUDA_C_32F`.
    "syrkEx" ["C" C32] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, beta: Ptr, c: Ptr, ctype: u32, ldc: Int) |call| {
        rank::<T>(call, of_mixed::<T>(atype, ctype, false)?, [uplo, trans], [n, k], scalars(&call, alpha, beta)?, [(a, lda), (a, lda), (c, ldc)])
    }
    /// The same, which a GPU does with three real products.
    "syrk3mEx" ["C" C32] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, beta: Ptr, c: Ptr, ctype: u32, ldc: Int) |call| {
        rank::<T>(call, of_mixed::<T>(atype, ctype, false)?, [uplo, trans], [n, k], scalars(&call, alpha, beta)?, [(a, lda), (a, lda), (c, ldc)])
    }
    /// A triangle of C = alpha op(A) op(A)^H + beta C, for the types that the arguments name: `CUDA_C_32F`.
    "herkEx" ["C" C32] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, beta: Ptr, c: Ptr, ctype: u32, ldc: Int) |call| {
        rank::<T>(call, of_mixed::<T>(atype, ctype, true)?, [uplo, trans], [n, k], reals(&call, alpha, beta)?, [(a, lda), (a, lda), (c, ldc)])
    }
    /// The same, which a GPU does with three real products.
    "herk3mEx" ["C" C32] (uplo: u32, trans: u32, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, beta: Ptr, c: Ptr, ctype: u32, ldc: Int) |call| {
        rank::<T>(call, of_mixed::<T>(atype, ctype, true)?, [uplo, trans], [n, k], reals(&call, alpha, beta)?, [(a, lda), (a, lda), (c, ldc)])
    }
    /// C = alpha op(A) B or alpha B op(A), for triangular A.
    "trmm_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (side: u32, uplo: u32, trans: u32, diag: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, c: Ptr, ldc: Int) |call| {
        let how = Triangular { is_right: either(side)?, is_solved: false };
        triangular::<T>(call, how, [uplo, trans, diag], [m, n], alpha, [(a, lda), (b, ldb), (c, ldc)])
    }
    /// Solves op(A) X = alpha B or X op(A) = alpha B, for triangular A; X replaces B.
    "trsm_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (side: u32, uplo: u32, trans: u32, diag: u32, m: Int, n: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int) |call| {
        let how = Triangular { is_right: either(side)?, is_solved: true };
        triangular::<T>(call, how, [uplo, trans, diag], [m, n], alpha, [(a, lda), (b, ldb), (b, ldb)])
    }
}
