//! CTA batches: which blocks of a launch run together in one gang.
//!
//! A gang has room for more threads than most blocks have, and an operation costs hardly more for more lanes. So a gang
//! takes several blocks at a time, a *CTA batch*, unless something requires separate blocks.
//!
//! Each block of a CTA batch has its own shared memory and barriers, and warp-level operations stay within a warp. A
//! kernel runs block by block if it uses the device heap, the barrier of the grid, asynchronous copies, mbarrier
//! objects, `alloca`, cluster barriers, matrices or tensor memory (`kernel.rs`, `keeps_blocks_apart`). So do clusters of several
//! blocks, and blocks with more than 128 KiB of shared memory.
//!
//! Blocks that are no multiple of a warp are packed without gaps, up to 256 of them (64 with shared memory). The warps
//! of the gang then differ from the warps of the blocks. So there are no such CTA batches if an instruction sees warps,
//! or if the launch has an observer or a profile.
//!
//! The blocks of a CTA batch are consecutive along one axis, so that every value that depends on `%ctaid` keeps its
//! affine form. This is the first axis in which the grid has several blocks, or the axis with the most blocks if the
//! rows of the first are short. If all rows are short (at most 64 threads), CTA batches cross the ends of rows, and
//! `%ctaid` is an array. Blocks that print, or that are a part of a grid, must run in the order of their indices: their
//! CTA batches use the first axis or cross the ends of rows.
//!
//! The number of lanes of a gang is halved until the registers of every function that the kernel can reach take at most 1 GiB.
//!
//! Narrowest tests: `tests/run`: `team_*`, `teams_of_narrow_rows`, `shared_begins_with_zeros`, `alloca_of_blocks`; unit
//! tests below.

use std::ops::Range;

use machine::mask::{GANG_LANES, GROUP_LANES, WARP_LANES};

use crate::registers::REGISTER_LIMIT;
use crate::run::Run;

/// The most shared memory of all blocks of a CTA batch: it fits into the private cache of a host core.
const SHARED_BYTES: u64 = 128 * 1024;

/// The most blocks in a CTA batch if blocks are no multiple of a warp: without shared memory, and with shared memory.
const SMALL_BLOCKS: usize = 256;
const SMALL_BLOCKS_SHARED: usize = 64;

/// Rows of the grid with at least this many threads fill gangs well enough.
const WIDE_ROW: u64 = 512;
/// If no row of the grid has more threads than this, CTA batches cross the ends of rows. Values that depend on `%ctaid`
/// then have no affine form, which costs less than gangs of so few lanes.
const NARROW_ROW: u64 = 64;

/// The most CTA batches that may be interleaved. A block that waits for blocks of lower indices needs all of these
/// batches in flight at once, and a host thread keeps only [`RESIDENT_BLOCKS`](machine::RESIDENT_BLOCKS) in flight.
const SIDE_BY_SIDE: u64 = 256;

/// How the blocks of a launch are assigned to gangs.
#[derive(Clone, Copy)]
pub(crate) struct CtaBatches {
    /// Blocks in a CTA batch. The last CTA batch of a row may have fewer.
    pub blocks: usize,
    /// Lanes of a gang: all threads of a CTA batch, or a part of the threads of one block.
    pub lanes: usize,
    row: Row,
    /// The blocks that run. They are whole rows, unless the blocks of a row have consecutive indices.
    range: (u64, u64),
    /// The first CTA batch that contains blocks of `range`.
    first: u64,
    /// Blocks in a cluster. If there are several, each cluster takes the place of a CTA batch.
    cluster: u64,
    /// Number of CTA batches.
    pub count: u64,
}

/// The blocks of the grid that are split into consecutive CTA batches: a row along one axis, or the whole grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    blocks: u64,
    /// Distance between the linear indices of consecutive blocks of the row. This is also the number of interleaved rows.
    stride: u64,
}

/// Blocks that run together in one gang.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CtaBatch {
    /// Linear index in the grid of the first block. For a cluster of several blocks: the number of blocks in the
    /// clusters before it.
    pub first: u64,
    pub blocks: usize,
    /// Distance between the linear indices of consecutive blocks.
    pub stride: u64,
}

impl CtaBatch {
    /// The linear index of one of its blocks.
    #[inline]
    pub fn block(&self, index: usize) -> u64 {
        self.first + index as u64 * self.stride
    }
}

