//! Which special registers step evenly from lane to lane.

use machine::Special;
use machine::mask::WARP_LANES;

use crate::affine::{Affine, LaneRows};
use crate::run::Run;

/// The affine form of a special register in a gang, if it has one. `ctaids` are those of the gang's first and last
/// block. `along` is the axis along which `%ctaid` increases by one from block to block, if there is one.
pub(crate) fn affine(
    special: Special,
    launch: &Run,
    (ctaids, along): ([[u32; 3]; 2], Option<usize>),
    first_thread: u32,
    rows: LaneRows,
) -> Option<Affine> {
    let [nx, ny, nz] = launch.config().block.map(u64::from);
    let first = u64::from(first_thread);
    let count = rows.in_block() as u64;
    let last = first + count * rows.width() as u64 - 1;
    // Rows of the gang are rows of the block.
    let same_rows = nx == rows.width() as u64;
    let by_row = |base: u64| Affine { base, step: 0, pitch: 1, block_stride: 0 };
    match special {
        // In clusters of several blocks, each block has its own gangs.
        Special::Clusterid(axis) if launch.cluster_blocks() == 1 => {
            affine(Special::Ctaid(axis), launch, (ctaids, along), first_thread, rows)
        }
        Special::Launch(_)
        | Special::LaunchAxis(..)
        | Special::Clusterid(_)
        | Special::ClusterCtaid(_)
        | Special::ClusterCtarank => Some(Affine::uniform(special.value(launch, ctaids[0], first_thread, 0))),
        Special::Ctaid(axis) => {
            let [first, last] = ctaids;
            let block_stride = u64::from(along == Some(axis) && rows.blocks() > 1);
            // If a CTA batch crosses the ends of rows, its blocks in one plane still have the same `%ctaid.z`.
            let same = launch.config().grid[axis] <= 1 || (axis..3).all(|other| first[other] == last[other]);
            let affine = Affine { block_stride, ..Affine::uniform(first[axis].into()) };
            (along.is_some() || same).then_some(affine)
        }
        Special::Tid(0) if same_rows => Some(Affine { base: 0, step: 1, pitch: 0, block_stride: 0 }),
        Special::Tid(0) if first / nx == last / nx || ny * nz == 1 => {
            Some(Affine::linear(first % nx, 1, rows))
        }
        Special::Tid(1) if ny == 1 => Some(Affine::uniform(0)),
        Special::Tid(1) if first / nx == last / nx => Some(Affine::uniform(first / nx % ny)),
        Special::Tid(1) if same_rows && first / nx % ny + count <= ny => Some(by_row(first / nx % ny)),
        Special::Tid(2) if nz == 1 => Some(Affine::uniform(0)),
        Special::Tid(2) if first / (nx * ny) == last / (nx * ny) => Some(Affine::uniform(first / (nx * ny))),
        Special::Tid(2) if same_rows && ny == 1 => Some(by_row(first / nx)),
        Special::Laneid
            if rows.width() <= WARP_LANES && (rows.count() == 1 || rows.width() == WARP_LANES) =>
        {
            Some(Affine { base: 0, step: 1, pitch: 0, block_stride: 0 })
        }
        Special::Warpid if count == 1 && rows.width() <= WARP_LANES => Some(Affine::uniform(first / 32)),
        Special::Warpid if rows.width() == WARP_LANES => Some(by_row(first / 32)),
        _ => None,
    }
}
