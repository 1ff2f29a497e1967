//! Textures, surfaces and samplers as arguments. They are made on the device for the time of a launch, of arrays that lie there meanwhile.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use command::ObjectKind;
use ptxvm::{Error, ImageDescriptor, Loaded, Sampler, SamplerState, Surface, Texture};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::{Parameters, Target};
use crate::place::Placed;

/// What `ptxvm.Texture`, `ptxvm.Surface` and `ptxvm.Sampler` are made of (`python/ptxvm/_texture.py`).
#[pyclass(frozen, subclass, module = "ptxvm._native")]
pub struct Object {
    kind: ObjectKind,
    /// Its texels; a sampler has none.
    array: Option<Py<PyAny>>,
    description: Description,
}

/// How texels lie, and how they are sampled.
#[derive(Clone, Copy)]
pub enum Description {
    /// An image that is sampled.
    Texture(ImageDescriptor, Sampler),
    /// An image that is written.
    Surface(ImageDescriptor),
    /// How images are sampled.
    Sampler(Sampler),
}

#[pymethods]
impl Object {
    /// An object of a kind, of an array whose type and shape are given, with options as the command has them.
    #[new]
    #[pyo3(signature = (kind, options, array = None, dtype = "", shape = Vec::new()))]
    fn new(
        kind: &str,
        options: Vec<(String, String)>,
        array: Option<Py<PyAny>>,
        dtype: &str,
        shape: Vec<u64>,
    ) -> PyResult<Object> {
        let kind = match kind {
            "texture" => ObjectKind::Texture,
            "surface" => ObjectKind::Surface,
            _ => ObjectKind::Sampler,
        };
        let described = array.is_some().then_some((dtype, &shape[..]));
        let (image, sampler) = command::object(kind, described, options).map_err(PyValueError::new_err)?;
        let description = match (kind, image) {
            (ObjectKind::Texture, Some(image)) => Description::Texture(image, sampler),
            (ObjectKind::Surface, Some(image)) => Description::Surface(image),
            _ => Description::Sampler(sampler),
        };
        Ok(Object { kind, array, description })
    }

    /// The texels.
    #[getter]
    fn array<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.array.as_ref().map(|array| array.bind(py))
    }
}

impl Object {
    /// How its texels lie and are sampled.
    pub fn description(&self) -> Description {
        self.description
    }

    /// Its texels.
    pub fn texels<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.array(py)
    }

    /// Whether the memory of its texels has to be aligned as surfaces are.
    pub fn is_surface(&self) -> bool {
        self.kind == ObjectKind::Surface
    }
}

/// An object among the arguments.
pub struct ObjectUse {
    /// What it is.
    pub description: Description,
    /// Which of the arrays its texels are.
    pub texels: Option<usize>,
    /// Where its handle goes.
    pub target: Target,
}

/// Whose turn it is to bind a module's variables: they stay bound until the launch has ended.
#[derive(Default)]
pub struct Bindings {
    taken: Mutex<bool>,
    free: Condvar,
}

/// The bindings are somebody's until this is dropped.
pub struct Turn<'b>(&'b Bindings);

impl Bindings {
    fn taken(&self) -> MutexGuard<'_, bool> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for one's turn.
    pub fn take(&self) -> Turn<'_> {
        let free = self.free.wait_while(self.taken(), |taken| *taken);
        *free.unwrap_or_else(PoisonError::into_inner) = true;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken() = false;
        self.0.free.notify_one();
    }
}

/// Objects on the device, until this is dropped.
pub struct Made(#[expect(dead_code, reason = "kept alive")] Vec<Handle>);

/// One of them.
#[expect(dead_code, reason = "kept alive")]
enum Handle {
    Texture(Texture),
    Surface(Surface),
    Sampler(SamplerState),
}

impl Parameters {
    /// Makes the objects, once their arrays have places: handles go among the parameters, or to variables of the module.
    ///
    /// # Errors
    /// [`Error::Texture`] when there is no such image, or the module no such variable.
    pub fn make_objects(&mut self, loaded: &Loaded, placed: &Placed) -> Result<Made, Error> {
        let device = loaded.device();
        let mut made = Vec::new();
        for object in &self.referred.objects {
            let address = object.texels.map_or(0, |array| placed.address(array));
            let variable = match &object.target {
                Target::Variable(name) => Some(name),
                Target::Offset(_) => None,
            };
            let (handle, kept) = match object.description {
                Description::Texture(image, sampler) => {
                    let texture = device.texture_at(address, image, sampler)?;
                    variable.map_or(Ok(()), |name| loaded.bind_texture(name, &texture))?;
                    (texture.handle(), Handle::Texture(texture))
                }
                Description::Surface(image) => {
                    let surface = device.surface_at(address, image)?;
                    variable.map_or(Ok(()), |name| loaded.bind_surface(name, &surface))?;
                    (surface.handle(), Handle::Surface(surface))
                }
                Description::Sampler(sampler) => {
                    let sampler = device.sampler(sampler);
                    variable.map_or(Ok(()), |name| loaded.bind_sampler(name, &sampler))?;
                    (sampler.handle(), Handle::Sampler(sampler))
                }
            };
            if let Target::Offset(offset) = object.target {
                self.bytes[offset..offset + 8].copy_from_slice(&handle.to_le_bytes());
            }
            made.push(kept);
        }
        Ok(Made(made))
    }
}
