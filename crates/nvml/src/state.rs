//! Whether the library is in use, the devices, and who uses them.

use std::ffi::{CStr, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use devices::{Devices, Process};

use crate::pointers::Out;
use crate::status::Status;
use caller::log;

/// `nvmlDevice_t`: the number of the device, and one. It is opaque to programs.
pub type Handle = *mut c_void;

/// How often the program has initialized the library, less how often it has shut it down.
static USERS: AtomicU32 = AtomicU32::new(0);

/// Begins a use of the library.
///
/// # Errors
/// If an environment variable has an invalid value.
pub fn begin() -> Result<(), Status> {
    let faults = &known().faults;
    if !faults.is_empty() {
        log!(error, "{}", faults.join("\nptxvm: "));
        return Err(Status::DRIVER_NOT_LOADED);
    }
    USERS.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Ends a use of the library.
///
/// # Errors
/// If there is none.
pub fn end() -> Result<(), Status> {
    let less = |users: u32| users.checked_sub(1);
    let ended = USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    ended.map(drop).map_err(|_| Status::UNINITIALIZED)
}

fn known() -> &'static Devices {
    static DEVICES: OnceLock<Devices> = OnceLock::new();
    DEVICES.get_or_init(Devices::get)
}

/// The devices.
///
/// # Errors
/// If the library is not in use.
pub fn devices() -> Result<&'static Devices, Status> {
    if USERS.load(Ordering::Relaxed) == 0 {
        return Err(Status::UNINITIALIZED);
    }
    Ok(known())
}

/// The handle of a device, by its number.
pub fn handle(number: u32) -> Handle {
    std::ptr::without_provenance_mut(number as usize + 1)
}

/// The number that a handle stands for.
///
/// # Errors
/// If the library is not in use, or this is no handle of it.
pub fn number(device: Handle) -> Result<u32, Status> {
    let devices = devices()?;
    let number = device.addr().checked_sub(1).and_then(|number| u32::try_from(number).ok());
    number.filter(|number| *number < devices.count).ok_or(Status::INVALID_ARGUMENT)
}

/// The devices, for a question about one of them.
///
/// # Errors
/// If the library is not in use, or this is no handle of it.
pub fn device(device: Handle) -> Result<&'static Devices, Status> {
    number(device)?;
    devices()
}

/// Tells what is the same for all devices.
///
/// # Errors
/// If the library is not in use, this is no handle of it, or the pointer is null.
pub fn same_for_all<T>(device: Handle, result: Out<'_, T>, value: T) -> Result<(), Status> {
    number(device)?;
    result.write(value)
}

/// The handle of the first device for which something holds.
///
/// # Errors
/// If the library is not in use, or there is no such device.
pub fn find(is: impl Fn(u32) -> bool) -> Result<Handle, Status> {
    (0..devices()?.count).find(|&number| is(number)).map(handle).ok_or(Status::NOT_FOUND)
}

/// The processes that have contexts on a device, with the bytes that each has there.
pub fn processes(device: u32) -> Vec<(u32, u64)> {
    let own = std::process::id();
    let others = devices::processes();
    let of = |process: &Process| Some((process.id, process.bytes_on(device)?));
    let others = others.iter().filter(|process| process.id != own).filter_map(of);
    let mut all: Vec<_> = others.chain(own_use(device).map(|bytes| (own, bytes))).collect();
    all.sort_unstable();
    all
}

/// The bytes that this process has on a device, if it has a context there: it asks the driver that this process has loaded.
fn own_use(device: u32) -> Option<u64> {
    type Use = unsafe extern "C" fn(c_uint, *mut u64, *mut u64) -> c_uint;
    const LIBRARY: &CStr = c"libcuda.so.1";
    let (mut bytes, mut contexts) = (0, 0);
    // SAFETY: it loads nothing. The symbol is a function of crates/libcuda with these arguments, which no other driver has. The library
    // stays while this holds it open.
    let status = unsafe {
        let library = libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        let found = libc::dlsym(library, c"ptxvm_use_of_device".as_ptr());
        let status = if found.is_null() {
            1
        } else {
            std::mem::transmute::<*mut c_void, Use>(found)(device, &raw mut bytes, &raw mut contexts)
        };
        libc::dlclose(library);
        status
    };
    (status == 0 && contexts > 0).then_some(bytes)
}
