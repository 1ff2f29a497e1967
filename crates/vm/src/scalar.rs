//! Values that step evenly from lane to lane, kept as a base and two steps.

use crate::mask::{CHUNK_LANES, WARP_LANES};

/// The lanes of a chunk as rows: a row is as wide as the block where that suits, so that both `%tid.x` and `%tid.y`
/// step evenly, else a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Logarithm of the width of a row; one row has all lanes if there is but one.
    shift: u32,
    pub lanes: usize,
    /// The last column and the last row.
    last: (i64, i64),
}

impl Rows {
    /// The rows of chunks of `lanes` lanes in blocks of this extent.
    pub fn of(block: [u32; 3], lanes: usize) -> Rows {
        let width = match block[0] as usize {
            // A row of a block with several.
            n @ (16 | 32 | 64 | 128) if block[1] * block[2] > 1 => n,
            _ => WARP_LANES,
        };
        let shift = if lanes.is_multiple_of(width) { width } else { CHUNK_LANES }.ilog2();
        let rows = Rows { shift, lanes, last: (0, 0) };
        Rows { last: (rows.width() as i64 - 1, rows.count() as i64 - 1), ..rows }
    }

    /// Lanes of a row.
    pub fn width(self) -> usize {
        (1 << self.shift).min(self.lanes)
    }

    /// Number of rows.
    pub fn count(self) -> usize {
        self.lanes >> self.shift | usize::from(self.lanes < 1 << self.shift)
    }

    /// The least and the greatest of `column * step + row * pitch`, for steps well below 2^56.
    #[inline]
    pub fn ends(self, step: i64, pitch: i64) -> (i64, i64) {
        let (a, b) = (step * self.last.0, pitch * self.last.1);
        (a.min(0) + b.min(0), a.max(0) + b.max(0))
    }

    /// Column and row of a lane.
    #[inline]
    pub fn place(self, lane: usize) -> (u64, u64) {
        ((lane & ((1 << self.shift) - 1)) as u64, (lane >> self.shift) as u64)
    }
}

/// The lanes' values are `base + column * step + row * pitch`, cut to the slot's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub base: u64,
    /// From one lane of a row to the next.
    pub step: u64,
    /// From one row to the next.
    pub pitch: u64,
}

impl Scalar {
    pub const fn uniform(base: u64) -> Scalar {
        Scalar { base, step: 0, pitch: 0 }
    }

    /// `base + lane * step` in all lanes.
    pub fn linear(base: u64, step: u64, rows: Rows) -> Scalar {
        Scalar { base, step, pitch: if rows.count() > 1 { step << rows.shift } else { 0 } }
    }

    /// The sum of two.
    #[inline]
    pub fn plus(&self, other: &Scalar) -> Scalar {
        Scalar {
            base: self.base.wrapping_add(other.base),
            step: self.step.wrapping_add(other.step),
            pitch: self.pitch.wrapping_add(other.pitch),
        }
    }

    pub fn is_uniform(self) -> bool {
        self.step | self.pitch == 0
    }

    /// It steps by `step` from each lane to the next, over the ends of rows.
    #[inline]
    pub fn is_linear(self, step: u64, rows: Rows) -> bool {
        self.step == step && (self.pitch == step << rows.shift || rows.count() == 1)
    }

    #[inline]
    pub fn at(self, lane: usize, rows: Rows) -> u64 {
        let (column, row) = rows.place(lane);
        self.base.wrapping_add(self.step.wrapping_mul(column)).wrapping_add(self.pitch.wrapping_mul(row))
    }

    /// The least and the greatest of what is added to the base, if the steps are small.
    #[inline]
    pub fn span(step: i64, pitch: i64, rows: Rows) -> Option<(i64, i64)> {
        const LARGE: i64 = 1 << 48;
        if !(-LARGE..LARGE).contains(&step) || !(-LARGE..LARGE).contains(&pitch) {
            return None;
        }
        Some(rows.ends(step, pitch))
    }
}
