//! What compiled programs register before `main`: fat binaries, and the host addresses that name kernels and variables in them. A fat
//! binary is loaded when the program first uses a part of it.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::api::api;
use crate::context::enter;
use crate::driver::cu;
use crate::error::Error;
use crate::pointers::Out;
use crate::{Handle, NULL};
use caller::log;

/// A fat binary of the program.
struct FatBinary {
    /// The address of its wrapper (`.nvFatBinSegment`).
    wrapper: usize,
    /// The driver's library, once it is loaded.
    library: Mutex<Option<Result<usize, Error>>>,
    /// The managed variables: the address of the host's pointer to each, and its name.
    managed: Mutex<Vec<(usize, CString)>>,
}

/// A kernel or variable of the program.
struct Entity {
    of: Arc<FatBinary>,
    name: CString,
    /// The driver's kernel, once it is looked up.
    kernel: Mutex<Option<usize>>,
}

/// All registered objects.
#[derive(Default)]
struct Registry {
    /// By handle.
    fat_binaries: HashMap<usize, Arc<FatBinary>>,
    /// By host address.
    kernels: HashMap<usize, Arc<Entity>>,
    variables: HashMap<usize, Arc<Entity>>,
}

static REGISTRY: RwLock<Option<Registry>> = RwLock::new(None);

