//! Images: extents, layers, mipmap levels, and the offset of each texel.
//!
//! NVIDIA does not document the layout of CUDA arrays. *Ours*: an image consists of its levels, the largest first; a
//! level of its layers (cube faces are layers); a layer of its slices; a slice of its rows; a texel of its samples.
//! There are no gaps, except that each level begins at a multiple of 16 bytes, as surfaces do, and that a row pitch
//! may be given.

use std::fmt;
use std::ops::Range;

use super::format::TexelFormat;
use isa::texture::Geometry;

/// Maximum extent of an image, and maximum number of layers.
const MOST: u32 = 1 << 30;
/// Maximum bytes of an image.
const MOST_BYTES: u64 = 1 << 47;
/// Alignment of a level in bytes: each level can be a surface.
const LEVEL_ALIGN: u64 = 16;
/// Maximum samples of a texel.
const MOST_SAMPLES: u32 = 64;

/// The description from which an image is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageDescriptor {
    /// The geometry with which instructions access it.
    pub geometry: Geometry,
    /// The format of its texels.
    pub format: TexelFormat,
    /// Texels of a row.
    pub width: u32,
    /// Rows; 1 for [`Geometry::Line`] and [`Geometry::LineArray`].
    pub height: u32,
    /// Slices; 1 unless it is a [`Geometry::Volume`].
    pub depth: u32,
    /// Layers of an array; 6 for a cube, and 6 for each cube of an array; otherwise 1.
    pub layers: u32,
    /// Mipmap levels; 1 without a mipmap. Each has half the extents of the previous one, at least 1.
    pub levels: u32,
    /// Samples of a texel; 1 unless the geometry is multisampled.
    pub samples: u32,
    /// Row stride in bytes; `None` for contiguous rows. Only images with one level may have one.
    pub row_pitch: Option<u64>,
    /// The memory is a linear array of numbers (`CU_RESOURCE_TYPE_LINEAR`): out-of-range reads give zero, and nothing
    /// is filtered.
    pub linear: bool,
}

impl ImageDescriptor {
    /// An image with one level, layer and sample. Extents that the geometry does not have are 1.
    pub const fn new(
        geometry: Geometry,
        format: TexelFormat,
        [width, height, depth]: [u32; 3],
    ) -> ImageDescriptor {
        let layers = if geometry.is_cube() { 6 } else { 1 };
        ImageDescriptor {
            geometry,
            format,
            width,
            height,
            depth,
            layers,
            levels: 1,
            samples: 1,
            row_pitch: None,
            linear: false,
        }
    }

    /// An array of contiguous numbers.
    pub const fn linear(format: TexelFormat, width: u32) -> ImageDescriptor {
        ImageDescriptor { linear: true, ..ImageDescriptor::new(Geometry::Line, format, [width, 1, 1]) }
    }

    /// Rows of numbers with a stride of `row_pitch` bytes.
    pub const fn pitched(format: TexelFormat, width: u32, height: u32, row_pitch: u64) -> ImageDescriptor {
        let plane = ImageDescriptor::new(Geometry::Plane, format, [width, height, 1]);
        ImageDescriptor { row_pitch: Some(row_pitch), ..plane }
    }
}

/// Why a descriptor is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// An extent is 0 or too large, or is not 1 although the geometry lacks the dimension.
    Extent,
    /// The faces of a cube are not squares.
    NotSquare,
    /// The geometry has no layers, or the number of layers is 0, or not six for each cube.
    Layers,
    /// More levels than halving the largest extent to 1 gives, or a mipmap of a geometry without mipmaps.
    Levels,
    /// Samples although the geometry has none, or too many.
    Samples,
    /// Rows would overlap, or begin inside a channel.
    Pitch,
    /// The image would have too many bytes.
    TooLarge,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageError::Extent => "an extent is 0, too large, or none of the geometry's",
            ImageError::NotSquare => "the faces of a cube must be squares",
            ImageError::Layers => "the number of layers does not fit the geometry",
            ImageError::Levels => "there are not so many mipmap levels",
            ImageError::Samples => "the number of samples does not fit the geometry",
            ImageError::Pitch => "the row pitch does not fit the rows",
            ImageError::TooLarge => "the image is too large",
        })
    }
}

