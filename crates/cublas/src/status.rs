//! What functions return, and the texts for it.

use std::ffi::{CStr, c_char, c_uint};

use mathlib::Function;

/// `cublasStatus_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

#[allow(missing_docs, reason = "the manual's names")]
impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const NOT_INITIALIZED: Status = Status(1);
    pub const ALLOC_FAILED: Status = Status(3);
    pub const INVALID_VALUE: Status = Status(7);
    pub const MAPPING_ERROR: Status = Status(11);
    pub const EXECUTION_FAILED: Status = Status(13);
    pub const INTERNAL_ERROR: Status = Status(14);
    pub const NOT_SUPPORTED: Status = Status(15);
}

mathlib::status!(Status: NOT_INITIALIZED, ALLOC_FAILED, INVALID_VALUE, EXECUTION_FAILED);

/// The name of a status.
pub fn name(status: u32) -> &'static CStr {
    match status {
        0 => c"CUBLAS_STATUS_SUCCESS",
        1 => c"CUBLAS_STATUS_NOT_INITIALIZED",
        3 => c"CUBLAS_STATUS_ALLOC_FAILED",
        7 => c"CUBLAS_STATUS_INVALID_VALUE",
        8 => c"CUBLAS_STATUS_ARCH_MISMATCH",
        11 => c"CUBLAS_STATUS_MAPPING_ERROR",
        13 => c"CUBLAS_STATUS_EXECUTION_FAILED",
        14 => c"CUBLAS_STATUS_INTERNAL_ERROR",
        15 => c"CUBLAS_STATUS_NOT_SUPPORTED",
        16 => c"CUBLAS_STATUS_LICENSE_ERROR",
        _ => c"unknown status",
    }
}

/// What a status means, in our words.
pub fn describe(status: u32) -> &'static CStr {
    match status {
        0 => c"success",
        1 => c"there is no such handle, or no driver",
        3 => c"out of memory",
        7 => c"an argument has a value that the function does not take",
        8 => c"the device lacks what the function needs",
        11 => c"memory cannot be reached",
        13 => c"the work failed on the device",
        14 => c"the library failed",
        15 => c"not supported",
        16 => c"no license",
        _ => c"unknown status",
    }
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cublasGetStatusName(status: c_uint) -> *const c_char {
    name(status).as_ptr()
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cublasGetStatusString(status: c_uint) -> *const c_char {
    describe(status).as_ptr()
}

/// The functions of this file.
pub(crate) static API: &[&[Function]] = &[
    &[Function { symbol: "cublasGetStatusName", supported: true, summary: " The name of a status." }],
    &[Function { symbol: "cublasGetStatusString", supported: true, summary: " What a status means." }],
];