fn change<T>(work: impl FnOnce(&mut Registry) -> T) -> T {
    work(REGISTRY.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

fn find<T>(work: impl FnOnce(&Registry) -> Option<T>) -> Option<T> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(work)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FatBinary {
    /// The driver's library.
    ///
    /// # Errors
    /// The error of loading it.
    fn library(&self) -> Result<Handle, Error> {
        let mut library = lock(&self.library);
        let loaded = *library.get_or_insert_with(|| {
            let mut loaded = NULL;
            let (none, wrapper) = (NULL, std::ptr::with_exposed_provenance::<c_void>(self.wrapper));
            // SAFETY: the program registered the wrapper, which stays at its address.
            unsafe { cu!(cuLibraryLoadData(&raw mut loaded, wrapper, none, none, 0, none, none, 0)) }?;
            Ok(loaded.expose_provenance())
        });
        loaded.map(std::ptr::with_exposed_provenance_mut)
    }

    /// The address and size of a variable in the current context.
    fn variable(&self, name: &CStr) -> Result<(u64, usize), Error> {
        let (mut address, mut bytes) = (0u64, 0usize);
        let library = self.library()?;
        // SAFETY: the arguments meet the requirements of the functions.
        unsafe { cu!(cuLibraryGetGlobal(&raw mut address, &raw mut bytes, library, name.as_ptr())) }?;
        Ok((address, bytes))
    }
}

/// The kernel that a host address names. A kernel handle names itself.
///
/// # Errors
/// If its fat binary cannot be loaded, or does not have the kernel.
pub fn kernel(function: *const c_void) -> Result<Handle, Error> {
    let Some(entity) = find(|registry| registry.kernels.get(&function.addr()).cloned()) else {
        return if function.is_null() {
            Err(Error::INVALID_DEVICE_FUNCTION)
        } else {
            Ok(function.cast_mut())
        };
    };
    let mut known = lock(&entity.kernel);
    if let Some(kernel) = *known {
        return Ok(std::ptr::with_exposed_provenance_mut(kernel));
    }
    enter()?;
    let (mut kernel, library) = (NULL, entity.of.library()?);
    // SAFETY: the arguments meet the requirements of the function.
    let found = unsafe { cu!(cuLibraryGetKernel(&raw mut kernel, library, entity.name.as_ptr())) };
    found.map_err(
        |error| if error == Error::SYMBOL_NOT_FOUND { Error::INVALID_DEVICE_FUNCTION } else { error },
    )?;
    *known = Some(kernel.expose_provenance());
    Ok(kernel)
}

/// The function of a kernel in the current context.
///
/// # Errors
/// As for [`kernel`].
pub fn function(host: *const c_void) -> Result<Handle, Error> {
    enter()?;
    let (kernel, mut function) = (kernel(host)?, NULL);
    // SAFETY: the arguments meet the function's requirements; a handle that is no kernel may be a function.
    match unsafe { cu!(cuKernelGetFunction(&raw mut function, kernel)) } {
        Ok(()) => Ok(function),
        Err(Error::INVALID_RESOURCE_HANDLE) => Ok(kernel),
        Err(error) => Err(error),
    }
}

/// The address and size, in the current context, of the variable that a host address names.
///
/// # Errors
/// If it names none.
pub fn variable(symbol: *const c_void) -> Result<(u64, usize), Error> {
    enter()?;
    let entity = find(|registry| registry.variables.get(&symbol.addr()).cloned());
    let entity = entity.ok_or(Error::INVALID_SYMBOL)?;
    entity.of.variable(&entity.name).map_err(|error| match error {
        Error::SYMBOL_NOT_FOUND => Error::INVALID_SYMBOL,
        error => error,
    })
}

/// A copy of a name that the program passes.
///
/// # Safety
/// A non-null pointer must point to a zero-terminated string.
unsafe fn owned(name: *const c_char) -> CString {
    // SAFETY: the caller's promise.
    if name.is_null() { CString::default() } else { unsafe { CStr::from_ptr(name) }.to_owned() }
}

fn entity(registry: &Registry, handle: *mut Handle, name: CString) -> Option<Arc<Entity>> {
    let of = Arc::clone(registry.fat_binaries.get(&handle.addr())?);
    Some(Arc::new(Entity { of, name, kernel: Mutex::default() }))
}

api! { API:
    /// Registers a fat binary. Compiled programs call it before `main`.
    fn __cudaRegisterFatBinary(wrapper: *mut c_void) -> *mut Handle {
        let wrapper = wrapper.expose_provenance();
        let fat_binary = Arc::new(FatBinary { wrapper, library: Mutex::default(), managed: Mutex::default() });
        // Its own address is a unique handle.
        let handle = Arc::as_ptr(&fat_binary).addr();
        change(|registry| registry.fat_binaries.insert(handle, fat_binary));
        std::ptr::with_exposed_provenance_mut(handle)
    }
    /// Says that everything of a fat binary is registered.
    fn __cudaRegisterFatBinaryEnd(_handle: *mut Handle) {}
    /// Forgets a fat binary, and what was registered of it.
    fn __cudaUnregisterFatBinary(handle: *mut Handle) {
        change(|registry| {
            let Some(fat_binary) = registry.fat_binaries.remove(&handle.addr()) else { return };
            registry.kernels.retain(|_, kernel| !Arc::ptr_eq(&kernel.of, &fat_binary));
            registry.variables.retain(|_, variable| !Arc::ptr_eq(&variable.of, &fat_binary));
        });
    }
    /// Registers a kernel under an address of the host.
    fn __cudaRegisterFunction(
        handle: *mut Handle, host: *const c_void, _device: *mut c_char, name: *const c_char, _limit: c_int, _tid: *mut c_void, _bid: *mut c_void,
        _block: *mut c_void, _grid: *mut c_void, _warp: *mut c_int,
    ) {
        let name = owned(name);
        change(|registry| entity(registry, handle, name).map(|entity| registry.kernels.insert(host.addr(), entity)));
    }
    /// Registers a variable under an address of the host.
    fn __cudaRegisterVar(
        handle: *mut Handle, host: *mut c_char, _device: *mut c_char, name: *const c_char, _ext: c_int, _bytes: usize, _constant: c_int,
        _global: c_int,
    ) {
        let name = owned(name);
        change(|registry| entity(registry, handle, name).map(|entity| registry.variables.insert(host.addr(), entity)));
    }
    /// Registers a managed variable under the address of a pointer of the host, which will lead to it.
    fn __cudaRegisterManagedVar(
        handle: *mut Handle, pointer: *mut Handle, _device: *mut c_char, name: *const c_char, _ext: c_int, _bytes: usize, _constant: c_int,
        _global: c_int,
    ) {
        let name = owned(name);
        change(|registry| {
            let Some(entity) = entity(registry, handle, name.clone()) else { return };
            lock(&entity.of.managed).push((pointer.expose_provenance(), name));
            registry.variables.insert(pointer.addr(), entity);
        });
    }
    /// Registers a variable of the host, which is not seen in use.
    fn __cudaRegisterHostVar(_handle: *mut Handle, _name: *const c_char, _host: *mut c_char, _bytes: usize) {}
    /// Registers a table of pointers to functions, which is not seen in use.
    fn __cudaRegisterUnifiedTable(_handle: *mut Handle, _table: *mut c_void) {}
    /// Makes the managed variables of a fat binary accessible to the host.
    fn __cudaInitModule(handle: *mut Handle) -> c_char {
        let Some(fat_binary) = find(|registry| registry.fat_binaries.get(&handle.addr()).cloned()) else { return 0 };
        let managed = std::mem::take(&mut *lock(&fat_binary.managed));
        for (pointer, name) in managed {
            match enter().and_then(|()| fat_binary.variable(&name)) {
                Ok((address, _)) => {
                    // The program also uses the managed variable's own address as its symbol.
                    let address = address as usize;
                    std::ptr::with_exposed_provenance_mut::<usize>(pointer).write(address);
                    change(|registry| {
                        let entity = registry.variables.get(&pointer).cloned();
                        entity.map(|entity| registry.variables.insert(address, entity))
                    });
                }
                Err(error) => {
                    log!(error, "the managed variable `{}` is not there: {}", name.to_string_lossy(), error.name());
                    crate::error::remember(error);
                }
            }
        }
        1
    }
    /// Address of a variable on the device.
    cudaGetSymbolAddress(result: Out<u64>, symbol: *const c_void) {
        let (address, _) = variable(symbol)?;
        result.write(address)
    }
    /// Bytes of a variable.
    cudaGetSymbolSize(result: Out<usize>, symbol: *const c_void) {
        let (_, bytes) = variable(symbol)?;
        result.write(bytes)
    }
    /// The kernel that an address of the host stands for.
    cudaGetKernel(result: Out<Handle>, host: *const c_void) {
        result.write(kernel(host)?)
    }
    /// The kernel that an address of the host stands for.
    __cudaGetKernel(result: Out<Handle>, host: *const c_void) {
        result.write(kernel(host)?)
    }
    /// The function of a kernel in the current context.
    cudaGetFuncBySymbol(result: Out<Handle>, host: *const c_void) {
        result.write(function(host)?)
    }
}

/// The host address that names a kernel, or the kernel's handle if none does.
pub fn host_of(handle: Handle) -> Handle {
    let is_it = |entity: &Entity| *lock(&entity.kernel) == Some(handle.addr());
    let host =
        find(|registry| registry.kernels.iter().find(|(_, entity)| is_it(entity)).map(|(&host, _)| host));
    host.map_or(handle, std::ptr::with_exposed_provenance_mut)
}
