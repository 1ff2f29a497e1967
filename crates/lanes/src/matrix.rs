//! Matrix products in binary32, and conversions of their halves. `sem::matrix` defines the results.

use super::HostPath;
use super::macros::multiversion;
use super::path::{BLOCK, Path};
use super::product::{self, ProductScratch, TileProduct, TileRegisters, WarpProduct};
use std::sync::LazyLock;

/// Rows and columns of one step of a product. They give enough independent sums to hide the latency of an addition,
/// if the matrix has enough rows.
const ROWS: usize = 8;
const FEW_ROWS: usize = 4;
const COLUMNS: usize = 8;

/// A product of matrices: [`MatrixHelpers::multiply`].
pub type Multiply = unsafe fn(usize, usize, usize, &[f32], &[f32], &mut [f32]);

/// A product with a sparse A: [`MatrixHelpers::multiply_sparse`].
pub type MultiplySparse = unsafe fn(usize, usize, &[f32], &[u16], &[f32], &mut [f32]);

/// A product with scales: [`MatrixHelpers::multiply_scaled`].
pub type MultiplyScaled = unsafe fn(usize, usize, &[f64], &[u16], &[f64], &mut [f32]);

/// Functions for matrix products, compiled for every path.
///
/// # Safety
/// For all functions: the host must have the path's instructions.
pub struct MatrixHelpers {
    /// `multiply(m, n, k, a, b, d)`: adds the products of A (m x k) and B (k x n) to D (m x n) in ascending k, and
    /// rounds each sum once. All matrices are row-major; m is a multiple of 4, n of 8.
    pub multiply: Multiply,
    /// `multiply_sparse(n, k, a, columns, b, d)`: the same for rows of A with k stored elements. The stored element i
    /// is multiplied with row `columns[i]` of B. n is a multiple of 8.
    pub multiply_sparse: MultiplySparse,
    /// Like `multiply_sparse`, with factors that exceed binary32's range and have 6 significant bits each.
    pub multiply_scaled: MultiplyScaled,
    /// binary16 to binary32; the number of elements is a multiple of 16.
    pub widen: unsafe fn(&[u16], &mut [f32]),
    /// `multiply_tiles(product, registers, warps, scratch)`: matrix products in the registers of at most 32 warps; the
    /// registers must have words for these warps. Returns a bit for each warp whose D is unchanged, because its sums
    /// contain binary64 NaNs that must be computed in another way.
    ///
    /// # Panics
    /// If the number of registers differs from the product's.
    pub multiply_tiles: unsafe fn(&TileProduct, &TileRegisters, &[WarpProduct], &mut ProductScratch) -> u32,
    /// binary32 to binary16, to nearest even, NaN to 0x7fff; the number of elements is a multiple of 16.
    pub narrow: unsafe fn(&[f32], &mut [u16]),
}

impl MatrixHelpers {
    /// The functions of a path that the machine has.
    pub fn of(path: HostPath) -> &'static MatrixHelpers {
        static ALL: LazyLock<Vec<(HostPath, MatrixHelpers)>> =
            LazyLock::new(|| HostPath::ALL.into_iter().map(|path| (path, make(path))).collect());
        let found = ALL.iter().find(|(known, _)| *known == path);
        &found.unwrap_or(&ALL[0]).1
    }
}

fn make(path: HostPath) -> MatrixHelpers {
    MatrixHelpers {
        multiply: multiversion!(path, [] (m: usize, n: usize, k: usize, a: &[f32], b: &[f32], d: &mut [f32]),
            _p => multiply(m, n, k, a, b, d)),
        multiply_sparse: multiversion!(path, [] (n: usize, k: usize, a: &[f32], columns: &[u16], b: &[f32], d: &mut [f32]),
            _p => multiply_gathered(n, k, a, columns, b, d, |a, b, sum| a.mul_add(b, sum))),
        multiply_scaled: multiversion!(path, [] (n: usize, k: usize, a: &[f64], columns: &[u16], b: &[f64], d: &mut [f32]),
            _p => multiply_gathered(n, k, a, columns, b, d, add_product)),
        widen: multiversion!(path, [] (from: &[u16], to: &mut [f32]), p => {
            widen(p, from, to)
        }),
        multiply_tiles: multiversion!(path, []
            (product: &TileProduct, registers: &TileRegisters, warps: &[WarpProduct], scratch: &mut ProductScratch) -> u32, p => {
            // SAFETY: compiled for the path; the caller's promise.
            unsafe { product::multiply_tiles(p, product, registers, warps, scratch) }
        }),
        narrow: multiversion!(path, [] (from: &[f32], to: &mut [u16]), p => {
            narrow(p, from, to)
        }),
    }
}

