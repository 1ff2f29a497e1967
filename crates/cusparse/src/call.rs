//! A call: its handle, and the scalars and arrays that the program passes. They are checked when the program calls, and reached when
//! the work runs in the stream.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use linalg::{Kind, Operation, Scalar};
use mathlib::{
    Error, Memory, OutOfBounds, Range, Stream, driver, is_capturing, is_of_device, submit, synchronize,
};

use crate::handle::{Handle, Ptr};
use crate::status::Status;

/// What work says when it ends.
pub type Done = Result<(), Error>;

/// A call of a function.
#[derive(Clone, Copy)]
pub struct Call {
    /// The function.
    pub name: &'static str,
    /// The stream of its work.
    pub stream: Stream,
    /// Whether scalars are in device memory.
    pub on_device: bool,
}

/// A scalar that the program passes: its value, or where it will be.
#[derive(Clone, Copy)]
pub enum Coefficient<T> {
    /// It was in memory of the host.
    Known(T),
    /// It is in device memory, of this kind.
    Device(Range, Kind),
}

/// The type of the numbers that a function computes with, and the kind of its scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// Integers of 32 bits, as `f64`: exact below 2^53.
    Integers,
    /// `f32`.
    Single,
    /// `f64`.
    Double,
    /// Complex `f32`.
    SingleComplex,
    /// Complex `f64`.
    DoubleComplex,
}

impl Compute {
    /// The kind of the scalars.
    pub fn kind(self) -> Kind {
        match self {
            Compute::Integers => Kind::I32,
            Compute::Single => Kind::R32,
            Compute::Double => Kind::R64,
            Compute::SingleComplex => Kind::C32,
            Compute::DoubleComplex => Kind::C64,
        }
    }

    /// The type that the manual pairs with a `computeType`, if the library computes with it.
    ///
    /// # Errors
    /// If it does not.
    pub fn of(number: u32) -> Result<Compute, Status> {
        match Kind::of(number) {
            Some(Kind::I32) => Ok(Compute::Integers),
            Some(Kind::R32) => Ok(Compute::Single),
            Some(Kind::R64) => Ok(Compute::Double),
            Some(Kind::C32) => Ok(Compute::SingleComplex),
            Some(Kind::C64) => Ok(Compute::DoubleComplex),
            _ => Err(Status::NOT_SUPPORTED),
        }
    }
}

/// Calls a generic function with the type for a [`Compute`].
macro_rules! with_type {
    ($compute:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $compute {
            $crate::call::Compute::Single => $function::<f32>($($argument),*),
            $crate::call::Compute::Double | $crate::call::Compute::Integers => $function::<f64>($($argument),*),
            $crate::call::Compute::SingleComplex => $function::<linalg::C32>($($argument),*),
            $crate::call::Compute::DoubleComplex => $function::<linalg::C64>($($argument),*),
        }
    };
}
pub(crate) use with_type;

/// Calls a generic function with a type that holds all values of a kind.
pub fn holder(kind: Kind) -> Compute {
    match kind {
        Kind::C32 => Compute::SingleComplex,
        Kind::C64 => Compute::DoubleComplex,
        Kind::R64 | Kind::I32 => Compute::Double,
        _ => Compute::Single,
    }
}

/// Numbers of a kind in device memory, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    range: Range,
    /// What the numbers are.
    pub kind: Kind,
    /// How many there are.
    pub count: usize,
}

/// How wide an index is (`cusparseIndexType_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits, with a sign.
    Int,
    /// 64 bits, with a sign.
    Long,
}

impl Width {
    /// The width with this number.
    ///
    /// # Errors
    /// If there is none. Indices of 16 bits have none, as in NVIDIA's library of CUDA 12.
    pub fn of(number: u32) -> Result<Width, Status> {
        match number {
            2 => Ok(Width::Int),
            3 => Ok(Width::Long),
            1 => Err(Status::NOT_SUPPORTED),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Width::Int => 2,
            Width::Long => 3,
        }
    }

    /// Its size in bytes.
    pub fn bytes(self) -> usize {
        if self == Width::Int { 4 } else { 8 }
    }
}

/// Indices in device memory.
#[derive(Clone, Copy, Debug)]
pub struct Indices {
    range: Range,
    /// How wide they are.
    pub width: Width,
    /// How many there are.
    pub count: usize,
}

/// A size that the program passes.
///
/// # Errors
/// If it is negative.
pub fn size(value: impl Into<i64>) -> Result<usize, Status> {
    usize::try_from(value.into()).map_err(|_| Status::INVALID_VALUE)
}

/// Sizes that the program passes.
///
/// # Errors
/// If one is negative.
pub fn sizes<const N: usize>(values: [c_int; N]) -> Result<[usize; N], Status> {
    match values.iter().all(|&value| value >= 0) {
        true => Ok(values.map(|value| value as usize)),
        false => Err(Status::INVALID_VALUE),
    }
}

