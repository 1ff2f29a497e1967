//! The device: its memory, and the modules loaded on it.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use vm::FaultKind;

use crate::element::to_bytes;
use crate::launch::Launch;
use crate::{Element, Error, Module};

/// A machine that runs PTX: memory of its own, and threads of the host to execute on.
///
/// Cheap to clone; clones are the same device.
#[derive(Clone)]
pub struct Device {
    machine: Arc<RwLock<vm::Device>>,
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
            device.write().use_narrow_addresses();
        }
        device
    }

    /// Reserves memory, all zero. The name is what fault messages call it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]
    pub fn allocate(&self, bytes: u64, name: impl Into<String>) -> Result<Buffer, Error> {
        let address = self.write().allocate(bytes, name)?;
        Ok(Buffer { device: self.clone(), address, bytes })
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
        Ok(Array { buffer: self.allocate(bytes, name)?, length, element: PhantomData })
    }

    /// Changes how many bytes kernels may have from `malloc` at a time; 8 MiB unless told otherwise, as CUDA has it.
    pub fn set_heap_limit(&self, bytes: u64) {
        self.write().set_heap_limit(bytes);
    }

    /// Places a module's `.global` and `.const` variables in memory and makes its kernels ready.
    ///
    /// Each load makes variables of its own.
    ///
    /// # Errors
    /// [`Error::Load`]
    pub fn load(&self, module: &Module) -> Result<Loaded, Error> {
        let loaded = self.write().load(Arc::clone(module.program()))?;
        Ok(Loaded { device: self.clone(), module: module.clone(), loaded })
    }

    /// What tells it from other devices.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, vm::Device> {
        // A panic while the lock was held cannot leave the memory in a state that is worse than a fault's.
        self.machine.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, vm::Device> {
        self.machine.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<vm::Device> for Device {
    fn from(machine: vm::Device) -> Device {
        static DEVICES: AtomicU64 = AtomicU64::new(0);
        let number = DEVICES.fetch_add(1, Ordering::Relaxed);
        Device { machine: Arc::new(RwLock::new(machine)), number }
    }
}

impl Default for Device {
    fn default() -> Device {
        Device::new()
    }
}

/// Device memory without a type. Given back when dropped: a kernel that uses its address afterwards faults.
pub struct Buffer {
    device: Device,
    address: u64,
    bytes: u64,
}

impl Buffer {
    /// Device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies bytes in, starting at an offset.
    ///
    /// # Errors
    /// [`Error::Memory`] when they do not fit.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.device.write().write(self.at(offset)?, data).map_err(Error::Memory)
    }

    /// Copies bytes out, starting at an offset.
    ///
    /// # Errors
    /// [`Error::Memory`] when there are not so many.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.device.read().read(self.at(offset)?, data).map_err(Error::Memory)
    }

    /// The device that it is memory of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn at(&self, offset: u64) -> Result<u64, Error> {
        self.address.checked_add(offset).ok_or(Error::Memory(FaultKind::OutOfBounds))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // The address came from `allocate` and is given back once, so this cannot fail.
        let _ = self.device.write().free(self.address);
    }
}

/// An array in device memory. Given back when dropped: a kernel that uses its address afterwards faults.
pub struct Array<T> {
    buffer: Buffer,
    length: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Array<T> {
    /// Device address of the first element.
    pub fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The device that it is memory of.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// Overwrites the first elements.
    ///
    /// # Errors
    /// [`Error::Memory`] when there are more than the array holds.
    pub fn write(&self, elements: &[T]) -> Result<(), Error> {
        self.buffer.write(0, &to_bytes(elements))
    }

    /// All elements.
    ///
    /// # Errors
    /// None in practice; the array's memory lives as long as the array.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let mut bytes = vec![0; self.length * T::BYTES];
        self.buffer.read(0, &mut bytes)?;
        Ok(bytes.chunks_exact(T::BYTES).map(T::load).collect())
    }
}

/// Whether a variable at this address is a `.const` one.
fn is_const(address: u64) -> bool {
    (vm::CONST_WINDOW..vm::CONST_WINDOW + vm::WINDOW_BYTES).contains(&address)
}

/// A module on a device.
#[derive(Clone)]
pub struct Loaded {
    pub(crate) device: Device,
    pub(crate) module: Module,
    pub(crate) loaded: vm::Loaded,
}

impl Loaded {
    /// Prepares a launch of a kernel.
    pub fn launch(&self, kernel: &str) -> Launch<'_> {
        Launch::new(self, kernel)
    }

    /// Generic address and size in bytes of a `.global` or `.const` variable, as kernels of this load may use it.
    ///
    /// # Errors
    /// [`Error::NoSuchName`]
    pub fn variable(&self, name: &str) -> Result<(u64, u64), Error> {
        self.device.read().symbol(&self.loaded, name).ok_or_else(|| {
            let variables = self.module.program().module.variables.iter();
            let placed = variables.filter(|v| {
                v.function.is_none() && matches!(v.space, isa::Space::Global | isa::Space::Const)
            });
            let available = placed.map(|variable| variable.name.clone()).collect();
            Error::NoSuchName { what: "variable", name: name.to_owned(), available }
        })
    }

    /// Copies bytes out of a `.global` or `.const` variable, starting at an offset, as `cudaMemcpyFromSymbol` does.
    ///
    /// # Errors
    /// [`Error::NoSuchName`], and [`Error::Memory`] when there are not so many.
    pub fn read_variable(&self, name: &str, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        match self.part(name, offset, data.len())? {
            address if is_const(address) => self.loaded.read_const(address, data),
            address => self.device.read().read(address, data),
        }
        .map_err(Error::Memory)
    }

    /// Copies bytes into a `.global` or `.const` variable, starting at an offset, as `cudaMemcpyToSymbol` does.
    ///
    /// # Errors
    /// [`Error::NoSuchName`], and [`Error::Memory`] when they do not fit.
    pub fn write_variable(&self, name: &str, offset: u64, data: &[u8]) -> Result<(), Error> {
        match self.part(name, offset, data.len())? {
            address if is_const(address) => self.loaded.write_const(address, data),
            address => self.device.write().write(address, data),
        }
        .map_err(Error::Memory)
    }

    /// Address of a part of a variable.
    fn part(&self, name: &str, offset: u64, bytes: usize) -> Result<u64, Error> {
        let (address, size) = self.variable(name)?;
        let end = offset.checked_add(bytes as u64).filter(|&end| end <= size);
        end.map(|_| address + offset).ok_or(Error::Memory(FaultKind::OutOfBounds))
    }
}
