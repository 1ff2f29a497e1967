//! What functions return, and the texts for it.

use std::ffi::{CStr, c_char, c_uint};

use mathlib::Function;

/// `cusparseStatus_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

#[allow(missing_docs, reason = "the manual's names")]
impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const NOT_INITIALIZED: Status = Status(1);
    pub const ALLOC_FAILED: Status = Status(2);
    pub const INVALID_VALUE: Status = Status(3);
    pub const EXECUTION_FAILED: Status = Status(6);
    pub const INTERNAL_ERROR: Status = Status(7);
    pub const MATRIX_TYPE_NOT_SUPPORTED: Status = Status(8);
    pub const ZERO_PIVOT: Status = Status(9);
    pub const NOT_SUPPORTED: Status = Status(10);
    pub const INSUFFICIENT_RESOURCES: Status = Status(11);
}

mathlib::status!(Status: NOT_INITIALIZED, ALLOC_FAILED, INVALID_VALUE, EXECUTION_FAILED);

/// The name of a status, and what it means, in our words.
fn texts(status: u32) -> [&'static CStr; 2] {
    match status {
        0 => [c"CUSPARSE_STATUS_SUCCESS", c"success"],
        1 => [c"CUSPARSE_STATUS_NOT_INITIALIZED", c"there is no such handle, or no driver"],
        2 => [c"CUSPARSE_STATUS_ALLOC_FAILED", c"out of memory"],
        3 => [c"CUSPARSE_STATUS_INVALID_VALUE", c"an argument has a value that the function does not take"],
        4 => [c"CUSPARSE_STATUS_ARCH_MISMATCH", c"the device lacks what the function needs"],
        5 => [c"CUSPARSE_STATUS_MAPPING_ERROR", c"memory cannot be reached"],
        6 => [c"CUSPARSE_STATUS_EXECUTION_FAILED", c"the work failed on the device"],
        7 => [c"CUSPARSE_STATUS_INTERNAL_ERROR", c"the library failed"],
        8 => {
            [c"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", c"the function does not take this type of matrix"]
        }
        9 => [c"CUSPARSE_STATUS_ZERO_PIVOT", c"an element of the diagonal is missing or zero"],
        10 => [c"CUSPARSE_STATUS_NOT_SUPPORTED", c"not supported"],
        11 => [c"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", c"the memory for the work does not suffice"],
        _ => [c"unknown status", c"unknown status"],
    }
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cusparseGetErrorName(status: c_uint) -> *const c_char {
    texts(status)[0].as_ptr()
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cusparseGetErrorString(status: c_uint) -> *const c_char {
    texts(status)[1].as_ptr()
}

/// The functions of this file. They return texts.
pub(crate) static API: &[&[Function]] = &[
    &[Function { symbol: "cusparseGetErrorName", supported: true, summary: " The name of a status." }],
    &[Function { symbol: "cusparseGetErrorString", supported: true, summary: " What a status means." }],
];
