//! Images, textures, samplers and surfaces.

use std::ops::Range;
use std::sync::Arc;

use machine::{FaultKind, ObjectError};
use sem::texture::{Image as Layout, ImageDescriptor, Sampler, TexelFormat};

use crate::{Buffer, Device, Error};

/// Texels in device memory: what CUDA calls an array, or a mipmapped array.
///
/// Cheap to clone; clones are the same memory. The memory is freed when the last clone is dropped and every texture
/// and surface of it is gone.
#[derive(Clone)]
pub struct Image {
    buffer: Buffer,
    /// Offset of the first texel in the buffer.
    offset: u64,
    layout: Arc<Layout>,
}

/// A part of one mipmap level of an image: its start and its size, each as bytes of a row, rows, and slices. The
/// layers of an array and the faces of a cube count as slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// The mipmap level; 0 is the largest.
    pub level: u32,
    /// The first byte of each row, the first row of each slice, the first slice.
    pub start: [u64; 3],
    /// Bytes, rows and slices.
    pub size: [u64; 3],
}

impl Image {
    /// The descriptor that the image was made from.
    pub fn descriptor(&self) -> &ImageDescriptor {
        self.layout.descriptor()
    }

    /// Device address of the first byte.
    pub fn address(&self) -> u64 {
        self.buffer.address() + self.offset
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.layout.bytes()
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// One mipmap level as an image that shares the memory; `None` if the image has no such level.
    pub fn level(&self, level: u32) -> Option<Image> {
        let (start, layout) = self.layout.level(level)?;
        Some(Image { buffer: self.buffer.clone(), offset: self.offset + start, layout: Arc::new(layout) })
    }

    /// Some of its levels and layers as an image that shares the memory, with texels in a format of the same size; `None`
    /// if the image does not have them, or the size differs.
    pub fn view(&self, format: TexelFormat, levels: Range<u32>, layers: Range<u32>) -> Option<Image> {
        let layout = Arc::new(self.layout.view(format, levels, layers)?);
        Some(Image { buffer: self.buffer.clone(), offset: self.offset, layout })
    }

    /// The whole level; `None` if the image has no such level.
    pub fn whole(&self, level: u32) -> Option<Region> {
        let [_, size] = self.pitches_and_size(level)?;
        Some(Region { level, start: [0; 3], size })
    }

    /// Device address of a byte in a row of a slice; `None` if there is no such row. Copies within the device use it:
    /// each row is contiguous.
    pub fn address_of(&self, level: u32, [byte, row, slice]: [u64; 3]) -> Option<u64> {
        let [[_, row_pitch, slice_pitch], [bytes, rows, slices]] = self.pitches_and_size(level)?;
        let start = self.layout.levels().get(level as usize)?.start;
        let inside = byte < bytes && row < rows && slice < slices;
        inside.then(|| self.address() + start + slice * slice_pitch + row * row_pitch + byte)
    }

    /// Copies bytes in. In `data`, rows are `row_pitch` bytes apart and slices `slice_pitch` bytes.
    ///
    /// # Errors
    /// [`Error::Memory`] when the region exceeds the image, or `data` is too short.
    pub fn write_region(
        &self,
        region: &Region,
        data: &[u8],
        [row_pitch, slice_pitch]: [u64; 2],
    ) -> Result<(), Error> {
        self.check(region, data.len(), [row_pitch, slice_pitch])?;
        self.each_row(region, [row_pitch, slice_pitch], |address, at, bytes| {
            self.device().write_at(address, &data[at..at + bytes])
        })
    }

    /// Copies bytes out, laid out as for [`Image::write_region`].
    ///
    /// # Errors
    /// [`Error::Memory`] when the region exceeds the image, or `data` is too short.
    pub fn read_region(
        &self,
        region: &Region,
        data: &mut [u8],
        [row_pitch, slice_pitch]: [u64; 2],
    ) -> Result<(), Error> {
        self.check(region, data.len(), [row_pitch, slice_pitch])?;
        self.each_row(region, [row_pitch, slice_pitch], |address, at, bytes| {
            self.device().read_at(address, &mut data[at..at + bytes])
        })
    }

    /// The pitches of a level (bytes from texel to texel, row to row and slice to slice), and its size in bytes of a
    /// row, rows and slices.
    fn pitches_and_size(&self, level: u32) -> Option<[[u64; 3]; 2]> {
        let descriptor = self.descriptor();
        let level = self.layout.levels().get(level as usize)?;
        let texel = descriptor.format.bytes() as u64 * u64::from(descriptor.samples);
        let [width, height, depth] = level.extent.map(u64::from);
        // An image has several slices or several layers, never both.
        let (slice_pitch, slices) = match descriptor.layers {
            1 => (level.slice_pitch, depth),
            layers => (level.layer_pitch, layers.into()),
        };
        Some([[texel, level.row_pitch, slice_pitch], [width * texel, height, slices]])
    }

    fn check(
        &self,
        region: &Region,
        available: usize,
        [row_pitch, slice_pitch]: [u64; 2],
    ) -> Result<(), Error> {
        let fits = || {
            let [_, size] = self.pitches_and_size(region.level)?;
            let ends = region.start.iter().zip(&region.size).map(|(start, count)| start.checked_add(*count));
            if !ends.zip(size).all(|(end, size)| end.is_some_and(|end| end <= size)) {
                return None;
            }
            let [bytes, rows, slices] = region.size;
            if region.size.contains(&0) {
                return Some(());
            }
            let last_slice = (slices - 1).checked_mul(slice_pitch)?;
            let last_row = (rows - 1).checked_mul(row_pitch)?;
            let end = last_slice.checked_add(last_row)?.checked_add(bytes)?;
            (end <= available as u64).then_some(())
        };
        fits().ok_or(Error::Memory(FaultKind::OutOfBounds))
    }

    /// Calls `f` for each row of a region with its device address, its offset on the host and its length.
    fn each_row(
        &self,
        region: &Region,
        [row_pitch, slice_pitch]: [u64; 2],
        mut f: impl FnMut(u64, usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let ([byte, row, slice], [bytes, rows, slices]) = (region.start, region.size);
        if region.size.contains(&0) {
            return Ok(());
        }
        for (z, y) in (0..slices).flat_map(|z| (0..rows).map(move |y| (z, y))) {
            let address = self.address_of(region.level, [byte, row + y, slice + z]);
            let at = (z * slice_pitch + y * row_pitch) as usize;
            f(address.ok_or(Error::Memory(FaultKind::OutOfBounds))?, at, bytes as usize)?;
        }
        Ok(())
    }
}

/// An object of the device. Dropping the handle destroys it.
pub(crate) struct Handle {
    pub device: Device,
    pub handle: u64,
    /// The memory of the object, if the object keeps it alive.
    _image: Option<Image>,
}

impl Handle {
    fn new(
        device: &Device,
        handle: Result<u64, ObjectError>,
        image: Option<&Image>,
    ) -> Result<Arc<Handle>, Error> {
        let handle = handle.map_err(Error::Texture)?;
        Ok(Arc::new(Handle { device: device.clone(), handle, _image: image.cloned() }))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Only this call destroys the object: it cannot fail.
        let _ = self.device.machine().destroy_object(self.handle);
    }
}

macro_rules! objects {
    ($($(#[$doc:meta])* $Name:ident)*) => { $(
        $(#[$doc])*
        ///
        /// Cheap to clone; clones are the same object. The object is destroyed when the last clone is dropped and
        /// every launch with it as an argument is gone. A kernel that uses its handle afterwards faults.
        #[derive(Clone)]
        pub struct $Name(pub(crate) Arc<Handle>);

        impl std::fmt::Debug for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($Name)).field("handle", &self.handle()).finish_non_exhaustive()
            }
        }

        impl $Name {
            /// The number by which kernels refer to it.
            pub fn handle(&self) -> u64 {
                self.0.handle
            }
        }
    )* };
}

objects! {
    /// An image, and how it is sampled.
    Texture
    /// An image of one level, which kernels may write.
    Surface
    /// How textures are sampled, in modules of `texmode_independent`.
    SamplerState
}

impl Device {
    /// A new image whose texels are all zero.
    ///
    /// # Errors
    /// [`Error::Texture`] when the descriptor is invalid, [`Error::OutOfMemory`].
    pub fn image(&self, descriptor: ImageDescriptor) -> Result<Image, Error> {
        let layout = Layout::new(descriptor).map_err(|error| Error::Texture(error.into()))?;
        let name = format!("image of {} texels", descriptor.geometry.name());
        Ok(Image { buffer: self.allocate(layout.bytes(), name)?, offset: 0, layout: Arc::new(layout) })
    }

