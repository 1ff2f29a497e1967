//! An interface to the host's instruction sets, for operations that the compiler does not vectorize by itself.
//!
//! A handler is written once, over [`Path`], and [`version`] compiles it for every [`HostPath`]. Arithmetic is plain
//! Rust on blocks of 16 lanes, which the compiler vectorizes. The methods of [`Path`] convert lanes to mask bits,
//! mask bits to lanes, and halves; they use intrinsics where there are any.

use super::macros::multiversion;
use super::memory;
use super::quads::Quads;
use super::rounded;
use super::{HostPath, LaneArgs, LaneFn, Parameters};

/// Lanes of a block; a `u16` holds their predicates.
pub(super) const BLOCK: usize = 16;

/// Lanes of a warp.
pub(super) const WARP: usize = 32;

/// One value for each lane of a block.
pub(super) type Block<T> = [T; BLOCK];

/// A block whose address is taken, so that it is in memory. The alignment keeps its vectors within cache lines:
/// writing and reading back a vector that crosses a cache line is many times slower.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(super) struct Aligned<T>(pub(super) T);

/// Operations of a host's instruction set on a block of lanes.
///
/// A value is a witness that the host has the instructions: only a function that is compiled for them can make one
/// ([`multiversion!`]), so the methods are safe to call.
pub(super) trait Path: Copy + 'static {
    /// The path.
    const PATH: HostPath;
    /// Whether `mul_add` is an instruction instead of a library call.
    const FUSED: bool;
    /// Vectors of binary32.
    type Singles: Quads<Number = f32, Path = Self>;
    /// Vectors of binary64.
    type Doubles: Quads<Number = f64, Path = Self>;

    /// Reads a value of plain bits from any address, like [`memory::read`].
    #[inline(always)]
    unsafe fn read<T: Copy>(self, from: *const u8) -> T {
        // SAFETY: the caller promises that `from` is valid for reads of a `T`.
        unsafe { memory::read(from) }
    }

    /// Writes a value of plain bits to any address, like [`memory::write`].
    #[inline(always)]
    unsafe fn write<T: Copy>(self, to: *mut u8, value: T) {
        // SAFETY: the caller promises that `to` is valid for writes of a `T`.
        unsafe { memory::write(to, value) }
    }

    /// The top bit of every element.
    fn top_bits16(self, x: Block<u16>) -> u16 {
        gather_bits(x.map(|v| v >> 15 != 0))
    }

    /// The top bit of every element.
    fn top_bits32(self, x: Block<u32>) -> u16 {
        gather_bits(x.map(|v| v >> 31 != 0))
    }

    /// The top bit of every element.
    fn top_bits64(self, x: Block<u64>) -> u16 {
        gather_bits(x.map(|v| v >> 63 != 0))
    }

    /// `a` where the mask is set, else `b`.
    fn select16(self, mask: u16, a: Block<u16>, b: Block<u16>) -> Block<u16> {
        select(mask, a, b)
    }

    /// `a` where the mask is set, else `b`.
    fn select32(self, mask: u16, a: Block<u32>, b: Block<u32>) -> Block<u32> {
        select(mask, a, b)
    }

    /// `a` where the mask is set, else `b`.
    fn select64(self, mask: u16, a: Block<u64>, b: Block<u64>) -> Block<u64> {
        select(mask, a, b)
    }

    /// Packs the elements whose mask bit is set. The rest of `to` is unspecified.
    #[inline(always)]
    fn compress32(self, x: Block<u32>, mask: u16, to: &mut Block<u32>) {
        compress(x, mask, to);
    }

    /// Packs the elements whose mask bit is set. The rest of `to` is unspecified.
    #[inline(always)]
    fn compress64(self, x: Block<u64>, mask: u16, to: &mut Block<u64>) {
        compress(x, mask, to);
    }

    /// Places consecutive elements at the set bits of a mask. The other elements are unspecified.
    #[inline(always)]
    fn expand32(self, from: &Block<u32>, mask: u16) -> Block<u32> {
        expand(from, mask)
    }

    /// Places consecutive elements at the set bits of a mask. The other elements are unspecified.
    #[inline(always)]
    fn expand64(self, from: &Block<u64>, mask: u16) -> Block<u64> {
        expand(from, mask)
    }

    /// `x[from[i] % 32]` for every i.
    fn permute(self, x: [u32; WARP], from: [u32; WARP]) -> [u32; WARP] {
        from.map(|i| x[i as usize % WARP])
    }

    /// `table[index[i] % 16]` for every i.
    #[inline(always)]
    fn look_up(self, table: &[f64; 16], index: Block<u64>) -> Block<f64> {
        let mut out = [0.0; BLOCK];
        for (out, index) in out.iter_mut().zip(index) {
            *out = table[index as usize % 16];
        }
        out
    }

    /// Transposes a matrix.
    #[inline(always)]
    fn transpose4(self, rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
        std::array::from_fn(|column| rows.map(|row| row[column]))
    }

    /// Transposes a matrix.
    #[inline(always)]
    fn transpose_halves(self, mut rows: [[u16; 8]; 8]) -> [[u16; 8]; 8] {
        // Three rounds of interleaving, for which hosts have instructions.
        for _ in 0..3 {
            let (upper, lower) = rows.split_at(4);
            let mut next = [[0; 8]; 8];
            for (to, (a, b)) in next.as_chunks_mut::<2>().0.iter_mut().zip(upper.iter().zip(lower)) {
                to[0] = [a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]];
                to[1] = [a[4], b[4], a[5], b[5], a[6], b[6], a[7], b[7]];
            }
            rows = next;
        }
        rows
    }

    /// binary16 to binary32, exactly; a NaN becomes some NaN.
    fn f16_to_f32(self, x: Block<u16>) -> Block<f32> {
        let mut out = [0.0; BLOCK];
        for (out, x) in out.iter_mut().zip(x) {
            *out = widen_f16(x);
        }
        out
    }

    /// bfloat16 to binary32.
    #[inline(always)]
    fn bf16_to_f32(self, x: Block<u16>) -> Block<f32> {
        let mut out = [0.0; BLOCK];
        for (out, x) in out.iter_mut().zip(x) {
            *out = f32::from_bits(u32::from(x) << 16);
        }
        out
    }

    /// binary32 to bfloat16, to nearest even; a NaN becomes 0x7fff.
    #[inline(always)]
    fn f32_to_bf16(self, x: Block<f32>) -> Block<u16> {
        let mut out = [0; BLOCK];
        for (out, x) in out.iter_mut().zip(x) {
            let bits = x.to_bits();
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
            *out = if x.is_nan() { 0x7fff } else { rounded as u16 };
        }
        out
    }

    /// `x * y + z` of halves, rounded to odd. An exact zero sum is negative only with `down`.
    #[inline(always)]
    fn fma_of_halves(self, x: Block<f32>, y: Block<f32>, z: Block<f32>, down: bool) -> Block<f32> {
        let (flip, mut out) = (u64::from(down) << 63, [0.0; BLOCK]);
        for k in 0..BLOCK {
            out[k] = rounded::fma_of_halves(x[k], y[k], z[k], flip);
        }
        out
    }

    /// binary32 to binary16, to nearest even; the NaN 0x7fffffff becomes 0x7fff.
    fn f32_to_f16(self, x: Block<f32>) -> Block<u16> {
        let mut out = [0; BLOCK];
        for (out, x) in out.iter_mut().zip(x) {
            *out = narrow_f16(x);
        }
        out
    }
}

