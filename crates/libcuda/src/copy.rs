//! Copies: of contiguous bytes, and of boxes of rows.

use std::ffi::c_void;
use std::sync::Arc;

use caller::structures::{ARRAY, BoxCopy, BoxSide, DEVICE, HOST, UNIFIED};
use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray, CUcontext, CUdeviceptr, CUstream,
};

use crate::api::api;
use crate::array::array;
use crate::context::{CONTEXTS, Context};
use crate::driver::driver;
use crate::memory::DEVICE_BASE;
use crate::operation::Operation;
use crate::pointers::In;
use crate::stream::{Default, Stream};
use crate::stream_order::{self, Use};
use crate::{INVALID, Status};

/// Where the bytes of a copy are.
#[derive(Clone, Debug)]
pub enum Place {
    /// At a host address. Managed and pinned memory has one, too.
    Host(u64),
    /// At an address that only the device has.
    Device(u64),
    /// In a buffer that was copied from the program beforehand.
    Bytes(Arc<[u8]>),
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
        let bytes = self.extent(extents).ok_or(INVALID)?;
        let allocations = &driver()?.allocations;
        match self.place {
            Place::Device(address) => allocations.check(address, bytes),
            // No process maps this page.
            Place::Host(address) if address < 4096 => Err(INVALID),
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
    pub by: Option<Arc<str>>,
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
            return Err(INVALID);
        }
        self.from.check(self.extents)?;
        self.to.check(self.extents)
    }

    /// The copy as the driver's structure, for a program that queries it.
    pub fn describe(&self) -> BoxCopy {
        let side = |side: &Side| {
            let (memory_type, host, device) = match side.place {
                Place::Device(address) => (DEVICE, 0, address),
                Place::Host(address) => (HOST, address, 0),
                Place::Bytes(_) => (HOST, 0, 0),
            };
            BoxSide {
                start: [0; 3],
                level: 0,
                memory_type,
                host: std::ptr::with_exposed_provenance_mut(host as usize),
                device,
                array: std::ptr::null_mut(),
                context: std::ptr::null_mut(),
                pitch: side.pitch as usize,
                height: side.slice.checked_div(side.pitch).unwrap_or(0) as usize,
            }
        };
        let extents = self.extents.map(|n| n as usize);
        BoxCopy { from: side(&self.from), to: side(&self.to), extents }
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
                let part = part.ok_or(INVALID)?;
                match to {
                    Place::Device(to) => machine.copy_in(to + to_offset, part.as_ptr(), bytes).map_err(gone),
                    Place::Host(to) => {
                        std::ptr::copy(part.as_ptr(), pointer(*to, to_offset), bytes as usize);
                        Ok(())
                    }
                    Place::Bytes(_) => Err(INVALID),
                }
            }
            (Place::Bytes(_), _) => Err(INVALID),
        }
    }
}

/// Performs a copy in stream order, and waits for it.
pub fn copy_now(stream: &Stream, copy: Copy) -> Result<(), Status> {
    if copy.is_empty() {
        return Ok(());
    }
    copy.check()?;
    let others = other_devices(stream, &copy)?;
    others.iter().for_each(|other| stream.wait_for_all_work_of(other));
    stream.submit_and_wait(Operation::Copy(Box::new(copy.noted())))
}

/// The contexts whose work a copy between devices is ordered with, besides that of its stream. In the default stream, such a copy
/// starts when all earlier work of both devices is done, and later work of both starts behind it (CUDA C++ Programming Guide,
/// "Peer-to-Peer Memory Copy").
fn other_devices(stream: &Stream, copy: &Copy) -> Result<Vec<Arc<Context>>, Status> {
    let driver = driver()?;
    if driver.config.count() < 2 || !stream.is_legacy() {
        return Ok(Vec::new());
    }
    let owner = |side: &Side| match side.place {
        Place::Device(address) => driver.allocations.find(address),
        _ => None,
    };
    let own = stream.context()?;
    let owners = [owner(&copy.from), owner(&copy.to)];
    let others = owners.iter().flatten().filter(|owner| owner.device != own.device);
    let contexts = others.filter_map(|owner| CONTEXTS.find(|context| context.id == owner.context));
    Ok(contexts.collect())
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
    let others = other_devices(stream, &copy)?;
    others.iter().for_each(|other| stream.wait_for_all_work_of(other));
    if copy.to.is_pageable()? {
        return stream.submit_and_wait(Operation::Copy(Box::new(copy)));
    }
    if copy.from.is_pageable()?
        && let Place::Host(address) = copy.from.place
    {
        let bytes = copy.from.extent(copy.extents).ok_or(INVALID)?;
        let start = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the program passes a valid pointer to its memory.
        let bytes = unsafe { std::slice::from_raw_parts(start, bytes as usize) };
        copy.from.place = Place::Bytes(bytes.into());
    }
    stream.submit(Operation::Copy(Box::new(copy)))?;
    others.iter().for_each(|other| other.legacy.wait_for_work_of(stream));
    Ok(())
}

