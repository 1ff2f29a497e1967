//! Values that step evenly from lane to lane, kept as a base and three steps.
//!
//! Such a value is `base + column * step + row * pitch + block * block_stride` ([`Affine`]); its slot keeps these four
//! numbers. Affine forms are found while the kernel runs, not by analysis: an operation derives the affine form of its
//! result from those of its sources (`code/linear.rs`). So uniform work runs once for the gang, index arithmetic stays
//! affine up to the address, and a load or store at an affine address needs one bounds check and one copy. A slot's
//! array is filled only when an operation reads it (`registers.rs`).
//!
//! Narrowest tests: unit tests here, in `code/linear.rs` and in `registers/tests.rs`; `tests/run`: `planes`,
//! `rows_with_strides`, `patterns_of_groups`.

use machine::mask::{GANG_LANES, GROUP_LANES, WARP_LANES};

/// The most lanes that affine forms are computed for: those of many gangs (`exec/coarse/mod.rs`).
pub(crate) const MOST_LANES: usize = 1 << 16;

/// The lanes of a gang as rows of blocks. A row is as wide as the block if that width suits, so that both `%tid.x` and `%tid.y`
/// step evenly; otherwise it is a warp. In a CTA batch whose blocks are no multiple of a warp, each block is one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneRows {
    /// Binary logarithm of the width of a row. A single row covers all lanes.
    shift: u32,
    pub lanes: usize,
    width: usize,
    /// Rows of one block.
    in_block: usize,
    block_lanes: usize,
    /// The last column of a row, the last row of a block, and the last block.
    last: (i64, i64, i64),
    /// `2^INVERSE_SHIFT / block_lanes`, rounded up. The product of a lane and this number, shifted right, is the lane's block.
    inverse: u32,
}

/// Fraction bits of [`LaneRows::inverse`]. The rounding error of a product is below one unit: it is less than
/// `GANG_LANES` for each lane.
const INVERSE_SHIFT: u32 = 2 * GANG_LANES.ilog2() + 1;

impl LaneRows {
    /// The rows of a gang of `blocks` blocks of this extent, or of `lanes` lanes of one block.
    pub fn of(block: [u32; 3], lanes: usize, blocks: usize) -> LaneRows {
        let threads = block.iter().product::<u32>() as usize;
        if blocks > 1 && !threads.is_multiple_of(WARP_LANES) {
            let last = (threads as i64 - 1, 0, blocks as i64 - 1);
            let shift = GANG_LANES.ilog2();
            let (in_block, block_lanes, inverse) = (1, threads, inverse(threads));
            return LaneRows { shift, lanes, width: threads, in_block, block_lanes, last, inverse };
        }
        let width = match block[0] as usize {
            // A row of a block that has several rows.
            n @ (16 | 32 | 64 | 128) if block[1] * block[2] > 1 => n,
            _ => WARP_LANES,
        };
        let block_lanes = lanes / blocks;
        let shift = if block_lanes.is_multiple_of(width) { width } else { GANG_LANES }.ilog2();
        let in_block = block_lanes >> shift | usize::from(block_lanes < 1 << shift);
        let width = (1 << shift).min(lanes);
        let last = (width as i64 - 1, in_block as i64 - 1, blocks as i64 - 1);
        let block_lanes = in_block * width;
        LaneRows { shift, lanes, width, in_block, block_lanes, last, inverse: inverse(block_lanes) }
    }

    /// The rows of so many of the blocks.
    pub fn of_blocks(self, blocks: usize) -> LaneRows {
        let last = (self.last.0, self.last.1, blocks as i64 - 1);
        LaneRows { lanes: blocks * self.block_lanes, last, ..self }
    }

    /// Lanes of a row.
    pub fn width(self) -> usize {
        self.width
    }

    /// Number of rows of a block.
    pub fn in_block(self) -> usize {
        self.in_block
    }

    /// Number of blocks.
    pub fn blocks(self) -> usize {
        self.last.2 as usize + 1
    }

    /// Number of rows of all blocks.
    pub fn count(self) -> usize {
        self.in_block * self.blocks()
    }

    /// Lanes of a block.
    pub fn block_lanes(self) -> usize {
        self.block_lanes
    }

    /// No group spans several rows.
    #[inline]
    pub fn has_whole_groups(self) -> bool {
        self.last.2 == 0 || self.width.is_multiple_of(GROUP_LANES)
    }

    /// How groups make up rows, and rows make up blocks: groups of a row, rows of a block, blocks. If some group spans
    /// rows, all groups count as one row.
    pub fn groups(self) -> (usize, usize, usize) {
        match self.has_whole_groups() {
            true => (self.width / GROUP_LANES, self.in_block, self.blocks()),
            false => (self.lanes / GROUP_LANES, 1, 1),
        }
    }

