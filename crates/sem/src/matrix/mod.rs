//! Matrix products (`mma`, `wmma.mma`): one element of `D = A * B + C`, and the mapping of elements to threads.
//!
//! PTX ISA, "Matrix Fragments for mma", "mma". The manual leaves open how the products of floating-point elements are
//! summed, and GPUs differ: tensor cores add several aligned products at once and truncate (Fasi, Higham, Mikaitis
//! and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021). *Ours*: the products are exact, and are added to
//! C one after the other in ascending k. Each sum is rounded to nearest even in the accumulator's precision (`.f16`
//! accumulators use `.f32`, with one rounding to `.f16` at the end). This promises no GPU's bits.
//!
//! A sparse product has a term for each stored element of A, in their order. Elements that are not stored contribute
//! nothing, even where B is infinite. With block scales, a term is the exact product of both elements and both
//! scales.

mod descriptor;
mod scale;
mod sparse;

use isa::matrix::{Matrix, Shape, element_bits, is_by_quad_pairs};
use isa::{Mod, Picks, Rounding, Type};

use crate::arith;
use crate::convert::convert_float;
use crate::format::{F16, F32, F64, Format};
use crate::round::{Mode, Value, pack, unpack};

pub use descriptor::Descriptor;
pub use scale::BlockScale;
pub use sparse::Sparsity;
pub(crate) use sparse::{chosen, chunk_columns};

/// The types and modifiers of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Elements of A.
    pub a: Type,
    /// Elements of B.
    pub b: Type,
    /// Elements of C.
    pub c: Type,
    /// Elements of D.
    pub d: Type,
    /// `.satfinite`: integer sums saturate at the bounds of `.s32`; without it they wrap.
    pub saturate: bool,
    /// `.and.popc` rather than `.xor.popc`, for single bits.
    pub and: bool,
    /// Rounding of `.f64`.
    pub rounding: Rounding,
    /// `.e2m1` elements are packed in 4 bits each, rather than in the middle of a byte.
    pub packed: bool,
}

impl Product {
    /// The product that the picks of `mma`, `wmma.mma` or `wgmma.mma_async` describe.
    pub fn of(picks: &Picks) -> Product {
        let (d, a, b, c) = match *picks.types() {
            [d, a, b, c, ..] => (d, a, b, c),
            // `wgmma` adds to D.
            [d, a, b] => (d, a, b, d),
            // `wmma.mma` with halves has only the types of the accumulators.
            _ => (picks.ty(0), Type::F16, Type::F16, picks.ty(1)),
        };
        Product {
            a,
            b,
            c,
            d,
            saturate: picks.has(Mod::Satfinite),
            and: picks.has(Mod::And),
            rounding: picks.rounding().unwrap_or(Rounding::NearestEven),
            packed: element_bits(Type::E2m1, picks) == 4,
        }
    }

    /// An element of D: a row of A, a column of B and the element of C, each element in the low bits of its word.
    pub fn element(&self, row: &[u64], column: &[u64], c: u64) -> u64 {
        let pairs = row.iter().zip(column);
        match self.d {
            Type::S32 => {
                let sum: i64 = pairs.map(|(&a, &b)| self.integer_product(a, b)).sum();
                let exact = i64::from(c as u32 as i32) + sum;
                let clamped = exact.clamp(i32::MIN.into(), i32::MAX.into());
                u64::from(if self.saturate { clamped } else { exact } as u32)
            }
            Type::F64 => {
                pairs.fold(c, |sum, (&a, &b)| arith::fma(&F64, Mode::rounding(self.rounding), a, b, sum))
            }
            _ => {
                let wide = |ty: Type, bits: u64| {
                    convert_float(format_of(ty), &F32, Mode::NEAREST, self.kept_bits(ty, bits))
                };
                let sum = pairs.fold(wide(self.c, c), |sum, (&a, &b)| {
                    arith::fma(&F32, Mode::NEAREST, wide(self.a, a), wide(self.b, b), sum)
                });
                if self.d == Type::F16 { convert_float(&F32, &F16, Mode::NEAREST, sum) } else { sum }
            }
        }
    }

    /// An element of D of a block-scaled product: as [`Product::element`], with the scales of the row and of the
    /// column. Each scale applies to an equal number of consecutive terms.
    pub fn scaled_element(
        &self,
        scale: BlockScale,
        (row, row_scales): (&[u64], &[u64]),
        (column, column_scales): (&[u64], &[u64]),
        c: u64,
    ) -> u64 {
        let part = row.len() / scale.count;
        let value = |ty: Type, bits: u64, factor: u64| {
            let element = unpack(format_of(ty), false, self.kept_bits(ty, bits));
            arith::product(element, scale.value(factor))
        };
        let round = |sum: Value| pack(&F32, Mode::NEAREST, sum);
        row.iter().zip(column).enumerate().fold(c, |sum, (i, (&a, &b))| {
            let a = value(self.a, a, row_scales[i / part]);
            let b = value(self.b, b, column_scales[i / part]);
            let sum = unpack(&F32, false, sum);
            round(arith::sum(arith::product(a, b), sum, Rounding::NearestEven))
        })
    }

