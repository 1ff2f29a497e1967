//! Texel formats: the meaning of a texel's bytes, and the conversion of registers by formatted stores.
//!
//! CUDA Driver API, `CUarray_format`; CUDA C++ Programming Guide, "Texture Memory" (read modes); PTX ISA, "Surface
//! Instructions: sust" (the source type for each format).

use super::srgb;
use crate::convert::{convert_float, float_to_integer};
use crate::format::{F16, F32};
use crate::round::{Mode, Value, pack, unpack};
use isa::{Rounding, Type};

/// Maximum bytes of a texel: four channels of 32 bits.
pub const TEXEL_BYTES: usize = 16;

/// 1.0 as `.f32`.
const ONE: u32 = 0x3f80_0000;

/// The contents of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the kind of number and its bits
pub enum Channel {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    /// 0 to 255 represent 0.0 to 1.0.
    Unorm8,
    Unorm16,
    /// -127 to 127 represent -1.0 to 1.0; -128 also represents -1.0.
    Snorm8,
    Snorm16,
    F16,
    F32,
}

impl Channel {
    /// Size in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Channel::U8 | Channel::S8 | Channel::Unorm8 | Channel::Snorm8 => 1,
            Channel::U16 | Channel::S16 | Channel::Unorm16 | Channel::Snorm16 | Channel::F16 => 2,
            Channel::U32 | Channel::S32 | Channel::F32 => 4,
        }
    }

    /// The same channel, read as a number from 0 to 1 or -1 to 1 (`cudaReadModeNormalizedFloat`). 32-bit channels are
    /// never read so.
    pub const fn normalized(self) -> Channel {
        match self {
            Channel::U8 => Channel::Unorm8,
            Channel::U16 => Channel::Unorm16,
            Channel::S8 => Channel::Snorm8,
            Channel::S16 => Channel::Snorm16,
            other => other,
        }
    }

    /// Whether it is read as `.f32`.
    pub const fn is_float(self) -> bool {
        !matches!(self, Channel::U8 | Channel::U16 | Channel::U32 | Channel::S8 | Channel::S16 | Channel::S32)
    }

    /// Whether it holds signed integers (`SINT`).
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Channel::S8 | Channel::S16 | Channel::S32)
    }

    /// The channel value for a register in a formatted store. *Ours*: it is clamped to the range and rounded to
    /// nearest even, and NaN becomes 0; the manual only says that the register is converted.
    fn encode(self, register: u32) -> u32 {
        let signed = register as i32;
        // `register` times the largest number, as an integer.
        let scaled = |least: f32, greatest: u32, ty: Type| {
            let value = f32::from_bits(register);
            let value = if value.is_nan() { 0.0 } else { value.clamp(least, 1.0) };
            // Both factors have at most 24 bits: the product is exact.
            let product = f64::from(value) * f64::from(greatest);
            let bits = product.to_bits();
            float_to_integer(&crate::format::F64, ty, Rounding::NearestEven, false, bits) as u32
        };
        match self {
            Channel::U8 => register.min(0xff),
            Channel::U16 => register.min(0xffff),
            Channel::S8 => signed.clamp(-0x80, 0x7f) as u32,
            Channel::S16 => signed.clamp(-0x8000, 0x7fff) as u32,
            Channel::Unorm8 => scaled(0.0, 0xff, Type::U32),
            Channel::Unorm16 => scaled(0.0, 0xffff, Type::U32),
            Channel::Snorm8 => scaled(-1.0, 0x7f, Type::S32),
            Channel::Snorm16 => scaled(-1.0, 0x7fff, Type::S32),
            Channel::F16 => convert_float(&F32, &F16, Mode::NEAREST, register.into()) as u32,
            Channel::U32 | Channel::S32 | Channel::F32 => register,
        }
    }

    /// The result of `txq` and `suq` for `.channel_data_type`: the manual refers to the source language's
    /// enumeration, which is OpenCL's (PTX ISA, "Channel Data Type and Channel Order Fields"). *Unverified*.
    pub const fn data_type(self) -> u32 {
        match self {
            Channel::Snorm8 => 0x10d0,
            Channel::Snorm16 => 0x10d1,
            Channel::Unorm8 => 0x10d2,
            Channel::Unorm16 => 0x10d3,
            Channel::S8 => 0x10d7,
            Channel::S16 => 0x10d8,
            Channel::S32 => 0x10d9,
            Channel::U8 => 0x10da,
            Channel::U16 => 0x10db,
            Channel::U32 => 0x10dc,
            Channel::F16 => 0x10dd,
            Channel::F32 => 0x10de,
        }
    }
}

