//! The device: its memory, and the modules loaded on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::loaded::Loaded;
use crate::memory::{Array, Buffer};
use crate::{Element, Error, Module, Stream};

/// A machine that runs PTX: it has its own memory, and executes on threads of the host.
///
/// Cheap to clone; clones are the same device. Any thread may allocate, copy, load and launch at any time without
/// waiting for another. The host may read what a kernel stores while the kernel runs. As on a GPU, it should not
/// write what the kernel loads, unless those loads are ordered (`.relaxed`, `.volatile`, ...).
#[derive(Clone)]
pub struct Device {
    machine: machine::Device,
    /// A number that no other device of this process has.
    number: u64,
}

impl Device {
    /// A device with empty memory.
    pub fn new() -> Device {
        Device::from(machine::Device::new())
    }

    /// A device with empty memory whose addresses are as wide as the module's. A module of `.address_size 32` runs
    /// only on such a device; [`Device::new`] has 64-bit addresses.
    pub fn for_module(module: &Module) -> Device {
        let device = Device::new();
        if module.program().module.address_size == 32 {
            device.machine.use_narrow_addresses();
        }
        device
    }

    /// Allocates zeroed memory. Fault messages refer to it by the name.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]
    pub fn allocate(&self, bytes: u64, name: impl Into<String>) -> Result<Buffer, Error> {
        let address = self.machine.allocate(bytes, name)?;
        Ok(Buffer::new(self.clone(), address, bytes))
    }

    /// A new array with these elements.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]
    pub fn array<T: Element>(&self, elements: &[T]) -> Result<Array<T>, Error> {
        let array = self.zeros(elements.len())?;
        array.write(elements)?;
        Ok(array)
    }

    /// A new array of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]
    pub fn zeros<T: Element>(&self, length: usize) -> Result<Array<T>, Error> {
        let bytes = (length as u64).saturating_mul(T::BYTES as u64);
        let name = format!("array of {length} {}", T::TYPE.name());
        Ok(Array::new(self.allocate(bytes, name)?, length))
    }

    /// Copies bytes out, starting at a device address.
    ///
    /// # Errors
    /// [`Error::Memory`] when the range is not within one live allocation.
    pub fn read_at(&self, address: u64, data: &mut [u8]) -> Result<(), Error> {
        self.machine.read(address, data).map_err(Error::Memory)
    }

    /// Copies bytes to a device address.
    ///
    /// # Errors
    /// [`Error::Memory`] when the range is not within one live allocation.
    pub fn write_at(&self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.machine.write(address, data).map_err(Error::Memory)
    }

    /// Copies bytes from one device address to another, as `memmove` does: the ranges may overlap.
    ///
    /// # Errors
    /// [`Error::Memory`] when a range is not within one live allocation.
    pub fn copy_at(&self, from: u64, to: u64, bytes: u64) -> Result<(), Error> {
        self.machine.copy(from, to, bytes).map_err(Error::Memory)
    }

    /// Fills `bytes` bytes at a device address with a pattern, repeated from its first byte.
    ///
    /// # Errors
    /// [`Error::Memory`] when the range is not within one live allocation.
    pub fn fill_at(&self, address: u64, pattern: &[u8], bytes: u64) -> Result<(), Error> {
        self.machine.fill(address, pattern, bytes).map_err(Error::Memory)
    }

    /// Sets how many bytes kernels can have allocated by `malloc` at one time; the default is 8 MiB, as in CUDA.
    pub fn set_heap_limit(&self, bytes: u64) {
        self.machine.set_heap_limit(bytes);
    }

    /// Places a module's `.global` and `.const` variables in memory and makes its kernels ready.
    ///
    /// Each load creates new variables.
    ///
    /// # Errors
    /// [`Error::Load`]
    pub fn load(&self, module: &Module) -> Result<Loaded, Error> {
        let loaded = self.machine.load(Arc::clone(module.program()))?;
        Ok(Loaded::new(self.clone(), module.clone(), loaded))
    }

    /// A new stream, which does launches and other work in order, concurrently with the thread that enqueues it.
    pub fn stream(&self) -> Stream {
        Stream::new()
    }

    /// The number that identifies this device in the process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn machine(&self) -> &machine::Device {
        &self.machine
    }
}

impl From<machine::Device> for Device {
    fn from(machine: machine::Device) -> Device {
        static DEVICES: AtomicU64 = AtomicU64::new(0);
        let number = DEVICES.fetch_add(1, Ordering::Relaxed);
        Device { machine, number }
    }
}

impl Default for Device {
    fn default() -> Device {
        Device::new()
    }
}
