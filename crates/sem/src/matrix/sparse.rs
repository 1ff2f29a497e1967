//! Sparse products (`mma.sp`): where the stored elements of A stand, as the metadata says.
//!
//! PTX ISA, "Sparse matrix storage" and the metadata figures of "Matrix fragments for multiply-accumulate operation with
//! sparse matrix A". Four bits of metadata, two indices, belong to a chunk of a row, of which they choose two parts out of
//! four. A part is an element; of the 4-bit types that are packed two neighbours; of `.tf32`, whose chunks
//! are two elements, half an element, so that only 0b0100 and 0b1110 mean something.

use isa::matrix::{Matrix, Shape, element_bits};
use isa::{Picks, Type};

/// How the metadata of a shape and type of elements is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparsity {
    /// Bits of an element in its register: 4, 8, 16 or 32.
    bits: u32,
    /// Columns of A.
    columns: usize,
}

impl Sparsity {
    /// The layout that a shape and the type of A have.
    pub fn of(shape: Shape, a: Type, picks: &Picks) -> Sparsity {
        Sparsity { bits: element_bits(a, picks), columns: Matrix::A.size(shape, false).1 }
    }

    /// Columns of a chunk.
    fn chunk(self) -> usize {
        chunk_columns(self.bits)
    }

    /// The lane whose metadata describes a chunk of a row, and the first of its four bits.
    ///
    /// The selector names one thread of every four, or a pair; all four hold metadata where a row has that much. With 16 and 32
    /// bits the halves of a word belong to rows r and r + 8, with 4 and 8 bits neighbouring threads do. A selector too large (its
    /// behaviour is undefined) counts by its low bits.
    fn metadata(self, selector: usize, row: usize, chunk: usize) -> (usize, usize) {
        let wide = self.bits >= 16;
        // A thread's word describes 8 chunks.
        let threads = 2 * self.columns / self.chunk() / 8;
        let (thread, place) =
            if wide { (chunk / 4, row / 8 * 4 + chunk % 4) } else { (chunk / 8 * 2 + row / 8, chunk % 8) };
        (row % 8 * 4 + (selector * threads + thread) % 4, place * 4)
    }

    /// The column of A in which element `index` of those that are stored of a row stands. `metadata` holds a word a lane.
    ///
    /// The manual leaves it undefined what two equal indices mean, and with `::ordered_metadata` those out of order. *Ours*: each
    /// index counts by itself; of `.tf32` bit 1 chooses.
    pub fn column(self, metadata: &[u64], selector: usize, row: usize, index: usize) -> usize {
        let stored = self.chunk() / 2;
        let chunk = index / stored;
        let (lane, shift) = self.metadata(selector, row, chunk);
        chunk * self.chunk() + chosen(self.bits, metadata[lane] >> shift, index % stored)
    }
}

/// Columns of a chunk of elements of so many bits.
pub(crate) fn chunk_columns(bits: u32) -> usize {
    match bits {
        4 => 8,
        32 => 2,
        _ => 4,
    }
}

/// The column within its chunk where the stored element of this number stands, by the four bits of metadata.
pub(crate) fn chosen(bits: u32, metadata: u64, within: usize) -> usize {
    let indices = metadata as usize & 0xf;
    match bits {
        32 => indices >> 1 & 1,
        4 => (indices >> (within / 2 * 2) & 3) * 2 + within % 2,
        _ => indices >> (within * 2) & 3,
    }
}
