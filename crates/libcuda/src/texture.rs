//! Texture and surface objects, and the texture and surface references of modules.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, LazyLock, Mutex};

use caller::structures::{
    DISABLE_TRILINEAR_OPTIMIZATION, NORMALIZED_COORDINATES, READ_AS_INTEGER, RESOURCE_ARRAY, RESOURCE_LINEAR,
    RESOURCE_MIPMAPPED, RESOURCE_ROWS, Resource, SEAMLESS_CUBEMAP, SRGB, TextureSettings,
};
use cudarc::driver::sys::{
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUarray, CUdevice, CUdeviceptr,
    CUmipmappedArray, CUmodule, CUsurfObject, CUsurfref, CUtexObject, CUtexref,
};
use ptxvm::{AddressMode, Filter, Image, ImageDescriptor, Sampler, Surface, TexelFormat, Texture};

use crate::api::api;
use crate::array::{Array, PlaneDescription, array, format, mipmapped};
use crate::context::Context;
use crate::driver::driver;
use crate::handles::{Handles, handle_of};
use crate::lock;
use crate::module::{Module, module};
use crate::pointers::{In, Out, Text, required};
use crate::{INVALID, Status};

/// The flags of textures that there are.
const FLAGS: u32 =
    READ_AS_INTEGER | NORMALIZED_COORDINATES | SRGB | DISABLE_TRILINEAR_OPTIMIZATION | SEAMLESS_CUBEMAP;

/// `CUDA_RESOURCE_VIEW_DESC`. Its format may be any value, so it is a number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    format: u32,
    extents: [usize; 3],
    /// The first and the last.
    levels: [u32; 2],
    layers: [u32; 2],
    reserved: [u32; 16],
}

const _: () = assert!(size_of::<View>() == size_of::<CUDA_RESOURCE_VIEW_DESC>());
const _: () = assert!(size_of::<Resource>() == size_of::<CUDA_RESOURCE_DESC>());
const _: () = assert!(size_of::<TextureSettings>() == size_of::<CUDA_TEXTURE_DESC>());

/// The memory of a texture.
#[derive(Clone)]
enum Source {
    /// An array with all its levels.
    Array(Arc<Array>),
    /// Device memory at an address, as a line or as rows.
    Memory(u64, ImageDescriptor),
}

/// A live texture object and its description.
struct TextureObject {
    _texture: Texture,
    /// Keeps the memory of the array alive.
    _source: Source,
    resource: Resource,
    settings: TextureSettings,
}

/// A live surface object.
struct SurfaceObject {
    _surface: Surface,
    _array: Arc<Array>,
    resource: Resource,
}

/// By the handle that kernels use.
static TEXTURES: LazyLock<Mutex<HashMap<u64, TextureObject>>> = LazyLock::new(Mutex::default);
static SURFACES: LazyLock<Mutex<HashMap<u64, SurfaceObject>>> = LazyLock::new(Mutex::default);

fn failed(error: ptxvm::Error) -> Status {
    match crate::status::of_error(&error) {
        Status::CUDA_ERROR_UNKNOWN => INVALID,
        status => status,
    }
}

impl Source {
    /// The image that a texture reads of an array: all of it, or what a resource view selects.
    fn view(array: &Array, view: Option<View>) -> Result<Image, Status> {
        let (own, image) = (&array.description, array.image.descriptor());
        let Some(view) = view.filter(|view| view.format != 0 || view.extents != [0; 3]) else {
            return Ok(array.image.clone());
        };
        if view.extents != [own.width, own.height, own.depth] {
            return Err(INVALID);
        }
        // The last level and layer are included. NVIDIA's driver lets them lie past the end (Dr.Jit relies on it).
        let range = |[first, last]: [u32; 2], count: u32| first..last.saturating_add(1).min(count);
        let (levels, layers) = (range(view.levels, image.levels), range(view.layers, image.layers));
        let format = if view.format == 0 { image.format } else { viewed_format(view.format)? };
        array.image.view(format, levels, layers).ok_or(INVALID)
    }

