//! The types of numbers that operations take.

use std::sync::OnceLock;

use half::{bf16, f16};

/// `ncclDataType_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, reason = "the manual's names")]
pub enum DataType {
    Int8 = 0,
    Uint8,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float16,
    Float32,
    Float64,
    Bfloat16,
    Float8e4m3,
    Float8e5m2,
}

impl DataType {
    const ALL: [DataType; 12] = [
        DataType::Int8,
        DataType::Uint8,
        DataType::Int32,
        DataType::Uint32,
        DataType::Int64,
        DataType::Uint64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Bfloat16,
        DataType::Float8e4m3,
        DataType::Float8e5m2,
    ];

    /// The type with this number.
    pub fn of(number: u32) -> Option<DataType> {
        DataType::ALL.get(number as usize).copied()
    }

    /// Its size in bytes.
    pub fn bytes(self) -> usize {
        match self {
            DataType::Int8 | DataType::Uint8 | DataType::Float8e4m3 | DataType::Float8e5m2 => 1,
            DataType::Float16 | DataType::Bfloat16 => 2,
            DataType::Int32 | DataType::Uint32 | DataType::Float32 => 4,
            DataType::Int64 | DataType::Uint64 | DataType::Float64 => 8,
        }
    }
}

/// A number of 8 bits: `E` bits of exponent, `M` of fraction. With `FINITE`, the largest exponent has numbers too, and only its last code
/// is NaN (e4m3); otherwise it is for infinities and NaN (e5m2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Float8<const E: u32, const M: u32, const FINITE: bool>(pub u8);

/// `__nv_fp8_e4m3`.
pub type E4m3 = Float8<4, 3, true>;
/// `__nv_fp8_e5m2`.
pub type E5m2 = Float8<5, 2, false>;

impl<const E: u32, const M: u32, const FINITE: bool> Float8<E, M, FINITE> {
    /// The code of the largest finite number.
    const LARGEST: u8 = if FINITE { 0x7e } else { 0x7b };

    /// The number.
    pub fn to_f32(self) -> f32 {
        let (exponent, fraction) = ((u32::from(self.0) & 0x7f) >> M, u32::from(self.0) & ((1 << M) - 1));
        let bias = (1 << (E - 1)) - 1;
        let value = match self.0 & 0x7f {
            code if code > Self::LARGEST => match !FINITE && fraction == 0 {
                true => f32::INFINITY,
                false => f32::NAN,
            },
            _ if exponent == 0 => fraction as f32 * 2f32.powi(1 - bias - M as i32),
            _ => ((1 << M) + fraction) as f32 * 2f32.powi(exponent as i32 - bias - M as i32),
        };
        if self.0 & 0x80 != 0 { -value } else { value }
    }

    /// The nearest number, of two equally near ones the even one; what is too large becomes the largest finite number.
    pub fn from_f32(value: f32) -> Self {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        if value.is_nan() {
            return Float8(sign | 0x7f);
        }
        let size = value.abs();
        // The codes of finite numbers ascend with them.
        let (mut low, mut high) = (0u8, Self::LARGEST);
        if size >= Float8::<E, M, FINITE>(high).to_f32() {
            return Float8(sign | high);
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if Float8::<E, M, FINITE>(middle).to_f32() <= size { low = middle } else { high = middle }
        }
        let [below, above] = [low, high].map(|code| Float8::<E, M, FINITE>(code).to_f32());
        let is_above = match (size - below).total_cmp(&(above - size)) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => low & 1 == 1,
        };
        Float8(sign | if is_above { high } else { low })
    }
}

/// A number that can be reduced.
pub trait Element: Copy {
    /// In what sums, products and the like of it are computed; the result is rounded once, at the end.
    type Wide: Wide;
    /// Its size in bytes.
    const BYTES: usize = size_of::<Self>();

    /// From little-endian bytes, of which there are enough.
    fn read(bytes: &[u8]) -> Self;
    /// To little-endian bytes.
    fn write(self, bytes: &mut [u8]);
    /// To the wide type, exactly.
    fn widen(self) -> Self::Wide;
    /// From the wide type.
    fn narrow(wide: Self::Wide) -> Self;
}

/// What reductions compute in.
pub trait Wide: Copy {
    /// The sum; of integers modulo the size.
    fn add(self, other: Self) -> Self;
    /// The product; of integers modulo the size.
    fn multiply(self, other: Self) -> Self;
    /// The larger one; the other one, if one is NaN.
    fn larger(self, other: Self) -> Self;
    /// The smaller one; the other one, if one is NaN.
    fn smaller(self, other: Self) -> Self;
    /// The quotient by the number of ranks; of integers towards zero.
    fn share(self, ranks: usize) -> Self;
}

