//! Triangular systems: `SpSV` and `SpSM`. The analysis takes the matrix from memory, as NVIDIA's does: later changes of its values
//! count when the program says so.

use std::any::Any;
use std::ffi::c_uint;
use std::sync::{Arc, Mutex, PoisonError};

use linalg::{Kind, Operation, Scalar};
use mathlib::{Handles, api};

use crate::call::{Call, Compute, either, operation, with_type};
use crate::dense::{DnMat, DnVec};
use crate::handle::{Place, Ptr};
use crate::pattern::{Matrix, Source, list};
use crate::sparse::{Format, SpMat};
use crate::status::Status;

/// What an analysis has found (`cusparseSpSVDescr_t`, `cusparseSpSMDescr_t`).
#[derive(Clone)]
struct Analysis {
    a: SpMat,
    op: Operation,
    compute: Compute,
    /// The [`System`] once the work of the analysis has run.
    system: Arc<Mutex<Option<Box<dyn Any + Send>>>>,
}

type Analyses = Handles<Mutex<Option<Analysis>>>;

static VECTORS: Analyses = Handles::new();
static MATRICES: Analyses = Handles::new();

/// A triangular matrix to solve systems with.
pub struct System<T> {
    /// The matrix, of which one triangle counts.
    pub matrix: Matrix<T>,
    /// Which triangle counts.
    pub upper: bool,
    /// Whether its diagonal is taken for ones.
    pub unit: bool,
}

impl<T: Scalar> System<T> {
    /// Solves the system for one right-hand side, in place. Terms are subtracted in the order of each row's entries.
    pub fn solve(&self, x: &mut [T]) {
        let count = x.len();
        for step in 0..count {
            let row = if self.upper { count - 1 - step } else { step };
            let (mut rest, mut diagonal) = (x[row], T::default());
            for (column, value) in self.matrix.row(row) {
                if column == row {
                    diagonal = diagonal + value;
                } else if (column > row) == self.upper {
                    rest = rest - value * x[column];
                }
            }
            x[row] = if self.unit { rest } else { rest / diagonal };
        }
    }

    /// Solves the system for right-hand sides by rows without gaps, each on its own.
    pub fn solve_all(&self, sides: &[T], columns: usize) -> Vec<T> {
        let rows = self.matrix.pattern.size[0];
        let solved = list(columns, self.matrix.pattern.count() * columns, |side| {
            let mut x: Vec<T> = (0..rows).map(|row| sides[row * columns + side]).collect();
            self.solve(&mut x);
            x
        });
        (0..rows).flat_map(|row| solved.iter().map(move |x| x[row])).collect()
    }
}

/// The matrix and the type to compute with, checked.
fn triangle(
    op: c_uint,
    a: Ptr,
    kinds: [Kind; 2],
    compute: c_uint,
    algorithm: c_uint,
) -> Result<Analysis, Status> {
    let (op, a, compute) = (operation(op)?, SpMat::of(a)?, Compute::of(compute)?);
    if a.size[0] != a.size[1] || algorithm != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let uniform = compute != Compute::Integers && [a.kind, kinds[0], kinds[1]] == [compute.kind(); 3];
    let plain = op == Operation::NONE || a.format != Format::SlicedEll;
    if !uniform || !plain || a.count != 1 || matches!(a.format, Format::Bsr | Format::BlockedEll) {
        return Err(Status::NOT_SUPPORTED);
    }
    Ok(Analysis { a, op, compute, system: Arc::default() })
}

/// Takes the matrix from memory.
fn analyse<T: Scalar>(call: Call, analysis: &Analysis) -> Result<(), Status> {
    let (a, op) = (Source::new(call, "A", analysis.a, 0)?, analysis.op);
    let (upper, unit) = (analysis.a.upper != op.transposed, analysis.a.unit);
    let system = Arc::clone(&analysis.system);
    call.submit(move || {
        let new = System { matrix: a.matrix::<T>(call, op)?, upper, unit };
        *system.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(new));
        Ok(())
    })
}

/// Keeps an analysis for its descriptor, and queues its work.
fn keep(call: Call, table: &Analyses, descriptor: Ptr, analysis: Analysis) -> Result<(), Status> {
    let slot = table.get(descriptor).ok_or(Status::INVALID_VALUE)?;
    with_type!(analysis.compute, analyse(call, &analysis))?;
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(analysis);
    Ok(())
}

/// The analysis of a descriptor.
fn analysis_of(table: &Analyses, descriptor: Ptr) -> Result<Analysis, Status> {
    let slot = table.get(descriptor).ok_or(Status::INVALID_VALUE)?;
    let analysis = slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
    analysis.ok_or(Status::INVALID_VALUE)
}

