//! What the program's numbers of enumerations mean.

use linalg::{Kind, Operation};

use crate::status::Status;

/// `cublasOperation_t`.
///
/// # Errors
/// If it is another number.
pub fn operation(number: u32) -> Result<Operation, Status> {
    Operation::of(number).ok_or(Status::INVALID_VALUE)
}

/// Only what functions of triangular and banded matrices take: no conjugate without transposition.
///
/// # Errors
/// If there is no such operation.
pub fn plain(number: u32) -> Result<Operation, Status> {
    if number == 3 { Err(Status::INVALID_VALUE) } else { operation(number) }
}

/// A value of an enumeration with two values: lower or upper, left or right, non-unit or unit.
///
/// # Errors
/// If it is another.
pub fn either(number: u32) -> Result<bool, Status> {
    match number {
        0 | 1 => Ok(number == 1),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// The kind of scalars, and whether the numbers are real, of `cudaDataType` numbers that functions take.
///
/// # Errors
/// If the library has no such type.
pub fn kind(number: u32) -> Result<Kind, Status> {
    Kind::of(number).ok_or(Status::NOT_SUPPORTED)
}
