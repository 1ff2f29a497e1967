//! Tensor maps: what copies of boxes of tensors need to know (CUDA Driver API, "Tensor Map Object Management").
//!
//! Each requirement of the manual is checked here, and the one that a program does not meet is told under `PTXVM_LOG=info`.

use std::ffi::{c_int, c_uint, c_void};

use ptxvm::tensor_map::{
    BYTES, Element, Fill, Im2col, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap,
};

use crate::Status;
use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::log::log;
use crate::pointers::{read, read_all, write};

const INVALID: Status = Status::CUDA_ERROR_INVALID_VALUE;

/// What a requirement wants that is not met.
type Unmet = &'static str;

/// The devices have the unit that copies boxes.
fn is_supported(capability: u32) -> Result<(), Status> {
    Context::current()?;
    if driver()?.config.chip.capability >= capability {
        return Ok(());
    }
    log!(warn_once, "tensor maps of this kind need sm_{capability}");
    Err(Status::CUDA_ERROR_NOT_SUPPORTED)
}

fn refuse(unmet: Unmet) -> Status {
    log!(info, "tensor map: {unmet}");
    INVALID
}

/// Numbers that stand for something, as the program passes them.
#[derive(Clone, Copy)]
struct Kinds {
    element: c_uint,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
}

/// A tensor as the program describes it, whatever is taken of it.
struct Tensor {
    rank: c_uint,
    address: *mut c_void,
    extents: *const u64,
    strides: *const u64,
    steps: *const u32,
    kinds: Kinds,
}

impl Tensor {
    /// The map of it. What is taken is not checked yet.
    ///
    /// # Safety
    /// What is not null must point to as many numbers as there are dimensions, or one less.
    unsafe fn map(&self, mode: Mode) -> Result<TensorMap, Status> {
        let rank = self.rank as usize;
        if !(1..=MOST_DIMENSIONS).contains(&rank) {
            return Err(refuse("it has 1 to 5 dimensions"));
        }
        let known = |what| move || refuse(what);
        let kinds = self.kinds;
        if kinds.promotion > 3 {
            return Err(refuse("there is no such L2 promotion"));
        }
        // SAFETY: the caller's promise.
        let (extents, strides, steps) = unsafe {
            (read_all(self.extents, rank)?, read_all(self.strides, rank - 1)?, read_all(self.steps, rank)?)
        };
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
        if map.interleave == Interleave::None {
            // "the first element of this array is ignored"
            map.steps[0] = 1;
        }
        check(&map).map_err(refuse)?;
        Ok(map)
    }
}

/// Groups of 16 numbers that have 16 bytes of shared memory.
fn is_widely_packed(element: Element) -> bool {
    matches!(element, Element::U4Align16 | Element::U6Align16)
}

/// Addresses and strides are multiples of this.
fn alignment(map: &TensorMap) -> u64 {
    if map.interleave == Interleave::Bytes32 || is_widely_packed(map.element) { 32 } else { 16 }
}

/// What the manual asks of every map.
fn check(map: &TensorMap) -> Result<(), Unmet> {
    let require = |condition: bool, unmet: Unmet| if condition { Ok(()) } else { Err(unmet) };
    let widely_packed = is_widely_packed(map.element);
    require(
        map.interleave == Interleave::None || map.rank >= 3,
        "with interleaved channels it has at least 3 dimensions",
    )?;
    let align = alignment(map);
    require(map.address.is_multiple_of(align), "the address is a multiple of 16, or 32")?;
    let extents = &map.extents[..map.rank];
    require(extents.iter().all(|extent| (1..=1 << 31).contains(extent)), "extents are 1 to 2^31")?;
    require(
        !widely_packed || extents[0].is_multiple_of(128),
        "the innermost extent of this type is a multiple of 128",
    )?;
    require(
        map.element != Element::U4Align8 || extents[0].is_multiple_of(2),
        "the innermost extent of this type is even",
    )?;
    let strides = &map.strides[..map.rank - 1];
    require(
        strides.iter().all(|stride| stride.is_multiple_of(align) && *stride < 1 << 40),
        "strides are multiples of 16, or 32, below 2^40",
    )?;
    require(map.steps.iter().all(|step| (1..=8).contains(step)), "element strides are 1 to 8")?;
    require(
        map.interleave != Interleave::Bytes32 || map.swizzle == Swizzle::Bytes32,
        "the swizzle of channels in groups of 32 bytes is that of 32 bytes",
    )?;
    require(
        map.element != Element::U6Align16 || map.interleave == Interleave::None,
        "channels of this type are not interleaved",
    )?;
    require(
        map.fill == Fill::Zero || map.element.is_float(),
        "only floating-point numbers are filled with NaNs",
    )
}

