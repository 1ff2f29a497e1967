//! Columns of an image (PTX ISA, "Im2col mode"): the pixels of a bounding box in the order width, height, depth,
//! image. Columns along the width alone ("im2col::w and im2col::w::128 modes") continue from a row of one image to
//! the same row of the next image, and have a halo of the pixels that a filter reads beyond them.

use super::misfit::Misfit;
use super::tile::Place;
use super::{MOST_DIMENSIONS, Mode, TensorMap};

/// Pixels of `.im2col::w::128` (5.5.5.1).
const PIXELS_OF_128: u32 = 128;
/// Pixels of `.im2col::w::128` between halos (5.5.5.3).
const GROUP_OF_128: u32 = 32;
/// Offsets along the width are below this (9.7.9.25.5.2, `im2colInfo`).
const OFFSETS: u16 = 32;

/// Columns along the width, as their instruction names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wide {
    /// The first pixel: its channel, width, height, depth and image, as far as the instruction has these dimensions.
    pub at: [i32; MOST_DIMENSIONS],
    /// Pixels of the halo after each group (`wHalo`).
    pub halo: u16,
    /// Offset of the bounding box and the first pixel along the width (`wOffset`).
    pub offset: u16,
    /// The instruction is `.im2col::w::128`.
    pub of_128: bool,
}

impl Wide {
    /// The number of pixels without halos, and the pixels of a group. A halo follows each group, including the last.
    pub(super) fn pixels(&self, columns: u32) -> (u32, u32) {
        if self.of_128 { (PIXELS_OF_128, GROUP_OF_128) } else { (columns, columns) }
    }

    /// The number of pixels that a copy takes, including halos.
    pub(super) fn taken(&self, columns: u32) -> u64 {
        let (pixels, group) = self.pixels(columns);
        u64::from(pixels) + u64::from(self.halo) * u64::from(pixels.checked_div(group).unwrap_or(1))
    }

    /// Checks that the instruction fits a map of its mode.
    ///
    /// # Errors
    /// When an argument is out of range, or the first pixel is to the right of the bounding box (5.5.5.1: it may lie
    /// outside "only on the left side").
    pub(super) fn fits(&self, extent: u64, upper: i32) -> Result<(), Misfit> {
        let halos = if self.of_128 { 32 } else { 512 };
        if self.halo >= halos {
            return Err(Misfit::Halo(halos));
        }
        if self.offset >= OFFSETS {
            return Err(Misfit::Offset(OFFSETS));
        }
        let last = (extent as i64 - 1).saturating_add(upper.into());
        if i64::from(self.at[1]) > last { Err(Misfit::Right) } else { Ok(()) }
    }
}

/// A walk through the pixels of the bounding box. The box determines the base positions; each pixel is read at its
/// base position plus the instruction's offsets, which may be outside of the image.
pub(super) struct Walk {
    /// The current base position. The innermost coordinate does not change.
    at: [i64; MOST_DIMENSIONS],
    /// The inclusive bounds of the box in the dimensions between the innermost and the outermost.
    lower: [i64; MOST_DIMENSIONS],
    upper: [i64; MOST_DIMENSIONS],
    steps: [i64; MOST_DIMENSIONS],
    offsets: [i64; MOST_DIMENSIONS],
    /// The dimensions within an image that the walk goes along.
    inner: std::ops::Range<usize>,
    /// The outermost dimension, which counts images.
    outer: usize,
    /// The state of the halo.
    halo: Halo,
}

/// The halo: after each group of pixels, the walk reads the pixels that a filter needs beyond the group. The next
/// group then begins where the halo began.
struct Halo {
    /// Pixels of a group.
    group: u64,
    /// Pixels of the halo.
    pixels: u64,
    /// Pixels read since the group began.
    count: u64,
    /// The base position of the next group.
    next: [i64; MOST_DIMENSIONS],
}

