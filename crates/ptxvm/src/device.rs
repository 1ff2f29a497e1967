//! The device: its memory, and what is loaded there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::loaded::Loaded;
use crate::memory::{Array, Buffer};
use crate::{Element, Error, Module, Stream};

/// A machine that runs PTX: memory of its own, and threads of the host to execute on.
///
/// Cheap to clone; clones are the same device. Any thread may allocate, copy, load and launch at any time: nobody waits for
/// anybody. What a kernel stores may be read while it runs; what it loads without order (`.relaxed`, `.volatile`, ...) should not be written
/// meanwhile, as on a GPU.
#[derive(Clone)]
pub struct Device {
    machine: vm::Device,
    /// No other device of this process has it.
    number: u64,
}

impl Device {
    /// A device with empty memory.
    pub fn new() -> Device {
        Device::from(vm::Device::new())
    }

    /// A device with empty memory whose addresses are as wide as those of a module: one of `.address_size 32` can take no
    /// others. [`Device::new`] is for 64 bits.
    pub fn for_module(module: &Module) -> Device {
        let device = Device::new();
        if module.program().module.address_size == 32 {
            device.machine.use_narrow_addresses();
        }
        device
    }

    /// Reserves memory, all zero. The name is what fault messages call it.
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

    /// Copies bytes out of whatever lies at a device address.
    ///
    /// # Errors
    /// [`Error::Memory`] when they are not within one allocation that is alive.
    pub fn read_at(&self, address: u64, data: &mut [u8]) -> Result<(), Error> {
        self.machine.read(address, data).map_err(Error::Memory)
    }

    /// Copies bytes to a device address.
    ///
    /// # Errors
    /// [`Error::Memory`] when they are not within one allocation that is alive.
    pub fn write_at(&self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.machine.write(address, data).map_err(Error::Memory)
    }

    /// Copies bytes from one device address to another. The ranges may overlap, and arrive as they were before.
    ///
    /// # Errors
    /// [`Error::Memory`] when a range is not within one allocation that is alive.
    pub fn copy_at(&self, from: u64, to: u64, bytes: u64) -> Result<(), Error> {
        self.machine.copy(from, to, bytes).map_err(Error::Memory)
    }

    /// Sets so many bytes at a device address to a pattern, over and over from its first byte on.
    ///
    /// # Errors
    /// [`Error::Memory`] when they are not within one allocation that is alive.
    pub fn fill_at(&self, address: u64, pattern: &[u8], bytes: u64) -> Result<(), Error> {
        self.machine.fill(address, pattern, bytes).map_err(Error::Memory)
    }

    /// Changes how many bytes kernels may have from `malloc` at a time; 8 MiB unless told otherwise, as CUDA has it.
    pub fn set_heap_limit(&self, bytes: u64) {
        self.machine.set_heap_limit(bytes);
    }

    /// Places a module's `.global` and `.const` variables in memory and makes its kernels ready.
    ///
    /// Each load makes variables of its own.
    ///
    /// # Errors
    /// [`Error::Load`]
    pub fn load(&self, module: &Module) -> Result<Loaded, Error> {
        let loaded = self.machine.load(Arc::clone(module.program()))?;
        Ok(Loaded::new(self.clone(), module.clone(), loaded))
    }

    /// A new stream: launches and other work, done in order beside the thread that asks for it.
    pub fn stream(&self) -> Stream {
        Stream::new()
    }

    /// What tells it from other devices.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn machine(&self) -> &vm::Device {
        &self.machine
    }
}

impl From<vm::Device> for Device {
    fn from(machine: vm::Device) -> Device {
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