/// The axis along which `%ctaid` increases by one from block to block of a CTA batch. `None` if the CTA batch crosses
/// the end of a row.
pub(crate) fn axis_along(grid: [u32; 3], first: [u32; 3], batch: CtaBatch) -> Option<usize> {
    let mut stride = 1;
    for axis in 0..3 {
        let extent = u64::from(grid[axis].max(1));
        if extent > 1 && stride == batch.stride {
            return (u64::from(first[axis]) + batch.blocks as u64 <= extent).then_some(axis);
        }
        stride *= extent;
    }
    Some(0)
}

/// The axis along which the `%ctaid` of consecutive blocks differs: the first axis in which the grid has several blocks.
fn axis(grid: [u64; 3]) -> usize {
    grid.iter().position(|&extent| extent > 1).unwrap_or(0)
}

impl Row {
    /// The rows along an axis of the grid.
    fn along(grid: [u64; 3], axis: usize) -> Row {
        Row { blocks: grid[axis], stride: grid[..axis].iter().product() }
    }

    /// Chooses the rows for CTA batches of up to `blocks` blocks of `threads` threads. `in_order`: the blocks of a CTA
    /// batch must have consecutive indices.
    fn of(grid: [u64; 3], threads: u64, blocks: u64, in_order: bool) -> Row {
        let size = |row: &Row| row.blocks.min(blocks);
        let first = Row::along(grid, axis(grid));
        if blocks == 1 {
            return first;
        }
        let mut best = first;
        if !in_order && size(&first) * threads < WIDE_ROW {
            for other in (0..3).map(|axis| Row::along(grid, axis)) {
                // Keep adjacent blocks close together, since they usually access adjacent memory.
                if other.stride <= SIDE_BY_SIDE && size(&other) >= 2 * size(&best) {
                    best = other;
                }
            }
        }
        let all = Row { blocks: grid.iter().product(), stride: 1 };
        if size(&best) * threads <= NARROW_ROW && size(&all) > size(&best) { all } else { best }
    }
}

/// How many blocks run together if `threads` is no multiple of a warp. They should fill whole groups of lanes.
fn small_blocks(most: usize, threads: usize, shared: bool) -> usize {
    let blocks = (most / threads).min(if shared { SMALL_BLOCKS_SHARED } else { SMALL_BLOCKS });
    let fill_groups = (1..=GROUP_LANES).find(|n| (n * threads).is_multiple_of(GROUP_LANES)).unwrap_or(1);
    if blocks >= fill_groups { blocks / fill_groups * fill_groups } else { blocks }
}

impl CtaBatches {
    /// The CTA batches of a launch, enough for all `host_threads`.
    pub fn of(launch: &Run, host_threads: usize) -> CtaBatches {
        let config = &launch.config();
        let threads = config.block_threads() as usize;
        let grid = config.grid.map(|n| u64::from(n.max(1)));
        let range = config.block_range();
        let mut most = if launch.shuffled { WARP_LANES } else { GANG_LANES };
        // A function with very many registers runs in smaller gangs.
        while most > WARP_LANES && launch.info.most_register_bytes(most) > REGISTER_LIMIT {
            most /= 2;
        }
        let whole_warps = threads.is_multiple_of(WARP_LANES);
        let together = !launch.shuffled
            && !config.deterministic
            && launch.cluster_blocks() == 1
            && launch.shared().bytes <= SHARED_BYTES
            // An instruction, observer or profile that looks at warps would see lanes of several blocks in one warp.
            && (whole_warps || !launch.info.sees_warps && config.profile.is_none() && config.observer.is_none())
            && threads <= most
            && !launch.info.apart;
        let blocks = match together {
            false => 1,
            true if whole_warps => (most / threads) as u64,
            true => small_blocks(most, threads, launch.shared().bytes > 0) as u64,
        };
        let blocks = blocks.min(SHARED_BYTES / launch.shared().bytes.max(1));
        // Leave enough CTA batches for all host threads. A kernel can observe their number only through races of its
        // blocks (the order of their atomic operations) and through the clock.
        let fair = (range.end - range.start) / (2 * host_threads as u64);
        let blocks = blocks.min(fair).max(1);
        // A part of a grid may contain incomplete rows. Printed text comes out CTA batch by CTA batch.
        let in_order = config.blocks.is_some() || launch.kernel().prints;
        let row = Row::of(grid, threads as u64, blocks, in_order);
        let blocks = blocks.min(row.blocks);
        // The same number of CTA batches, of about equal size.
        let blocks =
            if whole_warps { row.blocks.div_ceil(row.blocks.div_ceil(blocks)) } else { blocks } as usize;
        let lanes = (threads * blocks).next_multiple_of(GROUP_LANES).min(most);
        let mut batches = CtaBatches::new(blocks, lanes, row, (range.start, range.end));
        batches.cluster = launch.cluster_blocks().into();
        if batches.cluster > 1 {
            // The whole grid runs.
            batches.count = range.end / batches.cluster;
        }
        batches
    }

