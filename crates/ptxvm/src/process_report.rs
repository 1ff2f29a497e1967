//! Constants that the driver, which writes the report of a process, and `ptxvm exec`, which reads it, share
//! (crates/libcuda/src/report.rs, live.rs).

/// The report contains at most this number of faults, of findings, of functions and of modules.
pub const MOST: usize = 100;

/// The live report begins with this number of pairs of numbers. The process keeps them up to date, since it may end
/// at any moment.
pub const PAIRS: usize = 4096;

/// The index of the pair for driver calls.
pub const CALLS: usize = 0;

/// The index of the pair for errors.
pub const ERRORS: usize = 1;

/// The most devices that there can be. More would be of no use.
pub const DEVICES: usize = 64;

/// The index of the first of [`DEVICES`] pairs, by the number of the device in the machine: bytes of memory in use, and contexts.
pub const FIRST_DEVICE: usize = 2;

/// The index of the pair for the kernel that was launched first. Kernels without a pair of their own share the last
/// one.
pub const FIRST_KERNEL: usize = FIRST_DEVICE + DEVICES;
