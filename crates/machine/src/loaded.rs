//! Modules on a device.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use check::module::{FuncId, Symbol, Variable};
use isa::Space;

use crate::error::LoadError;
use crate::fault::FaultKind;
use crate::kernel::{Kernel, KernelAttributes};
use crate::memory::{Arena, function_address, generic_offset};
use crate::shared::append;
use crate::texture::{self, Object, ObjectError, ObjectTable};

/// Bytes of `.const` memory.
const CONST_LIMIT: u64 = 64 * 1024;

/// A module whose variables have memory on a device. Clones are cheap. The variables are freed with the last clone,
/// once no launch of the module's kernels runs any more.
#[derive(Clone)]
pub struct Loaded(pub(crate) Arc<Image>);

/// The shared state of a [`Loaded`].
pub(crate) struct Image {
    pub program: Arc<ir::Program>,
    variables: Arc<Variables>,
    /// The kernels by name. `kernels`, by `FuncId`, holds what their launches have in common.
    names: HashMap<String, FuncId>,
    kernels: Vec<OnceLock<Arc<Kernel>>>,
}

/// The variables of a module on a device.
struct Variables {
    /// By `VarId`: address in the variable's own space. Each launch places shared variables itself.
    addresses: Vec<u64>,
    /// The addresses of the variables in `.global` memory.
    globals: Vec<u64>,
    /// `.const` memory. A launch uses its contents of the time when the launch was prepared.
    constants: Mutex<Arc<Vec<u8>>>,
    /// The bound texture, sampler or surface, by index of the variable.
    bindings: Mutex<Arc<HashMap<usize, Object>>>,
    arena: Arc<Arena>,
}

impl Variables {
    /// Places a module's variables and fills in their initial values.
    fn new(arena: &Arc<Arena>, program: &ir::Program) -> Result<Variables, LoadError> {
        let variables = &program.module.variables;
        let mut image = Variables {
            addresses: vec![0; variables.len()],
            globals: Vec::new(),
            constants: Mutex::default(),
            bindings: Mutex::new(Arc::new(texture::samplers(variables))),
            arena: Arc::clone(arena),
        };
        let narrow = program.module.address_size == 32;
        let mut const_bytes = 0u64;
        for (address, variable) in image.addresses.iter_mut().zip(variables) {
            match variable.space {
                Space::Global => {
                    let (bytes, name) =
                        (arena.variable_bytes(variable.bytes), format!("variable `{}`", variable.name));
                    let placed = if variable.managed && !narrow {
                        let start = arena.allocate_shared_with_host(bytes, name);
                        start.map(|start| start.as_ptr().expose_provenance() as u64)
                    } else {
                        arena.allocate_aligned(bytes, variable.align, narrow, name)
                    };
                    *address = placed.map_err(LoadError::OutOfMemory)?;
                    // So that `drop` frees it if a later variable does not fit.
                    image.globals.push(*address);
                }
                Space::Const => (*address, const_bytes) = append(const_bytes, variable.bytes, variable.align),
                _ => {}
            }
        }
        if const_bytes > CONST_LIMIT {
            return Err(LoadError::TooMuchConst(const_bytes));
        }
        let mut constants = vec![0; const_bytes as usize];
        for (variable, &address) in variables.iter().zip(&image.addresses) {
            let contents = contents(variable, variables, &image.addresses);
            match variable.space {
                // These ranges are the variables' own, so the write succeeds.
                Space::Global => drop(arena.write(address, &contents)),
                Space::Const => constants[address as usize..][..contents.len()].copy_from_slice(&contents),
                _ => {}
            }
        }
        image.constants = Mutex::new(Arc::new(constants));
        Ok(image)
    }
}

impl Image {
    /// A program whose variables have memory of their own.
    pub fn new(arena: &Arc<Arena>, program: Arc<ir::Program>) -> Result<Image, LoadError> {
        let variables = Arc::new(Variables::new(arena, &program)?);
        Ok(Image::with(program, variables))
    }

    fn with(program: Arc<ir::Program>, variables: Arc<Variables>) -> Image {
        let count = program.functions.len();
        Image {
            names: program.kernels().map(|(id, kernel)| (kernel.name.clone(), id)).collect(),
            kernels: std::iter::repeat_with(OnceLock::new).take(count).collect(),
            variables,
            program,
        }
    }

    /// The kernel of this name, with what its launches have in common.
    pub fn kernel(&self, name: &str) -> Option<&Arc<Kernel>> {
        let id = *self.names.get(name)?;
        Some(self.kernels[id.index()].get_or_init(|| Arc::new(Kernel::new(&self.program, id))))
    }

    /// Address of a variable in its own space. Not for shared variables, which each launch places.
    pub fn address(&self, index: usize) -> u64 {
        self.variables.addresses.get(index).copied().unwrap_or(0)
    }

