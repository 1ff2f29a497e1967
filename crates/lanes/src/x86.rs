//! [`Path`] for AVX2 and AVX-512.

// The signatures of the methods and the names of the vectors document the transmuted types.
#![allow(clippy::missing_transmute_annotations)]

use super::HostPath;
use super::memory;
use super::path::{Block, Path, WARP};
use super::quads::Vector;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::{MaybeUninit, transmute};

/// Returns `x` and hides its origin from the compiler. Otherwise the compiler turns a merge of a register with itself
/// into `vmaskmov` stores, which are many times slower on some machines. Emits no instruction.
#[inline]
#[target_feature(enable = "avx")]
fn opaque(mut x: __m256) -> __m256 {
    // SAFETY: the assembly is empty.
    unsafe { asm!("/* {0} */", inout(ymm_reg) x, options(pure, nomem, nostack, preserves_flags)) };
    x
}

/// Reads and writes of memory that other threads may use, by one instruction each ([`memory`]).
macro_rules! moves {
    ($read:ident, $write:ident, $vector:ty, $class:ident, $move:literal, $feature:literal) => {
        /// # Safety
        /// `from` must be valid for reads of a vector.
        #[cfg(not(miri))]
        #[inline]
        #[target_feature(enable = $feature)]
        unsafe fn $read(from: *const u8) -> $vector {
            let value;
            // SAFETY: the caller's promise.
            unsafe {
                asm!(concat!($move, " {}, [{}]"), out($class) value, in(reg) from,
                    options(readonly, nostack, preserves_flags));
            }
            value
        }

        /// # Safety
        /// `to` must be valid for writes of a vector.
        #[cfg(not(miri))]
        #[inline]
        #[target_feature(enable = $feature)]
        unsafe fn $write(to: *mut u8, value: $vector) {
            // SAFETY: the caller's promise.
            unsafe {
                asm!(concat!($move, " [{}], {}"), in(reg) to, in($class) value, options(nostack, preserves_flags));
            }
        }
    };
}
moves!(read128, write128, __m128i, xmm_reg, "vmovdqu", "avx");
moves!(read256, write256, __m256i, ymm_reg, "vmovdqu", "avx");
moves!(read512, write512, __m512i, zmm_reg, "vmovdqu64", "avx512f");

/// The methods of [`Path`] that read and write, by vectors of the given sizes and then by smaller ones:
/// `read_write!(64: read512, write512, 32: ...)`.
macro_rules! read_write {
    ($($bytes:literal: $read:ident, $write:ident, $vector:ty);+) => {
        #[cfg(not(miri))]
        #[inline(always)]
        unsafe fn read<T: Copy>(self, from: *const u8) -> T {
            let (size, mut at) = (size_of::<T>(), 0);
            let mut value = MaybeUninit::<T>::uninit();
            let to = value.as_mut_ptr().cast::<u8>();
            // SAFETY: both have the bytes of a `T`; the instructions by the witness.
            unsafe {
                $(while size - at >= $bytes {
                    to.add(at).cast::<$vector>().write_unaligned($read(from.wrapping_add(at)));
                    at += $bytes;
                })+
                memory::each_part(size - at, |part, bytes| {
                    memory::move_in(from.wrapping_add(at + part), to.add(at + part), bytes);
                });
                value.assume_init()
            }
        }

        #[cfg(not(miri))]
        #[inline(always)]
        unsafe fn write<T: Copy>(self, to: *mut u8, value: T) {
            let (size, mut at) = (size_of::<T>(), 0);
            let from = (&raw const value).cast::<u8>();
            // SAFETY: both have the bytes of a `T`; the instructions by the witness.
            unsafe {
                $(while size - at >= $bytes {
                    $write(to.wrapping_add(at), from.add(at).cast::<$vector>().read_unaligned());
                    at += $bytes;
                })+
                memory::each_part(size - at, |part, bytes| {
                    memory::move_out(to.wrapping_add(at + part), from.add(at + part), bytes);
                });
            }
        }
    };
}

