//! Floating-point formats: the widths of their fields, and their special encodings.
//!
//! PTX ISA, "Fundamental Types" and "Alternate Floating-Point Data Formats".

use isa::Type;

/// The encodings of a format that are not numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// IEEE 754: the highest exponent holds infinity (fraction 0) and NaNs.
    InfinityAndNan,
    /// `.e4m3`: no infinity; only the encoding with all bits of exponent and fraction set is NaN.
    NanOnly,
    /// `.e2m3`, `.e3m2`, `.e2m1`: every encoding is a number.
    None,
}

/// A binary floating-point format: one sign bit, `exponent_bits`, `fraction_bits`, then `padding` zero bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Width of the biased exponent.
    pub exponent_bits: u32,
    /// Width of the stored fraction: the precision without its leading bit.
    pub fraction_bits: u32,
    /// Unused bits below the fraction: 13 for `.tf32`, which lives in a 32-bit register.
    pub padding: u32,
    /// Which encodings are infinity and NaN.
    pub specials: Specials,
    /// The NaN that arithmetic and conversions produce.
    pub nan: u64,
}

const fn ieee(exponent_bits: u32, fraction_bits: u32, nan: u64) -> Format {
    Format { exponent_bits, fraction_bits, padding: 0, specials: Specials::InfinityAndNan, nan }
}

const fn finite(exponent_bits: u32, fraction_bits: u32) -> Format {
    Format { exponent_bits, fraction_bits, padding: 0, specials: Specials::None, nan: 0 }
}

/// `.f16`: IEEE 754 binary16.
pub const F16: Format = ieee(5, 10, 0x7fff);
/// `.bf16`: binary32 with its fraction truncated to 7 bits.
pub const BF16: Format = ieee(8, 7, 0x7fff);
/// `.tf32`: binary32 with its fraction truncated to 10 bits, in a 32-bit register.
pub const TF32: Format = Format { padding: 13, ..ieee(8, 10, 0x7fff_e000) };
/// The NaN that tensor copies write for elements of a 16-bit format out of bounds (of wider ones in every 16 bits), and by
/// which `fma.oob` knows them: an H100 does.
pub const OUT_OF_BOUNDS: u16 = 0x7ff7;
/// `.f32`: IEEE 754 binary32.
pub const F32: Format = ieee(8, 23, 0x7fff_ffff);
/// `.f64`: IEEE 754 binary64.
pub const F64: Format = ieee(11, 52, 0xfff8_0000_0000_0000);
/// The upper word of an `.f64`, the result of `rcp.approx.ftz.f64`, with the NaN of an H100.
pub const F64_UPPER: Format = Format { padding: 32, ..ieee(11, 20, 0x7fff_ffff_0000_0000) };
/// `.e5m2`: an 8-bit format with infinities.
pub const E5M2: Format = ieee(5, 2, 0x7f);
/// `.e4m3`: an 8-bit format without infinities.
pub const E4M3: Format = Format { specials: Specials::NanOnly, ..ieee(4, 3, 0x7f) };
/// `.ue5m3`: 8 bits without a sign and without infinity. The format here has a ninth bit, the sign, which is 0.
pub const UE5M3: Format = Format { specials: Specials::NanOnly, ..ieee(5, 3, 0xff) };
/// `.e2m3`: a 6-bit format without infinity and NaN.
pub const E2M3: Format = finite(2, 3);
/// `.e3m2`: a 6-bit format without infinity and NaN.
pub const E3M2: Format = finite(3, 2);
/// `.e2m1`: a 4-bit format without infinity and NaN.
pub const E2M1: Format = finite(2, 1);

impl Format {
    /// The format of one element of a floating-point type, if it is one of those above.
    pub const fn of(ty: Type) -> Option<&'static Format> {
        Some(match ty {
            Type::F16 | Type::F16x2 => &F16,
            Type::Bf16 | Type::Bf16x2 => &BF16,
            Type::Tf32 => &TF32,
            Type::F32 | Type::F32x2 => &F32,
            Type::F64 => &F64,
            Type::E4m3 | Type::E4m3x2 | Type::E4m3x4 => &E4M3,
            Type::E5m2 | Type::E5m2x2 | Type::E5m2x4 => &E5M2,
            Type::E2m3 | Type::E2m3x2 | Type::E2m3x4 => &E2M3,
            Type::E3m2 | Type::E3m2x2 | Type::E3m2x4 => &E3M2,
            Type::E2m1 | Type::E2m1x2 | Type::E2m1x4 | Type::E2m1p4x4 => &E2M1,
            Type::Ue5m3 | Type::Ue5m3x2 => &UE5M3,
            _ => return None,
        })
    }

    /// Bits of a significand, the leading one included (IEEE 754's p).
    pub const fn precision(&self) -> u32 {
        self.fraction_bits + 1
    }

    /// Width of an encoding, padding included.
    pub const fn bits(&self) -> u32 {
        1 + self.exponent_bits + self.fraction_bits + self.padding
    }

    /// Exponent of the smallest normal number (IEEE 754's emin).
    pub const fn min_exponent(&self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// A NaN, made quiet: its sign and payload stay.
    #[inline]
    pub const fn quieted(&self, nan: u64) -> u64 {
        nan | 1 << (self.padding + self.fraction_bits - 1)
    }

    /// The sign bit of an encoding.
    #[inline]
    pub const fn sign(&self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// All bits but the sign.
    #[inline]
    pub const fn magnitude_mask(&self) -> u64 {
        self.sign() - 1
    }

    /// Encoding of the largest finite number.
    pub const fn max_finite(&self) -> u64 {
        let all = (1 << (self.exponent_bits + self.fraction_bits)) - 1;
        let top = match self.specials {
            Specials::InfinityAndNan => all - (1 << self.fraction_bits),
            Specials::NanOnly => all - 1,
            Specials::None => all,
        };
        top << self.padding
    }

    /// Encoding of an overflow: infinity, NaN in `.e4m3`, otherwise the largest number.
    #[inline]
    pub const fn infinity(&self) -> u64 {
        match self.specials {
            Specials::InfinityAndNan => self.max_finite() + (1 << self.padding),
            Specials::NanOnly => self.nan,
            Specials::None => self.max_finite(),
        }
    }

    /// Encoding of the smallest normal number.
    #[inline]
    pub const fn min_normal(&self) -> u64 {
        1 << (self.fraction_bits + self.padding)
    }

    /// Encoding of 1.0.
    pub const fn one(&self) -> u64 {
        ((1 << (self.exponent_bits - 1)) - 1) << (self.fraction_bits + self.padding)
    }

    /// Whether the encoding is a NaN.
    #[inline]
    pub const fn is_nan(&self, bits: u64) -> bool {
        let magnitude = bits & self.magnitude_mask();
        match self.specials {
            Specials::InfinityAndNan => magnitude > self.infinity(),
            Specials::NanOnly => magnitude == self.nan,
            Specials::None => false,
        }
    }

    /// `.ftz` on an input: a subnormal becomes zero of the same sign; all else is unchanged.
    pub const fn flush(&self, bits: u64) -> u64 {
        if bits & self.magnitude_mask() < self.min_normal() { bits & self.sign() } else { bits }
    }
}
