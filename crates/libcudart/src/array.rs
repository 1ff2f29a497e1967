//! Arrays (CUDA Runtime API, "Memory Management"): those of the driver. The runtime describes an element by the bits of its channels.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::{CUDA_ARRAY3D_DESCRIPTOR, CUarray_format};

use crate::Handle;
use crate::api::api;
use crate::context::enter;
use crate::driver::cu;
use crate::error::Error;
use crate::pointers::{In, Out};
use crate::types::{ChannelDesc, Extent};

/// `cudaChannelFormatKind`
const SIGNED: c_int = 0;
const UNSIGNED: c_int = 1;
const FLOAT: c_int = 2;
const NONE: c_int = 3;

/// The driver's description of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The format of a channel.
    pub format: CUarray_format,
    /// The number of channels.
    pub channels: c_uint,
}

/// The runtime's kind and bits of a channel, and the driver's format.
const FORMATS: [(c_int, c_int, CUarray_format); 8] = [
    (UNSIGNED, 8, CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8),
    (UNSIGNED, 16, CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16),
    (UNSIGNED, 32, CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32),
    (SIGNED, 8, CUarray_format::CU_AD_FORMAT_SIGNED_INT8),
    (SIGNED, 16, CUarray_format::CU_AD_FORMAT_SIGNED_INT16),
    (SIGNED, 32, CUarray_format::CU_AD_FORMAT_SIGNED_INT32),
    (FLOAT, 16, CUarray_format::CU_AD_FORMAT_HALF),
    (FLOAT, 32, CUarray_format::CU_AD_FORMAT_FLOAT),
];

/// The driver's description of an element.
///
/// # Errors
/// If there is no such element.
pub fn format_of(desc: ChannelDesc) -> Result<Format, Error> {
    let bits = [desc.x, desc.y, desc.z, desc.w];
    let channels = bits.iter().take_while(|&&bits| bits != 0).count();
    let alike = bits[..channels].iter().all(|&other| other == desc.x)
        && bits[channels..].iter().all(|&other| other == 0);
    let format = FORMATS.iter().find(|(kind, bits, _)| (*kind, *bits) == (desc.kind, desc.x));
    match format {
        Some(&(.., format)) if alike && matches!(channels, 1 | 2 | 4) => {
            Ok(Format { format, channels: channels as c_uint })
        }
        _ => Err(Error::INVALID_CHANNEL_DESCRIPTOR),
    }
}

/// The runtime's description of an element.
pub fn desc_of(format: c_uint, channels: c_uint) -> ChannelDesc {
    let Some(&(kind, bits, _)) = FORMATS.iter().find(|(.., other)| *other as c_uint == format) else {
        return ChannelDesc { kind: NONE, ..ChannelDesc::default() };
    };
    let of = |channel| if channel < channels { bits } else { 0 };
    ChannelDesc { x: of(0), y: of(1), z: of(2), w: of(3), kind }
}

/// The driver's description of an array.
fn descriptor(array: Handle) -> Result<CUDA_ARRAY3D_DESCRIPTOR, Error> {
    let mut descriptor = std::mem::MaybeUninit::<CUDA_ARRAY3D_DESCRIPTOR>::uninit();
    // SAFETY: the arguments meet the function's requirements, and it fills the structure unless it fails.
    unsafe {
        cu!(cuArray3DGetDescriptor_v2(descriptor.as_mut_ptr(), array))?;
        Ok(descriptor.assume_init())
    }
}

/// The size of an element of an array in bytes.
///
/// # Errors
/// If the handle is no array.
pub fn element_bytes(array: Handle) -> Result<usize, Error> {
    let descriptor = descriptor(array)?;
    let ChannelDesc { x, .. } = desc_of(descriptor.Format as c_uint, descriptor.NumChannels);
    Ok((x / 8) as usize * descriptor.NumChannels as usize)
}

/// The size of a row of an array in bytes.
///
/// # Errors
/// If the handle is no array.
pub fn row_bytes(array: Handle) -> Result<usize, Error> {
    Ok(element_bytes(array)? * descriptor(array)?.Width)
}

/// The driver's description of a new array.
fn described(desc: In<ChannelDesc>, extent: Extent, flags: c_uint) -> Result<CUDA_ARRAY3D_DESCRIPTOR, Error> {
    let format = format_of(desc.read()?)?;
    Ok(CUDA_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format: format.format,
        NumChannels: format.channels,
        Flags: flags,
    })
}

