//! The handle, and what it remembers.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caller::{In, Library, Out};
use mathlib::driver::{Context, enter};
use mathlib::{Handles, Stream, api, is_of_device};

use crate::declare::Ptr;
use crate::emulation::Emulation;
use crate::status::Status;

/// cuBLAS, as a library that the program calls.
pub struct Cublas;

impl Library for Cublas {
    type Error = Status;
    const NULL_POINTER: Status = Status::INVALID_VALUE;
    const UNKNOWN_NAME: Status = Status::INVALID_VALUE;
}

/// What the program chose for a handle.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The stream of its work.
    pub stream: Stream,
    /// Whether scalars are in device memory (`cublasPointerMode_t`).
    pub on_device: bool,
    /// `cublasMath_t`.
    pub math: u32,
    atomics: u32,
    multiprocessors: c_int,
    /// What is chosen for emulated products.
    pub emulation: Emulation,
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

/// The version that the library says to be: that of the name under which the program has opened it.
fn version() -> [c_int; 3] {
    let is_new =
        mathlib::own_path().is_some_and(|path| path.as_os_str().as_encoded_bytes().ends_with(b".so.13"));
    if is_new { [13, 1, 0] } else { [12, 9, 1] }
}

/// The log of the program: no function writes to it, because `PTXVM_LOG` has the same.
static CALLBACK: Mutex<usize> = Mutex::new(0);

/// The version as one number.
pub fn version_number() -> c_int {
    let [major, minor, patch] = version();
    major * 10000 + minor * 100 + patch
}

/// The version of the CUDA runtime that belongs to the library.
pub fn runtime_version() -> usize {
    let [major, minor, _] = version();
    (major * 1000 + minor * 10) as usize
}

/// A part of the version.
///
/// # Errors
/// If there is no such part, or the pointer is null.
pub fn property(which: c_uint, result: Out<c_int, Cublas>) -> Result<(), Status> {
    result.write(*version().get(which as usize).ok_or(Status::INVALID_VALUE)?)
}

/// Makes a handle, in the current context.
///
/// # Errors
/// If the pointer is null, or there is no driver.
pub fn create(result: Out<Ptr, Cublas>) -> Result<(), Status> {
    if result.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    let context = enter(None).map_err(|_| Status::NOT_INITIALIZED)?;
    let settings = Settings {
        stream: Stream::default(),
        on_device: false,
        math: 0,
        atomics: 0,
        multiprocessors: 0,
        emulation: Emulation::default(),
    };
    result.write(HANDLES.insert(Handle { context, settings: Mutex::new(settings) }))
}

/// Gives a handle back, after its work.
///
/// # Errors
/// If there is no such handle.
pub fn destroy(handle: Ptr) -> Result<(), Status> {
    let removed = HANDLES.remove(handle).ok_or(Status::NOT_INITIALIZED)?;
    enter(Some(removed.context))?;
    // The work of a stream that has gone, or of a capture, needs no waiting.
    let _ = mathlib::synchronize(removed.settings().stream);
    Ok(())
}

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn cublasGetCudartVersion() -> usize {
    runtime_version()
}

/// It returns no status.
pub(crate) static VERSION: &[&[mathlib::Function]] = &[&[mathlib::Function {
    symbol: "cublasGetCudartVersion",
    supported: true,
    summary: " The version of the CUDA runtime that belongs to the library.",
}]];

