//! Products of general matrices: of one type, of mixed types, one, at strides, by pointers, and in groups.

use std::sync::Mutex;

use caller::In;
use linalg::{C32, C64, Kind, Matrix, Operation, Region, Scalar, Source, accumulate, each, multiply};
use mathlib::{Error, Range, is_of_device};

use crate::call::{Call, Coefficient, leading, matrix_of, size};
use crate::declare::{Ptr, routines};
use crate::handle::Cublas;
use crate::operand::{kind, operation};
use crate::status::Status;

/// The types of a product: of the matrices, of `alpha` and `beta`, and how factors are rounded.
#[derive(Clone, Copy)]
struct Types {
    a: Kind,
    b: Kind,
    c: Kind,
    scale: Kind,
    tf32: bool,
}

impl Types {
    /// All of one type.
    fn of<T: Scalar>(call: &Call) -> Types {
        let kind = T::KIND;
        Types { a: kind, b: kind, c: kind, scale: kind, tf32: call.math & 15 == 3 }
    }

    /// Of matrices of one type, and scalars of another.
    fn mixed(a: Kind, b: Kind, c: Kind, scale: Kind) -> Types {
        Types { a, b, c, scale, tf32: false }
    }
}

/// The shape of a product, and what happens to the factors.
#[derive(Clone, Copy)]
struct Shape {
    operations: [Operation; 2],
    /// m, n, k.
    sizes: [usize; 3],
    /// The leading dimensions of A, B and C.
    leading: [usize; 3],
}

impl Shape {
    /// The shape that arguments name.
    fn of(operations: [u32; 2], sizes: [i64; 3], ld: [i64; 3]) -> Result<Shape, Status> {
        let [a, b] = operations;
        let operations = [operation(a)?, operation(b)?];
        let [m, n, k] = sizes;
        let sizes = [size(m)?, size(n)?, size(k)?];
        let mut shape = Shape { operations, sizes, leading: [1; 3] };
        let stored = shape.stored();
        for i in 0..3 {
            shape.leading[i] = leading(ld[i], stored[i][0])?;
        }
        Ok(shape)
    }

    /// The rows and columns of A, B and C in memory.
    fn stored(&self) -> [[usize; 2]; 3] {
        let ([a, b], [m, n, k]) = (self.operations, self.sizes);
        [a.stored([m, k]), b.stored([k, n]), [m, n]]
    }

    fn is_empty(&self) -> bool {
        self.sizes[0] == 0 || self.sizes[1] == 0
    }
}

/// The factors `alpha` and `beta`.
#[derive(Clone, Copy)]
struct Factors<T> {
    alpha: Coefficient<T>,
    beta: Coefficient<T>,
}

impl<T: Scalar> Factors<T> {
    fn of(call: &Call, alpha: Ptr, beta: Ptr, kind: Kind) -> Result<Factors<T>, Status> {
        Ok(Factors {
            alpha: call.scalar_of("alpha", alpha, kind)?,
            beta: call.scalar_of("beta", beta, kind)?,
        })
    }

    /// Whether the factors need not be there.
    fn reads_none(&self) -> bool {
        matches!(self.alpha, Coefficient::Known(alpha) if alpha.is_zero())
    }
}

