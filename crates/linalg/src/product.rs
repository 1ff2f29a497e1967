//! The product of two matrices, with sums in a fixed order.
//!
//! The crates `gemm-f32` and `gemm-f64` compute it. What they add in which order depends on the sizes of caches and on the shape, but not
//! within these bounds, which this file keeps (gemm 0.19.0, `gemm-common/src/gemm.rs`):
//!
//! - `k` is at most 512. Then `kc`, the length of their blocks, is `k`: `kernel_params` chooses at least `max(512).min(k)`, and the short
//!   cut for small matrices `k.min(512)`. So each element is one chain: `sum = fma(a, b, sum)`, in ascending order, from zero.
//! - They do not take a path of their own: for few elements with both factors contiguous along `k`, for one row, for one column (sums in
//!   lanes of a vector). Copies with other strides keep them from it. For `k` of 1 and 2 the path of its own computes the same chain.
//! - The factors `alpha` and `beta` are 1 and 0 or 1, so adding a block to the sum rounds once, fused or not.
//!
//! Here `k` is cut into the fewest blocks of at most 512, as even as can be (the first are the longer ones), and the sums of the blocks
//! are added in ascending order. Threads and vectors share elements among them, never sums. So a result has the same bits for any
//! number of threads, of lanes, and any size of caches; on a machine without FMA, products and sums round separately.
//!
//! Complex products are four real ones: real part `re re - im im`, imaginary part `re im + im re`, each block of the first before the
//! same block of the second.

use std::marker::PhantomData;

use gemm_common::Parallelism;

/// The longest chain.
pub const BLOCK: usize = 512;

/// The lengths of the blocks into which `k` is cut.
pub fn blocks(k: usize) -> impl Iterator<Item = usize> {
    let count = k.div_ceil(BLOCK).max(1);
    (0..count).map(move |i| k / count + usize::from(i < k % count)).filter(|&length| length > 0)
}

/// Products of so many multiplications use one thread.
const FEW: usize = 64 * 64 * 64;

/// Arguments of the crates' functions: m, n, k, dst, its strides of columns and rows, whether it is read, lhs, rhs, alpha, beta,
/// whether they are conjugated, threads.
type Gemm<R> = unsafe fn(
    usize,
    usize,
    usize,
    *mut R,
    isize,
    isize,
    bool,
    *const R,
    isize,
    isize,
    *const R,
    isize,
    isize,
    R,
    R,
    bool,
    bool,
    bool,
    Parallelism,
);

/// The types that the crates multiply.
pub trait Multiply: Copy + Default + Send + Sync + 'static {
    /// 1, and -1.
    const UNITS: [Self; 2];
    /// The crate's function.
    fn function() -> Gemm<Self>;
}

impl Multiply for f32 {
    const UNITS: [f32; 2] = [1.0, -1.0];
    fn function() -> Gemm<f32> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }
}

impl Multiply for f64 {
    const UNITS: [f64; 2] = [1.0, -1.0];
    fn function() -> Gemm<f64> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
}

/// A factor, in place: where it begins, and the strides of its rows and columns in numbers (complex values are two).
#[derive(Clone, Copy)]
pub struct Factor<'a, R> {
    re: *const R,
    /// Null for real values.
    im: *const R,
    rows: isize,
    columns: isize,
    conjugated: bool,
    memory: PhantomData<&'a R>,
}

impl<R: Multiply> Factor<'_, R> {
    /// A factor at a pointer to its first number, whose elements lie `rows` and `columns` elements apart.
    ///
    /// # Safety
    /// All elements that a product uses must stay readable while the factor lives.
    pub unsafe fn new<'a>(
        start: *const R,
        is_complex: bool,
        rows: isize,
        columns: isize,
        conjugated: bool,
    ) -> Factor<'a, R> {
        let (im, step) = if is_complex { (start.wrapping_add(1), 2) } else { (std::ptr::null(), 1) };
        Factor { re: start, im, rows: rows * step, columns: columns * step, conjugated, memory: PhantomData }
    }

    /// The parts: their starts, and whether the imaginary one counts negatively.
    fn part(&self, imaginary: bool) -> (*const R, bool) {
        if imaginary { (self.im, self.conjugated) } else { (self.re, false) }
    }
}

/// A product: its columns, one behind the other; the imaginary parts are empty for real factors.
pub struct Product<R> {
    /// The rows.
    pub rows: usize,
    /// The real parts.
    pub re: Vec<R>,
    /// The imaginary parts.
    pub im: Vec<R>,
}

