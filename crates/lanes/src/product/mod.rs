//! Matrix products in the registers of a warp, in the order in which the registers hold the matrices.
//!
//! Element (row, column) of D is in the lane `row % 8 * 4 + column % 8 / 2`, in one register for even columns and
//! another for odd ones. So a register has 8 rows of one parity, a quad each. The terms that are added to it are an
//! element of A, which is the same for a whole quad, and four elements of B, which are the same for all rows. Hence A
//! is used as it is, C and D stay in place, and only B is reordered.

mod factors;
mod kernel;

use smallvec::SmallVec;

use super::fragment::{LINE_LANES, LINES, MatrixElement, Tiles, Tiling};
use super::path::{Path, WARP};
use super::quads::Quads;
use factors::{Factor, Number};
use kernel::{End, Halves, Planes, Registers, Start, Sums, Words, add_products};

/// Columns per strip: two planes have one parity each.
const COLUMNS: usize = 2 * LINE_LANES;

/// `D = A * B + C` with matrices in the registers of warps: the properties that all warps share.
pub struct TileProduct {
    m: usize,
    n: usize,
    k: usize,
    a: Factor,
    b: Factor,
    c: Accumulator,
    d: Accumulator,
    /// Elements of A along k in each lane.
    a_parts: usize,
    /// C and D are integers; `true` if sums saturate to `.s32` instead of wrapping.
    integers: Option<bool>,
}

/// Registers of C or D.
struct Accumulator {
    element: MatrixElement,
    /// Registers in the order of the product: by strip, then even columns before odd ones, then by rows. (With
    /// halves, the same registers hold even and odd columns.)
    order: Vec<usize>,
}

/// The registers of a product. Each has a word (or a 64-bit number) for every lane.
pub struct TileRegisters {
    /// Of A.
    pub a: SmallVec<[*const u8; 8]>,
    /// Of B.
    pub b: SmallVec<[*const u8; 8]>,
    /// Of C.
    pub c: SmallVec<[*const u8; 8]>,
    /// Of D.
    pub d: SmallVec<[*mut u8; 8]>,
    /// The result of [`TileProduct::reads_later`].
    pub d_is_read: bool,
}

/// One warp's product.
#[derive(Clone, Copy, Debug)]
pub struct WarpProduct {
    /// The warp's first lane in the registers of C and D.
    pub first: usize,
    /// The warp's first lane in the registers of A.
    pub a_first: usize,
    /// The warp's first lane in the registers of B; `None` if B is the same as in the previous product.
    pub b_first: Option<usize>,
    /// Adds C; otherwise the sums start at zero.
    pub accumulates: bool,
    /// Negates A.
    pub negated: bool,
}

/// Buffers of a product, kept for the next one.
#[derive(Default)]
pub struct ProductScratch {
    single: Scratch<f32>,
    double: Scratch<f64>,
}

#[derive(Default)]
struct Scratch<T> {
    /// A in planes, if it is not multiplied in place.
    a: Vec<T>,
    /// B in the order of [`add_products`].
    b: Vec<T>,
    /// Sums in the order of D's registers, if they cannot be written there directly.
    sums: Vec<T>,
    /// Parts of registers before they are reordered.
    parts: Vec<T>,
}

impl TileProduct {
    /// A product of these fragments, whose m, n and k are `size`. `None` if their tiles do not cover whole matrices,
    /// or if this module does not support the element formats.
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
        // Tiles whose lines are columns become rows of single columns.
        let a_parts = if a.0.tiling() == Tiling::Rows { a.0.in_word() } else { 1 };
        if ![1, b.0.in_word()].contains(&a_parts) {
            return None;
        }
        let (c, d) = (Accumulator::new(c, m)?, Accumulator::new(d, m)?);
        let (a, b) = (Factor::of_a(a, m)?, Factor::of_b(b)?);
        Some(TileProduct { m, n, k, a, b, c, d, a_parts, integers })
    }

    /// Whether a register of D is also one of A or C that may be read after it was written.
    pub fn reads_later<R: PartialEq>(&self, a: &[R], c: &[R], d: &[R]) -> bool {
        let alike = self.c.is_half() == self.d.is_half();
        let of_a = self.a.in_place(self.n).is_some() && d.iter().any(|register| a.contains(register));
        let shared = |i: usize, j: usize| c[self.c.order[i]] == d[self.d.order[j]];
        of_a || (0..c.len()).any(|i| (0..d.len()).any(|j| shared(i, j) && !(alike && i == j)))
    }

    fn is_double(&self) -> bool {
        matches!(self.d.element, MatrixElement::Double)
    }
}

impl Accumulator {
    fn new((tiles, element): (&Tiles, MatrixElement), m: usize) -> Option<Accumulator> {
        let place = |(row, column): (usize, usize), parity: usize, parities: usize| {
            (column / COLUMNS * parities + parity) * (m / LINES) + row / LINES
        };
        let places: Vec<usize> = match (tiles.tiling(), element) {
            (Tiling::Pairs, MatrixElement::Word(u32::MAX) | MatrixElement::Double) => {
                tiles.starts().flat_map(|start| [place(start, 0, 2), place(start, 1, 2)]).collect()
            }
            (Tiling::Rows, MatrixElement::F16) => tiles.starts().map(|start| place(start, 0, 1)).collect(),
            _ => return None,
        };
        let mut order = vec![0; places.len()];
        for (register, place) in places.into_iter().enumerate() {
            order[place] = register;
        }
        Some(Accumulator { element, order })
    }

