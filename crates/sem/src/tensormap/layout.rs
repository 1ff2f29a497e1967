//! The 128 bytes of a map.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `ptxvmtm1`, the magic number |
//! | 8..16 | address |
//! | 16..48 | strides of dimensions 1 to 4 |
//! | 48..88 | extents of dimensions 0 to 4 |
//! | 88..94 | rank, element, interleave, span of the swizzle, fill, mode (0 tiled, 1 im2col, 2 wide, 3 wide of 128) |
//! | 94..99 | traversal strides of dimensions 0 to 4 |
//! | 99 | atomicity of a swizzle with a span of 128 bytes (`.swizzle_atomicity`) |
//! | 100..110 | tiled: the box. im2col: channels, pixels |
//! | 112..124 | im2col: lower corner, upper corner |

use std::ops::Range;

use super::{Element, Fill, Im2col, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap};

/// Bytes of a map.
pub const BYTES: usize = 128;

const MAGIC: &[u8; 8] = b"ptxvmtm1";
/// Offset of the tensor's address in a map.
pub const ADDRESS: usize = 8;
const STRIDES: usize = 16;
const EXTENTS: usize = 48;
const KINDS: usize = 88;
const STEPS: usize = 94;
const ATOMICITY: usize = 99;
const BOX: usize = 100;
const CORNERS: usize = 112;

/// The bytes are not a tensor map.
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

/// A field that `tensormap.replace` changes (PTX ISA, "tensormap.replace"). Some have an element for each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The tensor's address.
    Address,
    /// The number of dimensions minus one.
    Rank,
    /// The box's extent in a dimension.
    Box(u8),
    /// The tensor's extent in a dimension.
    Extent(u8),
    /// The byte stride of a dimension; 0 here means dimension 1.
    Stride(u8),
    /// The traversal stride of a dimension.
    Step(u8),
    /// The element type.
    Element,
    /// Whether channels are interleaved.
    Interleave,
    /// Bytes within which units are permuted.
    Swizzle,
    /// The size of the units in a span of 128 bytes.
    Atomicity,
    /// The values outside of the tensor.
    Fill,
}

/// The element types by the numbers of `tensormap.replace`, which differ from those of `cuda.h`.
const ELEMENTS: [Element; 16] = {
    use Element::{
        Bf16, F16, F32, F32Ftz, F64, S32, S64, Tf32, Tf32Ftz, U4Align8, U4Align16, U6Align16, U8, U16, U32,
        U64,
    };
    [U8, U16, U32, S32, U64, S64, F16, F32, F32Ftz, F64, Bf16, Tf32, Tf32Ftz, U4Align8, U4Align16, U6Align16]
};

/// The span of a swizzle and its atomicity, as numbers.
fn swizzle_parts(swizzle: Swizzle) -> [u8; 2] {
    match swizzle {
        Swizzle::Bytes128By32 => [3, 1],
        Swizzle::Bytes128By32Flip8 => [3, 2],
        Swizzle::Bytes128By64 => [3, 3],
        whole => [whole as u8, 0],
    }
}

fn short(bytes: &[u8; BYTES], at: usize) -> u32 {
    u16::from_le_bytes(get(bytes, at)).into()
}

impl TensorMap {
    /// The map's representation in memory.
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
        let [span, atomicity] = swizzle_parts(self.swizzle);
        put(&mut bytes, KINDS, &[self.rank as u8, element, interleave, span, self.fill as u8, mode]);
        bytes[ATOMICITY] = atomicity;
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

    /// Decodes a map from memory.
    ///
    /// # Errors
    /// When the bytes are not a valid map.
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Result<TensorMap, NoMap> {
        let [rank, element, interleave, span, fill, mode] = get(bytes, KINDS);
        let rank = usize::from(rank);
        if !bytes.starts_with(MAGIC) || !(1..=MOST_DIMENSIONS).contains(&rank) {
            return Err(NoMap);
        }
        // Fields of dimensions that do not exist are ignored.
        fn of_rank<T>(rank: usize, value: impl Fn(usize) -> T, absent: T) -> [T; MOST_DIMENSIONS]
        where
            T: Copy,
        {
            std::array::from_fn(|i| if i < rank { value(i) } else { absent })
        }
        let corner = |i: usize| i32::from(i16::from_le_bytes(get(bytes, CORNERS + 2 * i)));
        let columns = Im2col {
            lower: std::array::from_fn(corner),
            upper: std::array::from_fn(|i| corner(3 + i)),
            channels: short(bytes, BOX),
            pixels: short(bytes, BOX + 2),
        };
        let mode = match mode {
            0 => Mode::Tiled(of_rank(rank, |i| short(bytes, BOX + 2 * i), 1)),
            1 => Mode::Im2col(columns),
            2 | 3 => Mode::Im2colWide { columns, w128: mode == 3 },
            _ => return Err(NoMap),
        };
        let swizzle = Swizzle::ALL.iter().find(|&&all| swizzle_parts(all) == [span, bytes[ATOMICITY]]);
        let interleave = Interleave::of(interleave.into()).ok_or(NoMap)?;
        let extent = |i: usize| u64::from_le_bytes(get(bytes, EXTENTS + 8 * i));
        let mut steps = of_rank(rank, |i| bytes[STEPS + i].into(), 1);
        if interleave == Interleave::None {
            // The field is ignored.
            steps[0] = 1;
        }
        let map = TensorMap {
            mode,
            element: Element::of(element.into()).ok_or(NoMap)?,
            rank,
            address: u64::from_le_bytes(get(bytes, ADDRESS)),
            extents: of_rank(rank, extent, 1),
            strides: std::array::from_fn(|i| u64::from_le_bytes(get(bytes, STRIDES + 8 * i))),
            steps,
            interleave,
            swizzle: *swizzle.ok_or(NoMap)?,
            fill: Fill::of(fill.into()).ok_or(NoMap)?,
        };
        let is_one = map.steps.iter().all(|step| (1..=8).contains(step))
            && map.extents.iter().all(|&extent| extent <= 1 << 32)
            && match map.mode {
                Mode::Tiled(extents) => extents.iter().all(|extent| (1..=256).contains(extent)),
                _ => true,
            };
        if is_one { Ok(map) } else { Err(NoMap) }
    }
}

