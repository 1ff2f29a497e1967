//! Pointers that the program passes, with the runtime's errors: see [`caller`]. Pointers that are only passed on to the driver stay raw.

use caller::Library;

use crate::error::Error;

/// The runtime, as a library that the program calls.
pub struct Runtime;

impl Library for Runtime {
    type Error = Error;
    const NULL_POINTER: Error = Error::INVALID_VALUE;
    const UNKNOWN_NAME: Error = Error::SYMBOL_NOT_FOUND;
}

/// A place for a result, or null.
pub type Out<'a, T> = caller::Out<'a, T, Runtime>;

/// A value of the program, or null.
pub type In<'a, T> = caller::In<'a, T, Runtime>;