/// The methods of [`Path`] that transpose small matrices.
macro_rules! transposes {
    () => {
        #[inline(always)]
        fn transpose4(self, rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
            // SAFETY: every x86-64 processor has the instructions; arrays and vectors of the same 64 bytes.
            unsafe {
                let [a, b, c, d]: [__m128; 4] = transmute(rows);
                let (ab, cd) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
                let (ab_high, cd_high) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
                transmute([
                    _mm_movelh_ps(ab, cd),
                    _mm_movehl_ps(cd, ab),
                    _mm_movelh_ps(ab_high, cd_high),
                    _mm_movehl_ps(cd_high, ab_high),
                ])
            }
        }

        #[inline(always)]
        fn transpose_halves(self, rows: [[u16; 8]; 8]) -> [[u16; 8]; 8] {
            // SAFETY: every x86-64 processor has the instructions; arrays and vectors of the same 128 bytes.
            unsafe {
                let mut rows: [__m128i; 8] = transmute(rows);
                // Three rounds of interleaving the upper rows with the lower ones.
                for _ in 0..3 {
                    let mut next = rows;
                    for i in 0..4 {
                        next[2 * i] = _mm_unpacklo_epi16(rows[i], rows[4 + i]);
                        next[2 * i + 1] = _mm_unpackhi_epi16(rows[i], rows[4 + i]);
                    }
                    rows = next;
                }
                transmute(rows)
            }
        }
    };
}

/// For elements of `WORDS` words, `8 / WORDS` of which fill a vector: the number of elements of a block's `part`-th
/// vector whose mask bit is set, and a mask with a byte of ones for each word of these elements.
#[inline]
#[target_feature(enable = "bmi2,popcnt")]
fn words_of<const WORDS: usize>(mask: u16, part: usize) -> (usize, u64) {
    let lanes = 8 / WORDS;
    let mask = u64::from(mask) >> (part * lanes) & ((1 << lanes) - 1);
    // The lowest bit of each element's bytes, and all bits of an element.
    let (lowest_bits, all_bits) =
        if WORDS == 1 { (0x0101_0101_0101_0101, 0xff) } else { (0x0001_0001_0001_0001, 0xffff) };
    (mask.count_ones() as usize, _pdep_u64(mask, lowest_bits) * all_bits)
}

/// The indices of a vector's words in ascending order, one byte each.
const WORDS_IN_ORDER: u64 = 0x0706_0504_0302_0100;

/// [`Path::compress32`] and [`Path::compress64`], for elements of `WORDS` words.
///
/// # Safety
/// `to` must have room for all elements of `x`.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn compress<const WORDS: usize>(x: &[__m256i], mask: u16, mut to: *mut u32) {
    for (part, &x) in x.iter().enumerate() {
        let (count, words) = words_of::<WORDS>(mask, part);
        let from = _mm_cvtsi64_si128(_pext_u64(WORDS_IN_ORDER, words) as i64);
        let x = _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(from));
        // SAFETY: the vectors before this one wrote at most as many elements as they have, so there is room for this
        // one.
        unsafe {
            to.cast::<__m256i>().write_unaligned(x);
            to = to.add(WORDS * count);
        }
    }
}

/// [`Path::expand32`] and [`Path::expand64`], for elements of `WORDS` words.
///
/// # Safety
/// `from` must have as many elements as the vectors.
#[inline]
#[target_feature(enable = "avx2,bmi2,popcnt")]
unsafe fn expand<const VECTORS: usize, const WORDS: usize>(
    mut from: *const u32,
    mask: u16,
) -> [__m256i; VECTORS] {
    let mut vectors = [_mm256_setzero_si256(); VECTORS];
    for (part, vector) in vectors.iter_mut().enumerate() {
        let (count, words) = words_of::<WORDS>(mask, part);
        let places = _mm_cvtsi64_si128(_pdep_u64(WORDS_IN_ORDER, words) as i64);
        // SAFETY: the vectors before this one took at most as many elements as they have, so there are enough for
        // this one.
        let x = unsafe { from.cast::<__m256i>().read_unaligned() };
        from = from.wrapping_add(WORDS * count);
        *vector = _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(places));
    }
    vectors
}