/// The format of a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TexelFormat {
    channel: Channel,
    channels: u8,
}

/// Decodes a texel with this number of channels from its first bytes. Missing channels are 0; a missing fourth is 1.
pub type Decode = fn(&[u8; TEXEL_BYTES], usize) -> [u32; 4];

impl TexelFormat {
    /// A format of 1, 2 or 4 channels; there are no others.
    pub const fn new(channel: Channel, channels: u8) -> Option<TexelFormat> {
        if matches!(channels, 1 | 2 | 4) { Some(TexelFormat { channel, channels }) } else { None }
    }

    /// The contents of each channel.
    pub const fn channel(self) -> Channel {
        self.channel
    }

    /// Number of channels.
    pub const fn channels(self) -> usize {
        self.channels as usize
    }

    /// Size of a texel in bytes.
    pub const fn bytes(self) -> usize {
        self.channel.bytes() * self.channels as usize
    }

    /// OpenCL's `CL_R`, `CL_RG` or `CL_RGBA`, for the same reason as [`Channel::data_type`].
    pub const fn channel_order(self) -> u32 {
        match self.channels {
            1 => 0x10b0,
            2 => 0x10b1,
            _ => 0x10b5,
        }
    }

    /// The function that reads texels, unchanged or normalised; `srgb` converts the first three channels of 8 bits to
    /// linear light. *Unverified*: missing channels are (0, 0, 1), as in OpenCL (OpenCL C, "Image Channel Order").
    pub fn decode(self, normalized: bool, srgb: bool) -> Decode {
        let channel = if normalized { self.channel.normalized() } else { self.channel };
        match channel {
            Channel::U8 => |b, n| texel(n, 1, |i| b[i].into()),
            Channel::U16 => |b, n| texel(n, 1, |i| half(b, i).into()),
            Channel::U32 | Channel::S32 => |b, n| texel(n, 1, |i| word(b, i)),
            Channel::S8 => |b, n| texel(n, 1, |i| b[i] as i8 as u32),
            Channel::S16 => |b, n| texel(n, 1, |i| half(b, i) as i16 as u32),
            Channel::Unorm8 if srgb => |b, n| {
                let linear = |i: usize| srgb::LINEAR[usize::from(b[i])];
                texel(n, ONE, |i| if i < 3 { linear(i) } else { quotient(b[i].into(), 0xff) })
            },
            Channel::Unorm8 => |b, n| texel(n, ONE, |i| quotient(b[i].into(), 0xff)),
            Channel::Unorm16 => |b, n| texel(n, ONE, |i| quotient(half(b, i).into(), 0xffff)),
            Channel::Snorm8 => |b, n| texel(n, ONE, |i| quotient((b[i] as i8).max(-0x7f).into(), 0x7f)),
            Channel::Snorm16 => {
                |b, n| texel(n, ONE, |i| quotient((half(b, i) as i16).max(-0x7fff).into(), 0x7fff))
            }
            Channel::F16 => |b, n| texel(n, ONE, |i| widen(half(b, i))),
            Channel::F32 => |b, n| texel(n, ONE, |i| word(b, i)),
        }
    }

    /// The texel that a formatted store writes, in the first [`TexelFormat::bytes`] bytes. Registers beyond the
    /// format's channels are ignored. Channels without a register, which the manual does not mention, become 0.
    pub fn encode(self, registers: &[u32]) -> [u8; TEXEL_BYTES] {
        let mut bytes = [0; TEXEL_BYTES];
        let size = self.channel.bytes();
        for (place, &register) in bytes.chunks_mut(size).zip(registers).take(self.channels()) {
            place.copy_from_slice(&self.channel.encode(register).to_le_bytes()[..size]);
        }
        bytes
    }
}

#[inline(always)]
fn texel(channels: usize, one: u32, channel: impl Fn(usize) -> u32) -> [u32; 4] {
    match channels {
        1 => [channel(0), 0, 0, one],
        2 => [channel(0), channel(1), 0, one],
        _ => [channel(0), channel(1), channel(2), channel(3)],
    }
}

