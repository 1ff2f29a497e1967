//! Vectors of quads. A quad is the four lanes of a warp that hold a row of a tile; they are consecutive in a
//! fragment's registers.

use std::array::from_fn;

use super::path::{narrow_f16, widen_f16};

/// A vector of one or more whole quads of numbers.
///
/// # Safety
/// An implementation may be used only on hosts with its instructions.
pub(super) unsafe trait Quads: Copy {
    /// The type of its numbers.
    type Number: Copy;
    /// The number of its quads.
    const COUNT: usize;

    /// Loads a vector.
    unsafe fn load(from: *const Self::Number) -> Self;
    /// Stores the vector.
    unsafe fn store(self, to: *mut Self::Number);
    /// Loads four numbers into every quad.
    unsafe fn repeat(from: *const Self::Number) -> Self;
    /// Copies one number of each quad to all of its lanes. `SELECT` holds the number's index four times, in two bits
    /// each.
    unsafe fn broadcast<const SELECT: i32>(self) -> Self;
    /// `self * factor + sum`, rounded once.
    unsafe fn multiply_add(self, factor: Self, sum: Self) -> Self;
    /// Zeros.
    unsafe fn zero() -> Self;

    // The following methods are for binary32 only.

    /// Applies the mask to every word.
    unsafe fn masked(self, mask: u32) -> Self;
    /// Replaces every NaN by the NaN 0x7fffffff.
    unsafe fn with_one_nan(self) -> Self;
    /// Loads words and widens their lower and their upper halves, which are bfloat16 or binary16.
    unsafe fn widen<const BF16: bool>(from: *const u32) -> [Self; 2];
    /// Rounds numbers to binary16, to nearest even, and stores them as the lower and the upper halves of words.
    unsafe fn narrow(numbers: [Self; 2], to: *mut u32);
}

/// The binary32 methods, which are unused for binary64.
macro_rules! not_of_doubles {
    () => {
        unsafe fn masked(self, _: u32) -> Self {
            self
        }

        unsafe fn with_one_nan(self) -> Self {
            unreachable!("sums of binary64 with NaNs are made by others")
        }

        unsafe fn widen<const BF16: bool>(_: *const u32) -> [Self; 2] {
            unreachable!("products of binary64 have no halves")
        }

        unsafe fn narrow(_: [Self; 2], _: *mut u32) {
            unreachable!("products of binary64 have no halves")
        }
    };
}

