//! The devices that the environment describes, and which processes use them. The CUDA driver, NVML and `nvidia-smi` all ask here, so that
//! they tell of the same devices.
#![forbid(unsafe_code)]

mod in_use;

use ptxvm::Chip;
use ptxvm::process_report::DEVICES;

pub use in_use::{Process, processes};

/// The version of NVIDIA's driver that NVML and `nvidia-smi` report. NVIDIA has none of this number, which is above all of its own; the
/// digits behind the point are the CUDA version.
pub const DRIVER_VERSION: &str = "999.13.05";

/// The CUDA version that the driver reports: 13.5, the newest one whose functions it knows.
pub const CUDA_VERSION: i32 = 13050;

/// The devices of this machine. All are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// The GPU that each of them emulates.
    pub chip: Chip,
    /// Its name, which the environment can override.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// The numbers of those that CUDA shows, in its order.
    pub visible: Vec<u32>,
    /// The memory of each device in bytes.
    pub memory: u64,
    /// What is wrong with variables. If there is anything, neither driver nor NVML starts.
    pub faults: Vec<String>,
}

const DEFAULT: u32 = 90;

impl Devices {
    /// The devices of this process.
    pub fn get() -> Devices {
        Devices::of(|name| std::env::var(name).ok())
    }

    /// The devices that environment variables describe: `PTXVM_DEVICE` (`sm_90`), `PTXVM_DEVICE_NAME`, `PTXVM_DEVICE_COUNT`,
    /// `PTXVM_DEVICE_MEMORY` (bytes, or with `K`, `M`, `G`), and `CUDA_VISIBLE_DEVICES`. That is a list of device numbers or UUIDs: the
    /// first one that does not exist ends it.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Devices {
        let mut faults = Vec::new();
        let default = Chip::of_capability(DEFAULT).expect("the table has it");
        let chip = read(&variable, "PTXVM_DEVICE", "a target such as sm_90", &mut faults, |name| {
            Chip::of_capability(capability(name)?)
        });
        let chip = chip.unwrap_or(default);
        let counts = format!("a number of devices up to {DEVICES}");
        let count = read(&variable, "PTXVM_DEVICE_COUNT", &counts, &mut faults, |text| {
            text.parse().ok().filter(|count| *count as usize <= DEVICES)
        });
        let count = count.unwrap_or(1);
        let visible = variable("CUDA_VISIBLE_DEVICES")
            .map_or_else(|| (0..count).collect(), |list| visible(&list, count));
        let memory =
            read(&variable, "PTXVM_DEVICE_MEMORY", "a number of bytes such as 2G", &mut faults, size);
        // A program that takes all device memory must leave memory for the host.
        let memory = memory.unwrap_or_else(|| (u64::from(chip.memory) << 30).min(host_memory() / 4 * 3));
        let name = variable("PTXVM_DEVICE_NAME").unwrap_or_else(|| chip.name.to_owned());
        Devices { chip, name, count, visible, memory, faults }
    }
}

/// The UUID of a device. No real device has it.
pub fn uuid(number: u32) -> [u8; 16] {
    let mut bytes = *b"ptxvm-a-gpu-of-0";
    bytes[15] = b'0'.wrapping_add(number as u8);
    bytes
}

/// The UUID as `nvidia-smi -L` and `CUDA_VISIBLE_DEVICES` write it: `GPU-70747876-6d2d-612d-6770-752d6f662d30`.
pub fn uuid_text(number: u32) -> String {
    let part = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let bytes = uuid(number);
    let parts = [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(part);
    format!("GPU-{}", parts.join("-"))
}

/// The number of the bus on which a device is. It is the only one there.
pub fn bus(number: u32) -> u32 {
    number + 1
}

/// The place of a device: `0000:01:00.0`.
pub fn bus_id(number: u32) -> String {
    format!("0000:{:02X}:00.0", bus(number))
}

/// Reads a variable. An empty value counts as unset; an invalid one is a fault, whose text says that it is not `what`.
pub fn read<T>(
    variable: impl Fn(&str) -> Option<String>,
    name: &str,
    what: &str,
    faults: &mut Vec<String>,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let text = variable(name).filter(|text| !text.is_empty())?;
    let value = parse(&text);
    if value.is_none() {
        faults.push(format!("{name} is `{text}`, which is not {what}"));
    }
    value
}

/// The devices that a list of `CUDA_VISIBLE_DEVICES` leaves visible: those before the first that does not exist, or none if one occurs
/// twice.
fn visible(list: &str, count: u32) -> Vec<u32> {
    let number = |entry: &str| match entry.trim() {
        uuid if uuid.starts_with("GPU-") => {
            let mut found = (0..count).filter(|&number| uuid_text(number).starts_with(uuid));
            found.next().filter(|_| found.next().is_none())
        }
        number => number.parse().ok().filter(|number| *number < count),
    };
    let there: Vec<u32> = list.split(',').map_while(number).collect();
    let is_twice = there.iter().enumerate().any(|(i, number)| there[..i].contains(number));
    if is_twice { Vec::new() } else { there }
}

/// The capability that `sm_90`, `sm_90a`, `90` or `9.0` names.
fn capability(name: &str) -> Option<u32> {
    let name = name.trim().trim_start_matches("sm_").trim_end_matches(['a', 'f']);
    match name.split_once('.') {
        Some((major, minor)) => {
            Some(major.parse::<u32>().ok()?.checked_mul(10)? + minor.parse::<u8>().ok()? as u32)
        }
        None => name.parse().ok(),
    }
}

/// A size in bytes, such as `48K` or `2G`.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) =
        match text.to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B').chars().last()? {
            'K' => (text.split_at(text.find(['K', 'k'])?).0, 10),
            'M' => (text.split_at(text.find(['M', 'm'])?).0, 20),
            'G' => (text.split_at(text.find(['G', 'g'])?).0, 30),
            _ => (text, 0),
        };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The memory of this machine in bytes.
