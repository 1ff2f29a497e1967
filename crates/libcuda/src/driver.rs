//! The driver as a whole: the devices, and one machine whose memory they share.

use std::sync::OnceLock;

use crate::config::Config;
use crate::context::Primary;
use crate::memory::Allocations;
use crate::{INVALID, Status};

/// The state behind the API.
pub struct Driver {
    /// Configuration of the devices.
    pub config: &'static Config,
    /// Memory and launches. All devices share an address space, so that each can access the memory of the others.
    pub machine: machine::Device,
    /// The same as a type of the public API.
    pub device: ptxvm::Device,
    /// The live allocations.
    pub allocations: Allocations,
    /// The primary context of each device.
    pub primaries: Vec<Primary>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// Starts the driver, unless it is running.
///
/// # Errors
/// If there is no device, or an environment variable has an invalid value.
pub fn start() -> Result<&'static Driver, Status> {
    crate::process::watch_forks();
    machine::report_briefly();
    crate::report::begin();
    let faults = &Config::get().faults;
    if !faults.is_empty() {
        crate::log::log!(error_once, "{}", faults.join("\nptxvm: "));
        return Err(INVALID);
    }
    if Config::get().count() == 0 {
        return Err(Status::CUDA_ERROR_NO_DEVICE);
    }
    Ok(DRIVER.get_or_init(|| {
        let config = Config::get();
        let machine = machine::Device::new();
        machine.keep_apart_from_host();
        Driver {
            config,
            device: ptxvm::Device::from(machine.clone()),
            machine,
            allocations: Allocations::default(),
            primaries: (0..config.count()).map(Primary::new).collect(),
        }
    }))
}

/// With `PTXVM_PAD_VARIABLES=1`, variables of modules end at multiples of this.
const VARIABLE_GRANULE: u64 = 256;

/// The running driver.
///
/// # Errors
/// If it has not been started.
pub fn driver() -> Result<&'static Driver, Status> {
    DRIVER.get().ok_or(Status::CUDA_ERROR_NOT_INITIALIZED)
}

impl Driver {
    /// Whether kernels may read behind variables and arrays. The environment says so when the first module is loaded, or the
    /// first array taken in stream order: JAX may start the driver before ptxvm's part of JAX sets the variable.
    pub fn pads(&self) -> bool {
        static PADS: OnceLock<bool> = OnceLock::new();
        *PADS.get_or_init(|| {
            let pads = std::env::var("PTXVM_PAD_VARIABLES").is_ok_and(|value| value == "1");
            if pads {
                self.machine.round_variables_up(VARIABLE_GRANULE);
            }
            pads
        })
    }

    /// Checks a device number.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn ordinal(&self, device: i32) -> Result<u32, Status> {
        let ordinal = u32::try_from(device).ok().filter(|&ordinal| ordinal < self.config.count());
        ordinal.ok_or(Status::CUDA_ERROR_INVALID_DEVICE)
    }

    /// The number that a device has in this machine.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn number(&self, device: i32) -> Result<u32, Status> {
        let ordinal = self.ordinal(device)?;
        self.config.numbers.get(ordinal as usize).copied().ok_or(Status::CUDA_ERROR_INVALID_DEVICE)
    }

    /// The primary context of a device.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn primary(&self, device: i32) -> Result<&Primary, Status> {
        let ordinal = self.ordinal(device)?;
        self.primaries.get(ordinal as usize).ok_or(Status::CUDA_ERROR_INVALID_DEVICE)
    }
}
