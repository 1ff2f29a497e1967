//! Structures that programs pass (`driver_types.h`, `vector_types.h`), with the layout that C compilers give them.
//! Fields are those of the C structures, in their order.

#![allow(missing_docs)]

use std::ffi::{c_int, c_uint, c_void};

use crate::Handle;

/// The dimensions of a grid or a block.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Dim3 {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

/// `cudaLaunchConfig_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared: usize,
    pub stream: Handle,
    pub attributes: *mut c_void,
    pub count: c_uint,
}

/// `cudaPos`, `cudaExtent`: elements of an array or bytes, then rows, then slices.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `cudaPitchedPtr`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PitchedPtr {
    pub pointer: *mut c_void,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// `cudaMemcpy3DParms`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memcpy3D {
    pub from_array: Handle,
    pub from_position: Extent,
    pub from: PitchedPtr,
    pub to_array: Handle,
    pub to_position: Extent,
    pub to: PitchedPtr,
    pub extent: Extent,
    pub kind: c_int,
}

/// `cudaMemcpy3DPeerParms`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memcpy3DPeer {
    pub from_array: Handle,
    pub from_position: Extent,
    pub from: PitchedPtr,
    pub from_device: c_int,
    pub to_array: Handle,
    pub to_position: Extent,
    pub to: PitchedPtr,
    pub to_device: c_int,
    pub extent: Extent,
}

/// `cudaChannelFormatDesc`: the bits of each channel, and their kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelDesc {
    pub x: c_int,
    pub y: c_int,
    pub z: c_int,
    pub w: c_int,
    pub kind: c_int,
}

/// `cudaMemLocation`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemLocation {
    pub kind: c_int,
    pub id: c_int,
}

/// `cudaKernelNodeParams`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    pub host: *mut c_void,
    pub grid: Dim3,
    pub block: Dim3,
    pub shared: c_uint,
    pub arguments: *mut Handle,
    pub extra: *mut Handle,
}

/// `cudaFuncAttributes`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct FuncAttributes {
    pub shared: usize,
    pub constant: usize,
    pub local: usize,
    pub max_threads: c_int,
    pub registers: c_int,
    pub ptx_version: c_int,
    pub binary_version: c_int,
    pub cache_mode: c_int,
    pub most_dynamic: c_int,
    pub carveout: c_int,
    pub cluster_must_be_set: c_int,
    pub cluster: [c_int; 3],
    pub cluster_scheduling: c_int,
    pub non_portable_cluster: c_int,
    pub reserved: [c_int; 16],
}

/// `cudaTextureDesc`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct TextureDesc {
    pub address_mode: [c_uint; 3],
    pub filter_mode: c_uint,
    pub read_mode: c_int,
    pub srgb: c_int,
    pub border: [f32; 4],
    pub normalized_coordinates: c_int,
    pub max_anisotropy: c_uint,
    pub mipmap_filter_mode: c_uint,
    pub mipmap_level_bias: f32,
    pub min_mipmap_level: f32,
    pub max_mipmap_level: f32,
    pub disable_trilinear_optimization: c_int,
    pub seamless_cubemap: c_int,
}

// `cudart.md`: sizes from the headers of 12.9 and 13.5.
const _: () = assert!(size_of::<Dim3>() == 12);
const _: () = assert!(size_of::<LaunchConfig>() == 56);
const _: () = assert!(size_of::<Memcpy3D>() == 160);
const _: () = assert!(size_of::<Memcpy3DPeer>() == 168);
const _: () = assert!(size_of::<ChannelDesc>() == 20);
const _: () = assert!(size_of::<FuncAttributes>() == 144);
const _: () = assert!(size_of::<TextureDesc>() == 72);
const _: () = assert!(size_of::<KernelNode>() == 56);
