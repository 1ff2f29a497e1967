//! Which blocks of a launch run together.
//!
//! A gang has room for more threads than most blocks have, and what a gang does costs hardly more for more lanes: so it
//! takes several blocks at a time, a *CTA batch*, if nothing keeps them apart.
//!
//! Each block of a CTA batch has its own shared memory and barriers, and what a warp does stays within the warp. Kernels run block by block if
//! they use the device heap, the barrier of the grid, asynchronous copies, mbarrier objects, `alloca`, barriers of clusters, matrices or
//! tensor memory ([`keeps_blocks_apart`]); so do clusters of several blocks, and blocks with more than 128 KiB of shared memory.
//!
//! Blocks that are no multiple of a warp lie next to each other without a gap, up to 256 of them (64 with shared memory). The warps of the
//! gang are then not those of the blocks, so such CTA batches are not made where an instruction sees warps or somebody watches.
//!
//! Blocks of a CTA batch follow each other along the first axis in which the grid has several blocks, or along the axis with most blocks where
//! rows of the first are short. Then everything that depends on `%ctaid` keeps its affine form. Where all rows are short (64 threads),
//! CTA batches go over the ends of rows, and `%ctaid` is an array. Blocks that print, or that are a part of a grid, must come in the order of
//! their indices: their CTA batches take the first axis or go over the ends of rows.
//!
//! The size of a gang is halved until the registers of every function that the kernel can reach take no more than 1 GiB.
//!
//! Narrowest tests: `tests/run`: `team_*`, `teams_of_narrow_rows`, `shared_begins_with_zeros`, `alloca_of_blocks`; unit tests below.

use ir::{AccessKind, OpKind, Terminator, WarpOp};

use crate::builtin::Builtin;
use crate::grid::Launch;
use crate::mask::{GANG_LANES, GROUP_LANES, WARP_LANES};
use crate::registers::REGISTER_LIMIT;

/// The most shared memory of the blocks of a CTA batch: what fits into a processor's own cache.
const SHARED_BYTES: u64 = 128 * 1024;

/// The most blocks of a CTA batch that are no multiple of a warp; and with shared memory, each of which has its own.
const SMALL_BLOCKS: usize = 256;
const SMALL_BLOCKS_SHARED: usize = 64;

/// Rows of the grid with so many threads, or more, fill gangs well enough.
const WIDE_ROW: u64 = 512;
/// Where no row of the grid has more threads than this, CTA batches go over the ends of rows. What depends on `%ctaid` has no affine form then,
/// which costs less than gangs of so few lanes.
const NARROW_ROW: u64 = 64;

/// The most CTA batches that lie side by side: blocks that wait for those with lower indices need all of them in flight, of which a host thread
/// keeps [`RESIDENT_BLOCKS`](crate::grid::RESIDENT_BLOCKS).
const SIDE_BY_SIDE: u64 = 256;

/// How the blocks of a launch are dealt to gangs.
#[derive(Clone, Copy)]
pub(crate) struct CtaBatches {
    /// Blocks of a CTA batch; the last CTA batch of a row may have fewer.
    pub blocks: usize,
    /// Lanes of a gang: all threads of a CTA batch, or some of one block.
    pub lanes: usize,
    row: Row,
    /// The blocks that are run: whole rows, unless blocks of a row have consecutive indices.
    range: (u64, u64),
    /// The first CTA batch that has some of them.
    first: u64,
    /// Blocks of a cluster. If it has several, a cluster stands in place of a CTA batch.
    cluster: u64,
}

/// Blocks of the grid from which CTA batches are taken one after the other: a row along one of its axes, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    blocks: u64,
    /// From the linear index of a block to that of the next one in the row: so many rows lie side by side.
    stride: u64,
}

/// Blocks that run together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CtaBatch {
    /// Linear index in the grid of the first block. Of clusters of several blocks, so many blocks have the clusters before.
    pub first: u64,
    pub blocks: usize,
    /// From the linear index of a block to that of the next.
    pub stride: u64,
}

