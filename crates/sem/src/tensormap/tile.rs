//! The effect of a copy: which bytes of the tensor correspond to which bytes of shared memory.

use std::ops::Range;

use crate::format::{OUT_OF_BOUNDS, TF32};

use super::columns::{self, Wide};
use super::misfit::Misfit;
use super::{Element, Fill, Im2col, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap};

/// The part of the tensor that an instruction addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A box whose first element has these coordinates. They may be outside of the tensor.
    Tile([i32; MOST_DIMENSIONS]),
    /// Columns from the pixel with these coordinates on. The offsets are added to the inner coordinates
    /// (9.7.9.25.5.2, `im2colInfo`).
    Columns([i32; MOST_DIMENSIONS], [u16; 3]),
    /// Columns along the width (`.im2col::w`, `.im2col::w::128`).
    Wide(Wide),
    /// Four rows of a matrix, each as wide as the box: the first column, then the four row indices (`.tile::gather4`,
    /// `.tile::scatter4`).
    Rows([i32; MOST_DIMENSIONS]),
}

/// Bytes that a tensor's memory is made of: where a copy may begin, and what a store writes as a whole.
const UNIT: u64 = 16;
/// What [`Fill::Nan`] consists of, whatever the type.
const FILL_NAN: [u8; 2] = OUT_OF_BOUNDS.to_le_bytes();

/// A line of a box along the innermost dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Offset of the line in shared memory from the beginning of the box, before swizzling.
    pub shared: u64,
    /// The bytes of the line that are inside of the tensor.
    pub inside: Range<usize>,
    /// Bytes behind these that a store or a reduction writes, too: it writes whole units of 16 bytes, as an H100
    /// does.
    pub tail: usize,
    /// The global address of these bytes.
    pub global: u64,
}

impl Swizzle {
    /// Bytes within which units are permuted.
    pub fn span(self) -> u64 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            _ => 128,
        }
    }

    /// Bytes that a permutation moves together.
    fn unit(self) -> u64 {
        match self {
            Swizzle::None => u64::MAX,
            Swizzle::Bytes32 | Swizzle::Bytes64 | Swizzle::Bytes128 => 16,
            Swizzle::Bytes128By32 => 32,
            Swizzle::Bytes128By32Flip8 => 8,
            Swizzle::Bytes128By64 => 64,
        }
    }

    /// The swizzled position of an address of shared memory. It depends on the address alone, by lines of 128 bytes.
    /// Each 8 bytes stay together.
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

impl Element {
    /// Bytes of a group of 16 elements in global and in shared memory, if they differ.
    fn group(self) -> Option<(usize, usize)> {
        match self {
            Element::U4Align16 => Some((8, 16)),
            Element::U6Align16 => Some((12, 16)),
            _ => None,
        }
    }

    /// The first coordinate must be a multiple of this.
    fn start(self) -> u32 {
        match self {
            Element::U4Align16 | Element::U6Align16 => 128,
            Element::U4Align8 => 2,
            _ => 1,
        }
    }

    /// Bytes of `elements` elements in global memory. Their bits must fill whole bytes.
    pub(super) fn bytes_of(self, elements: u64) -> u64 {
        elements.wrapping_mul(self.bits().into()) / 8
    }
}

impl TensorMap {
    /// Checks that the map fits an instruction with `rank` coordinates and this place.
    ///
    /// # Errors
    /// If not, why.
    pub fn fits(&self, rank: usize, place: &Place) -> Result<(), Misfit> {
        let first = match (place, self.mode) {
            _ if rank != self.rank => return Err(Misfit::Rank(self.rank)),
            (Place::Wide(wide), Mode::Im2colWide { columns, w128 }) if wide.of_128 == w128 => {
                wide.fits(self.extents[1], columns.upper[0])?;
                wide.at[0]
            }
            (Place::Rows(_), Mode::Tiled(extents)) if extents[1] != 1 => return Err(Misfit::Box),
            (Place::Tile(at) | Place::Rows(at), Mode::Tiled(_))
            | (Place::Columns(at, _), Mode::Im2col(_)) => at[0],
            _ => return Err(Misfit::Mode),
        };
        let is_asked = matches!(place, Place::Tile(_) | Place::Columns(..))
            && !self.element.is_packed()
            && self.rank >= 3;
        if self.interleave != Interleave::None && !is_asked {
            return Err(Misfit::Interleaved);
        }
        let strides = &self.strides[..self.rank - 1];
        if !self.address.is_multiple_of(16) || !strides.iter().all(|stride| stride.is_multiple_of(16)) {
            return Err(Misfit::Alignment);
        }
        let unit = self.element.start();
        if first % unit as i32 != 0 {
            return Err(Misfit::Start(unit));
        }
        self.fits_units(place, first)?;
        match (place, self.mode) {
            (Place::Columns(at, _), Mode::Im2col(columns)) => self.begins_in(at, &columns),
            _ => Ok(()),
        }
    }

