//! Products of matrices in shared and tensor memory (`tcgen05.mma`).
//!
//! PTX ISA 9.7.16.4.2 "Instruction Descriptor", 9.7.16.10 "TensorCore 5th Generation Matrix Multiply and accumulate
//! Operations". Where the manual has only figures, the layouts are those of CUTLASS (`tmem_frg`, `tmem_sf_frg`,
//! `tmem_e_frg` in `mma_traits_sm100_frag.hpp`). An element of D is summed in the order of [`crate::matrix`].

use std::ops::Range;

use isa::matrix::Matrix;
use isa::{Mod, Picks, Rounding, Type};

use super::{Cell, LANES, Misuse};
use crate::arith;
use crate::convert::convert_float;
use crate::format::{F16, F32};
use crate::matrix::{BlockScale, Descriptor, Product, chosen, chunk_columns};
use crate::round::{Exact, Mode, Value, pack, unpack};

/// What a `tcgen05.mma` computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiplication {
    /// Types of the elements. C is the previous D, converted to `.f32` if it is floating-point
    /// ([`Multiplication::input`]).
    pub product: Product,
    /// A, row by row.
    pub a: Factor,
    /// B, column by column.
    pub b: Factor,
    /// Rows of A and D in each CTA.
    pub rows: usize,
    /// Columns of B and D.
    pub n: usize,
    /// Columns of A, including those that sparsity leaves out; rows of B.
    pub k: usize,
    /// The CTAs of a pair compute together: each has half of the rows of A and D, and half of the columns of B.
    pub pair: bool,
    /// A is sparse: half of it is not stored.
    pub sparse: bool,
    /// The scales of rows of A and columns of B, if the product has any.
    pub scale: Option<BlockScale>,
    /// Exactly one of A and B is negated.
    negated: bool,
    /// The byte of a cell where the scales of A, and of B, begin.
    scale_ids: [usize; 2],
    /// Column offset of the metadata from their address.
    selector: usize,
    /// `.ws`: it changes the rows and parts of D, as [`Multiplication::parts`] says.
    weight_stationary: bool,
    /// `.ashift`: a lane's row of A comes from the next lane.
    shifted: bool,
}

/// How the elements of A or B are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Bits of an element.
    pub bits: u32,
    /// Bits that an element occupies: a byte for 4- and 6-bit elements, unless the kind packs them.
    place: u32,
    /// Adjacent elements in shared memory belong to a column of A or a row of B.
    pub transposed: bool,
}

/// A range of D's columns, and the lanes that hold them, one lane for each row of D.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// By row of D.
    pub lanes: Vec<usize>,
    /// Columns of D; the first is in the column of the address.
    pub columns: Range<usize>,
}

/// The effect of a zero-column mask on B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMask {
    /// By column of D: the column of B counts as zeros.
    pub zero: Vec<bool>,
    /// The column of B that becomes the first.
    pub shift: usize,
}

fn element_bits(ty: Type) -> u32 {
    match ty {
        Type::E2m1 => 4,
        Type::E2m3 | Type::E3m2 => 6,
        Type::Tf32 => 32,
        Type::F16 | Type::Bf16 => 16,
        _ => 8,
    }
}

impl Factor {
    fn new(ty: Type, is_packed: bool, transposed: bool) -> Factor {
        let bits = element_bits(ty);
        Factor { bits, place: if is_packed { bits } else { bits.max(8) }, transposed }
    }

    /// Elements in a 16-byte unit.
    pub fn in_unit(&self) -> usize {
        (128 / self.place) as usize
    }

    /// The position in shared memory of an element of a line (a row of A, a column of B): the address of its 16-byte
    /// unit, and its index in the unit.
    pub fn place(&self, descriptor: Descriptor, line: usize, k: usize) -> (u64, usize) {
        let in_unit = self.in_unit();
        match self.transposed {
            true => (descriptor.across_k(line / in_unit, k), line % in_unit),
            false => (descriptor.along_k(line, k / in_unit), k % in_unit),
        }
    }

