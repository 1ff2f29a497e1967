//! Tensor maps: the layout of a tensor in global memory, and the box that a copy moves (PTX ISA, "Tensors" and
//! "tensorMap").
//!
//! A map is 128 opaque bytes that a driver writes. NVIDIA's layout of them is not public; the one here ([`layout`])
//! is ptxvm's own. [`tile`] says which bytes a copy moves; it does not access memory.
//!
//! An H100 was asked (`conformance/hardware/`, docs/tensors.md). *Unverified*, because no public document and no H100
//! says it:
//! - the pattern of [`Swizzle::Bytes128By64`] and of the other swizzles with an atomicity;
//! - the gaps behind packed elements are not written;
//! - ties of `.tf32` are rounded away from zero;
//! - a halo along the width continues like the columns;
//! - stores with interleaved channels.

mod columns;
mod instruction;
mod layout;
mod misfit;
mod requirements;
mod tile;

pub use columns::Wide;
pub use instruction::Elements;
pub use layout::{ADDRESS, BYTES, Field, NoMap};
pub use misfit::Misfit;
pub use requirements::Unmet;
pub use tile::{Place, Row};

/// The maximum number of dimensions of a tensor.
pub const MOST_DIMENSIONS: usize = 5;

/// Defines an enumeration whose numbers programs and maps contain.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            /// All variants, in the order of their numbers, which are those of `cuda.h`.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The variant with a number.
            pub fn of(number: u32) -> Option<$name> {
                $name::ALL.get(number as usize).copied()
            }
        }
    };
}

numbered! {
    /// The element type of a tensor (`CUtensorMapDataType`).
    Element {
        /// 8 bits.
        U8,
        /// 16 bits.
        U16,
        /// 32 bits.
        U32,
        /// Signed 32 bits.
        S32,
        /// 64 bits.
        U64,
        /// Signed 64 bits.
        S64,
        /// Half precision.
        F16,
        /// Single precision.
        F32,
        /// Double precision.
        F64,
        /// The upper half of single precision.
        Bf16,
        /// Single precision; subnormals are flushed to zero.
        F32Ftz,
        /// Single precision; `mma` reads its upper 19 bits.
        Tf32,
        /// The same; subnormals are flushed to zero.
        Tf32Ftz,
        /// Groups of 16 4-bit numbers, without gaps.
        U4Align8,
        /// Groups of 16 4-bit numbers, each group in 16 bytes of shared memory.
        U4Align16,
        /// Groups of 16 6-bit numbers, each group in 16 bytes of shared memory.
        U6Align16,
    }
}

impl Element {
    /// Bits of one number in global memory.
    pub fn bits(self) -> u32 {
        match self {
            Element::U8 => 8,
            Element::U16 | Element::F16 | Element::Bf16 => 16,
            Element::U32
            | Element::S32
            | Element::F32
            | Element::F32Ftz
            | Element::Tf32
            | Element::Tf32Ftz => 32,
            Element::U64 | Element::S64 | Element::F64 => 64,
            Element::U4Align8 | Element::U4Align16 => 4,
            Element::U6Align16 => 6,
        }
    }

    /// Whether a number has less than a byte, so that numbers come in groups.
    pub fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        use Element::{Bf16, F16, F32, F32Ftz, F64, Tf32, Tf32Ftz};
        matches!(self, F16 | F32 | F64 | Bf16 | F32Ftz | Tf32 | Tf32Ftz)
    }
}

numbered! {
    /// Whether channels are interleaved (`CUtensorMapInterleave`).
    Interleave {
        /// Not interleaved.
        None,
        /// In groups of 16 bytes (`NC/8HWC8`).
        Bytes16,
        /// In groups of 32 bytes (`NC/16HWC16`).
        Bytes32,
    }
}