/// Proof that the host has AVX2, FMA, F16C and BMI2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Only functions compiled for these instructions can call it safely.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn new() -> Avx2 {
        Avx2(())
    }
}

/// Proof that the host has AVX-512 F, BW, DQ and VL, and what [`Avx2`] proves.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Only functions compiled for these instructions can call it safely.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn new() -> Avx512 {
        Avx512(())
    }
}

impl Path for Avx2 {
    const PATH: HostPath = HostPath::Avx2;
    const FUSED: bool = true;
    type Singles = Vector<__m256, Avx2>;
    type Doubles = Vector<__m256d, Avx2>;

    read_write!(32: read256, write256, __m256i; 16: read128, write128, __m128i);
    transposes!();

    #[inline(always)]
    fn top_bits16(self, x: Block<u16>) -> u16 {
        // SAFETY: AVX2 by the witness; arrays and vectors of the same 32 bytes.
        unsafe {
            let x: __m256i = transmute(x);
            // Saturation preserves the sign bit.
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            _mm_movemask_epi8(bytes) as u16
        }
    }

    #[inline(always)]
    fn top_bits32(self, x: Block<u32>) -> u16 {
        // SAFETY: as above, 64 bytes.
        unsafe {
            let [low, high]: [__m256; 2] = transmute(x);
            (_mm256_movemask_ps(low) | _mm256_movemask_ps(high) << 8) as u16
        }
    }

    #[inline(always)]
    fn top_bits64(self, x: Block<u64>) -> u16 {
        // SAFETY: as above, 128 bytes.
        unsafe {
            let [a, b, c, d]: [__m256d; 4] = transmute(x);
            let low = _mm256_movemask_pd(a) | _mm256_movemask_pd(b) << 4;
            let high = _mm256_movemask_pd(c) | _mm256_movemask_pd(d) << 4;
            (low | high << 8) as u16
        }
    }

