//! CUDA arrays: images in device memory. Their layout is our own (docs/textures.md).

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use cudarc::driver::sys::{
    CUDA_ARRAY_MEMORY_REQUIREMENTS, CUarray, CUdevice, CUdeviceptr, CUmipmappedArray, CUstream,
};
use ptxvm::{Channel, Geometry, Image, ImageDescriptor, TexelFormat};

use crate::api::api;
use crate::context::Context;
use crate::copy::{Copy, Place, Side, copy_later, copy_now, device_place, host_place};
use crate::driver::driver;
use crate::handles::{Handles, handle_of};
use crate::lock;
use crate::memory::Kind;
use crate::pointers::{In, Out, required};
use crate::stream::Default as DefaultStream;
use crate::{INVALID, Status};

/// The arrays and mipmapped arrays that have not been destroyed.
pub static ARRAYS: Handles<Array> = Handles::new();
pub static MIPMAPPED: Handles<Array> = Handles::new();

const LAYERED: u32 = 1;
const CUBEMAP: u32 = 4;
const FLAGS: u32 = 0x3f;

/// A description from a program (`CUDA_ARRAY3D_DESCRIPTOR`). Its format may be any value, so it is a number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub format: u32,
    pub channels: u32,
    pub flags: u32,
}

/// A description of one or two dimensions (`CUDA_ARRAY_DESCRIPTOR`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlaneDescription {
    pub width: usize,
    pub height: usize,
    pub format: u32,
    pub channels: u32,
}

impl From<PlaneDescription> for Description {
    fn from(PlaneDescription { width, height, format, channels }: PlaneDescription) -> Description {
        Description { width, height, depth: 0, format, channels, flags: 0 }
    }
}

impl From<Description> for PlaneDescription {
    fn from(Description { width, height, format, channels, .. }: Description) -> PlaneDescription {
        PlaneDescription { width, height, format, channels }
    }
}

/// An array, or one with mipmap levels.
pub struct Array {
    pub image: Image,
    pub description: Description,
    /// The number of its context; `None` for a level, which lives as long as its mipmapped array.
    context: Option<u64>,
    /// Its levels, once the program has asked for their handles.
    levels: std::sync::Mutex<Vec<Arc<Array>>>,
}

/// The format of a texel.
///
/// # Errors
/// If the format is unknown or not supported.
pub fn format(number: u32, channels: u32) -> Result<TexelFormat, Status> {
    let (channel, channels) = match number {
        1 => (Channel::U8, channels),
        2 => (Channel::U16, channels),
        3 => (Channel::U32, channels),
        8 => (Channel::S8, channels),
        9 => (Channel::S16, channels),
        10 => (Channel::S32, channels),
        16 => (Channel::F16, channels),
        32 => (Channel::F32, channels),
        192..=194 => (Channel::Unorm8, 1 << (number - 192)),
        195..=197 => (Channel::Unorm16, 1 << (number - 195)),
        198..=200 => (Channel::Snorm8, 1 << (number - 198)),
        201..=203 => (Channel::Snorm16, 1 << (number - 201)),
        // Compressed and video formats.
        80..=94 | 145..=183 => return Err(Status::CUDA_ERROR_NOT_SUPPORTED),
        _ => return Err(INVALID),
    };
    let channels =
        u8::try_from(channels).ok().filter(|channels| matches!(channels, 1 | 2 | 4)).ok_or(INVALID)?;
    TexelFormat::new(channel, channels).ok_or(INVALID)
}

