//! Prepares A and B for products: converts them to binary32 or binary64 and sorts them by rows.

use std::ops::Neg;

use super::super::fragment::{LINE_LANES, LINES, MatrixElement, Tiles, Tiling, part_of_words};
use super::super::path::{BLOCK, Path, WARP};
use super::super::quads::Quads;
use super::kernel::Registers;
use super::{COLUMNS, TileProduct};

/// The registers of A or B.
pub(super) struct Factor {
    pub element: MatrixElement,
    order: Order,
    /// The row and the column where each register's tile begins.
    starts: Vec<(usize, usize)>,
    /// The position of each register's first part, and the stride between parts.
    offsets: Vec<usize>,
    part_stride: usize,
    /// The order of [`Registers`], if these can be multiplied in place.
    in_place: Option<Vec<usize>>,
}

/// How the elements of registers are moved to their positions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// They are copied without reordering.
    InPlace,
    /// The lines of tiles are columns and become rows.
    Transposed,
    /// The lines of tiles are rows; their columns are sorted by parity.
    Sorted,
}

impl Factor {
    /// A, as planes of four columns of m rows.
    pub fn of_a((tiles, element): (&Tiles, MatrixElement), m: usize) -> Option<Factor> {
        let (parts, plane) = (tiles.in_word(), LINE_LANES * m);
        match tiles.tiling() {
            Tiling::Rows => {
                let group = |column| column / (LINE_LANES * parts);
                let offset = |(row, column)| group(column) * parts * plane + row * LINE_LANES;
                let mut order = vec![0; tiles.registers()];
                for (register, (row, column)) in tiles.starts().enumerate() {
                    order[group(column) * (m / LINES) + row / LINES] = register;
                }
                Some(Factor {
                    element,
                    order: Order::InPlace,
                    starts: Vec::new(),
                    offsets: tiles.starts().map(offset).collect(),
                    part_stride: plane,
                    in_place: Some(order),
                })
            }
            Tiling::Columns => Some(Factor::in_parts(tiles, element, Order::Transposed)),
            Tiling::Pairs => None,
        }
    }

    /// B, as rows of single strips.
    pub fn of_b((tiles, element): (&Tiles, MatrixElement)) -> Option<Factor> {
        match tiles.tiling() {
            Tiling::Columns => Some(Factor::in_parts(tiles, element, Order::Transposed)),
            Tiling::Rows => Some(Factor::in_parts(tiles, element, Order::Sorted)),
            Tiling::Pairs => None,
        }
    }

    /// A factor whose parts are first stored one after the other.
    fn in_parts(tiles: &Tiles, element: MatrixElement, order: Order) -> Factor {
        let each = tiles.in_word() * WARP;
        let offsets = (0..tiles.registers()).map(|register| register * each).collect();
        let starts = tiles.starts().collect();
        Factor { element, order, starts, offsets, part_stride: WARP, in_place: None }
    }

    /// The number of registers.
    pub fn registers(&self) -> usize {
        self.offsets.len()
    }

    /// The order in which the registers of A are multiplied in place, for a B of `n` columns; `None` if that is not
    /// worth it. Halves would be widened again for each strip of columns.
    pub fn in_place(&self, n: usize) -> Option<&[usize]> {
        let few = n <= 2 * COLUMNS;
        let can = match self.element {
            MatrixElement::Word(_) | MatrixElement::Double => true,
            MatrixElement::F16 | MatrixElement::Bf16 => few,
            _ => false,
        };
        self.in_place.as_deref().filter(|_| can)
    }
}

/// The position of row `k` of B among the rows of its strip, if a lane has `parts` elements along k. The rows are
/// ordered by part, and within a part by lane.
#[inline(always)]
fn row_of(k: usize, parts: usize) -> usize {
    // The numbers are powers of two, so no division is needed.
    let (shift, within) = (parts.trailing_zeros(), k & (LINE_LANES * parts - 1));
    k - within + (within & (parts - 1)) * LINE_LANES + (within >> shift)
}