/// C = alpha op(A) op(B) + beta C, when the work runs.
fn run<T: Scalar>(
    call: Call,
    types: Types,
    shape: Shape,
    (alpha, beta): (T, T),
    [a, b, c]: [Matrix; 3],
) -> Result<(), Error> {
    let [left, right] = shape.operations;
    let sums = match alpha.is_zero() || shape.sizes[2] == 0 {
        true => None,
        false => {
            let (a, b) = (Source { matrix: a, operation: left }, Source { matrix: b, operation: right });
            Some(multiply::<T>(call.name, shape.sizes, a, b, types.tf32)?)
        }
    };
    let into = c.reach(call.name)?;
    if types.c == Kind::I32 {
        // Integers are exact, and wrap around.
        let [alpha, beta] = [alpha, beta].map(|factor| factor.wide()[0] as i64);
        let whole = |number: T| number.wide()[0] as i64;
        accumulate(&into, Region::Full, T::default(), None, |i, j, _| {
            let sum = sums.as_ref().map_or(0, |sums| whole(sums.at::<T>(i, j)));
            let old = if beta == 0 { 0 } else { whole(into.read::<T>(i, j)) };
            let new = alpha.wrapping_mul(sum).wrapping_add(beta.wrapping_mul(old));
            T::of(f64::from(new as i32), 0.0)
        });
        return Ok(());
    }
    let value = |i, j| alpha * sums.as_ref().map_or(T::default(), |sums| sums.at::<T>(i, j));
    let value: Option<&(dyn Fn(usize, usize) -> T + Sync)> = if sums.is_some() { Some(&value) } else { None };
    accumulate(&into, Region::Full, beta, value, |_, _, new| new);
    Ok(())
}

/// One product.
fn one<T: Scalar>(
    call: Call,
    types: Types,
    shape: Shape,
    [alpha, beta]: [Ptr; 2],
    [a, b, c]: [Ptr; 3],
) -> Result<(), Status> {
    strided::<T>(call, types, shape, [alpha, beta], [a, b, c], [0; 3], 1)
}

/// Products of matrices that lie at strides.
fn strided<T: Scalar>(
    call: Call,
    types: Types,
    shape: Shape,
    [alpha, beta]: [Ptr; 2],
    pointers: [Ptr; 3],
    strides: [i64; 3],
    count: usize,
) -> Result<(), Status> {
    if shape.is_empty() || count == 0 {
        return Ok(());
    }
    let factors = Factors::<T>::of(&call, alpha, beta, types.scale)?;
    let kinds = [types.a, types.b, types.c];
    let mut stored = shape.stored();
    if factors.reads_none() {
        [stored[0], stored[1]] = [[0; 2]; 2];
    }
    let matrices = (0..count as i64).map(|i| {
        let matrix = |which: usize, name: &str| {
            let bytes = i.wrapping_mul(strides[which]).wrapping_mul(kinds[which].bytes() as i64);
            let pointer = pointers[which].wrapping_byte_offset(bytes as isize);
            let name = if count == 1 { name.to_owned() } else { format!("{name} of product {i}") };
            call.matrix(&name, kinds[which], pointer, stored[which], shape.leading[which] as i64)
        };
        Ok([matrix(0, "A")?, matrix(1, "B")?, matrix(2, "C")?])
    });
    let matrices: Vec<[Matrix; 3]> = matrices.collect::<Result<_, Status>>()?;
    call.submit(move || {
        let scalars = (factors.alpha.get(call)?, factors.beta.get(call)?);
        let error = Mutex::new(None);
        let elements = if strides[2] == 0 {
            0
        } else {
            shape.sizes.iter().fold(matrices.len(), |product, &size| product.saturating_mul(size))
        };
        each(matrices.len(), elements, |i| {
            if let Err(failed) = run(call, types, shape, scalars, matrices[i]) {
                *error.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(failed);
            }
        });
        error.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
    })
}

/// The pointers of a batch, in device memory.
pub fn pointers(call: Call, what: &str, place: Ptr, count: usize) -> Result<Range, Status> {
    Range::of::<u64>(place.cast(), count, what, || format!("{count} pointers")).map_err(|error| {
        mathlib::driver::failed(call.name, &error.to_string());
        Status::INVALID_VALUE
    })
}

/// The pointers of a batch: in device memory, read when the work runs, or as the program passed them.
#[derive(Clone)]
enum Pointers {
    Device(Range),
    Host(Vec<u64>),
}

