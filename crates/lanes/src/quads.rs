//! Vectors of quads. A quad is the four lanes of a warp that hold a row of a tile; they are consecutive in a
//! fragment's registers.

use std::array::from_fn;

use super::path::{Path, Portable, narrow_f16, widen_f16};

/// A vector of one or more whole quads of numbers. It can be made only with a witness that the host has its
/// instructions.
pub(super) trait Quads: Copy {
    /// The type of its numbers.
    type Number: Copy;
    /// The witness.
    type Path: Path;
    /// The number of its quads.
    const COUNT: usize;

    /// Loads a vector.
    ///
    /// # Safety
    /// For the methods with pointers: they must be valid for the vector.
    unsafe fn load(path: Self::Path, from: *const Self::Number) -> Self;
    /// Stores the vector.
    unsafe fn store(self, to: *mut Self::Number);
    /// Loads four numbers into every quad.
    unsafe fn repeat(path: Self::Path, from: *const Self::Number) -> Self;
    /// Copies one number of each quad to all of its lanes. `SELECT` holds the number's index four times, in two bits
    /// each.
    fn broadcast<const SELECT: i32>(self) -> Self;
    /// `self * factor + sum`, rounded once.
    fn multiply_add(self, factor: Self, sum: Self) -> Self;
    /// Zeros.
    fn zero(path: Self::Path) -> Self;

    // The following methods are for binary32 only.

    /// Applies the mask to every word.
    fn masked(self, mask: u32) -> Self;
    /// Replaces every NaN by the NaN 0x7fffffff.
    fn with_one_nan(self) -> Self;
    /// Loads words and widens their lower and their upper halves, which are bfloat16 or binary16.
    unsafe fn widen<const BF16: bool>(path: Self::Path, from: *const u32) -> [Self; 2];
    /// Rounds numbers to binary16, to nearest even, and stores them as the lower and the upper halves of words.
    unsafe fn narrow(numbers: [Self; 2], to: *mut u32);
}

/// The binary32 methods, which are unused for binary64.
macro_rules! not_of_doubles {
    () => {
        fn masked(self, _: u32) -> Self {
            self
        }

        fn with_one_nan(self) -> Self {
            unreachable!("sums of binary64 with NaNs are made by others")
        }

        unsafe fn widen<const BF16: bool>(_: Self::Path, _: *const u32) -> [Self; 2] {
            unreachable!("products of binary64 have no halves")
        }

        unsafe fn narrow(_: [Self; 2], _: *mut u32) {
            unreachable!("products of binary64 have no halves")
        }
    };
}

