//! Pointers that the program passes, as arguments of the functions of `api!`.
//!
//! The program promises what the manual says of them: a pointer that is not null is valid for what it points to until the function
//! returns. These types carry that promise, so their methods are safe. Only a call of the program makes them, or `new`, whose caller
//! makes the same promise. Pointers that are more than that (arrays, buffers, structures with pointers or enumerations in them) stay raw.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

use crate::Status;

const INVALID: Status = Status::CUDA_ERROR_INVALID_VALUE;

/// A place for a result, or null.
#[repr(transparent)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a T>);

/// A value that a result replaces, or null.
#[repr(transparent)]
pub struct InOut<'a, T>(*mut T, PhantomData<&'a T>);

/// A value of the program, or null.
#[repr(transparent)]
pub struct In<'a, T>(*const T, PhantomData<&'a T>);

/// A zero-terminated string of the program, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text<'a>(*const c_char, PhantomData<&'a c_char>);

/// Implements `Copy` for any `T`, which derived implementations would ask to be `Copy`.
macro_rules! copy {
    ($($pointer:ident)*) => {
        $(
            impl<T> Clone for $pointer<'_, T> {
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl<T> Copy for $pointer<'_, T> {}
        )*
    };
}
copy!(Out InOut In);

impl<T> Out<'_, T> {
    /// The place that a pointer names.
    ///
    /// # Safety
    /// If it is not null, there must be room for a `T` as long as the result lives.
    pub unsafe fn new(place: *mut T) -> Self {
        Out(place, PhantomData)
    }

    /// No place: no result is wanted.
    pub fn none() -> Self {
        Out(std::ptr::null_mut(), PhantomData)
    }

    /// Whether the program wants no result.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes a result.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn write(self, value: T) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(INVALID);
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

impl<T: Copy> InOut<'_, T> {
    /// The value that a pointer names.
    ///
    /// # Safety
    /// If it is not null, it must point to a `T` as long as the result lives.
    pub unsafe fn new(place: *mut T) -> Self {
        InOut(place, PhantomData)
    }

    /// Reads the value.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn read(self) -> Result<T, Status> {
        In(self.0, PhantomData).read()
    }

    /// Writes a result.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn write(self, value: T) -> Result<(), Status> {
        Out(self.0, PhantomData).write(value)
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

    /// The pointer.
    pub fn pointer(self) -> *const T {
        self.0
    }

    /// Reads the value.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn read(self) -> Result<T, Status> {
        if self.0.is_null() {
            return Err(INVALID);
        }
        // SAFETY: the program promises a `T`.
        Ok(unsafe { self.0.read() })
    }
}

impl<'a> Text<'a> {
    /// Whether the program passes no string.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The bytes of the string, without the zero at its end.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn bytes(self) -> Result<&'a [u8], Status> {
        if self.0.is_null() {
            return Err(INVALID);
        }
        // SAFETY: the program promises a zero-terminated string.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }

    /// The name of a kernel or variable.
    ///
    /// # Errors
    /// If the pointer is null, or nothing has such a name.
    pub fn name(self) -> Result<&'a str, Status> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Status::CUDA_ERROR_NOT_FOUND)
    }
}

/// Writes a result to a place whose type depends on other arguments.
///
/// # Errors
/// If the pointer is null.
///
/// # Safety
/// A non-null pointer must point to a place for a `T`.
pub unsafe fn write<T>(place: *mut T, value: T) -> Result<(), Status> {
    Out(place, PhantomData).write(value)
}

/// Reads a value whose type depends on other arguments.
///
/// # Errors
/// If the pointer is null.
///
/// # Safety
/// A non-null pointer must point to a `T`.
pub unsafe fn read<T: Copy>(place: *const T) -> Result<T, Status> {
    In(place, PhantomData).read()
}

/// Reads `count` values.
///
/// # Errors
/// If the pointer is null and `count` is not 0.
///
/// # Safety
/// A non-null pointer must point to `count` values.
pub unsafe fn read_all<T: Copy>(place: *const T, count: usize) -> Result<Vec<T>, Status> {
    match count {
        0 => Ok(Vec::new()),
        _ if place.is_null() => Err(INVALID),
        // SAFETY: the caller's promise.
        _ => Ok((0..count).map(|i| unsafe { place.add(i).read() }).collect()),
    }
}
