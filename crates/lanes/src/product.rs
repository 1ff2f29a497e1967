//! Products of matrices in the registers of a warp, in the order in which these hold them.
//!
//! Element (row, column) of D stands in the lane `row % 8 * 4 + column % 8 / 2`, in one register for even columns and another for odd ones.
//! So a register is 8 rows of one parity, a quad each, and the terms that are added to it are an element of A, which is the same in all of a
//! quad, and four of B, which are the same for all rows: A is used as it stands, C and D stand still, only B is brought into another order.

use std::ops::Neg;

use smallvec::SmallVec;

use super::fragment::{LINE_LANES, LINES, MatrixElement, Tiles, Tiling, part_of_words};
use super::path::{BLOCK, Path, WARP};
use super::quads::Quads;

/// Columns whose sums stand together: one parity of them in each of two planes.
const COLUMNS: usize = 2 * LINE_LANES;

/// `D = A * B + C` with matrices in the registers of warps: what all warps have in common.
pub struct TileProduct {
    m: usize,
    n: usize,
    k: usize,
    a: Operand,
    b: Operand,
    c: Operand,
    d: Operand,
    /// Elements of A along k that one lane has.
    a_step: usize,
    /// C and D are integers: whether sums stop at the ends of `.s32` rather than wrap.
    integers: Option<bool>,
}

/// How the registers of a fragment are brought into the order of a product.
struct Operand {
    element: MatrixElement,
    order: Order,
    starts: Vec<(usize, usize)>,
    /// Where the first part of each register goes, and how far it is from each part to the next.
    offsets: Vec<usize>,
    part_stride: usize,
}

/// How the numbers of registers come to their places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// They go there as they are.
    InPlace,
    /// The lines of tiles are columns, and become rows.
    Transposed,
    /// The lines of tiles are rows, whose columns are sorted by parity.
    Sorted,
}

/// The registers of a product: the words (or numbers of 64 bits) of all lanes of each.
pub struct TileRegisters {
    /// Of A.
    pub a: SmallVec<[*const u8; 8]>,
    /// Of B.
    pub b: SmallVec<[*const u8; 8]>,
    /// Of C.
    pub c: SmallVec<[*const u8; 8]>,
    /// Of D.
    pub d: SmallVec<[*mut u8; 8]>,
}

/// One warp's product.
#[derive(Clone, Copy, Debug)]
pub struct WarpProduct {
    /// The warp's first lane in the registers of C and D, in those of A, and in those of B.
    pub first: usize,
    /// In those of A.
    pub a_first: usize,
    /// In those of B; `None` if B is that of the product before.
    pub b_first: Option<usize>,
    /// C counts; it is zero if not.
    pub accumulates: bool,
    /// A counts negated.
    pub negated: bool,
}

/// Memory of a product, which is kept from one to the next.
#[derive(Default)]
pub struct ProductRoom {
    single: Room<f32>,
    double: Room<f64>,
}

#[derive(Default)]
struct Room<T> {
    /// A in planes of four columns, `a_step` apart: a row's four stand together.
    a: Vec<T>,
    /// B in strips of 8 columns: of each row the even ones, then the odd ones.
    b: Vec<T>,
    /// Sums in planes of four columns of one parity: a row's four stand together.
    sums: Vec<T>,
    /// What integers are added to, as words.
    addends: Vec<T>,
    /// The parts of registers on their way.
    parts: Vec<T>,
}

