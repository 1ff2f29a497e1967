//! Handles and objects with options, and what they remember.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caller::{Library, Out};
use mathlib::driver::{Context, enter};
use mathlib::{Handles, Stream, api};

use crate::declare::Ptr;
use crate::status::Status;

/// cuSOLVER, as a library that the program calls.
pub struct Cusolver;

impl Library for Cusolver {
    type Error = Status;
    const NULL_POINTER: Status = Status::INVALID_VALUE;
    const UNKNOWN_NAME: Status = Status::INVALID_VALUE;
}

/// What the program chose for a handle.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The stream of its work.
    pub stream: Stream,
    deterministic: u32,
    math: u32,
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

    fn create(handle: Out<'_, Ptr, Cusolver>) -> Result<(), Status> {
        if handle.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let context = enter(None).map_err(|_| Status::NOT_INITIALIZED)?;
        let settings = Settings { stream: Stream::default(), deterministic: 1, math: 1 };
        handle.write(HANDLES.insert(Handle { context, settings: Mutex::new(settings) }))
    }

    fn destroy(handle: Ptr) -> Result<(), Status> {
        let removed = HANDLES.remove(handle).ok_or(Status::NOT_INITIALIZED)?;
        enter(Some(removed.context))?;
        // The work of a stream that has gone, or of a capture, needs no waiting.
        let _ = mathlib::synchronize(removed.settings().stream);
        Ok(())
    }
}

/// Options of Jacobi's methods, and what they tell.
#[derive(Clone, Copy, Debug)]
pub struct Jacobi {
    /// How small what is beside the diagonal becomes: remembered, and always reached to the bound that the page names.
    pub tolerance: f64,
    /// Most sweeps: remembered.
    pub sweeps: c_int,
    /// Whether values are sorted. They always are, which is a permitted order.
    pub sorted: bool,
    /// How many sweeps the last work took.
    pub executed: c_int,
    /// The residual of the last work.
    pub residual: f64,
}

/// An object with options.
pub struct Options(Mutex<Jacobi>);

static OPTIONS: Handles<Options> = Handles::new();

impl Options {
    /// The object of the program.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(info: Ptr) -> Result<Arc<Options>, Status> {
        OPTIONS.get(info).ok_or(Status::INVALID_VALUE)
    }

    /// What it holds.
    pub fn get(&self) -> MutexGuard<'_, Jacobi> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create(info: Out<'_, Ptr, Cusolver>) -> Result<(), Status> {
        if info.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let jacobi = Jacobi { tolerance: 1e-12, sweeps: 100, sorted: true, executed: 0, residual: 0.0 };
        info.write(OPTIONS.insert(Options(Mutex::new(jacobi))))
    }

    fn destroy(info: Ptr) -> Result<(), Status> {
        OPTIONS.remove(info).map(|_| ()).ok_or(Status::INVALID_VALUE)
    }

    /// Chooses a tolerance.
    fn tolerate(info: Ptr, tolerance: f64) -> Result<(), Status> {
        let info = Options::of(info)?;
        if tolerance < 0.0 || tolerance.is_nan() {
            return Err(Status::INVALID_VALUE);
        }
        info.get().tolerance = tolerance;
        Ok(())
    }

    /// Chooses the most sweeps.
    fn sweep(info: Ptr, sweeps: c_int) -> Result<(), Status> {
        let info = Options::of(info)?;
        if sweeps < 0 {
            return Err(Status::INVALID_VALUE);
        }
        info.get().sweeps = sweeps;
        Ok(())
    }

    /// Chooses whether values are sorted.
    fn sort(info: Ptr, sorted: c_int) -> Result<(), Status> {
        Options::of(info)?.get().sorted = sorted != 0;
        Ok(())
    }
}

/// Advanced options: which algorithm each function takes. There is one of each here.
static PARAMS: Handles<Mutex<Vec<(c_uint, c_uint)>>> = Handles::new();

/// The version that the library says to be: that of the name under which the program has opened it.
fn version() -> [c_int; 3] {
    let is_new =
        mathlib::own_path().is_some_and(|path| path.as_os_str().as_encoded_bytes().ends_with(b".so.12"));
    if is_new { [12, 0, 4] } else { [11, 7, 5] }
}

