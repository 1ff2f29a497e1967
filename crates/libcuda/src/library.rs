//! Libraries and their kernels: modules without a context. Each context that uses one loads it.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{CUdevice, CUdeviceptr, CUfunction, CUkernel, CUlibrary, CUmodule};

use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::function::Function;
use crate::handles::{Handles, handle_of};
use crate::image::{Image, Refusal, Source, compile};
use crate::jit::Options;
use crate::lock;
use crate::module::{MODULES, Module};
use crate::pointers::{In, InOut, Out, Text, required};
use crate::{INVALID, Status};

/// The libraries that have not been unloaded, and their kernels.
static LIBRARIES: Handles<Library> = Handles::new();
static KERNELS: Handles<Kernel> = Handles::new();

/// A library.
pub struct Library {
    sources: Vec<Source>,
    names: Vec<String>,
    kernels: Mutex<HashMap<String, Arc<Kernel>>>,
    /// The loaded modules, by context number.
    modules: Mutex<HashMap<u64, Arc<Module>>>,
}

/// A kernel of a library.
pub struct Kernel {
    library: Arc<Library>,
    name: CString,
    /// The attributes set so far. They also apply to functions of later contexts.
    attributes: Mutex<Vec<(u32, i32)>>,
}

impl Library {
    fn new(sources: Vec<Source>) -> Result<Arc<Library>, Refusal> {
        let module = compile(&sources)?;
        let names = module.kernels().map(|kernel| kernel.name.clone()).collect();
        Ok(Arc::new(Library { sources, names, kernels: Mutex::default(), modules: Mutex::default() }))
    }

    /// The library's module in a context.
    fn module(&self, context: &Context) -> Result<Arc<Module>, Status> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&context.id) {
            return Ok(Arc::clone(module));
        }
        let module = Module::load(context, &self.sources).map_err(|refusal| refusal.status)?;
        MODULES.insert::<()>(Arc::clone(&module));
        modules.insert(context.id, Arc::clone(&module));
        Ok(module)
    }

    fn kernel(self: &Arc<Library>, name: &str) -> Result<Arc<Kernel>, Status> {
        if !self.names.iter().any(|other| other == name) {
            return Err(Status::CUDA_ERROR_NOT_FOUND);
        }
        let mut kernels = lock(&self.kernels);
        if let Some(kernel) = kernels.get(name) {
            return Ok(Arc::clone(kernel));
        }
        let c_name = CString::new(name).map_err(|_| Status::CUDA_ERROR_NOT_FOUND)?;
        let kernel =
            Arc::new(Kernel { library: Arc::clone(self), name: c_name, attributes: Mutex::default() });
        KERNELS.insert::<()>(Arc::clone(&kernel));
        kernels.insert(name.to_owned(), Arc::clone(&kernel));
        Ok(kernel)
    }
}

impl Kernel {
    /// The kernel in a context.
    ///
    /// # Errors
    /// If its library cannot be loaded there.
    pub fn function(&self, context: &Context) -> Result<Arc<Function>, Status> {
        let function = self.library.module(context)?.function(self.name.to_str().unwrap_or_default())?;
        let attributes = lock(&self.attributes);
        let chip = &driver()?.config.chip;
        attributes
            .iter()
            .try_for_each(|&(attribute, value)| function.set_attribute(attribute, value, chip))?;
        Ok(function)
    }
}

/// Removes what belongs to a context.
pub fn forget(context: u64) {
    LIBRARIES.for_each(|library| {
        lock(&library.modules).remove(&context);
    });
}

fn library(handle: CUlibrary) -> Result<Arc<Library>, Status> {
    driver()?;
    LIBRARIES.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
}

/// The kernel of a handle.
///
/// # Errors
/// If the handle is invalid.
pub fn kernel(handle: CUkernel) -> Result<Arc<Kernel>, Status> {
    driver()?;
    KERNELS.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
}

fn load(
    result: Out<CUlibrary>,
    sources: Result<Vec<Source>, Refusal>,
    options: &Options,
) -> Result<(), Status> {
    driver()?;
    required(result.pointer())?;
    LIBRARIES.give(result, options.report(sources.and_then(Library::new))?)
}

