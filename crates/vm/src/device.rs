//! A device: memory, loaded modules, launches.

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use check::module::{Function, Symbol, Variable};
use isa::Space;

use crate::code::function_address;
use crate::cooperative::Workspace;
use crate::fault::FaultKind;
use crate::grid::{Launch, Places};
use crate::grid_barrier::GridBarrier;
use crate::launch::{LaunchConfig, LaunchError, LaunchReport, LoadError};
use crate::limits::Limits;
use crate::memory::{Arena, Heap, HostMemoryError, OutOfMemory, generic_offset};
use crate::shared::{SharedLayout, append};
use crate::undefined::{declares_undefined, undefined};
use lanes::host_path;

/// Bytes of `.const` memory.
const CONST_LIMIT: u64 = 64 * 1024;
/// Bytes of shared memory that a block may have: the most that any GPU offers.
const SHARED_LIMIT: u64 = 227 * 1024;
/// Threads of a block.
const BLOCK_LIMIT: u64 = 1024;
/// Greatest extents of a block and of a grid.
const BLOCK_EXTENTS: [u32; 3] = [1024, 1024, 64];
const GRID_EXTENTS: [u32; 3] = [0x7fff_ffff, 65535, 65535];

/// A simulated GPU: global memory and the modules that are loaded on it.
#[derive(Default)]
pub struct Device {
    arena: Arena,
    heap: Heap,
}

/// A module with its variables placed in a device's memory. Cheap to clone.
#[derive(Clone)]
pub struct Loaded {
    program: Arc<ir::Program>,
    /// By `VarId`: address in the variable's own space. Shared variables are placed by each launch.
    addresses: Arc<Vec<u64>>,
    /// `.const` memory. A launch holds it for reading, from its start to its end.
    constants: Arc<RwLock<Vec<u8>>>,
    /// Something is declared that is defined nowhere.
    incomplete: bool,
}

impl Loaded {
    /// The lowered module.
    pub fn program(&self) -> &ir::Program {
        &self.program
    }

    /// Copies bytes out of `.const` memory; `address` is one that [`Device::symbol`] gave, or behind it.
    ///
    /// # Errors
    /// When the range is not within `.const` memory.
    pub fn read_const(&self, address: u64, data: &mut [u8]) -> Result<(), FaultKind> {
        let constants = self.constants.read().unwrap_or_else(PoisonError::into_inner);
        let range = const_range(address, data.len()).ok_or(FaultKind::OutOfBounds)?;
        data.copy_from_slice(constants.get(range).ok_or(FaultKind::OutOfBounds)?);
        Ok(())
    }

    /// Copies bytes into `.const` memory, as `cudaMemcpyToSymbol` does, once no launch runs.
    ///
    /// # Errors
    /// When the range is not within `.const` memory.
    pub fn write_const(&self, address: u64, data: &[u8]) -> Result<(), FaultKind> {
        let mut constants = self.constants.write().unwrap_or_else(PoisonError::into_inner);
        let range = const_range(address, data.len()).ok_or(FaultKind::OutOfBounds)?;
        constants.get_mut(range).ok_or(FaultKind::OutOfBounds)?.copy_from_slice(data);
        Ok(())
    }
}

impl Device {
    /// A device with empty memory.
    pub fn new() -> Device {
        Device::default()
    }