impl std::error::Error for ImageError {}

/// A mipmap level of an image: its extents, offset and strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Width, height and depth in texels.
    pub extent: [u32; 3],
    /// Byte offset in the image.
    pub start: u64,
    /// Row stride in bytes.
    pub row_pitch: u64,
    /// Slice stride in bytes.
    pub slice_pitch: u64,
    /// Layer stride in bytes.
    pub layer_pitch: u64,
}

/// An image with a valid descriptor: every texel lies within [`Image::bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    descriptor: ImageDescriptor,
    levels: Vec<Level>,
    bytes: u64,
}

impl Image {
    /// Computes the layout of an image.
    ///
    /// # Errors
    /// [`ImageError`]
    pub fn new(descriptor: ImageDescriptor) -> Result<Image, ImageError> {
        let ImageDescriptor { geometry, width, height, depth, layers, levels, samples, .. } = descriptor;
        let extent = [width, height, depth];
        let has = |dimension: usize| dimension < geometry.dimensions();
        if (0..3).any(|i| extent[i] == 0 || extent[i] > MOST || !has(i) && extent[i] != 1) {
            return Err(ImageError::Extent);
        }
        if geometry.is_cube() && width != height {
            return Err(ImageError::NotSquare);
        }
        let layers_fit = match geometry {
            Geometry::Cube => layers == 6,
            Geometry::CubeArray => layers > 0 && layers.is_multiple_of(6),
            _ if geometry.is_array() => layers > 0,
            _ => layers == 1,
        };
        if !layers_fit || layers > MOST {
            return Err(ImageError::Layers);
        }
        let most_levels = extent.iter().max().map_or(1, |most| most.ilog2() + 1);
        let single = descriptor.linear || geometry.is_multisample() || descriptor.row_pitch.is_some();
        if levels == 0 || levels > if single { 1 } else { most_levels } {
            return Err(ImageError::Levels);
        }
        if samples == 0 || samples > if geometry.is_multisample() { MOST_SAMPLES } else { 1 } {
            return Err(ImageError::Samples);
        }
        let mut all = Vec::new();
        let mut bytes = 0;
        for level in 0..levels {
            let extent = extent.map(|extent| (extent >> level).max(1));
            // `MOST_BYTES` leaves room: this cannot overflow.
            let placed = Level::place(&descriptor, extent, u64::next_multiple_of(bytes, LEVEL_ALIGN))?;
            let end =
                placed.layer_pitch.checked_mul(layers.into()).and_then(|size| size.checked_add(placed.start));
            bytes = end.filter(|&end| end <= MOST_BYTES).ok_or(ImageError::TooLarge)?;
            all.push(placed);
        }
        Ok(Image { descriptor, levels: all, bytes })
    }

