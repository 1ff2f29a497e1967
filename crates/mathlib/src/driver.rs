//! The driver below: ptxvm's `libcuda.so.1`, opened at run time. Besides documented functions it has some for libraries like these
//! (`crates/libcuda/src/host_work.rs`), which no other driver has.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use caller::log;

use crate::own_path::own_path;

/// An error of the driver (`CUresult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub u32);

#[allow(missing_docs, reason = "the manual's names")]
impl Error {
    pub const INVALID_VALUE: Error = Error(1);
    pub const OUT_OF_MEMORY: Error = Error(2);
    pub const NOT_INITIALIZED: Error = Error(3);
    pub const ILLEGAL_ADDRESS: Error = Error(700);
    pub const LAUNCH_FAILED: Error = Error(719);
    pub const NOT_SUPPORTED: Error = Error(801);
}

/// Makes an error of a number that is not 0.
pub(crate) fn checked(number: u32) -> Result<(), Error> {
    if number == 0 { Ok(()) } else { Err(Error(number)) }
}

/// Declares the functions of the driver.
macro_rules! functions {
    ($($name:ident: $symbol:literal ($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the driver that are used here.
        pub struct Driver {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        impl Driver {
            /// The functions of an open library, or the name of the one that it does not have.
            fn of(library: *mut c_void) -> Result<Driver, &'static str> {
                Ok(Driver {
                    $($name: {
                        let symbol = concat!($symbol, "\0");
                        // SAFETY: the library stays open, and the symbol ends in a zero.
                        let address = unsafe { libc::dlsym(library, symbol.as_ptr().cast()) };
                        if address.is_null() {
                            return Err($symbol);
                        }
                        // SAFETY: the function with this name has this type, in the driver's manual or in its `host_work.rs`.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) $(-> $result)?>(address) }
                    },)*
                })
            }
        }
    };
}

functions! {
    init: "cuInit" (u32) -> u32;
    get_current: "cuCtxGetCurrent" (*mut *mut c_void) -> u32;
    set_current: "cuCtxSetCurrent" (*mut c_void) -> u32;
    get_device: "cuCtxGetDevice" (*mut c_int) -> u32;
    retain_primary: "cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int) -> u32;
    allocate: "cuMemAlloc_v2" (*mut u64, usize) -> u32;
    free: "cuMemFree_v2" (u64) -> u32;
    make_event: "cuEventCreate" (*mut *mut c_void, u32) -> u32;
    destroy_event: "cuEventDestroy_v2" (*mut c_void) -> u32;
    record_event: "cuEventRecord" (*mut c_void, *mut c_void) -> u32;
    wait_for_event: "cuStreamWaitEvent" (*mut c_void, *mut c_void, u32) -> u32;
    stream_synchronize: "cuStreamSynchronize" (*mut c_void) -> u32;
    is_capturing: "cuStreamIsCapturing" (*mut c_void, *mut u32) -> u32;
    copy_async: "cuMemcpyAsync" (u64, u64, usize, *mut c_void) -> u32;
    work: "ptxvm_host_work" (*mut c_void, unsafe extern "C" fn(*mut c_void) -> u32, unsafe extern "C" fn(*mut c_void), *mut c_void) -> u32;
    range: "ptxvm_host_range" (u64, u64, *mut u64, *mut u64) -> u32;
    borrow: "ptxvm_host_borrow" (u64, u64, *const c_char, *mut *mut c_void, *mut *mut c_void) -> u32;
    give_back: "ptxvm_host_return" (*mut c_void);
    wrote: "ptxvm_host_wrote" (u64, u64);
    failed: "ptxvm_host_failed" (*const c_char, *const c_char);
}

impl Driver {
    /// The driver that the program has loaded, or the one in the folder of this library, or the one that the dynamic linker finds.
    ///
    /// # Errors
    /// If there is none, or if it is not ptxvm's; stderr says so, once.
    pub fn get() -> Result<&'static Driver, Error> {
        static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
        DRIVER.get_or_init(open).as_ref().ok_or(Error::NOT_INITIALIZED)
    }
}

/// Opens the driver.
fn open() -> Option<Driver> {
    let open = |name: &CStr, flags| {
        // SAFETY: loading a driver has no effects that could harm this process.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | flags) };
        (!library.is_null()).then_some(library)
    };
    let name = c"libcuda.so.1";
    let found = open(name, libc::RTLD_NOLOAD).or_else(|| open(&beside()?, 0)).or_else(|| open(name, 0));
    let Some(library) = found else {
        log!(error, "ptxvm's mathematical libraries found no `libcuda.so.1`");
        return None;
    };
    match Driver::of(library) {
        Ok(driver) => Some(driver),
        Err(missing) => {
            log!(
                error,
                "ptxvm's mathematical libraries need ptxvm's driver, and the `libcuda.so.1` of this process is another: it has no `{missing}`"
            );
            None
        }
    }
}

/// The path of the driver in the folder of this library.
fn beside() -> Option<CString> {
    CString::new(own_path()?.parent()?.join("libcuda.so.1").as_os_str().as_bytes()).ok()
}

/// A context, as a number: handles of libraries remember theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context(usize);

/// The current context of this thread. If there is none, `preferred` becomes current, or else the primary context of the first device,
/// as the runtime would have it.
///
/// # Errors
/// If there is no driver of ptxvm, or no device.
pub fn enter(preferred: Option<Context>) -> Result<Context, Error> {
    let driver = Driver::get()?;
    // SAFETY: the arguments meet the requirements of the functions.
    unsafe {
        checked((driver.init)(0))?;
        let mut current = std::ptr::null_mut();
        checked((driver.get_current)(&raw mut current))?;
        if current.is_null() {
            match preferred {
                Some(Context(context)) => current = std::ptr::with_exposed_provenance_mut(context),
                None => checked((driver.retain_primary)(&raw mut current, 0))?,
            }
            checked((driver.set_current)(current))?;
        }
        Ok(Context(current.expose_provenance()))
    }
}

/// The number of the current context's device.
///
/// # Errors
/// If no context is current.
pub fn device() -> Result<c_int, Error> {
    let mut device = 0;
    // SAFETY: it is a place for a number.
    checked(unsafe { (Driver::get()?.get_device)(&raw mut device) })?;
    Ok(device)
}

/// The primary context of a device.
///
/// # Errors
/// If there is no driver of ptxvm, or no such device.
pub fn primary(device: c_int) -> Result<Context, Error> {
    let driver = Driver::get()?;
    let mut context = std::ptr::null_mut();
    // SAFETY: the arguments meet the requirements of the functions.
    unsafe {
        checked((driver.init)(0))?;
        checked((driver.retain_primary)(&raw mut context, device))?;
    }
    Ok(Context(context.expose_provenance()))
}

/// Runs something while a context is current, and makes the one current again that was.
///
/// # Errors
/// If there is no driver of ptxvm, or the context has been destroyed.
pub fn within<T>(context: Context, work: impl FnOnce() -> T) -> Result<T, Error> {
    let driver = Driver::get()?;
    let mut before = std::ptr::null_mut();
    // SAFETY: the arguments meet the requirements of the functions; the driver checks contexts.
    unsafe {
        checked((driver.get_current)(&raw mut before))?;
        checked((driver.set_current)(std::ptr::with_exposed_provenance_mut(context.0)))?;
        let result = work();
        checked((driver.set_current)(before))?;
        Ok(result)
    }
}

/// Allocates memory of the current context's device.
///
/// # Errors
/// If there is not enough, or no context is current.
pub fn allocate(bytes: usize) -> Result<u64, Error> {
    let mut address = 0;
    // SAFETY: it is a place for an address.
    checked(unsafe { (Driver::get()?.allocate)(&raw mut address, bytes) })?;
    Ok(address)
}

/// Gives memory of a device back.
///
/// # Errors
/// If nothing was allocated there.
pub fn free(address: u64) -> Result<(), Error> {
    // SAFETY: the driver checks the address.
    checked(unsafe { (Driver::get()?.free)(address) })
}

/// Reports a mistake of the program in a call of a library, as a fault: on stderr, and in the report of `ptxvm exec`.
pub fn failed(function: &str, message: &str) {
    let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
    if let Ok(driver) = Driver::get() {
        // SAFETY: both are zero-terminated texts.
        unsafe { (driver.failed)(text(function).as_ptr(), text(message).as_ptr()) }
    }
}
