//! The tensor memory of a block (PTX ISA, "Tensor Memory").
//!
//! It belongs to a block; the other block of its pair reaches it through `cluster::Members`. `sem::tensor_memory` says what addresses,
//! descriptors and layouts mean; `exec/matrix/tensor_memory.rs` moves cells, and `tensor_product.rs` gathers whole factors and multiplies
//! them as those of `mma`. docs/tcgen05.md says what is open.
//!
//! Narrowest tests (`tests/run`): `tcgen05_*`, `fault_tcgen05_*`.

use std::cell::RefCell;
use std::rc::Rc;

use diag::Span;
use sem::tensor_memory::{Allocations, COLUMNS, Cell, LANES, Misuse};

/// That of a block, which the other one of its pair reaches, too. All blocks of a cluster run on one host thread.
pub(crate) type TensorMemoryOf = Rc<RefCell<TensorMemory>>;

/// Cells, and which of them are allocated.
#[derive(Default)]
pub(crate) struct TensorMemory {
    /// Which columns are allocated.
    pub allocations: Allocations,
    /// The last allocation.
    pub span: Span,
    /// Lane by lane; none before the first allocation.
    cells: Vec<u32>,
}

impl TensorMemory {
    /// As at the start of a block: zeros, so that reads of what nobody wrote are the same in every run.
    pub fn reset(&mut self) {
        self.allocations = Allocations::default();
        // As in local memory: `memset` of nothing is not free.
        if !self.cells.is_empty() {
            self.cells.fill(0);
        }
    }

    /// The address of so many columns; nothing as long as there is no room for them.
    pub fn allocate(&mut self, columns: u64, span: Span) -> Result<Option<u64>, Misuse> {
        let address = self.allocations.allocate(columns)?;
        if address.is_some() {
            self.span = span;
            self.cells.resize(LANES * COLUMNS, 0);
        }
        Ok(address)
    }

    /// Whether so many lanes and columns from a cell on are there, and allocated.
    pub fn check(&self, at: Cell, lanes: usize, columns: usize) -> Result<(), Misuse> {
        if at.lane + lanes > LANES {
            return Err(Misuse::Outside);
        }
        self.allocations.check(at.columns(columns))
    }

    /// The cells of a lane from a column on, which [`TensorMemory::check`] has found.
    pub fn row(&self, at: Cell) -> &[u32] {
        let start = at.lane * COLUMNS;
        &self.cells[start + at.column..start + COLUMNS]
    }

    /// The same, to write them.
    pub fn row_mut(&mut self, at: Cell) -> &mut [u32] {
        let start = at.lane * COLUMNS;
        &mut self.cells[start + at.column..start + COLUMNS]
    }
}