    /// The current `.const` memory.
    pub fn constants(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.variables.constants.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Image {
    /// The current bindings of variables. For one launch, `own` binds more variables to objects of the table.
    pub fn bindings(
        &self,
        own: &[(String, u64)],
        objects: &ObjectTable,
    ) -> Result<Arc<HashMap<usize, Object>>, ObjectError> {
        let mut all = Arc::clone(&self.variables.bindings.lock().unwrap_or_else(PoisonError::into_inner));
        for (name, handle) in own {
            let object = objects.get(handle).ok_or(ObjectError::NoObject)?;
            Arc::make_mut(&mut all).insert(self.reference(name, object)?, object.clone());
        }
        Ok(all)
    }

    /// Binds the variable with this name to an object of its kind.
    pub fn bind(&self, name: &str, object: Object) -> Result<(), ObjectError> {
        let index = self.reference(name, &object)?;
        Arc::make_mut(&mut self.variables.bindings.lock().unwrap_or_else(PoisonError::into_inner))
            .insert(index, object);
        Ok(())
    }

    /// The index of the variable with this name, if it takes objects of this kind.
    fn reference(&self, name: &str, object: &Object) -> Result<usize, ObjectError> {
        let mut variables = self.program.module.variables.iter();
        let found = variables.position(|v| v.name == name && v.opaque == Some(object.kind()));
        found.ok_or(ObjectError::NoVariable)
    }
}

impl Drop for Variables {
    fn drop(&mut self) {
        // Each address came from the arena and is freed once, so this cannot fail.
        for &address in &self.globals {
            let _ = self.arena.free(address);
        }
    }
}

impl Loaded {
    /// The same module on the same device, lowered in another way: `program` is made of the same module. Both share the
    /// variables.
    #[must_use]
    pub fn with_program(&self, program: Arc<ir::Program>) -> Loaded {
        Loaded(Arc::new(Image::with(program, Arc::clone(&self.0.variables))))
    }

    /// The lowered module.
    pub fn program(&self) -> &ir::Program {
        &self.0.program
    }

    /// The kernel with this name, as the index of its function.
    pub fn kernel(&self, name: &str) -> Option<FuncId> {
        self.0.names.get(name).copied()
    }

    /// The attributes of a kernel. `None` if there is no kernel with this name.
    pub fn attributes(&self, kernel: &str) -> Option<KernelAttributes> {
        let kernel = self.0.kernel(kernel)?;
        Some(kernel.attributes(&self.0.program, self.0.constants().len() as u64))
    }

    /// Generic address and size in bytes of a `.global` or `.const` variable. A `.const` variable is in the window of
    /// `.const` memory, and each module has its own `.const` memory: see [`Loaded::read_const`].
    pub fn symbol(&self, name: &str) -> Option<(u64, u64)> {
        let variables = self.0.program.module.variables.iter().zip(&self.0.variables.addresses);
        variables
            .filter(|(v, _)| matches!(v.space, Space::Global | Space::Const) && v.function.is_none())
            .find(|(v, _)| v.name == name)
            .map(|(v, &address)| (address.wrapping_add(generic_offset(v.space)), v.bytes))
    }

    /// Copies bytes out of `.const` memory. `address` is derived from one that [`Loaded::symbol`] returned.
    ///
    /// # Errors
    /// When the range is not within `.const` memory.
    pub fn read_const(&self, address: u64, data: &mut [u8]) -> Result<(), FaultKind> {
        let constants = self.0.constants();
        let range = const_range(address, data.len()).ok_or(FaultKind::OutOfBounds)?;
        data.copy_from_slice(constants.get(range).ok_or(FaultKind::OutOfBounds)?);
        Ok(())
    }

    /// Copies bytes into `.const` memory, as `cudaMemcpyToSymbol` does. Launches that were prepared earlier do not see them.
    ///
    /// # Errors
    /// When the range is not within `.const` memory.
    pub fn write_const(&self, address: u64, data: &[u8]) -> Result<(), FaultKind> {
        let mut constants = self.0.variables.constants.lock().unwrap_or_else(PoisonError::into_inner);
        let range = const_range(address, data.len()).ok_or(FaultKind::OutOfBounds)?;
        let constants = Arc::make_mut(&mut constants);
        constants.get_mut(range).ok_or(FaultKind::OutOfBounds)?.copy_from_slice(data);
        Ok(())
    }
}

/// The range in `.const` memory of a generic address.
fn const_range(address: u64, bytes: usize) -> Option<Range<usize>> {
    let start = usize::try_from(address.checked_sub(generic_offset(Space::Const))?).ok()?;
    Some(start..start.checked_add(bytes)?)
}

/// Initial bytes of a variable, with relocations applied.
fn contents(variable: &Variable, variables: &[Variable], addresses: &[u64]) -> Vec<u8> {
    let mut bytes = variable.init.clone();
    for r in &variable.relocations {
        let address = match r.symbol {
            Symbol::Variable(id) => {
                let window = if r.generic { generic_offset(variables[id.index()].space) } else { 0 };
                addresses[id.index()].wrapping_add(window)
            }
            Symbol::Function(id) => function_address(id),
            Symbol::Param(_) | Symbol::Return(_) => 0,
        };
        let value = address.wrapping_add(r.addend as u64).checked_shr(r.shift).unwrap_or(0);
        let count = (r.bytes as usize).min(8);
        // Ignore a relocation beyond the end of the variable.
        let Some(end) = r.offset.checked_add(count as u64).filter(|&end| end <= variable.bytes) else {
            continue;
        };
        let (start, end) = (r.offset as usize, end as usize);
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(&value.to_le_bytes()[..count]);
    }
    bytes.truncate(usize::try_from(variable.bytes).unwrap_or(usize::MAX));
    bytes
}