    /// Reserves `bytes` zeroed bytes of global memory; `name` stands in messages. Returns their device address.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate(&mut self, bytes: u64, name: impl Into<String>) -> Result<u64, OutOfMemory> {
        self.arena.allocate(bytes, name)
    }

    /// From now on addresses of allocations fit in 32 bits as long as there is room for that, as modules of
    /// `.address_size 32` need them. Gaps between arrays are narrower then.
    pub fn use_narrow_addresses(&mut self) {
        self.arena.use_narrow_addresses(true);
    }

    /// Gives an allocation back. Later accesses fault as use after free.
    ///
    /// # Errors
    /// [`FaultKind::InvalidFree`] when `address` is not the start of a live allocation.
    pub fn free(&mut self, address: u64) -> Result<(), FaultKind> {
        self.arena.free(address)
    }

    /// Copies bytes into global memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), FaultKind> {
        self.arena.write(address, data)
    }

    /// Copies bytes out of global memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), FaultKind> {
        self.arena.read(address, data)
    }

    /// Lets kernels use addresses of this process as they are: pointers of the host become device addresses, and
    /// accesses through them are checked for nothing but null. To be called before anything is on the device.
    ///
    /// # Errors
    /// When there are allocations or modules already.
    ///
    /// # Safety
    /// Kernels may then read and write whatever this process can: whoever launches one answers for every address
    /// that it uses.
    pub unsafe fn open_host_memory(&mut self) -> Result<(), HostMemoryError> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.open_host_memory() }
    }

    /// Changes how many bytes kernels may have from `malloc` at a time; 8 MiB unless told otherwise, as CUDA has it.
    pub fn set_heap_limit(&mut self, bytes: u64) {
        self.heap.set_limit(bytes);
    }

    /// Places a module's variables and fills in their initial values.
    ///
    /// # Errors
    /// When there is no room for them. What is declared and defined nowhere is no error of a module: only of the launch of
    /// a kernel that needs it.
    pub fn load(&mut self, program: Arc<ir::Program>) -> Result<Loaded, LoadError> {
        let narrow = self.arena.has_narrow_addresses();
        self.arena.use_narrow_addresses(narrow || program.module.address_size == 32);
        let placed = self.place(program);
        self.arena.use_narrow_addresses(narrow);
        placed
    }

    /// [`Device::load`] where addresses are as the module needs them.
    fn place(&mut self, program: Arc<ir::Program>) -> Result<Loaded, LoadError> {
        let variables = &program.module.variables;
        let mut addresses = vec![0; variables.len()];
        let mut const_bytes = 0u64;
        for (address, variable) in addresses.iter_mut().zip(variables) {
            match variable.space {
                Space::Global => {
                    let name = format!("variable `{}`", variable.name);
                    *address = self
                        .arena
                        .allocate_aligned(variable.bytes, variable.align, name)
                        .map_err(LoadError::OutOfMemory)?;
                }
                Space::Const => {
                    (*address, const_bytes) = append(const_bytes, variable.bytes, variable.align);
                }
                _ => {}
            }
        }
        if const_bytes > CONST_LIMIT {
            return Err(LoadError::TooMuchConst(const_bytes));
        }
        let mut constants = vec![0; const_bytes as usize];
        for (index, variable) in variables.iter().enumerate() {
            let contents = contents(variable, variables, &addresses);
            match variable.space {
                // The ranges are the variables' own.
                Space::Global => drop(self.arena.write(addresses[index], &contents)),
                Space::Const => {
                    constants[addresses[index] as usize..][..contents.len()].copy_from_slice(&contents);
                }
                _ => {}
            }
        }
        let incomplete = declares_undefined(&program.module);
        let (addresses, constants) = (Arc::new(addresses), Arc::new(RwLock::new(constants)));
        Ok(Loaded { program, addresses, constants, incomplete })
    }

    /// Generic address and size in bytes of a `.global` or `.const` variable of a module. That of a `.const` variable lies in
    /// the window of `.const` memory, which each module has for itself: see [`Loaded::read_const`].
    pub fn symbol(&self, module: &Loaded, name: &str) -> Option<(u64, u64)> {
        let variables = module.program.module.variables.iter().zip(module.addresses.iter());
        variables
            .filter(|(v, _)| matches!(v.space, Space::Global | Space::Const) && v.function.is_none())
            .find(|(v, _)| v.name == name)
            .map(|(v, &address)| (address.wrapping_add(generic_offset(v.space)), v.bytes))
    }

    /// Runs a kernel. `params` are the bytes of its parameters, laid out as [`param_layout`] says.
    ///
    /// # Errors
    /// When the launch is not possible, a thread faults, or a limit of `config` is reached.
    pub fn launch(
        &self,
        module: &Loaded,
        kernel: &str,
        config: &LaunchConfig,
        params: &[u8],
    ) -> Result<LaunchReport, LaunchError> {
        self.prepare(module, kernel, config, params)?.run()
    }

    /// Checks a launch and places what it needs, for whichever engine runs it. `params` as of [`Device::launch`].
    ///
    /// # Errors
    /// When the launch is not possible.
    pub fn prepare<'a>(
        &'a self,
        module: &'a Loaded,
        kernel: &'a str,
        config: &'a LaunchConfig,
        params: &'a [u8],
    ) -> Result<Launch<'a>, LaunchError> {
        let program = &*module.program;
        let invalid = |what: String| Err(LaunchError::Invalid(what));
        let Some(entry) = program.kernel(kernel) else {
            return invalid(format!("there is no kernel `{kernel}`"));
        };
        let function = &program.module.functions[entry.index()];
        let (layout, param_bytes) = param_layout(function);
        if params.len() as u64 != param_bytes {
            return invalid(format!(
                "kernel `{kernel}` takes {param_bytes} bytes of parameters, {} were given",
                params.len()
            ));
        }
        check_extents(function, config)?;
        let reached = program.reachable(entry);
        if module.incomplete {
            let names = undefined(&program.module, &reached);
            if !names.is_empty() {
                return Err(LaunchError::Undefined(names));
            }
        }
        if let Some(unsupported) = program.unsupported(&reached) {
            return Err(LaunchError::Unsupported(unsupported));
        }
        let shared = SharedLayout::new(&program.module, &reached, config.dynamic_shared);
        if shared.bytes > SHARED_LIMIT {
            return invalid(format!(
                "the block needs {} bytes of shared memory, the limit is {SHARED_LIMIT}",
                shared.bytes
            ));
        }
        let mut variables = module.addresses.to_vec();
        for &(id, address) in &shared.places {
            variables[id.index()] = address;
        }
        let path = match config.host_path {
            Some(path) if path.is_available() => path,
            Some(path) => return invalid(format!("this machine has no {}", path.name())),
            None => host_path().map_err(|error| LaunchError::Invalid(error.to_string()))?,
        };
        let cooperative = config.cooperative.then(|| Workspace::new(&self.heap, config.grid_blocks()));
        let constants = module.constants.read().unwrap_or_else(PoisonError::into_inner);
        Ok(Launch {
            program,
            kernel,
            entry: entry.0,
            reached,
            config,
            path,
            arena: &self.arena,
            heap: &self.heap,
            constants,
            params,
            places: Places { variables, params: layout.iter().map(|&(offset, _)| offset).collect() },
            shared,
            shuffled: config.schedule.is_some(),
            grid_barrier: GridBarrier::of(program, config),
            limits: Limits::of(config),
            workspace: cooperative.transpose()?,
            start: Instant::now(),
        })
    }
}

