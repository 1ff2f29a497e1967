//! Matrix operations with the place of every element resolved: the lane, the register and the part of the register that hold it.

use ir::MatrixKind;
use isa::matrix::{Matrix, Shape, element_bits};
use isa::{Mod, Space, Type};
use lanes::{MatrixHelpers, Tiles};
use machine::mask::WARP_LANES;
use sem::matrix::{BlockScale, Product, Sparsity};

use super::{Address, Tiled};
use crate::registers::SlotRef;

/// A matrix in the registers of a warp.
pub(crate) struct Fragment {
    /// `None` for a `_` operand.
    pub registers: Vec<Option<SlotRef>>,
    /// Bits that each element takes in its register.
    pub bits: u32,
    /// Elements in a register.
    pub in_register: usize,
    pub rows: usize,
    pub columns: usize,
    /// Element `part` of register `r` of lane `l` is element `places[(r * 32 + l) * in_register + part]` of the matrix,
    /// in row-major order (several matrices follow each other).
    pub places: Vec<u16>,
    /// The same places as tiles, if they form tiles.
    pub tiles: Option<Tiles>,
}

/// A factor or the addend of a product.
pub(crate) struct MatrixFactor {
    /// For A of `wgmma`, the rows of one warp.
    pub rows: usize,
    pub columns: usize,
    pub source: MatrixSource,
}

/// The location of a factor's elements.
pub(crate) enum MatrixSource {
    Registers(Fragment),
    /// In shared memory, behind a matrix descriptor. Transposed if the immediate is set.
    Shared {
        descriptor: SlotRef,
        transposed: Option<SlotRef>,
        matrix: Matrix,
        bits: u32,
    },
}

/// The operands of `mma` or `wgmma`.
pub(crate) struct Multiply {
    pub product: Product,
    pub a: MatrixFactor,
    pub b: MatrixFactor,
    pub c: MatrixFactor,
    pub d: Fragment,
    /// The number of products of this size: four for `m8n8k4` of halves.
    pub products: usize,
    pub sparse: Option<Sparse>,
    pub scales: Option<Scales>,
    /// `wgmma`: whether C is added. Otherwise it counts as zero.
    pub accumulate: Option<SlotRef>,
    /// `wgmma`: 1 or -1, the signs of A and B.
    pub signs: Option<[SlotRef; 2]>,
    pub helpers: &'static MatrixHelpers,
    /// The same product on tiles, if it can be computed that way.
    pub tiled: Option<Tiled>,
}

/// `mma.sp`: which half of A is stored.
pub(crate) struct Sparse {
    pub sparsity: Sparsity,
    pub metadata: SlotRef,
    pub selector: SlotRef,
}

/// `mma.block_scale`: the scales of A and B.
pub(crate) struct Scales {
    pub scale: BlockScale,
    pub a: ScaleData,
    pub b: ScaleData,
}

/// `scale-data, {byte-id, thread-id}`
pub(crate) struct ScaleData {
    pub data: SlotRef,
    pub byte: SlotRef,
    pub thread: SlotRef,
}

/// A matrix of 8 or 16 rows between memory and registers. Lanes provide the addresses of the rows.
pub(crate) struct MatrixRows {
    pub address: Address,
    pub registers: Vec<Option<SlotRef>>,
    pub transposed: bool,
    pub format: RowFormat,
}

/// The elements in a row of 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    /// `.m8n8.b16`: 8 elements of 2 bytes.
    Halves,
    /// `.m16n16.b8`, `.m8n16.b8x16.b6x16_p32` and the like: 16 elements of `bits` bits, each unpacked into a byte.
    Packed { bits: u32, rows: usize },
}

/// A matrix in memory with a stride.
pub(crate) struct Strided {
    pub fragment: Fragment,
    pub address: Address,
    /// Elements from one row (column) to the next. `None`: they are consecutive.
    pub stride: Option<SlotRef>,
    pub by_column: bool,
}

pub(crate) enum MatrixOp {
    Multiply(Box<Multiply>),
    LoadRows(MatrixRows),
    StoreRows(MatrixRows),
    /// `movmatrix`
    Transpose {
        dst: Option<SlotRef>,
        src: SlotRef,
    },
    Load(Strided),
    Store(Strided),
}

/// The operands as slots, from the builder.
pub(crate) struct MatrixOperands {
    pub dst: Vec<Option<SlotRef>>,
    pub src: Vec<SlotRef>,
    pub address: Option<Address>,
    pub stride: Option<SlotRef>,
}