/// What the manual asks of so many elements of the innermost dimension.
fn check_row(map: &TensorMap, elements: u32) -> Result<(), Unmet> {
    // Groups of 16 have 16 bytes of shared memory.
    let bits = if is_widely_packed(map.element) { 8 } else { map.element.bits() };
    if is_widely_packed(map.element) && elements != 128 {
        return Err("a row of this type has 128 elements");
    }
    let is_narrow = map.swizzle == Swizzle::None || u64::from(elements * bits / 8) <= map.swizzle.span();
    if map.interleave == Interleave::None && !is_narrow {
        return Err("a row is no longer than the span of the swizzle");
    }
    Ok(())
}

/// The swizzles that types of less than a byte have, and those of wide columns.
fn check_swizzle(map: &TensorMap) -> Result<(), Unmet> {
    use Swizzle::{Bytes64, Bytes128, Bytes128By32, Bytes128By64, None};
    let is_wide = matches!(map.mode, Mode::Im2colWide { .. });
    let known: &[Swizzle] = match (map.element, is_wide) {
        (Element::U6Align16, false) => &[None, Bytes128, Bytes128By32, Bytes128By64],
        (Element::U4Align16, false) => &[None, Bytes128, Bytes128By32],
        (Element::U4Align16, true) => &[Bytes128, Bytes128By32],
        (_, true) => &[Bytes64, Bytes128, Bytes128By32],
        (_, false) => return Ok(()),
    };
    if known.contains(&map.swizzle) { Ok(()) } else { Err("this type or mode does not have this swizzle") }
}

/// What the manual asks of a box.
fn check_box(map: &TensorMap, extents: &[u32]) -> Result<(), Unmet> {
    if !extents.iter().all(|extent| (1..=256).contains(extent)) {
        return Err("a box has 1 to 256 elements in each dimension");
    }
    if map.interleave == Interleave::None && !(extents[0] * map.element.bits()).is_multiple_of(16 * 8) {
        return Err("a row of the box is a multiple of 16 bytes");
    }
    check_row(map, extents[0])
}

/// What the manual asks of columns.
fn check_columns(map: &TensorMap, columns: &Im2col, w128: bool) -> Result<(), Unmet> {
    if map.rank < 3 {
        return Err("it has 3 to 5 dimensions");
    }
    let is_wide = matches!(map.mode, Mode::Im2colWide { .. });
    let range = match map.rank {
        _ if is_wide => -32768..=32767,
        3 => -32768..=32767,
        4 => -128..=127,
        _ => -16..=15,
    };
    if !columns.lower.iter().chain(&columns.upper).all(|corner| range.contains(corner)) {
        return Err("a corner of the bounding box is out of its range");
    }
    let count = if is_wide { 1 } else { map.rank - 2 };
    let is_empty =
        |i: usize| map.extents[1 + i] as i64 + i64::from(columns.upper[i]) - i64::from(columns.lower[i]) <= 0;
    if (0..count).any(is_empty) {
        return Err("the bounding box is empty");
    }
    if columns.channels > 256 {
        return Err("there are at most 256 channels");
    }
    if columns.pixels > 1024 && !w128 {
        return Err("there are at most 1024 pixels");
    }
    check_row(map, columns.channels)
}

/// Checks the rest of a map and writes it.
///
/// # Safety
/// What is not null must have room for a map.
unsafe fn finish(result: *mut c_void, map: &TensorMap, rest: Result<(), Unmet>) -> Result<(), Status> {
    rest.and_then(|()| check_swizzle(map)).map_err(refuse)?;
    if result.is_null() || !result.addr().is_multiple_of(64) {
        return Err(refuse("it is at a multiple of 64 bytes"));
    }
    // SAFETY: the caller's promise; bytes have no alignment.
    unsafe { write(result.cast::<[u8; BYTES]>(), map.to_bytes()) }
}