numbered! {
    /// How units of a row are permuted in shared memory (`CUtensorMapSwizzle`).
    Swizzle {
        /// No permutation.
        None,
        /// Units of 16 bytes within 32.
        Bytes32,
        /// Units of 16 bytes within 64.
        Bytes64,
        /// Units of 16 bytes within 128.
        Bytes128,
        /// Units of 32 bytes within 128.
        Bytes128By32,
        /// Units of 32 bytes within 128; in every other row the halves of each 16 bytes are swapped, too.
        Bytes128By32Flip8,
        /// Units of 64 bytes within 128.
        Bytes128By64,
    }
}

numbered! {
    /// The values that a copy reads outside of the tensor (`CUtensorMapFloatOOBfill`).
    Fill {
        /// Zeros.
        Zero,
        /// A NaN that `fma.oob` treats as zero.
        Nan,
    }
}

/// The part of the tensor that a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A box with this number of elements in each dimension.
    Tiled([u32; MOST_DIMENSIONS]),
    /// Columns of an image, as convolutions read them.
    Im2col(Im2col),
    /// Columns along the second innermost dimension (the width) only. Only the first component of each corner counts.
    Im2colWide {
        /// The columns.
        columns: Im2col,
        /// A copy takes 128 pixels (`CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128`).
        w128: bool,
    },
}

/// Columns of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Im2col {
    /// The lower corner of the bounding box, relative to the tensor's, the width first. (The driver's manual lists
    /// "{D, H, W}"; CUTLASS passes the width first, `lower_corner_whd` of `make_im2col_tma_copy_desc`.)
    pub lower: [i32; 3],
    /// The upper corner, relative to the tensor's.
    pub upper: [i32; 3],
    /// Elements along the innermost dimension.
    pub channels: u32,
    /// Pixels along the other dimensions.
    pub pixels: u32,
}

/// A tensor map. Dimensions are in memory order, the innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The part that a copy moves.
    pub mode: Mode,
    /// The element type.
    pub element: Element,
    /// The number of dimensions, 1 to 5. Dimensions above have an extent of 1.
    pub rank: usize,
    /// The address of the tensor.
    pub address: u64,
    /// Elements in each dimension.
    pub extents: [u64; MOST_DIMENSIONS],
    /// Byte strides of all dimensions but the innermost.
    pub strides: [u64; MOST_DIMENSIONS - 1],
    /// Traversal strides: elements from one that is copied to the next. That of the innermost dimension counts only
    /// with interleaved channels.
    pub steps: [u32; MOST_DIMENSIONS],
    /// Whether channels are interleaved.
    pub interleave: Interleave,
    /// How units of a row are permuted in shared memory.
    pub swizzle: Swizzle,
    /// The values outside of the tensor.
    pub fill: Fill,
}

impl TensorMap {
    /// A tensor of contiguous elements at an address, with extents from the innermost on, and boxes with the extents
    /// `taken`. All other fields have the simplest values and may be changed; [`TensorMap::check`] says whether a
    /// driver would accept the map.
    ///
    /// ```
    /// use sem::tensormap::{Element, Swizzle, TensorMap};
    /// let mut map = TensorMap::tiled(Element::F16, 0x10_0000, &[256, 128], &[64, 32]);
    /// map.swizzle = Swizzle::Bytes128;
    /// assert_eq!((map.check(), map.strides[0]), (Ok(()), 512));
    /// ```
    pub fn tiled(element: Element, address: u64, extents: &[u64], taken: &[u32]) -> TensorMap {
        fn padded<T: Copy, const N: usize>(values: &[T], absent: T) -> [T; N] {
            std::array::from_fn(|i| values.get(i).copied().unwrap_or(absent))
        }
        let extents: [u64; MOST_DIMENSIONS] = padded(extents, 1);
        let mut bytes = element.bytes_of(extents[0]);
        let strides = std::array::from_fn(|i| {
            let stride = bytes;
            bytes = bytes.wrapping_mul(extents[i + 1]);
            stride
        });
        TensorMap {
            mode: Mode::Tiled(padded(taken, 1)),
            element,
            rank: taken.len(),
            address,
            extents,
            strides,
            steps: [1; MOST_DIMENSIONS],
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            fill: Fill::Zero,
        }
    }
}
