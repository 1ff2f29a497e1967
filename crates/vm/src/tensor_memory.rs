//! The tensor memory of a block (PTX ISA, "Tensor Memory").
//!
//! The other block of a pair reaches it through `cluster::Members`. `sem::tensor_memory` defines addresses, descriptors
//! and layouts. `exec/matrix/tensor_memory.rs` moves cells; `tensor_product.rs` gathers whole factors and multiplies
//! them like those of `mma`. docs/tcgen05.md lists open questions.
//!
//! Narrowest tests (`tests/run`): `tcgen05_*`, `fault_tcgen05_*`.

use std::cell::RefCell;
use std::rc::Rc;

use diag::Span;
use sem::tensor_memory::{Allocations, COLUMNS, Cell, LANES, Misuse};

/// The tensor memory of a block, shared with the other block of its pair. All blocks of a cluster run on one host thread.
pub(crate) type TensorMemoryOf = Rc<RefCell<TensorMemory>>;

/// Cells and their allocations.
#[derive(Default)]
pub(crate) struct TensorMemory {
    /// The allocated columns.
    pub allocations: Allocations,
    /// The instruction of the last allocation.
    pub span: Span,
    /// Lane by lane. Empty before the first allocation.
    cells: Vec<u32>,
}

impl TensorMemory {
    /// Resets it to its state at the start of a block: zeros, so that reads of uninitialised cells are the same in every run.
    pub fn reset(&mut self) {
        self.allocations = Allocations::default();
        // As in local memory, a `memset` of zero bytes is not free.
        if !self.cells.is_empty() {
            self.cells.fill(0);
        }
    }

    /// Allocates columns and returns their address. `None` while there is no room for them.
    pub fn allocate(&mut self, columns: u64, span: Span) -> Result<Option<u64>, Misuse> {
        let address = self.allocations.allocate(columns)?;
        if address.is_some() {
            self.span = span;
            self.cells.resize(LANES * COLUMNS, 0);
        }
        Ok(address)
    }

    /// Checks that a range of lanes and columns, from a cell on, exists and is allocated.
    pub fn check(&self, at: Cell, lanes: usize, columns: usize) -> Result<(), Misuse> {
        if at.lane + lanes > LANES {
            return Err(Misuse::Outside);
        }
        self.allocations.check(at.columns(columns))
    }

    /// The cells of a lane from a column on. [`TensorMemory::check`] must have accepted them.
    pub fn row(&self, at: Cell) -> &[u32] {
        let start = at.lane * COLUMNS;
        &self.cells[start + at.column..start + COLUMNS]
    }

    /// Like [`TensorMemory::row`], for writing.
    pub fn row_mut(&mut self, at: Cell) -> &mut [u32] {
        let start = at.lane * COLUMNS;
        &mut self.cells[start + at.column..start + COLUMNS]
    }
}
