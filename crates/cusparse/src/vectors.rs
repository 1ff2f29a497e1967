//! Sparse and dense vectors: `Axpby`, `Gather`, `Scatter`, `Rot`, `SpVV`, `gemvi`.

use std::ffi::{c_int, c_uint};

use linalg::{Kind, Operation, Scalar};
use mathlib::{Error, api};

use crate::call::{Array, Call, Compute, Indices, Width, either, holder, operation, sizes, with_type};
use crate::declare::families;
use crate::dense::{DnMat, DnVec};
use crate::handle::{Place, Ptr};
use crate::multiply::combine;
use crate::sparse::{Address, SpVec};
use crate::status::Status;

/// A sparse vector whose arrays are allocated.
#[derive(Clone, Copy)]
struct Entries {
    indices: Indices,
    values: Array,
    base: i64,
    length: usize,
}

impl Entries {
    /// The vector of a descriptor.
    ///
    /// # Errors
    /// If its arrays are not allocated.
    fn new(call: Call, x: SpVec) -> Result<Entries, Status> {
        let [indices, values] = x.pointers;
        let (base, length) = (x.base, x.size);
        let shape = || format!("{} entries", x.nnz);
        let values = call.array("the values of x", values.pointer(), x.kind, x.nnz, shape)?;
        let indices = call.indices("the indices of x", indices.pointer(), x.width, x.nnz)?;
        Ok(Entries { indices, values, base, length })
    }

    /// The places of the entries, checked.
    fn places(&self, call: Call) -> Result<Vec<usize>, Error> {
        let check = |(at, raw): (usize, i64)| {
            let place =
                usize::try_from(raw.wrapping_sub(self.base)).ok().filter(|&place| place < self.length);
            place.ok_or_else(|| {
                let (base, length) = (self.base, self.length);
                call.fault(&format!("x: index {at} is {raw}, and there are {length} elements from {base} on"))
            })
        };
        self.indices.load(call)?.into_iter().enumerate().map(check).collect()
    }
}

/// Both vectors, of the same length.
fn both(call: Call, x: Ptr, y: Ptr) -> Result<(Entries, Array, [Kind; 2]), Status> {
    let (x, y) = (SpVec::of(x)?, DnVec::of(y)?);
    if x.size != y.size {
        return Err(Status::INVALID_VALUE);
    }
    Ok((Entries::new(call, x)?, y.array(call, "y")?, [x.kind, y.kind]))
}

