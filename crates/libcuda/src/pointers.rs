//! Pointers that the program passes.

use crate::Status;

/// Writes a result where the program wants it.
///
/// # Errors
/// When that is nowhere.
///
/// # Safety
/// What is not null must point to a place for a `T`.
pub unsafe fn write<T>(place: *mut T, value: T) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// Reads a value of the program.
///
/// # Errors
/// When there is none.
///
/// # Safety
/// What is not null must point to a `T`.
pub unsafe fn read<T: Copy>(place: *const T) -> Result<T, Status> {
    if place.is_null() {
        return Err(Status::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { place.read() })
}

/// Reads so many values of the program.
///
/// # Errors
/// When there are some, and they are nowhere.
///
/// # Safety
/// What is not null must point to so many.
pub unsafe fn read_all<T: Copy>(place: *const T, count: usize) -> Result<Vec<T>, Status> {
    match count {
        0 => Ok(Vec::new()),
        _ if place.is_null() => Err(Status::CUDA_ERROR_INVALID_VALUE),
        // SAFETY: the caller's promise.
        _ => Ok((0..count).map(|i| unsafe { place.add(i).read() }).collect()),
    }
}

/// Bytes of a text of the program, without the zero at its end.
///
/// # Errors
/// When there is none.
///
/// # Safety
/// What is not null must end in a zero.
pub unsafe fn text<'a>(place: *const std::ffi::c_char) -> Result<&'a [u8], Status> {
    if place.is_null() {
        return Err(Status::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::ffi::CStr::from_ptr(place) }.to_bytes())
}
