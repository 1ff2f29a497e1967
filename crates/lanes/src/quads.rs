//! Vectors of quads: the four lanes of a warp that hold a row of a tile stand together in a fragment's registers.

use std::array::from_fn;

/// A vector of some whole quads of numbers.
///
/// # Safety
/// An implementation may be used only where its instructions exist.
pub(super) unsafe trait Quads: Copy {
    /// What it has.
    type Number: Copy;
    /// Its quads.
    const COUNT: usize;

    /// The numbers that stand there.
    unsafe fn load(from: *const Self::Number) -> Self;
    /// Puts them there.
    unsafe fn store(self, to: *mut Self::Number);
    /// Four numbers, in every quad.
    unsafe fn repeat(from: *const Self::Number) -> Self;
    /// A number of each quad in all of its lanes; `SELECT` is the number's index in each two of its bits.
    unsafe fn broadcast<const SELECT: i32>(self) -> Self;
    /// `self * factor + sum`, rounded once.
    unsafe fn multiply_add(self, factor: Self, sum: Self) -> Self;
}

macro_rules! portable {
    ($number:ty) => {
        // SAFETY: there are no particular instructions.
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
        }
    };
}
portable!(f32);
portable!(f64);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Quads;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($vector:ty, $number:ty, $count:literal, $load:ident, $store:ident, |$from:ident| $repeat:expr, $broadcast:ident, $fma:ident) => {
            // SAFETY: the instructions are those of AVX2 and FMA, or of AVX-512, for vectors of 512 bits.
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
            }
        };
    }
    vector!(
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
        _mm256_fmadd_ps
    );
    vector!(
        __m256d,
        f64,
        1,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        |from| _mm256_loadu_pd(from),
        _mm256_permute4x64_pd,
        _mm256_fmadd_pd
    );
    vector!(
        __m512,
        f32,
        4,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        |from| _mm512_broadcast_f32x4(_mm_loadu_ps(from)),
        _mm512_permute_ps,
        _mm512_fmadd_ps
    );
    vector!(
        __m512d,
        f64,
        2,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        |from| _mm512_broadcast_f64x4(_mm256_loadu_pd(from)),
        _mm512_permutex_pd,
        _mm512_fmadd_pd
    );
}
