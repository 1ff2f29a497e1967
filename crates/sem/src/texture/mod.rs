//! Textures and surfaces: the value that an instruction reads at coordinates, and the bytes of an image that it
//! accesses.
//!
//! An [`Image`] describes the layout of texels, a [`Sampler`] how they are read. [`Lookup`] is a `tex` or `tld4`, and
//! [`Fetch`] one in a given texture; [`SurfaceAccess`] is a `suld`, `sust` or `sured`. None of them holds the texels:
//! the caller passes a function that reads them.
//!
//! PTX ISA, "Texture Instructions" and "Surface Instructions", define the operands. The CUDA C++ Programming Guide,
//! "Texture Fetching", defines filtering. Here a filtered value is a sum in binary64, in the order of x, y, z and
//! level, of texels in `.f32` times their weights, which have 8 fractional bits in each dimension. Texels of weight 0
//! are not read. The sum is rounded to `.f32` once. Sums in binary64 follow IEEE 754, so every host computes the same
//! bits. The Guide does not say how GPUs add and round: that is *unverified*, as is all that is marked so.

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
    /// The instruction names another geometry.
    Geometry {
        /// The geometry that the instruction names.
        instruction: Geometry,
        /// The geometry of the image.
        image: Geometry,
    },
    /// The instruction is a reduction, and the texels are not integers of its size.
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

/// An image is accessed with its own geometry. The faces of a cube can also be accessed as the layers of an array, as
/// in CUDA, and an image of one row as a line: Dr.Jit relies on it.
fn fits(instruction: Geometry, image: &Image) -> Result<(), Mismatch> {
    let own = image.descriptor().geometry;
    match (instruction, own) {
        (Geometry::PlaneArray, Geometry::Cube | Geometry::CubeArray) => Ok(()),
        (Geometry::Line, Geometry::Plane) if image.descriptor().height == 1 => Ok(()),
        _ if instruction == own => Ok(()),
        _ => Err(Mismatch::Geometry { instruction, image: own }),
    }
}
