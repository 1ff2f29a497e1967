//! The handle, and what it remembers.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caller::{Library, Out};
use mathlib::driver::{Context, enter};
use mathlib::{Handles, Stream, api};

use crate::status::Status;

/// cuSPARSE, as a library that the program calls.
pub struct Cusparse;

impl Library for Cusparse {
    type Error = Status;
    const NULL_POINTER: Status = Status::INVALID_VALUE;
    const UNKNOWN_NAME: Status = Status::INVALID_VALUE;
}

/// A pointer or a handle of the program.
pub type Ptr = *mut c_void;

/// A place of the program's for a result.
pub type Place<'a, T> = Out<'a, T, Cusparse>;

/// What the program chose for a handle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// The stream of its work.
    pub stream: Stream,
    /// Whether scalars are in device memory (`cusparsePointerMode_t`).
    pub on_device: bool,
}

/// A handle's object.
pub struct Handle {
    /// The context in which it was made.
    pub context: Context,
    settings: Mutex<Settings>,
}

static HANDLES: Handles<Handle> = Handles::new();

impl Handle {
    /// The object of a handle of the program.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(handle: Ptr) -> Result<Arc<Handle>, Status> {
        HANDLES.get(handle).ok_or(Status::NOT_INITIALIZED)
    }

    /// What the program chose.
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The version that the library says to be, `[major, minor, patch]`: that of CUDA 12.9.
const VERSION: [c_int; 3] = [12, 5, 10];

api! { API: Status, name;
    /// Makes a handle, in the current context.
    cusparseCreate(handle: Place<'_, Ptr>) {
        if handle.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let context = enter(None).map_err(|_| Status::NOT_INITIALIZED)?;
        handle.write(HANDLES.insert(Handle { context, settings: Mutex::default() }))
    }

    /// Gives a handle back, after its work.
    cusparseDestroy(handle: Ptr) {
        let removed = HANDLES.remove(handle).ok_or(Status::NOT_INITIALIZED)?;
        enter(Some(removed.context))?;
        // The work of a stream that has gone, or of a capture, needs no waiting.
        let _ = mathlib::synchronize(removed.settings().stream);
        Ok(())
    }

    /// The version of the library: 12510.
    cusparseGetVersion(handle: Ptr, version: Place<'_, c_int>) {
        Handle::of(handle)?;
        let [major, minor, patch] = VERSION;
        version.write(major * 1000 + minor * 100 + patch)
    }

    /// A part of the version: major, minor or patch.
    cusparseGetProperty(part: c_uint, value: Place<'_, c_int>) {
        value.write(*VERSION.get(part as usize).ok_or(Status::INVALID_VALUE)?)
    }

    /// Chooses the stream of a handle's work.
    cusparseSetStream(handle: Ptr, stream: Ptr) {
        Handle::of(handle)?.settings().stream = Stream::of(stream);
        Ok(())
    }

    /// The stream of a handle's work.
    cusparseGetStream(handle: Ptr, stream: Place<'_, Ptr>) {
        stream.write(Handle::of(handle)?.settings().stream.handle())
    }

    /// Chooses whether scalars are in memory of the host or of the device.
    cusparseSetPointerMode(handle: Ptr, mode: c_uint) {
        let handle = Handle::of(handle)?;
        if mode > 1 {
            return Err(Status::INVALID_VALUE);
        }
        handle.settings().on_device = mode == 1;
        Ok(())
    }

    /// Whether scalars are in memory of the host or of the device.
    cusparseGetPointerMode(handle: Ptr, mode: Place<'_, c_uint>) {
        mode.write(Handle::of(handle)?.settings().on_device.into())
    }

    /// Takes a function that gets lines of a log. It is not called: `PTXVM_LOG` logs calls here.
    cusparseLoggerSetCallback(callback: Ptr) {
        let _ = callback;
        Ok(())
    }

    /// Takes a file for a log. Nothing is written to it: `PTXVM_LOG` logs calls here.
    cusparseLoggerSetFile(file: Ptr) {
        let _ = file;
        Ok(())
    }

    /// Takes the name of a file for a log. It is not opened: `PTXVM_LOG` logs calls here.
    cusparseLoggerOpenFile(path: Place<'_, c_char>) {
        if path.is_null() { Err(Status::INVALID_VALUE) } else { Ok(()) }
    }

    /// Chooses how much is logged, 0 to 5. It changes nothing: `PTXVM_LOG` does.
    cusparseLoggerSetLevel(level: c_int) {
        if (0..=5).contains(&level) { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Chooses what is logged. It changes nothing: `PTXVM_LOG` does.
    cusparseLoggerSetMask(mask: c_int) {
        if (0..32).contains(&mask) { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Ends all logging of this interface.
    cusparseLoggerForceDisable() { Ok(()) }
}