/// The order of the lanes of a tile whose lines are columns: for each lane of a line, first the even columns, then
/// the odd ones.
const BY_LANE: [u32; WARP] = {
    let mut from = [0; WARP];
    let mut i = 0;
    while i < WARP {
        let (lane, column) = (i / COLUMNS, i % LINE_LANES * 2 + i % COLUMNS / LINE_LANES);
        from[i] = (column * LINE_LANES + lane) as u32;
        i += 1;
    }
    from
};

/// Compiles a separate loop for each element type in words.
macro_rules! each_element {
    ($element:expr, $each:ident) => {
        match $element {
            MatrixElement::F16 => $each!(MatrixElement::F16),
            MatrixElement::Bf16 => $each!(MatrixElement::Bf16),
            MatrixElement::Word(mask) => $each!(MatrixElement::Word(mask)),
            MatrixElement::Small(format) => $each!(MatrixElement::Small(format)),
            MatrixElement::U8 => $each!(MatrixElement::U8),
            MatrixElement::S8 => $each!(MatrixElement::S8),
            MatrixElement::U4 => $each!(MatrixElement::U4),
            MatrixElement::S4 => $each!(MatrixElement::S4),
            MatrixElement::Double => {}
        }
    };
}

/// The number types that products are computed in.
pub(super) trait Number: Copy + Default + Neg<Output = Self> {
    /// Vectors of them.
    type Vector<P: Path>: Quads<Number = Self, Path = P>;

    /// Copies the parts of registers, from lane `first` on, to the positions that `factor` gives.
    unsafe fn take<P: Path>(path: P, registers: &[*const u8], first: usize, factor: &Factor, to: *mut Self);

    /// Transposes a matrix.
    fn transpose<P: Path>(path: P, rows: [[Self; 4]; 4]) -> [[Self; 4]; 4];

    /// Reorders B from tiles whose lines are columns.
    ///
    /// # Safety
    /// As for [`multiply_tiles`](super::multiply_tiles).
    unsafe fn take_columns<P: Path>(
        path: P,
        product: &TileProduct,
        registers: &[*const u8],
        first: usize,
        b: &mut [Self],
    );

    /// Converts sums of integer products to integer words, and adds the addends at the same positions.
    unsafe fn add_integers(sums: &mut [Self], addends: Option<Registers<'_, Self>>, saturate: bool);

    /// Whether the sums contain numbers that must not be written to the registers as they are.
    fn is_odd(sums: &[Self]) -> bool;

    /// Reorders A into planes of four columns.
    ///
    /// # Safety
    /// As for [`multiply_tiles`](super::multiply_tiles); `a` has room for all of A.
    #[inline(always)]
    unsafe fn take_a<P: Path>(
        path: P,
        product: &TileProduct,
        registers: &[*const u8],
        first: usize,
        parts: &mut Vec<Self>,
        a: &mut [Self],
    ) {
        // SAFETY: the caller's promise; the parts have room for all elements of all registers.
        unsafe {
            if product.a.order == Order::InPlace {
                return Self::take(path, registers, first, &product.a, a.as_mut_ptr());
            }
            parts.resize(product.m * product.k, Self::default());
            Self::take(path, registers, first, &product.a, parts.as_mut_ptr());
            transpose_a::<_, Self>(path, &product.a, parts, product.m, a);
        }
    }

    /// Reorders B for [`add_products`](super::kernel::add_products).
    ///
    /// # Safety
    /// As for [`multiply_tiles`](super::multiply_tiles); `b` has room for all of B.
    #[inline(always)]
    unsafe fn take_b<P: Path>(
        path: P,
        product: &TileProduct,
        registers: &[*const u8],
        first: usize,
        parts: &mut Vec<Self>,
        b: &mut [Self],
    ) {
        // SAFETY: as above.
        unsafe {
            if product.b.order == Order::Transposed {
                return Self::take_columns(path, product, registers, first, b);
            }
            parts.resize(product.k * product.n, Self::default());
            Self::take(path, registers, first, &product.b, parts.as_mut_ptr());
            sort_b(product, parts, b);
        }
    }
}

impl Number for f32 {
    type Vector<P: Path> = P::Singles;

