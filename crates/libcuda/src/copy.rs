//! Copies: of contiguous bytes, and of boxes of rows.

use std::ffi::c_void;

use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray, CUcontext, CUdeviceptr, CUmemorytype, CUstream,
};

use crate::Status;
use crate::api::api;
use crate::array::array;
use crate::driver::driver;
use crate::memory::DEVICE_BASE;
use crate::operation::Operation;
use crate::stream::{Default, Stream};
use crate::stream_order::{self, Use};

/// Where the bytes of a copy are.
#[derive(Clone, Debug)]
pub enum Place {
    /// At a host address. Managed and pinned memory has one, too.
    Host(u64),
    /// At an address that only the device has.
    Device(u64),
    /// In a buffer that was copied from the program beforehand.
    Bytes(std::sync::Arc<[u8]>),
}

impl Place {
    /// The place of a unified address.
    fn of(address: u64) -> Place {
        if address >= DEVICE_BASE { Place::Device(address) } else { Place::Host(address) }
    }
}

impl Place {
    /// The number of bytes after an offset that the machine holds contiguously.
    fn rest(&self, offset: u64) -> Result<u64, Status> {
        match self {
            Place::Device(address) => Ok(driver()?.allocations.rest(address + offset)),
            _ => Ok(u64::MAX),
        }
    }
}

/// One side of a copy: slices of rows.
#[derive(Clone, Debug)]
pub struct Side {
    pub place: Place,
    /// The strides of rows and of slices, in bytes.
    pub pitch: u64,
    pub slice: u64,
}

impl Side {
    fn linear(place: Place) -> Side {
        Side { place, pitch: 0, slice: 0 }
    }

    /// The number of bytes from its start to the end of a box.
    fn extent(&self, [width, height, depth]: [u64; 3]) -> Option<u64> {
        let rows = self.pitch.checked_mul(height.checked_sub(1)?)?;
        let slices = self.slice.checked_mul(depth.checked_sub(1)?)?;
        rows.checked_add(slices)?.checked_add(width)
    }

    /// Checks that a box is allocated. Host memory unknown to the driver is not checked: the program must pass valid pointers.
    fn check(&self, extents: [u64; 3]) -> Result<(), Status> {
        let bytes = self.extent(extents).ok_or(Status::CUDA_ERROR_INVALID_VALUE)?;
        let allocations = &driver()?.allocations;
        match self.place {
            Place::Device(address) => allocations.check(address, bytes),
            // No process maps this page.
            Place::Host(address) if address < 4096 => Err(Status::CUDA_ERROR_INVALID_VALUE),
            Place::Host(address) if allocations.find(address).is_some() => allocations.check(address, bytes),
            _ => Ok(()),
        }
    }

    /// Whether it is host memory that the driver did not allocate: copies of it are not asynchronous.
    fn is_pageable(&self) -> Result<bool, Status> {
        match self.place {
            Place::Host(address) => Ok(driver()?.allocations.find(address).is_none()),
            _ => Ok(false),
        }
    }
}

/// A copy of a box.
#[derive(Clone, Debug)]
pub struct Copy {
    pub from: Side,
    pub to: Side,
    /// Bytes per row, rows per slice, slices.
    pub extents: [u64; 3],
    /// The program's call, if a report may name it.
    pub by: Option<std::sync::Arc<str>>,
}

impl Copy {
    /// A copy of contiguous bytes.
    pub fn linear(to: Place, from: Place, bytes: u64) -> Copy {
        Copy { from: Side::linear(from), to: Side::linear(to), extents: [bytes, 1, 1], by: None }
    }

    /// Checks both sides.
    ///
    /// # Errors
    /// If one side is not allocated.
    pub fn check(&self) -> Result<(), Status> {
        let pitched = |side: &Side| side.pitch >= self.extents[0] || self.extents[1] == 1;
        if !pitched(&self.from) || !pitched(&self.to) {
            return Err(Status::CUDA_ERROR_INVALID_VALUE);
        }
        self.from.check(self.extents)?;
        self.to.check(self.extents)
    }