    #[inline(always)]
    fn select16(self, mask: u16, a: Block<u16>, b: Block<u16>) -> Block<u16> {
        // SAFETY: as above, 32 bytes.
        unsafe {
            let (a, b): (__m256i, __m256i) = (transmute(a), transmute(b));
            let bit = _mm256_setr_epi16(
                1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000, 0x4000,
                -0x8000,
            );
            let ones = _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(mask as i16), bit), bit);
            transmute(_mm256_blendv_epi8(b, a, ones))
        }
    }

    #[inline(always)]
    fn select32(self, mask: u16, a: Block<u32>, b: Block<u32>) -> Block<u32> {
        // SAFETY: as above, 64 bytes.
        unsafe {
            let (a, b): ([__m256; 2], [__m256; 2]) = (transmute(a), transmute(b));
            let bits = _mm256_set1_epi32(i32::from(mask));
            // The blend uses only the top bit of each element: shift each lane's bit there.
            let low = _mm256_sllv_epi32(bits, _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24));
            let high = _mm256_sllv_epi32(bits, _mm256_setr_epi32(23, 22, 21, 20, 19, 18, 17, 16));
            let low = _mm256_blendv_ps(b[0], a[0], _mm256_castsi256_ps(low));
            let high = _mm256_blendv_ps(b[1], a[1], _mm256_castsi256_ps(high));
            transmute([opaque(low), opaque(high)])
        }
    }

    #[inline(always)]
    fn select64(self, mask: u16, a: Block<u64>, b: Block<u64>) -> Block<u64> {
        // SAFETY: as above, 128 bytes.
        unsafe {
            let (a, mut b): ([__m256d; 4], [__m256d; 4]) = (transmute(a), transmute(b));
            let mut shift = _mm256_setr_epi64x(63, 62, 61, 60);
            let bits = _mm256_set1_epi64x(i64::from(mask));
            for (a, b) in a.iter().zip(&mut b) {
                let ones = _mm256_castsi256_pd(_mm256_sllv_epi64(bits, shift));
                *b = _mm256_castps_pd(opaque(_mm256_castpd_ps(_mm256_blendv_pd(*b, *a, ones))));
                shift = _mm256_sub_epi64(shift, _mm256_set1_epi64x(4));
            }
            transmute(b)
        }
    }

    #[inline(always)]
    fn compress32(self, x: Block<u32>, mask: u16, to: &mut Block<u32>) {
        // SAFETY: AVX2 and BMI2; arrays and vectors of the same 64 bytes.
        unsafe { compress::<1>(&transmute::<_, [__m256i; 2]>(x), mask, to.as_mut_ptr()) }
    }

    #[inline(always)]
    fn compress64(self, x: Block<u64>, mask: u16, to: &mut Block<u64>) {
        // SAFETY: as above, 128 bytes.
        unsafe { compress::<2>(&transmute::<_, [__m256i; 4]>(x), mask, to.as_mut_ptr().cast()) }
    }

    #[inline(always)]
    fn expand32(self, from: &Block<u32>, mask: u16) -> Block<u32> {
        // SAFETY: as above, 64 bytes.
        unsafe { transmute(expand::<2, 1>(from.as_ptr(), mask)) }
    }

    #[inline(always)]
    fn expand64(self, from: &Block<u64>, mask: u16) -> Block<u64> {
        // SAFETY: as above, 128 bytes.
        unsafe { transmute(expand::<4, 2>(from.as_ptr().cast(), mask)) }
    }

    #[inline(always)]
    fn permute(self, x: [u32; WARP], from: [u32; WARP]) -> [u32; WARP] {
        // SAFETY: AVX2; arrays and vectors of the same 128 bytes.
        unsafe {
            let x: [__m256i; 4] = transmute(x);
            let from: [__m256i; 4] = transmute(from);
            // Loops, because closures would not be compiled for AVX2.
            let mut out = from;
            for i in 0..4 {
                let from = from[i];
                let mut pick = x;
                for vector in &mut pick {
                    *vector = _mm256_permutevar8x32_epi32(*vector, from);
                }
                // Bits 3 and 4 of an index select one of the four vectors.
                let [a, b, c, d]: [__m256; 4] = transmute(pick);
                let bit3 = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(from));
                let bit4 = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(from));
                let (low, high) = (_mm256_blendv_ps(a, b, bit3), _mm256_blendv_ps(c, d, bit3));
                out[i] = _mm256_castps_si256(_mm256_blendv_ps(low, high, bit4));
            }
            transmute(out)
        }
    }

    #[inline(always)]
    fn f16_to_f32(self, x: Block<u16>) -> Block<f32> {
        // SAFETY: F16C by the witness; arrays and vectors of the same size.
        unsafe {
            let [low, high]: [__m128i; 2] = transmute(x);
            transmute([_mm256_cvtph_ps(low), _mm256_cvtph_ps(high)])
        }
    }

    #[inline(always)]
    fn f32_to_f16(self, x: Block<f32>) -> Block<u16> {
        // SAFETY: as above.
        unsafe {
            let [low, high]: [__m256; 2] = transmute(x);
            transmute([
                _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(low),
                _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(high),
            ])
        }
    }

    #[inline(always)]
    fn bf16_to_f32(self, x: Block<u16>) -> Block<f32> {
        // SAFETY: as above, AVX2.
        unsafe {
            let [low, high]: [__m128i; 2] = transmute(x);
            let (low, high) = (_mm256_cvtepu16_epi32(low), _mm256_cvtepu16_epi32(high));
            transmute([_mm256_slli_epi32::<16>(low), _mm256_slli_epi32::<16>(high)])
        }
    }

    #[inline(always)]
    fn f32_to_bf16(self, x: Block<f32>) -> Block<u16> {
        // SAFETY: as above, AVX2.
        unsafe {
            let mut words: [__m256i; 2] = transmute(x);
            for word in &mut words {
                let x = _mm256_castsi256_ps(*word);
                let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(*word), _mm256_set1_epi32(1));
                let rounded = _mm256_add_epi32(*word, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
                let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
                *word = _mm256_blendv_epi8(_mm256_srli_epi32::<16>(rounded), _mm256_set1_epi32(0x7fff), nan);
            }
            // Packing works within 128-bit halves: put the quarters into order.
            transmute(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(words[0], words[1])))
        }
    }
}

