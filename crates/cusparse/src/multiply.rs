//! Products of sparse and dense matrices and vectors: `SpMV`, `SpMM`, `SDDMM`.

use std::ffi::c_uint;

use linalg::{Kind, Operation, Scalar};
use mathlib::api;

use crate::call::{Call, Compute, operation, with_type};
use crate::dense::{DnMat, DnVec};
use crate::handle::{Place, Ptr};
use crate::pattern::{Source, list};
use crate::sparse::{Format, SpMat};
use crate::status::Status;

/// `alpha sum + beta old`; an old value that does not count is not read.
pub fn combine<T: Scalar>([alpha, beta]: [T; 2], sum: T, old: impl FnOnce() -> T) -> T {
    // One is left out, which makes NaN of infinite complex numbers.
    let times = |factor: T, value: T| if factor == T::ONE { value } else { factor * value };
    let scaled = times(alpha, sum);
    if beta.is_zero() { scaled } else { scaled + times(beta, old()) }
}

/// Whether the manual's table of `SpMV` and `SpMM` has these types of A, X and Y.
fn expect_types(compute: Compute, [a, x, y]: [Kind; 3], real_times_complex: bool) -> Result<(), Status> {
    let uniform = compute.kind();
    let good = match compute {
        Compute::Integers => [a, x, y] == [Kind::I8, Kind::I8, Kind::I32],
        Compute::Single => match a {
            Kind::R32 => x == a && y == a,
            Kind::I8 => x == a && y == Kind::R32,
            Kind::R16 | Kind::B16 => x == a && (y == a || y == Kind::R32),
            _ => false,
        },
        Compute::Double => [a, x, y] == [uniform; 3],
        Compute::SingleComplex | Compute::DoubleComplex => {
            let real = if uniform == Kind::C32 { Kind::R32 } else { Kind::R64 };
            [x, y] == [uniform; 2] && (a == uniform || real_times_complex && a == real)
        }
    };
    if good { Ok(()) } else { Err(Status::NOT_SUPPORTED) }
}

/// The arguments of `SpMV`, checked.
struct MatrixVector {
    op: Operation,
    a: SpMat,
    x: DnVec,
    y: DnVec,
    compute: Compute,
}