    /// An element of a 16-byte unit. Elements of 4 and 6 bits are packed at the beginning of the unit (9.7.16.10.3,
    /// `.b4x16_p64`, `.b6x16_p32`).
    pub fn element(&self, unit: u128, index: usize) -> u64 {
        (unit >> (index as u32 * self.bits)) as u64 & (u64::MAX >> (64 - self.bits))
    }

    /// The position in tensor memory of an element of a row of A: the column offset from the address, and the first
    /// bit in the cell. A 4-bit element that has a byte occupies its middle.
    pub fn in_cell(&self, k: usize) -> (usize, u32) {
        let bit = k as u32 * self.place;
        ((bit / 32) as usize, bit % 32 + if self.bits == 4 && self.place == 8 { 2 } else { 0 })
    }

    /// The element that begins at this bit of a cell.
    pub fn from_cell(&self, cell: u32, bit: u32) -> u64 {
        u64::from(cell >> bit) & (u64::MAX >> (64 - self.bits))
    }

    /// Columns of tensor memory that `count` elements of a row take.
    pub fn columns(&self, count: usize) -> usize {
        (count * self.place as usize).div_ceil(32)
    }

    /// The matrix descriptor of this matrix that the bits encode.
    ///
    /// # Errors
    /// When it has an invalid swizzle mode.
    pub fn descriptor(&self, bits: u64) -> Result<Descriptor, Misuse> {
        if bits >> 52 & 1 != 0 {
            return Err(Misuse::Unsupported("a leading dimension that is an address is not executed"));
        }
        let descriptor = Descriptor::of_tensor_core(bits).ok_or(Misuse::Swizzle)?;
        if descriptor.has_wide_atoms() && !self.transposed { Err(Misuse::Swizzle) } else { Ok(descriptor) }
    }
}

