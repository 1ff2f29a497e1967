//! The attributes of a device, by the numbers that the driver gives them.

use ptxvm::Chip;

/// The last attribute of the driver of [`crate::DRIVER_VERSION`]; all smaller numbers are attributes, too.
const LAST_ATTRIBUTE: u32 = 161;

/// The answers of `cuDeviceGetAttribute`.
pub trait Attributes {
    /// The value of an attribute (`CUdevice_attribute`), if the number is one, of the device with this number in the machine.
    fn attribute(&self, attribute: u32, device: u32) -> Option<i32>;
}

impl Attributes for Chip {
    fn attribute(&self, attribute: u32, device: u32) -> Option<i32> {
        (1..=LAST_ATTRIBUTE).contains(&attribute).then(|| value_of(self, attribute, device))
    }
}

/// The value of an attribute; 0 if it is not modeled. NVIDIA's runtime queries every attribute that it knows, and gives up at the first
/// error.
fn value_of(chip: &Chip, attribute: u32, device: u32) -> i32 {
    let from =
        |capability: u32, value: i32, before: i32| if chip.capability >= capability { value } else { before };
    let since = |capability: u32| from(capability, 1, 0);
    let kib = |kib: u32| (kib * 1024) as i32;
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
        13 => (chip.clock * 1000) as i32,
        14 | 30 => 512,
        15 | 19 | 31 | 41 | 44 | 78 | 79 | 80 | 83 | 90 | 91 | 99 => 1,
        16 => chip.multiprocessors as i32,
        18 => chip.is_integrated().into(),
        21..=23 => from(60, 131_072, 65536),
        24..=26 => from(60, 16384, 4096),
        27 | 28 | 42 | 45 | 46 | 49 | 52 | 53 | 77 => from(60, 32768, 16384),
        29 | 43 => 2048,
        32 => chip.has_ecc().into(),
        33 => devices::bus(device) as i32,
        36 => (chip.memory_clock * 1000) as i32,
        37 => chip.memory_bus as i32,
        38 => (chip.l2_cache << 20) as i32,
        39 => chip.threads_of_multiprocessor as i32,
        40 => 3,
        47 | 48 => from(60, 8192, 2048),
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
        75 => chip.major() as i32,
        76 => chip.minor() as i32,
        81 => kib(chip.shared_of_multiprocessor),
        87 => chip.double_ratio as i32,
        // Managed memory is host memory, which host and device may access at the same time.
        89 => since(60),
        95 => since(60),
        92..=94 | 102 | 113 | 115 | 122 | 123 | 129 => 1,
        97 => kib(chip.shared_opt_in),
        // Processes share memory by descriptors, also that of pools, and events.
        103 | 119 | 125 => 1,
        106 => chip.blocks_of_multiprocessor as i32,
        // Memory that is made compressible is remembered as such, and takes as much as other memory.
        107 => (chip.minor() == 0 && matches!(chip.major(), 8..=10)).into(),
        108 => from(80, ((chip.l2_cache << 20) / 16 * 10) as i32, 0),
        109 => from(80, 128 << 20, 0),
        111 => from(80, 1024, 0),
        126 => from(90, 4, 1),
        120 | 127 => since(90),
        131 => -1,
        // The selected allocation class makes no difference.
        160 => i32::MAX,
        // It is also the value of 17, 20, 34, 35, 50, 84, 85, 112 and 134.
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_of_the_table_has_a_chip() {
        for capability in [50, 53, 62, 72, 75, 80, 90, 101, 121] {
            let chip = Chip::of_capability(capability).unwrap();
            let attribute = |number| chip.attribute(number, 0).unwrap();
            assert_eq!(attribute(75) * 10 + attribute(76), capability as i32);
            assert!(chip.shared_opt_in <= chip.shared_of_multiprocessor && chip.shared_opt_in >= 48);
        }
        assert_eq!((Chip::of_capability(40), Chip::of_capability(122)), (None, None));
        assert_eq!(Chip::of_capability(90).unwrap().attribute(97, 0), Some(232_448));
        let compresses = |capability| Chip::of_capability(capability).unwrap().attribute(107, 0);
        assert_eq!([75, 80, 89, 90].map(compresses), [Some(0), Some(1), Some(0), Some(1)]);
    }
}
