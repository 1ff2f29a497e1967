//! Plans: handles, and what the program chooses for them.

use std::ffi::{c_int, c_longlong, c_uint, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caller::{Library, Out};
use mathlib::driver::{Context, enter};
use mathlib::{Handles, Stream, api};

use crate::status::Status;
use crate::transform::Transform;

/// cuFFT, as a library that the program calls.
pub struct Cufft;

impl Library for Cufft {
    type Error = Status;
    const NULL_POINTER: Status = Status::INVALID_VALUE;
    const UNKNOWN_NAME: Status = Status::INVALID_VALUE;
}

/// A place for a number.
pub type Place<'a, T> = Out<'a, T, Cufft>;

/// `cufftHandle`.
pub type Handle = c_int;

/// What a plan has.
#[derive(Clone)]
pub struct Settings {
    /// The stream of its work.
    pub stream: Stream,
    /// What it transforms, once it is made.
    pub transform: Option<Arc<Transform>>,
    /// `NVFFT_PLAN_PROPERTY_INT64_…`, in order of their numbers. They change how NVIDIA's library plans, and nothing here.
    properties: [i64; 4],
}

/// The values of the properties that the program has not set.
const PROPERTIES: [i64; 4] = [0, 1, 0, 0];

/// A plan.
pub struct Plan {
    context: Context,
    settings: Mutex<Settings>,
}

static PLANS: Handles<Plan> = Handles::new();

fn pointer(handle: Handle) -> *mut c_void {
    std::ptr::without_provenance_mut(handle as usize)
}

impl Plan {
    /// Makes a plan that transforms nothing yet, and returns its handle.
    ///
    /// # Errors
    /// If there is no device.
    pub fn create() -> Result<Handle, Status> {
        let settings = Settings { stream: Stream::default(), transform: None, properties: PROPERTIES };
        let plan = Plan { context: enter(None)?, settings: Mutex::new(settings) };
        Handle::try_from(PLANS.insert(plan).addr()).map_err(|_| Status::ALLOC_FAILED)
    }

    /// The plan with this handle. Its context becomes current if there is none.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(handle: Handle) -> Result<Arc<Plan>, Status> {
        let plan = PLANS.get(pointer(handle)).ok_or(Status::INVALID_PLAN)?;
        enter(Some(plan.context))?;
        Ok(plan)
    }

    /// Ends a plan. Work that is queued goes on.
    ///
    /// # Errors
    /// If there is none.
    pub fn destroy(handle: Handle) -> Result<(), Status> {
        PLANS.remove(pointer(handle)).map(drop).ok_or(Status::INVALID_PLAN)
    }

    /// What the program chose.
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a property in the settings.
fn property(number: c_uint) -> Result<usize, Status> {
    (number as usize).checked_sub(1).filter(|&at| at < PROPERTIES.len()).ok_or(Status::INVALID_VALUE)
}

/// The version of the library, as `[major, minor, patch]`: that of CUDA 13.1 or of CUDA 12.9, by the name under which it was opened.
fn version() -> [c_int; 3] {
    let is_new =
        mathlib::own_path().is_some_and(|path| path.as_os_str().as_encoded_bytes().ends_with(b".so.12"));
    if is_new { [12, 1, 0] } else { [11, 4, 1] }
}

api! { API: Status, name;
    /// Ends a plan; work that is queued goes on.
    cufftDestroy(plan: Handle) { Plan::destroy(plan) }

    /// Sets the stream in which the plan's transforms run.
    cufftSetStream(plan: Handle, stream: *mut c_void) {
        Plan::of(plan)?.settings().stream = Stream::of(stream);
        Ok(())
    }

    /// The device memory that a plan needs: none.
    cufftGetSize(plan: Handle, size: Place<'_, usize>) {
        Plan::of(plan)?;
        size.write(0)
    }

    /// Device memory for a plan to work in. Plans need none, so nothing is done with it.
    cufftSetWorkArea(plan: Handle, area: *mut c_void) {
        let _ = area;
        Plan::of(plan).map(drop)
    }

    /// Whether a plan allocates the device memory that it needs. Plans need none.
    cufftSetAutoAllocation(plan: Handle, automatic: c_int) {
        let _ = automatic;
        Plan::of(plan).map(drop)
    }

    /// How much device memory a plan may need. Plans need none.
    cufftXtSetWorkAreaPolicy(plan: Handle, policy: c_int, size: *mut usize) {
        let _ = (policy, size);
        Plan::of(plan).map(drop)
    }

    /// Sets a property of planning. It changes nothing here.
    cufftSetPlanPropertyInt64(plan: Handle, number: c_uint, value: c_longlong) {
        Plan::of(plan)?.settings().properties[property(number)?] = value;
        Ok(())
    }

    /// What a property was set to.
    cufftGetPlanPropertyInt64(plan: Handle, number: c_uint, value: Place<'_, c_longlong>) {
        let number = property(number)?;
        value.write(Plan::of(plan)?.settings().properties[number])
    }

    /// Sets a property of planning back.
    cufftResetPlanProperty(plan: Handle, number: c_uint) {
        let number = property(number)?;
        Plan::of(plan)?.settings().properties[number] = PROPERTIES[number];
        Ok(())
    }

    /// The version of the library: 12100 with CUDA 13, 11401 with CUDA 12.
    cufftGetVersion(place: Place<'_, c_int>) {
        let [major, minor, patch] = version();
        place.write(major * 1000 + minor * 100 + patch)
    }

    /// A part of the version: major, minor, or patch.
    cufftGetProperty(part: c_int, place: Place<'_, c_int>) {
        let part = usize::try_from(part).ok().and_then(|part| version().get(part).copied());
        place.write(part.ok_or(Status::INVALID_VALUE)?)
    }
}