/// The analysis that was made for the same arguments.
fn analysed(table: &Analyses, descriptor: Ptr, given: &Analysis) -> Result<Analysis, Status> {
    let made = analysis_of(table, descriptor)?;
    let same = made.op == given.op && made.compute == given.compute && made.a.size == given.a.size;
    if same { Ok(made) } else { Err(Status::INVALID_VALUE) }
}

/// Calls work with the system of an analysis.
fn with_system<T: Scalar>(
    call: Call,
    analysis: &Analysis,
    work: impl FnOnce(&mut System<T>) -> crate::call::Done,
) -> crate::call::Done {
    let mut system = analysis.system.lock().unwrap_or_else(PoisonError::into_inner);
    match system.as_mut().and_then(|system| system.downcast_mut::<System<T>>()) {
        Some(system) => work(system),
        None => Err(call.fault("the analysis has not run")),
    }
}

/// op(A) y = alpha x.
fn solve_vector<T: Scalar>(
    call: Call,
    analysis: Analysis,
    alpha: Ptr,
    x: DnVec,
    y: DnVec,
) -> Result<(), Status> {
    let alpha = call.scalar::<T>("alpha", alpha, analysis.compute.kind())?;
    let (x, y) = (x.array(call, "x")?, y.array(call, "y")?);
    call.submit(move || {
        let alpha = alpha.get(call)?;
        let mut values: Vec<T> = x.load::<T>(call)?.into_iter().map(|x| alpha * x).collect();
        with_system::<T>(call, &analysis, |system| {
            system.solve(&mut values);
            Ok(())
        })?;
        y.store(call, 0, &values)
    })
}

/// op(A) C = alpha op(B), for all matrices of a batch.
fn solve_matrix<T: Scalar>(
    call: Call,
    analysis: Analysis,
    of_b: Operation,
    alpha: Ptr,
    b: DnMat,
    c: DnMat,
) -> Result<(), Status> {
    let alpha = call.scalar::<T>("alpha", alpha, analysis.compute.kind())?;
    if c.size.contains(&0) {
        return Ok(());
    }
    let pair = |of_batch| Ok((b.block(call, "B", of_batch)?, c.block(call, "C", of_batch)?));
    let batch = (0..c.count as usize).map(pair).collect::<Result<Vec<_>, Status>>()?;
    call.submit(move || {
        let alpha = alpha.get(call)?;
        for (b, c) in &batch {
            let sides: Vec<T> = b.load::<T>(call, of_b)?.into_iter().map(|value| alpha * value).collect();
            with_system::<T>(call, &analysis, |system| {
                c.store(call, &system.solve_all(&sides, c.columns()))
            })?;
        }
        Ok(())
    })
}

/// Takes new values for the matrix of an analysis: all (`is_diagonal` false), or its diagonal.
fn update<T: Scalar>(call: Call, analysis: Analysis, values: Ptr, is_diagonal: bool) -> Result<(), Status> {
    let count = if is_diagonal { analysis.a.size[0] } else { analysis.a.stored() };
    let values =
        call.array("the new values", values, analysis.a.kind, count, || format!("{count} values"))?;
    call.submit(move || {
        let values: Vec<T> = values.load(call)?;
        with_system::<T>(call, &analysis, |System { matrix, .. }| {
            for (entry, row) in matrix.pattern.rows().into_iter().enumerate() {
                let from = match is_diagonal {
                    true if matrix.pattern.columns[entry] != row => continue,
                    true => row,
                    false => matrix.pattern.places[entry],
                };
                matrix.values[entry] = analysis.op.element(values[from]);
            }
            Ok(())
        })
    })
}

/// The arguments of `SpSV`, checked.
fn system_of_vector(
    op: c_uint,
    [a, x, y]: [Ptr; 3],
    compute: c_uint,
    algorithm: c_uint,
) -> Result<(Analysis, [DnVec; 2]), Status> {
    let (x, y) = (DnVec::of(x)?, DnVec::of(y)?);
    let given = triangle(op, a, [x.kind, y.kind], compute, algorithm)?;
    if [x.size, y.size] != given.a.size {
        return Err(Status::INVALID_VALUE);
    }
    Ok((given, [x, y]))
}

/// The arguments of `SpSM`, checked.
fn system_of_matrix(
    ops: [c_uint; 2],
    [a, b, c]: [Ptr; 3],
    compute: c_uint,
    algorithm: c_uint,
) -> Result<(Analysis, Operation, [DnMat; 2]), Status> {
    let (of_b, b, c) = (operation(ops[1])?, DnMat::of(b)?, DnMat::of(c)?);
    let given = triangle(ops[0], a, [b.kind, c.kind], compute, algorithm)?;
    if of_b.stored(b.size) != c.size
        || c.size[0] != given.a.size[0]
        || b.count != 1 && b.count != c.count
        || c.overlaps()
    {
        return Err(Status::INVALID_VALUE);
    }
    Ok((given, of_b, [b, c]))
}

