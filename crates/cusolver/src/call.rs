//! A call: its handle, and the matrices, vectors and integers that the program passes. They are checked when the program calls, and
//! reached when the work runs in the stream.

use std::sync::{Mutex, PoisonError};

use caller::Out;
use linalg::{Dense, Kind, Matrix, Operation, Region, Scalar, accumulate, each};
use mathlib::{Error, OutOfBounds, Range, Stream, driver, submit, synchronize};

use crate::declare::Ptr;
use crate::handle::{Cusolver, Handle};
use crate::status::Status;

/// What work says if it fails.
pub type Done = Result<(), Error>;

/// The conjugated and transposed matrix.
pub const ADJOINT: Operation = Operation { transposed: true, conjugated: true };

/// A call of a function.
#[derive(Clone, Copy)]
pub struct Call {
    /// The function.
    pub name: &'static str,
    /// The stream of its work.
    pub stream: Stream,
}

/// Integers in device memory, 32 or 64 bits wide, or none.
#[derive(Clone, Copy)]
pub struct Integers {
    range: Option<Range>,
    is_wide: bool,
}

/// A size that the program passes.
///
/// # Errors
/// If it is negative.
pub fn size(value: i64) -> Result<usize, Status> {
    usize::try_from(value).map_err(|_| Status::INVALID_VALUE)
}

