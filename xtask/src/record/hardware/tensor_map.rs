//! Tensor maps of kernels of `tests/run`, as the driver is asked for them (CUDA Driver API, "Tensor Map Object Management").

use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill as Fill,
    CUtensorMapIm2ColWideMode as WideMode, CUtensorMapInterleave as Interleave,
    CUtensorMapL2promotion as Promotion, CUtensorMapSwizzle as Swizzle,
};

/// The types of arrays, with the bytes of an element.
const TYPES: [(&str, DataType, u64); 9] = [
    ("u8", DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8, 1),
    ("u16", DataType::CU_TENSOR_MAP_DATA_TYPE_UINT16, 2),
    ("u32", DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32, 4),
    ("i32", DataType::CU_TENSOR_MAP_DATA_TYPE_INT32, 4),
    ("u64", DataType::CU_TENSOR_MAP_DATA_TYPE_UINT64, 8),
    ("f16", DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2),
    ("bf16", DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2),
    ("f32", DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4),
    ("f64", DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8),
];

const SWIZZLES: [(&str, Swizzle); 7] = [
    ("none", Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE),
    ("32B", Swizzle::CU_TENSOR_MAP_SWIZZLE_32B),
    ("64B", Swizzle::CU_TENSOR_MAP_SWIZZLE_64B),
    ("128B", Swizzle::CU_TENSOR_MAP_SWIZZLE_128B),
    ("128B-32B", Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B),
    ("128B-32B-8B", Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B),
    ("128B-64B", Swizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B),
];

/// What a copy takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A box.
    Box(Vec<u32>),
    /// Columns, with the corners of their bounding box.
    Columns {
        /// One corner, the width first.
        lower: Vec<i32>,
        /// The other.
        upper: Vec<i32>,
        /// Elements of a pixel.
        channels: u32,
        /// Pixels.
        pixels: u32,
        /// Along the width alone: 128 of them?
        wide: Option<bool>,
    },
}

/// A tensor map, the innermost dimension first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    ty: DataType,
    pub extents: Vec<u64>,
    /// Bytes, of all dimensions but the innermost.
    pub strides: Vec<u64>,
    pub steps: Vec<u32>,
    pub taken: Taken,
    swizzle: Swizzle,
    nan: bool,
}

/// The map of a dense array, by what stands behind it in `tensormap(u32[64x64], box=8x8, swizzle=32B)`. `None` for options that no
/// kernel has.
pub fn parse(ty: &str, shape: &[u64], options: &str) -> Option<Map> {
    let (_, ty, bytes) = TYPES.into_iter().find(|(name, ..)| *name == ty)?;
    let extents: Vec<u64> = shape.iter().rev().copied().collect();
    let rank = extents.len();
    let strides = (1..rank).map(|d| bytes * extents[..d].iter().product::<u64>()).collect();
    let (mut taken, mut swizzle, mut nan, mut steps) = (None, "none", false, vec![1; rank]);
    let (mut lower, mut upper, mut channels, mut pixels, mut wide) = (None, None, None, 0, None);
    for option in options.split(',') {
        let (name, value) = option.trim().split_once('=')?;
        match name {
            "box" => taken = Some(numbers::<u32>(value)?),
            "step" => steps = numbers(value)?,
            "swizzle" => swizzle = value,
            "fill" => nan = value == "nan",
            "channels" => channels = Some(value.parse().ok()?),
            "pixels" => pixels = value.parse().ok()?,
            "lower" => lower = Some(numbers::<i32>(value)?),
            "upper" => upper = Some(numbers::<i32>(value)?),
            "wide" => wide = Some(value == "w128"),
            _ => return None,
        }
    }
    let corners = if wide.is_some() { 1 } else { rank.checked_sub(2)? };
    let taken = match (taken, channels) {
        (Some(taken), None) => Taken::Box(taken),
        (None, Some(channels)) => Taken::Columns {
            lower: lower.unwrap_or_else(|| vec![0; corners]),
            upper: upper.unwrap_or_else(|| vec![0; corners]),
            channels,
            pixels,
            wide,
        },
        _ => return None,
    };
    let swizzle = SWIZZLES.into_iter().find(|(name, _)| *name == swizzle)?.1;
    Some(Map { ty, extents, strides, steps, taken, swizzle, nan })
}

/// Numbers with `x` between them, the last one first.
fn numbers<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.rsplit('x').map(|number| number.parse().ok()).collect()
}

impl Map {
    /// The numbers of the type, the swizzle and the fill in `cuda.h`.
    #[cfg(test)]
    pub fn enumerations(&self) -> [u32; 3] {
        [self.ty as u32, self.swizzle as u32, self.nan.into()]
    }

    /// The map that the driver makes of it, of the array at an address.
    ///
    /// # Errors
    /// The driver does not take it.
    pub fn encode(&self, address: u64) -> Result<Box<CUtensorMap>, String> {
        let mut map = Box::new(CUtensorMap { opaque: [0; 16] });
        let (rank, to) = (self.extents.len() as u32, address as *mut std::ffi::c_void);
        let (extents, strides, steps) = (self.extents.as_ptr(), self.strides.as_ptr(), self.steps.as_ptr());
        let (plain, promotion) =
            (Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE, Promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE);
        let fill = match self.nan {
            true => Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
            false => Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        };
        let (ty, swizzle, result) = (self.ty, self.swizzle, &raw mut *map);
        // SAFETY: the driver writes the map, and reads as many numbers as there are dimensions (strides: but one; corners: but two).
        let status = unsafe {
            match &self.taken {
                Taken::Box(taken) => sys::cuTensorMapEncodeTiled(
                    result,
                    ty,
                    rank,
                    to,
                    extents,
                    strides,
                    taken.as_ptr(),
                    steps,
                    plain,
                    swizzle,
                    promotion,
                    fill,
                ),
                Taken::Columns { lower, upper, channels, pixels, wide: None } => {
                    sys::cuTensorMapEncodeIm2col(
                        result,
                        ty,
                        rank,
                        to,
                        extents,
                        strides,
                        lower.as_ptr(),
                        upper.as_ptr(),
                        *channels,
                        *pixels,
                        steps,
                        plain,
                        swizzle,
                        promotion,
                        fill,
                    )
                }
                Taken::Columns { lower, upper, channels, pixels, wide: Some(of_128) } => {
                    let mode = match of_128 {
                        true => WideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
                        false => WideMode::CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
                    };
                    sys::cuTensorMapEncodeIm2colWide(
                        result, ty, rank, to, extents, strides, lower[0], upper[0], *channels, *pixels,
                        steps, plain, mode, swizzle, promotion, fill,
                    )
                }
            }
        };
        status.result().map(|()| map).map_err(|error| format!("the tensor map: {error}"))
    }
}
