//! The types of numbers: those in memory ([`Kind`]), and those that functions compute with ([`Scalar`]).

use half::{bf16, f16};
use num_complex::Complex;

use crate::fp8::Fp8;
use crate::product::{Factor, Multiply, Product};

/// `cuComplex`.
pub type C32 = Complex<f32>;
/// `cuDoubleComplex`.
pub type C64 = Complex<f64>;

/// A type of numbers in memory (`cudaDataType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "bits, and whether complex, brain or integer, or the format of 8 bits")]
pub enum Kind {
    R16,
    B16,
    R32,
    R64,
    C32,
    C64,
    I8,
    I32,
    E4M3,
    E5M2,
}

impl Kind {
    /// The kind with this number, if the library has it.
    pub fn of(number: u32) -> Option<Kind> {
        Some(match number {
            0 => Kind::R32,
            1 => Kind::R64,
            2 => Kind::R16,
            3 => Kind::I8,
            4 => Kind::C32,
            5 => Kind::C64,
            10 => Kind::I32,
            14 => Kind::B16,
            28 => Kind::E4M3,
            29 => Kind::E5M2,
            _ => return None,
        })
    }

    /// Its size in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Kind::I8 | Kind::E4M3 | Kind::E5M2 => 1,
            Kind::R16 | Kind::B16 => 2,
            Kind::R32 | Kind::I32 => 4,
            Kind::R64 | Kind::C32 => 8,
            Kind::C64 => 16,
        }
    }

    /// The numbers of an element, and the size of each in bytes.
    pub fn parts(self) -> (usize, usize) {
        match self {
            Kind::C32 | Kind::C64 => (2, self.bytes() / 2),
            _ => (1, self.bytes()),
        }
    }
}

/// A type that functions compute with.
pub trait Scalar:
    Copy
    + PartialEq
    + Send
    + Sync
    + Default
    + std::fmt::Debug
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + 'static
{
    /// The type of its parts.
    type Real: Scalar<Real = Self::Real> + Multiply + PartialOrd + Into<f64>;
    /// The same type in memory.
    const KIND: Kind;
    /// Whether it has an imaginary part.
    const IS_COMPLEX: bool;
    /// 1.
    const ONE: Self;
    /// From its parts; the imaginary one of a real number is lost. Rounds to nearest even.
    fn of(re: f64, im: f64) -> Self;
    /// From its parts.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The imaginary part, 0 for real numbers.
    fn im(self) -> Self::Real;
    /// The conjugate.
    fn conjugate(self) -> Self;
    /// The magnitude.
    fn magnitude(self) -> Self::Real;

    /// |re| + |im|.
    fn taxi(self) -> Self::Real {
        Self::absolute(self.re()) + Self::absolute(self.im())
    }

    /// The magnitude of a part.
    fn absolute(part: Self::Real) -> Self::Real {
        part.magnitude()
    }

    /// Its parts, exactly.
    fn wide(self) -> [f64; 2] {
        [self.re().into(), self.im().into()]
    }

    /// The conjugate if asked for.
    fn conjugate_if(self, wanted: bool) -> Self {
        if wanted { self.conjugate() } else { self }
    }

    /// Whether it is zero.
    fn is_zero(self) -> bool {
        self == Self::default()
    }

    /// A real number as such a type.
    fn real(re: Self::Real) -> Self {
        Self::from_parts(re, Self::Real::default())
    }
}

macro_rules! real {
    ($ty:ident, $kind:ident) => {
        impl Scalar for $ty {
            type Real = $ty;
            const KIND: Kind = Kind::$kind;
            const IS_COMPLEX: bool = false;
            const ONE: $ty = 1.0;
            fn of(re: f64, _: f64) -> $ty {
                re as $ty
            }
            fn from_parts(re: $ty, _: $ty) -> $ty {
                re
            }
            fn re(self) -> $ty {
                self
            }
            fn im(self) -> $ty {
                0.0
            }
            fn conjugate(self) -> $ty {
                self
            }
            fn magnitude(self) -> $ty {
                self.abs()
            }
        }
    };
}
real!(f32, R32);
real!(f64, R64);

macro_rules! complex {
    ($ty:ident, $part:ident, $kind:ident) => {
        impl Scalar for $ty {
            type Real = $part;
            const KIND: Kind = Kind::$kind;
            const IS_COMPLEX: bool = true;
            const ONE: $ty = Complex { re: 1.0, im: 0.0 };
            fn of(re: f64, im: f64) -> $ty {
                Complex { re: re as $part, im: im as $part }
            }
            fn from_parts(re: $part, im: $part) -> $ty {
                Complex { re, im }
            }
            fn re(self) -> $part {
                self.re
            }
            fn im(self) -> $part {
                self.im
            }
            fn conjugate(self) -> $ty {
                self.conj()
            }
            fn magnitude(self) -> $part {
                self.norm()
            }
        }
    };
}
complex!(C32, f32, C32);
complex!(C64, f64, C64);