impl Field {
    /// Changes a field of a map. The bytes need not be a valid map yet: programs begin with zeros. A number wraps
    /// around in the bits that an H100 has for it: 0 elements are 256 of a box and 2^32 of the tensor, a step of 9 is
    /// one of 1, and a stride has no bits below 16 and from 2^40 on. A kind that does not exist makes the map invalid.
    /// Returns the byte ranges that changed. The caller must store only these, because threads may change other fields
    /// concurrently.
    pub fn replace(self, bytes: &mut [u8; BYTES], value: u64) -> [Range<usize>; 2] {
        let byte = u8::try_from(value).unwrap_or(u8::MAX);
        let up_to = |most: u64| (value.wrapping_sub(1) & (most - 1)) + 1;
        let (at, size, value) = match self {
            Field::Address => (ADDRESS, 8, value),
            Field::Rank => (KINDS, 1, (value & 7) + 1),
            Field::Box(i) => (BOX + 2 * usize::from(i), 2, up_to(256)),
            Field::Extent(i) => (EXTENTS + 8 * usize::from(i), 8, up_to(1 << 32)),
            // The last dimension but one has the last stride.
            Field::Stride(i) if usize::from(i) + 1 >= MOST_DIMENSIONS => (STRIDES, 0, 0),
            Field::Stride(i) => (STRIDES + 8 * usize::from(i), 8, value & ((1 << 40) - 16)),
            Field::Step(i) => (STEPS + usize::from(i), 1, up_to(8)),
            Field::Element => (
                KINDS + 1,
                1,
                ELEMENTS.get(usize::from(byte)).map_or(u8::MAX, |&element| element as u8).into(),
            ),
            Field::Interleave => (KINDS + 2, 1, byte.into()),
            Field::Swizzle => (KINDS + 3, 1, byte.into()),
            Field::Atomicity => (ATOMICITY, 1, byte.into()),
            Field::Fill => (KINDS + 4, 1, byte.into()),
        };
        let magic = if bytes.starts_with(MAGIC) { 0..0 } else { 0..MAGIC.len() };
        put(bytes, 0, MAGIC);
        put(bytes, at, &value.to_le_bytes()[..size]);
        [magic, at..at + size]
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
            steps: [4, 2, 8, 1, 1],
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
            (91, 2),
            (92, 2),
            (93, 4),
            (94, 0),
            (95, 9),
            (99, 4),
            (102, 0),
        ] {
            let mut bytes = good;
            bytes[at] = bad;
            assert_eq!(TensorMap::from_bytes(&bytes), Err(NoMap), "byte {at}");
        }
    }

    #[test]
    fn every_swizzle_is_kept() {
        for &swizzle in Swizzle::ALL {
            let map = TensorMap { swizzle, ..map(Mode::Tiled([256, 1, 77, 1, 1])) };
            assert_eq!(TensorMap::from_bytes(&map.to_bytes()), Ok(map));
        }
    }

    #[test]
    fn fields_make_a_map_of_zeros() {
        let mut bytes = [0; BYTES];
        for (field, value) in [
            (Field::Address, 0x0012_3456_789a_bcd0),
            (Field::Rank, 2),
            (Field::Box(0), 256),
            (Field::Box(1), 1),
            (Field::Box(2), 77),
            (Field::Extent(0), 1 << 31),
            (Field::Extent(1), 3),
            (Field::Extent(2), 5),
            (Field::Stride(0), 1 << 39),
            (Field::Stride(1), 32),
            (Field::Step(0), 4),
            (Field::Step(1), 2),
            (Field::Step(2), 8),
            (Field::Element, 10),
            (Field::Interleave, 2),
            (Field::Atomicity, 3),
            (Field::Swizzle, 3),
            (Field::Fill, 1),
        ] {
            let before = bytes;
            let parts = field.replace(&mut bytes, value);
            // Nothing outside of these ranges has changed.
            let changed = |i: &usize| before[*i] != bytes[*i];
            assert!(
                (0..BYTES).filter(changed).all(|i| parts.iter().any(|part| part.contains(&i))),
                "{field:?}"
            );
            assert!(before.starts_with(MAGIC) <= parts[0].is_empty() && parts[1].len() <= 8, "{field:?}");
        }
        assert_eq!(TensorMap::from_bytes(&bytes), Ok(map(Mode::Tiled([256, 1, 77, 1, 1]))));
        for (number, element) in ELEMENTS.into_iter().enumerate() {
            Field::Element.replace(&mut bytes, number as u64);
            assert_eq!(TensorMap::from_bytes(&bytes).map(|map| map.element), Ok(element));
        }
        Field::Element.replace(&mut bytes, 16);
        assert_eq!(TensorMap::from_bytes(&bytes), Err(NoMap));
    }
}