impl MatrixOp {
    /// `None` for an operation that no engine executes.
    pub fn new(
        op: &ir::MatrixOp,
        operands: MatrixOperands,
        helpers: &'static MatrixHelpers,
    ) -> Option<MatrixOp> {
        let MatrixOperands { dst, src, address, stride } = operands;
        let sources = || src.iter().copied().map(Some).collect::<Vec<_>>();
        let strided = |registers| {
            let spec = op.form.operands.iter().find(|spec| spec.elements == isa::Elements::Fragment)?;
            let (shape, ty) = (Shape::of(&op.picks)?, spec.element(&op.picks)?);
            let matrix = Matrix::of(op.form, &op.picks, spec);
            let fragment = Fragment::new(matrix, shape, ty.bits(), registers);
            let by_column = op.picks.has(Mod::Col);
            Some(Strided { fragment, address: address?, stride, by_column })
        };
        Some(match op.kind {
            MatrixKind::Multiply => Multiply::new(op, dst, src, helpers)?.boxed(),
            MatrixKind::GroupMultiply => Multiply::of_group(op, dst, src, helpers)?.boxed(),
            MatrixKind::LoadRows => MatrixOp::LoadRows(MatrixRows::new(op, address?, dst)),
            MatrixKind::StoreRows => MatrixOp::StoreRows(MatrixRows::new(op, address?, sources())),
            MatrixKind::Transpose => MatrixOp::Transpose { dst: *dst.first()?, src: *src.first()? },
            MatrixKind::Load => MatrixOp::Load(strided(dst)?),
            MatrixKind::Store => MatrixOp::Store(strided(sources())?),
        })
    }
}

impl MatrixRows {
    fn new(op: &ir::MatrixOp, address: Address, registers: Vec<Option<SlotRef>>) -> MatrixRows {
        let rows = if op.picks.has(Mod::M16n16) { 16 } else { 8 };
        let format = match () {
            () if op.picks.has(Mod::B6x16P32) => RowFormat::Packed { bits: 6, rows },
            () if op.picks.has(Mod::B4x16P64) => RowFormat::Packed { bits: 4, rows },
            () if op.picks.types().contains(&Type::B16) => RowFormat::Halves,
            () => RowFormat::Packed { bits: 8, rows },
        };
        // Without a space the address is generic, but only shared memory can be read.
        let address = Address {
            space: if op.picks.space() == Space::Generic { Space::Generic } else { Space::Shared },
            ..address
        };
        MatrixRows { address, registers, transposed: op.picks.has(Mod::Trans), format }
    }
}

impl Fragment {
    fn new(matrix: Matrix, shape: Shape, bits: u32, registers: Vec<Option<SlotRef>>) -> Fragment {
        let (rows, columns) = matrix.size(shape, false);
        Fragment::with(rows, columns, bits, registers, |lane, index| {
            let (row, column) = sem::matrix::place(matrix, shape, bits, lane, index);
            row * columns + column
        })
    }

    fn of_quad_pairs(
        matrix: Matrix,
        by_column: bool,
        bits: u32,
        registers: Vec<Option<SlotRef>>,
    ) -> Fragment {
        let (rows, columns) = matrix.size(Shape { m: 8, n: 8, k: 4 }, false);
        Fragment::with(rows, columns, bits, registers, |lane, index| {
            let (pair, row, column) = sem::matrix::quad_pair_place(matrix, by_column, bits, lane, index);
            (pair * rows + row) * columns + column
        })
    }

    fn with(
        rows: usize,
        columns: usize,
        bits: u32,
        registers: Vec<Option<SlotRef>>,
        place: impl Fn(usize, usize) -> usize,
    ) -> Fragment {
        let in_register = (32 / bits).max(1) as usize;
        let mut places = Vec::with_capacity(registers.len() * WARP_LANES * in_register);
        for register in 0..registers.len() {
            for lane in 0..WARP_LANES {
                let elements = register * in_register..(register + 1) * in_register;
                places.extend(elements.map(|index| place(lane, index) as u16));
            }
        }
        let tiles = Tiles::find(&places, in_register, columns);
        Fragment { registers, bits, in_register, rows, columns, places, tiles }
    }
}

impl Multiply {
    fn boxed(mut self) -> MatrixOp {
        self.tiled = Tiled::new(&self);
        MatrixOp::Multiply(Box::new(self))
    }

