//! The driver below: `libcuda.so.1`. The runtime uses only its public functions.
//!
//! All state is the driver's, so a program that uses both libraries sees one state. `cu!` takes the types of arguments from cudarc's
//! declarations and compares their sizes.

use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::error::Error;
use caller::log;

/// From this section, `ptxvm exec` recognizes our runtime inside a program.
#[unsafe(link_section = ".ptxvm.cudart")]
static NAME_BYTES: [u8; 13] = *b"libcuda.so.1\0";
const NAME: &CStr = match CStr::from_bytes_with_nul(&NAME_BYTES) {
    Ok(name) => name,
    Err(_) => panic!("it ends with a zero"),
};

/// The library, which stays open until the process ends.
struct Library(*mut c_void);

// SAFETY: the dynamic linker synchronizes accesses to the handle.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// The driver that the program has already loaded, or the one in the same folder as this library, or the one that the dynamic linker finds.
fn library() -> Result<&'static Library, Error> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let open = |name: &CStr, flags| {
            // SAFETY: loading a driver has no effects that could harm this process.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | flags) };
            (!handle.is_null()).then_some(Library(handle))
        };
        let found = open(NAME, libc::RTLD_NOLOAD)
            .or_else(|| open(&beside()?, 0))
            .or_else(|| open(NAME, 0));
        if found.is_none() {
            log!(error, "the CUDA runtime found no `libcuda.so.1`, neither beside itself nor in the search path of the dynamic linker");
        }
        found
    });
    library.as_ref().ok_or(Error::INSUFFICIENT_DRIVER)
}

/// The path of the driver in the folder of this library.
fn beside() -> Option<CString> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the call fills the structure, or returns 0.
    let info = unsafe {
        if libc::dladdr(beside as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init()
    };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: this is the dynamic linker's name of a library that stays loaded.
    let own = unsafe { CStr::from_ptr(info.dli_fname) };
    let own = Path::new(std::ffi::OsStr::from_bytes(own.to_bytes()));
    CString::new(own.parent()?.join("libcuda.so.1").as_os_str().as_bytes()).ok()
}

/// A function of the driver, looked up at its first call.
pub struct Symbol {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Symbol {
    /// The function with this zero-terminated name.
    pub const fn new(name: &'static str) -> Symbol {
        match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => Symbol { name, address: AtomicPtr::new(std::ptr::null_mut()) },
            Err(_) => panic!("a name ends in its only zero"),
        }
    }

    /// The address of the function.
    ///
    /// # Errors
    /// If there is no driver, or the driver does not have the function.
    pub fn address(&self) -> Result<*mut c_void, Error> {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return Ok(known);
        }
        let library = library()?;
        // SAFETY: the library stays open.
        let found = unsafe { libc::dlsym(library.0, self.name.as_ptr()) };
        if found.is_null() {
            log!(warn, "the driver has no function {}", self.name.to_string_lossy());
            return Err(Error::CALL_REQUIRES_NEWER_DRIVER);
        }
        self.address.store(found, Ordering::Release);
        Ok(found)
    }
}

/// The declaration of a driver function: the types of its arguments. An enumeration from a program is passed on as a number of any
/// value, so only the sizes of arguments are compared.
pub struct Declared<F>(pub PhantomData<F>);

impl<F> Declared<F> {
    /// The type of a declaration.
    pub const fn of(_declaration: &F) -> Declared<F> {
        Declared(PhantomData)
    }
}

/// A tuple of arguments for a function.
pub trait Arguments<F>: Sized {
    /// Calls the function.
    ///
    /// # Safety
    /// The declared function must be at the address, and the arguments must meet its manual's requirements.
    unsafe fn pass(self, address: *mut c_void) -> u32;
}

macro_rules! arguments {
    ($($declared:ident $given:ident $value:ident),*) => {
        impl<R, $($declared, $given),*> Arguments<unsafe fn($($declared),*) -> R> for ($($given,)*) {
            unsafe fn pass(self, address: *mut c_void) -> u32 {
                const {
                    assert!(size_of::<R>() == size_of::<u32>());
                    $(assert!(size_of::<$declared>() == size_of::<$given>(), "an argument has another size");)*
                }
                let ($($value,)*) = self;
                // SAFETY: the caller's promise; arguments of the same size are passed in the same way.
                unsafe {
                    let function: unsafe extern "C" fn($($given),*) -> u32 = std::mem::transmute(address);
                    function($($value),*)
                }
            }
        }
    };
}

arguments!();
arguments!(A X a);
arguments!(A X a, B Y b);
arguments!(A X a, B Y b, C Z c);
arguments!(A X a, B Y b, C Z c, D W d);
arguments!(A X a, B Y b, C Z c, D W d, E V e);
arguments!(A X a, B Y b, C Z c, D W d, E V e, F U f);
arguments!(A X a, B Y b, C Z c, D W d, E V e, F U f, G T g);
arguments!(A X a, B Y b, C Z c, D W d, E V e, F U f, G T g, H S h);
arguments!(A X a, B Y b, C Z c, D W d, E V e, F U f, G T g, H S h, I Q i);
arguments!(A X a, B Y b, C Z c, D W d, E V e, F U f, G T g, H S h, I Q i, J P j);
arguments!(A X a, B Y b, C Z c, D W d, E V e, F U f, G T g, H S h, I Q i, J P j, K O k);

/// Calls a driver function.
///
/// # Errors
/// The error that it returns: the driver's numbers are also the runtime's.
///
/// # Safety
/// As for [`Arguments::pass`].
pub unsafe fn call<F, A: Arguments<F>>(
    symbol: &Symbol,
    _declared: Declared<F>,
    arguments: A,
) -> Result<(), Error> {
    let address = symbol.address()?;
    // SAFETY: the caller's promise.
    match unsafe { arguments.pass(address) } {
        0 => Ok(()),
        number => Err(Error(number)),
    }
}

/// Calls a driver function with the argument types that `cudarc` declares for it.
macro_rules! cu {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        static SYMBOL: $crate::driver::Symbol = $crate::driver::Symbol::new(concat!(stringify!($name), "\0"));
        let declared: unsafe fn($($crate::driver::any!($argument)),*) -> _ = cudarc::driver::sys::$name;
        $crate::driver::call(&SYMBOL, $crate::driver::Declared::of(&declared), ($($argument,)*))
    }};
}

macro_rules! any {
    ($argument:expr) => {
        _
    };
}

pub(crate) use {any, cu};