impl Multiplication {
    /// The product that the picks of `tcgen05.mma` and an instruction descriptor describe.
    ///
    /// # Errors
    /// When the `.kind` does not allow what the descriptor says.
    pub fn of(picks: &Picks, descriptor: u64) -> Result<Multiplication, Misuse> {
        let has = |m| picks.has(m);
        let field = |first: u32, bits: u32| (descriptor >> first) as usize & ((1 << bits) - 1);
        let flag = |bit| field(bit, 1) != 0;
        let scaled = has(Mod::BlockScale);
        let packed = has(Mod::KindMxf4) || has(Mod::KindMxf4nvf4);
        let types = [field(7, 3), field(10, 3)];
        let [a, b] = match () {
            () if has(Mod::KindF16) => types.map(|ty| [Type::F16, Type::Bf16].get(ty).copied()),
            () if has(Mod::KindTf32) => types.map(|ty| (ty == 2).then_some(Type::Tf32)),
            () if has(Mod::KindI8) => types.map(|ty| [Type::U8, Type::S8].get(ty).copied()),
            () if packed => types.map(|ty| (ty == 1).then_some(Type::E2m1)),
            () => types.map(|ty| match ty {
                0 => Some(Type::E4m3),
                1 => Some(Type::E5m2),
                3 => Some(Type::E2m3),
                4 => Some(Type::E3m2),
                5 => Some(Type::E2m1),
                _ => None,
            }),
        };
        let (a, b) = a.zip(b).ok_or(Misuse::Types)?;
        let is_integer = has(Mod::KindI8);
        let d = match field(4, 2) {
            // The field has another meaning with scales.
            _ if scaled => Type::F32,
            0 if [a, b].iter().all(|&ty| !matches!(ty, Type::Bf16 | Type::Tf32)) && !is_integer => Type::F16,
            1 if !is_integer => Type::F32,
            2 if is_integer => Type::S32,
            _ => return Err(Misuse::Types),
        };
        let sparse = has(Mod::Sp);
        if flag(2) != sparse {
            return Err(Misuse::Sparsity);
        }
        let scale = match (scaled, flag(23)) {
            (false, _) => None,
            (true, is_ue8m0) => {
                let count = match () {
                    () if has(Mod::KindMxf8f6f4) => 1,
                    () if has(Mod::ScaleVec4X) || has(Mod::Block16) => 4,
                    () => 2,
                };
                let ty = if is_ue8m0 { Type::Ue8m0 } else { Type::Ue4m3 };
                if ty == Type::Ue4m3 && count != 4 {
                    return Err(Misuse::Types);
                }
                Some(BlockScale { count, ty })
            }
        };
        if packed && flag(31) {
            return Err(Misuse::Unsupported("products with 96 columns of A are not executed"));
        }
        let (transposed, negated) = ([flag(15), flag(16)], [flag(13), flag(14)]);
        let is_narrow = |ty| element_bits(ty) < 8;
        if transposed[0] && is_narrow(a)
            || transposed[1] && is_narrow(b)
            || is_integer && negated != [false; 2]
        {
            return Err(Misuse::Modifiers);
        }
        let pair = has(Mod::CtaGroup2);
        let (m, n) = (field(24, 5) * 16, field(17, 6) * 8);
        let weight_stationary = has(Mod::Ws);
        let step = match (m, pair) {
            (32 | 64 | 128, false) if weight_stationary => 64,
            _ if weight_stationary => return Err(Misuse::Shape),
            (128, false) if scaled => 8,
            (64, false) if is_integer && n > 32 => 16,
            (64, false) if !scaled => 8,
            (128, false) => 16,
            (128 | 256, true) if is_integer => 32,
            (128 | 256, true) => 16,
            _ => return Err(Misuse::Shape),
        };
        let shifted = has(Mod::Ashift);
        if n == 0 || n > 256 || !n.is_multiple_of(step) || weight_stationary && n == 192 || shifted && m < 128
        {
            return Err(Misuse::Shape);
        }
        let (a_factor, b_factor) =
            (Factor::new(a, packed, transposed[0]), Factor::new(b, packed, transposed[1]));
        let stored = 256 / a_factor.place as usize;
        Ok(Multiplication {
            product: Product {
                a,
                b,
                c: if is_integer { Type::S32 } else { Type::F32 },
                d,
                saturate: is_integer && flag(3),
                and: false,
                rounding: Rounding::NearestEven,
                packed: true,
            },
            a: a_factor,
            b: b_factor,
            rows: if pair { m / 2 } else { m },
            n,
            k: if sparse { stored * 2 } else { stored },
            pair,
            sparse,
            scale,
            negated: negated[0] != negated[1],
            scale_ids: [field(29, 2), field(4, 2)],
            selector: if sparse { field(0, 2) } else { 0 },
            weight_stationary,
            shifted,
        })
    }

    /// Elements of a row of A that are stored.
    pub fn stored(&self) -> usize {
        if self.sparse { self.k / 2 } else { self.k }
    }

    /// The lanes of a CTA that hold D (9.7.16.10.5 "Data path layout organization"):
    /// - 128 rows: all lanes.
    /// - 64 rows: 16 in each group of 32 lanes (layout F).
    /// - 64 rows with a CTA pair or `.ws`: the upper 64 lanes hold the second half of the columns (layouts B and E).
    /// - 32 rows: each group of 32 lanes holds a quarter of the columns (layout G).
    pub fn parts(&self) -> Vec<Part> {
        let n = self.n;
        match (self.rows, self.pair || self.weight_stationary) {
            (rows @ (32 | 64), true) => {
                let parts = LANES / rows;
                let part = |i: usize| Part {
                    lanes: (i * rows..(i + 1) * rows).collect(),
                    columns: i * n / parts..(i + 1) * n / parts,
                };
                (0..parts).map(part).collect()
            }
            (64, false) => {
                vec![Part { lanes: (0..64).map(|row| row / 16 * 32 + row % 16).collect(), columns: 0..n }]
            }
            (rows, _) => vec![Part { lanes: (0..rows).collect(), columns: 0..n }],
        }
    }

