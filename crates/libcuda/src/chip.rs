//! The GPUs that the devices emulate: one real product per compute capability, with the figures of its data sheet and of the table
//! "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide.

/// The properties of a GPU that programs can query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// 10 * major + minor: 90 is sm_90.
    pub capability: u32,
    /// The product.
    pub name: &'static str,
    pub multiprocessors: u32,
    /// Shared memory of a multiprocessor in KiB.
    pub shared_of_multiprocessor: u32,
    /// Shared memory that a block may request in KiB (from sm_80 on, 1 KiB of the multiprocessor's is reserved for each block).
    pub shared_opt_in: u32,
    pub threads_of_multiprocessor: u32,
    pub blocks_of_multiprocessor: u32,
    /// MHz.
    pub clock: u32,
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

/// The last attribute of the driver of [`crate::DRIVER_VERSION`]; all smaller numbers are attributes, too.
const LAST_ATTRIBUTE: u32 = 161;

impl Chip {
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

    /// The answer of `cuDeviceGetAttribute`, by number of the attribute (`CUdevice_attribute`), if it is one.
    pub fn attribute(&self, attribute: u32, ordinal: u32) -> Option<i32> {
        (1..=LAST_ATTRIBUTE).contains(&attribute).then(|| self.value_of(attribute, ordinal))
    }

    /// The value of an attribute; 0 if it is not modeled. NVIDIA's runtime queries every attribute that it knows, and gives up at the first
    /// error.
    fn value_of(&self, attribute: u32, ordinal: u32) -> i32 {
        let since = |capability: u32| i32::from(self.capability >= capability);
        let kib = |kib: u32| (kib * 1024) as i32;
        let kept_for_block = if self.capability >= 80 { 1024 } else { 0 };
        let (persisting, window) =
            if self.capability >= 80 { ((self.l2_cache << 20) / 16 * 10, 128 << 20) } else { (0, 0) };
        let integrated = matches!(self.capability, 87 | 110 | 121);
        match attribute {
            1..=3 => 1024,
            4 => 64,
            5 => 0x7fff_ffff,
            6 | 7 => 65535,
            8 => kib(48),
            9 => kib(64),
            10 => 32,
            11 => 0x7fff_ffff,
            12 | 82 => 65536,
            13 => (self.clock * 1000) as i32,
            14 | 30 => 512,
            15 | 19 | 31 | 41 | 44 | 78 | 79 | 80 | 83 | 90 | 91 | 99 => 1,
            16 => self.multiprocessors as i32,
            17 | 20 | 35 | 84 | 85 => 0,
            18 => i32::from(integrated),
            21..=23 => {
                if self.capability < 60 {
                    65536
                } else {
                    131_072
                }
            }
            24..=26 => {
                if self.capability < 60 {
                    4096
                } else {
                    16384
                }
            }
            27 | 28 | 42 | 52 | 53 | 77 => {
                if self.capability < 60 {
                    16384
                } else {
                    32768
                }
            }
            29 | 43 => 2048,
            32 => i32::from(
                !integrated && matches!(self.capability, 60 | 70 | 75 | 80 | 86 | 89 | 90 | 100 | 103),
            ),
            33 => 1 + ordinal as i32,
            34 | 50 => 0,
            36 => (self.memory_clock * 1000) as i32,
            37 => self.memory_bus as i32,
            38 => (self.l2_cache << 20) as i32,
            39 => self.threads_of_multiprocessor as i32,
            40 => 3,
            45 | 46 => {
                if self.capability < 60 {
                    16384
                } else {
                    32768
                }
            }
            47 | 48 => {
                if self.capability < 60 {
                    2048
                } else {
                    8192
                }
            }
            49 => {
                if self.capability < 60 {
                    16384
                } else {
                    32768
                }
            }
            51 => 32,
            54 | 68 => 2046,
            55 | 61 | 63 | 64 | 66 | 67 => 32768,
            56 => 131_072,
            57 => 65536,
            58..=60 => 16384,
            62 | 65 => 2048,
            69 => 1 << 28,
            70 => 131_072,
            71 => 65000,
            72 => 2_097_120,
            73 | 74 => 32768,
            75 => self.major() as i32,
            76 => self.minor() as i32,
            81 => kib(self.shared_of_multiprocessor),
            87 => self.double_ratio as i32,
            // Managed memory is host memory, which host and device may access at the same time.
            89 => since(60),
            92..=94 | 122 | 123 => 1,
            95 => since(60),
            97 => kib(self.shared_opt_in),
            102 => 1,
            103 => 0,
            106 => self.blocks_of_multiprocessor as i32,
            108 => persisting as i32,
            109 => window,
            111 => kept_for_block,
            112 => 0,
            113 => 1,
            115 => 1,
            120 => since(90),
            126 => {
                if self.capability >= 90 {
                    4
                } else {
                    1
                }
            }
            127 => since(90),
            129 => 1,
            131 => -1,
            134 => 0,
            // The selected allocation class makes no difference.
            160 => i32::MAX,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_of_the_table_has_a_chip() {
        assert!(CHIPS.is_sorted_by_key(|chip| chip.capability));
        for capability in [50, 53, 62, 72, 75, 80, 90, 101, 121] {
            let chip = Chip::of_capability(capability).unwrap();
            let attribute = |number| chip.attribute(number, 0).unwrap();
            assert_eq!(attribute(75) * 10 + attribute(76), capability as i32);
            assert!(chip.shared_opt_in <= chip.shared_of_multiprocessor && chip.shared_opt_in >= 48);
        }
        assert_eq!((Chip::of_capability(40), Chip::of_capability(122)), (None, None));
        assert_eq!(Chip::of_capability(90).unwrap().attribute(97, 0), Some(232_448));
    }
}