/// A value of an enumeration with two values.
///
/// # Errors
/// If it is another.
pub fn either(number: u32) -> Result<bool, Status> {
    match number {
        0 | 1 => Ok(number == 1),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// What happens to a matrix before it is used (`cusparseOperation_t`).
///
/// # Errors
/// If there is no such operation.
pub fn operation(number: u32) -> Result<Operation, Status> {
    Operation::of(number).filter(|_| number < 3).ok_or(Status::INVALID_VALUE)
}

impl Call {
    /// Begins a call: finds the handle, and sees to it that a context is current.
    ///
    /// # Errors
    /// If there is no such handle, or no driver.
    pub fn begin(name: &'static str, handle: Ptr) -> Result<Call, Status> {
        let handle = Handle::of(handle)?;
        driver::enter(Some(handle.context)).map_err(|_| Status::NOT_INITIALIZED)?;
        let settings = *handle.settings();
        Ok(Call { name, stream: settings.stream, on_device: settings.on_device })
    }

    /// A mistake of the program that is found when it calls.
    pub fn refuse(self, message: &str) -> Status {
        driver::failed(self.name, message);
        Status::INVALID_VALUE
    }

    /// A mistake of the program that is found when the work runs.
    pub fn fault(self, message: &str) -> Error {
        driver::failed(self.name, message);
        Error::ILLEGAL_ADDRESS
    }

    /// A scalar of a kind.
    ///
    /// # Errors
    /// If the pointer is null, or not where the handle's pointer mode says.
    pub fn scalar<T: Scalar>(self, what: &str, pointer: Ptr, kind: Kind) -> Result<Coefficient<T>, Status> {
        if pointer.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        if self.on_device {
            let array = self.array(what, pointer, kind, 1, || "one value, pointer mode device".into())?;
            return Ok(Coefficient::Device(array.range, kind));
        }
        self.expect_host(what, pointer)?;
        // SAFETY: the program promises such a value, in memory of the host.
        Ok(Coefficient::Known(unsafe { linalg::read(kind, pointer.cast_const().cast(), 0) }))
    }

    /// Refuses memory that only the device can reach.
    fn expect_host(self, what: &str, pointer: Ptr) -> Result<(), Status> {
        // The addresses of the driver's device memory are not those of the host, unless the program asks for that.
        if pointer.addr() as u64 >= 1 << 47 && is_of_device(pointer.cast_const().cast::<u8>()) {
            return Err(self.refuse(&format!(
                "{what} at {pointer:?} is device memory, and the handle's pointer mode is host"
            )));
        }
        Ok(())
    }

    /// Numbers of the program.
    ///
    /// # Errors
    /// If they are not allocated.
    pub fn array(
        self,
        what: &str,
        pointer: Ptr,
        kind: Kind,
        count: usize,
        shape: impl Fn() -> String,
    ) -> Result<Array, Status> {
        array(what, pointer, kind, count, shape).map_err(|error| self.refuse(&error.to_string()))
    }

    /// Indices of the program.
    ///
    /// # Errors
    /// If they are not allocated.
    pub fn indices(self, what: &str, pointer: Ptr, width: Width, count: usize) -> Result<Indices, Status> {
        indices(what, pointer, width, count).map_err(|error| self.refuse(&error.to_string()))
    }

    /// Queues work.
    ///
    /// # Errors
    /// If the stream or the context is broken.
    pub fn submit(self, work: impl Fn() -> Done + Send + Sync + 'static) -> Result<(), Status> {
        Ok(submit(self.stream, self.name, work)?)
    }

    /// Queues work, waits for it, and returns its result.
    ///
    /// # Errors
    /// If the work fails, or the stream captures a graph.
    pub fn wait<R: Send + 'static>(
        self,
        work: impl Fn() -> Result<R, Error> + Send + Sync + 'static,
    ) -> Result<R, Status> {
        let result = Arc::new(Mutex::new(None));
        let into = Arc::clone(&result);
        self.submit(move || {
            *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(work()?);
            Ok(())
        })?;
        synchronize(self.stream)?;
        let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.ok_or(Status::EXECUTION_FAILED)
    }

    /// Queues work with one result of a kind, for the place that the handle's pointer mode says. One for the host is there when this
    /// returns, and that of a graph whenever the graph has run.
    ///
    /// # Errors
    /// If the place is null or of the wrong memory, or as for [`Call::wait`].
    pub fn deliver<T: Scalar>(
        self,
        pointer: Ptr,
        kind: Kind,
        work: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<(), Status> {
        if pointer.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        if self.on_device {
            let to =
                self.array("the result", pointer, kind, 1, || "one value, pointer mode device".into())?;
            return self.submit(move || to.store(self, 0, &[work()?]));
        }
        self.expect_host("the result", pointer)?;
        if is_capturing(self.stream)? {
            let place = pointer.expose_provenance();
            return self.submit(move || {
                let place = std::ptr::with_exposed_provenance_mut(place);
                // SAFETY: the program promises a place for such a value, in memory of the host, as long as the graph may run.
                unsafe { linalg::write(kind, place, 0, work()?) };
                Ok(())
            });
        }
        let value = self.wait(work)?;
        // SAFETY: the program promises a place for such a value, in memory of the host.
        unsafe { linalg::write(kind, pointer.cast(), 0, value) };
        Ok(())
    }
}

/// Numbers at a pointer.
fn array(
    what: &str,
    pointer: Ptr,
    kind: Kind,
    count: usize,
    shape: impl Fn() -> String,
) -> Result<Array, OutOfBounds> {
    let range = linalg::range(pointer, kind, count, what, &shape)?;
    Ok(Array { range, kind, count })
}

/// Indices at a pointer.
fn indices(what: &str, pointer: Ptr, width: Width, count: usize) -> Result<Indices, OutOfBounds> {
    let shape = || format!("{count} indices of {} bytes", width.bytes());
    let range = match width {
        Width::Int => Range::of::<i32>(pointer.cast(), count, what, shape),
        Width::Long => Range::of::<i64>(pointer.cast(), count, what, shape),
    };
    Ok(Indices { range: range?, width, count })
}

impl<T: Scalar> Coefficient<T> {
    /// The value, when the work runs.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn get(self, call: Call) -> Result<T, Error> {
        match self {
            Coefficient::Known(value) => Ok(value),
            Coefficient::Device(range, kind) => Ok(Array { range, kind, count: 1 }.load(call)?[0]),
        }
    }
}

impl Array {
    /// The numbers, when the work runs.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn reach(self, call: Call) -> Result<Reached, Error> {
        Ok(Reached { memory: self.range.reach(call.name)?, of: self })
    }

    /// Its values.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn load<T: Scalar>(self, call: Call) -> Result<Vec<T>, Error> {
        let reached = self.reach(call)?;
        Ok((0..self.count).map(|at| reached.get(at)).collect())
    }

    /// Writes values, from a place on.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn store<T: Scalar>(self, call: Call, at: usize, values: &[T]) -> Done {
        let reached = self.reach(call)?;
        values.iter().enumerate().for_each(|(i, &value)| reached.put(at + i, value));
        reached.wrote(at, values.len());
        Ok(())
    }

    /// Writes values to places.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn scatter<T: Scalar>(self, call: Call, values: impl Iterator<Item = (usize, T)>) -> Done {
        let reached = self.reach(call)?;
        // Runs of places are told as one.
        let mut run = 0..0;
        for (at, value) in values {
            reached.put(at, value);
            if at != run.end {
                reached.wrote(run.start, run.len());
                run.start = at;
            }
            run.end = at + 1;
        }
        reached.wrote(run.start, run.len());
        Ok(())
    }
}