api! { API: Status, name;
    /// Makes a handle, in the current context.
    cublasCreate_v2 (handle: Out<Ptr, Cublas>) { create(handle) }
    /// Gives a handle back, after its work.
    cublasDestroy_v2 (handle: Ptr) { destroy(handle) }
    /// The version of the library.
    cublasGetVersion_v2 (_handle: Ptr, result: Out<c_int, Cublas>) {
        result.write(version_number())
    }
    /// A part of the version: major, minor or patch.
    cublasGetProperty (which: c_uint, result: Out<c_int, Cublas>) {
        property(which, result)
    }
    /// Chooses the stream of a handle's work.
    cublasSetStream_v2 (handle: Ptr, stream: Ptr) {
        Handle::of(handle)?.settings().stream = Stream::of(stream);
        Ok(())
    }
    /// The stream of a handle's work.
    cublasGetStream_v2 (handle: Ptr, result: Out<Ptr, Cublas>) {
        result.write(Handle::of(handle)?.settings().stream.handle())
    }
    /// Chooses whether scalars are in memory of the host or of the device.
    cublasSetPointerMode_v2 (handle: Ptr, mode: c_uint) {
        let handle = Handle::of(handle)?;
        if mode > 1 {
            return Err(Status::INVALID_VALUE);
        }
        handle.settings().on_device = mode == 1;
        Ok(())
    }
    /// Whether scalars are in memory of the host or of the device.
    cublasGetPointerMode_v2 (handle: Ptr, result: Out<c_uint, Cublas>) {
        result.write(Handle::of(handle)?.settings().on_device.into())
    }
    /// Chooses whether sums may depend on the order of atomic operations: they never do here.
    cublasSetAtomicsMode (handle: Ptr, mode: c_uint) {
        let handle = Handle::of(handle)?;
        if mode > 1 {
            return Err(Status::INVALID_VALUE);
        }
        handle.settings().atomics = mode;
        Ok(())
    }
    /// What was chosen for atomic operations.
    cublasGetAtomicsMode (handle: Ptr, result: Out<c_uint, Cublas>) {
        result.write(Handle::of(handle)?.settings().atomics)
    }
    /// Chooses how products are computed: TF32 rounds the factors of `f32` and `cuComplex`.
    cublasSetMathMode (handle: Ptr, mode: c_uint) {
        let handle = Handle::of(handle)?;
        if !matches!(mode & !16, 0..=4 | 8) {
            return Err(Status::INVALID_VALUE);
        }
        handle.settings().math = mode;
        Ok(())
    }
    /// How products are computed.
    cublasGetMathMode (handle: Ptr, result: Out<c_uint, Cublas>) {
        result.write(Handle::of(handle)?.settings().math)
    }
    /// Gives the library memory for its work: it needs none.
    cublasSetWorkspace_v2 (handle: Ptr, workspace: Ptr, bytes: usize) {
        Handle::of(handle)?;
        match bytes == 0 || is_of_device(workspace.cast_const()) {
            true => Ok(()),
            false => Err(Status::INVALID_VALUE),
        }
    }
    /// Chooses how many multiprocessors work: remembered, without effect.
    cublasSetSmCountTarget (handle: Ptr, count: c_int) {
        let handle = Handle::of(handle)?;
        if count < 0 {
            return Err(Status::INVALID_VALUE);
        }
        handle.settings().multiprocessors = count;
        Ok(())
    }
    /// How many multiprocessors work, as chosen.
    cublasGetSmCountTarget (handle: Ptr, result: Out<c_int, Cublas>) {
        result.write(Handle::of(handle)?.settings().multiprocessors)
    }
    /// Switches the log of calls: it is `PTXVM_LOG` that does so here.
    cublasLoggerConfigure (_on: c_int, _stdout: c_int, _stderr: c_int, _file: In<c_char, Cublas>) {
        Ok(())
    }
    /// Takes a function that gets lines of the log: remembered, and not called.
    cublasSetLoggerCallback (callback: Ptr) {
        *CALLBACK.lock().unwrap_or_else(PoisonError::into_inner) = callback.expose_provenance();
        Ok(())
    }
    /// The function that gets lines of the log.
    cublasGetLoggerCallback (result: Out<Ptr, Cublas>) {
        let callback = *CALLBACK.lock().unwrap_or_else(PoisonError::into_inner);
        result.write(std::ptr::with_exposed_provenance_mut(callback))
    }
}
