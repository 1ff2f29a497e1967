//! Tensor maps: descriptions of tensors for copies of boxes (CUDA Driver API, "Tensor Map Object Management").
//!
//! `sem::tensormap` checks the requirements in order, and defines the layout of a map. `PTXVM_LOG=info` reports the requirement that a
//! program violates.

use std::ffi::{c_int, c_uint, c_void};

use ptxvm::tensor_map::{
    BYTES, Element, Fill, Im2col, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap,
};

use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::log::log;
use crate::pointers::{In, InOut, Out};
use crate::{INVALID, Status};

/// Checks that the devices have the unit that copies boxes.
fn is_supported(capability: u32) -> Result<(), Status> {
    Context::current()?;
    if driver()?.config.chip.capability >= capability {
        return Ok(());
    }
    log!(warn_once, "tensor maps of this kind need sm_{capability}");
    Err(Status::CUDA_ERROR_NOT_SUPPORTED)
}

fn refuse(unmet: &str) -> Status {
    log!(info, "tensor map: {unmet}");
    INVALID
}

/// Enumeration values as the program passes them.
#[derive(Clone, Copy)]
struct Kinds {
    element: c_uint,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
}

/// A tensor as the program describes it, for every kind of map.
struct Tensor<'a> {
    rank: c_uint,
    address: *mut c_void,
    extents: In<'a, u64>,
    strides: In<'a, u64>,
    steps: In<'a, u32>,
    kinds: Kinds,
}

impl Tensor<'_> {
    /// The tensor's map. The mode is not checked yet.
    fn map(&self, mode: Mode) -> Result<TensorMap, Status> {
        let rank = self.rank as usize;
        if !(1..=MOST_DIMENSIONS).contains(&rank) {
            return Err(refuse("it has 1 to 5 dimensions"));
        }
        let known = |what| move || refuse(what);
        let kinds = self.kinds;
        // An H100's driver refuses them.
        if (kinds.element > Element::Tf32Ftz as c_uint || kinds.swizzle > Swizzle::Bytes128 as c_uint)
            && driver()?.config.chip.capability < 100
        {
            return Err(refuse("types of 4 and 6 bits and swizzles with an atomicity need sm_100"));
        }
        if kinds.promotion > 3 {
            return Err(refuse("there is no such L2 promotion"));
        }
        let (extents, strides) = (self.extents.read_all(rank)?, self.strides.read_all(rank - 1)?);
        let steps = self.steps.read_all(rank)?;
        let mut map = TensorMap {
            mode,
            element: Element::of(kinds.element).ok_or_else(known("there is no such type"))?,
            rank,
            address: self.address.addr() as u64,
            extents: [1; MOST_DIMENSIONS],
            strides: [0; MOST_DIMENSIONS - 1],
            steps: [1; MOST_DIMENSIONS],
            interleave: Interleave::of(kinds.interleave).ok_or_else(known("there is no such interleave"))?,
            swizzle: Swizzle::of(kinds.swizzle).ok_or_else(known("there is no such swizzle"))?,
            fill: Fill::of(kinds.fill).ok_or_else(known("there is no such fill"))?,
        };
        map.extents[..rank].copy_from_slice(&extents);
        map.strides[..rank - 1].copy_from_slice(&strides);
        map.steps[..rank].copy_from_slice(&steps);
        if map.interleave == Interleave::None && !(1..=8).contains(&map.steps[0]) {
            // "the first element of this array is ignored"; only the limit on a box's bytes knows it.
            map.steps[0] = 1;
        }
        Ok(map)
    }
}

/// Checks a map and writes it.
fn finish(result: Out<[u8; BYTES]>, map: &TensorMap) -> Result<(), Status> {
    map.check().map_err(refuse)?;
    if result.is_null() || !result.pointer().addr().is_multiple_of(64) {
        return Err(refuse("it is at a multiple of 64 bytes"));
    }
    result.write(map.to_bytes())
}

/// Corners of the bounding box as the program passes them: two fewer than dimensions.
fn corners(place: In<c_int>, rank: c_uint) -> Result<[i32; 3], Status> {
    let count = (rank as usize).saturating_sub(2).min(3);
    let mut corners = [0; 3];
    corners[..count].copy_from_slice(&place.read_all(count)?);
    Ok(corners)
}

