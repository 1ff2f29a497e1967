//! Textures, samplers and surfaces: objects with handles, and how a launch resolves a handle.
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
use isa::Picks;
use isa::{Mod, Opaque, Opcode};
use sem::texture::{
    AddressMode, Filter, Image, ImageDescriptor, ImageError, Sampler, SurfaceAccess, SurfacePlace,
    asks_sampler, image_attribute, sampler_attribute,
};

use crate::fault::FaultKind;
use crate::memory::{Arena, Extent};
use crate::prepared::Launch;

/// Handles of objects are above all addresses and below the marks of their kinds.
const HANDLES: u64 = 1 << 60;
/// The marks of all kinds of handles.
const MARKS: u64 = Opaque::Texture.mark() | Opaque::Sampler.mark() | Opaque::Surface.mark();

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
pub(crate) fn place(
    arena: &Arena,
    address: u64,
    descriptor: ImageDescriptor,
) -> Result<Arc<Placed>, ObjectError> {
    let image = Image::new(descriptor)?;
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

/// The object that a launch found behind a handle, and its memory.
pub struct Bound {
    object: Object,
    /// The memory of the texels, if the object has texels.
    memory: Option<Extent>,
}

/// Why a handle cannot be used, with a note for the fault.
pub struct HandleFault {
    /// The kind of the fault.
    pub kind: FaultKind,
    /// What is wrong with the handle.
    pub note: String,
}

impl Bound {
    /// How its texels are sampled.
    pub fn sampler(&self) -> Sampler {
        match &self.object {
            Object::Texture(_, sampler) | Object::Sampler(sampler) => *sampler,
            Object::Surface(_) => Sampler::default(),
        }
    }

    /// Its image. `None` for a sampler.
    pub fn placed(&self) -> Option<&Placed> {
        match &self.object {
            Object::Texture(placed, _) | Object::Surface(placed) => Some(placed),
            Object::Sampler(_) => None,
        }
    }

    /// Host address of the first byte of the image, which has [`Image::bytes`] bytes.
    pub fn start(&self) -> Option<*mut u8> {
        let placed = self.placed()?;
        self.memory?.resolve(placed.address, placed.image.bytes()).ok()
    }
}

impl Launch {
    /// The object behind a handle of this kind. The handle is that of an object of the device, or the address of a
    /// variable or kernel parameter that is bound to an object.
    ///
    /// # Errors
    /// When the handle leads to no object of this kind, or the object's memory has been freed.
    pub fn bound(&self, handle: u64, kind: Opaque) -> Result<Bound, HandleFault> {
        let fail = |note: String| Err(HandleFault { kind: FaultKind::InvalidHandle, note });
        let what = kind.name();
        let object = match self.objects.get(&handle) {
            Some(object) => object,
            None => {
                let address = handle & !MARKS;
                let variable =
                    self.program().module.variables.iter().enumerate().find(|(index, variable)| {
                        variable.opaque.is_some() && self.image.address(*index) == address
                    });
                if let Some((index, variable)) = variable {
                    match self.bindings.get(&index) {
                        Some(object) => object,
                        None => {
                            return fail(format!(
                                "the .{} `{}` is not bound",
                                what_of(variable.opaque),
                                variable.name
                            ));
                        }
                    }
                } else if let Some(passed) = self.passed(address) {
                    match self.objects.get(&passed) {
                        Some(object) => object,
                        None => {
                            return fail(format!(
                                "the parameter holds {passed:#x}, which is no live .{what}"
                            ));
                        }
                    }
                } else if handle & HANDLES != 0 {
                    return fail(format!("{handle:#x} is no live .{what}: it was destroyed, or never made"));
                } else {
                    return fail(format!("{handle:#x} is no handle of a .{what}"));
                }
            }
        };
        if object.kind() != kind {
            return fail(format!(
                "{handle:#x} is the handle of a .{}, not of a .{what}",
                object.kind().name()
            ));
        }
        let bound = Bound { memory: None, object: object.clone() };
        let Some(placed) = bound.placed() else { return Ok(bound) };
        let memory = self.allocation(placed.address).ok_or(FaultKind::OutOfBounds);
        let memory =
            memory.and_then(|memory| memory.resolve(placed.address, placed.image.bytes()).map(|_| memory));
        match memory {
            Ok(memory) => Ok(Bound { memory: Some(memory), ..bound }),
            Err(kind) => {
                let note = format!("the memory of the .{what} at {:#x} is gone", placed.address);
                Err(HandleFault { kind, note })
            }
        }
    }

    /// The surface behind a handle, if the instruction can access it in this way.
    ///
    /// # Errors
    /// When there is none, or its image does not fit the instruction.
    pub fn surface(&self, handle: u64, access: SurfaceAccess) -> Result<Bound, HandleFault> {
        let bound = self.bound(handle, Opaque::Surface)?;
        let unfit = |note: String| HandleFault { kind: FaultKind::InvalidHandle, note };
        if let Some(Placed { image, .. }) = bound.placed() {
            access.check(image).map_err(|mismatch| unfit(mismatch.to_string()))?;
        }
        Ok(bound)
    }

    /// The value that `txq` or `suq` returns for a handle, by level.
    ///
    /// # Errors
    /// When the handle leads to no such texture, sampler or surface.
    pub fn attribute(
        &self,
        opcode: Opcode,
        picks: &Picks,
        handle: u64,
    ) -> Result<impl Fn(u32) -> u32 + use<>, HandleFault> {
        let picks = *picks;
        let of_sampler = asks_sampler(&picks) || picks.has(Mod::NormalizedCoords);
        let bound = match opcode {
            Opcode::Suq => self.bound(handle, Opaque::Surface)?,
            // In independent mode the query goes to a sampler, otherwise to the texture.
            _ if asks_sampler(&picks) => match self.bound(handle, Opaque::Sampler) {
                Ok(sampler) => sampler,
                Err(_) => self.bound(handle, Opaque::Texture)?,
            },
            // The extent of a surface, too: Slang asks for that of an `RWTexture` so.
            _ if !of_sampler => match self.bound(handle, Opaque::Texture) {
                Ok(texture) => texture,
                Err(fault) => self.bound(handle, Opaque::Surface).map_err(|_| fault)?,
            },
            _ => self.bound(handle, Opaque::Texture)?,
        };
        Ok(move |level| match bound.placed() {
            Some(placed) if !of_sampler => image_attribute(opcode, &picks, &placed.image, level),
            _ => sampler_attribute(&picks, &bound.sampler()),
        })
    }

    /// The handle that the launch passed in the kernel's opaque parameter at this address of `.param` space.
    fn passed(&self, address: u64) -> Option<u64> {
        let params = &self.program().module.functions[self.kernel.entry.index()].params;
        let index = params
            .iter()
            .zip(&self.kernel.param_offsets)
            .position(|(param, &offset)| param.opaque.is_some() && offset == address)?;
        let start = usize::try_from(*self.kernel.param_offsets.get(index)?).ok()?;
        let bytes = self.params.get(start..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

fn what_of(kind: Option<Opaque>) -> &'static str {
    kind.map_or("texref", Opaque::name)
}

/// Why an access to a surface failed.
pub fn missed(place: SurfacePlace, image: &Image, coordinates: &[u32]) -> HandleFault {
    let [width, height, depth] = image.levels()[0].extent;
    let coordinates: Vec<String> = coordinates.iter().map(|&c| (c as i32).to_string()).collect();
    let at = format!("({})", coordinates.join(", "));
    let descriptor = image.descriptor();
    match place {
        SurfacePlace::Misaligned => HandleFault {
            kind: FaultKind::Misaligned,
            note: format!("{at} is no multiple of the size of the access"),
        },
        _ => HandleFault {
            kind: FaultKind::OutOfBounds,
            note: format!(
                "{at} lies outside of a surface of {width} x {height} x {depth} texels of {} bytes, {} layers",
                descriptor.format.bytes(),
                descriptor.layers
            ),
        },
    }
}
