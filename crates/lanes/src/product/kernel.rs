//! The multiply-add loops of a product.

use super::super::fragment::{LINE_LANES, LINES};
use super::super::quads::Quads;
use super::{COLUMNS, TileProduct};

/// The rows of A, of which `N` vectors are multiplied at a time.
///
/// # Safety
/// For the methods: the rows must exist.
pub(super) trait Rows<V: Quads, const N: usize>: Copy {
    /// The rows' elements in the columns of a group.
    type Group: Copy;
    /// Elements along k in each lane. A group has four times as many columns.
    fn parts(self) -> usize;
    /// A group of columns, in the rows from `row` on.
    unsafe fn group(self, path: V::Path, group: usize, row: usize) -> Self::Group;
    /// Element `part` of each lane, in the `i`th vector of rows.
    unsafe fn columns(self, path: V::Path, group: Self::Group, part: usize, i: usize) -> V;
}

/// A in planes of four columns, `parts` planes per group. The four elements of a row are contiguous.
#[derive(Clone, Copy)]
pub(super) struct Planes<T> {
    pub a: *const T,
    pub parts: usize,
    /// Numbers per plane.
    pub plane: usize,
}

impl<V: Quads, const N: usize> Rows<V, N> for Planes<V::Number> {
    type Group = *const V::Number;

    #[inline(always)]
    fn parts(self) -> usize {
        self.parts
    }

    #[inline(always)]
    unsafe fn group(self, _: V::Path, group: usize, row: usize) -> *const V::Number {
        // SAFETY: the caller's promise.
        unsafe { self.a.add(group * self.parts * self.plane + row * LINE_LANES) }
    }

    #[inline(always)]
    unsafe fn columns(self, path: V::Path, group: *const V::Number, part: usize, i: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::load(path, group.add(part * self.plane + i * V::COUNT * LINE_LANES)) }
    }
}

/// Tiles of eight rows, each in a register.
#[derive(Clone, Copy)]
pub(super) struct Registers<'a, T> {
    pub registers: &'a [*const T],
    /// Their order: for each group of columns, the registers of all rows.
    pub order: &'a [usize],
    /// The warp's first lane.
    pub first: usize,
    /// Number of tiles from the first to the last row.
    pub tiles: usize,
}

impl<'a> Registers<'a, u8> {
    /// The registers of a matrix of m rows.
    #[inline(always)]
    pub fn new(registers: &'a [*const u8], order: &'a [usize], first: usize, m: usize) -> Self {
        Registers { registers, order, first, tiles: m / LINES }
    }
}

impl<'a, T> Registers<'a, T> {
    /// The same registers with another element type.
    #[inline(always)]
    pub fn cast<U>(self) -> Registers<'a, U> {
        let Registers { registers, order, first, tiles } = self;
        // SAFETY: the slice has as many pointers of the same size; the cast dereferences none of them.
        let registers = unsafe { std::slice::from_raw_parts(registers.as_ptr().cast(), registers.len()) };
        Registers { registers, order, first, tiles }
    }

    /// The lanes of the row `row + behind`, in the registers of a group of columns or of another set of tiles. The
    /// parameters are separate so that what several rows have in common is computed once.
    ///
    /// # Safety
    /// The registers must exist. If `row` is not the first row of a tile, no tile may begin between the two rows.
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

/// Elements of A that are words, used as numbers after masking.
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
    unsafe fn group(self, path: V::Path, group: usize, row: usize) -> [V; N] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut vectors = [V::zero(path); N];
            for (i, vector) in vectors.iter_mut().enumerate() {
                *vector = V::load(path, self.registers.row(group, row, i * V::COUNT)).masked(self.mask);
            }
            vectors
        }
    }

    #[inline(always)]
    unsafe fn columns(self, _: V::Path, group: [V; N], _: usize, i: usize) -> V {
        group[i]
    }
}

/// Elements of A that are two halves per word, in binary16 or bfloat16.
#[derive(Clone, Copy)]
pub(super) struct Halves<'a, const BF16: bool>(pub Registers<'a, u32>);