impl MatrixVector {
    /// # Errors
    /// If an argument has no meaning, or the types do not go together.
    fn of(
        op: c_uint,
        [a, x, y]: [Ptr; 3],
        compute: c_uint,
        algorithm: c_uint,
    ) -> Result<MatrixVector, Status> {
        let (op, a, x, y) = (operation(op)?, SpMat::of(a)?, DnVec::of(x)?, DnVec::of(y)?);
        let compute = Compute::of(compute)?;
        let [rows, columns] = op.stored(a.size);
        if x.size != columns || y.size != rows || algorithm > 6 {
            return Err(Status::INVALID_VALUE);
        }
        expect_types(compute, [a.kind, x.kind, y.kind], true)?;
        let for_format = match algorithm {
            1 | 4 => a.format == Format::Coo,
            2 | 3 => matches!(a.format, Format::Csr | Format::Csc),
            5 => a.format == Format::SlicedEll,
            6 => a.format == Format::Bsr,
            _ => true,
        };
        // The manual has neither Blocked-ELL nor transposed blocks and slices here.
        let plain = op == Operation::NONE || !matches!(a.format, Format::Bsr | Format::SlicedEll);
        if !for_format || !plain || a.format == Format::BlockedEll {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(MatrixVector { op, a, x, y, compute })
    }
}

/// y = alpha op(A) x + beta y.
fn matrix_vector<T: Scalar>(call: Call, given: &MatrixVector, [alpha, beta]: [Ptr; 2]) -> Result<(), Status> {
    let kind = given.compute.kind();
    let (alpha, beta) = (call.scalar::<T>("alpha", alpha, kind)?, call.scalar::<T>("beta", beta, kind)?);
    let a = Source::new(call, "A", given.a, 0)?;
    let (x, y, op) = (given.x.array(call, "x")?, given.y.array(call, "y")?, given.op);
    call.submit(move || {
        let scalars = [alpha.get(call)?, beta.get(call)?];
        let sums = match scalars[0].is_zero() {
            true => vec![T::default(); y.count],
            false => a.matrix::<T>(call, op)?.times(&x.load(call)?, 1),
        };
        let old = y.reach(call)?;
        for (at, sum) in sums.into_iter().enumerate() {
            old.put(at, combine(scalars, sum, || old.get(at)));
        }
        old.wrote(0, y.count);
        Ok(())
    })
}

/// The arguments of `SpMM` and of triangular systems with several right-hand sides, checked.
struct MatrixMatrix {
    ops: [Operation; 2],
    a: SpMat,
    b: DnMat,
    c: DnMat,
    compute: Compute,
    count: usize,
}

impl MatrixMatrix {
    /// # Errors
    /// If an argument has no meaning, or the types do not go together.
    fn of(
        ops: [c_uint; 2],
        [a, b, c]: [Ptr; 3],
        compute: c_uint,
        algorithm: c_uint,
    ) -> Result<MatrixMatrix, Status> {
        let [of_a, of_b] = [operation(ops[0])?, operation(ops[1])?];
        let (a, b, c, compute) = (SpMat::of(a)?, DnMat::of(b)?, DnMat::of(c)?, Compute::of(compute)?);
        let ([rows, inner], [inner_b, columns]) = (of_a.stored(a.size), of_b.stored(b.size));
        if inner != inner_b || c.size != [rows, columns] || !matches!(algorithm, 0..=6 | 12..=14) {
            return Err(Status::INVALID_VALUE);
        }
        // Of one factor of a batch there may be only one.
        let count = c.count.max(1);
        if c.overlaps() || [a.count, b.count].iter().any(|&of| of != 1 && of != count) {
            return Err(Status::INVALID_VALUE);
        }
        let uniform_halves = compute == Compute::Single && [a.kind, b.kind, c.kind] == [Kind::R16; 3];
        if !uniform_halves {
            expect_types(compute, [a.kind, b.kind, c.kind], false)?;
        }
        let for_format = match algorithm {
            1 | 2 | 3 | 5 => a.format == Format::Coo,
            4 | 6 | 12 => matches!(a.format, Format::Csr | Format::Csc),
            13 => a.format == Format::BlockedEll,
            14 => a.format == Format::Bsr,
            _ => a.format != Format::SlicedEll,
        };
        let plain = !of_a.transposed || !matches!(a.format, Format::Bsr | Format::BlockedEll);
        if !for_format || !plain {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(MatrixMatrix { ops: [of_a, of_b], a, b, c, compute, count: count as usize })
    }
}

/// C = alpha op(A) op(B) + beta C, for all matrices of a batch.
fn matrix_matrix<T: Scalar>(call: Call, given: &MatrixMatrix, [alpha, beta]: [Ptr; 2]) -> Result<(), Status> {
    let kind = given.compute.kind();
    let (alpha, beta) = (call.scalar::<T>("alpha", alpha, kind)?, call.scalar::<T>("beta", beta, kind)?);
    if given.c.size.contains(&0) {
        return Ok(());
    }
    let one = |of_batch: usize| {
        let a = Source::new(call, "A", given.a, of_batch)?;
        Ok((a, given.b.block(call, "B", of_batch)?, given.c.block(call, "C", of_batch)?))
    };
    let batch = (0..given.count).map(one).collect::<Result<Vec<_>, Status>>()?;
    let ([of_a, of_b], columns) = (given.ops, given.c.size[1]);
    call.submit(move || {
        let scalars = [alpha.get(call)?, beta.get(call)?];
        for (a, b, c) in &batch {
            let sums = match scalars[0].is_zero() {
                true => vec![T::default(); c.count()],
                false => a.matrix::<T>(call, of_a)?.times(&b.load(call, of_b)?, columns),
            };
            c.update(call, scalars, &sums)?;
        }
        Ok(())
    })
}

/// The arguments of `SDDMM`, checked.
struct Sampled {
    ops: [Operation; 2],
    a: DnMat,
    b: DnMat,
    c: SpMat,
    compute: Compute,
}

impl Sampled {
    /// # Errors
    /// If an argument has no meaning, or the types do not go together.
    fn of(
        ops: [c_uint; 2],
        [a, b, c]: [Ptr; 3],
        compute: c_uint,
        algorithm: c_uint,
    ) -> Result<Sampled, Status> {
        let [of_a, of_b] = [operation(ops[0])?, operation(ops[1])?];
        let (a, b, c, compute) = (DnMat::of(a)?, DnMat::of(b)?, SpMat::of(c)?, Compute::of(compute)?);
        let ([rows, inner], [inner_b, columns]) = (of_a.stored(a.size), of_b.stored(b.size));
        if inner != inner_b || c.size != [rows, columns] || algorithm != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let overlap = c.count > 1 && c.nnz > 0 && c.strides[2] == 0;
        if overlap || [a.count, b.count].iter().any(|&of| of != 1 && of != c.count) {
            return Err(Status::INVALID_VALUE);
        }
        let kinds = [a.kind, b.kind, c.kind];
        let halves = compute == Compute::Single && a.kind == Kind::R16 && b.kind == Kind::R16;
        let good = kinds == [compute.kind(); 3] && compute != Compute::Integers
            || halves && matches!(c.kind, Kind::R16 | Kind::R32);
        // The manual has no conjugates here.
        if !good || of_a.conjugated || of_b.conjugated || !matches!(c.format, Format::Csr | Format::Bsr) {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(Sampled { ops: [of_a, of_b], a, b, c, compute })
    }
}

/// C = alpha (op(A) op(B)) at the entries of C + beta C, for all matrices of a batch.
fn sampled<T: Scalar>(call: Call, given: &Sampled, [alpha, beta]: [Ptr; 2]) -> Result<(), Status> {
    let kind = given.compute.kind();
    let (alpha, beta) = (call.scalar::<T>("alpha", alpha, kind)?, call.scalar::<T>("beta", beta, kind)?);
    if given.c.nnz == 0 {
        return Ok(());
    }
    let one = |of_batch: usize| {
        let c = Source::new(call, "C", given.c, of_batch)?;
        Ok((given.a.block(call, "A", of_batch)?, given.b.block(call, "B", of_batch)?, c))
    };
    let batch = (0..given.c.count as usize).map(one).collect::<Result<Vec<_>, Status>>()?;
    let [of_a, of_b] = given.ops;
    let inner = of_a.stored(given.a.size)[1];
    // Columns of op(B) lie one after the other.
    let of_b = Operation { transposed: !of_b.transposed, ..of_b };
    call.submit(move || {
        let scalars = [alpha.get(call)?, beta.get(call)?];
        for (a, b, c) in &batch {
            let pattern = c.pattern(call)?;
            let sums = match scalars[0].is_zero() {
                true => vec![T::default(); pattern.count()],
                false => {
                    let (a, b) = (a.load::<T>(call, of_a)?, b.load::<T>(call, of_b)?);
                    let rows = pattern.rows();
                    list(pattern.count(), pattern.count() * inner, |entry| {
                        let x = &a[rows[entry] * inner..][..inner];
                        let y = &b[pattern.columns[entry] * inner..][..inner];
                        x.iter().zip(y).fold(T::default(), |sum, (&x, &y)| sum + x * y)
                    })
                }
            };
            let old = c.values.reach(call)?;
            let new =
                pattern.places.iter().zip(sums).map(|(&at, sum)| (at, combine(scalars, sum, || old.get(at))));
            c.values.scatter(call, new)?;
        }
        Ok(())
    })
}

api! { API: Status, name;
    /// The device memory that `cusparseSpMV` needs: none.
    cusparseSpMV_bufferSize(
        handle: Ptr, op: c_uint, _alpha: Ptr, a: Ptr, x: Ptr, _beta: Ptr, y: Ptr, compute: c_uint, algorithm: c_uint,
        bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        MatrixVector::of(op, [a, x, y], compute, algorithm)?;
        bytes.write(0)
    }

    /// Prepares for `cusparseSpMV`, which needs no preparation.
    cusparseSpMV_preprocess(
        handle: Ptr, op: c_uint, _alpha: Ptr, a: Ptr, x: Ptr, _beta: Ptr, y: Ptr, compute: c_uint, algorithm: c_uint,
        _buffer: Ptr,
    ) {
        Call::begin(name, handle)?;
        MatrixVector::of(op, [a, x, y], compute, algorithm).map(drop)
    }

    /// y = alpha op(A) x + beta y, for a sparse matrix and dense vectors.
    cusparseSpMV(
        handle: Ptr, op: c_uint, alpha: Ptr, a: Ptr, x: Ptr, beta: Ptr, y: Ptr, compute: c_uint, algorithm: c_uint,
        _buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = MatrixVector::of(op, [a, x, y], compute, algorithm)?;
        with_type!(given.compute, matrix_vector(call, &given, [alpha, beta]))
    }

    /// The device memory that `cusparseSpMM` needs: none.
    cusparseSpMM_bufferSize(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, _beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        MatrixMatrix::of([op_a, op_b], [a, b, c], compute, algorithm)?;
        bytes.write(0)
    }

    /// Prepares for `cusparseSpMM`, which needs no preparation.
    cusparseSpMM_preprocess(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, _beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, _buffer: Ptr,
    ) {
        Call::begin(name, handle)?;
        MatrixMatrix::of([op_a, op_b], [a, b, c], compute, algorithm).map(drop)
    }

    /// C = alpha op(A) op(B) + beta C, for a sparse matrix A and dense ones, also in batches.
    cusparseSpMM(
        handle: Ptr, op_a: c_uint, op_b: c_uint, alpha: Ptr, a: Ptr, b: Ptr, beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, _buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = MatrixMatrix::of([op_a, op_b], [a, b, c], compute, algorithm)?;
        with_type!(given.compute, matrix_matrix(call, &given, [alpha, beta]))
    }

    /// The device memory that `cusparseSDDMM` needs: none.
    cusparseSDDMM_bufferSize(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, _beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        Sampled::of([op_a, op_b], [a, b, c], compute, algorithm)?;
        bytes.write(0)
    }

    /// Prepares for `cusparseSDDMM`, which needs no preparation.
    cusparseSDDMM_preprocess(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, _beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, _buffer: Ptr,
    ) {
        Call::begin(name, handle)?;
        Sampled::of([op_a, op_b], [a, b, c], compute, algorithm).map(drop)
    }

    /// C = alpha (op(A) op(B)) at the entries of C + beta C, for dense matrices A and B and a sparse one.
    cusparseSDDMM(
        handle: Ptr, op_a: c_uint, op_b: c_uint, alpha: Ptr, a: Ptr, b: Ptr, beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, _buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = Sampled::of([op_a, op_b], [a, b, c], compute, algorithm)?;
        with_type!(given.compute, sampled(call, &given, [alpha, beta]))
    }
}
