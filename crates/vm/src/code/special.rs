//! Special registers whose values stay while a block runs.

use isa::SpecialRegister;

use crate::grid::Launch;
use crate::mask::WARP_LANES;
use crate::registers::Scalar;

/// How the value of a special register is found (PTX ISA, "Special Registers").
#[derive(Clone, Copy)]
pub(crate) enum Special {
    /// `%tid`, by axis.
    Tid(usize),
    /// `%ctaid` and, since every cluster is one block, `%clusterid`.
    Ctaid(usize),
    /// `%laneid`
    LaneId,
    /// `%warpid`
    WarpId,
    /// `%lanemask_eq`, `_le`, `_lt`, `_ge`, `_gt`: a function of `%laneid`.
    LaneMask(fn(u32) -> u32),
    /// The same for all threads of the launch.
    Uniform(u64),
}

impl Special {
    /// The rule for a register.
    pub fn of(register: SpecialRegister, launch: &Launch) -> Special {
        let name = register.name();
        let (base, axis) = match name.split_once('.') {
            Some((base, "x")) => (base, 0),
            Some((base, "y")) => (base, 1),
            Some((base, "z")) => (base, 2),
            // The fourth component of a four-element register reads as zero.
            Some(_) => return Special::Uniform(0),
            None => (name, 0),
        };
        let warps = launch.config.block_threads().div_ceil(WARP_LANES as u64);
        match base {
            "%tid" => Special::Tid(axis),
            "%ntid" => Special::Uniform(launch.config.block[axis].into()),
            "%ctaid" | "%clusterid" => Special::Ctaid(axis),
            "%nctaid" | "%nclusterid" => Special::Uniform(launch.config.grid[axis].into()),
            "%laneid" => Special::LaneId,
            "%warpid" => Special::WarpId,
            "%nwarpid" => Special::Uniform(warps),
            "%lanemask_eq" => Special::LaneMask(|lane| 1 << lane),
            "%lanemask_le" => Special::LaneMask(|lane| (2u32 << lane).wrapping_sub(1)),
            "%lanemask_lt" => Special::LaneMask(|lane| (1 << lane) - 1),
            "%lanemask_ge" => Special::LaneMask(|lane| !((1 << lane) - 1)),
            "%lanemask_gt" => Special::LaneMask(|lane| !(2u32 << lane).wrapping_sub(1)),
            // One multiprocessor, clusters of one block.
            "%nsmid" | "%cluster_nctaid" | "%cluster_nctarank" => Special::Uniform(1),
            "%dynamic_smem_size" => Special::Uniform(launch.config.dynamic_shared),
            "%total_smem_size" | "%aggr_smem_size" => Special::Uniform(launch.shared_bytes),
            // %smid, %gridid, %cluster_ctaid, %is_explicit_cluster, %envreg, %pm ...
            _ => Special::Uniform(0),
        }
    }

    /// It can differ between blocks.
    pub fn depends_on_block(self) -> bool {
        matches!(self, Special::Ctaid(_))
    }

    /// Its value in all lanes of a chunk, if it steps evenly.
    pub fn scalar(self, launch: &Launch, ctaid: [u32; 3], first_thread: u32, lanes: usize) -> Option<Scalar> {
        match self {
            Special::Uniform(value) => Some(Scalar::uniform(value)),
            Special::Ctaid(axis) => Some(Scalar::uniform(ctaid[axis].into())),
            Special::Tid(axis) => {
                let [nx, ny, _] = launch.config.block.map(u64::from);
                let first = u64::from(first_thread);
                let last = first + lanes as u64 - 1;
                match axis {
                    0 if first / nx == last / nx || nx == launch.config.block_threads() => {
                        Some(Scalar { base: first % nx, stride: 1 })
                    }
                    1 if first / nx == last / nx => Some(Scalar::uniform(first / nx % ny)),
                    1 if ny == 1 => Some(Scalar::uniform(0)),
                    2 if first / (nx * ny) == last / (nx * ny) => Some(Scalar::uniform(first / (nx * ny))),
                    2 if launch.config.block[2] == 1 => Some(Scalar::uniform(0)),
                    _ => None,
                }
            }
            Special::LaneId if lanes <= WARP_LANES => Some(Scalar { base: 0, stride: 1 }),
            Special::WarpId if lanes <= WARP_LANES => Some(Scalar::uniform(u64::from(first_thread) / 32)),
            _ => None,
        }
    }

    /// Its value in one thread, given the thread's linear index in the block.
    pub fn value(self, launch: &Launch, ctaid: [u32; 3], thread: u32) -> u64 {
        let lane = thread % WARP_LANES as u32;
        match self {
            Special::Tid(axis) => launch.thread(thread as usize)[axis].into(),
            Special::Ctaid(axis) => ctaid[axis].into(),
            Special::LaneId => lane.into(),
            Special::WarpId => (thread / WARP_LANES as u32).into(),
            Special::LaneMask(of) => of(lane).into(),
            Special::Uniform(value) => value,
        }
    }
}
