//! The GPUs that the devices emulate: one real product per compute capability, with the figures of its data sheet and of the table
//! "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide.

/// The properties of a GPU that programs can query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// 10 * major + minor: 90 is sm_90.
    pub capability: u32,
    /// The product.
    pub name: &'static str,
    /// Their number.
    pub multiprocessors: u32,
    /// Shared memory of a multiprocessor in KiB.
    pub shared_of_multiprocessor: u32,
    /// Shared memory that a block may request in KiB (from sm_80 on, 1 KiB of the multiprocessor's is reserved for each block).
    pub shared_opt_in: u32,
    /// The most threads that a multiprocessor runs at a time.
    pub threads_of_multiprocessor: u32,
    /// The most blocks that it runs at a time.
    pub blocks_of_multiprocessor: u32,
    /// MHz.
    pub clock: u32,
    /// MHz.
    pub memory_clock: u32,
    /// Bits.
    pub memory_bus: u32,
    /// GiB.
    pub memory: u32,
    /// MiB.
    pub l2_cache: u32,
    /// The ratio of single to double precision performance.
    pub double_ratio: u32,
}

/// In ascending order of capability.
const CHIPS: &[Chip] = &[
    chip(50, "NVIDIA GeForce GTX 750 Ti", 5, 64, 48, 2048, 32, (1085, 2700, 128, 2, 2), 32),
    chip(52, "NVIDIA GeForce GTX 980", 16, 96, 48, 2048, 32, (1216, 3505, 256, 4, 2), 32),
    chip(60, "Tesla P100-PCIE-16GB", 56, 64, 48, 2048, 32, (1329, 715, 4096, 16, 4), 2),
    chip(61, "NVIDIA GeForce GTX 1080 Ti", 28, 96, 48, 2048, 32, (1582, 5505, 352, 11, 3), 32),
    chip(70, "Tesla V100-SXM2-16GB", 80, 96, 96, 2048, 32, (1530, 877, 4096, 16, 6), 2),
    chip(75, "Tesla T4", 40, 64, 64, 1024, 16, (1590, 5001, 256, 16, 4), 32),
    chip(80, "NVIDIA A100-SXM4-80GB", 108, 164, 163, 2048, 32, (1410, 1593, 5120, 80, 40), 2),
    chip(86, "NVIDIA A10", 72, 100, 99, 1536, 16, (1695, 6251, 384, 24, 6), 64),
    chip(87, "Orin", 16, 164, 163, 1536, 16, (1300, 1600, 256, 32, 4), 64),
    chip(89, "NVIDIA L4", 58, 100, 99, 1536, 24, (2040, 6251, 192, 24, 48), 64),
    chip(90, "NVIDIA H100 80GB HBM3", 132, 228, 227, 2048, 32, (1980, 2619, 5120, 80, 50), 2),
    chip(100, "NVIDIA B200", 148, 228, 227, 2048, 32, (1965, 3996, 8192, 180, 126), 2),
    chip(103, "NVIDIA B300", 148, 228, 227, 2048, 32, (1920, 3996, 8192, 268, 126), 64),
    chip(110, "NVIDIA Thor", 20, 228, 227, 1536, 24, (1575, 4266, 256, 128, 32), 64),
    chip(120, "NVIDIA GeForce RTX 5090", 170, 100, 99, 1536, 24, (2407, 14001, 512, 32, 96), 64),
    chip(121, "NVIDIA GB10", 48, 100, 99, 1536, 24, (2418, 4266, 256, 128, 24), 64),
];

#[allow(clippy::too_many_arguments)] // a row of a table
const fn chip(
    capability: u32,
    name: &'static str,
    multiprocessors: u32,
    shared_of_multiprocessor: u32,
    shared_opt_in: u32,
    threads_of_multiprocessor: u32,
    blocks_of_multiprocessor: u32,
    (clock, memory_clock, memory_bus, memory, l2_cache): (u32, u32, u32, u32, u32),
    double_ratio: u32,
) -> Chip {
    Chip {
        capability,
        name,
        multiprocessors,
        shared_of_multiprocessor,
        shared_opt_in,
        threads_of_multiprocessor,
        blocks_of_multiprocessor,
        clock,
        memory_clock,
        memory_bus,
        memory,
        l2_cache,
        double_ratio,
    }
}

