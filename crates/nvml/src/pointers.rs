//! Pointers that the program passes.
//!
//! The program promises what the manual says of them: a pointer that is not null is valid for what it points to until the function
//! returns. These types carry that promise, so their methods are safe. Only a call of the program makes them.

use std::ffi::{CStr, c_char, c_uint};
use std::marker::PhantomData;

use crate::status::Status;

/// A place for a result, or for a value that a result replaces; or null.
#[repr(transparent)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a T>);

/// A value of the program, or null.
#[repr(transparent)]
pub struct In<'a, T>(*const T, PhantomData<&'a T>);

/// A zero-terminated string of the program, or null.
#[repr(transparent)]
pub struct Text<'a>(*const c_char, PhantomData<&'a c_char>);

impl<T> Clone for Out<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<'_, T> {}

impl<T> Out<'_, T> {
    /// Writes a result.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn write(self, value: T) -> Result<(), Status> {
        self.write_at(0, value)
    }

    /// Writes a result to a place of an array, which the program says to have it.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn write_at(self, index: usize, value: T) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        // SAFETY: the program promises room for these values.
        unsafe { self.0.add(index).write(value) };
        Ok(())
    }

    /// The value that is there.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn read(self) -> Result<T, Status>
    where
        T: Copy,
    {
        self.read_at(0)
    }

    /// A value of an array, which the program says to have it.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn read_at(self, index: usize) -> Result<T, Status>
    where
        T: Copy,
    {
        if self.0.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        // SAFETY: the program promises these values.
        Ok(unsafe { self.0.add(index).read() })
    }
}

impl<T: Copy> In<'_, T> {
    /// Reads the value.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn read(self) -> Result<T, Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        // SAFETY: the program promises a `T`.
        Ok(unsafe { self.0.read() })
    }
}

impl<'a> Text<'a> {
    /// The text, if it is one.
    ///
    /// # Errors
    /// If the pointer is null, or these bytes are no text: nothing here has such a name.
    pub fn text(self) -> Result<&'a str, Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        // SAFETY: the program promises a zero-terminated string.
        unsafe { CStr::from_ptr(self.0) }.to_str().map_err(|_| Status::NOT_FOUND)
    }
}

/// A buffer for a text, with the length that the program gives for it.
impl Out<'_, c_char> {
    /// Copies a text into the buffer.
    ///
    /// # Errors
    /// If the pointer is null, or the buffer too short.
    pub fn write_text(self, length: c_uint, text: &str) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        if text.len() >= length as usize {
            return Err(Status::INSUFFICIENT_SIZE);
        }
        for (at, byte) in text.bytes().chain([0]).enumerate() {
            self.write_at(at, byte as c_char)?;
        }
        Ok(())
    }
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
