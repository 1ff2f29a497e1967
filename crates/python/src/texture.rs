//! Textures, surfaces and samplers as arguments. They exist on the device for the duration of a launch, and refer to
//! arrays that are placed there.
//!
//! The command parses their options (`command/src/texture.rs`).

use command::ObjectKind;
use ptxvm::{Device, Error, ImageDescriptor, Sampler, SamplerState, Surface, Texture};
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

/// The layout of texels, and how they are sampled.
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
    /// The layout and the sampling of its texels.
    pub fn description(&self) -> Description {
        self.description
    }

    /// Its texels.
    pub fn texels<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.array(py)
    }

    /// Whether its texels need the alignment of surfaces.
    pub fn is_surface(&self) -> bool {
        self.kind == ObjectKind::Surface
    }
}

/// An object among the arguments.
pub struct ObjectUse {
    /// Its description.
    pub description: Description,
    /// The index of the array with its texels.
    pub texels: Option<usize>,
    /// The destination of its handle.
    pub target: Target,
}

/// Objects on the device, until this is dropped.
#[derive(Default)]
pub struct Made {
    /// The handles, which keep the objects alive.
    objects: Vec<Handle>,
    /// Variables of the module, and the handles bound to them.
    pub bindings: Vec<(String, u64)>,
}

/// One object.
#[expect(dead_code, reason = "kept alive")]
enum Handle {
    Texture(Texture),
    Surface(Surface),
    Sampler(SamplerState),
}

impl Parameters {
    /// Creates the objects after their arrays have been placed. Their handles are written to the parameters, or
    /// returned for variables.
    ///
    /// # Errors
    /// [`Error::Texture`] when a descriptor is invalid.
    pub fn make_objects(&mut self, device: &Device, placed: &Placed) -> Result<Made, Error> {
        let mut made = Made::default();
        for object in &self.referred.objects {
            let address = object.texels.map_or(0, |array| placed.address(array));
            let (handle, kept) = match object.description {
                Description::Texture(image, sampler) => {
                    let texture = device.texture_at(address, image, sampler)?;
                    (texture.handle(), Handle::Texture(texture))
                }
                Description::Surface(image) => {
                    let surface = device.surface_at(address, image)?;
                    (surface.handle(), Handle::Surface(surface))
                }
                Description::Sampler(sampler) => {
                    let sampler = device.sampler(sampler);
                    (sampler.handle(), Handle::Sampler(sampler))
                }
            };
            match &object.target {
                Target::Offset(offset) => {
                    self.bytes[*offset..offset + 8].copy_from_slice(&handle.to_le_bytes());
                }
                Target::Variable(name) => made.bindings.push((name.clone(), handle)),
            }
            made.objects.push(kept);
        }
        Ok(made)
    }
}