impl CtaBatch {
    /// The linear index of one of its blocks.
    #[inline]
    pub fn block(&self, index: usize) -> u64 {
        self.first + index as u64 * self.stride
    }
}

/// The axis along which `%ctaid` steps by one from block to block of a CTA batch; none where they go over the end of a row.
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

/// The axis along which `%ctaid` of blocks that follow each other begins to differ: the first in which the grid has several.
fn axis(grid: [u64; 3]) -> usize {
    grid.iter().position(|&extent| extent > 1).unwrap_or(0)
}

impl Row {
    /// The rows along an axis of the grid.
    fn along(grid: [u64; 3], axis: usize) -> Row {
        Row { blocks: grid[axis], stride: grid[..axis].iter().product() }
    }

    /// The rows of which CTA batches of up to so many blocks of so many threads are taken. `in_order`: blocks of a CTA batch must have consecutive
    /// indices.
    fn of(grid: [u64; 3], threads: u64, blocks: u64, in_order: bool) -> Row {
        let size = |row: &Row| row.blocks.min(blocks);
        let first = Row::along(grid, axis(grid));
        if blocks == 1 {
            return first;
        }
        let mut best = first;
        if !in_order && size(&first) * threads < WIDE_ROW {
            for other in (0..3).map(|axis| Row::along(grid, axis)) {
                // What lies side by side in memory should stay so.
                if other.stride <= SIDE_BY_SIDE && size(&other) >= 2 * size(&best) {
                    best = other;
                }
            }
        }
        let all = Row { blocks: grid.iter().product(), stride: 1 };
        if size(&best) * threads <= NARROW_ROW && size(&all) > size(&best) { all } else { best }
    }
}

/// How many blocks of so many threads, which are no multiple of a warp, run together: they should fill groups of lanes.
fn small_blocks(most: usize, threads: usize, shared: bool) -> usize {
    let blocks = (most / threads).min(if shared { SMALL_BLOCKS_SHARED } else { SMALL_BLOCKS });
    let fill_groups = (1..=GROUP_LANES).find(|n| (n * threads).is_multiple_of(GROUP_LANES)).unwrap_or(1);
    if blocks >= fill_groups { blocks / fill_groups * fill_groups } else { blocks }
}

impl CtaBatches {
    /// The CTA batches of a launch, enough of them for so many host threads.
    pub fn of(launch: &Launch, host_threads: usize) -> CtaBatches {
        let config = &launch.config;
        let threads = config.block_threads() as usize;
        let grid = config.grid.map(|n| u64::from(n.max(1)));
        let range = config.block_range();
        let mut most = if launch.shuffled { WARP_LANES } else { GANG_LANES };
        // Functions with very many registers run in smaller gangs.
        while most > WARP_LANES && launch.kernel.most_register_bytes(most) > REGISTER_LIMIT {
            most /= 2;
        }
        let whole_warps = threads.is_multiple_of(WARP_LANES);
        let together = !launch.shuffled
            && !config.deterministic
            && launch.cluster_blocks() == 1
            && launch.shared.bytes <= SHARED_BYTES
            // Who looks at warps sees that lanes of several blocks are in one.
            && (whole_warps || !launch.kernel.sees_warps && config.profile.is_none() && config.observer.is_none())
            && threads <= most
            && !launch.kernel.apart;
        let blocks = match together {
            false => 1,
            true if whole_warps => (most / threads) as u64,
            true => small_blocks(most, threads, launch.shared.bytes > 0) as u64,
        };
        let blocks = blocks.min(SHARED_BYTES / launch.shared.bytes.max(1));
        // Enough for all host threads. How many these are shows only where blocks race: in the order in which they come to an
        // atomic operation, and in the clock.
        let fair = (range.end - range.start) / (2 * host_threads as u64);
        let blocks = blocks.min(fair).max(1);
        // Of a part of the grid, rows may not be whole. What is printed comes out CTA batch by CTA batch.
        let in_order = config.blocks.is_some() || launch.kernel.prints;
        let row = Row::of(grid, threads as u64, blocks, in_order);
        let blocks = blocks.min(row.blocks);
        // As many CTA batches of about the same size.
        let blocks =
            if whole_warps { row.blocks.div_ceil(row.blocks.div_ceil(blocks)) } else { blocks } as usize;
        let lanes = (threads * blocks).next_multiple_of(GROUP_LANES).min(most);
        CtaBatches {
            cluster: launch.cluster_blocks().into(),
            ..CtaBatches::new(blocks, lanes, row, (range.start, range.end))
        }
    }