macro_rules! integers {
    ($($ty:ty)*) => { $(
        impl Element for $ty {
            type Wide = $ty;
            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$ty>()];
                own.copy_from_slice(&bytes[..size_of::<$ty>()]);
                <$ty>::from_le_bytes(own)
            }
            fn write(self, bytes: &mut [u8]) {
                bytes[..size_of::<$ty>()].copy_from_slice(&self.to_le_bytes());
            }
            fn widen(self) -> $ty {
                self
            }
            fn narrow(wide: $ty) -> $ty {
                wide
            }
        }
        impl Wide for $ty {
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
            fn share(self, ranks: usize) -> Self {
                <$ty>::try_from(ranks).map_or(0, |ranks| self.checked_div(ranks).unwrap_or(self))
            }
        }
    )* };
}
integers!(i8 u8 i32 u32 i64 u64);

macro_rules! wide_floats {
    ($($ty:ty)*) => { $(
        impl Wide for $ty {
            fn add(self, other: Self) -> Self {
                self + other
            }
            fn multiply(self, other: Self) -> Self {
                self * other
            }
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
            fn share(self, ranks: usize) -> Self {
                self / ranks as $ty
            }
        }
    )* };
}
wide_floats!(f32 f64);

macro_rules! floats {
    ($($ty:ty: $wide:ty, $bits:ty, $from:expr, $to:expr, $widen:expr, $narrow:expr;)*) => { $(
        impl Element for $ty {
            type Wide = $wide;
            fn read(bytes: &[u8]) -> Self {
                $from(<$bits>::read(bytes))
            }
            fn write(self, bytes: &mut [u8]) {
                let bits: $bits = $to(self);
                for (place, byte) in bytes.iter_mut().zip(bits.to_le_bytes()) {
                    *place = byte;
                }
            }
            fn widen(self) -> $wide {
                $widen(self)
            }
            fn narrow(wide: $wide) -> Self {
                $narrow(wide)
            }
        }
    )* };
}

/// The bits of a number of 16 bits, to read them as other integers are.
#[derive(Clone, Copy)]
struct Bits16(u16);

impl Bits16 {
    fn read(bytes: &[u8]) -> Bits16 {
        Bits16(u16::from_le_bytes([bytes[0], bytes[1]]))
    }
    fn to_le_bytes(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }
}

floats! {
    f32: f32, u32, f32::from_bits, f32::to_bits, |x| x, |x| x;
    f64: f64, u64, f64::from_bits, f64::to_bits, |x| x, |x| x;
    f16: f32, Bits16, |bits: Bits16| f16::from_bits(bits.0), |x: f16| Bits16(x.to_bits()), f16::to_f32, f16::from_f32;
    bf16: f32, Bits16, |bits: Bits16| bf16::from_bits(bits.0), |x: bf16| Bits16(x.to_bits()), bf16::to_f32, bf16::from_f32;
    E4m3: f32, u8, Float8, |x: E4m3| x.0, widen_e4m3, E4m3::from_f32;
    E5m2: f32, u8, Float8, |x: E5m2| x.0, E5m2::to_f32, E5m2::from_f32;
}

/// A table spares the powers.
fn widen_e4m3(number: E4m3) -> f32 {
    static TABLE: OnceLock<[f32; 256]> = OnceLock::new();
    TABLE.get_or_init(|| std::array::from_fn(|code| Float8::<4, 3, true>(code as u8).to_f32()))
        [usize::from(number.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_8_bits_are_read_and_rounded() {
        assert_eq!(
            [0x38, 0x7e, 0x01, 0xb8].map(|code| Float8::<4, 3, true>(code).to_f32()),
            [1.0, 448.0, 1.0 / 512.0, -1.0]
        );
        assert_eq!(
            [0x3c, 0x7b, 0x7c].map(|code| Float8::<5, 2, false>(code).to_f32()),
            [1.0, 57344.0, f32::INFINITY]
        );
        assert!(Float8::<4, 3, true>(0x7f).to_f32().is_nan());
        for code in 0..=255 {
            let (first, second) = (Float8::<4, 3, true>(code), Float8::<5, 2, false>(code));
            assert!(first.to_f32().is_nan() || E4m3::from_f32(first.to_f32()) == first);
            assert!(!second.to_f32().is_finite() || E5m2::from_f32(second.to_f32()) == second);
        }
        // Halfway: to the even code.
        assert_eq!((E4m3::from_f32(1.0625).0, E4m3::from_f32(1.1875).0), (0x38, 0x3a));
        assert_eq!((E4m3::from_f32(1e9).0, E5m2::from_f32(-1e9).0), (0x7e, 0xfb));
    }
}