impl TileProduct {
    /// A product of these fragments, m, n and k being `size`; `None` if their tiles do not make whole matrices, or elements are of other
    /// formats than products are made of here.
    pub fn new(
        [m, n, k]: [usize; 3],
        a: (&Tiles, MatrixElement),
        b: (&Tiles, MatrixElement),
        c: (&Tiles, MatrixElement),
        d: (&Tiles, MatrixElement),
        integers: Option<bool>,
    ) -> Option<TileProduct> {
        let doubles = [a, b, c, d].map(|(_, element)| matches!(element, MatrixElement::Double));
        let fits = |(tiles, element): (&Tiles, MatrixElement), rows, columns| {
            element.in_word() == tiles.in_word() && tiles.fill(rows, columns)
        };
        let known = fits(a, m, k) && fits(b, k, n) && fits(c, m, n) && fits(d, m, n);
        let whole = m.is_multiple_of(LINES) && n.is_multiple_of(COLUMNS) && k.is_multiple_of(LINE_LANES);
        if !known || !whole || doubles.iter().any(|&double| double != doubles[0]) {
            return None;
        }
        let a_step = if a.0.tiling() == Tiling::Rows { a.0.in_word() } else { 1 };
        let plane = LINE_LANES * m;
        let a = match a.0.tiling() {
            Tiling::Rows => {
                let at = |(row, column)| column / (LINE_LANES * a_step) * a_step * plane + row * LINE_LANES;
                Operand::new(a, Order::InPlace, a.0.starts().map(at).collect(), plane)
            }
            Tiling::Columns => Operand::in_parts(a, Order::Transposed),
            Tiling::Pairs => return None,
        };
        let b = match b.0.tiling() {
            Tiling::Columns => Operand::in_parts(b, Order::Transposed),
            Tiling::Rows => Operand::in_parts(b, Order::Sorted),
            Tiling::Pairs => return None,
        };
        let accumulator = |of: (&Tiles, MatrixElement)| {
            let of_parity = |(row, column): (usize, usize), parity: usize| {
                (column / COLUMNS * 2 + parity) * plane + row * LINE_LANES
            };
            let offsets = match (of.0.tiling(), of.1) {
                (Tiling::Pairs, MatrixElement::Word(u32::MAX) | MatrixElement::Double) => {
                    of.0.starts().flat_map(|start| [of_parity(start, 0), of_parity(start, 1)]).collect()
                }
                (Tiling::Rows, MatrixElement::F16) => {
                    of.0.starts().map(|start| of_parity(start, 0)).collect()
                }
                _ => return None,
            };
            Some(Operand::new(of, Order::InPlace, offsets, plane))
        };
        Some(TileProduct { m, n, k, a, b, c: accumulator(c)?, d: accumulator(d)?, a_step, integers })
    }

    fn is_double(&self) -> bool {
        matches!(self.d.element, MatrixElement::Double)
    }
}

impl Operand {
    fn new(of: (&Tiles, MatrixElement), order: Order, offsets: Vec<usize>, part_stride: usize) -> Operand {
        Operand { element: of.1, order, starts: of.0.starts().collect(), offsets, part_stride }
    }

    /// One whose parts are put one behind the other first.
    fn in_parts(of: (&Tiles, MatrixElement), order: Order) -> Operand {
        let each = of.0.in_word() * WARP;
        Operand::new(of, order, (0..of.0.registers()).map(|register| register * each).collect(), WARP)
    }
}

/// Numbers that products are computed in.
trait Number: Copy + Default + Neg<Output = Self> {
    /// Vectors of them.
    type Vector<P: Path>: Quads<Number = Self>;

    /// Puts the parts of registers, from lane `first` on, where `operand` says.
    unsafe fn take<P: Path>(registers: &[*const u8], first: usize, operand: &Operand, to: *mut Self);

    /// Writes the numbers of `operand` to the registers.
    unsafe fn put<P: Path>(
        from: *const Self,
        operand: &Operand,
        registers: &[*mut u8],
        first: usize,
        numbers: bool,
    );

    /// Rows to columns.
    unsafe fn transpose<P: Path>(rows: [[Self; 4]; 4]) -> [[Self; 4]; 4];

    /// Adds products to integers, as words.
    fn add_integers(sums: &mut [Self], addends: &[Self], saturate: bool);

    /// Whether the registers could not take these numbers as they are.
    fn is_odd(sums: &[Self]) -> bool;
}

