//! Copies (CUDA Runtime API, "Memory Management").

use std::ffi::{c_int, c_void};

use caller::structures::{ARRAY, BoxCopy, BoxSide, DEVICE, HOST, UNIFIED};

use crate::api::{Default, api};
use crate::array::element_bytes;
use crate::context::enter;
use crate::driver::cu;
use crate::error::Error;
use crate::pointers::In;
use crate::registry::variable;
use crate::types::{Extent, Memcpy3D, Memcpy3DPeer, PitchedPtr};
use crate::{Handle, NULL};

/// `cudaMemcpyKind`
const HOST_TO_HOST: c_int = 0;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const DEVICE_TO_DEVICE: c_int = 3;
/// The addresses determine the direction.
pub const BY_ADDRESS: c_int = 4;

/// When a copy runs.
#[derive(Clone, Copy)]
struct When {
    /// In the order of this stream; `None`: before the function returns.
    stream: Option<Handle>,
    default: Default,
}

impl When {
    fn now(default: Default) -> When {
        When { stream: None, default }
    }

    fn on(stream: Handle, default: Default) -> When {
        When { stream: Some(stream), default }
    }

    /// The stream to submit to; `None` if the driver's synchronous function does the same.
    fn stream(self) -> Option<Handle> {
        match (self.stream, self.default) {
            (None, Default::Legacy) => None,
            (stream, default) => Some(default.of(stream.unwrap_or(NULL))),
        }
    }

    /// Waits for a submitted copy that must be done before the function returns.
    fn finish(self) -> Result<(), Error> {
        match (self.stream, self.default) {
            // SAFETY: the arguments meet the requirements of the function.
            (None, Default::PerThread) => unsafe { cu!(cuStreamSynchronize(self.default.of(NULL))) },
            _ => Ok(()),
        }
    }
}

/// # Safety
/// As for `cudaMemcpy`.
unsafe fn copy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
    when: When,
) -> Result<(), Error> {
    enter()?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        match (kind, when.stream()) {
            (HOST_TO_DEVICE, None) => cu!(cuMemcpyHtoD_v2(to, from, bytes)),
            (HOST_TO_DEVICE, Some(stream)) => cu!(cuMemcpyHtoDAsync_v2(to, from, bytes, stream)),
            (DEVICE_TO_HOST, None) => cu!(cuMemcpyDtoH_v2(to, from, bytes)),
            (DEVICE_TO_HOST, Some(stream)) => cu!(cuMemcpyDtoHAsync_v2(to, from, bytes, stream)),
            (HOST_TO_HOST | DEVICE_TO_DEVICE | BY_ADDRESS, None) => cu!(cuMemcpy(to, from, bytes)),
            (HOST_TO_HOST | DEVICE_TO_DEVICE | BY_ADDRESS, Some(stream)) => {
                cu!(cuMemcpyAsync(to, from, bytes, stream))
            }
            _ => Err(Error::INVALID_MEMCPY_DIRECTION),
        }?;
    }
    when.finish()
}

/// The address of bytes in a variable.
fn inside(symbol: *const c_void, offset: usize, bytes: usize) -> Result<*mut c_void, Error> {
    let (address, size) = variable(symbol)?;
    if offset.checked_add(bytes).is_none_or(|end| end > size) {
        return Err(Error::INVALID_VALUE);
    }
    Ok(std::ptr::without_provenance_mut((address as usize) + offset))
}

/// # Safety
/// As for `cudaMemcpyToSymbol`.
unsafe fn copy_to_symbol(
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    when: When,
) -> Result<(), Error> {
    if !matches!(kind, HOST_TO_DEVICE | DEVICE_TO_DEVICE | BY_ADDRESS) {
        return Err(Error::INVALID_MEMCPY_DIRECTION);
    }
    // SAFETY: the caller's promise.
    unsafe { copy(inside(symbol, offset, bytes)?, from, bytes, kind, when) }
}

/// # Safety
/// As for `cudaMemcpyFromSymbol`.
unsafe fn copy_from_symbol(
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
    when: When,
) -> Result<(), Error> {
    if !matches!(kind, DEVICE_TO_HOST | DEVICE_TO_DEVICE | BY_ADDRESS) {
        return Err(Error::INVALID_MEMCPY_DIRECTION);
    }
    // SAFETY: the caller's promise.
    unsafe { copy(to, inside(symbol, offset, bytes)?, bytes, kind, when) }
}

/// One side of a three-dimensional copy.
#[derive(Clone, Copy)]
enum Side {
    Linear(PitchedPtr),
    Array(Handle),
}

