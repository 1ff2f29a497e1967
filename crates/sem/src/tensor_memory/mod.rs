//! Tensor memory and the instructions on it (`tcgen05`): what their addresses, descriptors and layouts mean.
//!
//! PTX ISA, "TensorCore 5th Generation Family Instructions" (9.7.16). Where the manual has figures, the layouts are those of CUTLASS
//! (`cute/atom/copy_traits_sm100.hpp`, `mma_traits_sm100_frag.hpp`, `cute/arch/mma_sm100_desc.hpp`); docs/tcgen05.md lists them.
//!
//! A block has 128 lanes of 512 columns, each a cell of 32 bits. An address has the lane in its upper half and the column in its lower
//! one (9.7.16.1 Tensor Memory Addressing). Nothing here holds the cells: engines do.

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

/// `tcgen05.ld.red`: the least or the greatest of the elements that a thread loads, as `min` and `max` with these modifiers have it
/// (9.7.16.8.2).
pub fn reduce(picks: &Picks, elements: impl IntoIterator<Item = u64>) -> u64 {
    let step = match (picks.ty(0).is_float(), picks.has(Mod::Min)) {
        (true, true) => float::min,
        (true, false) => float::max,
        (false, true) => integer::min,
        (false, false) => integer::max,
    };
    elements.into_iter().reduce(|a, b| step(picks, &[a, b])[0]).unwrap_or(0)
}

/// Lanes of a block's tensor memory.
pub const LANES: usize = 128;
/// Columns of it.
pub const COLUMNS: usize = 512;
/// Lanes that the warps of one rank in four reach (9.7.16.2.3 Access restrictions).
pub const LANES_OF_WARP: usize = 32;

/// A cell, or how far it is from another.
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

    /// The cell that is so far from this one.
    pub fn plus(self, distance: Cell) -> Cell {
        Cell { lane: self.lane + distance.lane, column: self.column + distance.column }
    }

    /// The number of the cell, if there is one: lane by lane.
    pub fn index(self) -> Option<usize> {
        (self.lane < LANES && self.column < COLUMNS).then_some(self.lane * COLUMNS + self.column)
    }

    /// So many columns from this one on.
    pub fn columns(self, count: usize) -> Range<usize> {
        self.column..self.column + count
    }
}

/// What is wrong with an instruction on tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// `tcgen05.alloc` or `.dealloc` of a number of columns that there is not.
    Columns,
    /// `tcgen05.alloc` of more columns than the block's last one.
    Growing,
    /// `tcgen05.alloc` after `tcgen05.relinquish_alloc_permit`.
    Relinquished,
    /// `tcgen05.dealloc` of what was not allocated so.
    NotAllocated,
    /// Columns are still allocated when the block ends.
    Leak,
    /// An access to a column that is not allocated.
    Unallocated,
    /// An access beyond the lanes or the columns.
    Outside,
    /// A warp's access to lanes that it does not reach.
    WarpLanes,
    /// An address whose lane the instruction does not take.
    LaneAlignment,
    /// An instruction descriptor with a type that the kind does not have.
    Types,
    /// An instruction descriptor with a shape that the kind does not have.
    Shape,
    /// An instruction descriptor that says of sparsity what the instruction does not.
    Sparsity,
    /// An instruction descriptor with a transposition or negation that the types do not have.
    Modifiers,
    /// A matrix descriptor with a swizzle that there is not, or that rows along k do not have.
    Swizzle,
    /// A zero-column mask that shifts B by more columns than it can.
    ColumnShift,
    /// `.cta_group::2` without a second block in the cluster.
    Pair,
    /// `.cta_group::2` whose second block has ended.
    PairEnded,
    /// What no engine executes.
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
