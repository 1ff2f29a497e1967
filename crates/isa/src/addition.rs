//! How memory adds: `atom`, `red` and the reductions of bulk copies.

/// Where an addition to memory happens: its subnormals and NaNs depend on it, on an H100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addition {
    /// In global memory, by `atom` and `red`, or of `.ftz` elements of tensors: `.f32` flushes subnormals. An `.f64` NaN is
    /// returned as it is, the operand rather than the old value.
    Global,
    /// In global memory, by a bulk reduction: the same, but subnormals are kept.
    Bulk,
    /// In shared memory: an `add`, whose second operand is the old value.
    Shared,
}
