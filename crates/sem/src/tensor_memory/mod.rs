//! Tensor memory and the instructions on it (`tcgen05`): the meaning of their addresses, descriptors and layouts.
//!
//! PTX ISA, "TensorCore 5th Generation Family Instructions" (9.7.16). Where the manual has only figures, the layouts
//! are those of CUTLASS (`cute/atom/copy_traits_sm100.hpp`, `mma_traits_sm100_frag.hpp`,
//! `cute/arch/mma_sm100_desc.hpp`); docs/tcgen05.md lists them.
//!
//! A CTA has 128 lanes of 512 columns of 32-bit cells. An address has the lane in its upper half and the column in
//! its lower half (9.7.16.1 Tensor Memory Addressing). This module does not hold the cells; engines do.

mod allocation;
mod copy;
mod fragment;
mod multiplication;

use std::fmt;
use std::ops::Range;

use crate::{float, integer};
use isa::{Mod, Picks};

pub use allocation::Allocations;
pub use copy::{Copy, Shift};
pub use fragment::Fragment;
pub use multiplication::{ColumnMask, Factor, Multiplication, Part};

/// `tcgen05.ld.red`: the minimum or maximum of the elements that a thread loads, as `min` and `max` with these
/// modifiers compute it (9.7.16.8.2).
pub fn reduce(picks: &Picks, elements: impl IntoIterator<Item = u64>) -> u64 {
    let step = match (picks.ty(0).is_float(), picks.has(Mod::Min)) {
        (true, true) => float::min,
        (true, false) => float::max,
        (false, true) => integer::min,
        (false, false) => integer::max,
    };
    elements.into_iter().reduce(|a, b| step(picks, &[a, b])[0]).unwrap_or(0)
}

/// Lanes of a CTA's tensor memory.
pub const LANES: usize = 128;
/// Columns of a CTA's tensor memory.
pub const COLUMNS: usize = 512;
/// Lanes that a warp may access, by its index modulo four (9.7.16.2.3 Access restrictions).
pub const LANES_OF_WARP: usize = 32;

/// A cell, or the offset of a cell from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Lane.
    pub lane: usize,
    /// Column.
    pub column: usize,
}

impl Cell {
    /// The cell at an address.
    pub fn at(address: u64) -> Cell {
        Cell { lane: (address >> 16 & 0xffff) as usize, column: (address & 0xffff) as usize }
    }

    /// The cell at this offset from this one.
    pub fn plus(self, distance: Cell) -> Cell {
        Cell { lane: self.lane + distance.lane, column: self.column + distance.column }
    }

    /// The index of the cell, lane by lane; `None` outside of tensor memory.
    pub fn index(self) -> Option<usize> {
        (self.lane < LANES && self.column < COLUMNS).then_some(self.lane * COLUMNS + self.column)
    }

    /// The columns from this one on.
    pub fn columns(self, count: usize) -> Range<usize> {
        self.column..self.column + count
    }
}

/// What is wrong with an instruction on tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// `tcgen05.alloc` or `.dealloc` of an invalid number of columns.
    Columns,
    /// `tcgen05.alloc` of more columns than the CTA's last allocation.
    Growing,
    /// `tcgen05.alloc` after `tcgen05.relinquish_alloc_permit`.
    Relinquished,
    /// `tcgen05.dealloc` that does not match an allocation.
    NotAllocated,
    /// Columns are still allocated when the CTA ends.
    Leak,
    /// An access to a column that is not allocated.
    Unallocated,
    /// An access beyond the lanes or the columns.
    Outside,
    /// A warp's access to lanes that it does not reach.
    WarpLanes,
    /// An address with a lane that the instruction does not accept.
    LaneAlignment,
    /// An instruction descriptor with a type that the `.kind` does not allow.
    Types,
    /// An instruction descriptor with a shape that the `.kind` does not allow.
    Shape,
    /// An instruction descriptor whose sparsity differs from the instruction's.
    Sparsity,
    /// An instruction descriptor with a transposition or negation that the types do not allow.
    Modifiers,
    /// A matrix descriptor with an invalid swizzle mode, or one that matrices along k do not allow.
    Swizzle,
    /// A zero-column mask that shifts B by too many columns.
    ColumnShift,
    /// `.cta_group::2` without a second CTA in the cluster.
    Pair,
    /// `.cta_group::2` after the second CTA has ended.
    PairEnded,
    /// Valid, but no engine executes it.
    Unsupported(&'static str),
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Misuse::Columns => "the number of columns is not a power of two from 32 to 512",
            Misuse::Growing => "more columns are allocated than by the block's allocation before",
            Misuse::Relinquished => "the block has given up its right to allocate",
            Misuse::NotAllocated => "no allocation of so many columns begins at this address",
            Misuse::Leak => "the block ends without having given its columns back",
            Misuse::Unallocated => "a column that the block has not allocated",
            Misuse::Outside => "beyond the 128 lanes of 512 columns",
            Misuse::WarpLanes => {
                "lanes that the warp does not reach: those from 32 times its number modulo 4 on are its own"
            }
            Misuse::LaneAlignment => "the lane of the address is not one at which the instruction's lanes begin",
            Misuse::Types => "the instruction descriptor has a type that the kind does not have",
            Misuse::Shape => "the instruction descriptor has a shape that the kind does not have",
            Misuse::Sparsity => "the instruction descriptor is dense and the instruction sparse, or the reverse",
            Misuse::Modifiers => {
                "the instruction descriptor transposes or negates a matrix whose type is not transposed or negated"
            }
            Misuse::Swizzle => "the matrix descriptor has a swizzle mode that there is not for this matrix",
            Misuse::ColumnShift => "the zero-column mask shifts B by more than 32 columns, or 16 for 32 rows",
            Misuse::Pair => "the block has no other one to make a pair with",
            Misuse::PairEnded => "the other block of the pair has ended",
            Misuse::Unsupported(what) => what,
        })
    }
}
