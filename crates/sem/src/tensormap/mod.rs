//! Tensor maps: how a tensor lies in global memory, and which box of it a copy takes (PTX ISA, "Tensors" and "tensorMap").
//!
//! A map is 128 bytes that a driver writes and that programs do not look into. NVIDIA's layout of them is not public; the one here
//! ([`layout`]) is ptxvm's own. What a copy of a box does is in [`tile`], without the memory.
//!
//! *Unverified*, as no public document says it: the bits that [`Fill::Nan`] fills in, the pattern of [`Swizzle::Bytes128By64`], that bytes
//! by which a row is shorter than the span of its swizzle are not counted, that `.tf32` elements come as they are, that gaps behind
//! packed elements are not written, that stores flush nothing, and that a halo of columns along the width goes on as the columns
//! do. How memory of interleaved channels is addressed no document
//! says: such maps are refused.

mod columns;
mod instruction;
mod layout;
mod requirements;
mod tile;

pub use columns::Wide;
pub use layout::{ADDRESS, BYTES, Field, NoMap};
pub use requirements::Unmet;
pub use tile::{Misfit, Place, Row};

/// Most dimensions of a tensor.
pub const MOST_DIMENSIONS: usize = 5;

/// Enumerations of which a program and a map have the numbers.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            /// All, in the order of their numbers, which are those of `cuda.h`.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The one of a number.
            pub fn of(number: u32) -> Option<$name> {
                $name::ALL.get(number as usize).copied()
            }
        }
    };
}

numbered! {
    /// What a tensor is made of (`CUtensorMapDataType`).
    Element {
        /// 8 bits.
        U8,
        /// 16 bits.
        U16,
        /// 32 bits.
        U32,
        /// 32 bits with a sign.
        S32,
        /// 64 bits.
        U64,
        /// 64 bits with a sign.
        S64,
        /// Half precision.
        F16,
        /// Single precision.
        F32,
        /// Double precision.
        F64,
        /// The upper half of single precision.
        Bf16,
        /// Single precision, subnormal numbers flushed to zero.
        F32Ftz,
        /// Single precision, of which `mma` reads 19 bits.
        Tf32,
        /// The same, subnormal numbers flushed to zero.
        Tf32Ftz,
        /// Groups of 16 numbers of 4 bits, without gaps.
        U4Align8,
        /// Groups of 16 numbers of 4 bits, each in 16 bytes of shared memory.
        U4Align16,
        /// Groups of 16 numbers of 6 bits, each in 16 bytes of shared memory.
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

    /// It is a group of numbers of less than a byte.
    pub fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// It is a floating-point number.
    pub fn is_float(self) -> bool {
        use Element::{Bf16, F16, F32, F32Ftz, F64, Tf32, Tf32Ftz};
        matches!(self, F16 | F32 | F64 | Bf16 | F32Ftz | Tf32 | Tf32Ftz)
    }
}

numbered! {
    /// How channels lie in groups (`CUtensorMapInterleave`).
    Interleave {
        /// Not in groups.
        None,
        /// In groups of 16 bytes (`NC/8HWC8`).
        Bytes16,
        /// In groups of 32 bytes (`NC/16HWC16`).
        Bytes32,
    }
}

numbered! {
    /// How units of a row change places in shared memory (`CUtensorMapSwizzle`).
    Swizzle {
        /// They stay.
        None,
        /// Units of 16 bytes within 32.
        Bytes32,
        /// Units of 16 bytes within 64.
        Bytes64,
        /// Units of 16 bytes within 128.
        Bytes128,
        /// Units of 32 bytes within 128.
        Bytes128By32,
        /// Units of 32 bytes within 128; in every other row the halves of each 16 bytes change places, too.
        Bytes128By32Flip8,
        /// Units of 64 bytes within 128.
        Bytes128By64,
    }
}

numbered! {
    /// What is read where the tensor is not (`CUtensorMapFloatOOBfill`).
    Fill {
        /// Zeros.
        Zero,
        /// A NaN that `fma.oob` takes for zero.
        Nan,
    }
}

/// What a copy takes of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A box of so many elements in each dimension.
    Tiled([u32; MOST_DIMENSIONS]),
    /// Columns of an image, as convolutions want them.
    Im2col(Im2col),
    /// Columns along the innermost dimension but one alone. Other corners than the first mean nothing.
    Im2colWide {
        /// What it takes.
        columns: Im2col,
        /// It takes 128 pixels (`CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128`).
        w128: bool,
    },
}

/// Columns of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Im2col {
    /// Corners of the bounding box, from those of the tensor, the width first. (The driver's manual lists "{D, H, W}"; CUTLASS passes
    /// the width first, `lower_corner_whd` of `make_im2col_tma_copy_desc`.)
    pub lower: [i32; 3],
    /// The other corner.
    pub upper: [i32; 3],
    /// Elements along the innermost dimension.
    pub channels: u32,
    /// Elements along the others.
    pub pixels: u32,
}

/// A tensor map. Dimensions are in the order of memory, the innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// What a copy takes.
    pub mode: Mode,
    /// What the tensor is made of.
    pub element: Element,
    /// Number of its dimensions, 1 to 5. Those above have an extent of 1.
    pub rank: usize,
    /// Where it begins.
    pub address: u64,
    /// Elements in each dimension.
    pub extents: [u64; MOST_DIMENSIONS],
    /// Bytes from one element to the next, of all dimensions but the innermost.
    pub strides: [u64; MOST_DIMENSIONS - 1],
    /// Elements from one that is taken to the next. That of the innermost dimension means something with interleaved channels only.
    pub steps: [u32; MOST_DIMENSIONS],
    /// How channels lie.
    pub interleave: Interleave,
    /// How units of a row change places in shared memory.
    pub swizzle: Swizzle,
    /// What is read outside of the tensor.
    pub fill: Fill,
}

impl TensorMap {
    /// A tensor whose elements lie one after the other at an address, the innermost extent first, of which boxes of these extents are
    /// copied. Everything else is as simple as it can be, and may be changed; [`TensorMap::check`] says whether a driver would take it.
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