impl Path for Avx512 {
    const PATH: HostPath = HostPath::Avx512;
    const FUSED: bool = true;
    type Singles = Vector<__m512, Avx512>;
    type Doubles = Vector<__m512d, Avx512>;

    read_write!(64: read512, write512, __m512i; 32: read256, write256, __m256i; 16: read128, write128, __m128i);
    transposes!();

    #[inline(always)]
    fn top_bits16(self, x: Block<u16>) -> u16 {
        // SAFETY: AVX-512 BW and VL by the witness; arrays and vectors of the same size.
        unsafe { _mm256_movepi16_mask(transmute::<Block<u16>, __m256i>(x)) }
    }

    #[inline(always)]
    fn top_bits32(self, x: Block<u32>) -> u16 {
        // SAFETY: as above, DQ.
        unsafe { _mm512_movepi32_mask(transmute::<Block<u32>, __m512i>(x)) }
    }

    #[inline(always)]
    fn top_bits64(self, x: Block<u64>) -> u16 {
        // SAFETY: as above, DQ.
        unsafe {
            let [low, high]: [__m512i; 2] = transmute(x);
            u16::from(_mm512_movepi64_mask(low)) | u16::from(_mm512_movepi64_mask(high)) << 8
        }
    }

    #[inline(always)]
    fn select16(self, mask: u16, a: Block<u16>, b: Block<u16>) -> Block<u16> {
        // SAFETY: as above, BW and VL.
        unsafe { transmute(_mm256_mask_mov_epi16(transmute::<Block<u16>, __m256i>(b), mask, transmute(a))) }
    }

    #[inline(always)]
    fn select32(self, mask: u16, a: Block<u32>, b: Block<u32>) -> Block<u32> {
        // SAFETY: as above, F.
        unsafe { transmute(_mm512_mask_mov_epi32(transmute::<Block<u32>, __m512i>(b), mask, transmute(a))) }
    }

    #[inline(always)]
    fn select64(self, mask: u16, a: Block<u64>, b: Block<u64>) -> Block<u64> {
        // SAFETY: as above, F.
        unsafe {
            let (a, b): ([__m512i; 2], [__m512i; 2]) = (transmute(a), transmute(b));
            transmute([
                _mm512_mask_mov_epi64(b[0], mask as u8, a[0]),
                _mm512_mask_mov_epi64(b[1], (mask >> 8) as u8, a[1]),
            ])
        }
    }

    #[inline(always)]
    fn compress32(self, x: Block<u32>, mask: u16, to: &mut Block<u32>) {
        // SAFETY: as above, F.
        unsafe { *to = transmute(_mm512_maskz_compress_epi32(mask, transmute(x))) }
    }

    #[inline(always)]
    fn compress64(self, x: Block<u64>, mask: u16, to: &mut Block<u64>) {
        // SAFETY: as above, F. The low half has at most 8 elements, so there is room for the high half after them.
        unsafe {
            let [low, high]: [__m512i; 2] = transmute(x);
            let at = (mask & 0xff).count_ones() as usize;
            let to = to.as_mut_ptr();
            _mm512_storeu_epi64(to.cast(), _mm512_maskz_compress_epi64(mask as u8, low));
            _mm512_storeu_epi64(to.add(at).cast(), _mm512_maskz_compress_epi64((mask >> 8) as u8, high));
        }
    }

    #[inline(always)]
    fn expand32(self, from: &Block<u32>, mask: u16) -> Block<u32> {
        // SAFETY: as above.
        unsafe { transmute(_mm512_maskz_expand_epi32(mask, transmute(*from))) }
    }