impl Pointers {
    /// Those of a group. The other arrays of grouped functions are in memory of the host; a GPU that reaches pageable memory takes these
    /// from there too, and programs rely on it (cudarc).
    fn of_group(call: Call, what: &str, place: Ptr, count: usize) -> Result<Pointers, Status> {
        match place.is_null() || is_of_device(place.cast_const().cast::<u8>()) {
            true => pointers(call, what, place, count).map(Pointers::Device),
            false => Ok(Pointers::Host(array::<u64>(place).read_all(count)?)),
        }
    }

    fn read(&self, call: Call) -> Result<Vec<u64>, Error> {
        match self {
            Pointers::Device(range) => Ok(range.reach(call.name)?.read()),
            Pointers::Host(list) => Ok(list.clone()),
        }
    }
}

/// Products of matrices that pointers in device memory name.
fn batched<T: Scalar>(
    call: Call,
    types: Types,
    shape: Shape,
    [alpha, beta]: [Ptr; 2],
    [a, b, c]: [Ptr; 3],
    count: usize,
) -> Result<(), Status> {
    if shape.is_empty() || count == 0 {
        return Ok(());
    }
    let factors = Factors::<T>::of(&call, alpha, beta, types.scale)?;
    let places = [
        Pointers::Device(pointers(call, "the pointers of A", a, count)?),
        Pointers::Device(pointers(call, "the pointers of B", b, count)?),
        Pointers::Device(pointers(call, "the pointers of C", c, count)?),
    ];
    call.submit(move || {
        let scalars = (factors.alpha.get(call)?, factors.beta.get(call)?);
        run_batch(call, types, shape, scalars, &places)
    })
}

/// A batch, when the work runs.
fn run_batch<T: Scalar>(
    call: Call,
    types: Types,
    shape: Shape,
    scalars: (T, T),
    places: &[Pointers; 3],
) -> Result<(), Error> {
    let kinds = [types.a, types.b, types.c];
    let mut stored = shape.stored();
    if scalars.0.is_zero() {
        [stored[0], stored[1]] = [[0; 2]; 2];
    }
    let mut matrices = Vec::new();
    for (which, name) in ["A", "B", "C"].into_iter().enumerate() {
        let list = places[which].read(call)?.into_iter().enumerate().map(|(i, address)| {
            let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
            let name = format!("{name} of product {i}");
            matrix_of(call, &name, kinds[which], pointer, stored[which], shape.leading[which])
        });
        matrices.push(list.collect::<Result<Vec<Matrix>, Error>>()?);
    }
    for ((&a, &b), &c) in matrices[0].iter().zip(&matrices[1]).zip(&matrices[2]) {
        run(call, types, shape, scalars, [a, b, c])?;
    }
    Ok(())
}

/// How products of mixed types are computed (`cublasComputeType_t`, or `cudaDataType` in older programs): the type to compute with,
/// and the types of the scalars.
#[derive(Clone, Copy)]
enum Compute {
    Half,
    Single,
    Tf32,
    Double,
    Integer,
}

impl Compute {
    fn of(number: u32) -> Result<Compute, Status> {
        Ok(match number {
            64 | 65 | 2 => Compute::Half,
            // Faster conversions are allowed, not asked for: 74 and 75 halve the factors, 78 emulates.
            68 | 69 | 74 | 75 | 78 | 0 | 4 => Compute::Single,
            77 => Compute::Tf32,
            70 | 71 | 79 | 1 | 5 => Compute::Double,
            72 | 73 | 10 => Compute::Integer,
            _ => return Err(Status::NOT_SUPPORTED),
        })
    }
}

