//! Products of sparse matrices: `SpGEMM`, and its form whose pattern is used again.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use linalg::{Kind, Operation, Scalar};
use mathlib::{Error, Handles, api};

use crate::call::{Call, Compute, operation, with_type};
use crate::handle::{Place, Ptr};
use crate::multiply::combine;
use crate::pattern::{Matrix, Pattern, Source, list};
use crate::sparse::{Format, SpMat};
use crate::status::Status;

/// What a product has computed so far (`cusparseSpGEMMDescr_t`). Values are kept as real and imaginary parts.
#[derive(Default)]
struct Plan {
    pattern: Option<Arc<Pattern>>,
    values: Vec<[f64; 2]>,
    products: usize,
}

static PLANS: Handles<Mutex<Plan>> = Handles::new();

/// What the functions that could need memory say: enough that no program takes its pointer for the question how much is needed.
const BUFFER: usize = 256;

/// The entries that a product may have: they are kept in memory of the host.
const MOST: usize = 1 << 28;

/// The arguments, checked.
struct Given {
    a: SpMat,
    b: SpMat,
    c: SpMat,
    plan: Arc<Mutex<Plan>>,
}

impl Given {
    /// # Errors
    /// If an argument has no meaning, or the manual's table does not have it.
    fn of(ops: [c_uint; 2], [a, b, c]: [Ptr; 3], algorithm: c_uint, plan: Ptr) -> Result<Given, Status> {
        let plan = PLANS.get(plan).ok_or(Status::INVALID_VALUE)?;
        let ops = [operation(ops[0])?, operation(ops[1])?];
        let (a, b, c) = (SpMat::of(a)?, SpMat::of(b)?, SpMat::of(c)?);
        if algorithm > 5 || a.size[1] != b.size[0] || c.size != [a.size[0], b.size[1]] {
            return Err(Status::INVALID_VALUE);
        }
        let plain = |matrix: &SpMat| matrix.format == Format::Csr && matrix.count == 1;
        if ops != [Operation::NONE; 2] || ![a, b, c].iter().all(plain) || a.kind != b.kind || a.kind != c.kind
        {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(Given { a, b, c, plan })
    }

    /// The type to compute with.
    fn compute(&self, compute: c_uint) -> Result<Compute, Status> {
        let compute = Compute::of(compute)?;
        let halves = compute == Compute::Single && matches!(self.a.kind, Kind::R16 | Kind::B16);
        if compute != Compute::Integers && (compute.kind() == self.a.kind || halves) {
            Ok(compute)
        } else {
            Err(Status::NOT_SUPPORTED)
        }
    }

    /// A and B in memory.
    fn factors(&self, call: Call) -> Result<[Source; 2], Status> {
        Ok([Source::new(call, "A", self.a, 0)?, Source::new(call, "B", self.b, 0)?])
    }
}

/// Adds terms of the same column, in their order, and leaves the sums in the order of columns.
fn add_up<T: Scalar>(terms: &mut Vec<(usize, T)>) {
    terms.sort_by_key(|&(column, _)| column);
    terms.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1 + next.1;
        }
        same
    });
}

/// A B, whose rows are in the order of columns; each sum is in the order of A's entries. Nothing, if it has more than [`MOST`] entries.
fn multiply<T: Scalar>(a: &Matrix<T>, b: &Matrix<T>) -> Option<Matrix<T>> {
    let count = AtomicUsize::new(0);
    let rows = list(a.pattern.size[0], a.pattern.count() * 8, |row| {
        let (mut terms, mut sums): (Vec<(usize, T)>, usize) = (Vec::new(), 0);
        for (inner, x) in a.row(row) {
            terms.extend(b.row(inner).map(|(column, y)| (column, x * y)));
            // Many terms of few columns need not be kept.
            if terms.len() > 2 * sums + (1 << 16) {
                add_up(&mut terms);
                sums = terms.len();
            }
            if count.load(Ordering::Relaxed) + sums > MOST {
                break;
            }
        }
        add_up(&mut terms);
        count.fetch_add(terms.len(), Ordering::Relaxed);
        terms
    });
    if count.into_inner() > MOST {
        return None;
    }
    let mut product =
        Matrix { pattern: Pattern::of_size([a.pattern.size[0], b.pattern.size[1]]), values: Vec::new() };
    for row in rows {
        product.pattern.columns.extend(row.iter().map(|term| term.0));
        product.values.extend(row.iter().map(|term| term.1));
        product.pattern.offsets.push(product.values.len());
    }
    Some(product)
}

/// How many products of entries there are.
fn products(call: Call, [a, b]: [Source; 2]) -> Result<usize, Status> {
    call.wait(move || {
        let (a, b) = (a.pattern(call)?, b.pattern(call)?);
        Ok(a.columns.iter().map(|&row| b.row(row).len()).sum())
    })
}

