//! Loops that apply a function of scalars to every lane.
//!
//! A function is a closure that captures nothing. Its type alone identifies it, so the loop around it can be compiled
//! for every path. Each block of 16 lanes is read completely before its results are written. So a destination may be
//! a source's array, and the compiler can vectorize without checking for overlap.

use super::path::{BLOCK, Block, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A type of lanes: plain bits of 2, 4 or 8 bytes.
pub(super) trait Lane: Copy + Default + 'static {}

macro_rules! lane {
    ($($ty:ty)*) => { $(impl Lane for $ty {})* };
}
lane!(u16 i16 u32 i32 u64 i64 f32 f64);

/// The closure of type `F`, created from the type alone.
#[inline(always)]
fn function<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "a lane function captures nothing") };
    // SAFETY: a dangling pointer is valid for reads of a zero-sized value. A value of `F` exists and may be copied,
    // because every caller got `F` from a function like `map1`, which received a value of it.
    unsafe { NonNull::<F>::dangling().read() }
}

/// Block `i` of source `n`.
///
/// # Safety
/// The source must be an array of `T` with that block.
#[inline(always)]
pub(super) unsafe fn load<T: Copy>(args: &LaneArgs, n: usize, i: usize) -> Block<T> {
    // SAFETY: the caller's promise. Sources may be unaligned.
    unsafe { args.src[n].add(i * args.step[n]).cast::<Block<T>>().read_unaligned() }
}

/// Writes block `i` of destination `n`. Other threads may read it at the same time on paths that [share
/// results](HostPath::shares_results).
///
/// # Safety
/// The destination must be an array of `T` with that block.
#[inline(always)]
pub(super) unsafe fn store<P: Path, T: Copy>(path: P, args: &LaneArgs, n: usize, i: usize, block: Block<T>) {
    // SAFETY: the caller's promise. Destinations may be unaligned.
    unsafe {
        let to = args.dst[n].cast::<Block<T>>().add(i);
        if P::PATH.shares_results() { path.write(to.cast(), block) } else { to.write_unaligned(block) }
    }
}

/// The 16 bits of block `i` of source `n`, a predicate.
///
/// # Safety
/// The source must be a predicate with that block.
#[inline(always)]
pub(super) unsafe fn load_mask(args: &LaneArgs, n: usize, i: usize) -> u16 {
    // SAFETY: the caller's promise.
    unsafe { args.src[n].cast::<u16>().add(i).read() }
}

/// Writes the 16 bits of block `i` of destination `n`, a predicate. Does nothing if it is null.
///
/// # Safety
/// The destination must be null or a predicate with that block.
#[inline(always)]
pub(super) unsafe fn store_mask(args: &LaneArgs, n: usize, i: usize, mask: u16) {
    if !args.dst[n].is_null() {
        // SAFETY: the caller's promise.
        unsafe { args.dst[n].cast::<u16>().add(i).write(mask) }
    }
}

/// Applies `f` to every element.
#[inline(always)]
pub(super) fn apply1<A: Copy, R: Copy + Default>(f: impl Fn(A) -> R, a: Block<A>) -> Block<R> {
    let mut out = [R::default(); BLOCK];
    for i in 0..BLOCK {
        out[i] = f(a[i]);
    }
    out
}

/// Applies `f` to every pair of elements.
#[inline(always)]
pub(super) fn apply2<A: Copy, B: Copy, R: Copy + Default>(
    f: impl Fn(A, B) -> R,
    a: Block<A>,
    b: Block<B>,
) -> Block<R> {
    let mut out = [R::default(); BLOCK];
    for i in 0..BLOCK {
        out[i] = f(a[i], b[i]);
    }
    out
}

/// Applies `f` to every triple of elements.
#[inline(always)]
pub(super) fn apply3<A: Copy, B: Copy, C: Copy, R: Copy + Default>(
    f: impl Fn(A, B, C) -> R,
    a: Block<A>,
    b: Block<B>,
    c: Block<C>,
) -> Block<R> {
    let mut out = [R::default(); BLOCK];
    for i in 0..BLOCK {
        out[i] = f(a[i], b[i], c[i]);
    }
    out
}

struct Map1<A, R, F>(PhantomData<(A, R, F)>);

impl<A: Lane, R: Lane, F: Fn(A) -> R + Copy> Kernel for Map1<A, R, F> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements of their types.
            unsafe { store(path, args, 0, i, apply1(function::<F>(), load(args, 0, i))) }
        }
    }
}

/// d = f(a)
pub(super) fn map1<A: Lane, R: Lane, F: Fn(A) -> R + Copy>(path: HostPath, _: F) -> LaneFn {
    version::<Map1<A, R, F>>(path)
}

struct Map2<A, B, R, F>(PhantomData<(A, B, R, F)>);

