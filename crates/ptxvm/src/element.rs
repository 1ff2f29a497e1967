//! Types of array elements and of scalar arguments.

use half::{bf16, f16};
use isa::Type;

/// A number with the representation that it has in device memory.
pub trait Element: Copy + Send + Sync + 'static {
    /// Its PTX type.
    const TYPE: Type;
    /// Size in bytes.
    const BYTES: usize;
    /// Writes the little-endian bytes; `bytes` is [`BYTES`](Self::BYTES) long.
    fn store(self, bytes: &mut [u8]);
    /// Reads the little-endian bytes; `bytes` is [`BYTES`](Self::BYTES) long.
    fn load(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($rust:ty => $ptx:ident;)*) => { $(
        impl Element for $rust {
            const TYPE: Type = Type::$ptx;
            const BYTES: usize = size_of::<$rust>();

            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn load(bytes: &[u8]) -> $rust {
                let mut own = [0; size_of::<$rust>()];
                own.copy_from_slice(bytes);
                <$rust>::from_le_bytes(own)
            }
        }
    )* };
}

elements! {
    u8 => U8;
    u16 => U16;
    u32 => U32;
    u64 => U64;
    i8 => S8;
    i16 => S16;
    i32 => S32;
    i64 => S64;
    f16 => F16;
    bf16 => Bf16;
    f32 => F32;
    f64 => F64;
}

/// The little-endian bytes of all elements.
pub(crate) fn to_bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; size_of_val(elements)];
    for (element, bytes) in elements.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
        element.store(bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_little_endian_and_come_back() {
        assert_eq!(to_bytes(&[0x0102_0304_u32, 5]), [4, 3, 2, 1, 5, 0, 0, 0]);
        assert_eq!(to_bytes(&[f16::ONE, f16::NEG_INFINITY]), [0x00, 0x3c, 0x00, 0xfc]);
        assert_eq!(to_bytes(&[bf16::ONE]), [0x80, 0x3f]);
        assert_eq!(f16::load(&[0x00, 0x3c]), f16::ONE);
        assert_eq!(i16::load(&[0xfe, 0xff]), -2);
    }
}