/// Computes alpha A B into the plan, and returns how many entries it has.
fn compute<T: Scalar>(call: Call, given: &Given, kind: Kind, alpha: Ptr) -> Result<usize, Status> {
    let alpha = call.scalar::<T>("alpha", alpha, kind)?;
    let ([a, b], plan) = (given.factors(call)?, Arc::clone(&given.plan));
    call.wait(move || {
        let alpha = alpha.get(call)?;
        let product = multiply(&a.matrix::<T>(call, Operation::NONE)?, &b.matrix(call, Operation::NONE)?);
        let Some(product) = product else { return Ok(None) };
        let scaled = product.values.iter().map(|&sum| combine([alpha, T::default()], sum, T::default));
        let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.values = scaled.map(T::wide).collect();
        let count = product.pattern.count();
        plan.pattern = Some(Arc::new(product.pattern));
        Ok(Some(count))
    })?
    .ok_or(Status::INSUFFICIENT_RESOURCES)
}

/// The arrays of C, if they have room for a pattern.
fn target(call: Call, c: SpMat, pattern: &Pattern) -> Result<Source, Status> {
    if c.nnz != pattern.count() {
        return Err(Status::INVALID_VALUE);
    }
    Source::new(call, "C", c, 0)
}

/// Writes what the plan has to C.
fn copy<T: Scalar>(call: Call, given: &Given, kind: Kind, beta: Ptr) -> Result<(), Status> {
    let beta = call.scalar::<T>("beta", beta, kind)?;
    let plan = given.plan.lock().unwrap_or_else(PoisonError::into_inner);
    let pattern = Arc::clone(plan.pattern.as_ref().ok_or(Status::INVALID_VALUE)?);
    let values: Vec<T> = plan.values.iter().map(|&[re, im]| T::of(re, im)).collect();
    let c = target(call, given.c, &pattern)?;
    call.submit(move || {
        let scalars = [T::ONE, beta.get(call)?];
        c.write_pattern(call, &pattern)?;
        let old = c.values.reach(call)?;
        for (at, &value) in values.iter().enumerate() {
            old.put(at, combine(scalars, value, || old.get(at)));
        }
        old.wrote(0, values.len());
        Ok(())
    })
}

/// C = alpha A B + beta C, where C has the pattern of the plan.
fn compute_again<T: Scalar>(
    call: Call,
    given: &Given,
    kind: Kind,
    [alpha, beta]: [Ptr; 2],
) -> Result<(), Status> {
    let (alpha, beta) = (call.scalar::<T>("alpha", alpha, kind)?, call.scalar::<T>("beta", beta, kind)?);
    let plan = given.plan.lock().unwrap_or_else(PoisonError::into_inner);
    let pattern = Arc::clone(plan.pattern.as_ref().ok_or(Status::INVALID_VALUE)?);
    let ([a, b], c) = (given.factors(call)?, target(call, given.c, &pattern)?);
    call.submit(move || {
        let scalars = [alpha.get(call)?, beta.get(call)?];
        let product = multiply(&a.matrix::<T>(call, Operation::NONE)?, &b.matrix(call, Operation::NONE)?);
        let product = product.ok_or(Error::OUT_OF_MEMORY)?;
        if product.pattern.offsets != pattern.offsets || product.pattern.columns != pattern.columns {
            return Err(call.fault("A or B has other entries than when the pattern of C was computed"));
        }
        let old = c.values.reach(call)?;
        for (at, &value) in product.values.iter().enumerate() {
            old.put(at, combine(scalars, value, || old.get(at)));
        }
        old.wrote(0, product.values.len());
        Ok(())
    })
}

/// Answers how much memory a step needs, if the program passes none. Otherwise checks that it has as much.
fn asks(bytes: Place<'_, usize>, buffer: Ptr) -> Result<bool, Status> {
    if buffer.is_null() {
        bytes.write(BUFFER)?;
        return Ok(true);
    }
    if bytes.read()? < BUFFER { Err(Status::INSUFFICIENT_RESOURCES) } else { Ok(false) }
}

/// Tells the descriptor of C how many entries it has.
fn tell(c: Ptr, nnz: usize) -> Result<(), Status> {
    SpMat::change(c, |matrix| {
        matrix.nnz = nnz;
        Ok(())
    })
}

