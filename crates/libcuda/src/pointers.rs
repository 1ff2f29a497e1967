//! Pointers that the program passes, with the driver's errors: see [`caller`].

use caller::Library;

use crate::{INVALID, Status};

/// The driver, as a library that the program calls.
pub struct Driver;

impl Library for Driver {
    type Error = Status;
    const NULL_POINTER: Status = INVALID;
    const UNKNOWN_NAME: Status = Status::CUDA_ERROR_NOT_FOUND;
}

/// A place for a result, or null.
pub type Out<'a, T> = caller::Out<'a, T, Driver>;

/// A value that a result replaces, or null.
pub type InOut<'a, T> = Out<'a, T>;

/// A value of the program, or null.
pub type In<'a, T> = caller::In<'a, T, Driver>;

/// A zero-terminated string of the program, or null.
pub type Text<'a> = caller::Text<'a, Driver>;

/// Checks a pointer that is used later.
///
/// # Errors
/// If it is null.
pub fn required<T>(pointer: *const T) -> Result<(), Status> {
    if pointer.is_null() { Err(Driver::NULL_POINTER) } else { Ok(()) }
}

/// Writes a result to a place whose type depends on other arguments.
///
/// # Errors
/// If the pointer is null.
///
/// # Safety
/// A non-null pointer must point to a place for a `T`.
pub unsafe fn write<T>(place: *mut T, value: T) -> Result<(), Status> {
    // SAFETY: the caller's promise.
    unsafe { Out::new(place) }.write(value)
}

/// Reads a value whose type depends on other arguments.
///
/// # Errors
/// If the pointer is null.
///
/// # Safety
/// A non-null pointer must point to a `T`.
pub unsafe fn read<T: Copy>(place: *const T) -> Result<T, Status> {
    // SAFETY: the caller's promise.
    unsafe { In::new(place) }.read()
}
