//! Memory (CUDA Runtime API, "Memory Management", "Unified Addressing").

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::CUpointer_attribute as A;

use crate::api::{Default, api};
use crate::context::{check_device, enter};
use crate::driver::cu;
use crate::error::Error;
use crate::pointers::{In, Out};
use crate::types::{Extent, MemLocation, PitchedPtr};
use crate::{Handle, NULL};

/// The numbers of `cudaMemoryType`.
const UNREGISTERED: c_int = 0;
const MANAGED: c_int = 3;

/// `cudaPointerAttributes` of CUDA 12. In CUDA 13, zeros follow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PointerAttributes {
    kind: c_int,
    device: c_int,
    of_device: Handle,
    of_host: Handle,
}

const _: () = assert!(size_of::<PointerAttributes>() == 24);

/// The number of zero bytes after it in CUDA 13.
const RESERVED_13: usize = 88 - 24;

fn pointer_attributes(pointer: *const c_void) -> Result<PointerAttributes, Error> {
    enter()?;
    let address = pointer.addr() as u64;
    let (mut kind, mut managed, mut device, mut of_device, mut of_host) = (0u32, 0u32, 0, NULL, NULL);
    let names = [
        A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        A::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        A::CU_POINTER_ATTRIBUTE_HOST_POINTER,
    ];
    let mut places: [Handle; 5] = [
        (&raw mut kind).cast(),
        (&raw mut managed).cast(),
        (&raw mut device).cast(),
        (&raw mut of_device).cast(),
        (&raw mut of_host).cast(),
    ];
    // SAFETY: there is a place for each name, with the size of its attribute.
    unsafe {
        cu!(cuPointerGetAttributes(names.len() as c_uint, names.as_ptr(), places.as_mut_ptr(), address))
    }?;
    let kind = match kind {
        _ if managed != 0 => MANAGED,
        known => known as c_int,
    };
    Ok(match kind {
        UNREGISTERED => PointerAttributes {
            kind,
            device: -2,
            of_device: NULL,
            of_host: std::ptr::with_exposed_provenance_mut(pointer.expose_provenance()),
        },
        _ => PointerAttributes { kind, device, of_device, of_host },
    })
}

/// The location that a device number names; -1 is the host.
fn location(device: c_int) -> MemLocation {
    const DEVICE: c_int = 1;
    const HOST: c_int = 2;
    if device < 0 { MemLocation { kind: HOST, id: 0 } } else { MemLocation { kind: DEVICE, id: device } }
}

fn allocate_rows(
    pointer: Out<*mut c_void>,
    pitch: Out<usize>,
    width: usize,
    height: usize,
) -> Result<(), Error> {
    enter()?;
    if width == 0 || height == 0 {
        return pointer.write(NULL).and_then(|()| pitch.write(0));
    }
    // SAFETY: the program promises both places.
    unsafe { cu!(cuMemAllocPitch_v2(pointer.pointer(), pitch.pointer(), width, height, 16)) }
}

fn allocate_host(pointer: Out<*mut c_void>, bytes: usize, flags: c_uint) -> Result<(), Error> {
    enter()?;
    if bytes == 0 {
        return pointer.write(NULL);
    }
    // SAFETY: the program promises the place.
    unsafe { cu!(cuMemHostAlloc(pointer.pointer(), bytes, flags)) }
}