/// The place of a device address, which may be in managed or pinned memory.
///
/// # Errors
/// If nothing is allocated there.
pub fn device_place(address: CUdeviceptr) -> Result<Place, Status> {
    driver()?.allocations.check(address, 0)?;
    Ok(Place::of(address))
}

/// The same for so many bytes. No bytes may be anywhere.
fn bytes_at(address: CUdeviceptr, bytes: usize) -> Result<Place, Status> {
    if bytes == 0 { Ok(Place::of(address)) } else { device_place(address) }
}

/// The place of a pointer of the program.
pub fn host_place(pointer: *const c_void) -> Place {
    Place::of(pointer.expose_provenance() as u64)
}

/// One side of a copy of `width` bytes, `rows` rows and `slices` slices.
fn side(described: &BoxSide, [width, rows, slices]: [usize; 3]) -> Result<Side, Status> {
    let start = described.start.map(|n| n as u64);
    let base = match described.memory_type {
        HOST => described.host.expose_provenance() as u64,
        DEVICE | UNIFIED => described.device,
        ARRAY => {
            let size = [width, rows, slices].map(|n| n as u64);
            return array(described.array.cast())?.side(start, size);
        }
        _ => return Err(INVALID),
    };
    let (pitch, height) = (
        if described.pitch == 0 { width } else { described.pitch },
        if described.height == 0 { rows } else { described.height },
    );
    let slice = (pitch as u64).checked_mul(height as u64).ok_or(INVALID)?;
    let [x, y, z] = start;
    let offset = z.checked_mul(slice).and_then(|z| z.checked_add(y.checked_mul(pitch as u64)?));
    let start = offset.and_then(|offset| offset.checked_add(x)).and_then(|offset| base.checked_add(offset));
    let start = start.ok_or(INVALID)?;
    if described.memory_type == DEVICE && driver()?.allocations.check(start, 0).is_err() {
        return Err(INVALID);
    }
    Ok(Side { place: Place::of(start), pitch: pitch as u64, slice })
}

/// `CUDA_MEMCPY2D`: a copy of rows. Its memory types may be any numbers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RowCopy {
    from: RowSide,
    to: RowSide,
    extents: [usize; 2],
}

/// One side of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct RowSide {
    start: [usize; 2],
    memory_type: u32,
    host: *mut c_void,
    device: CUdeviceptr,
    array: CUarray,
    pitch: usize,
}

const _: () = assert!(size_of::<RowCopy>() == size_of::<CUDA_MEMCPY2D>());
const _: () = assert!(size_of::<BoxCopy>() == size_of::<CUDA_MEMCPY3D>());
const _: () = assert!(size_of::<BoxCopy>() == size_of::<CUDA_MEMCPY3D_PEER>());

impl From<RowSide> for BoxSide {
    fn from(RowSide { start: [x, y], memory_type, host, device, array, pitch }: RowSide) -> BoxSide {
        let (array, context) = (array.cast(), std::ptr::null_mut());
        BoxSide { start: [x, y, 0], level: 0, memory_type, host, device, array, context, pitch, height: 0 }
    }
}

/// The copy of rows that the program describes.
fn copy_2d(described: In<RowCopy>) -> Result<Copy, Status> {
    let RowCopy { from, to, extents: [width, rows] } = described.read()?;
    copy_of(&BoxCopy { from: from.into(), to: to.into(), extents: [width, rows, 1] })
}

/// The copy of slices that the program describes.
///
/// # Errors
/// If it describes no valid copy.
pub fn copy_3d(described: In<BoxCopy>) -> Result<Copy, Status> {
    copy_of(&described.read()?)
}

fn copy_of(BoxCopy { from, to, extents }: &BoxCopy) -> Result<Copy, Status> {
    if from.level != 0 || to.level != 0 {
        return Err(INVALID);
    }
    if extents.contains(&0) {
        return Ok(Copy::linear(Place::Bytes([].into()), Place::Bytes([].into()), 0));
    }
    let (from, to) = (side(from, *extents)?, side(to, *extents)?);
    Ok(Copy { from, to, extents: extents.map(|n| n as u64), by: None })
}

