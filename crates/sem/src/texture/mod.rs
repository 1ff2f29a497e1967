//! Textures and surfaces: what an instruction reads at coordinates, and which bytes of an image it means.
//!
//! An [`Image`] says how texels lie, a [`Sampler`] how they are read; [`Lookup`] is a `tex` or `tld4`, and [`Fetch`] one in a
//! texture; [`SurfaceAccess`] is a `suld`, `sust` or `sured`. None of them has the texels: whoever has passes a function that reads
//! them.
//!
//! PTX ISA, "Texture Instructions" and "Surface Instructions", say which operands there are. How texels are filtered is in the CUDA C++
//! Programming Guide, "Texture Fetching". Here a filtered value is the sum, in binary64 and in order of x, y, z and level, of texels
//! in `.f32` times their weights, which have 8 fractional bits in each dimension; texels of weight 0 are not looked at; the sum is
//! rounded to `.f32` once. Sums of binary64 are those of IEEE 754, which every host computes to the bit. The Guide does not say how
//! GPUs add and round: *unverified*, as is whatever is marked so.

mod cube;
mod format;
mod image;
mod lookup;
mod query;
mod sampler;
mod srgb;
mod surface;

use std::fmt;

use isa::texture::Geometry;

pub use format::{Channel, Decode, TEXEL_BYTES, TexelFormat};
pub use image::{Image, ImageDescriptor, ImageError, Level};
pub use lookup::{Fetch, Lookup, MOST_SOURCES};
pub use query::{asks_sampler, image_attribute, sampler_attribute};
pub use sampler::{AddressMode, Filter, Sampler};
pub use surface::{OutOfBounds, SurfaceAccess, SurfacePlace};

/// Why an instruction does not fit an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It names another geometry.
    Geometry {
        /// What the instruction names.
        instruction: Geometry,
        /// What the image is.
        image: Geometry,
    },
    /// It is a reduction, and texels are no integers of its size.
    Texels,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Geometry { instruction, image } => {
                write!(f, "the instruction is for {}, the image is {}", instruction.name(), image.name())
            }
            Mismatch::Texels => f.write_str("the texels are not integers of the instruction's size"),
        }
    }
}

/// An image is used by its own geometry; the faces of cubes also as the layers of an array, as CUDA does.
fn fits(instruction: Geometry, image: &Image) -> Result<(), Mismatch> {
    let own = image.descriptor().geometry;
    match (instruction, own) {
        (Geometry::PlaneArray, Geometry::Cube | Geometry::CubeArray) => Ok(()),
        _ if instruction == own => Ok(()),
        _ => Err(Mismatch::Geometry { instruction, image: own }),
    }
}