    fn is_half(&self) -> bool {
        matches!(self.element, MatrixElement::F16)
    }
}

/// See [`MatrixHelpers`](super::MatrixHelpers).
#[inline(always)]
pub(super) unsafe fn multiply_tiles<P: Path>(
    path: P,
    product: &TileProduct,
    registers: &TileRegisters,
    warps: &[WarpProduct],
    scratch: &mut ProductScratch,
) -> u32 {
    let as_many = registers.a.len() == product.a.registers() && registers.b.len() == product.b.registers();
    let sums = registers.c.len() == product.c.order.len() && registers.d.len() == product.d.order.len();
    assert!(as_many && sums, "other registers");
    let mut odd = 0;
    // A separate loop for each number type.
    macro_rules! each {
        ($of:ident) => {{
            for (index, warp) in warps.iter().enumerate() {
                // SAFETY: the caller's promise.
                let done = unsafe { multiply(path, product, registers, *warp, &mut scratch.$of) };
                odd |= u32::from(!done) << index;
            }
        }};
    }
    match product.is_double() {
        true => each!(double),
        false => each!(single),
    }
    odd
}

/// # Safety
/// As for [`multiply_tiles`]; the number of registers must be that of the product.
#[inline(always)]
unsafe fn multiply<P: Path, T: Number>(
    path: P,
    product: &TileProduct,
    registers: &TileRegisters,
    warp: WarpProduct,
    scratch: &mut Scratch<T>,
) -> bool {
    let &TileProduct { m, n, k, .. } = product;
    let Scratch { a, b, sums, parts } = scratch;
    // D goes through memory if its sums need postprocessing.
    let seen_again = product.is_double() || product.integers.is_some();
    let is_direct = !seen_again && !registers.d_is_read;
    let mut places: SmallVec<[*const u8; 8]> = SmallVec::new();
    // SAFETY: `TileProduct::new` has checked that the matrices have these sizes and this number of registers.
    unsafe {
        if let Some(first) = warp.b_first {
            b.resize(k * n, T::default());
            T::take_b(path, product, &registers.b, first, parts, b);
        }
        let c = Registers::new(&registers.c, &product.c.order, warp.first, m);
        let start = match warp.accumulates && product.integers.is_none() {
            false => Start::Zero,
            true if product.c.is_half() => Start::Halves(c.cast()),
            true => Start::Numbers(c.cast()),
        };
        let to = if is_direct {
            let d = std::slice::from_raw_parts(registers.d.as_ptr().cast(), registers.d.len());
            Registers::new(d, &product.d.order, warp.first, m)
        } else {
            sums.resize(registers.d.len() * WARP, T::default());
            places.resize(registers.d.len(), std::ptr::null());
            let all = sums.as_mut_ptr();
            for (place, &register) in product.d.order.iter().enumerate() {
                places[register] = all.add(place * WARP).cast_const().cast();
            }
            Registers::new(&places, &product.d.order, 0, m)
        };
        let end = if product.d.is_half() {
            End::Halves(to.cast())
        } else if product.integers.is_some() || product.is_double() {
            End::Numbers(to.cast())
        } else {
            End::Singles(to.cast())
        };
        let between = Sums { start, end };
        macro_rules! products {
            ($rows:expr) => {
                match m.is_multiple_of(4 * T::Vector::<P>::COUNT) {
                    true => add_products::<T::Vector<P>, _, 4>(path, product, $rows, b, between),
                    false => add_products::<T::Vector<P>, _, 2>(path, product, $rows, b, between),
                }
            };
        }
        match product.a.in_place(n).filter(|_| !warp.negated) {
            Some(order) => {
                let a = Registers::new(&registers.a, order, warp.a_first, m);
                match product.a.element {
                    MatrixElement::F16 => products!(Halves::<false>(a.cast())),
                    MatrixElement::Bf16 => products!(Halves::<true>(a.cast())),
                    MatrixElement::Word(mask) => products!(Words { registers: a.cast(), mask }),
                    _ => products!(Words { registers: a.cast(), mask: u32::MAX }),
                }
            }
            None => {
                a.resize(m * k, T::default());
                T::take_a(path, product, &registers.a, warp.a_first, parts, a);
                if warp.negated {
                    a.iter_mut().for_each(|x| *x = -*x);
                }
                let parts = product.a_parts;
                products!(Planes { a: a.as_ptr(), parts, plane: LINE_LANES * m });
            }
        }
        if is_direct {
            return true;
        }
        if T::is_odd(sums) {
            return false;
        }
        if let Some(saturate) = product.integers {
            T::add_integers(sums, warp.accumulates.then(|| c.cast()), saturate);
        }
        for (from, &register) in sums.as_chunks::<WARP>().0.iter().zip(&product.d.order) {
            registers.d[register].cast::<T>().add(warp.first).cast::<[T; WARP]>().write_unaligned(*from);
        }
    }
    true
}