    /// Makes a texture of an image.
    ///
    /// # Errors
    /// [`Error::OtherDevice`]
    pub fn texture(&self, image: &Image, sampler: Sampler) -> Result<Texture, Error> {
        self.owns(image)?;
        let handle = self.machine().create_texture(image.address(), (*image.layout).clone(), sampler);
        Handle::new(self, handle, Some(image)).map(Texture)
    }

    /// Makes a texture of memory at a device address. The memory must stay allocated while the texture is used.
    ///
    /// # Errors
    /// [`Error::Texture`] when the descriptor is invalid, or the image's memory is not within one live allocation.
    pub fn texture_at(
        &self,
        address: u64,
        descriptor: ImageDescriptor,
        sampler: Sampler,
    ) -> Result<Texture, Error> {
        let handle = Layout::new(descriptor)
            .map_err(ObjectError::from)
            .and_then(|image| self.machine().create_texture(address, image, sampler));
        Handle::new(self, handle, None).map(Texture)
    }

    /// Makes a surface of an image.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], [`Error::Texture`] when the image has several levels: a surface has one
    /// ([`Image::level`]).
    pub fn surface(&self, image: &Image) -> Result<Surface, Error> {
        self.owns(image)?;
        let handle = self.machine().create_surface(image.address(), (*image.layout).clone());
        Handle::new(self, handle, Some(image)).map(Surface)
    }

    /// Makes a surface of memory at a device address, as [`Device::texture_at`] makes a texture.
    ///
    /// # Errors
    /// [`Error::Texture`]
    pub fn surface_at(&self, address: u64, descriptor: ImageDescriptor) -> Result<Surface, Error> {
        let handle = Layout::new(descriptor)
            .map_err(ObjectError::from)
            .and_then(|image| self.machine().create_surface(address, image));
        Handle::new(self, handle, None).map(Surface)
    }

    /// Makes a sampler.
    pub fn sampler(&self, sampler: Sampler) -> SamplerState {
        let handle = self.machine().create_sampler(sampler);
        SamplerState(Arc::new(Handle { device: self.clone(), handle, _image: None }))
    }

    fn owns(&self, image: &Image) -> Result<(), Error> {
        if image.device().number() == self.number() { Ok(()) } else { Err(Error::OtherDevice) }
    }
}