impl Description {
    /// The image that the description specifies.
    fn descriptor(&self, levels: u32) -> Result<ImageDescriptor, Status> {
        let size = |n: usize| u32::try_from(n).map_err(|_| INVALID);
        let (width, height, depth) = (size(self.width)?, size(self.height)?, size(self.depth)?);
        let layered = self.flags & LAYERED != 0;
        let cube = self.flags & CUBEMAP != 0;
        if width == 0 || self.flags & !FLAGS != 0 {
            return Err(INVALID);
        }
        let (geometry, extents, layers) = match () {
            () if cube && !layered && depth != 6 => return Err(INVALID),
            () if cube && layered => (Geometry::CubeArray, [width, height, 1], depth),
            () if cube => (Geometry::Cube, [width, height, 1], 6),
            () if layered && height == 0 => (Geometry::LineArray, [width, 1, 1], depth),
            () if layered => (Geometry::PlaneArray, [width, height, 1], depth),
            () if depth > 0 && height == 0 => return Err(INVALID),
            () if depth > 0 => (Geometry::Volume, [width, height, depth], 1),
            () if height > 0 => (Geometry::Plane, [width, height, 1], 1),
            () => (Geometry::Line, [width, 1, 1], 1),
        };
        let image = ImageDescriptor::new(geometry, format(self.format, self.channels)?, extents);
        Ok(ImageDescriptor { layers, levels, ..image })
    }
}

impl Array {
    fn new(description: Description, levels: u32) -> Result<Arc<Array>, Status> {
        let (driver, context) = (driver()?, Context::current()?);
        let descriptor = description.descriptor(levels)?;
        let image = driver.device.image(descriptor).map_err(|error| crate::status::of_error(&error))?;
        driver.allocations.insert(image.address(), image.bytes(), Kind::Array, &context);
        Ok(Arc::new(Array {
            image,
            description,
            context: Some(context.id),
            levels: std::sync::Mutex::default(),
        }))
    }

    /// A mipmap level as an array.
    fn level(self: &Arc<Array>, level: u32) -> Result<Arc<Array>, Status> {
        let mut levels = lock(&self.levels);
        while levels.len() <= level as usize {
            let next = levels.len() as u32;
            let image = self.image.level(next).ok_or(INVALID)?;
            let half = |n: usize| if n == 0 { 0 } else { (n >> next).max(1) };
            let of = self.description;
            let depth = if of.flags & (LAYERED | CUBEMAP) == 0 { half(of.depth) } else { of.depth };
            let description = Description { width: half(of.width), height: half(of.height), depth, ..of };
            let array = Array { image, description, context: None, levels: std::sync::Mutex::default() };
            let array = Arc::new(array);
            ARRAYS.insert::<()>(Arc::clone(&array));
            levels.push(array);
        }
        Ok(Arc::clone(&levels[level as usize]))
    }

    /// The side of a copy that starts at an offset: byte in the row, row, slice.
    ///
    /// # Errors
    /// If the box is not within the array.
    pub fn side(&self, start: [u64; 3], size: [u64; 3]) -> Result<Side, Status> {
        let whole = self.image.whole(0).ok_or(INVALID)?.size;
        let fits = |i: usize| start[i].checked_add(size[i]).is_some_and(|end| end <= whole[i]);
        if !(0..3).all(fits) {
            return Err(INVALID);
        }
        let address = |at: [u64; 3]| self.image.address_of(0, at);
        let origin = address([0; 3]).ok_or(INVALID)?;
        let pitch = address([0, 1, 0]).map_or(whole[0], |next| next - origin);
        let slice = address([0, 0, 1]).map_or(pitch * whole[1], |next| next - origin);
        Ok(Side { place: Place::Device(address(start).ok_or(INVALID)?), pitch, slice })
    }

    /// Bytes of a one-dimensional array.
    fn line(&self, offset: usize, bytes: usize) -> Result<Place, Status> {
        Ok(self.side([offset as u64, 0, 0], [bytes as u64, 1, 1])?.place)
    }

    /// Invalidates the handles of its levels, and removes its allocation.
    fn destroy(&self) {
        for level in lock(&self.levels).drain(..) {
            ARRAYS.remove::<()>(handle_of(&level));
        }
        if let Ok(driver) = driver() {
            driver.allocations.remove(self.image.address(), |kind| kind == Kind::Array);
        }
    }
}

