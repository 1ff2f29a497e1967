//! The words that memory is made of, and the digest of what is left in it, as in `tensor.cu`.

/// Bytes of shared memory that are looked at.
pub const SHARED: usize = 16384;
/// Bytes of the tensor's memory that stores may change.
pub const WRITTEN: usize = 65536;
/// What nobody wrote.
pub const UNTOUCHED: u8 = 0xa5;

fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const HALVES: [u64; 16] = [
    0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x83ff, 0x3c00, 0xbc01, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
    0x7c01, 0xffff,
];
const BFLOATS: [u64; 16] = [
    0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x807f, 0x3f80, 0xbf81, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81,
    0xffff,
];
const FLOATS: [u64; 16] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x7f_ffff,
    0x80_0000,
    0x807f_ffff,
    0x3f80_0000,
    0xbf80_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0xffff_ffff,
];
const DOUBLES: [u64; 16] = [
    0,
    1 << 63,
    1,
    1 << 63 | 1,
    0x000f_ffff_ffff_ffff,
    1 << 52,
    0x800f_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0001,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0xffff_ffff_ffff_ffff,
];

/// 0: each word tells its place. 1 to 4: values of f16, bf16, f32 and f64, special ones among them. 5: random bits, small numbers
/// among them.
fn word(pattern: u32, seed: u64, i: u64) -> u32 {
    let r = mix((seed << 32) + i);
    let half = |bits: u64| match bits & 3 {
        0 => (bits >> 8 & (0x8000 | 0x3ff | 3 << 10)) | 14 << 10,
        _ => HALVES[(bits >> 2 & 15) as usize],
    };
    let bfloat = |bits: u64| match bits & 3 {
        0 => (bits >> 8 & 0x81ff) | 0x3e00,
        _ => BFLOATS[(bits >> 2 & 15) as usize],
    };
    (match pattern {
        1 => half(r & 0xffff_ffff) | half(r >> 32) << 16,
        2 => bfloat(r & 0xffff_ffff) | bfloat(r >> 32) << 16,
        3 if r & 3 != 0 => FLOATS[(r >> 2 & 15) as usize],
        3 => (r >> 8 & 0x81ff_ffff) | 0x3e00_0000,
        4 => {
            let s = mix((seed << 32) + i / 2);
            let double = match s & 3 {
                0 => (mix(s) & 0x803f_ffff_ffff_ffff) | 0x3fc0_0000_0000_0000,
                _ => DOUBLES[(s >> 2 & 15) as usize],
            };
            if i & 1 != 0 { double >> 32 } else { double }
        }
        5 if r & 1 != 0 => r >> 32,
        5 => r >> 60,
        _ => u64::from(((i + (seed << 24)) as u32).wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15)),
    }) as u32
}

pub fn words(pattern: u32, seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64 / 4).flat_map(|i| word(pattern, seed, i).to_le_bytes()).collect()
}

/// The number of bytes up to the last one that is not what it was, and the FNV-1a of these.
pub fn content(bytes: &[u8], before: Option<&[u8]>) -> (usize, u64) {
    let was = |i: usize| before.map_or(UNTOUCHED, |before| before[i]);
    let length = (0..bytes.len()).rev().find(|&i| bytes[i] != was(i)).map_or(0, |i| i + 1);
    let digest = bytes[..length].iter().fold(0xcbf2_9ce4_8422_2325u64, |digest, &byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    (length, digest)
}