    fn new(blocks: usize, lanes: usize, row: Row, range: (u64, u64)) -> CtaBatches {
        let mut batches = CtaBatches { blocks, lanes, row, range, first: 0, cluster: 1 };
        batches.first = batches.of_block(range.0);
        batches
    }

    /// CtaBatches of a row.
    fn in_row(&self) -> u64 {
        self.row.blocks.div_ceil(self.blocks as u64)
    }

    /// The CTA batch of a block, among those of the whole grid: CTA batches that lie side by side come one after the other, so that the first blocks of
    /// CTA batches are in ascending order.
    fn of_block(&self, block: u64) -> u64 {
        let Row { blocks, stride } = self.row;
        // Divisions are slow.
        let (side, along) = if stride == 1 { (0, block) } else { (block % stride, block / stride) };
        let (row, column) = if along < blocks { (0, along) } else { (along / blocks, along % blocks) };
        let first_of_row = if row == 0 { 0 } else { row * self.in_row() };
        let column = if column == 0 { 0 } else { column / self.blocks as u64 };
        (first_of_row + column) * stride + side
    }

    /// Number of CTA batches.
    pub fn count(&self) -> u64 {
        match self.range {
            (start, end) if start >= end => 0,
            // Of clusters the whole grid is run.
            (_, end) if self.cluster > 1 => end / self.cluster,
            (_, end) => self.of_block(end - 1) + 1 - self.first,
        }
    }

    /// The blocks of a CTA batch. Blocks of clusters are counted cluster by cluster.
    pub fn members(&self, batch: u64) -> CtaBatch {
        if self.cluster > 1 {
            return CtaBatch { first: batch * self.cluster, blocks: self.cluster as usize, stride: 1 };
        }
        let (batch, in_row, Row { blocks, stride }) = (self.first + batch, self.in_row(), self.row);
        // Divisions are slow.
        let (side, batch) = if stride == 1 { (0, batch) } else { (batch % stride, batch / stride) };
        let (row, column) = if batch < in_row { (0, batch) } else { (batch / in_row, batch % in_row) };
        let column = column * self.blocks as u64;
        let first = (row * blocks + column) * stride + side;
        let count = (self.blocks as u64).min(blocks - column);
        if stride > 1 {
            return CtaBatch { first, blocks: count as usize, stride };
        }
        // Only the first and the last CTA batch can have blocks that are not run.
        let (start, end) = (first.max(self.range.0), (first + count).min(self.range.1));
        CtaBatch { first: start, blocks: (end - start) as usize, stride }
    }
}

/// Among the functions that a kernel can reach (those without a body by their names) are instructions that know one block only, or
/// whose order shows.
pub(crate) fn keeps_blocks_apart<'a>(
    functions: impl Iterator<Item = (&'a str, Option<&'a ir::Function>)>,
) -> bool {
    let mut functions = functions;
    functions.any(|(name, function)| match function {
        // Blocks that come later get what earlier ones give back.
        None => matches!(
            Builtin::of(name),
            Some(Builtin::Malloc | Builtin::Free | Builtin::GroupHandle | Builtin::GridSynchronize)
        ),
        Some(function) => {
            function.ops.iter().any(|op| is_alone(&op.kind))
                || function.blocks.iter().any(|b| matches!(b.terminator, Terminator::ClusterBarrier { .. }))
        }
    })
}

