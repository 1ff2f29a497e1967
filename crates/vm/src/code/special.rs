//! Special registers that are constant while a block runs.

use isa::{SpecialRegister, SpecialValue};
use machine::mask::WARP_LANES;
use machine::shared::{RESERVED_FOR_GROUPS, RESERVED_SHARED_BYTES};

use crate::affine::{Affine, LaneRows};
use crate::grid::Run;

/// Extents of a block and of the grid, by axis.
const BLOCK: [fn(&Run) -> u64; 3] = [
    |launch| launch.config().block[0].into(),
    |launch| launch.config().block[1].into(),
    |launch| launch.config().block[2].into(),
];
const GRID: [fn(&Run) -> u64; 3] = [
    |launch| launch.config().grid[0].into(),
    |launch| launch.config().grid[1].into(),
    |launch| launch.config().grid[2].into(),
];

/// Extents of a cluster, and the numbers of clusters in the grid, by axis.
const CLUSTER: [fn(&Run) -> u64; 3] = [
    |launch| launch.cluster()[0].into(),
    |launch| launch.cluster()[1].into(),
    |launch| launch.cluster()[2].into(),
];
const CLUSTERS: [fn(&Run) -> u64; 3] = [
    |launch| (launch.config().grid[0] / launch.cluster()[0]).into(),
    |launch| (launch.config().grid[1] / launch.cluster()[1]).into(),
    |launch| (launch.config().grid[2] / launch.cluster()[2]).into(),
];

/// The rule for the value of a special register (PTX ISA, "Special Registers").
#[derive(Clone, Copy)]
pub(crate) enum Special {
    /// `%tid`, by axis.
    Tid(usize),
    /// `%ctaid`, by axis.
    Ctaid(usize),
    /// `%clusterid`, by axis.
    ClusterId(usize),
    /// `%cluster_ctaid`, by axis.
    ClusterCtaid(usize),
    /// `%cluster_ctarank`
    ClusterRank,
    /// `%laneid`
    LaneId,
    /// `%warpid`
    WarpId,
    /// `%lanemask_eq`, `_le`, `_lt`, `_ge`, `_gt`: a function of `%laneid`.
    LaneMask(fn(u32) -> u32),
    /// `%perctamemoryoffset`
    BlockMemory,
    /// Uniform in a launch.
    Uniform(fn(&Run) -> u64),
}

impl Special {
    /// The rule for a register.
    pub fn of(register: SpecialRegister) -> Special {
        match register.value() {
            SpecialValue::Tid(axis) => Special::Tid(axis),
            SpecialValue::Ntid(axis) => Special::Uniform(BLOCK[axis]),
            SpecialValue::Ctaid(axis) => Special::Ctaid(axis),
            SpecialValue::Clusterid(axis) => Special::ClusterId(axis),
            SpecialValue::ClusterCtaid(axis) => Special::ClusterCtaid(axis),
            SpecialValue::Nctaid(axis) => Special::Uniform(GRID[axis]),
            SpecialValue::Nclusterid(axis) => Special::Uniform(CLUSTERS[axis]),
            SpecialValue::ClusterNctaid(axis) => Special::Uniform(CLUSTER[axis]),
            SpecialValue::Fourth => Special::Uniform(|_| 0),
            SpecialValue::ClusterCtarank => Special::ClusterRank,
            SpecialValue::ClusterNctarank => Special::Uniform(|launch| launch.cluster_blocks().into()),
            SpecialValue::IsExplicitCluster => Special::Uniform(|launch| launch.is_explicit_cluster().into()),
            SpecialValue::Laneid => Special::LaneId,
            SpecialValue::Warpid => Special::WarpId,
            SpecialValue::Nwarpid => {
                Special::Uniform(|launch| launch.config().block_threads().div_ceil(WARP_LANES as u64))
            }
            SpecialValue::LanemaskEq => Special::LaneMask(|lane| 1 << lane),
            SpecialValue::LanemaskLe => Special::LaneMask(|lane| (2u32 << lane).wrapping_sub(1)),
            SpecialValue::LanemaskLt => Special::LaneMask(|lane| (1 << lane) - 1),
            SpecialValue::LanemaskGe => Special::LaneMask(|lane| !((1 << lane) - 1)),
            SpecialValue::LanemaskGt => Special::LaneMask(|lane| !(2u32 << lane).wrapping_sub(1)),
            SpecialValue::DynamicSmemSize => Special::Uniform(|launch| launch.config().dynamic_shared),
            SpecialValue::TotalSmemSize => Special::Uniform(|launch| launch.shared().total()),
            SpecialValue::AggrSmemSize => {
                Special::Uniform(|launch| launch.shared().bytes + RESERVED_SHARED_BYTES)
            }
            SpecialValue::ReservedShared => Special::Uniform(|_| 0),
            SpecialValue::ReservedSharedOfUser => Special::Uniform(|_| RESERVED_FOR_GROUPS),
            SpecialValue::ReservedSharedEnd => Special::Uniform(|_| RESERVED_SHARED_BYTES),
            SpecialValue::Perctamemorysize => Special::Uniform(|launch| launch.block_memory_bytes()),
            SpecialValue::Perctamemoryoffset => Special::BlockMemory,
            SpecialValue::Envreg(1) => Special::Uniform(|launch| launch.grid_workspace() >> 32),
            SpecialValue::Envreg(2) => Special::Uniform(|launch| launch.grid_workspace() & 0xffff_ffff),
            SpecialValue::Envreg(_) => Special::Uniform(|_| 0),
            // The machine has one multiprocessor in one locality domain, one grid, no performance counters, and no
            // graph that launches itself.
            SpecialValue::Nsmid => Special::Uniform(|_| 1),
            SpecialValue::Smid
            | SpecialValue::LocalityDomainId
            | SpecialValue::LocalityDomainSupplementalSm
            | SpecialValue::Gridid
            | SpecialValue::Counter
            | SpecialValue::CurrentGraphExec => Special::Uniform(|_| 0),
            SpecialValue::Clock
            | SpecialValue::ClockHigh
            | SpecialValue::Nanoseconds
            | SpecialValue::NanosecondsHigh => unreachable!("clocks are read by an operation of their own"),
        }
    }

