//! Device addresses for the arrays of a launch: arrays are mapped in place, for the duration of the launch.
//!
//! Addresses are far apart. They have the alignment of `cudaMalloc` if the host memory is a whole allocation, rather
//! than a part of one. Arrays that overlap on the host overlap on the device. Three kinds of arrays are copied to the
//! device and back instead: read-only ones, all of them if addresses have 32 bits, and surfaces that are not aligned.
//! If a kernel writes to a read-only array, that is an error; the write is not silently lost.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::PyResult;

use crate::arguments::Parameters;
use crate::error::plain;

/// Distance between places, so large that a wrong index does not lead from one array to another.
const STRIDE: u64 = 1 << 36;
/// Number of places, which are used in turn. A pointer that a kernel kept is recognised as stale until this number of
/// further arrays has been placed.
const PLACES: u64 = 1024;
/// The largest array that is mapped in place.
const LARGEST: usize = 1 << 35;
/// Host alignment of an allocated array. Its device address is a multiple of 256, as `cudaMalloc` promises. An array
/// with less alignment is part of another, and is so on the device. Surfaces must have this alignment (PTX ISA,
/// "suld").
pub const ALIGNMENT: usize = 16;

/// A device, and the next place for an array.
pub struct Places {
    device: machine::Device,
    /// The module's addresses have 32 bits: arrays are copied to memory that these can address.
    narrow: bool,
    next: AtomicU64,
}

/// Arrays that have device addresses until this is dropped.
pub struct Placed<'p> {
    places: &'p Places,
    pieces: Vec<Piece>,
    /// The address of each array.
    addresses: Vec<u64>,
}

/// A range of host memory that contains one or several arguments.
struct Piece {
    start: *mut u8,
    bytes: usize,
    /// Its device address.
    address: u64,
    /// The first argument in it.
    index: usize,
    /// The device has a copy of the memory, not the memory itself.
    copied: bool,
    writable: bool,
}

// SAFETY: the pointer is that of an argument, which the caller of the launch keeps alive and in place. Only the owner
// of a piece reads and writes it.
unsafe impl Send for Piece {}

impl Places {
    /// The places of a device.
    pub fn new(device: machine::Device, narrow: bool) -> Places {
        Places { device, narrow, next: AtomicU64::new(0) }
    }

    /// Gives every array an address, and writes it to the parameters. Arrays that overlap on the host overlap on the
    /// device.
    ///
    /// # Errors
    /// When there is no room for arrays that must be copied.
    pub fn place(&self, parameters: &mut Parameters, names: &[String]) -> PyResult<Placed<'_>> {
        let arrays = &parameters.referred.arrays;
        let mut placed = Placed { places: self, pieces: Vec::new(), addresses: vec![0; arrays.len()] };
        let mut order: Vec<usize> = (0..arrays.len()).collect();
        order.sort_by_key(|&i| arrays[i].memory.start());
        let range = |i: usize| -> Range<usize> {
            let start = arrays[i].memory.start().as_ptr() as usize;
            start..start + arrays[i].memory.bytes()
        };
        let mut index = 0;
        while let Some(&first) = order.get(index) {
            let (mut whole, mut writable, mut lowest) =
                (range(first), arrays[first].memory.writable(), first);
            let mut aligned = arrays[first].aligned;
            let mut members = 1;
            while let Some(&other) =
                order.get(index + members).filter(|&&other| range(other).start < whole.end)
            {
                whole.end = whole.end.max(range(other).end);
                writable |= arrays[other].memory.writable();
                aligned |= arrays[other].aligned;
                lowest = lowest.min(other);
                members += 1;
            }
            let start = arrays[first].memory.start().as_ptr();
            let argument = arrays[lowest].index;
            let copied = self.narrow || !writable || (aligned && whole.start % ALIGNMENT != 0);
            let piece = Piece { start, bytes: whole.len(), address: 0, index: argument, copied, writable };
            let address = placed.add(piece, &names[argument])?;
            for &member in &order[index..index + members] {
                let at = address + (range(member).start - whole.start) as u64;
                placed.addresses[member] = at;
                let size = if self.narrow { 4 } else { 8 };
                if let Some(offset) = arrays[member].offset {
                    parameters.bytes[offset..offset + size].copy_from_slice(&at.to_le_bytes()[..size]);
                }
            }
            index += members;
        }
        Ok(placed)
    }
}

impl Placed<'_> {
    /// Maps or copies a piece to the device, and returns its address there.
    fn add(&mut self, mut piece: Piece, name: &str) -> PyResult<u64> {
        let Places { device, next, .. } = self.places;
        let in_place = !piece.copied && piece.bytes <= LARGEST;
        let within = (piece.start as usize % ALIGNMENT) as u64;
        let start = NonNull::new(piece.start).unwrap_or(NonNull::dangling());
        // Other launches may use some of the places.
        let address = (0..if in_place { PLACES } else { 0 }).find_map(|_| {
            let place = next.fetch_add(1, Ordering::Relaxed) % PLACES;
            let address = machine::MAPPED_BASE + place * STRIDE + within;
            // SAFETY: these are bytes of an argument, which stays in place until the launch has ended and this is
            // dropped.
            let mapped = unsafe { device.map_at(address, start, piece.bytes as u64, name) };
            mapped.ok().map(|()| address)
        });
        piece.copied = address.is_none();
        piece.address = match address {
            Some(address) => address,
            None => device.allocate(piece.bytes as u64, name).map_err(|error| plain(&error.into()))?,
        };
        if piece.copied {
            // SAFETY: these are bytes of an argument, which stays in place.
            let copied = unsafe { device.copy_in(piece.address, piece.start, piece.bytes as u64) };
            copied.map_err(|kind| plain(&ptxvm::Error::Memory(kind)))?;
        }
        let address = piece.address;
        self.pieces.push(piece);
        Ok(address)
    }

    /// Device address of the first byte of an array.
    pub fn address(&self, array: usize) -> u64 {
        self.addresses[array]
    }

    /// Copies the device's copies back to the host. Returns the arguments that the kernel wrote although they are
    /// read-only.
    pub fn bring_back(&mut self) -> Vec<usize> {
        let mut refused = Vec::new();
        for piece in self.pieces.iter().filter(|piece| piece.copied && piece.bytes > 0) {
            let device = &self.places.device;
            if piece.writable {
                // SAFETY: these are bytes of an argument that may be written.
                let _ = unsafe { device.copy_out(piece.address, piece.start, piece.bytes as u64) };
                continue;
            }
            let mut now = vec![0; piece.bytes];
            let read = device.read(piece.address, &mut now);
            // SAFETY: these are bytes of an argument, which nobody writes.
            let before = unsafe { std::slice::from_raw_parts(piece.start, piece.bytes) };
            if read.is_err() || before != now {
                refused.push(piece.index);
            }
        }
        refused
    }
}

impl Drop for Placed<'_> {
    fn drop(&mut self) {
        for piece in &self.pieces {
            // Each copy is allocated once and freed once.
            let _ = self.places.device.free(piece.address);
        }
    }
}