/// Removes the arrays of a context.
pub fn forget(context: u64) {
    for arrays in [&ARRAYS, &MIPMAPPED] {
        arrays.remove_if(|array| array.context == Some(context)).iter().for_each(|array| array.destroy());
    }
}

/// The array of a handle.
///
/// # Errors
/// If the handle is invalid.
pub fn array(handle: CUarray) -> Result<Arc<Array>, Status> {
    driver()?;
    ARRAYS.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
}

/// The mipmapped array of a handle.
///
/// # Errors
/// If the handle is invalid.
pub fn mipmapped(handle: CUmipmappedArray) -> Result<Arc<Array>, Status> {
    driver()?;
    MIPMAPPED.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)
}

fn create(result: Out<CUarray>, description: Description) -> Result<(), Status> {
    required(result.pointer())?;
    let array = Array::new(description, 1)?;
    ARRAYS.give(result, array)
}

/// Destroys an array after all operations that may use it.
fn destroy<H>(arrays: &Handles<Array>, handle: *mut H) -> Result<(), Status> {
    let context = Context::current()?;
    let array = arrays.get(handle).ok_or(Status::CUDA_ERROR_INVALID_HANDLE)?;
    // A level is destroyed with its mipmapped array.
    array.context.ok_or(INVALID)?;
    context.synchronize()?;
    arrays.remove(handle);
    array.destroy();
    Ok(())
}

fn copy_line(default: DefaultStream, to: Place, from: Place, bytes: usize) -> Result<(), Status> {
    copy_now(&*default.stream(std::ptr::null_mut())?, Copy::linear(to, from, bytes as u64))
}

fn requirements(result: Out<CUDA_ARRAY_MEMORY_REQUIREMENTS>, array: &Array) -> Result<(), Status> {
    let bytes = array.image.bytes() as usize;
    result.write(CUDA_ARRAY_MEMORY_REQUIREMENTS { size: bytes, alignment: 512, reserved: [0; 4] })
}

