//! Generators: how they are made and set.

use std::ffi::{c_uint, c_ulonglong, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mathlib::{Handles, Stream};

use crate::engine::{Engine, Settings};
use crate::kind::{Kind, Ordering};
use crate::status::Status;

/// `curandGenerator_t`. It is opaque to programs.
pub type Handle = *mut c_void;

/// A generator.
pub struct Generator {
    /// Whether its results are memory of the host.
    pub host: bool,
    state: Mutex<State>,
}

/// What a program may change.
pub struct State {
    /// The stream of its work.
    pub stream: Stream,
    /// What makes its sequence.
    pub settings: Settings,
    /// Its sequence, from the first use after a change of the settings on. Work in streams shares it.
    engine: Option<Arc<Mutex<Engine>>>,
}

impl State {
    /// The sequence.
    pub fn engine(&mut self) -> Arc<Mutex<Engine>> {
        let settings = &self.settings;
        Arc::clone(self.engine.get_or_insert_with(|| Arc::new(Mutex::new(Engine::new(settings)))))
    }
}

impl Generator {
    /// What a program may change, for one call.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static GENERATORS: Handles<Generator> = Handles::new();

/// The generator of a handle.
///
/// # Errors
/// If there is none.
pub fn get(generator: Handle) -> Result<Arc<Generator>, Status> {
    GENERATORS.get(generator).ok_or(Status::NOT_INITIALIZED)
}

/// Makes a generator.
fn create(place: *mut Handle, number: c_uint, host: bool) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::NOT_INITIALIZED);
    }
    let kind = Kind::of(number)?;
    if !host {
        mathlib::driver::enter(None).map_err(|_| Status::INITIALIZATION_FAILED)?;
    }
    let settings = Settings { kind, ordering: Ordering::Default, seed: 0, offset: 0, dimensions: 1 };
    let state = Mutex::new(State { stream: Stream::default(), settings, engine: None });
    let handle = GENERATORS.insert(Generator { host, state });
    // SAFETY: the program gives a place for a handle, as the manual demands.
    unsafe { place.write_unaligned(handle) };
    Ok(())
}

/// Changes the settings of a generator: its sequence begins again.
fn set(generator: Handle, change: impl FnOnce(&mut Settings) -> Result<(), Status>) -> Result<(), Status> {
    let generator = get(generator)?;
    let mut state = generator.state();
    change(&mut state.settings)?;
    state.engine = None;
    Ok(())
}

mathlib::api! { API: Status, name;
    /// Makes a generator whose results are device memory.
    curandCreateGenerator (generator: *mut Handle, kind: c_uint) {
        create(generator, kind, false)
    }
    /// Makes a generator whose results are memory of the host. It needs no driver.
    curandCreateGeneratorHost (generator: *mut Handle, kind: c_uint) {
        create(generator, kind, true)
    }
    /// Gives a generator back. Work that it has queued is still done.
    curandDestroyGenerator (generator: Handle) {
        GENERATORS.remove(generator).map(drop).ok_or(Status::NOT_INITIALIZED)
    }
    /// Sets the stream of a generator's work.
    curandSetStream (generator: Handle, stream: *mut c_void) {
        get(generator)?.state().stream = Stream::of(stream);
        Ok(())
    }
    /// Sets the seed of a pseudo-random generator. Its sequence begins again.
    curandSetPseudoRandomGeneratorSeed (generator: Handle, seed: c_ulonglong) {
        set(generator, |settings| {
            if settings.kind.is_quasi() {
                return Err(Status::TYPE_ERROR);
            }
            settings.seed = seed;
            Ok(())
        })
    }
    /// Begins a sequence again, some numbers later. MTGP32 and MT19937 cannot.
    curandSetGeneratorOffset (generator: Handle, offset: c_ulonglong) {
        set(generator, |settings| {
            if matches!(settings.kind, Kind::Mtgp32 | Kind::Mt19937) {
                return Err(Status::TYPE_ERROR);
            }
            settings.offset = offset;
            Ok(())
        })
    }
    /// Sets how a sequence lies in memory. It begins again.
    curandSetGeneratorOrdering (generator: Handle, ordering: c_uint) {
        set(generator, |settings| {
            settings.ordering = Ordering::of(ordering, settings.kind)?;
            Ok(())
        })
    }
    /// Sets the dimensions of a quasi-random generator, 1 to 20,000. Its sequence begins again.
    curandSetQuasiRandomGeneratorDimensions (generator: Handle, dimensions: c_uint) {
        set(generator, |settings| {
            if !settings.kind.is_quasi() {
                return Err(Status::TYPE_ERROR);
            }
            if !(1..=crate::engine::sobol::DIMENSIONS as u32).contains(&dimensions) {
                return Err(Status::OUT_OF_RANGE);
            }
            settings.dimensions = dimensions;
            Ok(())
        })
    }
    /// Makes the state of a generator, which the first results would do otherwise.
    curandGenerateSeeds (generator: Handle) {
        get(generator)?.state().engine();
        Ok(())
    }
}
