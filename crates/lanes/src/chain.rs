//! Chains of products: `fma` after `fma` into the same sum, which stays in the host's registers.
//!
//! Each step is the same as in the handler of `fma`: the sum is rounded once per product. A NaN at any step makes the
//! last sum a NaN, so only the last sum needs its NaN made canonical.

use super::drive::{apply1, apply3};
use super::float::finish;
use super::path::{BLOCK, Block, Path};

/// How the lanes of a chain are laid out: groups of 16 lanes form rows, rows form blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Groups per row.
    pub groups: usize,
    /// Rows per block.
    pub rows: usize,
    /// Number of blocks.
    pub blocks: usize,
}

/// Values of 4-byte lanes, anywhere in memory. Strides are in bytes, modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Address of the first group.
    pub array: *const u8,
    /// Stride between groups of a row.
    pub step: usize,
    /// Stride between rows.
    pub pitch: usize,
    /// Stride between blocks.
    pub block_stride: usize,
    /// Each group has a single value for all its lanes.
    pub splat: bool,
}

impl Factor {
    /// No values.
    pub const NONE: Factor =
        Factor { array: std::ptr::null(), step: 0, pitch: 0, block_stride: 0, splat: false };
}

/// Rows whose sums are computed together: enough to hide the latency of an addition.
const ROWS: usize = 4;

/// See [`Helpers`](super::Helpers).
#[inline(always)]
pub(super) unsafe fn fma_chain<P: Path>(
    _: P,
    dst: *mut u8,
    first: Factor,
    products: &[[Factor; 2]],
    shape: Shape,
) {
    for block in 0..shape.blocks {
        for group in 0..shape.groups {
            let mut row = 0;
            while row < shape.rows {
                let at = |factor: &Factor| Factor {
                    array: factor
                        .array
                        .wrapping_add(block.wrapping_mul(factor.block_stride))
                        .wrapping_add(group.wrapping_mul(factor.step))
                        .wrapping_add(row.wrapping_mul(factor.pitch)),
                    ..*factor
                };
                let target = ((block * shape.rows + row) * shape.groups + group) * size_of::<Block<f32>>();
                let pitch = shape.groups * size_of::<Block<f32>>();
                // SAFETY: the caller's promise.
                unsafe {
                    let to = dst.add(target);
                    if shape.rows - row >= ROWS {
                        rows::<ROWS>(to, pitch, at(&first), products, at);
                        row += ROWS;
                    } else {
                        rows::<1>(to, pitch, at(&first), products, at);
                        row += 1;
                    }
                }
            }
        }
    }
}

/// The sums of one group in `N` rows.
///
/// # Safety
/// The factors must have these groups, and the destination must have room for them.
#[inline(always)]
unsafe fn rows<const N: usize>(
    to: *mut u8,
    pitch: usize,
    first: Factor,
    products: &[[Factor; 2]],
    at: impl Fn(&Factor) -> Factor,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[0.0; BLOCK]; N];
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum = if first.splat { splat(&first, row) } else { whole(&first, row) };
        }
        for [a, b] in products {
            let (a, b) = (at(a), at(b));
            macro_rules! add {
                ($a:ident, $b:ident) => {
                    for (row, sum) in sums.iter_mut().enumerate() {
                        *sum = apply3(f32::mul_add, $a(&a, row), $b(&b, row), *sum);
                    }
                };
            }
            match (a.splat, b.splat) {
                (false, false) => add!(whole, whole),
                (true, false) => add!(splat, whole),
                (false, true) => add!(whole, splat),
                (true, true) => add!(splat, splat),
            }
        }
        for (row, sum) in sums.into_iter().enumerate() {
            to.add(row * pitch).cast::<Block<f32>>().write_unaligned(apply1(finish::<false>, sum));
        }
    }
}

/// The lanes of a group in a row.
///
/// # Safety
/// The factor must have this row.
#[inline(always)]
unsafe fn whole(factor: &Factor, row: usize) -> Block<f32> {
    let at = factor.array.wrapping_add(row.wrapping_mul(factor.pitch));
    // SAFETY: the caller's promise. Factors may be unaligned.
    unsafe { at.cast::<Block<f32>>().read_unaligned() }
}

/// The single value of a group in a row, in all lanes.
///
/// # Safety
/// As above.
#[inline(always)]
unsafe fn splat(factor: &Factor, row: usize) -> Block<f32> {
    let at = factor.array.wrapping_add(row.wrapping_mul(factor.pitch));
    // SAFETY: as above.
    [unsafe { at.cast::<f32>().read_unaligned() }; BLOCK]
}