macro_rules! portable {
    ($number:ty, $($of_singles:tt)*) => {
        // SAFETY: it uses no particular instructions.
        unsafe impl Quads for [$number; 4] {
            type Number = $number;
            const COUNT: usize = 1;

            #[inline(always)]
            unsafe fn load(from: *const $number) -> Self {
                // SAFETY: the caller's promise.
                unsafe { from.cast::<Self>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $number) {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<Self>().write_unaligned(self) }
            }

            #[inline(always)]
            unsafe fn repeat(from: *const $number) -> Self {
                // SAFETY: the caller's promise.
                unsafe { Self::load(from) }
            }

            #[inline(always)]
            unsafe fn broadcast<const SELECT: i32>(self) -> Self {
                [self[SELECT as usize % 4]; 4]
            }

            #[inline(always)]
            unsafe fn multiply_add(self, factor: Self, sum: Self) -> Self {
                from_fn(|i| self[i].mul_add(factor[i], sum[i]))
            }

            #[inline(always)]
            unsafe fn zero() -> Self {
                [0.0; 4]
            }

            $($of_singles)*
        }
    };
}
portable! {
    f32,
    #[inline(always)]
    unsafe fn masked(self, mask: u32) -> Self {
        self.map(|x| f32::from_bits(x.to_bits() & mask))
    }

    #[inline(always)]
    unsafe fn with_one_nan(self) -> Self {
        self.map(|x| if x.is_nan() { f32::from_bits(0x7fff_ffff) } else { x })
    }

    #[inline(always)]
    unsafe fn widen<const BF16: bool>(from: *const u32) -> [Self; 2] {
        // SAFETY: the caller's promise.
        let words = unsafe { from.cast::<[u32; 4]>().read_unaligned() };
        [0, 16].map(|shift| words.map(|word| {
            let half = (word >> shift) as u16;
            if BF16 { f32::from_bits(u32::from(half) << 16) } else { widen_f16(half) }
        }))
    }

    #[inline(always)]
    unsafe fn narrow([lower, upper]: [Self; 2], to: *mut u32) {
        let words: [u32; 4] =
            from_fn(|i| u32::from(narrow_f16(lower[i])) | u32::from(narrow_f16(upper[i])) << 16);
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[u32; 4]>().write_unaligned(words) }
    }
}
portable! { f64, not_of_doubles!(); }

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Quads;
    use std::arch::x86_64::*;
    use std::mem::transmute;

    /// Indices of the lower halves of 16 words, then of the upper halves.
    const SORTED: [u16; 32] = {
        let mut from = [0; 32];
        let mut i = 0;
        while i < 16 {
            (from[i], from[16 + i]) = (2 * i as u16, 2 * i as u16 + 1);
            i += 1;
        }
        from
    };

    macro_rules! vector {
        ($vector:ty, $number:ty, $count:literal, $load:ident, $store:ident, |$from:ident| $repeat:expr, $broadcast:ident, $fma:ident, $zero:ident, $($of_singles:tt)*) => {
            // SAFETY: the instructions are those of AVX2, F16C and FMA, or, for vectors of 512 bits, of AVX-512.
            unsafe impl Quads for $vector {
                type Number = $number;
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn load(from: *const $number) -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut $number) {
                    // SAFETY: the caller's promise.
                    unsafe { $store(to, self) }
                }

                #[inline(always)]
                unsafe fn repeat($from: *const $number) -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $repeat }
                }

                #[inline(always)]
                unsafe fn broadcast<const SELECT: i32>(self) -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $broadcast::<SELECT>(self) }
                }

                #[inline(always)]
                unsafe fn multiply_add(self, factor: Self, sum: Self) -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $fma(self, factor, sum) }
                }

                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $zero() }
                }

                $($of_singles)*
            }
        };
    }

    vector! {
        __m256,
        f32,
        2,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        |from| {
            let quad = _mm_loadu_ps(from);
            _mm256_set_m128(quad, quad)
        },
        _mm256_permute_ps,
        _mm256_fmadd_ps,
        _mm256_setzero_ps,
        #[inline(always)]
        unsafe fn masked(self, mask: u32) -> Self {
            // SAFETY: the caller's promise.
            unsafe { _mm256_and_ps(self, _mm256_castsi256_ps(_mm256_set1_epi32(mask as i32))) }
        }

        #[inline(always)]
        unsafe fn with_one_nan(self) -> Self {
            // SAFETY: the caller's promise.
            unsafe {
                let nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fff_ffff));
                _mm256_blendv_ps(self, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(self, self))
            }
        }

        #[inline(always)]
        unsafe fn widen<const BF16: bool>(from: *const u32) -> [Self; 2] {
            // SAFETY: the caller's promise.
            unsafe {
                let words = _mm256_loadu_si256(from.cast());
                let upper = _mm256_and_si256(words, _mm256_set1_epi32(0xffff_0000u32 as i32));
                let lower = _mm256_slli_epi32::<16>(words);
                if BF16 {
                    return [_mm256_castsi256_ps(lower), _mm256_castsi256_ps(upper)];
                }
                // Sorts the halves of four words at a time, the lower halves first, then those of all words.
                let sort = _mm256_setr_epi8(
                    0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
                    0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
                );
                let sorted = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(words, sort));
                [
                    _mm256_cvtph_ps(_mm256_castsi256_si128(sorted)),
                    _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(sorted)),
                ]
            }
        }

        #[inline(always)]
        unsafe fn narrow([lower, upper]: [Self; 2], to: *mut u32) {
            // SAFETY: the caller's promise.
            unsafe {
                let lower = _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(lower));
                let upper = _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(upper));
                _mm256_storeu_si256(to.cast(), _mm256_or_si256(lower, _mm256_slli_epi32::<16>(upper)));
            }
        }
    }
    vector! {
        __m256d,
        f64,
        1,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        |from| _mm256_loadu_pd(from),
        _mm256_permute4x64_pd,
        _mm256_fmadd_pd,
        _mm256_setzero_pd,
        not_of_doubles!();
    }
    vector! {
        __m512,
        f32,
        4,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        |from| _mm512_broadcast_f32x4(_mm_loadu_ps(from)),
        _mm512_permute_ps,
        _mm512_fmadd_ps,
        _mm512_setzero_ps,
        #[inline(always)]
        unsafe fn masked(self, mask: u32) -> Self {
            // SAFETY: the caller's promise.
            unsafe {
                let words = _mm512_castps_si512(self);
                _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(mask as i32)))
            }
        }

        #[inline(always)]
        unsafe fn with_one_nan(self) -> Self {
            // SAFETY: the caller's promise.
            unsafe {
                let nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fff_ffff));
                _mm512_mask_mov_ps(self, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self, self), nan)
            }
        }

        #[inline(always)]
        unsafe fn widen<const BF16: bool>(from: *const u32) -> [Self; 2] {
            // SAFETY: the caller's promise.
            unsafe {
                let words = _mm512_loadu_si512(from.cast());
                if BF16 {
                    let upper = _mm512_and_si512(words, _mm512_set1_epi32(0xffff_0000u32 as i32));
                    return [
                        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)),
                        _mm512_castsi512_ps(upper),
                    ];
                }
                // All lower halves, then all upper halves.
                let sorted = _mm512_permutexvar_epi16(transmute::<[u16; 32], __m512i>(SORTED), words);
                [
                    _mm512_cvtph_ps(_mm512_castsi512_si256(sorted)),
                    _mm512_cvtph_ps(_mm512_extracti64x4_epi64::<1>(sorted)),
                ]
            }
        }

        #[inline(always)]
        unsafe fn narrow([lower, upper]: [Self; 2], to: *mut u32) {
            // SAFETY: the caller's promise.
            unsafe {
                let lower = _mm512_cvtepu16_epi32(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(lower));
                let upper = _mm512_cvtepu16_epi32(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(upper));
                _mm512_storeu_si512(to.cast(), _mm512_or_si512(lower, _mm512_slli_epi32::<16>(upper)));
            }
        }
    }
    vector! {
        __m512d,
        f64,
        2,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        |from| _mm512_broadcast_f64x4(_mm256_loadu_pd(from)),
        _mm512_permutex_pd,
        _mm512_fmadd_pd,
        _mm512_setzero_pd,
        not_of_doubles!();
    }
}