/// The product of an m x k and a k x n matrix.
pub fn product<R: Multiply>([m, n, k]: [usize; 3], a: Factor<'_, R>, b: Factor<'_, R>) -> Product<R> {
    // Of one row or column, every other element: the crates take a path of their own for contiguous ones.
    let apart = if m <= 1 || n <= 1 { 2 } else { 1 };
    let parts: &[_] = if a.im.is_null() {
        &[(false, false, false)]
    } else {
        &[(false, false, false), (false, true, true), (true, false, true), (true, true, false)]
    };
    let mut sums = [Vec::new(), Vec::new()];
    sums[0].resize(m * n * apart, R::default());
    if !a.im.is_null() {
        sums[1].resize(m * n * apart, R::default());
    }
    if m == 0 || n == 0 {
        return Product { rows: m, re: Vec::new(), im: Vec::new() };
    }
    let work = m.saturating_mul(n).saturating_mul(k);
    let threads = if work <= FEW { Parallelism::None } else { Parallelism::Rayon(0) };
    let mut start = 0;
    for length in blocks(k) {
        let mut begun = [start > 0; 2];
        for &(a_im, b_im, into_im) in parts {
            let ((a_start, a_negative), (b_start, b_negative)) = (a.part(a_im), b.part(b_im));
            let negative = a_negative != b_negative;
            let negative = negative != (a_im && b_im);
            let lhs = Strided {
                start: a_start.wrapping_offset(start as isize * a.columns),
                rows: a.rows,
                columns: a.columns,
            };
            let rhs = Strided {
                start: b_start.wrapping_offset(start as isize * b.rows),
                rows: b.rows,
                columns: b.columns,
            };
            let into = usize::from(into_im);
            let factor = R::UNITS[usize::from(negative)];
            let sum = (sums[into].as_mut_ptr(), apart);
            multiply([m, n, length], sum, begun[into], lhs, rhs, factor, threads);
            begun[into] = true;
        }
        start += length;
    }
    let [re, im] = sums.map(|sums| if apart == 1 { sums } else { sums.into_iter().step_by(apart).collect() });
    Product { rows: m, re, im }
}

/// Numbers at strides.
#[derive(Clone, Copy)]
struct Strided<R> {
    start: *const R,
    rows: isize,
    columns: isize,
}

impl<R: Multiply> Strided<R> {
    /// A copy whose stride along `k` is 2: `count` vectors of so many numbers.
    fn spread(&self, count: usize, length: usize, is_left: bool) -> (Vec<R>, Strided<R>) {
        let mut copy = vec![R::default(); count * length * 2];
        let (across, along) = if is_left { (self.rows, self.columns) } else { (self.columns, self.rows) };
        for (i, vector) in copy.chunks_exact_mut(length * 2).enumerate() {
            for (l, number) in vector.iter_mut().step_by(2).enumerate() {
                let offset = i as isize * across + l as isize * along;
                // SAFETY: the factor has this element.
                *number = unsafe { self.start.wrapping_offset(offset).read() };
            }
        }
        let (start, across) = (copy.as_ptr(), length as isize * 2);
        let spread = match is_left {
            true => Strided { start, rows: across, columns: 2 },
            false => Strided { start, rows: 2, columns: across },
        };
        (copy, spread)
    }
}

/// Adds a block to sums, or begins them.
fn multiply<R: Multiply>(
    [m, n, k]: [usize; 3],
    (sums, apart): (*mut R, usize),
    read: bool,
    mut lhs: Strided<R>,
    mut rhs: Strided<R>,
    factor: R,
    threads: Parallelism,
) {
    // The paths of their own for vectors and for few elements.
    let mut kept = Vec::new();
    if lhs.columns == 1 && rhs.rows == 1 && (m <= 1 || n <= 1 || m * n <= 256) {
        if m <= n {
            (kept, lhs) = lhs.spread(m, k, true);
        } else {
            (kept, rhs) = rhs.spread(n, k, false);
        }
    }
    let one = R::UNITS[0];
    let (column, row) = ((m * apart) as isize, apart as isize);
    // SAFETY: the factors have these elements, and the sums have room for them.
    unsafe {
        R::function()(
            m,
            n,
            k,
            sums,
            column.max(2),
            row,
            read,
            lhs.start,
            lhs.columns,
            lhs.rows,
            rhs.start,
            rhs.columns,
            rhs.rows,
            one,
            factor,
            false,
            false,
            false,
            threads,
        );
    }
    drop(kept);
}
