//! Modules on a device.

use std::sync::Arc;

use machine::{FaultKind, KernelAttributes};

use crate::launch::Launch;
use crate::texture::Handle;
use crate::{Device, Error, Module, Named, SamplerState, Surface, Texture, Tools};

/// A module on a device. Cheap to clone; clones share their variables. The memory of the variables is freed when the
/// last clone is dropped and every launch of its kernels has ended.
#[derive(Clone)]
pub struct Loaded(Arc<Parts>);

struct Parts {
    device: Device,
    module: Module,
    loaded: machine::Loaded,
}

impl Loaded {
    pub(crate) fn new(device: Device, module: Module, loaded: machine::Loaded) -> Loaded {
        Loaded(Arc::new(Parts { device, module, loaded }))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.0.module
    }

    /// The same module on the same device, lowered as these tools need it ([`Module::for_tools`]). Both share the
    /// variables.
    #[must_use]
    pub fn for_tools(&self, tools: Tools) -> Loaded {
        let module = self.module().clone().for_tools(tools);
        let loaded = self.loaded().with_program(Arc::clone(module.program()));
        Loaded::new(self.device().clone(), module, loaded)
    }

    pub(crate) fn loaded(&self) -> &machine::Loaded {
        &self.0.loaded
    }

    /// Prepares a launch of a kernel.
    pub fn launch(&self, kernel: &str) -> Launch {
        Launch::new(self.clone(), kernel)
    }

    /// The resources of a kernel: registers, shared and local memory, threads of a block.
    ///
    /// # Errors
    /// [`Error::NoSuchName`]
    pub fn attributes(&self, kernel: &str) -> Result<KernelAttributes, Error> {
        self.loaded().attributes(kernel).ok_or_else(|| self.module().no_such_kernel(kernel))
    }

    /// Generic address and size in bytes of a `.global` or `.const` variable, as kernels of this load may use it.
    ///
    /// # Errors
    /// [`Error::NoSuchName`]
    pub fn variable(&self, name: &str) -> Result<(u64, u64), Error> {
        self.loaded().symbol(name).ok_or_else(|| {
            let variables = self.module().program().module.variables.iter();
            let placed = variables.filter(|v| {
                v.function.is_none() && matches!(v.space, isa::Space::Global | isa::Space::Const)
            });
            let available = placed.map(|variable| variable.name.clone()).collect();
            Error::NoSuchName { what: Named::Variable, name: name.to_owned(), available }
        })
    }

    /// Copies bytes out of a `.global` or `.const` variable, starting at an offset, as `cudaMemcpyFromSymbol` does.
    ///
    /// # Errors
    /// [`Error::NoSuchName`], and [`Error::Memory`] when the range exceeds the variable.
    pub fn read_variable(&self, name: &str, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        match self.part(name, offset, data.len())? {
            address if is_const(address) => self.loaded().read_const(address, data).map_err(Error::Memory),
            address => self.device().read_at(address, data),
        }
    }

    /// Copies bytes into a `.global` or `.const` variable, starting at an offset, as `cudaMemcpyToSymbol` does.
    /// Running launches do not see writes to `.const` memory.
    ///
    /// # Errors
    /// [`Error::NoSuchName`], and [`Error::Memory`] when the range exceeds the variable.
    pub fn write_variable(&self, name: &str, offset: u64, data: &[u8]) -> Result<(), Error> {
        match self.part(name, offset, data.len())? {
            address if is_const(address) => self.loaded().write_const(address, data).map_err(Error::Memory),
            address => self.device().write_at(address, data),
        }
    }

    /// Copies bytes out of the module's `.const` memory, starting at an address that [`Loaded::variable`] returned,
    /// plus an offset.
    ///
    /// # Errors
    /// [`Error::Memory`] when the range exceeds that memory.
    pub fn read_const(&self, address: u64, data: &mut [u8]) -> Result<(), Error> {
        self.loaded().read_const(address, data).map_err(Error::Memory)
    }

    /// Copies bytes into the module's `.const` memory, as [`Loaded::write_variable`] does.
    ///
    /// # Errors
    /// [`Error::Memory`] when the range exceeds that memory.
    pub fn write_const(&self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.loaded().write_const(address, data).map_err(Error::Memory)
    }

    /// Binds a `.texref` variable to a texture, for launches prepared from now on. The binding outlives the texture's
    /// handle.
    ///
    /// # Errors
    /// [`Error::Texture`] when the module has no such variable, [`Error::OtherDevice`].
    pub fn bind_texture(&self, name: &str, texture: &Texture) -> Result<(), Error> {
        self.bind(name, &texture.0)
    }

    /// Binds a `.surfref` variable to a surface, as [`Loaded::bind_texture`] binds a texture.
    ///
    /// # Errors
    /// Those of [`Loaded::bind_texture`].
    pub fn bind_surface(&self, name: &str, surface: &Surface) -> Result<(), Error> {
        self.bind(name, &surface.0)
    }

    /// Binds a `.samplerref` variable to a sampler, as [`Loaded::bind_texture`] binds a texture.
    ///
    /// # Errors
    /// Those of [`Loaded::bind_texture`].
    pub fn bind_sampler(&self, name: &str, sampler: &SamplerState) -> Result<(), Error> {
        self.bind(name, &sampler.0)
    }

    fn bind(&self, name: &str, Handle { device, handle, .. }: &Handle) -> Result<(), Error> {
        if device.number() != self.device().number() {
            return Err(Error::OtherDevice);
        }
        self.device().machine().bind(self.loaded(), name, *handle).map_err(Error::Texture)
    }

    /// Address of a part of a variable.
    fn part(&self, name: &str, offset: u64, bytes: usize) -> Result<u64, Error> {
        let (address, size) = self.variable(name)?;
        let end = offset.checked_add(bytes as u64).filter(|&end| end <= size);
        end.map(|_| address + offset).ok_or(Error::Memory(FaultKind::OutOfBounds))
    }
}

/// Whether a variable at this address is a `.const` one.
fn is_const(address: u64) -> bool {
    (machine::CONST_WINDOW..machine::CONST_WINDOW + machine::WINDOW_BYTES).contains(&address)
}