    /// Checks that D may begin at the lane of its address: lane 0, or with layout F also lane 16.
    ///
    /// # Errors
    /// When it may not.
    pub fn check(&self, at: Cell) -> Result<(), Misuse> {
        match at.lane {
            0 => Ok(()),
            16 if self.rows == 64 && !self.pair && !self.weight_stationary => Ok(()),
            lane if lane < LANES => Err(Misuse::LaneAlignment),
            _ => Err(Misuse::Outside),
        }
    }

    /// The lane of tensor memory with the row of A for a lane of D: with `.ashift` the next lane, except for the last
    /// one.
    pub fn lane_of_a(&self, lane: usize) -> usize {
        if self.shifted && lane + 1 < LANES { lane + 1 } else { lane }
    }

    /// Applies a zero-column mask (9.7.16.4.3, table "Zero-Column Mask descriptor layout") to B. Within a part of D,
    /// spans of zero columns and of used columns alternate. For each part, the mask says how many columns of its
    /// first span have already passed (bits 0 to 31), and whether that span is zero (bits 32 to 35). The lengths of
    /// zero spans (bits 40 to 47) and of used spans (bits 48 to 55) are the fields' values plus one. That follows the
    /// manual's examples; its table swaps the two fields. Bit 39 enables the mask (CUTLASS says the opposite, and
    /// passes zeros where it wants no mask). Bits 56 to 61 are the column where B begins; the mask counts from there.
    ///
    /// # Errors
    /// When B is shifted by more than 32 columns, or with 32 rows by more than 16.
    pub fn column_mask(&self, mask: u64) -> Result<ColumnMask, Misuse> {
        let mut zero = vec![false; self.n];
        let shift = (mask >> 56 & 0x3f) as usize;
        if shift > if self.rows == 32 { 16 } else { 32 } {
            return Err(Misuse::ColumnShift);
        }
        if mask >> 39 & 1 == 0 {
            return Ok(ColumnMask { zero, shift });
        }
        let [skip, used] = [40, 48].map(|first| (mask >> first & 0xff) + 1);
        for (i, part) in self.parts().into_iter().enumerate() {
            let (mut passed, mut skips) = (mask >> (8 * i) & 0xff, mask >> (32 + i) & 1 != 0);
            for column in part.columns {
                if passed >= if skips { skip } else { used } {
                    (passed, skips) = (0, !skips);
                }
                zero[column] = skips;
                passed += 1;
            }
        }
        Ok(ColumnMask { zero, shift })
    }

    /// The CTA of the pair, 0 or 1, whose shared memory has a column of B, and the column's index there.
    pub fn column_of_b(&self, column: usize) -> (usize, usize) {
        match self.pair {
            true => (column / (self.n / 2), column % (self.n / 2)),
            false => (0, column),
        }
    }

    /// The cell with the scales of a row of A, or of a column of B for a part of D, relative to the address. A column
    /// of cells has the scales of 32 lines (9.7.16.10.7 "Block scaling", the figures of scale factors).
    pub fn scale_cell(&self, matrix: Matrix, part: &Part, line: usize) -> Cell {
        let (line, lane) = match matrix {
            // Both halves of the lanes hold the scales of their own columns.
            Matrix::B => (line - part.columns.start, part.lanes[0]),
            _ => (line, 0),
        };
        Cell { lane: lane + line % 32, column: line / 32 }
    }

    /// Scale `index` of a line, taken from the cell with its scales.
    pub fn scale_bits(&self, matrix: Matrix, cell: u32, index: usize) -> u64 {
        let count = self.scale.map_or(1, |scale| scale.count);
        let id = self.scale_ids[usize::from(matrix == Matrix::B)] / count * count;
        u64::from(cell >> ((id + index) * 8) & 0xff)
    }