/// A value of an enumeration with two values: lower or upper, left or right, non-unit or unit, without or with vectors.
///
/// # Errors
/// If it is another.
pub fn either(number: u32) -> Result<bool, Status> {
    match number {
        0 | 1 => Ok(number == 1),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// `cublasOperation_t`.
///
/// # Errors
/// If it is another, or a conjugate that is not transposed.
pub fn operation(number: u32) -> Result<Operation, Status> {
    Operation::of(number).filter(|_| number != 3).ok_or(Status::INVALID_VALUE)
}

/// Says how long a workspace must be: as many elements as its count of rows or columns. Nothing is written there.
///
/// # Errors
/// If the size is negative, or there is no place for the answer.
pub fn answer(result: Ptr, count: i64) -> Result<(), Status> {
    let count = i32::try_from(size(count)?.max(1)).map_err(|_| Status::INVALID_VALUE)?;
    // SAFETY: the program promises an integer in memory of the host.
    unsafe { Out::<i32, Cusolver>::new(result.cast()) }.write(count)
}

/// The same in bytes, for workspaces of the device and of the host: none is needed there.
///
/// # Errors
/// As for [`answer`].
pub fn answer_bytes<T: Scalar>(device: Ptr, host: Ptr, count: i64) -> Result<(), Status> {
    let bytes = size(count)?.max(1).saturating_mul(T::KIND.bytes());
    // SAFETY: the program promises sizes in memory of the host.
    unsafe { Out::<usize, Cusolver>::new(device.cast()) }.write(bytes)?;
    // SAFETY: as above.
    let host = unsafe { Out::<usize, Cusolver>::new(host.cast()) };
    if host.is_null() { Ok(()) } else { host.write(0) }
}

impl Call {
    /// Begins a call: finds the handle, and sees to it that a context is current.
    ///
    /// # Errors
    /// If there is no such handle, or no driver.
    pub fn begin(name: &'static str, handle: Ptr) -> Result<Call, Status> {
        let handle = Handle::of(handle)?;
        driver::enter(Some(handle.context)).map_err(|_| Status::NOT_INITIALIZED)?;
        let stream = handle.settings().stream;
        Ok(Call { name, stream })
    }

    /// Reports memory that does not suffice.
    pub fn refuse(&self, error: &OutOfBounds) -> Status {
        driver::failed(self.name, &error.to_string());
        Status::INVALID_VALUE
    }

    /// The same, when the work runs.
    pub fn broken(&self, error: &OutOfBounds) -> Error {
        driver::failed(self.name, &error.to_string());
        Error::ILLEGAL_ADDRESS
    }

    /// A matrix.
    ///
    /// # Errors
    /// If its columns overlap, or it is not allocated.
    pub fn matrix<T: Scalar>(
        &self,
        what: &str,
        (pointer, ld): (Ptr, i64),
        [rows, columns]: [usize; 2],
    ) -> Result<Matrix, Status> {
        let ld = leading(ld, rows)?;
        Matrix::at(what, T::KIND, pointer, [rows, columns], ld).map_err(|error| self.refuse(&error))
    }

    /// A vector, as a matrix of one column.
    ///
    /// # Errors
    /// If it is not allocated.
    pub fn vector<T: Scalar>(&self, what: &str, pointer: Ptr, count: usize) -> Result<Matrix, Status> {
        Matrix::at(what, T::KIND, pointer, [count, 1], count.max(1)).map_err(|error| self.refuse(&error))
    }

    /// Integers, or none: a null pointer.
    ///
    /// # Errors
    /// If they are not allocated.
    pub fn integers(
        &self,
        what: &str,
        pointer: Ptr,
        count: usize,
        is_wide: bool,
    ) -> Result<Integers, Status> {
        let shape = || format!("{count} integers");
        let range = match (pointer.is_null(), is_wide) {
            (true, _) => return Ok(Integers { range: None, is_wide }),
            (_, true) => Range::of::<i64>(pointer.cast(), count, what, shape),
            (_, false) => Range::of::<i32>(pointer.cast(), count, what, shape),
        };
        Ok(Integers { range: Some(range.map_err(|error| self.refuse(&error))?), is_wide })
    }

    /// The number that says how the work ended (`devInfo`), or one for each member of a batch.
    ///
    /// # Errors
    /// If it is not allocated.
    pub fn info(&self, pointer: Ptr, count: usize) -> Result<Integers, Status> {
        self.integers("devInfo", pointer, count, false)
    }

    /// Checks a workspace, in elements.
    ///
    /// # Errors
    /// If it is smaller than [`answer`] said, or not allocated.
    pub fn workspace<T: Scalar>(&self, pointer: Ptr, length: i32, count: i64) -> Result<(), Status> {
        let length = size(length.into())?;
        if length < size(count)?.max(1) {
            return Err(Status::INVALID_VALUE);
        }
        self.vector::<T>("the workspace", pointer, length).map(|_| ())
    }

    /// Checks a workspace of the device, in bytes.
    ///
    /// # Errors
    /// If it is smaller than [`answer_bytes`] said, or not allocated.
    pub fn workspace_bytes<T: Scalar>(&self, pointer: Ptr, bytes: usize, count: i64) -> Result<(), Status> {
        if bytes < size(count)?.max(1).saturating_mul(T::KIND.bytes()) {
            return Err(Status::INVALID_VALUE);
        }
        let range = Range::of::<u8>(pointer.cast(), bytes, "the workspace", || format!("{bytes} bytes"));
        range.map(|_| ()).map_err(|error| self.refuse(&error))
    }

    /// The matrices that pointers in device memory name.
    ///
    /// # Errors
    /// If there are no such pointers.
    pub fn pointers(&self, what: &'static str, pointer: Ptr, count: usize) -> Result<Range, Status> {
        let range = Range::of::<u64>(pointer.cast(), count, what, || format!("{count} pointers"));
        range.map_err(|error| self.refuse(&error))
    }

    /// A matrix of those, when the work runs.
    ///
    /// # Errors
    /// If it is not allocated.
    pub fn member<T: Scalar>(
        &self,
        what: &str,
        (places, i): (Range, usize),
        shape: [usize; 2],
        ld: usize,
    ) -> Result<Matrix, Error> {
        let address = places.reach(self.name)?.read::<u64>()[i];
        let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
        Matrix::at(&format!("{what} {i}"), T::KIND, pointer, shape, ld).map_err(|error| self.broken(&error))
    }

    /// The values of a matrix.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn load<T: Scalar>(&self, matrix: Matrix) -> Result<Dense<T>, Error> {
        Ok(Dense::load(&matrix.reach(self.name)?, false))
    }

    /// A Hermitian matrix, of which one triangle is read, whole.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn hermitian<T: Scalar>(&self, matrix: Matrix, is_upper: bool) -> Result<Dense<T>, Error> {
        let from = matrix.reach(self.name)?;
        let n = matrix.columns;
        Ok(Dense::new(n, n, |i, j| match (i == j, (i < j) == is_upper) {
            (true, _) => T::real(from.read::<T>(i, j).re()),
            (_, true) => from.read(i, j),
            (_, false) => from.read::<T>(j, i).conjugate(),
        }))
    }

    /// The lower triangle of a matrix, or the adjoint of its upper one, with zeros.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn lower<T: Scalar>(&self, matrix: Matrix, is_upper: bool) -> Result<Dense<T>, Error> {
        let from = matrix.reach(self.name)?;
        let n = matrix.columns;
        Ok(Dense::new(n, n, |i, j| match (i < j, is_upper) {
            (true, _) => T::default(),
            (_, true) => from.read::<T>(j, i).conjugate(),
            (_, false) => from.read(i, j),
        }))
    }

    /// Writes the lower triangle of a matrix, or its adjoint as an upper one.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn store_lower<T: Scalar>(&self, matrix: Matrix, is_upper: bool, from: &Dense<T>) -> Done {
        let value = |i, j| if is_upper { from.at(j, i).conjugate() } else { from.at(i, j) };
        let into = matrix.reach(self.name)?;
        let region = Region::triangle(is_upper);
        accumulate(&into, region, T::default(), Some(&value), |_, _, new| new);
        Ok(())
    }

    /// Writes values to a matrix or vector, as many as it has rows and columns.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn store<T: Scalar>(&self, matrix: Matrix, value: impl Fn(usize, usize) -> T + Send + Sync) -> Done {
        let into = matrix.reach(self.name)?;
        accumulate(&into, Region::Full, T::default(), Some(&value), |_, _, new| new);
        Ok(())
    }

    /// Queues work.
    ///
    /// # Errors
    /// If the stream or the context is broken.
    pub fn submit(self, work: impl Fn() -> Done + Send + Sync + 'static) -> Result<(), Status> {
        Ok(submit(self.stream, self.name, work)?)
    }

    /// Queues work, and waits for it.
    ///
    /// # Errors
    /// If the work fails, or the stream captures a graph.
    pub fn submit_and_wait(self, work: impl Fn() -> Done + Send + Sync + 'static) -> Result<(), Status> {
        self.submit(work)?;
        Ok(synchronize(self.stream)?)
    }
}