    #[inline(always)]
    unsafe fn take<P: Path>(path: P, registers: &[*const u8], first: usize, factor: &Factor, to: *mut f32) {
        let parts = factor.element.in_word();
        macro_rules! each {
            ($element:expr) => {
                for (register, &offset) in registers.iter().zip(&factor.offsets) {
                    for part in 0..parts {
                        for half in 0..WARP / BLOCK {
                            // SAFETY: the register has the words of the warp, and the destination has room.
                            unsafe {
                                let from = register.cast::<u32>().add(first + half * BLOCK);
                                let values = part_of_words(path, from, $element, part);
                                let to = to.add(offset + part * factor.part_stride + half * BLOCK);
                                to.cast::<[f32; BLOCK]>().write_unaligned(values);
                            }
                        }
                    }
                }
            };
        }
        each_element!(factor.element, each)
    }

    #[inline(always)]
    fn transpose<P: Path>(path: P, rows: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
        // SAFETY: the arrays have the same size, and any bits are a number.
        unsafe {
            let rows = std::mem::transmute::<[[f32; 4]; 4], [[u32; 4]; 4]>(rows);
            std::mem::transmute(path.transpose4(rows))
        }
    }

    #[inline(always)]
    unsafe fn take_columns<P: Path>(
        path: P,
        &TileProduct { k, ref b, a_parts, .. }: &TileProduct,
        registers: &[*const u8],
        first: usize,
        to: &mut [f32],
    ) {
        let parts = b.element.in_word();
        // The order of the rows of a group, as in `row_of`.
        let (lane_stride, part_stride) = if a_parts == parts { (1, LINE_LANES) } else { (parts, 1) };
        macro_rules! each {
            ($element:expr) => {
                for (register, &(row, column)) in registers.iter().zip(&b.starts) {
                    let to = &mut to[column * k..][..COLUMNS * k];
                    // SAFETY: the register has the words of the warp.
                    unsafe {
                        let words = register.cast::<u32>().add(first).cast::<[u32; WARP]>();
                        let words = path.permute(words.read_unaligned(), BY_LANE);
                        for part in 0..parts {
                            for (half, words) in words.as_chunks::<BLOCK>().0.iter().enumerate() {
                                let values = part_of_words(path, words.as_ptr(), $element, part);
                                for (i, values) in values.as_chunks::<COLUMNS>().0.iter().enumerate() {
                                    let row = row + (2 * half + i) * lane_stride + part * part_stride;
                                    to[row * COLUMNS..][..COLUMNS].copy_from_slice(values);
                                }
                            }
                        }
                    }
                }
            };
        }
        each_element!(b.element, each)
    }

    #[inline(always)]
    unsafe fn add_integers(sums: &mut [f32], addends: Option<Registers<'_, f32>>, saturate: bool) {
        for (register, sums) in sums.as_chunks_mut::<WARP>().0.iter_mut().enumerate() {
            let from: *const f32 = match addends {
                // SAFETY: the caller's promise.
                Some(all) => unsafe { all.row(register / all.tiles, register % all.tiles * LINES, 0) },
                None => NO_ADDENDS.as_ptr(),
            };
            // SAFETY: a register has the words of the warp.
            let addends = unsafe { from.cast::<[i32; WARP]>().read_unaligned() };
            if saturate {
                for i in 0..WARP {
                    sums[i] = f32::from_bits(addends[i].saturating_add(integer(sums[i])) as u32);
                }
            } else {
                for i in 0..WARP {
                    sums[i] = f32::from_bits(addends[i].wrapping_add(integer(sums[i])) as u32);
                }
            }
        }
    }

    #[inline(always)]
    fn is_odd(_: &[f32]) -> bool {
        false
    }
}

static NO_ADDENDS: [f32; WARP] = [0.0; WARP];

/// A sum of products of integers.
#[inline(always)]
fn integer(sum: f32) -> i32 {
    // SAFETY: the sum is that of at most 2^8 products of 8-bit integers.
    unsafe { sum.to_int_unchecked() }
}

impl Number for f64 {
    type Vector<P: Path> = P::Doubles;