impl Walk {
    /// The walk that begins at a place; `None` if the place is not one of columns.
    pub fn new(map: &TensorMap, place: &Place) -> Option<Walk> {
        let outer = map.rank.saturating_sub(1);
        let (columns, first, offsets, inner) = match (place, map.mode) {
            (Place::Columns(first, offsets), Mode::Im2col(columns)) => {
                (columns, first, *offsets, map.within_image())
            }
            // Height and depth do not change.
            (Place::Wide(wide), Mode::Im2colWide { columns, .. }) => {
                (columns, &wide.at, [wide.offset, 0, 0], 1..2)
            }
            _ => return None,
        };
        let first = first.map(i64::from);
        let mut walk = Walk {
            at: first,
            lower: [0; MOST_DIMENSIONS],
            upper: [0; MOST_DIMENSIONS],
            steps: map.steps.map(i64::from),
            offsets: [0; MOST_DIMENSIONS],
            inner,
            outer,
            halo: Halo { group: u64::MAX, pixels: 0, count: 0, next: first },
        };
        for d in walk.inner.clone() {
            let corner = d - walk.inner.start;
            walk.lower[d] = columns.lower[corner].into();
            walk.upper[d] = (map.extents[d] as i64 - 1).saturating_add(columns.upper[corner].into());
            walk.offsets[d] = offsets[corner].into();
        }
        if let Place::Wide(wide) = place {
            // "along only the W dimension is strided" (5.5.5.2)
            walk.steps[outer] = 1;
            (walk.halo.group, walk.halo.pixels) = (wide.pixels(columns.pixels).1.into(), wide.halo.into());
        }
        Some(walk)
    }

    /// The coordinates where the next pixel is read.
    pub fn next_pixel(&mut self) -> [i64; MOST_DIMENSIONS] {
        let read = std::array::from_fn(|d| self.at[d] + self.offsets[d]);
        self.step();
        let halo = &mut self.halo;
        halo.count += 1;
        if halo.count == halo.group {
            halo.next = self.at;
        }
        if halo.count == halo.group.saturating_add(halo.pixels) {
            (self.at, halo.count) = (halo.next, 0);
        }
        read
    }

    /// Advances to the next pixel of the box.
    fn step(&mut self) {
        for d in self.inner.clone() {
            self.at[d] += self.steps[d];
            if self.at[d] <= self.upper[d] {
                return;
            }
            self.at[d] = self.lower[d];
        }
        self.at[self.outer] += self.steps[self.outer];
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Element, Fill, Im2col, Interleave, Swizzle};
    use super::*;

    /// Two images of 4 rows of 5 pixels of 4 one-byte channels, so that an offset identifies the pixel.
    fn images(columns: Im2col, steps: [u32; 5]) -> TensorMap {
        TensorMap {
            mode: Mode::Im2col(columns),
            element: Element::U8,
            rank: 4,
            address: 0,
            extents: [16, 5, 4, 2, 1],
            strides: [16, 80, 320, 0],
            steps,
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            fill: Fill::Zero,
        }
    }

    /// The indices of the pixels that are read; `None` outside of the image.
    fn pixels(map: &TensorMap, at: [i32; 5], offsets: [u16; 3]) -> Vec<Option<u64>> {
        let place = Place::Columns(at, offsets);
        assert_eq!(map.fits(4, &place), Ok(()));
        map.rows(&place).map(|row| (!row.inside.is_empty()).then_some(row.global / 16)).collect()
    }

    fn numbers(all: &[i64]) -> Vec<Option<u64>> {
        all.iter().map(|&number| u64::try_from(number).ok()).collect()
    }

    #[test]
    fn pixels_follow_each_other_to_the_next_image() {
        let map = images(Im2col { channels: 16, pixels: 25, ..Default::default() }, [1; 5]);
        let expected: Vec<i64> = (7..32).collect();
        assert_eq!(pixels(&map, [0, 2, 1, 0, 0], [0; 3]), numbers(&expected));
        assert_eq!((map.row_bytes(), map.box_bytes(&Place::Columns([0; 5], [0; 3]))), (16, 400));
    }

