//! Access through pointers that the program passes.

use crate::Status;

/// Writes a result to a place of the program.
///
/// # Errors
/// If the pointer is null.
///
/// # Safety
/// A non-null pointer must point to a place for a `T`.
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
/// If the pointer is null.
///
/// # Safety
/// A non-null pointer must point to a `T`.
pub unsafe fn read<T: Copy>(place: *const T) -> Result<T, Status> {
    if place.is_null() {
        return Err(Status::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { place.read() })
}

/// Reads `count` values of the program.
///
/// # Errors
/// If the pointer is null and `count` is not 0.
///
/// # Safety
/// A non-null pointer must point to `count` values.
pub unsafe fn read_all<T: Copy>(place: *const T, count: usize) -> Result<Vec<T>, Status> {
    match count {
        0 => Ok(Vec::new()),
        _ if place.is_null() => Err(Status::CUDA_ERROR_INVALID_VALUE),
        // SAFETY: the caller's promise.
        _ => Ok((0..count).map(|i| unsafe { place.add(i).read() }).collect()),
    }
}

/// The bytes of a string of the program, without the zero at its end.
///
/// # Errors
/// If the pointer is null.
///
/// # Safety
/// A non-null pointer must point to a zero-terminated string.
pub unsafe fn text<'a>(place: *const std::ffi::c_char) -> Result<&'a [u8], Status> {
    if place.is_null() {
        return Err(Status::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::ffi::CStr::from_ptr(place) }.to_bytes())
}
