//! Sparse products (`mma.sp`): the columns of the stored elements of A, from the metadata.
//!
//! PTX ISA, "Sparse matrix storage" and the metadata figures of "Matrix fragments for multiply-accumulate operation
//! with sparse matrix A". Each chunk of a row has four bits of metadata: two indices, which select two of the chunk's
//! four parts. A part is an element; for packed 4-bit types it is two neighbours; for `.tf32`, whose chunks have two
//! elements, it is half an element, so that only 0b0100 and 0b1110 are meaningful.

use isa::matrix::{Matrix, Shape, element_bits};
use isa::{Picks, Type};

/// The layout of the metadata for a shape and an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparsity {
    /// Bits of an element in its register: 4, 8, 16 or 32.
    bits: u32,
    /// Columns of A.
    columns: usize,
}

impl Sparsity {
    /// The layout for a shape and the type of A.
    pub fn of(shape: Shape, a: Type, picks: &Picks) -> Sparsity {
        Sparsity { bits: element_bits(a, picks), columns: Matrix::A.size(shape, false).1 }
    }

    /// Columns of a chunk of A.
    fn chunk(self) -> usize {
        chunk_columns(self.bits)
    }

    /// The lane with the metadata of a chunk of a row, and the first of its four bits.
    ///
    /// The selector chooses one thread of each four, or a pair; with enough metadata in a row, all four threads have
    /// some. With 16- and 32-bit elements, the halves of a word belong to rows r and r + 8; with 4- and 8-bit
    /// elements, adjacent threads do. Only the low bits of a selector that is too large count (its behaviour is
    /// undefined).
    fn metadata(self, selector: usize, row: usize, chunk: usize) -> (usize, usize) {
        let wide = self.bits >= 16;
        // A thread's word describes 8 chunks.
        let threads = 2 * self.columns / self.chunk() / 8;
        let (thread, place) =
            if wide { (chunk / 4, row / 8 * 4 + chunk % 4) } else { (chunk / 8 * 2 + row / 8, chunk % 8) };
        (row % 8 * 4 + (selector * threads + thread) % 4, place * 4)
    }

    /// The column of A of the stored element `index` of a row. `metadata` has one word for each lane.
    ///
    /// The manual leaves it undefined what two equal indices mean, and with `::ordered_metadata` those out of order.
    /// *Ours*: each index counts by itself; for `.tf32`, bit 1 decides.
    pub fn column(self, metadata: &[u64], selector: usize, row: usize, index: usize) -> usize {
        let stored = self.chunk() / 2;
        let chunk = index / stored;
        let (lane, shift) = self.metadata(selector, row, chunk);
        chunk * self.chunk() + chosen(self.bits, metadata[lane] >> shift, index % stored)
    }
}

/// Columns of a chunk of elements with `bits` bits.
pub(crate) fn chunk_columns(bits: u32) -> usize {
    match bits {
        4 => 8,
        32 => 2,
        _ => 4,
    }
}

/// The column, within its chunk, of the stored element `within`, from the four bits of metadata.
pub(crate) fn chosen(bits: u32, metadata: u64, within: usize) -> usize {
    let indices = metadata as usize & 0xf;
    match bits {
        32 => indices >> 1 & 1,
        4 => (indices >> (within / 2 * 2) & 3) * 2 + within % 2,
        _ => indices >> (within * 2) & 3,
    }
}