api! { API:
    /// Describes elements.
    fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> ChannelDesc {
        ChannelDesc { x, y, z, w, kind }
    }
    /// Makes an array of rows.
    cudaMallocArray(array: *mut Handle, desc: In<ChannelDesc>, width: usize, height: usize, flags: c_uint)
        => cuArray3DCreate_v2(array, &described(desc, Extent { width, height, depth: 0 }, flags)?);
    /// Makes an array of slices or layers.
    cudaMalloc3DArray(array: *mut Handle, desc: In<ChannelDesc>, extent: Extent, flags: c_uint)
        => cuArray3DCreate_v2(array, &described(desc, extent, flags)?);
    /// Makes an array of levels.
    cudaMallocMipmappedArray(array: *mut Handle, desc: In<ChannelDesc>, extent: Extent, levels: c_uint, flags: c_uint)
        => cuMipmappedArrayCreate(array, &described(desc, extent, flags)?, levels);
    /// A level of an array.
    cudaGetMipmappedArrayLevel(level_array: *mut Handle, array: Handle, level: c_uint)
        => cuMipmappedArrayGetLevel(level_array, array, level);
    /// Gives an array back.
    cudaFreeArray(array: Handle) {
        enter()?;
        if array.is_null() {
            return Ok(());
        }
        cu!(cuArrayDestroy(array))
    }
    /// Gives an array of levels back.
    cudaFreeMipmappedArray(array: Handle) {
        enter()?;
        if array.is_null() {
            return Ok(());
        }
        cu!(cuMipmappedArrayDestroy(array))
    }
    /// What the elements of an array are.
    cudaGetChannelDesc(desc: Out<ChannelDesc>, array: Handle) {
        enter()?;
        let descriptor = descriptor(array)?;
        desc.write(desc_of(descriptor.Format as c_uint, descriptor.NumChannels))
    }
    /// What an array is.
    cudaArrayGetInfo(desc: Out<ChannelDesc>, extent: Out<Extent>, flags: Out<c_uint>, array: Handle) {
        enter()?;
        let descriptor = descriptor(array)?;
        desc.write_if_wanted(desc_of(descriptor.Format as c_uint, descriptor.NumChannels));
        extent.write_if_wanted(Extent { width: descriptor.Width, height: descriptor.Height, depth: descriptor.Depth });
        flags.write_if_wanted(descriptor.Flags);
        Ok(())
    }
    /// A plane of an array.
    cudaArrayGetPlane(plane: *mut Handle, array: Handle, index: c_uint) => cuArrayGetPlane(plane, array, index);
    /// What memory an array needs.
    cudaArrayGetMemoryRequirements(requirements: *mut c_void, array: Handle, device: c_int)
        => cuArrayGetMemoryRequirements(requirements, array, device);
    /// What memory an array of levels needs.
    cudaMipmappedArrayGetMemoryRequirements(requirements: *mut c_void, array: Handle, device: c_int)
        => cuMipmappedArrayGetMemoryRequirements(requirements, array, device);
    /// How a sparse array is divided.
    cudaArrayGetSparseProperties(properties: *mut c_void, array: Handle) => cuArrayGetSparseProperties(properties, array);
    /// How a sparse array of levels is divided.
    cudaMipmappedArrayGetSparseProperties(properties: *mut c_void, array: Handle) => cuMipmappedArrayGetSparseProperties(properties, array);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_both_names() {
        for &(kind, bits, format) in &FORMATS {
            for channels in [1, 2, 4] {
                let desc = desc_of(format as c_uint, channels);
                assert_eq!(desc.kind, kind);
                assert_eq!(desc.x, bits);
                assert_eq!(format_of(desc), Ok(Format { format, channels }));
            }
        }
        let three = ChannelDesc { x: 8, y: 8, z: 8, w: 0, kind: UNSIGNED };
        let mixed = ChannelDesc { x: 8, y: 16, z: 0, w: 0, kind: UNSIGNED };
        let holes = ChannelDesc { x: 8, y: 0, z: 8, w: 0, kind: UNSIGNED };
        for desc in [three, mixed, holes, ChannelDesc::default()] {
            assert_eq!(format_of(desc), Err(Error::INVALID_CHANNEL_DESCRIPTOR));
        }
    }
}