    /// Checks that the first element is at a multiple of 16 bytes, as each group of interleaved channels is. An H100
    /// was asked about tiles and columns; for other places and for packed elements nothing but the manual's
    /// requirement is known.
    fn fits_units(&self, place: &Place, first: i32) -> Result<(), Misfit> {
        let size = self.element.bits() / 8;
        let is_known = matches!(place, Place::Tile(_) | Place::Columns(..))
            && self.interleave == Interleave::None
            && size != 0;
        match is_known && i64::from(first) * i64::from(size) % UNIT as i64 != 0 {
            true => Err(Misfit::Unaligned { first, size }),
            false => Ok(()),
        }
    }

    /// Checks that the first pixel of columns is in the bounding box.
    fn begins_in(&self, at: &[i32; MOST_DIMENSIONS], columns: &Im2col) -> Result<(), Misfit> {
        let within = self.within_image();
        let is_outside = |d: &usize| {
            let corner = d - within.start;
            let last = (self.extents[*d] as i64 - 1).saturating_add(columns.upper[corner].into());
            !(i64::from(columns.lower[corner])..=last).contains(&at[*d].into())
        };
        within.clone().find(is_outside).map_or(Ok(()), |d| Err(Misfit::Outside(d)))
    }

    /// The dimensions of width, height and depth. Without interleaved channels these are inside of the channels, else
    /// the groups of channels come behind them.
    pub(super) fn within_image(&self) -> Range<usize> {
        let first = usize::from(self.interleave == Interleave::None);
        first..first + self.rank.saturating_sub(2)
    }

    /// The bytes of a group of interleaved channels, which have no dimension of their own.
    fn group(&self) -> Option<u64> {
        match self.interleave {
            Interleave::None => None,
            Interleave::Bytes16 => Some(16),
            Interleave::Bytes32 => Some(32),
        }
    }

    /// Elements that a box takes along each dimension; of groups of interleaved channels it takes one. For columns:
    /// elements along the innermost dimension, and the number of columns.
    fn taken(&self) -> [u64; MOST_DIMENSIONS] {
        match self.mode {
            Mode::Tiled(extents) => {
                let is_interleaved = self.interleave != Interleave::None;
                let step = |i: usize| if i == 0 && !is_interleaved { 1 } else { self.steps[i] };
                std::array::from_fn(|i| match i < self.rank && !(is_interleaved && i + 2 == self.rank) {
                    true => extents[i].div_ceil(step(i)).into(),
                    false => 1,
                })
            }
            Mode::Im2col(columns) | Mode::Im2colWide { columns, .. } => {
                [columns.channels.into(), columns.pixels.into(), 1, 1, 1]
            }
        }
    }

    /// Bytes of one element; 0 for packed elements.
    pub fn element_bytes(&self) -> usize {
        (self.element.bits() / 8) as usize
    }

    /// Bytes of a line of a box in global memory: a group, with interleaved channels.
    pub fn row_bytes(&self) -> usize {
        self.group().unwrap_or_else(|| self.element.bytes_of(self.taken()[0])) as usize
    }

    /// Bytes of a line in shared memory, including the gaps between groups.
    fn shared_row_bytes(&self) -> u64 {
        let bytes = self.row_bytes() as u64;
        self.element.group().map_or(bytes, |(global, shared)| bytes / global as u64 * shared as u64)
    }

    /// The number of lines at a place.
    fn lines(&self, place: &Place) -> u64 {
        match place {
            Place::Rows(at) => at.len() as u64 - 1,
            Place::Wide(wide) => wide.taken(self.taken()[1] as u32),
            Place::Tile(_) if self.group().is_some() => self.taken().iter().product(),
            _ => self.taken().iter().skip(1).product(),
        }
    }