fn half(bytes: &[u8; TEXEL_BYTES], i: usize) -> u16 {
    u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])
}

fn word(bytes: &[u8; TEXEL_BYTES], i: usize) -> u32 {
    u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]])
}

/// An integer divided by the largest one, rounded to nearest even. Both are exact in `.f32`, and IEEE 754 rounds the
/// quotient once.
fn quotient(value: i32, greatest: i32) -> u32 {
    (value as f32 / greatest as f32).to_bits()
}

fn widen(half: u16) -> u32 {
    match unpack(&F16, false, half.into()) {
        // As `cvt.f32.f16`.
        Value::Nan(_) => F32.nan as u32,
        value => pack(&F32, Mode::NEAREST, value) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(channel: Channel, normalized: bool, srgb: bool, bytes: &[u8]) -> [u32; 4] {
        let size = bytes.len() / channel.bytes();
        let format = TexelFormat::new(channel, size as u8).unwrap();
        let mut all = [0xee; TEXEL_BYTES];
        all[..bytes.len()].copy_from_slice(bytes);
        (format.decode(normalized, srgb))(&all, size)
    }

    #[test]
    fn texels_are_read_as_their_format_says() {
        assert_eq!(read(Channel::U8, false, false, &[200]), [200, 0, 0, 1]);
        assert_eq!(read(Channel::S8, false, false, &[0x80, 0x7f]), [-128i32 as u32, 127, 0, 1]);
        assert_eq!(read(Channel::S16, false, false, &[0xfe, 0xff]), [-2i32 as u32, 0, 0, 1]);
        assert_eq!(read(Channel::U16, false, false, &[0xfe, 0xff]), [0xfffe, 0, 0, 1]);
        let floats = |bits: [u32; 4]| bits.map(f32::from_bits);
        assert_eq!(floats(read(Channel::U8, true, false, &[0xff, 51])), [1.0, 0.2, 0.0, 1.0]);
        assert_eq!(floats(read(Channel::S8, true, false, &[0x80, 0x81])), [-1.0, -1.0, 0.0, 1.0]);
        assert_eq!(floats(read(Channel::S16, true, false, &[0xff, 0x7f])), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(floats(read(Channel::U16, true, false, &[0xff, 0xff])), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(
            floats(read(Channel::F16, false, false, &[0, 0x3c, 1, 0])),
            [1.0, 2f32.powi(-24), 0.0, 1.0]
        );
        // Linear 0.5 is 188 of 255 in sRGB; the fourth channel is not converted.
        let [red, .., alpha] = floats(read(Channel::U8, true, true, &[188, 0, 255, 51]));
        assert!((red - 0.5).abs() < 0.005 && alpha == 0.2, "{red} {alpha}");
    }

    #[test]
    fn formatted_stores_stop_at_the_ends_of_the_range() {
        let store = |channel, registers: &[u32]| TexelFormat::new(channel, 4).unwrap().encode(registers);
        assert_eq!(store(Channel::U8, &[300, 7])[..4], [255, 7, 0, 0]);
        assert_eq!(store(Channel::S8, &[-300i32 as u32, 300, -3i32 as u32])[..4], [0x80, 0x7f, 0xfd, 0]);
        let floats = [1.5f32, -1.0, f32::NAN, 0.5].map(f32::to_bits);
        // 127.5 is halfway between two integers.
        assert_eq!(store(Channel::Unorm8, &floats)[..4], [255, 0, 0, 128]);
        assert_eq!(store(Channel::Snorm8, &floats)[..4], [127, 0x81, 0, 64]);
        assert_eq!(store(Channel::F16, &floats)[..4], [0x00, 0x3e, 0x00, 0xbc]);
        assert_eq!(store(Channel::F32, &floats)[..4], 1.5f32.to_le_bytes());
    }

    #[test]
    fn there_are_formats_of_one_two_and_four_channels() {
        let counts: Vec<u8> = (0..=255).filter(|&n| TexelFormat::new(Channel::U8, n).is_some()).collect();
        assert_eq!(counts, [1, 2, 4]);
        assert_eq!(TexelFormat::new(Channel::F32, 4).unwrap().bytes(), TEXEL_BYTES);
    }
}
