//! The 128 bytes of a map.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `ptxvmtm1`, by which a map is told from anything else |
//! | 8..16 | address |
//! | 16..48 | strides of dimensions 1 to 4 |
//! | 48..88 | extents of dimensions 0 to 4 |
//! | 88..94 | rank, element, interleave, swizzle, fill, mode (0 tiled, 1 im2col, 2 wide, 3 wide of 128) |
//! | 94..99 | steps of dimensions 0 to 4 |
//! | 100..110 | tiled: the box. im2col: channels, pixels |
//! | 112..124 | im2col: lower corner, upper corner |

use super::{Element, Fill, Im2col, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap};

/// Bytes of a map.
pub const BYTES: usize = 128;

const MAGIC: &[u8; 8] = b"ptxvmtm1";
const ADDRESS: usize = 8;
const STRIDES: usize = 16;
const EXTENTS: usize = 48;
const KINDS: usize = 88;
const STEPS: usize = 94;
const BOX: usize = 100;
const CORNERS: usize = 112;

/// These bytes are no tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMap;

fn put(bytes: &mut [u8; BYTES], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn get<const N: usize>(bytes: &[u8; BYTES], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

fn short(bytes: &[u8; BYTES], at: usize) -> u32 {
    u16::from_le_bytes(get(bytes, at)).into()
}

impl TensorMap {
    /// The map as it is in memory.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, ADDRESS, &self.address.to_le_bytes());
        for (i, stride) in self.strides.iter().enumerate() {
            put(&mut bytes, STRIDES + 8 * i, &stride.to_le_bytes());
        }
        for (i, extent) in self.extents.iter().enumerate() {
            put(&mut bytes, EXTENTS + 8 * i, &extent.to_le_bytes());
        }
        let (mode, columns) = match self.mode {
            Mode::Tiled(_) => (0, None),
            Mode::Im2col(columns) => (1, Some(columns)),
            Mode::Im2colWide { columns, w128 } => (2 + u8::from(w128), Some(columns)),
        };
        let (element, interleave) = (self.element as u8, self.interleave as u8);
        let kinds = [self.rank as u8, element, interleave, self.swizzle as u8, self.fill as u8, mode];
        put(&mut bytes, KINDS, &kinds);
        put(&mut bytes, STEPS, &self.steps.map(|step| step as u8));
        if let Mode::Tiled(extents) = self.mode {
            for (i, extent) in extents.iter().enumerate() {
                put(&mut bytes, BOX + 2 * i, &(*extent as u16).to_le_bytes());
            }
        }
        if let Some(columns) = columns {
            put(&mut bytes, BOX, &(columns.channels as u16).to_le_bytes());
            put(&mut bytes, BOX + 2, &(columns.pixels as u16).to_le_bytes());
            for (i, corner) in columns.lower.iter().chain(&columns.upper).enumerate() {
                put(&mut bytes, CORNERS + 2 * i, &(*corner as i16).to_le_bytes());
            }
        }
        bytes
    }

    /// The map that is in memory.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Result<TensorMap, NoMap> {
        let [rank, element, interleave, swizzle, fill, mode] = get(bytes, KINDS);
        let corner = |i: usize| i32::from(i16::from_le_bytes(get(bytes, CORNERS + 2 * i)));
        let columns = Im2col {
            lower: std::array::from_fn(corner),
            upper: std::array::from_fn(|i| corner(3 + i)),
            channels: short(bytes, BOX),
            pixels: short(bytes, BOX + 2),
        };
        let mode = match mode {
            0 => Mode::Tiled(std::array::from_fn(|i| short(bytes, BOX + 2 * i))),
            1 => Mode::Im2col(columns),
            2 | 3 => Mode::Im2colWide { columns, w128: mode == 3 },
            _ => return Err(NoMap),
        };
        let map = TensorMap {
            mode,
            element: Element::of(element.into()).ok_or(NoMap)?,
            rank: rank.into(),
            address: u64::from_le_bytes(get(bytes, ADDRESS)),
            extents: std::array::from_fn(|i| u64::from_le_bytes(get(bytes, EXTENTS + 8 * i))),
            strides: std::array::from_fn(|i| u64::from_le_bytes(get(bytes, STRIDES + 8 * i))),
            steps: get(bytes, STEPS).map(u32::from),
            interleave: Interleave::of(interleave.into()).ok_or(NoMap)?,
            swizzle: Swizzle::of(swizzle.into()).ok_or(NoMap)?,
            fill: Fill::of(fill.into()).ok_or(NoMap)?,
        };
        let is_one = bytes.starts_with(MAGIC)
            && (1..=MOST_DIMENSIONS).contains(&map.rank)
            && map.steps.iter().all(|step| (1..=8).contains(step))
            && match map.mode {
                Mode::Tiled(extents) => extents.iter().all(|extent| (1..=256).contains(extent)),
                _ => true,
            };
        if is_one { Ok(map) } else { Err(NoMap) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(mode: Mode) -> TensorMap {
        TensorMap {
            mode,
            element: Element::Bf16,
            rank: 3,
            address: 0x0012_3456_789a_bcd0,
            extents: [1 << 31, 3, 5, 1, 1],
            strides: [1 << 39, 32, 0, 0],
            steps: [1, 2, 8, 1, 1],
            interleave: Interleave::Bytes32,
            swizzle: Swizzle::Bytes128By64,
            fill: Fill::Nan,
        }
    }

    #[test]
    fn bytes_hold_every_field() {
        let columns = Im2col { lower: [-32768, -1, 3], upper: [32767, 2, -16], channels: 256, pixels: 1024 };
        let modes = [
            Mode::Tiled([256, 1, 77, 1, 1]),
            Mode::Im2col(columns),
            Mode::Im2colWide { columns, w128: false },
            Mode::Im2colWide { columns, w128: true },
        ];
        for mode in modes {
            assert_eq!(TensorMap::from_bytes(&map(mode).to_bytes()), Ok(map(mode)));
        }
    }

    #[test]
    fn other_bytes_are_no_map() {
        assert_eq!(TensorMap::from_bytes(&[0; BYTES]), Err(NoMap));
        let good = map(Mode::Tiled([256, 1, 77, 1, 1])).to_bytes();
        for (at, bad) in [
            (0, 0),
            (88, 0),
            (88, 6),
            (89, 16),
            (90, 3),
            (91, 7),
            (92, 2),
            (93, 4),
            (94, 0),
            (95, 9),
            (102, 0),
        ] {
            let mut bytes = good;
            bytes[at] = bad;
            assert_eq!(TensorMap::from_bytes(&bytes), Err(NoMap), "byte {at}");
        }
    }
}
