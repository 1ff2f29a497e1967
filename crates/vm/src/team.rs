//! Which blocks of a launch run together.
//!
//! A chunk has room for more threads than most blocks have, and what a chunk does costs hardly more for more lanes: so it
//! takes several blocks at a time, a *team*, if nothing keeps them apart.

use std::ops::Range;

use ir::{AccessKind, OpKind, Terminator, WarpOp};

use crate::grid::Launch;
use crate::mask::{CHUNK_LANES, GROUP_LANES, WARP_LANES};
use crate::registers::REGISTER_LIMIT;

/// The most shared memory of the blocks of a team: what fits into a processor's own cache.
const SHARED_BYTES: u64 = 128 * 1024;

/// The most blocks of a team that are no multiple of a warp; and with shared memory, each of which has its own.
const SMALL_BLOCKS: usize = 256;
const SMALL_BLOCKS_SHARED: usize = 64;

/// How the blocks of a launch are dealt to chunks.
#[derive(Clone, Copy)]
pub(crate) struct Teams {
    /// Blocks of a team, which follow each other along the grid's [`axis`]; the last team of a row may have fewer.
    pub blocks: usize,
    /// Lanes of a chunk: all threads of a team, or some of one block.
    pub lanes: usize,
    /// Blocks of a row of the grid.
    width: u64,
    /// The blocks that are run.
    range: (u64, u64),
    /// The first team that has some of them.
    first: u64,
    /// Blocks of a cluster. If it has several, a cluster stands in place of a team.
    cluster: u64,
}

/// The axis along which blocks of a team follow each other: the first in which the grid has several.
pub(crate) fn axis(grid: [u32; 3]) -> usize {
    grid.iter().position(|&extent| extent > 1).unwrap_or(0)
}

/// How many blocks of so many threads, which are no multiple of a warp, run together: they should fill groups of lanes.
fn small_blocks(most: usize, threads: usize, shared: bool) -> usize {
    let blocks = (most / threads).min(if shared { SMALL_BLOCKS_SHARED } else { SMALL_BLOCKS });
    let fill_groups = (1..=GROUP_LANES).find(|n| (n * threads).is_multiple_of(GROUP_LANES)).unwrap_or(1);
    if blocks >= fill_groups { blocks / fill_groups * fill_groups } else { blocks }
}

impl Teams {
    /// The teams of a launch, enough of them for so many host threads.
    pub fn of(launch: &Launch, host_threads: usize) -> Teams {
        let config = &launch.config;
        let threads = config.block_threads() as usize;
        let grid = config.grid.map(|n| u64::from(n.max(1)));
        let width = grid[axis(config.grid)];
        let range = config.block_range();
        let mut most = if launch.shuffled { WARP_LANES } else { CHUNK_LANES };
        // Functions with very many registers run in smaller chunks.
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
        let blocks = blocks.min(fair).min(width).max(1);
        // As many teams of about the same size.
        let blocks = if whole_warps { width.div_ceil(width.div_ceil(blocks)) } else { blocks } as usize;
        let lanes = (threads * blocks).next_multiple_of(GROUP_LANES).min(most);
        Teams { cluster: launch.cluster_blocks().into(), ..Teams::new(blocks, lanes, width, range) }
    }

    fn new(blocks: usize, lanes: usize, width: u64, range: Range<u64>) -> Teams {
        let mut teams = Teams { blocks, lanes, width, range: (range.start, range.end), first: 0, cluster: 1 };
        teams.first = teams.of_block(range.start);
        teams
    }

    /// Teams of a row of the grid.
    fn in_row(&self) -> u64 {
        self.width.div_ceil(self.blocks as u64)
    }

    /// The team of a block, among those of the whole grid.
    fn of_block(&self, block: u64) -> u64 {
        block / self.width * self.in_row() + block % self.width / self.blocks as u64
    }

    /// Number of teams.
    pub fn count(&self) -> u64 {
        match self.range {
            (start, end) if start >= end => 0,
            // Of clusters the whole grid is run.
            (_, end) if self.cluster > 1 => end / self.cluster,
            (_, end) => self.of_block(end - 1) + 1 - self.first,
        }
    }

    /// The first block of a team, and the number of its blocks. Blocks of clusters are counted cluster by cluster.
    pub fn members(&self, team: u64) -> (u64, usize) {
        if self.cluster > 1 {
            return (team * self.cluster, self.cluster as usize);
        }
        let (team, in_row) = (self.first + team, self.in_row());
        // Divisions are slow.
        let (row, column) = if team < in_row { (0, team) } else { (team / in_row, team % in_row) };
        let column = column * self.blocks as u64;
        let start = row * self.width + column;
        let end = start + (self.blocks as u64).min(self.width - column);
        // Only the first and the last team can have blocks that are not run.
        let (start, end) = (start.max(self.range.0), end.min(self.range.1));
        (start, (end - start) as usize)
    }
}

/// Among the functions that a kernel can reach (nothing for those without a body) are instructions that know one block only, or
/// whose order shows.
pub(crate) fn keeps_blocks_apart<'a>(functions: impl Iterator<Item = Option<&'a ir::Function>>) -> bool {
    let mut functions = functions;
    functions.any(|function| match function {
        // Builtins print, allocate, or wait for the grid.
        None => true,
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
    fn every_block_is_in_one_team() {
        for (width, rows, blocks) in [(1, 1, 1), (7, 1, 2), (7, 3, 3), (8, 2, 4), (3, 5, 3), (9, 4, 8)] {
            let total = width * rows;
            let teams = Teams::new(blocks, 32 * blocks, width, 0..total);
            let blocks_of = |teams: &Teams| -> Vec<u64> {
                let members = (0..teams.count()).map(|team| teams.members(team));
                members.flat_map(|(first, count)| first..first + count as u64).collect()
            };
            assert_eq!(blocks_of(&teams), (0..total).collect::<Vec<_>>(), "{width} {rows} {blocks}");
            for range in (0..total).flat_map(|start| (start + 1..=total).map(move |end| start..end)) {
                let part = Teams::new(blocks, 32 * blocks, width, range.clone());
                assert_eq!(blocks_of(&part), range.collect::<Vec<_>>(), "{width} {rows} {blocks}");
            }
            // No team goes on in the next row.
            let within = |(first, count): (u64, usize)| first / width == (first + count as u64 - 1) / width;
            assert!((0..teams.count()).all(|team| within(teams.members(team))));
        }
    }
}
