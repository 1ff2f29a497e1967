//! Buffers that operations use again. Between operations they hold nothing that counts.

use super::{Active, matrix, update};

/// Buffers of a gang. An operation takes one while it runs, and leaves it for the next.
#[derive(Default)]
pub(super) struct Scratch {
    /// Active lanes of the last guard that held for only some lanes; reused if the next one selects the same lanes.
    pub guarded: Option<Box<Active>>,
    /// For the operands of atomic operations.
    pub atomic: Option<Box<update::Operands>>,
    /// For the matrices of a product.
    pub matrices: Option<Box<matrix::Matrices>>,
}
