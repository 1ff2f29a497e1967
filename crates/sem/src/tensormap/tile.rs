//! What a copy of a box does: which bytes of the tensor are which bytes of shared memory.

use std::ops::Range;

use super::{Element, Fill, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap};

/// A line of a box along the innermost dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it begins in shared memory, from the beginning of the box, before units change places.
    pub shared: u64,
    /// The bytes of it that are in the tensor.
    pub inside: Range<usize>,
    /// Where these begin in global memory.
    pub global: u64,
}

impl Swizzle {
    /// Bytes within which units change places.
    pub fn span(self) -> u64 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            _ => 128,
        }
    }

    /// Where what belongs to an address of shared memory is: it depends on the address alone, by lines of 128 bytes. Eight bytes stay
    /// together.
    pub fn place(self, address: u64) -> u64 {
        let line = address >> 7;
        address
            ^ match self {
                Swizzle::None => 0,
                Swizzle::Bytes32 => (line & 1) << 4,
                Swizzle::Bytes64 => (line & 3) << 4,
                Swizzle::Bytes128 => (line & 7) << 4,
                Swizzle::Bytes128By32 => (line & 3) << 5,
                Swizzle::Bytes128By32Flip8 => (line & 3) << 5 | (line & 1) << 3,
                Swizzle::Bytes128By64 => (line & 1) << 6,
            }
    }
}

impl TensorMap {
    /// The box in elements that are taken, if it is one that a copy here can take: whole bytes, no columns, no interleaved channels.
    fn taken(&self) -> Option<[u64; MOST_DIMENSIONS]> {
        let Mode::Tiled(extents) = self.mode else { return None };
        let fits = self.interleave == Interleave::None && !self.element.is_packed();
        let step = |i: usize| if i == 0 { 1 } else { self.steps[i] };
        fits.then(|| {
            std::array::from_fn(|i| if i < self.rank { extents[i].div_ceil(step(i)).into() } else { 1 })
        })
    }

    /// Bytes of one element. Packed ones have none.
    pub fn element_bytes(&self) -> usize {
        (self.element.bits() / 8) as usize
    }

    /// Bytes of a line of a box.
    pub fn row_bytes(&self) -> Option<usize> {
        Some(self.taken()?[0] as usize * self.element_bytes())
    }

    /// Bytes that a copy of a box moves, those outside of the tensor included: what it tells an mbarrier object.
    pub fn box_bytes(&self) -> Option<u64> {
        let extents = self.taken()?;
        Some(extents.iter().product::<u64>() * self.element_bytes() as u64)
    }

    /// Bytes from one line of the box to the next in shared memory: swizzled ones take the whole span.
    fn pitch(&self) -> Option<u64> {
        Some((self.row_bytes()? as u64).max(self.swizzle.span()))
    }

    /// Bytes of shared memory that a box takes.
    pub fn shared_bytes(&self) -> Option<u64> {
        let extents = self.taken()?;
        Some(extents.iter().skip(1).product::<u64>() * self.pitch()?)
    }

    /// The lines of the box whose first element has these coordinates, which may lie outside of the tensor. Nothing if a copy here
    /// cannot take it.
    pub fn rows(&self, coordinates: [i32; MOST_DIMENSIONS]) -> Option<impl Iterator<Item = Row>> {
        let (map, extents, pitch) = (*self, self.taken()?, self.pitch()?);
        let count: u64 = extents.iter().skip(1).product();
        let bytes = self.element_bytes();
        // Of the innermost dimension, in elements of the row.
        let first = i64::from(coordinates[0]);
        let length = extents[0] as i64;
        let inner = (-first).clamp(0, length)..(map.extents[0] as i64).saturating_sub(first).clamp(0, length);
        let row = move |i: u64| {
            let (mut rest, mut offset, mut is_inside) = (i, 0u64, !inner.is_empty());
            for d in 1..map.rank {
                let taken = (rest % extents[d]) as i64;
                rest /= extents[d];
                let at = i64::from(coordinates[d]) + taken * i64::from(map.steps[d]);
                is_inside &= (0..map.extents[d] as i64).contains(&at);
                offset = offset.wrapping_add((at as u64).wrapping_mul(map.strides[d - 1]));
            }
            let inside = if is_inside { inner.clone() } else { 0..0 };
            let begin = (first + inside.start).max(0) as u64 * bytes as u64;
            Row {
                shared: i * pitch,
                global: map.address.wrapping_add(offset).wrapping_add(begin),
                inside: inside.start as usize * bytes..inside.end as usize * bytes,
            }
        };
        Some((0..count).map(row))
    }

    /// Changes bytes of elements that were read to what arrives in shared memory.
    pub fn convert(&self, bytes: &mut [u8]) {
        if !matches!(self.element, Element::F32Ftz | Element::Tf32Ftz) {
            return;
        }
        for element in bytes.chunks_exact_mut(4) {
            // No exponent: what is left is the sign.
            if element[3] & 0x7f == 0 && element[2] & 0x80 == 0 {
                element.copy_from_slice(&[0, 0, 0, element[3] & 0x80]);
            }
        }
    }