    fn new(
        op: &ir::MatrixOp,
        dst: Vec<Option<SlotRef>>,
        src: Vec<SlotRef>,
        helpers: &'static MatrixHelpers,
    ) -> Option<Multiply> {
        let (form, picks) = (op.form, &op.picks);
        let (shape, product) = (Shape::of(picks)?, Product::of(picks));
        let mut sources = src.into_iter();
        let mut registers = |name: &str| -> Option<Vec<_>> {
            let spec = form.operands.iter().find(|spec| spec.name == name)?;
            let count = isa::matrix::fragment_registers(form, picks, spec);
            Some(sources.by_ref().take(count).map(Some).collect())
        };
        let (a, b, c) = (registers("a")?, registers("b")?, registers("c")?);
        let sparse = match isa::matrix::is_sparse(picks) {
            true => Some(Sparse {
                sparsity: Sparsity::of(shape, product.a, picks),
                metadata: sources.next()?,
                selector: sources.next()?,
            }),
            false => None,
        };
        let mut scale_data =
            || Some(ScaleData { data: sources.next()?, byte: sources.next()?, thread: sources.next()? });
        let scales = match BlockScale::of(picks) {
            Some(scale) => Some(Scales { scale, a: scale_data()?, b: scale_data()? }),
            None => None,
        };
        let by_pairs = sem::matrix::by_quad_pairs(shape, &product);
        // `.alayout.blayout`: the first `.row` or `.col` is that of A.
        let mut layouts = picks.mods().iter().filter(|m| matches!(m, Mod::Row | Mod::Col));
        let mut fragment = |matrix: Matrix, ty: Type, registers: Vec<Option<SlotRef>>| {
            let by_column = matrix != Matrix::Accumulator && layouts.next() == Some(&Mod::Col);
            let bits = element_bits(ty, picks);
            match by_pairs {
                true => Fragment::of_quad_pairs(matrix, by_column, bits, registers),
                // The stored part of a sparse A has the layout of a matrix with half the columns.
                false if sparse.is_some() && matrix == Matrix::A => {
                    Fragment::new(matrix, Shape { k: shape.k / 2, ..shape }, bits, registers)
                }
                // Fragments of `wmma` have the layout with which they were loaded.
                false => Fragment::new(matrix, shape, bits, registers),
            }
        };
        Some(Multiply {
            tiled: None,
            a: fragment(Matrix::A, product.a, a).into(),
            b: fragment(Matrix::B, product.b, b).into(),
            c: fragment(Matrix::Accumulator, product.c, c).into(),
            d: fragment(Matrix::Accumulator, product.d, dst),
            product,
            products: if by_pairs { 4 } else { 1 },
            sparse,
            scales,
            accumulate: None,
            signs: None,
            helpers,
        })
    }

    /// `wgmma`: the part of one of the four warps, 16 rows of D. Its fragments have the layout of `mma` fragments.
    fn of_group(
        op: &ir::MatrixOp,
        dst: Vec<Option<SlotRef>>,
        src: Vec<SlotRef>,
        helpers: &'static MatrixHelpers,
    ) -> Option<Multiply> {
        let (form, picks) = (op.form, &op.picks);
        let (whole, product) = (Shape::of(picks)?, Product::of(picks));
        let is_sparse = isa::matrix::is_sparse(picks);
        // The stored part of a sparse A has the layout of a matrix with half the columns.
        let shape = |matrix: Matrix| {
            let k = if matrix == Matrix::A && is_sparse { whole.k / 2 } else { whole.k };
            Shape { m: 16, k, ..whole }
        };
        let mut sources = src.into_iter();
        // The next operand. `None` if the row has no operand with this name.
        let mut next = |name: &str| -> Option<Vec<SlotRef>> {
            let spec = form.operands.iter().find(|spec| spec.name == name)?;
            let (count, _) = spec.count(form, picks);
            Some(sources.by_ref().take(count).collect())
        };
        let fragment = |matrix: Matrix, ty: Type, registers: Vec<Option<SlotRef>>| {
            Fragment::new(matrix, shape(matrix), ty.bits(), registers)
        };
        let c = next("d")?.into_iter().map(Some).collect();
        let in_registers = next("a");
        let descriptor_a = next("a-desc");
        let mut first = |name: &str| next(name).and_then(|slots| slots.first().copied());
        let descriptor_b = first("b-desc")?;
        let sparse = match (first("sp-meta"), first("sp-sel")) {
            (Some(metadata), Some(selector)) => {
                Some(Sparse { sparsity: Sparsity::of(whole, product.a, picks), metadata, selector })
            }
            _ => None,
        };
        let accumulate = first("scale-d")?;
        let signs = match (first("imm-scale-a"), first("imm-scale-b")) {
            (Some(a), Some(b)) => Some([a, b]),
            _ => None,
        };
        let [transposed_a, transposed_b] = ["imm-trans-a", "imm-trans-b"].map(first);
        let shared = |descriptor, transposed, matrix: Matrix, ty: Type| {
            let (rows, columns) = matrix.size(shape(matrix), false);
            MatrixFactor {
                rows,
                columns,
                source: MatrixSource::Shared { descriptor, transposed, matrix, bits: ty.bits() },
            }
        };
        Some(Multiply {
            tiled: None,
            a: match in_registers {
                Some(registers) => {
                    fragment(Matrix::A, product.a, registers.into_iter().map(Some).collect()).into()
                }
                None => shared(*descriptor_a?.first()?, transposed_a, Matrix::A, product.a),
            },
            b: shared(descriptor_b, transposed_b, Matrix::B, product.b),
            c: fragment(Matrix::Accumulator, product.c, c).into(),
            d: fragment(Matrix::Accumulator, product.d, dst),
            product,
            products: 1,
            sparse,
            scales: None,
            accumulate: Some(accumulate),
            signs,
            helpers,
        })
    }
}

impl From<Fragment> for MatrixFactor {
    fn from(fragment: Fragment) -> MatrixFactor {
        MatrixFactor {
            rows: fragment.rows,
            columns: fragment.columns,
            source: MatrixSource::Registers(fragment),
        }
    }
}