api! { API:
    /// Makes an array of one or two dimensions.
    cuArrayCreate 3020 "cuArrayCreate_v2" (result: Out<CUarray>, description: In<PlaneDescription>) {
        Context::current()?;
        create(result, description.read()?.into())
    }
    /// Makes an array: with slices, layers or the faces of a cube, too.
    cuArray3DCreate 3020 "cuArray3DCreate_v2" (result: Out<CUarray>, description: In<Description>) {
        Context::current()?;
        create(result, description.read()?)
    }
    /// What an array was made as.
    cuArrayGetDescriptor 3020 "cuArrayGetDescriptor_v2" (result: Out<PlaneDescription>, of: CUarray) {
        result.write(array(of)?.description.into())
    }
    /// What an array was made as.
    cuArray3DGetDescriptor 3020 "cuArray3DGetDescriptor_v2" (result: Out<Description>, of: CUarray) {
        result.write(array(of)?.description)
    }
    /// Bytes that an array takes.
    cuArrayGetMemoryRequirements 11060 "cuArrayGetMemoryRequirements" (result: Out<CUDA_ARRAY_MEMORY_REQUIREMENTS>, of: CUarray, device: CUdevice) {
        driver()?.ordinal(device)?;
        requirements(result, &*array(of)?)
    }
    /// Destroys an array.
    cuArrayDestroy 2000 "cuArrayDestroy" (of: CUarray) {
        destroy(&ARRAYS, of)
    }
    /// Makes an array with mipmap levels.
    cuMipmappedArrayCreate 5000 "cuMipmappedArrayCreate" (result: Out<CUmipmappedArray>, description: In<Description>, levels: c_uint) {
        Context::current()?;
        if result.is_null() || levels == 0 {
            return Err(INVALID);
        }
        let description = description.read()?;
        let largest = description.width.max(description.height).max(if description.flags & (LAYERED | CUBEMAP) == 0 { description.depth } else { 0 });
        let most = usize::BITS - largest.leading_zeros();
        let array = Array::new(description, levels.min(most.max(1)))?;
        MIPMAPPED.give(result, array)
    }
    /// A mipmap level of an array.
    cuMipmappedArrayGetLevel 5000 "cuMipmappedArrayGetLevel" (result: Out<CUarray>, of: CUmipmappedArray, level: c_uint) {
        result.write(handle_of(&mipmapped(of)?.level(level)?))
    }
    /// Bytes that an array with mipmap levels takes.
    cuMipmappedArrayGetMemoryRequirements 11060 "cuMipmappedArrayGetMemoryRequirements" (result: Out<CUDA_ARRAY_MEMORY_REQUIREMENTS>, of: CUmipmappedArray, device: CUdevice) {
        driver()?.ordinal(device)?;
        requirements(result, &*mipmapped(of)?)
    }
    /// Destroys an array with mipmap levels.
    cuMipmappedArrayDestroy 5000 "cuMipmappedArrayDestroy" (of: CUmipmappedArray) {
        destroy(&MIPMAPPED, of)
    }
    /// Copies from the host to a line of an array.
    cuMemcpyHtoA 3020 "cuMemcpyHtoA_v2" / 7000 "cuMemcpyHtoA_v2_ptds" (to: CUarray, offset: usize, from: *const c_void, bytes: usize) |default| {
        copy_line(default, array(to)?.line(offset, bytes)?, host_place(from), bytes)
    }
    /// Copies from the host to a line of an array, in a stream.
    cuMemcpyHtoAAsync 3020 "cuMemcpyHtoAAsync_v2" / 7000 "cuMemcpyHtoAAsync_v2_ptsz" (to: CUarray, offset: usize, from: *const c_void, bytes: usize, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, Copy::linear(array(to)?.line(offset, bytes)?, host_place(from), bytes as u64))
    }
    /// Copies from a line of an array to the host.
    cuMemcpyAtoH 3020 "cuMemcpyAtoH_v2" / 7000 "cuMemcpyAtoH_v2_ptds" (to: *mut c_void, from: CUarray, offset: usize, bytes: usize) |default| {
        copy_line(default, host_place(to), array(from)?.line(offset, bytes)?, bytes)
    }
    /// Copies from a line of an array to the host, in a stream.
    cuMemcpyAtoHAsync 3020 "cuMemcpyAtoHAsync_v2" / 7000 "cuMemcpyAtoHAsync_v2_ptsz" (to: *mut c_void, from: CUarray, offset: usize, bytes: usize, of: CUstream) |default| {
        copy_later(&*default.stream(of)?, Copy::linear(host_place(to), array(from)?.line(offset, bytes)?, bytes as u64))
    }
    /// Copies from the device to a line of an array.
    cuMemcpyDtoA 3020 "cuMemcpyDtoA_v2" / 7000 "cuMemcpyDtoA_v2_ptds" (to: CUarray, offset: usize, from: CUdeviceptr, bytes: usize) |default| {
        copy_line(default, array(to)?.line(offset, bytes)?, device_place(from)?, bytes)
    }
    /// Copies from a line of an array to the device.
    cuMemcpyAtoD 3020 "cuMemcpyAtoD_v2" / 7000 "cuMemcpyAtoD_v2_ptds" (to: CUdeviceptr, from: CUarray, offset: usize, bytes: usize) |default| {
        copy_line(default, device_place(to)?, array(from)?.line(offset, bytes)?, bytes)
    }
    /// Copies from a line of an array to that of another.
    cuMemcpyAtoA 3020 "cuMemcpyAtoA_v2" / 7000 "cuMemcpyAtoA_v2_ptds" (to: CUarray, to_offset: usize, from: CUarray, from_offset: usize, bytes: usize) |default| {
        copy_line(default, array(to)?.line(to_offset, bytes)?, array(from)?.line(from_offset, bytes)?, bytes)
    }
}
