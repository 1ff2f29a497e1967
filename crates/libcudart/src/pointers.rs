//! Pointers that the program passes, as arguments of the functions of `api!`.
//!
//! The program promises what the manual says of them: a pointer that is not null is valid for what it points to until the function
//! returns. These types carry that promise, so their methods are safe. Only a call of the program makes them, or `new`, whose caller
//! makes the same promise. Pointers that are only passed on to the driver stay raw.

use std::marker::PhantomData;

use crate::error::Error;

/// A place for a result, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Out<'a, T: Copy>(*mut T, PhantomData<&'a T>);

/// A value of the program, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct In<'a, T: Copy>(*const T, PhantomData<&'a T>);

impl<T: Copy> Out<'_, T> {
    /// The place that a pointer names.
    ///
    /// # Safety
    /// If it is not null, there must be room for a `T` as long as the result lives.
    pub unsafe fn new(place: *mut T) -> Self {
        Out(place, PhantomData)
    }

    /// The pointer, for functions of the driver.
    pub fn pointer(self) -> *mut T {
        self.0
    }

    /// Writes a result.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn write(self, value: T) -> Result<(), Error> {
        if self.0.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: the program promises a place for a `T`.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes a result unless the pointer is null.
    pub fn write_if_wanted(self, value: T) {
        // It fails only if the pointer is null.
        let _ = self.write(value);
    }
}

impl<T: Copy> In<'_, T> {
    /// The value that a pointer names.
    ///
    /// # Safety
    /// If it is not null, it must point to a `T` as long as the result lives.
    pub unsafe fn new(place: *const T) -> Self {
        In(place, PhantomData)
    }

    /// Reads the value.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn read(self) -> Result<T, Error> {
        if self.0.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        // SAFETY: the program promises a `T`.
        Ok(unsafe { self.0.read() })
    }
}