impl Number for f32 {
    type Vector<P: Path> = P::Singles;

    #[inline(always)]
    unsafe fn take<P: Path>(registers: &[*const u8], first: usize, operand: &Operand, to: *mut f32) {
        let parts = operand.element.in_word();
        // A loop of its own for each kind.
        macro_rules! each {
            ($element:expr) => {
                for (register, &offset) in registers.iter().zip(&operand.offsets) {
                    for part in 0..parts {
                        for half in 0..WARP / BLOCK {
                            // SAFETY: the register has the words of the warp, and the place the room; the path's instructions are there.
                            unsafe {
                                let from = register.cast::<u32>().add(first + half * BLOCK);
                                let values = part_of_words::<P>(from, $element, part);
                                let to = to.add(offset + part * operand.part_stride + half * BLOCK);
                                to.cast::<[f32; BLOCK]>().write_unaligned(values);
                            }
                        }
                    }
                }
            };
        }
        match operand.element {
            MatrixElement::F16 => each!(MatrixElement::F16),
            MatrixElement::Bf16 => each!(MatrixElement::Bf16),
            MatrixElement::Word(mask) => each!(MatrixElement::Word(mask)),
            MatrixElement::Small(format) => each!(MatrixElement::Small(format)),
            MatrixElement::U8 => each!(MatrixElement::U8),
            MatrixElement::S8 => each!(MatrixElement::S8),
            MatrixElement::U4 => each!(MatrixElement::U4),
            MatrixElement::S4 => each!(MatrixElement::S4),
            MatrixElement::Double => {}
        }
    }

