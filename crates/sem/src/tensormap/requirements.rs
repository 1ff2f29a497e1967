//! The driver's requirements on a map (CUDA Driver API, "Tensor Map Object Management"), one by one.

use super::{Element, Fill, Im2col, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap};

/// A description of an unmet requirement.
pub type Unmet = &'static str;

impl TensorMap {
    /// Checks all requirements of `cuTensorMapEncodeTiled` and the related functions.
    ///
    /// # Errors
    /// A description of the first unmet requirement.
    pub fn check(&self) -> Result<(), Unmet> {
        check(self)?;
        match &self.mode {
            Mode::Tiled(extents) => check_box(self, &extents[..self.rank])?,
            Mode::Im2col(columns) => check_columns(self, columns, false)?,
            Mode::Im2colWide { columns, w128 } => check_columns(self, columns, *w128)?,
        }
        check_swizzle(self)
    }
}

/// Bytes that a box may have. An H100's driver refuses 236,160 and takes 228,480.
const MOST_BYTES: u64 = 227 << 10;

/// Whether a group of 16 numbers takes 16 bytes of shared memory.
fn is_widely_packed(element: Element) -> bool {
    matches!(element, Element::U4Align16 | Element::U6Align16)
}

/// Addresses and strides must be multiples of this.
fn alignment(map: &TensorMap) -> u64 {
    if map.interleave == Interleave::Bytes32 || is_widely_packed(map.element) { 32 } else { 16 }
}

/// Checks the requirements on every map.
fn check(map: &TensorMap) -> Result<(), Unmet> {
    let require = |condition: bool, unmet: Unmet| if condition { Ok(()) } else { Err(unmet) };
    let widely_packed = is_widely_packed(map.element);
    require(
        map.interleave == Interleave::None || map.rank >= 3,
        "with interleaved channels it has at least 3 dimensions",
    )?;
    require((1..=MOST_DIMENSIONS).contains(&map.rank), "it has 1 to 5 dimensions")?;
    let align = alignment(map);
    require(map.address.is_multiple_of(align), "the address is a multiple of 16, or 32")?;
    let extents = &map.extents[..map.rank];
    require(extents.iter().all(|extent| (1..=1 << 32).contains(extent)), "extents are 1 to 2^32")?;
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

/// Checks the requirements on the number of elements along the innermost dimension.
fn check_row(map: &TensorMap, elements: u32) -> Result<(), Unmet> {
    // A group of 16 takes 16 bytes of shared memory.
    let bits = if is_widely_packed(map.element) { 8 } else { map.element.bits() };
    if is_widely_packed(map.element) && elements != 128 {
        return Err("a row of this type has 128 elements");
    }
    if elements == 0 || !(elements * map.element.bits()).is_multiple_of(16 * 8) {
        return Err("a row of the box, or the channels of a pixel, are a multiple of 16 bytes");
    }
    let is_narrow = map.swizzle == Swizzle::None || u64::from(elements * bits / 8) <= map.swizzle.span();
    if map.interleave == Interleave::None && !is_narrow {
        return Err("a row is no longer than the span of the swizzle");
    }
    Ok(())
}

/// Checks the swizzles that packed types and wide columns allow.
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

/// Checks the requirements on a box.
fn check_box(map: &TensorMap, extents: &[u32]) -> Result<(), Unmet> {
    if !extents.iter().all(|extent| (1..=256).contains(extent)) {
        return Err("a box has 1 to 256 elements in each dimension");
    }
    // The driver rounds numbers of elements down here, though a copy rounds them up.
    let taken = extents.iter().zip(map.steps).map(|(&extent, step)| u64::from(extent / step));
    let bits = taken.fold(u64::from(map.element.bits()), u64::saturating_mul);
    if bits / 8 > MOST_BYTES {
        return Err("a box has at most the 227 KiB of a block's shared memory");
    }
    check_row(map, extents[0])
}

/// Checks the requirements on columns.
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
    let within = if is_wide { 1..2 } else { map.within_image() };
    let extents = &map.extents[within];
    let is_empty = |((&extent, &lower), &upper): ((&u64, &i32), &i32)| {
        extent as i64 + i64::from(upper) - i64::from(lower) <= 0
    };
    if extents.iter().zip(&columns.lower).zip(&columns.upper).any(is_empty) {
        return Err("the bounding box is empty");
    }
    if extents.iter().any(|&extent| extent >= 1 << 31) {
        return Err("the bounding box is in less than 2^31 elements");
    }
    if columns.channels > 256 {
        return Err("there are at most 256 channels");
    }
    if !(1..=1024).contains(&columns.pixels) && !w128 {
        return Err("there are 1 to 1024 pixels");
    }
    check_row(map, columns.channels)
}