    /// The copy as the driver's structure, for a program that queries it.
    pub fn describe(&self) -> CUDA_MEMCPY3D {
        // SAFETY: all zeros is a valid description: null pointers and numbers. Zero is no value of the enumerations, but the next lines
        // overwrite them.
        let mut description = std::mem::MaybeUninit::<CUDA_MEMCPY3D>::zeroed();
        let at = description.as_mut_ptr();
        let parts = |side: &Side| match side.place {
            Place::Device(address) => (CUmemorytype::CU_MEMORYTYPE_DEVICE, address),
            Place::Host(address) => (CUmemorytype::CU_MEMORYTYPE_HOST, address),
            Place::Bytes(_) => (CUmemorytype::CU_MEMORYTYPE_HOST, 0),
        };
        let ((from_type, from), (to_type, to)) = (parts(&self.from), parts(&self.to));
        let height = |side: &Side| side.slice.checked_div(side.pitch).unwrap_or(0) as usize;
        let [width, rows, depth] = self.extents.map(|n| n as usize);
        // SAFETY: `at` points to the structure, and these are its fields.
        unsafe {
            (*at).srcMemoryType = from_type;
            (*at).dstMemoryType = to_type;
            match from_type {
                CUmemorytype::CU_MEMORYTYPE_DEVICE => (*at).srcDevice = from,
                _ => (*at).srcHost = std::ptr::with_exposed_provenance(from as usize),
            }
            match to_type {
                CUmemorytype::CU_MEMORYTYPE_DEVICE => (*at).dstDevice = to,
                _ => (*at).dstHost = std::ptr::with_exposed_provenance_mut(to as usize),
            }
            ((*at).srcPitch, (*at).srcHeight) = (self.from.pitch as usize, height(&self.from));
            ((*at).dstPitch, (*at).dstHeight) = (self.to.pitch as usize, height(&self.to));
            ((*at).WidthInBytes, (*at).Height, (*at).Depth) = (width, rows, depth);
            description.assume_init()
        }
    }

    fn is_empty(&self) -> bool {
        self.extents.contains(&0)
    }

    /// Adds the program's current call if the copy may bring unwritten memory to the host.
    fn noted(mut self) -> Copy {
        if crate::initialized::is_wanted()
            && matches!((&self.to.place, &self.from.place), (Place::Host(_), Place::Device(_)))
        {
            self.by = crate::origin::caller().map(Into::into);
        }
        self
    }

    /// Performs the copy.
    ///
    /// # Errors
    /// If memory has been freed in the meantime.
    pub fn perform(&self) -> Result<(), Status> {
        let [width, height, depth] = self.extents;
        let whole = |side: &Side| side.pitch == width && (depth == 1 || side.slice == width * height);
        let (width, height, depth) = match whole(&self.from) && whole(&self.to) {
            true => (width * height * depth, 1, 1),
            false => (width, height, depth),
        };
        for z in 0..depth {
            for y in 0..height {
                let row = |side: &Side| side.slice * z + side.pitch * y;
                let (mut from, mut to, mut left) = (row(&self.from), row(&self.to), width);
                while left > 0 {
                    let part = left.min(self.from.place.rest(from)?).min(self.to.place.rest(to)?);
                    copy_bytes(&self.to.place, to, &self.from.place, from, part)?;
                    let sides = ((&self.to.place, to), (&self.from.place, from));
                    crate::initialized::copied(sides.0, sides.1, part, self.by.as_deref());
                    for (place, offset) in [sides.0, sides.1] {
                        if let Place::Device(address) = place {
                            stream_order::uses(address + offset, part, || Use::by("a copy"));
                        }
                    }
                    (from, to, left) = (from + part, to + part, left - part);
                }
            }
        }
        if let Place::Device(address) = self.to.place {
            crate::module::written(address, self.to.extent(self.extents).unwrap_or(0));
        }
        Ok(())
    }
}