impl Side {
    fn of(array: Handle, linear: PitchedPtr) -> Result<Side, Error> {
        match (array.is_null(), linear.pointer.is_null()) {
            (false, true) => Ok(Side::Array(array)),
            (true, false) => Ok(Side::Linear(linear)),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn rows(pointer: *const c_void, pitch: usize) -> Side {
        Side::Linear(PitchedPtr { pointer: pointer.cast_mut(), pitch, width: pitch, height: 0 })
    }

    /// The driver's description of this side. `is_host` and `by_address` matter for linear memory.
    fn described(self, start: [usize; 3], is_host: bool, by_address: bool) -> BoxSide {
        let (memory_type, at, array) = match self {
            Side::Array(array) => (ARRAY, PitchedPtr { pointer: NULL, pitch: 0, width: 0, height: 0 }, array),
            Side::Linear(at) if by_address => (UNIFIED, at, NULL),
            Side::Linear(at) if is_host => (HOST, at, NULL),
            Side::Linear(at) => (DEVICE, at, NULL),
        };
        let (host, device) = (at.pointer, at.pointer.addr() as u64);
        let (pitch, height) = (at.pitch, at.height);
        BoxSide { start, level: 0, memory_type, host, device, array, context: NULL, pitch, height }
    }
}

/// The driver's description of a three-dimensional copy. If an array takes part, the runtime counts positions and widths in elements;
/// the driver always counts them in bytes.
///
/// # Errors
/// If the direction is invalid, or something is too large.
fn slices(to: (Side, Extent), from: (Side, Extent), extent: Extent, kind: c_int) -> Result<BoxCopy, Error> {
    if !(HOST_TO_HOST..=BY_ADDRESS).contains(&kind) {
        return Err(Error::INVALID_MEMCPY_DIRECTION);
    }
    let element = |side: Side| match side {
        Side::Array(array) => element_bytes(array).map(Some),
        Side::Linear(_) => Ok(None),
    };
    let (to_element, from_element) = (element(to.0)?, element(from.0)?);
    let scaled = |value: usize, bytes: Option<usize>| {
        value.checked_mul(bytes.unwrap_or(1)).ok_or(Error::INVALID_VALUE)
    };
    let by_address = kind == BY_ADDRESS;
    let from_start = [scaled(from.1.width, from_element)?, from.1.height, from.1.depth];
    let to_start = [scaled(to.1.width, to_element)?, to.1.height, to.1.depth];
    Ok(BoxCopy {
        from: from.0.described(from_start, matches!(kind, HOST_TO_HOST | HOST_TO_DEVICE), by_address),
        to: to.0.described(to_start, matches!(kind, HOST_TO_HOST | DEVICE_TO_HOST), by_address),
        extents: [scaled(extent.width, to_element.or(from_element))?, extent.height, extent.depth],
    })
}

/// The driver's description of a copy that the program describes.
///
/// # Errors
/// As for [`slices`].
pub fn described(copy: &Memcpy3D) -> Result<BoxCopy, Error> {
    let to = (Side::of(copy.to_array, copy.to)?, copy.to_position);
    slices(to, (Side::of(copy.from_array, copy.from)?, copy.from_position), copy.extent, copy.kind)
}

/// The driver's description of a copy of bytes.
pub fn linear(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) -> Result<BoxCopy, Error> {
    let nowhere = Extent::default();
    let extent = Extent { width: bytes, height: 1, depth: 1 };
    slices((Side::rows(to, bytes), nowhere), (Side::rows(from, bytes), nowhere), extent, kind)
}

/// The driver's description of a copy to a variable.
pub fn to_symbol(
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
) -> Result<BoxCopy, Error> {
    linear(inside(symbol, offset, bytes)?, from, bytes, kind)
}

/// The driver's description of a copy from a variable.
pub fn from_symbol(
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_int,
) -> Result<BoxCopy, Error> {
    linear(to, inside(symbol, offset, bytes)?, bytes, kind)
}

/// # Safety
/// As for `cuMemcpy3D`.
unsafe fn perform(copy: Result<BoxCopy, Error>, when: When) -> Result<(), Error> {
    let copy = copy?;
    if copy.extents.contains(&0) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        match when.stream() {
            None => cu!(cuMemcpy3D_v2(&raw const copy))?,
            Some(stream) => cu!(cuMemcpy3DAsync_v2(&raw const copy, stream))?,
        }
    }
    when.finish()
}

/// # Safety
/// As for `cudaMemcpy2D`.
unsafe fn rows(
    to: (Side, [usize; 2]),
    from: (Side, [usize; 2]),
    [width, height]: [usize; 2],
    kind: c_int,
    when: When,
) -> Result<(), Error> {
    enter()?;
    // These functions count widths and offsets in bytes, even for arrays.
    let nothing = Extent::default();
    let mut copy = slices((to.0, nothing), (from.0, nothing), nothing, kind)?;
    copy.extents = [width, height, 1];
    copy.to.start[..2].copy_from_slice(&to.1);
    copy.from.start[..2].copy_from_slice(&from.1);
    // SAFETY: the caller's promise.
    unsafe { perform(Ok(copy), when) }
}

/// Copies contiguous bytes to or from an array, row by row from a position on.
///
/// # Safety
/// As for `cudaMemcpyToArray`.
unsafe fn array_bytes(
    array: Handle,
    [x, y]: [usize; 2],
    linear: *const c_void,
    bytes: usize,
    is_target: bool,
    kind: c_int,
    when: When,
) -> Result<(), Error> {
    enter()?;
    let width = crate::array::row_bytes(array)?;
    let (mut x, mut y, mut done) = (x, y, 0);
    while done < bytes {
        let count =
            (bytes - done).min(width.checked_sub(x).filter(|&left| left > 0).ok_or(Error::INVALID_VALUE)?);
        let (array, linear) =
            ((Side::Array(array), [x, y]), (Side::rows(linear.wrapping_byte_add(done), count), [0, 0]));
        let (to, from) = if is_target { (array, linear) } else { (linear, array) };
        // SAFETY: the caller's promise.
        unsafe { rows(to, from, [count, 1], kind, when) }?;
        (x, y, done) = (0, y + 1, done + count);
    }
    Ok(())
}

/// # Safety
/// As for `cudaMemcpy3DPeer`.
unsafe fn copy_peer(copy: In<Memcpy3DPeer>, when: When) -> Result<(), Error> {
    enter()?;
    let copy = copy.read()?;
    crate::context::check_device(copy.from_device)?;
    crate::context::check_device(copy.to_device)?;
    let to = (Side::of(copy.to_array, copy.to)?, copy.to_position);
    let from = (Side::of(copy.from_array, copy.from)?, copy.from_position);
    // Addresses are unified, so they determine the device, too.
    // SAFETY: the caller's promise.
    unsafe { perform(slices(to, from, copy.extent, BY_ADDRESS), when) }
}

api! { API:
    /// Copies bytes.
    cudaMemcpy / cudaMemcpy_ptds (to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) |default| {
        copy(to, from, bytes, kind, When::now(default))
    }
    /// Copies bytes, in the order of a stream.
    cudaMemcpyAsync / cudaMemcpyAsync_ptsz (to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int, stream: Handle) |default| {
        copy(to, from, bytes, kind, When::on(stream, default))
    }
    /// Copies bytes between devices.
    cudaMemcpyPeer(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize) {
        crate::context::check_device(to_device)?;
        crate::context::check_device(from_device)?;
        copy(to, from, bytes, BY_ADDRESS, When::now(Default::Legacy))
    }
    /// Copies bytes between devices, in the order of a stream.
    cudaMemcpyPeerAsync(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize, stream: Handle) {
        crate::context::check_device(to_device)?;
        crate::context::check_device(from_device)?;
        copy(to, from, bytes, BY_ADDRESS, When::on(stream, Default::Legacy))
    }
    /// Copies bytes to a variable.
    cudaMemcpyToSymbol / cudaMemcpyToSymbol_ptds (symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int) |default| {
        copy_to_symbol(symbol, from, bytes, offset, kind, When::now(default))
    }
    /// Copies bytes to a variable, in the order of a stream.
    cudaMemcpyToSymbolAsync / cudaMemcpyToSymbolAsync_ptsz (
        symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int, stream: Handle
    ) |default| {
        copy_to_symbol(symbol, from, bytes, offset, kind, When::on(stream, default))
    }
    /// Copies bytes from a variable.
    cudaMemcpyFromSymbol / cudaMemcpyFromSymbol_ptds (to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_int) |default| {
        copy_from_symbol(to, symbol, bytes, offset, kind, When::now(default))
    }
    /// Copies bytes from a variable, in the order of a stream.
    cudaMemcpyFromSymbolAsync / cudaMemcpyFromSymbolAsync_ptsz (
        to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_int, stream: Handle
    ) |default| {
        copy_from_symbol(to, symbol, bytes, offset, kind, When::on(stream, default))
    }
    /// Copies rows.
    cudaMemcpy2D / cudaMemcpy2D_ptds (
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_int
    ) |default| {
        let (to, from) = (Side::rows(to, to_pitch), Side::rows(from, from_pitch));
        rows((to, [0, 0]), (from, [0, 0]), [width, height], kind, When::now(default))
    }
    /// Copies rows, in the order of a stream.
    cudaMemcpy2DAsync / cudaMemcpy2DAsync_ptsz (
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_int, stream: Handle
    ) |default| {
        let (to, from) = (Side::rows(to, to_pitch), Side::rows(from, from_pitch));
        rows((to, [0, 0]), (from, [0, 0]), [width, height], kind, When::on(stream, default))
    }
    /// Copies rows to an array.
    cudaMemcpy2DToArray / cudaMemcpy2DToArray_ptds (
        to: Handle, x: usize, y: usize, from: *const c_void, pitch: usize, width: usize, height: usize, kind: c_int
    ) |default| {
        rows((Side::Array(to), [x, y]), (Side::rows(from, pitch), [0, 0]), [width, height], kind, When::now(default))
    }
    /// Copies rows to an array, in the order of a stream.
    cudaMemcpy2DToArrayAsync / cudaMemcpy2DToArrayAsync_ptsz (
        to: Handle, x: usize, y: usize, from: *const c_void, pitch: usize, width: usize, height: usize, kind: c_int, stream: Handle
    ) |default| {
        rows((Side::Array(to), [x, y]), (Side::rows(from, pitch), [0, 0]), [width, height], kind, When::on(stream, default))
    }
    /// Copies rows from an array.
    cudaMemcpy2DFromArray / cudaMemcpy2DFromArray_ptds (
        to: *mut c_void, pitch: usize, from: Handle, x: usize, y: usize, width: usize, height: usize, kind: c_int
    ) |default| {
        rows((Side::rows(to, pitch), [0, 0]), (Side::Array(from), [x, y]), [width, height], kind, When::now(default))
    }
    /// Copies rows from an array, in the order of a stream.
    cudaMemcpy2DFromArrayAsync / cudaMemcpy2DFromArrayAsync_ptsz (
        to: *mut c_void, pitch: usize, from: Handle, x: usize, y: usize, width: usize, height: usize, kind: c_int, stream: Handle
    ) |default| {
        rows((Side::rows(to, pitch), [0, 0]), (Side::Array(from), [x, y]), [width, height], kind, When::on(stream, default))
    }
    /// Copies rows between arrays.
    cudaMemcpy2DArrayToArray / cudaMemcpy2DArrayToArray_ptds (
        to: Handle, to_x: usize, to_y: usize, from: Handle, from_x: usize, from_y: usize, width: usize, height: usize, kind: c_int
    ) |default| {
        rows((Side::Array(to), [to_x, to_y]), (Side::Array(from), [from_x, from_y]), [width, height], kind, When::now(default))
    }
    /// Copies bytes to an array.
    cudaMemcpyToArray / cudaMemcpyToArray_ptds (to: Handle, x: usize, y: usize, from: *const c_void, bytes: usize, kind: c_int) |default| {
        array_bytes(to, [x, y], from, bytes, true, kind, When::now(default))
    }
    /// Copies bytes to an array, in the order of a stream.
    cudaMemcpyToArrayAsync / cudaMemcpyToArrayAsync_ptsz (
        to: Handle, x: usize, y: usize, from: *const c_void, bytes: usize, kind: c_int, stream: Handle
    ) |default| {
        array_bytes(to, [x, y], from, bytes, true, kind, When::on(stream, default))
    }
    /// Copies bytes from an array.
    cudaMemcpyFromArray / cudaMemcpyFromArray_ptds (to: *mut c_void, from: Handle, x: usize, y: usize, bytes: usize, kind: c_int) |default| {
        array_bytes(from, [x, y], to, bytes, false, kind, When::now(default))
    }
    /// Copies bytes from an array, in the order of a stream.
    cudaMemcpyFromArrayAsync / cudaMemcpyFromArrayAsync_ptsz (
        to: *mut c_void, from: Handle, x: usize, y: usize, bytes: usize, kind: c_int, stream: Handle
    ) |default| {
        array_bytes(from, [x, y], to, bytes, false, kind, When::on(stream, default))
    }
    /// Copies slices of rows.
    cudaMemcpy3D / cudaMemcpy3D_ptds (copy: In<Memcpy3D>) |default| {
        enter()?;
        perform(described(&copy.read()?), When::now(default))
    }
    /// Copies slices of rows, in the order of a stream.
    cudaMemcpy3DAsync / cudaMemcpy3DAsync_ptsz (copy: In<Memcpy3D>, stream: Handle) |default| {
        enter()?;
        perform(described(&copy.read()?), When::on(stream, default))
    }
    /// Copies slices of rows between devices.
    cudaMemcpy3DPeer / cudaMemcpy3DPeer_ptds (copy: In<Memcpy3DPeer>) |default| {
        copy_peer(copy, When::now(default))
    }
    /// Copies slices of rows between devices, in the order of a stream.
    cudaMemcpy3DPeerAsync / cudaMemcpy3DPeerAsync_ptsz (copy: In<Memcpy3DPeer>, stream: Handle) |default| {
        copy_peer(copy, When::on(stream, default))
    }
}