/// Makes a descriptor.
fn create(table: &Analyses, place: Place<'_, Ptr>) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    place.write(table.insert(Mutex::default()))
}

api! { API: Status, name;
    /// Makes what `cusparseSpSV` remembers from step to step.
    cusparseSpSV_createDescr(descriptor: Place<'_, Ptr>) { create(&VECTORS, descriptor) }

    /// Gives it back. Work that is queued goes on.
    cusparseSpSV_destroyDescr(descriptor: Ptr) { VECTORS.remove(descriptor).map(drop).ok_or(Status::INVALID_VALUE) }

    /// The device memory that `cusparseSpSV_analysis` needs: none.
    cusparseSpSV_bufferSize(
        handle: Ptr, op: c_uint, _alpha: Ptr, a: Ptr, x: Ptr, y: Ptr, compute: c_uint, algorithm: c_uint,
        descriptor: Ptr, bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        VECTORS.get(descriptor).ok_or(Status::INVALID_VALUE)?;
        system_of_vector(op, [a, x, y], compute, algorithm)?;
        bytes.write(0)
    }

    /// Takes the matrix of a triangular system, in stream order.
    cusparseSpSV_analysis(
        handle: Ptr, op: c_uint, _alpha: Ptr, a: Ptr, x: Ptr, y: Ptr, compute: c_uint, algorithm: c_uint,
        descriptor: Ptr, _buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let (given, _) = system_of_vector(op, [a, x, y], compute, algorithm)?;
        keep(call, &VECTORS, descriptor, given)
    }

    /// Solves op(A) y = alpha x with the matrix that the analysis took.
    cusparseSpSV_solve(
        handle: Ptr, op: c_uint, alpha: Ptr, a: Ptr, x: Ptr, y: Ptr, compute: c_uint, algorithm: c_uint,
        descriptor: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let (given, [x, y]) = system_of_vector(op, [a, x, y], compute, algorithm)?;
        let made = analysed(&VECTORS, descriptor, &given)?;
        with_type!(given.compute, solve_vector(call, made, alpha, x, y))
    }

    /// Takes new values for the matrix of a triangular system: all of them (0), or its diagonal (1).
    cusparseSpSV_updateMatrix(handle: Ptr, descriptor: Ptr, values: Ptr, part: c_uint) {
        let call = Call::begin(name, handle)?;
        let (made, is_diagonal) = (analysis_of(&VECTORS, descriptor)?, either(part)?);
        with_type!(made.compute, update(call, made, values, is_diagonal))
    }

    /// Makes what `cusparseSpSM` remembers from step to step.
    cusparseSpSM_createDescr(descriptor: Place<'_, Ptr>) { create(&MATRICES, descriptor) }

    /// Gives it back. Work that is queued goes on.
    cusparseSpSM_destroyDescr(descriptor: Ptr) { MATRICES.remove(descriptor).map(drop).ok_or(Status::INVALID_VALUE) }

    /// The device memory that `cusparseSpSM_analysis` needs: none.
    cusparseSpSM_bufferSize(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, descriptor: Ptr, bytes: Place<'_, usize>,
    ) {
        Call::begin(name, handle)?;
        MATRICES.get(descriptor).ok_or(Status::INVALID_VALUE)?;
        system_of_matrix([op_a, op_b], [a, b, c], compute, algorithm)?;
        bytes.write(0)
    }

    /// Takes the matrix of a triangular system with several right-hand sides, in stream order.
    cusparseSpSM_analysis(
        handle: Ptr, op_a: c_uint, op_b: c_uint, _alpha: Ptr, a: Ptr, b: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, descriptor: Ptr, _buffer: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let (given, ..) = system_of_matrix([op_a, op_b], [a, b, c], compute, algorithm)?;
        keep(call, &MATRICES, descriptor, given)
    }

    /// Solves op(A) C = alpha op(B) with the matrix that the analysis took.
    cusparseSpSM_solve(
        handle: Ptr, op_a: c_uint, op_b: c_uint, alpha: Ptr, a: Ptr, b: Ptr, c: Ptr, compute: c_uint,
        algorithm: c_uint, descriptor: Ptr,
    ) {
        let call = Call::begin(name, handle)?;
        let (given, of_b, [b, c]) = system_of_matrix([op_a, op_b], [a, b, c], compute, algorithm)?;
        let made = analysed(&MATRICES, descriptor, &given)?;
        with_type!(given.compute, solve_matrix(call, made, of_b, alpha, b, c))
    }

    /// Takes new values for the matrix of a triangular system: all of them (0), or its diagonal (1).
    cusparseSpSM_updateMatrix(handle: Ptr, descriptor: Ptr, values: Ptr, part: c_uint) {
        let call = Call::begin(name, handle)?;
        let (made, is_diagonal) = (analysis_of(&MATRICES, descriptor)?, either(part)?);
        with_type!(made.compute, update(call, made, values, is_diagonal))
    }
}
