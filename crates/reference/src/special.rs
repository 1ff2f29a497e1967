//! Special registers (PTX ISA, "Special Registers").

use isa::SpecialRegister;
use vm::{RESERVED_FOR_GROUPS, RESERVED_SHARED_BYTES};

use crate::WARP_LANES;
use crate::thread::Cpu;

impl Cpu<'_, '_> {
    /// The value of a special register in this thread.
    pub fn special(&self, register: SpecialRegister) -> u64 {
        let launch = self.cta.launch;
        let config = launch.config();
        let lane = self.thread.lane();
        // Lanes below this one, a bit each.
        let below = (1u64 << lane) - 1;
        let all = u64::from(u32::MAX);
        let (name, axis) = match register.name().split_once('.') {
            Some((name, "x")) => (name, 0),
            Some((name, "y")) => (name, 1),
            Some((name, "z")) => (name, 2),
            // The fourth element of a vector reads as zero.
            Some(_) => return 0,
            None => (register.name(), 0),
        };
        match name {
            "%tid" => launch.thread(self.thread.index)[axis].into(),
            "%ntid" => config.block[axis].into(),
            "%ctaid" => launch.ctaid(self.cta.index)[axis].into(),
            "%nctaid" => config.grid[axis].into(),
            "%clusterid" => (launch.ctaid(self.cta.index)[axis] / launch.cluster()[axis]).into(),
            "%nclusterid" => (config.grid[axis] / launch.cluster()[axis]).into(),
            "%cluster_ctaid" => (launch.ctaid(self.cta.index)[axis] % launch.cluster()[axis]).into(),
            "%cluster_nctaid" => launch.cluster()[axis].into(),
            "%cluster_ctarank" => self.cta.rank.into(),
            "%cluster_nctarank" => launch.cluster_blocks().into(),
            "%is_explicit_cluster" => launch.is_explicit_cluster().into(),
            "%nsmid" => 1,
            "%laneid" => lane as u64,
            "%warpid" => (self.thread.index / WARP_LANES) as u64,
            "%nwarpid" => config.block_threads().div_ceil(WARP_LANES as u64),
            "%lanemask_lt" => below,
            "%lanemask_le" => below << 1 | 1,
            "%lanemask_eq" => below + 1,
            "%lanemask_ge" => all & !below,
            "%lanemask_gt" => all & !(below << 1 | 1),
            "%dynamic_smem_size" => config.dynamic_shared,
            "%total_smem_size" => launch.shared_bytes(),
            "%aggr_smem_size" => launch.shared_bytes() + RESERVED_SHARED_BYTES,
            "%reserved_smem_offset_begin" | "%reserved_smem_offset_0" => 0,
            "%reserved_smem_offset_1" => RESERVED_FOR_GROUPS,
            "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => RESERVED_SHARED_BYTES,
            "%clock" | "%clock64" => self.cycles(),
            "%clock_hi" => self.cycles() >> 32,
            "%globaltimer" | "%globaltimer_lo" => launch.nanoseconds(),
            "%globaltimer_hi" => launch.nanoseconds() >> 32,
            "%envreg1" => launch.grid_workspace() >> 32,
            "%envreg2" => launch.grid_workspace() & 0xffff_ffff,
            // One multiprocessor, one grid: %smid, %gridid, other %envreg, %pm ...
            _ => 0,
        }
    }

    /// The clock of cycles: an instruction takes one, and so does a nanosecond of sleep.
    fn cycles(&self) -> u64 {
        self.cta.steps + self.thread.steps + self.thread.slept
    }
}