/// Corners of the bounding box as the program has them; there are two less than dimensions.
///
/// # Safety
/// What is not null must point to as many.
unsafe fn corners(place: *const c_int, rank: c_uint) -> Result<[i32; 3], Status> {
    let count = (rank as usize).saturating_sub(2).min(3);
    let mut corners = [0; 3];
    // SAFETY: the caller's promise.
    corners[..count].copy_from_slice(&unsafe { read_all(place, count) }?);
    Ok(corners)
}

api! { API:
    /// Describes a tensor of which boxes are copied.
    cuTensorMapEncodeTiled 12000 "cuTensorMapEncodeTiled" (
        result: *mut c_void, element: c_uint, rank: c_uint, address: *mut c_void, extents: *const u64, strides: *const u64, taken: *const u32,
        steps: *const u32, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint
    ) {
        is_supported(90)?;
        let kinds = Kinds { element, interleave, swizzle, promotion, fill };
        let mut map = Tensor { rank, address, extents, strides, steps, kinds }.map(Mode::Tiled([1; MOST_DIMENSIONS]))?;
        let taken = read_all(taken, map.rank)?;
        let rest = check_box(&map, &taken);
        let mut all = [1; MOST_DIMENSIONS];
        all[..map.rank].copy_from_slice(&taken);
        map.mode = Mode::Tiled(all);
        finish(result, &map, rest)
    }
    /// Describes an image of which columns are copied.
    cuTensorMapEncodeIm2col 12000 "cuTensorMapEncodeIm2col" (
        result: *mut c_void, element: c_uint, rank: c_uint, address: *mut c_void, extents: *const u64, strides: *const u64, lower: *const c_int,
        upper: *const c_int, channels: c_uint, pixels: c_uint, steps: *const u32, interleave: c_uint, swizzle: c_uint, promotion: c_uint, fill: c_uint
    ) {
        is_supported(90)?;
        let kinds = Kinds { element, interleave, swizzle, promotion, fill };
        let columns = Im2col { lower: corners(lower, rank)?, upper: corners(upper, rank)?, channels, pixels };
        let map = Tensor { rank, address, extents, strides, steps, kinds }.map(Mode::Im2col(columns))?;
        finish(result, &map, check_columns(&map, &columns, false))
    }
    /// Describes an image of which columns along its width are copied.
    cuTensorMapEncodeIm2colWide 12080 "cuTensorMapEncodeIm2colWide" (
        result: *mut c_void, element: c_uint, rank: c_uint, address: *mut c_void, extents: *const u64, strides: *const u64, lower: c_int,
        upper: c_int, channels: c_uint, pixels: c_uint, steps: *const u32, interleave: c_uint, mode: c_uint, swizzle: c_uint, promotion: c_uint,
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
        finish(result, &map, check_columns(&map, &columns, w128))
    }
    /// Lets a tensor map describe a tensor at another address.
    cuTensorMapReplaceAddress 12000 "cuTensorMapReplaceAddress" (result: *mut c_void, address: *mut c_void) {
        is_supported(90)?;
        let mut map = existing(result)?;
        map.address = address.addr() as u64;
        if !map.address.is_multiple_of(alignment(&map)) {
            return Err(refuse("the address is a multiple of 16, or 32"));
        }
        write(result.cast::<[u8; BYTES]>(), map.to_bytes())
    }
    /// Asks for a larger window of addresses around the tensor, which changes nothing here.
    cuTensorMapSetAllocationClass 13050 "cuTensorMapSetAllocationClass" (result: *mut c_void, class: c_uint, effective: *mut c_uint) {
        const SMALL: c_uint = 1;
        is_supported(90)?;
        if !effective.is_null() {
            write(effective, SMALL)?;
        }
        existing(result)?;
        if class > 2 { Err(INVALID) } else { Ok(()) }
    }
}

/// The map that a program has.
///
/// # Safety
/// What is not null must point to 128 bytes.
unsafe fn existing(place: *const c_void) -> Result<TensorMap, Status> {
    if !place.addr().is_multiple_of(64) {
        return Err(refuse("it is at a multiple of 64 bytes"));
    }
    // SAFETY: the caller's promise; bytes have no alignment.
    let bytes = unsafe { read(place.cast::<[u8; BYTES]>()) }?;
    TensorMap::from_bytes(&bytes).map_err(|_| refuse("these bytes are no tensor map"))
}