/// The part of `.const` memory at a generic address.
fn const_range(address: u64, bytes: usize) -> Option<Range<usize>> {
    let start = usize::try_from(address.checked_sub(generic_offset(Space::Const))?).ok()?;
    Some(start..start.checked_add(bytes)?)
}

/// Offset and size in bytes of each parameter of a kernel, and the size of all.
pub fn param_layout(function: &Function) -> (Vec<(u64, u64)>, u64) {
    let mut end = 0u64;
    let layout = function
        .params
        .iter()
        .map(|param| {
            let offset;
            (offset, end) = append(end, param.bytes, param.align);
            (offset, param.bytes)
        })
        .collect();
    (layout, end)
}

/// Initial bytes of a variable, addresses filled in.
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
        // What does not lie within the variable is no part of it.
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

fn check_extents(function: &Function, config: &LaunchConfig) -> Result<(), LaunchError> {
    let invalid = |what: String| Err(LaunchError::Invalid(what));
    let show = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
    for (what, extents, limits) in
        [("grid", config.grid, GRID_EXTENTS), ("block", config.block, BLOCK_EXTENTS)]
    {
        for ((extent, limit), axis) in extents.into_iter().zip(limits).zip(["x", "y", "z"]) {
            if extent == 0 || extent > limit {
                return invalid(format!("{what} {}: {axis} must be from 1 to {limit}", show(extents)));
            }
        }
    }
    let threads = config.block_threads();
    if threads > BLOCK_LIMIT {
        return invalid(format!(
            "block {} has {threads} threads, the limit is {BLOCK_LIMIT}",
            show(config.block)
        ));
    }
    if let Some(required) = function.bounds.required
        && required != config.block
    {
        return invalid(format!(
            "kernel `{}` requires blocks of {} (.reqntid), the launch has {}",
            function.name,
            show(required),
            show(config.block)
        ));
    }
    match function.bounds.max_threads {
        Some(limit) if threads > limit => invalid(format!(
            "kernel `{}` allows blocks of at most {limit} threads (.maxntid), the launch has {threads}",
            function.name
        )),
        _ => Ok(()),
    }
}
