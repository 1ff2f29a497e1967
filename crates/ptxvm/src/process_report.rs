//! What the driver, which writes the report of a process, and `ptxvm exec`, which reads it, agree on (crates/libcuda/src/report.rs, live.rs).

/// So many faults, findings, functions and modules are told, of each.
pub const MOST: usize = 100;

/// So many pairs of numbers stand at the beginning of what a process that may end at any moment has told so far.
pub const PAIRS: usize = 4096;

/// The pair of calls of the driver.
pub const CALLS: usize = 0;

/// The pair of errors.
pub const ERRORS: usize = 1;

/// The pair of the kernel that was launched first. Kernels that find no room share the last one.
pub const FIRST_KERNEL: usize = 2;
