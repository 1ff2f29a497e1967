//! How a launch finds the object behind a handle: one of the device, or one that is bound to a variable or parameter.

use isa::{Mod, Opaque, Opcode, Picks};
use sem::texture::{
    Image, Sampler, SurfaceAccess, SurfacePlace, asks_sampler, image_attribute, sampler_attribute,
};

use crate::fault::FaultKind;
use crate::memory::Extent;
use crate::prepared::Launch;
use crate::texture::{HANDLES, MARKS, Object, Placed};

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
