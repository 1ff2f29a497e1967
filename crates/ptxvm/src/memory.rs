//! Device memory: buffers, arrays, and parts of them.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use machine::FaultKind;

use crate::element::to_bytes;
use crate::{Device, Element, Error};

/// An allocation. Dropping it frees the memory.
pub(crate) struct Memory {
    pub device: Device,
    pub address: u64,
    pub bytes: u64,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // `allocate` returned the address, and only this call frees it: it cannot fail.
        let _ = self.device.machine().free(self.address);
    }
}

/// Untyped device memory.
///
/// Cheap to clone; clones are the same memory. The memory is freed when the last clone is dropped and every
/// [`Launch`](crate::Launch) with it as an argument is gone. A kernel that uses its address afterwards faults.
#[derive(Clone)]
pub struct Buffer(pub(crate) Arc<Memory>);

impl Buffer {
    pub(crate) fn new(device: Device, address: u64, bytes: u64) -> Buffer {
        Buffer(Arc::new(Memory { device, address, bytes }))
    }

    /// Device address of the first byte.
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Copies bytes in, starting at an offset.
    ///
    /// # Errors
    /// [`Error::Memory`] when they do not fit.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.device().write_at(self.at(offset, data.len() as u64)?, data)
    }

    /// Copies bytes out, starting at an offset.
    ///
    /// # Errors
    /// [`Error::Memory`] when the range exceeds the buffer.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.device().read_at(self.at(offset, data.len() as u64)?, data)
    }

    /// Fills `bytes` bytes from an offset on with a pattern, repeated from its first byte.
    ///
    /// # Errors
    /// [`Error::Memory`] when the range exceeds the buffer.
    pub fn fill(&self, offset: u64, pattern: &[u8], bytes: u64) -> Result<(), Error> {
        self.device().fill_at(self.at(offset, bytes)?, pattern, bytes)
    }

    /// Copies `bytes` bytes from an offset of another buffer, or of this one, to an offset of this one.
    ///
    /// # Errors
    /// [`Error::Memory`] when a range exceeds its buffer, [`Error::OtherDevice`] when the buffers are on different
    /// devices.
    pub fn copy_from(&self, offset: u64, source: &Buffer, from: u64, bytes: u64) -> Result<(), Error> {
        if self.device().number() != source.device().number() {
            return Err(Error::OtherDevice);
        }
        self.device().copy_at(source.at(from, bytes)?, self.at(offset, bytes)?, bytes)
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The address of an offset, if `bytes` bytes follow it.
    fn at(&self, offset: u64, bytes: u64) -> Result<u64, Error> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes());
        fits.then(|| self.address() + offset).ok_or(Error::Memory(FaultKind::OutOfBounds))
    }
}

/// An array in device memory.
///
/// Cheap to clone; clones are the same memory. The memory is freed when the last clone is dropped and every
/// [`Launch`](crate::Launch) with it as an argument is gone. A kernel that uses its address afterwards faults.
#[derive(Clone)]
pub struct Array<T> {
    buffer: Buffer,
    length: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Array<T> {
    pub(crate) fn new(buffer: Buffer, length: usize) -> Array<T> {
        Array { buffer, length, element: PhantomData }
    }

    /// Device address of the first element.
    pub fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// The array's memory, untyped.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Some of its elements: `array.slice(10..20)`.
    ///
    /// # Errors
    /// [`Error::Memory`] when the range exceeds the array.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<T>, Error> {
        let start = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(self.length),
        };
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= self.length => {
                Ok(Slice { array: self.clone(), start, length: end - start })
            }
            _ => Err(Error::Memory(FaultKind::OutOfBounds)),
        }
    }

    fn all(&self) -> Slice<T> {
        Slice { array: self.clone(), start: 0, length: self.length }
    }

    /// Overwrites the first elements.
    ///
    /// # Errors
    /// [`Error::Memory`] when there are more than the array holds.
    pub fn write(&self, elements: &[T]) -> Result<(), Error> {
        self.all().write(elements)
    }

    /// All elements.
    ///
    /// # Errors
    /// None in practice; the array's memory lives as long as the array.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        self.all().read()
    }

    /// Sets all elements to a value.
    ///
    /// # Errors
    /// None in practice; the array's memory lives as long as the array.
    pub fn fill(&self, value: T) -> Result<(), Error> {
        self.all().fill(value)
    }

    /// Overwrites the first elements with those of another array, or of a part of one.
    ///
    /// # Errors
    /// [`Error::Memory`] when there are more than this array holds, [`Error::OtherDevice`] when the arrays are on
    /// different devices.
    pub fn copy_from(&self, source: impl Into<Slice<T>>) -> Result<(), Error> {
        self.all().copy_from(source)
    }
}

/// A part of an array. Cheap to clone; it keeps the array's memory alive.
#[derive(Clone)]
pub struct Slice<T> {
    array: Array<T>,
    start: usize,
    length: usize,
}

impl<T: Element> Slice<T> {
    /// Device address of the first element.
    pub fn address(&self) -> u64 {
        self.array.address() + self.offset()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &Device {
        self.array.device()
    }

    /// The memory of the whole array.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.array.buffer
    }

    /// Overwrites the first elements.
    ///
    /// # Errors
    /// [`Error::Memory`] when there are more than the slice holds.
    pub fn write(&self, elements: &[T]) -> Result<(), Error> {
        self.check(elements.len())?;
        self.buffer().write(self.offset(), &to_bytes(elements))
    }

    /// All elements.
    ///
    /// # Errors
    /// None in practice; the memory lives as long as the slice.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let mut bytes = vec![0; self.length * T::BYTES];
        self.buffer().read(self.offset(), &mut bytes)?;
        Ok(bytes.chunks_exact(T::BYTES).map(T::load).collect())
    }

    /// Sets all elements to a value.
    ///
    /// # Errors
    /// None in practice; the memory lives as long as the slice.
    pub fn fill(&self, value: T) -> Result<(), Error> {
        self.buffer().fill(self.offset(), &to_bytes(&[value]), self.bytes())
    }

    /// Overwrites the first elements with those of another array, or of a part of one. They may overlap.
    ///
    /// # Errors
    /// [`Error::Memory`] when there are more than this slice holds, [`Error::OtherDevice`] when they are on different
    /// devices.
    pub fn copy_from(&self, source: impl Into<Slice<T>>) -> Result<(), Error> {
        let source = source.into();
        self.check(source.length)?;
        self.buffer().copy_from(self.offset(), source.buffer(), source.offset(), source.bytes())
    }

    fn offset(&self) -> u64 {
        (self.start * T::BYTES) as u64
    }

    fn bytes(&self) -> u64 {
        (self.length * T::BYTES) as u64
    }

    fn check(&self, elements: usize) -> Result<(), Error> {
        if elements <= self.length { Ok(()) } else { Err(Error::Memory(FaultKind::OutOfBounds)) }
    }
}

impl<T: Element> From<&Array<T>> for Slice<T> {
    fn from(array: &Array<T>) -> Slice<T> {
        array.all()
    }
}

impl<T: Element> From<&Slice<T>> for Slice<T> {
    fn from(slice: &Slice<T>) -> Slice<T> {
        slice.clone()
    }
}
