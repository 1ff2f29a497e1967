//! Pointers that the program passes, as arguments of the functions of `api!`.
//!
//! The program promises what the manual says of them: a pointer that is not null is valid for what it points to until the function
//! returns, and another argument says how many values an array has. These types carry that promise, so their methods are safe. Only a
//! call of the program makes them, or `new`, whose caller makes the same promise. Pointers that are more than that (buffers) stay
//! raw. Structures with enumerations or pointers in them have numbers there (`structures.rs`).

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// A library that the program calls.
pub trait Library {
    /// What its functions return if they fail.
    type Error;
    /// A pointer is null.
    const NULL_POINTER: Self::Error;
    /// Nothing has such a name.
    const UNKNOWN_NAME: Self::Error;
}

/// A place of the program for a result or an array of them, or for a value that a result replaces; or null.
#[repr(transparent)]
pub struct Out<'a, T, L>(*mut T, PhantomData<(&'a T, L)>);

/// A value or an array of the program, or null.
#[repr(transparent)]
pub struct In<'a, T, L>(*const T, PhantomData<(&'a T, L)>);

/// A zero-terminated string of the program, or null.
#[repr(transparent)]
pub struct Text<'a, L>(*const c_char, PhantomData<(&'a c_char, L)>);

/// Implements `Copy` for any `T` and library, which derived implementations would ask to be `Copy`.
macro_rules! copy {
    ($($pointer:ident<$($of:ident),*>)*) => {
        $(
            impl<$($of),*> Clone for $pointer<'_, $($of),*> {
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl<$($of),*> Copy for $pointer<'_, $($of),*> {}
        )*
    };
}
copy!(Out<T, L> In<T, L> Text<L>);

impl<T, L: Library> Out<'_, T, L> {
    /// The place that a pointer names.
    ///
    /// # Safety
    /// If it is not null, there must be room for a `T` as long as the result lives, and a `T` in it if it is read.
    pub unsafe fn new(place: *mut T) -> Self {
        Out(place, PhantomData)
    }

    /// No place: no result is wanted.
    pub fn none() -> Self {
        Out(std::ptr::null_mut(), PhantomData)
    }

    /// The pointer.
    pub fn pointer(self) -> *mut T {
        self.0
    }

    /// Whether the program wants no result.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes a result.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn write(self, value: T) -> Result<(), L::Error> {
        self.write_at(0, value)
    }

    /// Writes a result to a place of an array, which the program says to have it.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn write_at(self, index: usize, value: T) -> Result<(), L::Error> {
        if self.0.is_null() {
            return Err(L::NULL_POINTER);
        }
        // SAFETY: the program promises room for these values.
        unsafe { self.0.add(index).write(value) };
        Ok(())
    }

    /// Writes a result unless the pointer is null.
    pub fn write_if_wanted(self, value: T) {
        // It fails only if the pointer is null.
        let _ = self.write(value);
    }

    /// The value that is there.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn read(self) -> Result<T, L::Error>
    where
        T: Copy,
    {
        self.read_at(0)
    }

    /// A value of an array, which the program says to have it.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn read_at(self, index: usize) -> Result<T, L::Error>
    where
        T: Copy,
    {
        if self.0.is_null() {
            return Err(L::NULL_POINTER);
        }
        // SAFETY: the program promises these values.
        Ok(unsafe { self.0.add(index).read() })
    }
}

impl<T: Copy, L: Library> In<'_, T, L> {
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
    pub fn read(self) -> Result<T, L::Error> {
        if self.0.is_null() {
            return Err(L::NULL_POINTER);
        }
        // SAFETY: the program promises a `T`.
        Ok(unsafe { self.0.read() })
    }

    /// Reads the values of an array, which the program says to have so many.
    ///
    /// # Errors
    /// If the pointer is null and there are values.
    pub fn read_all(self, count: usize) -> Result<Vec<T>, L::Error> {
        if self.0.is_null() && count > 0 {
            return Err(L::NULL_POINTER);
        }
        // SAFETY: the program promises these values.
        Ok((0..count).map(|i| unsafe { self.0.add(i).read() }).collect())
    }

    /// Reads the value unless the pointer is null.
    pub fn read_if_given(self) -> Option<T> {
        self.read().ok()
    }
}

impl<'a, L: Library> Text<'a, L> {
    /// Whether the program passes no string.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The bytes of the string, without the zero at its end.
    ///
    /// # Errors
    /// If the pointer is null.
    pub fn bytes(self) -> Result<&'a [u8], L::Error> {
        if self.0.is_null() {
            return Err(L::NULL_POINTER);
        }
        // SAFETY: the program promises a zero-terminated string.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }

    /// A name.
    ///
    /// # Errors
    /// If the pointer is null, or nothing has such a name.
    pub fn name(self) -> Result<&'a str, L::Error> {
        std::str::from_utf8(self.bytes()?).map_err(|_| L::UNKNOWN_NAME)
    }
}