    /// The block of a lane.
    pub fn block_of(self, lane: usize) -> usize {
        // A division would be slow: this runs for every group.
        if self.last.2 == 0 { 0 } else { ((lane as u32 * self.inverse) >> INVERSE_SHIFT) as usize }
    }

    /// The minimum and maximum of `column * step + row * pitch + block * block_stride`, for steps well below 2^56.
    #[inline]
    pub fn ends(self, step: i64, pitch: i64, block_stride: i64) -> (i64, i64) {
        let (a, b, c) = (step * self.last.0, pitch * self.last.1, block_stride * self.last.2);
        (a.min(0) + b.min(0) + c.min(0), a.max(0) + b.max(0) + c.max(0))
    }

    /// Column, row and block of a lane.
    #[inline]
    pub fn place(self, lane: usize) -> (u64, u64, u64) {
        let block = self.block_of(lane);
        let lane = lane - block * self.block_lanes;
        let (column, row) = (lane & ((1 << self.shift) - 1), lane >> self.shift);
        (column as u64, row as u64, block as u64)
    }
}

/// See [`LaneRows::inverse`].
fn inverse(block_lanes: usize) -> u32 {
    (1usize << INVERSE_SHIFT).div_ceil(block_lanes.max(1)) as u32
}

/// The lanes' values: `base + column * step + row * pitch + block * block_stride`, truncated to the slot's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Affine {
    pub base: u64,
    /// From one lane of a row to the next.
    pub step: u64,
    /// From one row of a block to the next.
    pub pitch: u64,
    /// From one block to the next.
    pub block_stride: u64,
}

impl Affine {
    pub const fn uniform(base: u64) -> Affine {
        Affine { base, step: 0, pitch: 0, block_stride: 0 }
    }

    /// `base + lane * step` in all lanes of a block, the same in every block.
    pub fn linear(base: u64, step: u64, rows: LaneRows) -> Affine {
        Affine { base, step, pitch: if rows.in_block > 1 { step << rows.shift } else { 0 }, block_stride: 0 }
    }

    /// Applies `f` to every part.
    #[inline(always)]
    pub fn map(self, f: impl Fn(u64) -> u64) -> Affine {
        Affine {
            base: f(self.base),
            step: f(self.step),
            pitch: f(self.pitch),
            block_stride: f(self.block_stride),
        }
    }

    /// The sum of two affine forms.
    #[inline]
    pub fn plus(&self, other: &Affine) -> Affine {
        Affine {
            base: self.base.wrapping_add(other.base),
            step: self.step.wrapping_add(other.step),
            pitch: self.pitch.wrapping_add(other.pitch),
            block_stride: self.block_stride.wrapping_add(other.block_stride),
        }
    }

    pub fn is_uniform(self) -> bool {
        self.step | self.pitch | self.block_stride == 0
    }

    /// Steps by `step` from each lane to the next, across the ends of rows and blocks.
    #[inline]
    pub fn is_linear(self, step: u64, rows: LaneRows) -> bool {
        let blocks_join = self.block_stride == step.wrapping_mul(rows.block_lanes as u64) || rows.last.2 == 0;
        self.is_linear_in_block(step, rows) && blocks_join
    }

    /// Steps by `step` from each lane of a block to the next.
    #[inline]
    pub fn is_linear_in_block(self, step: u64, rows: LaneRows) -> bool {
        self.step == step && (self.pitch == step << rows.shift || rows.in_block == 1)
    }

    #[inline]
    pub fn at(self, lane: usize, rows: LaneRows) -> u64 {
        let (column, row, block) = rows.place(lane);
        let part = |step: u64, count: u64| step.wrapping_mul(count);
        let in_row = self.base.wrapping_add(part(self.step, column));
        in_row.wrapping_add(part(self.pitch, row)).wrapping_add(part(self.block_stride, block))
    }

    /// The minimum and maximum offset from the base. `None` if a step is large.
    #[inline]
    pub fn span(self, rows: LaneRows) -> Option<(i64, i64)> {
        const LARGE: u64 = 1 << 48;
        // From -LARGE to LARGE - 1.
        let large = |step: u64| step.wrapping_add(LARGE) >= 2 * LARGE;
        if large(self.step) || large(self.pitch) || large(self.block_stride) {
            return None;
        }
        Some(rows.ends(self.step as i64, self.pitch as i64, self.block_stride as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_of_a_lane_is_found_without_dividing() {
        for threads in 1..=GANG_LANES {
            let rows = LaneRows::of([threads as u32, 1, 1], 2 * threads, 2);
            for lane in 0..GANG_LANES {
                assert_eq!(rows.block_of(lane), lane / threads, "lane {lane}, blocks of {threads}");
                let (column, row, block) = rows.place(lane);
                assert_eq!(block as usize * threads + (row as usize * rows.width()) + column as usize, lane);
            }
        }
    }
}