api! { API:
    /// Loads a library from PTX text or a fat binary in memory.
    cuLibraryLoadData 12000 "cuLibraryLoadData" (
        result: Out<CUlibrary>, code: Image, jit: In<c_uint>, jit_values: InOut<*mut c_void>, jit_count: c_uint,
        _options: *mut c_uint, _values: *mut *mut c_void, _count: c_uint
    ) {
        load(result, code.sources("<library>"), &Options::read(jit_count, jit, jit_values)?)
    }
    /// Loads a library from a file.
    cuLibraryLoadFromFile 12000 "cuLibraryLoadFromFile" (
        result: Out<CUlibrary>, path: Text, jit: In<c_uint>, jit_values: InOut<*mut c_void>, jit_count: c_uint,
        _options: *mut c_uint, _values: *mut *mut c_void, _count: c_uint
    ) {
        let path = std::str::from_utf8(path.bytes()?).map_err(|_| Status::CUDA_ERROR_FILE_NOT_FOUND)?;
        let bytes = std::fs::read(path).map_err(|_| Status::CUDA_ERROR_FILE_NOT_FOUND)?;
        load(result, crate::image::sources_of_bytes(&bytes, path), &Options::read(jit_count, jit, jit_values)?)
    }
    /// Unloads a library.
    cuLibraryUnload 12000 "cuLibraryUnload" (handle: CUlibrary) {
        let library = library(handle)?;
        LIBRARIES.remove(handle);
        let mut kernels = lock(&library.kernels);
        kernels.drain().for_each(|(_, kernel)| drop(KERNELS.remove::<()>(handle_of(&kernel))));
        drop(kernels);
        let mut modules = lock(&library.modules);
        for (_, module) in modules.drain() {
            MODULES.remove::<()>(handle_of(&module));
            module.unload();
        }
        Ok(())
    }
    /// A kernel of a library.
    cuLibraryGetKernel 12000 "cuLibraryGetKernel" (result: Out<CUkernel>, of: CUlibrary, kernel: Text) {
        let kernel = library(of)?.kernel(kernel.name()?)?;
        result.write(handle_of(&kernel))
    }
    /// How many kernels a library has.
    cuLibraryGetKernelCount 12040 "cuLibraryGetKernelCount" (count: Out<c_uint>, of: CUlibrary) {
        count.write(library(of)?.names.len() as c_uint)
    }
    /// The kernels of a library.
    cuLibraryEnumerateKernels 12040 "cuLibraryEnumerateKernels" (result: Out<CUkernel>, count: c_uint, of: CUlibrary) {
        let library = library(of)?;
        for (i, name) in library.names.iter().take(count as usize).enumerate() {
            result.write_at(i, handle_of(&library.kernel(name)?))?;
        }
        Ok(())
    }
    /// The module of a library in the current context.
    cuLibraryGetModule 12000 "cuLibraryGetModule" (result: Out<CUmodule>, of: CUlibrary) {
        let module = library(of)?.module(&*Context::current()?)?;
        result.write(handle_of(&module))
    }
    /// Address and size of a variable of a library in the current context.
    cuLibraryGetGlobal 12000 "cuLibraryGetGlobal" (address: Out<CUdeviceptr>, bytes: Out<usize>, of: CUlibrary, variable: Text) {
        let (at, size) = library(of)?.module(&*Context::current()?)?.variable(variable.name()?)?;
        address.write_if_wanted(at);
        bytes.write_if_wanted(size as usize);
        Ok(())
    }
    /// Address and size of a managed variable of a library.
    cuLibraryGetManaged 12000 "cuLibraryGetManaged" (address: Out<CUdeviceptr>, bytes: Out<usize>, of: CUlibrary, variable: Text) {
        let (at, size) = library(of)?.module(&*Context::current()?)?.variable(variable.name()?)?;
        address.write_if_wanted(at);
        bytes.write_if_wanted(size as usize);
        Ok(())
    }
    /// The function of a kernel in the current context.
    cuKernelGetFunction 12000 "cuKernelGetFunction" (result: Out<CUfunction>, handle: CUkernel) {
        let function = kernel(handle)?.function(&*Context::current()?)?;
        result.write(handle_of(&function))
    }
    /// The library of a kernel.
    cuKernelGetLibrary 12050 "cuKernelGetLibrary" (result: Out<CUlibrary>, handle: CUkernel) {
        result.write(handle_of(&kernel(handle)?.library))
    }
    /// The name of a kernel.
    cuKernelGetName 12030 "cuKernelGetName" (result: Out<*const c_char>, handle: CUkernel) {
        result.write(kernel(handle)?.name.as_ptr())
    }
    /// An attribute of a kernel.
    cuKernelGetAttribute 12000 "cuKernelGetAttribute" (result: Out<c_int>, attribute: c_uint, handle: CUkernel, device: CUdevice) {
        driver()?.ordinal(device)?;
        let function = kernel(handle)?.function(&*Context::current()?)?;
        result.write(function.attribute(attribute, &driver()?.config.chip)?)
    }
    /// Changes an attribute of a kernel.
    cuKernelSetAttribute 12000 "cuKernelSetAttribute" (attribute: c_uint, value: c_int, handle: CUkernel, device: CUdevice) {
        driver()?.ordinal(device)?;
        let kernel = kernel(handle)?;
        if let Ok(context) = Context::current() {
            kernel.function(&context)?.set_attribute(attribute, value, &driver()?.config.chip)?;
        }
        let mut attributes = lock(&kernel.attributes);
        attributes.retain(|(other, _)| *other != attribute);
        attributes.push((attribute, value));
        Ok(())
    }
    /// What a kernel prefers of L1 cache and shared memory, which has no effect here.
    cuKernelSetCacheConfig 12000 "cuKernelSetCacheConfig" (handle: CUkernel, config: c_uint, device: CUdevice) {
        driver()?.ordinal(device)?;
        kernel(handle)?;
        if config > 3 { Err(INVALID) } else { Ok(()) }
    }
    /// Offset and size of a parameter of a kernel.
    cuKernelGetParamInfo 12040 "cuKernelGetParamInfo" (handle: CUkernel, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        let function = kernel(handle)?.function(&*Context::current()?)?;
        let (at, size) = function.params.get(index).copied().ok_or(INVALID)?;
        offset.write(at as usize)?;
        bytes.write_if_wanted(size as usize);
        Ok(())
    }
    /// How many parameters a kernel has.
    cuKernelGetParamCount 13020 "cuKernelGetParamCount" (handle: CUkernel, count: Out<usize>) {
        count.write(kernel(handle)?.function(&*Context::current()?)?.params.len())
    }
}