api! { API: Status, name;
    /// Makes a handle, in the current context.
    cusolverDnCreate (handle: Out<Ptr, Cusolver>) {
        Handle::create(handle)
    }
    /// Gives a handle back, after its work.
    cusolverDnDestroy (handle: Ptr) {
        Handle::destroy(handle)
    }
    /// Makes a handle for sparse matrices, in the current context.
    cusolverSpCreate (handle: Out<Ptr, Cusolver>) {
        Handle::create(handle)
    }
    /// Gives a handle for sparse matrices back, after its work.
    cusolverSpDestroy (handle: Ptr) {
        Handle::destroy(handle)
    }
    /// Chooses the stream of a handle's work.
    cusolverDnSetStream cusolverSpSetStream (handle: Ptr, stream: Ptr) {
        Handle::of(handle)?.settings().stream = Stream::of(stream);
        Ok(())
    }
    /// The stream of a handle's work.
    cusolverDnGetStream cusolverSpGetStream (handle: Ptr, result: Out<Ptr, Cusolver>) {
        result.write(Handle::of(handle)?.settings().stream.handle())
    }
    /// Chooses whether results may differ from run to run: they never do here.
    cusolverDnSetDeterministicMode (handle: Ptr, mode: c_uint) {
        let handle = Handle::of(handle)?;
        if !matches!(mode, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        handle.settings().deterministic = mode;
        Ok(())
    }
    /// Whether results may differ from run to run, as chosen.
    cusolverDnGetDeterministicMode (handle: Ptr, result: Out<c_uint, Cusolver>) {
        result.write(Handle::of(handle)?.settings().deterministic)
    }
    /// Chooses whether products are emulated in other types: remembered, and never done.
    cusolverDnSetMathMode (handle: Ptr, mode: c_uint) {
        let handle = Handle::of(handle)?;
        if !matches!(mode, 1 | 2 | 4 | 6) {
            return Err(Status::INVALID_VALUE);
        }
        handle.settings().math = mode;
        Ok(())
    }
    /// Whether products are emulated, as chosen.
    cusolverDnGetMathMode (handle: Ptr, result: Out<c_uint, Cusolver>) {
        result.write(Handle::of(handle)?.settings().math)
    }
    /// The version of the library.
    cusolverGetVersion (result: Out<c_int, Cusolver>) {
        let [major, minor, patch] = version();
        result.write(major * 1000 + minor * 100 + patch)
    }
    /// A part of the version: major, minor or patch.
    cusolverGetProperty (which: c_uint, result: Out<c_int, Cusolver>) {
        result.write(*version().get(which as usize).ok_or(Status::INVALID_VALUE)?)
    }
    /// Makes an object for advanced options.
    cusolverDnCreateParams (params: Out<Ptr, Cusolver>) {
        if params.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        params.write(PARAMS.insert(Mutex::new(Vec::new())))
    }
    /// Gives an object for advanced options back.
    cusolverDnDestroyParams (params: Ptr) {
        PARAMS.remove(params).map(|_| ()).ok_or(Status::INVALID_VALUE)
    }
    /// Chooses the algorithm of a function: remembered, because there is one of each.
    cusolverDnSetAdvOptions (params: Ptr, function: c_uint, algorithm: c_uint) {
        let params = PARAMS.get(params).ok_or(Status::INVALID_VALUE)?;
        if function > 4 || algorithm > 2 {
            return Err(Status::INVALID_VALUE);
        }
        params.lock().unwrap_or_else(PoisonError::into_inner).push((function, algorithm));
        Ok(())
    }
    /// Makes an object with options of Jacobi's methods.
    cusolverDnCreateSyevjInfo cusolverDnCreateGesvdjInfo (info: Out<Ptr, Cusolver>) {
        Options::create(info)
    }
    /// Gives an object with options of Jacobi's methods back.
    cusolverDnDestroySyevjInfo cusolverDnDestroyGesvdjInfo (info: Ptr) {
        Options::destroy(info)
    }
    /// Chooses the tolerance: remembered, because results are as exact as can be.
    cusolverDnXsyevjSetTolerance cusolverDnXgesvdjSetTolerance (info: Ptr, tolerance: f64) {
        Options::tolerate(info, tolerance)
    }
    /// Chooses the most sweeps: remembered, because there are none.
    cusolverDnXsyevjSetMaxSweeps cusolverDnXgesvdjSetMaxSweeps (info: Ptr, sweeps: c_int) {
        Options::sweep(info, sweeps)
    }
    /// Chooses whether values are sorted: they always are.
    cusolverDnXsyevjSetSortEig cusolverDnXgesvdjSetSortEig (info: Ptr, sorted: c_int) {
        Options::sort(info, sorted)
    }
    /// The residual of the last work with these options: how far the product of the results is from the matrix (Frobenius norm).
    cusolverDnXsyevjGetResidual cusolverDnXgesvdjGetResidual (handle: Ptr, info: Ptr, result: Out<f64, Cusolver>) {
        let handle = Handle::of(handle)?;
        let info = Options::of(info)?;
        mathlib::synchronize(handle.settings().stream)?;
        result.write(info.get().residual)
    }
    /// The sweeps of the last work with these options: 1, because it is not Jacobi's method.
    cusolverDnXsyevjGetSweeps cusolverDnXgesvdjGetSweeps (handle: Ptr, info: Ptr, result: Out<c_int, Cusolver>) {
        let handle = Handle::of(handle)?;
        let info = Options::of(info)?;
        mathlib::synchronize(handle.settings().stream)?;
        result.write(info.get().executed)
    }
}
