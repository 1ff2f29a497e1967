//! What functions return.

/// `cusolverStatus_t`.
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
    pub const NOT_SUPPORTED: Status = Status(9);
    pub const IRS_PARAMS_NOT_INITIALIZED: Status = Status(12);
    pub const IRS_INFOS_NOT_INITIALIZED: Status = Status(25);
}

mathlib::status!(Status: NOT_INITIALIZED, ALLOC_FAILED, INVALID_VALUE, EXECUTION_FAILED);