impl<A: Lane, B: Lane, R: Lane, F: Fn(A, B) -> R + Copy> Kernel for Map2<A, B, R, F> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements of their types.
            unsafe { store(path, args, 0, i, apply2(function::<F>(), load(args, 0, i), load(args, 1, i))) }
        }
    }
}

/// d = f(a, b)
pub(super) fn map2<A: Lane, B: Lane, R: Lane, F: Fn(A, B) -> R + Copy>(path: HostPath, _: F) -> LaneFn {
    version::<Map2<A, B, R, F>>(path)
}

struct Map3<A, B, C, R, F>(PhantomData<(A, B, C, R, F)>);

impl<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C) -> R + Copy> Kernel for Map3<A, B, C, R, F> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements of their types.
            unsafe {
                let (a, b, c) = (load(args, 0, i), load(args, 1, i), load(args, 2, i));
                store(path, args, 0, i, apply3(function::<F>(), a, b, c));
            }
        }
    }
}

/// d = f(a, b, c)
pub(super) fn map3<A: Lane, B: Lane, C: Lane, R: Lane, F: Fn(A, B, C) -> R + Copy>(
    path: HostPath,
    _: F,
) -> LaneFn {
    version::<Map3<A, B, C, R, F>>(path)
}

/// `f` of four sources: two of one type and two 32-bit words.
struct Map4<A, R, F>(PhantomData<(A, R, F)>);

impl<A: Lane, R: Lane, F: Fn(A, A, u32, u32) -> R + Copy> Kernel for Map4<A, R, F> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements of their types.
            unsafe {
                let (a, b) = (load(args, 0, i), load(args, 1, i));
                let (c, d) = (load(args, 2, i), load(args, 3, i));
                let mut out = [R::default(); BLOCK];
                for k in 0..BLOCK {
                    out[k] = function::<F>()(a[k], b[k], c[k], d[k]);
                }
                store(path, args, 0, i, out);
            }
        }
    }
}

/// d = f(a, b, c, d), the last two 32 bits wide
pub(super) fn map4<A: Lane, R: Lane, F: Fn(A, A, u32, u32) -> R + Copy>(path: HostPath, _: F) -> LaneFn {
    version::<Map4<A, R, F>>(path)
}

/// A half-precision format, computed in binary32.
pub(super) trait Half: Copy + 'static {
    /// Exact; a NaN becomes some NaN.
    fn widen<P: Path>(path: P, x: Block<u16>) -> Block<f32>;

    /// To nearest even; a NaN becomes 0x7fff.
    fn narrow<P: Path>(path: P, x: Block<f32>) -> Block<u16>;
}

/// binary16.
#[derive(Clone, Copy)]
pub(super) struct F16;

impl Half for F16 {
    #[inline(always)]
    fn widen<P: Path>(path: P, x: Block<u16>) -> Block<f32> {
        path.f16_to_f32(x)
    }

    #[inline(always)]
    fn narrow<P: Path>(path: P, x: Block<f32>) -> Block<u16> {
        // The conversion keeps the top of a NaN's payload: this NaN becomes 0x7fff.
        let x = apply1(|x: f32| if x.is_nan() { f32::from_bits(0x7fff_ffff) } else { x }, x);
        path.f32_to_f16(x)
    }
}

/// bfloat16.
#[derive(Clone, Copy)]
pub(super) struct Bf16;

impl Half for Bf16 {
    #[inline(always)]
    fn widen<P: Path>(path: P, x: Block<u16>) -> Block<f32> {
        path.bf16_to_f32(x)
    }

    #[inline(always)]
    fn narrow<P: Path>(path: P, x: Block<f32>) -> Block<u16> {
        path.f32_to_bf16(x)
    }
}

/// The handler of packed pairs: each lane has two elements of `HALF / 16` bytes.
///
/// # Safety
/// As for [`LaneFn::call`].
unsafe fn pairs<const HALF: usize>(args: &LaneArgs, lane_fn: &LaneFn) {
    // 16 lanes are two blocks of elements. All lanes can run at once if every source is contiguous, or has the same
    // value in all lanes.
    let in_step = |n: usize| match args.step[n] {
        step if step == 2 * HALF => true,
        0 if args.src[n].is_null() => true,
        // SAFETY: the source has a group.
        0 => unsafe {
            let [low, high] = args.src[n].cast::<[[u8; HALF]; 2]>().read_unaligned();
            low == high
        },
        _ => false,
    };
    if (0..args.step.len()).all(in_step) {
        let args = LaneArgs { lanes: 2 * args.lanes, step: args.step.map(|step| step / 2), ..*args };
        // SAFETY: the same bytes hold twice as many elements of half the width.
        return unsafe { (lane_fn.inner)(&args, lane_fn) };
    }
    for group in 0..args.lanes / BLOCK {
        let src = std::array::from_fn(|n| args.src[n].wrapping_add(group * args.step[n]));
        let dst = args.dst.map(|dst| dst.wrapping_add(group * 2 * HALF));
        let args = LaneArgs { dst, src, step: [HALF; LaneArgs::SOURCES], lanes: 2 * BLOCK };
        // SAFETY: as above, of the lanes of one group.
        unsafe { (lane_fn.inner)(&args, lane_fn) }
    }
}

