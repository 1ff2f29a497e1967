//! The errors that functions return, and the last error of each thread.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};

use crate::api::api;
use crate::driver::cu;
use crate::names::NAMES;

/// A `cudaError_t` other than success. The driver's errors have the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub u32);

#[allow(missing_docs)]
impl Error {
    pub const INVALID_VALUE: Error = Error(1);
    /// A call from a destructor, after the values of its thread have been dropped.
    pub const UNLOADING: Error = Error(4);
    pub const INVALID_CONFIGURATION: Error = Error(9);
    pub const INVALID_SYMBOL: Error = Error(13);
    pub const INVALID_CHANNEL_DESCRIPTOR: Error = Error(20);
    pub const INVALID_MEMCPY_DIRECTION: Error = Error(21);
    pub const INSUFFICIENT_DRIVER: Error = Error(35);
    pub const CALL_REQUIRES_NEWER_DRIVER: Error = Error(36);
    pub const MISSING_CONFIGURATION: Error = Error(52);
    pub const INVALID_DEVICE_FUNCTION: Error = Error(98);
    pub const INVALID_DEVICE: Error = Error(101);
    pub const INVALID_RESOURCE_HANDLE: Error = Error(400);
    pub const SYMBOL_NOT_FOUND: Error = Error(500);
    pub const NOT_SUPPORTED: Error = Error(801);
    pub const UNKNOWN: Error = Error(999);

    /// Its name.
    pub fn name(self) -> &'static str {
        describe(self.0).map_or("an unknown error", |(name, _)| name.to_str().unwrap_or_default())
    }
}

/// The name and description of an error, if the number is one. The description is empty if the driver has it.
fn describe(number: u32) -> Option<(&'static CStr, &'static CStr)> {
    NAMES
        .binary_search_by_key(&number, |(number, ..)| *number)
        .ok()
        .map(|index| (NAMES[index].1, NAMES[index].2))
}

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// Makes an error the last one of this thread.
pub fn remember(error: Error) {
    LAST.set(error.0);
}

api! { API:
    /// The last error of this thread, which is forgotten then.
    fn cudaGetLastError() -> c_int {
        LAST.replace(0) as c_int
    }
    /// The last error of this thread.
    fn cudaPeekAtLastError() -> c_int {
        LAST.get() as c_int
    }
    /// The name of an error.
    fn cudaGetErrorName(error: c_int) -> *const c_char {
        describe(error as u32).map_or(c"unrecognized error code", |(name, _)| name).as_ptr()
    }
    /// What an error means.
    fn cudaGetErrorString(error: c_int) -> *const c_char {
        let (name, text) = describe(error as u32).unwrap_or((c"unrecognized error code", c"unrecognized error code"));
        let mut of_driver = std::ptr::null::<c_char>();
        if text.is_empty() && cu!(cuGetErrorString(error, &raw mut of_driver)).is_ok() && !of_driver.is_null() {
            return of_driver;
        }
        if text.is_empty() { name.as_ptr() } else { text.as_ptr() }
    }
}