/// Reads an element of a kind as a number to compute with.
///
/// # Safety
/// There must be such an element.
pub unsafe fn read<T: Scalar>(kind: Kind, start: *const u8, index: isize) -> T {
    let at = start.wrapping_offset(index * kind.bytes() as isize);
    // SAFETY: the caller's promise.
    unsafe {
        if kind == T::KIND {
            return at.cast::<T>().read_unaligned();
        }
        match kind {
            Kind::R16 => T::of(at.cast::<f16>().read_unaligned().to_f64(), 0.0),
            Kind::B16 => T::of(at.cast::<bf16>().read_unaligned().to_f64(), 0.0),
            Kind::R32 => T::of(at.cast::<f32>().read_unaligned().into(), 0.0),
            Kind::R64 => T::of(at.cast::<f64>().read_unaligned(), 0.0),
            Kind::C32 => {
                let value = at.cast::<C32>().read_unaligned();
                T::of(value.re.into(), value.im.into())
            }
            Kind::C64 => {
                let value = at.cast::<C64>().read_unaligned();
                T::of(value.re, value.im)
            }
            Kind::I8 => T::of(at.cast::<i8>().read().into(), 0.0),
            Kind::I32 => T::of(at.cast::<i32>().read_unaligned().into(), 0.0),
            Kind::E4M3 => T::of(Fp8::E4M3.decode(at.read()), 0.0),
            Kind::E5M2 => T::of(Fp8::E5M2.decode(at.read()), 0.0),
        }
    }
}

/// Writes a number as an element of a kind, rounded to nearest even; integers are cut to their bits, and numbers of 8 bits saturate.
///
/// # Safety
/// There must be room for such an element.
pub unsafe fn write<T: Scalar>(kind: Kind, start: *mut u8, index: isize, value: T) {
    let at = start.wrapping_offset(index * kind.bytes() as isize);
    let [re, im] = value.wide();
    // SAFETY: the caller's promise.
    unsafe {
        if kind == T::KIND {
            return at.cast::<T>().write_unaligned(value);
        }
        match kind {
            Kind::R16 => at.cast::<f16>().write_unaligned(f16::from_f64(re)),
            Kind::B16 => at.cast::<bf16>().write_unaligned(bf16::from_f64(re)),
            Kind::R32 => at.cast::<f32>().write_unaligned(re as f32),
            Kind::R64 => at.cast::<f64>().write_unaligned(re),
            Kind::C32 => at.cast::<C32>().write_unaligned(C32::of(re, im)),
            Kind::C64 => at.cast::<C64>().write_unaligned(C64::of(re, im)),
            Kind::I8 => at.cast::<i8>().write(re as i64 as i8),
            Kind::I32 => at.cast::<i32>().write_unaligned(re as i64 as i32),
            Kind::E4M3 => at.write(Fp8::E4M3.encode(re)),
            Kind::E5M2 => at.write(Fp8::E5M2.encode(re)),
        }
    }
}

/// A single with the 10 bits of fraction that tensor cores take, as `cvt.rna.tf32.f32` has them: to nearest, ties away from zero.
pub fn to_tf32(value: f32) -> f32 {
    let bits = value.to_bits();
    if value.is_nan() || value.is_infinite() { value } else { f32::from_bits((bits + 0x1000) & !0x1fff) }
}

impl<R: Multiply> Product<R> {
    /// An element.
    pub fn at<T: Scalar<Real = R>>(&self, row: usize, column: usize) -> T {
        let index = row + column * self.rows;
        match T::IS_COMPLEX {
            true => T::from_parts(self.re[index], self.im[index]),
            false => T::from_parts(self.re[index], R::default()),
        }
    }
}

/// A factor in memory of ours or of the device: `rows` and `columns` are the strides in elements.
///
/// # Safety
/// As for [`Factor::new`].
pub unsafe fn factor<'a, T: Scalar>(
    start: *const T,
    [rows, columns]: [usize; 2],
    conjugated: bool,
) -> Factor<'a, T::Real> {
    let conjugated = conjugated && T::IS_COMPLEX;
    // SAFETY: the caller's promise.
    unsafe { Factor::new(start.cast(), T::IS_COMPLEX, rows as isize, columns as isize, conjugated) }
}