    /// The source that a resource description specifies.
    fn of(resource: &Resource) -> Result<Source, Status> {
        let Resource { kind, pointer, format: number, channels, sizes: [first, height, pitch], .. } =
            *resource;
        let handle = std::ptr::without_provenance_mut::<c_void>(pointer as usize);
        match kind {
            RESOURCE_ARRAY => Ok(Source::Array(array(handle.cast())?)),
            RESOURCE_MIPMAPPED => Ok(Source::Array(mipmapped(handle.cast())?)),
            RESOURCE_LINEAR => Source::linear(pointer, format(number, channels)?, first),
            RESOURCE_ROWS => Source::pitched(pointer, format(number, channels)?, [first, height], pitch),
            _ => Err(INVALID),
        }
    }

    fn linear(address: u64, format: TexelFormat, bytes: usize) -> Result<Source, Status> {
        let width = u32::try_from(bytes / format.bytes()).map_err(|_| INVALID)?;
        Ok(Source::Memory(address, ImageDescriptor::linear(format, width)))
    }

    fn pitched(
        address: u64,
        format: TexelFormat,
        extents: [usize; 2],
        pitch: usize,
    ) -> Result<Source, Status> {
        let [width, height] = extents.map(u32::try_from);
        let (width, height) = (width.map_err(|_| INVALID)?, height.map_err(|_| INVALID)?);
        Ok(Source::Memory(address, ImageDescriptor::pitched(format, width, height, pitch as u64)))
    }

    /// A texture of it, or of what a resource view selects. Memory has no views.
    fn texture(&self, view: Option<View>, sampler: Sampler) -> Result<Texture, Status> {
        let device = &driver()?.device;
        match self {
            Source::Array(array) => device.texture(&Source::view(array, view)?, sampler),
            Source::Memory(address, descriptor) => device.texture_at(*address, *descriptor, sampler),
        }
        .map_err(failed)
    }
}

/// The texel format that a resource view names (`CUresourceViewFormat`): channels of eight kinds, one, two or four of them.
fn viewed_format(number: u32) -> Result<TexelFormat, Status> {
    /// The same kinds in the numbers of array formats, in the order of the views' formats.
    const KINDS: [u32; 8] = [1, 8, 2, 9, 3, 10, 16, 32];
    let at = number as usize - 1;
    // Views behind these are of compressed formats.
    let kind = KINDS.get(at / 3).ok_or(Status::CUDA_ERROR_NOT_SUPPORTED)?;
    format(*kind, [1, 2, 4][at % 3])
}

fn address_mode(number: u32) -> Result<AddressMode, Status> {
    Ok(match number {
        0 => AddressMode::Wrap,
        1 => AddressMode::Clamp,
        2 => AddressMode::Mirror,
        3 => AddressMode::Border,
        _ => return Err(INVALID),
    })
}

fn filter(number: u32) -> Result<Filter, Status> {
    match number {
        0 => Ok(Filter::Point),
        1 => Ok(Filter::Linear),
        _ => Err(INVALID),
    }
}

/// The sampler that the settings of a texture specify.
fn sampler(settings: &TextureSettings) -> Result<Sampler, Status> {
    let flags = settings.flags;
    if flags & !FLAGS != 0 {
        return Err(INVALID);
    }
    let [x, y, z] = settings.address_mode;
    Ok(Sampler {
        address: [address_mode(x)?, address_mode(y)?, address_mode(z)?],
        filter: filter(settings.filter_mode)?,
        mip_filter: filter(settings.mipmap_filter_mode)?,
        normalized: flags & NORMALIZED_COORDINATES != 0,
        normalized_float: flags & READ_AS_INTEGER == 0,
        srgb: flags & SRGB != 0,
        border: settings.border.map(f32::to_bits),
        lod_bias: settings.mipmap_level_bias,
        lod_min: settings.min_mipmap_level,
        lod_max: settings.max_mipmap_level,
        seamless: flags & SEAMLESS_CUBEMAP != 0,
    })
}