/// A leading dimension.
///
/// # Errors
/// If it is less than the rows, or than 1.
pub fn leading(ld: i64, rows: usize) -> Result<usize, Status> {
    size(ld).ok().filter(|&ld| ld >= rows.max(1)).ok_or(Status::INVALID_VALUE)
}

/// Does the same for each member of a batch.
///
/// # Errors
/// If one of them fails.
pub fn for_each(count: usize, elements: usize, work: impl Fn(usize) -> Done + Send + Sync) -> Done {
    let failed = Mutex::new(None);
    each(count, elements.saturating_mul(count), |i| {
        if let Err(error) = work(i) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

impl Integers {
    /// Whether there are any.
    pub fn is_there(self) -> bool {
        self.range.is_some()
    }

    /// Writes one of them, if there are any.
    ///
    /// # Errors
    /// If their memory has gone.
    pub fn write(self, call: Call, index: usize, value: i64) -> Done {
        let Some(range) = self.range else { return Ok(()) };
        let memory = range.reach(call.name)?;
        match self.is_wide {
            true => memory.write(index, value),
            false => memory.write(index, value as i32),
        }
        Ok(())
    }

    /// Writes all of them, if there are any.
    ///
    /// # Errors
    /// If their memory has gone.
    pub fn write_all(self, call: Call, values: impl IntoIterator<Item = i64>) -> Done {
        values.into_iter().enumerate().try_for_each(|(i, value)| self.write(call, i, value))
    }

    /// Their values; none if there are none.
    ///
    /// # Errors
    /// If their memory has gone.
    pub fn read(self, call: Call) -> Result<Vec<i64>, Error> {
        let Some(range) = self.range else { return Ok(Vec::new()) };
        let memory = range.reach(call.name)?;
        Ok(match self.is_wide {
            true => memory.read::<i64>(),
            false => memory.read::<i32>().into_iter().map(i64::from).collect(),
        })
    }
}

/// The number of a kind of real numbers that belongs to a type.
pub fn real_kind<T: Scalar>(number: u32) -> Result<(), Status> {
    is_kind::<T::Real>(number)
}

/// Checks that a `cudaDataType` names a type.
///
/// # Errors
/// If it names another.
pub fn is_kind<T: Scalar>(number: u32) -> Result<(), Status> {
    match Kind::of(number) {
        Some(kind) if kind == T::KIND => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}