#[inline(always)]
fn multiply(m: usize, n: usize, k: usize, a: &[f32], b: &[f32], d: &mut [f32]) {
    match m % ROWS {
        0 => multiply_rows::<ROWS>(m, n, k, a, b, d),
        _ => multiply_rows::<FEW_ROWS>(m, n, k, a, b, d),
    }
}

#[inline(always)]
fn multiply_rows<const ROWS: usize>(m: usize, n: usize, k: usize, a: &[f32], b: &[f32], d: &mut [f32]) {
    assert!(m.is_multiple_of(ROWS) && n.is_multiple_of(COLUMNS));
    assert!(a.len() >= m * k && b.len() >= k * n && d.len() >= m * n);
    for row in (0..m).step_by(ROWS) {
        for column in (0..n).step_by(COLUMNS) {
            // SAFETY: the matrices have these elements: `ROWS` rows from `row` on, `COLUMNS` columns from `column`
            // on.
            unsafe {
                let a = a.as_ptr().add(row * k);
                let b = b.as_ptr().add(column);
                let d = d.as_mut_ptr().add(row * n + column);
                let line = |i: usize| d.add(i * n).cast::<[f32; COLUMNS]>();
                let mut sums: [[f32; COLUMNS]; ROWS] = std::array::from_fn(|i| line(i).read_unaligned());
                for step in 0..k {
                    let b = b.add(step * n).cast::<[f32; COLUMNS]>().read_unaligned();
                    for (i, sums) in sums.iter_mut().enumerate() {
                        let a = a.add(i * k + step).read();
                        for (sum, b) in sums.iter_mut().zip(b) {
                            *sum = a.mul_add(b, *sum);
                        }
                    }
                }
                for (i, sums) in sums.into_iter().enumerate() {
                    line(i).write_unaligned(sums);
                }
            }
        }
    }
}

#[inline(always)]
fn multiply_gathered<T: Copy>(
    n: usize,
    k: usize,
    a: &[T],
    columns: &[u16],
    b: &[T],
    d: &mut [f32],
    add: impl Fn(T, T, f32) -> f32,
) {
    for ((a, columns), d) in a.chunks_exact(k).zip(columns.chunks_exact(k)).zip(d.chunks_exact_mut(n)) {
        for (column, sums) in d.as_chunks_mut::<COLUMNS>().0.iter_mut().enumerate() {
            for (&a, &row) in a.iter().zip(columns) {
                let b = &b[usize::from(row) * n + column * COLUMNS..][..COLUMNS];
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum = add(a, b, *sum);
                }
            }
        }
    }
}

/// `a * b + sum`, rounded once to binary32. The factors have 6 bits each, so the product has 12 bits and is exact.
/// Its sum with a number of 24 bits is exact in 53 bits, unless one is so small that the other is the result, however
/// often it is rounded.
#[inline(always)]
fn add_product(a: f64, b: f64, sum: f32) -> f32 {
    (a * b + f64::from(sum)) as f32
}

#[inline(always)]
fn widen<P: Path>(path: P, from: &[u16], to: &mut [f32]) {
    let (from, to) = (from.as_chunks::<BLOCK>().0, to.as_chunks_mut::<BLOCK>().0);
    for (from, to) in from.iter().zip(to) {
        *to = path.f16_to_f32(*from);
    }
}

#[inline(always)]
fn narrow<P: Path>(path: P, from: &[f32], to: &mut [u16]) {
    let (from, to) = (from.as_chunks::<BLOCK>().0, to.as_chunks_mut::<BLOCK>().0);
    for (from, to) in from.iter().zip(to) {
        *to = path.f32_to_f16(*from);
    }
}