    /// Bytes that a copy moves, including those outside of the tensor: the byte count that it reports to an mbarrier
    /// object.
    pub fn box_bytes(&self, place: &Place) -> u64 {
        self.lines(place) * self.shared_row_bytes()
    }

    /// The stride of lines in shared memory: a multiple of 16 bytes, and at least the swizzle's span. Groups of
    /// interleaved channels have no gaps between them.
    fn pitch(&self) -> u64 {
        self.group().unwrap_or_else(|| self.shared_row_bytes().next_multiple_of(16).max(self.swizzle.span()))
    }

    /// Bytes of shared memory that a copy occupies, in whole spans.
    pub fn shared_bytes(&self, place: &Place) -> u64 {
        (self.lines(place) * self.pitch()).next_multiple_of(self.swizzle.span().max(16))
    }

    /// The lines at a place, which must [fit](TensorMap::fits) the map.
    pub fn rows(&self, place: &Place) -> impl Iterator<Item = Row> + use<> {
        let (map, pitch, place) = (*self, self.pitch(), *place);
        let mut walk = columns::Walk::new(self, &place);
        (0..self.lines(&place)).map(move |i| {
            let at = match (&place, &mut walk) {
                (Place::Columns(..) | Place::Wide(_), Some(walk)) => walk.next_pixel(),
                (Place::Columns(at, _) | Place::Wide(Wide { at, .. }) | Place::Tile(at), _) => {
                    map.line(at, i)
                }
                (Place::Rows(at), _) => [at[0].into(), at[i as usize + 1].into(), 0, 0, 0],
            };
            map.row(at, i * pitch)
        })
    }

    /// The coordinates of the first element of line `index` of the box that begins at `first`.
    fn line(&self, first: &[i32; MOST_DIMENSIONS], index: u64) -> [i64; MOST_DIMENSIONS] {
        let (taken, mut rest) = (self.taken(), index);
        let mut at = first.map(i64::from);
        let along = usize::from(self.group().is_none());
        for ((at, step), taken) in at.iter_mut().zip(self.steps).zip(taken).skip(along) {
            *at += (rest % taken) as i64 * i64::from(step);
            rest /= taken;
        }
        at
    }

    /// A line whose first element has these coordinates.
    fn row(&self, at: [i64; MOST_DIMENSIONS], shared: u64) -> Row {
        if let Some(group) = self.group() {
            return self.group_row(at, group, shared);
        }
        let length = self.taken()[0] as i64;
        let end = (self.extents[0] as i64).saturating_sub(at[0]).clamp(0, length);
        let mut inside = (-at[0]).clamp(0, length)..end;
        let mut offset = 0u64;
        let outer = at[1..self.rank].iter().zip(&self.extents[1..]).zip(&self.strides);
        for ((&at, &extent), &stride) in outer {
            if !(0..extent as i64).contains(&at) {
                inside = 0..0;
            }
            offset = offset.wrapping_add((at as u64).wrapping_mul(stride));
        }
        if inside.is_empty() {
            return Row { shared, inside: 0..0, tail: 0, global: self.address };
        }
        let begin = self.element.bytes_of((at[0] + inside.start) as u64);
        let bytes = |elements: i64| self.element.bytes_of(elements as u64) as usize;
        let global = self.address.wrapping_add(offset).wrapping_add(begin);
        let inside = bytes(inside.start)..bytes(inside.end);
        let end = global.wrapping_add(inside.len() as u64);
        let whole = end.next_multiple_of(UNIT).wrapping_sub(end) as usize;
        Row { shared, global, tail: whole.min(bytes(length) - inside.end), inside }
    }

    /// A group of interleaved channels at these coordinates.
    fn group_row(&self, at: [i64; MOST_DIMENSIONS], group: u64, shared: u64) -> Row {
        let all = at.iter().zip(&self.extents).zip(std::iter::once(&group).chain(&self.strides));
        let (mut global, mut is_inside) = (self.address, true);
        for ((&at, &extent), &stride) in all.take(self.rank) {
            is_inside &= (0..extent as i64).contains(&at);
            global = global.wrapping_add((at as u64).wrapping_mul(stride));
        }
        match is_inside {
            true => Row { shared, inside: 0..group as usize, tail: 0, global },
            false => Row { shared, inside: 0..0, tail: 0, global: self.address },
        }
    }