fn host_memory() -> u64 {
    use nix::unistd::{SysconfVar, sysconf};
    let value = |variable| sysconf(variable).ok().flatten().and_then(|value| u64::try_from(value).ok());
    let known = value(SysconfVar::_PHYS_PAGES).zip(value(SysconfVar::PAGE_SIZE));
    known.map_or(8 << 30, |(pages, bytes)| pages.saturating_mul(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_describes_the_devices() {
        let with = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Devices::of(move |name| {
                pairs.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
            })
        };
        assert_eq!((with(&[]).chip.capability, with(&[]).count), (90, 1));
        assert_eq!(with(&[("PTXVM_DEVICE", "sm_100a")]).chip.name, "NVIDIA B200");
        assert_eq!(with(&[("PTXVM_DEVICE", "8.6")]).chip.capability, 86);
        assert_eq!(with(&[("PTXVM_DEVICE_MEMORY", "2G")]).memory, 2 << 30);
        assert_eq!(with(&[("PTXVM_DEVICE_MEMORY", "512MiB")]).memory, 512 << 20);
        assert_eq!(with(&[("PTXVM_DEVICE_COUNT", "4")]).count, 4);
        assert_eq!(with(&[("PTXVM_DEVICE_COUNT", "2")]).visible, [0, 1]);
        assert!(with(&[("CUDA_VISIBLE_DEVICES", "")]).visible.is_empty());
        assert_eq!(with(&[("CUDA_VISIBLE_DEVICES", "0")]).visible, [0]);
        let visible = |list| with(&[("PTXVM_DEVICE_COUNT", "4"), ("CUDA_VISIBLE_DEVICES", list)]).visible;
        assert_eq!((visible("3,1"), visible("0,5,1"), visible("5")), (vec![3, 1], vec![0], vec![]));
        assert_eq!((visible("1,1"), visible("-1")), (vec![], vec![]));
        assert_eq!(
            (visible(&uuid_text(2)), visible("GPU-"), visible("GPU-ffffffff")),
            (vec![2], vec![], vec![])
        );
        // They hide devices from CUDA alone.
        assert_eq!(with(&[("PTXVM_DEVICE_COUNT", "4"), ("CUDA_VISIBLE_DEVICES", "2")]).count, 4);
    }

    #[test]
    fn unknown_values_are_faults() {
        let faults = |name: &'static str, value: &'static str| {
            Devices::of(move |other| (other == name).then(|| value.to_owned())).faults
        };
        for (name, bad, good) in [
            ("PTXVM_DEVICE", "sm_nine", "sm_80"),
            ("PTXVM_DEVICE_COUNT", "x", "2"),
            ("PTXVM_DEVICE_COUNT", "65", "64"),
            ("PTXVM_DEVICE_MEMORY", "abc", "48M"),
        ] {
            let [fault] = &faults(name, bad)[..] else { panic!("{name}={bad}") };
            assert!(fault.contains(name) && fault.contains(bad), "{fault}");
            assert_eq!((faults(name, good), faults(name, "")), (vec![], vec![]), "{name}={good}");
        }
    }

    #[test]
    fn a_device_has_an_uuid_and_a_place() {
        assert_eq!(uuid_text(0), "GPU-70747876-6d2d-612d-6770-752d6f662d30");
        assert_ne!(uuid(0), uuid(63));
        assert_eq!((bus_id(0), bus_id(15)), ("0000:01:00.0".to_owned(), "0000:10:00.0".to_owned()));
    }
}