    /// The descriptor that it was made from.
    pub fn descriptor(&self) -> &ImageDescriptor {
        &self.descriptor
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its levels, the largest first; there is at least one.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// One level as an image, and its byte offset; `None` if there is no such level.
    pub fn level(&self, level: u32) -> Option<(u64, Image)> {
        let Level { extent: [width, height, depth], start, .. } = *self.levels.get(level as usize)?;
        let descriptor = ImageDescriptor { width, height, depth, levels: 1, ..self.descriptor };
        Some((start, Image::new(descriptor).ok()?))
    }

    /// Some of its levels and layers at the same addresses, with texels in a format of the same size (CUDA driver API,
    /// `CUDA_RESOURCE_VIEW_DESC`). `None` if the image does not have these levels or layers, or the size differs.
    pub fn view(&self, format: TexelFormat, levels: Range<u32>, layers: Range<u32>) -> Option<Image> {
        let own = &self.descriptor;
        let count = layers.end.checked_sub(layers.start)?;
        let layers_fit = match own.geometry {
            _ if layers == (0..own.layers) => true,
            Geometry::CubeArray => count > 0 && count.is_multiple_of(6),
            geometry => geometry.is_array() && count > 0,
        };
        if format.bytes() != own.format.bytes() || layers.end > own.layers || !layers_fit {
            return None;
        }
        let mut viewed = self.levels.get(levels.start as usize..levels.end as usize)?.to_vec();
        for level in &mut viewed {
            level.start += u64::from(layers.start) * level.layer_pitch;
        }
        let [width, height, depth] = viewed.first()?.extent;
        let levels = viewed.len() as u32;
        let descriptor = ImageDescriptor { format, width, height, depth, layers: count, levels, ..*own };
        Some(Image { descriptor, levels: viewed, bytes: self.bytes })
    }

    /// Byte offset of a sample of a texel in a level; all indices must be in range.
    #[inline]
    pub fn offset(&self, level: &Level, layer: u32, [x, y, z]: [u32; 3], sample: u32) -> u64 {
        let place = u64::from(x) * u64::from(self.descriptor.samples) + u64::from(sample);
        level.start
            + u64::from(layer) * level.layer_pitch
            + u64::from(z) * level.slice_pitch
            + u64::from(y) * level.row_pitch
            + place * self.descriptor.format.bytes() as u64
    }
}

impl Level {
    fn place(descriptor: &ImageDescriptor, extent: [u32; 3], start: u64) -> Result<Level, ImageError> {
        let format = descriptor.format;
        let [width, height, depth] = extent.map(u64::from);
        let row = width * u64::from(descriptor.samples) * format.bytes() as u64;
        let row_pitch = descriptor.row_pitch.unwrap_or(row);
        if row_pitch < row && height > 1 || !row_pitch.is_multiple_of(format.channel().bytes() as u64) {
            return Err(ImageError::Pitch);
        }
        // The padding of the last row does not belong to the image.
        let slices = || {
            let plane = row_pitch.checked_mul(height - 1)?.checked_add(row)?;
            Some((plane, plane.checked_mul(depth)?))
        };
        let (slice_pitch, layer_pitch) = slices().ok_or(ImageError::TooLarge)?;
        Ok(Level { extent, start, row_pitch, slice_pitch, layer_pitch })
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::Channel;
    use super::*;

    fn descriptor(geometry: Geometry, extent: [u32; 3]) -> ImageDescriptor {
        ImageDescriptor::new(geometry, TexelFormat::new(Channel::F32, 2).unwrap(), extent)
    }

    #[test]
    fn an_image_of_one_row_can_be_read_as_a_line() {
        let fits = |height| {
            let image = Image::new(descriptor(Geometry::Plane, [5, height, 1])).unwrap();
            super::super::fits(Geometry::Line, &image).is_ok()
        };
        assert!(fits(1) && !fits(2));
    }

    /// Every texel of every level has its own bytes; only the alignment of levels leaves gaps.
    #[test]
    fn texels_do_not_overlap() {
        let images = [
            descriptor(Geometry::Line, [5, 1, 1]),
            ImageDescriptor { levels: 3, ..descriptor(Geometry::Volume, [5, 3, 4]) },
            ImageDescriptor { levels: 2, layers: 12, ..descriptor(Geometry::CubeArray, [3, 3, 1]) },
            ImageDescriptor { samples: 4, layers: 2, ..descriptor(Geometry::MultisampleArray, [3, 2, 1]) },
        ];
        for descriptor in images {
            let image = Image::new(descriptor).unwrap();
            let mut seen = vec![false; (image.bytes() / 8) as usize];
            for level in image.levels() {
                let [width, height, depth] = level.extent;
                for layer in 0..descriptor.layers {
                    for place in 0..width * height * depth * descriptor.samples {
                        let (place, sample) = (place / descriptor.samples, place % descriptor.samples);
                        let texel = [place % width, place / width % height, place / width / height];
                        let offset = image.offset(level, layer, texel, sample);
                        assert!(offset.is_multiple_of(8));
                        assert!(!std::mem::replace(&mut seen[(offset / 8) as usize], true));
                    }
                }
            }
            let free = seen.iter().filter(|seen| !**seen).count() as u32;
            assert!(free < descriptor.levels && seen.last() == Some(&true), "{descriptor:?} {free}");
        }
    }

    #[test]
    fn a_level_is_an_image_at_its_offset() {
        let image =
            Image::new(ImageDescriptor { levels: 4, ..descriptor(Geometry::Plane, [9, 5, 1]) }).unwrap();
        let (start, level) = image.level(2).unwrap();
        assert_eq!((start, level.descriptor().width, level.descriptor().height), (368 + 64, 2, 1));
        assert!(image.level(4).is_none());
    }

    #[test]
    fn a_view_has_the_texels_of_its_levels_and_layers() {
        let format = TexelFormat::new(Channel::F32, 2).unwrap();
        let all = ImageDescriptor { levels: 4, layers: 5, ..descriptor(Geometry::PlaneArray, [9, 6, 1]) };
        let image = Image::new(all).unwrap();
        let view = image.view(TexelFormat::new(Channel::U16, 4).unwrap(), 1..3, 2..5).unwrap();
        let ImageDescriptor { width, height, layers, levels, .. } = *view.descriptor();
        assert_eq!((width, height, layers, levels, view.bytes()), (4, 3, 3, 2, image.bytes()));
        for (level, layer) in [(0, 0), (0, 2), (1, 0), (1, 2)] {
            let own = image.offset(&image.levels()[level + 1], layer + 2, [1, 0, 0], 0);
            assert_eq!(view.offset(&view.levels()[level], layer, [1, 0, 0], 0), own);
        }
        assert!(image.view(format, 0..4, 0..5).is_some());
        assert!(image.view(format, 0..5, 0..5).is_none());
        assert!(image.view(format, 2..2, 0..5).is_none());
        assert!(image.view(format, 0..4, 0..6).is_none());
        assert!(image.view(format, 0..4, 3..3).is_none());
        assert!(image.view(TexelFormat::new(Channel::F32, 1).unwrap(), 0..4, 0..5).is_none());
        let cubes = ImageDescriptor { layers: 18, ..descriptor(Geometry::CubeArray, [3, 3, 1]) };
        let cubes = Image::new(cubes).unwrap();
        assert!(cubes.view(format, 0..1, 6..18).is_some() && cubes.view(format, 0..1, 6..13).is_none());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let bad = |descriptor: ImageDescriptor| Image::new(descriptor).unwrap_err();
        let plane = descriptor(Geometry::Plane, [8, 4, 1]);
        assert_eq!(bad(descriptor(Geometry::Plane, [0, 4, 1])), ImageError::Extent);
        assert_eq!(bad(descriptor(Geometry::Plane, [8, 4, 2])), ImageError::Extent);
        assert_eq!(bad(descriptor(Geometry::Line, [u32::MAX, 1, 1])), ImageError::Extent);
        assert_eq!(bad(descriptor(Geometry::Cube, [8, 4, 1])), ImageError::NotSquare);
        assert_eq!(bad(ImageDescriptor { layers: 2, ..plane }), ImageError::Layers);
        assert_eq!(
            bad(ImageDescriptor { layers: 7, ..descriptor(Geometry::CubeArray, [4, 4, 1]) }),
            ImageError::Layers
        );
        assert_eq!(bad(ImageDescriptor { levels: 5, ..plane }), ImageError::Levels);
        assert!(Image::new(ImageDescriptor { levels: 4, ..plane }).is_ok());
        assert_eq!(bad(ImageDescriptor { samples: 2, ..plane }), ImageError::Samples);
        assert_eq!(bad(ImageDescriptor { row_pitch: Some(60), ..plane }), ImageError::Pitch);
        assert_eq!(bad(ImageDescriptor { row_pitch: Some(66), ..plane }), ImageError::Pitch);
        assert_eq!(bad(ImageDescriptor { row_pitch: Some(u64::MAX - 7), ..plane }), ImageError::TooLarge);
        assert_eq!(bad(descriptor(Geometry::Volume, [MOST, MOST, MOST])), ImageError::TooLarge);
    }

    #[test]
    fn a_pitched_image_ends_with_its_last_row() {
        let format = TexelFormat::new(Channel::U8, 4).unwrap();
        assert_eq!(Image::new(ImageDescriptor::pitched(format, 10, 3, 64)).unwrap().bytes(), 128 + 40);
    }
}