api! { API:
    /// Describes a tensor of which boxes are copied.
    cuTensorMapEncodeTiled 12000 "cuTensorMapEncodeTiled" (
        result: Out<[u8; BYTES]>, element: c_uint, rank: c_uint, address: *mut c_void, extents: In<u64>, strides: In<u64>, taken: In<u32>,
        steps: In<u32>, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint
    ) {
        is_supported(90)?;
        let kinds = Kinds { element, interleave, swizzle, promotion, fill };
        let mut map = Tensor { rank, address, extents, strides, steps, kinds }.map(Mode::Tiled([1; MOST_DIMENSIONS]))?;
        let taken = taken.read_all(map.rank)?;
        let mut all = [1; MOST_DIMENSIONS];
        all[..map.rank].copy_from_slice(&taken);
        map.mode = Mode::Tiled(all);
        finish(result, &map)
    }
    /// Describes an image of which columns are copied.
    cuTensorMapEncodeIm2col 12000 "cuTensorMapEncodeIm2col" (
        result: Out<[u8; BYTES]>, element: c_uint, rank: c_uint, address: *mut c_void, extents: In<u64>, strides: In<u64>, lower: In<c_int>,
        upper: In<c_int>, channels: c_uint, pixels: c_uint, steps: In<u32>, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint
    ) {
        is_supported(90)?;
        let kinds = Kinds { element, interleave, swizzle, promotion, fill };
        let columns = Im2col { lower: corners(lower, rank)?, upper: corners(upper, rank)?, channels, pixels };
        let map = Tensor { rank, address, extents, strides, steps, kinds }.map(Mode::Im2col(columns))?;
        finish(result, &map)
    }
    /// Describes an image of which columns along its width are copied.
    cuTensorMapEncodeIm2colWide 12080 "cuTensorMapEncodeIm2colWide" (
        result: Out<[u8; BYTES]>, element: c_uint, rank: c_uint, address: *mut c_void, extents: In<u64>, strides: In<u64>, lower: c_int,
        upper: c_int, channels: c_uint, pixels: c_uint, steps: In<u32>, interleave: c_uint, mode: c_uint, swizzle: c_uint, promotion: c_uint,
        fill: c_uint
    ) {
        is_supported(100)?;
        if mode > 1 {
            return Err(refuse("there is no such mode"));
        }
        let (kinds, w128) = (Kinds { element, interleave, swizzle, promotion, fill }, mode == 1);
        let pixels = if w128 { 0 } else { pixels };
        let columns = Im2col { lower: [lower, 0, 0], upper: [upper, 0, 0], channels, pixels };
        let map = Tensor { rank, address, extents, strides, steps, kinds }.map(Mode::Im2colWide { columns, w128 })?;
        finish(result, &map)
    }
    /// Lets a tensor map describe a tensor at another address.
    cuTensorMapReplaceAddress 12000 "cuTensorMapReplaceAddress" (result: InOut<[u8; BYTES]>, address: *mut c_void) {
        is_supported(90)?;
        let mut map = existing(result)?;
        map.address = address.addr() as u64;
        map.check().map_err(refuse)?;
        result.write(map.to_bytes())
    }
    /// Asks for a larger window of addresses around the tensor, which changes nothing here.
    cuTensorMapSetAllocationClass 13050 "cuTensorMapSetAllocationClass" (result: InOut<[u8; BYTES]>, class: c_uint, effective: Out<c_uint>) {
        const SMALL: c_uint = 1;
        is_supported(90)?;
        effective.write_if_wanted(SMALL);
        existing(result)?;
        if class > 2 { Err(INVALID) } else { Ok(()) }
    }
}

/// The map that a program has.
fn existing(place: InOut<[u8; BYTES]>) -> Result<TensorMap, Status> {
    if !place.pointer().addr().is_multiple_of(64) {
        return Err(refuse("it is at a multiple of 64 bytes"));
    }
    TensorMap::from_bytes(&place.read()?).map_err(|_| refuse("these bytes are no tensor map"))
}
