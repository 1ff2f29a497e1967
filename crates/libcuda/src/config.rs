//! The devices that the environment configures.
//!
//! If a `PTXVM_*` variable has an invalid value, the driver does not start (`driver.rs`) and prints why on stderr.

use std::sync::OnceLock;

use devices::{Devices, read};
use ptxvm::Chip;

/// The devices of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The GPU that each of them emulates.
    pub chip: Chip,
    /// Its name, which the environment can override.
    pub name: String,
    /// The number that each device has in this machine. They differ if `CUDA_VISIBLE_DEVICES` hides or orders devices.
    pub numbers: Vec<u32>,
    /// The memory of each device in bytes.
    pub memory: u64,
    /// Whether they accept instruction forms that ptxas rejects and tinygrad emits (`sin.approx.f64`).
    pub lenient: bool,
    /// Whether the host reaches device memory at its device addresses, as on machines with one page table for both.
    pub host_access: bool,
    /// What is wrong with variables. If there is anything, the driver does not start.
    pub faults: Vec<String>,
}

impl Config {
    /// How many devices there are.
    pub fn count(&self) -> u32 {
        self.numbers.len() as u32
    }

    /// The configuration of this process: what `devices` reads, `PTXVM_LENIENT=1` and `PTXVM_HOST_ACCESS=1`.
    pub fn get() -> &'static Config {
        static CONFIG: OnceLock<Config> = OnceLock::new();
        CONFIG.get_or_init(|| Config::of(|name| std::env::var(name).ok()))
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Config {
        let devices = Devices::of(&variable);
        let mut faults = devices.faults;
        read(&variable, "PTXVM_LOG", "error, warn, info or trace", &mut faults, crate::log::Level::of);
        let switches = [
            "PTXVM_LENIENT",
            "PTXVM_HOST_ACCESS",
            // Others read these, later; here they are checked.
            "PTXVM_PAD_VARIABLES",
            "PTXVM_PROFILE",
            "PTXVM_TRACK_UNUSED_MEMORY",
        ];
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
        let [lenient, host_access] = [lenient, host_access].map(|switch| switch.unwrap_or(false));
        Config {
            chip: devices.chip,
            name: devices.name,
            numbers: devices.visible,
            memory: devices.memory,
            lenient,
            host_access,
            faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_describes_the_devices() {
        let hidden = Config::of(|name| match name {
            "PTXVM_DEVICE_COUNT" => Some("4".to_owned()),
            "CUDA_VISIBLE_DEVICES" => Some("3,1".to_owned()),
            _ => None,
        });
        assert_eq!((hidden.count(), &hidden.numbers[..]), (2, &[3, 1][..]));
        assert!(!hidden.lenient && !hidden.host_access);
        let with = |name: &str| Config::of(|other| (other == name).then(|| "1".to_owned()));
        assert!(with("PTXVM_LENIENT").lenient && with("PTXVM_HOST_ACCESS").host_access);
    }

    #[test]
    fn unknown_values_are_faults() {
        let faults = |name: &'static str, value: &'static str| {
            Config::of(move |other| (other == name).then(|| value.to_owned())).faults
        };
        for (name, bad, good) in [
            ("PTXVM_DEVICE", "sm_nine", "sm_80"),
            ("PTXVM_LOG", "garbage", "warn"),
            ("PTXVM_TOOL", "zzz", "racecheck"),
            ("PTXVM_LENIENT", "yes", "1"),
            ("PTXVM_HOST_ACCESS", "on", "0"),
            ("PTXVM_PAD_VARIABLES", "on", "1"),
        ] {
            let [fault] = &faults(name, bad)[..] else { panic!("{name}={bad}") };
            assert!(fault.contains(name) && fault.contains(bad), "{fault}");
            assert_eq!((faults(name, good), faults(name, "")), (vec![], vec![]), "{name}={good}");
        }
    }
}
