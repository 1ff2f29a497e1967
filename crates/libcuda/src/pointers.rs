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

/// Bytes of the program, or null: the manual says how many, which depends on other arguments.
pub type Bytes<'a> = InOut<'a, u8>;

/// Checks a pointer that is used later.
///
/// # Errors
/// If it is null.
pub fn required<T>(pointer: *const T) -> Result<(), Status> {
    if pointer.is_null() { Err(Driver::NULL_POINTER) } else { Ok(()) }
}

/// Writes a result to a place whose size depends on other arguments.
///
/// # Errors
/// If the pointer is null and there are bytes.
pub fn write_bytes(place: Bytes, bytes: &[u8]) -> Result<(), Status> {
    bytes.iter().enumerate().try_for_each(|(i, &byte)| place.write_at(i, byte))
}

/// Reads a value from a place whose size depends on other arguments.
///
/// # Errors
/// If the pointer is null and there are bytes.
pub fn read_bytes(place: Bytes, bytes: &mut [u8]) -> Result<(), Status> {
    bytes.iter_mut().enumerate().try_for_each(|(i, byte)| place.read_at(i).map(|value| *byte = value))
}

/// Reads a value of this size.
///
/// # Errors
/// If the pointer is null.
pub fn read<const BYTES: usize>(place: Bytes) -> Result<[u8; BYTES], Status> {
    let mut bytes = [0; BYTES];
    read_bytes(place, &mut bytes)?;
    Ok(bytes)
}
