//! The multiply-adds of a product.

use super::super::fragment::{LINE_LANES, LINES};
use super::super::quads::Quads;
use super::{COLUMNS, TileProduct};

/// The rows of A, `N` vectors of which are multiplied at a time.
///
/// # Safety
/// Of the methods: the rows must be there, and the host must have the vectors' instructions.
pub(super) trait Rows<V: Quads, const N: usize>: Copy {
    /// The rows' elements in the columns of a group.
    type Group: Copy;
    /// Elements along k that one lane has: a group is four times as many columns.
    fn parts(self) -> usize;
    /// A group of the rows from `row` on.
    unsafe fn group(self, group: usize, row: usize) -> Self::Group;
    /// The lanes' elements `part`, of the `i`th vector of rows.
    unsafe fn columns(self, group: Self::Group, part: usize, i: usize) -> V;
}

/// A in planes of four columns, `parts` of them a group: a row's four stand together.
#[derive(Clone, Copy)]
pub(super) struct Planes<T> {
    pub a: *const T,
    pub parts: usize,
    /// Numbers of a plane.
    pub plane: usize,
}

impl<V: Quads, const N: usize> Rows<V, N> for Planes<V::Number> {
    type Group = *const V::Number;

    #[inline(always)]
    fn parts(self) -> usize {
        self.parts
    }

    #[inline(always)]
    unsafe fn group(self, group: usize, row: usize) -> *const V::Number {
        // SAFETY: the caller's promise.
        unsafe { self.a.add(group * self.parts * self.plane + row * LINE_LANES) }
    }

    #[inline(always)]
    unsafe fn columns(self, group: *const V::Number, part: usize, i: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::load(group.add(part * self.plane + i * V::COUNT * LINE_LANES)) }
    }
}

/// Tiles of eight rows, each in a register.
#[derive(Clone, Copy)]
pub(super) struct Registers<'a, T> {
    pub registers: &'a [*const T],
    /// Their order: of each group of columns those of all rows.
    pub order: &'a [usize],
    /// The warp's first lane.
    pub first: usize,
    /// Tiles from the first to the last row.
    pub tiles: usize,
}

impl<'a> Registers<'a, u8> {
    /// Those of a matrix of m rows.
    #[inline(always)]
    pub fn new(registers: &'a [*const u8], order: &'a [usize], first: usize, m: usize) -> Self {
        Registers { registers, order, first, tiles: m / LINES }
    }
}

impl<'a, T> Registers<'a, T> {
    /// The same registers, with other elements.
    #[inline(always)]
    pub fn cast<U>(self) -> Registers<'a, U> {
        let Registers { registers, order, first, tiles } = self;
        // SAFETY: as many pointers, to other things, behind which nobody looks yet.
        let registers = unsafe { std::slice::from_raw_parts(registers.as_ptr().cast(), registers.len()) };
        Registers { registers, order, first, tiles }
    }

    /// Where the lanes of the row that is so many behind `row` stand, in the registers of a group or another set of tiles. What is the same for
    /// several rows is computed once.
    ///
    /// # Safety
    /// There must be such registers; no tile begins between the two rows if `row` is not the first of one.
    #[inline(always)]
    pub unsafe fn row(self, group: usize, row: usize, behind: usize) -> *const T {
        let index = group * self.tiles + row / LINES + behind / LINES;
        let line = row % LINES + behind % LINES;
        debug_assert!(index < self.order.len() && self.order.len() == self.registers.len() && line < LINES);
        // SAFETY: the caller's promise.
        unsafe {
            let register = *self.registers.get_unchecked(*self.order.get_unchecked(index));
            register.add(self.first + line * LINE_LANES)
        }
    }
}

/// Elements of A that are numbers as they stand, but for the bits that the mask leaves out.
#[derive(Clone, Copy)]
pub(super) struct Words<'a, T> {
    pub registers: Registers<'a, T>,
    pub mask: u32,
}

impl<V: Quads, const N: usize> Rows<V, N> for Words<'_, V::Number> {
    type Group = [V; N];

    #[inline(always)]
    fn parts(self) -> usize {
        1
    }

    #[inline(always)]
    unsafe fn group(self, group: usize, row: usize) -> [V; N] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut vectors = [V::zero(); N];
            for (i, vector) in vectors.iter_mut().enumerate() {
                *vector = V::load(self.registers.row(group, row, i * V::COUNT)).masked(self.mask);
            }
            vectors
        }
    }

    #[inline(always)]
    unsafe fn columns(self, group: [V; N], _: usize, i: usize) -> V {
        group[i]
    }
}

/// Elements of A that are two halves a word, of binary16 or bfloat16.
#[derive(Clone, Copy)]
pub(super) struct Halves<'a, const BF16: bool>(pub Registers<'a, u32>);

impl<V: Quads, const N: usize, const BF16: bool> Rows<V, N> for Halves<'_, BF16> {
    type Group = [[V; 2]; N];

    #[inline(always)]
    fn parts(self) -> usize {
        2
    }

    #[inline(always)]
    unsafe fn group(self, group: usize, row: usize) -> [[V; 2]; N] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut vectors = [[V::zero(); 2]; N];
            for (i, vector) in vectors.iter_mut().enumerate() {
                *vector = V::widen::<BF16>(self.0.row(group, row, i * V::COUNT));
            }
            vectors
        }
    }

    #[inline(always)]
    unsafe fn columns(self, group: [[V; 2]; N], part: usize, i: usize) -> V {
        group[i][part]
    }
}