/// The references of modules for which the program has handles.
static TEXTURE_REFERENCES: Handles<TextureReference> = Handles::new();
static SURFACE_REFERENCES: Handles<SurfaceReference> = Handles::new();

/// A `.texref` variable, and its settings so far.
struct TextureReference {
    /// `None` if `cuTexRefCreate` made the reference.
    variable: Option<(Arc<Module>, String)>,
    state: Mutex<ReferenceState>,
}

#[derive(Clone)]
struct ReferenceState {
    source: Option<Source>,
    sampler: Sampler,
    format: u32,
    channels: u32,
    flags: u32,
    modes: [u32; 3],
    bound: Option<Texture>,
}

/// A `.surfref` variable.
struct SurfaceReference {
    variable: (Arc<Module>, String),
    bound: Mutex<Option<(Arc<Array>, Surface)>>,
}

impl TextureReference {
    fn new(variable: Option<(Arc<Module>, String)>) -> Arc<TextureReference> {
        let (flags, modes) = (0, [1; 3]);
        let sampler = Sampler { normalized_float: true, ..Sampler::default() };
        let state =
            ReferenceState { source: None, sampler, format: 32, channels: 1, flags, modes, bound: None };
        Arc::new(TextureReference { variable, state: Mutex::new(state) })
    }

    /// Changes its settings, and binds the variable again.
    fn change(&self, change: impl FnOnce(&mut ReferenceState) -> Result<(), Status>) -> Result<(), Status> {
        let mut state = lock(&self.state);
        let mut new = state.clone();
        change(&mut new)?;
        if let (Some(source), Some((module, name))) = (&new.source, &self.variable) {
            let texture = source.texture(None, new.sampler)?;
            module.loaded.bind_texture(name, &texture).map_err(failed)?;
            new.bound = Some(texture);
        }
        *state = new;
        Ok(())
    }

    /// Changes settings that may have any value.
    fn set(&self, change: impl FnOnce(&mut ReferenceState)) -> Result<(), Status> {
        self.change(|state| {
            change(state);
            Ok(())
        })
    }

    /// Binds it to an array.
    fn bind(&self, array: Arc<Array>) -> Result<(), Status> {
        self.set(|state| {
            (state.format, state.channels) = (array.description.format, array.description.channels);
            state.source = Some(Source::Array(array));
        })
    }
}

fn reference(handle: CUtexref) -> Result<Arc<TextureReference>, Status> {
    driver()?;
    TEXTURE_REFERENCES.get(handle).ok_or(INVALID)
}

fn dimension(number: c_int) -> Result<usize, Status> {
    usize::try_from(number).ok().filter(|&number| number < 3).ok_or(INVALID)
}

