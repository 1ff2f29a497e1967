//! Textures, samplers and surfaces: objects with handles. `bound.rs` says how a launch resolves a handle.
//!
//! Texels are in global memory; an object holds their address and layout. A launch uses the objects of the time when it
//! was prepared, as it does with allocations. The bindings of its module's `.texref`, `.samplerref` and `.surfref`
//! variables are fixed at that time, too.
//!
//! Both engines ask the launch for the object behind a handle, and `sem::texture` for the bytes to access
//! (`exec/texture.rs`, `reference/src/texture.rs`). docs/textures.md lists open questions.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use check::module::Variable;
use isa::Opaque;
use sem::texture::{AddressMode, Filter, Image, ImageError, Sampler};

use crate::fault::FaultKind;
use crate::memory::Arena;

/// Handles of objects are above all addresses and below the marks of their kinds.
pub(crate) const HANDLES: u64 = 1 << 60;
/// The marks of all kinds of handles.
pub(crate) const MARKS: u64 = Opaque::Texture.mark() | Opaque::Sampler.mark() | Opaque::Surface.mark();

/// Alignment of surfaces in bytes (PTX ISA, "suld": the base address is assumed to have it). Reductions rely on it.
pub(crate) const SURFACE_ALIGN: u64 = 16;

/// An image in global memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The layout of its texels.
    pub image: Image,
    /// Device address of the first texel.
    pub address: u64,
}

/// The object behind a handle.
#[derive(Clone, Debug)]
pub enum Object {
    /// An image and its sampler.
    Texture(Arc<Placed>, Sampler),
    /// A sampler, for modules of `texmode_independent`.
    Sampler(Sampler),
    /// An image of one level that kernels may write.
    Surface(Arc<Placed>),
}

impl Object {
    /// The kind of its handle.
    pub(crate) fn kind(&self) -> Opaque {
        match self {
            Object::Texture(..) => Opaque::Texture,
            Object::Sampler(_) => Opaque::Sampler,
            Object::Surface(_) => Opaque::Surface,
        }
    }
}

/// Why an object cannot be created or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectError {
    /// The descriptor describes no valid image.
    Image(ImageError),
    /// Its memory is not within one live allocation.
    Memory(FaultKind),
    /// A surface must have one level and one sample.
    NotASurface,
    /// There is no object with this handle.
    NoObject,
    /// The module has no variable of this name and of the object's kind.
    NoVariable,
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectError::Image(error) => error.fmt(f),
            ObjectError::Memory(kind) => write!(f, "the memory of the image: {kind}"),
            ObjectError::NotASurface => f.write_str("a surface is an image of one level and one sample"),
            ObjectError::NoObject => f.write_str("there is no texture, sampler or surface with this handle"),
            ObjectError::NoVariable => {
                f.write_str("the module has no such texture, sampler or surface reference")
            }
        }
    }
}

impl std::error::Error for ObjectError {}

impl From<ImageError> for ObjectError {
    fn from(error: ImageError) -> ObjectError {
        ObjectError::Image(error)
    }
}

/// The live objects of a device by handle. Shared until an object is created or destroyed.
pub type ObjectTable = Arc<HashMap<u64, Object>>;

/// The objects of a device.
#[derive(Default)]
pub(crate) struct Objects(Mutex<(u64, ObjectTable)>);

impl Objects {
    /// Creates an object. Returns its handle, which is never reused.
    pub fn add(&self, object: Object) -> u64 {
        let (count, table) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = object.kind().mark() | (HANDLES + *count);
        *count += 1;
        Arc::make_mut(table).insert(handle, object);
        handle
    }

    /// Destroys an object.
    pub fn remove(&self, handle: u64) -> Result<(), ObjectError> {
        let (_, table) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match table.contains_key(&handle) {
            true => drop(Arc::make_mut(table).remove(&handle)),
            false => return Err(ObjectError::NoObject),
        }
        Ok(())
    }

    /// The object with this handle, if it is alive.
    pub fn get(&self, handle: u64) -> Option<Object> {
        self.table().get(&handle).cloned()
    }

    /// All current objects.
    pub fn table(&self) -> ObjectTable {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}

/// An image at an address, with its memory checked.
pub(crate) fn place(arena: &Arena, address: u64, image: Image) -> Result<Arc<Placed>, ObjectError> {
    arena.check(address, image.bytes()).map_err(ObjectError::Memory)?;
    Ok(Arc::new(Placed { image, address }))
}

/// The initial bindings of a module's `.samplerref` variables, by index of the variable: samplers from their initial
/// values (PTX ISA, "Texture, Sampler, and Surface Types").
pub(crate) fn samplers(variables: &[Variable]) -> HashMap<usize, Object> {
    let samplers = variables.iter().enumerate().filter(|(_, v)| v.opaque == Some(Opaque::Sampler));
    let bound = samplers.filter(|(_, variable)| !variable.fields.is_empty());
    bound.map(|(index, variable)| (index, Object::Sampler(sampler(&variable.fields)))).collect()
}

/// The sampler that the fields describe. Coordinates are normalised unless a field specifies otherwise. *Unverified*:
/// `clamp_ogl` behaves as `clamp_to_edge`.
fn sampler(fields: &[(String, String)]) -> Sampler {
    let mut sampler = Sampler { normalized: true, ..Sampler::default() };
    for (name, value) in fields {
        let mode = match value.as_str() {
            "wrap" => AddressMode::Wrap,
            "mirror" => AddressMode::Mirror,
            "clamp_to_border" => AddressMode::Border,
            _ => AddressMode::Clamp,
        };
        match name.as_str() {
            "addr_mode_0" => sampler.address[0] = mode,
            "addr_mode_1" => sampler.address[1] = mode,
            "addr_mode_2" => sampler.address[2] = mode,
            "filter_mode" if value == "linear" => sampler.filter = Filter::Linear,
            "force_unnormalized_coords" => sampler.normalized = value == "0",
            _ => {}
        }
    }
    sampler
}