/// The types of a product of mixed types, and whether it is complex and double.
fn mixed(call: &Call, [a, b, c]: [u32; 3], compute: u32) -> Result<(Types, Kind), Status> {
    use Kind::{B16, I8, I32, R16, R32, R64};
    let (a, b, c) = (kind(a)?, kind(b)?, kind(c)?);
    let compute = Compute::of(compute)?;
    let (scale, works) = match (compute, a, c) {
        (Compute::Half, R16, R16) => (R16, R32),
        (Compute::Single, R16, R16 | R32)
        | (Compute::Single, B16, B16 | R32)
        | (Compute::Single, I8, R32) => (R32, R32),
        (Compute::Single | Compute::Tf32, R32, R32) => (R32, R32),
        (Compute::Single, I8, Kind::C32) => return Err(Status::NOT_SUPPORTED),
        (Compute::Single | Compute::Tf32, Kind::C32, Kind::C32) => (Kind::C32, Kind::C32),
        (Compute::Double, R64, R64) => (R64, R64),
        (Compute::Double, Kind::C64, Kind::C64) => (Kind::C64, Kind::C64),
        (Compute::Integer, I8, I32) => (I32, R64),
        _ => return Err(Status::NOT_SUPPORTED),
    };
    if a != b {
        return Err(Status::NOT_SUPPORTED);
    }
    let tf32 = matches!(compute, Compute::Tf32) || call.math & 15 == 3;
    Ok((Types { tf32: tf32 && a == c, ..Types::mixed(a, b, c, scale) }, works))
}

/// Calls a function with the type that a kind names.
macro_rules! with_type {
    ($kind:expr, $ty:ident => $call:expr) => {
        match $kind {
            Kind::R64 => {
                type $ty = f64;
                $call
            }
            Kind::C32 => {
                type $ty = C32;
                $call
            }
            Kind::C64 => {
                type $ty = C64;
                $call
            }
            _ => {
                type $ty = f32;
                $call
            }
        }
    };
}
pub(crate) use with_type;

/// The arguments of a group of products.
struct Groups<'a> {
    operations: [In<'a, u32, Cublas>; 2],
    sizes: [Ptr; 3],
    leading: [Ptr; 3],
    counts: Ptr,
}

/// Products in groups: the arrays are in memory of the host, but for the pointers.
fn grouped<T: Scalar>(
    call: Call,
    types: Types,
    groups: Groups<'_>,
    [alpha, beta]: [Ptr; 2],
    places: [Ptr; 3],
    count: usize,
) -> Result<(), Status> {
    let numbers = |place: Ptr| -> Result<Vec<i64>, Status> {
        match call.is_wide {
            true => array::<i64>(place).read_all(count),
            false => Ok(array::<i32>(place).read_all(count)?.into_iter().map(Into::into).collect()),
        }
    };
    let operations = [groups.operations[0].read_all(count)?, groups.operations[1].read_all(count)?];
    let sizes = [numbers(groups.sizes[0])?, numbers(groups.sizes[1])?, numbers(groups.sizes[2])?];
    let leading = [numbers(groups.leading[0])?, numbers(groups.leading[1])?, numbers(groups.leading[2])?];
    let counts = numbers(groups.counts)?;
    let mut jobs = Vec::new();
    let mut first = 0;
    for g in 0..count {
        let pick = |of: &[Vec<i64>; 3]| [of[0][g], of[1][g], of[2][g]];
        let shape = Shape::of([operations[0][g], operations[1][g]], pick(&sizes), pick(&leading))?;
        let members = size(counts[g])?;
        let scalar = |what: &str, array: Ptr| {
            call.scalar_of::<T>(what, array.wrapping_byte_add(g * types.scale.bytes()), types.scale)
        };
        let factors = Factors { alpha: scalar("alpha", alpha)?, beta: scalar("beta", beta)? };
        if !shape.is_empty() && members > 0 {
            let place = |what: &str, array: Ptr| {
                Pointers::of_group(call, what, array.wrapping_byte_add(first * 8), members)
            };
            let places = [
                place("the pointers of A", places[0])?,
                place("the pointers of B", places[1])?,
                place("the pointers of C", places[2])?,
            ];
            jobs.push((shape, factors, places));
        }
        first += members;
    }
    call.submit(move || {
        for &(shape, factors, ref places) in &jobs {
            run_batch(call, types, shape, (factors.alpha.get(call)?, factors.beta.get(call)?), places)?;
        }
        Ok(())
    })
}

