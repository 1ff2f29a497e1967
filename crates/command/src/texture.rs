//! `texture(@x.npy, filter=linear)`, `surface(f32[64x64])`, `sampler(address=wrap)`: objects as arguments.
//! In Python these are `ptxvm.Texture(x, filter="linear")` and so on, with the same options.

use ptxvm::{
    AddressMode, Channel, Device, Error, Filter, Geometry, ImageDescriptor, Sampler, SamplerState, Surface,
    TexelFormat, Texture,
};

use sem::texture::Image;

use super::array::DType;
use super::report::Failure;
use super::spec::{Spec, Value};

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An image that is sampled.
    Texture,
    /// An image that is written.
    Surface,
    /// How images are sampled.
    Sampler,
}

/// A parsed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSpec {
    kind: Kind,
    /// The texels; a sampler has none.
    array: Option<Box<Spec>>,
    /// `name=value`, or `name` alone.
    options: Vec<(String, String)>,
}

/// An object with its texels.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectValue {
    kind: Kind,
    /// The texels, and their layout.
    pub image: Option<(Box<Value>, ImageDescriptor)>,
    sampler: Sampler,
}

/// An object on a device.
pub enum Made {
    /// `texture(..)`
    Texture(Texture),
    /// `surface(..)`
    Surface(Surface),
    /// `sampler(..)`
    Sampler(SamplerState),
}

/// The options that users may write, for help texts.
pub const OPTIONS: &str = "\
geometry=2d (1d 2d 3d a1d a2d cube acube 2dms a2dms linear), channels=4, as=unorm8 (how texels are read), extent=64x64, \
layers=6, levels=3, samples=4; of textures and samplers filter=linear, mipfilter=linear, address=wrap/clamp \
(wrap mirror clamp border, by dimension), normalized, float (integers are read as 0 to 1), srgb, border=0/0/0/1.0, bias=0.5, \
minlod=0, maxlod=4, seamless";

/// Parses a text that begins with `texture(`, `surface(` or `sampler(`; `None` for other texts.
pub fn parse(text: &str) -> Option<Result<ObjectSpec, String>> {
    let (kind, inner) =
        [("texture(", Kind::Texture), ("surface(", Kind::Surface), ("sampler(", Kind::Sampler)]
            .into_iter()
            .find_map(|(prefix, kind)| Some((kind, text.strip_prefix(prefix)?)))?;
    Some(parse_inner(text, kind, inner))
}

fn parse_inner(text: &str, kind: Kind, inner: &str) -> Result<ObjectSpec, String> {
    let inner = inner.strip_suffix(')').ok_or_else(|| format!("`{text}` has no `)` at its end"))?;
    let mut parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
    let array = match kind {
        Kind::Sampler => None,
        _ => {
            let first = parts.next().unwrap_or_default();
            match first.parse()? {
                array @ (Spec::File { .. } | Spec::New { .. }) => Some(Box::new(array)),
                _ => return Err(format!("`{first}` is no array of texels: @x.npy, f32[64x64]")),
            }
        }
    };
    let options = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let spec = ObjectSpec { kind, array, options };
    // Mistakes in the text are reported before files are read.
    spec.sampler()?;
    spec.geometry()?;
    Ok(spec)
}

fn address_mode(name: &str) -> Result<AddressMode, String> {
    Ok(match name {
        "wrap" => AddressMode::Wrap,
        "mirror" => AddressMode::Mirror,
        "clamp" => AddressMode::Clamp,
        "border" => AddressMode::Border,
        _ => return Err(format!("`{name}` is no addressing mode: wrap, mirror, clamp, border")),
    })
}