    fn new(blocks: usize, lanes: usize, row: Row, range: (u64, u64)) -> CtaBatches {
        let mut batches = CtaBatches { blocks, lanes, row, range, first: 0, cluster: 1, count: 0 };
        batches.first = batches.of_block(range.0);
        if range.0 < range.1 {
            batches.count = batches.of_block(range.1 - 1) + 1 - batches.first;
        }
        batches
    }

    /// CTA batches in a row.
    fn in_row(&self) -> u64 {
        self.row.blocks.div_ceil(self.blocks as u64)
    }

    /// The index of a block's CTA batch among those of the whole grid. Interleaved CTA batches have consecutive
    /// indices, so the first blocks of the CTA batches are in ascending order.
    fn of_block(&self, block: u64) -> u64 {
        let Row { blocks, stride } = self.row;
        // Avoid slow divisions.
        let (side, along) = if stride == 1 { (0, block) } else { (block % stride, block / stride) };
        let (row, column) = if along < blocks { (0, along) } else { (along / blocks, along % blocks) };
        let first_of_row = if row == 0 { 0 } else { row * self.in_row() };
        let column = if column == 0 { 0 } else { column / self.blocks as u64 };
        (first_of_row + column) * stride + side
    }

    /// The blocks of consecutive CTA batches together, if their indices are consecutive.
    pub fn joined(&self, batches: &Range<u64>) -> Option<CtaBatch> {
        if self.row.stride > 1 || self.cluster > 1 {
            return None;
        }
        let (first, last) = (self.members(batches.start), self.members(batches.end - 1));
        let blocks = last.first + last.blocks as u64 - first.first;
        Some(CtaBatch { blocks: blocks as usize, ..first })
    }

