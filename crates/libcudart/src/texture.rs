//! Texture and surface objects (CUDA Runtime API, "Texture Object Management", "Surface Object Management").

use std::ffi::{c_int, c_uint, c_void};

use caller::structures::{
    DISABLE_TRILINEAR_OPTIMIZATION, NORMALIZED_COORDINATES, READ_AS_INTEGER, RESOURCE_ARRAY, RESOURCE_LINEAR,
    RESOURCE_MIPMAPPED, RESOURCE_ROWS, Resource, SEAMLESS_CUBEMAP, SRGB, TextureSettings,
};

use crate::api::api;
use crate::array::{desc_of, format_of};
use crate::context::enter;
use crate::driver::cu;
use crate::error::Error;
use crate::pointers::{In, Out};
use crate::types::{ChannelDesc, TextureDesc};

/// `cudaResourceDesc` of CUDA 12; in CUDA 13 it is longer. After `kind`, whose numbers are the driver's, comes a union.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ResourceDesc {
    kind: c_uint,
    pointer: u64,
    desc: ChannelDesc,
    /// The size of linear memory in bytes, or width, height and pitch of rows.
    sizes: [usize; 3],
}

const _: () = assert!(size_of::<ResourceDesc>() == 64);

/// The size of `cudaResourceViewDesc` of CUDA 12. In the driver and in CUDA 13, zeros follow.
const VIEW_BYTES: usize = 48;
type DriverViewDesc = [u64; 14];

const _: () =
    assert!(size_of::<DriverViewDesc>() == size_of::<cudarc::driver::sys::CUDA_RESOURCE_VIEW_DESC>());

/// `cudaReadModeElementType`
const ELEMENT_TYPE: c_int = 0;

fn resource(desc: In<ResourceDesc>) -> Result<Resource, Error> {
    let ResourceDesc { kind, pointer, desc, sizes } = desc.read()?;
    let mut resource = Resource { kind, pointer, ..Resource::default() };
    match kind {
        RESOURCE_ARRAY | RESOURCE_MIPMAPPED => {}
        RESOURCE_LINEAR | RESOURCE_ROWS => {
            let format = format_of(desc)?;
            (resource.format, resource.channels) = (format.format as c_uint, format.channels);
            resource.sizes = if kind == RESOURCE_LINEAR { [sizes[0], 0, 0] } else { sizes };
        }
        _ => return Err(Error::INVALID_VALUE),
    }
    Ok(resource)
}

fn tell_resource(result: Out<ResourceDesc>, resource: &Resource) -> Result<(), Error> {
    let desc = match resource.kind {
        RESOURCE_LINEAR | RESOURCE_ROWS => desc_of(resource.format, resource.channels),
        _ => ChannelDesc::default(),
    };
    let Resource { kind, pointer, sizes, .. } = *resource;
    result.write(ResourceDesc { kind, pointer, desc, sizes })
}

fn texture(desc: &TextureDesc) -> TextureSettings {
    let flags = [
        (desc.read_mode == ELEMENT_TYPE, READ_AS_INTEGER),
        (desc.normalized_coordinates != 0, NORMALIZED_COORDINATES),
        (desc.srgb != 0, SRGB),
        (desc.disable_trilinear_optimization != 0, DISABLE_TRILINEAR_OPTIMIZATION),
        (desc.seamless_cubemap != 0, SEAMLESS_CUBEMAP),
    ];
    TextureSettings {
        address_mode: desc.address_mode,
        filter_mode: desc.filter_mode,
        flags: flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum(),
        max_anisotropy: desc.max_anisotropy,
        mipmap_filter_mode: desc.mipmap_filter_mode,
        mipmap_level_bias: desc.mipmap_level_bias,
        min_mipmap_level: desc.min_mipmap_level,
        max_mipmap_level: desc.max_mipmap_level,
        border: desc.border,
        ..TextureSettings::default()
    }
}

