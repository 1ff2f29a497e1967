//! `cudaDeviceProp`: a list of its fields. Their offsets follow from order and sizes.

use std::ffi::{c_char, c_int, c_void};

use cudarc::driver::sys::CUdevice_attribute as A;

use crate::api::api;
use crate::context::check_device;
use crate::driver::cu;
use crate::error::Error;

/// The content of a field.
#[derive(Clone, Copy)]
enum Field {
    /// The name of the device, in 256 bytes.
    Name,
    /// Its UUID, in 16 bytes.
    Uuid,
    /// The size of its memory in bytes.
    Memory,
    /// This many zero bytes.
    Zeros(usize),
    /// An attribute, as an `int`.
    Int(A),
    /// An attribute, as a `size_t`.
    Size(A),
}

use Field::{Int, Memory, Name, Size, Uuid, Zeros};

/// The size of the structure in bytes, by major version. Before CUDA 12 it ended where `reserved` begins now.
const BYTES_11: usize = 728;
const BYTES_12: usize = 1032;
const BYTES_13: usize = 1008;

const BOTH: u32 = 0;

/// The fields (`driver_types.h` of 12.9 and 13.5), each with the major version that has it, unless both do.
#[rustfmt::skip]
const FIELDS: &[(u32, Field)] = &[
    (BOTH, Name), (BOTH, Uuid),
    (BOTH, Zeros(8)), // luid
    (BOTH, Zeros(4)), // luidDeviceNodeMask
    (BOTH, Memory),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE)),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_MAX_PITCH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)),
    (12, Int(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT)),
    (12, Int(A::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)),
    (12, Int(A::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_INTEGRATED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)),
    (12, Int(A::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH)),
    (12, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS)),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_TCC_DRIVER)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)),
    (12, Int(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED)),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED)),
    (12, Int(A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)),
    (12, Int(A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH)),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE)),
    (BOTH, Size(A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)),
    (BOTH, Int(A::CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS)),
    (13, Int(A::CU_DEVICE_ATTRIBUTE_NUMA_CONFIG)),
    (13, Int(A::CU_DEVICE_ATTRIBUTE_NUMA_ID)),
    (13, Int(A::CU_DEVICE_ATTRIBUTE_MPS_ENABLED)),
    (13, Int(A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)),
    (13, Int(A::CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID)),
    (13, Int(A::CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID)),
    (13, Int(A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED)),
    // reserved
    (12, Zeros(63 * 4)), (13, Zeros(56 * 4)),
];

impl Field {
    fn bytes(self) -> usize {
        match self {
            Name => 256,
            Uuid => 16,
            Zeros(bytes) => bytes,
            Int(_) => 4,
            Memory | Size(_) => 8,
        }
    }

    /// Writes the field to its place.
    fn fill(self, place: &mut [u8], device: c_int) -> Result<(), Error> {
        let start = place.as_mut_ptr();
        let attribute = |attribute: A| -> Result<c_int, Error> {
            let mut value: c_int = 0;
            // SAFETY: the arguments meet the function's requirements. An attribute that the driver does not know is 0.
            match unsafe { cu!(cuDeviceGetAttribute(&raw mut value, attribute, device)) } {
                Ok(()) | Err(Error::INVALID_VALUE) => Ok(value),
                Err(error) => Err(error),
            }
        };
        match self {
            // SAFETY: the place has the size that is passed.
            Name => unsafe { cu!(cuDeviceGetName(start.cast::<c_char>(), place.len() as c_int, device)) },
            // SAFETY: the place has the size of a UUID.
            Uuid => unsafe { cu!(cuDeviceGetUuid_v2(start, device)) },
            Zeros(_) => Ok(()),
            Memory => {
                let mut bytes = 0usize;
                // SAFETY: the arguments meet the requirements of the function.
                unsafe { cu!(cuDeviceTotalMem_v2(&raw mut bytes, device)) }?;
                place.copy_from_slice(&bytes.to_ne_bytes());
                Ok(())
            }
            Int(which) => {
                place.copy_from_slice(&attribute(which)?.to_ne_bytes());
                Ok(())
            }
            Size(which) => {
                place.copy_from_slice(&(attribute(which)? as usize).to_ne_bytes());
                Ok(())
            }
        }
    }
}

/// The fields of a version with their offsets, and the size of the structure.
fn layout(major: u32) -> (Vec<(usize, Field)>, usize) {
    let mut end = 0usize;
    let fields = FIELDS.iter().filter(|(only, _)| matches!(*only, BOTH) || *only == major);
    let fields = fields.map(|&(_, field)| {
        let alignment = if matches!(field, Memory | Size(_)) { 8 } else { 4 };
        // Names and identifiers are bytes, but their offsets are aligned anyway.
        let start = end.next_multiple_of(alignment);
        end = start + field.bytes();
        (start, field)
    });
    (fields.collect(), end.next_multiple_of(8))
}

/// The structure in the layout of a version.
fn properties(device: c_int, major: u32) -> Result<Vec<u8>, Error> {
    check_device(device)?;
    let (fields, size) = layout(major);
    let mut bytes = vec![0; size];
    for (start, field) in fields {
        field.fill(&mut bytes[start..start + field.bytes()], device)?;
    }
    Ok(bytes)
}

/// # Safety
/// A non-null pointer must point to `bytes` bytes.
unsafe fn tell(result: *mut c_void, device: c_int, major: u32, bytes: usize) -> Result<(), Error> {
    if result.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let properties = properties(device, major)?;
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(properties.as_ptr(), result.cast(), bytes.min(properties.len())) };
    Ok(())
}

api! { API:
    /// What a device is, in the structure of CUDA 11.
    cudaGetDeviceProperties_11[12 as cudaGetDeviceProperties](result: *mut c_void, device: c_int) {
        tell(result, device, 12, BYTES_11)
    }
    /// What a device is, in the structure of CUDA 12.
    cudaGetDeviceProperties_12[12 as cudaGetDeviceProperties_v2](result: *mut c_void, device: c_int) {
        tell(result, device, 12, BYTES_12)
    }
    /// What a device is, in the structure of CUDA 13.
    cudaGetDeviceProperties_13[13 as cudaGetDeviceProperties](result: *mut c_void, device: c_int) {
        tell(result, device, 13, BYTES_13)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets that compilers use (`offsetof` with the headers of 12.9 and 13.5).
    #[test]
    fn fields_stand_where_compilers_have_them() {
        let offset = |major, attribute: A| {
            let (fields, _) = layout(major);
            let is = |field: &Field| matches!(field, Int(which) | Size(which) if *which == attribute);
            fields.iter().find(|(_, field)| is(field)).map(|(offset, _)| *offset)
        };
        assert_eq!((layout(12).1, layout(13).1), (BYTES_12, BYTES_13));
        let both = |attribute| (offset(12, attribute), offset(13, attribute));
        assert_eq!(both(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), (Some(296), Some(296)));
        assert_eq!(both(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), (Some(360), Some(360)));
        assert_eq!(both(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), (Some(388), Some(384)));
        assert_eq!(both(A::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT), (Some(568), Some(552)));
        assert_eq!(both(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), (Some(640), Some(624)));
        assert_eq!(both(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), (Some(696), Some(672)));
        assert_eq!(both(A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), (Some(720), Some(696)));
        assert_eq!(both(A::CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS), (Some(776), Some(752)));
    }
}
