//! Columns of an image (PTX ISA, "Im2col mode"): pixel after pixel of a bounding box, the width first, then height, depth and image.

use super::tile::Place;
use super::{MOST_DIMENSIONS, Mode, TensorMap};

/// A walk through the pixels of the bounding box. The box says where pixels begin; what is read lies so far from there as the
/// instruction's offsets say, in the image or not.
pub(super) struct Walk {
    /// Where it is. The innermost dimension stays.
    at: [i64; MOST_DIMENSIONS],
    /// The ends of the box in the dimensions between the innermost and the outermost, both within it.
    lower: [i64; MOST_DIMENSIONS],
    upper: [i64; MOST_DIMENSIONS],
    steps: [i64; MOST_DIMENSIONS],
    offsets: [i64; MOST_DIMENSIONS],
    rank: usize,
}

impl Walk {
    /// The walk from a place on, if it is one for columns.
    pub fn new(map: &TensorMap, place: &Place) -> Option<Walk> {
        let (Place::Columns(first, offsets), Mode::Im2col(columns)) = (place, map.mode) else { return None };
        let mut walk = Walk {
            at: first.map(i64::from),
            lower: [0; MOST_DIMENSIONS],
            upper: [0; MOST_DIMENSIONS],
            steps: map.steps.map(i64::from),
            offsets: [0; MOST_DIMENSIONS],
            rank: map.rank,
        };
        for d in 1..map.rank.saturating_sub(1) {
            walk.lower[d] = columns.lower[d - 1].into();
            walk.upper[d] = (map.extents[d] as i64 - 1).saturating_add(columns.upper[d - 1].into());
            walk.offsets[d] = offsets[d - 1].into();
        }
        Some(walk)
    }

    /// Where the next pixel is read.
    pub fn next_pixel(&mut self) -> [i64; MOST_DIMENSIONS] {
        let read = std::array::from_fn(|d| self.at[d] + self.offsets[d]);
        let last = self.rank - 1;
        for d in 1..self.rank {
            self.at[d] += self.steps[d];
            if d == last || self.at[d] <= self.upper[d] {
                break;
            }
            self.at[d] = self.lower[d];
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Element, Fill, Im2col, Interleave, Swizzle};
    use super::*;

    /// Two images of 4 rows of 5 pixels of 4 channels: bytes, so that a place tells itself.
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

    /// The pixels that are read, as their numbers; nothing where there is none.
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
        // A filter of 3 by 2 begins in 3 pixels of a row and in 3 rows.
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
}
