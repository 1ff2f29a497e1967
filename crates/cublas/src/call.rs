//! A call: its handle, and the scalars, vectors and matrices that the program passes. They are checked when the program calls, and
//! reached when the work runs in the stream.

use std::sync::{Arc, Mutex, PoisonError};

use linalg::{Kind, Matrix, Scalar, Vector};
use mathlib::{Error, OutOfBounds, Range, Stream, driver, is_of_device, submit, synchronize};

use crate::declare::Ptr;
use crate::handle::Handle;
use crate::status::Status;

/// A call of a function.
#[derive(Clone, Copy)]
pub struct Call {
    /// The function.
    pub name: &'static str,
    /// The stream of its work.
    pub stream: Stream,
    /// Whether scalars are in device memory.
    pub on_device: bool,
    /// `cublasMath_t`.
    pub math: u32,
    /// Whether integers of the program have 64 bits.
    pub is_wide: bool,
}

/// What work says if it fails.
pub type Done = Result<(), Error>;

/// A scalar that the program passes: its value, or where it will be.
#[derive(Clone, Copy)]
pub enum Coefficient<T> {
    /// It was in memory of the host.
    Known(T),
    /// It is in device memory, of this kind.
    Device(Range, Kind),
}

impl<T: Scalar> Coefficient<T> {
    /// The value, when the work runs.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn get(self, call: Call) -> Result<T, Error> {
        match self {
            Coefficient::Known(value) => Ok(value),
            Coefficient::Device(range, kind) => {
                let memory = range.reach(call.name)?;
                // SAFETY: the range is one element.
                Ok(unsafe { linalg::read(kind, memory.pointer(), 0) })
            }
        }
    }
}

/// Where a result goes.
#[derive(Clone, Copy)]
pub enum Destination {
    /// To memory of the host, when the function returns.
    Host(usize, Kind),
    /// To device memory, in stream order.
    Device(Range, Kind),
}

/// A size that the program passes.
///
/// # Errors
/// If it is negative.
pub fn size(value: i64) -> Result<usize, Status> {
    usize::try_from(value).map_err(|_| Status::INVALID_VALUE)
}

/// Reports memory that does not suffice.
pub fn refuse(call: &str, error: &OutOfBounds) -> Status {
    driver::failed(call, &error.to_string());
    Status::INVALID_VALUE
}

impl Call {
    /// Begins a call: finds the handle, and sees to it that a context is current.
    ///
    /// # Errors
    /// If there is no such handle, or no driver.
    pub fn begin(name: &'static str, handle: Ptr, is_wide: bool) -> Result<Call, Status> {
        let handle = Handle::of(handle)?;
        driver::enter(Some(handle.context)).map_err(|_| Status::NOT_INITIALIZED)?;
        let settings = *handle.settings();
        Ok(Call {
            name,
            stream: settings.stream,
            on_device: settings.on_device,
            math: settings.math,
            is_wide,
        })
    }

    /// Begins a call of cuBLASLt, which names its stream itself.
    ///
    /// # Errors
    /// If there is no such handle, or no driver.
    pub fn light(name: &'static str, handle: Ptr, stream: Ptr, on_device: bool) -> Result<Call, Status> {
        let call = Call::begin(name, handle, true)?;
        Ok(Call { stream: Stream::of(stream), on_device, ..call })
    }

    /// A scalar of a kind.
    ///
    /// # Errors
    /// If the pointer is null, or not where the handle's pointer mode says.
    pub fn scalar_of<T: Scalar>(
        &self,
        what: &str,
        pointer: Ptr,
        kind: Kind,
    ) -> Result<Coefficient<T>, Status> {
        if pointer.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        if self.on_device {
            let range = linalg::range(pointer, kind, 1, what, &|| "one value, pointer mode device".into());
            return Ok(Coefficient::Device(range.map_err(|error| refuse(self.name, &error))?, kind));
        }
        self.expect_host(what, pointer)?;
        // SAFETY: the program promises such a value, in memory of the host.
        Ok(Coefficient::Known(unsafe { linalg::read(kind, pointer.cast_const().cast(), 0) }))
    }

    /// A scalar of the type that the function computes with.
    ///
    /// # Errors
    /// As for [`Call::scalar_of`].
    pub fn scalar<T: Scalar>(&self, what: &str, pointer: Ptr) -> Result<Coefficient<T>, Status> {
        self.scalar_of(what, pointer, T::KIND)
    }

