//! What functions return, and what that means.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};

use mathlib::{Function, driver};

/// `ncclResult_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

#[allow(missing_docs, reason = "the manual's names")]
impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const UNHANDLED_CUDA_ERROR: Status = Status(1);
    pub const SYSTEM_ERROR: Status = Status(2);
    pub const INTERNAL_ERROR: Status = Status(3);
    pub const INVALID_ARGUMENT: Status = Status(4);
    pub const INVALID_USAGE: Status = Status(5);
    pub const REMOTE_ERROR: Status = Status(6);
}

impl mathlib::Status for Status {
    const SUCCESS: Status = Status::SUCCESS;
    const INTERNAL_ERROR: Status = Status::INTERNAL_ERROR;
    // There is no code of its own.
    const NOT_SUPPORTED: Status = Status::INVALID_USAGE;
}

impl From<mathlib::Error> for Status {
    fn from(_: mathlib::Error) -> Status {
        Status::UNHANDLED_CUDA_ERROR
    }
}

thread_local! {
    /// What was wrong last in this thread.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Says what is wrong, on stderr and to `ncclGetLastError`, and makes a status of it.
pub fn wrong(status: Status, function: &str, what: &str) -> Status {
    driver::failed(function, what);
    LAST.with(|last| last.replace(CString::new(format!("{function}: {what}")).unwrap_or_default()));
    status
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(status: u32) -> *const c_char {
    let text = match status {
        0 => c"no error",
        1 => c"a function of CUDA failed",
        2 => c"a call of the system failed",
        3 => c"the library itself failed",
        4 => c"an argument is invalid",
        5 => c"a use is invalid",
        6 => c"another rank failed, or is gone",
        7 => c"it is still going on",
        _ => c"unknown result",
    };
    text.as_ptr()
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn ncclGetLastError(_comm: *mut c_void) -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// The version that the library reports: 2.27.3.
pub const VERSION: c_int = 22703;

/// The functions of this file.
pub(crate) static API: &[&[Function]] = &[
    &[Function { symbol: "ncclGetErrorString", supported: true, summary: " What a result means." }],
    &[Function {
        symbol: "ncclGetLastError",
        supported: true,
        summary: " What was wrong last in this thread.",
    }],
];