    #[inline(always)]
    fn expand64(self, from: &Block<u64>, mask: u16) -> Block<u64> {
        // SAFETY: as above. After the elements of the low half, `from` has as many as the high half may need.
        unsafe {
            let at = (mask & 0xff).count_ones() as usize;
            let from = from.as_ptr();
            let low = _mm512_maskz_expand_epi64(mask as u8, _mm512_loadu_epi64(from.cast()));
            let high = _mm512_maskz_expand_epi64((mask >> 8) as u8, _mm512_loadu_epi64(from.add(at).cast()));
            transmute([low, high])
        }
    }

    #[inline(always)]
    fn permute(self, x: [u32; WARP], from: [u32; WARP]) -> [u32; WARP] {
        // SAFETY: F; arrays and vectors of the same 128 bytes.
        unsafe {
            let x: [__m512i; 2] = transmute(x);
            let from: [__m512i; 2] = transmute(from);
            let low = _mm512_permutex2var_epi32(x[0], from[0], x[1]);
            transmute([low, _mm512_permutex2var_epi32(x[0], from[1], x[1])])
        }
    }

    #[inline(always)]
    fn look_up(self, table: &[f64; 16], index: Block<u64>) -> Block<f64> {
        // SAFETY: F; arrays and vectors of the same 128 bytes.
        unsafe {
            let table: [__m512d; 2] = transmute(*table);
            let index: [__m512i; 2] = transmute(index);
            let low = _mm512_permutex2var_pd(table[0], index[0], table[1]);
            transmute([low, _mm512_permutex2var_pd(table[0], index[1], table[1])])
        }
    }

    #[inline(always)]
    fn f16_to_f32(self, x: Block<u16>) -> Block<f32> {
        // SAFETY: as above, F.
        unsafe { transmute(_mm512_cvtph_ps(transmute::<Block<u16>, __m256i>(x))) }
    }

    #[inline(always)]
    fn fma_of_halves(self, x: Block<f32>, y: Block<f32>, z: Block<f32>, down: bool) -> Block<f32> {
        const NO_EXC: i32 = _MM_FROUND_NO_EXC;
        // SAFETY: as above, F.
        unsafe {
            let (x, y, z): (__m512, __m512, __m512) = (transmute(x), transmute(y), transmute(z));
            let below = _mm512_fmadd_round_ps::<{ _MM_FROUND_TO_NEG_INF | NO_EXC }>(x, y, z);
            let above = _mm512_fmadd_round_ps::<{ _MM_FROUND_TO_POS_INF | NO_EXC }>(x, y, z);
            let cut = _mm512_fmadd_round_ps::<{ _MM_FROUND_TO_ZERO | NO_EXC }>(x, y, z);
            // Exact results are equal in all roundings, except for the sign of zero. Even far below the normal
            // numbers, binary32 has two more bits than a half, so rounding to odd is exact enough.
            let inexact = _mm512_cmp_ps_mask::<_CMP_NEQ_OQ>(below, above);
            let exact = _mm512_castps_si512(if down { below } else { cut });
            transmute(_mm512_mask_or_epi32(exact, inexact, _mm512_castps_si512(cut), _mm512_set1_epi32(1)))
        }
    }

    #[inline(always)]
    fn f32_to_f16(self, x: Block<f32>) -> Block<u16> {
        // SAFETY: as above, F.
        unsafe { transmute(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(transmute::<Block<f32>, __m512>(x))) }
    }

    #[inline(always)]
    fn bf16_to_f32(self, x: Block<u16>) -> Block<f32> {
        // SAFETY: as above, F.
        unsafe {
            let words = _mm512_cvtepu16_epi32(transmute::<Block<u16>, __m256i>(x));
            transmute(_mm512_slli_epi32::<16>(words))
        }
    }

    #[inline(always)]
    fn f32_to_bf16(self, x: Block<f32>) -> Block<u16> {
        // SAFETY: as above, F.
        unsafe {
            let x: __m512 = transmute(x);
            let bits = _mm512_castps_si512(x);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
            let words =
                _mm512_mask_mov_epi32(_mm512_srli_epi32::<16>(rounded), nan, _mm512_set1_epi32(0x7fff));
            transmute(_mm512_cvtepi32_epi16(words))
        }
    }
}