/// Among these functions are instructions that know the lanes of a warp.
pub(crate) fn sees_warps<'a>(functions: impl Iterator<Item = Option<&'a ir::Function>>) -> bool {
    functions
        .flatten()
        .flat_map(|function| &function.ops)
        .any(|op| matches!(op.kind, OpKind::Warp { .. } | OpKind::ActiveMask { .. }))
}

/// It knows the shared and local memory of one block only.
fn is_alone(op: &OpKind) -> bool {
    if op.computes() {
        return false;
    }
    matches!(
        op,
        OpKind::CopyGroup(_)
            | OpKind::Stack { .. }
            | OpKind::TensorMemory(_)
            | OpKind::Warp { op: WarpOp::Matrix(_) | WarpOp::TensorMemory(_), .. }
    ) || ir::accesses(op).iter().any(|access| match access.kind {
        AccessKind::Load
        | AccessKind::Store
        | AccessKind::Atomic
        | AccessKind::TexelLoad
        | AccessKind::TexelStore
        | AccessKind::TexelAtomic => false,
        AccessKind::CopyRead
        | AccessKind::CopyWrite
        | AccessKind::CopyReduce
        | AccessKind::Mbarrier
        | AccessKind::MbarrierTest
        | AccessKind::MatrixLoad
        | AccessKind::MatrixStore => true,
    })
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
            // No CTA batch goes on in the next row.
            let within = |batch: CtaBatch| batch.first / width == batch.block(batch.blocks - 1) / width;
            assert!((0..batches.count()).all(|batch| within(batches.members(batch))));
        }
    }

    /// The blocks of all CTA batches, one CTA batch after the other.
    fn blocks_of(batches: &CtaBatches) -> Vec<u64> {
        let members = (0..batches.count()).map(|batch| batches.members(batch));
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
                let firsts = (0..batches.count()).map(|batch| batches.members(batch).first);
                assert!(firsts.is_sorted(), "{grid:?} along {axis} by {blocks}");
                for batch in (0..batches.count()).map(|batch| batches.members(batch)) {
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
        // Into the next row, and to the block above the first.
        assert_eq!(along([8, 3, 10], [3, 1, 2], 6, 1), None);
        assert_eq!(along([8, 3, 10], [3, 1, 2], 9, 1), None);
        assert_eq!(along([1, 9, 10], [0, 1, 2], 9, 1), None);
    }

    #[test]
    fn batches_fill_gangs_whatever_the_grid() {
        let along = Row::along;
        let row = |grid, threads, blocks| Row::of(grid, threads, blocks, false);
        // Rows in x are wide enough, or no others are wider.
        assert_eq!(row([100, 100, 1], 32, 32), along([100, 100, 1], 0));
        assert_eq!(row([4, 100, 1], 128, 8), along([4, 100, 1], 0));
        assert_eq!(row([20, 30, 1], 8, 128), along([20, 30, 1], 0));
        // Those in y or in z are.
        assert_eq!(row([2, 100, 5], 32, 32), along([2, 100, 5], 1));
        assert_eq!(row([7, 3, 4000], 1, 256), along([7, 3, 4000], 2));
        // Too many rows would lie side by side.
        assert_eq!(row([64, 64, 1000], 4, 256), along([64, 64, 1000], 0));
        // None are wide, or blocks must come in order.
        assert_eq!(row([5, 5, 5], 4, 64), Row { blocks: 125, stride: 1 });
        assert_eq!(Row::of([7, 1, 4000], 1, 256, true), Row { blocks: 28_000, stride: 1 });
        assert_eq!(Row::of([7, 1, 4000], 32, 32, true), along([7, 1, 4000], 0));
    }
}
