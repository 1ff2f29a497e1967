//! Matrix products whose fragments are tiles. A vector function multiplies them in register order
//! ([`lanes::TileProduct`]).

use isa::matrix::Matrix;
use isa::{Rounding, Type};
use lanes::{MatrixElement, SmallFloat, TileProduct, TileRegisters, Tiles, Tiling};
use sem::format::Format;
use sem::matrix::Product;

use super::{Fragment, MatrixFactor, MatrixSource, Multiply};
use crate::registers::SlotRef;

/// Bits of the elements that are adjacent in shared memory: the words of a quad.
const UNIT_BITS: usize = 128;

/// A matrix product on tiles.
pub(crate) struct Tiled {
    /// Bits 0 and 1 of the index: whether A and B are transposed in shared memory.
    products: [Option<TileProduct>; 4],
    pub a: TileSource,
    pub b: TileSource,
    pub c: Vec<SlotRef>,
    pub d: Vec<SlotRef>,
    /// The result of [`TileProduct::reads_later`] for the registers of A, C and D.
    pub d_is_read: bool,
}

/// The registers of a factor.
pub(crate) enum TileSource {
    Registers {
        slots: Vec<SlotRef>,
        /// Which of the fragment's registers these are.
        kept: Vec<usize>,
    },
    /// For each warp, this many registers are filled from the units behind a descriptor.
    Shared { descriptor: SlotRef, transposed: Option<SlotRef>, registers: usize },
}

impl Tiled {
    /// `None` if the product cannot be computed on tiles.
    pub fn new(op: &Multiply) -> Option<Tiled> {
        let nearest = op.product.d != Type::F64 || op.product.rounding == Rounding::NearestEven;
        if op.sparse.is_some() || op.scales.is_some() || op.products != 1 || !nearest {
            return None;
        }
        let [a, b, c, d] =
            [op.product.a, op.product.b, op.product.c, op.product.d].map(|ty| element(&op.product, ty));
        let (a, b, c, d) = (a?, b?, c?, d?);
        let MatrixSource::Registers(c_fragment) = &op.c.source else { return None };
        let size = [op.a.rows, op.b.columns, op.a.columns];
        let integers = (op.product.d == Type::S32).then_some(op.product.saturate);
        let product = |index: usize| {
            let a_tiles = factor_tiles(&op.a, a, index & 1 != 0)?;
            let b_tiles = factor_tiles(&op.b, b, index & 2 != 0)?;
            let (c_tiles, d_tiles) = (c_fragment.tiles.as_ref()?, op.d.tiles.as_ref()?);
            TileProduct::new(size, (&a_tiles, a), (&b_tiles, b), (c_tiles, c), (d_tiles, d), integers)
        };
        let products = std::array::from_fn(product);
        let (a, b) = (TileSource::of(&op.a)?, TileSource::of(&op.b)?);
        let (c, d) = (slots(c_fragment)?, slots(&op.d)?);
        // If A is in registers, this is the only product.
        let a_slots: &[SlotRef] = if let TileSource::Registers { slots, .. } = &a { slots } else { &[] };
        let d_is_read = products[0].as_ref()?.reads_later(a_slots, &c, &d);
        Some(Tiled { products, a, b, c, d, d_is_read })
    }

    /// The product for factors in shared memory that are transposed or not.
    pub fn product(&self, a_transposed: bool, b_transposed: bool) -> Option<&TileProduct> {
        self.products[usize::from(a_transposed) | usize::from(b_transposed) << 1].as_ref()
    }
}

impl TileSource {
    fn of(factor: &MatrixFactor) -> Option<TileSource> {
        Some(match &factor.source {
            MatrixSource::Registers(fragment) => {
                let (_, kept) = fragment.tiles.as_ref()?.distinct();
                let slots = kept.iter().map(|&i| fragment.registers[i]).collect::<Option<_>>()?;
                TileSource::Registers { slots, kept }
            }
            &MatrixSource::Shared { descriptor, transposed, bits, .. } => {
                let registers = factor.rows * factor.columns * bits as usize / (8 * UNIT_BITS);
                TileSource::Shared { descriptor, transposed, registers }
            }
        })
    }
}

impl Multiply {
    /// The product for a single warp whose registers are elsewhere: `operand` says where. They are numbered: those of A, B, C and
    /// D one after the other. `None`: its matrices are not all tiles in registers.
    pub fn tiles_at(&self, operand: impl Fn(usize) -> *mut u8) -> Option<(&TileProduct, TileRegisters)> {
        let tiled = self.tiled.as_ref()?;
        let (TileSource::Registers { kept: a, .. }, TileSource::Registers { kept: b, .. }) =
            (&tiled.a, &tiled.b)
        else {
            return None;
        };
        let [of_a, of_b] = [&self.a, &self.b].map(|factor| match &factor.source {
            MatrixSource::Registers(fragment) => fragment.registers.len(),
            MatrixSource::Shared { .. } => 0,
        });
        let (first_c, first_d) = (of_a + of_b, of_a + of_b + tiled.c.len());
        let all = |first: usize, count| (first..first + count).map(&operand);
        let registers = TileRegisters {
            a: a.iter().map(|&index| operand(index).cast_const()).collect(),
            b: b.iter().map(|&index| operand(of_a + index).cast_const()).collect(),
            c: all(first_c, tiled.c.len()).map(|place| place.cast_const()).collect(),
            d: all(first_d, tiled.d.len()).collect(),
            d_is_read: false,
        };
        Some((tiled.product(false, false)?, registers))
    }
}

/// All registers of a fragment.
fn slots(fragment: &Fragment) -> Option<Vec<SlotRef>> {
    fragment.registers.iter().copied().collect()
}

/// The tiles of A or B. In shared memory, a tile is eight lines of one unit each: the rows of A or the columns of B, or
/// lines along k if the matrix is transposed.
fn factor_tiles(factor: &MatrixFactor, element: MatrixElement, transposed: bool) -> Option<Tiles> {
    match &factor.source {
        MatrixSource::Registers(fragment) if !transposed => Some(fragment.tiles.as_ref()?.distinct().0),
        MatrixSource::Registers(_) => None,
        MatrixSource::Shared { matrix, .. } => {
            let tiling = if (*matrix == Matrix::A) == transposed { Tiling::Columns } else { Tiling::Rows };
            Some(Tiles::grid(tiling, element.in_word(), factor.rows, factor.columns))
        }
    }
}

/// The conversion of elements of a type to binary32, which must represent them exactly, or to binary64.
fn element(product: &Product, ty: Type) -> Option<MatrixElement> {
    Some(match ty {
        Type::F16 => MatrixElement::F16,
        Type::Bf16 => MatrixElement::Bf16,
        Type::F32 | Type::S32 => MatrixElement::Word(u32::MAX),
        Type::Tf32 => MatrixElement::Word(product.kept_bits(ty, u32::MAX.into()) as u32),
        Type::F64 => MatrixElement::Double,
        Type::U8 => MatrixElement::U8,
        Type::S8 => MatrixElement::S8,
        Type::U4 => MatrixElement::U4,
        Type::S4 => MatrixElement::S4,
        Type::E4m3 | Type::E5m2 | Type::E2m3 | Type::E3m2 => {
            MatrixElement::Small(SmallFloat::new(Format::of(ty)?, 0))
        }
        // The element is in the middle of its byte.
        Type::E2m1 if !product.packed => MatrixElement::Small(SmallFloat::new(Format::of(ty)?, 2)),
        _ => return None,
    })
}
