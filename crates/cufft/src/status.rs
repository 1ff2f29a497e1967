//! What functions return.

/// `cufftResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

#[allow(missing_docs, reason = "the manual's names")]
impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const INVALID_PLAN: Status = Status(1);
    pub const ALLOC_FAILED: Status = Status(2);
    pub const INVALID_TYPE: Status = Status(3);
    pub const INVALID_VALUE: Status = Status(4);
    pub const INTERNAL_ERROR: Status = Status(5);
    pub const EXEC_FAILED: Status = Status(6);
    pub const SETUP_FAILED: Status = Status(7);
    pub const INVALID_SIZE: Status = Status(8);
    pub const NOT_SUPPORTED: Status = Status(16);
}

mathlib::status!(Status: SETUP_FAILED, ALLOC_FAILED, INVALID_VALUE, EXEC_FAILED);
