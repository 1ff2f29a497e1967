//! What this library does not have.

use mathlib::refused;

use crate::status::Status;

refused! { API: Status;
    cusparseSpMMOp cusparseSpMMOp_createPlan cusparseSpMMOp_destroyPlan
}