/// Where sums begin.
#[derive(Clone, Copy)]
pub(super) enum Start<'a, T> {
    /// At zero.
    Zero,
    /// At the numbers of registers, for each strip those of the even columns before those of the odd ones.
    Numbers(Registers<'a, T>),
    /// At the halves of registers, of which a word has an even and an odd column.
    Halves(Registers<'a, u32>),
}

/// Where sums go.
#[derive(Clone, Copy)]
pub(super) enum End<'a, T> {
    /// As in [`Start::Numbers`].
    Numbers(Registers<'a, T>),
    /// The same, NaNs being the one of binary32.
    Singles(Registers<'a, T>),
    /// As in [`Start::Halves`].
    Halves(Registers<'a, u32>),
}

/// Where the sums of all rows and columns come from and go to.
#[derive(Clone, Copy)]
pub(super) struct Sums<'a, T> {
    pub start: Start<'a, T>,
    pub end: End<'a, T>,
}

impl<T: Copy> Sums<'_, T> {
    /// What products are added to in the rows from `row` on of the even and odd columns of a strip.
    #[inline(always)]
    unsafe fn start<V: Quads<Number = T>, const N: usize>(self, strip: usize, row: usize) -> [[V; N]; 2] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[V::zero(); N]; 2];
            match self.start {
                Start::Zero => {}
                Start::Numbers(registers) => {
                    for (parity, sums) in sums.iter_mut().enumerate() {
                        for (i, sum) in sums.iter_mut().enumerate() {
                            *sum = V::load(registers.row(2 * strip + parity, row, i * V::COUNT));
                        }
                    }
                }
                Start::Halves(registers) => {
                    let [even, odd] = &mut sums;
                    for (i, (even, odd)) in even.iter_mut().zip(odd).enumerate() {
                        [*even, *odd] = V::widen::<false>(registers.row(strip, row, i * V::COUNT));
                    }
                }
            }
            sums
        }
    }

    /// Puts the sums there.
    #[inline(always)]
    unsafe fn finish<V: Quads<Number = T>, const N: usize>(
        self,
        strip: usize,
        row: usize,
        mut sums: [[V; N]; 2],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            if !matches!(self.end, End::Numbers(_)) {
                for sums in &mut sums {
                    for sum in sums {
                        *sum = sum.with_one_nan();
                    }
                }
            }
            match self.end {
                End::Numbers(registers) | End::Singles(registers) => {
                    // All places before anything is written: the compiler would look them up again and again.
                    let mut places = [[std::ptr::null(); N]; 2];
                    for (parity, places) in places.iter_mut().enumerate() {
                        for (i, place) in places.iter_mut().enumerate() {
                            *place = registers.row(2 * strip + parity, row, i * V::COUNT);
                        }
                    }
                    for (sum, place) in sums.as_flattened().iter().zip(places.as_flattened()) {
                        sum.store(place.cast_mut());
                    }
                }
                End::Halves(registers) => {
                    let [even, odd] = sums;
                    for (i, (even, odd)) in even.into_iter().zip(odd).enumerate() {
                        let to = registers.row(strip, row, i * V::COUNT).cast_mut();
                        V::narrow([even, odd], to);
                    }
                }
            }
        }
    }
}

/// Adds the products of all rows and columns to the sums, in ascending k, `N` vectors of rows at a time: enough sums to hide the latency of an
/// addition. B has of each strip of 8 columns all rows: the lanes of a group, part by part, each its even columns, then its odd ones.
///
/// # Safety
/// The matrices must have the elements of the product, of which so many rows are a multiple.
#[inline(always)]
pub(super) unsafe fn add_products<V: Quads, A: Rows<V, N>, const N: usize>(
    &TileProduct { m, n, k, .. }: &TileProduct,
    rows: A,
    b: &[V::Number],
    sums: Sums<'_, V::Number>,
) {
    assert!(m.is_multiple_of(N * V::COUNT) && b.len() >= k * n);
    let parts = rows.parts();
    for strip in 0..n / COLUMNS {
        for row in (0..m).step_by(N * V::COUNT) {
            // SAFETY: `b` has `k` rows of 8 numbers for each strip; the caller's promise.
            unsafe {
                let mut b = b.as_ptr().add(strip * k * COLUMNS);
                // Not by closures: they would be compiled for any host.
                let [mut even_sums, mut odd_sums] = sums.start::<V, N>(strip, row);
                for group in 0..k / (LINE_LANES * parts) {
                    let a = rows.group(group, row);
                    macro_rules! lane {
                        ($lane:literal, $select:literal) => {
                            for part in 0..parts {
                                let b = b.add((part * LINE_LANES + $lane) * COLUMNS);
                                let (even, odd) = (V::repeat(b), V::repeat(b.add(LINE_LANES)));
                                for i in 0..N {
                                    let a = rows.columns(a, part, i).broadcast::<$select>();
                                    even_sums[i] = a.multiply_add(even, even_sums[i]);
                                    odd_sums[i] = a.multiply_add(odd, odd_sums[i]);
                                }
                            }
                        };
                    }
                    lane!(0, 0b00_00_00_00);
                    lane!(1, 0b01_01_01_01);
                    lane!(2, 0b10_10_10_10);
                    lane!(3, 0b11_11_11_11);
                    b = b.add(parts * LINE_LANES * COLUMNS);
                }
                sums.finish(strip, row, [even_sums, odd_sums]);
            }
        }
    }
}