    /// Columns of cells that the scales of `lines` lines take.
    pub fn scale_columns(lines: usize) -> usize {
        lines.div_ceil(32)
    }

    /// The position of the metadata for a stored element of the row in this lane (9.7.16.10.6 "Sparse matrices", the
    /// figures of metadata): the cell, relative to the address, and the first of four bits. Elements that occupy 16
    /// or 32 bits have one column of metadata, laid out as in the registers of `mma.sp`; others have two columns.
    pub fn metadata_cell(&self, lane: usize, index: usize) -> (Cell, u32) {
        let chunk = index / (chunk_columns(self.a.place) / 2);
        let (lane, column, part) = match self.a.place {
            16 | 32 => (lane / 16 * 16 + chunk / 4 * 8 + lane % 8, 0, lane / 8 % 2 * 4 + chunk % 4),
            _ => (lane, chunk / 8, chunk % 8),
        };
        (Cell { lane, column: column + self.selector }, part as u32 * 4)
    }

    /// Columns of cells that the metadata take.
    pub fn metadata_columns(&self) -> usize {
        self.selector + if self.a.place >= 16 { 1 } else { 2 }
    }

    /// The row of B that is multiplied with a stored element of A, selected by four bits of metadata. If A is dense,
    /// the metadata are ignored.
    pub fn row_of_b(&self, index: usize, metadata: u32) -> usize {
        if !self.sparse {
            return index;
        }
        let columns = chunk_columns(self.a.place);
        let stored = columns / 2;
        index / stored * columns + chosen(self.a.place, metadata.into(), index % stored)
    }

    /// The bits of an element of A, with its sign flipped if exactly one of A and B is negated.
    pub fn signed(&self, bits: u64) -> u64 {
        if self.negated { bits ^ 1 << (self.a.bits - 1) } else { bits }
    }

    /// Whether exactly one of A and B is negated.
    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// The element of C for a cell of D, scaled by 2^-`scale` (`scale-input-d`).
    pub fn input(&self, cell: u32, scale: u64) -> u64 {
        if self.product.d == Type::S32 {
            return cell.into();
        }
        let wide = match self.product.d {
            Type::F16 => convert_float(&F16, &F32, Mode::NEAREST, u64::from(cell) & 0xffff),
            _ => cell.into(),
        };
        if scale == 0 {
            return wide;
        }
        let factor = Value::Finite(Exact { negative: false, significand: 1, exponent: -(scale as i32) });
        pack(&F32, Mode::NEAREST, arith::product(unpack(&F32, false, wide), factor))
    }