    /// Whether it can differ between blocks.
    pub fn depends_on_block(self) -> bool {
        use Special::{BlockMemory, ClusterCtaid, ClusterId, ClusterRank, Ctaid};
        matches!(self, Ctaid(_) | ClusterId(_) | ClusterCtaid(_) | ClusterRank | BlockMemory)
    }

    /// Its affine form in a gang, if it has one. `ctaids` are those of the gang's first and last block. `along` is the
    /// axis along which `%ctaid` increases by one from block to block, if there is one.
    pub fn affine(
        self,
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
        match self {
            Special::Uniform(of) => Some(Affine::uniform(of(launch))),
            // In clusters of several blocks, each block has its own gangs.
            Special::ClusterId(axis) if launch.cluster_blocks() == 1 => {
                Special::Ctaid(axis).affine(launch, (ctaids, along), first_thread, rows)
            }
            Special::ClusterId(_) | Special::ClusterCtaid(_) | Special::ClusterRank => {
                Some(Affine::uniform(self.value(launch, ctaids[0], first_thread)))
            }
            Special::Ctaid(axis) => {
                let [first, last] = ctaids;
                let block_stride = u64::from(along == Some(axis) && rows.blocks() > 1);
                // If a CTA batch crosses the ends of rows, its blocks in one plane still have the same `%ctaid.z`.
                let same =
                    launch.config().grid[axis] <= 1 || (axis..3).all(|other| first[other] == last[other]);
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
            Special::Tid(2) if first / (nx * ny) == last / (nx * ny) => {
                Some(Affine::uniform(first / (nx * ny)))
            }
            Special::Tid(2) if same_rows && ny == 1 => Some(by_row(first / nx)),
            Special::LaneId
                if rows.width() <= WARP_LANES && (rows.count() == 1 || rows.width() == WARP_LANES) =>
            {
                Some(Affine { base: 0, step: 1, pitch: 0, block_stride: 0 })
            }
            Special::WarpId if count == 1 && rows.width() <= WARP_LANES => Some(Affine::uniform(first / 32)),
            Special::WarpId if rows.width() == WARP_LANES => Some(by_row(first / 32)),
            _ => None,
        }
    }

    /// Its value in one thread, given the thread's linear index in the block.
    pub fn value(self, launch: &Run, ctaid: [u32; 3], thread: u32) -> u64 {
        let lane = thread % WARP_LANES as u32;
        match self {
            Special::Tid(axis) => launch.thread(thread as usize)[axis].into(),
            Special::Ctaid(axis) => ctaid[axis].into(),
            Special::ClusterId(axis) => (ctaid[axis] / launch.cluster()[axis]).into(),
            Special::ClusterCtaid(axis) => launch.cluster_ctaid(ctaid)[axis].into(),
            Special::ClusterRank => launch.cluster_rank(ctaid).into(),
            Special::BlockMemory => launch.block_memory(launch.block_index(ctaid)),
            Special::LaneId => lane.into(),
            Special::WarpId => (thread / WARP_LANES as u32).into(),
            Special::LaneMask(of) => of(lane).into(),
            Special::Uniform(of) => of(launch),
        }
    }
}