    /// The significant bits of an element: `.tf32` ignores the low 13, and `.e2m1` occupies the middle of its byte if
    /// it has one (PTX ISA, "mma": `.kind::f8f6f4`).
    pub fn kept_bits(&self, ty: Type, bits: u64) -> u64 {
        match ty {
            Type::Tf32 => bits & !0x1fff,
            Type::E2m1 if self.packed => bits & 0xf,
            Type::E2m1 => bits >> 2 & 0xf,
            Type::E2m3 | Type::E3m2 => bits & 0x3f,
            _ => bits,
        }
    }

    fn integer_product(&self, a: u64, b: u64) -> i64 {
        match (self.a, self.and) {
            (Type::B1, true) => (a & b) as i64,
            (Type::B1, false) => (a ^ b) as i64,
            _ => extended(self.a, a) * extended(self.b, b),
        }
    }
}

/// The format of floating-point elements.
fn format_of(ty: Type) -> &'static Format {
    Format::of(ty).unwrap_or(&F32)
}

/// The value of an integer element.
pub fn extended(ty: Type, bits: u64) -> i64 {
    let shift = 64 - ty.bits();
    if ty.is_signed() { (bits << shift) as i64 >> shift } else { (bits << shift >> shift) as i64 }
}

/// Row and column of the `bits`-wide element that `lane` holds at `index`.
///
/// The layouts are those of `mma`. The manual leaves those of `wmma` open. *Ours*: tiles of `mma`'s layout (16 or 8
/// rows of A, 8 columns of B) one after the other, repeated if a thread has room for more elements than the matrix
/// has.
pub fn place(matrix: Matrix, shape: Shape, bits: u32, lane: usize, index: usize) -> (usize, usize) {
    let (group, within) = (lane / 4, lane % 4);
    // Elements of a register, and of the four threads of a group.
    let in_register = (32 / bits).max(1) as usize;
    let in_group = 4 * in_register;
    let tile_rows = shape.m.min(16);
    let (register, part) = (index / in_register, index % in_register);
    match matrix {
        Matrix::A => {
            // Registers advance by 8 rows first, then to the right.
            let down = tile_rows / 8;
            let in_tile = down * shape.k / in_group;
            let (tile, register) = (register / in_tile % (shape.m / tile_rows), register % in_tile);
            let row = tile * tile_rows + group + register % down * 8;
            (row, register / down * in_group + within * in_register + part)
        }
        Matrix::B => {
            let in_tile = shape.k / in_group;
            let (tile, register) = (register / in_tile % (shape.n / 8), register % in_tile);
            (register * in_group + within * in_register + part, tile * 8 + group)
        }
        Matrix::Accumulator => {
            let in_tile = tile_rows / 4;
            let (tile, element) = (index / in_tile, index % in_tile);
            let across = shape.n / 8;
            let row = tile / across * tile_rows + group + element / 2 * 8;
            (row, tile % across * 8 + within * 2 + element % 2)
        }
    }
}

/// The same for `mma.m8n8k4` with `.f16`, where each quad pair computes its own product: the pair, the row and the
/// column. `by_column` says that the layout of A or B is `.col`.
pub fn quad_pair_place(
    matrix: Matrix,
    by_column: bool,
    bits: u32,
    lane: usize,
    index: usize,
) -> (usize, usize, usize) {
    let (pair, upper, within) = (lane % 16 / 4, lane / 16 * 4, lane % 4);
    let (row, column) = match (matrix, by_column) {
        (Matrix::A, false) => (within + upper, index),
        (Matrix::A, true) => (index + upper, within),
        (Matrix::B, false) => (within, index + upper),
        (Matrix::B, true) => (index, within + upper),
        (Matrix::Accumulator, _) if bits == 16 => (within + upper, index),
        (Matrix::Accumulator, _) => {
            ((lane & 1) + (index & 2) + upper, (index & 4) + (lane & 2) + (index & 1))
        }
    };
    (pair, row, column)
}

/// Whether each quad pair computes its own product.
pub fn by_quad_pairs(shape: Shape, product: &Product) -> bool {
    is_by_quad_pairs(shape, product.a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_below_a_format_do_not_count() {
        let product = |ty: Type| Product::of(&Picks::new(&[Type::F32, ty, ty, Type::F32], &[]));
        let one = |ty: Type, bits: u64, one: u64| product(ty).element(&[bits], &[one], 0);
        assert_eq!(one(Type::Tf32, 0x3f80_1fff, 0x3f80_0000), 0x3f80_0000);
        assert_eq!(one(Type::Tf32, 0x3f80_2000, 0x3f80_0000), 0x3f80_2000);
        // `.e2m1` in the middle of a byte, and six bits of `.e2m3`.
        assert_eq!(one(Type::E2m1, 0b1100_1011, 0b0000_1000), 0x3f80_0000);
        assert_eq!(one(Type::E2m3, 0b1100_1000, 0b0000_1000), 0x3f80_0000);
    }
}