    /// An element of D, from the stored elements of a row of A, the elements of B that they are multiplied with, the
    /// scales of both, and C.
    pub fn element(&self, row: &[u64], column: &[u64], scales: Option<(&[u64], &[u64])>, c: u64) -> u64 {
        match self.scale.zip(scales) {
            Some((scale, (of_row, of_column))) => {
                self.product.scaled_element(scale, (row, of_row), (column, of_column), c)
            }
            None => self.product.element(row, column, c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(mods: &[Mod]) -> Picks {
        Picks::new(&[], mods)
    }

    /// An instruction descriptor with M, N and the type fields.
    fn descriptor(m: u64, n: u64, d: u64, a: u64, b: u64) -> u64 {
        d << 4 | a << 7 | b << 10 | (n / 8) << 17 | (m / 16) << 24
    }

    #[test]
    fn descriptors_are_what_the_kind_has() {
        let one = |kind, bits| Multiplication::of(&picks(&[Mod::CtaGroup1, kind]), bits);
        let f16 = one(Mod::KindF16, descriptor(128, 256, 1, 0, 0)).unwrap();
        assert_eq!((f16.rows, f16.n, f16.k), (128, 256, 16));
        assert_eq!(one(Mod::KindTf32, descriptor(64, 8, 1, 2, 2)).unwrap().k, 8);
        assert_eq!(one(Mod::KindF8f6f4, descriptor(64, 8, 0, 5, 3)).unwrap().k, 32);
        assert_eq!(one(Mod::KindF16, descriptor(128, 24, 1, 0, 0)), Err(Misuse::Shape));
        assert_eq!(one(Mod::KindF16, descriptor(256, 64, 1, 0, 0)), Err(Misuse::Shape));
        assert_eq!(one(Mod::KindF16, descriptor(128, 64, 0, 1, 1)), Err(Misuse::Types));
        assert_eq!(one(Mod::KindI8, descriptor(128, 64, 1, 0, 0)), Err(Misuse::Types));
        assert_eq!(one(Mod::KindF16, descriptor(128, 64, 1, 0, 0) | 4), Err(Misuse::Sparsity));
        assert_eq!(one(Mod::KindI8, descriptor(128, 64, 2, 0, 0) | 1 << 13), Err(Misuse::Modifiers));
    }

    #[test]
    fn every_row_of_d_has_lanes_of_its_own() {
        for (group, m, lanes) in [
            (Mod::CtaGroup1, 64, 64),
            (Mod::CtaGroup1, 128, 128),
            (Mod::CtaGroup2, 128, 128),
            (Mod::CtaGroup2, 256, 128),
        ] {
            let product =
                Multiplication::of(&picks(&[group, Mod::KindF16]), descriptor(m, 32, 1, 0, 0)).unwrap();
            let mut all: Vec<usize> = product.parts().into_iter().flat_map(|part| part.lanes).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), lanes);
            let cells: usize = product.parts().iter().map(|part| part.lanes.len() * part.columns.len()).sum();
            assert_eq!(cells, product.rows * 32);
        }
    }

    /// The manual's examples of zero-column masks (9.7.16.4.3). Arguments: start counts, first spans, enable bit,
    /// skip and use spans, shift.
    #[test]
    fn columns_are_masked_as_in_the_manual() {
        let masked =
            |m: u64, [sc0, sc1, sc2, sc3]: [u64; 4], fs: u64, on: u64, [skip, used]: [u64; 2], shift: u64| {
                let picks = picks(&[Mod::Ws, Mod::CtaGroup1, Mod::KindF16]);
                let product = Multiplication::of(&picks, descriptor(m, 64, 1, 0, 0)).unwrap();
                let starts = sc0 | sc1 << 8 | sc2 << 16 | sc3 << 24;
                product.column_mask(starts | fs << 32 | on << 39 | skip << 40 | used << 48 | shift << 56)
            };
        // The mask of a part, its first columns on the right, as the manual prints it.
        let parts = |mask: &ColumnMask, count: usize| -> Vec<String> {
            let part =
                |part: &[bool]| part[..12].iter().rev().map(|&zero| if zero { '1' } else { '0' }).collect();
            mask.zero.chunks(64 / count).map(part).collect()
        };
        let none = masked(128, [0; 4], 0, 0, [4, 3], 0).unwrap();
        assert_eq!(none, ColumnMask { zero: vec![false; 64], shift: 0 });
        assert_eq!(parts(&masked(128, [0; 4], 0, 1, [2, 3], 0).unwrap(), 1), ["100001110000"]);
        let two = masked(64, [0; 4], 1, 1, [2, 3], 0).unwrap();
        assert_eq!(parts(&two, 2), ["001110000111", "100001110000"]);
        let four = masked(32, [0, 1, 2, 1], 3, 1, [2, 3], 2).unwrap();
        assert_eq!(parts(&four, 4), ["001110000111", "000111000011", "111000011100", "110000111000"]);
        assert_eq!(four.shift, 2);
        assert_eq!(masked(32, [0; 4], 0, 0, [0; 2], 17), Err(Misuse::ColumnShift));
        assert_eq!(masked(64, [0; 4], 0, 0, [0; 2], 33), Err(Misuse::ColumnShift));
    }
}
