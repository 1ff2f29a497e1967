//! The devices that the environment configures.
//!
//! If a `PTXVM_*` variable has an invalid value, the driver does not start (`driver.rs`) and prints why on stderr.

use std::sync::OnceLock;

use ptxvm::Chip;

/// The devices of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The GPU that each of them emulates.
    pub chip: Chip,
    /// Its name, which the environment can override.
    pub name: String,
    /// The number of devices.
    pub count: u32,
    /// The memory of each device in bytes.
    pub memory: u64,
    /// Whether they accept instruction forms that ptxas rejects and tinygrad emits (`sin.approx.f64`).
    pub lenient: bool,
    /// Whether the host reaches device memory at its device addresses, as on machines with one page table for both.
    pub host_access: bool,
    /// What is wrong with variables. If there is anything, the driver does not start.
    pub faults: Vec<String>,
}

const DEFAULT: u32 = 90;
/// More devices would be of no use.
const MOST_DEVICES: u32 = 64;

impl Config {
    /// The configuration of this process: `PTXVM_DEVICE` (`sm_90`), `PTXVM_DEVICE_NAME`, `PTXVM_DEVICE_COUNT`,
    /// `PTXVM_DEVICE_MEMORY` (bytes, or with `K`, `M`, `G`), `PTXVM_LENIENT=1`, `PTXVM_HOST_ACCESS=1`, and `CUDA_VISIBLE_DEVICES`. That is a list of device
    /// numbers or UUIDs: the first one that does not exist ends it.
    pub fn get() -> &'static Config {
        static CONFIG: OnceLock<Config> = OnceLock::new();
        CONFIG.get_or_init(|| Config::of(|name| std::env::var(name).ok()))
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Config {
        let mut faults = Vec::new();
        let default = Chip::of_capability(DEFAULT).expect("the table has it");
        let chip = read(&variable, "PTXVM_DEVICE", "a target such as sm_90", &mut faults, |name| {
            Chip::of_capability(capability(name)?)
        });
        let chip = chip.unwrap_or(default);
        let counts = format!("a number of devices up to {MOST_DEVICES}");
        let count = read(&variable, "PTXVM_DEVICE_COUNT", &counts, &mut faults, |text| {
            text.parse().ok().filter(|count| *count <= MOST_DEVICES)
        });
        let count = count.unwrap_or(1);
        let count = variable("CUDA_VISIBLE_DEVICES").map_or(count, |list| visible(&list, count));
        let memory =
            read(&variable, "PTXVM_DEVICE_MEMORY", "a number of bytes such as 2G", &mut faults, size);
        read(&variable, "PTXVM_LOG", "error, warn, info or trace", &mut faults, crate::log::Level::of);
        let switches = ["PTXVM_LENIENT", "PTXVM_HOST_ACCESS", "PTXVM_PROFILE", "PTXVM_TRACK_UNUSED_MEMORY"];
        let [lenient, host_access, ..] = switches.map(|name| {
            read(&variable, name, "0 or 1", &mut faults, |text| match text {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            })
        });
        if let Some(error) = variable("PTXVM_TOOL").and_then(|names| names.parse::<ptxvm::Tools>().err()) {
            faults.push(format!("PTXVM_TOOL: {error}"));
        }
        // A program that takes all device memory must leave memory for the host.
        let memory = memory.unwrap_or_else(|| (u64::from(chip.memory) << 30).min(host_memory() / 4 * 3));
        let name = variable("PTXVM_DEVICE_NAME").unwrap_or_else(|| chip.name.to_owned());
        let [lenient, host_access] = [lenient, host_access].map(|switch| switch.unwrap_or(false));
        Config { chip, name, count, memory, lenient, host_access, faults }
    }
}

/// Reads a variable. An empty value counts as unset; an invalid one is a fault.
fn read<T>(
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

/// The number of devices that a list of `CUDA_VISIBLE_DEVICES` leaves visible: those before the first that does not exist, or none if one
/// occurs twice.
fn visible(list: &str, count: u32) -> u32 {
    let ordinal = |entry: &str| match entry.trim() {
        uuid if uuid.starts_with("GPU-") => {
            let mut found = (0..count).filter(|&ordinal| crate::device::uuid_text(ordinal).starts_with(uuid));
            found.next().filter(|_| found.next().is_none())
        }
        number => number.parse().ok().filter(|ordinal| *ordinal < count),
    };
    let there: Vec<u32> = list.split(',').map_while(ordinal).collect();
    let is_twice = there.iter().enumerate().any(|(i, ordinal)| there[..i].contains(ordinal));
    if is_twice { 0 } else { there.len() as u32 }
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
    // SAFETY: it reads two parameters of the system.
    let (pages, bytes) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let known = u64::try_from(pages).ok().zip(u64::try_from(bytes).ok());
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
            Config::of(move |name| {
                pairs.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
            })
        };
        assert_eq!((with(&[]).chip.capability, with(&[]).count), (90, 1));
        assert_eq!(with(&[("PTXVM_DEVICE", "sm_100a")]).chip.name, "NVIDIA B200");
        assert_eq!(with(&[("PTXVM_DEVICE", "8.6")]).chip.capability, 86);
        assert_eq!(with(&[("PTXVM_DEVICE_MEMORY", "2G")]).memory, 2 << 30);
        assert_eq!(with(&[("PTXVM_DEVICE_MEMORY", "512MiB")]).memory, 512 << 20);
        assert_eq!(with(&[("PTXVM_DEVICE_COUNT", "4")]).count, 4);
        assert!(with(&[("PTXVM_LENIENT", "1")]).lenient && !with(&[]).lenient);
        assert!(with(&[("PTXVM_HOST_ACCESS", "1")]).host_access && !with(&[]).host_access);
        assert_eq!(with(&[("CUDA_VISIBLE_DEVICES", "")]).count, 0);
        assert_eq!(with(&[("CUDA_VISIBLE_DEVICES", "0")]).count, 1);
        let visible = |list| with(&[("PTXVM_DEVICE_COUNT", "4"), ("CUDA_VISIBLE_DEVICES", list)]).count;
        let uuid = crate::device::uuid_text(2);
        assert_eq!(
            [visible("3,1"), visible("0,5,1"), visible("5"), visible("1,1"), visible("-1")],
            [2, 1, 0, 0, 0]
        );
        assert_eq!([visible(&uuid), visible("GPU-"), visible("GPU-ffffffff")], [1, 0, 0]);
    }

    #[test]
    fn unknown_values_are_faults() {
        let faults = |name: &'static str, value: &'static str| {
            Config::of(move |other| (other == name).then(|| value.to_owned())).faults
        };
        for (name, bad, good) in [
            ("PTXVM_DEVICE", "sm_nine", "sm_80"),
            ("PTXVM_DEVICE_COUNT", "x", "2"),
            ("PTXVM_DEVICE_COUNT", "65", "64"),
            ("PTXVM_DEVICE_MEMORY", "abc", "48M"),
            ("PTXVM_LOG", "garbage", "warn"),
            ("PTXVM_TOOL", "zzz", "racecheck"),
            ("PTXVM_LENIENT", "yes", "1"),
        ] {
            let [fault] = &faults(name, bad)[..] else { panic!("{name}={bad}") };
            assert!(fault.contains(name) && fault.contains(bad), "{fault}");
            assert_eq!((faults(name, good), faults(name, "")), (vec![], vec![]), "{name}={good}");
        }
    }
}