/// The stream of copies that do not name one.
fn default_stream(default: Default) -> Result<Arc<Stream>, Status> {
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
        copy_now(&*default_stream(default)?, Copy::linear(bytes_at(to, bytes)?, host_place(from), bytes as u64))
    }
    /// Copies from the host to the device, in a stream.
    cuMemcpyHtoDAsync 3020 "cuMemcpyHtoDAsync_v2" / 7000 "cuMemcpyHtoDAsync_v2_ptsz" (to: CUdeviceptr, from: *const c_void, bytes: usize, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, Copy::linear(bytes_at(to, bytes)?, host_place(from), bytes as u64))
    }
    /// Copies from the device to the host.
    cuMemcpyDtoH 3020 "cuMemcpyDtoH_v2" / 7000 "cuMemcpyDtoH_v2_ptds" (to: *mut c_void, from: CUdeviceptr, bytes: usize) |default| {
        copy_now(&*default_stream(default)?, Copy::linear(host_place(to), bytes_at(from, bytes)?, bytes as u64))
    }
    /// Copies from the device to the host, in a stream.
    cuMemcpyDtoHAsync 3020 "cuMemcpyDtoHAsync_v2" / 7000 "cuMemcpyDtoHAsync_v2_ptsz" (to: *mut c_void, from: CUdeviceptr, bytes: usize, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, Copy::linear(host_place(to), bytes_at(from, bytes)?, bytes as u64))
    }
    /// Copies within the device.
    cuMemcpyDtoD 3020 "cuMemcpyDtoD_v2" / 7000 "cuMemcpyDtoD_v2_ptds" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize) |default| {
        copy_now(&*default_stream(default)?, Copy::linear(bytes_at(to, bytes)?, bytes_at(from, bytes)?, bytes as u64))
    }
    /// Copies within the device, in a stream.
    cuMemcpyDtoDAsync 3020 "cuMemcpyDtoDAsync_v2" / 7000 "cuMemcpyDtoDAsync_v2_ptsz" (to: CUdeviceptr, from: CUdeviceptr, bytes: usize, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, Copy::linear(bytes_at(to, bytes)?, bytes_at(from, bytes)?, bytes as u64))
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
    cuMemcpy2D 3020 "cuMemcpy2D_v2" / 7000 "cuMemcpy2D_v2_ptds" (copy: In<RowCopy>) |default| {
        copy_now(&*default_stream(default)?, copy_2d(copy)?)
    }
    /// Copies rows whose pitch may be anything, as it may with `cuMemcpy2D` here.
    cuMemcpy2DUnaligned 3020 "cuMemcpy2DUnaligned_v2" / 7000 "cuMemcpy2DUnaligned_v2_ptds" (copy: In<RowCopy>) |default| {
        copy_now(&*default_stream(default)?, copy_2d(copy)?)
    }
    /// Copies rows, in a stream.
    cuMemcpy2DAsync 3020 "cuMemcpy2DAsync_v2" / 7000 "cuMemcpy2DAsync_v2_ptsz" (copy: In<RowCopy>, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, copy_2d(copy)?)
    }
    /// Copies slices of rows.
    cuMemcpy3D 3020 "cuMemcpy3D_v2" / 7000 "cuMemcpy3D_v2_ptds" (copy: In<BoxCopy>) |default| {
        copy_now(&*default_stream(default)?, copy_3d(copy)?)
    }
    /// Copies slices of rows, in a stream.
    cuMemcpy3DAsync 3020 "cuMemcpy3DAsync_v2" / 7000 "cuMemcpy3DAsync_v2_ptsz" (copy: In<BoxCopy>, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, copy_3d(copy)?)
    }
    /// Copies slices of rows between contexts.
    cuMemcpy3DPeer 4000 "cuMemcpy3DPeer" / 7000 "cuMemcpy3DPeer_ptds" (copy: In<BoxCopy>) |default| {
        copy_now(&*default_stream(default)?, copy_3d(copy)?)
    }
    /// Copies slices of rows between contexts, in a stream.
    cuMemcpy3DPeerAsync 4000 "cuMemcpy3DPeerAsync" / 7000 "cuMemcpy3DPeerAsync_ptsz" (copy: In<BoxCopy>, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, copy_3d(copy)?)
    }
}