impl<V: Quads, const N: usize, const BF16: bool> Rows<V, N> for Halves<'_, BF16> {
    type Group = [[V; 2]; N];

    #[inline(always)]
    fn parts(self) -> usize {
        2
    }

    #[inline(always)]
    unsafe fn group(self, path: V::Path, group: usize, row: usize) -> [[V; 2]; N] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut vectors = [[V::zero(path); 2]; N];
            for (i, vector) in vectors.iter_mut().enumerate() {
                *vector = V::widen::<BF16>(path, self.0.row(group, row, i * V::COUNT));
            }
            vectors
        }
    }

    #[inline(always)]
    unsafe fn columns(self, _: V::Path, group: [[V; 2]; N], part: usize, i: usize) -> V {
        group[i][part]
    }
}

/// The initial values of sums.
#[derive(Clone, Copy)]
pub(super) enum Start<'a, T> {
    /// Zero.
    Zero,
    /// Numbers in registers; for each strip, the registers of the even columns come before those of the odd columns.
    Numbers(Registers<'a, T>),
    /// Halves in registers, whose words have an even and an odd column.
    Halves(Registers<'a, u32>),
}

/// The destination of sums.
#[derive(Clone, Copy)]
pub(super) enum End<'a, T> {
    /// As in [`Start::Numbers`].
    Numbers(Registers<'a, T>),
    /// Like `Numbers`, with all NaNs replaced by the NaN of binary32.
    Singles(Registers<'a, T>),
    /// As in [`Start::Halves`].
    Halves(Registers<'a, u32>),
}

/// The initial values and the destination of the sums of all rows and columns.
#[derive(Clone, Copy)]
pub(super) struct Sums<'a, T> {
    pub start: Start<'a, T>,
    pub end: End<'a, T>,
}

impl<T: Copy> Sums<'_, T> {
    /// The initial sums of the even and odd columns of a strip, in the rows from `row` on.
    #[inline(always)]
    unsafe fn start<V: Quads<Number = T>, const N: usize>(
        self,
        path: V::Path,
        strip: usize,
        row: usize,
    ) -> [[V; N]; 2] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[V::zero(path); N]; 2];
            match self.start {
                Start::Zero => {}
                Start::Numbers(registers) => {
                    for (parity, sums) in sums.iter_mut().enumerate() {
                        for (i, sum) in sums.iter_mut().enumerate() {
                            *sum = V::load(path, registers.row(2 * strip + parity, row, i * V::COUNT));
                        }
                    }
                }
                Start::Halves(registers) => {
                    let [even, odd] = &mut sums;
                    for (i, (even, odd)) in even.iter_mut().zip(odd).enumerate() {
                        [*even, *odd] = V::widen::<false>(path, registers.row(strip, row, i * V::COUNT));
                    }
                }
            }
            sums
        }
    }

    /// Stores the sums.
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
                    // All addresses are computed before any write; otherwise the compiler would recompute them after
                    // each write.
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

/// Adds the products of all rows and columns to the sums, in ascending k. It processes `N` vectors of rows at a time,
/// which gives enough sums to hide the latency of an addition. For each strip of 8 columns, B has all rows, ordered
/// by group, part and lane; each row has its even columns first, then its odd ones.
///
/// # Safety
/// The matrices must have the elements of the product, and its number of rows must be a multiple of those of `N`
/// vectors.
#[inline(always)]
pub(super) unsafe fn add_products<V: Quads, A: Rows<V, N>, const N: usize>(
    path: V::Path,
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
                // No closures: they would not be compiled for the host's instructions.
                let [mut even_sums, mut odd_sums] = sums.start::<V, N>(path, strip, row);
                for group in 0..k / (LINE_LANES * parts) {
                    let a = rows.group(path, group, row);
                    macro_rules! lane {
                        ($lane:literal, $select:literal) => {
                            for part in 0..parts {
                                let b = b.add((part * LINE_LANES + $lane) * COLUMNS);
                                let (even, odd) = (V::repeat(path, b), V::repeat(path, b.add(LINE_LANES)));
                                for i in 0..N {
                                    let a = rows.columns(path, a, part, i).broadcast::<$select>();
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