    /// The byte that elements outside of the tensor are made of.
    pub fn fill_byte(&self) -> u8 {
        match self.fill {
            Fill::Zero => 0,
            Fill::Nan => 0xff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> TensorMap {
        TensorMap {
            mode: Mode::Tiled([4, 3, 1, 1, 1]),
            element: Element::F32,
            rank: 2,
            address: 0x1000,
            extents: [10, 5, 1, 1, 1],
            strides: [48, 0, 0, 0],
            steps: [1; 5],
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            fill: Fill::Zero,
        }
    }

    fn rows(map: &TensorMap, x: i32, y: i32) -> Vec<(u64, Range<usize>, u64)> {
        let rows = map.rows([x, y, 0, 0, 0]).expect("it is tiled");
        rows.map(|row| (row.shared, row.inside, row.global)).collect()
    }

    #[test]
    fn a_box_inside_is_all_there() {
        let rows = rows(&matrix(), 2, 1);
        let expected =
            [(0, 0..16, 0x1000 + 48 + 8), (16, 0..16, 0x1000 + 96 + 8), (32, 0..16, 0x1000 + 144 + 8)];
        assert_eq!(rows, expected);
        assert_eq!((matrix().box_bytes(), matrix().shared_bytes()), (Some(48), Some(48)));
    }

    #[test]
    fn what_is_outside_is_cut_off() {
        let parts = |x, y| rows(&matrix(), x, y).into_iter().map(|(_, inside, _)| inside).collect::<Vec<_>>();
        assert_eq!(parts(-1, 4), [4..16, 0..0, 0..0]);
        assert_eq!(parts(8, -1), [0..0, 0..8, 0..8]);
        assert_eq!(parts(10, 0), vec![0..0; 3]);
        assert_eq!(parts(i32::MIN, i32::MAX), vec![0..0; 3]);
        assert_eq!(rows(&matrix(), -1, 4)[0].2, 0x1000 + 4 * 48);
    }

    #[test]
    fn steps_leave_elements_out() {
        let map = TensorMap { steps: [3, 2, 1, 1, 1], ..matrix() };
        let expected = [(0, 0..16, 0x1000), (16, 0..16, 0x1000 + 96)];
        assert_eq!(rows(&map, 0, 0), expected);
        assert_eq!(map.box_bytes(), Some(32));
    }

    #[test]
    fn short_rows_of_a_swizzle_take_its_whole_span() {
        let map = TensorMap { swizzle: Swizzle::Bytes64, ..matrix() };
        assert_eq!(rows(&map, 0, 0).iter().map(|row| row.0).collect::<Vec<_>>(), [0, 64, 128]);
        assert_eq!((map.box_bytes(), map.shared_bytes()), (Some(48), Some(192)));
    }

    /// The patterns of the manual's figures: which unit of which row stands first.
    #[test]
    fn swizzles_exchange_units_within_their_span() {
        let first = |swizzle: Swizzle, unit: u64| -> Vec<u64> {
            (0..8).map(|line| swizzle.place(line * 128) % 128 / unit).collect()
        };
        assert_eq!(first(Swizzle::None, 16), [0; 8]);
        assert_eq!(first(Swizzle::Bytes32, 16), [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(first(Swizzle::Bytes64, 16), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(first(Swizzle::Bytes128, 16), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(first(Swizzle::Bytes128By32, 32), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(first(Swizzle::Bytes128By32Flip8, 8), [0, 5, 8, 13, 0, 5, 8, 13]);
        assert_eq!(first(Swizzle::Bytes128By64, 64), [0, 1, 0, 1, 0, 1, 0, 1]);
        for &swizzle in Swizzle::ALL {
            let mut places: Vec<u64> = (0..128).map(|unit| swizzle.place(4096 + unit * 8)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..128).map(|unit| 4096 + unit * 8).collect::<Vec<_>>(), "{swizzle:?}");
        }
    }

    #[test]
    fn subnormal_numbers_are_flushed_where_the_map_says_so() {
        let numbers = [1.0, f32::MIN_POSITIVE, f32::from_bits(0x007f_ffff), f32::from_bits(0x8000_0001)];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number: &f32| number.to_le_bytes()).collect();
        let before = bytes.clone();
        matrix().convert(&mut bytes);
        assert_eq!(bytes, before);
        TensorMap { element: Element::F32Ftz, ..matrix() }.convert(&mut bytes);
        let after: Vec<u32> =
            bytes.chunks(4).map(|number| u32::from_le_bytes(number.try_into().unwrap())).collect();
        assert_eq!(after, [1f32.to_bits(), 0x0080_0000, 0, 0x8000_0000]);
    }

    #[test]
    fn other_maps_are_not_taken() {
        for map in [
            TensorMap { mode: Mode::Im2col(Default::default()), ..matrix() },
            TensorMap { interleave: Interleave::Bytes16, ..matrix() },
            TensorMap { element: Element::U4Align8, ..matrix() },
        ] {
            assert!(map.rows([0; 5]).is_none() && map.box_bytes().is_none());
        }
    }
}