/// The type that functions without a compute type use for values of a kind, and that of their scalars.
fn implied(kinds: [Kind; 2]) -> Result<Compute, Status> {
    if kinds[0] != kinds[1] || matches!(kinds[0], Kind::I8 | Kind::I32) {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok(holder(kinds[0]))
}

/// y = alpha x + beta y.
fn axpby<T: Scalar>(
    call: Call,
    kind: Kind,
    [alpha, beta]: [Ptr; 2],
    x: Entries,
    y: Array,
) -> Result<(), Status> {
    let (alpha, beta) = (call.scalar::<T>("alpha", alpha, kind)?, call.scalar::<T>("beta", beta, kind)?);
    call.submit(move || {
        let (alpha, beta) = (alpha.get(call)?, beta.get(call)?);
        let mut sums: Vec<T> = match beta.is_zero() {
            true => vec![T::default(); y.count],
            false => y
                .load::<T>(call)?
                .into_iter()
                .map(|old| combine([beta, T::default()], old, T::default))
                .collect(),
        };
        if !alpha.is_zero() {
            for (place, value) in x.places(call)?.into_iter().zip(x.values.load::<T>(call)?) {
                sums[place] = sums[place] + alpha * value;
            }
        }
        y.store(call, 0, &sums)
    })
}

/// The rotation of x and y at the entries of x.
fn rot<T: Scalar>(call: Call, kind: Kind, [c, s]: [Ptr; 2], x: Entries, y: Array) -> Result<(), Status> {
    let (c, s) = (call.scalar::<T>("c", c, kind)?, call.scalar::<T>("s", s, kind)?);
    call.submit(move || {
        let (c, s) = (c.get(call)?, s.get(call)?);
        let (places, reached) = (x.places(call)?, y.reach(call)?);
        let mut turned = x.values.load::<T>(call)?;
        for (&place, x) in places.iter().zip(&mut turned) {
            let (old, y) = (*x, reached.get::<T>(place));
            *x = c * old + s * y;
            reached.put(place, c * y - s.conjugate() * old);
            reached.wrote(place, 1);
        }
        x.values.store(call, 0, &turned)
    })
}

/// x = y at the entries of x.
fn gather<T: Scalar>(call: Call, x: Entries, y: Array) -> Result<(), Status> {
    call.submit(move || {
        let (places, reached) = (x.places(call)?, y.reach(call)?);
        let values: Vec<T> = places.into_iter().map(|place| reached.get(place)).collect();
        x.values.store(call, 0, &values)
    })
}

/// y = x at the entries of x.
fn scatter<T: Scalar>(call: Call, x: Entries, y: Array) -> Result<(), Status> {
    call.submit(move || {
        let (places, values) = (x.places(call)?, x.values.load::<T>(call)?);
        y.scatter(call, places.into_iter().zip(values))
    })
}

/// The arguments of `SpVV`: the operation, and the type to compute with.
fn dot_of(op: c_uint, kinds: [Kind; 2], compute: c_uint) -> Result<(Operation, Compute), Status> {
    let (op, compute) = (operation(op)?, Compute::of(compute)?);
    let narrow = matches!(kinds[0], Kind::I8 | Kind::R16 | Kind::B16);
    let good = match compute {
        Compute::Integers => kinds == [Kind::I8; 2],
        Compute::Single => kinds[0] == kinds[1] && (narrow || kinds[0] == Kind::R32),
        _ => kinds == [compute.kind(); 2],
    };
    if !good || op == Operation::of(1).unwrap_or(op) {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok((op, compute))
}

/// The sum of op(x) y.
fn dot<T: Scalar>(
    call: Call,
    kind: Kind,
    op: Operation,
    result: Ptr,
    x: Entries,
    y: Array,
) -> Result<(), Status> {
    call.deliver(result, kind, move || {
        let (places, values, reached) = (x.places(call)?, x.values.load::<T>(call)?, y.reach(call)?);
        let terms = places.into_iter().zip(values).map(|(place, x)| op.element(x) * reached.get(place));
        Ok(terms.fold(T::default(), |sum, term| sum + term))
    })
}

api! { API: Status, name;
    /// y = alpha x + beta y, for a sparse vector x.
    cusparseAxpby(handle: Ptr, alpha: Ptr, x: Ptr, beta: Ptr, y: Ptr) {
        let call = Call::begin(name, handle)?;
        let (x, y, kinds) = both(call, x, y)?;
        let compute = implied(kinds)?;
        with_type!(compute, axpby(call, compute.kind(), [alpha, beta], x, y))
    }

    /// Rotates x and y at the entries of x: x = c x + s y, y = c y - s x.
    cusparseRot(handle: Ptr, c: Ptr, s: Ptr, x: Ptr, y: Ptr) {
        let call = Call::begin(name, handle)?;
        let (x, y, kinds) = both(call, x, y)?;
        let compute = implied(kinds)?;
        with_type!(compute, rot(call, compute.kind(), [c, s], x, y))
    }

    /// x = y at the entries of x.
    cusparseGather(handle: Ptr, y: Ptr, x: Ptr) {
        let call = Call::begin(name, handle)?;
        let (x, y, kinds) = both(call, x, y)?;
        if kinds[0] != kinds[1] {
            return Err(Status::NOT_SUPPORTED);
        }
        with_type!(holder(kinds[0]), gather(call, x, y))
    }

    /// y = x at the entries of x.
    cusparseScatter(handle: Ptr, x: Ptr, y: Ptr) {
        let call = Call::begin(name, handle)?;
        let (x, y, kinds) = both(call, x, y)?;
        if kinds[0] != kinds[1] {
            return Err(Status::NOT_SUPPORTED);
        }
        with_type!(holder(kinds[0]), scatter(call, x, y))
    }

    /// The device memory that `cusparseSpVV` needs: none.
    cusparseSpVV_bufferSize(
        handle: Ptr, op: c_uint, x: Ptr, y: Ptr, _result: Ptr, compute: c_uint, bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        dot_of(op, [SpVec::of(x)?.kind, DnVec::of(y)?.kind], compute)?;
        bytes.write(0)
    }

    /// The sum of op(x) y, for a sparse vector x, which may be conjugated.
    cusparseSpVV(handle: Ptr, op: c_uint, x: Ptr, y: Ptr, result: Ptr, compute: c_uint, _buffer: Ptr) {
        let call = Call::begin(name, handle)?;
        let (x, y, kinds) = both(call, x, y)?;
        let (op, compute) = dot_of(op, kinds, compute)?;
        with_type!(compute, dot(call, compute.kind(), op, result, x, y))
    }
}

families! { FAMILIES:
    /// The device memory that `gemvi` needs: none.
    "gemvi_bufferSize" (op: c_uint, m: c_int, n: c_int, nnz: c_int, bytes: Place<'_, c_int>) |call| {
        operation(op)?;
        sizes([m, n, nnz])?;
        bytes.write(0)
    }
    /// y = alpha op(A) x + beta y, for a dense matrix by columns and a sparse vector.
    "gemvi" (
        op: c_uint, m: c_int, n: c_int, alpha: Ptr, a: Ptr, lda: c_int, nnz: c_int, x: Ptr, indices: Ptr, beta: Ptr,
        y: Ptr, base: c_uint, _buffer: Ptr,
    ) |call| {
        let ([m, n, nnz], op) = (sizes([m, n, nnz])?, operation(op)?);
        let [rows, length] = op.stored([m, n]);
        let a = DnMat::by_columns([m, n], lda, a, T::KIND)?.block(call, "A", 0)?;
        let x = Entries::new(call, SpVec {
            size: length,
            nnz,
            pointers: [indices, x].map(Address::of),
            width: Width::Int,
            base: either(base)?.into(),
            kind: T::KIND,
        })?;
        let y = call.array("y", y, T::KIND, rows, || format!("{rows} elements"))?;
        let (alpha, beta) = (call.scalar::<T>("alpha", alpha, T::KIND)?, call.scalar::<T>("beta", beta, T::KIND)?);
        call.submit(move || {
            let scalars = [alpha.get(call)?, beta.get(call)?];
            let mut sums = vec![T::default(); rows];
            if !scalars[0].is_zero() {
                let (a, x, places) = (a.load::<T>(call, op)?, x.values.load::<T>(call)?, x.places(call)?);
                for (row, sum) in sums.iter_mut().enumerate() {
                    let terms = places.iter().zip(&x).map(|(&place, &x)| a[row * length + place] * x);
                    *sum = terms.fold(T::default(), |sum, term| sum + term);
                }
            }
            let old = y.reach(call)?;
            sums.into_iter().enumerate().for_each(|(at, sum)| old.put(at, combine(scalars, sum, || old.get(at))));
            old.wrote(0, rows);
            Ok(())
        })
    }
}
