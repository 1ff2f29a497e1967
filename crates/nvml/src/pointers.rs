//! Pointers that the program passes, with NVML's errors: see [`caller`].

use std::ffi::{c_char, c_uint};

use caller::Library;

use crate::status::Status;

/// NVML, as a library that the program calls.
pub struct Nvml;

impl Library for Nvml {
    type Error = Status;
    const NULL_POINTER: Status = Status::INVALID_ARGUMENT;
    const UNKNOWN_NAME: Status = Status::NOT_FOUND;
}

/// A place for a result, or for a value that a result replaces; or null.
pub type Out<'a, T> = caller::Out<'a, T, Nvml>;

/// A value of the program, or null.
pub type In<'a, T> = caller::In<'a, T, Nvml>;

/// A zero-terminated string of the program, or null.
pub type Text<'a> = caller::Text<'a, Nvml>;

/// Copies a text into a buffer of this length.
///
/// # Errors
/// If the pointer is null, or the buffer too short.
pub fn write_text(buffer: Out<'_, c_char>, length: c_uint, text: &str) -> Result<(), Status> {
    if !buffer.is_null() && text.len() >= length as usize {
        return Err(Status::INSUFFICIENT_SIZE);
    }
    text.bytes().chain([0]).enumerate().try_for_each(|(at, byte)| buffer.write_at(at, byte as c_char))
}

/// Hands out a list in NVML's way: `count` says how many values the array has room for, and is told how many there are.
///
/// # Errors
/// If `count` is null, or the array is null or too short.
pub fn write_list<T>(count: Out<'_, c_uint>, places: Out<'_, T>, values: Vec<T>) -> Result<(), Status> {
    let room = count.read()?;
    count.write(values.len() as c_uint)?;
    if values.len() > room as usize {
        return Err(Status::INSUFFICIENT_SIZE);
    }
    values.into_iter().enumerate().try_for_each(|(at, value)| places.write_at(at, value))
}

/// A text as a field of a structure, cut off where it does not fit.
pub fn field<const BYTES: usize>(text: &str) -> [c_char; BYTES] {
    let mut field = [0; BYTES];
    for (place, byte) in field.iter_mut().take(BYTES - 1).zip(text.bytes()) {
        *place = byte as c_char;
    }
    field
}