    #[test]
    fn corners_make_the_box_smaller() {
        // A 3 by 2 filter fits at 3 pixels of a row and in 3 rows.
        let corners = Im2col { upper: [-2, -1, 0], channels: 16, pixels: 10, ..Default::default() };
        let map = images(corners, [1; 5]);
        assert_eq!(pixels(&map, [0; 5], [0; 3]), numbers(&[0, 1, 2, 5, 6, 7, 10, 11, 12, 20]));
        assert_eq!(pixels(&map, [0; 5], [2, 1, 0]), numbers(&[7, 8, 9, 12, 13, 14, 17, 18, 19, 27]));
    }

    #[test]
    fn padding_is_not_in_the_image() {
        let corners = Im2col { lower: [-1, -1, 0], upper: [-1, -1, 0], channels: 16, pixels: 7 };
        let map = images(corners, [1; 5]);
        assert_eq!(pixels(&map, [0, -1, -1, 1, 0], [0, 1, 0]), numbers(&[-1, 20, 21, 22, 23, -1, 25]));
    }

    #[test]
    fn steps_go_from_the_corner_in_every_row() {
        let map = images(Im2col { channels: 16, pixels: 7, ..Default::default() }, [1, 2, 3, 1, 1]);
        assert_eq!(pixels(&map, [0; 5], [0; 3]), numbers(&[0, 2, 4, 15, 17, 19, 20]));
    }

    #[test]
    fn channels_are_cut_off() {
        let map = images(Im2col { channels: 16, pixels: 1, ..Default::default() }, [1; 5]);
        let rows: Vec<_> = map.rows(&Place::Columns([12, 3, 0, 0, 0], [0; 3])).collect();
        assert_eq!((rows[0].inside.clone(), rows[0].global), (0..4, 3 * 16 + 12));
    }

    /// The map of one of the manual's examples, with extents from the outermost on. It copies all channels of a
    /// pixel.
    fn wide([n, h, w]: [u64; 3], [lower, upper]: [i32; 2], step: u32, w128: bool) -> TensorMap {
        let columns = Im2col {
            lower: [lower, 0, 0],
            upper: [upper, 0, 0],
            channels: 16,
            pixels: if w128 { 0 } else { 128 },
        };
        TensorMap {
            mode: Mode::Im2colWide { columns, w128 },
            extents: [16, w, h, n, 1],
            strides: [16, 16 * w, 16 * w * h, 0],
            steps: [1, step, 3, 3, 1],
            ..images(columns, [1; 5])
        }
    }

    /// The width and the image of every pixel of a copy in the row at a height; the width is `None` outside of the
    /// tensor.
    fn widths(map: &TensorMap, wide: Wide) -> Vec<Option<(u64, u64)>> {
        let place = Place::Wide(wide);
        assert_eq!(map.fits(4, &place), Ok(()));
        let rows: Vec<_> = map.rows(&place).collect();
        assert_eq!(map.box_bytes(&place), 16 * rows.len() as u64);
        rows.into_iter()
            .enumerate()
            .map(|(i, row)| {
                assert_eq!(row.shared, 16 * i as u64);
                let (number, [w, h]) = (row.global / 16, [map.extents[1], map.extents[2]]);
                assert!(row.inside.is_empty() || number / w % h == wide.at[2] as u64);
                (!row.inside.is_empty()).then_some((number % w, number / (w * h)))
            })
            .collect()
    }

    fn at(w: i32, halo: u16, offset: u16, of_128: bool) -> Wide {
        Wide { at: [0, w, 2, 7, 0], halo, offset, of_128 }
    }

    /// 5.5.5.3: 128 pixels from the fourth one of a row on, then the two that a filter of three reads beyond them.
    #[test]
    fn a_halo_follows_the_pixels_of_the_width() {
        let row = |image: u64| (0..7).map(move |w| Some((w, image)));
        let expected: Vec<_> = (7..).flat_map(row).skip(3).take(130).collect();
        assert_eq!(widths(&wide([128, 9, 7], [0, 0], 1, false), at(3, 2, 0, false)), expected);
    }

