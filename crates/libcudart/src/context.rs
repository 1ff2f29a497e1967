//! The current context of a thread: the one that it selected with the driver's functions, or else its device's primary context, which
//! the first call creates (CUDA C++ Programming Guide, "Initialization").

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::driver::cu;
use crate::error::Error;
use crate::{Handle, NULL};

/// By device: its primary context, once the runtime has retained it.
static PRIMARIES: Mutex<Vec<Option<usize>>> = Mutex::new(Vec::new());

fn primaries() -> MutexGuard<'static, Vec<Option<usize>>> {
    PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The device that the thread selected.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    /// The primary context that the runtime made current on this thread, and its device.
    static BOUND: Cell<(usize, c_int)> = const { Cell::new((0, 0)) };
}

/// Initializes the driver once.
///
/// # Errors
/// If there is no driver, or no device.
pub fn start() -> Result<(), Error> {
    static STARTED: OnceLock<Result<(), Error>> = OnceLock::new();
    // SAFETY: the arguments meet the requirements of the function.
    *STARTED.get_or_init(|| unsafe { cu!(cuInit(0)) })
}

/// The number of devices.
///
/// # Errors
/// As for [`start`].
pub fn device_count() -> Result<c_int, Error> {
    start()?;
    let mut count = 0;
    // SAFETY: the arguments meet the requirements of the function.
    unsafe { cu!(cuDeviceGetCount(&raw mut count)) }?;
    Ok(count)
}

/// Checks a device number.
///
/// # Errors
/// If there is no such device.
pub fn check_device(device: c_int) -> Result<(), Error> {
    if (0..device_count()?).contains(&device) { Ok(()) } else { Err(Error::INVALID_DEVICE) }
}

/// The primary context of a device.
///
/// # Errors
/// If there is no such device.
pub fn primary(device: c_int) -> Result<Handle, Error> {
    check_device(device)?;
    let mut primaries = primaries();
    let index = device as usize;
    if primaries.len() <= index {
        primaries.resize(index + 1, None);
    }
    if let Some(context) = primaries[index] {
        return Ok(std::ptr::with_exposed_provenance_mut(context));
    }
    let mut context = NULL;
    // SAFETY: the arguments meet the requirements of the function.
    unsafe { cu!(cuDevicePrimaryCtxRetain(&raw mut context, device)) }?;
    primaries[index] = Some(context.expose_provenance());
    Ok(context)
}

/// Makes the primary context of a device current.
///
/// # Errors
/// If there is no such device.
pub fn bind(device: c_int) -> Result<(), Error> {
    let context = primary(device)?;
    // SAFETY: the arguments meet the requirements of the function.
    unsafe { cu!(cuCtxSetCurrent(context)) }?;
    DEVICE.set(device);
    BOUND.set((context.addr(), device));
    Ok(())
}

/// Ensures that the thread has a current context. Every function that needs a context calls this first.
///
/// # Errors
/// If there is no device.
pub fn enter() -> Result<(), Error> {
    start()?;
    let mut context = NULL;
    // SAFETY: the arguments meet the requirements of the function.
    unsafe { cu!(cuCtxGetCurrent(&raw mut context)) }?;
    let (bound, device) = BOUND.get();
    // Another thread may have reset the device.
    let is_gone = || primaries().get(device as usize).copied().flatten() != Some(bound);
    match context.addr() {
        0 => bind(DEVICE.get()),
        current if current == bound && is_gone() => bind(device),
        _ => Ok(()),
    }
}

/// The device of the current context, or else the one that the thread selected.
///
/// # Errors
/// If there is no device.
pub fn device() -> Result<c_int, Error> {
    start()?;
    let mut device = 0;
    // SAFETY: the arguments meet the requirements of the function.
    match unsafe { cu!(cuCtxGetDevice(&raw mut device)) } {
        Ok(()) => Ok(device),
        Err(_) => Ok(DEVICE.get()),
    }
}

/// Resets the primary context of the thread's device, and frees all that belongs to it.
///
/// # Errors
/// If there is no device.
pub fn reset() -> Result<(), Error> {
    let device = device()?;
    if let Some(context) = primaries().get_mut(device as usize) {
        *context = None;
    }
    // SAFETY: the arguments meet the requirements of the function.
    unsafe {
        cu!(cuDevicePrimaryCtxReset_v2(device))?;
        if BOUND.replace((0, 0)).0 != 0 {
            cu!(cuCtxSetCurrent(NULL))?;
        }
    }
    DEVICE.set(device);
    Ok(())
}
