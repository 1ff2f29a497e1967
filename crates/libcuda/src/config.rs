//! What the environment says about the devices.

use std::sync::OnceLock;

use crate::chip::Chip;
use crate::log::log;

/// The devices of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What each of them is.
    pub chip: Chip,
    /// Its name, unless the program is to see another.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// Bytes of memory of each.
    pub memory: u64,
    /// They take forms of instructions that ptxas rejects and tinygrad emits (`sin.approx.f64`).
    pub lenient: bool,
}

const DEFAULT: u32 = 90;
/// More are of no use to anybody.
const MOST_DEVICES: u32 = 64;

impl Config {
    /// The configuration of this process: `PTXVM_DEVICE` (`sm_90`), `PTXVM_DEVICE_NAME`, `PTXVM_DEVICE_COUNT`, `PTXVM_DEVICE_MEMORY` (bytes, or
    /// with `K`, `M`, `G`), `PTXVM_LENIENT=1`, and `CUDA_VISIBLE_DEVICES`, of which only an empty list or `-1` means something: no device.
    pub fn get() -> &'static Config {
        static CONFIG: OnceLock<Config> = OnceLock::new();
        CONFIG.get_or_init(|| Config::of(|name| std::env::var(name).ok()))
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Config {
        let default = Chip::of_capability(DEFAULT).expect("the table has it");
        let device = variable("PTXVM_DEVICE");
        let chip = device.as_deref().map_or(Some(default), |name| Chip::of_capability(capability(name)?));
        let chip = chip.unwrap_or_else(|| {
            log!(
                error,
                "PTXVM_DEVICE is `{}`, which is no target such as sm_90: sm_{DEFAULT} it is",
                device.unwrap_or_default()
            );
            default
        });
        let count = variable("PTXVM_DEVICE_COUNT").and_then(|count| count.parse().ok());
        let invisible = variable("CUDA_VISIBLE_DEVICES").is_some_and(|list| list.is_empty() || list == "-1");
        let count = if invisible { 0 } else { count.unwrap_or(1).min(MOST_DEVICES) };
        let memory = variable("PTXVM_DEVICE_MEMORY").and_then(|bytes| size(&bytes));
        // A program that takes all memory of the device must not take all of the host's.
        let memory = memory.unwrap_or_else(|| (u64::from(chip.memory) << 30).min(host_memory() / 4 * 3));
        let name = variable("PTXVM_DEVICE_NAME").unwrap_or_else(|| chip.name.to_owned());
        let lenient = variable("PTXVM_LENIENT").is_some_and(|value| value == "1");
        Config { chip, name, count, memory, lenient }
    }
}

/// The number of `sm_90`, `sm_90a`, `90` or `9.0`.
fn capability(name: &str) -> Option<u32> {
    let name = name.trim().trim_start_matches("sm_").trim_end_matches(['a', 'f']);
    match name.split_once('.') {
        Some((major, minor)) => {
            Some(major.parse::<u32>().ok()?.checked_mul(10)? + minor.parse::<u8>().ok()? as u32)
        }
        None => name.parse().ok(),
    }
}

/// Bytes, as `48K` or `2G`.
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

/// Bytes of memory of this machine.
fn host_memory() -> u64 {
    // SAFETY: it reads two numbers of the system.
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
        assert_eq!(with(&[("PTXVM_DEVICE", "sm_nine")]).chip.capability, 90);
        assert_eq!(with(&[("PTXVM_DEVICE_MEMORY", "2G")]).memory, 2 << 30);
        assert_eq!(with(&[("PTXVM_DEVICE_MEMORY", "512MiB")]).memory, 512 << 20);
        assert_eq!(with(&[("PTXVM_DEVICE_COUNT", "4")]).count, 4);
        assert!(with(&[("PTXVM_LENIENT", "1")]).lenient && !with(&[]).lenient);
        assert_eq!(with(&[("CUDA_VISIBLE_DEVICES", "")]).count, 0);
        assert_eq!(with(&[("CUDA_VISIBLE_DEVICES", "0")]).count, 1);
    }
}
