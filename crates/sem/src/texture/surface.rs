//! `suld`, `sust` and `sured`: the bytes of a surface that they access.

use super::image::Image;
use super::{Mismatch, fits};
use isa::texture::Geometry;
use isa::{Form, Mod, Opcode, Picks, Type};

/// The treatment of an access out of bounds (PTX ISA, "suld": `.clamp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfBounds {
    /// `.trap`: the access faults.
    Trap,
    /// `.clamp`: the access goes to the nearest position in bounds that is a multiple of its size.
    Clamp,
    /// `.zero`: reads return zeros, writes are dropped.
    Zero,
}

/// An access to a surface, as its instruction describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceAccess {
    geometry: Geometry,
    /// `.p`: coordinates count texels, not bytes, and texels are converted.
    pub formatted: bool,
    out_of_bounds: OutOfBounds,
    /// The access is an atomic read-modify-write.
    reduces: bool,
    /// Type of an element.
    ty: Type,
    /// Number of elements.
    count: usize,
}

/// The target of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfacePlace {
    /// This byte offset of the image.
    At(u64),
    /// None: reads return zeros.
    Nowhere,
    /// Out of bounds, which faults.
    Outside,
    /// The offset is not a multiple of the access size. The manual leaves open what happens; here it faults.
    Misaligned,
}

impl SurfaceAccess {
    /// The access that an instruction with this form and these picks does; `None` for other instructions.
    pub fn of(form: &Form, picks: &Picks) -> Option<SurfaceAccess> {
        if !matches!(form.opcode, Opcode::Suld | Opcode::Sust | Opcode::Sured) {
            return None;
        }
        let out_of_bounds = match picks.mods() {
            mods if mods.contains(&Mod::Clamp) => OutOfBounds::Clamp,
            mods if mods.contains(&Mod::Zero) => OutOfBounds::Zero,
            _ => OutOfBounds::Trap,
        };
        let (formatted, count) = (picks.has(Mod::P), picks.vector());
        Some(SurfaceAccess {
            geometry: Geometry::of(picks)?,
            formatted,
            out_of_bounds,
            reduces: form.opcode == Opcode::Sured,
            ty: picks.ty(0),
            count,
        })
    }

    /// The geometry that the instruction names.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Bytes of an element of an unformatted access.
    pub fn element_bytes(&self) -> usize {
        self.ty.bytes() as usize
    }

    /// Bytes of an image that it reads or writes.
    pub fn bytes(&self, image: &Image) -> u64 {
        match self.formatted {
            true => image.descriptor().format.bytes() as u64,
            false => (self.element_bytes() * self.count) as u64,
        }
    }

    /// The type in which a reduction on an image computes; for `.p`, it is signed if the format is. `None` if the
    /// format does not hold one integer of that size.
    pub fn reduced(&self, image: &Image) -> Option<Type> {
        if !self.formatted {
            return Some(self.ty);
        }
        let format = image.descriptor().format;
        let integers = format.channel().normalized() == format.channel() && !format.channel().is_float();
        let fits = format.bytes() == self.element_bytes() && integers;
        let signed = format.channel().is_signed_integer();
        fits.then_some(match (self.ty.bits(), signed) {
            (64, false) => Type::U64,
            (64, true) => Type::S64,
            (_, false) => Type::U32,
            (_, true) => Type::S32,
        })
    }

    /// Checks that the access can be made to this image.
    ///
    /// # Errors
    /// When the geometry is not that of the image, or its texels cannot be reduced.
    pub fn check(&self, image: &Image) -> Result<(), Mismatch> {
        if self.reduces && self.reduced(image).is_none() {
            return Err(Mismatch::Texels);
        }
        fits(self.geometry, image)
    }

    /// The target of a thread's access, in an image that passed [`SurfaceAccess::check`]. There are
    /// [`Geometry::coordinates`] coordinates; the index of a layer comes first.
    pub fn place(&self, image: &Image, coordinates: &[u32]) -> SurfacePlace {
        let descriptor = image.descriptor();
        let [x, y, z] = {
            let position = &coordinates[usize::from(self.geometry.is_array()).min(coordinates.len())..];
            std::array::from_fn(|i| match position.get(i) {
                Some(&c) if i < self.geometry.dimensions() => i64::from(c as i32),
                _ => 0,
            })
        };
        let layer = if self.geometry.is_array() { coordinates.first().copied().unwrap_or(0) } else { 0 };
        let level = &image.levels()[0];
        let [width, height, depth] = level.extent.map(i64::from);
        let (bytes, unit) =
            (self.bytes(image) as i64, if self.formatted { descriptor.format.bytes() as i64 } else { 1 });
        // In bytes: an access that begins beyond `last` ends beyond the row.
        let (x, last) = (x * unit, width * descriptor.format.bytes() as i64 - bytes);
        if x % bytes != 0 {
            return SurfacePlace::Misaligned;
        }
        let inside = (0..=last).contains(&x)
            && (0..height).contains(&y)
            && (0..depth).contains(&z)
            && layer < descriptor.layers;
        match self.out_of_bounds {
            _ if inside => {}
            OutOfBounds::Trap => return SurfacePlace::Outside,
            OutOfBounds::Zero => return SurfacePlace::Nowhere,
            // The access is larger than the row.
            OutOfBounds::Clamp if last < 0 => return SurfacePlace::Outside,
            OutOfBounds::Clamp => {}
        }
        let x = x.clamp(0, last) / bytes * bytes;
        let texel = [0, y.clamp(0, height - 1) as u32, z.clamp(0, depth - 1) as u32];
        let offset = image.offset(level, layer.min(descriptor.layers - 1), texel, 0) + x as u64;
        // Rows may begin at any byte, but an atomic access must be aligned.
        if self.reduces && !offset.is_multiple_of(bytes as u64) {
            return SurfacePlace::Misaligned;
        }
        SurfacePlace::At(offset)
    }
}