fn texture_of_driver(desc: &TextureSettings) -> TextureDesc {
    let has = |flag| c_int::from(desc.flags & flag != 0);
    TextureDesc {
        address_mode: desc.address_mode,
        filter_mode: desc.filter_mode,
        read_mode: if has(READ_AS_INTEGER) != 0 { ELEMENT_TYPE } else { 1 },
        srgb: has(SRGB),
        border: desc.border,
        normalized_coordinates: has(NORMALIZED_COORDINATES),
        max_anisotropy: desc.max_anisotropy,
        mipmap_filter_mode: desc.mipmap_filter_mode,
        mipmap_level_bias: desc.mipmap_level_bias,
        min_mipmap_level: desc.min_mipmap_level,
        max_mipmap_level: desc.max_mipmap_level,
        disable_trilinear_optimization: has(DISABLE_TRILINEAR_OPTIMIZATION),
        seamless_cubemap: has(SEAMLESS_CUBEMAP),
    }
}

/// # Safety
/// As for `cudaGetTextureObjectResourceViewDesc`.
unsafe fn tell_view(result: *mut c_void, object: u64, bytes: usize) -> Result<(), Error> {
    enter()?;
    let mut view: DriverViewDesc = [0; 14];
    // SAFETY: the caller's promise.
    unsafe {
        cu!(cuTexObjectGetResourceViewDesc(&raw mut view, object))?;
        if result.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        std::ptr::copy_nonoverlapping(view.as_ptr().cast::<u8>(), result.cast(), bytes);
    }
    Ok(())
}

api! { API:
    /// Makes a texture object.
    cudaCreateTextureObject(result: *mut u64, of: In<ResourceDesc>, desc: In<TextureDesc>, view: *const c_void) {
        enter()?;
        let (resource, texture) = (resource(of)?, texture(&desc.read()?));
        let mut of_driver: DriverViewDesc = [0; 14];
        let mut chosen = std::ptr::null();
        if !view.is_null() {
            std::ptr::copy_nonoverlapping(view.cast::<u8>(), of_driver.as_mut_ptr().cast(), VIEW_BYTES);
            chosen = &raw const of_driver;
        }
        cu!(cuTexObjectCreate(result, &raw const resource, &raw const texture, chosen))
    }
    /// Destroys a texture object.
    cudaDestroyTextureObject(object: u64) {
        enter()?;
        if object == 0 {
            return Ok(());
        }
        cu!(cuTexObjectDestroy(object))
    }
    /// What a texture object reads.
    cudaGetTextureObjectResourceDesc(result: Out<ResourceDesc>, object: u64) {
        enter()?;
        let mut resource = Resource::default();
        cu!(cuTexObjectGetResourceDesc(&raw mut resource, object))?;
        tell_resource(result, &resource)
    }
    /// How a texture object reads.
    cudaGetTextureObjectTextureDesc(result: Out<TextureDesc>, object: u64) {
        enter()?;
        let mut texture = TextureSettings::default();
        cu!(cuTexObjectGetTextureDesc(&raw mut texture, object))?;
        result.write(texture_of_driver(&texture))
    }
    /// Which part of its resource a texture object shows.
    cudaGetTextureObjectResourceViewDesc_12[12 as cudaGetTextureObjectResourceViewDesc](result: *mut c_void, object: u64) {
        tell_view(result, object, VIEW_BYTES)
    }
    /// Which part of its resource a texture object shows.
    cudaGetTextureObjectResourceViewDesc_13[13 as cudaGetTextureObjectResourceViewDesc](result: *mut c_void, object: u64) {
        tell_view(result, object, size_of::<DriverViewDesc>())
    }
    /// Makes a surface object.
    cudaCreateSurfaceObject(result: *mut u64, of: In<ResourceDesc>) => cuSurfObjectCreate(result, &resource(of)?);
    /// Destroys a surface object.
    cudaDestroySurfaceObject(object: u64) {
        enter()?;
        if object == 0 {
            return Ok(());
        }
        cu!(cuSurfObjectDestroy(object))
    }
    /// What a surface object reads and writes.
    cudaGetSurfaceObjectResourceDesc(result: Out<ResourceDesc>, object: u64) {
        enter()?;
        let mut resource = Resource::default();
        cu!(cuSurfObjectGetResourceDesc(&raw mut resource, object))?;
        tell_resource(result, &resource)
    }
}
