//! The driver as a whole: one machine, whose memory all devices share, and the devices.

use std::sync::OnceLock;

use crate::Status;
use crate::config::Config;
use crate::context::Primary;
use crate::memory::Allocations;

/// Everything behind the API.
pub struct Driver {
    /// Configuration of the devices.
    pub config: &'static Config,
    /// Memory and launches. All devices have the same address space, so that each can reach the memory of the others.
    pub machine: vm::Device,
    /// The same, as the public API has it.
    pub device: ptxvm::Device,
    /// What was allocated.
    pub allocations: Allocations,
    /// By device: its primary context.
    pub primaries: Vec<Primary>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// Starts the driver, if it has not been started.
///
/// # Errors
/// When there is no device, or a variable of the environment has a value that it cannot have.
pub fn start() -> Result<&'static Driver, Status> {
    crate::process::watch_forks();
    vm::report_briefly();
    crate::report::begin();
    let faults = &Config::get().faults;
    if !faults.is_empty() {
        crate::log::log!(error_once, "{}", faults.join("\nptxvm: "));
        return Err(Status::CUDA_ERROR_INVALID_VALUE);
    }
    if Config::get().count == 0 {
        return Err(Status::CUDA_ERROR_NO_DEVICE);
    }
    Ok(DRIVER.get_or_init(|| {
        let config = Config::get();
        let machine = vm::Device::new();
        machine.keep_apart_from_host();
        Driver {
            config,
            device: ptxvm::Device::from(machine.clone()),
            machine,
            allocations: Allocations::default(),
            primaries: (0..config.count).map(Primary::new).collect(),
        }
    }))
}

/// The driver, once it has been started.
///
/// # Errors
/// Before that.
pub fn driver() -> Result<&'static Driver, Status> {
    DRIVER.get().ok_or(Status::CUDA_ERROR_NOT_INITIALIZED)
}

impl Driver {
    /// Checks the number of a device.
    ///
    /// # Errors
    /// When there is none of this number.
    pub fn ordinal(&self, device: i32) -> Result<u32, Status> {
        let ordinal = u32::try_from(device).ok().filter(|&ordinal| ordinal < self.config.count);
        ordinal.ok_or(Status::CUDA_ERROR_INVALID_DEVICE)
    }

    /// The primary context of a device.
    ///
    /// # Errors
    /// When there is no such device.
    pub fn primary(&self, device: i32) -> Result<&Primary, Status> {
        let ordinal = self.ordinal(device)?;
        self.primaries.get(ordinal as usize).ok_or(Status::CUDA_ERROR_INVALID_DEVICE)
    }
}
