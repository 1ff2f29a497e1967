//! Modules: loaded code, with its functions and variables.

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use cudarc::driver::sys::{CUdeviceptr, CUfunction, CUmodule};
use ptxvm::Loaded;

use crate::Status;
use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::function::{FUNCTIONS, Function};
use crate::handles::{Handles, handle_of};
use crate::image::{Image, Refusal, Source, compile};
use crate::jit::Options;
use crate::lock;
use crate::memory::{Kind, allocate};
use crate::pointers::{In, InOut, Out, Text, required};

/// The modules that have not been unloaded.
pub static MODULES: Handles<Module> = Handles::new();

/// A module in a context.
pub struct Module {
    pub loaded: Loaded,
    /// The execution profile of its kernels, instruction by instruction, if requested.
    pub profile: Option<crate::profile::Shared>,
    /// The number of its context, and that of its device.
    pub context: u64,
    pub device: u32,
    /// The most registers that a thread of its kernels may have.
    pub max_registers: u32,
    functions: Mutex<HashMap<String, Arc<Function>>>,
    /// The addresses of its `.global` variables, which are allocations.
    globals: Vec<u64>,
    /// A device allocation for its `.const` memory. Every module has `.const` memory in the same window; the host needs distinct addresses.
    constants: Option<Constants>,
}

/// Device memory that represents the `.const` memory of a module to the host.
#[derive(Clone, Copy)]
struct Constants {
    address: u64,
    bytes: u64,
}

/// The modules that have `.const` memory.
static WITH_CONSTANTS: RwLock<Vec<(Constants, Weak<Module>)>> = RwLock::new(Vec::new());
static HOW_MANY: AtomicUsize = AtomicUsize::new(0);

/// The host wrote device memory: copies what represents `.const` memory to the module.
pub fn written(address: u64, bytes: u64) {
    if HOW_MANY.load(Ordering::Relaxed) == 0 {
        return;
    }
    let all = WITH_CONSTANTS.read().unwrap_or_else(PoisonError::into_inner);
    for (constants, module) in all.iter() {
        let (start, end) =
            (address.max(constants.address), (address + bytes).min(constants.address + constants.bytes));
        if start < end
            && let (Some(module), Ok(driver)) = (module.upgrade(), driver())
        {
            let mut data = vec![0; (end - start) as usize];
            let window = machine::CONST_WINDOW + (start - constants.address);
            // Both have the size of the module's `.const` memory.
            if driver.machine.read(start, &mut data).is_ok() {
                let _ = module.loaded.write_const(window, &data);
            }
        }
    }
}

impl Module {
    /// Loads a module from sources.
    ///
    /// # Errors
    /// If the sources have errors, or there is no memory for their variables.
    pub fn load(context: &Context, sources: &[Source]) -> Result<Arc<Module>, Refusal> {
        let module = compile(sources)?;
        let driver = driver()?;
        // Before variables get their places.
        driver.pads();
        let loaded = driver
            .device
            .load(&module)
            .map_err(|error| Refusal::noted(crate::status::of_error(&error), error.to_string()))?;
        let variables =
            || module.program().module.variables.iter().filter(|variable| variable.function.is_none());
        let mut globals = Vec::new();
        let mut const_bytes = 0;
        for variable in variables() {
            let Ok((address, bytes)) = loaded.variable(&variable.name) else { continue };
            match variable.space {
                isa::Space::Const => const_bytes = const_bytes.max(address - machine::CONST_WINDOW + bytes),
                _ if globals.contains(&address) => {}
                _ => {
                    let kind = if variable.managed { Kind::Managed } else { Kind::Variable };
                    driver.allocations.insert(address, bytes, kind, context);
                    globals.push(address);
                }
            }
        }
        let constants = match const_bytes {
            0 => None,
            bytes => {
                let address = allocate(context, bytes as usize, Kind::Internal, ".const memory")?;
                crate::initialized::written(address, bytes);
                let mut contents = vec![0; bytes as usize];
                let _ = loaded.read_const(machine::CONST_WINDOW, &mut contents);
                let _ = driver.machine.write(address, &contents);
                Some(Constants { address, bytes })
            }
        };
        let module = Arc::new(Module {
            profile: crate::profile::begin(loaded.module()),
            loaded,
            context: context.id,
            device: context.device,
            max_registers: sources.iter().map(|source| source.max_registers).min().unwrap_or(u32::MAX),
            functions: Mutex::default(),
            globals,
            constants,
        });
        if let Some(constants) = constants {
            let mut all = WITH_CONSTANTS.write().unwrap_or_else(PoisonError::into_inner);
            all.push((constants, Arc::downgrade(&module)));
            HOW_MANY.store(all.len(), Ordering::Relaxed);
        }
        Ok(module)
    }

    /// A kernel of the module.
    ///
    /// # Errors
    /// If there is none with this name.
    pub fn function(self: &Arc<Module>, name: &str) -> Result<Arc<Function>, Status> {
        let mut functions = lock(&self.functions);
        if let Some(function) = functions.get(name) {
            return Ok(Arc::clone(function));
        }
        let function = Arc::new(Function::new(self, name).ok_or(Status::CUDA_ERROR_NOT_FOUND)?);
        FUNCTIONS.insert::<()>(Arc::clone(&function));
        functions.insert(name.to_owned(), Arc::clone(&function));
        Ok(function)
    }

    /// The names of its kernels.
    pub fn kernel_names(&self) -> Vec<String> {
        self.loaded.module().kernels().map(|kernel| kernel.name.clone()).collect()
    }