    #[inline(always)]
    unsafe fn take<P: Path>(_: P, registers: &[*const u8], first: usize, factor: &Factor, to: *mut f64) {
        for (register, &offset) in registers.iter().zip(&factor.offsets) {
            // SAFETY: the register has the numbers of the warp, and the destination has room.
            unsafe {
                let from = register.cast::<f64>().add(first).cast::<[f64; WARP]>();
                to.add(offset).cast::<[f64; WARP]>().write_unaligned(from.read_unaligned());
            }
        }
    }

    #[inline(always)]
    fn transpose<P: Path>(_: P, rows: [[f64; 4]; 4]) -> [[f64; 4]; 4] {
        let mut out = rows;
        for (i, out) in out.iter_mut().enumerate() {
            for (out, row) in out.iter_mut().zip(&rows) {
                *out = row[i];
            }
        }
        out
    }

    #[inline(always)]
    unsafe fn take_columns<P: Path>(
        _: P,
        &TileProduct { k, ref b, .. }: &TileProduct,
        registers: &[*const u8],
        first: usize,
        to: &mut [f64],
    ) {
        for (register, &(row, column)) in registers.iter().zip(&b.starts) {
            // SAFETY: the register has the numbers of the warp.
            let lanes = unsafe { register.cast::<f64>().add(first).cast::<[f64; WARP]>().read_unaligned() };
            let to = &mut to[column * k + row * COLUMNS..][..WARP];
            for (to, from) in to.iter_mut().zip(BY_LANE) {
                *to = lanes[from as usize];
            }
        }
    }

    #[inline(always)]
    unsafe fn add_integers(_: &mut [f64], _: Option<Registers<'_, f64>>, _: bool) {}

    /// The host may produce another NaN than the instruction.
    #[inline(always)]
    fn is_odd(sums: &[f64]) -> bool {
        sums.iter().fold(false, |odd, sum| odd | sum.is_nan())
    }
}

/// Writes four numbers.
macro_rules! write_quad {
    ($to:expr, $at:expr, $quad:expr) => {
        $to[$at..$at + LINE_LANES].copy_from_slice(&$quad)
    };
}

/// Reorders A from tiles whose lines are columns: four columns become one plane.
#[inline(always)]
fn transpose_a<P: Path, T: Number>(path: P, factor: &Factor, parts: &[T], m: usize, a: &mut [T]) {
    let in_word = factor.element.in_word();
    for (&(row, column), register) in factor.starts.iter().zip(parts.chunks_exact(WARP * in_word)) {
        for (part, values) in register.as_chunks::<WARP>().0.iter().enumerate() {
            for (i, lines) in values.as_chunks::<LINE_LANES>().0.as_chunks::<4>().0.iter().enumerate() {
                let rows = T::transpose(path, *lines);
                for (lane, quad) in rows.into_iter().enumerate() {
                    let at = (column / LINE_LANES + i) * LINE_LANES * m
                        + (row + lane * in_word + part) * LINE_LANES;
                    write_quad!(a, at, quad);
                }
            }
        }
    }
}

/// Reorders B from tiles whose lines are rows.
#[inline(always)]
fn sort_b<T: Number>(&TileProduct { k, ref b, a_parts, .. }: &TileProduct, parts: &[T], to: &mut [T]) {
    let in_word = b.element.in_word();
    for (&(row, column), register) in b.starts.iter().zip(parts.chunks_exact(WARP * in_word)) {
        for (part, values) in register.as_chunks::<WARP>().0.iter().enumerate() {
            for (line, quad) in values.as_chunks::<LINE_LANES>().0.iter().enumerate() {
                let row = row_of(row + line, a_parts);
                if in_word == 2 {
                    write_quad!(to, (column / COLUMNS * k + row) * COLUMNS + part * LINE_LANES, *quad);
                    continue;
                }
                for (lane, &x) in quad.iter().enumerate() {
                    let column = column + lane * in_word + part;
                    let within = column % 2 * LINE_LANES + column % COLUMNS / 2;
                    to[(column / COLUMNS * k + row) * COLUMNS + within] = x;
                }
            }
        }
    }
}