api! { API:
    /// Makes a texture object: its number is what kernels take.
    cuTexObjectCreate 5000 "cuTexObjectCreate" (result: Out<CUtexObject>, resource: In<Resource>, settings: In<TextureSettings>, view: In<View>) {
        Context::current()?;
        required(result.pointer())?;
        let resource = resource.read()?;
        let source = Source::of(&resource)?;
        let settings = settings.read()?;
        let texture = source.texture(view.read_if_given(), sampler(&settings)?)?;
        let handle = texture.handle();
        result.write(handle)?;
        lock(&TEXTURES).insert(handle, TextureObject { _texture: texture, _source: source, resource, settings });
        Ok(())
    }
    /// Destroys a texture object when all work that may use it is done.
    cuTexObjectDestroy 5000 "cuTexObjectDestroy" (object: CUtexObject) {
        let context = Context::current()?;
        context.synchronize()?;
        lock(&TEXTURES).remove(&object).map(drop).ok_or(INVALID)
    }
    /// What a texture object was made of.
    cuTexObjectGetResourceDesc 5000 "cuTexObjectGetResourceDesc" (result: Out<Resource>, object: CUtexObject) {
        driver()?;
        result.write(lock(&TEXTURES).get(&object).ok_or(INVALID)?.resource)
    }
    /// How a texture object is read.
    cuTexObjectGetTextureDesc 5000 "cuTexObjectGetTextureDesc" (result: Out<TextureSettings>, object: CUtexObject) {
        driver()?;
        result.write(lock(&TEXTURES).get(&object).ok_or(INVALID)?.settings)
    }
    /// Makes a surface object of an array: its number is what kernels take.
    cuSurfObjectCreate 5000 "cuSurfObjectCreate" (result: Out<CUsurfObject>, resource: In<Resource>) {
        Context::current()?;
        required(result.pointer())?;
        let resource = resource.read()?;
        let Source::Array(array) = Source::of(&resource)? else { return Err(INVALID) };
        // NVIDIA's driver also accepts arrays that were not created for surfaces (slang-rhi relies on it).
        if array.image.descriptor().levels > 1 {
            return Err(INVALID);
        }
        let surface = driver()?.device.surface(&array.image).map_err(failed)?;
        let handle = surface.handle();
        result.write(handle)?;
        lock(&SURFACES).insert(handle, SurfaceObject { _surface: surface, _array: array, resource });
        Ok(())
    }
    /// Destroys a surface object when all work that may use it is done.
    cuSurfObjectDestroy 5000 "cuSurfObjectDestroy" (object: CUsurfObject) {
        let context = Context::current()?;
        context.synchronize()?;
        lock(&SURFACES).remove(&object).map(drop).ok_or(INVALID)
    }
    /// What a surface object was made of.
    cuSurfObjectGetResourceDesc 5000 "cuSurfObjectGetResourceDesc" (result: Out<Resource>, object: CUsurfObject) {
        driver()?;
        result.write(lock(&SURFACES).get(&object).ok_or(INVALID)?.resource)
    }
    /// The most numbers that a texture of linear memory may have.
    cuDeviceGetTexture1DLinearMaxWidth 11010 "cuDeviceGetTexture1DLinearMaxWidth" (result: Out<usize>, number: c_uint, channels: c_uint, device: CUdevice) {
        driver()?.ordinal(device)?;
        format(number, channels)?;
        result.write(1 << 28)
    }
    /// A texture reference of a module.
    cuModuleGetTexRef 2000 "cuModuleGetTexRef" (result: Out<CUtexref>, of: CUmodule, variable: Text) {
        let (module, variable) = (module(of)?, variable.name()?);
        let mut variables = module.loaded.module().program().module.variables.iter();
        variables.find(|v| v.name == variable && v.opaque == Some(isa::Opaque::Texture)).ok_or(Status::CUDA_ERROR_NOT_FOUND)?;
        let reference = TextureReference::new(Some((Arc::clone(&module), variable.to_owned())));
        TEXTURE_REFERENCES.give(result, reference)
    }
    /// Makes a texture reference of no module.
    cuTexRefCreate 2000 "cuTexRefCreate" (result: Out<CUtexref>) {
        driver()?;
        let reference = TextureReference::new(None);
        TEXTURE_REFERENCES.give(result, reference)
    }
    /// Destroys a texture reference of no module.
    cuTexRefDestroy 2000 "cuTexRefDestroy" (of: CUtexref) {
        TEXTURE_REFERENCES.remove(of).map(drop).ok_or(INVALID)
    }
    /// Binds a texture reference to an array.
    cuTexRefSetArray 2000 "cuTexRefSetArray" (of: CUtexref, to: CUarray, _flags: c_uint) {
        let array = array(to)?;
        reference(of)?.bind(array)
    }
    /// Binds a texture reference to an array with mipmap levels.
    cuTexRefSetMipmappedArray 5000 "cuTexRefSetMipmappedArray" (of: CUtexref, to: CUmipmappedArray, _flags: c_uint) {
        let array = mipmapped(to)?;
        reference(of)?.bind(array)
    }
    /// Binds a texture reference to memory.
    cuTexRefSetAddress 3020 "cuTexRefSetAddress_v2" (offset: Out<usize>, of: CUtexref, address: CUdeviceptr, bytes: usize) {
        reference(of)?.change(|state| {
            state.source = Some(Source::linear(address, format(state.format, state.channels)?, bytes)?);
            Ok(())
        })?;
        offset.write_if_wanted(0);
        Ok(())
    }
    /// Binds a texture reference to rows in memory.
    cuTexRefSetAddress2D 4010 "cuTexRefSetAddress2D_v3" (of: CUtexref, description: In<PlaneDescription>, address: CUdeviceptr, pitch: usize) {
        let plane = description.read()?;
        reference(of)?.change(|state| {
            (state.format, state.channels) = (plane.format, plane.channels);
            let format = format(plane.format, plane.channels)?;
            state.source = Some(Source::pitched(address, format, [plane.width, plane.height], pitch)?);
            Ok(())
        })
    }
    /// Sets the format of a texture reference.
    cuTexRefSetFormat 2000 "cuTexRefSetFormat" (of: CUtexref, number: c_uint, channels: c_int) {
        let channels = u32::try_from(channels).map_err(|_| INVALID)?;
        format(number, channels)?;
        reference(of)?.set(|state| (state.format, state.channels) = (number, channels))
    }
    /// Sets what becomes of coordinates out of range.
    cuTexRefSetAddressMode 2000 "cuTexRefSetAddressMode" (of: CUtexref, of_dimension: c_int, mode: c_uint) {
        let (index, address) = (dimension(of_dimension)?, address_mode(mode)?);
        reference(of)?.set(|state| (state.modes[index], state.sampler.address[index]) = (mode, address))
    }
    /// Sets how texels are filtered.
    cuTexRefSetFilterMode 2000 "cuTexRefSetFilterMode" (of: CUtexref, mode: c_uint) {
        let mode = filter(mode)?;
        reference(of)?.set(|state| state.sampler.filter = mode)
    }
    /// Sets how levels are filtered.
    cuTexRefSetMipmapFilterMode 5000 "cuTexRefSetMipmapFilterMode" (of: CUtexref, mode: c_uint) {
        let mode = filter(mode)?;
        reference(of)?.set(|state| state.sampler.mip_filter = mode)
    }
    /// Sets what is added to levels of detail.
    cuTexRefSetMipmapLevelBias 5000 "cuTexRefSetMipmapLevelBias" (of: CUtexref, bias: f32) {
        reference(of)?.set(|state| state.sampler.lod_bias = bias)
    }
    /// Sets the range of levels of detail.
    cuTexRefSetMipmapLevelClamp 5000 "cuTexRefSetMipmapLevelClamp" (of: CUtexref, least: f32, most: f32) {
        reference(of)?.set(|state| (state.sampler.lod_min, state.sampler.lod_max) = (least, most))
    }
    /// Sets the colour of the border.
    cuTexRefSetBorderColor 8000 "cuTexRefSetBorderColor" (of: CUtexref, color: In<[u32; 4]>) {
        let color = color.read()?;
        reference(of)?.set(|state| state.sampler.border = color)
    }
    /// Sets whether coordinates are normalised, and how integers are read.
    cuTexRefSetFlags 2000 "cuTexRefSetFlags" (of: CUtexref, flags: c_uint) {
        if flags & !FLAGS != 0 {
            return Err(INVALID);
        }
        reference(of)?.set(|state| {
            state.flags = flags;
            state.sampler.normalized = flags & NORMALIZED_COORDINATES != 0;
            state.sampler.normalized_float = flags & READ_AS_INTEGER == 0;
            state.sampler.srgb = flags & SRGB != 0;
        })
    }
    /// Sets how anisotropic filtering may be, which has no effect here.
    cuTexRefSetMaxAnisotropy 5000 "cuTexRefSetMaxAnisotropy" (of: CUtexref, most: c_uint) {
        if most == 0 || most > 16 { Err(INVALID) } else { reference(of).map(drop) }
    }
    /// The array that a texture reference is bound to.
    cuTexRefGetArray 2000 "cuTexRefGetArray" (result: Out<CUarray>, of: CUtexref) {
        match &lock(&reference(of)?.state).source {
            Some(Source::Array(array)) => result.write(handle_of(array)),
            _ => Err(INVALID),
        }
    }
    /// The memory that a texture reference is bound to.
    cuTexRefGetAddress 3020 "cuTexRefGetAddress_v2" (result: Out<CUdeviceptr>, of: CUtexref) {
        match &lock(&reference(of)?.state).source {
            Some(Source::Memory(address, _)) => result.write(*address),
            _ => Err(INVALID),
        }
    }
    /// What becomes of coordinates out of range.
    cuTexRefGetAddressMode 2000 "cuTexRefGetAddressMode" (result: Out<c_uint>, of: CUtexref, of_dimension: c_int) {
        result.write(lock(&reference(of)?.state).modes[dimension(of_dimension)?])
    }
    /// How texels are filtered.
    cuTexRefGetFilterMode 2000 "cuTexRefGetFilterMode" (result: Out<c_uint>, of: CUtexref) {
        result.write((lock(&reference(of)?.state).sampler.filter == Filter::Linear).into())
    }
    /// Whether coordinates are normalised, and how integers are read.
    cuTexRefGetFlags 2000 "cuTexRefGetFlags" (result: Out<c_uint>, of: CUtexref) {
        result.write(lock(&reference(of)?.state).flags)
    }
    /// The format of a texture reference.
    cuTexRefGetFormat 2000 "cuTexRefGetFormat" (result: Out<c_uint>, channels: Out<c_int>, of: CUtexref) {
        let reference = reference(of)?;
        let state = lock(&reference.state);
        result.write(state.format)?;
        channels.write(state.channels as c_int)
    }
    /// A surface reference of a module.
    cuModuleGetSurfRef 3000 "cuModuleGetSurfRef" (result: Out<CUsurfref>, of: CUmodule, variable: Text) {
        let (module, variable) = (module(of)?, variable.name()?);
        let mut variables = module.loaded.module().program().module.variables.iter();
        variables.find(|v| v.name == variable && v.opaque == Some(isa::Opaque::Surface)).ok_or(Status::CUDA_ERROR_NOT_FOUND)?;
        let reference = SurfaceReference { variable: (Arc::clone(&module), variable.to_owned()), bound: Mutex::default() };
        let reference = Arc::new(reference);
        SURFACE_REFERENCES.give(result, reference)
    }
    /// Binds a surface reference to an array.
    cuSurfRefSetArray 3000 "cuSurfRefSetArray" (of: CUsurfref, to: CUarray, flags: c_uint) {
        let (reference, array) = (SURFACE_REFERENCES.get(of).ok_or(INVALID)?, array(to)?);
        if flags != 0 {
            return Err(INVALID);
        }
        let surface = driver()?.device.surface(&array.image).map_err(failed)?;
        let (module, name) = &reference.variable;
        module.loaded.bind_surface(name, &surface).map_err(failed)?;
        *lock(&reference.bound) = Some((array, surface));
        Ok(())
    }
    /// The array that a surface reference is bound to.
    cuSurfRefGetArray 3000 "cuSurfRefGetArray" (result: Out<CUarray>, of: CUsurfref) {
        let reference = SURFACE_REFERENCES.get(of).ok_or(INVALID)?;
        match &*lock(&reference.bound) {
            Some((array, _)) => result.write(handle_of(array)),
            None => Err(INVALID),
        }
    }
}