    /// Calls `f` for each piece of a line that stays together in shared memory at `address`: with the piece's range
    /// in the line, and its swizzled address.
    pub fn each_piece(&self, address: u64, mut f: impl FnMut(Range<usize>, u64)) {
        let bytes = self.row_bytes();
        let (from, to) = self.element.group().unwrap_or((bytes, bytes));
        let unit = self.swizzle.unit();
        for group in 0..bytes.checked_div(from).unwrap_or(0) {
            let (mut at, end) = (group * from, (group + 1) * from);
            let mut place = address.wrapping_add((group * to) as u64);
            while at < end {
                let left = unit - place % unit;
                let count = left.min((end - at) as u64);
                f(at..at + count as usize, self.swizzle.place(place));
                at += count as usize;
                place = place.wrapping_add(count);
            }
        }
    }

    /// Converts elements from their global to their shared representation: `.tf32` and `.tf32.ftz` are rounded to the
    /// nearest number of 19 bits, subnormal ones, too. An H100 does not flush on loads.
    pub fn convert(&self, bytes: &mut [u8]) {
        if !matches!(self.element, Element::Tf32 | Element::Tf32Ftz) {
            return;
        }
        for element in bytes.chunks_exact_mut(4) {
            let number = u32::from_le_bytes([element[0], element[1], element[2], element[3]]);
            let rounded = match number & 0x7fff_ffff > 0x7f80_0000 {
                true => TF32.nan as u32,
                false => number.wrapping_add(0x1000) & !0x1fff,
            };
            element.copy_from_slice(&rounded.to_le_bytes());
        }
    }