    /// 5.5.5.3: the same with `.w::128`, where each group of 32 pixels has its own halo.
    #[test]
    fn a_halo_follows_every_32_of_128() {
        let row = |image: u64| (0..7).map(move |w| Some((w, image)));
        let pixels: Vec<_> = (7..).flat_map(row).skip(3).take(130).collect();
        let expected: Vec<_> =
            (0..4).flat_map(|group| pixels[32 * group..32 * group + 34].to_vec()).collect();
        let found = widths(&wide([128, 9, 7], [0, 0], 1, true), at(3, 2, 0, true));
        assert_eq!(found, expected);
        assert_eq!((found.len(), found[31], found[34]), (136, Some((6, 11)), Some((0, 12))));
    }

    /// 5.5.5.4, example 1: pixels at odd widths, with their neighbours at even ones; a filter of three with a stride
    /// of two.
    #[test]
    fn an_offset_moves_the_box_and_the_first_pixel() {
        let map = wide([128, 9, 67], [-1, 0], 2, false);
        let outputs = (0..129).map(|i| (i % 34, 7 + i / 34));
        let odd: Vec<_> = outputs.clone().map(|(o, image)| (o > 0).then(|| (2 * o - 1, image))).collect();
        assert_eq!(widths(&map, at(-1, 1, 0, false)), odd);
        let even: Vec<_> = outputs.take(128).map(|(o, image)| Some((2 * o, image))).collect();
        assert_eq!(widths(&map, at(-1, 0, 1, false)), even);
    }

    /// 5.5.5.4, example 2: three buffers for a stride of three, one for each tap of the filter.
    #[test]
    fn buffers_have_what_taps_read() {
        let map = wide([128, 9, 7], [-1, -1], 3, false);
        for offset in 0..3u64 {
            let tap: Vec<_> = (0..128)
                .map(|i| ((3 * (i % 3) + offset).wrapping_sub(1), 7 + i / 3))
                .map(|(w, image)| (w < 7).then_some((w, image)))
                .collect();
            assert_eq!(widths(&map, at(-1, 0, offset as u16, false)), tap);
        }
    }

    /// 5.5.5.1
    #[test]
    fn the_first_pixel_may_be_to_the_left_of_the_box() {
        let map = wide([8, 3, 7], [2, -1], 1, false);
        let found = widths(&map, Wide { at: [0, -1, 2, 7, 0], halo: 0, offset: 0, of_128: false });
        let expected: Vec<_> = (-1..=5).map(|w| u64::try_from(w).ok().map(|w| (w, 7))).collect();
        assert_eq!(found[..8], [&expected[..], &[None]].concat());
        let right = Place::Wide(at(6, 0, 0, false));
        assert_eq!(map.fits(4, &right), Err(Misfit::Right));
        assert_eq!(map.fits(4, &Place::Wide(at(5, 0, 31, false))), Ok(()));
    }

    #[test]
    fn arguments_have_ranges() {
        let (w, of_128) = (wide([8, 3, 7], [0, 0], 1, false), wide([8, 3, 7], [0, 0], 1, true));
        for (map, place, expected) in [
            (&w, at(0, 511, 31, false), Ok(())),
            (&w, at(0, 512, 0, false), Err(Misfit::Halo(512))),
            (&w, at(0, 0, 32, false), Err(Misfit::Offset(32))),
            (&of_128, at(0, 31, 0, true), Ok(())),
            (&of_128, at(0, 32, 0, true), Err(Misfit::Halo(32))),
            (&of_128, at(0, 0, 0, false), Err(Misfit::Mode)),
            (&w, at(0, 0, 0, true), Err(Misfit::Mode)),
        ] {
            assert_eq!(map.fits(4, &Place::Wide(place)), expected);
        }
        assert_eq!(w.fits(4, &Place::Columns([0; 5], [0; 3])), Err(Misfit::Mode));
    }
}