macro_rules! portable {
    ($number:ty, $($of_singles:tt)*) => {
        impl Quads for [$number; 4] {
            type Number = $number;
            type Path = Portable;
            const COUNT: usize = 1;

            #[inline(always)]
            unsafe fn load(_: Portable, from: *const $number) -> Self {
                // SAFETY: the caller's promise.
                unsafe { from.cast::<Self>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $number) {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<Self>().write_unaligned(self) }
            }

            #[inline(always)]
            unsafe fn repeat(path: Portable, from: *const $number) -> Self {
                // SAFETY: the caller's promise.
                unsafe { Self::load(path, from) }
            }

            #[inline(always)]
            fn broadcast<const SELECT: i32>(self) -> Self {
                [self[SELECT as usize % 4]; 4]
            }

            #[inline(always)]
            fn multiply_add(self, factor: Self, sum: Self) -> Self {
                from_fn(|i| self[i].mul_add(factor[i], sum[i]))
            }

            #[inline(always)]
            fn zero(_: Portable) -> Self {
                [0.0; 4]
            }

            $($of_singles)*
        }
    };
}
portable! {
    f32,
    #[inline(always)]
    fn masked(self, mask: u32) -> Self {
        self.map(|x| f32::from_bits(x.to_bits() & mask))
    }

    #[inline(always)]
    fn with_one_nan(self) -> Self {
        self.map(|x| if x.is_nan() { f32::from_bits(0x7fff_ffff) } else { x })
    }

    #[inline(always)]
    unsafe fn widen<const BF16: bool>(_: Portable, from: *const u32) -> [Self; 2] {
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
pub(super) use x86::Vector;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Quads;
    use crate::x86::{Avx2, Avx512};
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

    /// A vector of the host, with the witness that the host has its instructions.
    #[derive(Clone, Copy)]
    pub struct Vector<V, P>(V, P);

    macro_rules! vector {
        ($path:ident, $vector:ty, $number:ty, $count:literal, $load:ident, $store:ident, |$from:ident| $repeat:expr, $broadcast:ident, $fma:ident, $zero:ident, $($of_singles:tt)*) => {
            impl Quads for Vector<$vector, $path> {
                type Number = $number;
                type Path = $path;
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn load(path: $path, from: *const $number) -> Self {
                    // SAFETY: `path` is the witness of the instructions; the caller's promise.
                    Vector(unsafe { $load(from) }, path)
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut $number) {
                    // SAFETY: the vector has the witness; the caller's promise.
                    unsafe { $store(to, self.0) }
                }

                #[inline(always)]
                unsafe fn repeat(path: $path, $from: *const $number) -> Self {
                    // SAFETY: `path` is the witness of the instructions; the caller's promise.
                    Vector(unsafe { $repeat }, path)
                }

                #[inline(always)]
                fn broadcast<const SELECT: i32>(self) -> Self {
                    // SAFETY: the vector has the witness.
                    Vector(unsafe { $broadcast::<SELECT>(self.0) }, self.1)
                }

                #[inline(always)]
                fn multiply_add(self, factor: Self, sum: Self) -> Self {
                    // SAFETY: the vector has the witness.
                    Vector(unsafe { $fma(self.0, factor.0, sum.0) }, self.1)
                }

                #[inline(always)]
                fn zero(path: $path) -> Self {
                    // SAFETY: `path` is the witness of the instructions.
                    Vector(unsafe { $zero() }, path)
                }

                $($of_singles)*
            }
        };
    }

    vector! {
        Avx2,
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
        fn masked(self, mask: u32) -> Self {
            // SAFETY: the vector has the witness.
            let masked = unsafe { _mm256_and_ps(self.0, _mm256_castsi256_ps(_mm256_set1_epi32(mask as i32))) };
            Vector(masked, self.1)
        }

        #[inline(always)]
        fn with_one_nan(self) -> Self {
            let Vector(x, path) = self;
            // SAFETY: the vector has the witness.
            let canonical = unsafe {
                let nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fff_ffff));
                _mm256_blendv_ps(x, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x))
            };
            Vector(canonical, path)
        }

        #[inline(always)]
        unsafe fn widen<const BF16: bool>(path: Self::Path, from: *const u32) -> [Self; 2] {
            // SAFETY: `path` is the witness of the instructions; the caller's promise.
            unsafe {
                let words = _mm256_loadu_si256(from.cast());
                let upper = _mm256_and_si256(words, _mm256_set1_epi32(0xffff_0000u32 as i32));
                let lower = _mm256_slli_epi32::<16>(words);
                if BF16 {
                    return [Vector(_mm256_castsi256_ps(lower), path), Vector(_mm256_castsi256_ps(upper), path)];
                }
                // Sorts the halves of four words at a time, the lower halves first, then those of all words.
                let sort = _mm256_setr_epi8(
                    0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
                    0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
                );
                let sorted = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(words, sort));
                [
                    Vector(_mm256_cvtph_ps(_mm256_castsi256_si128(sorted)), path),
                    Vector(_mm256_cvtph_ps(_mm256_extracti128_si256::<1>(sorted)), path),
                ]
            }
        }

        #[inline(always)]
        unsafe fn narrow([lower, upper]: [Self; 2], to: *mut u32) {
            // SAFETY: the vectors have the witness; the caller's promise.
            unsafe {
                let lower = _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(lower.0));
                let upper = _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(upper.0));
                _mm256_storeu_si256(to.cast(), _mm256_or_si256(lower, _mm256_slli_epi32::<16>(upper)));
            }
        }
    }
    vector! {
        Avx2,
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
        Avx512,
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
        fn masked(self, mask: u32) -> Self {
            // SAFETY: the vector has the witness.
            let masked = unsafe {
                let words = _mm512_castps_si512(self.0);
                _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(mask as i32)))
            };
            Vector(masked, self.1)
        }

        #[inline(always)]
        fn with_one_nan(self) -> Self {
            let Vector(x, path) = self;
            // SAFETY: the vector has the witness.
            let canonical = unsafe {
                let nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fff_ffff));
                _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), nan)
            };
            Vector(canonical, path)
        }

        #[inline(always)]
        unsafe fn widen<const BF16: bool>(path: Self::Path, from: *const u32) -> [Self; 2] {
            // SAFETY: `path` is the witness of the instructions; the caller's promise.
            unsafe {
                let words = _mm512_loadu_si512(from.cast());
                if BF16 {
                    let upper = _mm512_and_si512(words, _mm512_set1_epi32(0xffff_0000u32 as i32));
                    return [
                        Vector(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)), path),
                        Vector(_mm512_castsi512_ps(upper), path),
                    ];
                }
                // All lower halves, then all upper halves.
                let sorted = _mm512_permutexvar_epi16(transmute::<[u16; 32], __m512i>(SORTED), words);
                [
                    Vector(_mm512_cvtph_ps(_mm512_castsi512_si256(sorted)), path),
                    Vector(_mm512_cvtph_ps(_mm512_extracti64x4_epi64::<1>(sorted)), path),
                ]
            }
        }

        #[inline(always)]
        unsafe fn narrow([lower, upper]: [Self; 2], to: *mut u32) {
            // SAFETY: the vectors have the witness; the caller's promise.
            unsafe {
                let lower = _mm512_cvtepu16_epi32(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(lower.0));
                let upper = _mm512_cvtepu16_epi32(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(upper.0));
                _mm512_storeu_si512(to.cast(), _mm512_or_si512(lower, _mm512_slli_epi32::<16>(upper)));
            }
        }
    }
    vector! {
        Avx512,
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