api! { API:
    /// Allocates device memory.
    cudaMalloc(pointer: Out<*mut c_void>, bytes: usize) {
        enter()?;
        if bytes == 0 {
            return pointer.write(NULL);
        }
        cu!(cuMemAlloc_v2(pointer.pointer(), bytes))
    }
    /// Gives device memory back.
    cudaFree(pointer: *mut c_void) => cuMemFree_v2(pointer);
    /// Allocates rows of device memory that begin at aligned addresses.
    cudaMallocPitch(pointer: Out<*mut c_void>, pitch: Out<usize>, width: usize, height: usize) {
        allocate_rows(pointer, pitch, width, height)
    }
    /// Allocates slices of rows of device memory.
    cudaMalloc3D(result: Out<PitchedPtr>, extent: Extent) {
        let rows = extent.height.checked_mul(extent.depth).ok_or(Error::INVALID_VALUE)?;
        let (mut pointer, mut pitch) = (NULL, 0);
        allocate_rows(Out::new(&raw mut pointer), Out::new(&raw mut pitch), extent.width, rows)?;
        result.write(PitchedPtr { pointer, pitch, width: extent.width, height: extent.height })
    }
    /// Allocates memory that host and device reach at one address.
    cudaMallocManaged(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) => cuMemAllocManaged(pointer, bytes, flags);
    /// Allocates pinned memory of the host.
    cudaMallocHost(pointer: Out<*mut c_void>, bytes: usize) {
        allocate_host(pointer, bytes, 0)
    }
    /// Allocates pinned memory of the host, with flags.
    cudaHostAlloc(pointer: Out<*mut c_void>, bytes: usize, flags: c_uint) {
        allocate_host(pointer, bytes, flags)
    }
    /// Gives pinned memory back.
    cudaFreeHost(pointer: *mut c_void) => cuMemFreeHost(pointer);
    /// Lets kernels reach memory of the program.
    cudaHostRegister(pointer: *mut c_void, bytes: usize, flags: c_uint) => cuMemHostRegister_v2(pointer, bytes, flags);
    /// Takes memory of the program away from kernels.
    cudaHostUnregister(pointer: *mut c_void) => cuMemHostUnregister(pointer);
    /// The address that kernels use for pinned memory.
    cudaHostGetDevicePointer(result: *mut *mut c_void, pointer: *mut c_void, flags: c_uint)
        => cuMemHostGetDevicePointer_v2(result, pointer, flags);
    /// The flags that pinned memory was made with.
    cudaHostGetFlags(flags: *mut c_uint, pointer: *mut c_void) => cuMemHostGetFlags(flags, pointer);
    /// Bytes of device memory that are free, and all of them.
    cudaMemGetInfo(free: *mut usize, total: *mut usize) => cuMemGetInfo_v2(free, total);
    /// What is known of a pointer, in the structure of CUDA 12.
    cudaPointerGetAttributes_12[12 as cudaPointerGetAttributes](result: Out<PointerAttributes>, pointer: *const c_void) {
        result.write(pointer_attributes(pointer)?)
    }
    /// What is known of a pointer, in the structure of CUDA 13.
    cudaPointerGetAttributes_13[13 as cudaPointerGetAttributes](result: Out<PointerAttributes>, pointer: *const c_void) {
        result.write(pointer_attributes(pointer)?)?;
        result.pointer().add(1).cast::<u8>().write_bytes(0, RESERVED_13);
        Ok(())
    }
    /// Advice on the use of managed memory.
    cudaMemAdvise[12](address: *const c_void, bytes: usize, advice: c_int, device: c_int)
        => cuMemAdvise_v2(address, bytes, advice, location(device));
    /// Advice on the use of managed memory.
    cudaMemAdvise_v2[12, 13 as cudaMemAdvise](address: *const c_void, bytes: usize, advice: c_int, location: MemLocation)
        => cuMemAdvise_v2(address, bytes, advice, location);
    /// Moves managed memory to where it will be used.
    cudaMemPrefetchAsync / cudaMemPrefetchAsync_ptsz [12] (address: *const c_void, bytes: usize, device: c_int, stream: Handle) |default|
        => cuMemPrefetchAsync_v2(address, bytes, location(device), 0, default.of(stream));
    /// Moves managed memory to where it will be used.
    cudaMemPrefetchAsync_v2 / cudaMemPrefetchAsync_v2_ptsz [12, 13 as cudaMemPrefetchAsync / cudaMemPrefetchAsync_ptsz] (
        address: *const c_void, bytes: usize, to: MemLocation, flags: c_uint, stream: Handle
    ) |default| => cuMemPrefetchAsync_v2(address, bytes, to, flags, default.of(stream));
    /// Where managed memory is, and what was advised.
    cudaMemRangeGetAttribute(data: *mut c_void, bytes: usize, attribute: c_int, address: *const c_void, count: usize)
        => cuMemRangeGetAttribute(data, bytes, attribute, address, count);
    /// Several things that are known of managed memory.
    cudaMemRangeGetAttributes(data: *mut *mut c_void, bytes: *mut usize, attributes: *mut c_int, number: usize, address: *const c_void, count: usize)
        => cuMemRangeGetAttributes(data, bytes, attributes, number, address, count);
    /// Fills memory with a byte.
    cudaMemset / cudaMemset_ptds (address: *mut c_void, value: c_int, bytes: usize) |default| {
        fill(address, value, bytes, default, None)
    }
    /// Fills memory with a byte, in the order of a stream.
    cudaMemsetAsync / cudaMemsetAsync_ptsz (address: *mut c_void, value: c_int, bytes: usize, stream: Handle) |default| {
        fill(address, value, bytes, default, Some(stream))
    }
    /// Fills rows with a byte.
    cudaMemset2D / cudaMemset2D_ptds (address: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) |default| {
        fill_slices(PitchedPtr { pointer: address, pitch, width, height }, value, Extent { width, height, depth: 1 }, default, None)
    }
    /// Fills rows with a byte, in the order of a stream.
    cudaMemset2DAsync / cudaMemset2DAsync_ptsz (
        address: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: Handle
    ) |default| {
        let at = PitchedPtr { pointer: address, pitch, width, height };
        fill_slices(at, value, Extent { width, height, depth: 1 }, default, Some(stream))
    }
    /// Fills slices of rows with a byte.
    cudaMemset3D / cudaMemset3D_ptds (at: PitchedPtr, value: c_int, extent: Extent) |default| {
        fill_slices(at, value, extent, default, None)
    }
    /// Fills slices of rows with a byte, in the order of a stream.
    cudaMemset3DAsync / cudaMemset3DAsync_ptsz (at: PitchedPtr, value: c_int, extent: Extent, stream: Handle) |default| {
        fill_slices(at, value, extent, default, Some(stream))
    }
    /// A handle by which another process opens memory.
    cudaIpcGetMemHandle(handle: *mut [u8; 64], pointer: *mut c_void) => cuIpcGetMemHandle(handle, pointer);
    /// Opens memory of another process.
    cudaIpcOpenMemHandle(pointer: *mut *mut c_void, handle: IpcHandle, flags: c_uint) => cuIpcOpenMemHandle_v2(pointer, handle, flags);
    /// Closes memory of another process.
    cudaIpcCloseMemHandle(pointer: *mut c_void) => cuIpcCloseMemHandle(pointer);
    /// The widest texture of linear memory.
    cudaDeviceGetTexture1DLinearMaxWidth(result: *mut usize, desc: In<crate::types::ChannelDesc>, device: c_int) {
        check_device(device)?;
        let format = crate::array::format_of(desc.read()?)?;
        cu!(cuDeviceGetTexture1DLinearMaxWidth(result, format.format, format.channels, device))
    }
}