fn filter(name: &str) -> Result<Filter, String> {
    match name {
        "point" => Ok(Filter::Point),
        "linear" => Ok(Filter::Linear),
        _ => Err(format!("`{name}` is no filter: point, linear")),
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{value}` is no value of {name}"))
}

/// A channel of the border colour: a decimal point makes it `.f32`.
fn border(value: &str) -> Result<u32, String> {
    if value.contains('.') {
        return number("border", value).map(f32::to_bits);
    }
    number::<i64>("border", value).map(|value| value as u32)
}

impl ObjectSpec {
    fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn sampler(&self) -> Result<Sampler, String> {
        let mut sampler = Sampler::default();
        for (name, value) in &self.options {
            let is_image = matches!(
                name.as_str(),
                "geometry" | "channels" | "as" | "extent" | "layers" | "levels" | "samples"
            );
            match name.as_str() {
                _ if is_image && self.kind != Kind::Sampler => {}
                _ if self.kind == Kind::Surface => return Err(unknown(name)),
                "filter" => sampler.filter = filter(value)?,
                "mipfilter" => sampler.mip_filter = filter(value)?,
                "address" => {
                    let mut modes = value.split('/').map(address_mode).collect::<Result<Vec<_>, _>>()?;
                    let last = modes.last().copied().unwrap_or_default();
                    modes.resize(3, last);
                    sampler.address.copy_from_slice(&modes);
                }
                "normalized" => sampler.normalized = true,
                "float" => sampler.normalized_float = true,
                "srgb" => sampler.srgb = true,
                "seamless" => sampler.seamless = true,
                "bias" => sampler.lod_bias = number(name, value)?,
                "minlod" => sampler.lod_min = number(name, value)?,
                "maxlod" => sampler.lod_max = number(name, value)?,
                "border" => {
                    let mut channels = value.split('/').map(border).collect::<Result<Vec<_>, _>>()?;
                    channels.resize(4, 0);
                    sampler.border.copy_from_slice(&channels);
                }
                _ => return Err(unknown(name)),
            }
        }
        Ok(sampler)
    }

    /// The geometry, and whether the image is a linear array of numbers; `None` if the option is absent.
    fn geometry(&self) -> Result<Option<(Geometry, bool)>, String> {
        let Some(name) = self.option("geometry") else { return Ok(None) };
        Ok(Some((
            match name {
                "1d" | "linear" => Geometry::Line,
                "2d" => Geometry::Plane,
                "3d" => Geometry::Volume,
                "a1d" => Geometry::LineArray,
                "a2d" => Geometry::PlaneArray,
                "cube" => Geometry::Cube,
                "acube" => Geometry::CubeArray,
                "2dms" => Geometry::Multisample,
                "a2dms" => Geometry::MultisampleArray,
                _ => return Err(format!("`{name}` is no geometry; there are {OPTIONS}")),
            },
            name == "linear",
        )))
    }

    /// The object, with its texels read from files.
    ///
    /// # Errors
    /// When a file cannot be used, or the options do not give a valid image.
    pub fn resolve(&self) -> Result<ObjectValue, Failure> {
        let sampler = self.sampler().map_err(Failure::usage)?;
        let Some(array) = &self.array else {
            return Ok(ObjectValue { kind: self.kind, image: None, sampler });
        };
        let array = array.resolve_array()?;
        let described = array.array().ok_or_else(|| "it is no array".to_owned());
        let descriptor = described.and_then(|(dtype, shape)| self.descriptor(dtype, shape));
        let descriptor = descriptor.map_err(Failure::usage)?;
        let image = Some((Box::new(array), descriptor));
        Ok(ObjectValue { kind: self.kind, image, sampler })
    }

    fn descriptor(&self, dtype: DType, shape: &[u64]) -> Result<ImageDescriptor, String> {
        let channels = self.option("channels").map_or(Ok(1), |count| number("channels", count))?;
        let channel = match self.option("as") {
            Some(name) => channel_named(name)?,
            None => channel_of(dtype)?,
        };
        let format = TexelFormat::new(channel, channels)
            .ok_or_else(|| format!("texels have 1, 2 or 4 channels, not {channels}"))?;
        let small = |extent: u64| u32::try_from(extent).map_err(|_| format!("{extent} is too large"));
        let mut extents = shape.iter().map(|&extent| small(extent)).collect::<Result<Vec<u32>, _>>()?;
        if let Some(text) = self.option("extent") {
            extents = text.split('x').map(|n| number("extent", n)).collect::<Result<_, _>>()?;
        } else if channels > 1 && extents.last() == Some(&channels.into()) {
            extents.pop();
        } else if channels > 1 || channel.bytes() != dtype.bytes() {
            // The last extent counts texels instead of elements.
            let unit = usize::from(channels) * channel.bytes();
            let last = extents.last_mut().ok_or("an array without extents has no texels")?;
            *last = (*last as usize * dtype.bytes() / unit) as u32;
        }
        let (geometry, linear) = match (self.geometry()?, extents.len()) {
            (Some(found), _) => found,
            (None, 0 | 1) => (Geometry::Line, false),
            (None, 2) => (Geometry::Plane, false),
            (None, _) => (Geometry::Volume, false),
        };
        // The last extent is that of a row, as in numpy.
        extents.reverse();
        let of = |i: usize| extents.get(i).copied().unwrap_or(1);
        let dimensions = geometry.dimensions();
        let extent = std::array::from_fn(|i| if i < dimensions { of(i) } else { 1 });
        let count = |name: &str, otherwise: u32| self.option(name).map_or(Ok(otherwise), |n| number(name, n));
        let rest = extents.iter().skip(dimensions).fold(1u32, |product, &n| product.saturating_mul(n));
        let layered = geometry.is_array() || geometry.is_cube();
        let own = if geometry.is_cube() { 6 } else { 1 };
        let layers = count("layers", if layered && self.option("extent").is_none() { rest } else { own })?;
        let descriptor = ImageDescriptor {
            layers,
            levels: count("levels", 1)?,
            samples: count("samples", 1)?,
            linear,
            ..ImageDescriptor::new(geometry, format, extent)
        };
        Ok(descriptor)
    }
}

/// The object for these options: the layout of an array's texels, and how they are sampled. The array is given by its
/// type and shape; a sampler has none.
///
/// # Errors
/// What is wrong with an option, or that the array is too small for the image.
pub fn object(
    kind: Kind,
    array: Option<(&str, &[u64])>,
    options: Vec<(String, String)>,
) -> Result<(Option<ImageDescriptor>, Sampler), String> {
    let spec = ObjectSpec { kind, array: None, options };
    let sampler = spec.sampler()?;
    let Some((name, shape)) = array else { return Ok((None, sampler)) };
    let dtype = DType::from_name(name).ok_or_else(|| format!("there are no texels of {name}"))?;
    let descriptor = spec.descriptor(dtype, shape)?;
    let needs = Image::new(descriptor).map_err(|error| error.to_string())?.bytes();
    let has = shape.iter().try_fold(dtype.bytes() as u64, |bytes, &extent| bytes.checked_mul(extent));
    match has {
        Some(has) if has < needs => Err(format!("the image has {needs} bytes, the array {has}")),
        _ => Ok((Some(descriptor), sampler)),
    }
}

fn unknown(name: &str) -> String {
    format!("`{name}` is no option here; there are {OPTIONS}")
}

fn channel_of(dtype: DType) -> Result<Channel, String> {
    Ok(match dtype {
        DType::U8 | DType::Bytes => Channel::U8,
        DType::U16 => Channel::U16,
        DType::U32 => Channel::U32,
        DType::S8 => Channel::S8,
        DType::S16 => Channel::S16,
        DType::S32 => Channel::S32,
        DType::F16 => Channel::F16,
        DType::F32 => Channel::F32,
        _ => return Err(format!("there are no texels of {}", dtype.name())),
    })
}

fn channel_named(name: &str) -> Result<Channel, String> {
    match name {
        "unorm8" => Ok(Channel::Unorm8),
        "unorm16" => Ok(Channel::Unorm16),
        "snorm8" => Ok(Channel::Snorm8),
        "snorm16" => Ok(Channel::Snorm16),
        _ => DType::from_name(name).map_or_else(|| Err(unknown(name)), channel_of),
    }
}

impl ObjectValue {
    /// Creates the object; its texels are already at an address.
    ///
    /// # Errors
    /// When the descriptor is invalid.
    pub fn make(&self, device: &Device, address: u64) -> Result<Made, Error> {
        match (self.kind, &self.image) {
            (Kind::Texture, Some((_, descriptor))) => {
                device.texture_at(address, *descriptor, self.sampler).map(Made::Texture)
            }
            (Kind::Surface, Some((_, descriptor))) => {
                device.surface_at(address, *descriptor).map(Made::Surface)
            }
            _ => Ok(Made::Sampler(device.sampler(self.sampler))),
        }
    }
}

/// `tex=texture(..)`: an object that a variable of the module is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The `.texref`, `.samplerref` or `.surfref`.
    pub name: String,
    /// The object.
    pub object: ObjectSpec,
}

impl std::str::FromStr for Binding {
    type Err = String;

    fn from_str(text: &str) -> Result<Binding, String> {
        let (name, object) =
            text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=texture(..)"))?;
        let object = parse(object)
            .ok_or_else(|| format!("`{object}` is no texture(..), surface(..), sampler(..)"))??;
        Ok(Binding { name: name.to_owned(), object })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(text: &str) -> ImageDescriptor {
        parse(text).unwrap().unwrap().resolve().unwrap().image.unwrap().1
    }

    #[test]
    fn extents_are_those_of_the_array() {
        let plane = descriptor("texture(u8[4x8])");
        assert_eq!((plane.geometry, plane.width, plane.height), (Geometry::Plane, 8, 4));
        let colours = descriptor("texture(u8[4x8x4], channels=4)");
        assert_eq!((colours.width, colours.height, colours.format.bytes()), (8, 4, 4));
        let flat = descriptor("texture(u8[4x8], channels=4)");
        assert_eq!((flat.width, flat.height), (2, 4));
        let cube = descriptor("texture(f32[12x3x3], geometry=acube)");
        assert_eq!((cube.layers, cube.width, cube.height, cube.depth), (12, 3, 3, 1));
        let mipmap = descriptor("texture(f32[21], extent=4x4, levels=3)");
        assert_eq!((mipmap.geometry, mipmap.levels, mipmap.width), (Geometry::Plane, 3, 4));
        assert_eq!(descriptor("surface(bytes[64], as=unorm16)").width, 32);
        assert!(descriptor("texture(f32[64], geometry=linear)").linear);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (text, part) in [
            ("texture(f32[3]", "`)`"),
            ("texture(7)", "no array"),
            ("texture(f32[3], fliter=linear)", "`fliter` is no option"),
            ("texture(f32[3], filter=cubic)", "point, linear"),
            ("surface(f32[3], filter=linear)", "no option here"),
            ("sampler(address=wrap/up)", "addressing mode"),
            ("texture(f32[3], geometry=4d)", "no geometry"),
            ("sampler(border=red)", "border"),
        ] {
            let error = parse(text).unwrap().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(parse("text").is_none());
        let f64s = parse("texture(f64[3])").unwrap().unwrap();
        assert!(f64s.resolve().is_err());
    }
}
