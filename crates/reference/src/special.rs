//! Special registers (PTX ISA, "Special Registers").

use isa::{SpecialRegister, SpecialValue};
use machine::{RESERVED_FOR_GROUPS, RESERVED_SHARED_BYTES};

use crate::WARP_LANES;
use crate::thread::Cpu;

impl Cpu<'_, '_> {
    /// The value of a special register in this thread.
    pub fn special(&self, register: SpecialRegister) -> u64 {
        let launch = self.cta.launch;
        let config = launch.config();
        let lane = self.thread.lane();
        // The lanes below this one, as a mask.
        let below = (1u64 << lane) - 1;
        let all = u64::from(u32::MAX);
        match register.value() {
            SpecialValue::Tid(axis) => launch.thread(self.thread.index)[axis].into(),
            SpecialValue::Ntid(axis) => config.block[axis].into(),
            SpecialValue::Ctaid(axis) => launch.ctaid(self.cta.index)[axis].into(),
            SpecialValue::Nctaid(axis) => config.grid[axis].into(),
            SpecialValue::Clusterid(axis) => {
                (launch.ctaid(self.cta.index)[axis] / launch.cluster()[axis]).into()
            }
            SpecialValue::Nclusterid(axis) => (config.grid[axis] / launch.cluster()[axis]).into(),
            SpecialValue::ClusterCtaid(axis) => {
                (launch.ctaid(self.cta.index)[axis] % launch.cluster()[axis]).into()
            }
            SpecialValue::ClusterNctaid(axis) => launch.cluster()[axis].into(),
            SpecialValue::Fourth => 0,
            SpecialValue::ClusterCtarank => self.cta.rank.into(),
            SpecialValue::ClusterNctarank => launch.cluster_blocks().into(),
            SpecialValue::IsExplicitCluster => launch.is_explicit_cluster().into(),
            SpecialValue::Laneid => lane as u64,
            SpecialValue::Warpid => (self.thread.index / WARP_LANES) as u64,
            SpecialValue::Nwarpid => config.block_threads().div_ceil(WARP_LANES as u64),
            SpecialValue::LanemaskLt => below,
            SpecialValue::LanemaskLe => below << 1 | 1,
            SpecialValue::LanemaskEq => below + 1,
            SpecialValue::LanemaskGe => all & !below,
            SpecialValue::LanemaskGt => all & !(below << 1 | 1),
            SpecialValue::DynamicSmemSize => config.dynamic_shared,
            SpecialValue::TotalSmemSize => launch.total_shared_bytes(),
            SpecialValue::AggrSmemSize => launch.shared_bytes() + RESERVED_SHARED_BYTES,
            SpecialValue::ReservedShared => 0,
            SpecialValue::ReservedSharedOfUser => RESERVED_FOR_GROUPS,
            SpecialValue::ReservedSharedEnd => RESERVED_SHARED_BYTES,
            SpecialValue::Clock => self.cycles(),
            SpecialValue::ClockHigh => self.cycles() >> 32,
            SpecialValue::Nanoseconds => launch.nanoseconds(),
            SpecialValue::NanosecondsHigh => launch.nanoseconds() >> 32,
            SpecialValue::Perctamemorysize => launch.block_memory_bytes(),
            SpecialValue::Perctamemoryoffset => launch.block_memory(self.cta.index),
            SpecialValue::Envreg(1) => launch.grid_workspace() >> 32,
            SpecialValue::Envreg(2) => launch.grid_workspace() & 0xffff_ffff,
            SpecialValue::Envreg(_) => 0,
            // One multiprocessor of one locality domain, one grid, no performance counters, no device graph launch.
            SpecialValue::Nsmid => 1,
            SpecialValue::Smid
            | SpecialValue::LocalityDomainId
            | SpecialValue::LocalityDomainSupplementalSm
            | SpecialValue::Gridid
            | SpecialValue::Counter
            | SpecialValue::CurrentGraphExec => 0,
        }
    }

    /// The cycle clock: one cycle per instruction and per nanosecond of sleep.
    fn cycles(&self) -> u64 {
        self.cta.steps + self.thread.steps + self.thread.slept
    }
}