impl Chip {
    /// Whether the GPU is one of a system on chip, which shares the memory of the host.
    pub fn is_integrated(&self) -> bool {
        matches!(self.capability, 87 | 110 | 121)
    }

    /// Whether its memory corrects errors: that of data centres does.
    pub fn has_ecc(&self) -> bool {
        matches!(self.capability, 60 | 70 | 75 | 80 | 86 | 89 | 90 | 100 | 103)
    }

    /// The GPU of a capability. If no row has it, the row with the next smaller capability, under the requested number.
    pub fn of_capability(capability: u32) -> Option<Chip> {
        let before = CHIPS.iter().rev().find(|chip| chip.capability <= capability)?;
        (capability <= 121).then_some(Chip { capability, ..*before })
    }

    /// The major number of the compute capability.
    pub fn major(&self) -> u32 {
        self.capability / 10
    }

    /// The minor number of the compute capability.
    pub fn minor(&self) -> u32 {
        self.capability % 10
    }

    /// How many blocks of a kernel a multiprocessor runs at a time (CUDA C++ Programming Guide, "Occupancy Calculator").
    ///
    /// `registers` and `shared` are the registers of a thread and the bytes of shared memory of a block.
    pub fn occupancy(&self, threads: u32, registers: u32, shared: u64) -> Occupancy {
        let reserved = if self.capability >= 80 { 1024 } else { 0 };
        let warps = threads.div_ceil(32).max(1);
        let by_shared = match shared + reserved {
            0 => u32::MAX,
            bytes => (u64::from(self.shared_of_multiprocessor) * 1024 / bytes.next_multiple_of(128)) as u32,
        };
        let of_warp = (registers * 32).next_multiple_of(REGISTER_UNIT).max(REGISTER_UNIT);
        let limits = [
            (self.threads_of_multiprocessor / 32 / warps, OccupancyLimit::Threads),
            (by_shared, OccupancyLimit::SharedMemory),
            ((REGISTERS / of_warp / warps).max(1), OccupancyLimit::Registers),
            (self.blocks_of_multiprocessor, OccupancyLimit::Blocks),
        ];
        let (blocks, limit) =
            limits.into_iter().min_by_key(|(blocks, _)| *blocks).unwrap_or((0, OccupancyLimit::Blocks));
        Occupancy { blocks, warps: blocks * warps, most_warps: self.threads_of_multiprocessor / 32, limit }
    }
}

/// 32-bit registers of a multiprocessor.
const REGISTERS: u32 = 65536;
/// The registers of a warp are allocated in units of this.
const REGISTER_UNIT: u32 = 256;

/// What a multiprocessor runs at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occupancy {
    /// Blocks.
    pub blocks: u32,
    /// Warps of these blocks.
    pub warps: u32,
    /// The most warps that it can run.
    pub most_warps: u32,
    /// Why there are not more blocks.
    pub limit: OccupancyLimit,
}

/// What bounds the number of blocks of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OccupancyLimit {
    /// The threads that it can run.
    Threads,
    /// Its shared memory.
    SharedMemory,
    /// Its registers.
    Registers,
    /// The blocks that it can run.
    Blocks,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_is_bounded_by_what_is_scarcest() {
        let h100 = Chip::of_capability(90).unwrap();
        let of = |threads, registers, shared| {
            let occupancy = h100.occupancy(threads, registers, shared);
            (occupancy.blocks, occupancy.warps, occupancy.limit)
        };
        assert_eq!(of(256, 32, 0), (8, 64, OccupancyLimit::Threads));
        assert_eq!(of(256, 64, 0), (4, 32, OccupancyLimit::Registers));
        assert_eq!(of(256, 32, 100 << 10), (2, 16, OccupancyLimit::SharedMemory));
        assert_eq!(of(32, 32, 0), (32, 32, OccupancyLimit::Blocks));
        // One kernel always fits.
        assert_eq!(of(1024, 255, 0).0, 1);
    }
}
