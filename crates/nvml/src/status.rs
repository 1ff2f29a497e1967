//! What functions return, and the texts for it.

use std::ffi::{CStr, c_char, c_uint};

use crate::api::Function;

/// `nvmlReturn_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

#[allow(missing_docs, reason = "the manual's names")]
impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const UNINITIALIZED: Status = Status(1);
    pub const INVALID_ARGUMENT: Status = Status(2);
    pub const NOT_SUPPORTED: Status = Status(3);
    pub const NOT_FOUND: Status = Status(6);
    pub const INSUFFICIENT_SIZE: Status = Status(7);
    pub const DRIVER_NOT_LOADED: Status = Status(9);
    pub const ARGUMENT_VERSION_MISMATCH: Status = Status(25);
    pub const UNKNOWN: Status = Status(999);
}

/// The text for a status.
fn describe(status: u32) -> &'static CStr {
    match status {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        5 => c"Already Initialized",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        8 => c"Insufficient External Power",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        11 => c"Interrupt Request Issue",
        12 => c"NVML Shared Library Not Found",
        13 => c"Function Not Found",
        14 => c"Corrupted infoROM",
        15 => c"GPU is lost",
        16 => c"GPU requires reset",
        17 => c"GPU access blocked by the operating system",
        18 => c"Driver/library version mismatch",
        19 => c"In use by another client",
        20 => c"Insufficient Memory",
        21 => c"No data",
        22 => c"The requested vgpu operation is not available on target device because ECC is enabled",
        23 => c"Ran out of critical resources, other than memory",
        24 => c"The requested frequency is not supported",
        25 => c"Argument version mismatch",
        26 => c"Deprecated",
        27 => c"Not Ready",
        28 => c"No GPUs were found",
        29 => c"Invalid state",
        30 => c"Reset type not supported",
        _ => c"Unknown Error",
    }
}

/// It needs no initialization.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(status: c_uint) -> *const c_char {
    describe(status).as_ptr()
}

/// The functions of this file.
pub(crate) static API: &[&[Function]] =
    &[&[Function { symbol: "nvmlErrorString", supported: true, summary: " The text for a status." }]];