    /// The address and size of a variable, as the host uses it.
    ///
    /// # Errors
    /// If there is none with this name.
    pub fn variable(&self, name: &str) -> Result<(u64, u64), Status> {
        let (address, bytes) = self.loaded.variable(name).map_err(|_| Status::CUDA_ERROR_NOT_FOUND)?;
        let is_const =
            (machine::CONST_WINDOW..machine::CONST_WINDOW + machine::WINDOW_BYTES).contains(&address);
        match self.constants.filter(|_| is_const) {
            Some(constants) => Ok((address - machine::CONST_WINDOW + constants.address, bytes)),
            None => Ok((address, bytes)),
        }
    }

    /// Invalidates the handles of its kernels, and removes its allocations. Running kernels keep what they need.
    pub fn unload(&self) {
        let mut functions = lock(&self.functions);
        for (_, function) in functions.drain() {
            FUNCTIONS.remove::<()>(handle_of(&function));
        }
        drop(functions);
        let Ok(driver) = driver() else { return };
        for &address in &self.globals {
            driver.allocations.remove(address, |kind| matches!(kind, Kind::Variable | Kind::Managed));
        }
        if let Some(constants) = self.constants {
            let mut all = WITH_CONSTANTS.write().unwrap_or_else(PoisonError::into_inner);
            all.retain(|(other, _)| other.address != constants.address);
            HOW_MANY.store(all.len(), Ordering::Relaxed);
            drop(all);
            let _ = crate::memory::free(constants.address);
        }
    }
}

/// Unloads the modules of a context.
pub fn forget(context: u64) {
    MODULES.remove_if(|module| module.context == context).iter().for_each(|module| module.unload());
    crate::library::forget(context);
}

/// The module of a handle.
///
/// # Errors
/// If the handle is invalid.
pub fn module(handle: CUmodule) -> Result<Arc<Module>, Status> {
    Context::current()?;
    MODULES.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
}

fn load_data(result: Out<CUmodule>, image: Image, options: &Options) -> Result<(), Status> {
    let context = Context::current()?;
    required(result.pointer())?;
    let sources = image.sources("<module>");
    let module = sources.and_then(|sources| Module::load(&context, &options.apply(sources)));
    MODULES.give(result, options.report(module)?)
}

api! { API:
    /// Loads a module from a file.
    cuModuleLoad 2000 "cuModuleLoad" (result: Out<CUmodule>, path: Text) {
        let context = Context::current()?;
        required(result.pointer())?;
        let path = path.name()?;
        let bytes = std::fs::read(path).map_err(|_| Status::CUDA_ERROR_FILE_NOT_FOUND)?;
        let sources = crate::image::sources_of_bytes(&bytes, path);
        let module = sources.and_then(|sources| Module::load(&context, &sources)).map_err(|refusal| refusal.status)?;
        MODULES.give(result, module)
    }
    /// Loads a module from PTX text or a fat binary in memory.
    cuModuleLoadData 2000 "cuModuleLoadData" (result: Out<CUmodule>, image: Image) {
        load_data(result, image, &Options::default())
    }
    /// Loads a module from memory, with options for the compiler.
    cuModuleLoadDataEx 2010 "cuModuleLoadDataEx" (result: Out<CUmodule>, image: Image, count: c_uint, options: In<c_uint>, values: InOut<*mut c_void>) {
        load_data(result, image, &Options::read(count, options, values)?)
    }
    /// Loads a module from a fat binary in memory.
    cuModuleLoadFatBinary 2000 "cuModuleLoadFatBinary" (result: Out<CUmodule>, image: Image) {
        load_data(result, image, &Options::default())
    }
    /// Unloads a module.
    cuModuleUnload 2000 "cuModuleUnload" (handle: CUmodule) {
        driver()?;
        let module = MODULES.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)?;
        Context::current_or(Some(module.context))?.synchronize()?;
        MODULES.remove(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)?.unload();
        Ok(())
    }
    /// A kernel of a module.
    cuModuleGetFunction 2000 "cuModuleGetFunction" (result: Out<CUfunction>, of: CUmodule, kernel: Text) {
        // The threads of candle, whose tests pass on GPUs, have no context then.
        Context::current_if_any()?;
        let module = MODULES.get(of).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)?;
        let function = module.function(kernel.name()?)?;
        result.write(handle_of(&function))
    }
    /// How many kernels a module has.
    cuModuleGetFunctionCount 12040 "cuModuleGetFunctionCount" (count: Out<c_uint>, of: CUmodule) {
        count.write(module(of)?.kernel_names().len() as c_uint)
    }
    /// The kernels of a module.
    cuModuleEnumerateFunctions 12040 "cuModuleEnumerateFunctions" (result: Out<CUfunction>, count: c_uint, of: CUmodule) {
        let module = module(of)?;
        for (i, name) in module.kernel_names().iter().take(count as usize).enumerate() {
            result.write_at(i, handle_of(&module.function(name)?))?;
        }
        Ok(())
    }
    /// Address and size of a variable of a module.
    cuModuleGetGlobal 3020 "cuModuleGetGlobal_v2" (address: Out<CUdeviceptr>, bytes: Out<usize>, of: CUmodule, variable: Text) {
        let (at, size) = module(of)?.variable(variable.name()?)?;
        address.write_if_wanted(at);
        bytes.write_if_wanted(size as usize);
        Ok(())
    }
    /// Whether modules are loaded when they are first used: they are loaded at once here.
    cuModuleGetLoadingMode 11070 "cuModuleGetLoadingMode" (mode: Out<c_uint>) {
        mode.write(1)
    }
}
