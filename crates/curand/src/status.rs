//! What functions return.

use std::sync::atomic::{AtomicBool, Ordering};

use caller::log;

/// `curandStatus_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

#[allow(missing_docs, reason = "the manual's names")]
impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const NOT_INITIALIZED: Status = Status(101);
    pub const ALLOCATION_FAILED: Status = Status(102);
    pub const TYPE_ERROR: Status = Status(103);
    pub const OUT_OF_RANGE: Status = Status(104);
    pub const LENGTH_NOT_MULTIPLE: Status = Status(105);
    pub const LAUNCH_FAILURE: Status = Status(201);
    pub const PREEXISTING_FAILURE: Status = Status(202);
    pub const INITIALIZATION_FAILED: Status = Status(203);
    pub const INTERNAL_ERROR: Status = Status(999);
}

impl mathlib::Status for Status {
    const SUCCESS: Status = Status::SUCCESS;
    const INTERNAL_ERROR: Status = Status::INTERNAL_ERROR;
    // The library has no code for what it lacks.
    const NOT_SUPPORTED: Status = Status::INTERNAL_ERROR;
}

/// Refuses what needs NVIDIA's tables of scrambled direction vectors, and says so once.
pub fn refuse_scrambled(what: &str) -> Status {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        log!(
            error,
            "cuRAND: {what} is not supported, since NVIDIA has not published how its direction vectors are scrambled"
        );
    }
    Status::TYPE_ERROR
}