/// A pointer of the program to an array in memory of the host.
fn array<'a, T: Copy>(pointer: Ptr) -> In<'a, T, Cublas> {
    // SAFETY: the program promises an array of the length that other arguments say.
    unsafe { In::new(pointer.cast_const().cast()) }
}

routines! { API:
    /// C = alpha op(A) op(B) + beta C.
    "gemm_v2" ["S" f32, "D" f64, "C" C32, "Z" C64] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        one::<T>(call, Types::of::<T>(&call), shape, [alpha, beta], [a, b, c])
    }
    /// C = alpha op(A) op(B) + beta C, which a GPU does with three real products: here as the function without `3m`.
    "gemm3m" ["C" C32, "Z" C64] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        one::<T>(call, Types::of::<T>(&call), shape, [alpha, beta], [a, b, c])
    }
    /// C = alpha op(A) op(B) + beta C for halves, with sums of singles.
    "gemm" ["H" f32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        let half = Kind::R16;
        one::<T>(call, Types::mixed(half, half, half, half), shape, [alpha, beta], [a, b, c])
    }
    /// C = alpha op(A) op(B) + beta C, for matrices of smaller types and sums of the function's.
    "gemmEx" ["S" f32, "C" C32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, b: Ptr, btype: u32, ldb: Int, beta: Ptr, c: Ptr, ctype: u32, ldc: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        let (types, works) = mixed(&call, [atype, btype, ctype], 68)?;
        if works != T::KIND {
            return Err(Status::NOT_SUPPORTED);
        }
        one::<T>(call, types, shape, [alpha, beta], [a, b, c])
    }
    /// The same, which a GPU does with three real products.
    "gemm3mEx" ["C" C32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, b: Ptr, btype: u32, ldb: Int, beta: Ptr, c: Ptr, ctype: u32, ldc: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        let (types, works) = mixed(&call, [atype, btype, ctype], 68)?;
        if works != T::KIND {
            return Err(Status::NOT_SUPPORTED);
        }
        one::<T>(call, types, shape, [alpha, beta], [a, b, c])
    }
    /// C = alpha op(A) op(B) + beta C, for the types that the arguments name.
    "GemmEx" ["" f32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, b: Ptr, btype: u32, ldb: Int, beta: Ptr, c: Ptr, ctype: u32, ldc: Int, compute: u32, _algo: u32) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        let (types, works) = mixed(&call, [atype, btype, ctype], compute)?;
        with_type!(works, W => one::<W>(call, types, shape, [alpha, beta], [a, b, c]))
    }
    /// C = alpha op(A) op(B) + beta C, for matrices at strides.
    "gemmStridedBatched" ["S" f32, "D" f64, "C" C32, "Z" C64] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, stridea: i64, b: Ptr, ldb: Int, strideb: i64, beta: Ptr, c: Ptr, ldc: Int, stridec: i64, count: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        strided::<T>(call, Types::of::<T>(&call), shape, [alpha, beta], [a, b, c], [stridea, strideb, stridec], size(count)?)
    }
    /// C = alpha op(A) op(B) + beta C, for matrices at strides, which a GPU does with three real products.
    "gemm3mStridedBatched" ["C" C32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, stridea: i64, b: Ptr, ldb: Int, strideb: i64, beta: Ptr, c: Ptr, ldc: Int, stridec: i64, count: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        strided::<T>(call, Types::of::<T>(&call), shape, [alpha, beta], [a, b, c], [stridea, strideb, stridec], size(count)?)
    }
    /// C = alpha op(A) op(B) + beta C for halves at strides, with sums of singles.
    "gemmStridedBatched" ["H" f32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, stridea: i64, b: Ptr, ldb: Int, strideb: i64, beta: Ptr, c: Ptr, ldc: Int, stridec: i64, count: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        let half = Kind::R16;
        strided::<T>(call, Types::mixed(half, half, half, half), shape, [alpha, beta], [a, b, c], [stridea, strideb, stridec], size(count)?)
    }
    /// C = alpha op(A) op(B) + beta C, for matrices at strides of the types that the arguments name.
    "GemmStridedBatchedEx" ["" f32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, stridea: i64, b: Ptr, btype: u32, ldb: Int, strideb: i64, beta: Ptr, c: Ptr, ctype: u32, ldc: Int, stridec: i64, count: Int, compute: u32, _algo: u32) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        let (types, works) = mixed(&call, [atype, btype, ctype], compute)?;
        with_type!(works, W => strided::<W>(call, types, shape, [alpha, beta], [a, b, c], [stridea, strideb, stridec], size(count)?))
    }
    /// C = alpha op(A) op(B) + beta C, for matrices that pointers in device memory name.
    "gemmBatched" ["S" f32, "D" f64, "C" C32, "Z" C64] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int, count: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        batched::<T>(call, Types::of::<T>(&call), shape, [alpha, beta], [a, b, c], size(count)?)
    }
    /// The same, which a GPU does with three real products.
    "gemm3mBatched" ["C" C32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int, count: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        batched::<T>(call, Types::of::<T>(&call), shape, [alpha, beta], [a, b, c], size(count)?)
    }
    /// C = alpha op(A) op(B) + beta C for halves that pointers name, with sums of singles.
    "gemmBatched" ["H" f32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, lda: Int, b: Ptr, ldb: Int, beta: Ptr, c: Ptr, ldc: Int, count: Int) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        let half = Kind::R16;
        batched::<T>(call, Types::mixed(half, half, half, half), shape, [alpha, beta], [a, b, c], size(count)?)
    }
    /// C = alpha op(A) op(B) + beta C, for matrices that pointers name, of the types that the arguments name.
    "GemmBatchedEx" ["" f32] (transa: u32, transb: u32, m: Int, n: Int, k: Int, alpha: Ptr, a: Ptr, atype: u32, lda: Int, b: Ptr, btype: u32, ldb: Int, beta: Ptr, c: Ptr, ctype: u32, ldc: Int, count: Int, compute: u32, _algo: u32) |call| {
        let shape = Shape::of([transa, transb], [m, n, k], [lda, ldb, ldc])?;
        let (types, works) = mixed(&call, [atype, btype, ctype], compute)?;
        with_type!(works, W => batched::<W>(call, types, shape, [alpha, beta], [a, b, c], size(count)?))
    }
    /// C = alpha op(A) op(B) + beta C, for groups of matrices of the same shape.
    "gemmGroupedBatched" ["S" f32, "D" f64] (transa: Ptr, transb: Ptr, m: Ptr, n: Ptr, k: Ptr, alpha: Ptr, a: Ptr, lda: Ptr, b: Ptr, ldb: Ptr, beta: Ptr, c: Ptr, ldc: Ptr, groups: Int, counts: Ptr) |call| {
        let arrays = Groups {
            operations: [array(transa), array(transb)],
            sizes: [m, n, k],
            leading: [lda, ldb, ldc],
            counts,
        };
        grouped::<T>(call, Types::of::<T>(&call), arrays, [alpha, beta], [a, b, c], size(groups)?)
    }
    /// The same, for the types that the arguments name.
    "GemmGroupedBatchedEx" ["" f32] (transa: Ptr, transb: Ptr, m: Ptr, n: Ptr, k: Ptr, alpha: Ptr, a: Ptr, atype: u32, lda: Ptr, b: Ptr, btype: u32, ldb: Ptr, beta: Ptr, c: Ptr, ctype: u32, ldc: Ptr, groups: Int, counts: Ptr, compute: u32) |call| {
        let (types, works) = mixed(&call, [atype, btype, ctype], compute)?;
        let arrays = Groups {
            operations: [array(transa), array(transb)],
            sizes: [m, n, k],
            leading: [lda, ldb, ldc],
            counts,
        };
        with_type!(works, W => grouped::<W>(call, types, arrays, [alpha, beta], [a, b, c], size(groups)?))
    }
}
