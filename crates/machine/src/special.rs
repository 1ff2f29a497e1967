//! What special registers hold (PTX ISA, "Special Registers"), for both engines.
//!
//! Narrowest tests (`tests/run`): `special_registers`, `cluster_special_registers`.

use isa::{SpecialRegister, SpecialValue};

use crate::mask::WARP_LANES;
use crate::prepared::Launch;
use crate::shared::{RESERVED_FOR_GROUPS, RESERVED_SHARED_BYTES};

/// The rule for the value of a special register. Those that an engine may know to step evenly are kept apart.
#[derive(Clone, Copy)]
pub enum Special {
    /// `%tid`, by axis.
    Tid(usize),
    /// `%ctaid`, by axis.
    Ctaid(usize),
    /// `%clusterid`, by axis.
    Clusterid(usize),
    /// `%cluster_ctaid`, by axis.
    ClusterCtaid(usize),
    /// `%cluster_ctarank`
    ClusterCtarank,
    /// `%laneid`
    Laneid,
    /// `%warpid`
    Warpid,
    /// A function of `%laneid`.
    Lane(fn(u32) -> u32),
    /// A function of the launch and `%ctaid`.
    Block(fn(&Launch, [u32; 3]) -> u64),
    /// Uniform in a launch.
    Launch(fn(&Launch) -> u64),
    /// Uniform in a launch, by axis.
    LaunchAxis(fn(&Launch) -> [u32; 3], usize),
    /// A function of the time of the read: the launch, and the cycles that the thread has counted.
    Clock(fn(&Launch, u64) -> u64),
}

impl Special {
    /// The rule for a register.
    pub fn of(register: SpecialRegister) -> Special {
        match register.value() {
            SpecialValue::Tid(axis) => Special::Tid(axis),
            SpecialValue::Ntid(axis) => Special::LaunchAxis(|launch| launch.config.block, axis),
            SpecialValue::Ctaid(axis) => Special::Ctaid(axis),
            SpecialValue::Nctaid(axis) => Special::LaunchAxis(|launch| launch.config.grid, axis),
            SpecialValue::Clusterid(axis) => Special::Clusterid(axis),
            SpecialValue::Nclusterid(axis) => Special::LaunchAxis(Launch::clusters, axis),
            SpecialValue::ClusterCtaid(axis) => Special::ClusterCtaid(axis),
            SpecialValue::ClusterNctaid(axis) => Special::LaunchAxis(Launch::cluster, axis),
            SpecialValue::Fourth => Special::Launch(|_| 0),
            SpecialValue::ClusterCtarank => Special::ClusterCtarank,
            SpecialValue::ClusterNctarank => Special::Launch(|launch| launch.cluster_blocks().into()),
            SpecialValue::IsExplicitCluster => Special::Launch(|launch| launch.is_explicit_cluster().into()),
            SpecialValue::Laneid => Special::Laneid,
            SpecialValue::Warpid => Special::Warpid,
            SpecialValue::Nwarpid => {
                Special::Launch(|launch| launch.config.block_threads().div_ceil(WARP_LANES as u64))
            }
            SpecialValue::LanemaskEq => Special::Lane(|lane| 1 << lane),
            SpecialValue::LanemaskLe => Special::Lane(|lane| (2u32 << lane).wrapping_sub(1)),
            SpecialValue::LanemaskLt => Special::Lane(|lane| (1 << lane) - 1),
            SpecialValue::LanemaskGe => Special::Lane(|lane| !((1 << lane) - 1)),
            SpecialValue::LanemaskGt => Special::Lane(|lane| !(2u32 << lane).wrapping_sub(1)),
            SpecialValue::DynamicSmemSize => Special::Launch(|launch| launch.config.dynamic_shared),
            SpecialValue::TotalSmemSize => Special::Launch(Launch::total_shared_bytes),
            SpecialValue::AggrSmemSize => {
                Special::Launch(|launch| launch.shared_bytes() + RESERVED_SHARED_BYTES)
            }
            SpecialValue::ReservedShared => Special::Launch(|_| 0),
            SpecialValue::ReservedSharedOfUser => Special::Launch(|_| RESERVED_FOR_GROUPS),
            SpecialValue::ReservedSharedEnd => Special::Launch(|_| RESERVED_SHARED_BYTES),
            SpecialValue::Perctamemorysize => Special::Launch(Launch::block_memory_bytes),
            SpecialValue::Perctamemoryoffset => {
                Special::Block(|launch, ctaid| launch.block_memory(launch.block_index(ctaid)))
            }
            SpecialValue::Envreg(1) => Special::Launch(|launch| launch.grid_workspace() >> 32),
            SpecialValue::Envreg(2) => Special::Launch(|launch| launch.grid_workspace() & 0xffff_ffff),
            SpecialValue::Envreg(_) => Special::Launch(|_| 0),
            // The machine has one multiprocessor in one locality domain, one grid, no performance counters, and no
            // graph that launches itself.
            SpecialValue::Nsmid => Special::Launch(|_| 1),
            SpecialValue::Smid
            | SpecialValue::LocalityDomainId
            | SpecialValue::LocalityDomainSupplementalSm
            | SpecialValue::Gridid
            | SpecialValue::Counter
            | SpecialValue::CurrentGraphExec => Special::Launch(|_| 0),
            SpecialValue::Clock => Special::Clock(|_, cycles| cycles),
            SpecialValue::ClockHigh => Special::Clock(|_, cycles| cycles >> 32),
            SpecialValue::Nanoseconds => Special::Clock(|launch, _| launch.nanoseconds()),
            SpecialValue::NanosecondsHigh => Special::Clock(|launch, _| launch.nanoseconds() >> 32),
        }
    }

    /// Whether it can differ between blocks.
    pub fn depends_on_block(self) -> bool {
        use Special::{Block, ClusterCtaid, ClusterCtarank, Clusterid, Ctaid};
        matches!(self, Ctaid(_) | Clusterid(_) | ClusterCtaid(_) | ClusterCtarank | Block(_))
    }

    /// Its value in one thread, given the thread's linear index in the block and the cycles that it has counted.
    pub fn value(self, launch: &Launch, ctaid: [u32; 3], thread: u32, cycles: u64) -> u64 {
        let lane = thread % WARP_LANES as u32;
        match self {
            Special::Tid(axis) => launch.thread(thread as usize)[axis].into(),
            Special::Ctaid(axis) => ctaid[axis].into(),
            Special::Clusterid(axis) => (ctaid[axis] / launch.cluster()[axis]).into(),
            Special::ClusterCtaid(axis) => launch.cluster_ctaid(ctaid)[axis].into(),
            Special::ClusterCtarank => launch.cluster_rank(ctaid).into(),
            Special::Laneid => lane.into(),
            Special::Warpid => (thread / WARP_LANES as u32).into(),
            Special::Lane(of) => of(lane).into(),
            Special::Block(of) => of(launch, ctaid),
            Special::Launch(of) => of(launch),
            Special::LaunchAxis(of, axis) => of(launch)[axis].into(),
            Special::Clock(of) => of(launch, cycles),
        }
    }
}