    /// Refuses memory that only the device can reach.
    fn expect_host(&self, what: &str, pointer: Ptr) -> Result<(), Status> {
        // The addresses of the driver's device memory are not those of the host, unless the program asks for that.
        if pointer.addr() as u64 >= 1 << 47 && is_of_device(pointer.cast_const().cast::<u8>()) {
            let message =
                format!("{what} at {pointer:?} is device memory, and the handle's pointer mode is host");
            driver::failed(self.name, &message);
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }

    /// A place for a result of a kind.
    ///
    /// # Errors
    /// As for [`Call::scalar_of`].
    pub fn destination(&self, pointer: Ptr, kind: Kind) -> Result<Destination, Status> {
        if pointer.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        if self.on_device {
            let range =
                linalg::range(pointer, kind, 1, "the result", &|| "one value, pointer mode device".into());
            return Ok(Destination::Device(range.map_err(|error| refuse(self.name, &error))?, kind));
        }
        self.expect_host("the result", pointer)?;
        Ok(Destination::Host(pointer.expose_provenance(), kind))
    }

    /// A vector. A negative step begins at its end.
    ///
    /// # Errors
    /// If it is not allocated.
    pub fn vector(
        &self,
        what: &str,
        kind: Kind,
        pointer: Ptr,
        count: usize,
        step: i64,
    ) -> Result<Vector, Status> {
        Vector::at(what, kind, pointer, count, step).map_err(|error| refuse(self.name, &error))
    }

    /// Elements one after the other: a packed matrix.
    ///
    /// # Errors
    /// If they are not allocated.
    pub fn packed(&self, what: &str, kind: Kind, pointer: Ptr, order: usize) -> Result<Matrix, Status> {
        Matrix::packed(what, kind, pointer, order).map_err(|error| refuse(self.name, &error))
    }

    /// A matrix.
    ///
    /// # Errors
    /// If its columns overlap, or it is not allocated.
    pub fn matrix(
        &self,
        what: &str,
        kind: Kind,
        pointer: Ptr,
        [rows, columns]: [usize; 2],
        ld: i64,
    ) -> Result<Matrix, Status> {
        let ld = leading(ld, rows)?;
        Matrix::at(what, kind, pointer, [rows, columns], ld).map_err(|error| refuse(self.name, &error))
    }

    /// Queues work.
    ///
    /// # Errors
    /// If the stream or the context is broken.
    pub fn submit(self, work: impl Fn() -> Done + Send + Sync + 'static) -> Result<(), Status> {
        Ok(submit(self.stream, self.name, work)?)
    }

    /// Queues work with one result. One for the host is there when this returns.
    ///
    /// # Errors
    /// If the work fails, or the stream captures a graph and the result is for the host.
    pub fn deliver<T: Scalar>(
        self,
        to: Destination,
        work: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<(), Status> {
        self.deliver_with(to, work, |kind, place, value| {
            // SAFETY: the place is for one element of the kind.
            unsafe { linalg::write(kind, place, 0, value) }
        })
    }

    /// The same for a result of any type, which `write` writes.
    ///
    /// # Errors
    /// As for [`Call::deliver`].
    pub fn deliver_with<V: Copy + Send + 'static>(
        self,
        to: Destination,
        work: impl Fn() -> Result<V, Error> + Send + Sync + 'static,
        write: impl Fn(Kind, *mut u8, V) + Send + Sync + 'static,
    ) -> Result<(), Status> {
        match to {
            Destination::Device(range, kind) => self.submit(move || {
                let value = work()?;
                let memory = range.reach(self.name)?;
                write(kind, memory.pointer(), value);
                memory.wrote::<u8>(0, kind.bytes());
                Ok(())
            }),
            Destination::Host(place, kind) => {
                let result = Arc::new(Mutex::new(None));
                let into = Arc::clone(&result);
                self.submit(move || {
                    *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(work()?);
                    Ok(())
                })?;
                synchronize(self.stream)?;
                let value = *result.lock().unwrap_or_else(PoisonError::into_inner);
                write(
                    kind,
                    std::ptr::with_exposed_provenance_mut(place),
                    value.ok_or(Status::EXECUTION_FAILED)?,
                );
                Ok(())
            }
        }
    }
}

/// A leading dimension.
///
/// # Errors
/// If it is less than the rows, or than 1.
pub fn leading(ld: i64, rows: usize) -> Result<usize, Status> {
    size(ld).ok().filter(|&ld| ld >= rows.max(1)).ok_or(Status::INVALID_VALUE)
}

/// A matrix whose pointer lies in device memory, when the work runs.
///
/// # Errors
/// If it is not allocated.
pub fn matrix_of(
    call: Call,
    what: &str,
    kind: Kind,
    pointer: Ptr,
    shape: [usize; 2],
    ld: usize,
) -> Result<Matrix, Error> {
    Matrix::at(what, kind, pointer, shape, ld).map_err(|error| {
        driver::failed(call.name, &error.to_string());
        Error::ILLEGAL_ADDRESS
    })
}