/// A signed or unsigned byte.
pub(super) trait Byte: Copy + 'static {}
impl Byte for u8 {}
impl Byte for i8 {}

struct Bytes2<T, F>(PhantomData<(T, F)>);

impl<T: Byte, F: Fn(T, T) -> u8 + Copy> Kernel for Bytes2<T, F> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` times four bytes, which are a `T` each.
            unsafe {
                let bytes = |n: usize| -> [T; 4 * BLOCK] {
                    args.src[n].add(i * args.step[n]).cast::<[T; 4 * BLOCK]>().read_unaligned()
                };
                let (a, b) = (bytes(0), bytes(1));
                let mut result = [0u8; 4 * BLOCK];
                for k in 0..4 * BLOCK {
                    result[k] = function::<F>()(a[k], b[k]);
                }
                store(path, args, 0, i, std::mem::transmute::<[u8; 4 * BLOCK], Block<u32>>(result));
            }
        }
    }
}

/// d = f(a, b), for each of four bytes
pub(super) fn bytes2<T: Byte, F: Fn(T, T) -> u8 + Copy>(path: HostPath, _: F) -> LaneFn {
    version::<Bytes2<T, F>>(path)
}

/// Turns a handler without predicates into one of packed pairs. All operands must have elements of `bytes` bytes, 2
/// or 4.
pub(super) fn in_pairs(bytes: usize, handler: LaneFn) -> LaneFn {
    let function = if bytes == 4 { pairs::<{ 4 * BLOCK }> } else { pairs::<{ 2 * BLOCK }> };
    LaneFn { function, inner: handler.function, ..handler }
}

/// The kernel on halves, or on packed pairs of them.
fn packed<K: Kernel>(pairs: bool, path: HostPath) -> LaneFn {
    if pairs { in_pairs(2, version::<K>(path)) } else { version::<K>(path) }
}

/// `F` on halves; `EXACT` for blocks in which `DOUBT` holds in any lane.
struct HalfMap<H, const SOURCES: usize, F, DOUBT, EXACT>(PhantomData<(H, F, DOUBT, EXACT)>);

impl<H, const SOURCES: usize, F, DOUBT, EXACT> Kernel for HalfMap<H, SOURCES, F, DOUBT, EXACT>
where
    H: Half,
    F: Fn([f32; SOURCES]) -> f32 + Copy,
    DOUBT: Fn([f32; SOURCES]) -> bool + Copy,
    EXACT: Fn([f32; SOURCES]) -> f32 + Copy,
{
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` halves.
            unsafe {
                let mut sources = [[0.0; BLOCK]; SOURCES];
                for (n, source) in sources.iter_mut().enumerate() {
                    *source = H::widen(path, load(args, n, i));
                }
                let lane = |k: usize| {
                    let mut x = [0.0; SOURCES];
                    for n in 0..SOURCES {
                        x[n] = sources[n][k];
                    }
                    x
                };
                let mut doubts = [0u32; BLOCK];
                let mut out = [0.0; BLOCK];
                for k in 0..BLOCK {
                    doubts[k] = u32::from(function::<DOUBT>()(lane(k)));
                    out[k] = function::<F>()(lane(k));
                }
                if doubts.iter().fold(0, |a, b| a | b) != 0 {
                    for (k, out) in out.iter_mut().enumerate() {
                        *out = function::<EXACT>()(lane(k));
                    }
                }
                store(path, args, 0, i, H::narrow(path, out));
            }
        }
    }
}

/// Each half of d is f of the sources' halves, rounded to the format; with `pairs` for packed pairs of halves.
pub(super) fn half_map<H: Half, const SOURCES: usize, F>(pairs: bool, path: HostPath, f: F) -> LaneFn
where
    F: Fn([f32; SOURCES]) -> f32 + Copy,
{
    half_map_or::<H, SOURCES, _, _, _>(pairs, path, f, |_| false, f)
}

/// Like [`half_map`], but computes a block by `exact` if any of its lanes is in `doubt`.
pub(super) fn half_map_or<H: Half, const SOURCES: usize, F, DOUBT, EXACT>(
    pairs: bool,
    path: HostPath,
    _: F,
    _: DOUBT,
    _: EXACT,
) -> LaneFn
where
    F: Fn([f32; SOURCES]) -> f32 + Copy,
    DOUBT: Fn([f32; SOURCES]) -> bool + Copy,
    EXACT: Fn([f32; SOURCES]) -> f32 + Copy,
{
    packed::<HalfMap<H, SOURCES, F, DOUBT, EXACT>>(pairs, path)
}