    /// The blocks of a CTA batch. With clusters, blocks are numbered cluster by cluster.
    #[inline]
    pub fn members(&self, batch: u64) -> CtaBatch {
        if self.cluster > 1 {
            return CtaBatch { first: batch * self.cluster, blocks: self.cluster as usize, stride: 1 };
        }
        let (batch, in_row, Row { blocks, stride }) = (self.first + batch, self.in_row(), self.row);
        // Avoid slow divisions.
        let (side, batch) = if stride == 1 { (0, batch) } else { (batch % stride, batch / stride) };
        let (row, column) = if batch < in_row { (0, batch) } else { (batch / in_row, batch % in_row) };
        let column = column * self.blocks as u64;
        let first = (row * blocks + column) * stride + side;
        let count = (self.blocks as u64).min(blocks - column);
        if stride > 1 {
            return CtaBatch { first, blocks: count as usize, stride };
        }
        // Only the first and the last CTA batch can contain blocks outside of the range.
        let (start, end) = (first.max(self.range.0), (first + count).min(self.range.1));
        CtaBatch { first: start, blocks: (end - start) as usize, stride }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_in_one_batch() {
        for (width, rows, blocks) in [(1, 1, 1), (7, 1, 2), (7, 3, 3), (8, 2, 4), (3, 5, 3), (9, 4, 8)] {
            let total = width * rows;
            let row = Row { blocks: width, stride: 1 };
            let batches = CtaBatches::new(blocks, 32 * blocks, row, (0, total));
            assert_eq!(blocks_of(&batches), (0..total).collect::<Vec<_>>(), "{width} {rows} {blocks}");
            for range in (0..total).flat_map(|start| (start + 1..=total).map(move |end| (start, end))) {
                let part = CtaBatches::new(blocks, 32 * blocks, row, range);
                assert_eq!(
                    blocks_of(&part),
                    (range.0..range.1).collect::<Vec<_>>(),
                    "{width} {rows} {blocks}"
                );
            }
            // No CTA batch continues in the next row.
            let within = |batch: CtaBatch| batch.first / width == batch.block(batch.blocks - 1) / width;
            assert!((0..batches.count).all(|batch| within(batches.members(batch))));
        }
    }

    /// The blocks of all CTA batches, one CTA batch after the other.
    fn blocks_of(batches: &CtaBatches) -> Vec<u64> {
        let members = (0..batches.count).map(|batch| batches.members(batch));
        members.flat_map(|batch| (0..batch.blocks).map(move |index| batch.block(index))).collect()
    }

    #[test]
    fn blocks_of_a_batch_differ_along_its_row() {
        let place = |index: u64, [nx, ny, _]: [u64; 3]| [index % nx, index / nx % ny, index / (nx * ny)];
        for grid in [[1, 1, 1], [7, 1, 40], [3, 50, 2], [2, 3, 9], [1, 4, 30], [5, 5, 1]] {
            let total: u64 = grid.iter().product();
            for (axis, blocks) in (0..3).flat_map(|axis| (1..9).map(move |blocks| (axis, blocks))) {
                let batches = CtaBatches::new(blocks, 32 * blocks, Row::along(grid, axis), (0, total));
                let mut all = blocks_of(&batches);
                all.sort_unstable();
                assert_eq!(all, (0..total).collect::<Vec<_>>(), "{grid:?} along {axis} by {blocks}");
                let firsts = (0..batches.count).map(|batch| batches.members(batch).first);
                assert!(firsts.is_sorted(), "{grid:?} along {axis} by {blocks}");
                for batch in (0..batches.count).map(|batch| batches.members(batch)) {
                    assert!((1..=blocks).contains(&batch.blocks));
                    for index in 0..batch.blocks {
                        let mut wanted = place(batch.first, grid);
                        wanted[axis] += index as u64;
                        assert_eq!(
                            place(batch.block(index), grid),
                            wanted,
                            "{grid:?} along {axis} by {blocks}"
                        );
                        assert_eq!(batches.members(batches.of_block(batch.block(index))), batch);
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_lie_along_an_axis_or_go_over_the_ends_of_rows() {
        let along =
            |grid, first, blocks, stride| axis_along(grid, first, CtaBatch { first: 0, blocks, stride });
        assert_eq!(along([1, 1, 1], [0, 0, 0], 1, 1), Some(0));
        assert_eq!(along([8, 3, 10], [3, 1, 2], 5, 1), Some(0));
        assert_eq!(along([1, 9, 10], [0, 1, 2], 8, 1), Some(1));
        assert_eq!(along([1, 1, 10], [0, 0, 2], 8, 1), Some(2));
        assert_eq!(along([8, 3, 10], [3, 0, 2], 3, 8), Some(1));
        assert_eq!(along([8, 3, 10], [3, 1, 2], 8, 24), Some(2));
        // A batch that continues in the next row, or in the next plane.
        assert_eq!(along([8, 3, 10], [3, 1, 2], 6, 1), None);
        assert_eq!(along([8, 3, 10], [3, 1, 2], 9, 1), None);
        assert_eq!(along([1, 9, 10], [0, 1, 2], 9, 1), None);
    }

    #[test]
    fn batches_fill_gangs_whatever_the_grid() {
        let along = Row::along;
        let row = |grid, threads, blocks| Row::of(grid, threads, blocks, false);
        // Rows along x are wide enough, or no other rows are wider.
        assert_eq!(row([100, 100, 1], 32, 32), along([100, 100, 1], 0));
        assert_eq!(row([4, 100, 1], 128, 8), along([4, 100, 1], 0));
        assert_eq!(row([20, 30, 1], 8, 128), along([20, 30, 1], 0));
        // Rows along y or z are wider.
        assert_eq!(row([2, 100, 5], 32, 32), along([2, 100, 5], 1));
        assert_eq!(row([7, 3, 4000], 1, 256), along([7, 3, 4000], 2));
        // Too many rows would be interleaved.
        assert_eq!(row([64, 64, 1000], 4, 256), along([64, 64, 1000], 0));
        // No rows are wide, or the blocks must run in order.
        assert_eq!(row([5, 5, 5], 4, 64), Row { blocks: 125, stride: 1 });
        assert_eq!(Row::of([7, 1, 4000], 1, 256, true), Row { blocks: 28_000, stride: 1 });
        assert_eq!(Row::of([7, 1, 4000], 32, 32, true), along([7, 1, 4000], 0));
    }
}