    /// Fills elements outside of the tensor.
    pub fn fill(&self, bytes: &mut [u8]) {
        match self.fill {
            Fill::Zero => bytes.fill(0),
            Fill::Nan => bytes.chunks_mut(2).for_each(|part| part.copy_from_slice(&FILL_NAN[..part.len()])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: Place = Place::Tile([0; MOST_DIMENSIONS]);

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
        let place = Place::Tile([x, y, 0, 0, 0]);
        assert_eq!(map.fits(2, &place), Ok(()));
        map.rows(&place).map(|row| (row.shared, row.inside, row.global)).collect()
    }

    #[test]
    fn a_box_inside_is_all_there() {
        let rows = rows(&matrix(), 4, 1);
        let expected =
            [(0, 0..16, 0x1000 + 48 + 16), (16, 0..16, 0x1000 + 96 + 16), (32, 0..16, 0x1000 + 144 + 16)];
        assert_eq!(rows, expected);
        assert_eq!((matrix().box_bytes(&TILE), matrix().shared_bytes(&TILE)), (48, 48));
    }

    #[test]
    fn what_is_outside_is_cut_off() {
        let parts = |x, y| rows(&matrix(), x, y).into_iter().map(|(_, inside, _)| inside).collect::<Vec<_>>();
        assert_eq!(parts(-4, 4), vec![0..0; 3]);
        assert_eq!(parts(8, -1), [0..0, 0..8, 0..8]);
        assert_eq!(parts(12, 0), vec![0..0; 3]);
        assert_eq!(parts(i32::MIN, i32::MAX - 3), vec![0..0; 3]);
        let wide = TensorMap { mode: Mode::Tiled([8, 3, 1, 1, 1]), ..matrix() };
        assert_eq!(rows(&wide, -4, 4)[0], (0, 16..32, 0x1000 + 4 * 48));
    }

    #[test]
    fn a_copy_begins_at_a_multiple_of_16_bytes() {
        let fits = |map: &TensorMap, x| map.fits(2, &Place::Tile([x, 0, 0, 0, 0]));
        assert_eq!(fits(&matrix(), 2), Err(Misfit::Unaligned { first: 2, size: 4 }));
        assert_eq!(fits(&matrix(), -1), Err(Misfit::Unaligned { first: -1, size: 4 }));
        let bytes = TensorMap { element: Element::U8, mode: Mode::Tiled([16, 3, 1, 1, 1]), ..matrix() };
        assert_eq!(fits(&bytes, 8), Err(Misfit::Unaligned { first: 8, size: 1 }));
        assert_eq!(fits(&bytes, -16), Ok(()));
        let text = Misfit::Unaligned { first: 2, size: 4 }.to_string();
        assert!(text.contains("2, times 4 bytes") && text.contains("multiple of 4"), "{text}");
    }

    #[test]
    fn stores_write_whole_units_of_16_bytes() {
        let tails = |map: &TensorMap, x| -> Vec<_> {
            map.rows(&Place::Tile([x, 0, 0, 0, 0])).map(|row| (row.inside, row.tail)).collect()
        };
        assert_eq!(tails(&matrix(), 8), vec![(0..8, 8); 3]);
        assert_eq!(tails(&matrix(), 4), vec![(0..16, 0); 3]);
        assert_eq!(tails(&matrix(), 12), vec![(0..0, 0); 3]);
    }

    /// As in `NC/8DHWC8`: width, groups of channels, images.
    #[test]
    fn one_group_of_interleaved_channels_is_taken() {
        let map = TensorMap {
            element: Element::F16,
            rank: 3,
            mode: Mode::Tiled([8, 4, 2, 1, 1]),
            extents: [6, 3, 2, 1, 1],
            strides: [96, 288, 0, 0],
            steps: [2, 1, 1, 1, 1],
            interleave: Interleave::Bytes16,
            swizzle: Swizzle::Bytes32,
            ..matrix()
        };
        let place = Place::Tile([-1, 2, 0, 0, 0]);
        assert_eq!(map.fits(3, &place), Ok(()));
        let found: Vec<_> = map.rows(&place).map(|row| (row.shared, row.inside, row.global)).collect();
        let of = |image: u64| {
            let at = move |w: u64| 0x1000 + 16 * w + 96 * 2 + 288 * image;
            [(0..0, 0x1000), (0..16, at(1)), (0..16, at(3)), (0..16, at(5))]
        };
        let expected: Vec<_> =
            (0..2).flat_map(of).enumerate().map(|(i, (r, g))| (16 * i as u64, r, g)).collect();
        assert_eq!((found, map.box_bytes(&place)), (expected, 128));
        assert_eq!(map.fits(3, &Place::Rows([0; 5])), Err(Misfit::Box));
    }

    #[test]
    fn four_rows_are_taken_wherever_they_are() {
        let map = TensorMap { mode: Mode::Tiled([4, 1, 1, 1, 1]), swizzle: Swizzle::Bytes32, ..matrix() };
        let place = Place::Rows([8, 3, 5, 0, -1]);
        assert_eq!(map.fits(2, &place), Ok(()));
        let rows: Vec<_> = map.rows(&place).map(|row| (row.shared, row.inside, row.global)).collect();
        let outside = |at| (at, 0..0, 0x1000);
        assert_eq!(rows, [(0, 0..8, 0x1000 + 144 + 32), outside(32), (64, 0..8, 0x1000 + 32), outside(96)]);
        assert_eq!((map.box_bytes(&place), map.shared_bytes(&place)), (64, 128));
        assert_eq!(matrix().fits(2, &place), Err(Misfit::Box));
    }

    #[test]
    fn steps_leave_elements_out() {
        let map = TensorMap { steps: [3, 2, 1, 1, 1], ..matrix() };
        let expected = [(0, 0..16, 0x1000), (16, 0..16, 0x1000 + 96)];
        assert_eq!(rows(&map, 0, 0), expected);
        assert_eq!(map.box_bytes(&TILE), 32);
    }

    #[test]
    fn short_rows_of_a_swizzle_take_its_whole_span() {
        let map = TensorMap { swizzle: Swizzle::Bytes64, ..matrix() };
        assert_eq!(rows(&map, 0, 0).iter().map(|row| row.0).collect::<Vec<_>>(), [0, 64, 128]);
        assert_eq!((map.box_bytes(&TILE), map.shared_bytes(&TILE)), (48, 192));
    }

    /// The patterns of the manual's figures: which unit is the first in which row.
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

    fn pieces(map: &TensorMap, address: u64) -> Vec<(Range<usize>, u64)> {
        let mut all = Vec::new();
        map.each_piece(address, |part, at| all.push((part, at)));
        all
    }

    #[test]
    fn pieces_of_a_line_are_byte_by_byte_where_the_swizzle_puts_them() {
        for &swizzle in Swizzle::ALL {
            for address in (0..2048).step_by(128) {
                let map = TensorMap { swizzle, mode: Mode::Tiled([32, 1, 1, 1, 1]), ..matrix() };
                let places: Vec<u64> = pieces(&map, address)
                    .into_iter()
                    .flat_map(|(part, at)| (0..part.len() as u64).map(move |byte| at + byte))
                    .collect();
                let expected: Vec<u64> = (0..128).map(|byte| swizzle.place(address + byte)).collect();
                assert_eq!(places, expected, "{swizzle:?} at {address}");
            }
        }
        assert_eq!(pieces(&matrix(), 384), vec![(0..16, 384)]);
    }

    #[test]
    fn groups_of_less_than_a_byte_have_gaps_behind_them() {
        let packed = |element| TensorMap {
            element,
            mode: Mode::Tiled([128, 2, 1, 1, 1]),
            extents: [256, 4, 1, 1, 1],
            strides: [256, 0, 0, 0],
            ..matrix()
        };
        let of_6 = packed(Element::U6Align16);
        assert_eq!((of_6.row_bytes(), of_6.box_bytes(&TILE), of_6.shared_bytes(&TILE)), (96, 256, 256));
        assert_eq!(pieces(&of_6, 0)[..2], [(0..12, 0), (12..24, 16)]);
        assert_eq!(rows(&of_6, 128, 3), [(0, 0..96, 0x1000 + 3 * 256 + 96), (128, 0..0, 0x1000)]);
        let of_4 = packed(Element::U4Align16);
        assert_eq!((of_4.row_bytes(), of_4.box_bytes(&TILE)), (64, 256));
        assert_eq!(pieces(&of_4, 128)[7], (56..64, 128 + 112));
        assert_eq!(of_4.fits(2, &Place::Tile([64, 0, 0, 0, 0])), Err(Misfit::Start(128)));
        let without = packed(Element::U4Align8);
        assert_eq!((without.row_bytes(), without.box_bytes(&TILE)), (64, 128));
        assert_eq!(rows(&without, -2, 0)[0], (0, 1..64, 0x1000));
        assert_eq!(without.fits(2, &Place::Tile([3, 0, 0, 0, 0])), Err(Misfit::Start(2)));
    }

    #[test]
    fn tf32_is_rounded() {
        let convert = |element, numbers: [u32; 6]| {
            let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            TensorMap { element, ..matrix() }.convert(&mut bytes);
            let numbers = bytes.chunks(4).map(|number| u32::from_le_bytes(number.try_into().unwrap()));
            numbers.collect::<Vec<u32>>()
        };
        // From the record of an H100.
        let numbers = [0xac68_b9c6, 0x0e31_4015, 0x807f_ffff, 0x0000_0001, 0xff80_70b1, 0xff80_0000];
        let rounded = [0xac68_c000, 0x0e31_4000, 0x8080_0000, 0, 0x7fff_e000, 0xff80_0000];
        assert_eq!(convert(Element::F32Ftz, numbers), numbers);
        assert_eq!(convert(Element::Tf32, numbers), rounded);
        assert_eq!(convert(Element::Tf32Ftz, numbers), rounded);
    }

    #[test]
    fn other_maps_do_not_fit() {
        let place = Place::Tile([0; 5]);
        let image = TensorMap { mode: Mode::Im2col(Default::default()), ..matrix() };
        let wide = Mode::Im2colWide { columns: Default::default(), w128: false };
        for (map, rank, why) in [
            (matrix(), 3, Misfit::Rank(2)),
            (image, 2, Misfit::Mode),
            (TensorMap { mode: wide, ..matrix() }, 2, Misfit::Mode),
            (
                TensorMap { interleave: Interleave::Bytes16, element: Element::U4Align8, ..matrix() },
                2,
                Misfit::Interleaved,
            ),
        ] {
            assert_eq!(map.fits(rank, &place), Err(why));
        }
        assert_eq!(matrix().fits(2, &Place::Columns([0; 5], [0; 3])), Err(Misfit::Mode));
    }
}
