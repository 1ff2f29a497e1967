//! The context in which a thread works: that which it made current with the driver's functions, or else the primary one of its device, which the
//! first call makes (CUDA C++ Programming Guide, "Initialization").

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::driver::cu;
use crate::error::Error;
use crate::{Handle, NULL};

/// By device: its primary context, if the runtime uses it.
static PRIMARIES: Mutex<Vec<Option<usize>>> = Mutex::new(Vec::new());

fn primaries() -> MutexGuard<'static, Vec<Option<usize>>> {
    PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The device that the thread asked for.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    /// The primary context that was made current here, and its device.
    static BOUND: Cell<(usize, c_int)> = const { Cell::new((0, 0)) };
}

/// Starts the driver, once.
///
/// # Errors
/// When there is none, or no device.
pub fn start() -> Result<(), Error> {
    static STARTED: OnceLock<Result<(), Error>> = OnceLock::new();
    // SAFETY: it is passed what it wants.
    *STARTED.get_or_init(|| unsafe { cu!(cuInit(0)) })
}

/// How many devices there are.
///
/// # Errors
/// As for [`start`].
pub fn device_count() -> Result<c_int, Error> {
    start()?;
    let mut count = 0;
    // SAFETY: it is passed what it wants.
    unsafe { cu!(cuDeviceGetCount(&raw mut count)) }?;
    Ok(count)
}

/// Checks the number of a device.
///
/// # Errors
/// When there is none of this number.
pub fn check_device(device: c_int) -> Result<(), Error> {
    if (0..device_count()?).contains(&device) { Ok(()) } else { Err(Error::INVALID_DEVICE) }
}

/// The primary context of a device.
///
/// # Errors
/// When there is no such device.
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
    // SAFETY: it is passed what it wants.
    unsafe { cu!(cuDevicePrimaryCtxRetain(&raw mut context, device)) }?;
    primaries[index] = Some(context.expose_provenance());
    Ok(context)
}

/// Makes the primary context of a device the current one.
///
/// # Errors
/// When there is no such device.
pub fn bind(device: c_int) -> Result<(), Error> {
    let context = primary(device)?;
    // SAFETY: it is passed what it wants.
    unsafe { cu!(cuCtxSetCurrent(context)) }?;
    DEVICE.set(device);
    BOUND.set((context.addr(), device));
    Ok(())
}

/// What every function needs that works in a context: afterwards there is a current one.
///
/// # Errors
/// When there is no device.
pub fn enter() -> Result<(), Error> {
    start()?;
    let mut context = NULL;
    // SAFETY: it is passed what it wants.
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

/// The device of the current context, or that which the thread asked for.
///
/// # Errors
/// When there is no device.
pub fn device() -> Result<c_int, Error> {
    start()?;
    let mut device = 0;
    // SAFETY: it is passed what it wants.
    match unsafe { cu!(cuCtxGetDevice(&raw mut device)) } {
        Ok(()) => Ok(device),
        Err(_) => Ok(DEVICE.get()),
    }
}

/// Ends the primary context of the thread's device, with all that belongs to it.
///
/// # Errors
/// When there is no device.
pub fn reset() -> Result<(), Error> {
    let device = device()?;
    if let Some(context) = primaries().get_mut(device as usize) {
        *context = None;
    }
    // SAFETY: it is passed what it wants.
    unsafe {
        cu!(cuDevicePrimaryCtxReset_v2(device))?;
        if BOUND.replace((0, 0)).0 != 0 {
            cu!(cuCtxSetCurrent(NULL))?;
        }
    }
    DEVICE.set(device);
    Ok(())
}