/// Numbers that the host can reach.
pub struct Reached {
    memory: Memory,
    of: Array,
}

impl Reached {
    /// Reads a number.
    pub fn get<T: Scalar>(&self, at: usize) -> T {
        assert!(at < self.of.count, "a number beyond the array");
        // SAFETY: the range has this number.
        unsafe { linalg::read(self.of.kind, self.memory.pointer(), at as isize) }
    }

    /// Writes a number. [`Reached::wrote`] tells the driver.
    pub fn put<T: Scalar>(&self, at: usize, value: T) {
        assert!(at < self.of.count, "a number beyond the array");
        // SAFETY: the range has this number.
        unsafe { linalg::write(self.of.kind, self.memory.pointer(), at as isize, value) }
    }

    /// Tells the driver that numbers have been written.
    pub fn wrote(&self, at: usize, count: usize) {
        self.memory.wrote::<u8>(at * self.of.kind.bytes(), count * self.of.kind.bytes());
    }
}

impl Indices {
    /// Its values.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn load(self, call: Call) -> Result<Vec<i64>, Error> {
        let memory = self.range.reach(call.name)?;
        Ok(match self.width {
            Width::Int => memory.read::<i32>().into_iter().map(i64::from).collect(),
            Width::Long => memory.read(),
        })
    }

    /// Writes values, from the first place on.
    ///
    /// # Errors
    /// If the memory has gone, or a value is too large for the width.
    pub fn store(self, call: Call, values: impl ExactSizeIterator<Item = i64>) -> Done {
        let count = values.len();
        assert!(count <= self.count, "indices beyond the array");
        let memory = self.range.reach(call.name)?;
        for (at, value) in values.enumerate() {
            // SAFETY: the range has these values.
            unsafe {
                match self.width {
                    Width::Int => {
                        let value = i32::try_from(value)
                            .map_err(|_| call.fault(&format!("index {value} has more than 32 bits")))?;
                        memory.pointer::<i32>().add(at).write_unaligned(value);
                    }
                    Width::Long => memory.pointer::<i64>().add(at).write_unaligned(value),
                }
            }
        }
        memory.wrote::<u8>(0, count * self.width.bytes());
        Ok(())
    }
}