api! { API: Status, name;
    /// Makes what a product of sparse matrices remembers from step to step.
    cusparseSpGEMM_createDescr(plan: Place<'_, Ptr>) {
        if plan.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        plan.write(PLANS.insert(Mutex::default()))
    }

    /// Gives it back.
    cusparseSpGEMM_destroyDescr(plan: Ptr) { PLANS.remove(plan).map(drop).ok_or(Status::INVALID_VALUE) }

    /// The first step of a product of sparse matrices: counts products. Without a buffer, says how large that must be.
    cusparseSpGEMM_workEstimation(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, _beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, plan: Ptr, bytes: Place<'_, usize>, buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = Given::of([op_a, op_b], [a, b, c], algorithm, plan)?;
        given.compute(compute)?;
        if asks(bytes, buffer)? {
            return Ok(());
        }
        let count = products(call, given.factors(call)?)?;
        given.plan.lock().unwrap_or_else(PoisonError::into_inner).products = count;
        Ok(())
    }

    /// How many products of entries the first step has counted.
    cusparseSpGEMM_getNumProducts(plan: Ptr, count: Place<'_, i64>) {
        let plan = PLANS.get(plan).ok_or(Status::INVALID_VALUE)?;
        let products = plan.lock().unwrap_or_else(PoisonError::into_inner).products;
        count.write(products as i64)
    }

    /// The memory that the next step needs, for algorithms 2 and 3: a little.
    cusparseSpGEMM_estimateMemory(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, _beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, plan: Ptr, fraction: f32, bytes3: Place<'_, usize>, buffer3: Ptr,
        bytes2: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        Given::of([op_a, op_b], [a, b, c], algorithm, plan)?.compute(compute)?;
        if !matches!(algorithm, 4 | 5) || algorithm == 5 && !(fraction > 0.0 && fraction <= 1.0) {
            return Err(Status::INVALID_VALUE);
        }
        if asks(bytes3, buffer3)? {
            return Ok(());
        }
        bytes2.write(BUFFER)
    }

    /// The second step: computes alpha A B and tells the descriptor of C how many entries it has. It waits for the stream.
    cusparseSpGEMM_compute(
        handle: Ptr, op_a: c_uint, op_b: c_uint, alpha: Ptr, a: Ptr, b: Ptr, _beta: Ptr, c: Ptr, compute_type: c_uint,
        algorithm: c_uint, plan: Ptr, bytes: Place<'_, usize>, buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = Given::of([op_a, op_b], [a, b, c], algorithm, plan)?;
        let with = given.compute(compute_type)?;
        if asks(bytes, buffer)? {
            return Ok(());
        }
        tell(c, with_type!(with, compute(call, &given, with.kind(), alpha))?)
    }

    /// The last step: writes the product, plus beta times the values that C has, to the arrays of C.
    cusparseSpGEMM_copy(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, plan: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = Given::of([op_a, op_b], [a, b, c], algorithm, plan)?;
        let with = given.compute(compute)?;
        with_type!(with, copy(call, &given, with.kind(), beta))
    }

    /// The first step of a product whose pattern is used again. Without a buffer, says how large that must be.
    cusparseSpGEMMreuse_workEstimation(
        handle: Ptr, op_a: c_uint, op_b: c_uint, a: Ptr, b: Ptr, c: Ptr, algorithm: c_uint, plan: Ptr,
        bytes: Place<'_, usize>, buffer: Ptr,
    ) {
        Call::begin(name, handle)?;
        Given::of([op_a, op_b], [a, b, c], algorithm, plan)?;
        asks(bytes, buffer).map(drop)
    }

    /// The second step: computes the pattern and tells the descriptor of C how many entries it has. It waits for the stream.
    cusparseSpGEMMreuse_nnz(
        handle: Ptr, op_a: c_uint, op_b: c_uint, a: Ptr, b: Ptr, c: Ptr, algorithm: c_uint, plan: Ptr,
        bytes2: Place<'_, usize>, buffer2: Ptr, bytes3: Place<'_, usize>, buffer3: Ptr, bytes4: Place<'_, usize>,
        buffer4: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = Given::of([op_a, op_b], [a, b, c], algorithm, plan)?;
        let asked = [asks(bytes2, buffer2)?, asks(bytes3, buffer3)?, asks(bytes4, buffer4)?];
        if asked.contains(&true) {
            return Ok(());
        }
        let [a, b] = given.factors(call)?;
        let pattern = call.wait(move || {
            let ones = |pattern: Pattern| Matrix { values: vec![1.0f32; pattern.count()], pattern };
            Ok(multiply(&ones(a.pattern(call)?), &ones(b.pattern(call)?)).map(|product| product.pattern))
        })?;
        let pattern = pattern.ok_or(Status::INSUFFICIENT_RESOURCES)?;
        tell(c, pattern.count())?;
        given.plan.lock().unwrap_or_else(PoisonError::into_inner).pattern = Some(Arc::new(pattern));
        Ok(())
    }

    /// The third step: writes the pattern to the arrays of C. Without a buffer, says how large that must be.
    cusparseSpGEMMreuse_copy(
        handle: Ptr, op_a: c_uint, op_b: c_uint, a: Ptr, b: Ptr, c: Ptr, algorithm: c_uint, plan: Ptr,
        bytes: Place<'_, usize>, buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = Given::of([op_a, op_b], [a, b, c], algorithm, plan)?;
        if asks(bytes, buffer)? {
            return Ok(());
        }
        let plan = given.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let pattern = Arc::clone(plan.pattern.as_ref().ok_or(Status::INVALID_VALUE)?);
        let c = target(call, given.c, &pattern)?;
        call.submit(move || c.write_pattern(call, &pattern))
    }

    /// The last step, as often as values change: C = alpha A B + beta C.
    cusparseSpGEMMreuse_compute(
        handle: Ptr, op_a: c_uint, op_b: c_uint, alpha: Ptr, a: Ptr, b: Ptr, beta: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, plan: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let given = Given::of([op_a, op_b], [a, b, c], algorithm, plan)?;
        let with = given.compute(compute)?;
        with_type!(with, compute_again(call, &given, with.kind(), [alpha, beta]))
    }
}