/// `cudaIpcMemHandle_t`, `cudaIpcEventHandle_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IpcHandle(pub [u8; 64]);

/// Fills memory with a byte; without a stream, like the synchronous function.
///
/// # Safety
/// As for `cudaMemset`.
unsafe fn fill(
    address: *mut c_void,
    value: c_int,
    bytes: usize,
    default: Default,
    stream: Option<Handle>,
) -> Result<(), Error> {
    enter()?;
    let value = value as u8;
    // SAFETY: the caller's promise.
    unsafe {
        match (stream, default) {
            (None, Default::Legacy) => cu!(cuMemsetD8_v2(address, value, bytes)),
            (stream, default) => {
                cu!(cuMemsetD8Async(address, value, bytes, default.of(stream.unwrap_or(NULL))))
            }
        }
    }
}

/// # Safety
/// As for `cudaMemset3D`.
unsafe fn fill_slices(
    at: PitchedPtr,
    value: c_int,
    extent: Extent,
    default: Default,
    stream: Option<Handle>,
) -> Result<(), Error> {
    enter()?;
    let Extent { width, height, depth } = extent;
    let slice = at.pitch.checked_mul(at.height).ok_or(Error::INVALID_VALUE)?;
    slice.checked_mul(depth).ok_or(Error::INVALID_VALUE)?;
    for z in 0..depth {
        let start = at.pointer.wrapping_byte_add(slice * z);
        let value = value as u8;
        // SAFETY: the caller's promise.
        unsafe {
            match (stream, default) {
                (None, Default::Legacy) => cu!(cuMemsetD2D8_v2(start, at.pitch, value, width, height)),
                (stream, default) => {
                    cu!(cuMemsetD2D8Async(
                        start,
                        at.pitch,
                        value,
                        width,
                        height,
                        default.of(stream.unwrap_or(NULL))
                    ))
                }
            }?;
        }
    }
    Ok(())
}