    #[inline(always)]
    unsafe fn put<P: Path>(
        from: *const f32,
        operand: &Operand,
        registers: &[*mut u8],
        first: usize,
        numbers: bool,
    ) {
        let is_half = matches!(operand.element, MatrixElement::F16);
        for (register, &offset) in registers.iter().zip(&operand.offsets) {
            for half in 0..WARP / BLOCK {
                // SAFETY: as above.
                unsafe {
                    let from = from.add(offset + half * BLOCK);
                    let to = register.cast::<u32>().add(first + half * BLOCK).cast::<[u32; BLOCK]>();
                    let of_parity =
                        |parity: usize| from.add(parity * operand.part_stride).cast::<[f32; BLOCK]>();
                    let even = canonical(of_parity(0).read_unaligned(), numbers);
                    if is_half {
                        let (even, odd) = (
                            P::f32_to_f16(even),
                            P::f32_to_f16(canonical(of_parity(1).read_unaligned(), numbers)),
                        );
                        to.write_unaligned(packed(even, odd));
                    } else {
                        to.cast::<[f32; BLOCK]>().write_unaligned(even);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn transpose<P: Path>(rows: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
        // SAFETY: the path's instructions are there; arrays of the same bytes, of which all are numbers.
        unsafe {
            let rows = std::mem::transmute::<[[f32; 4]; 4], [[u32; 4]; 4]>(rows);
            std::mem::transmute(P::transpose4(rows))
        }
    }

    #[inline(always)]
    fn add_integers(sums: &mut [f32], addends: &[f32], saturate: bool) {
        for (sum, addend) in sums.iter_mut().zip(addends) {
            // SAFETY: sums of at most 2^8 products of integers of 8 bits.
            let (products, addend) = (unsafe { sum.to_int_unchecked::<i32>() }, addend.to_bits() as i32);
            let wrapped = addend.wrapping_add(products);
            let result = if saturate { addend.saturating_add(products) } else { wrapped };
            *sum = f32::from_bits(result as u32);
        }
    }

    #[inline(always)]
    fn is_odd(_: &[f32]) -> bool {
        false
    }
}

impl Number for f64 {
    type Vector<P: Path> = P::Doubles;

    #[inline(always)]
    unsafe fn take<P: Path>(registers: &[*const u8], first: usize, operand: &Operand, to: *mut f64) {
        for (register, &offset) in registers.iter().zip(&operand.offsets) {
            // SAFETY: the register has the numbers of the warp, and the place the room.
            unsafe {
                let from = register.cast::<f64>().add(first).cast::<[f64; WARP]>();
                to.add(offset).cast::<[f64; WARP]>().write_unaligned(from.read_unaligned());
            }
        }
    }

    #[inline(always)]
    unsafe fn put<P: Path>(
        from: *const f64,
        operand: &Operand,
        registers: &[*mut u8],
        first: usize,
        _: bool,
    ) {
        for (register, &offset) in registers.iter().zip(&operand.offsets) {
            // SAFETY: as above.
            unsafe {
                let to = register.cast::<f64>().add(first).cast::<[f64; WARP]>();
                to.write_unaligned(from.add(offset).cast::<[f64; WARP]>().read_unaligned());
            }
        }
    }

    #[inline(always)]
    unsafe fn transpose<P: Path>(rows: [[f64; 4]; 4]) -> [[f64; 4]; 4] {
        let mut out = rows;
        for (i, out) in out.iter_mut().enumerate() {
            for (out, row) in out.iter_mut().zip(&rows) {
                *out = row[i];
            }
        }
        out
    }

    #[inline(always)]
    fn add_integers(_: &mut [f64], _: &[f64], _: bool) {}

    /// The host may make another NaN than the instruction.
    #[inline(always)]
    fn is_odd(sums: &[f64]) -> bool {
        sums.iter().fold(false, |odd, sum| odd | sum.is_nan())
    }
}

/// With the NaN of binary32 in place of others, if these are numbers.
#[inline(always)]
fn canonical(block: [f32; BLOCK], numbers: bool) -> [f32; BLOCK] {
    let mut out = block;
    if numbers {
        for (out, x) in out.iter_mut().zip(block) {
            *out = if x.is_nan() { f32::from_bits(0x7fff_ffff) } else { x };
        }
    }
    out
}

#[inline(always)]
fn packed(low: [u16; BLOCK], high: [u16; BLOCK]) -> [u32; BLOCK] {
    let mut out = [0; BLOCK];
    for (out, (low, high)) in out.iter_mut().zip(low.into_iter().zip(high)) {
        *out = u32::from(low) | u32::from(high) << 16;
    }
    out
}

/// See [`MatrixHelpers`](super::MatrixHelpers).
#[inline(always)]
pub(super) unsafe fn multiply_tiles<P: Path>(
    product: &TileProduct,
    registers: &TileRegisters,
    warps: &[WarpProduct],
    room: &mut ProductRoom,
) -> u32 {
    let of = |operand: &Operand| operand.offsets.len();
    assert!(registers.a.len() == of(&product.a) && registers.b.len() == of(&product.b), "other registers");
    assert!(registers.c.len() == of(&product.c) && registers.d.len() == of(&product.d), "other registers");
    let mut odd = 0;
    // A loop of its own for each kind.
    macro_rules! each {
        ($number:ty, $room:ident) => {
            for (index, warp) in warps.iter().enumerate() {
                // SAFETY: the caller's promise.
                let done = unsafe { multiply::<P, $number>(product, registers, *warp, &mut room.$room) };
                odd |= u32::from(!done) << index;
            }
        };
    }
    match product.is_double() {
        true => each!(f64, double),
        false => each!(f32, single),
    }
    odd
}

/// # Safety
/// As for [`multiply_tiles`]; there are as many registers as the product has.
#[inline(always)]
unsafe fn multiply<P: Path, T: Number>(
    product: &TileProduct,
    registers: &TileRegisters,
    warp: WarpProduct,
    room: &mut Room<T>,
) -> bool {
    let &TileProduct { m, n, k, .. } = product;
    let Room { a, b, sums, addends, parts } = room;
    a.resize(m * k, T::default());
    b.resize(k * n, T::default());
    sums.resize(m * n, T::default());
    addends.resize(m * n, T::default());
    parts.resize(k * m.max(n), T::default());
    // SAFETY: the operands' offsets lie in matrices of these sizes, as `TileProduct::new` has seen to.
    unsafe {
        match product.a.order {
            Order::InPlace => T::take::<P>(&registers.a, warp.a_first, &product.a, a.as_mut_ptr()),
            _ => {
                T::take::<P>(&registers.a, warp.a_first, &product.a, parts.as_mut_ptr());
                transpose_a::<P, T>(&product.a, parts, m, a);
            }
        }
        if let Some(first) = warp.b_first {
            T::take::<P>(&registers.b, first, &product.b, parts.as_mut_ptr());
            match product.b.order {
                Order::Transposed => transpose_b::<P, T>(&product.b, parts, k, b),
                _ => sort_b(&product.b, parts, k, b),
            }
        }
        if warp.negated {
            a.iter_mut().for_each(|x| *x = -*x);
        }
        // Integers are multiplied and summed up as binary32, which holds them; C, which may be larger, comes after.
        let start = if product.integers.is_some() { &mut *addends } else { &mut *sums };
        match warp.accumulates {
            true => T::take::<P>(&registers.c, warp.first, &product.c, start.as_mut_ptr()),
            false => start.fill(T::default()),
        }
        if product.integers.is_some() {
            sums.fill(T::default());
        }
        let strip = 4 * T::Vector::<P>::COUNT;
        match m.is_multiple_of(strip) {
            true => add_products::<T::Vector<P>, 4>(product, a, b, sums),
            false => add_products::<T::Vector<P>, 2>(product, a, b, sums),
        }
        if let Some(saturate) = product.integers {
            T::add_integers(sums, addends, saturate);
        }
        if T::is_odd(sums) {
            return false;
        }
        T::put::<P>(sums.as_ptr(), &product.d, &registers.d, warp.first, product.integers.is_none());
    }
    true
}

/// Adds the products of all rows and columns to the sums, in ascending k, `N` vectors of rows at a time: enough sums to hide the latency of an addition.
///
/// # Safety
/// The matrices must have the elements of the product, of which so many rows are a multiple.
#[inline(always)]
unsafe fn add_products<V: Quads, const N: usize>(
    product: &TileProduct,
    a: &[V::Number],
    b: &[V::Number],
    sums: &mut [V::Number],
) {
    let &TileProduct { m, n, k, a_step, .. } = product;
    let (plane, width) = (LINE_LANES * m, LINE_LANES * V::COUNT);
    assert!(m.is_multiple_of(N * V::COUNT) && a.len() >= m * k && b.len() >= k * n && sums.len() >= m * n);
    for strip in 0..n / COLUMNS {
        for row in (0..m).step_by(N * V::COUNT) {
            // SAFETY: `b` has `k` rows of 8 numbers for each strip, `sums` two planes; `a` has `k` planes of all rows.
            unsafe {
                let even = sums.as_mut_ptr().add(2 * strip * plane + row * LINE_LANES);
                let odd = even.add(plane);
                let mut b = b.as_ptr().add(strip * k * COLUMNS);
                let mut a = a.as_ptr().add(row * LINE_LANES);
                // Not by closures: they would be compiled for any host.
                let (mut even_sums, mut odd_sums) = ([V::load(even); N], [V::load(odd); N]);
                for i in 1..N {
                    even_sums[i] = V::load(even.add(i * width));
                    odd_sums[i] = V::load(odd.add(i * width));
                }
                for _ in 0..k / (LINE_LANES * a_step) {
                    macro_rules! lane {
                        ($select:literal) => {
                            for part in 0..a_step {
                                let (even, odd) = (V::repeat(b), V::repeat(b.add(LINE_LANES)));
                                b = b.add(COLUMNS);
                                let a = a.add(part * plane);
                                for i in 0..N {
                                    let a = V::load(a.add(i * width)).broadcast::<$select>();
                                    even_sums[i] = a.multiply_add(even, even_sums[i]);
                                    odd_sums[i] = a.multiply_add(odd, odd_sums[i]);
                                }
                            }
                        };
                    }
                    lane!(0b00_00_00_00);
                    lane!(0b01_01_01_01);
                    lane!(0b10_10_10_10);
                    lane!(0b11_11_11_11);
                    a = a.add(a_step * plane);
                }
                for i in 0..N {
                    even_sums[i].store(even.add(i * width));
                    odd_sums[i].store(odd.add(i * width));
                }
            }
        }
    }
}

/// Puts four numbers to a place.
macro_rules! write_quad {
    ($to:expr, $at:expr, $quad:expr) => {
        $to[$at..$at + LINE_LANES].copy_from_slice(&$quad)
    };
}

/// A from tiles whose lines are columns: four columns become one plane.
///
/// # Safety
/// The host must have the path's instructions.
#[inline(always)]
unsafe fn transpose_a<P: Path, T: Number>(operand: &Operand, parts: &[T], m: usize, a: &mut [T]) {
    let in_word = operand.element.in_word();
    for (&(row, column), register) in operand.starts.iter().zip(parts.chunks_exact(WARP * in_word)) {
        for (part, values) in register.as_chunks::<WARP>().0.iter().enumerate() {
            for (i, lines) in values.as_chunks::<LINE_LANES>().0.as_chunks::<4>().0.iter().enumerate() {
                // SAFETY: the caller's promise.
                let rows = unsafe { T::transpose::<P>(*lines) };
                for (lane, quad) in rows.into_iter().enumerate() {
                    let at = (column / LINE_LANES + i) * LINE_LANES * m
                        + (row + lane * in_word + part) * LINE_LANES;
                    write_quad!(a, at, quad);
                }
            }
        }
    }
}

/// B from tiles whose lines are columns.
///
/// # Safety
/// The host must have the path's instructions.
#[inline(always)]
unsafe fn transpose_b<P: Path, T: Number>(operand: &Operand, parts: &[T], k: usize, b: &mut [T]) {
    let in_word = operand.element.in_word();
    for (&(row, column), register) in operand.starts.iter().zip(parts.chunks_exact(WARP * in_word)) {
        for (part, values) in register.as_chunks::<WARP>().0.iter().enumerate() {
            let lines = values.as_chunks::<LINE_LANES>().0;
            for parity in 0..2 {
                let of_parity = [lines[parity], lines[2 + parity], lines[4 + parity], lines[6 + parity]];
                // SAFETY: the caller's promise.
                let rows = unsafe { T::transpose::<P>(of_parity) };
                for (lane, quad) in rows.into_iter().enumerate() {
                    let at =
                        (column / COLUMNS * k + row + lane * in_word + part) * COLUMNS + parity * LINE_LANES;
                    write_quad!(b, at, quad);
                }
            }
        }
    }
}

/// B from tiles whose lines are rows.
#[inline(always)]
fn sort_b<T: Number>(operand: &Operand, parts: &[T], k: usize, b: &mut [T]) {
    let in_word = operand.element.in_word();
    for (&(row, column), register) in operand.starts.iter().zip(parts.chunks_exact(WARP * in_word)) {
        for (part, values) in register.as_chunks::<WARP>().0.iter().enumerate() {
            for (line, quad) in values.as_chunks::<LINE_LANES>().0.iter().enumerate() {
                if in_word == 2 {
                    write_quad!(b, (column / COLUMNS * k + row + line) * COLUMNS + part * LINE_LANES, *quad);
                    continue;
                }
                for (lane, &x) in quad.iter().enumerate() {
                    let column = column + lane * in_word + part;
                    let within = column % 2 * LINE_LANES + column % COLUMNS / 2;
                    b[(column / COLUMNS * k + row + line) * COLUMNS + within] = x;
                }
            }
        }
    }
}