/// Copies one row.
fn copy_bytes(to: &Place, to_offset: u64, from: &Place, from_offset: u64, bytes: u64) -> Result<(), Status> {
    let machine = &driver()?.machine;
    let pointer =
        |address: u64, offset: u64| std::ptr::with_exposed_provenance_mut::<u8>((address + offset) as usize);
    let gone = |_| Status::CUDA_ERROR_ILLEGAL_ADDRESS;
    // SAFETY: the program passes valid pointers to its memory. The copy was checked, and the device checks its own side.
    unsafe {
        match (to, from) {
            (Place::Device(to), Place::Device(from)) => {
                machine.copy(from + from_offset, to + to_offset, bytes).map_err(gone)
            }
            (Place::Device(to), Place::Host(from)) => {
                machine.copy_in(to + to_offset, pointer(*from, from_offset), bytes).map_err(gone)
            }
            (Place::Host(to), Place::Device(from)) => {
                machine.copy_out(from + from_offset, pointer(*to, to_offset), bytes).map_err(gone)
            }
            (Place::Host(to), Place::Host(from)) => {
                std::ptr::copy(pointer(*from, from_offset), pointer(*to, to_offset), bytes as usize);
                Ok(())
            }
            (to, Place::Bytes(from)) => {
                let part = usize::try_from(from_offset)
                    .ok()
                    .and_then(|start| from.get(start..)?.get(..bytes as usize));
                let part = part.ok_or(Status::CUDA_ERROR_INVALID_VALUE)?;
                match to {
                    Place::Device(to) => machine.copy_in(to + to_offset, part.as_ptr(), bytes).map_err(gone),
                    Place::Host(to) => {
                        std::ptr::copy(part.as_ptr(), pointer(*to, to_offset), bytes as usize);
                        Ok(())
                    }
                    Place::Bytes(_) => Err(Status::CUDA_ERROR_INVALID_VALUE),
                }
            }
            (Place::Bytes(_), _) => Err(Status::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

/// Performs a copy in stream order, and waits for it.
pub fn copy_now(stream: &Stream, copy: Copy) -> Result<(), Status> {
    if copy.is_empty() {
        return Ok(());
    }
    copy.check()?;
    stream.submit_and_wait(Operation::Copy(Box::new(copy.noted())))
}

/// Queues a copy. Pageable memory of the program is read now, and written before this returns (CUDA Driver API, "API
/// synchronization behavior").
pub fn copy_later(stream: &Stream, mut copy: Copy) -> Result<(), Status> {
    if copy.is_empty() {
        return Ok(());
    }
    copy.check()?;
    copy = copy.noted();
    if stream.is_capturing() {
        return stream.submit(Operation::Copy(Box::new(copy)));
    }
    if copy.to.is_pageable()? {
        return stream.submit_and_wait(Operation::Copy(Box::new(copy)));
    }
    if copy.from.is_pageable()?
        && let Place::Host(address) = copy.from.place
    {
        let bytes = copy.from.extent(copy.extents).ok_or(Status::CUDA_ERROR_INVALID_VALUE)?;
        let start = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the program passes a valid pointer to its memory.
        let bytes = unsafe { std::slice::from_raw_parts(start, bytes as usize) };
        copy.from.place = Place::Bytes(bytes.into());
    }
    stream.submit(Operation::Copy(Box::new(copy)))
}

/// The place of a device address, which may be in managed or pinned memory.
///
/// # Errors
/// If nothing is allocated there.
pub fn device_place(address: CUdeviceptr) -> Result<Place, Status> {
    driver()?.allocations.check(address, 0)?;
    Ok(Place::of(address))
}

/// The place of a pointer of the program.
pub fn host_place(pointer: *const c_void) -> Place {
    Place::of(pointer.expose_provenance() as u64)
}

/// One side of a box, as the program's structures describe it.
struct Described {
    memory_type: u32,
    host: *const c_void,
    device: CUdeviceptr,
    array: CUarray,
    x: usize,
    y: usize,
    z: usize,
    pitch: usize,
    height: usize,
}

impl Described {
    /// The side of a copy of `width` bytes, `rows` rows and `slices` slices.
    fn side(&self, [width, rows, slices]: [usize; 3]) -> Result<Side, Status> {
        const HOST: u32 = CUmemorytype::CU_MEMORYTYPE_HOST as u32;
        const DEVICE: u32 = CUmemorytype::CU_MEMORYTYPE_DEVICE as u32;
        const ARRAY: u32 = CUmemorytype::CU_MEMORYTYPE_ARRAY as u32;
        const UNIFIED: u32 = CUmemorytype::CU_MEMORYTYPE_UNIFIED as u32;
        let invalid = Status::CUDA_ERROR_INVALID_VALUE;
        let base = match self.memory_type {
            HOST => self.host.expose_provenance() as u64,
            DEVICE | UNIFIED => self.device,
            ARRAY => {
                let (start, size) = ([self.x, self.y, self.z], [width, rows, slices]);
                return array(self.array)?.side(start.map(|n| n as u64), size.map(|n| n as u64));
            }
            _ => return Err(invalid),
        };
        let (pitch, height) = (
            if self.pitch == 0 { width } else { self.pitch },
            if self.height == 0 { rows } else { self.height },
        );
        let slice = (pitch as u64).checked_mul(height as u64).ok_or(invalid)?;
        let offset = (self.z as u64)
            .checked_mul(slice)
            .and_then(|z| z.checked_add((self.y as u64).checked_mul(pitch as u64)?));
        let start = offset
            .and_then(|offset| offset.checked_add(self.x as u64))
            .and_then(|offset| base.checked_add(offset));
        let start = start.ok_or(invalid)?;
        if self.memory_type == DEVICE && driver()?.allocations.check(start, 0).is_err() {
            return Err(invalid);
        }
        Ok(Side { place: Place::of(start), pitch: pitch as u64, slice })
    }
}

/// Reads a field of an enumeration type, which may hold any value.
macro_rules! number {
    ($place:ident . $field:ident) => {{
        // SAFETY: the pointer is valid, and any 32 bits are a number.
        unsafe { std::ptr::addr_of!((*$place).$field).cast::<u32>().read() }
    }};
}

/// The copy that a `CUDA_MEMCPY2D` describes.
///
/// # Safety
/// A non-null pointer must point to a valid structure.
unsafe fn copy_2d(copy: *const CUDA_MEMCPY2D) -> Result<Copy, Status> {
    if copy.is_null() {
        return Err(Status::CUDA_ERROR_INVALID_VALUE);
    }
    macro_rules! field {
        ($field:ident) => {
            // SAFETY: the caller's promise.
            unsafe { std::ptr::addr_of!((*copy).$field).read() }
        };
    }
    let from = Described {
        memory_type: number!(copy.srcMemoryType),
        host: field!(srcHost),
        device: field!(srcDevice),
        array: field!(srcArray),
        x: field!(srcXInBytes),
        y: field!(srcY),
        z: 0,
        pitch: field!(srcPitch),
        height: 0,
    };
    let to = Described {
        memory_type: number!(copy.dstMemoryType),
        host: field!(dstHost).cast_const(),
        device: field!(dstDevice),
        array: field!(dstArray),
        x: field!(dstXInBytes),
        y: field!(dstY),
        z: 0,
        pitch: field!(dstPitch),
        height: 0,
    };
    boxed(&from, &to, [field!(WidthInBytes), field!(Height), 1])
}

/// The copy that a `CUDA_MEMCPY3D` describes. `CUDA_MEMCPY3D_PEER` has the same fields at other offsets.
macro_rules! copy_3d {
    ($name:ident, $structure:ty) => {
        /// The copy that the structure describes.
        ///
        /// # Errors
        /// If the structure describes no valid copy.
        ///
        /// # Safety
        /// A non-null pointer must point to a valid structure.
        pub unsafe fn $name(copy: *const $structure) -> Result<Copy, Status> {
            if copy.is_null() {
                return Err(Status::CUDA_ERROR_INVALID_VALUE);
            }
            macro_rules! field {
                ($field:ident) => {
                    // SAFETY: the caller's promise.
                    unsafe { std::ptr::addr_of!((*copy).$field).read() }
                };
            }
            if field!(srcLOD) != 0 || field!(dstLOD) != 0 {
                return Err(Status::CUDA_ERROR_INVALID_VALUE);
            }
            let from = Described {
                memory_type: number!(copy.srcMemoryType),
                host: field!(srcHost),
                device: field!(srcDevice),
                array: field!(srcArray),
                x: field!(srcXInBytes),
                y: field!(srcY),
                z: field!(srcZ),
                pitch: field!(srcPitch),
                height: field!(srcHeight),
            };
            let to = Described {
                memory_type: number!(copy.dstMemoryType),
                host: field!(dstHost).cast_const(),
                device: field!(dstDevice),
                array: field!(dstArray),
                x: field!(dstXInBytes),
                y: field!(dstY),
                z: field!(dstZ),
                pitch: field!(dstPitch),
                height: field!(dstHeight),
            };
            boxed(&from, &to, [field!(WidthInBytes), field!(Height), field!(Depth)])
        }
    };
}
copy_3d!(copy_3d, CUDA_MEMCPY3D);
copy_3d!(copy_3d_peer, CUDA_MEMCPY3D_PEER);

fn boxed(from: &Described, to: &Described, extents: [usize; 3]) -> Result<Copy, Status> {
    let lengths = extents;
    let extents = extents.map(|n| n as u64);
    if extents.contains(&0) {
        return Ok(Copy::linear(Place::Bytes([].into()), Place::Bytes([].into()), 0));
    }
    Ok(Copy { from: from.side(lengths)?, to: to.side(lengths)?, extents, by: None })
}

/// The stream of copies that do not name one.
fn default_stream(default: Default) -> Result<std::sync::Arc<Stream>, Status> {
    default.stream(std::ptr::null_mut())
}

api! { API:
    /// Copies from anywhere to anywhere.
    cuMemcpy 4000 "cuMemcpy" / 7000 "cuMemcpy_ptds" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize) |default| {
        copy_now(&*default_stream(default)?, Copy::linear(Place::of(to), Place::of(from), bytes as u64))
    }
    /// Copies from anywhere to anywhere, in a stream.
    cuMemcpyAsync 4000 "cuMemcpyAsync" / 7000 "cuMemcpyAsync_ptsz" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, Copy::linear(Place::of(to), Place::of(from), bytes as u64))
    }
    /// Copies from the host to the device.
    cuMemcpyHtoD 3020 "cuMemcpyHtoD_v2" / 7000 "cuMemcpyHtoD_v2_ptds" (to: CUdeviceptr, from: *const c_void, bytes: usize) |default| {
        let stream = default_stream(default)?;
        if bytes == 0 {
            return Ok(());
        }
        copy_now(&stream, Copy::linear(device_place(to)?, host_place(from), bytes as u64))
    }
    /// Copies from the host to the device, in a stream.
    cuMemcpyHtoDAsync 3020 "cuMemcpyHtoDAsync_v2" / 7000 "cuMemcpyHtoDAsync_v2_ptsz" (to: CUdeviceptr, from: *const c_void, bytes: usize, of: CUstream) |default| {
        let stream = default.stream(of)?;
        if bytes == 0 {
            return Ok(());
        }
        copy_later(&stream, Copy::linear(device_place(to)?, host_place(from), bytes as u64))
    }
    /// Copies from the device to the host.
    cuMemcpyDtoH 3020 "cuMemcpyDtoH_v2" / 7000 "cuMemcpyDtoH_v2_ptds" (to: *mut c_void, from: CUdeviceptr, bytes: usize) |default| {
        let stream = default_stream(default)?;
        if bytes == 0 {
            return Ok(());
        }
        copy_now(&stream, Copy::linear(host_place(to), device_place(from)?, bytes as u64))
    }
    /// Copies from the device to the host, in a stream.
    cuMemcpyDtoHAsync 3020 "cuMemcpyDtoHAsync_v2" / 7000 "cuMemcpyDtoHAsync_v2_ptsz" (to: *mut c_void, from: CUdeviceptr, bytes: usize, of: CUstream) |default| {
        let stream = default.stream(of)?;
        if bytes == 0 {
            return Ok(());
        }
        copy_later(&stream, Copy::linear(host_place(to), device_place(from)?, bytes as u64))
    }
    /// Copies within the device.
    cuMemcpyDtoD 3020 "cuMemcpyDtoD_v2" / 7000 "cuMemcpyDtoD_v2_ptds" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize) |default| {
        let stream = default_stream(default)?;
        if bytes == 0 {
            return Ok(());
        }
        copy_now(&stream, Copy::linear(device_place(to)?, device_place(from)?, bytes as u64))
    }
    /// Copies within the device, in a stream.
    cuMemcpyDtoDAsync 3020 "cuMemcpyDtoDAsync_v2" / 7000 "cuMemcpyDtoDAsync_v2_ptsz" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, of: CUstream) |default| {
        let stream = default.stream(of)?;
        if bytes == 0 {
            return Ok(());
        }
        copy_later(&stream, Copy::linear(device_place(to)?, device_place(from)?, bytes as u64))
    }
    /// Copies from one context to another.
    cuMemcpyPeer 4000 "cuMemcpyPeer" / 7000 "cuMemcpyPeer_ptds" (to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize) |default| {
        crate::context::context(to_context)?;
        crate::context::context(from_context)?;
        copy_now(&*default_stream(default)?, Copy::linear(device_place(to)?, device_place(from)?, bytes as u64))
    }
    /// Copies from one context to another, in a stream.
    cuMemcpyPeerAsync 4000 "cuMemcpyPeerAsync" / 7000 "cuMemcpyPeerAsync_ptsz" (to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize, of: CUstream) |default| {
        crate::context::context(to_context)?;
        crate::context::context(from_context)?;
        copy_later(&*default.stream(of)?, Copy::linear(device_place(to)?, device_place(from)?, bytes as u64))
    }
    /// Copies rows.
    cuMemcpy2D 3020 "cuMemcpy2D_v2" / 7000 "cuMemcpy2D_v2_ptds" (copy: *const CUDA_MEMCPY2D) |default| {
        copy_now(&*default_stream(default)?, copy_2d(copy)?)
    }
    /// Copies rows whose pitch may be anything, as it may with `cuMemcpy2D` here.
    cuMemcpy2DUnaligned 3020 "cuMemcpy2DUnaligned_v2" / 7000 "cuMemcpy2DUnaligned_v2_ptds" (copy: *const CUDA_MEMCPY2D) |default| {
        copy_now(&*default_stream(default)?, copy_2d(copy)?)
    }
    /// Copies rows, in a stream.
    cuMemcpy2DAsync 3020 "cuMemcpy2DAsync_v2" / 7000 "cuMemcpy2DAsync_v2_ptsz" (copy: *const CUDA_MEMCPY2D, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, copy_2d(copy)?)
    }
    /// Copies slices of rows.
    cuMemcpy3D 3020 "cuMemcpy3D_v2" / 7000 "cuMemcpy3D_v2_ptds" (copy: *const CUDA_MEMCPY3D) |default| {
        copy_now(&*default_stream(default)?, copy_3d(copy)?)
    }
    /// Copies slices of rows, in a stream.
    cuMemcpy3DAsync 3020 "cuMemcpy3DAsync_v2" / 7000 "cuMemcpy3DAsync_v2_ptsz" (copy: *const CUDA_MEMCPY3D, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, copy_3d(copy)?)
    }
    /// Copies slices of rows between contexts.
    cuMemcpy3DPeer 4000 "cuMemcpy3DPeer" / 7000 "cuMemcpy3DPeer_ptds" (copy: *const CUDA_MEMCPY3D_PEER) |default| {
        copy_now(&*default_stream(default)?, copy_3d_peer(copy)?)
    }
    /// Copies slices of rows between contexts, in a stream.
    cuMemcpy3DPeerAsync 4000 "cuMemcpy3DPeerAsync" / 7000 "cuMemcpy3DPeerAsync_ptsz" (copy: *const CUDA_MEMCPY3D_PEER, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, copy_3d_peer(copy)?)
    }
}