/// The instructions that every host has.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Path for Portable {
    const PATH: HostPath = HostPath::Portable;
    const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
    type Singles = [f32; 4];
    type Doubles = [f64; 4];
}

#[inline(always)]
fn gather_bits(x: Block<bool>) -> u16 {
    // An or-reduction of powers of two, because it vectorizes; shifting bit by bit into one word does not.
    let mut bits = [0; BLOCK];
    for (i, (bit, x)) in bits.iter_mut().zip(x).enumerate() {
        *bit = (1 << i) & 0u16.wrapping_sub(u16::from(x));
    }
    bits.into_iter().fold(0, |a, b| a | b)
}

#[inline(always)]
fn select<T: Copy>(mask: u16, a: Block<T>, b: Block<T>) -> Block<T> {
    let mut out = b;
    for (i, (out, a)) in out.iter_mut().zip(a).enumerate() {
        *out = if mask & 1 << i != 0 { a } else { *out };
    }
    out
}

/// The set bits of a mask, in ascending order.
#[inline(always)]
fn ones(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < BLOCK).then_some(lane)
    })
}

#[inline(always)]
fn compress<T: Copy>(x: Block<T>, mask: u16, to: &mut Block<T>) {
    for (to, lane) in to.iter_mut().zip(ones(mask)) {
        *to = x[lane];
    }
}

