//! Structures of the driver with enumerations in them. Programs may store any number there, so these have numbers.

#![allow(missing_docs)]

use std::ffi::{c_int, c_void};

/// `CUmemorytype`
pub const HOST: u32 = 1;
pub const DEVICE: u32 = 2;
pub const ARRAY: u32 = 3;
pub const UNIFIED: u32 = 4;

/// `CUDA_MEMCPY3D`, `CUDA_MEMCPY3D_PEER`: a copy of slices of rows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BoxCopy {
    pub from: BoxSide,
    pub to: BoxSide,
    /// Bytes per row, rows per slice, slices.
    pub extents: [usize; 3],
}

/// One side of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BoxSide {
    /// Where it begins: byte in a row, row, slice.
    pub start: [usize; 3],
    pub level: usize,
    pub memory_type: u32,
    pub host: *mut c_void,
    pub device: u64,
    pub array: *mut c_void,
    /// Reserved in `CUDA_MEMCPY3D`.
    pub context: *mut c_void,
    pub pitch: usize,
    pub height: usize,
}

/// `CUDA_RESOURCE_DESC`. The members of its union begin in the same way: with a handle or an address, then a format.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Resource {
    pub kind: u32,
    pub pointer: u64,
    pub format: u32,
    pub channels: u32,
    /// The size of linear memory in bytes, or width, height and pitch of rows.
    pub sizes: [usize; 3],
    pub reserved: [u64; 11],
    pub flags: u32,
}

/// The kinds of resources (`CUresourcetype`).
pub const RESOURCE_ARRAY: u32 = 0;
pub const RESOURCE_MIPMAPPED: u32 = 1;
pub const RESOURCE_LINEAR: u32 = 2;
pub const RESOURCE_ROWS: u32 = 3;

/// `CUDA_TEXTURE_DESC`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TextureSettings {
    pub address_mode: [u32; 3],
    pub filter_mode: u32,
    pub flags: u32,
    pub max_anisotropy: u32,
    pub mipmap_filter_mode: u32,
    pub mipmap_level_bias: f32,
    pub min_mipmap_level: f32,
    pub max_mipmap_level: f32,
    pub border: [f32; 4],
    pub reserved: [c_int; 12],
}

/// Flags of a texture.
pub const READ_AS_INTEGER: u32 = 1;
pub const NORMALIZED_COORDINATES: u32 = 2;
pub const SRGB: u32 = 0x10;
pub const DISABLE_TRILINEAR_OPTIMIZATION: u32 = 0x20;
pub const SEAMLESS_CUBEMAP: u32 = 0x40;
