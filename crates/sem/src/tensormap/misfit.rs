//! Why a map does not fit an instruction, in words.

/// Why a map does not fit an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The map has this number of dimensions, and the instruction another.
    Rank(usize),
    /// The instruction needs a map of the other mode.
    Mode,
    /// Channels are interleaved.
    Interleaved,
    /// The halo of columns along the width must be smaller than this.
    Halo(u16),
    /// The offset along the width must be smaller than this.
    Offset(u16),
    /// The first pixel along the width is to the right of the bounding box.
    Right,
    /// The instruction copies single rows, and the map's boxes have several.
    Box,
    /// The first coordinate of packed elements must be a multiple of this.
    Start(u32),
    /// The first element must be at a multiple of 16 bytes along the innermost dimension.
    Unaligned {
        /// The first coordinate.
        first: i32,
        /// Bytes of an element.
        size: u32,
    },
    /// The first pixel of columns is outside of the bounding box, in this dimension.
    Outside(usize),
    /// A store or a reduction has a negative coordinate, in this dimension.
    Negative(usize),
    /// The tensor's address or a stride is not a multiple of 16 bytes.
    Alignment,
    /// Elements of this type do not support the operation.
    Reduction(isa::Mod),
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Misfit::Rank(1) => f.write_str("the tensor map has 1 dimension, not as many as the instruction"),
            Misfit::Rank(rank) => {
                write!(f, "the tensor map has {rank} dimensions, not as many as the instruction")
            }
            Misfit::Mode => f.write_str("the tensor map and the instruction are not of the same mode"),
            Misfit::Interleaved => f.write_str(
                "the tensor map has interleaved channels, which this instruction does not execute",
            ),
            Misfit::Halo(end) => write!(f, "wHalo is {end} or more"),
            Misfit::Offset(end) => write!(f, "wOffset is {end} or more"),
            Misfit::Right => f.write_str("the first pixel is to the right of the bounding box"),
            Misfit::Box => {
                f.write_str("the box of the tensor map has more than one row, of which four are named")
            }
            Misfit::Start(unit) => write!(f, "the first coordinate is no multiple of {unit}"),
            Misfit::Unaligned { first, size } => write!(
                f,
                "the first coordinate, {first}, times {size} bytes of an element is no multiple of 16 bytes: \
                 begin at a multiple of {}",
                16 / size
            ),
            Misfit::Outside(dimension) => write!(
                f,
                "the first pixel is outside of the bounding box: coordinate {dimension} must lie between the \
                 corners"
            ),
            Misfit::Negative(dimension) => write!(
                f,
                "coordinate {dimension} is negative: stores and reductions begin at 0 or above, and only leave \
                 out what is behind the tensor's end"
            ),
            Misfit::Alignment => {
                f.write_str("the tensor's address or one of its strides is no multiple of 16")
            }
            Misfit::Reduction(operation) => {
                write!(f, ".{} is not for elements of the tensor map's type", operation.name())
            }
        }
    }
}