#[inline(always)]
fn expand<T: Copy>(from: &Block<T>, mask: u16) -> Block<T> {
    let mut out = *from;
    for (from, lane) in from.iter().zip(ones(mask)) {
        out[lane] = *from;
    }
    out
}

/// binary16 to binary32 by integer operations and one multiplication, which also handles subnormal numbers.
#[inline(always)]
pub(super) fn widen_f16(x: u16) -> f32 {
    let sign = u32::from(x & 0x8000) << 16;
    let magnitude = u32::from(x & 0x7fff);
    // Exponent and fraction are in place, but the exponent is 112 too small; the factor 2^112 corrects it.
    let finite = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    let special = f32::from_bits(magnitude << 13 | 0x7f80_0000);
    let value = if magnitude < 0x7c00 { finite } else { special };
    f32::from_bits(value.to_bits() | sign)
}

/// binary32 to binary16: normal numbers by integer rounding, subnormal ones by one addition.
#[inline(always)]
pub(super) fn narrow_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // The unit in the last place of 2^-1 is 2^-24, the quantum of binary16's subnormal numbers.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    // The limit is 65520: from there on, everything rounds to infinity.
    let large = if magnitude > 0x7f80_0000 { 0x7fff } else { 0x7c00 };
    let value = if magnitude < 0x477f_f000 { finite } else { large };
    value as u16 | sign
}

/// A loop over all lanes, written once for every path.
pub(super) trait Kernel {
    /// Computes all lanes.
    ///
    /// # Safety
    /// As for [`LaneFn::call`].
    ///
    /// Implementations must be `#[inline(always)]`, so that they are compiled with the instructions that their caller
    /// may use.
    unsafe fn run<P: Path>(path: P, args: &LaneArgs);
}

/// The kernel compiled for a path.
pub(super) fn version<K: Kernel>(path: HostPath) -> LaneFn {
    LaneFn::plain(multiversion!(path, [K: Kernel] (args: &LaneArgs, _lane_fn: &LaneFn), p => {
        // SAFETY: the caller of a handler keeps the contract of `LaneFn::call`, which is also that of `Kernel::run`.
        unsafe { K::run(p, args) }
    }))
}

/// A [`Kernel`] for several instructions, with parameters that distinguish them.
pub(super) trait Parametric {
    /// The parameters.
    type With: Copy + 'static;

    /// Computes all lanes.
    ///
    /// # Safety
    /// As for [`Kernel::run`].
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &Self::With);
}

/// The kernel compiled for a path, with its parameters.
pub(super) fn version_with<K: Parametric>(path: HostPath, with: K::With) -> LaneFn {
    let function = multiversion!(path, [K: Parametric] (args: &LaneArgs, lane_fn: &LaneFn), p => {
        // SAFETY: as above; the parameters were made below.
        unsafe { K::run(p, args, lane_fn.parameters.get()) }
    });
    LaneFn { function, inner: function, parameters: Parameters::new(with) }
}
